//! What `reveille::broadcast` promises: the semantics of `tokio::sync::broadcast` over
//! every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::broadcast::error::{RecvError, SendError, TryRecvError};
use reveille::broadcast::{Receiver, Sender, channel, channel_in};
use reveille::protocol::WakeList;

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    every_receiver_gets_every_value,
    a_receiver_gets_what_is_sent_after_it_came,
    a_send_without_receivers_gives_the_value_back,
    a_receiver_that_lags_is_told_how_many_it_missed,
    the_capacity_is_rounded_up,
    a_value_is_dropped_when_all_have_received_it,
    the_last_receiver_gets_the_value_itself,
    a_receiver_that_goes_drops_what_only_it_had_left,
    recv_waits_for_a_value,
    recv_that_is_dropped_leaves_no_waker_and_loses_no_value,
    a_send_wakes_more_than_a_wake_list_holds,
    the_last_sender_closes,
    weak_senders_do_not_keep_it_open,
    closed_waits_for_the_last_receiver,
    lengths_count_what_is_not_received,
    a_value_may_use_the_channel_when_it_is_cloned_or_dropped,
    a_waker_that_panics_loses_no_value,
    a_spike_gives_its_memory_back,
    debug_output_names_what_is_known,
];

fn new<T: Clone, B: Backend>(capacity: usize) -> (Sender<T, B>, Receiver<T, B>) {
    channel_in(capacity)
}

fn every_receiver_gets_every_value<B: Backend>() {
    let (tx, rx) = new::<_, B>(8);
    let mut receivers = [rx, tx.subscribe(), tx.subscribe()];
    let another = tx.clone();
    for value in 0..8 {
        let tx = if value % 2 == 0 { &tx } else { &another };
        assert_eq!(tx.send(value), Ok(3));
    }
    for rx in &mut receivers {
        for value in 0..8 {
            assert_eq!(poll(&mut rx.recv(), &Probe::new()), Poll::Ready(Ok(value)));
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    }
    assert!(tx.is_empty());
}

fn a_receiver_gets_what_is_sent_after_it_came<B: Backend>() {
    let (tx, mut first) = new::<_, B>(4);
    tx.send(1).unwrap();
    let mut second = first.resubscribe();
    assert!(second.same_channel(&first) && tx.same_channel(&tx.clone()));
    assert_eq!(tx.send(2), Ok(2));
    assert_eq!(second.try_recv(), Ok(2));
    assert_eq!((first.try_recv(), first.try_recv()), (Ok(1), Ok(2)));
}

fn a_send_without_receivers_gives_the_value_back<B: Backend>() {
    let (tx, rx) = new::<_, B>(1);
    drop(rx);
    assert_eq!(tx.send(1), Err(SendError(1)));
    let mut rx = tx.subscribe();
    assert_eq!(tx.send(2), Ok(1));
    assert_eq!(rx.try_recv(), Ok(2));
}

fn a_receiver_that_lags_is_told_how_many_it_missed<B: Backend>() {
    let (tx, mut slow) = new::<_, B>(2);
    let mut fast = tx.subscribe();
    for value in 0..5 {
        tx.send(value).unwrap();
        assert_eq!(fast.try_recv(), Ok(value));
    }
    assert_eq!(slow.len(), 5);
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(3)));
    assert_eq!(poll(&mut slow.recv(), &Probe::new()), Poll::Ready(Ok(3)));
    tx.send(5).unwrap();
    tx.send(6).unwrap();
    let lagged = poll(&mut slow.recv(), &Probe::new());
    assert_eq!(lagged, Poll::Ready(Err(RecvError::Lagged(1))));
    assert_eq!((slow.try_recv(), slow.try_recv()), (Ok(5), Ok(6)));
    assert_eq!(slow.try_recv(), Err(TryRecvError::Empty));
}

fn the_capacity_is_rounded_up<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(3);
    (0..4).for_each(|value| assert!(tx.send(value).is_ok()));
    assert_eq!(rx.try_recv(), Ok(0));
    for capacity in [0, usize::MAX] {
        let message = panic_of(|| drop(Sender::<u32, B>::new_in(capacity)));
        assert!(message.is_some_and(|message| message.contains("capacity")));
    }
}

fn a_value_is_dropped_when_all_have_received_it<B: Backend>() {
    let count = Rc::new(());
    let (tx, mut first) = new::<_, B>(4);
    let mut second = tx.subscribe();
    tx.send(count.clone()).unwrap();
    assert!(first.try_recv().is_ok());
    assert_eq!(Rc::strong_count(&count), 2);
    assert!(second.try_recv().is_ok());
    assert_eq!(Rc::strong_count(&count), 1);
    // And when it is overwritten.
    (0..6).for_each(|_| drop(tx.send(count.clone())));
    assert_eq!(Rc::strong_count(&count), 5);
    drop((first, second));
    assert_eq!(Rc::strong_count(&count), 1);
}

fn the_last_receiver_gets_the_value_itself<B: Backend>() {
    struct Counts(Rc<Cell<usize>>);

    impl Clone for Counts {
        fn clone(&self) -> Self {
            self.0.set(self.0.get() + 1);
            Self(self.0.clone())
        }
    }

    let clones = Rc::new(Cell::new(0));
    let (tx, mut first) = new::<_, B>(1);
    let mut second = tx.subscribe();
    assert!(tx.send(Counts(clones.clone())).is_ok());
    assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
    assert_eq!(clones.get(), 1);
}

fn a_receiver_that_goes_drops_what_only_it_had_left<B: Backend>() {
    let count = Rc::new(());
    let (tx, mut first) = new::<_, B>(4);
    let second = tx.subscribe();
    (0..3).for_each(|_| drop(tx.send(count.clone())));
    assert!(first.try_recv().is_ok());
    drop(second);
    assert_eq!((Rc::strong_count(&count), tx.len()), (3, 2));
    assert_eq!(tx.receiver_count(), 1);
    drop(first);
    assert_eq!((Rc::strong_count(&count), tx.len()), (1, 0));
}

fn recv_waits_for_a_value<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let mut other = tx.subscribe();
    let (first, second) = (Probe::new(), Probe::new());
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &first), Poll::Pending);
    assert_eq!(poll(&mut recv, &second), Poll::Pending);
    let mut others = other.recv();
    assert_eq!(poll(&mut others, &first), Poll::Pending);
    tx.send(7).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert_eq!(poll(&mut recv, &second), Poll::Ready(Ok(7)));
    assert_eq!(poll(&mut others, &first), Poll::Ready(Ok(7)));
}

fn recv_that_is_dropped_leaves_no_waker_and_loses_no_value<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let task = Probe::new();
    for sends in [false, true] {
        let mut recv = rx.recv();
        assert_eq!(poll(&mut recv, &task), Poll::Pending);
        if sends {
            tx.send(7).unwrap();
        }
        drop(recv);
        assert_eq!(task.kept(), 0);
    }
    assert_eq!(rx.try_recv(), Ok(7));
}

fn a_send_wakes_more_than_a_wake_list_holds<B: Backend>() {
    let (tx, rx) = new::<u32, B>(1);
    drop(rx);
    let task = Probe::new();
    let many = 2 * WakeList::CAPACITY + 1;
    let mut receivers: Vec<_> = (0..many).map(|_| tx.subscribe()).collect();
    let mut waits: Vec<_> = receivers.iter_mut().map(Receiver::recv).collect();
    for wait in &mut waits {
        assert_eq!(poll(wait, &task), Poll::Pending);
    }
    assert_eq!(tx.send(7), Ok(many));
    assert_eq!((task.wakes(), task.kept()), (many, 0));
    for wait in &mut waits {
        assert_eq!(poll(wait, &task), Poll::Ready(Ok(7)));
    }
}

fn the_last_sender_closes<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let another = tx.clone();
    assert_eq!((tx.strong_count(), rx.sender_strong_count()), (2, 2));
    tx.send(1).unwrap();
    drop(tx);
    assert!(!rx.is_closed());
    assert_eq!(rx.try_recv(), Ok(1));
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(another);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(Err(RecvError::Closed)));
    drop(recv);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert!(rx.is_closed());
}

fn weak_senders_do_not_keep_it_open<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let weak = tx.downgrade();
    let weaker = weak.clone();
    assert_eq!((weaker.weak_count(), rx.sender_weak_count()), (2, 2));
    weak.upgrade().unwrap().send(1).unwrap();
    drop(tx);
    assert!(weak.upgrade().is_none());
    assert_eq!(weak.strong_count(), 0);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

fn closed_waits_for_the_last_receiver<B: Backend>() {
    let (tx, first) = new::<u32, B>(1);
    let second = tx.subscribe();
    let task = Probe::new();
    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    drop(first);
    assert_eq!(task.wakes(), 0);
    drop(second);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut closed, &task), Poll::Ready(()));
    assert_eq!(poll(&mut tx.closed(), &task), Poll::Ready(()));
    let _third = tx.subscribe();
    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    drop(closed);
    assert_eq!(task.kept(), 0);
}

fn lengths_count_what_is_not_received<B: Backend>() {
    let (tx, mut first) = new::<_, B>(4);
    let second = tx.subscribe();
    (0..3).for_each(|value| assert!(tx.send(value).is_ok()));
    first.try_recv().unwrap();
    assert_eq!((tx.len(), first.len(), second.len()), (3, 2, 3));
    assert!(!first.is_empty() && !tx.is_empty());
}

fn a_value_may_use_the_channel_when_it_is_cloned_or_dropped<B: Backend>() {
    struct Looks<B: Backend>(Option<Sender<Self, B>>);

    impl<B: Backend> Clone for Looks<B> {
        fn clone(&self) -> Self {
            assert!(self.0.as_ref().is_some_and(|tx| tx.len() < 4));
            Self(self.0.clone())
        }
    }

    impl<B: Backend> Drop for Looks<B> {
        fn drop(&mut self) {
            assert!(self.0.as_ref().is_some_and(|tx| tx.len() < 4));
        }
    }

    let (tx, mut first) = new::<_, B>(2);
    let mut second = tx.subscribe();
    for _ in 0..4 {
        assert!(tx.send(Looks(Some(tx.clone()))).is_ok());
    }
    assert!(first.try_recv().is_err() && first.try_recv().is_ok());
    assert!(second.try_recv().is_err() && second.try_recv().is_ok());
    drop((first, second));
    assert_eq!(tx.strong_count(), 1);
}

fn a_waker_that_panics_loses_no_value<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    tx.send(7).unwrap();
    let task = Probe::new();
    let mut recv = rx.recv();
    task.panic_on(Event::Drop);
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut recv, &task)));
    assert!(polled.is_err(), "the clone that was not needed is dropped");
    drop(recv);
    assert_eq!(rx.len(), 1);
    assert_eq!(poll(&mut rx.recv(), &Probe::new()), Poll::Ready(Ok(7)));
    let mut recv = rx.recv();
    let (first, second) = (Probe::new(), Probe::new());
    assert_eq!(poll(&mut recv, &first), Poll::Pending);
    first.panic_on(Event::Wake);
    assert!(catch_unwind(AssertUnwindSafe(|| tx.send(8))).is_err());
    assert_eq!(poll(&mut recv, &second), Poll::Ready(Ok(8)));
}

fn a_spike_gives_its_memory_back<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1 << 16);
    (0..1 << 16).for_each(|value| assert!(tx.send(value).is_ok()));
    (0..1 << 16).for_each(|value| assert_eq!(rx.try_recv(), Ok(value)));
    assert_eq!((tx.len(), rx.len()), (0, 0));
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    tx.send(1).unwrap();
    let text = format!("{tx:?} {rx:?} {:?} {:?}", tx.closed(), tx.downgrade());
    for known in [
        "capacity: 2",
        "values: 1",
        "receivers: 1",
        "senders: 1",
        "len: 1",
    ] {
        assert!(text.contains(known), "no {known} in {text}");
    }
    assert!(format!("{:?}", rx.recv()).contains("waits: false"));
}

#[test]
fn threads_receive_every_value_or_are_told() {
    let (tx, rx) = channel(16);
    let receivers: Vec<_> = (0..2)
        .map(|_| rx.resubscribe())
        .map(|mut rx| {
            thread::spawn(move || {
                let (mut next, mut received, mut missed) = (0, 0, 0);
                loop {
                    match rx.blocking_recv() {
                        Ok(value) => {
                            assert_eq!(value, next);
                            next += 1;
                            received += 1;
                        }
                        Err(RecvError::Lagged(lagged)) => {
                            next += lagged;
                            missed += lagged;
                        }
                        Err(RecvError::Closed) => return received + missed,
                    }
                }
            })
        })
        .collect();
    drop(rx);
    for value in 0..20_000u64 {
        tx.send(value).unwrap();
    }
    drop(tx);
    for receiver in receivers {
        assert_eq!(receiver.join().unwrap(), 20_000);
    }
}
