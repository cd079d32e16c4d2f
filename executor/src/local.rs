//! `LocalExecutor`: tasks that stay on one thread.

#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::time::Duration;

use reveille::time::Timers;

use crate::Executor;
use crate::long_poll::{LongPoll, Polls};
use crate::single::Owner;
use crate::task::JoinHandle;

/// An executor of one thread, whose tasks need not be `Send`.
///
/// Tasks run inside [`block_on`](Self::block_on) and
/// [`run_until_idle`](Self::run_until_idle), on the thread that made the executor;
/// one that is unfinished when the call ends goes on with the next. Waking a task
/// works from any thread.
///
/// The functions of `reveille::time` use its timers, which its own loop drives: while
/// it runs. What still sleeps on them when it is dropped, a thread drives.
///
/// # Order
///
/// Ready tasks run in the order in which they were spawned or woken, the future of
/// `block_on` among them; one that is woken while it is polled, by itself too, takes its
/// place when that poll ends. Timers fire when no task is ready, in the order of their
/// deadlines. That is the order of micro- and macrotasks in the event loops of
/// browsers:
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
/// Tasks that are always ready do not keep timers, or wakes from other threads,
/// waiting for ever. These have their turn after 256 polls, and each time that
/// `block_on` begins. A loop that calls `block_on` once for each of its rounds, as
/// that of a game does, is not late for timers by more than a round.
///
/// # The end
///
/// Dropped, it cancels the tasks it has: their futures are dropped, on this thread,
/// and their handles return that they were cancelled. Calls that
/// [block](Self::spawn_blocking) and have begun are waited for.
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
    /// An executor on this thread.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An executor that is to be set up first.
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
        self.single.spawn(None, future)
    }

    /// As [`spawn_local`](Self::spawn_local), with a name.
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
        self.single.spawn(Some(name), future)
    }

    /// Calls a function that may block, on a thread that is there for it.
    ///
    /// There are at most 512 such threads. Each ends when it had no call for ten seconds.
    /// No executor is current in the call: what it spawns has to go on one that it has a
    /// handle of. A call that has begun cannot be aborted, and the executor, dropped,
    /// waits for it. A virtual clock that moves when idle does not wait for a call.
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

    /// Runs a future to its end, and the tasks meanwhile. While nothing is ready the
    /// thread sleeps, until the next deadline or a wake.
    ///
    /// Timers that are due when it begins fire first. The token of
    /// [`std::thread::park`] stays the caller's.
    ///
    /// # Panics
    ///
    /// Panics when called inside a future that the same executor runs: `.await`
    /// there. A panic of the future goes on to the caller.
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
    /// As [`block_on`](Self::block_on).
    ///
    /// # Examples
    ///
    /// See [`JoinHandle::is_finished`].
    #[track_caller]
    pub fn run_until_idle(&self) {
        self.single.run_until_idle("LocalExecutor::run_until_idle");
    }

    /// The timers that tasks use here.
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

/// Sets a [`LocalExecutor`] up.
#[derive(Debug)]
#[must_use = "it sets an executor up, which `build` makes"]
pub struct Builder {
    timers: Option<Timers>,
    polls: Polls,
}

impl Builder {
    /// The timers that tasks use; by default some of its own, on the real clock. The
    /// executor drives them from now on, and only while it runs: whoever else sleeps on
    /// them waits for it, so those of the process are better left to their thread.
    /// Those of a virtual clock that moves when idle are moved by the executor.
    pub fn timers(mut self, timers: Timers) -> Self {
        self.timers = Some(timers);
        self
    }

    /// Reports each poll of a task that takes longer than this. See [`LongPoll`].
    pub fn on_long_poll(
        mut self,
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) -> Self {
        self.polls = Polls::reported(over, report);
        self
    }

    /// Makes the executor, on this thread.
    #[must_use]
    pub fn build(self) -> LocalExecutor {
        let timers = self.timers.unwrap_or_else(Timers::threaded);
        LocalExecutor {
            single: Owner::new(None, self.polls, &timers),
        }
    }
}
