//! Spawning on the executor that runs the caller.

#![forbid(unsafe_code)]

use std::future::Future;
use std::rc::Rc;

use super::JoinHandle;
use crate::context;
use crate::pool::Handle;
use crate::single::Single;

/// The executor that runs the caller.
enum Current {
    Single(Rc<Single>),
    Pool(Handle),
}

/// The current executor, which `what` needs.
#[track_caller]
fn current(what: &str) -> Current {
    let found = context::current();
    if let Some(context::Current::Local(local)) = &found
        && let Ok(single) = local.clone().downcast()
    {
        return Current::Single(single);
    }
    if let Some(pool) = found.and_then(Handle::of) {
        return Current::Pool(pool);
    }
    panic!(
        "{what} was called where no executor of this crate runs the caller: call it inside a \
         future that one runs, or spawn on the executor itself"
    )
}

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
    match current("task::spawn") {
        Current::Single(single) => single.spawn(None, future),
        Current::Pool(pool) => pool.spawn(future),
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
    match current("task::spawn_local") {
        Current::Single(single) => single.spawn(None, future),
        Current::Pool(_) => panic!(
            "task::spawn_local was called on a ThreadPool, whose tasks do not stay on a thread: \
             use task::spawn, or a LocalExecutor"
        ),
    }
}

/// Calls a function that may block, on a thread for such calls of the executor that
/// runs the caller: a [`ThreadPool`](crate::ThreadPool) or a
/// [`LocalExecutor`](crate::LocalExecutor).
///
/// See [`Handle::spawn_blocking`].
///
/// # Panics
///
/// Panics where neither runs the caller. A [`Simulation`](crate::Simulation) refuses:
/// what threads do does not follow from its seed. Panics where the system refuses a
/// thread and there is none yet.
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
    match current("task::spawn_blocking") {
        Current::Pool(pool) => pool.spawn_blocking(call),
        Current::Single(single) => single.spawn_blocking(call),
    }
}
