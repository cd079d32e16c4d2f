//! `Watcher`: what a checker of sections is told, and may decide.

#![forbid(unsafe_code)]

use core::panic::{Location, RefUnwindSafe};
use core::sync::atomic::AtomicUsize;

use crate::protocol::Bits;

/// The kinds of section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Passage {
    /// [`RawStateLock::load`](super::RawStateLock::load): reads the bits.
    Load,
    /// [`RawStateLock::update`](super::RawStateLock::update): replaces the bits, or reads them.
    Update,
    /// [`RawStateLock::with`](super::RawStateLock::with): works on bits and state.
    With,
    /// A section like `With` that changes nothing.
    Look,
}

/// A lock, as a [`Watcher`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct WatchedLock<'a> {
    /// The address, which changes if the lock is moved.
    pub address: usize,
    /// A note of the checker, which is kept in the lock and moves with it. It is 0 in a
    /// new lock.
    pub note: &'a AtomicUsize,
}

/// A checker of the sections of a thread.
pub trait Watcher: Send + Sync + RefUnwindSafe {
    /// Called when a section is about to begin. It returns when the section may, and the
    /// section then begins. Returns a number for [`leave`](Self::leave).
    fn approach(&self, lock: WatchedLock<'_>, passage: Passage) -> usize;

    /// Called when a section is over, by a return or a panic, with the number that its
    /// approach has returned. The lock may be gone: another thread may have dropped it.
    /// It is not called if the closure of an update panics.
    fn leave(&self, visit: usize, passage: Passage, before: Bits, after: Bits);

    /// Called when bits and state are lent by an exclusive borrow, without a section.
    fn borrowed(&self, lock: WatchedLock<'_>) {
        let _ = lock;
    }

    /// Called when a lock is dropped. Another may be created at its address.
    fn dropped(&self, lock: WatchedLock<'_>);

    /// Called when a thread is about to block on a parker of its own. Returns the
    /// number of the parker.
    fn parker(&self) -> usize;

    /// Blocks until the parker is unparked.
    fn park(&self, parker: usize);

    /// Lets the current or next [`park`](Self::park) return.
    fn unpark(&self, parker: usize);

    /// Called in a section that queues the caller, for a call at this location. The
    /// number is that of the place in the queue, until [`unqueues`](Self::unqueues).
    fn queues(&self, waiter: usize, place: &'static Location<'static>) {
        let _ = (waiter, place);
    }

    /// Called in a section that grants what a queued waiter waits for. The waiter has not
    /// been polled since.
    fn grants(&self, waiter: usize) {
        let _ = waiter;
    }

    /// Called in a section that removes a waiter: it has observed its grant, or gives up.
    fn unqueues(&self, waiter: usize) {
        let _ = waiter;
    }

    /// Called when the caller has acquired what it asked the last lock for, by a call
    /// at this location, of the primitive at this address.
    fn took(&self, primitive: usize, place: &'static Location<'static>) {
        let _ = (primitive, place);
    }

    /// Called when something acquired of a primitive has been released.
    fn gave(&self, primitive: usize) {
        let _ = primitive;
    }

    /// Called when a call that does not wait has been refused.
    fn refused(&self) {}

    /// Called when a deadline has passed before what was waited for.
    fn timed_out(&self) {}
}
