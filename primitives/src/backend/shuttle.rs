//! `Shuttle`: the abstract lock over shuttle, for programs too large for loom.
//!
//! The verifier does not use it: its own engine draws executions over `Native`. It stays
//! for code that threads run as shuttle's, such as the models of the thread pool, whose
//! workers are threads and park. A watcher of `Native` sees sections, and neither starts
//! threads nor chooses between them.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicUsize;
use std::sync::PoisonError;

use shuttle::sync::{Condvar, Mutex};

use super::stepped::SteppedBits;
use super::{Backend, BlockingBackend, Park, RawStateLock, SharedBackend};
use crate::protocol::Bits;

/// The backend that shuttle explores. There every ordering is sequentially
/// consistent, and accesses to cells are not watched. `Loom` checks those.
#[derive(Debug)]
pub struct Shuttle;

impl Backend for Shuttle {
    type Lock<S> = ShuttleLock<S>;
    type Cell<T> = UnsafeCell<T>;
    type Word = AtomicUsize;
}

// SAFETY: shuttle's tasks are the threads that use its locks, which panic elsewhere.
// All tasks of a test run on one thread of the system. An `UnsafeCell` has nothing
// but its value that they could race for.
unsafe impl SharedBackend for Shuttle {}

impl BlockingBackend for Shuttle {
    type Park = ShuttlePark;
}

/// Bits and a state under a `shuttle::sync::Mutex`.
///
/// The bits are beside the mutex, so that an update can release it before its closure
/// runs. A section within the closure is then allowed, as over a lock of threads.
#[derive(Debug)]
pub struct ShuttleLock<S> {
    bits: SteppedBits,
    state: Mutex<S>,
}

impl<S> ShuttleLock<S> {
    /// Runs a section. If it panics, what it has changed stays as it is. The protocol
    /// has no poisoning.
    fn section<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // The bits are put back before the guard is dropped, by a return or a panic.
        let mut taken = self.bits.take();
        f(&mut taken.bits, &mut guard)
    }
}

// SAFETY: all tasks of a test run on one thread of the system, and shuttle switches
// between them only within its own operations. `MutexGuard::drop` switches before it
// releases and not after. Exclusion: a `with` holds the mutex while its closure runs.
// An `update` compares and stores without a switch between the two, and not while a
// `with` has the bits. Visibility is that of one thread. Last access: no access
// follows the release, or the store of an `update`, before a switch.
unsafe impl<S> RawStateLock<S> for ShuttleLock<S> {
    fn new(bits: Bits, state: S) -> Self {
        Self {
            bits: SteppedBits::new(bits),
            state: Mutex::new(state),
        }
    }

    fn update(&self, f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        self.bits.update(|| self.section(|_, _| ()), f)
    }

    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        self.section(f)
    }

    fn load(&self) -> Bits {
        self.section(|bits, _| *bits)
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        f(self.bits.get_mut(), state)
    }
}

/// Blocks a shuttle task on a condition.
#[derive(Debug)]
pub struct ShuttlePark {
    unparked: Mutex<bool>,
    changed: Condvar,
}

impl Park for ShuttlePark {
    fn new() -> Self {
        Self {
            unparked: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    fn park(&self) {
        let mut unparked = self
            .unparked
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        while !*unparked {
            unparked = self
                .changed
                .wait(unparked)
                .unwrap_or_else(|poison| poison.into_inner());
        }
        *unparked = false;
    }

    fn unpark(&self) {
        *self
            .unparked
            .lock()
            .unwrap_or_else(|poison| poison.into_inner()) = true;
        self.changed.notify_one();
    }
}
