//! The lock of `Native`, `Spin` and `LoomWord`: bits and lock in one word.
//!
//! ```text
//!   word = bits << 1 | LOCKED
//!
//!   unlocked ──update: one compare-exchange──▶ unlocked, new bits
//!   unlocked ──with: one compare-exchange────▶ LOCKED, old bits ──a store──▶ unlocked, new bits
//!   LOCKED   ──any other thread: waits, and looks again
//! ```
//!
//! While `LOCKED`, the word keeps the bits as the last section left them, so
//! `load` never waits, and neither does an `update` that changes nothing.
//!
//! Invariant: while `LOCKED`, only the thread that set it writes the word. Every
//! other write is a compare-exchange from an unlocked word. So the holder releases
//! the lock by a plain store, which costs a fraction of a read-modify-write, and
//! the store is its last access to the lock.
//!
//! # Why a waiting thread leaves no mark
//!
//! A thread that waits for the lock looks at the word again after a pause. It does
//! not have to be told of the release, so it cannot miss one. A lock that parks its
//! waiters needs a mark in the word. A mark that can appear at any moment makes each
//! release a read-modify-write, even if there is no mark.
//!
//! Looking again is cheap because a section is short: it moves a few words, and no
//! foreign code runs in it (P4). A section is long only if the system preempts the
//! holder. For that case the pauses grow, from a few instructions over yields of the
//! processor to sleeps ([`Atomics::pause`]). A sleep lets every other thread run,
//! even one of lower priority, so the holder reaches its release whatever the
//! scheduler prefers. The pauses are bounded, and the word is looked at after each,
//! so a thread waits for one pause more than it has to.
//!
//! The algorithm is generic over its atomics, so that the code that runs on threads
//! is itself explored under loom's (subject `state-lock`).

use core::sync::atomic::{AtomicUsize, Ordering};

use super::{Cell, RawStateLock, Word};
use crate::protocol::Bits;

/// The bit of the word that says that a section runs.
const LOCKED: usize = 0b1;

/// The atomics that a [`WordLock`] runs on, and how a thread waits for one.
///
/// # Safety
///
/// - `Word` is one atomic word. Each of its operations is one step, with the
///   orderings that its docs name. A compare-exchange that returns `Ok` has found
///   `old` and stored `new`, and one that returns `Err` has stored nothing.
/// - `pause` stores nothing to the word.
/// - Several threads may use a cell at once, as [`SharedBackend`](super::SharedBackend)
///   says of its cells, if `Word` is `Sync`.
pub unsafe trait Atomics: Sized + 'static {
    /// The lock word.
    type Word: Word;
    /// The cell of the state.
    type Cell<T>: Cell<T>;

    /// Pauses between two looks at a locked word. Pauses grow with `round`, up to a
    /// bound.
    fn pause(word: &Self::Word, round: u32);
}

/// The orderings of the compare-exchanges, on success and otherwise. They are here
/// once, so that loom explores the orderings that run.
pub(crate) mod ordering {
    use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};

    pub(crate) const LOCK: (Ordering, Ordering) = (Acquire, Relaxed);
    pub(crate) const UPDATE: (Ordering, Ordering) = (AcqRel, Acquire);
}

impl Word for AtomicUsize {
    #[inline]
    fn new(value: usize) -> Self {
        AtomicUsize::new(value)
    }

    #[inline]
    fn load_relaxed(&self) -> usize {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn load_acquire(&self) -> usize {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn store_release(&self, value: usize) {
        self.store(value, Ordering::Release);
    }

    #[inline]
    fn lock(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.compare_exchange_weak(old, new, ordering::LOCK.0, ordering::LOCK.1)
    }

    #[inline]
    fn update(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.compare_exchange_weak(old, new, ordering::UPDATE.0, ordering::UPDATE.1)
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
        f(AtomicUsize::get_mut(self))
    }
}

/// Bits and a state under one lock word. See the [module](super) for the
/// backends that use it.
pub struct WordLock<S, A: Atomics> {
    word: A::Word,
    state: A::Cell<S>,
}

impl<S, A: Atomics> WordLock<S, A> {
    pub(crate) const fn from_parts(word: A::Word, state: A::Cell<S>) -> Self {
        Self { word, state }
    }

    /// Acquires the lock and returns the bits that it found.
    #[inline]
    fn lock(&self) -> Bits {
        let word = self.word.load_relaxed();
        if word & LOCKED == 0 && self.word.lock(word, word | LOCKED).is_ok() {
            return Bits::of_word(word);
        }
        self.lock_slow()
    }

    #[cold]
    fn lock_slow(&self) -> Bits {
        let mut round = 0;
        loop {
            let word = self.word.load_relaxed();
            if word & LOCKED == 0 && self.word.lock(word, word | LOCKED).is_ok() {
                return Bits::of_word(word);
            }
            self.pause(&mut round);
        }
    }

    /// Pauses after `round` earlier pauses, and counts this one.
    #[cold]
    #[inline(never)]
    fn pause(&self, round: &mut u32) {
        A::pause(&self.word, *round);
        *round = round.saturating_add(1);
    }
}

/// Releases the lock when a section ends, by a return or a panic.
struct UnlockOnDrop<'a, S, A: Atomics> {
    lock: &'a WordLock<S, A>,
    bits: Bits,
}

impl<S, A: Atomics> Drop for UnlockOnDrop<'_, S, A> {
    #[inline]
    fn drop(&mut self) {
        self.lock.word.store_release(self.bits.to_word());
    }
}

// SAFETY: by the contract of `Atomics`. Exclusion: `with` runs its closure only
// between setting `LOCKED`, by a compare-exchange from an unlocked word, and the
// store that clears it. `update` and `exchange` replace only an unlocked word that
// has the bits they expect. So no other thread writes a locked word, and the store
// overwrites nothing that the holder has not seen. Visibility: setting `LOCKED`
// acquires, and every write that ends a section releases: the store and the
// compare-exchange of `update`. The write that sets `LOCKED` does not release, but it
// is a read-modify-write. It continues the release sequence of the word that it
// replaced, so an acquire that reads from it synchronizes with the section before.
// Last access: the store, or the compare-exchange of `update`. All this is explored
// under loom's atomics, by the subject `state-lock` and in `tests/loom_lock.rs`.
unsafe impl<S, A: Atomics> RawStateLock<S> for WordLock<S, A> {
    fn new(bits: Bits, state: S) -> Self {
        Self::from_parts(A::Word::new(bits.to_word()), A::Cell::new(state))
    }

    #[inline]
    fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        let mut word = self.word.load_acquire();
        let mut round = 0;
        loop {
            let old = Bits::of_word(word);
            let Some(new) = f(old) else {
                return Err(old);
            };
            if word & LOCKED == 0 {
                match self.word.update(word, new.to_word()) {
                    Ok(_) => return Ok(old),
                    Err(now) => word = now,
                }
            } else {
                self.pause(&mut round);
                word = self.word.load_acquire();
            }
        }
    }

    #[inline]
    fn exchange(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        match self.word.update(old.to_word(), new.to_word()) {
            Ok(_) => Ok(()),
            Err(now) => Err(Bits::of_word(now)),
        }
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let old = self.lock();
        let mut guard = UnlockOnDrop {
            lock: self,
            bits: old,
        };
        let bits = &mut guard.bits;
        self.state.with_mut(|state| {
            // SAFETY: the lock is held until `guard` drops, and the state is reached
            // only while it is held, so this is the only reference.
            f(bits, unsafe { &mut *state })
        })
    }

    #[inline]
    fn load(&self) -> Bits {
        Bits::of_word(self.word.load_acquire())
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let state = &self.state;
        self.word.get_mut(|word| {
            let mut bits = Bits::of_word(*word);
            let result = state.with_mut(|state| {
                // SAFETY: `self` is borrowed exclusively.
                f(&mut bits, unsafe { &mut *state })
            });
            *word = bits.to_word();
            result
        })
    }
}

impl<S, A: Atomics> core::fmt::Debug for WordLock<S, A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WordLock")
            .field("bits", &Bits::of_word(self.word.load_relaxed()))
            .finish_non_exhaustive()
    }
}

// SAFETY: the state is reached only under the lock or by `&mut`. So sharing the lock
// passes the state from thread to thread and never shares it. `Atomics` promises that
// its cell may be used so if the word is `Sync`.
unsafe impl<S: Send, A: Atomics> Sync for WordLock<S, A> where A::Word: Sync {}
