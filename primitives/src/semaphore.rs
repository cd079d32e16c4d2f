//! Permits that tasks acquire and give back.
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
//! First come, first served, however many permits each asks for: a request for
//! one does not get past a request for three that came before, so large requests
//! do not starve. [`with_max_barges`](Semaphore::with_max_barges) lets whoever has waited
//! longest be overtaken so many times, which costs fewer switches of tasks.
//!
//! # States
//!
//! They are those of the permits in `raw`. Acquiring what is
//! free is one compare-exchange, and so is releasing where nobody waits.
//!
//! Differences from `tokio::sync::Semaphore`: every count is a `usize`;
//! [`MAX_PERMITS`](Semaphore::MAX_PERMITS) is smaller; permits and futures are
//! one type each, over a borrow or an `Arc`; [`with_max_barges`](Semaphore::with_max_barges),
//! [`new_in`], [`acquire_up_to`], [`shrink`], [`waiting`] and [`granted`] are
//! additions. The blocking calls, [`blocking_acquire`] and its like, are in tokio from
//! 1.54 on, and panic there within a runtime; here they block the thread, since the
//! semaphore does not know about executors.
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

use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, block_on};
use crate::raw::{AcquireState, Holder, Holders, Permits, Refused, Request};

/// Permits that tasks acquire and give back. See the [module](self).
pub struct Semaphore<B: Backend = DefaultBackend> {
    permits: Permits<B>,
    holders: Holders<B>,
}

impl Semaphore {
    const_unless_loom! {
        /// A semaphore with so many permits.
        ///
        /// # Panics
        ///
        /// Panics where they are more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
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

        /// A semaphore in a constant: the same as [`new`](Self::new).
        ///
        /// # Panics
        ///
        /// As for [`new`](Self::new).
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

        /// A semaphore in which whoever has waited longest is overtaken at most
        /// `max_barges` times; at most 1023 on a 32-bit machine.
        ///
        /// # Panics
        ///
        /// As for [`new`](Self::new).
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

/// Not for any backend, or `Semaphore::MAX_PERMITS` would not say of which.
impl Semaphore {
    /// The most permits there can be, over any backend.
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
    /// Panics if there are more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
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

    /// Creates a semaphore over any backend. Its fairness is that of
    /// [`with_max_barges`](Semaphore::with_max_barges).
    ///
    /// # Panics
    ///
    /// As for [`new_in`](Self::new_in).
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

    /// How many permits are free.
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

    /// Adds permits.
    ///
    /// # Panics
    ///
    /// Panics where more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS) would be free;
    /// nothing has been added then.
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

    /// Takes free permits out of use, up to `permits`, and answers how many.
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

    /// Takes permits out of use: free ones now, and as many as are missing when
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

    /// Closes the semaphore: nothing is acquired any more, and whoever waits is
    /// told so. Whoever was granted permits before has them, polled or not.
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

    /// Whether the semaphore has been closed.
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

    /// How many requests wait.
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

    /// How many requests have been granted and not polled since: a number that
    /// stays above zero tells of futures that nobody polls.
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

    /// Where in the source each who waits began to, the first first; also those
    /// who have been granted permits and have not seen it.
    ///
    /// With the feature `locations`.
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

    /// Where in the source each who holds permits took it, the first first.
    ///
    /// With the feature `locations`.
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

    /// Acquires a permit, waiting until one is free.
    ///
    /// # Cancel safety
    ///
    /// A request that is dropped loses its place in the queue, and hands on what
    /// it was granted.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// Acquires so many permits, all at once.
    ///
    /// More than [`MAX_PERMITS`](Semaphore::MAX_PERMITS) are never free: such a
    /// request waits, and those behind it do, until it is dropped or the
    /// semaphore is closed.
    ///
    /// # Cancel safety
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// Acquires as many permits as are free, between `least` and `most`; waits
    /// until there are `least`. None are free to whom they would be the first
    /// of: where others wait whom the bound protects, a request from 0 has 0.
    ///
    /// # Cancel safety
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
    ///
    /// # Panics
    ///
    /// Panics where `most` is below `least`.
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
            "between {least} and {most} permits there are none"
        );
        Acquire::new(self, least, most)
    }

    /// As [`acquire`](Self::acquire), holding on to the semaphore by its `Arc`.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// As [`acquire_many`](Self::acquire_many), holding on to the semaphore by
    /// its `Arc`.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// Acquires a permit if one is free and nobody waits whom the bound
    /// protects.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::NoPermits`] or [`TryAcquireError::Closed`].
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

    /// As [`try_acquire`](Self::try_acquire), so many at once.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
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

    /// As [`try_acquire`](Self::try_acquire), holding on to the semaphore by its
    /// `Arc`.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
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

    /// As [`try_acquire_many`](Self::try_acquire_many), holding on to the
    /// semaphore by its `Arc`.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
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

    /// Acquires a permit, blocking the thread until one is free.
    ///
    /// For threads outside an executor. Within one it blocks the thread that may
    /// have to run whoever holds the permits.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// As [`blocking_acquire`](Self::blocking_acquire), so many at once.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// As [`blocking_acquire`](Self::blocking_acquire), holding on to the
    /// semaphore by its `Arc`.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

    /// As [`blocking_acquire_many`](Self::blocking_acquire_many), holding on to
    /// the semaphore by its `Arc`.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] where the semaphore is closed.
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

/// The future of permits.
///
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<P: Deref<Target = Semaphore<B>>, B: Backend = DefaultBackend> {
    /// None once it has been ready.
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
        let semaphore = self.semaphore.as_ref().expect("it was there a moment ago");
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

    /// Permits that have been taken, once.
    #[inline]
    fn permit(&mut self, permits: usize) -> Permit<P, B> {
        let semaphore = self.semaphore.take().expect("it was there a moment ago");
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

/// Permits, held: given back when dropped.
///
/// Permits that are leaked are not given back.
///
/// # Panics
///
/// The drop panics, and gives nothing back, where more than
/// [`MAX_PERMITS`](Semaphore::MAX_PERMITS) would be free: permits have been
/// [added](Semaphore::add_permits) while these were held.
#[must_use = "permits that are not held are given back at once"]
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
            Err(Refused::TooFew) => Err(TryAcquireError::NoPermits),
        }
    }

    /// Blocks where it has to wait; what is free is had without a parker.
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

    /// Gives up the permits without giving them back: there are fewer for good.
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

    /// Adds the permits of another to these.
    ///
    /// # Panics
    ///
    /// Panics where they are of another semaphore, and where they cannot be
    /// counted together any more; either way the others are given back.
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
            .expect("more permits are merged than can be counted");
        other.permits = 0;
    }

    /// Takes so many of these permits out, as permits of their own. None where
    /// there are fewer.
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

    /// How many permits are held.
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

    /// The semaphore they are of.
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

/// The answer of a request to a semaphore that is closed.
#[derive(Debug, PartialEq, Eq)]
pub struct AcquireError(());

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore is closed: it gives no permits any more")
    }
}

impl core::error::Error for AcquireError {}

/// Why no permit was given at once.
#[derive(Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// There are too few free, or others wait for them.
    NoPermits,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the semaphore is closed: it gives no permits any more",
            Self::NoPermits => "too few permits are free, or others wait for them",
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
