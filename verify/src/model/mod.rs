//! `model`: runs code that uses primitives, in an ordinary test.
//!
//! ```text
//!   model(set up) ──▶ an execution ──holds──▶ the next ──none is left──▶ verdict
//!                          │
//!                          └──fails──▶ fewer preemptions? ──▶ again, with a table ──▶ panic
//! ```

pub(crate) mod handle;
pub(crate) mod report;
pub(crate) mod stall;
pub(crate) mod world;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::engine::quiet;
use crate::engine::search::{Search, Wakers};
use crate::model::handle::{Handle, Sometimes};
use crate::model::report::{Failure, Kind, ModelReport};
use crate::model::stall::{Progress, Stall};
use crate::model::world::{Ended, Role, SearchOf, task_job, thread_job, world};
use crate::subject::verdict::Verdict;

/// Runs a test of async code in every order in which its tasks can be run.
///
/// `set_up` is called for each execution. It creates what is tested, and
/// [spawns](Model::spawn) the tasks that use it. The tasks are run in every order of
/// the sections of which primitives consist, except that of equivalent orders only one
/// is run. Time passes at every moment at which it can. The code under test is not
/// changed: it uses `reveille::Mutex` and the other primitives as in production.
///
/// # Panics
///
/// Panics if an execution fails. An execution fails if a task never ends, panics, or
/// leaves a waker behind. A model also fails if what it
/// [expects](Model::expect_complete) does not hold. The message names the tasks that
/// wait and what each waits for, shows the execution as a table, and has the line that
/// runs exactly this execution again.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use reveille::Mutex;
/// use reveille_verify::model;
///
/// model(|m| {
///     let counter = Arc::new(Mutex::new(0));
///     for name in ["alice", "bob"] {
///         let counter = counter.clone();
///         m.spawn(name, async move { *counter.lock().await += 1 });
///     }
///     m.at_end(move || assert_eq!(*counter.try_lock().unwrap(), 2));
///     m.expect_complete();
/// });
/// ```
///
/// See [the documentation of the crate](crate#code-that-uses-primitives) for more.
#[track_caller]
pub fn model(set_up: impl Fn(&Model)) {
    let report = explore_model(set_up);
    let name = std::thread::current().name().map(str::to_owned);
    let name = name.filter(|name| name != "main");
    match report.failure.clone() {
        None => println!("{}: {report}", name.as_deref().unwrap_or("model")),
        Some(failure) => {
            let again = match (&*failure.token, name) {
                ("", _) => String::new(),
                (token, Some(name)) => {
                    format!("\nagain: REVEILLE_REPLAY='{token}' cargo test {name}")
                }
                (token, None) => format!("\nagain: REVEILLE_REPLAY='{token}'"),
            };
            panic!("{failure}{again}\n{report}");
        }
    }
}

/// Explores a model as [`model`] does, and returns what it found instead of panicking.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use reveille::Notify;
/// use reveille_verify::{Kind, explore_model, replay_model};
///
/// let forgotten = |m: &reveille_verify::Model| {
///     let notify = Arc::new(Notify::new());
///     m.spawn("alice", async move { notify.notified().await });
/// };
/// let failure = explore_model(forgotten).failure.unwrap();
/// assert_eq!(failure.kind, Kind::LostWakeUp);
/// let again = replay_model(&failure.token, forgotten).failure.unwrap();
/// assert_eq!(again.sentence, failure.sentence);
/// ```
pub fn explore_model(set_up: impl Fn(&Model)) -> ModelReport {
    let token = std::env::var("REVEILLE_REPLAY").ok();
    run(token.as_deref(), &set_up)
}

/// Runs one execution again, from the token of its [`Failure`].
///
/// # Examples
///
/// See [`explore_model`].
pub fn replay_model(token: &str, set_up: impl Fn(&Model)) -> ModelReport {
    run(Some(token), &set_up)
}

fn run(token: Option<&str>, set_up: &dyn Fn(&Model)) -> ModelReport {
    let begun = Instant::now();
    let exploration = Exploration::new(set_up);
    let _watched = Stall::watch(exploration.progress.clone());
    let mut report = quiet::quietly(|| match token {
        Some(token) => exploration.replay(token),
        None => exploration.explore(),
    });
    report.time = begun.elapsed();
    report
}

/// The set-up of an execution, and the bounds of the model.
pub struct Model {
    config: Cell<Config>,
    marks: RefCell<Vec<(String, Sometimes)>>,
    known_marks: Vec<(String, Sometimes)>,
    at_end: RefCell<Vec<Box<dyn FnOnce()>>>,
    /// The tasks that can be cancelled in this execution.
    cancellable: RefCell<Vec<usize>>,
    plan: Vec<usize>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Config {
    preemptions: Option<usize>,
    sampled: Option<u64>,
    every_order: bool,
    spurious: usize,
    complete: bool,
    executions: Option<u64>,
}

impl Model {
    /// Spawns a task. It must end in every execution.
    pub fn spawn(&self, name: &str, future: impl Future<Output = ()> + 'static) {
        self.task(name, Role::Task, future);
    }

    /// Spawns a task that may wait for ever, such as one that serves the others.
    pub fn spawn_background(&self, name: &str, future: impl Future<Output = ()> + 'static) {
        self.task(name, Role::Background, future);
    }

    /// Spawns a task that is also dropped at each of its suspension points: when it is
    /// pending, before any further step, and after it was woken, before it is polled
    /// again.
    pub fn spawn_cancellable(&self, name: &str, future: impl Future<Output = ()> + 'static) {
        let task = self.task(name, Role::Task, future);
        let mut cancellable = self.cancellable.borrow_mut();
        let at = self.plan.get(cancellable.len()).copied();
        world(|world| world.cancel_at(task, at.filter(|&at| at > 0)));
        cancellable.push(task);
    }

    fn task(&self, name: &str, role: Role, future: impl Future<Output = ()> + 'static) -> usize {
        world(|world| {
            let job = task_job(world.processes(), Box::pin(future));
            world.add(name.to_owned(), role, Some(job))
        })
    }

    /// Starts a thread. It may block on primitives, by `blocking_lock` and the like or
    /// by `block_on`. It must end in every execution.
    pub fn thread(&self, name: &str, body: impl FnOnce() + 'static) {
        world(|world| {
            let job = thread_job(world.processes(), Box::new(body));
            world.add(name.to_owned(), Role::Thread, Some(job));
        });
    }

    /// Runs a check at the end of each execution, when all tasks have ended. The check
    /// asserts what must hold then.
    pub fn at_end(&self, check: impl FnOnce() + 'static) {
        self.at_end.borrow_mut().push(Box::new(check));
    }

    /// Returns an [`Executor`](reveille_executor::Executor), with which tasks spawn
    /// other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { _private: () }
    }

    /// Sets the name of a primitive in reports. `thing` may also be a value that
    /// contains the primitive.
    pub fn name<T: ?Sized>(&self, thing: &T, name: &str) {
        let start = std::ptr::from_ref(thing).addr();
        world(|world| world.name(start..start + std::mem::size_of_val(thing), name));
    }

    /// Declares a state that at least one execution must reach. If none does, the model
    /// fails and names the state: a model that never reaches what it is written for
    /// shows nothing.
    pub fn sometimes(&self, what: &str) -> Sometimes {
        let known = self.known_marks.iter().find(|(name, _)| name == what);
        let mark = match known {
            Some((_, mark)) => mark.clone(),
            None => Sometimes(Arc::new(AtomicBool::new(false))),
        };
        self.marks
            .borrow_mut()
            .push((what.to_owned(), mark.clone()));
        mark
    }

    /// Wakes each task `times` more times for no reason, at every possible moment. A
    /// wake is a hint, so a task must tolerate this.
    pub fn spurious(&self, times: usize) {
        self.configure(|config| config.spurious = times);
    }

    /// Draws this many executions instead of exploring all: half of them with each
    /// choice at random, half by priorities (PCT). This is for models that are too
    /// large. The verdict is `sampled`.
    pub fn sampled(&self, executions: u64) {
        self.configure(|config| config.sampled = Some(executions));
    }

    /// Leaves out executions with more preemptions than `most`. A preemption is a
    /// change to another task while the one that runs could go on. The verdict is
    /// `bounded`.
    pub fn preemptions(&self, most: usize) {
        self.configure(|config| config.preemptions = Some(most));
    }

    /// Runs every order of steps, also orders that differ only by an exchange of steps
    /// on different primitives. This is for code whose tasks share something that is no
    /// primitive of `reveille`: atomics, cells, a `std::sync::Mutex`. The model does
    /// not see these, and otherwise assumes that exchanging two steps that use them
    /// makes no difference.
    pub fn every_order(&self) {
        self.configure(|config| config.every_order = true);
    }

    /// Ends after this many executions. The default is 1,000,000. If there are more,
    /// the verdict is `bounded`.
    pub fn at_most(&self, executions: u64) {
        self.configure(|config| config.executions = Some(executions));
    }

    /// Fails the model if its verdict is not `complete`.
    pub fn expect_complete(&self) {
        self.configure(|config| config.complete = true);
    }

    fn configure(&self, set: impl FnOnce(&mut Config)) {
        let mut config = self.config.get();
        set(&mut config);
        self.config.set(config);
    }
}

/// How many executions of a model are run by default.
const MOST_EXECUTIONS: u64 = 1_000_000;

/// How many executions are run in the search for the same failure with fewer
/// preemptions.
const MOST_SHRINKING: u64 = 20_000;

/// The exploration of a model.
struct Exploration<'a> {
    set_up: &'a dyn Fn(&Model),
    config: Config,
    marks: Vec<(String, Sometimes)>,
    report: ModelReport,
    progress: Arc<Progress>,
    choices: Vec<u8>,
    /// The tasks that can be cancelled.
    cancellable: Vec<usize>,
}

impl<'a> Exploration<'a> {
    fn new(set_up: &'a dyn Fn(&Model)) -> Self {
        Self {
            set_up,
            config: Config::default(),
            marks: Vec::new(),
            report: ModelReport {
                verdict: Verdict::Complete,
                bound: String::new(),
                executions: 0,
                repeated: 0,
                waited: 0,
                time_passed: 0,
                cancelled: 0,
                time: std::time::Duration::ZERO,
                failure: None,
            },
            progress: Arc::default(),
            choices: Vec::new(),
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
        let model = Model {
            config: Cell::new(Config::default()),
            marks: RefCell::default(),
            known_marks: std::mem::take(&mut self.marks),
            at_end: RefCell::default(),
            cancellable: RefCell::default(),
            plan: plan.to_vec(),
        };
        let config = Cell::new(Config::default());
        let set_up = || {
            (self.set_up)(&model);
            let set = model.config.get();
            if set.spurious > 0 {
                world(|world| world.add_spurious(set.spurious));
            }
            world(|world| world.every_order(set.every_order));
            config.set(set);
            model.at_end.take()
        };
        let choices = std::mem::take(&mut self.choices);
        let (mut ended, search) = world::execute(
            traced,
            choices,
            set_up,
            || search(&config.get()),
            &self.progress,
        );
        self.config = config.get();
        self.marks = model.marks.take();
        self.cancellable = model.cancellable.take();
        if ended.failure.is_none() {
            self.choices = std::mem::take(&mut ended.choices);
        }
        (ended, search)
    }

    fn count(&mut self, ended: &Ended) {
        self.report.executions += 1;
        self.report.waited += u64::from(ended.seen.waited);
        self.report.time_passed += u64::from(ended.seen.time_passed);
        self.report.cancelled += u64::from(ended.seen.cancelled);
    }

    fn explore(mut self) -> ModelReport {
        let mut exhausted = true;
        // The suspension points at which tasks are dropped. The first plan drops no
        // task.
        let mut plans = VecDeque::from([Vec::new()]);
        while let Some(plan) = plans.pop_front() {
            let (all, most) = self.explore_plan(&plan);
            exhausted &= all;
            if self.report.failure.is_some() || !all {
                break;
            }
            // Add each task that comes after those that are already cancelled.
            for (number, &suspensions) in most.iter().enumerate().skip(plan.len()) {
                for at in 1..=suspensions {
                    let mut next = plan.clone();
                    next.resize(number, 0);
                    next.push(at);
                    plans.push_back(next);
                }
            }
        }
        let config = self.config;
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
        if self.report.failure.is_none() {
            self.report.failure = self.expectations();
        }
        self.report
    }

    /// Returns a failure if the model as a whole did not do what it was expected to.
    fn expectations(&self) -> Option<Failure> {
        let unreached = |(_, mark): &&(String, Sometimes)| !mark.0.load(Ordering::Relaxed);
        if let Some((what, _)) = self.marks.iter().find(unreached) {
            return Some(Failure::new(
                Kind::NeverReached,
                format!("no execution reached \"{what}\": what depends on it was not tested"),
            ));
        }
        (self.config.complete && self.report.verdict != Verdict::Complete).then(|| {
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

    /// Runs the executions of a plan. Returns whether all were run, and for each task
    /// that can be cancelled the greatest number of its suspensions.
    fn explore_plan(&mut self, plan: &[usize]) -> (bool, Vec<usize>) {
        let mut most = Vec::new();
        let mut search = None;
        let mut drawn = 0;
        let repeated = self.report.repeated;
        loop {
            let found = match &mut search {
                None => true,
                Some(SearchOf::Search(search)) => search.begin(),
                Some(SearchOf::Recorded(_)) => false,
            };
            if !found {
                break;
            }
            let (ended, used) = self.run(plan, false, |config| match search.take() {
                Some(search) => search,
                None => {
                    let mut search = search_of(config, drawn);
                    search.begin();
                    SearchOf::Search(search)
                }
            });
            self.count(&ended);
            for (number, &task) in self.cancellable.iter().enumerate() {
                most.resize(most.len().max(number + 1), 0);
                most[number] = most[number].max(ended.suspensions[task]);
            }
            if let Some(failure) = ended.failure {
                self.fail(plan, failure, &ended.choices);
                return (false, most);
            }
            let SearchOf::Search(mut used) = used else {
                unreachable!("it was one");
            };
            used.end();
            if let Some(step) = used.strayed() {
                self.report.failure = Some(Failure::new(
                    Kind::NonDeterminism,
                    format!(
                        "step {} was not the same when it was run again: the code depends on \
                         something that is not the order of steps, such as the time of the \
                         system, an address, a random number, or what an earlier execution left \
                         in a static",
                        step + 1
                    ),
                ));
                return (false, most);
            }
            let limit = self.config.executions.unwrap_or(MOST_EXECUTIONS);
            if self.report.executions >= limit {
                let over = self.config.sampled.is_none() && !used.begin();
                return (over, most);
            }
            if let Some(number) = self.config.sampled {
                drawn += 1;
                if drawn == number {
                    return (true, most);
                }
                // The second half is drawn by priorities.
                if drawn == number / 2 {
                    search = None;
                    continue;
                }
            }
            self.report.repeated = repeated + used.repeated();
            search = Some(SearchOf::Search(used));
        }
        (true, most)
    }

    /// Searches for the same failure with fewer preemptions, and runs the failing
    /// execution once more for the table.
    fn fail(&mut self, plan: &[usize], failure: Failure, choices: &[u8]) {
        let mut failing = (failure.kind, choices.to_vec());
        let mut left = MOST_SHRINKING;
        if self.config.sampled.is_none() {
            for preemptions in 0..3 {
                if let Some(fewer) = self.fewer(plan, failure.kind, preemptions, &mut left) {
                    failing.1 = fewer;
                    break;
                }
            }
        }
        let (_, choices) = failing;
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
        self.report.failure = Some(told);
    }

    fn fewer(
        &mut self,
        plan: &[usize],
        kind: Kind,
        preemptions: usize,
        left: &mut u64,
    ) -> Option<Vec<u8>> {
        let mut search = Search::every(Some(preemptions));
        while *left > 0 && search.begin() {
            *left -= 1;
            let (ended, used) = self.run(plan, false, |_| SearchOf::Search(search));
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

    fn replay(mut self, token: &str) -> ModelReport {
        let Some((plan, choices)) = parse(token) else {
            self.report.failure = Some(Failure::new(
                Kind::NonDeterminism,
                format!("REVEILLE_REPLAY='{token}' is damaged: copy it whole, as it was printed"),
            ));
            return self.report;
        };
        let (ended, _) = self.run(&plan, true, |_| SearchOf::Recorded(choices));
        self.count(&ended);
        self.report.verdict = Verdict::Bounded;
        self.report.bound = "one execution, run again".to_owned();
        self.report.failure = ended.failure;
        self.report
    }
}

fn search_of(config: &Config, drawn: u64) -> Search {
    match config {
        Config {
            sampled: Some(_), ..
        } if drawn == 0 => Search::random(0),
        Config {
            sampled: Some(_), ..
        } => Search::pct(0, 3),
        Config {
            preemptions: None,
            every_order: false,
            ..
        } => Search::optimal(Wakers::Anywhere),
        Config { preemptions, .. } => Search::every(*preemptions),
    }
}

/// Returns an execution as a word: where tasks are dropped, and which process was
/// chosen at each step.
fn token(plan: &[usize], choices: &[u8]) -> String {
    let plan: Vec<String> = plan.iter().map(ToString::to_string).collect();
    let digit = |&choice: &u8| char::from_digit(u32::from(choice), 36).unwrap_or('?');
    let choices: String = choices.iter().map(digit).collect();
    format!("{}-{choices}", plan.join("."))
}

fn parse(token: &str) -> Option<(Vec<usize>, Vec<u8>)> {
    let (plan, choices) = token.split_once('-')?;
    let plan = plan.split('.').filter(|part| !part.is_empty());
    let plan = plan.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let choice = |digit: char| digit.to_digit(32).and_then(|d| u8::try_from(d).ok());
    let choices = choices.chars().map(choice).collect::<Option<_>>()?;
    Some((plan, choices))
}
