//! `Observed`: any backend, with an observer that is told of every section.
//!
//! By it the verifier knows when a section begins and ends, without a trace in the
//! primitives themselves. It orders operations by their sections, detects a waker
//! that is called under the lock, and draws counterexamples.
//!
//! It stays beside the [`Watcher`](super::Watcher) of `Native`, which tells the same of
//! primitives that are not generic. A watcher belongs to a thread and to `Native`. An
//! observer belongs to the type, so it also observes the sections of `Loom` and
//! `LoomWord`, whose explorations have no other way to tell of them, and what a blocked
//! thread of `stress` sleeps on without a cost for each section. It is told when a lock is
//! created, which `Native` cannot tell in a constant.

use core::fmt;
use core::marker::PhantomData;

use super::{Backend, BlockingBackend, Park, Passage, RawStateLock, SharedBackend};
use crate::protocol::Bits;

/// The backend `B`, with an observer `O` of every section.
#[derive(Debug)]
pub struct Observed<B, O>(PhantomData<(B, O)>);

/// What is told of sections.
///
/// The calls for one section come in order, on the thread that runs it: `approach`,
/// then `enter` and `leave`. These are as close to the section as the lock lets a
/// closure run. For a `with` they are within the section. For an `update` they are
/// around the closure, and each retry is entered anew. For the others they come after
/// the section.
pub trait Observer: 'static {
    /// What a blocked thread sleeps on. The observer chooses it, so that a blocking
    /// operation can be observed too.
    type Park: Park;

    /// What is kept of a section from `approach` to `leave`.
    type Visit;

    /// Called when a section is about to begin. Other threads may run before it does.
    fn approach(lock: usize, passage: Passage) -> Self::Visit;

    /// Called when it has begun.
    fn enter(visit: &mut Self::Visit);

    /// Called when it has ended, by a return or a panic.
    fn leave(visit: &mut Self::Visit, before: Bits, after: Bits);

    /// Called when a lock has been created.
    fn created();

    /// Called when a lock has been dropped.
    fn dropped();

    /// Called when the lock at this address has been dropped. Another may be created there.
    fn gone(lock: usize) {
        let _ = lock;
    }
}

impl<B: Backend, O: Observer> Backend for Observed<B, O> {
    type Lock<S> = ObservedLock<B::Lock<S>, O>;
    type Cell<T> = B::Cell<T>;
    type Word = B::Word;
}

// SAFETY: the cells are those of `B`. The locks are those of `B` too. The observer
// beside them is called and not stored, so no value of it is sent.
unsafe impl<B: SharedBackend, O: Observer> SharedBackend for Observed<B, O> {}

impl<B: SharedBackend, O: Observer> BlockingBackend for Observed<B, O> {
    type Park = O::Park;
}

/// A lock whose sections are observed.
pub struct ObservedLock<L, O: Observer> {
    lock: L,
    observer: PhantomData<fn() -> O>,
}

/// Reports the end of a section, even if a panic ends it.
struct InSection<'a, O: Observer> {
    visit: &'a mut O::Visit,
    before: Bits,
    after: Bits,
}

impl<'a, O: Observer> InSection<'a, O> {
    fn new(visit: &'a mut O::Visit, before: Bits) -> Self {
        O::enter(visit);
        Self {
            visit,
            before,
            after: before,
        }
    }
}

impl<O: Observer> Drop for InSection<'_, O> {
    fn drop(&mut self) {
        O::leave(self.visit, self.before, self.after);
    }
}

impl<L, O: Observer> ObservedLock<L, O> {
    fn approach(&self, passage: Passage) -> O::Visit {
        O::approach(core::ptr::from_ref(self).addr(), passage)
    }
}

// SAFETY: every operation is one of the observed lock, which keeps the promises, and
// passes on what the closure of the caller returns and leaves. The observer is given
// copies of the bits. It is called within the closures of that lock, where it may do
// what any closure may.
unsafe impl<S, L: RawStateLock<S>, O: Observer> RawStateLock<S> for ObservedLock<L, O> {
    fn new(bits: Bits, state: S) -> Self {
        O::created();
        Self {
            lock: L::new(bits, state),
            observer: PhantomData,
        }
    }

    fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        let mut visit = self.approach(Passage::Update);
        self.lock.update(|bits| {
            let mut within = InSection::<O>::new(&mut visit, bits);
            let new = f(bits);
            within.after = new.unwrap_or(bits);
            new
        })
    }

    fn exchange(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        let mut visit = self.approach(Passage::Update);
        let result = self.lock.exchange(old, new);
        let found = result.err().unwrap_or(old);
        let mut within = InSection::<O>::new(&mut visit, found);
        if result.is_ok() {
            within.after = new;
        }
        drop(within);
        result
    }

    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let mut visit = self.approach(Passage::With);
        self.lock.with(|bits, state| {
            let mut within = InSection::<O>::new(&mut visit, *bits);
            let result = f(bits, state);
            within.after = *bits;
            result
        })
    }

    fn load(&self) -> Bits {
        let mut visit = self.approach(Passage::Load);
        let bits = self.lock.load();
        drop(InSection::<O>::new(&mut visit, bits));
        bits
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        self.lock.get_mut(f)
    }
}

impl<L, O: Observer> Drop for ObservedLock<L, O> {
    fn drop(&mut self) {
        O::dropped();
        O::gone(core::ptr::from_ref(self).addr());
    }
}

impl<L, O: Observer> fmt::Debug for ObservedLock<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedLock").finish_non_exhaustive()
    }
}
