//! The waker of the only waiter, registered by one compare-exchange.
//!
//! A [`WakerSlot`](super::WakerSlot) is part of the state, so a section that
//! registers in it takes the lock and releases it. If there is only ever one waiter,
//! and the bits alone decide whether it waits, a section of the bits is enough. One
//! bit then tells which side the cell belongs to.
//!
//! ```text
//!   ┌────────────────────┐  write, then update: set `waits`  ┌───────────────────┐
//!   │ `waits` is clear:  │ ────────────────────────────────▶ │ `waits` is set:   │
//!   │ the waiter's cell  │ ◀──────────────────────────────── │ the sections' cell│
//!   └────────────────────┘  update: clear `waits`, take      └───────────────────┘
//!             ▲             (a poll with another waker)                │
//!             └────────────────────────────────────────────────────────┘
//!                           with: clear `waits`, take, and decide
//! ```
//!
//! Invariant: the bit is set if and only if the cell holds a waker. The update that
//! sets it is also the check (P2): it fails if what the waiter waits for is decided.

use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll, Waker};

use super::{Bits, StateLock};
use crate::backend::{Backend, SharedCell};
use crate::location;

/// A cell for the waker of one waiter, beside the lock whose bits it waits for.
/// Dropping the cell does not drop a waker.
pub(crate) struct WakerCell<B: Backend> {
    waker: SharedCell<MaybeUninit<Waker>, B>,
}

/// The cell holds the waker of the latest poll or none. A waker that panics when it
/// is cloned has replaced nothing yet.
impl<B: Backend> RefUnwindSafe for WakerCell<B> {}
impl<B: Backend> UnwindSafe for WakerCell<B> {}

impl<B: Backend> WakerCell<B> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            waker: SharedCell::new(MaybeUninit::uninit()),
        }
    }

    /// Polls for a bit of `decided`. Returns the bits if one is set, and otherwise
    /// leaves the waker of this poll and sets `waits`. `seen` is the bits that the
    /// caller has just loaded, with nothing decided.
    ///
    /// # Safety
    ///
    /// - No two calls run at the same time.
    /// - `lock` and `waits` are the same in all calls, and `waits` belongs to this
    ///   cell alone: nothing else sets it. A section that clears it, besides
    ///   [`unregister`](Self::unregister), also takes the waker and sets a bit of
    ///   `decided`, for good.
    #[inline]
    pub(crate) unsafe fn wait<S>(
        &self,
        lock: &StateLock<S, B>,
        waits: Bits,
        decided: Bits,
        seen: Bits,
        cx: &mut Context<'_>,
    ) -> Poll<Bits> {
        let waiting = seen.contains(waits);
        if waiting
            && self.waker.with(|cell| {
                // SAFETY: `waits` was set, so a waker has been written. Only the waiter
                // writes the cell, which is the caller. A section of another thread may
                // be taking the waker at this moment: a read beside this one, which
                // leaves its two pointers in place. They are only compared.
                unsafe { &*cell.cast::<Waker>() }.will_wake(cx.waker())
            })
        {
            location::note_registered();
            return Poll::Pending;
        }
        // The new waker is cloned first. If that panics, the old waker is still
        // registered.
        let waker = cx.waker().clone();
        // The displaced waker is dropped on return, outside of any section.
        let _displaced = if waiting {
            match lock.update(|bits| (!bits.intersects(decided)).then(|| bits.without(waits))) {
                // SAFETY: `waits` was set and not yet cleared, since nothing is
                // decided. This call has cleared it.
                Ok(_) => Some(unsafe { self.take() }),
                Err(bits) => return Poll::Ready(bits),
            }
        } else {
            None
        };
        self.waker.with_mut(|cell| {
            // SAFETY: `waits` is clear, so the cell belongs to the waiter.
            unsafe { cell.write(MaybeUninit::new(waker)) }
        });
        match lock.update(|bits| (!bits.intersects(decided)).then(|| bits | waits)) {
            Ok(_) => {
                location::note_registered();
                Poll::Pending
            }
            Err(bits) => {
                // SAFETY: the waker was written above, and `waits` is still clear.
                drop_unneeded(unsafe { self.take() });
                Poll::Ready(bits)
            }
        }
    }

    /// Gives up the wait, and takes the waker back unless a section has taken it.
    ///
    /// # Safety
    ///
    /// The contract is that of [`wait`](Self::wait), and this counts as a call of it.
    pub(crate) unsafe fn unregister<S>(
        &self,
        lock: &StateLock<S, B>,
        waits: Bits,
    ) -> Option<Waker> {
        let taken = lock.update(|bits| bits.contains(waits).then(|| bits.without(waits)));
        // SAFETY: `waits` was set, so a waker had been written, and this call has cleared it.
        taken.is_ok().then(|| unsafe { self.take() })
    }

    /// Takes the waker out.
    ///
    /// # Safety
    ///
    /// A waker has been put and not taken, and the cell belongs to the caller. It
    /// does in a section that clears `waits`, for the waiter while `waits` is clear,
    /// and for a sole user.
    #[inline]
    pub(crate) unsafe fn take(&self) -> Waker {
        // The read leaves the cell as it is, since the waiter may be comparing.
        self.waker.with(|cell| {
            // SAFETY: a waker has been put, and the cell belongs to the caller.
            unsafe { cell.cast::<Waker>().read() }
        })
    }
}

/// Drops a waker that turned out not to be needed.
#[cold]
fn drop_unneeded(waker: Waker) {
    drop(waker);
}
