//! Runs a model on a thread of its own, and notices when a task blocks that thread.
//!
//! ```text
//!   running ──a step──▶ running ──no step for a period──▶ run again, with a table
//!      │                   ▲                                   │           │
//!      └──▶ ended          └───────────────goes on─────────────┘           └─blocks too
//!                                                                                │
//!                                                       the thread is given up ◀─┘
//! ```
//!
//! A fiber cannot be unwound while it runs, so a thread that is given up is left as it
//! is, and the test fails at once. The thread that watches is that of the test.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::model::report::{Event, Failure, Kind, ModelReport, token};
use crate::subject::verdict::Verdict;

/// The most steps of an execution.
pub(crate) const MOST_STEPS: usize = 10_000;

/// How long a step may take before it is run again.
const PERIOD: Duration = Duration::from_secs(4);

/// How long it may take then.
const AGAIN: Duration = Duration::from_secs(2);

/// How often the thread of the test looks.
const LOOK: Duration = Duration::from_millis(250);

/// The progress of a model, whose executions may run on several threads.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    tracks: Mutex<Vec<Arc<Track>>>,
    executions: AtomicU64,
    given_up: AtomicBool,
}

impl Progress {
    /// Adds a thread that runs executions.
    pub(crate) fn track(&self) -> Arc<Track> {
        let track = Arc::new(Track {
            steps: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            choices: (0..MOST_STEPS).map(|_| AtomicU8::new(0)).collect(),
            names: Mutex::default(),
            plan: Mutex::default(),
            trace: Arc::default(),
        });
        lock(&self.tracks).push(track.clone());
        track
    }

    /// Counts an execution. Returns `true` if the model was given up.
    pub(crate) fn count(&self) -> bool {
        self.executions.fetch_add(1, Ordering::Relaxed);
        self.is_given_up()
    }

    /// Returns `true` if the model was given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// What one thread does.
#[derive(Debug)]
pub(crate) struct Track {
    /// How often something has begun to run.
    steps: AtomicU64,
    /// Whether it is in an execution.
    busy: AtomicBool,
    /// The process that runs.
    running: AtomicUsize,
    /// The choices of the execution so far.
    len: AtomicUsize,
    choices: Box<[AtomicU8]>,
    /// The names of the processes. Those of the first execution are kept.
    names: Mutex<Vec<String>>,
    /// Where tasks are dropped in the execution.
    plan: Mutex<Vec<usize>>,
    /// The events of the execution, if it is traced.
    trace: Arc<Mutex<Vec<Event>>>,
}

/// In place of a process: the set-up, a check at the end, a destructor.
pub(crate) const NO_PROCESS: usize = usize::MAX;

impl Track {
    /// Records that an execution begins, and returns where its events are kept.
    pub(crate) fn begin(&self, plan: &[usize]) -> Arc<Mutex<Vec<Event>>> {
        let mut known = lock(&self.plan);
        if *known != plan {
            plan.clone_into(&mut known);
        }
        self.len.store(0, Ordering::Relaxed);
        self.runs(NO_PROCESS);
        self.busy.store(true, Ordering::Relaxed);
        self.trace.clone()
    }

    /// Records that the execution has ended.
    pub(crate) fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Records a choice of the search.
    pub(crate) fn chose(&self, step: usize, process: u8) {
        self.choices[step].store(process, Ordering::Relaxed);
        self.len.store(step + 1, Ordering::Relaxed);
    }

    /// Records that a process goes on.
    pub(crate) fn runs(&self, process: usize) {
        self.running.store(process, Ordering::Relaxed);
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps + 1, Ordering::Release);
    }

    /// Sets the names of the processes.
    pub(crate) fn name(&self, names: impl FnOnce() -> Vec<String>) {
        let mut known = lock(&self.names);
        if known.is_empty() {
            *known = names();
        }
    }

    /// Returns the name of a process.
    pub(crate) fn name_of(&self, process: usize) -> String {
        let names = lock(&self.names);
        let name = names.get(process);
        name.cloned().unwrap_or_else(|| match process {
            NO_PROCESS => "the set-up, a check at the end or a destructor".to_owned(),
            _ => format!("task {process}"),
        })
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// What a model is run for.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Explore,
    Replay { plan: Vec<usize>, choices: Vec<u8> },
}

/// Runs a model for a task. Its thread can be given up.
pub(crate) type Body = dyn Fn(Task, &Progress) -> ModelReport + Send + Sync;

/// Runs a model. If a step blocks the thread, returns that as its failure.
pub(crate) fn watched(task: Task, body: Arc<Body>) -> ModelReport {
    watched_for(task, body, [PERIOD, AGAIN])
}

fn watched_for(task: Task, body: Arc<Body>, [period, again]: [Duration; 2]) -> ModelReport {
    let mut first = Watched::start(task, body.clone());
    let blocked = match first.wait(period) {
        Ok(report) => return report,
        Err(blocked) => blocked,
    };
    let task = Task::Replay {
        plan: blocked.plan.clone(),
        choices: blocked.choices.clone(),
    };
    let mut second = Watched::start(task, body);
    let blocked = match second.wait(again) {
        Err(mut same) => {
            same.executions = blocked.executions;
            same.time += blocked.time;
            same
        }
        // It was slow for once.
        Ok(_) => match first.wait(period * 4) {
            Ok(report) => return report,
            Err(blocked) => blocked,
        },
    };
    first.give_up();
    second.give_up();
    blocked.report()
}

/// A model on a thread of its own.
struct Watched {
    progress: Arc<Progress>,
    report: Receiver<ModelReport>,
    thread: Option<JoinHandle<()>>,
}

/// A thread on which a step has not ended.
struct Blocked {
    running: usize,
    name: String,
    names: Vec<String>,
    plan: Vec<usize>,
    choices: Vec<u8>,
    trace: Vec<Event>,
    executions: u64,
    time: Duration,
}

impl Watched {
    fn start(task: Task, body: Arc<Body>) -> Self {
        let progress = Arc::new(Progress::default());
        let (tx, report) = channel();
        let watched = progress.clone();
        let run = move || {
            let report = body(task, &watched);
            // The model may have been given up.
            let _ = tx.send(report);
        };
        let name = std::thread::current().name().unwrap_or("model").to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(run);
        Self {
            progress,
            report,
            thread: Some(thread.expect("the system refused the thread of a model")),
        }
    }

    /// Waits for the report, or until a step takes longer than the period.
    fn wait(&mut self, period: Duration) -> Result<ModelReport, Box<Blocked>> {
        let mut seen: Vec<(u64, Instant)> = Vec::new();
        let begun = Instant::now();
        loop {
            match self.report.recv_timeout(LOOK.min(period / 2)) {
                Ok(report) => return Ok(report),
                Err(RecvTimeoutError::Disconnected) => {
                    let thread = self.thread.take().expect("it is taken once");
                    let panic = thread.join().expect_err("it has sent no report");
                    resume_unwind(panic);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            let tracks = lock(&self.progress.tracks).clone();
            for (number, track) in tracks.iter().enumerate() {
                let steps = track.steps.load(Ordering::Acquire);
                let Some((last, since)) = seen.get_mut(number) else {
                    seen.push((steps, now));
                    continue;
                };
                if steps != *last || !track.busy.load(Ordering::Relaxed) {
                    (*last, *since) = (steps, now);
                } else if now - *since >= period {
                    return Err(Box::new(self.blocked(track, begun.elapsed())));
                }
            }
        }
    }

    fn blocked(&self, track: &Track, time: Duration) -> Blocked {
        let len = track.len.load(Ordering::Relaxed);
        let choices = track.choices[..len].iter();
        let running = track.running.load(Ordering::Relaxed);
        Blocked {
            running,
            name: track.name_of(running),
            names: lock(&track.names).clone(),
            plan: lock(&track.plan).clone(),
            choices: choices
                .map(|choice| choice.load(Ordering::Relaxed))
                .collect(),
            trace: lock(&track.trace).clone(),
            executions: self.progress.executions.load(Ordering::Relaxed),
            time,
        }
    }

    /// Leaves the thread as it is. If it ever goes on, it ends.
    fn give_up(&self) {
        self.progress.given_up.store(true, Ordering::Relaxed);
    }
}

impl Blocked {
    fn report(&self) -> ModelReport {
        let of = |event: &&Event| event.process == Some(self.running);
        let last = self.trace.iter().rfind(of);
        let last = last.map_or_else(String::new, |event| {
            format!(", after \"{}\"", event.what.text().trim())
        });
        let sentence = format!(
            "{} blocks the thread that runs the model{last}. A task of a model must not wait \
             but by an `await`: look for a `std::sync::Mutex` that is held across an `await`, \
             for a real sleep, and for a loop that waits for another task",
            self.name
        );
        let mut failure = Failure::new(Kind::Blocked, sentence);
        failure.token = token(&self.plan, &self.choices);
        failure.names.clone_from(&self.names);
        failure.trace.clone_from(&self.trace);
        ModelReport {
            verdict: Verdict::Bounded,
            bound: "cut".to_owned(),
            executions: self.executions,
            time: self.time,
            failure: Some(failure),
            ..ModelReport::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIODS: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(20)];

    /// Runs a step of bob that takes this long in each run.
    fn run(slow: impl Fn(u64) -> Duration + Send + Sync + 'static) -> ModelReport {
        let runs = AtomicU64::new(0);
        let body = move |_, progress: &Progress| {
            let track = progress.track();
            track.name(|| vec!["alice".to_owned(), "bob".to_owned()]);
            track.begin(&[]);
            progress.count();
            track.chose(0, 1);
            track.runs(1);
            std::thread::sleep(slow(runs.fetch_add(1, Ordering::Relaxed)));
            track.end();
            ModelReport::new()
        };
        watched_for(Task::Explore, Arc::new(body), PERIODS)
    }

    #[test]
    fn a_step_that_blocks_twice_is_the_failure() {
        let report = run(|_| Duration::from_secs(10));
        let failure = report.failure.expect("bob blocks");
        assert_eq!(failure.kind, Kind::Blocked);
        assert!(failure.sentence.starts_with("bob blocks"), "{failure}");
        assert_eq!(failure.token, "-1");
        assert_eq!(report.executions, 1);
    }

    #[test]
    fn a_step_that_is_slow_once_is_waited_for() {
        let report = run(|run| Duration::from_millis(if run == 0 { 100 } else { 0 }));
        assert!(report.failure.is_none(), "{report}");
    }

    #[test]
    fn a_step_that_blocks_for_good_fails_though_it_did_not_again() {
        let report = run(|run| Duration::from_secs(if run == 0 { 10 } else { 0 }));
        assert_eq!(report.failure.expect("bob blocks").kind, Kind::Blocked);
    }
}
