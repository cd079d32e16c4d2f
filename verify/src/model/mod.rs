//! `model`: runs code that uses primitives, in an ordinary test.
//!
//! ```text
//!   model(set up) ──▶ an execution ──holds──▶ the next ──none is left──▶ verdict
//!                          │
//!                          └──fails──▶ fewer preemptions? ──▶ again, with a table ──▶ panic
//! ```

pub(crate) mod explore;
pub(crate) mod handle;
pub(crate) mod report;
pub(crate) mod stall;
pub(crate) mod world;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::model::explore::{Division, Exploration, SetUp};
use crate::model::handle::{Handle, Sometimes};
use crate::model::report::{Failure, Kind, ModelReport, parse};
use crate::model::stall::{Progress, Task};
use crate::model::world::{Role, in_model, task_job, thread_job, world};

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
pub fn model(set_up: impl Fn(&Model) + Send + Sync + 'static) {
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
pub fn explore_model(set_up: impl Fn(&Model) + Send + Sync + 'static) -> ModelReport {
    let token = std::env::var("REVEILLE_REPLAY").ok();
    run(token.as_deref(), Arc::new(set_up), Division::DEFAULT)
}

/// Runs one execution again, from the token of its [`Failure`].
///
/// # Examples
///
/// See [`explore_model`].
pub fn replay_model(token: &str, set_up: impl Fn(&Model) + Send + Sync + 'static) -> ModelReport {
    run(Some(token), Arc::new(set_up), Division::DEFAULT)
}

fn run(token: Option<&str>, set_up: Arc<SetUp>, division: Division) -> ModelReport {
    assert!(!in_model(), "a model cannot run within another");
    let task = match token.map(parse) {
        None => Task::Explore,
        Some(Some((plan, choices))) => Task::Replay { plan, choices },
        Some(None) => {
            let token = token.unwrap_or_default();
            let sentence =
                format!("REVEILLE_REPLAY='{token}' is damaged: copy it whole, as it was printed");
            let failure = Failure::new(Kind::NonDeterminism, sentence);
            return ModelReport {
                failure: Some(failure),
                ..ModelReport::new()
            };
        }
    };
    let body = move |task: Task, progress: &Progress| {
        let begun = Instant::now();
        let exploration = Exploration::new(&*set_up, progress, division);
        let report = match task {
            Task::Explore => exploration.explore(),
            Task::Replay { plan, choices } => exploration.replay(&plan, choices),
        };
        ModelReport {
            time: begun.elapsed(),
            ..report
        }
    };
    stall::watched(task, Arc::new(body))
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
    threads: Option<usize>,
}

impl Model {
    fn new(known_marks: Vec<(String, Sometimes)>, plan: &[usize]) -> Self {
        Self {
            config: Cell::new(Config::default()),
            marks: RefCell::default(),
            known_marks,
            at_end: RefCell::default(),
            cancellable: RefCell::default(),
            plan: plan.to_vec(),
        }
    }

    fn config(&self) -> Config {
        self.config.get()
    }

    fn take_checks(&self) -> Vec<Box<dyn FnOnce()>> {
        self.at_end.take()
    }

    /// Returns the marks, and the tasks that can be cancelled.
    fn into_marks(self) -> (Vec<(String, Sometimes)>, Vec<usize>) {
        (self.marks.into_inner(), self.cancellable.into_inner())
    }

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

    /// Uses this many cores at most. The default is all that there are. A model with
    /// few executions uses one. What is found does not depend on it.
    pub fn cores(&self, most: usize) {
        self.configure(|config| config.threads = Some(most));
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
