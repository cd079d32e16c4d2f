use std::task::Poll;

use crate::support::probe::Probe;
use crate::support::token::Token;
use crate::table::End;
use crate::with_each;

#[test]
fn ca_01_a_dropped_wait_is_given_nothing() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
        drop(scene.waiter);
        assert_eq!(task.kept(), 0);

        // Whatever it was to be given is still, or again, the other side's.
        scene.completer.touch();
        scene.completer.complete();
        assert_eq!(Token::alive(), 0);
        assert_eq!(task.wakes(), 0);
    });
}

#[test]
fn ca_02_a_wait_dropped_before_its_first_poll_leaves_nothing() {
    with_each(|row| {
        let scene = row.scene();
        drop(scene.waiter);
        drop(scene.completer);

        let mut scene = row.scene();
        drop(scene.waiter);
        scene.completer.complete();
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ca_02_a_result_that_was_never_polled_for_goes_with_the_wait() {
    with_each(|row| {
        let mut scene = row.scene();
        assert!(scene.completer.complete());
        drop(scene.waiter);
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ca_04_a_wait_dropped_between_its_wake_and_its_poll_keeps_nothing() {
    with_each(|row| {
        for leaves in [false, true] {
            let task = Probe::new();
            let mut scene = row.scene();
            assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
            let completer = if leaves {
                drop(scene.completer);
                None
            } else {
                assert!(scene.completer.complete());
                Some(scene.completer)
            };
            assert_eq!(task.wakes(), 1);
            drop(scene.waiter);
            assert_eq!((task.kept(), Token::alive()), (0, 0));
            drop(completer);
            assert_eq!(task.wakes(), 1);
        }
    });
}

/// The result comes while the wait is given up (its future dropped by a timeout
/// or a `select`, or just not polled), and is there when it is taken up again.
#[test]
fn ca_06_a_result_that_comes_between_two_polls_is_not_lost() {
    with_each(|row| {
        for leaves in [false, true] {
            let (first, second) = (Probe::new(), Probe::new());
            let mut scene = row.scene();
            assert_eq!(scene.waiter.poll(first.waker()), Poll::Pending);
            let end = if leaves {
                drop(scene.completer);
                row.left
            } else {
                assert!(scene.completer.complete());
                End::Result
            };
            // Another task takes it up, which no wake told of it.
            assert_eq!(scene.waiter.poll(second.waker()), Poll::Ready(end));
            assert_eq!((second.wakes(), second.kept()), (0, 0));
        }
    });
}
