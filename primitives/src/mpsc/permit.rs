//! The permits of a bounded channel: capacity that is reserved before there is a value.
//!
//! ```text
//!   reserve: created ──poll──▶ waits ──poll──▶ done: the permit is its user's
//!   permit:  held ──send──▶ the value is in the channel
//!              └───drop──▶ the next that waits gets it
//! ```
//!
//! Invariant: a permit stands for one that has been taken of the channel, and it either
//! sends one value or gives the capacity back.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::iter::FusedIterator;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::watch::refused;
use crate::backend::{Backend, DefaultBackend};
use crate::raw::{self, Request};

use super::bounded::Sender;
use super::chan::Room;
use super::error::{SendError, TrySendError};
use super::futures::{Refused, Reserving};

impl<T, B: Backend> Sender<T, B> {
    /// Reserves capacity for one value, waiting until there is some.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the receiver has been closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// A reservation that is dropped loses its place in the queue, and passes on the permit
    /// that it was granted.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let permit = tx.reserve().await.unwrap();
    /// assert!(tx.try_send(1).is_err());
    /// permit.send(2);
    /// assert_eq!(rx.recv().await, Some(2));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn reserve(&self) -> Reserve<'_, T, B> {
        Reserve::new(self)
    }

    /// Reserves capacity for so many values, all at once, waiting until there is enough.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the receiver has been closed or dropped, and if `permits` is above
    /// the capacity of the channel.
    ///
    /// # Cancel safety
    ///
    /// As for [`reserve`](Self::reserve).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::channel(2);
    /// for (value, permit) in tx.reserve_many(2).await.unwrap().enumerate() {
    ///     permit.send(value);
    /// }
    /// assert_eq!(rx.recv().await, Some(0));
    /// assert_eq!(rx.recv().await, Some(1));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn reserve_many(&self, permits: usize) -> ReserveMany<'_, T, B> {
        ReserveMany::new(self, permits)
    }

    /// Reserves capacity for one value, as [`reserve`](Self::reserve) does, by a permit that
    /// owns this sender.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the receiver has been closed or dropped; the sender is dropped then.
    ///
    /// # Cancel safety
    ///
    /// As for [`reserve`](Self::reserve); the sender is dropped with the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let permit = tx.reserve_owned().await.unwrap();
    /// let tx = permit.send(1);
    /// assert_eq!(rx.recv().await, Some(1));
    /// # drop(tx);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn reserve_owned(self) -> ReserveOwned<T, B> {
        ReserveOwned::new(self)
    }

    /// Reserves capacity for one value if there is some and nothing waits for it.
    ///
    /// # Errors
    ///
    /// [`Full`](TrySendError::Full) if there is no capacity,
    /// [`Closed`](TrySendError::Closed) if the receiver has been closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let permit = tx.try_reserve().unwrap();
    /// assert!(tx.try_reserve().is_err());
    /// permit.send(7);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn try_reserve(&self) -> Result<Permit<'_, T, B>, TrySendError<()>> {
        self.try_take(1).map(|()| Permit::new(self))
    }

    /// Reserves capacity for so many values if there is enough and nothing waits for it.
    ///
    /// # Errors
    ///
    /// As for [`try_reserve`](Self::try_reserve). Above the capacity of the channel it is
    /// [`Full`](TrySendError::Full).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(2);
    /// assert_eq!(tx.try_reserve_many(2).unwrap().len(), 2);
    /// assert!(tx.try_reserve_many(3).is_err());
    /// ```
    pub fn try_reserve_many(
        &self,
        permits: usize,
    ) -> Result<PermitIterator<'_, T, B>, TrySendError<()>> {
        let reserved = self.try_take(permits);
        reserved.map(|()| PermitIterator::new(self, permits))
    }

    /// Reserves capacity for one value, as [`try_reserve`](Self::try_reserve) does, by a
    /// permit that owns this sender.
    ///
    /// # Errors
    ///
    /// The sender: [`Full`](TrySendError::Full) or [`Closed`](TrySendError::Closed).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let tx = tx.try_reserve_owned().unwrap().send(7);
    /// let tx = tx.try_reserve_owned().unwrap_err().into_inner();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// # drop(tx);
    /// ```
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T, B>, TrySendError<Self>> {
        match self.try_take(1) {
            Ok(()) => Ok(OwnedPermit::new(self)),
            Err(error) => Err(error.map(|()| self)),
        }
    }

    fn try_take(&self, permits: usize) -> Result<(), TrySendError<()>> {
        let permits = Request::exactly(permits);
        match self.chan().permits.try_acquire(permits) {
            Ok(_) => Ok(()),
            Err(raw::Refused::Closed) => Err(TrySendError::Closed(())),
            Err(raw::Refused::TooFew) => Err(refused::<B, _>(TrySendError::Full(()))),
        }
    }

    /// How many permits there can be at a time.
    fn most_permits(&self) -> usize {
        match self.chan().room {
            Room::Bounded(permits) => permits.max(1),
            Room::Unbounded => usize::MAX,
        }
    }
}

/// Capacity for one value, reserved.
///
/// Dropped without having sent, it gives the capacity back.
#[must_use = "capacity that is not held is given back at once"]
pub struct Permit<'a, T, B: Backend = DefaultBackend> {
    sender: &'a Sender<T, B>,
}

impl<'a, T, B: Backend> Permit<'a, T, B> {
    #[inline]
    pub(super) const fn new(sender: &'a Sender<T, B>) -> Self {
        Self { sender }
    }

    /// Sends a value.
    ///
    /// If the receiver has been dropped, so is the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let permit = tx.try_reserve().unwrap();
    /// rx.close();
    /// permit.send(7); // reserved before the close
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    #[inline]
    pub fn send(self, value: T) {
        let sender = self.sender;
        mem::forget(self);
        sender.chan().send_reserved(value);
    }
}

impl<T, B: Backend> Drop for Permit<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        self.sender.chan().permits.release(1);
    }
}

impl<T, B: Backend> fmt::Debug for Permit<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("chan", self.sender.chan())
            .finish()
    }
}

/// Capacity for several values, reserved: an iterator of [`Permit`]s.
///
/// Dropped, it gives back what is left.
#[must_use = "capacity that is not held is given back at once"]
pub struct PermitIterator<'a, T, B: Backend = DefaultBackend> {
    sender: &'a Sender<T, B>,
    permits: usize,
}

impl<'a, T, B: Backend> PermitIterator<'a, T, B> {
    pub(super) const fn new(sender: &'a Sender<T, B>, permits: usize) -> Self {
        Self { sender, permits }
    }
}

impl<'a, T, B: Backend> Iterator for PermitIterator<'a, T, B> {
    type Item = Permit<'a, T, B>;

    fn next(&mut self) -> Option<Self::Item> {
        self.permits = self.permits.checked_sub(1)?;
        Some(Permit::new(self.sender))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.permits, Some(self.permits))
    }
}

impl<T, B: Backend> ExactSizeIterator for PermitIterator<'_, T, B> {}
impl<T, B: Backend> FusedIterator for PermitIterator<'_, T, B> {}

impl<T, B: Backend> Drop for PermitIterator<'_, T, B> {
    fn drop(&mut self) {
        self.sender.chan().permits.release(self.permits);
    }
}

impl<T, B: Backend> fmt::Debug for PermitIterator<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("permits", &self.permits)
            .field("chan", self.sender.chan())
            .finish()
    }
}

/// Capacity for one value, reserved, with the sender that reserved it.
///
/// Dropped without having sent, it gives the capacity back, and drops the sender.
#[must_use = "capacity that is not held is given back at once"]
pub struct OwnedPermit<T, B: Backend = DefaultBackend> {
    /// None once the permit is used or given back.
    sender: Option<Sender<T, B>>,
}

impl<T, B: Backend> OwnedPermit<T, B> {
    pub(super) const fn new(sender: Sender<T, B>) -> Self {
        Self {
            sender: Some(sender),
        }
    }

    /// Sends a value, as [`Permit::send`] does, and returns the sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let tx = tx.try_reserve_owned().unwrap().send(7);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// # drop(tx);
    /// ```
    pub fn send(mut self, value: T) -> Sender<T, B> {
        let sender = self.take();
        sender.chan().send_reserved(value);
        sender
    }

    /// Gives the capacity back and returns the sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// let tx = tx.try_reserve_owned().unwrap().release();
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn release(mut self) -> Sender<T, B> {
        let sender = self.take();
        sender.chan().permits.release(1);
        sender
    }

    fn take(&mut self) -> Sender<T, B> {
        self.sender.take().expect("a permit is used once")
    }

    /// Returns `true` if two permits belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(2);
    /// let first = tx.clone().try_reserve_owned().unwrap();
    /// let second = tx.try_reserve_owned().unwrap();
    /// assert!(first.same_channel(&second));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        let other = other.sender.as_ref();
        other.is_some_and(|other| self.same_channel_as_sender(other))
    }

    /// Returns `true` if this permit and a sender belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(2);
    /// let permit = tx.clone().try_reserve_owned().unwrap();
    /// assert!(permit.same_channel_as_sender(&tx));
    /// ```
    pub fn same_channel_as_sender(&self, sender: &Sender<T, B>) -> bool {
        let own = self.sender.as_ref();
        own.is_some_and(|own| own.same_channel(sender))
    }
}

impl<T, B: Backend> Drop for OwnedPermit<T, B> {
    fn drop(&mut self) {
        if let Some(sender) = &self.sender {
            sender.chan().permits.release(1);
        }
    }
}

impl<T, B: Backend> fmt::Debug for OwnedPermit<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit")
            .field("sender", &self.sender)
            .finish()
    }
}

/// The future of [`Sender::reserve`].
///
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct Reserve<'a, T, B: Backend = DefaultBackend> {
    /// None once it has been ready.
    sender: Option<&'a Sender<T, B>>,
    reserving: Reserving,
}

impl<'a, T, B: Backend> Reserve<'a, T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(super) const fn new(sender: &'a Sender<T, B>) -> Self {
        Self {
            sender: Some(sender),
            reserving: Reserving::new(1),
        }
    }
}

impl<'a, T, B: Backend> Future for Reserve<'a, T, B> {
    type Output = Result<Permit<'a, T, B>, SendError<()>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let sender = this
            .sender
            .expect("mpsc::Sender::reserve polled after it was ready");
        this.reserving.poll(sender.chan(), cx).map(|reserved| {
            this.sender = None;
            match reserved {
                Ok(()) => Ok(Permit::new(sender)),
                Err(Refused) => Err(SendError(())),
            }
        })
    }
}

impl<T, B: Backend> Drop for Reserve<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(sender) = self.sender {
            self.reserving.cancel(sender.chan());
        }
    }
}

/// The future of [`Sender::reserve_many`].
///
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct ReserveMany<'a, T, B: Backend = DefaultBackend> {
    /// None once it has been ready.
    sender: Option<&'a Sender<T, B>>,
    permits: usize,
    reserving: Reserving,
}

impl<'a, T, B: Backend> ReserveMany<'a, T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(super) fn new(sender: &'a Sender<T, B>, permits: usize) -> Self {
        let reserving = match permits > sender.most_permits() {
            true => Reserving::refused(),
            false => Reserving::new(permits),
        };
        Self {
            sender: Some(sender),
            permits,
            reserving,
        }
    }
}

impl<'a, T, B: Backend> Future for ReserveMany<'a, T, B> {
    type Output = Result<PermitIterator<'a, T, B>, SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let sender = this
            .sender
            .expect("mpsc::Sender::reserve_many polled after it was ready");
        this.reserving.poll(sender.chan(), cx).map(|reserved| {
            this.sender = None;
            match reserved {
                Ok(()) => Ok(PermitIterator::new(sender, this.permits)),
                Err(Refused) => Err(SendError(())),
            }
        })
    }
}

impl<T, B: Backend> Drop for ReserveMany<'_, T, B> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender {
            self.reserving.cancel(sender.chan());
        }
    }
}

/// The future of [`Sender::reserve_owned`].
///
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct ReserveOwned<T, B: Backend = DefaultBackend> {
    /// None once it has been ready.
    sender: Option<Sender<T, B>>,
    reserving: Reserving,
}

impl<T, B: Backend> ReserveOwned<T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(super) const fn new(sender: Sender<T, B>) -> Self {
        Self {
            sender: Some(sender),
            reserving: Reserving::new(1),
        }
    }
}

impl<T, B: Backend> Future for ReserveOwned<T, B> {
    type Output = Result<OwnedPermit<T, B>, SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let sender = this
            .sender
            .as_ref()
            .expect("mpsc::Sender::reserve_owned polled after it was ready");
        this.reserving.poll(sender.chan(), cx).map(|reserved| {
            match (reserved, this.sender.take()) {
                (Ok(()), Some(sender)) => Ok(OwnedPermit::new(sender)),
                _ => Err(SendError(())),
            }
        })
    }
}

impl<T, B: Backend> Drop for ReserveOwned<T, B> {
    fn drop(&mut self) {
        if let Some(sender) = &self.sender {
            self.reserving.cancel(sender.chan());
        }
    }
}

impl<T, B: Backend> fmt::Debug for Reserve<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for ReserveMany<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ReserveMany");
        f.field("permits", &self.permits).finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for ReserveOwned<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveOwned").finish_non_exhaustive()
    }
}
