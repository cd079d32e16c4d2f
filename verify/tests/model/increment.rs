//! A read, a modification and a write, with an await between the read and the write.

use std::sync::Arc;

use reveille::Mutex;
use reveille_verify::{Kind, Model};

use crate::{fails, holds};

/// The lock is free between the read and the write.
async fn increment(counter: Arc<Mutex<u32>>) {
    let before = *counter.lock().await;
    *counter.lock().await = before + 1;
}

async fn increment_at_once(counter: Arc<Mutex<u32>>) {
    *counter.lock().await += 1;
}

fn scene<F: Future<Output = ()> + 'static>(m: &Model, increment: fn(Arc<Mutex<u32>>) -> F) {
    let counter = Arc::new(Mutex::new(0));
    for name in ["alice", "bob", "carol"] {
        m.spawn(name, increment(counter.clone()));
    }
    m.at_end(move || assert_eq!(*counter.try_lock().unwrap(), 3));
}

#[test]
fn an_increment_in_two_steps_is_lost() {
    let failure = fails(Kind::AtEnd, |m| scene(m, increment));
    assert!(failure.sentence.contains("right: 3"), "{failure}");
}

#[test]
fn one_in_one_step_is_not() {
    holds(|m| scene(m, increment_at_once));
}
