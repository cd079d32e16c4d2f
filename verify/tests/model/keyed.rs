//! Tasks that compute the value of one key, while it is removed or they are cancelled.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use reveille::OnceMap;
use reveille::singleflight::Group;
use reveille::time::{Duration, sleep};
use reveille_verify::Model;

use crate::holds;

/// The value tells whether the key had left the map when the computation ran.
fn computes_and_removes(m: &Model) {
    let map = Arc::new(OnceMap::<u32, bool>::new());
    let computes = map.clone();
    m.spawn("computes", async move {
        let left = || async { computes.is_empty() };
        computes.get_or_init(0, left).await;
    });
    m.spawn("removes", async move {
        if let Some(left) = map.remove(&0) {
            assert!(!left, "the value was set after the removal");
        }
    });
}

#[test]
fn a_removal_returns_no_value_that_was_set_after_it() {
    holds(computes_and_removes);
}

/// Computes while no other task does.
async fn alone(running: Rc<Cell<bool>>) {
    struct Ends(Rc<Cell<bool>>);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }

    assert!(!running.replace(true), "two tasks compute at once");
    let _ends = Ends(running);
    sleep(Duration::from_millis(1)).await;
}

/// The specification of a group allows calls that overlap to compute one after the other,
/// so it cannot tell whether they share.
fn computes_at_once(m: &Model) {
    let group = Arc::new(Group::<u32, ()>::new());
    let running = Rc::new(Cell::new(false));
    let work = |group: Arc<Group<u32, ()>>, running: Rc<Cell<bool>>| async move {
        group.work(0, || alone(running)).await;
    };
    m.spawn_cancellable("first", work(group.clone(), running.clone()));
    m.spawn("second", work(group, running));
}

#[test]
fn calls_of_a_group_do_not_compute_at_once() {
    let report = holds(computes_at_once);
    assert!(report.cancelled > 0);
}
