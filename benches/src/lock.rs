//! The lock alone, without contention: the cost of every section of the protocol.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::protocol::{Bits, StateLock};

use crate::{Contender, Kind};

/// Flips one flag under each lock. `update` flips it in the word of the lock, which no
/// mutex can do. `with` does what a mutex does.
pub(crate) fn contenders() -> Vec<Contender> {
    let contender = |kind, name, run| Contender::new("lock", kind, name, run);
    vec![
        contender(Kind::Reveille, "StateLock::update", update),
        contender(Kind::Reveille, "StateLock::with", with),
        contender(Kind::Peer, "std Mutex", std_mutex),
        contender(Kind::Peer, "parking_lot Mutex", parking_lot_mutex),
        contender(Kind::Floor, "one compare-exchange alone", compare_exchange),
    ]
}

fn update(iterations: u64) {
    const FLAG: Bits = Bits::new(1);
    let lock = StateLock::<()>::new_in(Bits::EMPTY, ());
    for _ in 0..iterations {
        let flipped = black_box(&lock).update(|bits| {
            Some(if bits.contains(FLAG) {
                bits.without(FLAG)
            } else {
                bits.with(FLAG)
            })
        });
        assert!(flipped.is_ok());
    }
}

fn with(iterations: u64) {
    let lock = StateLock::<bool>::new_in(Bits::EMPTY, false);
    for _ in 0..iterations {
        black_box(&lock).with(|section| *section.state = !*section.state);
    }
}

fn std_mutex(iterations: u64) {
    let lock = Mutex::new(false);
    for _ in 0..iterations {
        let mut flag = black_box(&lock).lock().unwrap();
        *flag = !*flag;
    }
}

fn parking_lot_mutex(iterations: u64) {
    let lock = parking_lot::Mutex::new(false);
    for _ in 0..iterations {
        let mut flag = black_box(&lock).lock();
        *flag = !*flag;
    }
}

fn compare_exchange(iterations: u64) {
    let word = AtomicUsize::new(0);
    for _ in 0..iterations {
        let word = black_box(&word);
        let old = word.load(Ordering::Relaxed);
        let swapped = word.compare_exchange(old, old ^ 1, Ordering::AcqRel, Ordering::Acquire);
        assert!(swapped.is_ok());
    }
}
