//! `Spin`: the backend for `no_std`. It has the lock of `Native`, with pauses that
//! only spin.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::word::{Atomics, WordLock};
use super::{Backend, BlockingBackend, Park, SharedBackend};
use crate::protocol::Bits;

/// The backend without an operating system: contended lockers spin.
///
/// Sections are a few instructions long. But a thread of higher priority that spins
/// for the lock can wait forever for a preempted holder of lower priority. On a
/// system with preemption by priority, mask interrupts around the calls.
#[derive(Debug)]
pub struct Spin;

impl Backend for Spin {
    type Lock<S> = WordLock<S, SpinAtomics>;
    type Cell<T> = UnsafeCell<T>;
    type Word = AtomicUsize;
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

/// The atomics of `core`, with pauses that spin.
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

/// Blocks a thread by spinning.
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
        // It is a swap, since after two unparks the park must see what was written
        // before either of them.
        self.unparked.swap(true, Ordering::Release);
    }
}
