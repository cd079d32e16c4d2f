//! `Id`: what a task is told apart by.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reveille::backend::{Native, SharedBackend};
use reveille::raw::{Metadata, Name, Owned};

/// The number of a task. No other task of the process has it, except those of a
/// [`Simulation`](crate::Simulation), which counts its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self(metadata.id)
    }

    /// The number that tokio has given a task. Its text is all that tokio shows of it.
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

/// A task spawned by the caller, with the next number.
#[track_caller]
pub(crate) fn describe(name: Option<&str>) -> Metadata {
    /// Threads take numbers in blocks, so as not to contend for each.
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
        name: name.map(|name| Arc::new(Name(name.to_owned()))),
    }
}

thread_local! {
    static RUNNING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, a task is the one that runs on this thread.
pub(crate) struct Running {
    before: Option<u64>,
}

impl Running {
    #[inline]
    pub(crate) fn enter(metadata: &Metadata) -> Self {
        Self {
            before: RUNNING.replace(Some(metadata.id)),
        }
    }
}

/// Cancels a task, as which its destructors run.
pub(crate) fn cancel<B: SharedBackend>(task: &Owned<B>) {
    let _running = Running::enter(task.metadata());
    task.cancel();
}

/// How deep in destructors that spawn, one within another, a refused task is cancelled
/// at once. Past that it waits until the outermost has ended, so that the stack is
/// bounded.
const NESTED: u32 = 16;

thread_local! {
    /// How many refused tasks are being cancelled, one within another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Those past the depth.
    static REFUSED: RefCell<VecDeque<Owned<Native>>> = const { RefCell::new(VecDeque::new()) };
}

/// While it lives, a refused task is being cancelled.
struct Nested {
    before: u32,
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}

/// Cancels a task that an executor refuses since it has ended.
pub(crate) fn cancel_refused(task: Owned<Native>) {
    let before = DEPTH.get();
    let mut task = Some(task);
    if before == NESTED {
        // On a thread that ends there may be no queue any more.
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
/// Panics outside of tasks, of this crate's executors; `block_on` runs none.
/// [`try_id`] asks first.
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
    try_id().expect("task::id was called outside of a task; try_id asks whether there is one")
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
