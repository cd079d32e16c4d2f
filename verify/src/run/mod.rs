//! Runs of a plan: its programs over a subject, under an engine.
//!
//! ```text
//! Entry ──prepare──▶ Work ──run(a batch)──▶ BatchResult
//! ```
//!
//! [`dispatch`] decides which programs are run where and when.

pub(crate) mod dispatch;
pub(crate) mod entry;
pub(crate) mod process;
pub(crate) mod token;
pub(crate) mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reveille::backend::{Loom, LoomWord, Native, Observed};

use crate::engine::{self, Explored, Failure, Job, Limits};
use crate::execution::{Probe, Unwatched};
use crate::judge::erased::{AnySubject, erase};
use crate::program::Program;
use crate::report::table;
use crate::report::{Counterexample, Report};
use crate::run::dispatch::{BatchResult, Event, Thread, Work};
use crate::run::token::Token;
use crate::subject::GenericSubject;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::validate::validate;
use crate::subject::verdict::Class;

/// A subject that can be run by name, under every engine.
pub(crate) trait Entry: Send + Sync {
    /// Prepares the programs of a plan.
    fn prepare(&self, name: &str, mode: Mode, plan: &Plan) -> Box<dyn Work>;

    /// Returns the plans of a mode in a profile. There are none if the mode does not
    /// apply.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan>;

    /// Runs one execution again, and returns how it failed.
    ///
    /// # Errors
    ///
    /// Returns why it could not be run, or that it did not fail.
    fn replay(&self, token: &Token) -> Result<Counterexample, String>;

    /// Returns the operations of each role, by name.
    fn roles(&self) -> Vec<(String, Vec<String>)>;
}

/// A subject over every backend, as an entry.
#[derive(Debug)]
pub(crate) struct Generic<F>(pub(crate) F);

impl<F: GenericSubject> Entry for Generic<F> {
    fn prepare(&self, name: &str, mode: Mode, plan: &Plan) -> Box<dyn Work> {
        Box::new(Programs::of(&self.0, name, mode, plan))
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        self.0.plans(mode, profile)
    }

    fn replay(&self, token: &Token) -> Result<Counterexample, String> {
        replay(&self.0, token)
    }

    fn roles(&self) -> Vec<(String, Vec<String>)> {
        // The roles are the same over every backend.
        let subject = over_backend(&self.0, Mode::Steps, 2);
        let roles = subject.roles();
        let ops = roles.iter().map(|role| {
            role.ops
                .iter()
                .map(|operation| operation.name.to_owned())
                .collect()
        });
        table::names(roles).into_iter().zip(ops).collect()
    }
}

/// Runs one mode over a generic subject, on threads of this process, up to the first
/// failure.
#[cfg(test)]
pub(crate) fn run<F: GenericSubject>(subject: &F, name: &str, mode: Mode, plan: &Plan) -> Report {
    run_programs(mode, &|| Programs::of(subject, name, mode, plan))
}

/// Runs one mode over a generic subject, on threads of this process. For each class of
/// failure, the smallest program that fails is reported.
pub(crate) fn run_each_class<F: GenericSubject>(
    subject: &F,
    name: &str,
    mode: Mode,
    plan: &Plan,
) -> Report {
    if let Err(sentence) = validate(&subject.on::<Native>(), plan.bound.participants) {
        panic!("{name}: {sentence}");
    }
    run_programs(mode, &|| Programs {
        told: Some(Mutex::default()),
        ..Programs::of(subject, name, mode, plan)
    })
}

fn run_programs(mode: Mode, programs: &(dyn Fn() -> Programs + Sync)) -> Report {
    let prepare = || Box::new(programs()) as Box<dyn Work>;
    let mut progress = Progress::new();
    let mut notify = |event: Event<'_>| progress.show(&event);
    let reports = dispatch::dispatch(vec![&prepare], Thread::all(mode), &mut notify);
    reports.into_iter().next().expect("one was asked for")
}

/// Reports the progress of a run that takes longer than some seconds.
struct Progress {
    said: Instant,
}

impl Progress {
    /// The time between two reports.
    const PERIOD: Duration = Duration::from_secs(10);

    fn new() -> Self {
        Self {
            said: Instant::now(),
        }
    }

    fn show(&mut self, event: &Event<'_>) {
        let Event::Underway(report, programs) = event else {
            return;
        };
        if self.said.elapsed() >= Self::PERIOD {
            self.said = Instant::now();
            eprintln!(
                "{} {}/{}: {} of {programs} programs, {} executions",
                report.subject, report.engine, report.mode, report.programs, report.executions
            );
        }
    }
}

/// Runs one execution of a generic subject again.
pub(crate) fn replay<F: GenericSubject>(
    subject: &F,
    token: &Token,
) -> Result<Counterexample, String> {
    let participants = token.program.split('/').count();
    run_again(&over_backend(subject, token.mode, participants), token)
}

/// Returns the subject of a mode, which is over the backend of the mode.
fn over_backend<F: GenericSubject>(
    subject: &F,
    mode: Mode,
    participants: usize,
) -> Arc<dyn AnySubject> {
    match mode {
        Mode::Steps | Mode::Exhaustive | Mode::Random | Mode::Pct => {
            erase(subject.on::<Observed<Native, Probe>>(), participants)
        }
        Mode::Sections => erase(subject.on::<Observed<Loom, Probe>>(), participants),
        Mode::Accesses => erase(subject.on::<Observed<LoomWord, Probe>>(), participants),
        Mode::Threads => erase(subject.on::<Observed<Native, Unwatched>>(), participants),
    }
}

/// Explores one program under the engine of a mode.
fn explore(mode: Mode, job: &Arc<Job>, limits: Limits) -> Explored {
    use engine::{fibers, loom, sequential, stress};
    match mode {
        Mode::Steps => sequential::explore(job, limits),
        Mode::Sections | Mode::Accesses => loom::explore(job, limits),
        Mode::Exhaustive => fibers::explore(job, fibers::Mode::Exhaustive, limits),
        Mode::Random => fibers::explore(job, fibers::Mode::Random, limits),
        Mode::Pct => fibers::explore(job, fibers::Mode::Pct(3), limits),
        Mode::Threads => stress::explore(job, limits),
    }
}

/// The programs of a plan over a subject.
struct Programs {
    /// The classes that have been reported, each with the smallest program, if a
    /// failure of each class is wanted.
    told: Option<Mutex<HashMap<Class, usize>>>,
    subject: Arc<dyn AnySubject>,
    name: String,
    mode: Mode,
    plan: Plan,
    programs: Vec<Program>,
}

impl Programs {
    fn of<F: GenericSubject>(subject: &F, name: &str, mode: Mode, plan: &Plan) -> Self {
        let participants = plan.bound.participants;
        let subject = over_backend(subject, mode, participants);
        let programs = match plan.drawn {
            None => Program::enumerate(&*subject, plan.bound),
            Some(number) => draw(&*subject, plan, number),
        };
        Self {
            told: None,
            subject,
            name: name.to_owned(),
            mode,
            plan: *plan,
            programs,
        }
    }
}

impl Work for Programs {
    fn empty_report(&self) -> Report {
        Report {
            subject: self.name.clone(),
            engine: self.mode.engine().name().to_owned(),
            mode: self.mode.name().to_owned(),
            verdict: self.mode.best(),
            bound: self.plan.text(),
            programs: 0,
            executions: 0,
            failures: Vec::new(),
            seconds: Duration::ZERO,
        }
    }

    fn programs(&self) -> usize {
        self.programs.len()
    }

    fn text(&self, program: usize) -> String {
        self.programs[program].text(self.subject.roles())
    }

    /// Explores a program. If it fails, the smallest failing program is reported.
    fn run_one(&self, index: usize) -> BatchResult {
        let Self { subject, mode, .. } = self;
        let limits = limits(&self.plan, index as u64);
        let program = self.programs[index].clone();
        let job = Job::new(subject.clone(), program.clone(), mode.order(), None);
        let explored = explore(*mode, &job, limits);
        let failure = explored.failure.filter(|failure| {
            let Some(told) = &self.told else { return true };
            let mut told = told.lock().unwrap_or_else(|poison| poison.into_inner());
            let first = told.entry(failure.violation.class).or_insert(usize::MAX);
            let smaller = index < *first;
            *first = index.min(*first);
            smaller
        });
        let failure = failure.map(|failure| {
            let failing = Failing {
                subject,
                name: &self.name,
                mode: *mode,
                program,
                limits,
                failure,
            };
            (index, failing.shrink(&self.plan).counterexample())
        });
        BatchResult {
            programs: 1,
            executions: explored.executions,
            cut: !explored.exhausted,
            failures: failure.into_iter().collect(),
            ..BatchResult::default()
        }
    }

    fn each_class(&self) -> bool {
        self.told.is_some()
    }
}

fn limits(plan: &Plan, seed: u64) -> Limits {
    Limits {
        executions: plan.executions,
        preemptions: plan.preemptions,
        seed,
    }
}

/// Draws `number` different programs, each of the bound's full length. The draws are
/// always the same.
fn draw(subject: &dyn AnySubject, plan: &Plan, number: u64) -> Vec<Program> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        // Marsaglia's xorshift. It draws the same numbers on every machine.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let mut programs = std::collections::HashSet::new();
    let mut drawn = Vec::new();
    for _ in 0..number.saturating_mul(4) {
        if drawn.len() as u64 == number {
            break;
        }
        let program = Program::draw(subject, plan.bound, &mut draw);
        let wanted = !plan.bound.only_panics || program.panics();
        if !program.is_empty() && wanted && programs.insert(program.clone()) {
            drawn.push(program);
        }
    }
    drawn
}

/// A failing program that is made into a counterexample.
struct Failing<'a> {
    subject: &'a Arc<dyn AnySubject>,
    name: &'a str,
    mode: Mode,
    program: Program,
    limits: Limits,
    failure: Failure,
}

impl Failing<'_> {
    /// Shrinks the program to the smallest one that fails in any way, since that
    /// explains the failure best. Programs that were enumerated are the smallest
    /// already. For these, it reduces the preemptions to the fewest that fail in the
    /// same way.
    fn shrink(mut self, plan: &Plan) -> Self {
        while plan.drawn.is_some() {
            let smaller = self
                .program
                .smaller(&**self.subject)
                .into_iter()
                .find_map(|program| self.fails(program, self.limits));
            match smaller {
                Some(smaller) => self = smaller,
                None => break,
            }
        }
        if matches!(self.mode, Mode::Sections | Mode::Exhaustive) {
            let class = self.failure.violation.class;
            let fewest = (0..4).find_map(|preemptions| {
                let limits = Limits {
                    preemptions: Some(preemptions),
                    ..self.limits
                };
                self.fails(self.program.clone(), limits)
                    .filter(|fewer| fewer.failure.violation.class == class)
            });
            self = fewest.unwrap_or(self);
        }
        self
    }

    fn fails(&self, program: Program, limits: Limits) -> Option<Self> {
        let job = self.job(program.clone(), None);
        let failure = explore(self.mode, &job, limits).failure?;
        Some(Self {
            program,
            limits,
            failure,
            ..*self
        })
    }

    /// Runs the failing execution once more, traced, and describes it.
    fn counterexample(self) -> Counterexample {
        let roles = self.subject.roles();
        let text = self.program.text(roles);
        let token = Token {
            subject: self.name.to_owned(),
            mode: self.mode,
            program: text.clone(),
            preemptions: self.limits.preemptions,
            seed: self.limits.seed,
            execution: self.failure.execution,
        };
        let names = table::names(roles);
        let traced = Some(self.failure.execution);
        let job = self.job(self.program.clone(), traced);
        let again = explore(self.mode, &job, self.limits).failure;
        let (table, repeats) = match &again {
            Some(again) => (
                table::draw(&again.trace, &names, &|bits| self.subject.describe(bits)),
                again.violation == self.failure.violation
                    && again.execution == self.failure.execution,
            ),
            None => (String::new(), false),
        };
        let mut sentence = table::name(&self.failure.violation.sentence, &names);
        if !repeats {
            sentence += match self.mode {
                Mode::Threads => " (on real threads; it may not happen again)",
                _ => {
                    " (it did not happen again in the same execution: the program depends on something that is not the schedule)"
                }
            };
        }
        Counterexample {
            class: self.failure.violation.class,
            sentence,
            program: text,
            execution: self.failure.execution,
            token: token.to_string(),
            table,
        }
    }

    fn job(&self, program: Program, traced: Option<u64>) -> Arc<Job> {
        Job::new(self.subject.clone(), program, self.mode.order(), traced)
    }
}

/// Runs the execution of a token.
fn run_again(subject: &Arc<dyn AnySubject>, token: &Token) -> Result<Counterexample, String> {
    let program = Program::parse(&token.program, subject.roles()).ok_or_else(|| {
        format!(
            "the replay token is of another version: {} has no program `{}`",
            token.subject, token.program
        )
    })?;
    let limits = Limits {
        executions: token.execution,
        preemptions: token.preemptions,
        seed: token.seed,
    };
    let job = Job::new(subject.clone(), program.clone(), token.mode.order(), None);
    let explored = explore(token.mode, &job, limits);
    let failure = explored.failure.ok_or_else(|| {
        format!(
            "the program `{}` of {} did not fail in {} executions",
            token.program, token.subject, explored.executions
        )
    })?;
    let failing = Failing {
        subject,
        name: &token.subject,
        mode: token.mode,
        program,
        limits,
        failure,
    };
    Ok(failing.counterexample())
}
