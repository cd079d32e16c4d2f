//! The matrix: every check on every executor.
//!
//! A check is a function over any [`Executor`], in the file of the primitive that it
//! checks. Each pair of a check and an executor is a test, `<file>::<check>::<executor>`.
//!
//! - To add a primitive, add a file of checks, with their names in `matrix!`.
//! - To add an executor, add a line to `matrix!`.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use reveille::oneshot::Sender;

/// Makes a test of each check for each executor.
macro_rules! matrix {
    ($($check:ident),* $(,)?) => {$(
        mod $check {
            use super::$check as check;
            use crate::{executors, support::in_time};

            #[test] fn local() { in_time(|| check(&reveille_executor::LocalExecutor::new())); }
            #[test] fn simulation() { in_time(|| check(&executors::simulation())); }
            #[test] fn pool_of_one() { in_time(|| check(&executors::pool(1))); }
            #[test] fn pool_of_two() { in_time(|| check(&executors::pool(2))); }
            #[test] fn threads() { in_time(|| check(&reveille_executor::Threads)); }
            #[test] fn tokio_current_thread() { in_time(|| check(&executors::tokio_current_thread())); }
            #[test] fn tokio_multi_thread() { in_time(|| check(&executors::tokio_multi_thread())); }
            #[test] fn tokio_handle() { in_time(|| check(executors::tokio_multi_thread().handle())); }
            #[test] fn futures_thread_pool() { in_time(|| check(&executors::futures_thread_pool())); }
            #[test] fn futures_local_pool() { in_time(|| check(&reveille_executor::futures::LocalPool::new())); }
            #[test] fn smol_one_thread() { in_time(|| check(&async_executor::Executor::new())); }
            #[test] fn smol_two_threads() { in_time(|| check(executors::smol_two_threads())); }
        }
    )*};
}

mod oneshot;
mod queues;
mod spawn;
#[path = "../support/mod.rs"]
mod support;
mod time;

/// The executors that take a line or two to create.
mod executors {
    use std::future::pending;
    use std::thread;

    use reveille_executor::{Simulation, ThreadPool, block_on};

    pub(crate) fn simulation() -> Simulation {
        Simulation::builder().seed(7).with_threads().build()
    }

    pub(crate) fn pool(workers: usize) -> ThreadPool {
        ThreadPool::builder().workers(workers).build()
    }

    pub(crate) fn tokio_current_thread() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("tokio starts")
    }

    pub(crate) fn tokio_multi_thread() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .expect("tokio starts")
    }

    pub(crate) fn futures_thread_pool() -> futures_executor::ThreadPool {
        futures_executor::ThreadPool::builder()
            .pool_size(2)
            .create()
            .expect("the pool starts")
    }

    /// Runs tasks on a second thread for ever, beside the thread that blocks.
    pub(crate) fn smol_two_threads() -> &'static async_executor::Executor<'static> {
        let executor: &'static _ = Box::leak(Box::new(async_executor::Executor::new()));
        thread::spawn(|| block_on(executor.run(pending::<()>())));
        executor
    }
}

/// Runs `future`, and sends `waits` when it is first pending.
async fn announced<F: Future + Unpin>(waits: Sender<()>, mut future: F) -> F::Output {
    let mut waits = Some(waits);
    poll_fn(move |cx| {
        let answer = Pin::new(&mut future).poll(cx);
        if answer.is_pending()
            && let Some(waits) = waits.take()
        {
            waits.send(()).expect("the receiver waits");
        }
        answer
    })
    .await
}

/// Polls once, with the waker of the current task, and returns the future.
async fn poll_once<F: Future + Unpin>(mut future: F) -> (Poll<F::Output>, F) {
    let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx))).await;
    (polled, future)
}
