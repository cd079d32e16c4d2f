//! What the tasks of an executor do at the moment, to find the one that does not go on.
//!
//! ```text
//!   executor ──dump──▶ Dump ──tasks──▶ TaskDump: id, name, location, activity, wait
//! ```
//!
//! Invariant: the tasks are described in batches, each in one section. So a dump of many
//! tasks holds none of them up for long, and a task that is spawned or ends meanwhile may
//! be missing.

#![forbid(unsafe_code)]

use std::fmt;
use std::panic::Location;

use reveille::backend::Backend;
#[doc(inline)]
pub use reveille::raw::{Activity, Wait};
use reveille::raw::{Metadata, Owned};

use crate::task::Id;

/// The tasks of an executor, and what each does. See
/// [`Handle::dump`](crate::pool::Handle::dump).
///
/// It is displayed with a line for each task.
///
/// # Examples
///
/// ```
/// use reveille_executor::LocalExecutor;
///
/// let executor = LocalExecutor::new();
/// executor.spawn_named("endless", std::future::pending::<()>()).abort_handle();
/// let waits = executor.spawn_named("waits", std::future::pending::<()>());
/// executor.run_until_idle();
/// let dump = executor.dump();
/// assert_eq!(dump.tasks().len(), 1); // nothing can wake or join the other task
/// assert_eq!(dump.tasks()[0].name(), Some("waits"));
/// assert!(dump.to_string().starts_with("1 task\n"));
/// # drop(waits);
/// ```
#[derive(Clone, Debug)]
pub struct Dump {
    tasks: Vec<TaskDump>,
}

/// A task of a [`Dump`].
#[derive(Clone, Debug)]
pub struct TaskDump {
    metadata: Metadata,
    activity: Activity,
    wait: Option<Wait>,
}

impl Dump {
    pub(crate) fn new(tasks: Vec<TaskDump>) -> Self {
        Self { tasks }
    }

    /// Returns the tasks, in no particular order.
    #[must_use]
    pub fn tasks(&self) -> &[TaskDump] {
        &self.tasks
    }
}

impl TaskDump {
    pub(crate) fn of<B: Backend>(task: &Owned<B>) -> Self {
        Self {
            metadata: task.metadata(),
            activity: task.activity(),
            wait: task.wait(),
        }
    }

    /// Returns the number of the task.
    #[must_use]
    pub fn id(&self) -> Id {
        Id::of(self.metadata.id)
    }

    /// Returns the name of the task, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }

    /// Returns the location where the task was spawned.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.metadata.location
    }

    /// Returns what the task did.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// Returns what the task waits for, if it waits and its primitives have noted it.
    /// They do with the feature `locations`. A task that waits for several things shows
    /// one of them.
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        self.wait.filter(|_| self.activity == Activity::Waits)
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tasks.len() {
            1 => writeln!(f, "1 task")?,
            count => writeln!(f, "{count} tasks")?,
        }
        self.tasks.iter().try_for_each(|task| writeln!(f, "{task}"))
    }
}

impl fmt::Display for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id())?;
        if let Some(name) = self.name() {
            write!(f, " `{name}`")?;
        }
        write!(f, ", spawned at {}, ", self.location())?;
        match (self.activity, self.wait) {
            (Activity::Waits, Some(wait)) => wait.fmt(f),
            (Activity::Waits, None) => f.write_str("waits"),
            (Activity::Scheduled, _) => f.write_str("is ready to run"),
            (Activity::Runs, _) => f.write_str("runs"),
            (Activity::Completed, _) => f.write_str("has ended"),
        }
    }
}
