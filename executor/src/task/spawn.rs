//! Spawning on the executor that runs the caller.

#![forbid(unsafe_code)]

use std::future::Future;

use super::JoinHandle;
use crate::context;

/// Spawns a task on the executor of this crate that runs the caller.
///
/// # Panics
///
/// Panics where none does. Those that count are
/// [`LocalExecutor`](crate::LocalExecutor), [`Simulation`](crate::Simulation) and
/// [`ThreadPool`](crate::ThreadPool); [`Threads`](crate::Threads), the bare
/// [`block_on`](crate::block_on) and the executors of other crates do not.
///
/// # Examples
///
/// ```
/// use reveille_executor::{LocalExecutor, task};
///
/// let sum = LocalExecutor::new().block_on(async {
///     let one = task::spawn(async { 1 });
///     let two = task::spawn(async { 2 });
///     one.await.unwrap() + two.await.unwrap()
/// });
/// assert_eq!(sum, 3);
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match context::current("task::spawn") {
        context::Current::Single(single) => single.spawn(None, future),
        context::Current::Pool(pool) => pool.spawn(future),
    }
}

/// Spawns a task whose future stays on this thread, on the executor that runs the
/// caller.
///
/// # Panics
///
/// Panics where that is not an executor of one thread: a
/// [`LocalExecutor`](crate::LocalExecutor) or a [`Simulation`](crate::Simulation).
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use reveille_executor::{LocalExecutor, task};
///
/// let shared = Rc::new(7);
/// let number = LocalExecutor::new().block_on(async {
///     let task = task::spawn_local(async move { *shared });
///     task.await.unwrap()
/// });
/// assert_eq!(number, 7);
/// ```
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match context::current("task::spawn_local") {
        context::Current::Single(single) => single.spawn(None, future),
        context::Current::Pool(_) => panic!(
            "task::spawn_local was called on a ThreadPool, whose tasks do not stay on a thread: \
             use task::spawn, or a LocalExecutor"
        ),
    }
}

/// Calls a function that may block, on a thread for such calls of the
/// [`ThreadPool`](crate::ThreadPool) that runs the caller.
///
/// See [`Handle::spawn_blocking`](crate::pool::Handle::spawn_blocking).
///
/// # Panics
///
/// Panics where no such pool runs the caller.
///
/// # Examples
///
/// ```
/// use reveille_executor::{ThreadPool, task};
///
/// let answer = ThreadPool::new().block_on(async {
///     let call = task::spawn_blocking(|| {
///         std::thread::sleep(std::time::Duration::from_millis(1));
///         42
///     });
///     call.await.unwrap()
/// });
/// assert_eq!(answer, 42);
/// ```
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    match context::current("task::spawn_blocking") {
        context::Current::Pool(pool) => pool.spawn_blocking(call),
        context::Current::Single(_) => panic!(
            "task::spawn_blocking was called on an executor of one thread, which has none for \
             calls that block: use the handle of a ThreadPool"
        ),
    }
}
