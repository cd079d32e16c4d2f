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

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reveille::backend::{Loom, LoomWord, Native, Observed};
use serde::{Deserialize, Serialize};

use crate::engine::{self, Explored, Failure, Job, Limits, Traced, quiet};
use crate::execution::{NativeProbe, Probe, Unwatched};
use crate::judge::erased::{AnySubject, erase, erase_native};
use crate::program::Program;
use crate::report::table;
use crate::report::trace::Trace;
use crate::report::{Counterexample, Coverage, Report};
use crate::run::dispatch::{BatchResult, Event, Thread, Work};
use crate::run::token::Token;
use crate::subject::plan::{Engine, Mode, Plan, Profile};
use crate::subject::validate::validate;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Subject};

/// A subject that can be run by name, under every engine.
pub(crate) trait Entry: Send + Sync {
    /// Prepares the programs of a plan, or some of them.
    fn prepare(&self, name: &str, mode: Mode, plan: &Plan, selection: &Selection) -> Box<dyn Work>;

    /// Returns `true` if this text is a program of the subject.
    fn has_program(&self, text: &str) -> bool {
        let _ = text;
        false
    }

    /// Returns `true` if programs of the subject can have this many participants.
    fn takes(&self, participants: usize) -> bool {
        let _ = participants;
        true
    }

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
    fn prepare(&self, name: &str, mode: Mode, plan: &Plan, selection: &Selection) -> Box<dyn Work> {
        Box::new(Programs::of(&self.0, name, mode, plan, selection))
    }

    fn has_program(&self, text: &str) -> bool {
        let participants = text.split('/').count();
        let subject = over_backend(&self.0, Mode::Steps, participants);
        Program::parse(text, subject.roles()).is_some()
    }

    fn takes(&self, participants: usize) -> bool {
        self.0.on::<Native>().roles(participants).len() == participants
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
    let everything = Selection::default();
    run_programs(mode, &|| {
        Programs::of(subject, name, mode, plan, &everything)
    })
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
    let selection = Selection {
        each_class: true,
        ..Selection::default()
    };
    run_programs(mode, &|| {
        Programs::of(subject, name, mode, plan, &selection)
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
    if subject.is_native() {
        return erase_native(subject.on::<Native>(), participants);
    }
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
    if job.is_native() && matches!(mode.engine(), Engine::Sequential | Engine::Fibers) {
        let (mut explored, sections) = NativeProbe::during(|| explore_unhooked(mode, job, limits));
        explored.observed = Some(sections);
        return explored;
    }
    explore_unhooked(mode, job, limits)
}

fn explore_unhooked(mode: Mode, job: &Arc<Job>, limits: Limits) -> Explored {
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

/// Which programs of a plan are run, and how far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The only program that is run, as text, in place of those of the plan.
    pub(crate) program: Option<String>,
    /// The part of the programs that is run.
    pub(crate) shard: Shard,
    /// Whether programs are run after one that has failed, to report the smallest for
    /// each class of failure.
    pub(crate) each_class: bool,
}

/// A part of the programs of a run: every `of`th, beginning with number `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shard {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Default for Shard {
    /// The only part.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl Shard {
    /// Returns `true` if the program of this place belongs to the part.
    pub(crate) fn has(self, place: usize) -> bool {
        place % self.of == self.index
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
    shard: Shard,
    /// Whether the sections are those of the native lock.
    native: bool,
    /// Whether the programs are not those of the plan, but one that was asked for.
    chosen: bool,
}

impl Programs {
    fn of<F: GenericSubject>(
        subject: &F,
        name: &str,
        mode: Mode,
        plan: &Plan,
        selection: &Selection,
    ) -> Self {
        let participants = match &selection.program {
            Some(program) => program.split('/').count(),
            None => plan.bound.participants,
        };
        let native = subject.is_native();
        let subject = over_backend(subject, mode, participants);
        let mut programs = match (&selection.program, plan.drawn) {
            (Some(program), _) => Program::parse(program, subject.roles())
                .into_iter()
                .collect(),
            (None, None) => Program::enumerate(&*subject, plan.bound),
            (None, Some(number)) => draw(&*subject, plan, number),
        };
        let mut place = 0..;
        programs.retain(|_| place.next().is_some_and(|place| selection.shard.has(place)));
        Self {
            told: selection.each_class.then(Mutex::default),
            subject,
            name: name.to_owned(),
            mode,
            plan: *plan,
            programs,
            shard: selection.shard,
            native,
            chosen: selection.program.is_some(),
        }
    }

    /// Returns the place of a program among those of all shards.
    fn place(&self, index: usize) -> u64 {
        (index * self.shard.of + self.shard.index) as u64
    }
}

impl Work for Programs {
    fn empty_report(&self) -> Report {
        Report {
            subject: self.name.clone(),
            engine: self.mode.engine().name().to_owned(),
            mode: self.mode.name().to_owned(),
            verdict: self.mode.best(),
            bound: match self.chosen {
                true => self.plan.text_of(&format!("the program {}", self.text(0))),
                false => self.plan.text(),
            },
            programs: 0,
            executions: 0,
            observed: (self.native && self.mode.engine() == Engine::Fibers).then_some(0),
            coverage: Vec::new(),
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
        let limits = limits(&self.plan, self.place(index));
        let program = self.programs[index].clone();
        let job = Job::new(subject.clone(), program.clone(), mode.order(), Traced::None);
        let named = || format!("{}, {}: `{}`", self.name, mode.name(), self.text(index));
        let explored = quiet::naming(&named, || explore(*mode, &job, limits));
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
            observed: explored.observed.unwrap_or(0),
            failures: failure.into_iter().collect(),
            ..BatchResult::default()
        }
    }

    fn each_class(&self) -> bool {
        self.told.is_some()
    }

    fn coverage(&self, programs: usize) -> Vec<Coverage> {
        let roles = self.subject.roles();
        let mut counts = BTreeMap::new();
        for program in &self.programs[..programs] {
            let lines = program.participants.iter().zip(roles);
            let steps: BTreeSet<_> = lines
                .flat_map(|(line, role)| line.iter().map(|step| (role.ops[step.op].name, *step)))
                .map(|(operation, step)| (operation, step.polling))
                .collect();
            for (operation, polling) in steps {
                *counts.entry((operation, polling.name())).or_insert(0) += 1;
            }
        }
        let counts = counts.into_iter();
        counts
            .map(|((operation, polling), programs)| Coverage {
                operation: operation.to_owned(),
                polling: polling.to_owned(),
                programs,
            })
            .collect()
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
        let traced = match self.mode {
            Mode::Threads => Traced::Each,
            _ => Traced::None,
        };
        let job = self.job(program.clone(), traced);
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
        let traced = match self.mode {
            Mode::Threads => Traced::Each,
            _ => Traced::One(self.failure.execution),
        };
        let job = self.job(self.program.clone(), traced);
        let mut again = explore(self.mode, &job, self.limits).failure;
        if again.is_none() && !self.failure.trace.is_empty() {
            again = Some(self.failure.clone());
        }
        let class = self.failure.violation.class;
        let (trace, repeats) = match &again {
            Some(again) => (
                Trace::new(&again.trace, &names, class, &|bits| {
                    self.subject.describe(bits)
                }),
                again.violation == self.failure.violation
                    && again.execution == self.failure.execution,
            ),
            None => (Trace::default(), false),
        };
        let mut sentence = table::name(&self.failure.violation.sentence, &names);
        if self.mode == Mode::Threads {
            sentence += " (on real threads; it may not happen again)";
        } else if !repeats {
            sentence += " (it did not happen again in the same execution: the program depends on something that is not the schedule)";
        }
        Counterexample {
            class,
            sentence,
            program: text,
            execution: self.failure.execution,
            token: token.to_string(),
            table: table::draw(&trace),
            trace,
        }
    }

    fn job(&self, program: Program, traced: Traced) -> Arc<Job> {
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
    let job = Job::new(
        subject.clone(),
        program.clone(),
        token.mode.order(),
        Traced::None,
    );
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
