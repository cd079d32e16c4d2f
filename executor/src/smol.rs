//! `Executor` for that of async-executor, which smol uses.

#![forbid(unsafe_code)]

use std::future::Future;

use crate::task::{self, JoinHandle};
use crate::{Executor, block_on};

/// Tasks run inside `block_on`, and on each thread that calls
/// `block_on(executor.run(…))`. Dropping the executor cancels its tasks.
///
/// # Examples
///
/// ```
/// use reveille_executor::Executor;
///
/// fn answer<E: Executor>(executor: &E) -> u32 {
///     let task = executor.spawn(async { 42 });
///     executor.block_on(task).expect("the task ends")
/// }
///
/// assert_eq!(answer(&async_executor::Executor::new()), 42);
/// ```
impl Executor for async_executor::Executor<'static> {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (task, handle) = task::joinable(future);
        // A `Task` of async-executor cancels when it is dropped. A `JoinHandle` does not.
        async_executor::Executor::spawn(self, task).detach();
        handle
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(self.run(future))
    }
}
