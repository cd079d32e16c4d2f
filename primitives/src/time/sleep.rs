//! `Sleep`: waits until a deadline.
//!
//! ```text
//!             first poll                     the wheel or the clock is there, poll
//!   created ─────────────▶ waiting, an entry ────────────────────────────────────▶ elapsed
//!      │  ▲                   │  ▲   │                                               │  ▲
//!      │  └───────────────────┼──┼───┼──────────── reset ────────────────────────────┘  │
//!      │                      └──┘   └── dropped: the entry goes with it                │
//!      └────────── created or polled at the deadline or later ──────────────────────────┘
//! ```
//!
//! The wheel's time moves only when timers fire. So it is behind the clock while the
//! thread that fires does something else, for example while it polls this sleep. A poll
//! that would wait therefore reads the clock too. The exception is the first poll of a
//! sleep that was created with at least [`FRESH`] to go.
//!
//! Invariant: an entry of the wheel belongs to the sleep that inserted it, from its first
//! pending poll until it is ready or dropped, through any number of resets. The waker is
//! in the entry, so a reset keeps it.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::timers::WAITING;
use super::wheel::Timer;
use super::{Instant, Timers};
use crate::backend::{Backend, DefaultBackend};
use crate::location;
use crate::protocol::WakerSlot;

/// The first poll of a sleep that is created with this much to go does not read the clock
/// again, because it usually follows at once. Reading the clock is a quarter of the cost
/// of a sleep that is cancelled.
const FRESH: Duration = Duration::from_secs(1);

impl<B: Backend> Timers<B> {
    /// Waits for `duration`. See [`time::sleep`](super::sleep).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let sleep = clock.timers().sleep(Duration::from_secs(1));
    /// clock.advance(Duration::from_secs(1));
    /// assert!(sleep.is_elapsed());
    /// ```
    pub fn sleep(&self, duration: Duration) -> Sleep<B> {
        let now = self.now();
        Sleep::new(self.clone(), now + duration, now)
    }

    /// Waits until `deadline`. See [`time::sleep_until`](super::sleep_until).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let sleep = clock.timers().sleep_until(clock.now());
    /// assert!(sleep.is_elapsed());
    /// ```
    pub fn sleep_until(&self, deadline: Instant) -> Sleep<B> {
        Sleep::new(self.clone(), deadline, self.now())
    }
}

/// The future of [`sleep`](super::sleep) and [`sleep_until`](super::sleep_until).
///
/// It can be polled again after it was ready, and is ready again. If it is
/// [reset](Self::reset), it waits again.
///
/// # Panics
///
/// A poll that has to wait, and a [reset](Self::reset) of a sleep that waits, panic if
/// the system refuses [the thread](Timers::threaded) that has to drive the timers. This
/// concerns timers without a [driver](super::Driver) that drive by a thread, as those of
/// the process do. The next sleep tries again.
///
/// # Cancel safety
///
/// Dropping the future cancels the sleep.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, VirtualClock};
///
/// let clock = VirtualClock::by_hand();
/// let sleep = clock.timers().sleep(Duration::from_secs(1));
/// clock.advance(Duration::from_secs(1));
/// reveille_executor::block_on(sleep);
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep<B: Backend = DefaultBackend> {
    timers: Timers<B>,
    deadline: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Created,
    /// Created with at least [`FRESH`] to go.
    Fresh,
    Waiting(Timer),
    /// The deadline has passed, and no poll has returned that.
    Elapsed,
    /// The deadline has passed, and a poll has returned that.
    Returned,
}

impl<B: Backend> Sleep<B> {
    #[inline]
    pub(super) fn new(timers: Timers<B>, deadline: Instant, now: Instant) -> Self {
        let mut sleep = Self::unread(timers, deadline);
        if deadline <= now {
            sleep.stage = Stage::Elapsed;
        } else if deadline - now >= FRESH {
            sleep.stage = Stage::Fresh;
        }
        sleep
    }

    /// Creates a sleep without comparing its deadline with the time.
    #[inline]
    pub(super) const fn unread(timers: Timers<B>, deadline: Instant) -> Self {
        Self {
            timers,
            deadline,
            stage: Stage::Created,
        }
    }

    pub(super) const fn timers(&self) -> &Timers<B> {
        &self.timers
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    /// Returns the deadline of the sleep.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether the deadline has passed, even if the sleep was never polled. If
    /// so, a poll is ready.
    ///
    /// # Differences
    ///
    /// tokio's is `false` before the first poll, and until the driver has fired the
    /// sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let sleep = clock.timers().sleep(Duration::from_secs(1));
    /// assert!(!sleep.is_elapsed());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(sleep.is_elapsed());
    /// ```
    pub fn is_elapsed(&self) -> bool {
        let timers = &self.timers;
        let deadline = timers.tick(self.deadline);
        matches!(self.stage, Stage::Elapsed | Stage::Returned)
            || timers.has_passed(self.deadline)
            || timers
                .inner
                .lock
                .with(|section| deadline <= section.state.wheel.now())
    }

    /// Resets the sleep to another deadline, whether it waits or not.
    ///
    /// A task that waits for the sleep goes on waiting, and is woken at the new deadline.
    /// It need not poll again. If a task was woken for the old deadline, its next poll
    /// finds that it has to wait.
    ///
    /// A sleep is `Unpin`. With a `&mut Sleep`, write `Pin::new(&mut sleep).reset(…)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut idle = pin!(clock.timers().sleep(Duration::from_secs(30)));
    /// clock.advance(Duration::from_secs(29));
    /// idle.as_mut().reset(clock.now() + Duration::from_secs(30));
    /// clock.advance(Duration::from_secs(29));
    /// assert!(!idle.is_elapsed());
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.get_mut().reset_to(deadline);
    }

    /// Resets the sleep, as [`reset`](Self::reset) does.
    pub(super) fn reset_to(&mut self, deadline: Instant) {
        self.deadline = deadline;
        let Stage::Waiting(timer) = self.stage else {
            self.stage = Stage::Created;
            return;
        };
        let stage = &mut self.stage;
        let deadline = self.timers.tick(deadline);
        let notify = self.timers.inner.lock.with(|section| {
            let state = section.state;
            if deadline <= state.wheel.now() {
                section.wakes.wake(&mut state.wheel[timer]);
                state.wheel.remove(timer);
                *stage = Stage::Elapsed;
                return false;
            }
            state.wheel.reset(timer, deadline);
            state.drivers.notify(deadline, section.wakes)
        });
        if notify {
            self.timers.notify_drivers(deadline);
        }
    }

    /// Removes the sleep from the wheel, and gives it another deadline. The next poll
    /// starts it again.
    pub(super) fn restart(&mut self, deadline: Instant) {
        self.cancel();
        self.deadline = deadline;
        self.stage = Stage::Created;
    }

    /// Discards the waker of the last poll. The deadline stays in the wheel.
    pub(super) fn unregister(&mut self) {
        if let Stage::Waiting(timer) = self.stage {
            self.timers
                .inner
                .lock
                .with(|section| section.wakes.discard(&mut section.state.wheel[timer]));
        }
    }

    fn cancel(&mut self) {
        if let Stage::Waiting(timer) = core::mem::replace(&mut self.stage, Stage::Elapsed) {
            self.timers
                .inner
                .lock
                .with(|section| section.state.remove(timer, section.wakes));
        }
    }
}

impl<B: Backend> Sleep<B> {
    /// Polls the wheel. It is ready if the wheel's time has reached the deadline.
    /// Otherwise it registers the waker.
    #[inline]
    pub(super) fn poll_wheel(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            timers,
            deadline,
            stage,
        } = self;
        let fresh = !matches!(stage, Stage::Waiting(_));
        let deadline = timers.tick(*deadline);
        let mut notify = false;
        let poll = timers.inner.lock.poll(cx, fresh, |section, registration| {
            let state = section.state;
            if deadline <= state.wheel.now() {
                if let Stage::Waiting(timer) = core::mem::replace(stage, Stage::Returned) {
                    state.remove(timer, section.wakes);
                }
                return Ok(());
            }
            let timer = match *stage {
                Stage::Waiting(timer) => timer,
                _ => {
                    section.bits.insert(WAITING);
                    notify |= state.drivers.notify(deadline, section.wakes);
                    state.wheel.insert(deadline, WakerSlot::new())
                }
            };
            *stage = Stage::Waiting(timer);
            Err(registration.register(&mut state.wheel[timer]))
        });
        if notify {
            timers.notify_drivers(deadline);
        }
        if poll.is_pending() {
            location::note(location::Wait::Deadline);
        }
        poll
    }
}

impl<B: Backend> Future for Sleep<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        match this.stage {
            Stage::Fresh => return this.poll_wheel(cx),
            Stage::Created if !this.timers.has_passed(this.deadline) => return this.poll_wheel(cx),
            Stage::Waiting(_) => {
                // The wheel first, because a sleep that was woken is ready there.
                if this.poll_wheel(cx).is_pending() && !this.timers.has_passed(this.deadline) {
                    return Poll::Pending;
                }
                this.cancel();
            }
            Stage::Created | Stage::Elapsed | Stage::Returned => {}
        }
        this.stage = Stage::Returned;
        Poll::Ready(())
    }
}

/// Terminated if a poll was ready, until it is reset.
#[cfg(feature = "futures-core")]
impl<B: Backend> futures_core::FusedFuture for Sleep<B> {
    fn is_terminated(&self) -> bool {
        matches!(self.stage, Stage::Returned)
    }
}

/// Removes the entry from the wheel.
impl<B: Backend> Drop for Sleep<B> {
    #[inline]
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<B: Backend> fmt::Debug for Sleep<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("elapsed", &self.is_elapsed())
            .finish_non_exhaustive()
    }
}
