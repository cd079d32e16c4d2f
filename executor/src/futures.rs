//! `Executor` for the pools of futures-executor: for its `ThreadPool`, and for its
//! `LocalPool` by the wrapper [`LocalPool`].
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

/// `block_on` runs its future on the calling thread, beside the threads of the pool.
///
/// The pool cancels nothing. If it is dropped, its threads go on until their tasks are
/// done. A pending task that is never woken stays, with its handle.
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

/// A `futures_executor::LocalPool` with methods that take it by shared reference, so that
/// the future it blocks on can spawn.
///
/// All tasks run on one thread, inside `block_on`. A task that is spawned outside begins
/// with the next call. A task that is unfinished when a call ends goes on with the next.
/// Dropping the pool cancels its tasks.
///
/// # Panics
///
/// `block_on` panics inside a future that this pool, or another executor of
/// futures-executor, runs on this thread: `.await` the future there.
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
    /// Borrowed while `block_on` runs it.
    pool: RefCell<futures_executor::LocalPool>,
    /// Spawns on the pool, even while it is borrowed.
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
            .expect("the pool of the spawner exists as long as the spawner");
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
