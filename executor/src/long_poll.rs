//! Reports of polls that take too long, and how long polls take.
//!
//! ```text
//!   poll begins ──▶ under way ──ends──▶ reported if it was long
//!                       │
//!                       └──ten times as long as the limit──▶ reported by the watch
//! ```
//!
//! The watch is a thread that looks at the polls under way. It exists only if there is a
//! report, so that a task that never yields is reported too.

#![forbid(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use reveille::backend::Native;
use reveille::raw::{Completion, Metadata, RunResult, Runnable};

use crate::catch_panic::catch_panic;
use crate::task::coop::Budget;
use crate::task::{Id, Running};

/// A poll that took longer than the limit of its executor. No other task ran on its
/// thread meanwhile.
///
/// A poll is reported when it ends. A poll that [goes on](Self::goes_on) for ten times the
/// limit is also reported while it does, once, by a thread of its own. So a task that
/// never yields is reported with its name. A [`Simulation`](crate::Simulation) has no such
/// thread.
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
    goes_on: bool,
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

    /// Returns how long the poll took, or has taken so far.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns whether the poll has not ended yet.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }
}

impl fmt::Display for LongPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { duration, .. } = self;
        write!(f, "task {}", self.id())?;
        if let Some(name) = self.name() {
            write!(f, " `{name}`")?;
        }
        let polled = match self.goes_on {
            true => "has been polled for",
            false => "was polled for",
        };
        write!(f, ", spawned at {}, {polled} {duration:?}", self.location())
    }
}

type Report = Arc<dyn Fn(&LongPoll) + Send + Sync>;

/// Runs tasks, with or without reports of long polls and a histogram.
#[derive(Clone, Default)]
pub(crate) struct Polls {
    /// There is a report or a histogram.
    timed: bool,
    report: Option<(Duration, Report)>,
    histogram: Option<Arc<Histogram>>,
    under_way: Arc<UnderWay>,
}

/// How many times as long as the limit a poll goes on before it is reported meanwhile.
const PATIENCE: u32 = 10;

/// The polls under way, for the watch.
#[derive(Default)]
struct UnderWay {
    state: Mutex<Watched>,
    ended: Condvar,
}

#[derive(Default)]
struct Watched {
    /// A slot for each thread that polls at a time.
    slots: Vec<Option<Poll>>,
    /// The executor has ended.
    closed: bool,
}

struct Poll {
    start: Instant,
    metadata: Metadata,
    reported: bool,
}

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a poll, and returns its slot.
    fn begin(&self, start: Instant, metadata: &Metadata) -> usize {
        let poll = Poll {
            start,
            metadata: metadata.clone(),
            reported: false,
        };
        let mut state = self.lock();
        let free = state.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(state.slots.len());
        match free {
            Some(slot) => state.slots[slot] = Some(poll),
            None => state.slots.push(Some(poll)),
        }
        slot
    }

    fn end(&self, slot: usize) {
        let poll = self.lock().slots[slot].take();
        drop(poll);
    }

    /// Reports polls that go on for longer than `over`, until the executor has ended.
    fn watch(&self, over: Duration, report: &Report) {
        let mut state = self.lock();
        while !state.closed {
            let now = Instant::now();
            let long = state.slots.iter_mut().flatten().find_map(|poll| {
                let duration = now - poll.start;
                let due = duration > over && !std::mem::replace(&mut poll.reported, true);
                due.then(|| LongPoll {
                    metadata: poll.metadata.clone(),
                    duration,
                    goes_on: true,
                })
            });
            state = match long {
                Some(poll) => {
                    drop(state);
                    catch_panic(|| report(&poll));
                    self.lock()
                }
                None => {
                    let waited = self.ended.wait_timeout(state, over / 2);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// The number of buckets. The last takes all polls of eight seconds or more.
const BUCKETS: usize = 25;

/// The number of polls by their duration. Each bucket is twice as wide as the one before.
/// The first is for less than a microsecond.
#[derive(Default)]
struct Histogram([AtomicU64; BUCKETS]);

impl Histogram {
    fn count(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = micros.checked_ilog2().map_or(0, |log| log as usize + 1);
        self.0[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }
}

/// How many polls took how long. See
/// [`Metrics::poll_times`](crate::pool::Metrics::poll_times).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reveille_executor::ThreadPool;
///
/// let pool = ThreadPool::builder().workers(1).measure_polls().build();
/// let blocks = pool.spawn(async { std::thread::sleep(Duration::from_millis(5)) });
/// pool.block_on(blocks).unwrap();
/// # pool.block_on(pool.spawn(async {})).unwrap(); // the first has been counted by then
/// let times = pool.handle().metrics().poll_times().unwrap();
/// let long = times.buckets().filter(|(from, _)| *from >= Duration::from_millis(4));
/// assert!(long.map(|(_, polls)| polls).sum::<u64>() >= 1);
/// ```
#[derive(Clone, Debug)]
pub struct PollTimes([u64; BUCKETS]);

impl PollTimes {
    /// Returns the shortest duration of each bucket, and the number of polls that took at
    /// least so long, and less than the next bucket says.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.0.iter().enumerate().map(|(bucket, &polls)| {
            let from = bucket.checked_sub(1).map_or(0, |log| 1 << log);
            (Duration::from_micros(from), polls)
        })
    }
}

impl Polls {
    /// Reports each poll that takes longer than `over`.
    pub(crate) fn report(
        &mut self,
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) {
        self.timed = true;
        self.report = Some((over, Arc::new(report)));
    }

    /// Starts the watch, if there is a report. If the system refuses the thread, only polls
    /// that have ended are reported.
    pub(crate) fn start_watch(&self) {
        let Some((over, report)) = &self.report else {
            return;
        };
        let (under_way, report) = (self.under_way.clone(), report.clone());
        let over = over.saturating_mul(PATIENCE);
        thread::Builder::new()
            .name(String::from("reveille-watch"))
            .spawn(move || under_way.watch(over, &report))
            .ok();
    }

    /// Ends the watch.
    pub(crate) fn close(&self) {
        if self.report.is_some() {
            self.under_way.lock().closed = true;
            self.under_way.ended.notify_all();
        }
    }

    /// Counts polls by their duration.
    pub(crate) fn measure(&mut self) {
        self.timed = true;
        self.histogram = Some(Arc::default());
    }

    /// Returns the histogram, if there is one.
    pub(crate) fn times(&self) -> Option<PollTimes> {
        let Histogram(buckets) = &**self.histogram.as_ref()?;
        let count = |bucket: usize| buckets[bucket].load(Ordering::Relaxed);
        Some(PollTimes(std::array::from_fn(count)))
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
        let ran = match self.timed {
            false => runnable.run(),
            true => self.run_timed(runnable),
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
    fn run_timed(&self, runnable: Runnable<Native>) -> RunResult<Native> {
        let metadata = runnable.metadata();
        let start = Instant::now();
        let watched = self.report.is_some();
        let slot = watched.then(|| self.under_way.begin(start, &metadata));
        let ran = runnable.run();
        let duration = start.elapsed();
        if let Some(slot) = slot {
            self.under_way.end(slot);
        }
        if let Some(histogram) = &self.histogram {
            histogram.count(duration);
        }
        if let Some((over, report)) = &self.report
            && duration > *over
        {
            let poll = LongPoll {
                metadata,
                duration,
                goes_on: false,
            };
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
            .field("measured", &self.histogram.is_some())
            .finish()
    }
}
