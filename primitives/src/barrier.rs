//! A place where a number of tasks meet before any of them goes on.
//!
//! ```
//! use reveille::Barrier;
//!
//! let barrier = Barrier::new(3);
//! let leaders = std::thread::scope(|scope| {
//!     let meets = || reveille_executor::block_on(barrier.wait()).is_leader();
//!     let threads = [scope.spawn(meets), scope.spawn(meets), scope.spawn(meets)];
//!     threads.map(|thread| thread.join().unwrap())
//! });
//! assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
//! ```
//!
//! # States
//!
//! An arrival is a place in the queue, and nothing else:
//!
//! ```text
//!            first poll: fewer than n have a place     the n-th arrives
//!   created ────────────────────────────────────▶ here ────────────────▶ let go on
//!      │                                           │ dropped: withdrawn
//!      └── first poll: the n-th; leads, calls      ▼
//!          everybody who is here                 (gone)
//! ```
//!
//! Invariant: fewer than `n` are here, and the bits say how many. A generation
//! is who is called at once: whoever arrives later, even while the last of it
//! are still being woken, belongs to the next.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Generation, StateLock, Waiter, Waiters};

/// Lets tasks go on once so many of them have arrived, again and again.
///
/// # Examples
///
/// ```
/// use reveille::Barrier;
///
/// // Nobody measures before everybody is ready.
/// let ready = Barrier::new(2);
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| {
///             for _round in 0..3 {
///                 reveille_executor::block_on(ready.wait());
///             }
///         });
///     }
/// });
/// ```
///
/// # Differences
///
/// Unlike `tokio::sync::Barrier`, [`wait`](Self::wait) is cancel-safe and a named
/// future, and `new` is `const`. [`new_in`](Self::new_in),
/// [`waiting`](Self::waiting) and [`granted`](Self::granted) are additions.
pub struct Barrier<B: Backend = DefaultBackend> {
    lock: StateLock<Waiters<()>, B>,
    /// How many meet: at least one.
    n: usize,
}

impl Barrier {
    const_unless_loom! {
        /// A barrier at which `n` tasks meet. One for none is one for one, at which
        /// nobody waits.
        pub const fn new(n: usize) -> Self {
            Self {
                lock: StateLock::<_, DefaultBackend>::const_new(Bits::EMPTY, Waiters::new()),
                n: at_least_one(n),
            }
        }
    }
}

const fn at_least_one(n: usize) -> usize {
    if n == 0 { 1 } else { n }
}

impl<B: Backend> Barrier<B> {
    /// A barrier at which `n` tasks meet, over any backend.
    #[must_use]
    pub fn new_in(n: usize) -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, Waiters::new()),
            n: at_least_one(n),
        }
    }

    /// Waits until `n` tasks have arrived, this one among them.
    ///
    /// A task arrives at the first poll of its wait. The last to arrive is the
    /// leader of its generation, and the barrier is empty again: who arrives
    /// then belongs to the next.
    ///
    /// # Cancel safety
    ///
    /// An arrival whose wait is dropped before the others have come is
    /// withdrawn, as if it had not been. One that is dropped after they have,
    /// without having seen it, has taken part: the others went on because of it.
    ///
    /// # Panics
    ///
    /// Polling the wait again after it was ready panics. So does arriving
    /// where 2^32 - 1 wait already.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Poll, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::Barrier;
    ///
    /// let barrier = Barrier::new(2);
    /// let mut cx = Context::from_waker(Waker::noop());
    ///
    /// let mut first = pin!(barrier.wait());
    /// assert!(first.as_mut().poll(&mut cx).is_pending());
    /// let Poll::Ready(second) = pin!(barrier.wait()).poll(&mut cx) else {
    ///     panic!("both have arrived");
    /// };
    /// assert!(second.is_leader());
    /// assert!(first.poll(&mut cx).is_ready());
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait(&self) -> BarrierWait<'_, B> {
        BarrierWait {
            barrier: self,
            location: CallerLocation::capture(),
            stage: Stage::Created,
        }
    }

    /// How many have arrived and wait for the others.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::Barrier;
    ///
    /// let barrier = Barrier::new(2);
    /// let mut waits = pin!(barrier.wait());
    /// assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert_eq!(barrier.waiting(), 1);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock.load().get()
    }

    /// How many have been let go on and not been polled since: a number that
    /// stays above zero tells of futures that nobody polls.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::Barrier;
    ///
    /// let barrier = Barrier::new(2);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut first = pin!(barrier.wait());
    /// assert!(first.as_mut().poll(&mut cx).is_pending());
    /// assert!(pin!(barrier.wait()).poll(&mut cx).is_ready());
    /// assert_eq!(barrier.granted(), 1);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.lock.with(|section| section.state.notified())
    }

    /// Where in the source each who waits began to, the first first; also those
    /// who have been let go on and have not seen it.
    ///
    /// With the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Barrier;
    ///
    /// assert!(Barrier::new(2).waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.with(|section| section.state.locations())
    }
}

/// How a wait came out of its section.
enum Outcome {
    /// As one of those who were called.
    Called,
    /// As the last to arrive, who has called those up to this generation.
    Leads(Generation),
}

#[derive(Debug)]
enum Stage {
    Created,
    Here(Waiter),
    Done,
}

/// The future of [`Barrier::wait`].
///
/// Polling it again after it was ready panics. One that is leaked after its first
/// poll has arrived, and is not withdrawn.
#[must_use = "futures do nothing unless polled"]
pub struct BarrierWait<'a, B: Backend = DefaultBackend> {
    barrier: &'a Barrier<B>,
    location: CallerLocation,
    stage: Stage,
}

impl<B: Backend> Future for BarrierWait<'_, B> {
    type Output = BarrierWaitResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let Self {
            barrier,
            location,
            stage,
        } = self.get_mut();
        assert!(
            !matches!(stage, Stage::Done),
            "Barrier::wait polled after it was ready"
        );
        // No waker is cloned before it is clear that this is not the last to
        // arrive: dropping the clone is foreign code, and were it to panic, the
        // others would have been called and not woken.
        let outcome = barrier.lock.poll(cx, false, |section, registration| {
            let waiters = section.state;
            let waiter = match core::mem::replace(stage, Stage::Done) {
                Stage::Here(waiter) if waiters.is_notified(&waiter) => {
                    waiters.remove(waiter, section.wakes);
                    return Ok(Outcome::Called);
                }
                Stage::Created if waiters.queued() + 1 == barrier.n => {
                    *section.bits = Bits::EMPTY;
                    return Ok(Outcome::Leads(waiters.notify_all()));
                }
                Stage::Here(waiter) => waiter,
                _ => waiters.push(*location, ()),
            };
            *section.bits = Bits::new(waiters.queued());
            let registered = registration.register(waiters.waker(&waiter));
            *stage = Stage::Here(waiter);
            Err(registered)
        });
        outcome.map(|outcome| match outcome {
            Outcome::Called => BarrierWaitResult { leader: false },
            Outcome::Leads(generation) => {
                barrier
                    .lock
                    .rounds(|section| section.state.wake_notified(generation, section.wakes));
                BarrierWaitResult { leader: true }
            }
        })
    }
}

/// Withdraws the arrival, unless the others have been let go on.
impl<B: Backend> Drop for BarrierWait<'_, B> {
    fn drop(&mut self) {
        if let Stage::Here(waiter) = core::mem::replace(&mut self.stage, Stage::Done) {
            self.barrier.lock.with(|section| {
                section.state.remove(waiter, section.wakes);
                *section.bits = Bits::new(section.state.queued());
            });
        }
    }
}

impl<B: Backend> fmt::Debug for Barrier<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Barrier");
        f.field("n", &self.n)
            .field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<B: Backend> fmt::Debug for BarrierWait<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWait")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

/// What [`Barrier::wait`] answers: whether it was the last to arrive.
#[derive(Debug, Clone)]
pub struct BarrierWaitResult {
    leader: bool,
}

impl BarrierWaitResult {
    /// Whether this is the one task of its generation that leads it: the last
    /// to arrive.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Barrier;
    ///
    /// # reveille_executor::block_on(async {
    /// assert!(Barrier::new(1).wait().await.is_leader());
    /// # });
    /// ```
    pub const fn is_leader(&self) -> bool {
        self.leader
    }
}
