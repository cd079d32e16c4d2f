//! A task: a future, its outcome and who waits for that, under one lock.
//!
//! ```text
//!            wake                  run                  the poll is ready, panics,
//!   ┌──────┐ ────▶ ┌───────────┐ ─────▶ ┌─────────┐     or finds ABORTED   ┌──────┐
//!   │ idle │       │ SCHEDULED │        │ RUNNING │ ─────────────────────▶ │ DONE │
//!   └──────┘       └───────────┘ ◀───── └─────────┘                        └──────┘
//!       ▲            pending, woken meanwhile │                                ▲
//!       └─────────────────────────────────────┘ pending                        │
//!       cancel: RUNNING without a poll, from idle and from SCHEDULED ──────────┘
//!
//!   ABORTED:    the next run drops the future instead of polling it.
//!   JOIN_WAITS: the waker of the join end is registered.  JOIN_LEFT: that end is gone.
//!   HELD:       the executor's share is one of those counted.
//!   The rest of the bits counts the shares: wakers, handles, runnables.
//! ```
//!
//! Invariants:
//!
//! 1. `RUNNING` is one thread's at a time, and until `DONE` the cell is that
//!    thread's. From `DONE` on the cell is the join end's, or, where that had
//!    left, the thread's that set it. `DONE` is for good.
//! 2. `SCHEDULED` without `RUNNING` says that there is one [`Runnable`]; with it,
//!    that the thread that runs the task makes one when the poll ends. So a wake
//!    during a poll, or several, is one further poll, and one after `DONE` none.
//! 3. The future is dropped where `RUNNING` is held, before `DONE` is set; hence
//!    once, never while it is polled, and never by a waker.
//! 4. Whoever gives up the last share frees the memory, in which nothing is left
//!    to be dropped. Before that a task that is not done, and that nobody can wake
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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread_local;

use crate::backend::{Backend, Cell, DefaultBackend, SharedBackend};
use crate::protocol::waker_cell::WakerCell;
use crate::protocol::{Bits, StateLock};

const SCHEDULED: Bits = Bits::new(1);
const RUNNING: Bits = Bits::new(1 << 1);
const ABORTED: Bits = Bits::new(1 << 2);
const DONE: Bits = Bits::new(1 << 3);
const JOIN_LEFT: Bits = Bits::new(1 << 4);
const JOIN_WAITS: Bits = Bits::new(1 << 5);
const HELD: Bits = Bits::new(1 << 6);
const SHARE: usize = 1 << 7;

/// The shares that are counted in the bits.
const fn shares(bits: Bits) -> usize {
    bits.get() / SHARE
}

/// With one share more. Whoever counts past the end aborts, as `Arc` does.
fn shared(bits: Bits) -> Bits {
    if shares(bits) >= Bits::MAX / SHARE / 2 {
        std::process::abort();
    }
    Bits::new(bits.get() + SHARE)
}

/// With one share less.
const fn unshared(bits: Bits) -> Bits {
    Bits::new(bits.get() - SHARE)
}

/// Whether nobody is left who could wake, abort or join, given how many shares
/// there are.
const fn is_orphan(bits: Bits, shares: usize) -> bool {
    shares == bits.contains(HELD) as usize
}

/// What a task asks of its executor.
pub trait Schedule<B: Backend = DefaultBackend>: Send + Sync + 'static {
    /// Takes a task that has been woken to where it will be run. It is called on
    /// whatever thread wakes, outside every lock of the task.
    fn schedule(&self, task: Runnable<B>);
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
pub struct Description {
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
    table: &'static Table<B>,
    join: WakerCell<B>,
    /// The only thread that may touch the future, or zero.
    thread: u64,
    /// The executor's, for whatever it needs.
    key: AtomicUsize,
    description: Description,
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
struct Table<B: Backend> {
    schedule: unsafe fn(NonNull<Header<B>>, Runnable<B>),
    /// Polls, and answers whether there is an outcome now: the future is gone then.
    poll: unsafe fn(NonNull<Header<B>>, &mut Context<'_>) -> bool,
    cancel: unsafe fn(NonNull<Header<B>>),
    /// Moves the outcome out, to a place for a `MaybeUninit<Outcome<T>>`.
    take: unsafe fn(NonNull<Header<B>>, *mut ()),
    discard: unsafe fn(NonNull<Header<B>>),
    free: unsafe fn(NonNull<Header<B>>),
}

/// One share in a task.
struct Shared<B: Backend>(NonNull<Header<B>>);

// SAFETY: a share reaches the lock, the join waker under it, the description,
// and the scheduler, which is `Send + Sync`. The future is reached by `run` and
// `cancel` only, on the one thread that may where it is not `Send`; the output by
// the join end, which is `Send` only if the output is.
unsafe impl<B: SharedBackend> Send for Shared<B> {}
// SAFETY: as above.
unsafe impl<B: SharedBackend> Sync for Shared<B> {}

/// A task that is to be run, once.
///
/// Dropped, it is forgotten: its future is not dropped, since that is for the
/// executor to do, who [cancels](Held::cancel) what it has.
pub struct Runnable<B: Backend = DefaultBackend>(Shared<B>);

/// The executor's share in a task, by which it finds those that wait.
pub struct Held<B: Backend = DefaultBackend>(ManuallyDrop<Shared<B>>);

/// The end that takes the outcome.
///
/// Dropping it leaves the task running, and its output is dropped when it is
/// there.
pub struct Join<T, B: Backend = DefaultBackend> {
    share: Shared<B>,
    output: PhantomData<T>,
}

/// A share with which a task can be aborted.
pub struct Abort<B: Backend = DefaultBackend>(Shared<B>);

// SAFETY: the output goes from one thread to another and is never shared.
unsafe impl<T: Send, B: SharedBackend> Send for Join<T, B> {}
// SAFETY: by a shared end nobody reaches the output.
unsafe impl<T: Send, B: SharedBackend> Sync for Join<T, B> {}
impl<T, B: Backend> Unpin for Join<T, B> {}

/// What is left to do after a run.
#[derive(Debug)]
#[must_use = "a task that was woken during its poll has to be run again"]
pub enum Ran<B: Backend = DefaultBackend> {
    /// The task waits for a wake.
    Waits,
    /// It was woken during the poll: the executor puts it last.
    Woken(Runnable<B>),
    /// It is done; the [key](Runnable::key) it had.
    Done(usize),
}

/// A new task, and its ends.
///
/// It is [scheduled](Runnable) already: the runnable goes into a queue.
pub fn task<F, S, B>(
    future: F,
    scheduler: S,
    description: Description,
) -> (Runnable<B>, Held<B>, Join<F::Output, B>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule<B>,
    B: SharedBackend,
{
    Task::make(future, scheduler, description, 0)
}

/// A new task that only this thread can run and cancel, for futures that are not
/// `Send`.
pub fn local_task<F, S, B>(
    future: F,
    scheduler: S,
    description: Description,
) -> (Runnable<B>, Held<B>, Join<F::Output, B>)
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule<B>,
    B: SharedBackend,
{
    Task::make(future, scheduler, description, this_thread())
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
    const TABLE: Table<B> = Table {
        schedule: Self::schedule,
        poll: Self::poll,
        cancel: Self::cancel,
        take: Self::take,
        discard: Self::discard,
        free: Self::free,
    };

    fn make(
        future: F,
        scheduler: S,
        description: Description,
        thread: u64,
    ) -> (Runnable<B>, Held<B>, Join<F::Output, B>) {
        let bits = Bits::new((SCHEDULED | HELD).get() + 3 * SHARE);
        let task = Box::new(Self {
            header: Header {
                lock: StateLock::new_in(bits, ()),
                table: &Self::TABLE,
                join: WakerCell::new(),
                thread,
                key: AtomicUsize::new(0),
                description,
            },
            scheduler,
            stage: B::Cell::new(ManuallyDrop::new(Stage::Future(future))),
        });
        // Of the task, not of its header: the pointer is for all of it.
        let header = NonNull::from(Box::leak(task)).cast();
        let join = Join {
            share: Shared(header),
            output: PhantomData,
        };
        (
            Runnable(Shared(header)),
            Held(ManuallyDrop::new(Shared(header))),
            join,
        )
    }

    /// # Safety
    ///
    /// As for all of the table: the header is that of a task of this type, and
    /// the caller has a share in it for as long as this runs.
    unsafe fn of<'a>(header: NonNull<Header<B>>) -> &'a Self {
        // SAFETY: `make` has cast a pointer to the whole task, whose header comes
        // first, and the caller's share keeps it.
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
            // `end` drops it in place, and otherwise it is leaked with its task.
            let pinned = unsafe { Pin::new_unchecked(future) };
            let outcome = match catch_unwind(AssertUnwindSafe(|| pinned.poll(cx))) {
                Ok(Poll::Pending) => return false,
                Ok(Poll::Ready(output)) => Ok(output),
                Err(panic) => Err(Failure::Panicked(panic)),
            };
            // SAFETY: as for the poll.
            unsafe { Self::end(stage, outcome) };
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
                contain(|| drop(outcome));
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
        contain(|| drop(outcome));
    }

    /// # Safety
    ///
    /// The header is that of a task of this type, in which nobody has a share.
    unsafe fn free(header: NonNull<Header<B>>) {
        // SAFETY: the pointer came from `Box::leak`, and this is its last use.
        drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) });
    }
}

/// Runs a destructor or a waker that is not the caller's. The panic hook has
/// reported the panic when it ends here.
fn contain(f: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
        // A payload can panic in turn when it is dropped.
        core::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
    }
}

impl<B: Backend> Header<B> {
    /// Answers whether a runnable is due, which has been given a share.
    fn wake(&self) -> bool {
        let woken = self.lock.update(|bits| {
            if bits.contains(DONE) {
                None
            } else if bits.intersects(RUNNING | SCHEDULED) {
                // Also where that changes nothing: the run that comes must see what
                // was written before this wake.
                Some(bits | SCHEDULED)
            } else {
                Some(shared(bits | SCHEDULED))
            }
        });
        woken.is_ok_and(|before| !before.intersects(RUNNING | SCHEDULED))
    }

    /// As [`wake`](Self::wake), and the run that follows is the last.
    fn abort(&self) -> bool {
        let aborted = self.lock.update(|bits| {
            if bits.intersects(DONE | ABORTED) {
                None
            } else if bits.intersects(RUNNING | SCHEDULED) {
                Some(bits | ABORTED)
            } else {
                Some(shared(bits | ABORTED | SCHEDULED))
            }
        });
        aborted.is_ok_and(|before| !before.intersects(RUNNING | SCHEDULED))
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
            (!bits.intersects(RUNNING | DONE)).then(|| bits.without(SCHEDULED) | RUNNING)
        })
    }

    /// The outcome is there: sets `DONE`, and wakes the join end.
    ///
    /// # Safety
    ///
    /// The caller has set `RUNNING`, and has a share.
    unsafe fn finish(this: NonNull<Self>) {
        // SAFETY: the caller's share keeps it.
        let header = unsafe { this.as_ref() };
        let done = |bits: Bits| bits.without(RUNNING | SCHEDULED | JOIN_WAITS) | DONE;
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
            unsafe { (header.table.discard)(this) };
        }
        if let Some(waker) = waker {
            contain(|| waker.wake());
        }
    }
}

impl<B: Backend> Shared<B> {
    fn header(&self) -> &Header<B> {
        // SAFETY: the share keeps it.
        unsafe { self.0.as_ref() }
    }

    fn share(&self) -> Self {
        let counted = self.header().lock.update(|bits| Some(shared(bits)));
        debug_assert!(counted.is_ok());
        Self(self.0)
    }

    /// Hands the runnable that is due to the executor.
    fn schedule(&self) {
        let runnable = Runnable(Self(self.0));
        // SAFETY: this share keeps the task, whatever becomes of the runnable's.
        unsafe { (self.header().table.schedule)(self.0, runnable) };
    }

    fn wake(&self) {
        if self.header().wake() {
            self.schedule();
        }
    }

    fn abort(&self) {
        if self.header().abort() {
            self.schedule();
        }
    }

    /// Drops the future and leaves an outcome, where nobody has done so or does.
    /// Answers whether the task is done.
    ///
    /// That somebody runs it is seen, and left for them to find, in one section: the
    /// poll could end between two, and nobody would drop the future.
    fn cancel(&self) -> bool {
        let header = self.header();
        header.is_its_thread();
        let entered = header.lock.update(|bits| {
            if bits.contains(DONE) {
                None
            } else if bits.contains(RUNNING) {
                Some(bits | ABORTED)
            } else {
                Some(bits.without(SCHEDULED) | RUNNING)
            }
        });
        match entered {
            Ok(before) if before.contains(RUNNING) => return false,
            Ok(_) => {}
            Err(_) => return true,
        }
        // SAFETY: `RUNNING` has been set here, on the future's thread, and `DONE` was
        // not, so the future is there.
        unsafe { (header.table.cancel)(self.0) };
        // SAFETY: as above; this share keeps the task.
        unsafe { Header::finish(self.0) };
        true
    }

    /// Gives the share up, and `flags` with it.
    fn release(&self, flags: Bits) {
        let mut orphaned = false;
        let before = self.header().lock.update(|bits| {
            let left = bits.without(flags);
            orphaned =
                is_orphan(left, shares(bits) - 1) && !bits.intersects(SCHEDULED | RUNNING | DONE);
            Some(if orphaned {
                shared(left | SCHEDULED | ABORTED)
            } else {
                unshared(left)
            })
        });
        let (Ok(before) | Err(before)) = before;
        if orphaned {
            self.schedule();
            // Scheduled or done by now, it is no orphan a second time.
            self.release(Bits::EMPTY);
        } else if shares(before) == 1 {
            let free = self.header().table.free;
            // SAFETY: this was the last share.
            unsafe { free(self.0) };
        }
    }
}

impl<B: Backend> Drop for Shared<B> {
    #[inline]
    fn drop(&mut self) {
        self.release(Bits::EMPTY);
    }
}

/// The waker of a task is a share in it.
struct TaskWaker<B>(PhantomData<B>);

impl<B: SharedBackend> TaskWaker<B> {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// # Safety
    ///
    /// As for all of the table: `task` is the header of a task, and the caller has
    /// a share in it, which is not given up here.
    unsafe fn borrow(task: *const ()) -> ManuallyDrop<Shared<B>> {
        // SAFETY: the header of a task is never null.
        let header = unsafe { NonNull::new_unchecked(task.cast_mut().cast()) };
        ManuallyDrop::new(Shared(header))
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow).
    unsafe fn clone(task: *const ()) -> RawWaker {
        // SAFETY: the caller's promise.
        let share = unsafe { Self::borrow(task) }.share();
        core::mem::forget(share);
        RawWaker::new(task, &Self::TABLE)
    }

    /// # Safety
    ///
    /// See [`borrow`](Self::borrow); the share is given up here.
    unsafe fn wake(task: *const ()) {
        // SAFETY: the caller's promise.
        let share = ManuallyDrop::into_inner(unsafe { Self::borrow(task) });
        share.wake();
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
    /// See [`borrow`](Self::borrow); the share is given up here.
    unsafe fn drop(task: *const ()) {
        // SAFETY: the caller's promise.
        drop(ManuallyDrop::into_inner(unsafe { Self::borrow(task) }));
    }

    /// A waker with the share of whoever holds `header`, for as long as they do.
    fn lent(header: NonNull<Header<B>>) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(header.as_ptr().cast_const().cast(), &Self::TABLE);
        // SAFETY: the table keeps the contract of wakers: what is cloned has a
        // share, and `Shared` is `Send` and `Sync`. This one is not dropped.
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
    pub fn run(self) -> Ran<B> {
        let this = self.0.0;
        let header = self.0.header();
        let Ok(before) = header.enter() else {
            // Its executor cancels it, or has.
            return Ran::Waits;
        };
        let waker = TaskWaker::lent(this);
        let mut cx = Context::from_waker(&waker);
        let aborted = before.contains(ABORTED);
        // SAFETY: `RUNNING` has been set here, on the future's thread, and `DONE`
        // was not, so the future is there.
        if aborted || !unsafe { (header.table.poll)(this, &mut cx) } {
            // Left as it is, the share becomes that of the next runnable.
            let pending = header.lock.update(|bits| {
                if aborted || bits.contains(ABORTED) {
                    None
                } else if bits.contains(SCHEDULED) {
                    Some(bits.without(RUNNING))
                } else if is_orphan(bits, shares(bits) - 1) {
                    None
                } else {
                    Some(unshared(bits.without(RUNNING)))
                }
            });
            match pending {
                Ok(before) if before.contains(SCHEDULED) => return Ran::Woken(self),
                Ok(_) => {
                    core::mem::forget(self);
                    return Ran::Waits;
                }
                // SAFETY: as for the poll, which left the future there.
                Err(_) => unsafe { (header.table.cancel)(this) },
            }
        }
        let key = self.key();
        // SAFETY: `RUNNING` has been set here, and `self` is a share.
        unsafe { Header::finish(this) };
        Ran::Done(key)
    }

    /// The number that the executor has given the task.
    #[must_use]
    pub fn key(&self) -> usize {
        self.0.header().key.load(Ordering::Relaxed)
    }

    /// What the task is known by.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.header().description
    }
}

impl<B: Backend> Held<B> {
    /// Drops the future where nobody polls it, and otherwise has that done at the
    /// end of the poll. The outcome is that the task was cancelled, unless there is
    /// one by then. Answers whether the task is done.
    ///
    /// # Panics
    ///
    /// Panics where the task is [local](local_task) and this is another thread.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Gives the task a number, by which its executor finds this share: before it
    /// is first run.
    pub fn set_key(&self, key: usize) {
        self.0.header().key.store(key, Ordering::Relaxed);
    }

    /// What the task is known by.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.header().description
    }
}

impl<B: Backend> Drop for Held<B> {
    fn drop(&mut self) {
        // In one section with the share, which is not dropped once more.
        self.0.release(HELD);
    }
}

impl<T, B: Backend> Join<T, B> {
    /// Ready with the outcome once the future is gone. `this` is emptied with the
    /// answer.
    ///
    /// # Panics
    ///
    /// Panics where `this` is empty.
    pub fn poll(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let header = match this {
            Some(join) => join.share.header(),
            None => panic!("JoinHandle polled after it was ready"),
        };
        let bits = header.lock.load();
        if !bits.contains(DONE) {
            // SAFETY: the one join end is borrowed exclusively, and `JOIN_WAITS` is
            // cleared only by the end itself, and with `DONE`, by who takes it.
            let waited = unsafe { header.join.wait(&header.lock, JOIN_WAITS, DONE, bits, cx) };
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
        // SAFETY: since `DONE` the cell is the join end's, which ends here, and
        // the type of the output is the one that the end was made with.
        unsafe { (this.share.header().table.take)(this.share.0, to) };
        this.share.release(Bits::EMPTY);
        // SAFETY: `take` has written it.
        unsafe { outcome.assume_init() }
    }

    /// Whether the task is done: its future is gone and the outcome there.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.share.header().lock.load().contains(DONE)
    }

    /// Has the executor drop the future, unless the task is done.
    pub fn abort(&self) {
        self.share.abort();
    }

    /// A share with which to do that.
    #[must_use]
    pub fn abort_handle(&self) -> Abort<B> {
        Abort(self.share.share())
    }

    /// What the task is known by.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.share.header().description
    }
}

impl<T, B: Backend> Drop for Join<T, B> {
    fn drop(&mut self) {
        let header = self.share.header();
        let left = header
            .lock
            .update(|bits| (!bits.contains(DONE)).then(|| bits.without(JOIN_WAITS) | JOIN_LEFT));
        match left {
            Ok(before) if before.contains(JOIN_WAITS) => {
                // SAFETY: the update found `JOIN_WAITS` set and has cleared it.
                let waker = unsafe { header.join.take() };
                contain(|| drop(waker));
            }
            Ok(_) => {}
            // SAFETY: since `DONE` the cell is the join end's.
            Err(_) => unsafe { (header.table.discard)(self.share.0) },
        }
    }
}

impl<B: Backend> Abort<B> {
    /// Has the executor drop the future, unless the task is done.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Whether the task is done.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.header().lock.load().contains(DONE)
    }

    /// What the task is known by.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.header().description
    }
}

impl<B: Backend> Clone for Abort<B> {
    fn clone(&self) -> Self {
        Self(self.0.share())
    }
}

impl<B: Backend> fmt::Debug for Runnable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runnable")
            .field(&self.0.header().description.id)
            .finish()
    }
}

impl<B: Backend> fmt::Debug for Held<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.description().id).finish()
    }
}

impl<T, B: Backend> fmt::Debug for Join<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join")
            .field("id", &self.description().id)
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

impl<B: Backend> fmt::Debug for Abort<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Abort")
            .field("id", &self.description().id)
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
