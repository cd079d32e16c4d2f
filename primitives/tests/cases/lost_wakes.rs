use std::task::Poll;

use crate::support::probe::Probe;
use crate::table::End;
use crate::with_each;

#[test]
fn lw_07_a_wait_that_ends_without_sleeping_leaves_no_waker() {
    with_each(|row| {
        for (by, end) in row.ends() {
            let task = Probe::new();
            let mut scene = row.scene();
            scene.end(by);
            assert_eq!(scene.poll(&task), Poll::Ready(end));
            assert_eq!(task.kept(), 0);
        }
    });
}

/// P7: a wake is a hint, and polls without one are legal. A wait that is polled
/// without a reason still ends with its result.
#[test]
fn lw_07_polls_for_nothing_lose_nothing() {
    with_each(|row| {
        let task = Probe::new();
        let mut scene = row.scene();
        for _ in 0..3 {
            assert_eq!(scene.poll(&task), Poll::Pending);
            task.waker().wake_by_ref();
            scene.touch();
        }
        let before = task.wakes();
        assert!(scene.complete());
        assert_eq!(task.wakes(), before + 1);
        assert_eq!(scene.poll(&task), Poll::Ready(End::Result));
    });
}
