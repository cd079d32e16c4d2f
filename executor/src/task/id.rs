//! `Id`: what a task is told apart by.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reveille::backend::SharedBackend;
use reveille::raw::{Description, Held, Name};

/// The number of a task. No other task of the process has it, except those of a
/// [`Simulation`](crate::Simulation), which counts its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    pub(crate) fn of(description: &Description) -> Self {
        Self(description.id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A task spawned by the caller, with the next number.
#[track_caller]
pub(crate) fn describe(name: Option<&str>) -> Description {
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
    Description {
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
    pub(crate) fn enter(description: &Description) -> Self {
        Self {
            before: RUNNING.replace(Some(description.id)),
        }
    }
}

/// Cancels a task, as which its destructors run.
pub(crate) fn cancel<B: SharedBackend>(task: &Held<B>) {
    let _running = Running::enter(task.description());
    task.cancel();
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        RUNNING.set(self.before);
    }
}

/// The number of the task that runs on this thread.
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
#[must_use]
pub fn id() -> Id {
    try_id().expect("task::id was called outside of a task; try_id asks whether there is one")
}

/// The number of the task that runs on this thread, if one does.
///
/// # Examples
///
/// ```
/// assert_eq!(reveille_executor::task::try_id(), None);
/// ```
#[must_use]
pub fn try_id() -> Option<Id> {
    RUNNING.get().map(Id)
}
