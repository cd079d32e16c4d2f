//! `ThreadPool`: tasks on several threads, which steal work from one another.
//!
//! ```text
//!   builder ──build──▶ running ──shutdown, drop──▶ ending: tasks are cancelled ──▶ ended
//!                        │                             │
//!                        └── spawn: it runs            └── spawn: cancelled at once
//! ```
//!
//! The workers are in `workers`, and what they drive is in `driver`. The threads for
//! blocking calls are in `blocking`. All threads are joined by `thread_set`.

#![forbid(unsafe_code)]

mod driver;
mod metrics;
#[cfg(test)]
mod models;
mod workers;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZero;
use std::panic::RefUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use reveille::backend::Native;
use reveille::raw::{Metadata, Name, task};
use reveille::time::Timers;

use self::driver::Driving;
pub use self::metrics::Metrics;
use self::workers::{DeadlineWaker, Worker, Workers};
use crate::Executor;
use crate::blocking::Blocking;
use crate::context;
use crate::dump::Dump;
use crate::long_poll::{LongPoll, Polls};
use crate::single::{KEEP_ALIVE, MAX_BLOCKING};
use crate::task::coop::Budget;
use crate::task::{JoinHandle, TaskMeta, cancel_refused, describe};
use crate::thread_set::{SystemThreads, ThreadOptions, ThreadSet};

/// An executor of several threads.
///
/// Each worker has a queue. If its queue is empty, it steals from the queues of others.
/// If it finds nothing to run, it sleeps. A task that is woken on a worker by another
/// task runs there next, up to three times in a row, so that two tasks that talk to each
/// other stay on one processor.
///
/// A spawned task begins on the first worker that is free, even if the task that spawned
/// it blocks its own worker. A task that is *woken* by another task, on a worker, runs
/// after the poll of that task, or on a worker that is awake and steals it. So a task
/// must not block its worker after it has woken the task that it waits for. It has to
/// `.await`, or to make the blocking call by [`spawn_blocking`](Self::spawn_blocking).
///
/// The functions of `reveille::time` use the timers of the pool. An idle worker drives
/// them: it sleeps until the next deadline. If all workers are busy, each fires timers
/// once in 61 polls. So a deadline is late only while every worker is in the middle of a
/// poll. A task that blocks the only worker until a sleep ends waits for ever: `.await`
/// the sleep. Tasks that timers wake run in the order of their deadlines, in turn with
/// tasks that are ready: neither keep the others out.
///
/// # Shutdown
///
/// Dropping the pool, or [shutting it down](Self::shutdown_timeout), cancels its tasks.
/// Each future is dropped once, on a worker. If it is being polled, it is dropped at the
/// end of that poll. A task that is spawned later by a [`Handle`] is cancelled at once.
/// If the destructor that spawns it is nested 16 deep in destructors that spawn, it is
/// cancelled when the outermost one has ended.
///
/// A blocking call that has begun is waited for. One that has not begun is dropped by the
/// thread that ends the pool. The threads are joined: when the drop returns, the
/// destructors of their thread-locals have run. Sleeps on the pool's timers that are left
/// outside of its tasks are driven by a thread from then on.
///
/// After a `fork`, the child has the pool but none of its threads. No task runs there,
/// and no timer of the process fires. Create executors after the `fork`.
///
/// # Examples
///
/// ```
/// use reveille_executor::ThreadPool;
///
/// let pool = ThreadPool::builder().workers(2).build();
/// let tasks: Vec<_> = (0..10).map(|number| pool.spawn(async move { number * 2 })).collect();
/// let sum = pool.block_on(async {
///     let mut sum = 0;
///     for task in tasks {
///         sum += task.await.unwrap();
///     }
///     sum
/// });
/// assert_eq!(sum, 90);
/// ```
pub struct ThreadPool {
    handle: Handle,
    threads: Arc<ThreadSet>,
    /// It has been shut down before it is dropped.
    ended: bool,
}

/// A handle that spawns on a [`ThreadPool`]. It does not keep the pool alive.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

/// The state that a pool and its handles share.
struct Shared {
    workers: Arc<Workers<Native>>,
    blocking: Arc<Blocking<Native>>,
    timers: Timers,
    polls: Polls,
    on_task_spawn: Option<OnTaskSpawn>,
}

/// The hooks are called outside the locks, and share no state with the pool.
impl RefUnwindSafe for Shared {}

/// A hook that is told of each task that is spawned.
type OnTaskSpawn = Arc<dyn Fn(&TaskMeta) + Send + Sync>;

thread_local! {
    /// Starts a thread that takes the place of the worker on this thread.
    static REPLACE: RefCell<Option<Replace>> = const { RefCell::new(None) };
}

type Replace = Box<dyn Fn() -> io::Result<()>>;

/// This thread has a worker that can be replaced, until this is dropped.
struct Replaceable(());

impl Replaceable {
    fn by(replace: impl Fn() -> io::Result<()> + 'static) -> Self {
        REPLACE.set(Some(Box::new(replace)));
        Self(())
    }
}

impl Drop for Replaceable {
    fn drop(&mut self) {
        REPLACE.set(None);
    }
}

impl ThreadPool {
    /// Creates a pool with a worker for each processor.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses a thread.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, which configures a pool before it is created.
    pub fn builder() -> Builder {
        Builder {
            workers: thread::available_parallelism().map_or(1, NonZero::get),
            max_blocking: MAX_BLOCKING,
            keep_alive: KEEP_ALIVE,
            polls: Polls::default(),
            timers: None,
            threads: ThreadOptions::default(),
            on_task_spawn: None,
        }
    }

    /// Returns the timers that the tasks of the pool use.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::Duration;
    /// use reveille_executor::{ThreadPool, block_on};
    ///
    /// let pool = ThreadPool::builder().workers(1).build();
    /// block_on(pool.timers().sleep(Duration::from_millis(1))); // a worker ends it
    /// ```
    #[must_use]
    pub fn timers(&self) -> &Timers {
        &self.handle.0.timers
    }

    /// Returns a handle to the pool, with which tasks can spawn too.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Spawns a task. See [`Handle::spawn`].
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// Spawns a task with a name.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn_named(name, future)
    }

    /// Runs a function that may block. See [`Handle::spawn_blocking`].
    #[track_caller]
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle.spawn_blocking(call)
    }

    /// Runs a future to completion on this thread, while the workers run tasks.
    ///
    /// # Panics
    ///
    /// Panics if the caller is a task of the pool, or a future that `block_on` runs on
    /// this thread: `.await` the future there. A panic of the future resumes in the
    /// caller.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Shuts the pool down, and waits until its threads have ended, for at most
    /// `at_most`. Returns whether they have ended.
    ///
    /// A thread that is in the middle of a poll, or of a blocking call, ends after it,
    /// even if this has returned by then. If all threads end in time, this also waits for
    /// the destructors of their thread-locals, however long they take.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reveille_executor::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().workers(1).build();
    /// let handle = pool.handle().clone();
    /// let endless = pool.spawn(std::future::pending::<()>());
    /// assert!(pool.shutdown_timeout(Duration::from_secs(10)));
    ///
    /// let late = handle.spawn(async {});
    /// for task in [endless, late] {
    ///     assert!(reveille_executor::block_on(task).unwrap_err().is_cancelled());
    /// }
    /// ```
    #[must_use = "it returns whether the threads have ended"]
    pub fn shutdown_timeout(mut self, at_most: Duration) -> bool {
        self.ended = true;
        self.end();
        let deadline = Instant::now().checked_add(at_most);
        !self.threads.is_current() && self.threads.join(deadline)
    }

    /// Shuts the pool down without waiting for its threads.
    pub fn shutdown_background(mut self) {
        self.ended = true;
        self.end();
    }

    fn end(&self) {
        let Shared {
            workers,
            blocking,
            polls,
            ..
        } = &*self.handle.0;
        workers.close();
        blocking.close();
        polls.close();
    }
}

/// Shuts the pool down, and waits until its threads have ended. If it is dropped on one
/// of them, it does not wait.
impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.end();
        // A thread of the pool would wait for itself.
        if !self.threads.is_current() {
            self.threads.join(None);
        }
    }
}

impl Handle {
    /// Returns the handle of the pool that runs the caller.
    ///
    /// # Panics
    ///
    /// Panics if no pool runs the caller. [`try_current`](Self::try_current) returns
    /// `None` instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{ThreadPool, pool::Handle};
    ///
    /// let pool = ThreadPool::new();
    /// let outer = pool.spawn(async { Handle::current().spawn(async { 7 }).await.unwrap() });
    /// assert_eq!(pool.block_on(outer).unwrap(), 7);
    /// ```
    #[track_caller]
    #[must_use]
    pub fn current() -> Self {
        Self::try_current().expect(
            "Handle::current was called outside of a ThreadPool: call it inside a future that a \
             pool runs, or clone the handle of the pool",
        )
    }

    /// Returns the handle of the pool that runs the caller, if one does.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(reveille_executor::pool::Handle::try_current().is_none());
    /// ```
    #[must_use]
    pub fn try_current() -> Option<Self> {
        let found = context::current()?.downcast::<Self>().ok()?;
        Some((*found).clone())
    }

    /// Spawns a task. It begins on the first worker that is free.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::ThreadPool;
    ///
    /// let pool = ThreadPool::new();
    /// let handle = pool.handle().clone();
    /// let outer = pool.spawn(async move {
    ///     let inner = handle.spawn(async { 7 });
    ///     inner.await.unwrap()
    /// });
    /// assert_eq!(pool.block_on(outer).unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as((), future)
    }

    /// Spawns a task with a name.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(Arc::<str>::from(name), future)
    }

    #[track_caller]
    fn spawn_as<F>(&self, name: impl Name, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Shared {
            workers,
            on_task_spawn,
            ..
        } = &*self.0;
        let metadata = describe(name);
        if let Some(hook) = on_task_spawn {
            hook(&TaskMeta::new(Metadata {
                id: metadata.id,
                location: metadata.location,
                name: metadata.name.get().cloned(),
            }));
        }
        let (runnable, held, join) = task(future, workers.scheduler(), metadata);
        if let Err(refused) = workers.start(runnable, held) {
            cancel_refused(refused);
        }
        JoinHandle::new(join)
    }

    /// Runs a function that may block, on a thread for such calls.
    ///
    /// There are as many of these threads as calls under way, up to a bound. Past it,
    /// calls wait for a thread. A thread ends if no call comes for some time. A call that
    /// has begun cannot be aborted. A call that has not begun is dropped, with what it
    /// captured, by the thread that aborts it.
    ///
    /// # Panics
    ///
    /// Panics if there is no thread for such calls yet and the system refuses one. The
    /// call has been dropped then. A call that waits for the same thread is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::ThreadPool;
    ///
    /// let pool = ThreadPool::new();
    /// let call = pool.handle().spawn_blocking(|| std::thread::current().id());
    /// assert_ne!(pool.block_on(call).unwrap(), std::thread::current().id());
    /// ```
    #[track_caller]
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        JoinHandle::of_call(self.0.blocking.spawn(call, describe(())))
    }

    /// Returns the metrics of the pool.
    ///
    /// # Examples
    ///
    /// See [`Metrics`].
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let Shared {
            workers,
            blocking,
            polls,
            ..
        } = &*self.0;
        Metrics {
            workers: workers.clone(),
            blocking: blocking.clone(),
            polls: polls.clone(),
        }
    }

    /// Describes what each task of the pool does: which are live, where they were spawned,
    /// and what they wait for.
    ///
    /// With the feature `locations`, the primitives note what a task waits for.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    /// use reveille_executor::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().workers(1).build();
    /// let waits = pool.spawn_named("patient", async { Notify::new().notified().await });
    /// let dump = pool.handle().dump();
    /// assert_eq!(dump.tasks()[0].name(), Some("patient"));
    /// println!("{dump}");
    /// # drop(waits);
    /// ```
    #[must_use]
    pub fn dump(&self) -> Dump {
        self.0.workers.dump()
    }

    /// Runs a function that may block, while another thread takes the place of the worker
    /// that calls this.
    pub(crate) fn block_in_place<R>(&self, call: impl FnOnce() -> R) -> R {
        let _budget = Budget::unbounded();
        let workers = &self.0.workers;
        let Some(index) = workers.current() else {
            return call();
        };
        // Two threads must not be the same worker.
        workers.leave();
        let replaced = REPLACE.with_borrow(|replace| replace.as_ref().map(|replace| replace()));
        if !matches!(replaced, Some(Ok(()))) {
            // The worker is blocked. It stays the worker when the call returns.
            std::mem::forget(workers.enter(index));
        }
        call()
    }

    /// Returns whether the pool has been shut down. If so, a task that is spawned is
    /// cancelled at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::ThreadPool;
    ///
    /// let pool = ThreadPool::new();
    /// let handle = pool.handle().clone();
    /// assert!(!handle.is_closed());
    /// drop(pool);
    /// assert!(handle.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.workers.is_closed()
    }

    /// Runs a future to completion on this thread. See [`ThreadPool::block_on`].
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        assert!(
            self.0.workers.current().is_none(),
            "ThreadPool::block_on was called inside a task of the same pool, which would block a \
             worker while the future waits: `.await` it, or spawn it and `.await` its handle"
        );
        let _entered = self.enter();
        let _timers = self.0.timers.enter();
        crate::block_on(future)
    }

    /// Makes the pool the current executor of this thread.
    fn enter(&self) -> context::Entered {
        context::enter(Rc::new(self.clone()))
    }

    /// Calls a function with the pool as the current executor.
    fn within(&self, f: &mut dyn FnMut()) {
        let _entered = self.enter();
        let _timers = self.0.timers.enter();
        f();
    }

    /// Runs tasks on this thread, as the worker with this index, until the pool ends.
    fn work(&self, index: usize, driving: Arc<Driving<Native>>, threads: &Arc<ThreadSet>) {
        let Shared {
            workers,
            timers,
            polls,
            ..
        } = &*self.0;
        let _on_worker = workers.enter(index);
        let _entered = self.enter();
        let _timers = timers.enter();
        // Cheaper to look at than whether the thread is still a worker.
        let replaced = Rc::new(Cell::new(false));
        let _replaceable = Replaceable::by({
            let (handle, driving, threads) = (self.clone(), driving.clone(), threads.clone());
            let replaced = replaced.clone();
            move || {
                handle.start_worker(index, &driving, &threads)?;
                replaced.set(true);
                Ok(())
            }
        });
        let mut worker = Worker::new(workers.clone(), driving, index);
        while let Some(runnable) = worker.next() {
            let woken = polls.run(runnable, |completion| workers.complete(completion));
            if replaced.get() {
                return worker.give_way(woken);
            }
            if let Some(runnable) = woken {
                worker.again(runnable);
            }
        }
    }

    /// Starts a thread that is the worker with this index.
    fn start_worker(
        &self,
        index: usize,
        driving: &Arc<Driving<Native>>,
        threads: &Arc<ThreadSet>,
    ) -> io::Result<()> {
        let (handle, driving) = (self.clone(), driving.clone());
        let set = threads.clone();
        threads.start(format!("reveille-{index}"), move || {
            handle.work(index, driving, &set);
        })
    }
}

impl Executor for ThreadPool {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }
}

impl Executor for Handle {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Handle::spawn(self, future)
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        Handle::block_on(self, future)
    }
}

impl Default for ThreadPool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// Configures a [`ThreadPool`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    workers: usize,
    max_blocking: usize,
    keep_alive: Duration,
    polls: Polls,
    timers: Option<Timers>,
    threads: ThreadOptions,
    on_task_spawn: Option<OnTaskSpawn>,
}

impl Builder {
    /// Sets the number of workers. By default there is one for each processor.
    ///
    /// # Panics
    ///
    /// Panics if `count` is 0.
    #[track_caller]
    pub fn workers(mut self, count: usize) -> Self {
        assert!(count > 0, "a ThreadPool needs at least one worker, not 0");
        self.workers = count;
        self
    }

    /// Sets the maximum number of blocking calls that are under way at a time. The
    /// default is 512.
    ///
    /// # Panics
    ///
    /// Panics if `count` is 0.
    #[track_caller]
    pub fn max_blocking(mut self, count: usize) -> Self {
        assert!(
            count > 0,
            "a ThreadPool needs at least one thread for blocking calls, not 0"
        );
        self.max_blocking = count;
        self
    }

    /// Sets how long a thread for blocking calls waits for the next call before it ends.
    /// The default is ten seconds.
    pub fn keep_alive(mut self, at_most: Duration) -> Self {
        self.keep_alive = at_most;
        self
    }

    /// Sets the timers that tasks use. By default the pool creates its own, on the real
    /// clock. The pool never moves a virtual clock, because no worker knows when all
    /// others are idle too.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock, sleep};
    /// use reveille_executor::ThreadPool;
    ///
    /// let clock = VirtualClock::by_hand();
    /// let pool = ThreadPool::builder().timers(clock.timers().clone()).build();
    /// let day = pool.spawn(async { sleep(Duration::from_secs(86_400)).await });
    /// while !day.is_finished() {
    ///     clock.advance_to_next();
    /// }
    /// ```
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

    /// Measures how long each poll takes, for [`Metrics::poll_times`]. This reads the
    /// clock twice for each poll.
    pub fn measure_polls(mut self) -> Self {
        self.polls.measure();
        self
    }

    /// Sets the name of the threads of the pool. By default the name of a worker has its
    /// index, and the name of a thread for blocking calls says what it is for.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.threads.name = Some(name.into());
        self
    }

    /// Sets the size of the stack of each thread of the pool, in bytes. By default it is
    /// that of [`std::thread`].
    pub fn thread_stack_size(mut self, bytes: usize) -> Self {
        self.threads.stack_size = Some(bytes);
        self
    }

    /// Calls a function on each thread of the pool before it does anything else. These
    /// are the workers and the threads for blocking calls. The pool is not the current
    /// executor there.
    ///
    /// If the function panics, the panic hook reports that, and the thread goes on.
    ///
    /// # Examples
    ///
    /// The threads are in the context of a runtime of tokio, so that tasks of the pool can
    /// use `tokio::net`. The example `tokio_net` shows a whole program.
    ///
    /// ```
    /// use std::cell::RefCell;
    /// use reveille_executor::ThreadPool;
    ///
    /// thread_local! {
    ///     static ENTERED: RefCell<Option<tokio::runtime::EnterGuard<'static>>> =
    ///         const { RefCell::new(None) };
    /// }
    /// let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    /// let tokio: &'static tokio::runtime::Runtime = Box::leak(Box::new(tokio));
    /// let pool = ThreadPool::builder()
    ///     .workers(1)
    ///     .on_thread_start(|| ENTERED.set(Some(tokio.enter())))
    ///     .on_thread_stop(|| ENTERED.set(None))
    ///     .build();
    /// let found = pool.spawn(async { tokio::runtime::Handle::try_current().is_ok() });
    /// assert!(pool.block_on(found).unwrap());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.threads.on_start = Some(Arc::new(hook));
        self
    }

    /// Calls a function on each thread of the pool before it ends, after all its tasks and
    /// calls. The destructors of its thread-locals run later.
    ///
    /// If the function panics, the panic hook reports that, and the thread ends.
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.threads.on_stop = Some(Arc::new(hook));
        self
    }

    /// Calls a function for each task that is spawned, before the task is created, on the
    /// thread that spawns it. A panic of the function reaches the caller of `spawn`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use reveille_executor::ThreadPool;
    ///
    /// let spawned = Arc::new(AtomicUsize::new(0));
    /// let pool = ThreadPool::builder()
    ///     .on_task_spawn({
    ///         let spawned = spawned.clone();
    ///         move |_| _ = spawned.fetch_add(1, Ordering::Relaxed)
    ///     })
    ///     .build();
    /// pool.block_on(pool.spawn(async {})).unwrap();
    /// assert_eq!(spawned.load(Ordering::Relaxed), 1);
    /// ```
    pub fn on_task_spawn(mut self, hook: impl Fn(&TaskMeta) + Send + Sync + 'static) -> Self {
        self.on_task_spawn = Some(Arc::new(hook));
        self
    }

    /// Creates the pool, and starts its workers.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses a thread.
    #[track_caller]
    #[must_use]
    pub fn build(self) -> ThreadPool {
        let workers = Workers::new(self.workers, workers::find);
        let threads = ThreadSet::new(self.threads);
        let blocking = Blocking::new(
            self.max_blocking,
            SystemThreads {
                keep_alive: self.keep_alive,
                set: threads.clone(),
                done: None,
            },
        );
        let timers = self.timers.unwrap_or_else(Timers::threaded);
        // Before any sleep is added. Otherwise a thread would drive the timers.
        let deadline_waker = Waker::from(Arc::new(DeadlineWaker(workers.clone())));
        let driving = Driving::new(timers.driver(), deadline_waker);
        let handle = Handle(Arc::new(Shared {
            workers,
            blocking,
            timers,
            polls: self.polls,
            on_task_spawn: self.on_task_spawn,
        }));
        handle.0.blocking.run_within({
            let handle = handle.clone();
            Arc::new(move |f| handle.within(f))
        });
        let pool = ThreadPool {
            handle,
            threads,
            ended: false,
        };
        pool.handle.0.polls.start_watch();
        for index in 0..self.workers {
            let started = pool.handle.start_worker(index, &driving, &pool.threads);
            if let Err(error) = started {
                panic!("the system refused a thread for a worker of the pool: {error}");
            }
        }
        pool
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("max_blocking", &self.max_blocking)
            .field("keep_alive", &self.keep_alive)
            .field("polls", &self.polls)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
