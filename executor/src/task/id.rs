//! `Id`: the number that identifies a task.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use reveille::backend::{Native, SharedBackend};
use reveille::raw::{Metadata, Owned};

/// The number of a task. It is unique in the process, except in a
/// [`Simulation`](crate::Simulation), which counts its own tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    pub(crate) fn of(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number that tokio gave to a task. Its text is all that tokio shows of
    /// it.
    #[cfg(feature = "tokio")]
    pub(crate) fn of_tokio(id: tokio::task::Id) -> Self {
        let number = id.to_string().parse();
        Self(number.expect("a task of tokio is shown as its number"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the metadata of a task that the caller spawns, with the next number.
#[track_caller]
pub(crate) fn describe<N>(name: N) -> Metadata<N> {
    /// Threads take numbers in blocks, so that they do not contend for each number.
    const BLOCK: u64 = 1 << 10;
    static NEXT: AtomicU64 = AtomicU64::new(BLOCK);
    thread_local! {
        static ID: Cell<u64> = const { Cell::new(0) };
    }
    let id = ID.with(|id| {
        let mut next = id.get();
        if next % BLOCK == 0 {
            next = NEXT.fetch_add(BLOCK, Ordering::Relaxed);
        }
        id.set(next + 1);
        next
    });
    Metadata {
        id,
        location: Location::caller(),
        name,
    }
}

thread_local! {
    static RUNNING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Marks a task as the one that runs on this thread, until it is dropped.
pub(crate) struct Running {
    before: Option<u64>,
}

impl Running {
    #[inline]
    pub(crate) fn enter(task: u64) -> Self {
        Self {
            before: RUNNING.replace(Some(task)),
        }
    }
}

/// Cancels a task. Its destructors see it as the running task.
pub(crate) fn cancel<B: SharedBackend>(task: &Owned<B>) {
    let _running = Running::enter(task.id());
    task.cancel();
}

/// The depth of nested destructors up to which a refused task is cancelled at once. Past
/// it, a task is cancelled when the outermost destructor has ended, so that the stack is
/// bounded.
const NESTED: u32 = 16;

thread_local! {
    /// The number of refused tasks that are being cancelled, one within another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The refused tasks past the depth.
    static REFUSED: RefCell<VecDeque<Owned<Native>>> = const { RefCell::new(VecDeque::new()) };
}

/// A refused task is being cancelled, until this is dropped.
struct Nested {
    before: u32,
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}

/// Cancels a task that an executor refuses because it has ended.
pub(crate) fn cancel_refused(task: Owned<Native>) {
    let before = DEPTH.get();
    let mut task = Some(task);
    if before == NESTED {
        // On a thread that ends, the queue may be gone.
        let queued = REFUSED.try_with(|refused| refused.borrow_mut().extend(task.take()));
        debug_assert_eq!(queued.is_ok(), task.is_none());
    }
    let Some(task) = task else {
        return;
    };
    DEPTH.set(before + 1);
    let _nested = Nested { before };
    cancel(&task);
    if before == 0 {
        let next = || REFUSED.try_with(|refused| refused.borrow_mut().pop_front());
        while let Ok(Some(task)) = next() {
            cancel(&task);
        }
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        RUNNING.set(self.before);
    }
}

/// Returns the number of the task that runs on this thread.
///
/// # Panics
///
/// Panics outside of the tasks of this crate's executors. The future of `block_on` is no
/// task. [`try_id`] returns `None` instead.
///
/// # Examples
///
/// ```
/// use reveille_executor::{LocalExecutor, task};
///
/// let executor = LocalExecutor::new();
/// let task = executor.spawn_local(async { task::id() });
/// let id = task.id();
/// assert_eq!(executor.block_on(task).unwrap(), id);
/// ```
#[track_caller]
pub fn id() -> Id {
    try_id().expect("task::id was called outside of a task: call try_id if there may be none")
}

/// Returns the number of the task that runs on this thread, if one does.
///
/// # Examples
///
/// ```
/// assert_eq!(reveille_executor::task::try_id(), None);
/// ```
pub fn try_id() -> Option<Id> {
    RUNNING.get().map(Id)
}
