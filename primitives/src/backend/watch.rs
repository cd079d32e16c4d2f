//! The [`Watcher`] of a thread, which is called before each section of
//! [`Native`](super::Native) on that thread.
//!
//! ```text
//!   section ──no checker on this thread──▶ as without it, after one branch
//!      │
//!      └──a checker──▶ approach: may run others ──▶ the section ──▶ leave
//! ```
//!
//! It exists with the feature `model`, and changes no type: the abstract lock of a
//! checker *is* the native lock, with a place to switch before each section. Without
//! the feature, and for other backends, [`Backend::is_watched`] is a constant, and
//! nothing of this is compiled.
//!
//! What a checker is told is out of line, and the closure of a section is called in one
//! place. Otherwise the compiler inlines neither the section nor what calls it, which
//! costs more than the branch.
//!
//! Invariant: the calls for a section come in order, on the thread that runs it, and
//! `leave` comes even if a panic ends the section. It does not come if the closure of an
//! update panics, which runs outside of every section.

#[cfg(feature = "model")]
use core::cell::Cell;
#[cfg(feature = "model")]
use core::sync::atomic::AtomicUsize;

use super::Backend;
#[cfg(feature = "model")]
use super::{Passage, WatchedLock, Watcher};
#[cfg(feature = "model")]
use crate::protocol::Bits;

#[cfg(feature = "model")]
std::thread_local! {
    /// Whether this thread has a checker. A section looks at it first, because it is one
    /// byte to compare.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static WATCHER: Cell<Option<&'static dyn Watcher>> = const { Cell::new(None) };
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
    WATCHED.set(watcher.is_some());
    WATCHER.replace(watcher)
}

/// Returns `true` if this thread has a checker.
#[cfg(feature = "model")]
#[inline]
pub(crate) fn is_watched() -> bool {
    WATCHED.try_with(Cell::get).unwrap_or_default()
}

/// Returns the checker of this thread. A thread that ends has none any more.
#[cfg(feature = "model")]
#[cold]
#[inline(never)]
pub(crate) fn watcher() -> Option<&'static dyn Watcher> {
    WATCHER.try_with(Cell::get).ok().flatten()
}

/// Calls the checker of this thread, if there is one. It is out of line.
#[cfg(feature = "model")]
#[inline]
pub(crate) fn tell<B: Backend>(what: impl FnOnce(&'static dyn Watcher)) {
    #[cold]
    #[inline(never)]
    fn tell<B: Backend>(what: impl FnOnce(&'static dyn Watcher)) {
        if let Some(watcher) = B::watcher() {
            what(watcher);
        }
    }
    if B::is_watched() {
        tell::<B>(what);
    }
}

/// Tells the checker of this thread, if there is one, that a call which does not wait has
/// been refused. Returns its error.
#[cfg_attr(
    not(feature = "model"),
    expect(clippy::extra_unused_type_parameters, reason = "nothing is told")
)]
#[inline]
pub(crate) fn refused<B: Backend, E>(error: E) -> E {
    #[cfg(feature = "model")]
    tell::<B>(|watcher| watcher.refused());
    error
}

/// The number of a section that nothing watches.
#[cfg(feature = "model")]
pub(crate) const UNWATCHED: usize = 0;

/// Tells the checker of this thread that a section begins. Returns its number.
#[cfg(feature = "model")]
#[cold]
#[inline(never)]
pub(crate) fn approach<B: Backend>(alive: &Alive<B>, passage: Passage) -> usize {
    let visit = B::watcher().map(|watcher| watcher.approach(alive.lock(), passage));
    visit.map_or(UNWATCHED, |visit| visit + 1)
}

/// Tells the checker of this thread that the section with this number has ended.
#[cfg(feature = "model")]
#[cold]
#[inline(never)]
pub(crate) fn leave<B: Backend>(visit: usize, passage: Passage, before: Bits, after: Bits) {
    if let (Some(watcher), true) = (B::watcher(), visit != UNWATCHED) {
        watcher.leave(visit - 1, passage, before, after);
    }
}

/// Tells the checker that a section has ended, by a return or a panic.
#[cfg(feature = "model")]
pub(crate) struct LeaveOnDrop<B: Backend> {
    pub(crate) backend: core::marker::PhantomData<B>,
    pub(crate) visit: usize,
    pub(crate) passage: Passage,
    pub(crate) before: Bits,
    pub(crate) after: Bits,
}

#[cfg(feature = "model")]
impl<B: Backend> LeaveOnDrop<B> {
    /// Records the bits that the section has found.
    #[inline]
    pub(crate) fn enter(&mut self, bits: Bits) {
        (self.before, self.after) = (bits, bits);
    }
}

#[cfg(feature = "model")]
impl<B: Backend> Drop for LeaveOnDrop<B> {
    #[inline]
    fn drop(&mut self) {
        if self.visit != UNWATCHED {
            leave::<B>(self.visit, self.passage, self.before, self.after);
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

    /// Tells the checker of this thread that bits and state are lent without a section.
    #[cfg(feature = "model")]
    #[inline]
    pub(crate) fn borrowed(&self) {
        tell::<B>(|watcher| watcher.borrowed(self.lock()));
    }

    #[cfg(feature = "model")]
    fn lock(&self) -> WatchedLock<'_> {
        WatchedLock {
            address: core::ptr::from_ref(self).addr(),
            note: &self.note,
        }
    }
}

#[cfg(feature = "model")]
impl<B: Backend> Drop for Alive<B> {
    #[inline]
    fn drop(&mut self) {
        tell::<B>(|watcher| watcher.dropped(self.lock()));
    }
}
