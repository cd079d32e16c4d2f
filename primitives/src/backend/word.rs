//! The lock of `Native`, `Spin` and `LoomWord`: bits and lock in one word.
//!
//! ```text
//!   word = bits << 2 | PARKED << 1 | LOCKED
//!
//!   unlocked ──update: one compare-exchange──▶ unlocked, new bits
//!   unlocked ──with: compare-exchange────────▶ LOCKED ──compare-exchange──▶ unlocked, new bits
//!   LOCKED   ──a second thread, after a spin─▶ LOCKED | PARKED: it sleeps in the lot
//!   LOCKED | PARKED ──unlock─────────────────▶ one sleeper leaves the lot and tries again
//! ```
//!
//! While `LOCKED`, the word keeps the bits as the last section left them, so
//! `load` never waits, and neither does an `update` that changes nothing.
//!
//! Invariant: whoever sleeps in the lot was put there while `LOCKED | PARKED`
//! was seen under the lot's own lock, and `PARKED` is cleared only there, by
//! an unlock that found nobody left behind. So an unlock either sees `PARKED`
//! or nobody sleeps. The scheme is the one of WebKit's `WTF::Lock` and of
//! `parking_lot::RawMutex`, with the bits of a state beside it.
//!
//! The algorithm is generic over its atomics, so that the very code that runs
//! on threads is explored under loom's (subject `state-lock`).

use core::sync::atomic::{AtomicUsize, Ordering};

use super::{Cell, RawStateLock};
use crate::protocol::Bits;

const LOCKED: usize = 0b01;
const PARKED: usize = 0b10;

/// The atomics and the parking a [`WordLock`] runs on.
///
/// # Safety
///
/// - `Word` is one atomic word: each of its operations does what it says, in one step,
///   with the orderings it names. A compare-exchange that returns `Ok` has found `old`
///   and stored `new`; one that returns `Err` has stored nothing.
/// - `ParkingLot` calls the closure of an `unpark_one` once, before it returns, and stores
///   nothing to the word itself.
/// - Several threads may use a cell at once, as [`SharedBackend`](super::SharedBackend)
///   says of its cells, if `Word` and `ParkingLot` are `Sync`.
pub unsafe trait Atomics: Sized + 'static {
    /// The lock word.
    type Word: Word;
    /// Where the state stands.
    type Cell<T>: Cell<T>;
    /// Where lockers sleep.
    type ParkingLot: ParkingLot<Self::Word>;
    /// How often a locker looks again before it goes to sleep.
    const SPINS: u32;

    /// A pause between two looks, the longer the more have been.
    fn spin(round: u32);
}

/// An atomic word: the operations of `AtomicUsize` that the lock uses, with
/// the orderings it needs in their names.
pub trait Word: Sized {
    /// A word.
    fn new(value: usize) -> Self;
    /// A relaxed load.
    fn load_relaxed(&self) -> usize;
    /// An acquire load.
    fn load_acquire(&self) -> usize;
    /// A release store.
    fn store_release(&self, value: usize);
    /// A compare-exchange, acquire on success, relaxed otherwise; may fail
    /// spuriously.
    ///
    /// # Errors
    ///
    /// The word found.
    fn lock(&self, old: usize, new: usize) -> Result<usize, usize>;
    /// A strong compare-exchange, release on success, relaxed otherwise.
    ///
    /// # Errors
    ///
    /// The word found.
    fn unlock(&self, old: usize, new: usize) -> Result<usize, usize>;
    /// A compare-exchange, acquire and release on success, acquire otherwise;
    /// may fail spuriously.
    ///
    /// # Errors
    ///
    /// The word found.
    fn update(&self, old: usize, new: usize) -> Result<usize, usize>;
    /// A relaxed compare-exchange; may fail spuriously.
    ///
    /// # Errors
    ///
    /// The word found.
    fn mark_parked(&self, old: usize, new: usize) -> Result<usize, usize>;
    /// The value by exclusive borrow.
    fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R;
}

/// The orderings of the compare-exchanges, on success and otherwise. They stand
/// here once, so that those that loom explores are those that run.
pub(crate) mod ordering {
    use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

    pub(crate) const LOCK: (Ordering, Ordering) = (Acquire, Relaxed);
    pub(crate) const UNLOCK: (Ordering, Ordering) = (Release, Relaxed);
    pub(crate) const UPDATE: (Ordering, Ordering) = (AcqRel, Acquire);
    pub(crate) const MARK_PARKED: (Ordering, Ordering) = (Relaxed, Relaxed);
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
    fn unlock(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.compare_exchange(old, new, ordering::UNLOCK.0, ordering::UNLOCK.1)
    }

    #[inline]
    fn update(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.compare_exchange_weak(old, new, ordering::UPDATE.0, ordering::UPDATE.1)
    }

    #[inline]
    fn mark_parked(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.compare_exchange_weak(old, new, ordering::MARK_PARKED.0, ordering::MARK_PARKED.1)
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
        f(AtomicUsize::get_mut(self))
    }
}

/// Where lockers of a word sleep.
pub trait ParkingLot<W> {
    /// An empty lot.
    fn new() -> Self;

    /// Sleeps until unparked, or returns at once where `validate`, called
    /// under the lot's lock, returns `false`.
    ///
    /// # Safety
    ///
    /// `validate` does not panic and uses no lot.
    unsafe fn park(&self, word: &W, validate: impl FnOnce() -> bool);

    /// Takes one sleeper out; before it can run, calls `f` under the lot's
    /// lock with whether others are left. Does not touch `self` or `word`
    /// after that.
    ///
    /// # Safety
    ///
    /// `f` does not panic and uses no lot.
    unsafe fn unpark_one(&self, word: &W, f: impl FnOnce(bool));
}

/// Bits and a state under one lock word. See the [module](super) for the
/// backends that use it.
pub struct WordLock<S, A: Atomics> {
    word: A::Word,
    parking_lot: A::ParkingLot,
    state: A::Cell<S>,
}

impl<S, A: Atomics> WordLock<S, A> {
    pub(crate) const fn from_parts(
        word: A::Word,
        parking_lot: A::ParkingLot,
        state: A::Cell<S>,
    ) -> Self {
        Self {
            word,
            parking_lot,
            state,
        }
    }

    /// Takes the lock and returns the bits found.
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
        let mut spins = 0;
        let mut word = self.word.load_relaxed();
        loop {
            if word & LOCKED == 0 {
                match self.word.lock(word, word | LOCKED) {
                    Ok(_) => return Bits::of_word(word),
                    Err(now) => word = now,
                }
                continue;
            }
            if word & PARKED == 0 {
                if spins < A::SPINS {
                    A::spin(spins);
                    spins += 1;
                    word = self.word.load_relaxed();
                    continue;
                }
                if let Err(now) = self.word.mark_parked(word, word | PARKED) {
                    word = now;
                    continue;
                }
            }
            let stays = || self.word.load_relaxed() & (LOCKED | PARKED) == LOCKED | PARKED;
            // SAFETY: the closure loads a word and compares it.
            unsafe { self.parking_lot.park(&self.word, stays) };
            spins = 0;
            word = self.word.load_relaxed();
        }
    }

    /// Waits for the end of the section that an update has found running. Then
    /// replaces the bits if they are still `old`, or returns the word it left.
    ///
    /// The closure of the update does not run under the lock: a section within it
    /// would wait for itself.
    #[cold]
    #[inline(never)]
    fn update_locked(&self, old: Bits, new: Bits) -> Result<(), usize> {
        let found = self.lock_slow();
        if found == old {
            self.unlock(found, new);
            Ok(())
        } else {
            self.unlock(found, found);
            Err(found.to_word())
        }
    }

    /// Releases the lock, which was taken over `old`, and leaves `new`.
    #[inline]
    fn unlock(&self, old: Bits, new: Bits) {
        if self
            .word
            .unlock(old.to_word() | LOCKED, new.to_word())
            .is_err()
        {
            self.unlock_slow(new);
        }
    }

    /// Releases a lock in whose lot somebody sleeps. The store is the last
    /// access to the lock, and nobody can take it before: the word stays
    /// `LOCKED` until then.
    #[cold]
    fn unlock_slow(&self, new: Bits) {
        let release = |more| {
            let parked = if more { PARKED } else { 0 };
            self.word.store_release(new.to_word() | parked);
        };
        // SAFETY: the closure stores a word.
        unsafe { self.parking_lot.unpark_one(&self.word, release) };
    }
}

/// Releases on the way out of a section, by return or by unwinding.
struct UnlockOnDrop<'a, S, A: Atomics> {
    lock: &'a WordLock<S, A>,
    old: Bits,
    bits: Bits,
}

impl<S, A: Atomics> Drop for UnlockOnDrop<'_, S, A> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock(self.old, self.bits);
    }
}

// SAFETY: of the word and the lot, by the contract of `Atomics`. Exclusion: `with`
// runs its closure only between taking `LOCKED` by a compare-exchange from an unlocked
// word and giving it back, and `update` and `exchange` replace only an unlocked word
// that has the bits they expect, or do so between the same two. Visibility:
// taking acquires, giving back and `update` release, and every other change of
// the word (`mark_parked`) is a read-modify-write, so it continues the release
// sequence and an acquire that reads from it still synchronises. Last access:
// the releasing compare-exchange of `unlock` and `update`, or the store inside
// `unpark_one`, which touches nothing of the lock afterwards. All this is
// explored under loom's atomics by the subject `state-lock`.
unsafe impl<S, A: Atomics> RawStateLock<S> for WordLock<S, A> {
    fn new(bits: Bits, state: S) -> Self {
        Self::from_parts(
            A::Word::new(bits.to_word()),
            A::ParkingLot::new(),
            A::Cell::new(state),
        )
    }

    #[inline]
    fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        let mut word = self.word.load_acquire();
        loop {
            let old = Bits::of_word(word);
            let Some(new) = f(old) else {
                return Err(old);
            };
            if word & LOCKED != 0 {
                match self.update_locked(old, new) {
                    Ok(()) => return Ok(old),
                    Err(now) => word = now,
                }
                continue;
            }
            // The word can be unlocked and `PARKED`: an unlock woke one of
            // several. The others have to be found by the next.
            match self.word.update(word, new.to_word() | word & PARKED) {
                Ok(_) => return Ok(old),
                Err(now) => word = now,
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
            old,
            bits: old,
        };
        let bits = &mut guard.bits;
        self.state.with_mut(|state| {
            // SAFETY: the lock is held until `guard` drops, and the state is
            // reached only through it, so this is the only reference.
            f(bits, unsafe { &mut *state })
        })
    }

    #[inline]
    fn load(&self) -> Bits {
        Bits::of_word(self.word.load_acquire())
    }

    #[inline]
    unsafe fn store(&self, bits: Bits) {
        self.word.store_release(bits.to_word());
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

// SAFETY: the state is reached only under the lock (or by `&mut`), so sharing
// the lock hands the state from thread to thread and never shares it; `Atomics`
// promises that its cell may be used so, where the word and the lot are `Sync`.
unsafe impl<S: Send, A: Atomics> Sync for WordLock<S, A>
where
    A::Word: Sync,
    A::ParkingLot: Sync,
{
}
