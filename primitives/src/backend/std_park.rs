//! `StdPark`: blocks a thread until a token of its own arrives.
//!
//! ```text
//!           park                  unpark
//!   EMPTY ────────▶ PARKED ─────────────────▶ NOTIFIED
//!     │ ▲            │ time is up               ▲ │
//!     │ └────────────┘                          │ │
//!     └───────────────── unpark ────────────────┘ │
//!     ▲                                           │
//!     └───────── the park returns, or the next ───┘
//! ```
//!
//! It does not use `std::thread::park`, whose token belongs to other code of the
//! thread. If a blocking call took that token, a later `park` of its caller would
//! never return.
//!
//! Invariant: a thread waits on the condition variable only in `PARKED`, which it
//! enters under the mutex. An unpark that finds `PARKED` takes the mutex before it
//! notifies, so it notifies a thread that waits.

#![forbid(unsafe_code)]

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::time::Duration;
use std::sync::PoisonError;

use super::Park;
use super::sync::{AtomicU32, Condvar, Mutex};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

/// Blocks a thread, with a mutex and a condition variable of `std`.
///
/// It leaves the token of `std::thread::park` alone.
#[derive(Debug)]
pub struct StdPark {
    state: AtomicU32,
    lock: Mutex<()>,
    unparked: Condvar,
}

impl StdPark {
    /// Blocks as [`park`](Park::park) does, but no longer than `at_most`. It may also
    /// return sooner.
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
        self.wait(Some(at_most));
    }

    #[inline]
    fn wait(&self, at_most: Option<Duration>) {
        if self.state.swap(EMPTY, Acquire) != NOTIFIED {
            self.wait_parked(at_most);
        }
    }

    fn wait_parked(&self, at_most: Option<Duration>) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let parks = self
            .state
            .compare_exchange(EMPTY, PARKED, Relaxed, Relaxed)
            .is_ok();
        if let (true, Some(at_most)) = (parks, at_most) {
            let waited = self.unparked.wait_timeout(guard, at_most);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            while self.state.load(Relaxed) == PARKED {
                let waited = self.unparked.wait(guard);
                guard = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(guard);
        self.state.swap(EMPTY, Acquire);
    }
}

impl Park for StdPark {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            lock: Mutex::new(()),
            unparked: Condvar::new(),
        }
    }

    #[inline]
    fn park(&self) {
        self.wait(None);
    }

    #[inline]
    fn unpark(&self) {
        if self.state.swap(NOTIFIED, Release) == PARKED {
            drop(self.lock.lock());
            self.unparked.notify_one();
        }
    }
}
