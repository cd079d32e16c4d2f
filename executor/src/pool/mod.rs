//! `ThreadPool`: tasks on several threads, which steal from one another.
//!
//! ```text
//!   builder ──build──▶ running ──shutdown, drop──▶ ending: tasks are cancelled ──▶ ended
//!                        │                             │
//!                        └── spawn: it runs            └── spawn: cancelled at once
//! ```
//!
//! The workers are in `workers`, what they drive in `driver`. The threads for calls that
//! block are in `blocking`, and how all threads are joined in `thread_set`.

#![forbid(unsafe_code)]

mod driver;
#[cfg(test)]
mod models;
mod workers;

use std::fmt;
use std::future::Future;
use std::num::NonZero;
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use reveille::backend::Native;
use reveille::raw::{RunResult, task};
use reveille::time::Timers;

use self::driver::Driving;
use self::workers::{Alarm, Worker, Workers};
use crate::Executor;
use crate::blocking::Blocking;
use crate::context::{self, Current};
use crate::long_poll::{LongPoll, Polls};
use crate::single::{KEEP_ALIVE, MAX_BLOCKING};
use crate::task::{JoinHandle, cancel_refused, describe};
use crate::thread_set::{SystemThreads, ThreadSet};

/// An executor of several threads.
///
/// Each worker has a queue, and steals from those of others when its own is empty;
/// one that finds nothing to do sleeps. A task that another wakes on a worker runs
/// there next, up to three times in a row, so that two that talk to each other stay
/// on one processor.
///
/// A task that is spawned begins on whatever worker is free first, whatever the task
/// that spawned it does next. A task that is *woken* by another, on a worker, runs when
/// the poll of that other has ended, or when a worker that was not asleep finds it. So a
/// task must not block its worker after it has woken the task that it waits for:
/// `.await`, or make the call that blocks by [`spawn_blocking`](Self::spawn_blocking).
///
/// The functions of `reveille::time` use its timers, which an idle worker drives: it
/// sleeps until the next deadline. Where all are busy, each looks at the clock once in
/// 61 polls. So a deadline is late only while every worker is in the midst of a poll,
/// and a task that blocks the only worker until a sleep ends waits for ever: `.await`
/// it. Tasks that are ready run before those that a timer wakes.
///
/// # The end
///
/// Dropped, or [shut down](Self::shutdown_timeout), it cancels its tasks: each
/// future is dropped once, on a worker, at the end of its poll if it is being
/// polled. What is spawned from then on by a [`Handle`] is cancelled at once; by a
/// destructor that is 16 deep in destructors that spawn, when the outermost has ended. A
/// call that blocks and has begun is waited for; one that has not is dropped by the
/// thread that ends the pool. The threads are joined: when the drop returns, the
/// destructors of their thread-locals have run. Sleeps on its timers that are left,
/// outside of its tasks, are driven by a thread from then on.
///
/// A process that `fork`s has the pool in the child, and none of its threads: nothing is
/// run there, and no timer of the process fires. Build executors after the `fork`.
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
    /// Whether it has been ended before it is dropped.
    ended: bool,
}

/// A handle to a [`ThreadPool`], by which to spawn on it. It does not keep the pool
/// from ending.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

/// What a pool and its handles share.
struct Shared {
    workers: Arc<Workers<Native>>,
    blocking: Arc<Blocking<Native>>,
    timers: Timers,
}

impl ThreadPool {
    /// Creates a pool with a worker for each processor.
    ///
    /// # Panics
    ///
    /// Panics where the system refuses a thread.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Sets a pool up before it is created.
    pub fn builder() -> Builder {
        Builder {
            workers: thread::available_parallelism().map_or(1, NonZero::get),
            max_blocking: MAX_BLOCKING,
            keep_alive: KEEP_ALIVE,
            polls: Polls::default(),
            timers: None,
        }
    }

    /// Returns the timers that tasks use here.
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

    /// Returns a handle, by which tasks can spawn too.
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
        self.handle.spawn_as(Some(name), future)
    }

    /// Calls a function that may block. See [`Handle::spawn_blocking`].
    #[track_caller]
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle.spawn_blocking(call)
    }

    /// Runs a future to its end on this thread, while the workers run tasks.
    ///
    /// # Panics
    ///
    /// Panics inside a task of the pool, and inside a future that `block_on` runs on
    /// this thread: `.await` there. A panic of the future goes on to the caller.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Ends the pool, and waits until its threads have ended, but no longer than
    /// `at_most`. Returns whether they have.
    ///
    /// A thread that is in the midst of a poll, or of a call that blocks, ends after
    /// it, whether or not it is still waited for. Where all have ended in time, the
    /// destructors of their thread-locals are waited for, however long they take.
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

    /// Ends the pool, and does not wait.
    pub fn shutdown_background(mut self) {
        self.ended = true;
        self.end();
    }

    fn end(&self) {
        let Shared {
            workers, blocking, ..
        } = &*self.handle.0;
        workers.close();
        blocking.close();
    }
}

/// Ends the pool, and waits until its threads have ended, unless it is dropped on
/// one of them.
impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.end();
        // One of its threads would wait for itself.
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
    /// Panics where no pool does. [`try_current`](Self::try_current) asks first.
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
            "Handle::current was called where no ThreadPool runs the caller: call it inside a \
             future that one runs, or clone the handle of the pool",
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
        context::current().and_then(Self::of)
    }

    /// The pool that is this executor, if it is one.
    pub(crate) fn of(current: Current) -> Option<Self> {
        match current {
            Current::Shared(shared) => shared.downcast().ok().map(Self),
            Current::Local(_) => None,
        }
    }

    /// Spawns a task, which begins on the first worker that is free.
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
        self.spawn_as(None, future)
    }

    #[track_caller]
    fn spawn_as<F>(&self, name: Option<&str>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let workers = &self.0.workers;
        let (runnable, held, join) = task(future, workers.scheduler(), describe(name));
        if let Err(refused) = workers.start(runnable, held) {
            cancel_refused(refused);
        }
        JoinHandle::new(join)
    }

    /// Calls a function that may block, on a thread that is there for it.
    ///
    /// There are as many such threads as calls under way, up to a bound past which
    /// calls wait; they end when there was no call for some time. A call that has
    /// begun cannot be aborted. One that has not is dropped, with what it captured, by
    /// the thread that aborts it.
    ///
    /// # Panics
    ///
    /// Panics if there is no thread for such calls yet and the system refuses one. The
    /// call has been dropped then. A call that waited for the same thread is cancelled.
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
        JoinHandle::of_call(self.0.blocking.spawn(call, describe(None)))
    }

    /// Returns whether the pool has ended: what is spawned is cancelled at once.
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

    /// Runs a future to its end on this thread. See [`ThreadPool::block_on`].
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        assert!(
            self.0.workers.current().is_none(),
            "ThreadPool::block_on was called inside a task of the same pool, which would stop a \
             worker while the future waits: `.await` it, or spawn it and `.await` its handle"
        );
        let _entered = self.enter();
        let _timers = self.0.timers.enter();
        crate::block_on(future)
    }

    /// Makes the pool the executor of what this thread runs.
    fn enter(&self) -> context::Entered {
        context::enter(Current::Shared(self.0.clone()))
    }

    /// Calls a function where the pool is the current executor.
    fn within(&self, f: &mut dyn FnMut()) {
        let _entered = self.enter();
        let _timers = self.0.timers.enter();
        f();
    }

    /// The life of a worker.
    fn work(&self, index: usize, driving: Arc<Driving<Native>>, polls: &Polls) {
        let Shared {
            workers, timers, ..
        } = &*self.0;
        let _on_worker = workers.enter(index);
        let _entered = self.enter();
        let _timers = timers.enter();
        let mut worker = Worker::new(workers.clone(), driving, index);
        while let Some(runnable) = worker.next() {
            match polls.run(runnable) {
                RunResult::Pending => {}
                RunResult::Woken(runnable) => worker.again(runnable),
                RunResult::Completed(key) => workers.done(key),
            }
        }
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

/// Sets a [`ThreadPool`] up.
#[derive(Debug)]
#[must_use = "it sets a pool up, which `build` makes"]
pub struct Builder {
    workers: usize,
    max_blocking: usize,
    keep_alive: Duration,
    polls: Polls,
    timers: Option<Timers>,
}

impl Builder {
    /// Sets how many workers there are; by default one for each processor.
    ///
    /// # Panics
    ///
    /// Panics where there would be none.
    #[track_caller]
    pub fn workers(mut self, count: usize) -> Self {
        assert!(count > 0, "a ThreadPool without workers runs nothing");
        self.workers = count;
        self
    }

    /// Sets how many calls that block can be under way at a time; by default 512.
    ///
    /// # Panics
    ///
    /// Panics where it would be none.
    #[track_caller]
    pub fn max_blocking(mut self, count: usize) -> Self {
        assert!(count > 0, "calls that block would wait for ever");
        self.max_blocking = count;
        self
    }

    /// Sets how long a thread for calls that block waits for the next; by default ten
    /// seconds.
    pub fn keep_alive(mut self, at_most: Duration) -> Self {
        self.keep_alive = at_most;
        self
    }

    /// Sets the timers that tasks use; by default some of its own, on the real clock. A
    /// virtual clock is not moved by the pool, whose workers do not know when all
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

    /// Reports each poll of a task that takes longer than this. See [`LongPoll`].
    pub fn on_long_poll(
        mut self,
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) -> Self {
        self.polls = Polls::reported(over, report);
        self
    }

    /// Makes the pool, and starts its workers.
    ///
    /// # Panics
    ///
    /// Panics where the system refuses a thread.
    #[track_caller]
    #[must_use]
    pub fn build(self) -> ThreadPool {
        let workers = Workers::new(self.workers, workers::find);
        let threads = ThreadSet::new();
        let blocking = Blocking::new(
            self.max_blocking,
            SystemThreads {
                keep_alive: self.keep_alive,
                set: threads.clone(),
                done: None,
            },
        );
        let timers = self.timers.unwrap_or_else(Timers::threaded);
        // Before any sleep, or a thread would drive.
        let alarm = Waker::from(Arc::new(Alarm(workers.clone())));
        let driving = Driving::new(timers.driver(), alarm);
        let handle = Handle(Arc::new(Shared {
            workers,
            blocking,
            timers,
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
        for index in 0..self.workers {
            let (handle, polls) = (pool.handle.clone(), self.polls.clone());
            let driving = driving.clone();
            let started = pool.threads.start(format!("reveille-{index}"), move || {
                handle.work(index, driving, &polls);
            });
            if let Err(error) = started {
                panic!("the system refused a thread for a worker: {error}");
            }
        }
        pool
    }
}
