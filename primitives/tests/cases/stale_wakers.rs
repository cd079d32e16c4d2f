use std::task::Poll;

use crate::support::probe::Probe;
use crate::table::End;
use crate::with_each;

#[test]
fn sw_01_the_latest_waker_is_woken_and_no_other() {
    with_each(|row| {
        for leaves in [false, true] {
            let tasks: [Probe; 4] = std::array::from_fn(|_| Probe::new());
            let [first, second, third, last] = &tasks;
            let mut scene = row.scene();
            // Through four tasks, and back to the first in between.
            for task in [first, second, third, first, last] {
                assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
                assert_eq!(task.kept(), 1);
            }
            let end = if leaves {
                drop(scene.completer);
                row.left
            } else {
                assert!(scene.completer.complete());
                End::Result
            };
            assert_eq!(tasks.each_ref().map(Probe::wakes), [0, 0, 0, 1]);
            assert_eq!(tasks.each_ref().map(Probe::kept), [0; 4]);
            assert_eq!(scene.waiter.poll(last.waker()), Poll::Ready(end));
        }
    });
}

#[test]
fn sw_01_the_same_waker_again_is_neither_cloned_nor_lost() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        for _ in 0..3 {
            assert_eq!(scene.waiter.poll(task.waker()), Poll::Pending);
            // Another clone of it, as an executor makes one a poll.
            let again = task.waker().clone();
            assert_eq!(scene.waiter.poll(&again), Poll::Pending);
        }
        assert_eq!(task.clones(), 1 + 3, "one for the wait, three of the test");
        assert!(scene.completer.complete());
        assert_eq!(task.wakes(), 1);
    });
}

#[test]
fn sw_03_a_wait_that_moved_to_another_task_has_forgotten_the_first() {
    with_each(|row| {
        let (first, second) = (Probe::new(), Probe::new());
        let mut scene = row.scene();
        assert_eq!(scene.waiter.poll(first.waker()), Poll::Pending);

        // The wait moves, in memory too: no queue may point at the old place.
        let mut moved = scene.waiter;
        assert_eq!(moved.poll(second.waker()), Poll::Pending);
        assert_eq!(first.kept(), 0, "the first task can end for good");
        drop(first);

        assert!(scene.completer.complete());
        assert_eq!(second.wakes(), 1);
        assert_eq!(moved.poll(second.waker()), Poll::Ready(End::Result));
    });
}
