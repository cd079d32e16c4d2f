//! `Driver`: fires timers, and sleeps until the next deadline in between.
//!
//! ```text
//!   Timers::driver ──▶ away ──turn: fires, and leaves its waker──▶ parked
//!                       │ ▲                                          │
//!                       │ └────────── earlier deadline: woken ───────┘
//!                       └──dropped, or dropped while parked──▶ gone
//!
//!   unstarted ──a sleep waits, and there is no driver──▶ a thread drives for good
//! ```
//!
//! A driver is a waiter like any other. One section finds the next deadline and registers
//! its waker (P2). The section that adds an earlier deadline takes that waker out (P3).
//! The state under the lock is in `drivers`, with its invariants.

#![forbid(unsafe_code)]

use alloc::string::String;
use core::fmt;
use core::task::{Context, Poll};

use super::timers::{Source, WAITING};
use super::{Instant, Timers};
use crate::backend::{Backend, DefaultBackend};

/// A driver of [`Timers`]. It fires what is due, and is woken if an earlier deadline is
/// added.
///
/// An executor has one for as long as it lives. Timers that [a thread](Timers::threaded)
/// would drive have no thread meanwhile. If sleeps are left when the last driver is
/// dropped, the thread takes over. Several executors can drive the same timers.
///
/// # Examples
///
/// A loop that only sleeps:
///
/// ```
/// use core::task::{Context, Waker};
/// use core::{future::Future, pin::pin};
/// use reveille::time::{Duration, RealClock, Timers};
///
/// let timers = Timers::new(RealClock);
/// let driver = timers.driver();
/// let mut sleep = pin!(timers.sleep(Duration::from_millis(1)));
/// let mut cx = Context::from_waker(Waker::noop()); // parks by deadline only
/// while sleep.as_mut().poll(&mut cx).is_pending() {
///     if let Some(deadline) = driver.turn(&mut cx) {
///         std::thread::sleep(deadline - timers.now());
///     }
/// }
/// ```
pub struct Driver<B: Backend = DefaultBackend> {
    timers: Timers<B>,
    slot: usize,
}

impl<B: Backend> Timers<B> {
    /// Returns a driver of these timers. See [`Driver`].
    ///
    /// # Examples
    ///
    /// See [`Driver`].
    #[must_use = "a driver that is dropped drives no more"]
    pub fn driver(&self) -> Driver<B> {
        Driver {
            slot: self.inner.lock.with(|section| section.state.drivers.add()),
            timers: self.clone(),
        }
    }

    /// See [`Driver::turn`].
    pub(super) fn turn(&self, slot: usize, cx: &mut Context<'_>) -> Option<Instant> {
        self.fire();
        let mut next = None;
        let registered: Poll<()> = self.inner.lock.poll(cx, false, |section, registration| {
            let state = section.state;
            next = state.wheel.next_pop();
            let until = next.unwrap_or(u64::MAX);
            Err(state.drivers.register(slot, until, registration))
        });
        debug_assert!(registered.is_pending());
        match self.inner.source {
            Source::Clock(_) => self.inner.ticks.instant(next?),
            Source::Virtual(_) => None,
        }
    }

    /// Completes what `Drivers::notify` has left to do. Wakes the drivers that did not
    /// fit into a list, and starts the thread if it has to drive.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses the thread. The next sleep tries again.
    #[cold]
    pub(super) fn notify_drivers(&self, deadline: u64) {
        let mut thread = None;
        self.inner.lock.rounds(|section| {
            let drivers = &mut section.state.drivers;
            thread = thread.take().or_else(|| drivers.add_thread());
            drivers.notify(deadline, section.wakes)
        });
        if let Err(why) = self.start(thread) {
            panic!("the system refused the thread that drives timers: {why}");
        }
    }

    /// Starts the thread, which has a slot already.
    fn start(&self, slot: Option<usize>) -> Result<(), String> {
        let (Some(slot), Some(start)) = (slot, self.inner.start) else {
            return Ok(());
        };
        start(self, slot).inspect_err(|_| {
            self.inner.lock.with(|section| {
                let drivers = &mut section.state.drivers;
                drivers.remove_unstarted(slot, section.wakes);
            });
        })
    }
}

impl<B: Backend> Driver<B> {
    /// Fires what is due, registers the driver's waker, and returns the time until which
    /// the driver may sleep. The waker is called if an earlier deadline is added before
    /// that time.
    ///
    /// Returns `None` if the driver may sleep for ever. Then there is no deadline, or the
    /// clock is virtual and does not move while the driver sleeps (see [`Timers::idle`]).
    ///
    /// Each turn replaces the waker of the one before.
    ///
    /// # Examples
    ///
    /// See the [type](Self).
    pub fn turn(&self, cx: &mut Context<'_>) -> Option<Instant> {
        self.timers.turn(self.slot, cx)
    }

    /// Fires what is due, as [`Timers::fire`] does. If no sleep waits, it does not read
    /// the clock, so an executor can call it often.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::time::{Duration, RealClock, Timers};
    ///
    /// let timers = Timers::new(RealClock);
    /// let driver = timers.driver();
    /// let mut sleep = pin!(timers.sleep(Duration::from_millis(1)));
    /// let mut cx = Context::from_waker(Waker::noop());
    /// while sleep.as_mut().poll(&mut cx).is_pending() {
    ///     driver.fire();
    /// }
    /// ```
    pub fn fire(&self) {
        if self.timers.inner.lock.load().contains(WAITING) {
            self.timers.fire();
        }
    }

    /// Returns the timers that it drives.
    #[must_use]
    pub const fn timers(&self) -> &Timers<B> {
        &self.timers
    }
}

/// If it was the last driver, and sleeps are left, a thread takes over, if these timers
/// have one.
impl<B: Backend> Drop for Driver<B> {
    fn drop(&mut self) {
        let thread = self.timers.inner.lock.with(|section| {
            let state = section.state;
            state.drivers.remove(self.slot, section.wakes);
            let left = state.wheel.next_deadline().is_some();
            left.then(|| state.drivers.add_thread()).flatten()
        });
        // If the thread is refused, the next sleep tries again.
        self.timers.start(thread).ok();
    }
}

impl<B: Backend> fmt::Debug for Driver<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("timers", &self.timers)
            .finish_non_exhaustive()
    }
}
