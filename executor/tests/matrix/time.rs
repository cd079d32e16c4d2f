//! The contract of `reveille::time`, on any executor. The executors of this crate drive
//! timers themselves. For all others, a thread does.

#![forbid(unsafe_code)]

use std::future::pending;
use std::sync::Arc;

use reveille::time::{
    DelayQueue, Duration, Instant, VirtualClock, interval, sleep, sleep_until, timeout,
};
use reveille::{Semaphore, oneshot};
use reveille_executor::Executor;

const MS: Duration = Duration::from_millis(1);

matrix! {
    a_sleep_ends_and_not_early,
    many_tasks_sleep_at_a_time,
    a_timeout_ends_what_does_not_end,
    a_timeout_gives_back_what_it_was_granted,
    an_interval_ticks,
    a_queue_gives_out_what_is_due,
    a_task_sleeps_on_a_clock_moved_by_another,
}

fn a_sleep_ends_and_not_early<E: Executor>(executor: &E) {
    let sleeping = executor.spawn(async {
        let start = Instant::now();
        sleep(2 * MS).await;
        let slept = start.elapsed();
        sleep_until(start).await; // has passed
        slept
    });
    assert!(executor.block_on(sleeping).unwrap() >= 2 * MS);
}

fn many_tasks_sleep_at_a_time<E: Executor>(executor: &E) {
    let tasks: Vec<_> = (0..40)
        .map(|number: u32| {
            executor.spawn(async move {
                let deadline = Instant::now() + MS * (number * 7 % 10);
                sleep_until(deadline).await;
                Instant::now() >= deadline
            })
        })
        .collect();
    for task in tasks {
        assert!(executor.block_on(task).unwrap());
    }
}

fn a_timeout_ends_what_does_not_end<E: Executor>(executor: &E) {
    let late = executor.spawn(async { timeout(MS, pending::<()>()).await.is_err() });
    assert!(executor.block_on(late).unwrap());
    let in_time = executor.spawn(timeout(Duration::MAX, async { 7 }));
    assert_eq!(executor.block_on(in_time).unwrap(), Ok(7));
}

/// CA-06: whether the timeout or the grant comes first, the permit is available
/// afterwards.
fn a_timeout_gives_back_what_it_was_granted<E: Executor>(executor: &E) {
    let semaphore = Arc::new(Semaphore::new(0));
    for _ in 0..20 {
        let (acquires, adds) = (semaphore.clone(), semaphore.clone());
        let acquires = executor.spawn(async move {
            let acquired = timeout(MS, acquires.acquire_owned()).await;
            acquired.map(|permit| permit.expect("the semaphore is open").forget())
        });
        let adds = executor.spawn(async move {
            sleep(MS).await;
            adds.add_permits(1);
        });
        executor.block_on(adds).unwrap();
        let acquired = executor.block_on(acquires).unwrap();
        assert_eq!(
            semaphore.forget_permits(2),
            usize::from(acquired.is_err()),
            "the permit is neither delivered nor given back"
        );
    }
}

fn an_interval_ticks<E: Executor>(executor: &E) {
    let ticks = executor.spawn(async {
        let mut interval = interval(MS);
        let first = interval.tick().await;
        for tick in 1..5 {
            assert_eq!(interval.tick().await, first + MS * tick);
        }
        first.elapsed()
    });
    assert!(executor.block_on(ticks).unwrap() >= 4 * MS);
}

fn a_queue_gives_out_what_is_due<E: Executor>(executor: &E) {
    let order = executor.spawn(async {
        let mut queue = DelayQueue::new();
        for ms in [3, 1, 2] {
            queue.insert(ms, MS * ms);
        }
        let mut order = Vec::new();
        while let Some(expired) = queue.expired().await {
            assert!(Instant::now() >= expired.deadline());
            order.push(expired.into_inner());
        }
        order
    });
    assert_eq!(executor.block_on(order).unwrap(), [1, 2, 3]);
}

fn a_task_sleeps_on_a_clock_moved_by_another<E: Executor>(executor: &E) {
    let clock = VirtualClock::by_hand();
    let (waits, waiting) = oneshot::channel();
    let hour = MS * 3_600_000;
    let sleeps = executor.spawn({
        let clock = clock.clone();
        async move {
            crate::announced(waits, clock.timers().sleep(hour)).await;
            clock.now()
        }
    });
    executor.block_on(waiting).unwrap();
    clock.advance(hour);
    assert_eq!(executor.block_on(sleeps).unwrap(), Instant::ORIGIN + hour);
}
