//! `LocalExecutor`: tasks that stay on one thread.

#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use reveille::time::Timers;

use crate::Executor;
use crate::dump::Dump;
use crate::long_poll::{LongPoll, Polls};
use crate::single::Owner;
use crate::task::JoinHandle;

/// An executor of one thread, with tasks that need not be `Send`.
///
/// Tasks run inside [`block_on`](Self::block_on) and
/// [`run_until_idle`](Self::run_until_idle), on the thread that created the executor. A
/// task that is unfinished when the call ends goes on with the next. Tasks can be woken
/// from any thread.
///
/// The functions of `reveille::time` use the timers of the executor. Its loop drives them
/// while it runs. If sleeps on them are left when it is dropped, a thread drives these.
///
/// # Order
///
/// Ready tasks run in the order in which they were spawned or woken. The future of
/// `block_on` is one of them. A task that is woken while it is polled is queued when that
/// poll ends. Timers fire when no task is ready, in the order of their deadlines. This is
/// the order of micro- and macrotasks in the event loops of browsers:
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use reveille::time::{Duration, VirtualClock, sleep};
/// use reveille_executor::{LocalExecutor, task};
///
/// let clock = VirtualClock::when_idle();
/// let executor = LocalExecutor::builder().timers(clock.timers().clone()).build();
/// let order = Rc::new(RefCell::new(Vec::new()));
/// executor.block_on(async {
///     let says = |number| {
///         let order = order.clone();
///         move || order.borrow_mut().push(number)
///     };
///     let four = says(4);
///     let timer = task::spawn_local(async move {
///         sleep(Duration::from_nanos(1)).await; // a macrotask
///         four();
///     });
///     let (two, three) = (says(2), says(3));
///     task::spawn_local(async move { two() }); // microtasks
///     task::spawn_local(async move { three() });
///     says(1)();
///     timer.await.unwrap();
/// });
/// assert_eq!(*order.borrow(), [1, 2, 3, 4]);
/// ```
///
/// Tasks that are always ready do not keep out timers, or wakes from other threads. The
/// executor handles these after 256 polls, and each time that `block_on` begins. A task
/// that a timer wakes then runs before those in the queue, unless more than 128 tasks are
/// woken by timers in each 256 polls. So a
/// loop that calls `block_on` once in each iteration, as that of a game does, fires
/// timers at most one iteration late.
///
/// # Shutdown
///
/// Dropping the executor cancels its tasks. Their futures are dropped on this thread, and
/// their handles return a cancelled error. [Blocking calls](Self::spawn_blocking) that
/// have begun are waited for.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use reveille_executor::LocalExecutor;
///
/// let executor = LocalExecutor::new();
/// let shared = Rc::new(7);
/// let task = executor.spawn_local(async move { *shared });
/// assert_eq!(executor.block_on(task).unwrap(), 7);
/// ```
pub struct LocalExecutor {
    single: Owner,
}

impl LocalExecutor {
    /// Creates an executor on this thread.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, which configures an executor before it is created.
    pub fn builder() -> Builder {
        Builder {
            timers: None,
            polls: Polls::default(),
        }
    }

    /// Spawns a task whose future stays on this thread.
    ///
    /// It runs inside the next `block_on` or `run_until_idle`, or the current one.
    ///
    /// # Examples
    ///
    /// See the [type](Self).
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.single.spawn((), future)
    }

    /// Spawns a task with a name, as [`spawn_local`](Self::spawn_local) does.
    ///
    /// # Examples
    ///
    /// See [`JoinHandle::name`].
    #[track_caller]
    pub fn spawn_named<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.single.spawn(Arc::<str>::from(name), future)
    }

    /// Runs a function that may block, on a thread for such calls.
    ///
    /// There are at most 512 of these threads. A thread ends if no call comes for ten
    /// seconds. No executor is current in the call: to spawn, it needs a handle. A call
    /// that has begun cannot be aborted. Dropping the executor waits for it. While a call
    /// is under way, a virtual clock that moves when idle stands still.
    ///
    /// # Panics
    ///
    /// Panics if there is no thread for such calls yet and the system refuses one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::LocalExecutor;
    ///
    /// let executor = LocalExecutor::new();
    /// let call = executor.spawn_blocking(|| std::thread::current().id());
    /// assert_ne!(executor.block_on(call).unwrap(), std::thread::current().id());
    /// ```
    #[track_caller]
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.single.spawn_blocking(call)
    }

    /// Runs a future to completion, and tasks meanwhile. While nothing is ready, the
    /// thread sleeps until the next deadline or a wake.
    ///
    /// Timers that are due when it begins fire first. The token of [`std::thread::park`]
    /// is left for the caller.
    ///
    /// # Panics
    ///
    /// Panics if it is called inside a future that the same executor runs: `.await` the
    /// future there. A panic of the future resumes in the caller.
    ///
    /// # Examples
    ///
    /// See the [type](Self).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.single.block_on("LocalExecutor::block_on", future)
    }

    /// Runs tasks until none is ready. Timers do not fire.
    ///
    /// # Panics
    ///
    /// Panics if [`block_on`](Self::block_on) would.
    ///
    /// # Examples
    ///
    /// See [`JoinHandle::is_finished`].
    #[track_caller]
    pub fn run_until_idle(&self) {
        self.single.run_until_idle("LocalExecutor::run_until_idle");
    }

    /// Describes what each task of the executor does. See [`Dump`].
    #[must_use]
    pub fn dump(&self) -> Dump {
        self.single.dump()
    }

    /// Returns the timers that the tasks of the executor use.
    #[must_use]
    pub fn timers(&self) -> &Timers {
        self.single.timers()
    }
}

impl Executor for LocalExecutor {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_local(future)
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        LocalExecutor::block_on(self, future)
    }
}

impl Default for LocalExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalExecutor").finish_non_exhaustive()
    }
}

/// Configures a [`LocalExecutor`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    timers: Option<Timers>,
    polls: Polls,
}

impl Builder {
    /// Sets the timers that tasks use. By default the executor creates its own, on the
    /// real clock. The executor drives them, but only while it runs, and a sleep on them
    /// elsewhere waits for that. So leave the timers of the process to their thread. A
    /// virtual clock that moves when idle is moved by the executor.
    pub fn timers(mut self, timers: Timers) -> Self {
        self.timers = Some(timers);
        self
    }

    /// Reports each poll of a task that takes longer than `over`. See [`LongPoll`].
    pub fn on_long_poll(
        mut self,
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) -> Self {
        self.polls.report(over, report);
        self
    }

    /// Creates the executor, on this thread.
    #[must_use]
    pub fn build(self) -> LocalExecutor {
        let timers = self.timers.unwrap_or_else(Timers::threaded);
        self.polls.start_watch();
        LocalExecutor {
            single: Owner::new(None, self.polls, &timers),
        }
    }
}
