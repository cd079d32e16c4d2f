//! What `reveille::mpsc` promises: the semantics of `tokio::sync::mpsc` over every
//! backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::mpsc::error::{SendError, SendTimeoutError, TryRecvError, TrySendError};
use reveille::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, channel_in, unbounded_channel,
    unbounded_channel_in,
};
use reveille::protocol::{WakeList, block_on};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    values_come_in_the_order_they_were_sent,
    a_full_channel_refuses_and_gives_the_value_back,
    a_send_waits_for_capacity,
    waiting_sends_go_on_in_order,
    a_later_send_does_not_pass_one_that_waits,
    a_send_that_is_dropped_leaves_the_queue_and_can_give_its_value_back,
    a_granted_send_that_is_dropped_hands_its_permit_on,
    permits_are_reserved_used_and_given_back,
    permits_of_many_are_used_one_by_one,
    more_permits_than_the_capacity_are_refused,
    owned_permits_give_the_sender_back,
    values_of_the_batch_count_as_in_the_channel,
    recv_waits_for_a_value,
    recv_that_is_dropped_leaves_no_waker_and_loses_no_value,
    a_look_does_not_take_the_place_of_the_waker,
    recv_many_takes_what_is_there_up_to_the_limit,
    recv_many_takes_what_came_after_the_batch,
    the_last_sender_disconnects,
    the_last_sender_wakes_the_receiver,
    weak_senders_do_not_keep_it_connected,
    closing_refuses_sends_and_keeps_values,
    closing_tells_more_than_a_wake_list_holds,
    a_closed_channel_waits_for_reserved_permits,
    a_permit_given_back_after_the_close_wakes_the_receiver,
    a_grant_that_was_not_seen_before_the_close_is_refused,
    a_grant_dropped_after_the_close_wakes_the_receiver,
    the_receiver_drops_what_is_in_the_channel,
    a_value_sent_by_a_permit_without_a_receiver_is_dropped,
    a_value_that_sends_when_it_is_dropped_is_refused,
    a_value_that_panics_when_it_is_dropped_takes_no_other_with_it,
    a_rendezvous_sends_only_to_a_receiver_that_waits,
    a_rendezvous_holds_no_more_than_was_asked_for,
    a_rendezvous_takes_back_a_permit_that_comes_back_unused,
    a_rendezvous_can_be_polled_by_try_recv_alone,
    a_rendezvous_reserves_while_the_receiver_waits,
    an_unbounded_channel_sends_without_waiting,
    an_unbounded_channel_closes_from_both_sides,
    a_waker_that_panics_in_send_does_not_lose_the_value,
    a_waker_that_panics_in_recv_loses_neither_value_nor_permit,
    a_waker_that_panics_in_recv_many_loses_neither_values_nor_permits,
    a_waker_may_use_the_channel_when_it_is_woken,
    the_wait_for_a_close_can_be_given_up,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

fn new<T, B: Backend>(capacity: usize) -> (Sender<T, B>, Receiver<T, B>) {
    channel_in(capacity)
}

fn drain<T, B: Backend>(rx: &mut Receiver<T, B>) -> Vec<T> {
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

fn values_come_in_the_order_they_were_sent<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(8);
    let another = tx.clone();
    for round in 0..10 {
        for value in 0..4 {
            tx.try_send((round, 2 * value)).unwrap();
            another.try_send((round, 2 * value + 1)).unwrap();
        }
        assert_eq!((rx.len(), tx.capacity()), (8, 0));
        for value in 0..8 {
            let received = poll(&mut rx.recv(), &Probe::new());
            assert_eq!(received, Poll::Ready(Some((round, value))));
        }
        assert!(rx.is_empty());
    }
}

fn a_full_channel_refuses_and_gives_the_value_back<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    assert_eq!(tx.try_send(1), Ok(()));
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(tx.try_send(3), Ok(()));
    assert_eq!((tx.capacity(), tx.max_capacity()), (0, 1));
    assert_eq!((rx.capacity(), rx.max_capacity()), (0, 1));
}

fn a_send_waits_for_capacity<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    tx.try_send(1).unwrap();
    let task = Probe::new();
    let mut send = tx.send(2);
    assert_eq!(poll(&mut send, &task), Poll::Pending);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(task.wakes(), 1);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(poll(&mut send, &task), Poll::Ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(2));
}

fn waiting_sends_go_on_in_order<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    tx.try_send(0).unwrap();
    let tasks = [Probe::new(), Probe::new(), Probe::new()];
    let mut sends = [1, 2, 3].map(|value| tx.send(value));
    for (send, task) in sends.iter_mut().zip(&tasks) {
        assert_eq!(poll(send, task), Poll::Pending);
    }
    for next in 0..3 {
        assert_eq!(rx.try_recv(), Ok(next));
        let woken = tasks.each_ref().map(Probe::wakes);
        assert_eq!(woken.iter().sum::<usize>(), next + 1);
        assert_eq!(poll(&mut sends[next], &tasks[next]), Poll::Ready(Ok(())));
    }
}

fn a_later_send_does_not_pass_one_that_waits<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    tx.try_send(0).unwrap();
    let task = Probe::new();
    let mut send = tx.send(1);
    assert_eq!(poll(&mut send, &task), Poll::Pending);
    assert_eq!(rx.try_recv(), Ok(0));
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(poll(&mut tx.send(3), &Probe::new()), Poll::Pending);
    assert_eq!(poll(&mut send, &task), Poll::Ready(Ok(())));
    assert_eq!(drain(&mut rx), [1]);
}

fn a_send_that_is_dropped_leaves_the_queue_and_can_give_its_value_back<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    tx.try_send(0).unwrap();
    let task = Probe::new();
    let mut first = tx.send(1);
    let mut second = tx.send(2);
    assert_eq!(poll(&mut first, &task), Poll::Pending);
    assert_eq!(poll(&mut second, &task), Poll::Pending);
    assert_eq!(first.into_inner(), Some(1));
    drop(second);
    assert_eq!(task.kept(), 0);
    assert_eq!(rx.try_recv(), Ok(0));
    assert_eq!(tx.capacity(), 1);
    let mut third = tx.send(3);
    assert_eq!(poll(&mut third, &task), Poll::Ready(Ok(())));
    assert_eq!(third.into_inner(), None);
}

fn a_granted_send_that_is_dropped_hands_its_permit_on<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    tx.try_send(0).unwrap();
    let (first, second) = (Probe::new(), Probe::new());
    let mut dropped = tx.send(1);
    let mut waits = tx.reserve();
    assert!(poll(&mut dropped, &first).is_pending());
    assert!(poll(&mut waits, &second).is_pending());
    assert_eq!(rx.try_recv(), Ok(0));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(dropped);
    assert_eq!(second.wakes(), 1);
    assert!(matches!(poll(&mut waits, &second), Poll::Ready(Ok(_))));
}

fn permits_are_reserved_used_and_given_back<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let permit = tx.try_reserve().unwrap();
    assert_eq!(tx.capacity(), 1);
    drop(permit);
    assert_eq!(tx.capacity(), 2);
    tx.try_reserve().unwrap().send(7);
    assert_eq!((tx.capacity(), rx.len()), (1, 1));
    assert_eq!(drain(&mut rx), [7]);
    assert_eq!(tx.capacity(), 2);
}

fn permits_of_many_are_used_one_by_one<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(4);
    let mut permits = tx.try_reserve_many(3).unwrap();
    assert_eq!((permits.len(), tx.capacity()), (3, 1));
    permits.next().unwrap().send(1);
    drop(permits.next());
    assert_eq!(tx.capacity(), 2);
    drop(permits);
    assert_eq!((tx.capacity(), drain(&mut rx)), (3, vec![1]));
    assert_eq!(tx.try_reserve_many(0).unwrap().next().map(drop), None);
    let task = Probe::new();
    let all = tx.try_reserve_many(4).unwrap();
    let mut many = tx.reserve_many(2);
    assert!(poll(&mut many, &task).is_pending());
    drop(all);
    let Poll::Ready(Ok(permits)) = poll(&mut many, &task) else {
        panic!("there is capacity");
    };
    permits
        .enumerate()
        .for_each(|(value, permit)| permit.send(value));
    assert_eq!(drain(&mut rx), [0, 1]);
}

fn more_permits_than_the_capacity_are_refused<B: Backend>() {
    let (tx, _rx) = new::<u32, B>(1);
    for many in [2, usize::MAX] {
        let refused = tx.try_reserve_many(many);
        assert!(matches!(refused, Err(TrySendError::Full(()))));
        let refused = poll(&mut tx.reserve_many(many), &Probe::new());
        assert!(matches!(refused, Poll::Ready(Err(SendError(())))));
    }
    assert_eq!(tx.capacity(), 1);
}

fn owned_permits_give_the_sender_back<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let Poll::Ready(Ok(permit)) = poll(&mut tx.reserve_owned(), &Probe::new()) else {
        panic!("there is capacity");
    };
    assert!(!rx.is_closed());
    let tx = permit.send(1);
    let tx = tx.try_reserve_owned().unwrap_err().into_inner();
    assert_eq!(rx.try_recv(), Ok(1));
    let permit = tx.clone().try_reserve_owned().unwrap();
    assert!(permit.same_channel_as_sender(&tx) && permit.same_channel(&permit));
    drop(permit.release());
    assert_eq!(tx.capacity(), 1);
    drop((tx.try_reserve_owned().unwrap(), rx.recv()));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

fn values_of_the_batch_count_as_in_the_channel<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(3);
    (0..3).for_each(|value| tx.try_send(value).unwrap());
    assert_eq!(rx.try_recv(), Ok(0)); // takes the others along
    assert_eq!((rx.len(), tx.capacity()), (2, 1));
    assert_eq!(tx.try_send(3), Ok(()));
    assert_eq!(tx.try_send(4), Err(TrySendError::Full(4)));
    assert_eq!((rx.len(), rx.is_empty()), (3, false));
    assert_eq!(drain(&mut rx), [1, 2, 3]);
    assert_eq!((rx.len(), tx.capacity()), (0, 3));
}

fn recv_waits_for_a_value<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let (first, second) = (Probe::new(), Probe::new());
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &first), Poll::Pending);
    assert_eq!(poll(&mut recv, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    tx.try_send(7).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(poll(&mut recv, &first), Poll::Ready(Some(7)));
}

fn recv_that_is_dropped_leaves_no_waker_and_loses_no_value<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(recv);
    assert_eq!(task.kept(), 0);
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    tx.try_send(7).unwrap();
    drop(recv);
    assert_eq!(task.kept(), 0);
    assert_eq!(poll(&mut rx.recv(), &task), Poll::Ready(Some(7)));
}

fn a_look_does_not_take_the_place_of_the_waker<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let task = Probe::new();
    assert_eq!(rx.poll_recv(&mut task.cx()), Poll::Pending);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!((rx.is_empty(), rx.len(), rx.is_closed()), (true, 0, false));
    assert_eq!(format!("{rx:?}").matches("Receiver").count(), 1);
    tx.try_send(7).unwrap();
    assert_eq!(task.wakes(), 1);
}

fn recv_many_takes_what_is_there_up_to_the_limit<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(8);
    let task = Probe::new();
    let mut values = vec![9];
    assert_eq!(
        poll(&mut rx.recv_many(&mut values, 0), &task),
        Poll::Ready(0)
    );
    let mut recv = rx.recv_many(&mut values, 3);
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    (0..5).for_each(|value| tx.try_send(value).unwrap());
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(3));
    drop(recv);
    assert_eq!((&values[..], tx.capacity()), (&[9, 0, 1, 2][..], 6));
    drop(tx);
    assert_eq!(
        poll(&mut rx.recv_many(&mut values, 3), &task),
        Poll::Ready(2)
    );
    assert_eq!(
        poll(&mut rx.recv_many(&mut values, 3), &task),
        Poll::Ready(0)
    );
    assert_eq!(values, [9, 0, 1, 2, 3, 4]);
}

fn recv_many_takes_what_came_after_the_batch<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(8);
    (0..3).for_each(|value| tx.try_send(value).unwrap());
    assert_eq!(rx.try_recv(), Ok(0));
    (3..6).for_each(|value| tx.try_send(value).unwrap());
    let mut values = Vec::new();
    let received = rx.poll_recv_many(&mut Probe::new().cx(), &mut values, 4);
    assert_eq!((received, tx.capacity()), (Poll::Ready(4), 7));
    assert_eq!(values, [1, 2, 3, 4]);
    assert_eq!(drain(&mut rx), [5]);
    assert_eq!(tx.capacity(), 8);
}

fn the_last_sender_disconnects<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let another = tx.clone();
    assert_eq!((tx.strong_count(), rx.sender_strong_count()), (2, 2));
    drop(tx);
    another.try_send(7).unwrap();
    assert!(!rx.is_closed());
    drop(another);
    assert!(rx.is_closed());
    assert_eq!(poll(&mut rx.recv(), &Probe::new()), Poll::Ready(Some(7)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(poll(&mut rx.recv(), &Probe::new()), Poll::Ready(None));
    assert_eq!(rx.sender_strong_count(), 0);
}

fn the_last_sender_wakes_the_receiver<B: Backend>() {
    let (tx, mut rx) = new::<u32, B>(1);
    let another = tx.clone();
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(tx);
    assert_eq!(task.wakes(), 0);
    drop(another);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
}

fn weak_senders_do_not_keep_it_connected<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    let weak = tx.downgrade();
    let weaker = weak.clone();
    assert_eq!((weak.weak_count(), rx.sender_weak_count()), (2, 2));
    let upgraded = weak.upgrade().unwrap();
    assert!(upgraded.same_channel(&tx));
    drop(tx);
    upgraded.try_send(7).unwrap();
    assert_eq!((weak.strong_count(), weaker.upgrade().is_some()), (1, true));
    drop(upgraded);
    assert!(weak.upgrade().is_none());
    assert_eq!(rx.try_recv(), Ok(7));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    drop(weaker);
    assert_eq!(weak.weak_count(), 1);
}

fn closing_refuses_sends_and_keeps_values<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    let task = Probe::new();
    let mut send = tx.send(3);
    let mut closed = tx.closed();
    assert_eq!(poll(&mut send, &task), Poll::Pending);
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    rx.close();
    assert_eq!(task.wakes(), 2);
    assert_eq!(poll(&mut send, &task), Poll::Ready(Err(SendError(3))));
    assert_eq!(poll(&mut closed, &task), Poll::Ready(()));
    assert_eq!(poll(&mut closed, &task), Poll::Ready(()));
    assert_eq!(tx.try_send(4), Err(TrySendError::Closed(4)));
    assert!(matches!(
        tx.try_reserve_many(0),
        Err(TrySendError::Closed(()))
    ));
    assert!(tx.is_closed() && rx.is_closed());
    assert_eq!(drain(&mut rx), [1, 2]);
    assert_eq!(poll(&mut rx.recv(), &task), Poll::Ready(None));
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

fn closing_tells_more_than_a_wake_list_holds<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(1);
    tx.try_send(0).unwrap();
    let task = Probe::new();
    let many = 2 * WakeList::CAPACITY + 1;
    let mut sends: Vec<_> = (0..many).map(|_| tx.send(1)).collect();
    let mut closers: Vec<_> = (0..many).map(|_| tx.closed()).collect();
    sends
        .iter_mut()
        .for_each(|send| assert!(poll(send, &task).is_pending()));
    closers
        .iter_mut()
        .for_each(|closed| assert!(poll(closed, &task).is_pending()));
    rx.close();
    assert_eq!(task.wakes(), 2 * many);
    assert_eq!(task.kept(), 0);
}

fn a_closed_channel_waits_for_reserved_permits<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let (used, unused) = (tx.try_reserve().unwrap(), tx.try_reserve().unwrap());
    rx.close();
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    used.send(7);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(Some(7)));
    drop(recv);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    drop(unused);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

fn a_permit_given_back_after_the_close_wakes_the_receiver<B: Backend>() {
    fn wakes<B: Backend, P>(reserve: impl FnOnce(Sender<u32, B>) -> P) {
        let (tx, mut rx) = new::<_, B>(2);
        let another = tx.clone();
        let permit = reserve(tx);
        rx.close();
        let task = Probe::new();
        let mut recv = rx.recv();
        assert_eq!(poll(&mut recv, &task), Poll::Pending);
        drop(permit);
        assert_eq!(task.wakes(), 1);
        assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
        drop(another);
    }
    wakes::<B, _>(|tx| tx.try_reserve_owned().unwrap());
    let (tx, mut rx) = new::<u32, B>(2);
    let (one, many) = (tx.try_reserve().unwrap(), tx.try_reserve_many(1).unwrap());
    rx.close();
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(one);
    assert_eq!(task.wakes(), 0);
    drop(many);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
}

fn a_grant_that_was_not_seen_before_the_close_is_refused<B: Backend>() {
    let (tx, mut rx) = new::<u32, B>(1);
    let permit = tx.try_reserve().unwrap();
    let sender = Probe::new();
    let mut send = tx.send(1);
    assert_eq!(poll(&mut send, &sender), Poll::Pending);
    drop(permit);
    assert_eq!(sender.wakes(), 1);
    rx.close();
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    assert_eq!(poll(&mut send, &sender), Poll::Ready(Err(SendError(1))));
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
}

fn a_grant_dropped_after_the_close_wakes_the_receiver<B: Backend>() {
    let (tx, mut rx) = new::<u32, B>(1);
    let permit = tx.try_reserve().unwrap();
    let mut reserve = tx.reserve();
    assert!(poll(&mut reserve, &Probe::new()).is_pending());
    drop(permit);
    rx.close();
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(reserve);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
}

fn the_receiver_drops_what_is_in_the_channel<B: Backend>() {
    let value = Rc::new(());
    let (tx, mut rx) = new::<_, B>(4);
    (0..4).for_each(|_| tx.try_send(value.clone()).unwrap());
    assert!(rx.try_recv().is_ok()); // the others are in the batch
    tx.try_send(value.clone()).unwrap();
    assert_eq!(Rc::strong_count(&value), 5);
    drop(rx);
    assert_eq!(Rc::strong_count(&value), 1);
    assert!(tx.try_send(value.clone()).is_err());
    assert!(matches!(
        poll(&mut tx.send(value.clone()), &Probe::new()),
        Poll::Ready(Err(_))
    ));
    assert_eq!(Rc::strong_count(&value), 1);
}

fn a_value_sent_by_a_permit_without_a_receiver_is_dropped<B: Backend>() {
    let value = Rc::new(());
    let (tx, rx) = new::<_, B>(1);
    let permit = tx.try_reserve().unwrap();
    drop(rx);
    permit.send(value.clone());
    assert_eq!(Rc::strong_count(&value), 1);
}

fn a_value_that_sends_when_it_is_dropped_is_refused<B: Backend>() {
    struct Sends<B: Backend>(Option<Sender<Self, B>>, Rc<()>);

    impl<B: Backend> Drop for Sends<B> {
        fn drop(&mut self) {
            if let Some(tx) = self.0.take() {
                assert!(tx.try_send(Self(None, self.1.clone())).is_err());
            }
        }
    }

    let count = Rc::new(());
    let (tx, rx) = new::<_, B>(2);
    tx.try_send(Sends(Some(tx.clone()), count.clone())).unwrap();
    drop(rx);
    assert_eq!(Rc::strong_count(&count), 1);
    assert_eq!(tx.strong_count(), 1);
}

fn a_value_that_panics_when_it_is_dropped_takes_no_other_with_it<B: Backend>() {
    struct Panics {
        panics: bool,
        _count: Rc<()>,
    }

    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(!self.panics, "the value panics");
        }
    }

    let count = Rc::new(());
    let (tx, mut rx) = new::<_, B>(8);
    (0..8).for_each(|i| {
        tx.try_send(Panics {
            panics: i == 4,
            _count: count.clone(),
        })
        .unwrap()
    });
    drop(rx.try_recv());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    assert_eq!(Rc::strong_count(&count), 1);
    assert!(tx.is_closed());
}

fn a_rendezvous_sends_only_to_a_receiver_that_waits<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(0);
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    assert_eq!((tx.capacity(), tx.max_capacity()), (0, 0));
    let (sends, receives) = (Probe::new(), Probe::new());
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &receives), Poll::Pending);
    assert_eq!(tx.capacity(), 1);
    assert_eq!(tx.try_send(1), Ok(()));
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(receives.wakes(), 1);
    assert_eq!(poll(&mut recv, &receives), Poll::Ready(Some(1)));
    drop(recv);
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    // And the other way round.
    let mut send = tx.send(3);
    assert_eq!(poll(&mut send, &sends), Poll::Pending);
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &receives), Poll::Pending);
    assert_eq!(sends.wakes(), 1);
    assert_eq!(poll(&mut send, &sends), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut recv, &receives), Poll::Ready(Some(3)));
}

fn a_rendezvous_holds_no_more_than_was_asked_for<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    // Given up without a value: nothing can be sent.
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(recv);
    assert_eq!(task.kept(), 0);
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    // Given up with a grant to a sender: that one can send, once.
    let mut send = tx.send(2);
    assert_eq!(poll(&mut send, &task), Poll::Pending);
    for _ in 0..3 {
        let mut recv = rx.recv();
        assert_eq!(poll(&mut recv, &task), Poll::Pending);
        assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    }
    assert_eq!(poll(&mut send, &task), Poll::Ready(Ok(())));
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    assert_eq!(poll(&mut rx.recv(), &task), Poll::Ready(Some(2)));
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    // A grant that comes back finds the receiver gone, or waiting.
    for waits in [false, true] {
        let mut send = tx.send(2);
        assert_eq!(poll(&mut send, &task), Poll::Pending);
        let mut recv = rx.recv();
        assert_eq!(poll(&mut recv, &task), Poll::Pending);
        match waits {
            true => drop(send),
            false => {
                drop(recv);
                drop(send);
            }
        }
        assert_eq!(tx.capacity(), usize::from(waits));
    }
}

fn a_rendezvous_takes_back_a_permit_that_comes_back_unused<B: Backend>() {
    let (tx, mut rx) = new::<u32, B>(0);
    let task = Probe::new();
    let mut reserve = tx.reserve();
    assert!(poll(&mut reserve, &task).is_pending());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let Poll::Ready(Ok(permit)) = poll(&mut reserve, &task) else {
        panic!("try_recv granted it");
    };
    drop(permit);
    assert_eq!(
        (tx.capacity(), tx.try_send(1)),
        (0, Err(TrySendError::Full(1)))
    );
    // And when the wait ends because the last sender went.
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(reserve);
    drop(tx);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
    drop(recv);
    assert_eq!(rx.capacity(), 0);
}

fn a_rendezvous_can_be_polled_by_try_recv_alone<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(tx.capacity(), 0);
    let mut send = tx.send(7);
    assert_eq!(poll(&mut send, &task), Poll::Pending);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut send, &task), Poll::Ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(7));
    drop(send);
    drop(tx);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

fn a_rendezvous_reserves_while_the_receiver_waits<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    let permit = tx.try_reserve().unwrap();
    assert!(tx.try_reserve_many(1).is_err());
    drop(permit);
    assert_eq!(tx.capacity(), 1);
    let permit = tx.try_reserve_many(1).unwrap().next().unwrap();
    drop(recv);
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    permit.send(7);
    assert_eq!(rx.try_recv(), Ok(7));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

fn unbounded<T, B: Backend>() -> (UnboundedSender<T, B>, UnboundedReceiver<T, B>) {
    unbounded_channel_in()
}

fn an_unbounded_channel_sends_without_waiting<B: Backend>() {
    let (tx, mut rx) = unbounded::<_, B>();
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    (0..1000).for_each(|value| tx.send(value).unwrap());
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(Some(0)));
    drop(recv);
    assert_eq!(rx.len(), 999);
    tx.clone().send(1000).unwrap();
    for value in 1..=1000 {
        assert_eq!(rx.try_recv(), Ok(value));
    }
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

fn an_unbounded_channel_closes_from_both_sides<B: Backend>() {
    let (tx, mut rx) = unbounded::<_, B>();
    let task = Probe::new();
    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    tx.send(1).unwrap();
    rx.close();
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut closed, &task), Poll::Ready(()));
    assert_eq!(tx.send(2), Err(SendError(2)));
    assert_eq!(poll(&mut rx.recv(), &task), Poll::Ready(Some(1)));
    assert_eq!(poll(&mut rx.recv(), &task), Poll::Ready(None));

    let (tx, mut rx) = unbounded::<u32, B>();
    let weak = tx.downgrade();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    drop(tx);
    assert_eq!(poll(&mut recv, &task), Poll::Ready(None));
    assert!(weak.upgrade().is_none());
}

fn a_waker_that_panics_in_send_does_not_lose_the_value<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let task = Probe::new();
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    task.panic_on(Event::Wake);
    let mut send = tx.send(7);
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut send, &Probe::new()))).is_err());
    assert_eq!(poll(&mut send, &Probe::new()), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut recv, &task), Poll::Ready(Some(7)));
}

fn a_waker_that_panics_in_recv_loses_neither_value_nor_permit<B: Backend>() {
    // The first value gives its permit back in the section that fills the batch, the
    // second by itself.
    for first in [true, false] {
        let (tx, mut rx) = new::<_, B>(2);
        (0..2).for_each(|value| tx.try_send(value).unwrap());
        let mut expected = vec![0, 1];
        if !first {
            expected.remove(0);
            assert_eq!(rx.try_recv(), Ok(0));
            tx.try_send(2).unwrap();
            expected.push(2);
        }
        let task = Probe::new();
        let mut send = tx.send(7);
        assert_eq!(poll(&mut send, &task), Poll::Pending);
        task.panic_on(Event::Wake);
        let mut recv = rx.recv();
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut recv, &Probe::new()))).is_err());
        drop(recv);
        assert_eq!(poll(&mut send, &task), Poll::Ready(Ok(())));
        expected.push(7);
        assert_eq!(drain(&mut rx), expected);
        assert_eq!(tx.capacity(), 2);
    }
}

fn a_waker_that_panics_in_recv_many_loses_neither_values_nor_permits<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(3);
    (0..3).for_each(|value| tx.try_send(value).unwrap());
    let task = Probe::new();
    let mut send = tx.send(7);
    assert_eq!(poll(&mut send, &task), Poll::Pending);
    task.panic_on(Event::Wake);
    let mut values = Vec::new();
    let mut recv = rx.recv_many(&mut values, 2);
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut recv, &Probe::new()))).is_err());
    assert_eq!(poll(&mut recv, &Probe::new()), Poll::Ready(2));
    drop(recv);
    assert_eq!(poll(&mut send, &task), Poll::Ready(Ok(())));
    assert_eq!((values, drain(&mut rx)), (vec![0, 1], vec![2, 7]));
    assert_eq!(tx.capacity(), 3);
}

fn a_waker_may_use_the_channel_when_it_is_woken<B: Backend>() {
    let (tx, mut rx) = new::<_, B>(2);
    let (task, again) = (Probe::new(), tx.clone());
    task.on(Event::Wake, move || again.try_send(2).unwrap());
    let mut recv = rx.recv();
    assert_eq!(poll(&mut recv, &task), Poll::Pending);
    tx.try_send(1).unwrap();
    drop(recv);
    assert_eq!(drain(&mut rx), [1, 2]);
}

fn the_wait_for_a_close_can_be_given_up<B: Backend>() {
    let (tx, rx) = new::<u32, B>(1);
    let task = Probe::new();
    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    assert_eq!(task.kept(), 1);
    drop(closed);
    assert_eq!(task.kept(), 0);
    drop(rx);
    assert_eq!(task.wakes(), 0);
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    fn ends<F: Future + Unpin>(mut future: F, name: &str) {
        let task = Probe::new();
        assert!(poll(&mut future, &task).is_ready());
        let message = panic_of(|| drop(poll(&mut future, &task)));
        assert!(message.is_some_and(|message| message.contains(name)));
    }
    let (tx, _rx) = new::<_, B>(4);
    ends(tx.send(1), "mpsc::Sender::send polled");
    ends(tx.reserve(), "mpsc::Sender::reserve polled");
    ends(tx.reserve_many(2), "mpsc::Sender::reserve_many polled");
    ends(
        tx.clone().reserve_owned(),
        "mpsc::Sender::reserve_owned polled",
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (tx, rx) = new::<u32, B>(3);
    let permit = tx.try_reserve().unwrap();
    tx.try_send(1).unwrap();
    let text = format!(
        "{tx:?} {permit:?} {rx:?} {:?} {:?}",
        tx.send(1),
        tx.downgrade()
    );
    for known in [
        "values: 1",
        "free: 1",
        "taken: 2",
        "waiting: 0",
        "granted: 0",
        "len: 1",
    ] {
        assert!(text.contains(known), "no {known} in {text}");
    }
    let (tx, rx) = unbounded::<u32, B>();
    let text = format!("{tx:?} {rx:?} {:?}", tx.closed());
    assert!(text.contains("Unbounded"), "{text}");
}

#[test]
fn threads_block_for_values_and_for_capacity() {
    let (tx, mut rx) = channel(3);
    let senders: Vec<_> = (0..2)
        .map(|_| tx.clone())
        .map(|tx| thread::spawn(move || (0..10_000u64).for_each(|i| tx.blocking_send(i).unwrap())))
        .collect();
    drop(tx);
    let mut sum = 0;
    let mut values = Vec::new();
    while let Some(value) = rx.blocking_recv() {
        sum += value;
        rx.blocking_recv_many(&mut values, 2);
        sum += values.drain(..).sum::<u64>();
    }
    assert_eq!(sum, 2 * (0..10_000).sum::<u64>());
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
}

#[test]
fn threads_send_to_an_unbounded_channel() {
    let (tx, mut rx) = unbounded_channel();
    let senders: Vec<_> = (0..2)
        .map(|_| tx.clone())
        .map(|tx| thread::spawn(move || (0..10_000u64).for_each(|i| tx.send(i).unwrap())))
        .collect();
    drop(tx);
    let sum = std::iter::from_fn(|| rx.blocking_recv()).sum::<u64>();
    assert_eq!(sum, 2 * (0..10_000).sum::<u64>());
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
}

#[test]
fn threads_meet_on_a_rendezvous() {
    let (tx, mut rx) = channel(0);
    let sender = thread::spawn(move || (0..1_000u64).for_each(|i| tx.blocking_send(i).unwrap()));
    for value in 0..1_000 {
        assert_eq!(rx.blocking_recv(), Some(value));
    }
    sender.join().unwrap();
    assert_eq!(rx.blocking_recv(), None);
}

#[test]
fn a_send_gives_up_when_its_time_has_passed() {
    let (tx, mut rx) = channel(1);
    let wait = Duration::from_millis(5);
    block_on::<Native, _>(async {
        assert_eq!(tx.send_timeout(1, wait).await, Ok(()));
        let late = tx.send_timeout(2, wait).await;
        assert_eq!(late, Err(SendTimeoutError::Timeout(2)));
        assert_eq!(rx.recv().await, Some(1));
        assert_eq!(tx.capacity(), 1);
        rx.close();
        let closed = tx.send_timeout(3, Duration::MAX).await;
        assert_eq!(closed, Err(SendTimeoutError::Closed(3)));
    });
}

#[test]
fn a_granted_send_whose_time_has_passed_is_sent() {
    let (tx, mut rx) = channel(1);
    tx.try_send(1).unwrap();
    let mut send = tx.send_timeout(2, Duration::ZERO);
    let mut cx = Context::from_waker(Waker::noop());
    let polled = Pin::new(&mut send).poll(&mut cx);
    if polled.is_pending() {
        assert_eq!(rx.try_recv(), Ok(1));
        thread::sleep(Duration::from_millis(2));
        assert_eq!(Pin::new(&mut send).poll(&mut cx), Poll::Ready(Ok(())));
        assert_eq!(rx.try_recv(), Ok(2));
    }
}
