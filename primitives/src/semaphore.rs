//! A semaphore: permits that tasks acquire and release.
//!
//! ```
//! use reveille::Semaphore;
//!
//! # reveille_executor::block_on(async {
//! let connections = Semaphore::new(2);
//! let first = connections.acquire().await.unwrap();
//! let second = connections.acquire().await.unwrap();
//! assert!(connections.try_acquire().is_err());
//! drop(first);
//! assert_eq!(connections.available_permits(), 1);
//! # drop(second);
//! # });
//! ```
//!
//! # Fairness
//!
//! Permits are granted in the order of the requests, whatever their sizes. A request
//! for one permit waits behind an earlier request for three, so large requests do not
//! starve. With [`with_max_barges`](Semaphore::with_max_barges), other requests can
//! acquire permits before the request at the head of the queue, a bounded number of
//! times. This costs fewer switches of tasks.
//!
//! The order is that of requests, and knows no groups of tasks: a group with more requests
//! is granted more permits. To bound what a group has, give it a semaphore of its own, and
//! acquire from that one first. Permits that a group leaves unused then stay unused.
//!
//! # States
//!
//! The states are those of the permits in `raw`. Acquiring free permits takes one
//! compare-exchange, and so does releasing permits when no request waits.
//!
//! Differences from `tokio::sync::Semaphore`: every count is a `usize`;
//! [`MAX_PERMITS`](Semaphore::MAX_PERMITS) is smaller; permits and futures are one
//! type each, over a borrow or an `Arc`;
//! [`with_max_barges`](Semaphore::with_max_barges), [`new_in`], [`acquire_up_to`],
//! [`shrink`], [`waiting`] and [`granted`] are additions. tokio has the blocking
//! calls, [`blocking_acquire`] and its variants, from 1.54 on. There they panic
//! within a runtime. Here they block the thread, since the semaphore does not know
//! about executors.
//!
//! [`new_in`]: Semaphore::new_in
//! [`acquire_up_to`]: Semaphore::acquire_up_to
//! [`shrink`]: Semaphore::shrink
//! [`waiting`]: Semaphore::waiting
//! [`granted`]: Semaphore::granted
//! [`blocking_acquire`]: Semaphore::blocking_acquire

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::watch::refused;
use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, block_on};
use crate::raw::{AcquireState, Holder, Holders, Permits, Refused, Request};

/// Hands out a limited number of permits. See the [module](self).
pub struct Semaphore<B: Backend = DefaultBackend> {
    permits: Permits<B>,
    holders: Holders<B>,
}

impl Semaphore {
    const_unless_loom! {
        /// Creates a semaphore with `permits` permits.
        ///
        /// # Panics
        ///
        /// Panics if `permits` is above [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Semaphore;
        ///
        /// assert_eq!(Semaphore::new(2).available_permits(), 2);
        /// ```
        #[track_caller]
        pub const fn new(permits: usize) -> Self {
            Self::const_new(permits)
        }

        /// Creates a semaphore with `permits` permits. It is the same as
        /// [`new`](Self::new).
        ///
        /// # Panics
        ///
        /// Panics if `permits` is above [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Semaphore;
        ///
        /// static CONNECTIONS: Semaphore = Semaphore::const_new(2);
        /// assert_eq!(CONNECTIONS.available_permits(), 2);
        /// ```
        #[track_caller]
        pub const fn const_new(permits: usize) -> Self {
            Self::with_max_barges(permits, 0)
        }

        /// Creates a semaphore with a bound on barging.
        ///
        /// Other requests can acquire permits before the request at the head of the
        /// queue at most `max_barges` times. Then permits are handed to that request.
        /// On a 32-bit machine the bound is at most 1023.
        ///
        /// # Panics
        ///
        /// Panics if `permits` is above [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Semaphore;
        ///
        /// let semaphore = Semaphore::with_max_barges(2, 16);
        /// assert_eq!(semaphore.available_permits(), 2);
        /// ```
        #[track_caller]
        #[must_use]
        pub const fn with_max_barges(permits: usize, max_barges: u16) -> Self {
            Self {
                permits: Permits::const_new(permits, max_barges),
                holders: Holders::const_new(),
            }
        }
    }
}

/// This constant is not generic over the backend, since `Semaphore::MAX_PERMITS`
/// alone would then be ambiguous.
impl Semaphore {
    /// The largest number of permits, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    /// assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
    /// ```
    pub const MAX_PERMITS: usize = Permits::<DefaultBackend>::MAX;
}

impl<B: Backend> Semaphore<B> {
    /// Creates a semaphore over any backend.
    ///
    /// # Panics
    ///
    /// Panics if `permits` is above [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Semaphore, backend::Spin};
    ///
    /// assert!(Semaphore::<Spin>::new_in(1).try_acquire().is_ok());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn new_in(permits: usize) -> Self {
        Self::with_max_barges_in(permits, 0)
    }

    /// Creates a semaphore with a bound on barging, as
    /// [`with_max_barges`](Semaphore::with_max_barges) does, over any backend.
    ///
    /// # Panics
    ///
    /// Panics if `permits` is above [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Semaphore, backend::Spin};
    ///
    /// let semaphore = Semaphore::<Spin>::with_max_barges_in(1, 16);
    /// assert!(semaphore.try_acquire().is_ok());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn with_max_barges_in(permits: usize, max_barges: u16) -> Self {
        Self {
            permits: Permits::new_in(permits, max_barges),
            holders: Holders::new_in(),
        }
    }

    /// Returns the number of free permits.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let permits = semaphore.try_acquire_many(2).unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permits);
    /// ```
    pub fn available_permits(&self) -> usize {
        self.permits.available()
    }

    /// Adds `permits` permits.
    ///
    /// # Panics
    ///
    /// Panics if more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS) would be free. No
    /// permit has been added then.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(0);
    /// semaphore.add_permits(Semaphore::MAX_PERMITS);
    /// ```
    #[track_caller]
    pub fn add_permits(&self, permits: usize) {
        if let Err(free) = self.permits.add(permits) {
            panic!(
                "{permits} permits cannot be added to {free}: a semaphore has at most {}",
                Permits::<B>::MAX
            );
        }
    }

    /// Forgets up to `permits` free permits, and returns how many it forgot.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(2);
    /// assert_eq!(semaphore.forget_permits(3), 2);
    /// ```
    pub fn forget_permits(&self, permits: usize) -> usize {
        self.permits.forget(permits)
    }

    /// Takes `permits` permits out of use: as many as are free now, and the rest when
    /// they are released.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(2);
    /// let permit = semaphore.try_acquire().unwrap();
    /// semaphore.shrink(2);
    /// drop(permit);
    /// assert_eq!(semaphore.available_permits(), 0);
    /// ```
    pub fn shrink(&self, permits: usize) {
        self.permits.shrink(permits);
    }

    /// Closes the semaphore. Requests that wait and later requests fail. A request
    /// that was granted permits before the close keeps them, whether or not it has
    /// been polled since.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// # reveille_executor::block_on(async {
    /// let semaphore = Semaphore::new(1);
    /// semaphore.close();
    /// assert!(semaphore.acquire().await.is_err());
    /// # });
    /// ```
    pub fn close(&self) {
        self.permits.close();
    }

    /// Returns `true` if the semaphore has been closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(1);
    /// semaphore.close();
    /// assert!(semaphore.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    /// Returns the number of requests that wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// assert_eq!(Semaphore::new(0).waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.permits.waiting().0
    }

    /// Returns the number of requests that have been granted permits and have not
    /// been polled since. If it stays above zero, there are futures that are not
    /// polled any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// assert_eq!(Semaphore::new(0).granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.permits.waiting().1
    }

    /// Returns the locations in the source of the requests that wait, the oldest
    /// first. A request that has been granted permits and has not observed them is
    /// among them.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// assert!(Semaphore::new(1).waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.permits.waiters()
    }

    /// Returns the locations in the source where the permits that are held were
    /// acquired, the oldest first.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(1);
    /// let held = semaphore.try_acquire().unwrap();
    /// assert_eq!(semaphore.holders()[0].line(), line!() - 1);
    /// # drop(held);
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn holders(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.holders.locations()
    }

    /// Acquires one permit, waiting until it is free. The permit is released when it
    /// is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue. If permits were granted
    /// but not yet observed, they pass to the next waiters.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// # reveille_executor::block_on(async {
    /// let semaphore = Semaphore::new(1);
    /// let permit = semaphore.acquire().await.unwrap();
    /// assert!(semaphore.try_acquire().is_err());
    /// # drop(permit);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn acquire(&self) -> Acquire<&Self, B> {
        self.acquire_many(1)
    }

    /// Acquires `permits` permits at once, waiting until all of them are free.
    ///
    /// A request for more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS) can never be
    /// granted. It waits until it is dropped or the semaphore is closed, and so do
    /// the requests behind it.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// # reveille_executor::block_on(async {
    /// let semaphore = Semaphore::new(3);
    /// let permits = semaphore.acquire_many(2).await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permits);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn acquire_many(&self, permits: usize) -> Acquire<&Self, B> {
        self.acquire_up_to(permits, permits)
    }

    /// Acquires as many permits as are free, at least `least` and at most `most`,
    /// waiting until `least` are free.
    ///
    /// If other requests wait and the bound on barging is reached, no permit counts
    /// as free. A request with a `least` of 0 then returns 0 permits.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Panics
    ///
    /// Panics if `most` is below `least`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// # reveille_executor::block_on(async {
    /// let semaphore = Semaphore::new(3);
    /// let permits = semaphore.acquire_up_to(1, 8).await.unwrap();
    /// assert_eq!(permits.num_permits(), 3);
    /// # });
    /// ```
    #[track_caller]
    #[inline]
    pub fn acquire_up_to(&self, least: usize, most: usize) -> Acquire<&Self, B> {
        assert!(
            least <= most,
            "cannot acquire at least {least} and at most {most} permits"
        );
        Acquire::new(self, least, most)
    }

    /// Acquires one permit, waiting as [`acquire`](Self::acquire) does. The permit
    /// owns the semaphore, through the `Arc`.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().acquire_owned().await.unwrap();
    /// assert!(semaphore.try_acquire().is_err());
    /// # drop(permit);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn acquire_owned(self: Arc<Self>) -> Acquire<Arc<Self>, B> {
        Acquire::new(self, 1, 1)
    }

    /// Acquires `permits` permits at once, waiting as
    /// [`acquire_many`](Self::acquire_many) does. The permits own the semaphore,
    /// through the `Arc`.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permits = semaphore.clone().acquire_many_owned(2).await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permits);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn acquire_many_owned(self: Arc<Self>, permits: usize) -> Acquire<Arc<Self>, B> {
        Acquire::new(self, permits, permits)
    }

    /// Acquires one permit if it is free, without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`TryAcquireError::Closed`] if the semaphore is closed. Returns
    /// [`TryAcquireError::NoPermits`] if too few permits are free, or if requests
    /// wait and the bound on barging is reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Semaphore, TryAcquireError};
    ///
    /// let semaphore = Semaphore::new(1);
    /// let permit = semaphore.try_acquire().unwrap();
    /// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    /// # drop(permit);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_, B>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Acquires `permits` permits at once if they are free, without waiting.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert!(semaphore.try_acquire_many(4).is_err());
    /// assert_eq!(semaphore.try_acquire_many(2).unwrap().num_permits(), 2);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn try_acquire_many(
        &self,
        permits: usize,
    ) -> Result<SemaphorePermit<'_, B>, TryAcquireError> {
        Permit::try_new(self, permits)
    }

    /// Acquires one permit if it is free, without waiting. The permit owns the
    /// semaphore, through the `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().try_acquire_owned().unwrap();
    /// assert!(semaphore.try_acquire().is_err());
    /// # drop(permit);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit<B>, TryAcquireError> {
        Permit::try_new(self, 1)
    }

    /// Acquires `permits` permits at once if they are free, without waiting. The
    /// permits own the semaphore, through the `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permits = semaphore.clone().try_acquire_many_owned(2).unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permits);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        permits: usize,
    ) -> Result<OwnedSemaphorePermit<B>, TryAcquireError> {
        Permit::try_new(self, permits)
    }

    /// Acquires one permit, blocking the thread until it is free.
    ///
    /// It is meant for threads outside an executor. Within an executor it blocks a
    /// thread that may be needed to run the task that holds the permits.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(1);
    /// assert_eq!(semaphore.blocking_acquire().unwrap().num_permits(), 1);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_, B>, AcquireError>
    where
        B: BlockingBackend,
    {
        self.blocking_acquire_many(1)
    }

    /// Acquires `permits` permits at once, blocking the thread until all of them are
    /// free. See [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert_eq!(semaphore.blocking_acquire_many(2).unwrap().num_permits(), 2);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_acquire_many(
        &self,
        permits: usize,
    ) -> Result<SemaphorePermit<'_, B>, AcquireError>
    where
        B: BlockingBackend,
    {
        Permit::blocking(self, permits)
    }

    /// Acquires one permit, blocking the thread until it is free. The permit owns the
    /// semaphore, through the `Arc`. See
    /// [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().blocking_acquire_owned().unwrap();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// # drop(permit);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit<B>, AcquireError>
    where
        B: BlockingBackend,
    {
        Permit::blocking(self, 1)
    }

    /// Acquires `permits` permits at once, blocking the thread until all of them are
    /// free. The permits own the semaphore, through the `Arc`. See
    /// [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permits = semaphore.clone().blocking_acquire_many_owned(2).unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permits);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        permits: usize,
    ) -> Result<OwnedSemaphorePermit<B>, AcquireError>
    where
        B: BlockingBackend,
    {
        Permit::blocking(self, permits)
    }
}

/// The future of [`Semaphore::acquire`] and its variants.
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<P: Deref<Target = Semaphore<B>>, B: Backend = DefaultBackend> {
    /// `None` after completion.
    semaphore: Option<P>,
    request: Request,
    acquire: AcquireState,
}

impl<P: Deref<Target = Semaphore<B>>, B: Backend> Acquire<P, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    fn new(semaphore: P, least: usize, most: usize) -> Self {
        Self {
            semaphore: Some(semaphore),
            request: Request::between(least, most),
            acquire: AcquireState::new(),
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_slow(
        &mut self,
        found: Bits,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Permit<P, B>, AcquireError>> {
        let semaphore = self
            .semaphore
            .as_ref()
            .expect("the future has not completed");
        let permits = &semaphore.permits;
        match self.acquire.poll(found, &mut self.request, permits, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(permits)) => Poll::Ready(Ok(self.permit(permits))),
            Poll::Ready(Err(_)) => {
                self.semaphore = None;
                Poll::Ready(Err(AcquireError(())))
            }
        }
    }

    /// Makes the permit of `permits` permits that have been acquired. It is called
    /// once.
    #[inline]
    fn permit(&mut self, permits: usize) -> Permit<P, B> {
        let semaphore = self.semaphore.take().expect("the future has not completed");
        Permit::new(semaphore, permits, self.acquire.location())
    }
}

impl<P: Deref<Target = Semaphore<B>> + Unpin, B: Backend> Future for Acquire<P, B> {
    type Output = Result<Permit<P, B>, AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let semaphore = this
            .semaphore
            .as_ref()
            .expect("Semaphore::acquire polled after it was ready");
        match this.acquire.try_start(this.request, &semaphore.permits) {
            Ok(permits) => Poll::Ready(Ok(this.permit(permits))),
            Err(found) => this.poll_slow(found, cx),
        }
    }
}

impl<P: Deref<Target = Semaphore<B>>, B: Backend> Drop for Acquire<P, B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(semaphore) = &self.semaphore {
            self.acquire.cancel(&self.request, &semaphore.permits);
        }
    }
}

/// Holds permits of a semaphore, and releases them when dropped.
///
/// If a permit is leaked, its permits are never released.
///
/// # Panics
///
/// Dropping it panics, and releases nothing, if more than
/// [`MAX_PERMITS`](Semaphore::MAX_PERMITS) permits would then be free. This is
/// possible only if permits were [added](Semaphore::add_permits) while it was held.
#[must_use = "permits that are not held are released at once"]
pub struct Permit<P: Deref<Target = Semaphore<B>>, B: Backend = DefaultBackend> {
    semaphore: P,
    permits: usize,
    holder: Holder,
}

/// Permits of a borrowed semaphore.
pub type SemaphorePermit<'a, B = DefaultBackend> = Permit<&'a Semaphore<B>, B>;

/// Permits of a semaphore in an `Arc`.
pub type OwnedSemaphorePermit<B = DefaultBackend> = Permit<Arc<Semaphore<B>>, B>;

impl<P: Deref<Target = Semaphore<B>>, B: Backend> Permit<P, B> {
    #[inline]
    fn new(semaphore: P, permits: usize, location: CallerLocation) -> Self {
        Self {
            holder: semaphore.holders.enter(location),
            semaphore,
            permits,
        }
    }

    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    fn try_new(semaphore: P, permits: usize) -> Result<Self, TryAcquireError> {
        match semaphore.permits.try_acquire(Request::exactly(permits)) {
            Ok(permits) => Ok(Self::new(semaphore, permits, CallerLocation::capture())),
            Err(Refused::Closed) => Err(TryAcquireError::Closed),
            Err(Refused::TooFew) => Err(refused::<B, _>(TryAcquireError::NoPermits)),
        }
    }

    /// Acquires permits, blocking the thread. Free permits are taken without creating
    /// a parker.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    fn blocking(semaphore: P, permits: usize) -> Result<Self, AcquireError>
    where
        P: Unpin,
        B: BlockingBackend,
    {
        match semaphore.permits.try_acquire(Request::exactly(permits)) {
            Ok(permits) => Ok(Self::new(semaphore, permits, CallerLocation::capture())),
            Err(Refused::Closed) => Err(AcquireError(())),
            Err(Refused::TooFew) => block_on::<B, _>(Acquire::new(semaphore, permits, permits)),
        }
    }

    /// Forgets the permits without releasing them. The semaphore has that many
    /// permits fewer from then on.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(2);
    /// semaphore.try_acquire().unwrap().forget();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Adds the permits of `other` to these.
    ///
    /// # Panics
    ///
    /// Panics if `other` is of another semaphore, or if the sum of the permits is too
    /// large for a `usize`. The permits of `other` are released in both cases.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(2);
    /// let mut permits = semaphore.try_acquire().unwrap();
    /// permits.merge(semaphore.try_acquire().unwrap());
    /// assert_eq!(permits.num_permits(), 2);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            core::ptr::eq(&*self.semaphore, &*other.semaphore),
            "permits of one semaphore cannot be merged with those of another"
        );
        self.permits = self
            .permits
            .checked_add(other.permits)
            .expect("the sum of the merged permits is too large to count");
        other.permits = 0;
    }

    /// Splits off `permits` of these permits. Returns `None` if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let mut permits = semaphore.try_acquire_many(3).unwrap();
    /// let one = permits.split(1).unwrap();
    /// assert_eq!((permits.num_permits(), one.num_permits()), (2, 1));
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn split(&mut self, permits: usize) -> Option<Self>
    where
        P: Clone,
    {
        self.permits = self.permits.checked_sub(permits)?;
        Some(Self::new(
            self.semaphore.clone(),
            permits,
            CallerLocation::capture(),
        ))
    }

    /// Returns the number of permits that are held.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert_eq!(semaphore.try_acquire_many(2).unwrap().num_permits(), 2);
    /// ```
    pub fn num_permits(&self) -> usize {
        self.permits
    }

    /// Returns the semaphore of these permits.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Semaphore;
    /// use std::sync::Arc;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().try_acquire_owned().unwrap();
    /// assert!(Arc::ptr_eq(permit.semaphore(), &semaphore));
    /// ```
    pub fn semaphore(&self) -> &P {
        &self.semaphore
    }
}

impl<P: Deref<Target = Semaphore<B>>, B: Backend> Drop for Permit<P, B> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.holders.leave(&mut self.holder);
        self.semaphore.permits.release(self.permits);
    }
}

/// The error of a request for permits of a closed semaphore.
#[derive(Debug, PartialEq, Eq)]
pub struct AcquireError(());

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore is closed and grants no permits")
    }
}

impl core::error::Error for AcquireError {}

/// The error of [`Semaphore::try_acquire`] and its variants.
#[derive(Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Too few permits are free, or other requests wait for them.
    NoPermits,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the semaphore is closed and grants no permits",
            Self::NoPermits => "too few permits are free, or other requests wait for them",
        })
    }
}

impl core::error::Error for TryAcquireError {}

impl<B: Backend> fmt::Debug for Semaphore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Semaphore");
        f.field("permits", &self.permits);
        #[cfg(feature = "locations")]
        f.field("holders", &Locations(self.holders()))
            .field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<P: Deref<Target = Semaphore<B>>, B: Backend> fmt::Debug for Acquire<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").finish_non_exhaustive()
    }
}

impl<P: Deref<Target = Semaphore<B>>, B: Backend> fmt::Debug for Permit<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
