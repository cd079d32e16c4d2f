//! A task: a future, its outcome and the waker of its join handle, under one lock.
//!
//! ```text
//!            wake                  run              the poll is ready, panics, or finds
//!   ┌──────┐ ────▶ ┌───────────┐ ─────▶ ┌─────────┐            CANCELLED    ┌───────────┐
//!   │ idle │       │ SCHEDULED │        │ RUNNING │ ──────────────────────▶ │ COMPLETED │
//!   └──────┘       └───────────┘ ◀───── └─────────┘                         └───────────┘
//!       ▲            pending, woken meanwhile │                                  ▲
//!       └─────────────────────────────────────┘ pending                          │
//!       cancel: RUNNING without a poll, from idle and from SCHEDULED ────────────┘
//!
//!   CANCELLED:  the next run drops the future instead of polling it.
//!   JOIN_WAKER_SET: the waker of the join handle is registered.  JOIN_LEFT: it is gone.
//!   OWNED:      the reference of the executor is among those counted.
//!   The other bits count the references: wakers, handles, runnables.
//! ```
//!
//! Invariants:
//!
//! 1. At most one thread has set `RUNNING`, and before `COMPLETED` the cell belongs
//!    to that thread. After `COMPLETED` it belongs to the join handle or, if that had
//!    left, to the thread that set `COMPLETED`. `COMPLETED` is never cleared.
//! 2. `SCHEDULED` without `RUNNING` says that there is one [`Runnable`]. `SCHEDULED`
//!    with `RUNNING` says that the running thread makes one when the poll ends. So
//!    any number of wakes during a poll lead to one further poll, and a wake after
//!    `COMPLETED` leads to none.
//! 3. The future is dropped by the thread that has set `RUNNING`, before `COMPLETED`
//!    is set. So it is dropped once, never while it is polled, and never by a waker.
//!    A future that panics is dropped while that panic unwinds.
//! 4. The last reference to be released frees the memory, in which nothing is left to
//!    drop. If a task is not completed and nothing can wake or join it any more, it
//!    is cancelled and scheduled once more before that, so that its executor drops
//!    it.
//! 5. The section that sets `COMPLETED` also releases the references of the runnable
//!    and of the executor. Only if the join handle has left in that very moment does
//!    the release follow, because the outcome is dropped first.
//!
//! Rights are values. A [`Reference`] keeps the task alive. A [`Running`] stands for
//! `RUNNING`, and with it for the stage. The types of the future and of the scheduler
//! are behind [`Erased`], which the header alone finds.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::cell::Cell as StdCell;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::thread_local;

use crate::backend::{Backend, Cell, DefaultBackend, SharedBackend};
use crate::location::{self, Wait};
use crate::protocol::waker_cell::WakerCell;
use crate::protocol::{Bits, StateLock};

const SCHEDULED: Bits = Bits::new(1);
const RUNNING: Bits = Bits::new(1 << 1);
const CANCELLED: Bits = Bits::new(1 << 2);
const COMPLETED: Bits = Bits::new(1 << 3);
const JOIN_LEFT: Bits = Bits::new(1 << 4);
const JOIN_WAKER_SET: Bits = Bits::new(1 << 5);
const OWNED: Bits = Bits::new(1 << 6);
const REFERENCE: usize = 1 << 7;

/// Returns the number of references that the bits count.
const fn references(bits: Bits) -> usize {
    bits.get() / REFERENCE
}

/// Adds a reference. If the count overflows, the process aborts, as with `Arc`.
fn add_reference(bits: Bits) -> Bits {
    if references(bits) >= Bits::MAX / REFERENCE / 2 {
        std::process::abort();
    }
    Bits::new(bits.get() + REFERENCE)
}

/// Returns `true` if nothing is left that could wake, abort or join the task, given
/// the number of references.
const fn is_orphan(bits: Bits, references: usize) -> bool {
    references == bits.contains(OWNED) as usize
}

/// Removes `count` references, and returns what the caller has to do then.
fn release(bits: Bits, count: usize) -> (Bits, Left) {
    let left = references(bits) - count;
    let released = Bits::new(bits.get() - count * REFERENCE);
    if is_orphan(bits, left) && !bits.intersects(SCHEDULED | RUNNING | COMPLETED) {
        // One reference is that of the runnable. The caller keeps the other while it
        // schedules.
        let kept = add_reference(add_reference(released));
        (kept | SCHEDULED | CANCELLED, Left::Schedule)
    } else if left == 0 {
        (released, Left::Free)
    } else {
        (released, Left::Nothing)
    }
}

/// What the thread has to do that has changed the references.
#[derive(Clone, Copy)]
enum Left {
    Nothing,
    /// It has a reference, and the task is to be scheduled.
    Schedule,
    /// It has released the last reference.
    Free,
}

/// What a task needs of its executor.
pub trait Schedule<B: Backend = DefaultBackend>: Send + Sync + 'static {
    /// Takes a task that has been woken to the queue from which it will run. It is
    /// called on the thread that wakes, outside every lock of the task.
    fn schedule(&self, task: Runnable<B>);

    /// Is told that a task has been aborted while it waits in a queue. It is called
    /// on the thread that aborts, outside every lock of the task.
    ///
    /// Such a task is dropped when it is run. An executor in which a task may wait
    /// long for that can [drop its future now](Aborted::cancel). The default does
    /// nothing.
    fn aborted(&self, task: Aborted<'_, B>) {
        let _ = task;
    }
}

/// Why a task has no output.
#[derive(Debug)]
pub enum Failure {
    /// The task was aborted, or dropped by its executor.
    Cancelled,
    /// The task panicked, or the destructor of its future did.
    Panicked(Box<dyn Any + Send>),
}

/// The output of a task, or the reason why there is none.
pub type Outcome<T> = Result<T, Failure>;

/// What identifies a task, for people and executors.
///
/// A task without a name has no place for one: it is created with `Metadata<()>`, and a
/// task with a name with `Metadata<Arc<str>>`.
#[derive(Clone, Debug)]
pub struct Metadata<N = Option<Arc<str>>> {
    /// A number that no other task has.
    pub id: u64,
    /// The location at which the task was spawned.
    pub location: &'static Location<'static>,
    /// The name of the task.
    pub name: N,
}

/// The name of a task, or `()` for a task without a name.
pub trait Name: Send + Sync + 'static {
    /// Returns the name, if there is one.
    fn get(&self) -> Option<&Arc<str>>;
}

impl Name for () {
    #[inline]
    fn get(&self) -> Option<&Arc<str>> {
        None
    }
}

impl Name for Arc<str> {
    #[inline]
    fn get(&self) -> Option<&Arc<str>> {
        Some(self)
    }
}

enum Stage<F: Future> {
    Future(F),
    /// `None` once the outcome has been taken, and while the future is dropped.
    Outcome(Option<Outcome<F::Output>>),
}

struct Header<B: Backend> {
    lock: StateLock<(), B>,
    /// Returns the task to which this header belongs.
    erased: fn(NonNull<Header<B>>) -> NonNull<dyn Erased<B>>,
    join: WakerCell<B>,
    id: u64,
    location: &'static Location<'static>,
    /// For the executor to use.
    key: AtomicU32,
    /// The only thread that may access the future, or zero.
    thread: u32,
    /// What the last poll waits for.
    #[cfg(feature = "caller-locations")]
    wait: std::sync::Mutex<Option<Wait>>,
}

#[repr(C)]
struct Task<F: Future, S, N, B: Backend> {
    /// The first field, so that a pointer to the task is a pointer to its header.
    header: Header<B>,
    scheduler: S,
    name: N,
    /// Nothing in the cell is dropped with the task (invariant 4).
    stage: B::Cell<ManuallyDrop<Stage<F>>>,
}

/// What can be done to a stage.
enum Step<'a, 'b> {
    /// Polls the future. If it is ready or panics, leaves the outcome in its place.
    Poll(&'a mut Context<'b>),
    /// Drops the future, and leaves in its place that the task was cancelled.
    Cancel,
    /// Drops the outcome.
    Discard,
}

/// A task, whatever its types.
trait Erased<B: Backend> {
    fn schedule(&self, task: Runnable<B>);

    fn aborted(&self, task: Aborted<'_, B>);

    fn name(&self) -> Option<&Arc<str>>;

    /// Returns `true` if the future is gone.
    ///
    /// # Safety
    ///
    /// The stage belongs to the caller (invariant 1).
    unsafe fn step(&self, step: Step<'_, '_>) -> bool;

    /// Returns the place of the outcome, an `Option<Outcome<F::Output>>`.
    ///
    /// # Safety
    ///
    /// The contract is that of [`step`](Self::step), and the future is gone. The place
    /// belongs to the caller for as long as the stage does.
    unsafe fn outcome(&self) -> NonNull<()>;
}

/// A counted reference to a task.
struct Reference<B: Backend>(NonNull<Header<B>>);

// SAFETY: a reference reaches the lock, the join waker under it, the metadata, and
// the scheduler, which is `Send + Sync`. The future is reached by `run` and `cancel`
// only, and if it is not `Send`, on its one thread only. The output is reached by the
// join handle, which is `Send` only if the output is.
unsafe impl<B: SharedBackend> Send for Reference<B> {}
// SAFETY: as above.
unsafe impl<B: SharedBackend> Sync for Reference<B> {}

/// A task that is to be run, once.
///
/// Dropping it does not drop the future of the task. The executor does that: it
/// [cancels](Owned::cancel) its tasks.
pub struct Runnable<B: Backend = DefaultBackend>(Reference<B>);

/// The reference of the executor to a task, with which it finds the tasks that wait.
pub struct Owned<B: Backend = DefaultBackend>(ManuallyDrop<Reference<B>>);

/// The handle that takes the outcome.
///
/// Dropping it leaves the task running. The output is then dropped when the task
/// completes.
pub struct Join<T, B: Backend = DefaultBackend> {
    reference: ManuallyDrop<Reference<B>>,
    output: PhantomData<T>,
}

/// A task that has been aborted while it waits in a queue, as its
/// [scheduler](Schedule::aborted) sees it.
pub struct Aborted<'a, B: Backend = DefaultBackend>(&'a Reference<B>);

/// A reference with which a task can be aborted.
pub struct Abort<B: Backend = DefaultBackend>(Reference<B>);

/// A task whose future is gone, and which is not completed yet. Dropping it completes
/// the task, and wakes the join handle.
#[must_use = "an executor also releases its own reference to the task"]
pub struct Completion<B: Backend = DefaultBackend>(ManuallyDrop<Reference<B>>);

// SAFETY: the output moves from one thread to another and is never shared.
unsafe impl<T: Send, B: SharedBackend> Send for Join<T, B> {}
// SAFETY: a shared handle does not reach the output.
unsafe impl<T: Send, B: SharedBackend> Sync for Join<T, B> {}
impl<T, B: Backend> Unpin for Join<T, B> {}
/// A panic of the task is its outcome, and an output comes out as a whole. A shared
/// borrow reaches neither.
impl<T, B: Backend> UnwindSafe for Join<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Join<T, B> {}

/// What a task does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It waits for a wake.
    Waits,
    /// It is to be run.
    Scheduled,
    /// It is being polled.
    Runs,
    /// It has an outcome.
    Completed,
}

/// What a run of a task ended with.
#[derive(Debug)]
#[must_use = "a task that was woken during its poll has to be run again"]
pub enum RunResult<B: Backend = DefaultBackend> {
    /// The task waits for a wake.
    Pending,
    /// The task was woken during the poll. The executor puts it at the end of its
    /// queue.
    Woken(Runnable<B>),
    /// The future is gone, and its outcome is there.
    Completed(Completion<B>),
}

/// Creates a task, with its references.
///
/// The task is [scheduled](Runnable) already: the executor puts the runnable into a
/// queue.
pub fn task<F, S, N, B>(
    future: F,
    scheduler: S,
    metadata: Metadata<N>,
) -> (Runnable<B>, Owned<B>, Join<F::Output, B>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule<B>,
    N: Name,
    B: SharedBackend,
{
    Task::make(future, scheduler, metadata, 0)
}

/// Creates a task that only this thread can run and cancel, for a future that is not
/// `Send`.
pub fn local_task<F, S, N, B>(
    future: F,
    scheduler: S,
    metadata: Metadata<N>,
) -> (Runnable<B>, Owned<B>, Join<F::Output, B>)
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule<B>,
    N: Name,
    B: SharedBackend,
{
    Task::make(future, scheduler, metadata, this_thread())
}

/// Returns the number of this thread, which is not zero and which no other thread
/// has.
fn this_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static NUMBER: StdCell<u32> = const { StdCell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            let next = |next: u32| next.checked_add(1);
            let new = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            number.set(new.expect("2^32 - 2 threads of the process have run local tasks"));
        }
        number.get()
    })
}

impl<F, S, N, B> Task<F, S, N, B>
where
    F: Future + 'static,
    S: Schedule<B>,
    N: Name,
    B: SharedBackend,
{
    fn make(
        future: F,
        scheduler: S,
        metadata: Metadata<N>,
        thread: u32,
    ) -> (Runnable<B>, Owned<B>, Join<F::Output, B>) {
        let bits = Bits::new((SCHEDULED | OWNED).get() + 3 * REFERENCE);
        let task = Box::new(Self {
            header: Header {
                lock: StateLock::new_in(bits, ()),
                erased: |header| header.cast::<Self>(),
                join: WakerCell::new(),
                id: metadata.id,
                location: metadata.location,
                key: AtomicU32::new(0),
                thread,
                #[cfg(feature = "caller-locations")]
                wait: std::sync::Mutex::default(),
            },
            scheduler,
            name: metadata.name,
            stage: B::Cell::new(ManuallyDrop::new(Stage::Future(future))),
        });
        // The pointer is cast from one to the whole task, so that it may access all
        // of the task and not only the header.
        let header = NonNull::from(Box::leak(task)).cast();
        let reference = || ManuallyDrop::new(Reference(header));
        let join = Join {
            reference: reference(),
            output: PhantomData,
        };
        (Runnable(Reference(header)), Owned(reference()), join)
    }
}

impl<F, S, N, B> Erased<B> for Task<F, S, N, B>
where
    F: Future + 'static,
    S: Schedule<B>,
    N: Name,
    B: SharedBackend,
{
    #[inline]
    fn schedule(&self, task: Runnable<B>) {
        self.scheduler.schedule(task);
    }

    fn aborted(&self, task: Aborted<'_, B>) {
        self.scheduler.aborted(task);
    }

    fn name(&self) -> Option<&Arc<str>> {
        self.name.get()
    }

    #[inline]
    unsafe fn step(&self, step: Step<'_, '_>) -> bool {
        self.stage.with_mut(|stage| {
            // SAFETY: the stage belongs to the caller, so nothing else accesses it.
            let stage = unsafe { &mut *stage };
            stage.step(step)
        })
    }

    #[inline]
    unsafe fn outcome(&self) -> NonNull<()> {
        self.stage.with_mut(|stage| {
            // SAFETY: the stage belongs to the caller, so nothing else accesses it.
            match &mut **unsafe { &mut *stage } {
                Stage::Outcome(outcome) => NonNull::from(outcome).cast(),
                Stage::Future(_) => unreachable!("the future is gone"),
            }
        })
    }
}

impl<F: Future> Stage<F> {
    #[inline]
    fn step(&mut self, step: Step<'_, '_>) -> bool {
        match step {
            Step::Poll(cx) => return self.poll(cx),
            Step::Cancel => self.end(Err(Failure::Cancelled)),
            Step::Discard => {
                if let Self::Outcome(outcome) = self
                    && let Some(outcome) = outcome.take()
                {
                    catch_panic(|| drop(outcome));
                }
            }
        }
        true
    }

    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let stage = DropOnUnwind(self);
            let Stage::Future(future) = &mut *stage.0 else {
                unreachable!("a task is done once its future is gone");
            };
            // SAFETY: the future is on the heap. It is dropped there, by an assignment
            // to the stage, or it is leaked with its task. Nothing moves it out.
            let pinned = unsafe { Pin::new_unchecked(future) };
            let poll = pinned.poll(cx);
            core::mem::forget(stage);
            poll
        }));
        match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(output)) => self.end(Ok(output)),
            Err(panic) => *self = Self::Outcome(Some(Err(Failure::Panicked(panic)))),
        }
        true
    }

    /// Drops the future, and leaves the outcome in its place.
    #[inline]
    fn end(&mut self, outcome: Outcome<F::Output>) {
        // If the drop panics, the assignment still takes place.
        let dropped = catch_unwind(AssertUnwindSafe(|| *self = Self::Outcome(None)));
        let outcome = match dropped {
            Ok(()) => outcome,
            Err(panic) => {
                catch_panic(|| drop(outcome));
                Err(Failure::Panicked(panic))
            }
        };
        *self = Self::Outcome(Some(outcome));
    }
}

/// Exists while a future is polled. Dropping it drops the future, which happens only
/// if a panic of the poll unwinds.
struct DropOnUnwind<'a, F: Future>(&'a mut Stage<F>);

impl<F: Future> Drop for DropOnUnwind<'_, F> {
    fn drop(&mut self) {
        catch_panic(|| *self.0 = Stage::Outcome(None));
    }
}

/// Runs a destructor or a waker, which is foreign code, and catches its panic. The
/// panic hook has reported the panic by then.
fn catch_panic(f: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
        // The payload of a panic can itself panic when it is dropped.
        core::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
    }
}

impl<B: Backend> Header<B> {
    /// Returns `true` if a runnable is due. A reference has then been added for it.
    fn wake(&self) -> bool {
        let woken = self.lock.update(|bits| {
            if bits.contains(COMPLETED) {
                None
            } else if bits.intersects(RUNNING | SCHEDULED) {
                // The bits are stored even if they do not change: the next run must
                // see what was written before this wake.
                Some(bits | SCHEDULED)
            } else {
                Some(add_reference(bits | SCHEDULED))
            }
        });
        woken.is_ok_and(|before| !before.intersects(RUNNING | SCHEDULED))
    }

    /// Wakes the task as [`wake`](Self::wake) does, and makes its next run the last.
    /// Returns the bits that it found, unless the task is completed or was aborted
    /// before.
    fn abort(&self) -> Option<Bits> {
        let aborted = self.lock.update(|bits| {
            if bits.intersects(COMPLETED | CANCELLED) {
                None
            } else if bits.intersects(RUNNING | SCHEDULED) {
                Some(bits | CANCELLED)
            } else {
                Some(add_reference(bits | CANCELLED | SCHEDULED))
            }
        });
        aborted.ok()
    }
}

/// What a cancellation finds.
#[derive(PartialEq, Eq)]
enum Cancel {
    /// The future, which has been dropped.
    Dropped,
    /// The outcome.
    WasCompleted,
    /// A poll in progress, after which the future is dropped.
    Runs,
}

impl<B: Backend> Reference<B> {
    #[inline]
    fn header(&self) -> &Header<B> {
        // SAFETY: this reference keeps the task alive, and `make` has created it.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn task(&self) -> &dyn Erased<B> {
        let task = (self.header().erased)(self.0);
        // SAFETY: this reference keeps the task alive. `make` has cast the pointer from
        // one to the whole task, and `erased` casts it back to that type.
        unsafe { task.as_ref() }
    }

    fn reference(&self) -> Self {
        let counted = self.header().lock.update(|bits| Some(add_reference(bits)));
        debug_assert!(counted.is_ok());
        Self(self.0)
    }

    fn metadata(&self) -> Metadata {
        let header = self.header();
        Metadata {
            id: header.id,
            location: header.location,
            name: self.task().name().cloned(),
        }
    }

    /// Gives the runnable that is due to the executor. This reference keeps the task
    /// alive meanwhile, whatever happens to that of the runnable.
    fn schedule(&self) {
        self.task().schedule(Runnable(Self(self.0)));
    }

    fn wake(&self) {
        if self.header().wake() {
            self.schedule();
        }
    }

    /// Wakes the task and releases the reference, in one section unless the task has
    /// to be scheduled.
    fn wake_and_release(self) {
        let this = ManuallyDrop::new(self);
        this.change(|bits| {
            if bits.contains(COMPLETED) {
                release(bits, 1)
            } else if bits.intersects(RUNNING | SCHEDULED) {
                release(bits | SCHEDULED, 1)
            } else {
                (add_reference(bits | SCHEDULED), Left::Schedule)
            }
        });
    }

    fn abort(&self) {
        match self.header().abort() {
            Some(before) if before.contains(RUNNING) => {}
            Some(before) if before.contains(SCHEDULED) => self.task().aborted(Aborted(self)),
            Some(_) => self.schedule(),
            None => {}
        }
    }

    /// Sets `RUNNING` if the future is there and is not being run. If the future runs,
    /// sets `flags`.
    ///
    /// # Panics
    ///
    /// Panics if the task is local to another thread.
    #[inline]
    fn enter(&self, flags: Bits) -> Result<(Bits, Running<'_, B>), Bits> {
        let header = self.header();
        assert!(
            header.thread == 0 || header.thread == this_thread(),
            "a task of one thread was run or cancelled on another"
        );
        let entered = header.lock.update(|bits| {
            if bits.contains(COMPLETED) {
                None
            } else if bits.contains(RUNNING) {
                (flags != Bits::EMPTY).then(|| bits | flags)
            } else {
                Some(bits.without(SCHEDULED) | RUNNING)
            }
        });
        match entered {
            Ok(before) if !before.contains(RUNNING) => Ok((before, Running(self))),
            Ok(before) | Err(before) => Err(before),
        }
    }

    /// Drops the future and leaves an outcome, unless the task is completed or
    /// running.
    ///
    /// One section sees that the task is running and marks it to be dropped when the
    /// poll ends. Between two sections the poll could end, and nothing would drop the
    /// future.
    fn cancel(&self) -> Cancel {
        match self.enter(CANCELLED) {
            Ok((_, mut running)) => {
                running.step(Step::Cancel);
                running.complete(0, Bits::EMPTY);
                Cancel::Dropped
            }
            Err(before) if before.contains(COMPLETED) => Cancel::WasCompleted,
            Err(_) => Cancel::Runs,
        }
    }

    /// Changes the bits, and does what is left to do. This reference may be gone
    /// afterwards.
    #[inline]
    fn change(&self, mut change: impl FnMut(Bits) -> (Bits, Left)) {
        let mut left = Left::Nothing;
        let changed = self.header().lock.update(|bits| {
            let (bits, after) = change(bits);
            left = after;
            Some(bits)
        });
        debug_assert!(changed.is_ok());
        self.finish_change(left);
    }

    #[inline]
    fn finish_change(&self, left: Left) {
        match left {
            Left::Nothing => {}
            Left::Schedule => {
                self.schedule();
                // The task is scheduled or completed by now, so it is not an orphan
                // again.
                self.change(|bits| release(bits, 1));
            }
            Left::Free => self.free(),
        }
    }

    fn free(&self) {
        let task = (self.header().erased)(self.0);
        // SAFETY: the pointer is that of `Box::leak` in `make`, of the same type. This
        // was the last reference, and this is its last use.
        drop(unsafe { Box::from_raw(task.as_ptr()) });
    }
}

impl<B: Backend> Drop for Reference<B> {
    #[inline]
    fn drop(&mut self) {
        self.change(|bits| release(bits, 1));
    }
}

/// A task for which `RUNNING` has been set, and not been cleared since. The stage
/// belongs to the owner of this value, which only [`Reference::enter`] creates, and
/// [`Completion`] keeps up.
struct Running<'a, B: Backend>(&'a Reference<B>);

impl<B: Backend> Running<'_, B> {
    #[inline]
    fn step(&mut self, step: Step<'_, '_>) -> bool {
        // SAFETY: `RUNNING` is set for this value, and `enter` has checked the thread.
        unsafe { self.0.task().step(step) }
    }

    /// Clears `RUNNING` after a poll that was pending, and releases the reference of the
    /// runnable. If the task was woken, the reference becomes that of the next runnable.
    ///
    /// # Errors
    ///
    /// Returns the value back if the future has to be dropped.
    #[inline]
    fn suspend(self) -> Result<Bits, Self> {
        #[cfg(feature = "caller-locations")]
        if let Ok(mut wait) = self.0.header().wait.lock() {
            *wait = location::take_note();
        }
        let suspended = self.0.header().lock.update(|bits| {
            if bits.contains(CANCELLED) {
                None
            } else if bits.contains(SCHEDULED) {
                Some(bits.without(RUNNING))
            } else if is_orphan(bits, references(bits) - 1) {
                None
            } else {
                Some(Bits::new(bits.without(RUNNING).get() - REFERENCE))
            }
        });
        suspended.map_err(|_| self)
    }

    /// Sets `COMPLETED`, since the outcome is there, clears `flags`, releases `count`
    /// references, and wakes the join handle.
    #[inline]
    fn complete(mut self, count: usize, flags: Bits) {
        let header = self.0.header();
        // Once set, it stays, and the outcome belongs to this thread.
        let discarded = header.lock.load().contains(JOIN_LEFT);
        if discarded {
            self.step(Step::Discard);
        }
        let done = |bits: Bits| {
            let done = bits.without(RUNNING | SCHEDULED | JOIN_WAKER_SET | flags) | COMPLETED;
            match bits.contains(JOIN_LEFT) && !discarded {
                true => (done, Left::Nothing),
                false => release(done, count),
            }
        };
        let mut left = Left::Nothing;
        let mut complete = |bits| {
            let (done, after) = done(bits);
            left = after;
            done
        };
        let alone = header
            .lock
            .update(|bits| (!bits.contains(JOIN_WAKER_SET)).then(|| complete(bits)));
        let (before, waker) = match alone {
            Ok(before) => (before, None),
            Err(_) => header.lock.unlisted(|bits, ()| {
                let before = *bits;
                *bits = complete(before);
                // SAFETY: this section has found `JOIN_WAKER_SET` set and clears it.
                let waker = before
                    .contains(JOIN_WAKER_SET)
                    .then(|| unsafe { header.join.take() });
                (before, waker)
            }),
        };
        if let Some(waker) = waker {
            catch_panic(|| waker.wake());
        }
        if before.contains(JOIN_LEFT) && !discarded {
            // The references have not been released.
            self.step(Step::Discard);
            if count > 0 {
                self.0.change(|bits| release(bits, count));
            }
        } else {
            self.0.finish_change(left);
        }
    }
}

/// The waker of a task, which is a reference to it.
struct TaskWaker<B>(PhantomData<B>);

impl<B: SharedBackend> TaskWaker<B> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// # Safety
    ///
    /// This holds for the whole vtable: `task` is the header of a task, and the
    /// caller has a reference to it, which this call does not release.
    unsafe fn borrow(task: *const ()) -> ManuallyDrop<Reference<B>> {
        // SAFETY: the header of a task is never null.
        let header = unsafe { NonNull::new_unchecked(task.cast_mut().cast()) };
        ManuallyDrop::new(Reference(header))
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow).
    unsafe fn clone(task: *const ()) -> RawWaker {
        // SAFETY: the contract of this function.
        let reference = unsafe { Self::borrow(task) }.reference();
        core::mem::forget(reference);
        RawWaker::new(task, &Self::VTABLE)
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow). The reference is released here.
    unsafe fn wake(task: *const ()) {
        // SAFETY: the contract of this function.
        ManuallyDrop::into_inner(unsafe { Self::borrow(task) }).wake_and_release();
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow).
    unsafe fn wake_by_ref(task: *const ()) {
        // SAFETY: the contract of this function.
        unsafe { Self::borrow(task) }.wake();
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow). The reference is released here.
    unsafe fn drop(task: *const ()) {
        // SAFETY: the contract of this function.
        drop(ManuallyDrop::into_inner(unsafe { Self::borrow(task) }));
    }

    /// Returns a waker that borrows the reference.
    fn lent(reference: &Reference<B>) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(reference.0.as_ptr().cast_const().cast(), &Self::VTABLE);
        // SAFETY: the vtable keeps the contract of wakers: a clone has a reference of
        // its own, and `Reference` is `Send` and `Sync`. This waker is not dropped.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

/// Defines the accessors of a reference.
macro_rules! accessors {
    ($([$($generics:tt)*] $reference:ty, $field:tt;)*) => {$(
        impl<$($generics)*> $reference {
            /// Returns the number of the task.
            #[inline]
            #[must_use]
            pub fn id(&self) -> u64 {
                self.$field.header().id
            }

            /// Returns the metadata of the task.
            #[must_use]
            pub fn metadata(&self) -> Metadata {
                self.$field.metadata()
            }
        }
    )*};
}

accessors! {
    [B: Backend] Runnable<B>, 0;
    [B: Backend] Owned<B>, 0;
    [B: Backend] Abort<B>, 0;
    [B: Backend] Aborted<'_, B>, 0;
    [B: Backend] Completion<B>, 0;
    [T, B: Backend] Join<T, B>, reference;
}

impl<B: SharedBackend> Runnable<B> {
    /// Polls the task, or drops its future if it has been aborted.
    ///
    /// If the future panics, the panic is its outcome and is not propagated.
    ///
    /// # Panics
    ///
    /// Panics if the task is [local](local_task) and this is another thread.
    pub fn run(self) -> RunResult<B> {
        let Ok((before, mut running)) = self.0.enter(Bits::EMPTY) else {
            // The executor cancels the task, or has done so.
            return RunResult::Pending;
        };
        if before.contains(CANCELLED) {
            running.step(Step::Cancel);
        } else {
            let waker = TaskWaker::lent(&self.0);
            // A note of an earlier poll on this thread is not of this task.
            #[cfg(feature = "caller-locations")]
            location::take_note();
            if !running.step(Step::Poll(&mut Context::from_waker(&waker))) {
                match running.suspend() {
                    Ok(before) if before.contains(SCHEDULED) => return RunResult::Woken(self),
                    Ok(_) => {
                        core::mem::forget(self);
                        return RunResult::Pending;
                    }
                    Err(mut running) => _ = running.step(Step::Cancel),
                }
            }
        }
        RunResult::Completed(Completion(ManuallyDrop::new(self.0)))
    }

    /// Drops the future, unless the task is completed or running. The outcome is then
    /// that the task was cancelled. Returns the [key](Self::key) of the task if this
    /// call has dropped the future.
    ///
    /// # Panics
    ///
    /// Panics if the task is [local](local_task) and this is another thread.
    pub fn cancel(self) -> Option<u32> {
        (self.0.cancel() == Cancel::Dropped).then(|| self.key())
    }

    /// Returns the number that the executor has given to the task.
    #[must_use]
    pub fn key(&self) -> u32 {
        self.0.header().key.load(Ordering::Relaxed)
    }
}

impl<B: Backend> Completion<B> {
    /// Returns the number that the executor has given to the task.
    #[must_use]
    pub fn key(&self) -> u32 {
        self.0.header().key.load(Ordering::Relaxed)
    }

    /// Completes the task, and releases the reference of the executor in the same
    /// section. The executor has removed it from its collection, so that nothing
    /// cancels the task meanwhile.
    #[inline]
    pub fn complete(self, owned: Option<Owned<B>>) {
        let this = ManuallyDrop::new(self);
        match owned {
            Some(owned) if owned.0.0 == this.0.0 => {
                core::mem::forget(owned);
                Running(&this.0).complete(2, OWNED);
            }
            // It is the reference to another task.
            other => {
                Running(&this.0).complete(1, Bits::EMPTY);
                drop(other);
            }
        }
    }
}

impl<B: Backend> Drop for Completion<B> {
    fn drop(&mut self) {
        Running(&self.0).complete(1, Bits::EMPTY);
    }
}

impl<B: Backend> Aborted<'_, B> {
    /// Drops the future, unless the task has begun to run meanwhile. Returns the
    /// [key](Runnable::key) of the task if this call has dropped the future.
    ///
    /// The runnable stays in its queue, and does nothing when it is run.
    ///
    /// # Panics
    ///
    /// Panics if the task is [local](local_task) and this is another thread.
    pub fn cancel(self) -> Option<u32> {
        let dropped = self.0.cancel() == Cancel::Dropped;
        dropped.then(|| self.0.header().key.load(Ordering::Relaxed))
    }
}

impl<B: Backend> Owned<B> {
    /// Drops the future, at once or, if it is being polled, when the poll ends. The
    /// outcome is that the task was cancelled, unless there is an outcome by then.
    /// Returns `true` if the task is completed.
    ///
    /// # Panics
    ///
    /// Panics if the task is [local](local_task) and this is another thread.
    pub fn cancel(&self) -> bool {
        self.0.cancel() != Cancel::Runs
    }

    /// Returns what the task does at the moment.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let bits = self.0.header().lock.load();
        if bits.contains(COMPLETED) {
            Activity::Completed
        } else if bits.contains(RUNNING) {
            Activity::Runs
        } else if bits.contains(SCHEDULED) {
            Activity::Scheduled
        } else {
            Activity::Waits
        }
    }

    /// Returns what the last poll of the task waits for, if that was noted. Notes are
    /// taken with the features `locations` and `model`.
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        #[cfg(feature = "caller-locations")]
        return self.0.header().wait.lock().ok().and_then(|wait| *wait);
        #[cfg(not(feature = "caller-locations"))]
        None
    }

    /// Gives the task a number, with which its executor finds this reference. It is
    /// called before the first run.
    pub fn set_key(&self, key: u32) {
        self.0.header().key.store(key, Ordering::Relaxed);
    }
}

impl<B: Backend> Drop for Owned<B> {
    fn drop(&mut self) {
        // The flag is cleared in the section that releases the reference.
        self.0.change(|bits| release(bits.without(OWNED), 1));
    }
}

impl<T, B: Backend> Join<T, B> {
    /// Returns the outcome once the future is gone.
    ///
    /// # Panics
    ///
    /// Panics if it is polled again after it was ready.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let header = self.reference.header();
        let bits = header.lock.load();
        if !bits.contains(COMPLETED) {
            // SAFETY: the one join handle is borrowed exclusively. `JOIN_WAKER_SET` is
            // cleared only by the handle itself and, together with setting
            // `COMPLETED`, by the section that takes the waker.
            let waited = unsafe {
                header
                    .join
                    .wait(&header.lock, JOIN_WAKER_SET, COMPLETED, bits, cx)
            };
            if waited.is_pending() {
                location::note(Wait::Task(header.id));
                return Poll::Pending;
            }
        }
        // SAFETY: since `COMPLETED` the stage belongs to the join handle, which is
        // borrowed exclusively.
        let outcome = unsafe { self.reference.task().outcome() };
        // SAFETY: the place is that of an outcome of the type that the handle was
        // created with.
        let outcome = unsafe { outcome.cast::<Option<Outcome<T>>>().as_mut() }.take();
        Poll::Ready(outcome.expect("JoinHandle polled after it was ready"))
    }

    /// Returns the name of the task, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.reference.task().name().map(|name| &**name)
    }

    /// Returns `true` if the task is completed: its future is gone and its outcome is
    /// there.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.reference.header().lock.load().contains(COMPLETED)
    }

    /// Cancels the task, unless it is completed. The executor drops the future.
    pub fn abort(&self) {
        self.reference.abort();
    }

    /// Returns a reference with which the task can be aborted.
    #[must_use]
    pub fn abort_handle(&self) -> Abort<B> {
        Abort(self.reference.reference())
    }

    /// Gives up the wait, if the task is not completed. Returns `true` if it is.
    fn leave(&self) -> bool {
        let header = self.reference.header();
        let left = header.lock.update(|bits| {
            (!bits.contains(COMPLETED)).then(|| bits.without(JOIN_WAKER_SET) | JOIN_LEFT)
        });
        if left.is_ok_and(|before| before.contains(JOIN_WAKER_SET)) {
            // SAFETY: the update has found `JOIN_WAKER_SET` set and cleared it.
            let waker = unsafe { header.join.take() };
            catch_panic(|| drop(waker));
        }
        left.is_err()
    }
}

impl<T, B: Backend> Drop for Join<T, B> {
    fn drop(&mut self) {
        let reference = &*self.reference;
        // As a rule the handle has not waited, and leaves in the section that releases
        // its reference.
        let mut left = Left::Nothing;
        let left_at_once = reference.header().lock.update(|bits| {
            (!bits.intersects(COMPLETED | JOIN_WAKER_SET)).then(|| {
                let (bits, after) = release(bits | JOIN_LEFT, 1);
                left = after;
                bits
            })
        });
        if left_at_once.is_ok() {
            return reference.finish_change(left);
        }
        if self.leave() {
            // SAFETY: since `COMPLETED` the stage belongs to the join handle.
            unsafe { reference.task().step(Step::Discard) };
        }
        reference.change(|bits| release(bits, 1));
    }
}

impl<B: Backend> Abort<B> {
    /// Cancels the task, unless it is completed. The executor drops the future.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Returns `true` if the task is completed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.header().lock.load().contains(COMPLETED)
    }
}

impl<B: Backend> Clone for Abort<B> {
    fn clone(&self) -> Self {
        Self(self.0.reference())
    }
}

impl<B: Backend> fmt::Debug for Runnable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runnable").field(&self.id()).finish()
    }
}

impl<B: Backend> fmt::Debug for Completion<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Completion").field(&self.id()).finish()
    }
}

impl<B: Backend> fmt::Debug for Aborted<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Aborted").field(&self.id()).finish()
    }
}

impl<B: Backend> fmt::Debug for Owned<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owned").field(&self.id()).finish()
    }
}

impl<T, B: Backend> fmt::Debug for Join<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join")
            .field("id", &self.id())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

impl<B: Backend> fmt::Debug for Abort<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Abort")
            .field("id", &self.id())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
