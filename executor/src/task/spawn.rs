//! `spawn`, `spawn_local`, `spawn_blocking` and `block_in_place` on the executor that runs
//! the caller.

#![forbid(unsafe_code)]

use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use reveille::backend::Native;

use super::{JoinHandle, describe};
use crate::blocking::Blocking;
use crate::context;
use crate::pool::Handle;
use crate::single::{KEEP_ALIVE, MAX_BLOCKING, Single};
use crate::thread_set::{SystemThreads, ThreadOptions, ThreadSet};

/// The executor that runs the caller.
enum Current {
    Single(Rc<Single>),
    Pool(Rc<Handle>),
}

/// Returns the executor that runs the caller, if one does.
fn find() -> Option<Current> {
    match context::current()?.downcast() {
        Ok(pool) => Some(Current::Pool(pool)),
        Err(found) => found.downcast().ok().map(Current::Single),
    }
}

/// Returns the executor that runs the caller. The function `what` needs it.
#[track_caller]
fn current(what: &str) -> Current {
    if let Some(current) = find() {
        return current;
    }
    panic!(
        "{what} was called outside of the executors of this crate: call it inside a future that \
         one of them runs, or spawn on the executor itself"
    )
}

/// Spawns a task on the executor of this crate that runs the caller.
///
/// # Panics
///
/// Panics if no executor of this crate runs the caller. A
/// [`LocalExecutor`](crate::LocalExecutor), a [`Simulation`](crate::Simulation) or a
/// [`ThreadPool`](crate::ThreadPool) has to. [`Threads`](crate::Threads), the bare
/// [`block_on`](crate::block_on) and the executors of other crates do not count.
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
    match current("task::spawn") {
        Current::Single(single) => single.spawn((), future),
        Current::Pool(pool) => pool.spawn(future),
    }
}

/// Spawns a task whose future stays on this thread, on the executor that runs the caller.
///
/// # Panics
///
/// Panics if the caller is not run by an executor of one thread: a
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
    match current("task::spawn_local") {
        Current::Single(single) => single.spawn((), future),
        Current::Pool(_) => panic!(
            "task::spawn_local was called on a ThreadPool, whose tasks do not stay on a thread: \
             use task::spawn, or a LocalExecutor"
        ),
    }
}

/// Runs a function that may block, within a task of a [`ThreadPool`](crate::ThreadPool).
/// Another thread takes the place of the worker meanwhile.
///
/// The task itself goes no further until the function returns, and neither do other
/// futures of the same task. The thread of the worker ends after the poll. So each call
/// costs the start of a thread: [`spawn_blocking`] is better if the function can move to
/// another thread. Within the function, the pool is still the current executor, and
/// `block_on` of the pool can be called.
///
/// Outside of the tasks of a pool, the function runs as it is: there is no worker to be
/// replaced. If the system refuses a thread, the function runs too, and the worker is
/// blocked.
///
/// # Panics
///
/// Panics within a [`LocalExecutor`](crate::LocalExecutor) or a
/// [`Simulation`](crate::Simulation), whose only thread it would block.
///
/// # Examples
///
/// ```
/// use reveille_executor::{ThreadPool, task};
///
/// let pool = ThreadPool::builder().workers(1).build();
/// let sum = pool.spawn(async {
///     let inner = task::spawn(async { 20 });
///     // The only worker would wait for itself.
///     22 + task::block_in_place(|| reveille_executor::block_on(inner)).unwrap()
/// });
/// assert_eq!(pool.block_on(sum).unwrap(), 42);
/// ```
#[track_caller]
pub fn block_in_place<R>(call: impl FnOnce() -> R) -> R {
    match find() {
        None => call(),
        Some(Current::Pool(pool)) => pool.block_in_place(call),
        Some(Current::Single(_)) => panic!(
            "task::block_in_place was called on an executor of one thread, which would stop all \
             its tasks: use task::spawn_blocking, or a ThreadPool"
        ),
    }
}

/// Runs a function that may block, on a thread for such calls.
///
/// The thread belongs to the executor that runs the caller, a
/// [`ThreadPool`](crate::ThreadPool) or a [`LocalExecutor`](crate::LocalExecutor). If none
/// of these does, it belongs to the process. A [`Simulation`](crate::Simulation) runs the
/// function as a task on its own thread, because what other threads do does not follow from
/// its seed. There the function must not wait for another task.
///
/// See [`Handle::spawn_blocking`].
///
/// # Panics
///
/// Panics if the system refuses a thread and there is none yet.
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
///
/// // No executor runs this.
/// let call = task::spawn_blocking(|| 42);
/// assert_eq!(reveille_executor::block_on(call).unwrap(), 42);
/// ```
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    /// The threads of the process. They are never joined.
    static OF_PROCESS: LazyLock<Arc<Blocking<Native>>> = LazyLock::new(|| {
        let threads = SystemThreads {
            set: ThreadSet::new(ThreadOptions::default()),
            keep_alive: KEEP_ALIVE,
            done: None,
        };
        Blocking::new(MAX_BLOCKING, threads)
    });
    match find() {
        Some(Current::Pool(pool)) => pool.spawn_blocking(call),
        Some(Current::Single(single)) => single.spawn_blocking(call),
        None => JoinHandle::of_call(OF_PROCESS.spawn(call, describe(()))),
    }
}
