//! `StdPark` under loom: its source file, over loom's atomics, mutex and condition
//! variable. A token that is lost is a deadlock, and loom reports it.

#![cfg(not(loom))]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use park::StdPark;

mod sync {
    pub(super) use loom::sync::atomic::AtomicU32;
    pub(super) use loom::sync::{Condvar, Mutex};
}

use reveille::backend::Park;

#[allow(dead_code, unreachable_pub, reason = "it is the source as it is")]
#[path = "../src/backend/std_park.rs"]
mod park;

/// A value that the parking thread reads after the park.
struct Shared {
    park: StdPark,
    written: [UnsafeCell<u32>; 2],
}

#[allow(unsafe_code, reason = "loom checks the accesses")]
// SAFETY: loom reports accesses that race.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            park: StdPark::new(),
            written: [UnsafeCell::new(0), UnsafeCell::new(0)],
        })
    }

    #[allow(unsafe_code, reason = "loom checks the accesses")]
    fn write(&self, place: usize) {
        // SAFETY: loom reports accesses that race.
        self.written[place].with_mut(|it| unsafe { *it += 1 });
    }

    #[allow(unsafe_code, reason = "loom checks the accesses")]
    fn read(&self, place: usize) -> u32 {
        // SAFETY: as above.
        self.written[place].with(|it| unsafe { *it })
    }
}

#[test]
fn an_unpark_at_any_time_ends_the_park_and_publishes() {
    loom::model(|| {
        let shared = Shared::new();
        let unparks = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.write(0);
                shared.park.unpark();
            }
        });
        shared.park.park();
        assert_eq!(shared.read(0), 1);
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
                    shared.write(place);
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
        assert_eq!((shared.read(0), shared.read(1)), (1, 1));
    });
}
