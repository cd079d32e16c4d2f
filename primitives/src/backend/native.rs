//! `Native`: threads that spin briefly, then park.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread::Thread;

use parking_lot_core::{DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN, ParkResult};

use super::word::{Atomics, ParkingLot, WordLock};
use super::{Backend, BlockingBackend, Park, SharedBackend};
use crate::protocol::Bits;

/// The backend for threads, and the default.
///
/// The bits live in the lock word, so a section that needs only them is one
/// compare-exchange. Contended lockers spin briefly, then park through
/// `parking_lot_core`.
#[derive(Debug)]
pub struct Native;

impl Backend for Native {
    type Lock<S> = WordLock<S, StdAtomics>;
    type Cell<T> = UnsafeCell<T>;
}

// SAFETY: `WordLock` keeps its promises by atomics that threads share, and is `Sync`
// and `Send` as such; an `UnsafeCell` keeps nothing that threads could race for but its
// value.
unsafe impl SharedBackend for Native {}

impl BlockingBackend for Native {
    type Park = StdPark;
}

impl Native {
    /// Creates a lock in a constant.
    pub(crate) const fn lock<S>(bits: Bits, state: S) -> WordLock<S, StdAtomics> {
        WordLock::from_parts(
            AtomicUsize::new(bits.to_word()),
            StdParkingLot,
            UnsafeCell::new(state),
        )
    }
}

/// `std`'s atomics and `parking_lot_core`'s parking.
#[derive(Debug)]
pub struct StdAtomics;

// SAFETY: the word is an `AtomicUsize`, `parking_lot_core` calls the closure of an
// unpark once, and the cell is an `UnsafeCell`.
unsafe impl Atomics for StdAtomics {
    type Word = AtomicUsize;
    type Cell<T> = UnsafeCell<T>;
    type ParkingLot = StdParkingLot;
    const SPINS: u32 = 10;

    #[inline]
    fn spin(round: u32) {
        if round < 3 {
            for _ in 0..1 << round {
                core::hint::spin_loop();
            }
        } else {
            std::thread::yield_now();
        }
    }
}

/// The process-wide parking lot, keyed by the address of the word.
#[derive(Debug)]
pub struct StdParkingLot;

impl ParkingLot<AtomicUsize> for StdParkingLot {
    #[inline]
    fn new() -> Self {
        Self
    }

    unsafe fn park(&self, word: &AtomicUsize, validate: impl FnOnce() -> bool) {
        // SAFETY: the key is the address of a word that the caller borrows, so
        // no other use of the lot has it. `validate` neither panics nor uses a lot, by
        // the caller's promise; nor do the other two: no park has a deadline.
        let result = unsafe {
            parking_lot_core::park(
                core::ptr::from_ref(word) as usize,
                validate,
                || {},
                |_, _| unreachable!("a park without a deadline timed out"),
                DEFAULT_PARK_TOKEN,
                None,
            )
        };
        debug_assert!(!matches!(result, ParkResult::TimedOut));
    }

    unsafe fn unpark_one(&self, word: &AtomicUsize, f: impl FnOnce(bool)) {
        // SAFETY: the key is as in `park`. The closure neither panics nor uses a lot,
        // by the caller's promise.
        unsafe {
            parking_lot_core::unpark_one(core::ptr::from_ref(word) as usize, |result| {
                f(result.have_more_threads);
                DEFAULT_UNPARK_TOKEN
            });
        }
    }
}

/// A thread of `std`, parked by `std::thread::park`.
#[derive(Debug)]
pub struct StdPark {
    thread: Thread,
    unparked: AtomicBool,
}

impl StdPark {
    /// As [`park`](Park::park), but no longer than that. It may also end sooner.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use reveille::backend::{Park, StdPark};
    ///
    /// let park = StdPark::new();
    /// park.unpark();
    /// park.park_timeout(Duration::MAX);
    /// park.park_timeout(Duration::from_millis(1));
    /// ```
    pub fn park_timeout(&self, at_most: Duration) {
        if self.unparked.swap(false, Ordering::Acquire) {
            return;
        }
        std::thread::park_timeout(at_most);
        self.unparked.swap(false, Ordering::Acquire);
    }
}

impl Park for StdPark {
    fn new() -> Self {
        Self {
            thread: std::thread::current(),
            unparked: AtomicBool::new(false),
        }
    }

    fn park(&self) {
        while !self.unparked.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }

    fn unpark(&self) {
        if !self.unparked.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}
