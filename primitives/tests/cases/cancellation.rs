use std::task::Poll;

use crate::support::probe::Probe;
use crate::support::token::Token;
use crate::table::End;
use crate::{with_each, with_each_queue};

#[test]
fn ca_01_a_dropped_wait_is_given_nothing() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        assert_eq!(scene.poll(&task), Poll::Pending);
        scene.cancel();
        assert_eq!(task.kept(), 0);

        // What the wait would have been given still belongs to the other side, or
        // does so again.
        scene.touch();
        scene.complete();
        assert_eq!(Token::alive(), 0);
        assert_eq!(task.wakes(), 0);
    });
}

#[test]
fn ca_01_a_dropped_wait_is_passed_over_wherever_it_stood() {
    with_each_queue(|row| {
        for dropped in 0..3 {
            let tasks: [Probe; 3] = std::array::from_fn(|_| Probe::new());
            let mut scene = row.scene();
            let [second, third] = scene.others().expect("it has several");
            let mut waiters = [scene.waiter.take(), Some(second), Some(third)];
            for (waiter, task) in waiters.iter_mut().zip(&tasks) {
                let waiter = waiter.as_mut().expect("it is there");
                assert_eq!(waiter.poll(&mut task.cx()), Poll::Pending);
            }
            waiters[dropped] = None;
            assert_eq!(tasks[dropped].kept(), 0);

            // The other waits are granted in the order in which they came.
            let mut woken = [0; 3];
            for turn in (0..3).filter(|&turn| turn != dropped) {
                scene.complete();
                woken[turn] = 1;
                assert_eq!(
                    tasks.each_ref().map(Probe::wakes),
                    woken,
                    "{dropped} dropped"
                );
                let waiter = waiters[turn].as_mut().expect("it is there");
                assert_eq!(waiter.poll(&mut tasks[turn].cx()), Poll::Ready(End::Result));
            }
            assert_eq!(tasks.each_ref().map(Probe::kept), [0; 3]);
        }
    });
}

#[test]
fn ca_02_a_wait_dropped_before_its_first_poll_leaves_nothing() {
    with_each(|row| {
        let mut scene = row.scene();
        scene.cancel();
        drop(scene);

        let mut scene = row.scene();
        scene.cancel();
        scene.complete();
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ca_02_a_result_that_was_never_polled_for_goes_with_the_wait() {
    with_each(|row| {
        let mut scene = row.scene();
        assert!(scene.complete());
        scene.cancel();
        assert_eq!(Token::alive(), 0);
    });
}

#[test]
fn ca_02_a_grant_that_was_never_polled_for_goes_to_the_next() {
    with_each_queue(|row| {
        for polled in [false, true] {
            let (task, next) = (Probe::new(), Probe::new());
            let mut scene = row.scene();
            if polled {
                assert_eq!(scene.poll(&task), Poll::Pending);
            }
            scene.complete();
            scene.cancel();
            let [mut other] = scene.others().expect("it has several");
            assert_eq!(other.poll(&mut next.cx()), Poll::Ready(End::Result));
        }
    });
}

#[test]
fn ca_04_a_wait_dropped_between_its_wake_and_its_poll_keeps_nothing() {
    with_each(|row| {
        for (by, _) in row.ends() {
            let task = Probe::new();
            let mut scene = row.scene();
            assert_eq!(scene.poll(&task), Poll::Pending);
            scene.end(by);
            assert_eq!(task.wakes(), 1);
            scene.cancel();
            assert_eq!((task.kept(), Token::alive()), (0, 0));
            drop(scene);
            assert_eq!(task.wakes(), 1);
        }
    });
}

#[test]
fn ca_04_a_wait_dropped_between_its_wake_and_its_poll_wakes_the_next() {
    with_each_queue(|row| {
        let tasks: [Probe; 3] = std::array::from_fn(|_| Probe::new());
        let mut scene = row.scene();
        let [mut second, mut third] = scene.others().expect("it has several");
        assert_eq!(scene.poll(&tasks[0]), Poll::Pending);
        assert_eq!(second.poll(&mut tasks[1].cx()), Poll::Pending);
        assert_eq!(third.poll(&mut tasks[2].cx()), Poll::Pending);

        scene.complete();
        assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 0, 0]);
        scene.cancel();
        assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 1, 0]);
        drop(second);
        assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 1, 1]);
        assert_eq!(third.poll(&mut tasks[2].cx()), Poll::Ready(End::Result));
        assert_eq!(tasks.each_ref().map(Probe::kept), [0; 3]);
    });
}

/// The result comes while the wait is not polled, for example because a `select` has
/// dropped the future that polled it. It is there when the wait is polled again.
#[test]
fn ca_06_a_result_that_comes_between_two_polls_is_not_lost() {
    with_each(|row| {
        for (by, end) in row.ends() {
            let (first, second) = (Probe::new(), Probe::new());
            let mut scene = row.scene();
            assert_eq!(scene.poll(&first), Poll::Pending);
            scene.end(by);
            // Another task polls it, which no wake has reached.
            assert_eq!(scene.poll(&second), Poll::Ready(end));
            assert_eq!((second.wakes(), second.kept()), (0, 0));
        }
    });
}
