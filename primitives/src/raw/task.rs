//! A task: a future, its outcome and the waker that waits for that, under one lock.
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
//!   JOIN_WAITS: the waker of the join end is registered.  JOIN_LEFT: that end is gone.
//!   OWNED:      the executor's reference is one of those counted.
//!   The rest of the bits counts the references: wakers, handles, runnables.
//! ```
//!
//! Invariants:
//!
//! 1. `RUNNING` is one thread's at a time, and until `COMPLETED` the cell is that
//!    thread's. From `COMPLETED` on the cell is the join end's, or, where that had
//!    left, the thread's that set it. `COMPLETED` is for good.
//! 2. `SCHEDULED` without `RUNNING` says that there is one [`Runnable`]; with it,
//!    that the thread that runs the task makes one when the poll ends. So a wake
//!    during a poll, or several, is one further poll, and one after `COMPLETED` none.
//! 3. The future is dropped where `RUNNING` is held, before `COMPLETED` is set; hence
//!    once, never while it is polled, and never by a waker. A future that panics is
//!    dropped while that panic unwinds.
//! 4. The last reference that is given up frees the memory, in which nothing is left
//!    to be dropped. Before that a task that is not done, and that nothing can wake
//!    or join any more, is scheduled once more, aborted, so that its executor
//!    drops it.

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

/// The references that are counted in the bits.
const fn references(bits: Bits) -> usize {
    bits.get() / REFERENCE
}

/// With one reference more. A count past the end aborts, as `Arc` does.
fn add_reference(bits: Bits) -> Bits {
    if references(bits) >= Bits::MAX / REFERENCE / 2 {
        std::process::abort();
    }
    Bits::new(bits.get() + REFERENCE)
}

/// With one reference less.
const fn remove_reference(bits: Bits) -> Bits {
    Bits::new(bits.get() - REFERENCE)
}

/// Whether nothing is left that could wake, abort or join, given how many references
/// there are.
const fn is_orphan(bits: Bits, references: usize) -> bool {
    references == bits.contains(OWNED) as usize
}

/// What a task asks of its executor.
pub trait Schedule<B: Backend = DefaultBackend>: Send + Sync + 'static {
    /// Takes a task that has been woken to where it will be run. It is called on
    /// whatever thread wakes, outside every lock of the task.
    fn schedule(&self, task: Runnable<B>);

    /// Learns that a task was aborted while it waits for its turn. It is called on
    /// whatever thread aborts, outside every lock of the task.
    ///
    /// Such a task is dropped when its turn comes. An executor on which turns are long
    /// in coming can [drop it now](Aborted::cancel); by default nothing is done.
    fn aborted(&self, task: Aborted<'_, B>) {
        let _ = task;
    }
}

/// Why a task has no output.
#[derive(Debug)]
pub enum Failure {
    /// It was aborted, or dropped by its executor.
    Cancelled,
    /// It panicked, or the destructor of its future did.
    Panicked(Box<dyn Any + Send>),
}

/// What becomes of a task.
pub type Outcome<T> = Result<T, Failure>;

/// What people and executors know a task by.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// A number of its own.
    pub id: u64,
    /// Where it was spawned.
    pub location: &'static Location<'static>,
    /// How it was called, if it was. Few are, so the place for it is small.
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
    /// The only thread that may touch the future, or zero.
    thread: u64,
    /// The executor's, for whatever it needs.
    key: AtomicUsize,
    metadata: Metadata,
}

#[repr(C)]
struct Task<F: Future, S, B: Backend> {
    /// First, so that a pointer to the task is one to its header.
    header: Header<B>,
    scheduler: S,
    /// Nothing in it is dropped with the task (invariant 4).
    stage: B::Cell<ManuallyDrop<Stage<F>>>,
}

/// What is done to a task without knowing its types.
struct VTable<B: Backend> {
    schedule: unsafe fn(NonNull<Header<B>>, Runnable<B>),
    aborted: unsafe fn(NonNull<Header<B>>, Aborted<'_, B>),
    /// Polls, and returns whether there is an outcome now: the future is gone then.
    poll: unsafe fn(NonNull<Header<B>>, &mut Context<'_>) -> bool,
    cancel: unsafe fn(NonNull<Header<B>>),
    /// Moves the outcome out, to a place for a `MaybeUninit<Outcome<T>>`.
    take: unsafe fn(NonNull<Header<B>>, *mut ()),
    discard: unsafe fn(NonNull<Header<B>>),
    free: unsafe fn(NonNull<Header<B>>),
}

/// One reference in a task.
struct Reference<B: Backend>(NonNull<Header<B>>);

// SAFETY: a reference reaches the lock, the join waker under it, the metadata,
// and the scheduler, which is `Send + Sync`. The future is reached by `run` and
// `cancel` only, on the one thread that may where it is not `Send`; the output by
// the join end, which is `Send` only if the output is.
unsafe impl<B: SharedBackend> Send for Reference<B> {}
// SAFETY: as above.
unsafe impl<B: SharedBackend> Sync for Reference<B> {}

/// A task that is to be run, once.
///
/// Dropped, it is forgotten: its future is not dropped, since that is for the
/// executor to do, which [cancels](Owned::cancel) what it has.
pub struct Runnable<B: Backend = DefaultBackend>(Reference<B>);

/// The executor's reference in a task, by which it finds those that wait.
pub struct Owned<B: Backend = DefaultBackend>(ManuallyDrop<Reference<B>>);

/// The end that takes the outcome.
///
/// Dropping it leaves the task running, and its output is dropped when it is
/// there.
pub struct Join<T, B: Backend = DefaultBackend> {
    reference: Reference<B>,
    output: PhantomData<T>,
}

/// A task that was aborted while it waits for its turn, as its
/// [scheduler](Schedule::aborted) sees it.
pub struct Aborted<'a, B: Backend = DefaultBackend>(&'a Reference<B>);

/// A reference with which a task can be aborted.
pub struct Abort<B: Backend = DefaultBackend>(Reference<B>);

// SAFETY: the output goes from one thread to another and is never shared.
unsafe impl<T: Send, B: SharedBackend> Send for Join<T, B> {}
// SAFETY: a shared end does not reach the output.
unsafe impl<T: Send, B: SharedBackend> Sync for Join<T, B> {}
impl<T, B: Backend> Unpin for Join<T, B> {}
/// A panic of the task is its outcome, and an output comes out whole. A shared borrow
/// reaches none.
impl<T, B: Backend> UnwindSafe for Join<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Join<T, B> {}

/// What is left to do after a run.
#[derive(Debug)]
#[must_use = "a task that was woken during its poll has to be run again"]
pub enum RunResult<B: Backend = DefaultBackend> {
    /// The task waits for a wake.
    Pending,
    /// It was woken during the poll: the executor puts it last.
    Woken(Runnable<B>),
    /// It is done; the [key](Runnable::key) it had.
    Completed(usize),
}

/// Creates a task, and its ends.
///
/// It is [scheduled](Runnable) already: the runnable goes into a queue.
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

/// Creates a task that only this thread can run and cancel, for futures that are not
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

/// The number of this thread: never zero, and never that of another.
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
        // Of the task, not of its header: the pointer is for all of it.
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
    /// As for all of the vtable: the header is that of a task of this type, and
    /// the caller has a reference in it for as long as this runs.
    unsafe fn of<'a>(header: NonNull<Header<B>>) -> &'a Self {
        // SAFETY: `make` has cast a pointer to the whole task, whose header comes
        // first, and the caller's reference keeps it.
        unsafe { header.cast::<Self>().as_ref() }
    }

    /// # Safety
    ///
    /// See [`of`](Self::of).
    unsafe fn schedule(header: NonNull<Header<B>>, task: Runnable<B>) {
        // SAFETY: the caller's promise.
        unsafe { Self::of(header) }.scheduler.schedule(task);
    }

    /// # Safety
    ///
    /// See [`of`](Self::of).
    unsafe fn aborted(header: NonNull<Header<B>>, task: Aborted<'_, B>) {
        // SAFETY: the caller's promise.
        unsafe { Self::of(header) }.scheduler.aborted(task);
    }

    /// # Safety
    ///
    /// See [`of`](Self::of); the caller has set `RUNNING` and the future has not
    /// been dropped.
    unsafe fn poll(header: NonNull<Header<B>>, cx: &mut Context<'_>) -> bool {
        // SAFETY: the caller's promise.
        let task = unsafe { Self::of(header) };
        task.stage.with_mut(|stage| {
            // SAFETY: the cell is the running thread's (invariant 1).
            let Stage::Future(future) = (unsafe { &mut **stage }) else {
                unreachable!("a task is done once its future is gone");
            };
            // SAFETY: the future does not move before it is dropped, where it is:
            // `end` and `Unwinding` drop it in place, and otherwise it is leaked with
            // its task.
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
    /// As for [`poll`](Self::poll).
    unsafe fn cancel(header: NonNull<Header<B>>) {
        // SAFETY: the caller's promise.
        let task = unsafe { Self::of(header) };
        task.stage.with_mut(|stage| {
            // SAFETY: the cell is the running thread's, and holds the future.
            unsafe { Self::end(stage, Err(Failure::Cancelled)) }
        });
    }

    /// Drops the future, and leaves the outcome in its place.
    ///
    /// # Safety
    ///
    /// The cell is the caller's.
    unsafe fn end(stage: *mut ManuallyDrop<Stage<F>>, outcome: Outcome<F::Output>) {
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the cell is the caller's.
            let stage = unsafe { &mut *stage };
            // SAFETY: it is dropped here and, whether or not that panics,
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
        // SAFETY: the cell is the caller's, and what was in it has been dropped.
        unsafe { stage.write(ManuallyDrop::new(Stage::Outcome(outcome))) };
    }

    /// Moves the outcome out of the cell.
    ///
    /// # Safety
    ///
    /// See [`of`](Self::of); the task is done and the cell the caller's.
    unsafe fn outcome(header: NonNull<Header<B>>) -> Option<Outcome<F::Output>> {
        // SAFETY: the caller's promise.
        let task = unsafe { Self::of(header) };
        task.stage.with_mut(|stage| {
            let gone = ManuallyDrop::new(Stage::Gone);
            // SAFETY: the cell is the caller's.
            match ManuallyDrop::into_inner(unsafe { stage.replace(gone) }) {
                Stage::Outcome(outcome) => Some(outcome),
                Stage::Future(_) | Stage::Gone => None,
            }
        })
    }

    /// # Safety
    ///
    /// As for [`outcome`](Self::outcome), with the outcome there, and `to` is a
    /// place for a `MaybeUninit<Outcome<F::Output>>`.
    unsafe fn take(header: NonNull<Header<B>>, to: *mut ()) {
        // SAFETY: the caller's promise.
        let outcome = unsafe { Self::outcome(header) };
        let outcome = outcome.expect("an outcome is taken once");
        // SAFETY: by the caller's promise.
        unsafe { to.cast::<Outcome<F::Output>>().write(outcome) };
    }

    /// # Safety
    ///
    /// As for [`outcome`](Self::outcome).
    unsafe fn discard(header: NonNull<Header<B>>) {
        // SAFETY: the caller's promise.
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

/// While it lives, a future is polled. Dropped, it drops the future: a panic of the
/// poll unwinds.
struct Unwinding<F: Future>(*mut ManuallyDrop<Stage<F>>);

impl<F: Future> Drop for Unwinding<F> {
    fn drop(&mut self) {
        catch_panic(|| {
            // SAFETY: `poll` has made it of its cell, which is the running thread's, and
            // the borrow that was polled ended when that unwound.
            let stage = unsafe { &mut *self.0 };
            // SAFETY: the cell holds the future. It is dropped here and, whether or not
            // that panics, overwritten by `poll`.
            unsafe { ManuallyDrop::drop(stage) }
        });
    }
}

/// Runs a destructor or a waker that is not the caller's. The panic hook has
/// reported the panic when it ends here.
fn catch_panic(f: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
        // A payload can panic in turn when it is dropped.
        core::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
    }
}

impl<B: Backend> Header<B> {
    /// Returns whether a runnable is due, which has been given a reference.
    fn wake(&self) -> bool {
        let woken = self.lock.update(|bits| {
            if bits.contains(COMPLETED) {
                None
            } else if bits.intersects(RUNNING | SCHEDULED) {
                // Also where that changes nothing: the run that comes must see what
                // was written before this wake.
                Some(bits | SCHEDULED)
            } else {
                Some(add_reference(bits | SCHEDULED))
            }
        });
        woken.is_ok_and(|before| !before.intersects(RUNNING | SCHEDULED))
    }

    /// As [`wake`](Self::wake), and the run that follows is the last. Returns the bits
    /// that it found, unless the task is done or was aborted before.
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

    /// Sets `RUNNING`, where the future is there and nobody's.
    fn enter(&self) -> Result<Bits, Bits> {
        self.is_its_thread();
        self.lock.update(|bits| {
            (!bits.intersects(RUNNING | COMPLETED)).then(|| bits.without(SCHEDULED) | RUNNING)
        })
    }

    /// The outcome is there: sets `COMPLETED`, and wakes the join end.
    ///
    /// # Safety
    ///
    /// The caller has set `RUNNING`, and has a reference.
    unsafe fn finish(this: NonNull<Self>) {
        // SAFETY: the caller's reference keeps it.
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
            // SAFETY: the join end had left, so the cell stays this thread's.
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
    /// The future, which it has dropped.
    Dropped,
    /// The outcome.
    WasCompleted,
    /// A poll under way, which drops the future when it ends.
    Runs,
}

impl<B: Backend> Reference<B> {
    fn header(&self) -> &Header<B> {
        // SAFETY: the reference keeps it.
        unsafe { self.0.as_ref() }
    }

    fn reference(&self) -> Self {
        let counted = self.header().lock.update(|bits| Some(add_reference(bits)));
        debug_assert!(counted.is_ok());
        Self(self.0)
    }

    /// Hands the runnable that is due to the executor.
    fn schedule(&self) {
        let runnable = Runnable(Self(self.0));
        // SAFETY: this reference keeps the task, whatever becomes of the runnable's.
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
                // SAFETY: this reference keeps the task.
                unsafe { (self.header().vtable.aborted)(self.0, Aborted(self)) };
            }
            Some(_) => self.schedule(),
            None => {}
        }
    }

    /// Drops the future and leaves an outcome, unless the task is done or runs.
    ///
    /// That it runs is seen, and left for the end of the poll to find, in one section:
    /// the poll could end between two, and nothing would drop the future.
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
        // SAFETY: `RUNNING` has been set here, on the future's thread, and `COMPLETED` was
        // not, so the future is there.
        unsafe { (header.vtable.cancel)(self.0) };
        // SAFETY: as above; this reference keeps the task.
        unsafe { Header::finish(self.0) };
        Cancel::Dropped
    }

    /// Gives the reference up, and `flags` with it.
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
            // Scheduled or done by now, it is no orphan a second time.
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

/// The waker of a task is a reference in it.
struct TaskWaker<B>(PhantomData<B>);

impl<B: SharedBackend> TaskWaker<B> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// # Safety
    ///
    /// As for all of the vtable: `task` is the header of a task, and the caller has
    /// a reference in it, which is not given up here.
    unsafe fn borrow(task: *const ()) -> ManuallyDrop<Reference<B>> {
        // SAFETY: the header of a task is never null.
        let header = unsafe { NonNull::new_unchecked(task.cast_mut().cast()) };
        ManuallyDrop::new(Reference(header))
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow).
    unsafe fn clone(task: *const ()) -> RawWaker {
        // SAFETY: the caller's promise.
        let reference = unsafe { Self::borrow(task) }.reference();
        core::mem::forget(reference);
        RawWaker::new(task, &Self::VTABLE)
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow); the reference is given up here.
    unsafe fn wake(task: *const ()) {
        // SAFETY: the caller's promise.
        let reference = ManuallyDrop::into_inner(unsafe { Self::borrow(task) });
        reference.wake();
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow).
    unsafe fn wake_by_ref(task: *const ()) {
        // SAFETY: the caller's promise.
        unsafe { Self::borrow(task) }.wake();
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow); the reference is given up here.
    unsafe fn drop(task: *const ()) {
        // SAFETY: the caller's promise.
        drop(ManuallyDrop::into_inner(unsafe { Self::borrow(task) }));
    }

    /// A waker with the reference of the holder of `header`, for as long as that is held.
    fn lent(header: NonNull<Header<B>>) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(header.as_ptr().cast_const().cast(), &Self::VTABLE);
        // SAFETY: the table keeps the contract of wakers: what is cloned has a
        // reference, and `Reference` is `Send` and `Sync`. This one is not dropped.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

impl<B: SharedBackend> Runnable<B> {
    /// Polls the task, or drops its future where it was aborted.
    ///
    /// A panic of the future is its outcome and does not come out of here.
    ///
    /// # Panics
    ///
    /// Panics where the task is [local](local_task) and this is another thread.
    pub fn run(self) -> RunResult<B> {
        let this = self.0.0;
        let header = self.0.header();
        let Ok(before) = header.enter() else {
            // Its executor cancels it, or has.
            return RunResult::Pending;
        };
        let waker = TaskWaker::lent(this);
        let mut cx = Context::from_waker(&waker);
        let aborted = before.contains(CANCELLED);
        // SAFETY: `RUNNING` has been set here, on the future's thread, and `COMPLETED`
        // was not, so the future is there.
        if aborted || !unsafe { (header.vtable.poll)(this, &mut cx) } {
            // Left as it is, the reference becomes that of the next runnable.
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

    /// Drops the future, unless the task is done or runs. The outcome is that the task
    /// was cancelled. Returns the [key](Self::key) of the task if this call has dropped
    /// the future.
    ///
    /// # Panics
    ///
    /// Panics where the task is [local](local_task) and this is another thread.
    pub fn cancel(self) -> Option<usize> {
        (self.0.cancel() == Cancel::Dropped).then(|| self.key())
    }

    /// Returns the number that the executor has given the task.
    #[must_use]
    pub fn key(&self) -> usize {
        self.0.header().key.load(Ordering::Relaxed)
    }

    /// Returns what the task is known by.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
    }
}

impl<B: Backend> Aborted<'_, B> {
    /// Drops the future, unless the task has begun to run meanwhile. Returns the
    /// [key](Runnable::key) of the task if this call has dropped the future.
    ///
    /// The runnable stays where it is, and does nothing when it is run.
    ///
    /// # Panics
    ///
    /// Panics where the task is [local](local_task) and this is another thread.
    pub fn cancel(self) -> Option<usize> {
        let dropped = self.0.cancel() == Cancel::Dropped;
        dropped.then(|| self.0.header().key.load(Ordering::Relaxed))
    }

    /// Returns what the task is known by.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
    }
}

impl<B: Backend> Owned<B> {
    /// Drops the future unless it is being polled, and otherwise has that done at the
    /// end of the poll. The outcome is that the task was cancelled, unless there is
    /// one by then. Returns whether the task is done.
    ///
    /// # Panics
    ///
    /// Panics where the task is [local](local_task) and this is another thread.
    pub fn cancel(&self) -> bool {
        self.0.cancel() != Cancel::Runs
    }

    /// Gives the task a number, by which its executor finds this reference: before it
    /// is first run.
    pub fn set_key(&self, key: usize) {
        self.0.header().key.store(key, Ordering::Relaxed);
    }

    /// Returns what the task is known by.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.header().metadata
    }
}

impl<B: Backend> Drop for Owned<B> {
    fn drop(&mut self) {
        // In one section with the reference, which is not dropped once more.
        self.0.release(OWNED);
    }
}

impl<T, B: Backend> Join<T, B> {
    /// Returns the outcome once the future is gone, and empties `this` with it.
    ///
    /// # Panics
    ///
    /// Panics where `this` is empty.
    pub fn poll(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let header = match this {
            Some(join) => join.reference.header(),
            None => panic!("JoinHandle polled after it was ready"),
        };
        let bits = header.lock.load();
        if !bits.contains(COMPLETED) {
            // SAFETY: the one join end is borrowed exclusively, and `JOIN_WAITS` is
            // cleared only by the end itself, and with `COMPLETED`, by what takes it.
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

    /// Takes the outcome. The task is done.
    fn take(self) -> Outcome<T> {
        let this = ManuallyDrop::new(self);
        let mut outcome = MaybeUninit::<Outcome<T>>::uninit();
        let to = (&raw mut outcome).cast();
        // SAFETY: since `COMPLETED` the cell is the join end's, which ends here, and
        // the type of the output is the one that the end was made with.
        unsafe { (this.reference.header().vtable.take)(this.reference.0, to) };
        this.reference.release(Bits::EMPTY);
        // SAFETY: `take` has written it.
        unsafe { outcome.assume_init() }
    }

    /// Returns whether the task is done: its future is gone and the outcome there.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.reference.header().lock.load().contains(COMPLETED)
    }

    /// Cancels the task, unless it is done: the executor drops the future.
    pub fn abort(&self) {
        self.reference.abort();
    }

    /// Returns a reference with which to do that.
    #[must_use]
    pub fn abort_handle(&self) -> Abort<B> {
        Abort(self.reference.reference())
    }

    /// Returns what the task is known by.
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
                // SAFETY: the update found `JOIN_WAITS` set and has cleared it.
                let waker = unsafe { header.join.take() };
                catch_panic(|| drop(waker));
            }
            Ok(_) => {}
            // SAFETY: since `COMPLETED` the cell is the join end's.
            Err(_) => unsafe { (header.vtable.discard)(self.reference.0) },
        }
    }
}

impl<B: Backend> Abort<B> {
    /// Cancels the task, unless it is done: the executor drops the future.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Returns whether the task is done.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.header().lock.load().contains(COMPLETED)
    }

    /// Returns what the task is known by.
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
