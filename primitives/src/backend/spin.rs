//! `Spin`: for `no_std`. The lock of `Native`, whose pauses only spin.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::word::{Atomics, WordLock};
use super::{Backend, BlockingBackend, Park, SharedBackend};
use crate::protocol::Bits;

/// The backend without an operating system: contended lockers spin.
///
/// Sections are a few instructions long, but a spinning locker of higher
/// priority can wait for ever for a preempted one of lower: on a system with
/// preemption by priority, mask interrupts around the calls.
#[derive(Debug)]
pub struct Spin;

impl Backend for Spin {
    type Lock<S> = WordLock<S, SpinAtomics>;
    type Cell<T> = UnsafeCell<T>;
}

// SAFETY: as for `Native`.
unsafe impl SharedBackend for Spin {}

impl BlockingBackend for Spin {
    type Park = SpinPark;
}

impl Spin {
    /// Creates a lock in a constant.
    pub(crate) const fn lock<S>(bits: Bits, state: S) -> WordLock<S, SpinAtomics> {
        WordLock::from_parts(AtomicUsize::new(bits.to_word()), UnsafeCell::new(state))
    }
}

/// `core`'s atomics, and pauses that spin.
#[derive(Debug)]
pub struct SpinAtomics;

// SAFETY: the word is an `AtomicUsize`, and the cell is an `UnsafeCell`.
unsafe impl Atomics for SpinAtomics {
    type Word = AtomicUsize;
    type Cell<T> = UnsafeCell<T>;

    #[inline]
    fn pause(_: &AtomicUsize, round: u32) {
        for _ in 0..1_u32 << round.min(6) {
            core::hint::spin_loop();
        }
    }
}

/// A blocked thread that spins.
#[derive(Debug)]
pub struct SpinPark {
    unparked: AtomicBool,
}

impl Park for SpinPark {
    fn new() -> Self {
        Self {
            unparked: AtomicBool::new(false),
        }
    }

    fn park(&self) {
        while !self.unparked.swap(false, Ordering::Acquire) {
            core::hint::spin_loop();
        }
    }

    fn unpark(&self) {
        // A swap: where two unpark, the park must see what either wrote before.
        self.unparked.swap(true, Ordering::Release);
    }
}
