//! An event that stays set until it is reset.
//!
//! An [`Event`] is *manual reset*: [`set`](Event::set) releases all tasks that wait, and
//! every later wait passes until [`reset`](Event::reset). An event with *auto reset*,
//! which releases one task and is reset by that, is [`Notify`](crate::Notify):
//! `notify_one` sets it, and `notified` waits for it.
//!
//! ```
//! use reveille::Event;
//!
//! static READY: Event = Event::new();
//!
//! let starts = std::thread::spawn(|| READY.set());
//! reveille_executor::block_on(READY.wait());
//! assert!(READY.is_set());
//! # starts.join().unwrap();
//! ```
//!
//! # States
//!
//! An event is a [`Gate`] whose count is 1 while the event is reset, and 0 while it is
//! set. A wait that was queued when the event was set passes, also if the event has been
//! reset before the wait is polled again.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

use crate::backend::{Backend, DefaultBackend};
use crate::raw::{Gate, GateWait, Gated};

/// An event that stays set until it is reset. See the [module](self).
///
/// # Examples
///
/// ```
/// use reveille::Event;
///
/// # reveille_executor::block_on(async {
/// let event = Event::new();
/// event.set();
/// event.wait().await;
/// event.wait().await; // A wait does not reset it.
/// event.reset();
/// assert!(!event.is_set());
/// # });
/// ```
pub struct Event<B: Backend = DefaultBackend> {
    gate: Gate<B>,
}

/// The future of [`Event::wait`].
pub type EventWait<'a, B = DefaultBackend> = GateWait<&'a Event<B>>;

/// The future of [`Event::wait_owned`].
pub type OwnedEventWait<B = DefaultBackend> = GateWait<Arc<Event<B>>>;

impl Event {
    const_unless_loom! {
        /// Creates an event that is not set.
        pub const fn new() -> Self {
            Self { gate: Gate::const_new(1) }
        }
    }
}

impl<B: Backend> Event<B> {
    /// Creates an event that is not set, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Event, backend::Local};
    ///
    /// let event = Event::<Local>::new_in(); // for one thread
    /// event.set();
    /// assert!(event.is_set());
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            gate: Gate::new_in(1),
        }
    }

    /// Sets the event, and releases all tasks that wait for it.
    ///
    /// What was written before the call is visible to each task that it releases, and to
    /// each task that finds the event set later. To set an event that is set already
    /// changes nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::Event;
    ///
    /// let event = Event::new();
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut waits = pin!(event.wait());
    /// assert!(waits.as_mut().poll(&mut cx).is_pending());
    /// event.set();
    /// event.reset();
    /// // The wait was released by `set`, which `reset` does not take back.
    /// assert!(waits.poll(&mut cx).is_ready());
    /// ```
    #[inline]
    pub fn set(&self) {
        self.gate.subtract(1);
    }

    /// Resets the event. Waits that begin from now on wait for the next
    /// [`set`](Self::set).
    ///
    /// Waits that were released by an earlier `set` stay released.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    ///
    /// let event = Event::new();
    /// event.set();
    /// event.reset();
    /// assert!(!event.is_set());
    /// ```
    #[inline]
    pub fn reset(&self) {
        self.gate.close();
    }

    /// Returns `true` if the event is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    ///
    /// assert!(!Event::new().is_set());
    /// ```
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.gate.is_open()
    }

    /// Waits until the event is set. If it is set already, the future completes at its
    /// first poll, by one load.
    ///
    /// The future takes its place at its first poll. A `set` that is followed by a
    /// `reset` before that poll does not release it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    ///
    /// let event = Event::new();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| event.set());
    ///     reveille_executor::block_on(event.wait());
    /// });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub const fn wait(&self) -> EventWait<'_, B> {
        GateWait::new(self)
    }

    /// Waits as [`wait`](Self::wait) does. The future owns the event, through the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    /// use std::sync::Arc;
    ///
    /// let event = Arc::new(Event::new());
    /// let waits = event.clone().wait_owned();
    /// event.set();
    /// reveille_executor::block_on(waits);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn wait_owned(self: Arc<Self>) -> OwnedEventWait<B> {
        GateWait::new(self)
    }

    /// Returns the number of tasks that wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    ///
    /// assert_eq!(Event::new().waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// Returns the number of waits that have been released and not been polled since. A
    /// number that stays above zero shows that a future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    ///
    /// assert_eq!(Event::new().granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.gate.granted()
    }

    /// Returns where in the source each wait began, the oldest first. Waits that have
    /// been released and not been polled since are included.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Event;
    ///
    /// assert!(Event::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.gate.waiters()
    }
}

impl<B: Backend> Gated for Event<B> {
    type Backend = B;

    #[inline]
    fn gate(&self) -> &Gate<B> {
        &self.gate
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new_in()
    }
}

impl<B: Backend> fmt::Debug for Event<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Event");
        f.field("set", &self.is_set());
        self.gate.describe(&mut f)
    }
}
