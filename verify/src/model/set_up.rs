//! What the closure of a model uses: it spawns tasks, and sets bounds.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::model::handle::{Handle, Sometimes};
use crate::model::world::{Role, task_job, thread_job, world};

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

/// The bounds of a model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Config {
    pub(crate) preemptions: Option<usize>,
    pub(crate) sampled: Option<u64>,
    pub(crate) every_order: bool,
    pub(crate) spurious: usize,
    pub(crate) complete: bool,
    pub(crate) executions: Option<u64>,
    pub(crate) threads: Option<usize>,
}

impl Model {
    pub(crate) fn new(known_marks: Vec<(String, Sometimes)>, plan: &[usize]) -> Self {
        Self {
            config: Cell::new(Config::default()),
            marks: RefCell::default(),
            known_marks,
            at_end: RefCell::default(),
            cancellable: RefCell::default(),
            plan: plan.to_vec(),
        }
    }

    pub(crate) fn config(&self) -> Config {
        self.config.get()
    }

    pub(crate) fn take_checks(&self) -> Vec<Box<dyn FnOnce()>> {
        self.at_end.take()
    }

    /// Returns the marks, and the tasks that can be cancelled.
    pub(crate) fn into_marks(self) -> (Vec<(String, Sometimes)>, Vec<usize>) {
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
    /// contains the primitive. If it contains several locks, the second one that is used
    /// is called `name#2`. A name of a part goes before that of the whole.
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
