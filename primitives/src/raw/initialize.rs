//! The permit to initialize a once slot: what `OnceCell`, `Lazy` and the entries of an
//! `OnceMap` share.
//!
//! ```text
//!             the permit is taken, by one compare-exchange
//!   ┌───────┐ ──────────────────────────────────────────▶ ┌──────┐ ──┐ given up while
//!   │ empty │                                             │ busy │   │ callers are queued:
//!   └───────┘ ◀────────────────────────────────────────── └──────┘ ◀─┘ passed on
//!       │      given up while no caller is queued            │
//!       │ set                                                │ the initializer completes
//!       └────────────────▶ initialized ◀─────────────────────┘
//! ```
//!
//! The task that has the *permit* runs the initializer. If the task gives up, the permit
//! passes to the first caller that is queued for it. A caller that is dropped with a
//! permit that it has not observed passes it on in the same way.
//!
//! Invariant: there is at most one permit, and callers are queued for it only while it is
//! taken.

use alloc::boxed::Box;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::{INITIALIZED, OnceSlot, Queues};
use crate::backend::Backend;
use crate::protocol::CallerLocation;
use crate::protocol::{Bits, Section, Waiter, Waiters, WakeList};

/// The permit is taken.
pub(crate) const INITIALIZING: Bits = Bits::new(1 << 1);

/// The queues of a slot, and what stands beside them under the same lock.
pub(crate) struct Queued<X> {
    /// Waiters for the value alone.
    pub(crate) waits: Waiters<()>,
    /// Waiters for the permit or the value.
    pub(crate) initializers: Waiters<()>,
    pub(crate) beside: X,
}

impl<X> Queued<X> {
    pub(crate) const fn new(beside: X) -> Self {
        Self {
            waits: Waiters::new(),
            initializers: Waiters::new(),
            beside,
        }
    }

    /// Returns how many wait for the value or the permit.
    pub(crate) const fn waiting(&self) -> usize {
        self.waits.queued() + self.initializers.queued()
    }

    /// Returns how many have been notified and not been polled since.
    pub(crate) const fn granted(&self) -> usize {
        self.waits.notified() + self.initializers.notified()
    }

    /// Returns where each wait began.
    #[cfg(feature = "locations")]
    pub(crate) fn locations(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        let mut all = self.initializers.locations();
        all.extend(self.waits.locations());
        all
    }
}

impl<X> Queues for Queued<X> {
    fn waits(&mut self) -> &mut Waiters<()> {
        &mut self.waits
    }

    fn wake_all(&mut self, wakes: &mut WakeList) -> bool {
        let more = self.waits.wake_all(wakes);
        self.initializers.wake_all(wakes) || more
    }
}

/// What has a slot that is initialized by the caller that has the permit.
pub(crate) trait Initialize {
    type Value;
    /// What stands beside the queues.
    type Beside;
    type Backend: Backend;

    fn slot(&self) -> &OnceSlot<Self::Value, Queued<Self::Beside>, Self::Backend>;
}

/// Passes the permit to the next waiter in the queue, or marks it as free if there is
/// none.
fn pass_permit<X>(section: Section<'_, Queued<X>>) {
    let initializers = &mut section.state.initializers;
    match initializers.first() {
        Some(next) => *initializers.notify_one(&next, section.wakes) = (),
        None => section.bits.remove(INITIALIZING),
    }
}

/// What a caller finds.
pub(crate) enum Found<P: Deref<Target: Initialize>> {
    /// The value is there.
    Value,
    Permit(Permit<P>),
}

/// Waits for the value, or for the permit to initialize it.
pub(crate) struct AcquirePermit<P: Deref<Target: Initialize>> {
    holder: P,
    location: CallerLocation,
    /// The place in the queue, while the future has one.
    waiter: Option<Waiter>,
}

impl<P: Deref<Target: Initialize>> AcquirePermit<P> {
    pub(crate) const fn new(holder: P, location: CallerLocation) -> Self {
        Self {
            holder,
            location,
            waiter: None,
        }
    }

    pub(crate) const fn holder(&self) -> &P {
        &self.holder
    }

    pub(crate) const fn is_queued(&self) -> bool {
        self.waiter.is_some()
    }
}

impl<P: Deref<Target: Initialize> + Clone + Unpin> Future for AcquirePermit<P> {
    type Output = Found<P>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Found<P>> {
        let this = self.get_mut();
        let (holder, location, waiter) = (&this.holder, this.location, &mut this.waiter);
        let slot = holder.slot();
        let permit = || Permit {
            holder: Some(holder.clone()),
        };
        if waiter.is_none() {
            let free = |bits: Bits| {
                (!bits.intersects(INITIALIZED | INITIALIZING)).then(|| bits | INITIALIZING)
            };
            match slot.update(free) {
                Ok(_) => return Poll::Ready(Found::Permit(permit())),
                Err(bits) if bits.contains(INITIALIZED) => return Poll::Ready(Found::Value),
                Err(_) => {}
            }
        }
        let fresh = waiter.is_none();
        let found = slot.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            let initializers = &mut state.initializers;
            // A notified waiter has the permit, unless all waiters were notified
            // because of the value.
            let notified = waiter.take_if(|waiter| initializers.is_notified(waiter));
            let notified = notified.map(|waiter| initializers.remove(waiter, wakes));
            if bits.contains(INITIALIZED) {
                return Ok(None);
            }
            if notified.is_some() || (waiter.is_none() && !bits.contains(INITIALIZING)) {
                bits.insert(INITIALIZING);
                // From here on the permit passes itself on if the caller's waker
                // panics before this poll returns.
                return Ok(Some(permit()));
            }
            let waiter = waiter.get_or_insert_with(|| initializers.push(location, ()));
            Err(registration.register(initializers.waker(waiter)))
        });
        found.map(|found| match found {
            Ok(_) => Found::Value,
            Err(permit) => Found::Permit(permit),
        })
    }
}

/// Gives up the place in the queue, and passes on a permit that was granted.
impl<P: Deref<Target: Initialize>> Drop for AcquirePermit<P> {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        self.holder.slot().with(|Section { bits, state, wakes }| {
            let granted = !bits.contains(INITIALIZED) && state.initializers.is_notified(&waiter);
            state.initializers.remove(waiter, wakes);
            if granted {
                pass_permit(Section { bits, state, wakes });
            }
        });
    }
}

/// The permit to initialize the slot. It ends when the value is set, or passes on.
pub(crate) struct Permit<P: Deref<Target: Initialize>> {
    /// `None` once the value is set.
    holder: Option<P>,
}

impl<P: Deref<Target: Initialize>> Permit<P> {
    pub(crate) fn holder(&self) -> &P {
        self.holder.as_ref().expect("a permit has its holder")
    }

    /// Sets the value, and returns what has it. The permit has ended then.
    pub(crate) fn set(&mut self, value: <P::Target as Initialize>::Value) -> P {
        // From here on nothing is passed on, also if a waker panics.
        let holder = self.holder.take().expect("a permit has its holder");
        let set = holder.slot().set(value, |_| Some(Bits::EMPTY)).is_ok();
        assert!(
            set,
            "the future that has the permit is the only one to make the value"
        );
        holder
    }
}

impl<P: Deref<Target: Initialize>> Drop for Permit<P> {
    fn drop(&mut self) {
        if let Some(holder) = &self.holder {
            holder.slot().with(pass_permit);
        }
    }
}

/// The wait for the permit, and the initializer of the caller.
pub(crate) struct Init<P: Deref<Target: Initialize>, F, Fut> {
    pub(crate) stage: Stage<P, F, Fut>,
}

pub(crate) enum Stage<P: Deref<Target: Initialize>, F, Fut> {
    Waits(AcquirePermit<P>, F),
    /// The future is dropped before the permit.
    Makes(Pin<Box<Fut>>, Permit<P>),
    Done,
}

/// What the wait or the initializer ended with: the value is there, or the output of the
/// initializer is, and the permit with which to set it.
pub(crate) enum Made<P: Deref<Target: Initialize>, O> {
    Value(P),
    Output(O, Permit<P>),
}

impl<P, F, Fut> Init<P, F, Fut>
where
    P: Deref<Target: Initialize> + Clone + Unpin,
    F: FnOnce() -> Fut,
    Fut: Future,
{
    pub(crate) const fn new(holder: P, f: F, location: CallerLocation) -> Self {
        Self {
            stage: Stage::Waits(AcquirePermit::new(holder, location), f),
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Made<P, Fut::Output>> {
        // A waker that panics leaves the wait as it is.
        let found = match &mut self.stage {
            Stage::Waits(wait, _) => match Pin::new(wait).poll(cx) {
                Poll::Ready(found) => Some(found),
                Poll::Pending => return Poll::Pending,
            },
            _ => None,
        };
        // What follows runs the initializer. If it panics, the permit passes on at
        // once, and no future is left to poll.
        let (mut future, permit) = match (core::mem::replace(&mut self.stage, Stage::Done), found) {
            (Stage::Waits(wait, f), Some(Found::Value)) => {
                // As below, it is dropped before the return.
                drop(f);
                return Poll::Ready(Made::Value(wait.holder().clone()));
            }
            (Stage::Waits(_, f), Some(Found::Permit(permit))) => {
                let future = Box::pin(f());
                (future, permit)
            }
            (Stage::Makes(future, permit), _) => (future, permit),
            _ => panic!("{name} polled after it was ready"),
        };
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => {
                // The future is dropped here and not at the return. If its destructor
                // panicked there, the value being returned would leak.
                drop(future);
                Poll::Ready(Made::Output(output, permit))
            }
            Poll::Pending => {
                self.stage = Stage::Makes(future, permit);
                Poll::Pending
            }
        }
    }
}

/// The initializer is never pinned here. It is called, and the future that it returns
/// is pinned on the heap.
impl<P: Deref<Target: Initialize>, F, Fut> Unpin for Init<P, F, Fut> {}

impl<P: Deref<Target: Initialize>, F, Fut> core::fmt::Debug for Init<P, F, Fut> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match &self.stage {
            Stage::Waits(wait, _) if !wait.is_queued() => "Created",
            Stage::Waits(..) => "Queued",
            Stage::Makes(..) => "Makes",
            Stage::Done => "Done",
        })
    }
}
