//! `Native`: threads, and what they wait on.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicUsize;
use core::time::Duration;

use super::word::{Atomics, WordLock};
use super::{Backend, BlockingBackend, SharedBackend, StdPark};
use crate::protocol::Bits;

/// The backend for threads, and the default.
///
/// The bits are in the lock word, so a section that needs only them is one
/// compare-exchange. A thread that finds the word locked spins briefly, then yields
/// its processor, then sleeps for a moment at a time.
#[derive(Debug)]
pub struct Native;

impl Backend for Native {
    type Lock<S> = WordLock<S, StdAtomics>;
    type Cell<T> = UnsafeCell<T>;
    type Word = AtomicUsize;

    #[cfg(feature = "model")]
    #[inline]
    fn is_watched() -> bool {
        super::watch::is_watched()
    }

    #[cfg(feature = "model")]
    fn watcher() -> Option<&'static dyn super::Watcher> {
        super::watch::watcher()
    }
}

// SAFETY: `WordLock` keeps its promises by atomics that threads share, and is `Sync`
// and `Send` as such. An `UnsafeCell` has nothing but its value that threads could
// race for.
unsafe impl SharedBackend for Native {}

impl BlockingBackend for Native {
    type Park = StdPark;
}

impl Native {
    /// Creates a lock in a constant.
    pub(crate) const fn lock<S>(bits: Bits, state: S) -> WordLock<S, StdAtomics> {
        WordLock::from_parts(AtomicUsize::new(bits.to_word()), UnsafeCell::new(state))
    }
}

/// The atomics of `std`, with pauses that let the operating system run other threads.
#[derive(Debug)]
pub struct StdAtomics;

/// The number of rounds that only spin, together about as long as a section.
const SPINS: u32 = 4;
/// The number of rounds, spins included, before a thread sleeps. On a busy machine
/// the holder of the lock has run by then, unless it has a lower priority.
const YIELDS: u32 = 32;
/// How long a thread then sleeps. It is long enough for the holder to run, however
/// low its priority.
const SLEEP: Duration = Duration::from_micros(50);

// SAFETY: the word is an `AtomicUsize`, and the cell is an `UnsafeCell`.
unsafe impl Atomics for StdAtomics {
    type Word = AtomicUsize;
    type Cell<T> = UnsafeCell<T>;

    #[inline]
    fn pause(_: &AtomicUsize, round: u32) {
        if round < SPINS {
            for _ in 0..1 << round {
                core::hint::spin_loop();
            }
        } else if round < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}
