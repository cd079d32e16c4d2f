//! A latch, which is counted down once and then stays open.
//!
//! ```
//! use reveille::Latch;
//!
//! let loaded = Latch::new(2);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| loaded.count_down());
//!     scope.spawn(|| loaded.count_down());
//!     reveille_executor::block_on(loaded.wait());
//! });
//! ```
//!
//! # States
//!
//! A latch is a [`Gate`] whose count is never added to. If the number of tasks is not
//! known from the start, use a [`WaitGroup`](crate::WaitGroup). To meet again and again,
//! use a [`Barrier`](crate::Barrier) or a [`Phaser`](crate::Phaser).

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

use crate::backend::{Backend, DefaultBackend};
use crate::raw::{Gate, GateWait, Gated};

/// Lets tasks wait until a count has reached zero. See the [module](self).
///
/// # Examples
///
/// ```
/// use reveille::Latch;
///
/// # reveille_executor::block_on(async {
/// let latch = Latch::new(2);
/// latch.count_down();
/// assert_eq!(latch.count(), 1);
/// latch.count_down();
/// latch.wait().await;
/// # });
/// ```
pub struct Latch<B: Backend = DefaultBackend> {
    gate: Gate<B>,
}

/// The future of [`Latch::wait`].
pub type LatchWait<'a, B = DefaultBackend> = GateWait<&'a Latch<B>>;

/// The future of [`Latch::wait_owned`].
pub type OwnedLatchWait<B = DefaultBackend> = GateWait<Arc<Latch<B>>>;

impl Latch {
    const_unless_loom! {
        /// Creates a latch that is open after `count` calls of
        /// [`count_down`](Self::count_down). If `count` is 0, it is open from the start.
        ///
        /// # Panics
        ///
        /// Panics if `count` is above [`MAX_COUNT`](Self::MAX_COUNT).
        #[track_caller]
        pub const fn new(count: usize) -> Self {
            Self { gate: Gate::const_new(count) }
        }
    }
}

impl<B: Backend> Latch<B> {
    /// The largest count of a latch, a quarter of [`usize::MAX`].
    pub const MAX_COUNT: usize = Gate::<B>::MAX_COUNT;

    /// Creates a latch over any backend. See [`new`](Latch::new).
    ///
    /// # Panics
    ///
    /// Panics if `count` is above [`MAX_COUNT`](Self::MAX_COUNT).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Latch, backend::Local};
    ///
    /// let latch = Latch::<Local>::new_in(1); // for one thread
    /// latch.count_down();
    /// assert_eq!(latch.count(), 0);
    /// ```
    #[track_caller]
    #[must_use]
    pub fn new_in(count: usize) -> Self {
        Self {
            gate: Gate::new_in(count),
        }
    }

    /// Counts down by one. The call that reaches zero releases all tasks that wait. If
    /// the count is zero already, the call does nothing.
    ///
    /// What was written before the call is visible to each task after its wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Latch;
    ///
    /// let latch = Latch::new(1);
    /// latch.count_down();
    /// latch.count_down();
    /// assert_eq!(latch.count(), 0);
    /// ```
    #[inline]
    pub fn count_down(&self) {
        self.gate.subtract(1);
    }

    /// Counts down by `n`, at most to zero. See [`count_down`](Self::count_down).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Latch;
    ///
    /// let latch = Latch::new(3);
    /// latch.count_down_by(2);
    /// assert_eq!(latch.count(), 1);
    /// ```
    pub fn count_down_by(&self, n: usize) {
        self.gate.subtract(n);
    }

    /// Returns the count. If it is zero, a wait completes at its first poll.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Latch;
    ///
    /// assert_eq!(Latch::new(3).count(), 3);
    /// ```
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.gate.count()
    }

    /// Waits until the count is zero. If it is already, the future completes at its first
    /// poll, by one load.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Latch;
    ///
    /// let latch = Latch::new(1);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| latch.count_down());
    ///     reveille_executor::block_on(latch.wait());
    /// });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub const fn wait(&self) -> LatchWait<'_, B> {
        GateWait::new(self)
    }

    /// Waits as [`wait`](Self::wait) does. The future owns the latch, through the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Latch;
    /// use std::sync::Arc;
    ///
    /// let latch = Arc::new(Latch::new(1));
    /// let waits = latch.clone().wait_owned();
    /// latch.count_down();
    /// reveille_executor::block_on(waits);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn wait_owned(self: Arc<Self>) -> OwnedLatchWait<B> {
        GateWait::new(self)
    }

    /// Returns the number of tasks that wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Latch;
    ///
    /// assert_eq!(Latch::new(1).waiting(), 0);
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
    /// use reveille::Latch;
    ///
    /// assert_eq!(Latch::new(1).granted(), 0);
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
    /// use reveille::Latch;
    ///
    /// assert!(Latch::new(1).waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.gate.waiters()
    }
}

impl<B: Backend> Gated for Latch<B> {
    type Backend = B;

    #[inline]
    fn gate(&self) -> &Gate<B> {
        &self.gate
    }
}

impl<B: Backend> fmt::Debug for Latch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Latch");
        f.field("count", &self.count());
        self.gate.describe(&mut f)
    }
}
