//! `Sleep`: waits until a deadline.
//!
//! ```text
//!             first poll                     the wheel reaches the deadline, poll
//!   created ─────────────▶ waiting, an entry ────────────────────────────────────▶ elapsed
//!      │  ▲                   │  ▲   │                                               │  ▲
//!      │  └───────────────────┼──┼───┼──────────── reset ────────────────────────────┘  │
//!      │                      └──┘   └── dropped: the entry goes with it                │
//!      └────────── created or polled at the deadline or later ──────────────────────────┘
//! ```
//!
//! Invariant: an entry of the wheel belongs to the sleep that inserted it, from its
//! first pending poll until it is ready or dropped, through any number of resets.
//! The waker stands in the entry, so a reset leaves it where it is.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::wheel::Timer;
use super::{Instant, Timers};
use crate::backend::{Backend, DefaultBackend};
use crate::protocol::WakerSlot;

/// The future of [`sleep`](super::sleep) and [`sleep_until`](super::sleep_until).
///
/// It can be polled again after it was ready, and is ready then; and it can be
/// [reset](Self::reset), and waits again.
///
/// # Panics
///
/// A poll that has to wait, and a [reset](Self::reset) of a sleep that waits, panic
/// where the timers have no [driver](super::Driver) and are to have [a
/// thread](Timers::threaded), as those of the process are, and the system refuses it.
/// The next sleep tries again.
///
/// # Cancel safety
///
/// Dropped, it leaves nothing behind.
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
    Waiting(Timer),
    /// Over, and whoever polls has yet to be told.
    Elapsed,
    /// Over, and told.
    Told,
}

impl<B: Backend> Sleep<B> {
    #[inline]
    pub(super) fn new(timers: Timers<B>, deadline: Instant, now: Instant) -> Self {
        let mut sleep = Self::unread(timers, deadline);
        if deadline <= now {
            sleep.stage = Stage::Elapsed;
        }
        sleep
    }

    /// A sleep whose deadline has not been compared with the time.
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

    /// When it is over.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it is over: whether a poll would be ready.
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
        let deadline = self.timers.tick(self.deadline);
        match self.stage {
            Stage::Elapsed | Stage::Told => true,
            _ => self
                .timers
                .inner
                .lock
                .with(|section| deadline <= section.state.wheel.now()),
        }
    }

    /// Gives it another deadline, before, while or after it waits.
    ///
    /// A task that waits for it goes on waiting, and is woken at the new deadline:
    /// it need not poll again. One that was woken for the old deadline finds, when
    /// it polls, that it has to wait.
    ///
    /// # Differences
    ///
    /// `tokio::time::Sleep` has to be pinned for it; this one is `Unpin`, so a
    /// `Pin<&mut Sleep>` will do, and so will a `&mut Sleep`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut idle = clock.timers().sleep(Duration::from_secs(30));
    /// clock.advance(Duration::from_secs(29));
    /// idle.reset(clock.now() + Duration::from_secs(30));
    /// clock.advance(Duration::from_secs(29));
    /// assert!(!idle.is_elapsed());
    /// ```
    pub fn reset(&mut self, deadline: Instant) {
        self.deadline = deadline;
        let Stage::Waiting(timer) = self.stage else {
            self.stage = Stage::Created;
            return;
        };
        let stage = &mut self.stage;
        let deadline = self.timers.tick(deadline);
        let call = self.timers.inner.lock.with(|section| {
            let state = section.state;
            if deadline <= state.wheel.now() {
                section.wakes.wake(&mut state.wheel[timer]);
                state.wheel.remove(timer);
                *stage = Stage::Elapsed;
                return false;
            }
            state.wheel.reset(timer, deadline);
            state.drivers.tell(deadline, section.wakes)
        });
        if call {
            self.timers.call_drivers(deadline);
        }
    }

    /// As [`reset`](Self::reset), where nobody waits any more: the next poll starts
    /// it again.
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

impl<B: Backend> Future for Sleep<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            timers,
            deadline,
            stage,
        } = self.get_mut();
        let fresh = match stage {
            Stage::Created => true,
            Stage::Waiting(_) => false,
            Stage::Elapsed | Stage::Told => {
                *stage = Stage::Told;
                return Poll::Ready(());
            }
        };
        let deadline = timers.tick(*deadline);
        let mut call = false;
        let poll = timers.inner.lock.poll(cx, fresh, |section, registration| {
            let state = section.state;
            if deadline <= state.wheel.now() {
                if let Stage::Waiting(timer) = core::mem::replace(stage, Stage::Told) {
                    state.remove(timer, section.wakes);
                }
                return Ok(());
            }
            let timer = match *stage {
                Stage::Waiting(timer) => timer,
                _ => {
                    call |= state.drivers.tell(deadline, section.wakes);
                    state.wheel.insert(deadline, WakerSlot::new())
                }
            };
            *stage = Stage::Waiting(timer);
            Err(registration.register(&mut state.wheel[timer]))
        });
        if call {
            timers.call_drivers(deadline);
        }
        poll
    }
}

/// It is terminated when a poll was ready, until it is reset.
#[cfg(feature = "futures-core")]
impl<B: Backend> futures_core::FusedFuture for Sleep<B> {
    fn is_terminated(&self) -> bool {
        matches!(self.stage, Stage::Told)
    }
}

/// Takes the entry out of the wheel.
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
