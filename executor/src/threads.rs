//! `Threads`: an executor without a scheduler.

#![forbid(unsafe_code)]

use std::future::Future;
use std::thread;

use crate::task::{self, JoinHandle};
use crate::{Executor, block_on};

/// An executor that runs each task on a thread of its own, by [`block_on`].
///
/// It is the simplest executor that keeps the contract. Use it in tests, and for a few
/// tasks that may block. Each spawn starts a thread, and each waiting task keeps one, so
/// it is not for thousands of tasks. It cannot cancel a task: a task that waits for ever
/// keeps its thread for ever.
///
/// # Panics
///
/// `spawn` panics if the system refuses a thread.
///
/// # Examples
///
/// ```
/// use reveille_executor::{Executor, Threads};
///
/// let task = Threads.spawn(async { std::thread::current().id() });
/// let id = Threads.block_on(task).unwrap();
/// assert_ne!(id, std::thread::current().id());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl Executor for Threads {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (task, handle) = task::joinable(future);
        let spawned = thread::Builder::new()
            .name("reveille-task".into())
            .spawn(move || block_on(task));
        if let Err(error) = spawned {
            panic!(
                "the system refused a thread for the task ({error}): Threads starts one for each \
                 task, so run fewer at a time, or use an executor that shares threads"
            );
        }
        handle
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}
