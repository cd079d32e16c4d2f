//! `spawn`, `spawn_local` and `spawn_blocking` on the executor that runs the caller.

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
    Pool(Rc<Handle>),
}

/// Returns the executor that runs the caller. The function `what` needs it.
#[track_caller]
fn current(what: &str) -> Current {
    if let Some(found) = context::current() {
        match found.downcast() {
            Ok(pool) => return Current::Pool(pool),
            Err(found) => {
                if let Ok(single) = found.downcast() {
                    return Current::Single(single);
                }
            }
        }
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

/// Runs a function that may block, on a thread for such calls. The thread belongs to the
/// executor that runs the caller, a [`ThreadPool`](crate::ThreadPool) or a
/// [`LocalExecutor`](crate::LocalExecutor).
///
/// See [`Handle::spawn_blocking`].
///
/// # Panics
///
/// Panics if neither of these executors runs the caller. A
/// [`Simulation`](crate::Simulation) refuses the call, because what threads do does not
/// follow from its seed. Panics if the system refuses a thread and there is none yet.
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
