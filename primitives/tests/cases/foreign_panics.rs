use std::task::Poll;

use crate::support::panic_of;
use crate::support::probe::{Event, Probe};
use crate::support::token::Token;
use crate::table::{End, Scene};
use crate::{with_each, with_each_queue};

/// Checks that the primitive still works: other tasks poll the wait, and it ends.
fn works(mut scene: Scene) {
    let (first, second) = (Probe::new(), Probe::new());
    assert_eq!(scene.poll(&first), Poll::Pending);
    assert_eq!(scene.poll(&second), Poll::Pending);
    assert!(scene.complete());
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(scene.poll(&second), Poll::Ready(End::Result));
    assert_eq!((first.kept(), second.kept()), (0, 0));
}

/// Runs `f`, in which the waker of `task` panics, once and with its own message.
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
            let _ = scene.poll(&bad);
        });
        assert_eq!(bad.kept(), 0);
        works(scene);

        // At a later poll, in place of the waker of another task. That waker stays
        // until the next poll that returns.
        let mut scene = row.scene();
        assert_eq!(scene.poll(&good), Poll::Pending);
        panics_once(&bad, Event::Clone, || {
            let _ = scene.poll(&bad);
        });
        assert_eq!((bad.kept(), good.kept()), (0, 1));
        works(scene);
        assert_eq!(good.wakes(), 0);

        // The result comes nevertheless.
        let mut scene = row.scene();
        assert_eq!(scene.poll(&good), Poll::Pending);
        panics_once(&bad, Event::Clone, || {
            let _ = scene.poll(&bad);
        });
        assert!(scene.complete());
        assert_eq!(good.wakes(), 1);
        assert_eq!(scene.poll(&good), Poll::Ready(End::Result));
    });
}

#[test]
fn ps_01_a_wake_that_panics_costs_no_waiter_the_result() {
    with_each(|row| {
        for (by, end) in row.ends() {
            let (bad, good) = (Probe::new(), Probe::new());
            let mut scene = row.scene();
            assert_eq!(scene.poll(&bad), Poll::Pending);
            panics_once(&bad, Event::Wake, || scene.end(by));
            assert_eq!(bad.kept(), 0);
            assert_eq!(scene.poll(&good), Poll::Ready(end));
        }
    });
}

#[test]
fn ps_01_a_drop_that_panics_leaves_the_next_waker_registered() {
    with_each(|row| {
        let (bad, good) = (Probe::new(), Probe::new());
        let mut scene = row.scene();
        assert_eq!(scene.poll(&bad), Poll::Pending);
        panics_once(&bad, Event::Drop, || {
            let _ = scene.poll(&good);
        });
        assert_eq!((bad.kept(), good.kept()), (0, 1));

        // The wait belongs to the new task, although its poll panicked.
        assert!(scene.complete());
        assert_eq!((bad.wakes(), good.wakes()), (0, 1));
        assert_eq!(scene.poll(&good), Poll::Ready(End::Result));
    });
}

#[test]
fn ps_01_a_drop_that_panics_lets_the_wait_leave() {
    with_each(|row| {
        let bad = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.poll(&bad), Poll::Pending);
        panics_once(&bad, Event::Drop, || scene.cancel());
        assert_eq!(bad.kept(), 0);
        scene.touch();
        scene.complete();
        drop(scene);
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ps_01_a_waker_that_panics_keeps_no_other_waiter_from_its_grant() {
    with_each_queue(|row| {
        for event in [Event::Clone, Event::Wake, Event::Drop] {
            let (bad, good) = (Probe::new(), Probe::new());
            let mut scene = row.scene();
            let [mut other] = scene.others().expect("it has several");
            match event {
                Event::Clone => {
                    panics_once(&bad, event, || {
                        let _ = scene.poll(&bad);
                    });
                    assert_eq!(other.poll(&mut good.cx()), Poll::Pending);
                    scene.cancel();
                    scene.complete();
                }
                Event::Drop => {
                    assert_eq!(scene.poll(&bad), Poll::Pending);
                    assert_eq!(other.poll(&mut good.cx()), Poll::Pending);
                    panics_once(&bad, event, || scene.cancel());
                    scene.complete();
                }
                Event::Wake => {
                    assert_eq!(scene.poll(&bad), Poll::Pending);
                    assert_eq!(other.poll(&mut good.cx()), Poll::Pending);
                    panics_once(&bad, event, || {
                        let _ = scene.complete();
                    });
                    // Its grant is passed on.
                    scene.cancel();
                }
            }
            assert_eq!((bad.kept(), good.wakes()), (0, 1), "{event:?}");
            assert_eq!(other.poll(&mut good.cx()), Poll::Ready(End::Result));
        }
    });
}
