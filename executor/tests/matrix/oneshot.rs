//! The contract of `oneshot`, on any executor.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use reveille::oneshot::error::TryRecvError;
use reveille::oneshot::{self, Slot};
use reveille_executor::Executor;

use crate::{announced, poll_once};

matrix! {
    a_value_wakes_the_task_that_waits_for_it,
    a_value_sent_before_the_first_poll_is_there,
    a_dropped_sender_ends_the_wait,
    a_sender_that_panics_ends_the_wait,
    a_dropped_receiver_gives_the_value_back,
    a_dropped_receiver_drops_the_value_it_was_sent,
    closed_wakes_when_the_receiver_is_dropped,
    closed_wakes_when_the_receiver_closes,
    closed_gives_way_to_sending,
    a_closed_receiver_still_has_what_was_sent,
    a_closed_receiver_that_waited_learns_that_nothing_comes,
    try_recv_sees_what_another_task_sends,
    a_wait_that_was_given_up_loses_nothing,
    a_wait_goes_on_in_another_task,
    a_thread_blocks_on_a_task,
    a_task_waits_for_a_thread,
    a_slot_is_used_round_after_round,
    the_halves_of_a_slot_go_to_tasks,
    values_go_round_a_ring_of_tasks,
    many_channels_at_a_time,
}

fn a_value_wakes_the_task_that_waits_for_it<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        let (waits, waiting) = oneshot::channel();
        let receiving = executor.spawn(announced(waits, rx));
        waiting.await.unwrap();
        let sending = executor.spawn(async move { tx.send(7) });
        assert_eq!(sending.await.unwrap(), Ok(()));
        assert_eq!(receiving.await.unwrap(), Ok(7));
    });
}

fn a_value_sent_before_the_first_poll_is_there<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        executor
            .spawn(async move { tx.send(7) })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(executor.spawn(rx).await.unwrap(), Ok(7));
    });
}

fn a_dropped_sender_ends_the_wait<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel::<u32>();
        let (waits, waiting) = oneshot::channel();
        let receiving = executor.spawn(announced(waits, rx));
        waiting.await.unwrap();
        executor.spawn(async move { drop(tx) }).await.unwrap();
        receiving.await.unwrap().unwrap_err();
    });
}

fn a_sender_that_panics_ends_the_wait<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel::<u32>();
        let receiving = executor.spawn(rx);
        let panicking = executor.spawn(async move {
            let _tx = tx;
            panic!("as planned");
        });
        receiving.await.unwrap().unwrap_err();
        assert!(panicking.await.unwrap_err().is_panic());
    });
}

fn a_dropped_receiver_gives_the_value_back<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        executor.spawn(async move { drop(rx) }).await.unwrap();
        let refused = executor.spawn(async move { tx.send(7) }).await.unwrap();
        assert_eq!(refused, Err(7));
    });
}

fn a_dropped_receiver_drops_the_value_it_was_sent<E: Executor>(executor: &E) {
    executor.block_on(async {
        let value = Arc::new(());
        let (tx, rx) = oneshot::channel();
        tx.send(value.clone()).unwrap();
        assert_eq!(Arc::strong_count(&value), 2);
        executor.spawn(async move { drop(rx) }).await.unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

fn closed_wakes_when_the_receiver_is_dropped<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (mut tx, rx) = oneshot::channel::<u32>();
        let (waits, waiting) = oneshot::channel();
        let sending = executor.spawn(async move {
            announced(waits, tx.closed()).await;
            tx.send(7)
        });
        waiting.await.unwrap();
        drop(rx);
        assert_eq!(sending.await.unwrap(), Err(7));
    });
}

fn closed_wakes_when_the_receiver_closes<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (mut tx, mut rx) = oneshot::channel::<u32>();
        let (waits, waiting) = oneshot::channel();
        let sending = executor.spawn(async move {
            announced(waits, tx.closed()).await;
            tx.send(7)
        });
        waiting.await.unwrap();
        let closing = executor.spawn(async move {
            rx.close();
            rx.await
        });
        assert_eq!(sending.await.unwrap(), Err(7));
        closing.await.unwrap().unwrap_err();
    });
}

/// A sender that waits both for its channel to close and for something to send.
fn closed_gives_way_to_sending<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (mut tx, rx) = oneshot::channel();
        let (go, mut going) = oneshot::channel();
        let (waits, waiting) = oneshot::channel();
        let receiving = executor.spawn(rx);
        let sending = executor.spawn(async move {
            let either = poll_fn(|cx| {
                assert!(tx.poll_closed(cx).is_pending(), "the receiver waits");
                Pin::new(&mut going).poll(cx)
            });
            let value = announced(waits, either).await;
            tx.send(value.unwrap())
        });
        waiting.await.unwrap();
        go.send(7).unwrap();
        assert_eq!(sending.await.unwrap(), Ok(()));
        assert_eq!(receiving.await.unwrap(), Ok(7));
    });
}

fn a_closed_receiver_still_has_what_was_sent<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, mut rx) = oneshot::channel();
        executor
            .spawn(async move { tx.send(7) })
            .await
            .unwrap()
            .unwrap();
        let received = executor.spawn(async move {
            rx.close();
            rx.await
        });
        assert_eq!(received.await.unwrap(), Ok(7));
    });
}

fn a_closed_receiver_that_waited_learns_that_nothing_comes<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel::<u32>();
        let polled = executor.spawn(async move {
            let (polled, mut rx) = poll_once(rx).await;
            assert!(polled.is_pending());
            rx.close();
            rx.await
        });
        polled.await.unwrap().unwrap_err();
        assert_eq!(tx.send(7), Err(7));
    });
}

fn try_recv_sees_what_another_task_sends<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, mut rx) = oneshot::channel();
        let empty = executor.spawn(async move { (rx.try_recv(), rx) });
        let (answer, mut rx) = empty.await.unwrap();
        assert_eq!(answer, Err(TryRecvError::Empty));

        executor
            .spawn(async move { tx.send(7) })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(rx.try_recv(), Ok(7));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    });
}

fn a_wait_that_was_given_up_loses_nothing<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        let (polled, mut rx) = executor.spawn(poll_once(rx)).await.unwrap();
        assert!(polled.is_pending());
        executor
            .spawn(async move { tx.send(7) })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(rx.try_recv(), Ok(7));
    });
}

/// The task that polled first has ended when the value comes. The waker of the second
/// task counts.
fn a_wait_goes_on_in_another_task<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        let (polled, rx) = executor.spawn(poll_once(rx)).await.unwrap();
        assert!(polled.is_pending());
        let (waits, waiting) = oneshot::channel();
        let second = executor.spawn(announced(waits, rx));
        waiting.await.unwrap();
        executor
            .spawn(async move { tx.send(7) })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(second.await.unwrap(), Ok(7));
    });
}

fn a_thread_blocks_on_a_task<E: Executor>(executor: &E) {
    let (tx, rx) = oneshot::channel();
    let blocking = thread::spawn(move || rx.blocking_recv());
    executor.block_on(async {
        let sending = executor.spawn(async move {
            // Gives the thread time to block. The check holds in either case.
            thread::sleep(Duration::from_millis(10));
            tx.send(7)
        });
        assert_eq!(sending.await.unwrap(), Ok(()));
    });
    assert_eq!(blocking.join().unwrap(), Ok(7));
}

fn a_task_waits_for_a_thread<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        let (waits, waiting) = oneshot::channel();
        let receiving = executor.spawn(announced(waits, rx));
        let sending = thread::spawn(move || {
            waiting.blocking_recv().unwrap();
            tx.send(7)
        });
        assert_eq!(receiving.await.unwrap(), Ok(7));
        sending.join().unwrap().unwrap();
    });
}

fn a_slot_is_used_round_after_round<E: Executor>(executor: &E) {
    let mut slot = Slot::new();
    for round in 0..100 {
        let (tx, rx) = slot.split();
        thread::scope(|scope| {
            scope.spawn(|| tx.send(round).unwrap());
            assert_eq!(executor.block_on(rx), Ok(round));
        });
    }
}

fn the_halves_of_a_slot_go_to_tasks<E: Executor>(executor: &E) {
    let slot: &'static mut Slot<u32> = Box::leak(Box::default());
    let (tx, rx) = slot.split();
    executor.block_on(async {
        let receiving = executor.spawn(rx);
        let sending = executor.spawn(async move { tx.send(7) });
        assert_eq!(receiving.await.unwrap(), Ok(7));
        assert_eq!(sending.await.unwrap(), Ok(()));
    });
}

fn values_go_round_a_ring_of_tasks<E: Executor>(executor: &E) {
    const TASKS: u32 = 8;
    const ROUNDS: u32 = 50;
    executor.block_on(async {
        for round in 0..ROUNDS {
            let (first, mut last) = oneshot::channel();
            let mut links = Vec::new();
            for _ in 0..TASKS {
                let (tx, rx) = oneshot::channel();
                let before = std::mem::replace(&mut last, rx);
                links.push(executor.spawn(async move {
                    let value: u32 = before.await.unwrap();
                    tx.send(value + 1).unwrap();
                }));
            }
            first.send(round).unwrap();
            assert_eq!(last.await, Ok(round + TASKS));
            for link in links {
                link.await.unwrap();
            }
        }
    });
}

fn many_channels_at_a_time<E: Executor>(executor: &E) {
    const CHANNELS: usize = 64;
    let sum = Arc::new(AtomicUsize::new(0));
    executor.block_on(async {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..CHANNELS).map(|_| oneshot::channel()).unzip();
        let receiving = receivers.into_iter().map(|rx| {
            let sum = sum.clone();
            executor.spawn(async move {
                sum.fetch_add(rx.await.unwrap(), Ordering::Relaxed);
            })
        });
        let receiving: Vec<_> = receiving.collect();
        let sending = senders.into_iter().enumerate();
        let sending: Vec<_> = sending
            .map(|(number, tx)| executor.spawn(async move { tx.send(number) }))
            .collect();
        for task in sending {
            task.await.unwrap().unwrap();
        }
        for task in receiving {
            task.await.unwrap();
        }
    });
    assert_eq!(sum.load(Ordering::Relaxed), (0..CHANNELS).sum());
}
