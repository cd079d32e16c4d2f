use std::task::Poll;

use crate::support::panic_of;
use crate::support::probe::{Event, Probe};
use crate::support::token::Token;
use crate::table::{End, Row, Scene};
use crate::with_each;

/// The primitive does what it did before: the wait is taken up by good tasks
/// and ends.
fn works(mut scene: Scene) {
    let (first, second) = (Probe::new(), Probe::new());
    assert_eq!(scene.waiter.poll(first.waker()), Poll::Pending);
    assert_eq!(scene.waiter.poll(second.waker()), Poll::Pending);
    assert!(scene.completer.complete());
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(scene.waiter.poll(second.waker()), Poll::Ready(End::Result));
    assert_eq!((first.kept(), second.kept()), (0, 0));
}

/// Runs `f`, in which the waker of `task` panics: once, and in its own words.
fn panics_once(task: &Probe, event: Event, f: impl FnOnce()) {
    task.panic_on(event);
    let message = panic_of(f).expect("the panic reaches the caller");
    assert_eq!(message, format!("the waker's {event:?} panics"));
    assert_eq!(task.acts_left(), 0);
}

#[test]
fn ps_01_a_clone_that_panics_registers_nothing_and_breaks_nothing() {
    with_each(|row| {
        // At the first poll.
        let (bad, good) = (Probe::new(), Probe::new());
        let mut scene = row.scene();
        panics_once(&bad, Event::Clone, || {
            let _ = scene.waiter.poll(bad.waker());
        });
        assert_eq!(bad.kept(), 0);
        works(scene);

        // At a later one, in place of another task's: that stays, until the
        // next poll that returns.
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(good.waker()), Poll::Pending);
        panics_once(&bad, Event::Clone, || {
            let _ = scene.waiter.poll(bad.waker());
        });
        assert_eq!((bad.kept(), good.kept()), (0, 1));
        works(scene);
        assert_eq!(good.wakes(), 0);

        // The result comes all the same.
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(good.waker()), Poll::Pending);
        panics_once(&bad, Event::Clone, || {
            let _ = scene.waiter.poll(bad.waker());
        });
        assert!(scene.completer.complete());
        assert_eq!(good.wakes(), 1);
        assert_eq!(scene.waiter.poll(good.waker()), Poll::Ready(End::Result));
    });
}

#[test]
fn ps_01_a_wake_that_panics_costs_nobody_the_result() {
    fn plays(row: &Row, leaves: bool, end: End) {
        let bad = Probe::new();
        let Scene {
            mut waiter,
            mut completer,
        } = row.scene();
        assert_eq!(waiter.poll(bad.waker()), Poll::Pending);
        panics_once(&bad, Event::Wake, || {
            if leaves {
                drop(completer);
            } else {
                completer.complete();
            }
        });
        assert_eq!(bad.kept(), 0);
        let good = Probe::new();
        assert_eq!(waiter.poll(good.waker()), Poll::Ready(end));
    }

    with_each(|row| {
        plays(row, false, End::Result);
        plays(row, true, row.left);
    });
}

#[test]
fn ps_01_a_drop_that_panics_leaves_the_next_waker_registered() {
    with_each(|row| {
        let (bad, good) = (Probe::new(), Probe::new());
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(bad.waker()), Poll::Pending);
        panics_once(&bad, Event::Drop, || {
            let _ = scene.waiter.poll(good.waker());
        });
        assert_eq!((bad.kept(), good.kept()), (0, 1));

        // The wait has gone over to the new task, although its poll panicked.
        assert!(scene.completer.complete());
        assert_eq!((bad.wakes(), good.wakes()), (0, 1));
        assert_eq!(scene.waiter.poll(good.waker()), Poll::Ready(End::Result));
    });
}

#[test]
fn ps_01_a_drop_that_panics_lets_the_wait_leave() {
    with_each(|row| {
        let bad = Probe::new();
        let Scene {
            mut waiter,
            mut completer,
        } = row.scene();
        assert_eq!(waiter.poll(bad.waker()), Poll::Pending);
        panics_once(&bad, Event::Drop, || drop(waiter));
        assert_eq!(bad.kept(), 0);
        completer.touch();
        completer.complete();
        drop(completer);
        assert_eq!(Token::alive(), 0);
        works(row.scene());
    });
}
