//! What tasks of a model use of it: they spawn other tasks, and mark states that are
//! reached.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use reveille::backend::Native;
use reveille::oneshot;
use reveille::protocol::{self, Bits, StateLock};
use reveille_executor::Executor;
use reveille_executor::task::JoinError;

use crate::model::world::{Role, task_job, world};

/// Spawns tasks in a model. It is an [`Executor`], so code that is generic over one can
/// be tested.
///
/// A task spawned by it must end, as those of [`Model::spawn`](crate::Model::spawn) must.
/// If it panics, the model fails.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    pub(crate) _private: (),
}

/// The outcome of a spawned task. Dropping it leaves the task running.
pub struct JoinHandle<T> {
    outcome: oneshot::Receiver<T>,
    aborted: Arc<StateLock<()>>,
    task: usize,
}

/// Set if a task is to be dropped instead of polled.
const ABORTED: Bits = Bits::new(1);

impl<T> JoinHandle<T> {
    /// Drops the task instead of polling it again, unless it has ended.
    pub fn abort(&self) {
        self.aborted.with(|section| section.bits.insert(ABORTED));
        world(|world| world.wake_task(self.task));
    }

    /// Returns `true` if the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        world(|world| world.is_done(self.task))
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = Pin::new(&mut self.outcome).poll(cx);
        outcome.map(|outcome| outcome.map_err(|_| JoinError::cancelled()))
    }
}

impl Executor for Handle {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (tx, outcome) = oneshot::channel();
        let aborted = Arc::new(StateLock::new_in(Bits::EMPTY, ()));
        let task = world(|world| world.processes());
        let mut body = Box::pin(async move {
            let output = future.await;
            // The handle may have been dropped.
            let _ = tx.send(output);
        });
        let control = aborted.clone();
        let body = poll_fn(move |cx| {
            if control.load().contains(ABORTED) {
                world(|world| world.aborted(task));
                return Poll::Ready(());
            }
            body.as_mut().poll(cx)
        });
        world(|world| {
            let job = task_job(task, Box::pin(body));
            world.add(format!("task {task}"), Role::Task, Some(job))
        });
        JoinHandle {
            outcome,
            aborted,
            task,
        }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        protocol::block_on::<Native, F>(future)
    }
}

/// A state that some execution must reach: see [`Model::sometimes`](crate::Model::sometimes).
#[derive(Clone, Debug)]
pub struct Sometimes(pub(crate) Arc<AtomicBool>);

impl Sometimes {
    /// Marks the state as reached.
    pub fn reached(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
