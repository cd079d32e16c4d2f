//! What `reveille::oneshot` promises: the semantics of `tokio::sync::oneshot` over
//! every storage and every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::marker::{PhantomData, PhantomPinned};
use std::mem::{self, size_of};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Barrier, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use futures_core::FusedFuture;
use reveille::backend::{BlockingBackend, Local, Native, Spin};
use reveille::oneshot::error::{RecvError, TryRecvError};
use reveille::oneshot::{self, Closed, Receiver, Sender, Slot, SlotReceiver, SlotSender};
use reveille::protocol;
use reveille::raw::{Boxed, InSlot, Storage};

use support::channel::{Channel, Heap, Slotted};
use support::probe::{Event, Probe};
use support::token::{Explosive, Token};
use support::{panic_of, poll};

/// Makes one test of each generic test for each kind of channel. A test that is not
/// listed is unused, and the compiler warns.
macro_rules! on_every_channel {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            use super::*;

            #[test]
            fn on_native_heap() {
                super::$test::<Heap<Native>>();
            }

            #[test]
            fn on_native_slot() {
                super::$test::<Slotted<Native>>();
            }

            #[test]
            fn on_local_heap() {
                super::$test::<Heap<Local>>();
            }

            #[test]
            fn on_local_slot() {
                super::$test::<Slotted<Local>>();
            }

            #[test]
            fn on_spin_heap() {
                super::$test::<Heap<Spin>>();
            }

            #[test]
            fn on_spin_slot() {
                super::$test::<Slotted<Spin>>();
            }
        }
    )* };
}

on_every_channel![
    // Sending and receiving.
    a_value_sent_before_the_first_poll_is_ready_at_it,
    a_value_sent_while_the_receiver_waits_wakes_it,
    a_value_can_be_received_without_a_poll,
    a_receiver_returns_empty_as_long_as_a_value_may_come,
    a_sender_dropped_unsent_wakes_the_receiver_with_an_error,
    a_sender_dropped_unsent_is_seen_without_a_poll,
    a_value_outlives_its_sender,
    values_of_every_layout_arrive_whole,
    // Closing.
    a_send_to_a_dropped_receiver_gives_the_value_back,
    a_dropped_receiver_wakes_the_sender_that_waits_for_it,
    a_closed_receiver_wakes_the_sender_that_waits_for_it,
    a_closed_channel_refuses_the_value,
    a_closed_receiver_still_gets_what_was_sent_before,
    a_closed_receiver_without_a_value_is_at_its_end,
    closing_twice_is_closing_once,
    closing_after_the_end_does_nothing,
    closing_wakes_the_receiver_that_waits,
    closed_is_ready_again_and_again,
    a_given_up_wait_for_closing_can_be_taken_up_again,
    // The end.
    a_receiver_is_terminated_once_it_has_returned_its_result,
    a_receiver_is_empty_unless_a_value_is_there,
    try_recv_after_the_end_returns_closed,
    polling_after_the_end_panics_with_the_name,
    // Wakers.
    the_receiver_can_change_its_task,
    the_sender_can_change_its_task,
    polling_again_with_the_same_waker_clones_it_no_second_time,
    halves_that_leave_take_their_wakers_along,
    a_refused_send_leaves_no_waker_behind,
    a_wait_that_ended_leaves_no_waker_behind,
    the_other_sides_waker_is_woken_where_ones_own_panics,
    // Values.
    a_value_not_received_is_dropped_with_the_receiver,
    a_value_kept_by_a_closed_receiver_is_dropped_with_it,
    a_refused_value_is_only_given_back,
    a_value_that_panics_in_drop_leaves_the_channel_whole,
    debug_output_names_what_is_known,
];

/// Users cannot create the error.
fn no_value() -> RecvError {
    let (tx, rx) = oneshot::channel::<u32>();
    drop(tx);
    rx.blocking_recv().unwrap_err()
}

fn a_value_sent_before_the_first_poll_is_ready_at_it<C: Channel>() {
    let task = Probe::new();
    let (tx, mut rx) = C::open();
    assert_eq!(tx.send(7), Ok(()));
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Ok(7)));
    assert_eq!(task.clones(), 0, "no waker is left for what is there");
}

fn a_value_sent_while_the_receiver_waits_wakes_it<C: Channel>() {
    let task = Probe::new();
    let (tx, mut rx) = C::open();
    assert_eq!(poll(&mut rx, &task), Poll::Pending);
    assert_eq!(task.wakes(), 0);
    assert_eq!(tx.send(7), Ok(()));
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Ok(7)));
}

fn a_value_can_be_received_without_a_poll<C: Channel>() {
    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
}

fn a_receiver_returns_empty_as_long_as_a_value_may_come<C: Channel>() {
    let task = Probe::new();
    let (tx, mut rx) = C::open();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    // It takes nothing from the wait that follows.
    assert_eq!(poll(&mut rx, &task), Poll::Pending);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    tx.send(7).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(rx.try_recv(), Ok(7));
}

fn a_sender_dropped_unsent_wakes_the_receiver_with_an_error<C: Channel>() {
    let task = Probe::new();
    let (tx, mut rx) = C::open::<u32>();
    assert_eq!(poll(&mut rx, &task), Poll::Pending);
    drop(tx);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));
}

fn a_sender_dropped_unsent_is_seen_without_a_poll<C: Channel>() {
    let (tx, mut rx) = C::open::<u32>();
    drop(tx);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

fn a_value_outlives_its_sender<C: Channel>() {
    /// Sends when it is dropped, as a guard that reports its end.
    struct SendsOnDrop<C: Channel>(Option<Sender<&'static str, C::Storage>>);

    impl<C: Channel> Drop for SendsOnDrop<C> {
        fn drop(&mut self) {
            let tx = self.0.take().unwrap();
            tx.send("gone").unwrap();
        }
    }

    let (tx, mut rx) = C::open();
    drop(SendsOnDrop::<C>(Some(tx)));
    assert_eq!(poll(&mut rx, &Probe::new()), Poll::Ready(Ok("gone")));
}

fn values_of_every_layout_arrive_whole<C: Channel>() {
    #[derive(Debug, Clone, PartialEq)]
    #[repr(align(256))]
    struct Aligned(u8);

    fn arrives<C: Channel, T: Clone + Debug + PartialEq + 'static>(value: T) {
        let task = Probe::new();
        let (tx, mut rx) = C::open();
        tx.send(value.clone()).unwrap();
        assert_eq!(poll(&mut rx, &task), Poll::Ready(Ok(value.clone())));

        let (tx, mut rx) = C::open();
        assert_eq!(poll(&mut rx, &task), Poll::Pending);
        tx.send(value.clone()).unwrap();
        assert_eq!(rx.try_recv(), Ok(value.clone()));

        let (tx, rx) = C::open();
        drop(rx);
        assert_eq!(tx.send(value.clone()), Err(value));
    }

    arrives::<C, _>(());
    arrives::<C, _>(7_u8);
    arrives::<C, _>(None::<Box<u32>>);
    arrives::<C, _>(Some(Box::new(7)));
    arrives::<C, _>(String::from("a value with a destructor"));
    arrives::<C, _>(Aligned(7));
    arrives::<C, _>([7_u64; 512]);
}

fn a_send_to_a_dropped_receiver_gives_the_value_back<C: Channel>() {
    let (tx, rx) = C::open();
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!(tx.send(7), Err(7));
}

fn a_dropped_receiver_wakes_the_sender_that_waits_for_it<C: Channel>() {
    let task = Probe::new();
    let (mut tx, rx) = C::open();
    assert!(!tx.is_closed());
    assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Pending);
    drop(rx);
    assert_eq!(task.wakes(), 1);
    assert!(tx.is_closed());
    assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Ready(()));
    assert_eq!(tx.send(7), Err(7));
}

fn a_closed_receiver_wakes_the_sender_that_waits_for_it<C: Channel>() {
    let task = Probe::new();
    let (mut tx, mut rx) = C::open();
    assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Pending);
    rx.close();
    assert_eq!(task.wakes(), 1);
    assert!(tx.is_closed());
    assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Ready(()));
    assert_eq!(tx.send(7), Err(7));
    assert_eq!(poll(&mut rx, &Probe::new()), Poll::Ready(Err(no_value())));
}

fn a_closed_channel_refuses_the_value<C: Channel>() {
    // The sender waits, has waited, or never did.
    for waits in [true, false] {
        let task = Probe::new();
        let (mut tx, mut rx) = C::open();
        if waits {
            assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Pending);
        }
        rx.close();
        assert_eq!(tx.send(7), Err(7));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    }
}

fn a_closed_receiver_still_gets_what_was_sent_before<C: Channel>() {
    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    rx.close();
    assert!(!rx.is_empty());
    assert_eq!(poll(&mut rx, &Probe::new()), Poll::Ready(Ok(7)));

    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    rx.close();
    assert_eq!(rx.try_recv(), Ok(7));
}

fn a_closed_receiver_without_a_value_is_at_its_end<C: Channel>() {
    let task = Probe::new();

    let (tx, mut rx) = C::open::<u32>();
    rx.close();
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));
    drop(tx);

    let (tx, mut rx) = C::open::<u32>();
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    drop(tx);

    // The sender may also have been dropped before.
    let (tx, mut rx) = C::open::<u32>();
    drop(tx);
    rx.close();
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));

    assert_eq!(task.clones(), 0, "none of them waits");
}

fn closing_twice_is_closing_once<C: Channel>() {
    let task = Probe::new();
    let (mut tx, mut rx) = C::open::<u32>();
    assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Pending);
    rx.close();
    rx.close();
    drop(rx);
    assert_eq!(task.wakes(), 1);
    assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Ready(()));
}

fn closing_after_the_end_does_nothing<C: Channel>() {
    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));

    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(poll(&mut rx, &Probe::new()), Poll::Ready(Ok(7)));
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

/// If a receiver is shared behind a lock of the user, the task that closes it need
/// not be the task that waits. Closing completes the wait, so it wakes.
fn closing_wakes_the_receiver_that_waits<C: Channel>() {
    let task = Probe::new();
    let (_tx, mut rx) = C::open::<u32>();
    assert_eq!(poll(&mut rx, &task), Poll::Pending);
    rx.close();
    assert_eq!((task.wakes(), task.kept()), (1, 0));
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));
}

fn closed_is_ready_again_and_again<C: Channel>() {
    let task = Probe::new();
    let (mut tx, rx) = C::open::<u32>();
    drop(rx);
    for _ in 0..3 {
        assert_eq!(poll(&mut tx.closed(), &task), Poll::Ready(()));
        assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Ready(()));
    }
    assert_eq!(task.clones(), 0);
}

fn a_given_up_wait_for_closing_can_be_taken_up_again<C: Channel>() {
    let (first, second) = (Probe::new(), Probe::new());
    let (mut tx, rx) = C::open::<u32>();

    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &first), Poll::Pending);
    assert_eq!(poll(&mut closed, &first), Poll::Pending);
    drop(closed);

    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &second), Poll::Pending);
    drop(rx);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(poll(&mut closed, &second), Poll::Ready(()));
    drop(closed);

    assert_eq!(tx.send(7), Err(7));
}

fn a_receiver_is_terminated_once_it_has_returned_its_result<C: Channel>() {
    let task = Probe::new();

    // By a value that is polled for.
    let (tx, mut rx) = C::open();
    assert!(!rx.is_terminated());
    assert_eq!(poll(&mut rx, &task), Poll::Pending);
    assert!(!rx.is_terminated());
    tx.send(7).unwrap();
    assert!(!rx.is_terminated());
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Ok(7)));
    assert!(rx.is_terminated());

    // By a value that is tried for.
    let (tx, mut rx) = C::open();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert!(!rx.is_terminated());
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
    assert!(rx.is_terminated());

    // By the end of the sender.
    let (tx, mut rx) = C::open::<u32>();
    drop(tx);
    assert!(!rx.is_terminated());
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));
    assert!(rx.is_terminated());

    // By closing.
    let (_tx, mut rx) = C::open::<u32>();
    rx.close();
    assert!(!rx.is_terminated());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert!(rx.is_terminated());
}

fn a_receiver_is_empty_unless_a_value_is_there<C: Channel>() {
    let task = Probe::new();

    let (tx, mut rx) = C::open();
    assert!(rx.is_empty());
    tx.send(7).unwrap();
    assert!(!rx.is_empty());
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Ok(7)));
    assert!(rx.is_empty());

    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
    assert!(rx.is_empty());

    let (tx, mut rx) = C::open::<u32>();
    drop(tx);
    assert!(rx.is_empty());
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));
    assert!(rx.is_empty());

    let (tx, mut rx) = C::open();
    rx.close();
    assert!(rx.is_empty());
    assert_eq!(tx.send(7), Err(7));
    assert!(rx.is_empty(), "a refused value is not there");
}

fn try_recv_after_the_end_returns_closed<C: Channel>() {
    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
    for _ in 0..3 {
        assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    }

    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(poll(&mut rx, &Probe::new()), Poll::Ready(Ok(7)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

fn polling_after_the_end_panics_with_the_name<C: Channel>() {
    fn panics<C: Channel>(mut rx: Receiver<u32, C::Storage>) {
        assert!(rx.is_terminated());
        let message = panic_of(|| drop(poll(&mut rx, &Probe::new()))).expect("a panic");
        assert!(message.contains("oneshot::Receiver"), "{message}");
    }

    let task = Probe::new();

    let (tx, mut rx) = C::open();
    tx.send(7).unwrap();
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Ok(7)));
    panics::<C>(rx);

    let (tx, mut rx) = C::open();
    drop(tx);
    assert_eq!(poll(&mut rx, &task), Poll::Ready(Err(no_value())));
    panics::<C>(rx);

    let (_tx, mut rx) = C::open();
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    panics::<C>(rx);
}

fn the_receiver_can_change_its_task<C: Channel>() {
    let (first, second) = (Probe::new(), Probe::new());
    let (tx, mut rx) = C::open();
    assert_eq!(poll(&mut rx, &first), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (1, 0));
    assert_eq!(poll(&mut rx, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    tx.send(7).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(poll(&mut rx, &second), Poll::Ready(Ok(7)));
}

fn the_sender_can_change_its_task<C: Channel>() {
    let (first, second) = (Probe::new(), Probe::new());
    let (mut tx, rx) = C::open::<u32>();
    assert_eq!(tx.poll_closed(&mut first.cx()), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (1, 0));
    assert_eq!(tx.poll_closed(&mut second.cx()), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    drop(rx);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(tx.poll_closed(&mut second.cx()), Poll::Ready(()));
}

fn polling_again_with_the_same_waker_clones_it_no_second_time<C: Channel>() {
    let task = Probe::new();
    let (mut tx, mut rx) = C::open::<u32>();
    for _ in 0..3 {
        assert_eq!(poll(&mut rx, &task), Poll::Pending);
        assert_eq!((task.clones(), task.kept()), (1, 1));
    }
    let task = Probe::new();
    for _ in 0..3 {
        assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Pending);
        assert_eq!((task.clones(), task.kept()), (1, 1));
    }
}

fn halves_that_leave_take_their_wakers_along<C: Channel>() {
    #[derive(Debug, Clone, Copy)]
    enum Leaves {
        Sender,
        Receiver,
        SenderBySending,
    }

    for leaves in [Leaves::Sender, Leaves::Receiver, Leaves::SenderBySending] {
        let (sender, receiver) = (Probe::new(), Probe::new());
        let (mut tx, mut rx) = C::open();
        assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Pending);
        assert_eq!(poll(&mut rx, &receiver), Poll::Pending);
        assert_eq!((sender.kept(), receiver.kept()), (1, 1));

        // It is dropped at once, and not with the other half, which can live long.
        let mut halves = (Some(tx), Some(rx));
        match leaves {
            Leaves::Sender => halves.0 = None,
            Leaves::Receiver => halves.1 = None,
            Leaves::SenderBySending => halves.0.take().unwrap().send(7).unwrap(),
        }
        let wakes = match leaves {
            Leaves::Receiver => (1, 0),
            Leaves::Sender | Leaves::SenderBySending => (0, 1),
        };
        assert_eq!((sender.kept(), receiver.kept()), (0, 0), "{leaves:?}");
        assert_eq!((sender.wakes(), receiver.wakes()), wakes, "{leaves:?}");
    }
}

/// In a slot, what is left behind stays until the next use of the slot.
fn a_refused_send_leaves_no_waker_behind<C: Channel>() {
    let (sender, receiver) = (Probe::new(), Probe::new());
    let (mut tx, mut rx) = C::open();
    assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Pending);
    assert_eq!(poll(&mut rx, &receiver), Poll::Pending);
    rx.close();
    assert_eq!(tx.send(7), Err(7));
    drop(rx);
    assert_eq!((sender.kept(), receiver.kept()), (0, 0));
}

fn a_wait_that_ended_leaves_no_waker_behind<C: Channel>() {
    let (sender, receiver) = (Probe::new(), Probe::new());
    let (mut tx, mut rx) = C::open();
    assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Pending);
    assert_eq!(poll(&mut rx, &receiver), Poll::Pending);
    tx.send(7).unwrap();
    assert_eq!(poll(&mut rx, &receiver), Poll::Ready(Ok(7)));
    assert_eq!((sender.kept(), receiver.kept()), (0, 0));
}

/// P8: when a half leaves, two wakers leave the section, one to be dropped and one to
/// be woken. If the drop of the first panics, the second is still woken.
fn the_other_sides_waker_is_woken_where_ones_own_panics<C: Channel>() {
    let (sender, receiver) = (Probe::new(), Probe::new());
    let (mut tx, mut rx) = C::open::<u32>();
    assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Pending);
    assert_eq!(poll(&mut rx, &receiver), Poll::Pending);
    sender.panic_on(Event::Drop);
    let message = panic_of(|| drop(tx)).expect("a panic");
    assert!(message.contains("Drop"), "{message}");
    assert_eq!(
        (sender.kept(), receiver.kept(), receiver.wakes()),
        (0, 0, 1)
    );
    assert_eq!(poll(&mut rx, &receiver), Poll::Ready(Err(no_value())));

    let (mut tx, mut rx) = C::open::<u32>();
    assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Pending);
    assert_eq!(poll(&mut rx, &receiver), Poll::Pending);
    receiver.panic_on(Event::Drop);
    let message = panic_of(|| drop(rx)).expect("a panic");
    assert!(message.contains("Drop"), "{message}");
    assert_eq!((sender.kept(), receiver.kept(), sender.wakes()), (0, 0, 1));
    assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Ready(()));
}

fn a_value_not_received_is_dropped_with_the_receiver<C: Channel>() {
    for polled in [false, true] {
        let (tx, mut rx) = C::open();
        if polled {
            assert!(poll(&mut rx, &Probe::new()).is_pending());
        }
        tx.send(Token::new(7)).unwrap();
        assert_eq!(Token::alive(), 1);
        drop(rx);
        assert_eq!(Token::alive(), 0);
    }
}

fn a_value_kept_by_a_closed_receiver_is_dropped_with_it<C: Channel>() {
    let (tx, mut rx) = C::open();
    tx.send(Token::new(7)).unwrap();
    rx.close();
    assert_eq!(Token::alive(), 1);
    drop(rx);
    assert_eq!(Token::alive(), 0);
}

fn a_refused_value_is_only_given_back<C: Channel>() {
    for waits in [false, true] {
        for closes in [false, true] {
            let (sender, receiver) = (Probe::new(), Probe::new());
            let (mut tx, mut rx) = C::open();
            if waits {
                assert_eq!(tx.poll_closed(&mut sender.cx()), Poll::Pending);
                assert!(poll(&mut rx, &receiver).is_pending());
            }
            if closes {
                rx.close();
            }
            let rx = closes.then_some(rx);
            let refused = tx.send(Token::new(7)).unwrap_err();
            assert_eq!((refused.0, Token::alive()), (7, 1));
            drop(rx);
            assert_eq!(Token::alive(), 1);
            drop(refused);
            assert_eq!(Token::alive(), 0);
        }
    }
}

fn a_value_that_panics_in_drop_leaves_the_channel_whole<C: Channel>() {
    // It is dropped with the receiver. The channel is gone, or free again.
    let (tx, rx) = C::open();
    tx.send(Explosive::new()).unwrap();
    let message = panic_of(|| drop(rx)).expect("a panic");
    assert!(message.contains("value's drop"), "{message}");
    assert_eq!(Token::alive(), 0);

    // The waker of the receiver is dropped before.
    let task = Probe::new();
    let (tx, mut rx) = C::open();
    assert!(poll(&mut rx, &task).is_pending());
    tx.send(Explosive::new()).unwrap();
    panic_of(|| drop(rx)).expect("a panic");
    assert_eq!((Token::alive(), task.kept()), (0, 0));

    // Received or refused, it is dropped by its owner.
    let (tx, mut rx) = C::open();
    tx.send(Explosive::new()).unwrap();
    rx.try_recv().unwrap().defuse();
    let (tx, rx) = C::open();
    drop(rx);
    tx.send(Explosive::new()).unwrap_err().defuse();
}

fn debug_output_names_what_is_known<C: Channel>() {
    /// It is not `Debug`. The halves are, for every value.
    struct Opaque;

    let (mut tx, mut rx) = C::open();
    assert_eq!(format!("{tx:?}"), "Sender { is_closed: false }");
    assert_eq!(
        format!("{:?}", tx.closed()),
        "Closed { sender: Sender { is_closed: false } }"
    );
    assert_eq!(
        format!("{rx:?}"),
        "Receiver { is_terminated: false, is_empty: true }"
    );
    tx.send(Opaque).ok().unwrap();
    assert_eq!(
        format!("{rx:?}"),
        "Receiver { is_terminated: false, is_empty: false }"
    );
    drop(rx.try_recv());
    assert_eq!(
        format!("{rx:?}"),
        "Receiver { is_terminated: true, is_empty: true }"
    );

    let (tx, mut rx) = C::open::<Opaque>();
    rx.close();
    assert_eq!(format!("{tx:?}"), "Sender { is_closed: true }");
}

/// The halves on two threads, for the backends that allow it.
mod on_threads {
    use super::*;

    /// Enough for each order of a race to happen.
    const ROUNDS: usize = 500;

    /// The reference count shows a value that is lost, or dropped twice.
    type Value = Arc<usize>;

    macro_rules! on_threads {
        ($($test:ident),* $(,)?) => { $(
            mod $test {
                use super::*;

                #[test]
                fn on_native() {
                    super::$test::<Native>();
                }

                #[test]
                fn on_spin() {
                    super::$test::<Spin>();
                }
            }
        )* };
    }

    on_threads![
        blocking_recv_returns_what_a_poll_would,
        blocking_recv_sleeps_until_the_value_comes,
        a_sender_can_block_until_no_receiver_waits,
        a_value_is_received_or_given_back_in_either_order,
        halves_that_leave_together_leave_nothing,
        the_halves_of_a_slot_meet_across_threads,
    ];

    fn blocking_recv_returns_what_a_poll_would<B: BlockingBackend>() {
        let (tx, rx) = oneshot::channel_in::<_, B>();
        tx.send(7).unwrap();
        assert_eq!(rx.blocking_recv(), Ok(7));

        let (tx, rx) = oneshot::channel_in::<u32, B>();
        drop(tx);
        assert_eq!(rx.blocking_recv(), Err(no_value()));

        let (_tx, mut rx) = oneshot::channel_in::<u32, B>();
        rx.close();
        assert_eq!(rx.blocking_recv(), Err(no_value()));

        let (tx, mut rx) = oneshot::channel_in::<_, B>();
        tx.send(7).unwrap();
        assert_eq!(rx.try_recv(), Ok(7));
        let message = panic_of(|| drop(rx.blocking_recv())).expect("a panic");
        assert!(message.contains("oneshot::Receiver"), "{message}");
    }

    fn blocking_recv_sleeps_until_the_value_comes<B: BlockingBackend>() {
        for round in 0..ROUNDS {
            let (tx, rx) = oneshot::channel_in::<Value, B>();
            thread::scope(|scope| {
                scope.spawn(move || tx.send(Arc::new(round)).unwrap());
                assert_eq!(rx.blocking_recv(), Ok(Arc::new(round)));
            });
        }
    }

    fn a_sender_can_block_until_no_receiver_waits<B: BlockingBackend>() {
        for round in 0..ROUNDS {
            let (mut tx, mut rx) = oneshot::channel_in::<Value, B>();
            thread::scope(|scope| {
                scope.spawn(move || {
                    if round % 2 == 0 {
                        rx.close();
                    }
                });
                protocol::block_on::<B, _>(tx.closed());
                assert!(tx.send(Arc::new(round)).is_err());
            });
        }
    }

    fn a_value_is_received_or_given_back_in_either_order<B: BlockingBackend>() {
        let (mut received, mut refused) = (0, 0);
        for round in 0..ROUNDS {
            let value = Arc::new(round);
            let (tx, mut rx) = oneshot::channel_in::<Value, B>();
            let start = Barrier::new(2);
            let (sent, got) = thread::scope(|scope| {
                let sent = scope.spawn(|| {
                    start.wait();
                    tx.send(value.clone())
                });
                start.wait();
                rx.close();
                let got = rx.try_recv();
                (sent.join().unwrap(), got)
            });
            match (sent, got) {
                (Ok(()), Ok(got)) => {
                    assert_eq!((Arc::strong_count(&value), &got), (2, &value));
                    received += 1;
                }
                (Err(back), Err(TryRecvError::Closed)) => {
                    assert_eq!((Arc::strong_count(&value), &back), (2, &value));
                    refused += 1;
                }
                neither => panic!("received and given back, or neither: {neither:?}"),
            }
            assert_eq!(Arc::strong_count(&value), 1);
        }
        assert_eq!(received + refused, ROUNDS);
    }

    /// The last half to leave frees the channel, and only the last.
    fn halves_that_leave_together_leave_nothing<B: BlockingBackend>() {
        for round in 0..ROUNDS {
            let value = Arc::new(round);
            let tasks = [Arc::new(Asleep), Arc::new(Asleep)];
            let [sender, receiver] = tasks.each_ref().map(|task| Waker::from(task.clone()));
            let (mut tx, mut rx) = oneshot::channel_in::<Value, B>();
            let (sender_waits, receiver_waits) = (round & 1 == 0, round & 2 == 0);
            if sender_waits {
                assert!(
                    tx.poll_closed(&mut Context::from_waker(&sender))
                        .is_pending()
                );
            }
            if receiver_waits {
                let cx = &mut Context::from_waker(&receiver);
                assert!(Pin::new(&mut rx).poll(cx).is_pending());
            }
            let start = Barrier::new(2);
            thread::scope(|scope| {
                let value = &value;
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    if round & 4 == 0 {
                        drop(tx.send(value.clone()));
                    } else {
                        drop(tx);
                    }
                });
                start.wait();
                drop(rx);
            });
            assert_eq!(Arc::strong_count(&value), 1);
            drop((sender, receiver));
            assert_eq!(tasks.each_ref().map(Arc::strong_count), [1, 1]);
        }
    }

    /// A task that is never polled again.
    struct Asleep;

    impl Wake for Asleep {
        fn wake(self: Arc<Self>) {}
    }

    fn the_halves_of_a_slot_meet_across_threads<B: BlockingBackend>() {
        let mut slot = Slot::<Value, B>::new_in();
        for round in 0..ROUNDS {
            let (tx, rx) = slot.split();
            thread::scope(|scope| {
                scope.spawn(move || tx.send(Arc::new(round)).unwrap());
                assert_eq!(rx.blocking_recv(), Ok(Arc::new(round)));
            });
        }
    }
}

/// What a slot promises beyond being a storage for a channel.
mod slots {
    use super::*;

    #[test]
    fn a_slot_is_used_again_and_again() {
        let task = Probe::new();
        let mut slot = Slot::<Token>::new();
        for round in 0..10 {
            let (mut tx, mut rx) = slot.split();
            assert!(!tx.is_closed() && rx.is_empty() && !rx.is_terminated());
            assert!(poll(&mut rx, &task).is_pending());
            assert!(tx.poll_closed(&mut task.cx()).is_pending());
            // Uses the ways a channel ends in turn.
            match round % 4 {
                0 => {
                    tx.send(Token::new(round)).unwrap();
                    assert_eq!(rx.try_recv().unwrap().0, round);
                }
                1 => tx.send(Token::new(round)).unwrap(),
                2 => {
                    rx.close();
                    drop(tx.send(Token::new(round)).unwrap_err());
                }
                _ => drop(tx),
            }
        }
        assert_eq!((Token::alive(), task.kept()), (0, 0));
    }

    #[test]
    fn halves_that_were_leaked_leave_their_value_to_the_next_split() {
        let mut slot = Slot::new();
        let (tx, rx) = slot.split();
        tx.send(Token::new(1)).unwrap();
        mem::forget(rx);
        assert_eq!(Token::alive(), 1);

        let (tx, mut rx) = slot.split();
        assert_eq!(Token::alive(), 0);
        assert!(!tx.is_closed());
        assert!(rx.is_empty());
        assert_eq!(rx.try_recv().unwrap_err(), TryRecvError::Empty);
        tx.send(Token::new(2)).unwrap();
        assert_eq!(rx.try_recv().unwrap().0, 2);
        assert_eq!(Token::alive(), 0);
    }

    #[test]
    fn halves_that_were_leaked_leave_their_value_to_the_slots_drop() {
        let mut slot = Slot::new();
        let (tx, rx) = slot.split();
        tx.send(Token::new(1)).unwrap();
        mem::forget(rx);
        drop(slot);
        assert_eq!(Token::alive(), 0);
    }

    #[test]
    fn halves_that_were_leaked_leave_their_wakers_to_the_next_split() {
        let (sender, receiver) = (Probe::new(), Probe::new());
        let mut slot = Slot::<u32>::new();
        for leaked in ["both", "sender", "receiver"] {
            let (mut tx, mut rx) = slot.split();
            assert!(tx.poll_closed(&mut sender.cx()).is_pending());
            assert!(poll(&mut rx, &receiver).is_pending());
            match leaked {
                "both" => mem::forget((tx, rx)),
                "sender" => {
                    mem::forget(tx);
                    drop(rx);
                }
                _ => {
                    drop(tx);
                    mem::forget(rx);
                }
            }
            let (tx, rx) = slot.split();
            assert_eq!((sender.kept(), receiver.kept()), (0, 0), "leaked: {leaked}");
            assert!(!tx.is_closed());
            assert!(rx.is_empty());
        }
    }

    #[test]
    fn halves_that_were_leaked_leave_their_wakers_to_the_slots_drop() {
        let (sender, receiver) = (Probe::new(), Probe::new());
        let mut slot = Slot::<u32>::new();
        let (mut tx, mut rx) = slot.split();
        assert!(tx.poll_closed(&mut sender.cx()).is_pending());
        assert!(poll(&mut rx, &receiver).is_pending());
        mem::forget((tx, rx));
        drop(slot);
        assert_eq!((sender.kept(), receiver.kept()), (0, 0));
    }

    #[test]
    fn a_half_alone_works_on_where_the_other_was_leaked() {
        let task = Probe::new();
        let mut slot = Slot::<u32>::new();
        let (tx, mut rx) = slot.split();
        mem::forget(tx);
        assert!(poll(&mut rx, &task).is_pending());
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        rx.close();
        assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
        drop(rx);

        let (mut tx, rx) = slot.split();
        mem::forget(rx);
        assert!(tx.poll_closed(&mut task.cx()).is_pending());
        assert_eq!(tx.send(7), Ok(()));
        assert_eq!(task.kept(), 0);
    }

    #[test]
    fn a_value_that_panics_in_drop_leaves_the_slot_free() {
        let mut slot = Slot::new();
        let (tx, rx) = slot.split();
        tx.send(Explosive::new()).unwrap();
        mem::forget(rx);
        panic_of(|| drop(slot.split())).expect("a panic");
        assert_eq!(Token::alive(), 0);

        let (tx, mut rx) = slot.split();
        assert!(rx.is_empty());
        tx.send(Explosive::new()).unwrap();
        rx.try_recv().unwrap().defuse();
    }

    #[test]
    fn a_value_can_borrow_what_the_slot_does_not_outlive() {
        let text = String::from("borrowed");
        let mut slot = Slot::new();
        let (tx, mut rx) = slot.split();
        tx.send(text.as_str()).unwrap();
        assert_eq!(rx.try_recv(), Ok("borrowed"));
    }

    #[test]
    fn a_slot_can_move_between_two_uses() {
        let mut slot = Slot::new();
        let (tx, rx) = slot.split();
        tx.send(Token::new(1)).unwrap();
        mem::forget(rx);
        let mut moved = Box::new(slot);
        drop(moved.split());
        assert_eq!(Token::alive(), 0);
    }

    #[test]
    fn debug_output_of_a_slot_is_its_name() {
        let mut slot = Slot::<u32>::default();
        assert_eq!(format!("{slot:?}"), "Slot { .. }");
        drop(slot.split());
    }
}

#[test]
fn errors_are_errors_and_say_what_happened() {
    fn is_an_error<E: std::error::Error + Send + Sync + Clone + 'static>(error: E) -> String {
        error.to_string()
    }

    assert!(is_an_error(no_value()).contains("no value will come"));
    assert!(is_an_error(TryRecvError::Empty).contains("no value has been sent yet"));
    assert!(is_an_error(TryRecvError::Closed).contains("no value will come"));
    assert_eq!(format!("{:?}", no_value()), "RecvError");
    assert_eq!(format!("{:?}", TryRecvError::Empty), "Empty");
    assert_eq!(format!("{:?}", TryRecvError::Closed), "Closed");
}

#[test]
fn the_receiver_is_a_fused_future() {
    fn is_terminated(future: &impl FusedFuture) -> bool {
        future.is_terminated()
    }

    let (tx, mut rx) = oneshot::channel();
    assert!(!is_terminated(&rx));
    tx.send(7).unwrap();
    assert!(!is_terminated(&rx));
    assert_eq!(poll(&mut rx, &Probe::new()), Poll::Ready(Ok(7)));
    assert!(is_terminated(&rx));
}

#[test]
fn halves_and_futures_are_a_few_words() {
    const WORD: usize = size_of::<usize>();
    type Large = [u64; 512];

    fn are_small<P: Storage>() {
        assert!(size_of::<Sender<Large, P>>() <= 2 * WORD);
        assert!(size_of::<Receiver<Large, P>>() <= 2 * WORD);
        assert!(size_of::<Option<Receiver<Large, P>>>() <= 2 * WORD);
        assert!(size_of::<Closed<'_, Large, P>>() <= 2 * WORD);
    }

    are_small::<Boxed<Native>>();
    are_small::<Boxed<Local>>();
    are_small::<InSlot<'_, Native>>();
    are_small::<InSlot<'_, Local>>();
    // The lock is one word, and each of the two wakers takes two. With the feature
    // `model`, the lock has a note of the checker beside it.
    let note = size_of::<reveille::protocol::StateLock<()>>() - WORD;
    assert!(size_of::<Slot<u64>>() - note <= 6 * WORD);
}

/// Which halves may be sent to other threads or shared by them. Each is `Unpin`,
/// whatever it carries.
mod auto_traits {
    use super::*;

    /// Tells whether a type has a trait. An inherent constant exists only if it has,
    /// and takes precedence over the constant of a trait that every type has.
    macro_rules! has {
        ($type:ty: $trait:path) => {{
            struct Asked<T: ?Sized>(PhantomData<T>);
            #[allow(dead_code, reason = "one of the two is used")]
            impl<T: ?Sized + $trait> Asked<T> {
                const ANSWER: bool = true;
            }
            #[allow(dead_code, reason = "one of the two is used")]
            trait Otherwise {
                const ANSWER: bool = false;
            }
            impl<T: ?Sized> Otherwise for Asked<T> {}
            <Asked<$type>>::ANSWER
        }};
    }

    macro_rules! assert_threads {
        ($($type:ty => $send:literal, $sync:literal;)*) => { $(
            const _: () = assert!(has!($type: Send) == $send, stringify!($type: Send));
            const _: () = assert!(has!($type: Sync) == $sync, stringify!($type: Sync));
            const _: () = assert!(has!($type: Unpin), stringify!($type: Unpin));
        )* };
    }

    type Plain = u32;
    /// `Send` and not `Sync`: a value is moved, and never shared.
    type Unshared = Cell<u32>;
    /// `Sync` and not `Send`.
    type Unsent = MutexGuard<'static, u32>;
    /// Neither.
    type Bound = Rc<u32>;
    /// Not `Unpin`.
    type Pinned = (Plain, PhantomPinned);

    assert_threads! {
        Sender<Plain> => true, true;
        Receiver<Plain> => true, true;
        Closed<'static, Plain> => true, true;
        Slot<Plain> => true, true;
        SlotSender<'static, Plain> => true, true;
        SlotReceiver<'static, Plain> => true, true;

        Sender<Unshared> => true, true;
        Receiver<Unshared> => true, true;
        Closed<'static, Unshared> => true, true;
        Slot<Unshared> => true, true;
        SlotSender<'static, Unshared> => true, true;
        SlotReceiver<'static, Unshared> => true, true;

        Sender<Unsent> => false, false;
        Receiver<Unsent> => false, false;
        Closed<'static, Unsent> => false, false;
        Slot<Unsent> => false, false;
        SlotSender<'static, Unsent> => false, false;
        SlotReceiver<'static, Unsent> => false, false;

        Sender<Bound> => false, false;
        Receiver<Bound> => false, false;
        Closed<'static, Bound> => false, false;
        SlotSender<'static, Bound> => false, false;
        SlotReceiver<'static, Bound> => false, false;

        Sender<Pinned> => true, true;
        Receiver<Pinned> => true, true;
        Closed<'static, Pinned> => true, true;
        SlotSender<'static, Pinned> => true, true;
        SlotReceiver<'static, Pinned> => true, true;

        Sender<Plain, Boxed<Spin>> => true, true;
        Receiver<Plain, Boxed<Spin>> => true, true;
        SlotSender<'static, Plain, Spin> => true, true;
        SlotReceiver<'static, Plain, Spin> => true, true;

        // These stay on one thread.
        Sender<Plain, Boxed<Local>> => false, false;
        Receiver<Plain, Boxed<Local>> => false, false;
        Closed<'static, Plain, Boxed<Local>> => false, false;
        Slot<Plain, Local> => false, false;
        SlotSender<'static, Plain, Local> => false, false;
        SlotReceiver<'static, Plain, Local> => false, false;

        RecvError => true, true;
        TryRecvError => true, true;
    }

    #[test]
    fn the_question_can_be_answered_either_way() {
        assert!(has!(u32: Send));
        assert!(!has!(Rc<u32>: Send));
        assert!(!has!(PhantomPinned: Unpin));
    }
}
