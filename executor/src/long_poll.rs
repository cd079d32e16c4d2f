//! Reports of polls that take too long.

#![forbid(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille::backend::Native;
use reveille::raw::{Completion, Metadata, RunResult, Runnable};

use crate::catch_panic::catch_panic;
use crate::task::coop::Budget;
use crate::task::{Id, Running};

/// A poll that took longer than the limit of its executor. No other task ran on its
/// thread meanwhile.
///
/// If the report panics, the panic hook reports that, and the executor goes on.
///
/// # Examples
///
/// A blocking call, found by the name of its task:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use reveille_executor::LocalExecutor;
///
/// let reports = Arc::new(Mutex::new(Vec::new()));
/// let executor = LocalExecutor::builder()
///     .on_long_poll(Duration::from_millis(5), {
///         let reports = reports.clone();
///         move |poll| reports.lock().unwrap().push(poll.name().map(String::from))
///     })
///     .build();
/// executor.spawn_named("quick", async {});
/// executor.spawn_named("blocks", async { std::thread::sleep(Duration::from_millis(10)) });
/// executor.run_until_idle();
/// assert_eq!(*reports.lock().unwrap(), [Some(String::from("blocks"))]);
/// ```
#[derive(Debug)]
pub struct LongPoll {
    metadata: Metadata,
    duration: Duration,
}

impl LongPoll {
    /// Returns the number of the task.
    #[must_use]
    pub fn id(&self) -> Id {
        Id::of(self.metadata.id)
    }

    /// Returns the name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }

    /// Returns the location where the task was spawned.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.metadata.location
    }

    /// Returns how long the poll took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }
}

impl fmt::Display for LongPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { duration, .. } = self;
        write!(f, "task {}", self.id())?;
        if let Some(name) = self.name() {
            write!(f, " `{name}`")?;
        }
        write!(
            f,
            ", spawned at {}, was polled for {duration:?}",
            self.location()
        )
    }
}

type Report = Arc<dyn Fn(&LongPoll) + Send + Sync>;

/// Runs tasks, with or without reports of long polls.
#[derive(Clone, Default)]
pub(crate) struct Polls {
    report: Option<(Duration, Report)>,
}

impl Polls {
    pub(crate) fn reported(
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) -> Self {
        Self {
            report: Some((over, Arc::new(report))),
        }
    }

    /// Runs a task. Calls `complete` if its future is gone, as the running task, because
    /// that can drop its output. Returns the runnable if the task was woken meanwhile.
    #[inline]
    pub(crate) fn run(
        &self,
        runnable: Runnable<Native>,
        complete: impl FnOnce(Completion<Native>),
    ) -> Option<Runnable<Native>> {
        let _running = Running::enter(runnable.id());
        let _budget = Budget::enter();
        let ran = match &self.report {
            None => runnable.run(),
            Some((over, report)) => Self::run_timed(runnable, *over, report),
        };
        match ran {
            RunResult::Pending => None,
            RunResult::Woken(runnable) => Some(runnable),
            RunResult::Completed(completion) => {
                complete(completion);
                None
            }
        }
    }

    #[cold]
    fn run_timed(runnable: Runnable<Native>, over: Duration, report: &Report) -> RunResult<Native> {
        let metadata = runnable.metadata();
        let start = Instant::now();
        let ran = runnable.run();
        let duration = start.elapsed();
        if duration > over {
            let poll = LongPoll { metadata, duration };
            // The task must go back to its queue even if the report panics.
            catch_panic(|| report(&poll));
        }
        ran
    }
}

impl fmt::Debug for Polls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = self.report.as_ref().map(|(over, _)| over);
        f.debug_struct("Polls")
            .field("reported_over", &over)
            .finish()
    }
}
