//! A value that is set once, and that any number of tasks can wait for.
//!
//! A [`SetOnce`] is empty until it is [set](SetOnce::set), and holds the same value
//! from then on. Any task can read the value without waiting, or
//! [wait](SetOnce::wait) for it. All of them share the one value in place.
//!
//! ```
//! use reveille::SetOnce;
//!
//! static CONFIGURATION: SetOnce<&str> = SetOnce::const_new();
//!
//! # reveille_executor::block_on(async {
//! let loading = std::thread::spawn(|| CONFIGURATION.set("loaded"));
//! assert_eq!(*CONFIGURATION.wait().await, "loaded");
//! # loading.join().unwrap().unwrap();
//! # });
//! ```
//!
//! # States
//!
//! The states are those of a [`OnceSlot`], to which this module gives the names and
//! the errors of `tokio::sync::SetOnce`. Finding a value that is set takes one load,
//! and setting it is one section.

#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Waiter, Waiters};
use crate::raw::OnceSlot;

/// Holds a value that is set once, and that any number of tasks can wait for.
///
/// # Examples
///
/// ```
/// use reveille::SetOnce;
/// use std::sync::Arc;
///
/// let answer = Arc::new(SetOnce::new());
/// let waits = std::thread::spawn({
///     let answer = answer.clone();
///     move || reveille_executor::block_on(async { *answer.wait().await })
/// });
/// answer.set(7).unwrap();
/// assert_eq!(waits.join().unwrap(), 7);
/// ```
///
/// # A promise
///
/// Other languages call it a promise, or a completable future. With a [`Result`] as
/// its value, `set(Ok(..))` fulfils it and `set(Err(..))` rejects it. Only the first
/// call sets it, a later call gets its value back, and every waiter sees the same
/// outcome:
///
/// ```
/// use reveille::SetOnce;
///
/// # reveille_executor::block_on(async {
/// let promise: SetOnce<Result<u32, &str>> = SetOnce::new();
/// promise.set(Err("the station is closed")).unwrap();
/// assert!(promise.set(Ok(7)).is_err());
///
/// assert_eq!(promise.wait().await, &Err("the station is closed"));
/// assert_eq!(promise.wait().await, &Err("the station is closed"));
/// # });
/// ```
///
/// # Differences
///
/// Differences from `tokio::sync::SetOnce`: [`wait`](Self::wait) is a named future;
/// `new` is `const`; [`new_in`](Self::new_in), [`waiting`](Self::waiting) and
/// [`granted`](Self::granted) are additions.
pub struct SetOnce<T, B: Backend = DefaultBackend> {
    slot: OnceSlot<T, Waiters<()>, B>,
}

impl<T> SetOnce<T> {
    const_unless_loom! {
        /// Creates an empty `SetOnce`.
        pub const fn new() -> Self {
            Self::const_new()
        }

        /// Creates an empty `SetOnce`. It is the same as [`new`](Self::new).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::SetOnce;
        ///
        /// static ANSWER: SetOnce<u32> = SetOnce::const_new();
        /// ANSWER.set(7).unwrap();
        /// assert_eq!(ANSWER.get(), Some(&7));
        /// ```
        pub const fn const_new() -> Self {
            Self {
                slot: OnceSlot::const_new(Waiters::new()),
            }
        }

        /// Creates a `SetOnce` that is set to `value`, in a constant.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::SetOnce;
        ///
        /// static ANSWER: SetOnce<u32> = SetOnce::const_new_with(7);
        /// assert_eq!(ANSWER.get(), Some(&7));
        /// ```
        pub const fn const_new_with(value: T) -> Self {
            Self {
                slot: OnceSlot::const_new_with(value, Waiters::new()),
            }
        }
    }
}

impl<T> SetOnce<T> {
    /// Creates a `SetOnce` that is set to the value in `value`, or is empty if there
    /// is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::SetOnce;
    ///
    /// assert_eq!(SetOnce::new_with(Some(7)).get(), Some(&7));
    /// assert_eq!(SetOnce::<u32>::new_with(None).get(), None);
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        Self::new_with_in(value)
    }
}

impl<T, B: Backend> SetOnce<T, B> {
    /// Creates an empty `SetOnce` over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{SetOnce, backend::Local};
    ///
    /// // For a single thread: no atomics, and not `Sync`.
    /// let answer = SetOnce::<_, Local>::new_in();
    /// answer.set(7).unwrap();
    /// assert_eq!(answer.get(), Some(&7));
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            slot: OnceSlot::new_in(Waiters::new()),
        }
    }

    fn new_with_in(value: Option<T>) -> Self {
        match value {
            Some(value) => Self {
                slot: OnceSlot::new_with_in(value, Waiters::new()),
            },
            None => Self::new_in(),
        }
    }

    /// Returns `true` if the value is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::SetOnce;
    ///
    /// let answer = SetOnce::new();
    /// assert!(!answer.initialized());
    /// answer.set(7).unwrap();
    /// assert!(answer.initialized());
    /// ```
    #[inline]
    pub fn initialized(&self) -> bool {
        self.slot.is_initialized()
    }

    /// Returns the value, or `None` if it is not set.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::SetOnce;
    ///
    /// let answer = SetOnce::new();
    /// assert_eq!(answer.get(), None);
    /// answer.set(7).unwrap();
    /// assert_eq!(answer.get(), Some(&7));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.slot.get()
    }

    /// Sets the value, and wakes all tasks that wait for it.
    ///
    /// # Errors
    ///
    /// Returns `value` in a [`SetOnceError`] if the value has been set before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{SetOnce, SetOnceError};
    ///
    /// let answer = SetOnce::new();
    /// assert_eq!(answer.set(7), Ok(()));
    /// assert_eq!(answer.set(8), Err(SetOnceError(8)));
    /// assert_eq!(answer.get(), Some(&7));
    /// ```
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        match self.slot.set(value, |_| Some(Bits::EMPTY)) {
            Ok(_) => Ok(()),
            Err((value, _)) => Err(SetOnceError(value)),
        }
    }

    /// Consumes the `SetOnce` and returns the value, or `None` if it is not set.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::SetOnce;
    ///
    /// let answer = SetOnce::new();
    /// answer.set(7).unwrap();
    /// assert_eq!(answer.into_inner(), Some(7));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.slot.take(Waiters::new())
    }

    /// Waits until the value is set, and returns it. If it is set already, the future
    /// completes at its first poll, by one load.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. The value stays, and another wait finds it.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::SetOnce;
    ///
    /// # reveille_executor::block_on(async {
    /// let answer = SetOnce::new();
    /// answer.set(7).unwrap();
    /// assert_eq!(answer.wait().await, &7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait(&self) -> SetOnceWait<'_, T, B> {
        SetOnceWait {
            once: self,
            location: CallerLocation::capture(),
            waiter: None,
        }
    }

    /// Returns the number of tasks that wait for the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::SetOnce;
    ///
    /// let answer = SetOnce::<u32>::new();
    /// let mut waits = pin!(answer.wait());
    /// assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert_eq!(answer.waiting(), 1);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.slot.with(|section| section.state.queued())
    }

    /// Returns the number of waits that have been notified and have not been polled
    /// since. If it stays above zero, there are futures that are not polled any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::SetOnce;
    ///
    /// let answer = SetOnce::new();
    /// let mut waits = pin!(answer.wait());
    /// assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// answer.set(7).unwrap();
    /// assert_eq!(answer.granted(), 1);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.slot.with(|section| section.state.notified())
    }

    /// Returns the locations in the source of the calls that wait for the value, the
    /// oldest first. A call that has been notified and has not observed the value is
    /// among them.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::SetOnce;
    ///
    /// assert!(SetOnce::<u32>::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.slot.waiters()
    }
}

/// The future of [`SetOnce::wait`].
///
/// If it is polled again after it has completed, it returns the value again.
#[must_use = "futures do nothing unless polled"]
pub struct SetOnceWait<'a, T, B: Backend = DefaultBackend> {
    once: &'a SetOnce<T, B>,
    location: CallerLocation,
    /// The place in the queue, while the future has one.
    waiter: Option<Waiter>,
}

impl<'a, T, B: Backend> Future for SetOnceWait<'a, T, B> {
    type Output = &'a T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        let this = self.get_mut();
        this.once
            .slot
            .poll_wait(&mut this.waiter, this.location, cx)
    }
}

impl<T, B: Backend> Drop for SetOnceWait<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        self.once.slot.cancel_wait(&mut self.waiter);
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new_in()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        Self::new_with(Some(value))
    }
}

/// Clones the value, if it is set. The clone has no waiters.
impl<T: Clone, B: Backend> Clone for SetOnce<T, B> {
    fn clone(&self) -> Self {
        Self::new_with_in(self.get().cloned())
    }
}

impl<T: PartialEq, B: Backend> PartialEq for SetOnce<T, B> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq, B: Backend> Eq for SetOnce<T, B> {}

impl<T: fmt::Debug, B: Backend> fmt::Debug for SetOnce<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("SetOnce");
        f.field("value", &self.get())
            .field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<T, B: Backend> fmt::Debug for SetOnceWait<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnceWait")
            .field("queued", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

/// The error of [`SetOnce::set`] if the value has been set before. It holds the value
/// that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value has been set already, and can be set only once")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}
