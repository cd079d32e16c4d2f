//! The metrics of a pool.
//!
//! What costs a running pool something is counted only where it is rare: a park, a steal.
//! Depths are read when they are asked for. The durations of polls are measured only if
//! the builder asks for that.

#![forbid(unsafe_code)]

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use reveille::backend::Native;

use super::workers::Workers;
use crate::blocking::Blocking;
use crate::long_poll::{PollTimes, Polls};

/// The metrics of a [`ThreadPool`](crate::ThreadPool), each read when it is asked for. It
/// does not keep the pool alive.
///
/// The names are those of tokio's `RuntimeMetrics`.
///
/// # Examples
///
/// ```
/// use reveille_executor::ThreadPool;
///
/// let pool = ThreadPool::builder().workers(2).build();
/// let waits = pool.spawn(std::future::pending::<()>());
/// let metrics = pool.handle().metrics();
/// assert_eq!(metrics.num_workers(), 2);
/// assert_eq!(metrics.num_alive_tasks(), 1);
/// # drop(waits);
/// ```
#[derive(Clone)]
pub struct Metrics {
    pub(super) workers: Arc<Workers<Native>>,
    pub(super) blocking: Arc<Blocking<Native>>,
    pub(super) polls: Polls,
}

/// They are only read.
impl RefUnwindSafe for Metrics {}
impl UnwindSafe for Metrics {}

impl Metrics {
    /// Returns the number of workers.
    #[must_use]
    pub fn num_workers(&self) -> usize {
        self.workers.count()
    }

    /// Returns the number of tasks that have been spawned and have not ended.
    #[must_use]
    pub fn num_alive_tasks(&self) -> usize {
        self.workers.live_tasks()
    }

    /// Returns the number of workers that sleep, or are about to.
    #[must_use]
    pub fn num_idle_workers(&self) -> usize {
        self.workers.idle()
    }

    /// Returns the number of tasks in the inject queue.
    #[must_use]
    pub fn global_queue_depth(&self) -> usize {
        self.workers.injected()
    }

    /// Returns the number of tasks in the queue of a worker.
    ///
    /// # Panics
    ///
    /// Panics if there is no worker with this index.
    #[track_caller]
    #[must_use]
    pub fn worker_local_queue_depth(&self, worker: usize) -> usize {
        self.check(worker);
        self.workers.queued(worker)
    }

    /// Returns how often a worker has slept because it found nothing to run.
    ///
    /// # Panics
    ///
    /// Panics if there is no worker with this index.
    #[track_caller]
    #[must_use]
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.check(worker);
        self.workers.counters(worker).parks()
    }

    /// Returns how many tasks a worker has stolen from the queues of others.
    ///
    /// # Panics
    ///
    /// Panics if there is no worker with this index.
    #[track_caller]
    #[must_use]
    pub fn worker_steal_count(&self, worker: usize) -> u64 {
        self.check(worker);
        self.workers.counters(worker).steals()
    }

    /// Returns the number of threads for blocking calls.
    #[must_use]
    pub fn num_blocking_threads(&self) -> usize {
        self.blocking.threads()
    }

    /// Returns the number of threads for blocking calls that wait for a call.
    #[must_use]
    pub fn num_idle_blocking_threads(&self) -> usize {
        self.blocking.idle()
    }

    /// Returns the number of blocking calls that wait for a thread.
    #[must_use]
    pub fn blocking_queue_depth(&self) -> usize {
        self.blocking.queued()
    }

    /// Returns how long polls took, if the pool was built with
    /// [`measure_polls`](super::Builder::measure_polls).
    #[must_use]
    pub fn poll_times(&self) -> Option<PollTimes> {
        self.polls.times()
    }

    #[track_caller]
    fn check(&self, worker: usize) {
        let count = self.num_workers();
        assert!(
            worker < count,
            "the pool has {count} workers, and none with the index {worker}"
        );
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("num_workers", &self.num_workers())
            .field("num_alive_tasks", &self.num_alive_tasks())
            .field("num_idle_workers", &self.num_idle_workers())
            .field("global_queue_depth", &self.global_queue_depth())
            .finish_non_exhaustive()
    }
}
