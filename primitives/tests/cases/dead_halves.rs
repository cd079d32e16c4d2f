use std::task::Poll;

use crate::support::probe::Probe;
use crate::support::token::Token;
use crate::with_each;

#[test]
fn ub_01_completing_a_wait_that_was_polled_and_dropped_is_refused_quietly() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
        drop(scene.waiter);
        // The answer of a side that gives a value is that nobody has it; one
        // that only tells has no answer. Neither is a panic or a wake.
        let refusable = row.name.starts_with("Receiver");
        assert_eq!(scene.completer.complete(), !refusable);
        assert_eq!((task.wakes(), task.kept()), (0, 0));
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ub_07_a_dropped_wait_drops_its_waker_at_once() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
        assert_eq!(task.kept(), 1);
        drop(scene.waiter);
        assert_eq!((task.kept(), task.wakes()), (0, 0));
        // The other side lives on.
        scene.completer.touch();
    });
}

#[test]
fn ub_07_a_completed_wait_keeps_no_waker_whatever_comes_after() {
    with_each(|row| {
        for leaves in [false, true] {
            let task = Probe::new();
            let mut scene = row.scene();
            assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
            if leaves {
                drop(scene.completer);
            } else {
                assert!(scene.completer.complete());
            }
            assert_eq!((task.kept(), task.wakes()), (0, 1));
            assert!(scene.waiter.poll(task.waker()).is_ready());
            assert_eq!(task.kept(), 0);
        }
    });
}

#[test]
fn ub_09_a_result_that_waits_is_dropped_with_the_side_it_waits_for() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
        assert!(scene.completer.complete());
        drop(scene.waiter);
        assert_eq!(Token::alive(), 0, "not only when the other side goes");
        drop(scene.completer);
    });
}
