//! Running an engine over all programs of a subject, on all cores.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use reveille::protocol::{Loom, LoomWord, Native, Observed, Shuttle};

use crate::engine::{self, Explored, Failure, Job, Limits};
use crate::erased::{AnySubject, erase};
use crate::execution::{Probe, Unwatched};
use crate::plan::{Mode, Plan, Profile};
use crate::program::Program;
use crate::subject::Family;
use crate::token::Token;
use crate::trace;
use crate::verdict::{Counterexample, Report, Verdict};

/// How far a run has come, for whoever watches.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// How many programs there are.
    pub(crate) total: AtomicU64,
    /// How many are done.
    pub(crate) programs: AtomicU64,
    /// How many executions that took.
    pub(crate) executions: AtomicU64,
}

/// Something that can be run by name, under every engine.
pub(crate) trait Entry: Send + Sync {
    /// Runs it.
    fn run(&self, name: &str, mode: Mode, plan: &Plan, watch: &Watch) -> Report;

    /// What a mode runs in a profile, if it has anything to say here.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan>;

    /// Runs one execution again, and answers how it failed.
    ///
    /// # Errors
    ///
    /// Why it could not be run, or that it did not fail.
    fn replay(&self, token: &Token) -> Result<Counterexample, String>;

    /// The operations of each role, by name.
    fn roles(&self) -> Vec<(String, Vec<String>)>;
}

/// A family of subjects as an entry.
#[derive(Debug)]
pub(crate) struct Of<F>(pub(crate) F);

impl<F: Family> Entry for Of<F> {
    fn run(&self, name: &str, mode: Mode, plan: &Plan, watch: &Watch) -> Report {
        run(&self.0, name, mode, plan, watch)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        self.0.plans(mode, profile)
    }

    fn replay(&self, token: &Token) -> Result<Counterexample, String> {
        replay(&self.0, token)
    }

    fn roles(&self) -> Vec<(String, Vec<String>)> {
        // They are the same over every backend.
        let subject = over_backend(&self.0, Mode::Steps, 2);
        let roles = subject.roles();
        let ops = roles
            .iter()
            .map(|role| role.ops.iter().map(|offer| offer.name.to_owned()).collect());
        engine::names(roles).into_iter().zip(ops).collect()
    }
}

/// Runs one mode over a family of subjects.
pub(crate) fn run<F: Family>(
    family: &F,
    name: &str,
    mode: Mode,
    plan: &Plan,
    watch: &Watch,
) -> Report {
    let subject = over_backend(family, mode, plan.bound.participants);
    run_all(&subject, name, mode, plan, watch)
}

/// Runs one execution of a family again.
pub(crate) fn replay<F: Family>(family: &F, token: &Token) -> Result<Counterexample, String> {
    let participants = token.program.split('/').count();
    run_again(&over_backend(family, token.mode, participants), token)
}

/// The subject that a mode runs: of the family, over the backend of the mode.
fn over_backend<F: Family>(family: &F, mode: Mode, participants: usize) -> Arc<dyn AnySubject> {
    match mode {
        Mode::Steps => erase(family.on::<Observed<Native, Probe>>(), participants),
        Mode::Sections => erase(family.on::<Observed<Loom, Probe>>(), participants),
        Mode::Accesses => erase(family.on::<Observed<LoomWord, Probe>>(), participants),
        Mode::Exhaustive | Mode::Random | Mode::Pct => {
            erase(family.on::<Observed<Shuttle, Probe>>(), participants)
        }
        Mode::Threads => erase(family.on::<Observed<Native, Unwatched>>(), participants),
    }
}

/// Explores one program by the engine of a mode.
fn explore(mode: Mode, job: &Arc<Job>, limits: Limits) -> Explored {
    use engine::{loom, sequential, shuttle, stress};
    match mode {
        Mode::Steps => sequential::explore(job, limits),
        Mode::Sections | Mode::Accesses => loom::explore(job, limits),
        Mode::Exhaustive => shuttle::explore(job, shuttle::Mode::Exhaustive, limits),
        Mode::Random => shuttle::explore(job, shuttle::Mode::Random, limits),
        Mode::Pct => shuttle::explore(job, shuttle::Mode::Pct(3), limits),
        Mode::Threads => stress::explore(job, limits),
    }
}

/// Runs one mode over all programs of a subject.
fn run_all(
    subject: &Arc<dyn AnySubject>,
    name: &str,
    mode: Mode,
    plan: &Plan,
    watch: &Watch,
) -> Report {
    let begun = Instant::now();
    let programs = match plan.drawn {
        None => Program::enumerate(&**subject, plan.bound),
        Some(number) => draw(&**subject, plan, number),
    };
    watch.total.store(programs.len() as u64, Ordering::Relaxed);
    let found = explore_all(subject, &programs, mode, plan, watch);

    let verdict = match (mode.best(), found.exhausted) {
        (Verdict::Sampled, _) => Verdict::Sampled,
        (_, true) => Verdict::Complete,
        (_, false) => Verdict::Bounded,
    };
    let failures = found
        .failure
        .map(|(index, limits, failure)| {
            let failing = Failing {
                subject,
                name,
                mode,
                program: programs[index].clone(),
                limits,
                failure,
            };
            failing.shrink(plan).tell()
        })
        .into_iter()
        .collect();
    Report {
        subject: name.to_owned(),
        engine: mode.engine().name().to_owned(),
        mode: mode.name().to_owned(),
        verdict,
        bound: plan.text(),
        programs: found.programs,
        executions: found.executions,
        failures,
        seconds: begun.elapsed(),
    }
}

/// What came of all programs.
struct Found {
    programs: u64,
    executions: u64,
    exhausted: bool,
    /// Of the first program that failed.
    failure: Option<(usize, Limits, Failure)>,
}

/// Explores programs side by side. After a failure only smaller ones are still
/// explored, so that the first is the one that is found.
fn explore_all(
    subject: &Arc<dyn AnySubject>,
    programs: &[Program],
    mode: Mode,
    plan: &Plan,
    watch: &Watch,
) -> Found {
    let order = mode.order();
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    let cut = AtomicU64::new(0);
    let failures = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= programs.len() || index > failed.load(Ordering::Relaxed) {
                return;
            }
            let limits = limits(plan, index as u64);
            let job = Job::new(subject.clone(), programs[index].clone(), order, None);
            let explored = explore(mode, &job, limits);
            watch.programs.fetch_add(1, Ordering::Relaxed);
            watch
                .executions
                .fetch_add(explored.executions, Ordering::Relaxed);
            match explored.failure {
                Some(failure) => {
                    failed.fetch_min(index, Ordering::Relaxed);
                    failures
                        .lock()
                        .unwrap_or_else(|poison| poison.into_inner())
                        .insert(index, (limits, failure));
                }
                None if !explored.exhausted => drop(cut.fetch_add(1, Ordering::Relaxed)),
                None => {}
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let failures = failures
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    let failure = failures
        .into_iter()
        .next()
        .map(|(index, (limits, failure))| (index, limits, failure));
    Found {
        programs: watch.programs.load(Ordering::Relaxed),
        executions: watch.executions.load(Ordering::Relaxed),
        exhausted: cut.into_inner() == 0 && failure.is_none(),
        failure,
    }
}

fn limits(plan: &Plan, seed: u64) -> Limits {
    Limits {
        executions: plan.executions,
        preemptions: plan.preemptions,
        seed,
    }
}

/// So many different programs, each of the bound's full length; always the same
/// ones.
fn draw(subject: &dyn AnySubject, plan: &Plan, number: u64) -> Vec<Program> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        // Marsaglia's xorshift: all that is asked of it is to be the same
        // everywhere.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let mut programs = std::collections::HashSet::new();
    let mut drawn = Vec::new();
    for _ in 0..number * 4 {
        if drawn.len() as u64 == number {
            break;
        }
        let program = Program::draw(subject, plan.bound, &mut draw);
        if !program.is_empty() && programs.insert(program.clone()) {
            drawn.push(program);
        }
    }
    drawn
}

/// A failing program, on its way to a counterexample.
struct Failing<'a> {
    subject: &'a Arc<dyn AnySubject>,
    name: &'a str,
    mode: Mode,
    program: Program,
    limits: Limits,
    failure: Failure,
}

impl Failing<'_> {
    /// The smallest program that fails, in whatever way: what went wrong is
    /// told best by it. Programs that were enumerated are the smallest already;
    /// of these, the fewest preemptions that fail in the same way.
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
        if self.mode == Mode::Sections {
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

    /// Runs the failing execution once more, traced, and tells of it.
    fn tell(self) -> Counterexample {
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
        let names = engine::names(roles);
        let traced = Some(self.failure.execution);
        let job = self.job(self.program.clone(), traced);
        let again = explore(self.mode, &job, self.limits).failure;
        let (table, repeats) = match &again {
            Some(again) => (
                engine::draw(&job, again),
                again.violation == self.failure.violation
                    && again.execution == self.failure.execution,
            ),
            None => (String::new(), false),
        };
        let mut sentence = trace::name(&self.failure.violation.sentence, &names);
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
    Ok(failing.tell())
}
