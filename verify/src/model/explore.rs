//! The exploration of a model: which executions are run, and on which thread.
//!
//! ```text
//!   parts that are ready ──the first few, a bit of each──▶ on several threads
//!        ▲                                                      │ in order
//!        └─────────────── those that go on, split ◀─────────────┘
//! ```
//!
//! A *part* is a part of the search: the executions in which tasks are dropped at given
//! suspensions, a number of draws, or what a search was [split](Search::split) into.
//! Parts are run in *rounds*. Which parts a round has, how much of each it runs and in
//! which order the results are put together depends on the model alone, and not on the
//! number of threads or on which is faster. So the counts and the failure are the same on
//! any machine.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::quiet;
use crate::engine::search::{Search, Wakers};
use crate::model::handle::Sometimes;
use crate::model::report::{Failure, Kind, ModelReport, token};
use crate::model::set_up::{Config, Model};
use crate::model::stall::{Progress, Track, lock};
use crate::model::world::{self, Ended, Memory, SearchOf, world};
use crate::subject::verdict::Verdict;

/// The closure of a model.
pub(crate) type SetUp = dyn Fn(&Model) + Send + Sync;

/// How many executions of a model are run by default.
const MOST_EXECUTIONS: u64 = 1_000_000;

/// How many steps are run in the search for the same failure with fewer preemptions.
const MOST_SHRINKING: usize = 1_000_000;

/// How a search is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    /// The most executions of a part in a round.
    pub(crate) executions: u64,
    /// The most parts in a round.
    pub(crate) parts: usize,
    /// The threads. If it is `None`, it is set by the model and the machine.
    pub(crate) threads: Option<usize>,
}

impl Division {
    pub(crate) const DEFAULT: Self = Self {
        executions: 500,
        parts: 64,
        threads: None,
    };
}

/// What runs executions on one thread.
struct Runner<'a> {
    set_up: &'a SetUp,
    progress: &'a Progress,
    track: Arc<Track>,
    config: Config,
    marks: Vec<(String, Sometimes)>,
    memory: Memory,
    /// The tasks that can be cancelled.
    cancellable: Vec<usize>,
}

/// What came of running a part.
struct Outcome {
    /// The part as it goes on, if something is left.
    search: Option<Search>,
    counts: ModelReport,
    /// For each task that can be cancelled, the greatest number of its suspensions.
    suspensions: Vec<usize>,
    /// A failure, and the choices that lead to it.
    failure: Option<(Failure, Vec<u8>)>,
}

impl<'a> Runner<'a> {
    fn new(set_up: &'a SetUp, progress: &'a Progress) -> Self {
        Self {
            set_up,
            progress,
            track: progress.track(),
            config: Config::default(),
            marks: Vec::new(),
            memory: Memory::default(),
            cancellable: Vec::new(),
        }
    }

    /// Runs one execution, in which tasks are cancelled as planned.
    fn run(
        &mut self,
        plan: &[usize],
        traced: bool,
        search: impl FnOnce(&Config) -> SearchOf,
    ) -> (Ended, SearchOf) {
        let model = Model::new(std::mem::take(&mut self.marks), plan);
        let trace = self.track.begin(plan);
        let set_up = || {
            (self.set_up)(&model);
            let set = model.config();
            if set.spurious > 0 {
                world(|world| world.add_spurious(set.spurious));
            }
            world(|world| world.every_order(set.every_order));
            model.take_checks()
        };
        let (ended, search) = world::execute(
            traced.then_some(trace),
            &mut self.memory,
            set_up,
            || search(&model.config()),
            &self.track,
        );
        self.track.end();
        self.config = model.config();
        (self.marks, self.cancellable) = model.into_marks();
        (ended, search)
    }

    /// Runs executions of a part, until `goes_on` returns `false` or none is left.
    fn run_part(&mut self, part: &Part, most: u64, goes_on: impl Fn() -> bool) -> Outcome {
        let mut outcome = Outcome {
            search: None,
            counts: ModelReport::new(),
            suspensions: Vec::new(),
            failure: None,
        };
        let mut search = lock(&part.search).take();
        let first = search.is_none();
        let repeated = search.as_ref().map_or(0, Search::repeated);
        while goes_on() {
            let (ended, used) = self.run(&part.drops, false, |config| {
                SearchOf::Search(search.take().unwrap_or_else(|| new_search(config, 0)))
            });
            outcome.counts.count(ended.seen);
            for (number, &task) in self.cancellable.iter().enumerate() {
                let known = &mut outcome.suspensions;
                known.resize(known.len().max(number + 1), 0);
                known[number] = known[number].max(ended.suspensions[task]);
            }
            if let Some(failure) = ended.failure {
                outcome.failure = Some((failure, ended.choices));
                return outcome;
            }
            let SearchOf::Search(mut used) = used else {
                unreachable!("it was one");
            };
            used.end();
            if let Some(step) = used.strayed() {
                let failure = self.strayed(step, &ended.choices);
                outcome.failure = Some((failure, Vec::new()));
                return outcome;
            }
            self.memory.choices = ended.choices;
            outcome.counts.repeated = used.repeated() - repeated;
            if !used.begin() || self.progress.count() {
                break;
            }
            // The first execution of a model tells how many there may be.
            let first_part = self.config.first_part();
            let most = if first { most.min(first_part) } else { most };
            if outcome.counts.executions >= most {
                outcome.search = Some(used);
                break;
            }
            search = Some(used);
        }
        outcome
    }

    /// Returns the failure of code that does not do the same in the same order.
    fn strayed(&self, step: usize, choices: &[u8]) -> Failure {
        let task = choices.get(step).map(|&choice| usize::from(choice));
        let task = task.map_or_else(String::new, |task| {
            format!(", of {},", self.track.name_of(task))
        });
        Failure::new(
            Kind::NonDeterminism,
            format!(
                "step {}{task} was not the same when it was run again: the code depends on \
                 something that is not the order of steps, such as the time of the system, an \
                 address, a random number, or what an earlier execution left in a static",
                step + 1
            ),
        )
    }

    /// Searches for the same failure with fewer preemptions, and runs the failing
    /// execution once more for the table.
    fn tell(&mut self, plan: &[usize], failure: Failure, choices: Vec<u8>) -> Failure {
        // What is left over is another thing in the next execution.
        if matches!(failure.kind, Kind::NonDeterminism | Kind::LeftOver) {
            return failure;
        }
        let mut choices = choices;
        let mut left = MOST_SHRINKING;
        if self.config.sampled.is_none() {
            let fewer = |preemptions| self.fewer(plan, failure.kind, preemptions, &mut left);
            choices = (0..3).find_map(fewer).unwrap_or(choices);
        }
        let (again, _) = self.run(plan, true, |_| SearchOf::Recorded(choices.clone()));
        let mut told = again.failure.unwrap_or_else(|| Failure {
            sentence: format!(
                "{} (it did not happen again in the same execution: the code depends on \
                 something that is not the order of steps)",
                failure.sentence
            ),
            ..failure
        });
        told.token = token(plan, &choices);
        told
    }

    fn fewer(
        &mut self,
        plan: &[usize],
        kind: Kind,
        preemptions: usize,
        left: &mut usize,
    ) -> Option<Vec<u8>> {
        let mut search = Search::every(Some(preemptions));
        while *left > 0 && search.begin() {
            let (ended, used) = self.run(plan, false, |_| SearchOf::Search(search));
            *left = left.saturating_sub(ended.choices.len() + 1);
            if ended.failure.is_some_and(|failure| failure.kind == kind) {
                return Some(ended.choices);
            }
            let SearchOf::Search(used) = used else {
                unreachable!("it was one");
            };
            search = used;
        }
        None
    }
}

/// Returns the search of a model, whose first execution has begun. Draws begin with this
/// one.
fn new_search(config: &Config, drawn: u64) -> Search {
    let mut search = match *config {
        Config {
            sampled: Some(number),
            ..
        } if drawn < half(number) => Search::random(drawn),
        Config {
            sampled: Some(_), ..
        } => Search::pct(drawn, 3),
        Config {
            preemptions: None,
            every_order: false,
            ..
        } => Search::optimal(Wakers::Anywhere),
        Config { preemptions, .. } => Search::every(preemptions),
    };
    search.begin();
    search
}

/// The number of draws in which each choice is drawn. The rest is drawn by priorities.
fn half(draws: u64) -> u64 {
    draws.div_ceil(2)
}

impl Config {
    /// Returns the most executions of the first part of a plan.
    fn first_part(&self) -> u64 {
        let drawn = self.sampled.map_or(u64::MAX, half);
        drawn.min(self.executions.unwrap_or(u64::MAX))
    }
}

/// A part of the search.
struct Part {
    /// The number of its plan, and where that drops tasks.
    plan: usize,
    drops: Arc<[usize]>,
    /// The search. An execution has begun. The first part of a plan has none yet.
    search: Mutex<Option<Search>>,
    /// How many executions it draws, if executions are drawn and this is not the first
    /// part.
    draws: Option<u64>,
}

/// The executions in which tasks are dropped at given suspensions.
struct Plan {
    /// For each task that can be cancelled, the suspension at which it is dropped, or 0.
    drops: Arc<[usize]>,
    suspensions: Vec<usize>,
    /// How many of its parts have not ended.
    parts: usize,
}

/// The exploration of a model.
pub(crate) struct Exploration<'a> {
    leader: Runner<'a>,
    division: Division,
    report: ModelReport,
    plans: Vec<Plan>,
    /// The parts that have not ended. The last one is the next.
    ready: VecDeque<Part>,
}

impl<'a> Exploration<'a> {
    pub(crate) fn new(set_up: &'a SetUp, progress: &'a Progress, division: Division) -> Self {
        Self {
            leader: Runner::new(set_up, progress),
            division,
            report: ModelReport::new(),
            plans: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Runs all executions.
    pub(crate) fn explore(mut self) -> ModelReport {
        quiet::quietly(|| self.rounds());
        let config = self.leader.config;
        let exhausted = self.ready.is_empty();
        self.report.verdict = match config.sampled {
            Some(_) => Verdict::Sampled,
            None if exhausted && config.preemptions.is_none() => Verdict::Complete,
            None => Verdict::Bounded,
        };
        self.report.bound = match (config.sampled, config.preemptions) {
            (Some(number), _) => format!("{number} drawn"),
            (None, Some(1)) => "1 preemption at most".to_owned(),
            (None, Some(most)) => format!("{most} preemptions at most"),
            (None, None) if !exhausted => "cut".to_owned(),
            (None, None) => "every order".to_owned(),
        };
        match (self.report.failure.is_some(), config.sampled) {
            (true, None) => {
                self.report.verdict = Verdict::Bounded;
                "up to the failure".clone_into(&mut self.report.bound);
            }
            (true, Some(_)) => {}
            (false, _) => self.report.failure = self.expectations(),
        }
        self.report
    }

    /// Runs one execution again.
    pub(crate) fn replay(mut self, plan: &[usize], choices: Vec<u8>) -> ModelReport {
        let recorded = |_: &Config| SearchOf::Recorded(choices);
        let (ended, _) = quiet::quietly(|| self.leader.run(plan, true, recorded));
        let mut report = ModelReport {
            verdict: Verdict::Bounded,
            bound: "one execution, run again".to_owned(),
            failure: ended.failure,
            ..ModelReport::new()
        };
        report.count(ended.seen);
        report
    }

    /// Returns a failure if the model as a whole did not do what it was expected to.
    fn expectations(&self) -> Option<Failure> {
        let config = self.leader.config;
        let unreached = |(_, mark): &&(String, Sometimes)| !mark.0.load(Ordering::Relaxed);
        if let Some((what, _)) = self.leader.marks.iter().find(unreached) {
            return Some(Failure::new(
                Kind::NeverReached,
                format!("no execution reached \"{what}\": what depends on it was not tested"),
            ));
        }
        (config.complete && self.report.verdict != Verdict::Complete).then(|| {
            Failure::new(
                Kind::Incomplete,
                format!(
                    "the verdict is {} ({}), and not complete as expected: make the model \
                     smaller, or let it run further by `at_most`",
                    self.report.verdict, self.report.bound
                ),
            )
        })
    }

    fn rounds(&mut self) {
        // The first plan drops no task.
        self.add_plan(Arc::new([]));
        loop {
            let limit = self.leader.config.executions.unwrap_or(MOST_EXECUTIONS);
            let left = limit.saturating_sub(self.report.executions);
            let given_up = self.leader.progress.is_given_up();
            if self.ready.is_empty() || left == 0 || given_up {
                return;
            }
            let Division {
                executions, parts, ..
            } = self.division;
            // Close to the limit, parts are run one by one, so that the limit cuts the
            // same ones on any machine.
            let far = left / parts as u64 >= executions;
            let at = self.ready.len().saturating_sub(if far { parts } else { 1 });
            let mut round: Vec<Part> = self.ready.split_off(at).into();
            round.reverse();
            let outcomes = self.run_round(&round, executions.min(left));
            let mut searches = Vec::new();
            for (part, outcome) in round.iter().zip(outcomes) {
                match self.add(part, outcome) {
                    Ok(search) => searches.push(search),
                    Err(Failed) => return,
                }
            }
            for (part, search) in round.iter().zip(searches).rev() {
                self.go_on(part, search);
            }
        }
    }

    /// Runs parts on several threads. Returns the outcomes in order, up to that of the
    /// first part that fails.
    fn run_round(&mut self, round: &[Part], most: u64) -> Vec<Outcome> {
        let next = AtomicUsize::new(0);
        let failed = AtomicUsize::new(usize::MAX);
        let outcomes: Vec<Mutex<Option<Outcome>>> =
            round.iter().map(|_| Mutex::default()).collect();
        let work = |runner: &mut Runner<'_>| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = round.get(number) else {
                    return;
                };
                let goes_on = || failed.load(Ordering::Relaxed) > number;
                let most = part.draws.unwrap_or(most).min(most);
                let outcome = runner.run_part(part, most, goes_on);
                if outcome.failure.is_some() {
                    failed.fetch_min(number, Ordering::Relaxed);
                }
                *lock(&outcomes[number]) = Some(outcome);
            }
        };
        let threads = self.threads().min(round.len());
        if threads == 1 {
            work(&mut self.leader);
        } else {
            self.run_on(threads, work);
        }
        let first = failed.into_inner();
        let outcomes = outcomes.into_iter().take(first.saturating_add(1));
        let outcome = |outcome: Mutex<Option<Outcome>>| outcome.into_inner().ok().flatten();
        outcomes.map_while(outcome).collect()
    }

    /// Runs work on this thread and others.
    fn run_on(&mut self, threads: usize, work: impl Fn(&mut Runner<'_>) + Sync) {
        let (set_up, progress) = (self.leader.set_up, self.leader.progress);
        let earlier = self.leader.memory.earlier.clone();
        let others = std::thread::scope(|scope| {
            let run = || {
                let mut runner = Runner::new(set_up, progress);
                runner.memory.earlier.clone_from(&earlier);
                quiet::quietly(|| work(&mut runner));
                (runner.marks, runner.memory.earlier)
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
            work(&mut self.leader);
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(join).collect::<Vec<_>>()
        });
        for (marks, earlier) in others {
            for (name, mark) in marks {
                let reached = mark.0.load(Ordering::Relaxed);
                match self.leader.marks.iter().find(|(known, _)| *known == name) {
                    Some((_, known)) => drop(known.0.fetch_or(reached, Ordering::Relaxed)),
                    None => self.leader.marks.push((name, mark)),
                }
            }
            self.leader.memory.earlier.extend(earlier);
        }
        self.leader.memory.earlier.sort_unstable();
        self.leader.memory.earlier.dedup();
    }

    fn threads(&self) -> usize {
        let of_machine = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = self.division.threads.or(self.leader.config.threads);
        threads.unwrap_or_else(of_machine).max(1)
    }

    /// Adds the outcome of a part. Returns the part as it goes on.
    fn add(&mut self, part: &Part, outcome: Outcome) -> Result<Option<Search>, Failed> {
        self.report.add(&outcome.counts);
        if let Some((failure, choices)) = outcome.failure {
            self.report.failure = Some(self.leader.tell(&part.drops, failure, choices));
            return Err(Failed);
        }
        let most = &mut self.plans[part.plan].suspensions;
        most.resize(most.len().max(outcome.suspensions.len()), 0);
        for (most, suspensions) in most.iter_mut().zip(outcome.suspensions) {
            *most = suspensions.max(*most);
        }
        Ok(outcome.search)
    }

    /// Queues what is left of a part. If it was the last one of its plan, queues the
    /// plans after that.
    fn go_on(&mut self, part: &Part, search: Option<Search>) {
        match (self.leader.config.sampled, search) {
            (Some(draws), _) if part.draws.is_none() => self.queue_draws(part.plan, draws),
            (Some(_), _) | (None, None) => {}
            (None, Some(mut search)) => {
                if let Some(rest) = search.split() {
                    self.queue(part.plan, rest, None);
                }
                self.queue(part.plan, search, None);
            }
        }
        self.plans[part.plan].parts -= 1;
        if self.plans[part.plan].parts == 0 {
            self.add_plans_after(part.plan);
        }
    }

    /// Queues the draws that follow those of the first part.
    fn queue_draws(&mut self, plan: usize, draws: u64) {
        let config = self.leader.config;
        let most = self.division.executions;
        let mut parts = Vec::new();
        let mut drawn = most.min(config.first_part());
        while drawn < draws {
            let end = if drawn < half(draws) {
                half(draws)
            } else {
                draws
            };
            let number = most.min(end - drawn);
            parts.push((new_search(&config, drawn), number));
            drawn += number;
        }
        for (search, number) in parts.into_iter().rev() {
            self.queue(plan, search, Some(number));
        }
    }

    fn queue(&mut self, plan: usize, search: Search, draws: Option<u64>) {
        self.plans[plan].parts += 1;
        self.ready.push_back(Part {
            plan,
            drops: self.plans[plan].drops.clone(),
            search: Mutex::new(Some(search)),
            draws,
        });
    }

    /// Adds the plans that drop one task more, which comes after those that are dropped
    /// already.
    fn add_plans_after(&mut self, plan: usize) {
        let Plan {
            drops, suspensions, ..
        } = &self.plans[plan];
        let (drops, suspensions) = (drops.clone(), suspensions.clone());
        for (number, &suspensions) in suspensions.iter().enumerate().skip(drops.len()) {
            for at in 1..=suspensions {
                let mut next = drops.to_vec();
                next.resize(number, 0);
                next.push(at);
                self.add_plan(next.into());
            }
        }
    }

    /// Adds a plan. It is run after those that were added before.
    fn add_plan(&mut self, drops: Arc<[usize]>) {
        self.ready.push_front(Part {
            plan: self.plans.len(),
            drops: drops.clone(),
            search: Mutex::default(),
            draws: None,
        });
        self.plans.push(Plan {
            drops,
            suspensions: Vec::new(),
            parts: 1,
        });
    }
}

/// The model has failed.
struct Failed;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use reveille::time::{Duration, sleep, timeout};
    use reveille::{Mutex as AsyncMutex, Notify, Semaphore};

    use super::*;

    fn explored(scene: fn(&Model), executions: u64, threads: usize) -> ModelReport {
        let division = Division {
            executions,
            parts: 5,
            threads: Some(threads),
        };
        let progress = Progress::default();
        Exploration::new(&scene, &progress, division).explore()
    }

    /// Two locks and a condition.
    fn locks(m: &Model) {
        let locks = Arc::new([AsyncMutex::new(0), AsyncMutex::new(0)]);
        let bell = Arc::new(Notify::new());
        for task in 0..2 {
            let (locks, bell) = (locks.clone(), bell.clone());
            m.spawn("task", async move {
                *locks[task].lock().await += 1;
                if task == 1 {
                    bell.notified().await;
                }
                *locks[1].lock().await += 1;
                bell.notify_one();
            });
        }
    }

    /// Time, and a task that is dropped.
    fn timeouts(m: &Model) {
        let permits = Arc::new(Semaphore::new(1));
        let other = permits.clone();
        m.spawn("slow", async move {
            let _permit = other.acquire().await.unwrap();
            sleep(Duration::from_secs(1)).await;
        });
        m.spawn_cancellable("first", async move {
            drop(timeout(Duration::from_secs(1), permits.acquire()).await);
        });
    }

    fn preemptions(m: &Model) {
        m.preemptions(3);
        locks(m);
    }

    fn draws(m: &Model) {
        m.sampled(103);
        locks(m);
    }

    fn limit(m: &Model) {
        m.at_most(17);
        locks(m);
    }

    /// Returns what is the same for any number of threads.
    fn counts(report: &ModelReport) -> impl PartialEq + std::fmt::Debug + use<> {
        let failure = report.failure.as_ref();
        (
            (report.verdict, report.executions, report.repeated),
            (report.waited, report.time_passed, report.cancelled),
            (report.timed_out, report.refused),
            failure.map(|failure| (failure.kind, failure.token.clone())),
        )
    }

    #[test]
    fn threads_do_not_change_what_is_found() {
        for scene in [locks, timeouts, preemptions, draws, limit, lost, deadlock] {
            for executions in [2, 20] {
                let one = explored(scene, executions, 1);
                let more = explored(scene, executions, 3);
                assert_eq!(counts(&more), counts(&one), "{more}, {one}");
            }
        }
    }

    #[test]
    fn dividing_a_search_changes_nothing() {
        for scene in [locks, timeouts, preemptions] {
            let whole = explored(scene, 1 << 40, 1);
            assert!(whole.executions > 20, "{whole}");
            for executions in [1, 2, 50] {
                let parts = explored(scene, executions, 2);
                assert_eq!(counts(&parts), counts(&whole), "{executions}: {parts}");
            }
        }
    }

    /// Fails when the second task is dropped.
    fn lost(m: &Model) {
        let permits = Arc::new(Semaphore::new(1));
        for name in ["first", "second"] {
            let permits = permits.clone();
            m.spawn_cancellable(name, async move {
                permits.acquire().await.unwrap().forget();
                sleep(Duration::from_secs(1)).await;
                permits.add_permits(1);
            });
        }
    }

    /// Fails late, after some preemptions.
    fn deadlock(m: &Model) {
        m.preemptions(3);
        let locks = Arc::new([AsyncMutex::new(0), AsyncMutex::new(0)]);
        for task in 0..2 {
            let locks = locks.clone();
            m.spawn("deadlocks", async move {
                let _first = locks[task].lock().await;
                *locks[1 - task].lock().await += 1;
            });
        }
    }

    #[test]
    fn marks_that_any_thread_reaches_are_reached() {
        static REACHED: AtomicU64 = AtomicU64::new(0);
        let report = explored(
            |m| {
                let mark = m.sometimes("reached");
                m.at_end(move || {
                    if REACHED.fetch_add(1, Ordering::Relaxed) == 40 {
                        mark.reached();
                    }
                });
                timeouts(m);
            },
            10,
            3,
        );
        assert!(report.failure.is_none(), "{:?}", report.failure);
        assert!(REACHED.load(Ordering::Relaxed) > 40);
    }
}
