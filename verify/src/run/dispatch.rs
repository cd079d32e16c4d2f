//! Dispatch: programs go to workers in batches, run after run.
//!
//! Each worker takes a batch, returns its result, and takes the next. No worker
//! waits at the end of a run: its last programs and the first of the next run are
//! executed side by side. After a failure only smaller programs of that run are
//! dispatched, so that the first program that fails is the one reported.
//!
//! Workers are threads of this process ([`Thread`]), or processes
//! ([`crate::run::process`]).

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::report::{Counterexample, Coverage, Report};
use crate::run::watch::{self, Watch};
use crate::subject::plan::{Engine, Mode};
use crate::subject::verdict::Verdict;

/// Prepares a run, when its first program is due.
pub(crate) type Prepare<'a> = &'a (dyn Fn() -> Box<dyn Work> + Sync + 'a);

/// Programs that are ready to be run.
pub(crate) trait Work: Send + Sync {
    /// The report of the run before any program was run.
    fn empty_report(&self) -> Report;

    /// Returns the number of programs.
    fn programs(&self) -> usize;

    /// Returns a program as text.
    fn text(&self, program: usize) -> String;

    /// Runs a program.
    fn run_one(&self, program: usize) -> BatchResult;

    /// Returns how often the operations of the first programs are in each polling mode.
    fn coverage(&self, programs: usize) -> Vec<Coverage> {
        let _ = programs;
        Vec::new()
    }

    /// Returns `true` if programs are run after one that has failed, to report the
    /// smallest program for each class of failure.
    fn each_class(&self) -> bool {
        false
    }

    /// Runs programs in turn, up to the first that fails unless failures of each class
    /// are wanted. A program that takes long is named meanwhile.
    fn run(&self, programs: Range<usize>) -> BatchResult {
        let begun = Instant::now();
        let name = |program, taken: Duration| {
            let Report {
                subject,
                engine,
                mode,
                ..
            } = self.empty_report();
            eprintln!(
                "{subject}, {engine}/{mode}: `{}` has been run for {} s. It may have many \
                 executions; if one of them does not end, a poll in it never returns",
                self.text(program),
                taken.as_secs(),
            );
        };
        let mut result = Watch::over(watch::PERIOD, name, |watch| {
            BatchResult::of(programs, self.each_class(), |program| {
                watch.begins(program);
                self.run_one(program)
            })
        });
        result.time = begun.elapsed();
        result
    }
}

/// The result of a batch.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BatchResult {
    /// How many programs were run.
    pub(crate) programs: u64,
    /// How many executions that took.
    pub(crate) executions: u64,
    /// How many sections were observed, if a hook is what observes them.
    pub(crate) observed: u64,
    /// Whether a limit cut one of them.
    pub(crate) cut: bool,
    /// The programs that failed, by their numbers, and how.
    pub(crate) failures: Vec<(usize, Counterexample)>,
    /// How long it took.
    pub(crate) time: Duration,
}

impl BatchResult {
    /// Returns the result of a program whose worker died.
    pub(crate) fn died(program: usize, how: Counterexample) -> Self {
        Self {
            programs: 1,
            executions: 1,
            cut: true,
            failures: vec![(program, how)],
            ..Self::default()
        }
    }

    /// Returns the result of programs that are run one by one, up to the first that
    /// fails unless failures of each class are wanted.
    pub(crate) fn of(
        programs: Range<usize>,
        each_class: bool,
        mut run: impl FnMut(usize) -> Self,
    ) -> Self {
        let mut all = Self::default();
        for program in programs {
            let one = run(program);
            all.programs += one.programs;
            all.executions += one.executions;
            all.observed += one.observed;
            all.cut |= one.cut;
            all.time += one.time;
            all.failures.extend(one.failures);
            if !each_class && !all.failures.is_empty() {
                break;
            }
        }
        all
    }
}

/// Some programs of a run, for one worker.
#[derive(Clone)]
pub(crate) struct Batch {
    /// The number of the run.
    pub(crate) run: usize,
    /// The programs of the run.
    pub(crate) work: Arc<dyn Work>,
    /// The programs of the batch.
    pub(crate) programs: Range<usize>,
}

/// Runs batches.
pub(crate) trait Worker: Send {
    /// Runs a batch.
    fn run(&mut self, batch: &Batch) -> BatchResult;
}

/// A thread of this process.
#[derive(Debug)]
pub(crate) struct Thread;

impl Thread {
    /// The threads that a mode is run on.
    ///
    /// loom maps and unmaps a stack for every thread of every execution, which
    /// threads of one process do under one lock of the system, each interrupting
    /// the cores of the others: two of them take longer than one.
    pub(crate) fn all(mode: Mode) -> Vec<Self> {
        let number = match mode.engine() {
            Engine::Loom => 1,
            _ => cores(),
        };
        (0..number).map(|_| Self).collect()
    }
}

impl Worker for Thread {
    fn run(&mut self, batch: &Batch) -> BatchResult {
        batch.work.run(batch.programs.clone())
    }
}

/// Returns how many workers can run side by side.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The progress that is displayed.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// A batch is complete. The report is that of the first run that has not ended, so
    /// far, with the number of its programs.
    Underway(&'a Report, usize),
    /// A run has ended, with its number and its report. Runs end in their order.
    Ended(usize, &'a Report),
}

/// Runs everything, and returns the report of each run, in their order.
pub(crate) fn dispatch<W: Worker>(
    runs: Vec<Prepare<'_>>,
    workers: Vec<W>,
    notify: &mut (dyn FnMut(Event<'_>) + Send),
) -> Vec<Report> {
    let queue = Queue {
        state: Mutex::new(State {
            runs: runs.iter().map(|_| Progress::default()).collect(),
            current: 0,
            ended: 0,
            notify,
        }),
        prepare: runs,
    };
    std::thread::scope(|scope| {
        for mut worker in workers {
            let queue = &queue;
            scope.spawn(move || {
                while let Some(batch) = queue.next() {
                    let result = worker.run(&batch);
                    queue.complete(&batch, result);
                }
            });
        }
    });
    let runs = queue.into_state().runs;
    let report = |run: Progress| run.report.expect("every run was dispatched");
    runs.into_iter().map(report).collect()
}

/// The runs whose programs are not all complete.
struct Queue<'a> {
    prepare: Vec<Prepare<'a>>,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    runs: Vec<Progress>,
    /// The run whose programs are being dispatched.
    current: usize,
    /// How many runs have ended.
    ended: usize,
    notify: &'a mut (dyn FnMut(Event<'_>) + Send),
}

/// The progress of a run.
#[derive(Default)]
struct Progress {
    /// Its report so far. It is `None` before the run is prepared.
    report: Option<Report>,
    /// Its programs, until it has ended.
    work: Option<Arc<dyn Work>>,
    /// The first program that is not dispatched. After a failure it is the failing one.
    end: usize,
    /// How many programs have been dispatched.
    dispatched: usize,
    /// How many batches are not complete.
    outstanding: usize,
    /// The failures that are reported, by the numbers of their programs.
    failures: Vec<(usize, Counterexample)>,
}

/// The greatest number of programs in a batch. It is large enough that dispatching
/// costs nothing, and small enough that no worker has much left to do when the others
/// are idle.
const MAX_BATCH: usize = 64;

impl<'a> Queue<'a> {
    /// Returns the next batch. It is `None` when all programs are dispatched.
    fn next(&self) -> Option<Batch> {
        let mut state = self.state();
        while let Some(progress) = state.prepared(&self.prepare) {
            if let Some((work, programs)) = progress.take() {
                return Some(Batch {
                    run: state.current,
                    work,
                    programs,
                });
            }
            state.current += 1;
            state.end_runs();
        }
        None
    }

    /// Adds the result of a batch to its run.
    fn complete(&self, batch: &Batch, result: BatchResult) {
        let mut state = self.state();
        state.runs[batch.run].add(result);
        state.end_runs();
        let State {
            runs,
            ended,
            notify,
            ..
        } = &mut *state;
        if let Some(progress) = runs.get(*ended)
            && let (Some(report), Some(work)) = (&progress.report, &progress.work)
        {
            notify(Event::Underway(report, work.programs()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }

    fn into_state(self) -> State<'a> {
        self.state
            .into_inner()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

impl State<'_> {
    /// Returns the run whose programs are being dispatched, and prepares it.
    fn prepared(&mut self, prepare: &[Prepare<'_>]) -> Option<&mut Progress> {
        let progress = self.runs.get_mut(self.current)?;
        if progress.report.is_none() {
            let work: Arc<dyn Work> = Arc::from(prepare[self.current]());
            progress.report = Some(work.empty_report());
            progress.end = work.programs();
            progress.work = Some(work);
        }
        Some(progress)
    }

    /// Announces the runs that have ended since the last call.
    fn end_runs(&mut self) {
        while let Some(progress) = self.runs.get_mut(self.ended)
            && let Some(report) = &mut progress.report
            && progress.outstanding == 0
            && progress.dispatched >= progress.end
        {
            if let Some(work) = progress.work.take() {
                report.coverage = work.coverage(progress.end);
            }
            (self.notify)(Event::Ended(self.ended, report));
            self.ended += 1;
        }
    }
}

impl Progress {
    /// Takes a batch: a small one at first, so that an early failure wastes little.
    fn take(&mut self) -> Option<(Arc<dyn Work>, Range<usize>)> {
        let begin = self.dispatched;
        if begin >= self.end {
            return None;
        }
        let number = (begin / 8).clamp(1, MAX_BATCH);
        self.dispatched = self.end.min(begin + number);
        self.outstanding += 1;
        let work = self
            .work
            .clone()
            .expect("a run that is being dispatched has not ended");
        Some((work, begin..self.dispatched))
    }

    fn add(&mut self, result: BatchResult) {
        self.outstanding -= 1;
        let report = self.report.as_mut().expect("the run is prepared");
        report.programs += result.programs;
        report.executions += result.executions;
        if let Some(observed) = &mut report.observed {
            *observed += result.observed;
        }
        report.seconds += result.time;
        if result.cut && report.verdict == Verdict::Complete {
            report.verdict = Verdict::Bounded;
        }
        let each_class = self.work.as_ref().is_some_and(|work| work.each_class());
        for (index, counterexample) in result.failures {
            if !each_class {
                if index < self.end {
                    self.end = index;
                    self.failures = vec![(index, counterexample)];
                }
                continue;
            }
            let class = counterexample.class;
            let known = self.failures.iter().position(|(_, one)| one.class == class);
            match known {
                Some(known) if self.failures[known].0 < index => {}
                Some(known) => self.failures[known] = (index, counterexample),
                None => self.failures.push((index, counterexample)),
            }
        }
        self.failures.sort_by_key(|&(index, _)| index);
        let failures = self.failures.iter();
        report.failures = failures.map(|(_, failure)| failure.clone()).collect();
    }
}
