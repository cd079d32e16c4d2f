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
//!   JOIN_WAITS: the waker of the join handle is registered.  JOIN_LEFT: it is gone.
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

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::cell::Cell as StdCell;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::thread_local;

use crate::backend::{Backend, Cell, DefaultBackend, SharedBackend};
use crate::protocol::waker_cell::WakerCell;
use crate::protocol::{Bits, StateLock};

const SCHEDULED: Bits = Bits::new(1);
const RUNNING: Bits = Bits::new(1 << 1);
const CANCELLED: Bits = Bits::new(1 << 2);
const COMPLETED: Bits = Bits::new(1 << 3);
const JOIN_LEFT: Bits = Bits::new(1 << 4);
const JOIN_WAITS: Bits = Bits::new(1 << 5);
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

/// Removes a reference.
const fn remove_reference(bits: Bits) -> Bits {
    Bits::new(bits.get() - REFERENCE)
}

/// Returns `true` if nothing is left that could wake, abort or join the task, given
/// the number of references.
const fn is_orphan(bits: Bits, references: usize) -> bool {
    references == bits.contains(OWNED) as usize
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
#[derive(Clone, Debug)]
pub struct Metadata {
    /// A number that no other task has.
    pub id: u64,
    /// The location at which the task was spawned.
    pub location: &'static Location<'static>,
    /// The name of the task, if it has one. Few tasks have one, so its field is
    /// small.
    pub name: Option<Arc<Name>>,
}

/// The name of a task.
#[derive(Debug)]
pub struct Name(pub String);

enum Stage<F: Future> {
    Future(F),
    Outcome(Outcome<F::Output>),
    Gone,
}

struct Header<B: Backend> {
    lock: StateLock<(), B>,
    vtable: &'static VTable<B>,
    join: WakerCell<B>,
    /// The only thread that may access the future, or zero.
    thread: u64,
    /// For the executor to use.
    key: AtomicUsize,
    metadata: Metadata,
}

#[repr(C)]
struct Task<F: Future, S, B: Backend> {
    /// The first field, so that a pointer to the task is a pointer to its header.
    header: Header<B>,
    scheduler: S,
    /// Nothing in the cell is dropped with the task (invariant 4).
    stage: B::Cell<ManuallyDrop<Stage<F>>>,
}

/// The operations on a task that need its types.
struct VTable<B: Backend> {
    schedule: unsafe fn(NonNull<Header<B>>, Runnable<B>),
    aborted: unsafe fn(NonNull<Header<B>>, Aborted<'_, B>),
    /// Polls the future. Returns `true` if there is an outcome now, and the future is
    /// then gone.
    poll: unsafe fn(NonNull<Header<B>>, &mut Context<'_>) -> bool,
    cancel: unsafe fn(NonNull<Header<B>>),
    /// Moves the outcome out, to a place for a `MaybeUninit<Outcome<T>>`.
    take: unsafe fn(NonNull<Header<B>>, *mut ()),
    discard: unsafe fn(NonNull<Header<B>>),
    free: unsafe fn(NonNull<Header<B>>),
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
    reference: Reference<B>,
    output: PhantomData<T>,
}

/// A task that has been aborted while it waits in a queue, as its
/// [scheduler](Schedule::aborted) sees it.
pub struct Aborted<'a, B: Backend = DefaultBackend>(&'a Reference<B>);

/// A reference with which a task can be aborted.
pub struct Abort<B: Backend = DefaultBackend>(Reference<B>);

// SAFETY: the output moves from one thread to another and is never shared.
unsafe impl<T: Send, B: SharedBackend> Send for Join<T, B> {}
// SAFETY: a shared handle does not reach the output.
unsafe impl<T: Send, B: SharedBackend> Sync for Join<T, B> {}
impl<T, B: Backend> Unpin for Join<T, B> {}
/// A panic of the task is its outcome, and an output comes out as a whole. A shared
/// borrow reaches neither.
impl<T, B: Backend> UnwindSafe for Join<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Join<T, B> {}

/// What a run of a task ended with.
#[derive(Debug)]
#[must_use = "a task that was woken during its poll has to be run again"]
pub enum RunResult<B: Backend = DefaultBackend> {
    /// The task waits for a wake.
    Pending,
    /// The task was woken during the poll. The executor puts it at the end of its
    /// queue.
    Woken(Runnable<B>),
    /// The task is completed. This is the [key](Runnable::key) that it had.
    Completed(usize),
}

/// Creates a task, with its references.
///
/// The task is [scheduled](Runnable) already: the executor puts the runnable into a
/// queue.
pub fn task<F, S, B>(
    future: F,
    scheduler: S,
    metadata: Metadata,
) -> (Runnable<B>, Owned<B>, Join<F::Output, B>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule<B>,
    B: SharedBackend,
{
    Task::make(future, scheduler, metadata, 0)
}

/// Creates a task that only this thread can run and cancel, for a future that is not
/// `Send`.
pub fn local_task<F, S, B>(
    future: F,
    scheduler: S,
    metadata: Metadata,
) -> (Runnable<B>, Owned<B>, Join<F::Output, B>)
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule<B>,
    B: SharedBackend,
{
    Task::make(future, scheduler, metadata, this_thread())
}

/// Returns the number of this thread, which is not zero and which no other thread
/// has.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: StdCell<u64> = const { StdCell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl<F, S, B> Task<F, S, B>
where
    F: Future + 'static,
    S: Schedule<B>,
    B: SharedBackend,
{
    const VTABLE: VTable<B> = VTable {
        schedule: Self::schedule,
        aborted: Self::aborted,
        poll: Self::poll,
        cancel: Self::cancel,
        take: Self::take,
        discard: Self::discard,
        free: Self::free,
    };

    fn make(
        future: F,
        scheduler: S,
        metadata: Metadata,
        thread: u64,
    ) -> (Runnable<B>, Owned<B>, Join<F::Output, B>) {
        let bits = Bits::new((SCHEDULED | OWNED).get() + 3 * REFERENCE);
        let task = Box::new(Self {
            header: Header {
                lock: StateLock::new_in(bits, ()),
                vtable: &Self::VTABLE,
                join: WakerCell::new(),
                thread,
                key: AtomicUsize::new(0),
                metadata,
            },
            scheduler,
            stage: B::Cell::new(ManuallyDrop::new(Stage::Future(future))),
        });
        // The pointer is cast from one to the whole task, so that it may access all
        // of the task and not only the header.
        let header = NonNull::from(Box::leak(task)).cast();
        let join = Join {
            reference: Reference(header),
            output: PhantomData,
        };
        (
            Runnable(Reference(header)),
            Owned(ManuallyDrop::new(Reference(header))),
            join,
        )
    }

    /// # Safety
    ///
    /// This holds for the whole vtable: the header is that of a task of this type,
    /// and the caller has a reference to it for as long as this call runs.
    unsafe fn of<'a>(header: NonNull<Header<B>>) -> &'a Self {
        // SAFETY: `make` has cast a pointer to the whole task, whose header comes
        // first, and the caller's reference keeps it.
        unsafe { header.cast::<Self>().as_ref() }
    }

    /// # Safety
    ///
    /// See [`of`](Self::of).
    unsafe fn schedule(header: NonNull<Header<B>>, task: Runnable<B>) {
        // SAFETY: the contract of this function.
        unsafe { Self::of(header) }.scheduler.schedule(task);
    }

    /// # Safety
    ///
    /// See [`of`](Self::of).
    unsafe fn aborted(header: NonNull<Header<B>>, task: Aborted<'_, B>) {
        // SAFETY: the contract of this function.
        unsafe { Self::of(header) }.scheduler.aborted(task);
    }

    /// # Safety
    ///
    /// See [`of`](Self::of). The caller has set `RUNNING`, and the future has not
    /// been dropped.
    unsafe fn poll(header: NonNull<Header<B>>, cx: &mut Context<'_>) -> bool {
        // SAFETY: the contract of this function.
        let task = unsafe { Self::of(header) };
        task.stage.with_mut(|stage| {
            // SAFETY: the cell belongs to the running thread (invariant 1).
            let Stage::Future(future) = (unsafe { &mut **stage }) else {
                unreachable!("a task is done once its future is gone");
            };
            // SAFETY: the future does not move before it is dropped. `end` and
            // `Unwinding` drop it in place, and otherwise it is leaked with its task.
            let pinned = unsafe { Pin::new_unchecked(future) };
            let polled = catch_unwind(AssertUnwindSafe(|| {
                let unwinding = Unwinding(stage);
                let poll = pinned.poll(cx);
                core::mem::forget(unwinding);
                poll
            }));
            match polled {
                Ok(Poll::Pending) => return false,
                // SAFETY: as for the poll.
                Ok(Poll::Ready(output)) => unsafe { Self::end(stage, Ok(output)) },
                Err(panic) => {
                    let outcome = Stage::Outcome(Err(Failure::Panicked(panic)));
                    // SAFETY: as for the poll, and `Unwinding` has dropped the future.
                    unsafe { stage.write(ManuallyDrop::new(outcome)) };
                }
            }
            true
        })
    }

    /// # Safety
    ///
    /// The contract is that of [`poll`](Self::poll).
    unsafe fn cancel(header: NonNull<Header<B>>) {
        // SAFETY: the contract of this function.
        let task = unsafe { Self::of(header) };
        task.stage.with_mut(|stage| {
            // SAFETY: the cell belongs to the running thread, and holds the future.
            unsafe { Self::end(stage, Err(Failure::Cancelled)) }
        });
    }

    /// Drops the future, and leaves the outcome in its place.
    ///
    /// # Safety
    ///
    /// The cell belongs to the caller.
    unsafe fn end(stage: *mut ManuallyDrop<Stage<F>>, outcome: Outcome<F::Output>) {
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the cell belongs to the caller.
            let stage = unsafe { &mut *stage };
            // SAFETY: the content is dropped here and, whether or not that panics,
            // overwritten below.
            unsafe { ManuallyDrop::drop(stage) }
        }));
        let outcome = match dropped {
            Ok(()) => outcome,
            Err(panic) => {
                catch_panic(|| drop(outcome));
                Err(Failure::Panicked(panic))
            }
        };
        // SAFETY: the cell belongs to the caller, and what was in it has been
        // dropped.
        unsafe { stage.write(ManuallyDrop::new(Stage::Outcome(outcome))) };
    }

    /// Moves the outcome out of the cell.
    ///
    /// # Safety
    ///
    /// See [`of`](Self::of). The task is completed and the cell belongs to the
    /// caller.
    unsafe fn outcome(header: NonNull<Header<B>>) -> Option<Outcome<F::Output>> {
        // SAFETY: the contract of this function.
        let task = unsafe { Self::of(header) };
        task.stage.with_mut(|stage| {
            let gone = ManuallyDrop::new(Stage::Gone);
            // SAFETY: the cell belongs to the caller.
            match ManuallyDrop::into_inner(unsafe { stage.replace(gone) }) {
                Stage::Outcome(outcome) => Some(outcome),
                Stage::Future(_) | Stage::Gone => None,
            }
        })
    }

    /// # Safety
    ///
    /// The contract is that of [`outcome`](Self::outcome). The outcome is there, and
    /// `to` is a place for a `MaybeUninit<Outcome<F::Output>>`.
    unsafe fn take(header: NonNull<Header<B>>, to: *mut ()) {
        // SAFETY: the contract of this function.
        let outcome = unsafe { Self::outcome(header) };
        let outcome = outcome.expect("an outcome is taken once");
        // SAFETY: the contract of this function.
        unsafe { to.cast::<Outcome<F::Output>>().write(outcome) };
    }

    /// # Safety
    ///
    /// The contract is that of [`outcome`](Self::outcome).
    unsafe fn discard(header: NonNull<Header<B>>) {
        // SAFETY: the contract of this function.
        let outcome = unsafe { Self::outcome(header) };
        catch_panic(|| drop(outcome));
    }

    /// # Safety
    ///
    /// The header is that of a task of this type, to which there is no reference.
    unsafe fn free(header: NonNull<Header<B>>) {
        // SAFETY: the pointer came from `Box::leak`, and this is its last use.
        drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) });
    }
}

/// Exists while a future is polled. Dropping it drops the future, which happens only
/// if a panic of the poll unwinds.
struct Unwinding<F: Future>(*mut ManuallyDrop<Stage<F>>);

impl<F: Future> Drop for Unwinding<F> {
    fn drop(&mut self) {
        catch_panic(|| {
            // SAFETY: `poll` has made it from its cell, which belongs to the running
            // thread. The borrow that was polled ended when the poll unwound.
            let stage = unsafe { &mut *self.0 };
            // SAFETY: the cell holds the future. It is dropped here and, whether or not
            // that panics, overwritten by `poll`.
            unsafe { ManuallyDrop::drop(stage) }
        });
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

    fn is_its_thread(&self) {
        assert!(
            self.thread == 0 || self.thread == this_thread(),
            "a task of one thread was run or cancelled on another"
        );
    }

    /// Sets `RUNNING` if the future is there and is not being run.
    fn enter(&self) -> Result<Bits, Bits> {
        self.is_its_thread();
        self.lock.update(|bits| {
            (!bits.intersects(RUNNING | COMPLETED)).then(|| bits.without(SCHEDULED) | RUNNING)
        })
    }

    /// Sets `COMPLETED`, since the outcome is there, and wakes the join handle.
    ///
    /// # Safety
    ///
    /// The caller has set `RUNNING`, and has a reference.
    unsafe fn finish(this: NonNull<Self>) {
        // SAFETY: the reference of the caller keeps the task alive.
        let header = unsafe { this.as_ref() };
        let done = |bits: Bits| bits.without(RUNNING | SCHEDULED | JOIN_WAITS) | COMPLETED;
        let alone = header
            .lock
            .update(|bits| (!bits.contains(JOIN_WAITS)).then(|| done(bits)));
        let (before, waker) = match alone {
            Ok(before) => (before, None),
            Err(_) => header.lock.unlisted(|bits, ()| {
                let before = *bits;
                *bits = done(before);
                // SAFETY: this section has found `JOIN_WAITS` set and clears it.
                let waker = before
                    .contains(JOIN_WAITS)
                    .then(|| unsafe { header.join.take() });
                (before, waker)
            }),
        };
        if before.contains(JOIN_LEFT) {
            // SAFETY: the join handle had left, so the cell still belongs to this
            // thread.
            unsafe { (header.vtable.discard)(this) };
        }
        if let Some(waker) = waker {
            catch_panic(|| waker.wake());
        }
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
    fn header(&self) -> &Header<B> {
        // SAFETY: this reference keeps the task alive.
        unsafe { self.0.as_ref() }
    }

    fn reference(&self) -> Self {
        let counted = self.header().lock.update(|bits| Some(add_reference(bits)));
        debug_assert!(counted.is_ok());
        Self(self.0)
    }

    /// Gives the runnable that is due to the executor.
    fn schedule(&self) {
        let runnable = Runnable(Self(self.0));
        // SAFETY: this reference keeps the task alive, whatever happens to that of
        // the runnable.
        unsafe { (self.header().vtable.schedule)(self.0, runnable) };
    }

    fn wake(&self) {
        if self.header().wake() {
            self.schedule();
        }
    }

    fn abort(&self) {
        match self.header().abort() {
            Some(before) if before.contains(RUNNING) => {}
            Some(before) if before.contains(SCHEDULED) => {
                // SAFETY: this reference keeps the task alive.
                unsafe { (self.header().vtable.aborted)(self.0, Aborted(self)) };
            }
            Some(_) => self.schedule(),
            None => {}
        }
    }

    /// Drops the future and leaves an outcome, unless the task is completed or
    /// running.
    ///
    /// One section sees that the task is running and marks it to be dropped when the
    /// poll ends. Between two sections the poll could end, and nothing would drop the
    /// future.
    fn cancel(&self) -> Cancel {
        let header = self.header();
        header.is_its_thread();
        let entered = header.lock.update(|bits| {
            if bits.contains(COMPLETED) {
                None
            } else if bits.contains(RUNNING) {
                Some(bits | CANCELLED)
            } else {
                Some(bits.without(SCHEDULED) | RUNNING)
            }
        });
        match entered {
            Ok(before) if before.contains(RUNNING) => return Cancel::Runs,
            Ok(_) => {}
            Err(_) => return Cancel::WasCompleted,
        }
        // SAFETY: `RUNNING` has been set here, on the thread of the future, and
        // `COMPLETED` was not set, so the future is there.
        unsafe { (header.vtable.cancel)(self.0) };
        // SAFETY: as above. This reference keeps the task alive.
        unsafe { Header::finish(self.0) };
        Cancel::Dropped
    }

    /// Releases the reference, and clears `flags` with it.
    fn release(&self, flags: Bits) {
        let mut orphaned = false;
        let before = self.header().lock.update(|bits| {
            let left = bits.without(flags);
            orphaned = is_orphan(left, references(bits) - 1)
                && !bits.intersects(SCHEDULED | RUNNING | COMPLETED);
            Some(if orphaned {
                add_reference(left | SCHEDULED | CANCELLED)
            } else {
                remove_reference(left)
            })
        });
        let (Ok(before) | Err(before)) = before;
        if orphaned {
            self.schedule();
            // The task is scheduled or completed by now, so it is not an orphan
            // again.
            self.release(Bits::EMPTY);
        } else if references(before) == 1 {
            let free = self.header().vtable.free;
            // SAFETY: this was the last reference.
            unsafe { free(self.0) };
        }
    }
}

impl<B: Backend> Drop for Reference<B> {
    #[inline]
    fn drop(&mut self) {
        self.release(Bits::EMPTY);
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
        let reference = ManuallyDrop::into_inner(unsafe { Self::borrow(task) });
        reference.wake();
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

    /// Returns a waker that borrows the reference of the holder of `header`.
    fn lent(header: NonNull<Header<B>>) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(header.as_ptr().cast_const().cast(), &Self::VTABLE);
        // SAFETY: the vtable keeps the contract of wakers: a clone has a reference of
        // its own, and `Reference` is `Send` and `Sync`. This waker is not dropped.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
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
        let this = self.0.0;
        let header = self.0.header();
        let Ok(before) = header.enter() else {
            // The executor cancels the task, or has done so.
            return RunResult::Pending;
        };
        let waker = TaskWaker::lent(this);
        let mut cx = Context::from_waker(&waker);
        let aborted = before.contains(CANCELLED);
        // SAFETY: `RUNNING` has been set here, on the thread of the future, and
        // `COMPLETED` was not set, so the future is there.
        if aborted || !unsafe { (header.vtable.poll)(this, &mut cx) } {
            // If the task was woken, this reference becomes that of the next
            // runnable.
            let pending = header.lock.update(|bits| {
                if aborted || bits.contains(CANCELLED) {
                    None
                } else if bits.contains(SCHEDULED) {
                    Some(bits.without(RUNNING))
                } else if is_orphan(bits, references(bits) - 1) {
                    None
                } else {
                    Some(remove_reference(bits.without(RUNNING)))
                }
            });
            match pending {
                Ok(before) if before.contains(SCHEDULED) => return RunResult::Woken(self),
                Ok(_) => {
                    core::mem::forget(self);
                    return RunResult::Pending;
                }
                // SAFETY: as for the poll, which left the future there.
                Err(_) => unsafe { (header.vtable.cancel)(this) },
            }
        }
        let key = self.key();
        // SAFETY: `RUNNING` has been set here, and `self` is a reference.
        unsafe { Header::finish(this) };
        RunResult::Completed(key)
    }

    /// Drops the future, unless the task is completed or running. The outcome is then
    /// that the task was cancelled. Returns the [key](Self::key) of the task if this
    /// call has dropped the future.
    ///
    /// # Panics
    ///
    /// Panics if the task is [local](local_task) and this is another thread.
    pub fn cancel(self) -> Option<usize> {
        (self.0.cancel() == Cancel::Dropped).then(|| self.key())
    }

    /// Returns the number that the executor has given to the task.
    #[must_use]
    pub fn key(&self) -> usize {
        self.0.header().key.load(Ordering::Relaxed)
    }

    /// Returns the metadata of the task.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
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
    pub fn cancel(self) -> Option<usize> {
        let dropped = self.0.cancel() == Cancel::Dropped;
        dropped.then(|| self.0.header().key.load(Ordering::Relaxed))
    }

    /// Returns the metadata of the task.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
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

    /// Gives the task a number, with which its executor finds this reference. It is
    /// called before the first run.
    pub fn set_key(&self, key: usize) {
        self.0.header().key.store(key, Ordering::Relaxed);
    }

    /// Returns the metadata of the task.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
    }
}

impl<B: Backend> Drop for Owned<B> {
    fn drop(&mut self) {
        // The flag is cleared in the section that releases the reference, which is
        // not dropped once more.
        self.0.release(OWNED);
    }
}

impl<T, B: Backend> Join<T, B> {
    /// Returns the outcome once the future is gone, and empties `this`.
    ///
    /// # Panics
    ///
    /// Panics if `this` is empty.
    pub fn poll(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let header = match this {
            Some(join) => join.reference.header(),
            None => panic!("JoinHandle polled after it was ready"),
        };
        let bits = header.lock.load();
        if !bits.contains(COMPLETED) {
            // SAFETY: the one join handle is borrowed exclusively. `JOIN_WAITS` is
            // cleared only by the handle itself and, together with setting
            // `COMPLETED`, by the section that takes the waker.
            let waited = unsafe {
                header
                    .join
                    .wait(&header.lock, JOIN_WAITS, COMPLETED, bits, cx)
            };
            if waited.is_pending() {
                return Poll::Pending;
            }
        }
        let join = this.take().expect("it was there above");
        Poll::Ready(join.take())
    }

    /// Takes the outcome. The task is completed.
    fn take(self) -> Outcome<T> {
        let this = ManuallyDrop::new(self);
        let mut outcome = MaybeUninit::<Outcome<T>>::uninit();
        let to = (&raw mut outcome).cast();
        // SAFETY: since `COMPLETED` the cell belongs to the join handle, which ends
        // here. The type of the output is the one that the handle was made with.
        unsafe { (this.reference.header().vtable.take)(this.reference.0, to) };
        this.reference.release(Bits::EMPTY);
        // SAFETY: `take` has written it.
        unsafe { outcome.assume_init() }
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

    /// Returns the metadata of the task.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.reference.header().metadata
    }
}

impl<T, B: Backend> Drop for Join<T, B> {
    fn drop(&mut self) {
        let header = self.reference.header();
        let left = header.lock.update(|bits| {
            (!bits.contains(COMPLETED)).then(|| bits.without(JOIN_WAITS) | JOIN_LEFT)
        });
        match left {
            Ok(before) if before.contains(JOIN_WAITS) => {
                // SAFETY: the update has found `JOIN_WAITS` set and cleared it.
                let waker = unsafe { header.join.take() };
                catch_panic(|| drop(waker));
            }
            Ok(_) => {}
            // SAFETY: since `COMPLETED` the cell belongs to the join handle.
            Err(_) => unsafe { (header.vtable.discard)(self.reference.0) },
        }
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

    /// Returns the metadata of the task.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
    }
}

impl<B: Backend> Clone for Abort<B> {
    fn clone(&self) -> Self {
        Self(self.0.reference())
    }
}

impl<B: Backend> fmt::Debug for Runnable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runnable")
            .field(&self.0.header().metadata.id)
            .finish()
    }
}

impl<B: Backend> fmt::Debug for Aborted<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Aborted").field(&self.metadata().id).finish()
    }
}

impl<B: Backend> fmt::Debug for Owned<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owned").field(&self.metadata().id).finish()
    }
}

impl<T, B: Backend> fmt::Debug for Join<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join")
            .field("id", &self.metadata().id)
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

impl<B: Backend> fmt::Debug for Abort<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Abort")
            .field("id", &self.metadata().id)
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
