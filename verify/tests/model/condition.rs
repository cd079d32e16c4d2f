//! A condition made of a lock and a `Notify`, which is checked before the wait begins.

use std::sync::Arc;

use reveille::{Mutex, Notify};
use reveille_verify::Kind;

use crate::{fails, holds};

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Notify,
}

impl Gate {
    async fn open(self: Arc<Self>) {
        *self.open.lock().await = true;
        self.opened.notify_waiters();
    }

    /// Misses an opening after the check.
    async fn pass(self: Arc<Self>) {
        while !*self.open.lock().await {
            self.opened.notified().await;
        }
    }

    /// Registers before it checks.
    async fn pass_for_sure(self: Arc<Self>) {
        loop {
            let opened = self.opened.notified();
            if *self.open.lock().await {
                return;
            }
            opened.await;
        }
    }
}

#[test]
fn a_wait_that_begins_after_the_look_is_never_ended() {
    let failure = fails(Kind::LostWakeUp, |m| {
        let gate = Arc::new(Gate::default());
        m.name(&gate.opened, "opened");
        m.spawn("guest", gate.clone().pass());
        m.spawn("porter", gate.open());
    });
    assert!(failure.sentence.contains("for `opened`"), "{failure}");
}

#[test]
fn one_that_begins_before_it_is() {
    holds(|m| {
        let gate = Arc::new(Gate::default());
        m.spawn("guest", gate.clone().pass_for_sure());
        m.spawn("porter", gate.open());
    });
}
