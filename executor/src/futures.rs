//! `Executor` for the pools of futures-executor: its `ThreadPool` as it is, its
//! `LocalPool` as [`LocalPool`].
//!
//! ```
//! use reveille_executor::Executor;
//!
//! fn answer<E: Executor>(executor: &E) -> u32 {
//!     let task = executor.spawn(async { 42 });
//!     executor.block_on(task).expect("the task ends")
//! }
//!
//! let pool = futures_executor::ThreadPool::builder().pool_size(1).create()?;
//! assert_eq!(answer(&pool), 42);
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::fmt;
use std::future::Future;

use futures_executor::{LocalSpawner, ThreadPool};
use futures_task::{FutureObj, Spawn};

use crate::Executor;
use crate::task::{self, JoinHandle};

/// `block_on` runs its future on the calling thread, beside the pool's.
///
/// The pool cancels nothing: dropped, it leaves its threads until their tasks
/// are done, and a pending task that is never woken stays, with its handle.
impl Executor for ThreadPool {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (task, handle) = task::joinable(future);
        self.spawn_ok(task);
        handle
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        futures_executor::block_on(future)
    }
}

/// A `futures_executor::LocalPool` whose methods take it by shared reference,
/// so that the future it blocks on can spawn.
///
/// All runs on one thread, inside `block_on`: a task spawned outside begins
/// with the next call, and one that is unfinished when the call ends goes on
/// with the next. Dropped, the pool cancels the tasks it has.
///
/// # Panics
///
/// `block_on` panics inside a future that it, or another executor of
/// futures-executor, runs on this thread: `.await` there.
///
/// # Examples
///
/// ```
/// use reveille_executor::{Executor, futures::LocalPool};
///
/// let pool = LocalPool::new();
/// let answer = pool.block_on(async {
///     let task = pool.spawn(async { 42 });
///     task.await.expect("the task ends")
/// });
/// assert_eq!(answer, 42);
/// ```
pub struct LocalPool {
    /// Borrowed while a call of `block_on` runs it.
    pool: RefCell<futures_executor::LocalPool>,
    /// Reaches the pool all the same.
    spawner: LocalSpawner,
}

impl LocalPool {
    /// Creates a pool without tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, futures::LocalPool};
    ///
    /// assert_eq!(LocalPool::new().block_on(async { 7 }), 7);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        let pool = futures_executor::LocalPool::new();
        Self {
            spawner: pool.spawner(),
            pool: RefCell::new(pool),
        }
    }
}

impl Executor for LocalPool {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (task, handle) = task::joinable(future);
        self.spawner
            .spawn_obj(FutureObj::new(Box::new(task)))
            .expect("the pool that the spawner leads to stands beside it");
        handle
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        let Ok(mut pool) = self.pool.try_borrow_mut() else {
            panic!(
                "LocalPool::block_on was called inside a future that the same pool runs, which \
                 would stop the outer future while the inner one waits: `.await` the inner \
                 future, or spawn it and `.await` its handle"
            );
        };
        pool.run_until(future)
    }
}

impl Default for LocalPool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPool").finish_non_exhaustive()
    }
}
