//! `Loom` and `LoomWord`: exhaustive exploration.
//!
//! `Loom` is the abstract lock: a section is one step, and the start of it is
//! the only place where loom switches threads. `LoomWord` is the real lock,
//! [`WordLock`], over loom's atomics: every load and every compare-exchange is
//! a step, and every ordering counts.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Condvar, Mutex};

use super::stepped::SteppedBits;
use super::word::{Atomics, ParkingLot, Word, WordLock, ordering};
use super::{Backend, BlockingBackend, Cell, Park, RawStateLock, SharedBackend};
use crate::protocol::Bits;

/// The backend that loom explores section by section.
#[derive(Debug)]
pub struct Loom;

impl Backend for Loom {
    type Lock<S> = LoomLock<S>;
    type Cell<T> = LoomCell<T>;
}

// SAFETY: loom's threads are the threads that use its locks and cells (elsewhere they
// panic), and all threads of a model run on one thread of the system.
unsafe impl SharedBackend for Loom {}

impl BlockingBackend for Loom {
    type Park = LoomPark;
}

/// The backend that loom explores access by access: the lock of
/// [`Native`](super::Native) on loom's atomics.
#[derive(Debug)]
pub struct LoomWord;

impl Backend for LoomWord {
    type Lock<S> = WordLock<S, LoomAtomics>;
    type Cell<T> = LoomCell<T>;
}

// SAFETY: as for `Loom`; the lock is `WordLock`.
unsafe impl SharedBackend for LoomWord {}

impl BlockingBackend for LoomWord {
    type Park = LoomPark;
}

/// Bits and a state under a `loom::sync::Mutex`.
///
/// The bits stand beside the mutex, so that an update can release it before its
/// closure runs: a section within the closure is then legal, as over a lock of
/// threads.
#[derive(Debug)]
pub struct LoomLock<S> {
    bits: SteppedBits,
    state: Mutex<S>,
}

impl<S> LoomLock<S> {
    /// A panic goes on once the lock is released. Passing through the guard it
    /// would poison the mutex, which loom then unwraps.
    fn section<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let mut guard = self.state.lock().expect("no panic passes the guard");
        let mut taken = self.bits.take();
        let result = catch_unwind(AssertUnwindSafe(|| f(&mut taken.bits, &mut guard)));
        drop(taken);
        drop(guard);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

// SAFETY: all threads of a model run on one thread of the system, and loom switches
// between them only where an access begins; `MutexGuard::drop` has no such place.
// Exclusion: a `with` has the mutex while its closure runs. An `update` compares and
// stores without a switch between the two, and not while a `with` has the bits.
// Visibility: a section takes the mutex and releases it; what follows in an `update` is
// one step with the release. Last access: the release, and in an `update` the store, are
// not followed by any before a switch.
unsafe impl<S> RawStateLock<S> for LoomLock<S> {
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

    unsafe fn store(&self, new: Bits) {
        self.section(|bits, _| *bits = new);
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let state = self.state.get_mut().expect("no panic passes the guard");
        f(self.bits.get_mut(), state)
    }
}

/// A `loom::cell::UnsafeCell`: loom reports an access that races with another.
#[derive(Debug)]
pub struct LoomCell<T>(loom::cell::UnsafeCell<T>);

// SAFETY: the pointers are those of loom's cell, to its one value, which stands in it;
// the cell drops it, and accesses but its own records.
unsafe impl<T> Cell<T> for LoomCell<T> {
    fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

/// loom's atomics, and a parking lot that loom can see.
#[derive(Debug)]
pub struct LoomAtomics;

// SAFETY: the word is one of loom's, with the orderings of `AtomicUsize`, and the lot
// calls the closure of an unpark once. All threads of a model run on one of the
// system's, so they may use a cell at once.
unsafe impl Atomics for LoomAtomics {
    type Word = LoomAtomicWord;
    type Cell<T> = LoomCell<T>;
    type ParkingLot = LoomParkingLot;
    /// None: what a spin could see, the search sees by another order.
    const SPINS: u32 = 0;

    fn spin(_: u32) {}
}

/// An atomic word of loom's, each load of which is a step that the search sees.
///
/// Loom's reduction remembers of an atomic the last access, whoever made it.
/// Where a thread loads a word and then replaces it, its own load hides those
/// of others before it, and the order in which theirs come later is left out:
/// of a `load` beside an `update`, all executions found the old bits. So each
/// load is made after a read-modify-write of a second atomic, which conflicts
/// with each of its kind. Being relaxed and elsewhere, it orders nothing of
/// what is explored.
#[derive(Debug)]
pub struct LoomAtomicWord {
    word: AtomicUsize,
    steps: AtomicUsize,
}

impl LoomAtomicWord {
    /// The word, for the access that comes with this step.
    pub fn step(&self) -> &AtomicUsize {
        self.steps.fetch_add(1, Ordering::Relaxed);
        &self.word
    }
}

impl Word for LoomAtomicWord {
    fn new(value: usize) -> Self {
        Self {
            word: AtomicUsize::new(value),
            steps: AtomicUsize::new(0),
        }
    }

    fn load_relaxed(&self) -> usize {
        self.step().load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> usize {
        self.step().load(Ordering::Acquire)
    }

    fn store_release(&self, value: usize) {
        self.word.store(value, Ordering::Release);
    }

    fn lock(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange_weak(old, new, ordering::LOCK.0, ordering::LOCK.1)
    }

    fn unlock(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange(old, new, ordering::UNLOCK.0, ordering::UNLOCK.1)
    }

    fn update(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange_weak(old, new, ordering::UPDATE.0, ordering::UPDATE.1)
    }

    fn mark_parked(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange_weak(old, new, ordering::MARK_PARKED.0, ordering::MARK_PARKED.1)
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
        self.word.with_mut(f)
    }
}

/// A parking lot for one word: a queue under a loom mutex. It gives what
/// `parking_lot_core` promises (`validate` and the unlock's closure run under
/// the lot's lock, sleepers leave in order) and nothing more.
#[derive(Debug)]
pub struct LoomParkingLot {
    sleepers: Mutex<ParkedThreads>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct ParkedThreads {
    asleep: VecDeque<usize>,
    tickets: usize,
}

impl<W> ParkingLot<W> for LoomParkingLot {
    fn new() -> Self {
        Self {
            sleepers: Mutex::new(ParkedThreads::default()),
            left: Condvar::new(),
        }
    }

    unsafe fn park(&self, _: &W, validate: impl FnOnce() -> bool) {
        let mut sleepers = self.sleepers.lock().expect("loom's mutex does not poison");
        if !validate() {
            return;
        }
        let ticket = sleepers.tickets;
        sleepers.tickets += 1;
        sleepers.asleep.push_back(ticket);
        while sleepers.asleep.contains(&ticket) {
            sleepers = self
                .left
                .wait(sleepers)
                .expect("loom's mutex does not poison");
        }
    }

    unsafe fn unpark_one(&self, _: &W, f: impl FnOnce(bool)) {
        let mut sleepers = self.sleepers.lock().expect("loom's mutex does not poison");
        sleepers.asleep.pop_front();
        f(!sleepers.asleep.is_empty());
        self.left.notify_all();
    }
}

/// A thread of loom's, blocked on a condition that loom can see.
#[derive(Debug)]
pub struct LoomPark {
    unparked: Mutex<bool>,
    changed: Condvar,
}

impl Park for LoomPark {
    fn new() -> Self {
        Self {
            unparked: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    fn park(&self) {
        let mut unparked = self.unparked.lock().expect("loom's mutex does not poison");
        while !*unparked {
            unparked = self
                .changed
                .wait(unparked)
                .expect("loom's mutex does not poison");
        }
        *unparked = false;
    }

    fn unpark(&self) {
        *self.unparked.lock().expect("loom's mutex does not poison") = true;
        self.changed.notify_one();
    }
}
