//! What `reveille::watch` promises: the semantics of `tokio::sync::watch` over the backends
//! that block, then what is its own.

#![cfg(not(loom))]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::thread;

use reveille::backend::{BlockingBackend, Native, Spin};
use reveille::protocol::{WakeList, block_on};
use reveille::watch::error::SendError;
use reveille::watch::{Receiver, Sender, channel, channel_in};

use support::poll;
use support::probe::{Event, Probe};

/// Makes of each generic test one for each backend that blocks.
macro_rules! on_each_that_blocks {
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

on_each_that_blocks![
    receivers_see_the_latest_value,
    the_first_value_counts_as_seen,
    a_look_does_not_count_as_seen,
    changed_waits_for_a_value_that_was_not_seen,
    a_change_between_a_look_and_a_wait_is_not_missed,
    changes_that_were_not_seen_merge,
    changed_that_is_dropped_leaves_no_waker_and_loses_no_change,
    the_last_sender_closes,
    a_change_before_the_close_is_seen,
    a_send_without_receivers_gives_the_value_back,
    values_are_replaced_and_modified,
    an_unmodified_value_notifies_no_receiver,
    a_closure_that_panics_notifies_no_receiver_and_leaves_the_channel,
    wait_for_asks_about_each_value_it_sees,
    wait_for_fails_when_no_value_will_come,
    receivers_mark_and_clone_what_they_have_seen,
    closed_waits_for_the_last_receiver,
    a_send_wakes_more_than_a_wake_list_holds,
    a_waker_that_panics_loses_no_change,
    a_waker_may_use_the_channel_when_it_is_woken,
    the_old_value_may_use_the_channel_when_it_is_dropped,
    debug_output_names_what_is_known,
];

fn new<T, B: BlockingBackend>(init: T) -> (Sender<T, B>, Receiver<T, B>) {
    channel_in(init)
}

fn receivers_see_the_latest_value<B: BlockingBackend>() {
    let (tx, mut first) = new::<_, B>(0);
    let second = tx.subscribe();
    for value in 1..4 {
        tx.send(value).unwrap();
        assert_eq!(
            (*first.borrow(), *second.borrow(), *tx.borrow()),
            (value, value, value)
        );
    }
    assert!(first.borrow_and_update().has_changed());
    assert!(!first.borrow().has_changed() && second.borrow().has_changed());
    assert!(!tx.borrow().has_changed());
    assert!(first.same_channel(&second) && tx.same_channel(&tx.clone()));
}

fn the_first_value_counts_as_seen<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    assert_eq!(rx.has_changed(), Ok(false));
    assert_eq!(poll(&mut rx.changed(), &Probe::new()), Poll::Pending);
    tx.send(1).unwrap();
    assert_eq!(tx.subscribe().has_changed(), Ok(false));
    assert_eq!(rx.has_changed(), Ok(true));
}

fn a_look_does_not_count_as_seen<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    tx.send(1).unwrap();
    assert_eq!((*rx.borrow(), rx.has_changed()), (1, Ok(true)));
    assert_eq!(poll(&mut rx.changed(), &Probe::new()), Poll::Ready(Ok(())));
    assert_eq!(rx.has_changed(), Ok(false));
}

fn changed_waits_for_a_value_that_was_not_seen<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let (first, second) = (Probe::new(), Probe::new());
    let mut changed = rx.changed();
    assert_eq!(poll(&mut changed, &first), Poll::Pending);
    assert_eq!(poll(&mut changed, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    tx.send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(poll(&mut changed, &second), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut changed, &second), Poll::Pending);
}

fn a_change_between_a_look_and_a_wait_is_not_missed<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    assert_eq!(*rx.borrow_and_update(), 0);
    tx.send(1).unwrap();
    assert_eq!(poll(&mut rx.changed(), &Probe::new()), Poll::Ready(Ok(())));
}

fn changes_that_were_not_seen_merge<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    (1..4).for_each(|value| tx.send(value).unwrap());
    let task = Probe::new();
    assert_eq!(poll(&mut rx.changed(), &task), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut rx.changed(), &task), Poll::Pending);
    assert_eq!(*rx.borrow(), 3);
}

fn changed_that_is_dropped_leaves_no_waker_and_loses_no_change<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    for sends in [false, true] {
        let mut changed = rx.changed();
        assert_eq!(poll(&mut changed, &task), Poll::Pending);
        if sends {
            tx.send(1).unwrap();
        }
        drop(changed);
        assert_eq!(task.kept(), 0);
    }
    assert_eq!(rx.has_changed(), Ok(true));
}

fn the_last_sender_closes<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let another = tx.clone();
    assert_eq!((tx.sender_count(), rx.is_closed()), (2, false));
    let task = Probe::new();
    let mut changed = rx.changed();
    assert_eq!(poll(&mut changed, &task), Poll::Pending);
    drop(tx);
    assert_eq!(task.wakes(), 0);
    drop(another);
    assert_eq!(task.wakes(), 1);
    assert!(matches!(poll(&mut changed, &task), Poll::Ready(Err(_))));
    drop(changed);
    assert!(rx.is_closed() && rx.has_changed().is_err());
    assert_eq!(*rx.borrow(), 0);
}

fn a_change_before_the_close_is_seen<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    tx.send(1).unwrap();
    drop(tx);
    assert_eq!(poll(&mut rx.changed(), &Probe::new()), Poll::Ready(Ok(())));
    assert!(matches!(
        poll(&mut rx.changed(), &Probe::new()),
        Poll::Ready(Err(_))
    ));
}

fn a_send_without_receivers_gives_the_value_back<B: BlockingBackend>() {
    let (tx, rx) = new::<_, B>(0);
    drop(rx);
    assert_eq!(tx.send(1), Err(SendError(1)));
    assert!(tx.is_closed());
    assert_eq!(
        (tx.send_replace(2), *tx.borrow(), tx.receiver_count()),
        (0, 2, 0)
    );
    assert_eq!(*tx.subscribe().borrow(), 2);
}

fn values_are_replaced_and_modified<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(vec![1]);
    tx.send_modify(|values| values.push(2));
    assert_eq!(*rx.borrow_and_update(), [1, 2]);
    assert!(tx.send_if_modified(|values| values.pop().is_some()));
    assert!(rx.has_changed().unwrap());
    assert_eq!(tx.send_replace(Vec::new()), [1]);
    assert!(rx.borrow().is_empty());
    assert_eq!(*Sender::<u32>::default().borrow(), 0);
}

fn an_unmodified_value_notifies_no_receiver<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    let mut changed = rx.changed();
    assert_eq!(poll(&mut changed, &task), Poll::Pending);
    assert!(!tx.send_if_modified(|_| false));
    assert_eq!(task.wakes(), 0);
    assert_eq!(poll(&mut changed, &task), Poll::Pending);
}

fn a_closure_that_panics_notifies_no_receiver_and_leaves_the_channel<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    let mut changed = rx.changed();
    assert_eq!(poll(&mut changed, &task), Poll::Pending);
    let panics = || tx.send_modify(|_| panic!("the closure panics"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(task.wakes(), 0);
    tx.send(1).unwrap();
    assert_eq!(poll(&mut changed, &task), Poll::Ready(Ok(())));
}

fn wait_for_asks_about_each_value_it_sees<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    assert!(matches!(
        poll(&mut rx.wait_for(|value| *value == 0), &Probe::new()),
        Poll::Ready(Ok(value)) if !value.has_changed()
    ));
    let task = Probe::new();
    let mut asked = Vec::new();
    let mut wait = rx.wait_for(|value| {
        asked.push(*value);
        *value == 2
    });
    assert!(poll(&mut wait, &task).is_pending());
    tx.send(1).unwrap();
    assert!(poll(&mut wait, &task).is_pending());
    assert!(poll(&mut wait, &task).is_pending());
    tx.send(2).unwrap();
    assert_eq!(task.wakes(), 2);
    match poll(&mut wait, &task) {
        Poll::Ready(Ok(value)) => assert!(*value == 2 && value.has_changed()),
        _ => panic!("it is there"),
    }
    drop(wait);
    assert_eq!(asked, [0, 1, 2]);
    assert_eq!(rx.has_changed(), Ok(false));
}

fn wait_for_fails_when_no_value_will_come<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let task = Probe::new();
    let mut wait = rx.wait_for(|value| *value == 2);
    assert!(poll(&mut wait, &task).is_pending());
    tx.send(1).unwrap();
    drop(tx);
    assert!(matches!(poll(&mut wait, &task), Poll::Ready(Err(_))));
    drop(wait);
    let found = poll(&mut rx.wait_for(|value| *value == 1), &task);
    assert!(matches!(found, Poll::Ready(Ok(_))));
}

fn receivers_mark_and_clone_what_they_have_seen<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    rx.mark_changed();
    assert_eq!(
        (rx.has_changed(), rx.clone().has_changed()),
        (Ok(true), Ok(true))
    );
    rx.mark_unchanged();
    assert_eq!(rx.has_changed(), Ok(false));
    tx.send(1).unwrap();
    rx.mark_unchanged();
    assert_eq!(poll(&mut rx.changed(), &Probe::new()), Poll::Pending);
}

fn closed_waits_for_the_last_receiver<B: BlockingBackend>() {
    let (tx, first) = new::<_, B>(0);
    let second = first.clone();
    let task = Probe::new();
    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    drop(first);
    assert_eq!(task.wakes(), 0);
    drop(second);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut closed, &task), Poll::Ready(()));
    let _third = tx.subscribe();
    let mut closed = tx.closed();
    assert_eq!(poll(&mut closed, &task), Poll::Pending);
    drop(closed);
    assert_eq!(task.kept(), 0);
}

fn a_send_wakes_more_than_a_wake_list_holds<B: BlockingBackend>() {
    let (tx, rx) = new::<_, B>(0);
    let task = Probe::new();
    let many = 2 * WakeList::CAPACITY + 1;
    let mut receivers = vec![rx; many];
    let mut waits: Vec<_> = receivers.iter_mut().map(Receiver::changed).collect();
    for wait in &mut waits {
        assert_eq!(poll(wait, &task), Poll::Pending);
    }
    tx.send(1).unwrap();
    assert_eq!((task.wakes(), task.kept()), (many, 0));
}

fn a_waker_that_panics_loses_no_change<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let mut other = rx.clone();
    tx.send(1).unwrap();
    let task = Probe::new();
    let mut changed = rx.changed();
    task.panic_on(Event::Drop);
    let panics = || poll(&mut changed, &task);
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(poll(&mut changed, &Probe::new()), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut changed, &task), Poll::Pending);
    other.mark_unchanged();
    let spared = Probe::new();
    let mut others = other.changed();
    assert_eq!(poll(&mut others, &spared), Poll::Pending);
    task.panic_on(Event::Wake);
    assert!(catch_unwind(AssertUnwindSafe(|| tx.send(2))).is_err());
    assert_eq!(spared.wakes(), 1);
    assert_eq!(poll(&mut changed, &task), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut others, &spared), Poll::Ready(Ok(())));
}

fn a_waker_may_use_the_channel_when_it_is_woken<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(0);
    let (task, again) = (Probe::new(), tx.clone());
    task.on(Event::Wake, move || again.send(2).unwrap());
    let mut changed = rx.changed();
    assert_eq!(poll(&mut changed, &task), Poll::Pending);
    tx.send(1).unwrap();
    assert_eq!(*tx.borrow(), 2);
}

fn the_old_value_may_use_the_channel_when_it_is_dropped<B: BlockingBackend>() {
    struct Looks<B: BlockingBackend>(Option<Rc<Receiver<Self, B>>>);

    impl<B: BlockingBackend> Drop for Looks<B> {
        fn drop(&mut self) {
            if let Some(rx) = self.0.take() {
                assert!(rx.borrow().0.is_none());
            }
        }
    }

    let (tx, rx) = new::<_, B>(Looks(None));
    let rx = Rc::new(rx);
    assert!(tx.send(Looks(Some(rx.clone()))).is_ok());
    assert!(tx.send(Looks(None)).is_ok());
    assert_eq!(Rc::strong_count(&rx), 1);
}

fn debug_output_names_what_is_known<B: BlockingBackend>() {
    let (tx, mut rx) = new::<_, B>(7);
    tx.send(8).unwrap();
    let text = format!("{tx:?} {rx:?} {:?} {:?}", rx.borrow(), tx.closed());
    for known in [
        "version: 1",
        "receivers: 1",
        "senders: 1",
        "value: 8",
        "has_changed: true",
    ] {
        assert!(text.contains(known), "no {known} in {text}");
    }
    assert!(format!("{:?}", rx.wait_for(|_| true)).contains("WaitFor"));
}

#[test]
fn a_guard_holds_a_writer_back_and_no_writer_starves() {
    let (tx, rx) = channel(0);
    let stop = channel(false);
    let readers: Vec<_> = (0..2)
        .map(|_| (rx.clone(), stop.1.clone()))
        .map(|(rx, stop)| {
            thread::spawn(move || {
                while !*stop.borrow() {
                    let first = rx.borrow();
                    assert!(*first <= 1_000);
                }
            })
        })
        .collect();
    (1..=1_000).for_each(|value| tx.send(value).unwrap());
    stop.0.send(true).unwrap();
    readers
        .into_iter()
        .for_each(|reader| reader.join().unwrap());
}

#[test]
fn threads_see_the_last_value() {
    let (tx, rx) = channel(0);
    let receivers: Vec<_> = (0..2)
        .map(|_| rx.clone())
        .map(|mut rx| {
            thread::spawn(move || {
                block_on::<Native, _>(async {
                    let mut last = 0;
                    while rx.changed().await.is_ok() {
                        let now = *rx.borrow_and_update();
                        assert!(now >= last);
                        last = now;
                    }
                    last
                })
            })
        })
        .collect();
    (1..=10_000).for_each(|value| tx.send(value).unwrap());
    drop(tx);
    for receiver in receivers {
        assert_eq!(receiver.join().unwrap(), 10_000);
    }
}
