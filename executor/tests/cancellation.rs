//! Tasks that their executor cancels. Their handles return that they were cancelled,
//! after their futures have been dropped.
//!
//! Each executor cancels tasks in another way, so this is not part of the matrix.
//! `Threads` and the `ThreadPool` of futures never cancel.

#![forbid(unsafe_code)]

use std::future::{Future, pending};
use std::io;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use reveille::oneshot;
use reveille_executor::futures::LocalPool;
use reveille_executor::task::{Id, JoinError, JoinHandle};
use reveille_executor::{Executor, block_on};

use support::in_time;

mod support;

/// Sets a flag when it is dropped.
struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns a future that never ends, and a flag that is set when it is dropped.
fn endless() -> (impl Future<Output = ()> + Send, Arc<AtomicBool>) {
    let gone = Arc::new(AtomicBool::new(false));
    let held = Held(gone.clone());
    let future = async move {
        let _held = held;
        pending().await
    };
    (future, gone)
}

/// Joins the task on a thread that belongs to no executor.
#[track_caller]
fn assert_cancelled<H>(task: H, gone: &AtomicBool)
where
    H: Future<Output = Result<(), JoinError>> + Send + 'static,
{
    let joined = in_time(|| block_on(task));
    let error = joined.expect_err("the task never ends");
    assert!(error.is_cancelled() && !error.is_panic(), "{error:?}");
    assert!(
        gone.load(Ordering::Relaxed),
        "the handle was ready before the future was dropped"
    );
}

/// Spawns the task, lets it run, drops the executor, and joins.
#[track_caller]
fn assert_dropping_cancels<E: Executor>(executor: E) {
    let (future, gone) = endless();
    let task = executor.spawn(future);
    executor.block_on(executor.spawn(async {})).unwrap();
    assert!(!gone.load(Ordering::Relaxed));
    drop(executor);
    assert_cancelled(task, &gone);
}

#[test]
fn dropping_a_tokio_runtime_cancels_its_tasks() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    assert_dropping_cancels(runtime.unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build();
    assert_dropping_cancels(runtime.unwrap());
}

#[test]
fn dropping_a_local_pool_cancels_its_tasks() {
    assert_dropping_cancels(LocalPool::new());
}

#[test]
fn dropping_a_smol_executor_cancels_its_tasks() {
    assert_dropping_cancels(async_executor::Executor::new());
}

#[test]
fn a_task_that_was_never_polled_is_cancelled_too() {
    let pool = LocalPool::new();
    let (future, gone) = endless();
    let task = pool.spawn(future);
    drop(pool);
    assert_cancelled(task, &gone);
}

#[test]
fn a_runtime_that_is_gone_cancels_what_is_spawned_on_it() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let (future, gone) = endless();
    assert_cancelled(Executor::spawn(&handle, future), &gone);
}

#[test]
fn an_aborted_tokio_task_is_cancelled() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (future, gone) = endless();
    let task = Executor::spawn(&runtime, future);
    task.get_ref().abort();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    assert_cancelled(task, &gone);
}

#[test]
fn cancelling_wakes_the_thread_that_joins() {
    let (future, gone) = endless();
    let pool = LocalPool::new();
    let task = pool.spawn(future);
    let joining = thread::spawn({
        let gone = gone.clone();
        move || assert_cancelled(task, &gone)
    });
    pool.block_on(async {});
    thread::sleep(Duration::from_millis(50));
    assert!(!gone.load(Ordering::Relaxed));
    drop(pool);
    joining.join().unwrap();
}

/// Polls the handle of its own task when it is dropped, and sends the result.
struct AsksItsHandle {
    handle: Arc<Mutex<Option<JoinHandle<()>>>>,
    answer: Option<oneshot::Sender<Poll<()>>>,
}

impl Drop for AsksItsHandle {
    fn drop(&mut self) {
        let mut handle = self.handle.lock().unwrap();
        let handle = handle.as_mut().expect("the test has stored it");
        let mut cx = Context::from_waker(Waker::noop());
        let answer = Pin::new(handle).poll(&mut cx).map(drop);
        self.answer.take().unwrap().send(answer).unwrap();
    }
}

/// The task is not over inside the destructor of its future.
#[test]
fn the_handle_is_pending_while_a_cancelled_future_is_dropped() {
    for polled in [false, true] {
        let pool = LocalPool::new();
        let handle = Arc::new(Mutex::new(None));
        let (tx, answer) = oneshot::channel();
        let held = AsksItsHandle {
            handle: handle.clone(),
            answer: Some(tx),
        };
        *handle.lock().unwrap() = Some(pool.spawn(async move {
            let _held = held;
            pending().await
        }));
        if polled {
            pool.block_on(pool.spawn(async {})).unwrap();
        }
        drop(pool);
        assert_eq!(block_on(answer), Ok(Poll::Pending), "polled: {polled}");
        let handle = handle.lock().unwrap().take().unwrap();
        assert!(block_on(handle).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_cancelled_task_has_no_panic_to_give() {
    let pool = LocalPool::new();
    let task = pool.spawn(pending::<()>());
    drop(pool);
    let id = task.id();
    let error = block_on(task).unwrap_err();
    assert_eq!(error.id(), id);
    assert_eq!(error.to_string(), format!("task {id} was cancelled"));
    assert_eq!(
        format!("{error:?}"),
        format!("JoinError::Cancelled(Id({id}))")
    );
    let error = error.try_into_panic().unwrap_err();
    assert!(error.is_cancelled());
}

#[test]
#[should_panic(expected = "the task was cancelled and did not panic")]
fn into_panic_of_a_cancelled_task_panics() {
    let pool = LocalPool::new();
    let task = pool.spawn(pending::<()>());
    drop(pool);
    drop(block_on(task).unwrap_err().into_panic());
}

#[test]
#[should_panic(expected = "JoinHandle polled after it was ready")]
fn a_handle_polled_after_it_was_ready_panics() {
    let pool = LocalPool::new();
    let mut task = pool.spawn(async { 7 });
    assert_eq!(pool.block_on(&mut task).unwrap(), 7);
    drop(pool.block_on(&mut task));
}

#[test]
#[should_panic(expected = "LocalPool::block_on was called inside a future that the same pool runs")]
fn a_local_pool_refuses_nested_use() {
    let pool = LocalPool::new();
    pool.block_on(async { pool.block_on(async {}) });
}

/// Errors of tasks convert to other errors, with the texts of tokio's.
#[test]
fn a_join_error_converts_to_other_errors_and_names_its_task() {
    fn joined(panics: impl FnOnce() + Send + 'static) -> (Id, JoinError) {
        let pool = LocalPool::new();
        let task = pool.spawn(async move { panics() });
        (task.id(), pool.block_on(task).unwrap_err())
    }
    let (id, error) = joined(|| panic!("no coffee"));
    assert_eq!(error.id(), id);
    let shown = format!("JoinError::Panic(Id({id}), \"no coffee\", ...)");
    assert_eq!(format!("{error:?}"), shown);
    let error: Box<dyn std::error::Error + Send + Sync> = error.into();
    assert_eq!(
        error.to_string(),
        format!("task {id} panicked with message \"no coffee\"")
    );
    let (id, error) = joined(|| panic_any(7));
    assert_eq!(error.to_string(), format!("task {id} panicked"));
    assert_eq!(
        format!("{error:?}"),
        format!("JoinError::Panic(Id({id}), ...)")
    );
    assert_eq!(io::Error::from(error).to_string(), "task panicked");
}

/// An error of a task of tokio has the number that tokio has given the task.
#[test]
fn a_join_error_of_a_tokio_task_has_its_number() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let task = Executor::spawn(&runtime, async { panic!("no coffee") });
    let id = task.get_ref().id().to_string();
    let error = Executor::block_on(&runtime, task).unwrap_err();
    assert_eq!(error.id().to_string(), id);
}
