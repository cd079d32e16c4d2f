//! `StdPark` under loom: its source file, over loom's atomics, mutex and condition
//! variable. A token that is lost is a deadlock, and loom reports it.

#![cfg(not(loom))]

use std::sync::Arc;

use loom::thread;

use park::StdPark;

mod sync {
    pub(super) use loom::sync::atomic::AtomicU32;
    pub(super) use loom::sync::{Condvar, Mutex};
}

use reveille::backend::{LoomWord, Park};
use reveille::raw::Witness;

#[allow(dead_code, unreachable_pub, reason = "it is the source as it is")]
#[path = "../src/backend/std_park.rs"]
mod park;

/// Values that the parking thread reads after the park.
struct Shared {
    park: StdPark,
    /// Loom reports an access that races with another.
    written: [Witness<LoomWord>; 2],
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            park: StdPark::new(),
            written: [Witness::new_in(), Witness::new_in()],
        })
    }
}

#[test]
fn an_unpark_at_any_time_ends_the_park_and_publishes() {
    loom::model(|| {
        let shared = Shared::new();
        let unparks = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.written[0].write();
                shared.park.unpark();
            }
        });
        shared.park.park();
        shared.written[0].read();
        unparks.join().unwrap();
    });
}

#[test]
fn one_unpark_for_each_park_is_enough() {
    loom::model(|| {
        let shared = Shared::new();
        let unparks = thread::spawn({
            let shared = shared.clone();
            move || shared.park.unpark()
        });
        shared.park.park();
        unparks.join().unwrap();
        let unparks = thread::spawn({
            let shared = shared.clone();
            move || shared.park.unpark()
        });
        shared.park.park();
        unparks.join().unwrap();
    });
}

#[test]
fn unparks_that_merge_publish_both() {
    loom::model(|| {
        let shared = Shared::new();
        let unparks: Vec<_> = (0..2)
            .map(|place| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.written[place].write();
                    shared.park.unpark();
                })
            })
            .collect();
        shared.park.park();
        for thread in unparks {
            thread.join().unwrap();
        }
        // The token of the unpark that came second is kept for this park, or was
        // merged.
        shared.park.unpark();
        shared.park.park();
        shared.written[0].read();
        shared.written[1].read();
    });
}
