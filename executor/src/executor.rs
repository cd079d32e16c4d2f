//! `Executor`: the trait over executors.

#![forbid(unsafe_code)]

use std::future::Future;

use crate::task::JoinError;

/// Runs futures: spawns tasks, and blocks a thread on one future.
///
/// Code that needs no more than this can be written once, and run on every executor. The
/// names are those of tokio's `Runtime`.
///
/// | executor | feature | tasks run |
/// | --- | --- | --- |
/// | [`LocalExecutor`](crate::LocalExecutor) | | inside `block_on`, on its thread |
/// | [`ThreadPool`](crate::ThreadPool), `Handle` | | on its workers |
/// | [`Simulation`](crate::Simulation) | | inside `block_on`, in the order of a seed |
/// | [`Threads`](crate::Threads) | | on a thread each |
/// | `tokio::runtime::Runtime`, `Handle` | `tokio` | as the runtime was built |
/// | `futures_executor::ThreadPool` | `futures` | on the threads of the pool |
/// | `reveille_executor::futures::LocalPool` | `futures` | inside `block_on`, on its thread |
/// | `async_executor::Executor` | `smol` | inside `block_on`, and on each thread that runs it |
///
/// # Implementing
///
/// The test matrix checks this contract:
///
/// - While the executor runs, a task runs whether its handle is polled, kept or dropped.
/// - A panic of a task becomes its outcome. It harms neither the executor nor any other
///   task.
/// - The handle is ready only after the task's future has been dropped.
/// - Spawned tasks make progress while `block_on` waits.
/// - If `block_on` is called within a future that the executor runs, it panics, and harms
///   neither the future nor the executor.
pub trait Executor {
    /// The handle of a spawned task, a future of its outcome. Dropping it leaves the task
    /// running.
    type JoinHandle<T: Send + 'static>: Future<Output = Result<T, JoinError>>
        + Unpin
        + Send
        + 'static;

    /// Spawns a task.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let sum = Threads.spawn(async { 1 + 2 });
    /// assert_eq!(Threads.block_on(sum).unwrap(), 3);
    /// ```
    fn spawn<F>(&self, future: F) -> Self::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Runs a future to completion, and blocks this thread until then.
    ///
    /// # Panics
    ///
    /// Panics if it is called inside a future that this executor runs: `.await` the
    /// future there. A panic of the future resumes in the caller.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let word = String::from("borrowed");
    /// assert_eq!(Threads.block_on(async { word.len() }), 8);
    /// ```
    fn block_on<F: Future>(&self, future: F) -> F::Output;
}
