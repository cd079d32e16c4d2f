use std::task::Poll;

use crate::support::probe::Probe;
use crate::support::token::Token;
use crate::with_each;

#[test]
fn ub_01_completing_a_wait_that_was_polled_and_dropped_is_no_trouble() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.poll(&task), Poll::Pending);
        scene.cancel();
        // The value is returned to its sender, without a panic or a wake.
        assert_eq!(scene.complete(), !row.refuses);
        assert_eq!((task.wakes(), task.kept()), (0, 0));
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ub_07_a_dropped_wait_drops_its_waker_at_once() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.poll(&task), Poll::Pending);
        assert_eq!(task.kept(), 1);
        scene.cancel();
        assert_eq!((task.kept(), task.wakes()), (0, 0));
        // The other side goes on.
        scene.touch();
    });
}

#[test]
fn ub_07_a_wait_that_ended_keeps_no_waker_whatever_comes_after() {
    with_each(|row| {
        for (by, _) in row.ends() {
            let task = Probe::new();
            let mut scene = row.scene();
            assert_eq!(scene.poll(&task), Poll::Pending);
            scene.end(by);
            assert_eq!((task.kept(), task.wakes()), (0, 1));
            assert!(scene.poll(&task).is_ready());
            assert_eq!(task.kept(), 0);
        }
    });
}

#[test]
fn ub_09_a_result_that_waits_is_dropped_with_the_side_it_waits_for() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.poll(&task), Poll::Pending);
        assert!(scene.complete());
        scene.cancel();
        assert_eq!(Token::alive(), 0, "not only when the other side goes");
    });
}
