//! Dealing programs out to those who run them, run after run.
//!
//! Each worker takes some programs, comes back with what came of them, and
//! takes the next. Nobody waits at the end of a run: its last programs and the
//! first of the next are run side by side. After a failure only smaller programs
//! of that run are still dealt, so that the first that fails is what is found.
//!
//! Workers are threads of this process ([`Thread`]), or processes
//! ([`crate::worker`]).

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::plan::{Engine, Mode};
use crate::run::{Part, Work};
use crate::verdict::{Report, Verdict};

/// How a run is made ready: when it is its turn.
pub(crate) type Prepare<'a> = &'a (dyn Fn() -> Box<dyn Work> + Sync + 'a);

/// Some programs of a run.
#[derive(Clone)]
pub(crate) struct Task {
    /// The number of the run.
    pub(crate) run: usize,
    /// Its programs.
    pub(crate) work: Arc<dyn Work>,
    /// Which of them.
    pub(crate) programs: Range<usize>,
}

/// Whoever runs programs.
pub(crate) trait Worker: Send {
    /// Runs them.
    fn run(&mut self, task: &Task) -> Part;
}

/// A thread of this process.
#[derive(Debug)]
pub(crate) struct Thread;

impl Thread {
    /// As many as a mode is run on.
    ///
    /// loom maps and unmaps a stack for every thread of every execution, which
    /// threads of one process do under one lock of the system, each telling all
    /// the others' cores: two of them take longer than one.
    pub(crate) fn all(mode: Mode) -> Vec<Self> {
        let number = match mode.engine() {
            Engine::Loom => 1,
            _ => cores(),
        };
        (0..number).map(|_| Self).collect()
    }
}

impl Worker for Thread {
    fn run(&mut self, task: &Task) -> Part {
        task.work.run(task.programs.clone())
    }
}

/// How much can be done side by side.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// A worker came back: what is known of the first run that has no end yet,
    /// and how many programs it has.
    Underway(&'a Report, usize),
    /// A run ended: its number, and what came of it. Runs end in their order.
    Ended(usize, &'a Report),
}

/// Runs everything, and answers what came of each run, in their order.
pub(crate) fn deal<W: Worker>(
    runs: Vec<Prepare<'_>>,
    workers: Vec<W>,
    tell: &mut (dyn FnMut(Event<'_>) + Send),
) -> Vec<Report> {
    let table = Table {
        state: Mutex::new(State {
            runs: runs.iter().map(|_| Progress::default()).collect(),
            dealing: 0,
            ended: 0,
            tell,
        }),
        prepare: runs,
    };
    std::thread::scope(|scope| {
        for mut worker in workers {
            let table = &table;
            scope.spawn(move || {
                while let Some(task) = table.next() {
                    let part = worker.run(&task);
                    table.back(&task, part);
                }
            });
        }
    });
    let runs = table.into_state().runs;
    let report = |run: Progress| run.report.expect("every run was dealt");
    runs.into_iter().map(report).collect()
}

/// Where the programs lie.
struct Table<'a> {
    prepare: Vec<Prepare<'a>>,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    runs: Vec<Progress>,
    /// The run that is being dealt.
    dealing: usize,
    /// How many runs have ended.
    ended: usize,
    tell: &'a mut (dyn FnMut(Event<'_>) + Send),
}

/// How far a run has come.
#[derive(Default)]
struct Progress {
    /// What has come of it so far; none before it is made ready.
    report: Option<Report>,
    /// Its programs, until it has ended.
    work: Option<Arc<dyn Work>>,
    /// The first program that is not dealt: there is none after a failure.
    end: usize,
    /// How many programs have been dealt.
    dealt: usize,
    /// How many tasks have not come back.
    out: usize,
}

/// How many programs are dealt together at most: enough that dealing costs
/// nothing, and few enough that nobody is left with much of the work at the end.
const MOST: usize = 64;

impl<'a> Table<'a> {
    /// The next programs; none when all are dealt.
    fn next(&self) -> Option<Task> {
        let mut state = self.state();
        while let Some(progress) = state.open(&self.prepare) {
            if let Some((work, programs)) = progress.take() {
                return Some(Task {
                    run: state.dealing,
                    work,
                    programs,
                });
            }
            state.dealing += 1;
            state.end_runs();
        }
        None
    }

    /// Takes back what came of a task.
    fn back(&self, task: &Task, part: Part) {
        let mut state = self.state();
        state.runs[task.run].add(part);
        state.end_runs();
        let State {
            runs, ended, tell, ..
        } = &mut *state;
        if let Some(progress) = runs.get(*ended)
            && let (Some(report), Some(work)) = (&progress.report, &progress.work)
        {
            tell(Event::Underway(report, work.programs()));
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
    /// The run that is being dealt, made ready.
    fn open(&mut self, prepare: &[Prepare<'_>]) -> Option<&mut Progress> {
        let progress = self.runs.get_mut(self.dealing)?;
        if progress.report.is_none() {
            let work: Arc<dyn Work> = Arc::from(prepare[self.dealing]());
            progress.report = Some(work.blank());
            progress.end = work.programs();
            progress.work = Some(work);
        }
        Some(progress)
    }

    /// Tells of the runs that have ended and were not told of.
    fn end_runs(&mut self) {
        while let Some(progress) = self.runs.get_mut(self.ended)
            && let Some(report) = &progress.report
            && progress.out == 0
            && progress.dealt >= progress.end
        {
            progress.work = None;
            (self.tell)(Event::Ended(self.ended, report));
            self.ended += 1;
        }
    }
}

impl Progress {
    /// Deals some programs: few at first, so that what fails early costs
    /// nobody much.
    fn take(&mut self) -> Option<(Arc<dyn Work>, Range<usize>)> {
        let begin = self.dealt;
        if begin >= self.end {
            return None;
        }
        let number = (begin / 8).clamp(1, MOST);
        self.dealt = self.end.min(begin + number);
        self.out += 1;
        let work = self
            .work
            .clone()
            .expect("a run that is dealt has not ended");
        Some((work, begin..self.dealt))
    }

    fn add(&mut self, part: Part) {
        self.out -= 1;
        let report = self.report.as_mut().expect("it was dealt");
        report.programs += part.programs;
        report.executions += part.executions;
        report.seconds += part.time;
        if part.cut && report.verdict == Verdict::Complete {
            report.verdict = Verdict::Bounded;
        }
        if let Some((index, counterexample)) = part.failure
            && index < self.end
        {
            self.end = index;
            report.failures = vec![counterexample];
        }
    }
}
