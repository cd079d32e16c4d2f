//! `Watcher`: a checker on this thread is asked before each section of
//! [`Native`](super::Native) begins.
//!
//! ```text
//!   section ──no checker on this thread──▶ as ever
//!      │
//!      └──a checker──▶ approach: may run others ──▶ enter ──▶ leave
//! ```
//!
//! It is there with the feature `model`, and changes no type: the abstract lock of a
//! checker *is* the native lock, with a place to switch before each section. Without the
//! feature, and for other backends, [`Backend::watcher`] is a constant, and nothing is
//! left of this.
//!
//! Invariant: what is told of a section is told on the thread that runs it, in order, and
//! `leave` also where a panic ends it.

use core::panic::Location;

use super::{Backend, Passage};
use crate::protocol::Bits;

/// A checker of the sections of a thread.
pub trait Watcher: Send + Sync {
    /// A section is about to begin. Returns when it may.
    fn approach(&self, lock: usize, passage: Passage);

    /// It has begun.
    fn enter(&self, lock: usize);

    /// It is about to end, by return or by a panic.
    fn leave(&self, lock: usize, passage: Passage, before: Bits, after: Bits);

    /// A lock is gone, and another may come to stand where it stood.
    fn dropped(&self, lock: usize);

    /// A thread is about to block by a parker of its own: its number.
    fn parker(&self) -> usize;

    /// Blocks until the parker is unparked.
    fn park(&self, parker: usize);

    /// Lets the current or next [`park`](Self::park) return.
    fn unpark(&self, parker: usize);

    /// The section that runs puts the caller in a queue, for a call at this place.
    fn queues(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// The caller has taken what it asked the last lock for, by a call at this place. It is
    /// of the primitive at this address.
    fn took(&self, primitive: usize, place: &'static Location<'static>) {
        let _ = (primitive, place);
    }

    /// What was taken from a primitive is given back.
    fn gave(&self, primitive: usize) {
        let _ = primitive;
    }
}

#[cfg(feature = "model")]
std::thread_local! {
    static WATCHER: core::cell::Cell<Option<&'static dyn Watcher>> =
        const { core::cell::Cell::new(None) };
}

/// Has a checker watch this thread, or none, and returns the one from before.
///
/// # Examples
///
/// ```
/// use reveille::backend::watch;
///
/// assert!(watch(None).is_none());
/// ```
#[cfg(feature = "model")]
pub fn watch(watcher: Option<&'static dyn Watcher>) -> Option<&'static dyn Watcher> {
    WATCHER.replace(watcher)
}

/// The checker of this thread. A thread that ends has none any more.
#[cfg(feature = "model")]
#[inline]
pub(crate) fn watcher() -> Option<&'static dyn Watcher> {
    WATCHER.try_with(core::cell::Cell::get).ok().flatten()
}

/// A section that is watched, from its approach to its end.
pub(crate) struct Watched {
    watcher: &'static dyn Watcher,
    lock: usize,
    passage: Passage,
    bits: Option<(Bits, Bits)>,
}

impl Watched {
    pub(crate) fn approach(watcher: &'static dyn Watcher, lock: usize, passage: Passage) -> Self {
        watcher.approach(lock, passage);
        Self {
            watcher,
            lock,
            passage,
            bits: None,
        }
    }

    /// The section has begun, and found these bits.
    pub(crate) fn enter(&mut self, bits: Bits) {
        if self.bits.is_none() {
            self.watcher.enter(self.lock);
        }
        self.bits = Some((bits, bits));
    }

    /// It leaves these.
    pub(crate) fn set(&mut self, bits: Bits) {
        if let Some((_, after)) = &mut self.bits {
            *after = bits;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some((before, after)) = self.bits {
            self.watcher.leave(self.lock, self.passage, before, after);
        }
    }
}

/// Says that the lock is gone in which it stands, at its address.
#[derive(Debug)]
pub(crate) struct Alive<B: Backend>(core::marker::PhantomData<fn() -> B>);

impl<B: Backend> Alive<B> {
    pub(crate) const NEW: Self = Self(core::marker::PhantomData);
}

#[cfg(feature = "model")]
impl<B: Backend> Drop for Alive<B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(watcher) = B::watcher() {
            watcher.dropped(core::ptr::from_ref(self).addr());
        }
    }
}
