//! What `reveille::mpmc` promises, over every backend.

#![cfg(not(loom))]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use futures_core::Stream;
use reveille::backend::{Backend, Local, Native, Spin};
use reveille::mpmc::{
    Receiver, RecvError, SendError, Sender, TryRecvError, TrySendError, bounded, bounded_in,
    unbounded_in,
};
use reveille::protocol::WakeList;

use support::probe::{Event, Probe};
use support::{on_every_backend, poll};

on_every_backend![
    each_value_is_received_once_in_order,
    a_full_channel_makes_senders_wait_in_order,
    receivers_that_wait_are_served_in_order,
    a_value_that_is_granted_is_kept_for_its_receiver,
    a_receive_that_is_dropped_passes_its_value_on,
    a_send_that_is_dropped_passes_its_room_on,
    a_send_that_is_given_up_returns_its_value,
    a_rendezvous_sends_only_to_a_receiver_that_waits,
    a_rendezvous_lets_a_sender_send_at_try_recv,
    force_send_replaces_the_oldest_value,
    force_send_returns_the_value_if_none_can_be_replaced,
    either_half_closes_it_and_values_are_still_received,
    a_close_refuses_a_sender_that_was_granted_room,
    a_close_wakes_more_than_a_wake_list_holds,
    the_last_half_of_a_kind_closes,
    the_last_receiver_drops_the_values,
    weak_halves_do_not_keep_it_open,
    closed_waits_for_the_close,
    a_stream_keeps_its_place_and_passes_its_value_on,
    the_panic_of_a_senders_waker_puts_the_value_back,
    the_panic_of_a_receivers_waker_sends_the_value_once,
    a_sent_future_is_ready_after_a_panic,
    debug_output_names_what_is_known,
];

fn ready<T>(value: T) -> Poll<T> {
    Poll::Ready(value)
}

fn new<T, B: Backend>(capacity: usize) -> (Sender<T, B>, Receiver<T, B>) {
    bounded_in(capacity)
}

fn each_value_is_received_once_in_order<B: Backend>() {
    let (tx, rx) = unbounded_in::<_, B>();
    let (other_tx, other_rx) = (tx.clone(), rx.clone());
    for value in 0..100 {
        let tx = if value % 3 == 0 { &tx } else { &other_tx };
        tx.try_send(value).unwrap();
    }
    for value in 0..100 {
        let rx = if value % 2 == 0 { &rx } else { &other_rx };
        assert_eq!(poll(&mut rx.recv(), &Probe::new()), ready(Ok(value)));
    }
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(
        (tx.capacity(), tx.is_full(), tx.is_empty()),
        (None, false, true)
    );
}

fn a_full_channel_makes_senders_wait_in_order<B: Backend>() {
    let (tx, rx) = new::<_, B>(1);
    tx.try_send(1).unwrap();
    assert!(tx.is_full());
    let (first, second) = (Probe::new(), Probe::new());
    let (mut two, mut three) = (tx.send(2), tx.send(3));
    assert!(poll(&mut two, &first).is_pending());
    assert!(poll(&mut three, &second).is_pending());
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    // The room is granted: a task that comes now does not get it.
    assert_eq!(tx.try_send(4), Err(TrySendError::Full(4)));
    assert_eq!(poll(&mut two, &first), ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(poll(&mut three, &second), ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(3));
}

fn receivers_that_wait_are_served_in_order<B: Backend>() {
    let (tx, rx) = new::<_, B>(4);
    let (first, second) = (Probe::new(), Probe::new());
    let (mut one, mut two) = (rx.recv(), rx.recv());
    assert!(poll(&mut one, &first).is_pending());
    assert!(poll(&mut two, &second).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    tx.try_send(2).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert_eq!(poll(&mut one, &first), ready(Ok(1)));
    assert_eq!(poll(&mut two, &second), ready(Ok(2)));
}

fn a_value_that_is_granted_is_kept_for_its_receiver<B: Backend>() {
    let (tx, rx) = new::<_, B>(4);
    let task = Probe::new();
    let mut recv = rx.recv();
    assert!(poll(&mut recv, &task).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!(rx.len(), 1);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(poll(&mut recv, &task), ready(Ok(1)));
}

fn a_receive_that_is_dropped_passes_its_value_on<B: Backend>() {
    let (tx, rx) = new::<_, B>(4);
    let (first, second) = (Probe::new(), Probe::new());
    let (mut one, mut two) = (rx.recv(), rx.recv());
    assert!(poll(&mut one, &first).is_pending());
    assert!(poll(&mut two, &second).is_pending());
    tx.try_send(1).unwrap();
    drop(one);
    assert_eq!(second.wakes(), 1);
    assert_eq!(poll(&mut two, &second), ready(Ok(1)));
}

fn a_send_that_is_dropped_passes_its_room_on<B: Backend>() {
    let (tx, rx) = new::<_, B>(1);
    tx.try_send(1).unwrap();
    let (first, second) = (Probe::new(), Probe::new());
    let (mut two, mut three) = (tx.send(2), tx.send(3));
    assert!(poll(&mut two, &first).is_pending());
    assert!(poll(&mut three, &second).is_pending());
    assert_eq!(rx.try_recv(), Ok(1));
    drop(two);
    assert_eq!(second.wakes(), 1);
    assert_eq!(poll(&mut three, &second), ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(3));
}

fn a_send_that_is_given_up_returns_its_value<B: Backend>() {
    let (tx, rx) = new::<_, B>(1);
    let mut sent = tx.send(1);
    assert_eq!(poll(&mut sent, &Probe::new()), ready(Ok(())));
    assert_eq!(sent.into_inner(), None);
    let mut waits = tx.send(2);
    let task = Probe::new();
    assert!(poll(&mut waits, &task).is_pending());
    assert_eq!(waits.into_inner(), Some(2));
    assert_eq!(task.kept(), 0);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(tx.send(3).into_inner(), Some(3));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

fn a_rendezvous_sends_only_to_a_receiver_that_waits<B: Backend>() {
    let (tx, rx) = new::<_, B>(0);
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    let (first, second) = (Probe::new(), Probe::new());
    let (mut one, mut two) = (rx.recv(), rx.recv());
    assert!(poll(&mut one, &first).is_pending());
    assert!(poll(&mut two, &second).is_pending());
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(tx.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(poll(&mut two, &second), ready(Ok(1)));
    assert_eq!(poll(&mut one, &first), ready(Ok(2)));
    let mut send = tx.send(4);
    assert!(poll(&mut send, &first).is_pending());
    let mut recv = rx.recv();
    assert!(poll(&mut recv, &second).is_pending());
    assert_eq!(first.wakes(), 2);
    assert_eq!(poll(&mut send, &first), ready(Ok(())));
    assert_eq!(poll(&mut recv, &second), ready(Ok(4)));
}

fn a_rendezvous_lets_a_sender_send_at_try_recv<B: Backend>() {
    let (tx, rx) = new::<_, B>(0);
    let task = Probe::new();
    let mut send = tx.send(1);
    assert!(poll(&mut send, &task).is_pending());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut send, &task), ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(1));
}

fn force_send_replaces_the_oldest_value<B: Backend>() {
    let (tx, rx) = new::<_, B>(2);
    assert_eq!(tx.force_send(1), Ok(None));
    assert_eq!(tx.force_send(2), Ok(None));
    assert_eq!(tx.force_send(3), Ok(Some(1)));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(rx.try_recv(), Ok(3));
    drop(rx);
    assert_eq!(tx.force_send(4), Err(SendError(4)));
}

fn force_send_returns_the_value_if_none_can_be_replaced<B: Backend>() {
    let (tx, rx) = new::<_, B>(0);
    assert_eq!(tx.force_send(1), Ok(Some(1)));
    let task = Probe::new();
    let mut recv = rx.recv();
    assert!(poll(&mut recv, &task).is_pending());
    assert_eq!(tx.force_send(2), Ok(None));
    // The value that was granted is replaced, and the grant stays.
    assert_eq!(tx.force_send(3), Ok(Some(2)));
    assert_eq!(poll(&mut recv, &task), ready(Ok(3)));
}

fn either_half_closes_it_and_values_are_still_received<B: Backend>() {
    for by_sender in [true, false] {
        let (tx, rx) = new::<_, B>(2);
        tx.try_send(1).unwrap();
        assert!(if by_sender { tx.close() } else { rx.close() });
        assert!(!tx.close() && !rx.close());
        assert_eq!(tx.try_send(2), Err(TrySendError::Closed(2)));
        assert_eq!(
            poll(&mut tx.send(3), &Probe::new()),
            ready(Err(SendError(3)))
        );
        assert_eq!(poll(&mut rx.recv(), &Probe::new()), ready(Ok(1)));
        assert_eq!(poll(&mut rx.recv(), &Probe::new()), ready(Err(RecvError)));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    }
}

fn a_close_refuses_a_sender_that_was_granted_room<B: Backend>() {
    let (tx, rx) = new::<_, B>(1);
    tx.try_send(1).unwrap();
    let task = Probe::new();
    let mut send = tx.send(2);
    assert!(poll(&mut send, &task).is_pending());
    assert_eq!(rx.try_recv(), Ok(1));
    rx.close();
    assert_eq!(poll(&mut send, &task), ready(Err(SendError(2))));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

fn a_close_wakes_more_than_a_wake_list_holds<B: Backend>() {
    let (tx, rx) = new::<u32, B>(1);
    let many = 3 * WakeList::CAPACITY;
    let tasks: Vec<_> = (0..many).map(|_| Probe::new()).collect();
    let mut receives: Vec<_> = tasks.iter().map(|_| rx.recv()).collect();
    for (recv, task) in receives.iter_mut().zip(&tasks) {
        assert!(poll(recv, task).is_pending());
    }
    tx.close();
    for (recv, task) in receives.iter_mut().zip(&tasks) {
        assert_eq!(task.wakes(), 1);
        assert_eq!(poll(recv, task), ready(Err(RecvError)));
    }
}

fn the_last_half_of_a_kind_closes<B: Backend>() {
    let (tx, rx) = new::<u32, B>(1);
    let (another_tx, another_rx) = (tx.clone(), rx.clone());
    assert_eq!((tx.sender_count(), rx.receiver_count()), (2, 2));
    drop(another_tx);
    drop(another_rx);
    assert!(!tx.is_closed());
    assert_eq!((rx.sender_count(), tx.receiver_count()), (1, 1));
    let task = Probe::new();
    let mut recv = rx.recv();
    assert!(poll(&mut recv, &task).is_pending());
    drop(tx);
    assert_eq!(poll(&mut recv, &task), ready(Err(RecvError)));
    let (tx, rx) = new::<u32, B>(0);
    let mut send = tx.send(1);
    assert!(poll(&mut send, &task).is_pending());
    drop(rx);
    assert_eq!(poll(&mut send, &task), ready(Err(SendError(1))));
}

fn the_last_receiver_drops_the_values<B: Backend>() {
    let value = Arc::new(());
    let (tx, rx) = unbounded_in::<_, B>();
    for _ in 0..100 {
        tx.try_send(value.clone()).unwrap();
    }
    drop(rx.clone());
    assert_eq!(Arc::strong_count(&value), 101);
    drop(rx);
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(tx.len(), 0);
}

fn weak_halves_do_not_keep_it_open<B: Backend>() {
    let (tx, rx) = new::<u32, B>(1);
    let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
    let upgraded = weak_tx.upgrade().unwrap();
    assert!(upgraded.same_channel(&tx));
    drop(tx);
    assert!(!rx.is_closed());
    drop(upgraded);
    assert!(rx.is_closed());
    assert!(weak_tx.upgrade().is_none());
    assert!(weak_rx.upgrade().is_none());
}

fn closed_waits_for_the_close<B: Backend>() {
    let (tx, rx) = new::<u32, B>(1);
    let task = Probe::new();
    let mut closed = tx.closed();
    assert!(poll(&mut closed, &task).is_pending());
    drop(tx.closed());
    rx.close();
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut closed, &task).is_ready());
    assert!(poll(&mut tx.closed(), &task).is_ready());
}

fn a_stream_keeps_its_place_and_passes_its_value_on<B: Backend>() {
    let (tx, mut stream) = new::<_, B>(1);
    let rx = stream.clone();
    let task = Probe::new();
    assert!(Pin::new(&mut stream).poll_next(&mut task.cx()).is_pending());
    let mut recv = rx.recv();
    let other = Probe::new();
    assert!(poll(&mut recv, &other).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!((task.wakes(), other.wakes()), (1, 0));
    drop(stream);
    assert_eq!(other.wakes(), 1);
    assert_eq!(poll(&mut recv, &other), ready(Ok(1)));
    drop(recv);
    let mut stream = rx;
    drop(tx);
    assert_eq!(Pin::new(&mut stream).poll_next(&mut task.cx()), ready(None));
}

fn the_panic_of_a_senders_waker_puts_the_value_back<B: Backend>() {
    for blocking in [false, true] {
        let (tx, rx) = new::<_, B>(2);
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        let task = Probe::new();
        let mut send = tx.send(3);
        assert!(poll(&mut send, &task).is_pending());
        task.panic_on(Event::Wake);
        let unwound = catch_unwind(AssertUnwindSafe(|| match blocking {
            true => drop(rx.try_recv()),
            false => drop(poll(&mut rx.recv(), &Probe::new())),
        }));
        assert!(unwound.is_err());
        assert_eq!(poll(&mut send, &task), ready(Ok(())));
        for value in [1, 2, 3] {
            assert_eq!(rx.try_recv(), Ok(value));
        }
    }
}

fn the_panic_of_a_receivers_waker_sends_the_value_once<B: Backend>() {
    let (tx, rx) = new::<_, B>(2);
    let task = Probe::new();
    let mut recv = rx.recv();
    assert!(poll(&mut recv, &task).is_pending());
    task.panic_on(Event::Wake);
    assert!(catch_unwind(AssertUnwindSafe(|| tx.try_send(1))).is_err());
    assert_eq!(poll(&mut recv, &task), ready(Ok(1)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

fn a_sent_future_is_ready_after_a_panic<B: Backend>() {
    let (tx, rx) = new::<_, B>(2);
    let task = Probe::new();
    let mut recv = rx.recv();
    assert!(poll(&mut recv, &task).is_pending());
    task.panic_on(Event::Wake);
    let mut send = tx.send(1);
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut send, &Probe::new()))).is_err());
    assert_eq!(poll(&mut send, &Probe::new()), ready(Ok(())));
    assert_eq!(poll(&mut recv, &task), ready(Ok(1)));
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (tx, rx) = new::<_, B>(1);
    tx.try_send(1).unwrap();
    let text = format!("{tx:?} {rx:?} {:?} {:?}", tx.downgrade(), rx.downgrade());
    for known in [
        "Sender",
        "Receiver",
        "WeakSender",
        "WeakReceiver",
        "len: 1",
        "capacity: 1",
    ] {
        assert!(text.contains(known), "{text} names {known}");
    }
    let futures = format!("{:?} {:?} {:?}", tx.send(2), rx.recv(), tx.closed());
    assert!(futures.contains("waits: false"), "{futures}");
}

#[test]
fn each_value_reaches_one_thread() {
    for capacity in [0, 1, 16] {
        let (tx, rx) = bounded(capacity);
        let senders: Vec<_> = (0..2_u64)
            .map(|sender| {
                let tx = tx.clone();
                thread::spawn(move || {
                    for value in 0..500 {
                        tx.send_blocking(sender * 500 + value).unwrap();
                    }
                })
            })
            .collect();
        drop(tx);
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let rx = rx.clone();
                thread::spawn(move || {
                    let mut values = Vec::new();
                    while let Ok(value) = rx.recv_blocking() {
                        values.push(value);
                    }
                    values
                })
            })
            .collect();
        for sender in senders {
            sender.join().unwrap();
        }
        let mut values: Vec<_> = receivers
            .into_iter()
            .flat_map(|receiver| receiver.join().unwrap())
            .collect();
        values.sort_unstable();
        assert_eq!(values, (0..1000).collect::<Vec<_>>());
    }
}

#[test]
#[should_panic(expected = "mpmc::Sender::send polled after it was ready")]
fn a_send_that_is_polled_after_it_was_ready_panics() {
    let (tx, _rx) = bounded(1);
    let mut send = tx.send(1);
    assert!(poll(&mut send, &Probe::new()).is_ready());
    let _ = poll(&mut send, &Probe::new());
}
