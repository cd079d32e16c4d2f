//! At most three of ten tasks work at the same time, and all of them start at one
//! signal.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::{Notify, Semaphore};
use reveille_executor::{ThreadPool, task};

const LIMIT: usize = 3;

fn main() {
    let pool = ThreadPool::new();
    let start = Arc::new(Notify::new());
    let limit = Arc::new(Semaphore::new(LIMIT));
    let working = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (limit, working) = (limit.clone(), working.clone());
            // It waits from here on, so the signal reaches it however late it runs.
            let started = start.clone().notified_owned();
            pool.spawn(async move {
                started.await;
                let _permit = limit.acquire().await.expect("it stays open");
                let beside = working.fetch_add(1, Ordering::SeqCst);
                task::yield_now().await;
                working.fetch_sub(1, Ordering::SeqCst);
                beside + 1
            })
        })
        .collect();
    start.notify_waiters();
    let most = tasks
        .into_iter()
        .map(|task| pool.block_on(task).expect("the task ends"))
        .max();
    println!("at work at the same time: {most:?} at most");
    assert!(most.is_some_and(|most| most <= LIMIT));
}

#[test]
fn what_is_printed_holds() {
    main();
}
