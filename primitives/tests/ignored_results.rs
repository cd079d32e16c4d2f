//! Results that tokio lets a caller ignore can be ignored here too: a build with
//! `-D warnings` does not fail when only its `use` lines change.
//!
//! A result that is lost by mistake still causes a warning: a guard or a permit,
//! which is released at once; a future; and that of `Instant::checked_add` and
//! `checked_sub`, which move nothing.

#![deny(unused_must_use)]

use std::panic::panic_any;
use std::time::Duration;

use reveille::time::{DelayQueue, Instant, interval, interval_at, sleep};
use reveille::{
    Barrier, CancellationToken, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, mpmc, mpsc,
    oneshot,
};
use reveille_executor::LocalExecutor;
use reveille_executor::task::coop::has_budget_remaining;
use reveille_executor::task::{self, JoinSet};

#[test]
fn a_result_that_tokio_lets_go_unused_does_not_warn() {
    Barrier::new(1);
    Mutex::new(7);
    Mutex::const_new(7);
    Notify::new();
    Notify::const_new();
    RwLock::new(7);
    RwLock::const_new(7);
    RwLock::with_max_readers(7, 8);
    RwLock::const_with_max_readers(7, 8);

    let semaphore = Semaphore::new(1);
    Semaphore::new(1);
    Semaphore::const_new(1);
    semaphore.available_permits();
    semaphore.is_closed();
    let permit = semaphore.try_acquire().unwrap();
    permit.num_permits();

    let mut cell = OnceCell::new_with(Some(7));
    OnceCell::<u8>::new();
    OnceCell::<u8>::const_new();
    OnceCell::const_new_with(7);
    cell.initialized();
    cell.get();
    cell.get_mut();
    cell.into_inner();

    let once = SetOnce::new_with(Some(7));
    SetOnce::<u8>::new();
    SetOnce::<u8>::const_new();
    SetOnce::const_new_with(7);
    once.initialized();
    once.get();
    once.into_inner();

    oneshot::channel::<u8>();
    let (tx, mut rx) = oneshot::channel();
    tx.is_closed();
    rx.is_empty();
    tx.send(7).unwrap();
    rx.try_recv().unwrap();
    rx.is_terminated();

    mpsc::channel::<u8>(1);
    let (tx, rx) = mpsc::channel::<u8>(1);
    tx.capacity();
    tx.max_capacity();
    tx.same_channel(&tx);
    tx.is_closed();
    tx.strong_count();
    tx.weak_count();
    tx.downgrade().upgrade();
    rx.is_closed();
    rx.is_empty();
    rx.len();
    rx.capacity();
    rx.max_capacity();
    rx.sender_strong_count();
    rx.sender_weak_count();
    mpsc::unbounded_channel::<u8>();

    mpmc::unbounded::<u8>();
    mpmc::bounded::<u8>(1);
    let (tx, rx) = mpmc::bounded::<u8>(1);
    tx.is_empty();
    tx.is_full();
    tx.len();
    tx.capacity();
    tx.sender_count();
    tx.receiver_count();
    tx.same_channel(&tx);
    tx.downgrade().upgrade();
    rx.downgrade().upgrade();
    rx.is_closed();
    rx.close();

    CancellationToken::new();
    let token = CancellationToken::new();
    token.child_token();
    token.is_cancelled();
    let guard = token.clone().drop_guard();
    guard.token();
    guard.disarm();
    token.drop_guard_ref().disarm();

    let now = Instant::now();
    Instant::now();
    now.elapsed();
    now.duration_since(now);
    now.checked_duration_since(now);
    now.saturating_duration_since(now);
    now.into_std();
    Instant::from_std(std::time::Instant::now());

    let asleep = sleep(Duration::ZERO);
    asleep.deadline();
    asleep.is_elapsed();
    let ticks = interval(Duration::from_secs(1));
    ticks.period();
    ticks.missed_tick_behavior();
    interval(Duration::from_secs(1));
    interval_at(now, Duration::from_secs(1));

    let mut queue = DelayQueue::new();
    DelayQueue::<u8>::new();
    DelayQueue::<u8>::with_capacity(1);
    let key = queue.insert(7, Duration::ZERO);
    queue.deadline(&key);
    queue.peek();
    queue.len();
    queue.is_empty();
    queue.capacity();
    let mut expired = queue.remove(&key);
    expired.get_ref();
    expired.get_mut();
    expired.deadline();
    expired.key();
    expired.into_inner();
}

#[test]
fn a_result_of_a_task_that_tokio_lets_go_unused_does_not_warn() {
    LocalExecutor::new().block_on(async {
        let mut set = JoinSet::new();
        JoinSet::<()>::new();
        set.spawn(async {});
        set.len();
        set.is_empty();
        set.join_next().await;

        let task = task::spawn(async { task::try_id() });
        task.id();
        task.is_finished();
        let abort = task.abort_handle();
        abort.id();
        abort.is_finished();
        abort.abort();
        let error = task.await.unwrap_err();
        error.id();
        error.is_cancelled();
        error.is_panic();
        task::try_id();
        has_budget_remaining();
        let panics = task::spawn(async { panic_any(7) });
        panics.await.unwrap_err().into_panic();
    });
}
