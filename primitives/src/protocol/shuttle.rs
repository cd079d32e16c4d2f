//! `Shuttle`: the abstract lock over shuttle, for programs too large for loom.

use core::cell::UnsafeCell;

use shuttle::sync::{Condvar, Mutex, MutexGuard};

use super::{Backend, Bits, BlockingBackend, Park, RawStateLock, SharedBackend};

/// The backend that shuttle explores. Every ordering is sequentially
/// consistent there, and cells are not watched: those are loom's part.
#[derive(Debug)]
pub struct Shuttle;

impl Backend for Shuttle {
    type Lock<S> = ShuttleLock<S>;
    type Cell<T> = UnsafeCell<T>;
}

// SAFETY: shuttle's mutex is for its tasks, which are all on one of the system's threads.
unsafe impl SharedBackend for Shuttle {}

impl BlockingBackend for Shuttle {
    type Park = ShuttlePark;
}

/// Bits and a state under a `shuttle::sync::Mutex`.
#[derive(Debug)]
pub struct ShuttleLock<S>(Mutex<(Bits, S)>);

impl<S> ShuttleLock<S> {
    /// A panic within a section leaves what the section left: poison is not
    /// part of the protocol.
    fn lock(&self) -> MutexGuard<'_, (Bits, S)> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

// SAFETY: the mutex gives exclusion and visibility. Last access: shuttle runs
// one task at a time, and `MutexGuard::drop` switches before it releases and
// not after.
unsafe impl<S> RawStateLock<S> for ShuttleLock<S> {
    fn new(bits: Bits, state: S) -> Self {
        Self(Mutex::new((bits, state)))
    }

    fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        let mut guard = self.lock();
        let old = guard.0;
        match f(old) {
            Some(new) => {
                guard.0 = new;
                Ok(old)
            }
            None => Err(old),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let mut guard = self.lock();
        let (bits, state) = &mut *guard;
        f(bits, state)
    }

    fn load(&self) -> Bits {
        self.lock().0
    }

    unsafe fn store(&self, bits: Bits) {
        self.lock().0 = bits;
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let (bits, state) = self
            .0
            .get_mut()
            .unwrap_or_else(|poison| poison.into_inner());
        f(bits, state)
    }
}

/// A shuttle task, blocked on a condition.
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
