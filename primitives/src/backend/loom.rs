//! `Loom` and `LoomWord`: exhaustive exploration.
//!
//! `Loom` is the abstract lock: a section is one step, and loom switches threads only
//! where a section begins. `LoomWord` is the real lock, [`WordLock`], over loom's
//! atomics: every load and every compare-exchange is a step, and every ordering
//! counts.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Condvar, Mutex};
use loom::thread::{self, Thread};

use super::Word;
use super::stepped::SteppedBits;
use super::word::{Atomics, WordLock, ordering};
use super::{Backend, BlockingBackend, Cell, Park, RawStateLock, SharedBackend};
use crate::protocol::Bits;

/// The backend that loom explores section by section.
#[derive(Debug)]
pub struct Loom;

impl Backend for Loom {
    type Lock<S> = LoomLock<S>;
    type Cell<T> = LoomCell<T>;
    type Word = LoomAtomicWord;
}

// SAFETY: loom's threads are the threads that use its locks and cells, which panic
// elsewhere. All threads of a model run on one thread of the system.
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
    type Word = LoomAtomicWord;
}

// SAFETY: as for `Loom`. The lock is a `WordLock`.
unsafe impl SharedBackend for LoomWord {}

impl BlockingBackend for LoomWord {
    type Park = LoomPark;
}

/// Bits and a state under a `loom::sync::Mutex`.
///
/// The bits are beside the mutex, so that an update can release it before its closure
/// runs. A section within the closure is then allowed, as over a lock of threads.
#[derive(Debug)]
pub struct LoomLock<S> {
    bits: SteppedBits,
    state: Mutex<S>,
}

impl<S> LoomLock<S> {
    /// Runs a section. If it panics, the panic is resumed after the lock is released.
    /// If it unwound through the guard, it would poison the mutex, and loom unwraps
    /// that.
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
// between them only where an access begins. `MutexGuard::drop` does not switch.
// Exclusion: a `with` holds the mutex while its closure runs. An `update` compares
// and stores without a switch between the two, and not while a `with` has the bits.
// Visibility: a section acquires the mutex and releases it, and what follows in an
// `update` is one step with the release. Last access: no access follows the release,
// or the store of an `update`, before a switch.
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

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let state = self.state.get_mut().expect("no panic passes the guard");
        f(self.bits.get_mut(), state)
    }
}

/// A `loom::cell::UnsafeCell`: loom reports an access that races with another.
#[derive(Debug)]
pub struct LoomCell<T>(loom::cell::UnsafeCell<T>);

// SAFETY: the pointers are those of loom's cell to its one value, which is stored in
// it. The cell drops the value, and accesses nothing but its own records.
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

/// loom's atomics, and pauses in which other threads run.
#[derive(Debug)]
pub struct LoomAtomics;

// SAFETY: the word is one of loom's, with the orderings of `AtomicUsize`. All threads
// of a model run on one thread of the system, so they may use a cell at once.
unsafe impl Atomics for LoomAtomics {
    type Word = LoomAtomicWord;
    type Cell<T> = LoomCell<T>;

    /// Blocks until a release. A thread that pauses, looks again and finds the word
    /// locked has changed nothing. Leaving such looks out leaves out no state, and
    /// the search ends.
    fn pause(word: &LoomAtomicWord, _: u32) {
        word.wait_for_release();
    }
}

/// An atomic word of loom's. Each load of it is a step that the search sees.
///
/// For each atomic, loom's reduction keeps the last access of any thread. If a thread
/// loads a word and then replaces it, its own load hides the earlier loads of other
/// threads, and the order in which those come later is left out: in all executions of
/// a `load` beside an `update`, the load found the old bits. So each load comes after
/// a read-modify-write of a second atomic, which conflicts with every other such
/// step. Since it is relaxed and of another atomic, it orders nothing of what is
/// explored.
#[derive(Debug)]
pub struct LoomAtomicWord {
    word: AtomicUsize,
    steps: AtomicUsize,
    /// The holder of the lock, and whether threads wait for it. Access to it is no
    /// step, since loom does not see it.
    holder: std::sync::Mutex<Holder>,
}

/// What a thread that pauses needs to know of the lock, besides its word.
#[derive(Debug, Default)]
struct Holder {
    locked: bool,
    waiting: Vec<Thread>,
}

impl LoomAtomicWord {
    /// Returns the word, for the access that comes with this step.
    pub fn step(&self) -> &AtomicUsize {
        self.steps.fetch_add(1, Ordering::Relaxed);
        &self.word
    }

    /// Lets the threads that wait for a release look again. It is called right after
    /// the store, with no step between, since the lock may be gone by the next step.
    pub fn released(&self) {
        let mut holder = self.holder();
        holder.locked = false;
        for thread in holder.waiting.drain(..) {
            thread.unpark();
        }
    }

    /// Records that the word has been locked. It is called right after the exchange,
    /// with no step between.
    pub fn taken(&self) {
        self.holder().locked = true;
    }

    fn wait_for_release(&self) {
        let mut holder = self.holder();
        if holder.locked {
            holder.waiting.push(thread::current());
            drop(holder);
            thread::park();
        } else {
            drop(holder);
            // The look before found an old value. After this, loom shows a newer one.
            thread::yield_now();
        }
    }

    fn holder(&self) -> std::sync::MutexGuard<'_, Holder> {
        self.holder.lock().expect("no panic while it is held")
    }
}

impl Word for LoomAtomicWord {
    fn new(value: usize) -> Self {
        Self {
            word: AtomicUsize::new(value),
            steps: AtomicUsize::new(0),
            holder: std::sync::Mutex::default(),
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
        self.released();
    }

    fn lock(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange_weak(old, new, ordering::LOCK.0, ordering::LOCK.1)
            .inspect(|_| self.taken())
    }

    fn update(&self, old: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange_weak(old, new, ordering::UPDATE.0, ordering::UPDATE.1)
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
        self.word.with_mut(f)
    }
}

/// Blocks one of loom's threads on a condition that loom can see.
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
