//! A barrier at which `n` tasks meet before any of them goes on.
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
//!            first poll, fewer than n tasks here    the n-th arrives
//!   created ─────────────────────────────────▶ here ────────────────▶ notified
//!      │                                        │ dropped: withdrawn
//!      └── first poll, the n-th: leads,         ▼
//!          notifies all tasks here           (gone)
//! ```
//!
//! Invariant: fewer than `n` tasks wait, and the bits hold their number. A generation
//! is the tasks that the last arrival notifies together. A task that arrives later
//! belongs to the next generation, even while the last tasks of this one are still
//! being woken.

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

/// Lets `n` tasks wait for one another, again and again.
///
/// # Examples
///
/// ```
/// use reveille::Barrier;
///
/// // No thread begins a round before both are ready.
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
/// Differences from `tokio::sync::Barrier`: [`wait`](Self::wait) is cancel-safe and a
/// named future; `new` is `const`; [`new_in`](Self::new_in),
/// [`waiting`](Self::waiting) and [`granted`](Self::granted) are additions.
pub struct Barrier<B: Backend = DefaultBackend> {
    lock: StateLock<Waiters<()>, B>,
    /// The number of tasks that meet, at least one.
    n: usize,
}

impl Barrier {
    const_unless_loom! {
        /// Creates a barrier at which `n` tasks meet. If `n` is 0 or 1, no task
        /// waits.
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
    /// Creates a barrier at which `n` tasks meet, over any backend.
    #[must_use]
    pub fn new_in(n: usize) -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, Waiters::new()),
            n: at_least_one(n),
        }
    }

    /// Waits until `n` tasks have arrived, this task among them.
    ///
    /// A task arrives at the first poll of its wait. The last task to arrive is the
    /// leader of its generation. The barrier is then empty again, and later arrivals
    /// belong to the next generation.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the other tasks have arrived withdraws its arrival.
    /// Dropping it after they have arrived, before it has observed that, changes
    /// nothing: the other tasks go on.
    ///
    /// # Panics
    ///
    /// The poll panics if the future has completed before, or if 2^32 - 1 tasks wait
    /// already.
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

    /// Returns the number of tasks that have arrived and wait for the others.
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

    /// Returns the number of waits that have been notified and have not been polled
    /// since. If it stays above zero, there are futures that are not polled any more.
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

    /// Returns the locations in the source of the calls that wait, the oldest first.
    /// A call that has been notified and has not observed it is among them.
    ///
    /// Available with the feature `locations`.
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

/// What the section of a wait found.
enum Outcome {
    /// The wait was notified.
    Notified,
    /// The wait is the last arrival, and has notified this generation.
    Leads(Generation),
}

#[derive(Debug)]
enum Stage {
    Created,
    Queued(Waiter),
    Done,
}

/// The future of [`Barrier::wait`].
///
/// If it is leaked after its first poll, its arrival counts and is never withdrawn.
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
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
        // The waker is cloned only if this is not the last arrival. Dropping the
        // clone is foreign code. If it panicked after the others were notified, they
        // would not be woken.
        let outcome = barrier.lock.poll(cx, false, |section, registration| {
            let waiters = section.state;
            let waiter = match core::mem::replace(stage, Stage::Done) {
                Stage::Queued(waiter) if waiters.is_notified(&waiter) => {
                    waiters.remove(waiter, section.wakes);
                    return Ok(Outcome::Notified);
                }
                Stage::Created if waiters.queued() + 1 == barrier.n => {
                    *section.bits = Bits::EMPTY;
                    return Ok(Outcome::Leads(waiters.notify_all()));
                }
                Stage::Queued(waiter) => waiter,
                _ => waiters.push(*location, ()),
            };
            *section.bits = Bits::new(waiters.queued());
            let registered = registration.register(waiters.waker(&waiter));
            *stage = Stage::Queued(waiter);
            Err(registered)
        });
        outcome.map(|outcome| match outcome {
            Outcome::Notified => BarrierWaitResult { leader: false },
            Outcome::Leads(generation) => {
                barrier
                    .lock
                    .rounds(|section| section.state.wake_notified(generation, section.wakes));
                BarrierWaitResult { leader: true }
            }
        })
    }
}

/// Withdraws the arrival, unless the others have been notified.
impl<B: Backend> Drop for BarrierWait<'_, B> {
    fn drop(&mut self) {
        if let Stage::Queued(waiter) = core::mem::replace(&mut self.stage, Stage::Done) {
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

/// The result of [`Barrier::wait`]. It tells whether the task is the leader.
#[derive(Debug, Clone)]
pub struct BarrierWaitResult {
    leader: bool,
}

impl BarrierWaitResult {
    /// Returns `true` for one task of each generation, the last to arrive.
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
