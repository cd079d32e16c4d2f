//! A gate: a count, and the waiters for it to become zero. It is the core of `Event`,
//! `Latch` and `WaitGroup`.
//!
//! ```text
//!   bits = count ‖ QUEUED
//!
//!              subtract: the count becomes 0, all queued waiters are notified
//!   ┌────────┐ ─────────────────────────────────────────────────────────────▶ ┌──────┐
//!   │ closed │                                                                │ open │
//!   └────────┘ ◀───────────────────────────────────────────────────────────── └──────┘
//!              add: the count is above 0; notified waiters stay notified
//! ```
//!
//! Invariants:
//!
//! 1. Waiters are queued only while the count is above zero, and `QUEUED` is set if and
//!    only if a waiter is queued.
//! 2. A waiter that has been notified passes, also if the gate has closed since.
//!
//! A section that opens the gate and finds waiters notifies all of them at once, so a
//! waiter that comes during their wakes is not among them. Every other change of the
//! count is an update of the bits.

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Section, StateLock, Waiter, Waiters};

const QUEUED: Bits = Bits::new(1);
const ONE: usize = 1 << 1;

/// A count, and the waiters for it to become zero.
///
/// # Examples
///
/// ```
/// use reveille::backend::Native;
/// use reveille::raw::{Gate, GateWait};
/// use std::sync::Arc;
///
/// let gate = Arc::new(Gate::<Native>::new_in(1));
/// let waits = GateWait::new(gate.clone());
/// gate.subtract(1);
/// reveille_executor::block_on(waits);
/// assert!(gate.is_open());
/// ```
pub struct Gate<B: Backend = DefaultBackend> {
    lock: StateLock<Waiters<()>, B>,
}

/// What has a gate that can be waited for.
pub trait Gated {
    /// The backend of the gate.
    type Backend: Backend;

    /// Returns the gate.
    fn gate(&self) -> &Gate<Self::Backend>;
}

impl<B: Backend> Gated for Gate<B> {
    type Backend = B;

    #[inline]
    fn gate(&self) -> &Self {
        self
    }
}

#[inline]
const fn count(bits: Bits) -> usize {
    bits.get() / ONE
}

/// Returns the same bits with another count.
#[inline]
const fn counting(bits: Bits, count: usize) -> Bits {
    Bits::fitting(count * ONE + bits.get() % ONE)
}

#[track_caller]
const fn start(count: usize) -> Bits {
    assert!(
        count <= MAX_COUNT,
        "the count is above the largest that fits, a quarter of usize::MAX"
    );
    Bits::fitting(count * ONE)
}

/// The largest count.
pub(crate) const MAX_COUNT: usize = Bits::MAX / ONE;

impl Gate {
    const_unless_loom! {
        /// Creates a gate with a count, in a constant.
        ///
        /// # Panics
        ///
        /// Panics if `count` is above [`MAX_COUNT`](Self::MAX_COUNT).
        #[track_caller]
        #[must_use]
        pub const fn const_new(count: usize) -> Self {
            Self {
                lock: StateLock::<_, DefaultBackend>::const_new(start(count), Waiters::new()),
            }
        }
    }
}

impl<B: Backend> Gate<B> {
    /// The largest count.
    pub const MAX_COUNT: usize = MAX_COUNT;

    /// Creates a gate with a count, over any backend.
    ///
    /// # Panics
    ///
    /// Panics if `count` is above [`MAX_COUNT`](Self::MAX_COUNT).
    #[track_caller]
    #[must_use]
    pub fn new_in(count: usize) -> Self {
        Self {
            lock: StateLock::new_in(start(count), Waiters::new()),
        }
    }

    /// Returns the count.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        count(self.lock.load())
    }

    /// Returns `true` if the count is zero.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.count() == 0
    }

    /// Adds `n` to the count, and returns `false` without a change if the sum is above
    /// [`MAX_COUNT`](Self::MAX_COUNT).
    #[inline]
    #[must_use]
    pub fn add(&self, n: usize) -> bool {
        let added = self.lock.update(|bits| {
            let room = MAX_COUNT - count(bits);
            (n <= room).then(|| counting(bits, count(bits) + n))
        });
        added.is_ok()
    }

    /// Sets the count to 1 if it is zero.
    #[inline]
    pub fn close(&self) {
        // If the gate is closed already, there is nothing to publish: no waiter passes
        // because of this call.
        let _ = self
            .lock
            .update(|bits| (count(bits) == 0).then(|| counting(bits, 1)));
    }

    /// Subtracts `n` from the count, at most as much as there is. If the count becomes
    /// zero, all queued waiters are notified.
    #[inline]
    pub fn subtract(&self, n: usize) {
        // Also if the count is zero already: a waiter that passes later must see what
        // was written before this call.
        let unqueued = self.lock.update(|bits| {
            let left = count(bits).saturating_sub(n);
            (left > 0 || !bits.contains(QUEUED)).then(|| counting(bits, left))
        });
        if unqueued.is_err() {
            self.open(n);
        }
    }

    /// Subtracts `n`, for a gate that has waiters.
    #[cold]
    fn open(&self, n: usize) {
        let mut opened = None;
        self.lock.rounds(|Section { bits, state, wakes }| {
            let generation = *opened.get_or_insert_with(|| {
                let left = count(*bits).saturating_sub(n);
                *bits = counting(*bits, left);
                (left == 0).then(|| {
                    bits.remove(QUEUED);
                    state.notify_all()
                })
            });
            generation.is_some_and(|generation| state.wake_notified(generation, wakes))
        });
    }

    /// Returns the number of waiters that are queued.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock.with(|section| section.state.queued())
    }

    /// Returns the number of waiters that have been notified and not been polled since.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.lock.with(|section| section.state.notified())
    }

    /// Returns where in the source each wait began, the oldest first. Notified waiters
    /// are included.
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.with(|section| section.state.locations())
    }

    /// Adds the waiters to the debug output of the primitive that has this gate.
    pub(crate) fn describe(&self, f: &mut fmt::DebugStruct<'_, '_>) -> fmt::Result {
        f.field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }

    /// Polls for the gate to be open. If it is closed, the wait that began at `location`
    /// queues, and its place is stored in `waiter`.
    #[inline]
    fn poll(
        &self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let fresh = waiter.is_none();
        if fresh && self.is_open() {
            return Poll::Ready(());
        }
        self.lock.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            if let Some(waiter) = waiter.take_if(|waiter| state.is_notified(waiter)) {
                state.remove(waiter, wakes);
                return Ok(());
            }
            if waiter.is_none() && count(*bits) == 0 {
                return Ok(());
            }
            let waiter = waiter.get_or_insert_with(|| state.push(location, ()));
            bits.insert(QUEUED);
            Err(registration.register(state.waker(waiter)))
        })
    }

    /// Gives up a place in the queue.
    fn cancel(&self, waiter: &mut Option<Waiter>) {
        if let Some(waiter) = waiter.take() {
            self.lock.with(|Section { bits, state, wakes }| {
                state.remove(waiter, wakes);
                if state.is_empty() {
                    bits.remove(QUEUED);
                }
            });
        }
    }
}

/// Writes what the bits of a gate mean.
///
/// # Errors
///
/// Returns the error of the writer.
pub fn describe_gate(bits: Bits, f: &mut dyn fmt::Write) -> fmt::Result {
    write!(f, "count {}", count(bits))?;
    if bits.contains(QUEUED) {
        f.write_str(", queued")?;
    }
    Ok(())
}

impl<B: Backend> fmt::Debug for Gate<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Gate");
        f.field("count", &self.count());
        self.describe(&mut f)
    }
}

/// The future that waits for a [`Gate`] to be open, with a reference to what has the
/// gate, or an `Arc` of it.
///
/// It takes its place in the queue at its first poll, if the gate is closed then. If the
/// gate opens, the future completes at its next poll, also if the gate has closed again
/// since. If it is polled again after it has completed, it waits again.
#[must_use = "futures do nothing unless polled"]
pub struct GateWait<P: Deref<Target: Gated>> {
    gated: P,
    location: CallerLocation,
    /// The place in the queue, while the future has one.
    waiter: Option<Waiter>,
}

impl<P: Deref<Target: Gated>> GateWait<P> {
    /// Creates a wait, which begins at the location of the caller.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub const fn new(gated: P) -> Self {
        Self {
            gated,
            location: CallerLocation::capture(),
            waiter: None,
        }
    }

    /// Returns what has the gate.
    pub(crate) const fn gated(&self) -> &P {
        &self.gated
    }
}

impl<P: Deref<Target: Gated> + Unpin> Future for GateWait<P> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            gated,
            location,
            waiter,
        } = self.get_mut();
        gated.gate().poll(waiter, *location, cx)
    }
}

/// Gives up the place in the queue.
impl<P: Deref<Target: Gated>> Drop for GateWait<P> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.is_some() {
            self.gated.gate().cancel(&mut self.waiter);
        }
    }
}

impl<P: Deref<Target: Gated>> fmt::Debug for GateWait<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateWait")
            .field("queued", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}
