use std::task::Poll;

use crate::support::probe::Probe;
use crate::table::End;
use crate::with_each;

#[test]
fn sw_01_the_latest_waker_is_woken_and_no_other() {
    with_each(|row| {
        for (by, end) in row.ends() {
            let tasks: [Probe; 4] = std::array::from_fn(|_| Probe::new());
            let [first, second, third, last] = &tasks;
            let mut scene = row.scene();
            // It is polled by four tasks, and by the first again in between.
            for task in [first, second, third, first, last] {
                assert_eq!(scene.poll(task), Poll::Pending);
                assert_eq!(task.kept(), 1);
            }
            scene.end(by);
            assert_eq!(tasks.each_ref().map(Probe::wakes), [0, 0, 0, 1]);
            assert_eq!(tasks.each_ref().map(Probe::kept), [0; 4]);
            assert_eq!(scene.poll(last), Poll::Ready(end));
        }
    });
}

#[test]
fn sw_01_the_same_waker_again_is_neither_cloned_nor_lost() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        for _ in 0..3 {
            assert_eq!(scene.poll(&task), Poll::Pending);
        }
        assert_eq!((task.clones(), task.kept()), (1, 1));
        assert!(scene.complete());
        assert_eq!(task.wakes(), 1);
    });
}

#[test]
fn sw_03_a_wait_that_moved_to_another_task_has_forgotten_the_first() {
    with_each(|row| {
        let (first, second) = (Probe::new(), Probe::new());
        let mut scene = row.scene();
        assert_eq!(scene.poll(&first), Poll::Pending);
        assert_eq!(scene.poll(&second), Poll::Pending);
        assert_eq!(first.kept(), 0, "the first task can end for good");
        drop(first);

        assert!(scene.complete());
        assert_eq!(second.wakes(), 1);
        assert_eq!(scene.poll(&second), Poll::Ready(End::Result));
    });
}
