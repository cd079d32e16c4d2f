//! `Driver`: whoever fires timers, and sleeps until the next deadline in between.
//!
//! ```text
//!   Timers::driver ──▶ away ──turn: fires, and leaves its waker──▶ set
//!                       │ ▲                                         │
//!                       │ └────────── nearer deadline: woken ───────┘
//!                       └──dropped, or dropped while set──▶ gone
//!
//!   unstarted ──a sleep waits, and there is no driver──▶ a thread drives for good
//! ```
//!
//! A driver is a waiter like any other: in one section it looks for the next deadline
//! and leaves its waker (P2), and in the section that brings a nearer one that waker
//! is taken out (P3).
//!
//! Invariants:
//!
//! 1. For each driver that is set, no deadline comes before its `until`, at which it
//!    wakes by itself. So several can share timers: each knows of every deadline.
//! 2. Timers that can have a thread have it where a sleep waits and there is no
//!    driver: so no sleep is left behind by an executor that has ended.

#![forbid(unsafe_code)]

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::task::{Context, Poll};

use super::timers::Source;
use super::{Instant, Timers};
use crate::backend::{Backend, DefaultBackend};
use crate::protocol::{WakeList, WakerSlot};

/// A driver of [`Timers`]: fires what is due, and is woken where a nearer deadline
/// comes up.
///
/// An executor has one for as long as it lives. Timers of which [a
/// thread](Timers::threaded) would be the driver have none meanwhile; where sleeps are
/// left when the last driver is dropped, the thread takes over. Several executors can
/// drive the same timers.
///
/// # Examples
///
/// A loop that does nothing but sleep:
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
    seat: usize,
}

/// The drivers of timers, under their lock.
pub(super) struct Drivers {
    /// A place for each, empty where one has gone.
    seats: Vec<Option<Seat>>,
    /// The latest `until` of those that are set, from which on nobody has to be told
    /// of a deadline. Zero where there is nobody to tell, and the end of time where
    /// a thread is to be started.
    until: u64,
    /// Whether a thread drives where nobody else does, and has not been started.
    unstarted: bool,
}

struct Seat {
    waker: WakerSlot,
    /// The tick at which the driver wakes by itself, where its waker is registered.
    until: u64,
}

impl Drivers {
    pub(super) fn new(unstarted: bool) -> Self {
        let mut drivers = Self {
            seats: Vec::new(),
            until: 0,
            unstarted,
        };
        drivers.settle();
        drivers
    }

    fn settle(&mut self) {
        let set = |seat: &&Seat| seat.waker.is_registered();
        let seats = self.seats.iter().flatten();
        self.until = match self.unstarted && seats.clone().next().is_none() {
            true => u64::MAX,
            false => seats.filter(set).map(|seat| seat.until).max().unwrap_or(0),
        };
    }

    fn sit(&mut self) -> usize {
        let seat = Seat {
            waker: WakerSlot::new(),
            until: 0,
        };
        let place = match self.seats.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.seats.push(None);
                self.seats.len() - 1
            }
        };
        self.seats[place] = Some(seat);
        self.settle();
        place
    }

    fn leave(&mut self, seat: usize, wakes: &mut WakeList) {
        if let Some(seat) = &mut self.seats[seat] {
            wakes.discard(&mut seat.waker);
        }
        self.seats[seat] = None;
        self.settle();
    }

    /// Sees to it that whoever drives knows of a deadline. Answers whether there is
    /// more to do, which is for [`Timers::call_drivers`].
    #[must_use]
    #[inline]
    pub(super) fn tell(&mut self, deadline: u64, wakes: &mut WakeList) -> bool {
        deadline < self.until && self.tell_nearer(deadline, wakes)
    }

    fn tell_nearer(&mut self, deadline: u64, wakes: &mut WakeList) -> bool {
        let mut more = false;
        let mut drivers = 0;
        for seat in self.seats.iter_mut().flatten() {
            drivers += 1;
            if deadline < seat.until {
                match wakes.is_full() {
                    true => more |= seat.waker.is_registered(),
                    false => wakes.wake(&mut seat.waker),
                }
            }
        }
        self.settle();
        more || self.unstarted && drivers == 0
    }

    /// The seat of the thread, where it is to be started now.
    fn seat_of_thread(&mut self) -> Option<usize> {
        let starts = self.unstarted && self.seats.iter().all(Option::is_none);
        self.unstarted &= !starts;
        starts.then(|| self.sit())
    }

    /// Takes the wakers of all out, at the end.
    pub(super) fn wake_all(&mut self, wakes: &mut WakeList) -> bool {
        for seat in self.seats.iter_mut().flatten() {
            if wakes.is_full() {
                return true;
            }
            wakes.wake(&mut seat.waker);
        }
        false
    }
}

impl<B: Backend> Timers<B> {
    /// A driver of these timers: see [`Driver`].
    ///
    /// # Examples
    ///
    /// See [`Driver`].
    #[must_use = "dropped, it drives no more"]
    pub fn driver(&self) -> Driver<B> {
        Driver {
            seat: self.inner.lock.with(|section| section.state.drivers.sit()),
            timers: self.clone(),
        }
    }

    /// See [`Driver::turn`].
    pub(super) fn turn(&self, seat: usize, cx: &mut Context<'_>) -> Option<Instant> {
        self.fire();
        let mut next = None;
        let registered: Poll<()> = self.inner.lock.poll(cx, false, |section, registration| {
            let state = section.state;
            next = state.wheel.next_pop();
            let seat = &mut state.drivers.seats[seat];
            let seat = seat
                .as_mut()
                .expect("a driver has its seat until it is dropped");
            seat.until = next.unwrap_or(u64::MAX);
            let registered = registration.register(&mut seat.waker);
            state.drivers.settle();
            Err(registered)
        });
        debug_assert!(registered.is_pending());
        match self.inner.source {
            Source::Clock(_) => self.inner.ticks.instant(next?),
            Source::Virtual(_) => None,
        }
    }

    /// What [`Drivers::tell`] has left to do: to wake more than fit into a list, and
    /// to start the thread, where there is to be one.
    ///
    /// # Panics
    ///
    /// Panics where the system refuses the thread; the next sleep tries again.
    #[cold]
    pub(super) fn call_drivers(&self, deadline: u64) {
        let mut thread = None;
        self.inner.lock.rounds(|section| {
            let drivers = &mut section.state.drivers;
            thread = thread.take().or_else(|| drivers.seat_of_thread());
            drivers.tell(deadline, section.wakes)
        });
        if let Err(why) = self.start(thread) {
            panic!("the system refused the thread that drives timers: {why}");
        }
    }

    /// Starts the thread, which has a seat already.
    fn start(&self, seat: Option<usize>) -> Result<(), String> {
        let (Some(seat), Some(start)) = (seat, self.inner.start) else {
            return Ok(());
        };
        start(self, seat).inspect_err(|_| {
            self.inner.lock.with(|section| {
                let drivers = &mut section.state.drivers;
                drivers.unstarted = true;
                drivers.leave(seat, section.wakes);
            });
        })
    }
}

impl<B: Backend> Driver<B> {
    /// Fires what is due, leaves the driver's waker, and answers until when the driver
    /// may sleep. The waker is called where a nearer deadline comes up before that.
    ///
    /// `None` is for ever: there is no deadline, or the clock is virtual and nothing
    /// comes of waiting (see [`Timers::idle`]).
    ///
    /// Of a driver's wakers it is the latest that counts.
    ///
    /// # Examples
    ///
    /// See the [type](Self).
    pub fn turn(&self, cx: &mut Context<'_>) -> Option<Instant> {
        self.timers.turn(self.seat, cx)
    }

    /// What it drives.
    #[must_use]
    pub const fn timers(&self) -> &Timers<B> {
        &self.timers
    }
}

/// Where it was the last, and sleeps are left, a thread drives from now on, if these
/// are timers that have one.
impl<B: Backend> Drop for Driver<B> {
    fn drop(&mut self) {
        let thread = self.timers.inner.lock.with(|section| {
            let state = section.state;
            state.drivers.leave(self.seat, section.wakes);
            let left = state.wheel.next_deadline().is_some();
            left.then(|| state.drivers.seat_of_thread()).flatten()
        });
        // Refused, it is asked for again by the next sleep.
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
