//! The [`Watcher`] of a thread, which is called before each section of
//! [`Native`](super::Native) on that thread.
//!
//! ```text
//!   section ──no checker on this thread──▶ as without it
//!      │
//!      └──a checker──▶ approach: may run others ──▶ enter ──▶ leave
//! ```
//!
//! It exists with the feature `model`, and changes no type: the abstract lock of a
//! checker *is* the native lock, with a place to switch before each section. Without
//! the feature, and for other backends, [`Backend::watcher`] is a constant, and
//! nothing of this is compiled.
//!
//! Invariant: the calls for a section come in order, on the thread that runs it, and
//! `leave` comes even if a panic ends the section.

use core::sync::atomic::AtomicUsize;

use super::{Backend, Passage, WatchedLock, Watcher};
use crate::protocol::Bits;

#[cfg(feature = "model")]
std::thread_local! {
    static WATCHER: core::cell::Cell<Option<&'static dyn Watcher>> =
        const { core::cell::Cell::new(None) };
}

/// Sets the checker of this thread, or none, and returns the previous one.
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

/// Returns the checker of this thread. A thread that ends has none any more.
#[cfg(feature = "model")]
#[inline]
pub(crate) fn watcher() -> Option<&'static dyn Watcher> {
    WATCHER.try_with(core::cell::Cell::get).ok().flatten()
}

/// A section that is watched, from its approach to its end.
pub(crate) struct Watched<'a> {
    watcher: &'static dyn Watcher,
    lock: WatchedLock<'a>,
    passage: Passage,
    bits: Option<(Bits, Bits)>,
}

impl<'a> Watched<'a> {
    pub(crate) fn approach(
        watcher: &'static dyn Watcher,
        lock: WatchedLock<'a>,
        passage: Passage,
    ) -> Self {
        watcher.approach(lock, passage);
        Self {
            watcher,
            lock,
            passage,
            bits: None,
        }
    }

    /// Records that the section has begun, with the bits that it found.
    pub(crate) fn enter(&mut self, bits: Bits) {
        if self.bits.is_none() {
            self.watcher.enter(self.lock);
        }
        self.bits = Some((bits, bits));
    }

    /// Records the bits that the section leaves.
    pub(crate) fn set(&mut self, bits: Bits) {
        if let Some((_, after)) = &mut self.bits {
            *after = bits;
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if let Some((before, after)) = self.bits {
            self.watcher.leave(self.lock, self.passage, before, after);
        }
    }
}

/// Reports, when it is dropped, that the lock in which it is has been dropped. It keeps
/// the note of the checker.
#[derive(Debug)]
pub(crate) struct Alive<B: Backend> {
    backend: core::marker::PhantomData<fn() -> B>,
    #[cfg(feature = "model")]
    note: AtomicUsize,
}

impl<B: Backend> Alive<B> {
    pub(crate) const fn new() -> Self {
        Self {
            backend: core::marker::PhantomData,
            #[cfg(feature = "model")]
            note: AtomicUsize::new(0),
        }
    }

    pub(crate) fn lock(&self) -> WatchedLock<'_> {
        /// Without the feature, nothing is noted.
        #[cfg(not(feature = "model"))]
        static NOTE: AtomicUsize = AtomicUsize::new(0);
        WatchedLock {
            address: core::ptr::from_ref(self).addr(),
            #[cfg(feature = "model")]
            note: &self.note,
            #[cfg(not(feature = "model"))]
            note: &NOTE,
        }
    }
}

#[cfg(feature = "model")]
impl<B: Backend> Drop for Alive<B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(watcher) = B::watcher() {
            watcher.dropped(self.lock());
        }
    }
}
