//! A value that is initialized once, by the first task that needs it.
//!
//! A [`OnceCell`] is empty until a caller of [`get_or_init`](OnceCell::get_or_init)
//! has initialized it, with an async initializer. Meanwhile the other callers wait.
//! Then all of them share the value.
//!
//! ```
//! use reveille::OnceCell;
//!
//! static CONNECTION: OnceCell<String> = OnceCell::const_new();
//!
//! async fn connection() -> &'static str {
//!     CONNECTION.get_or_init(|| async { "connected".to_owned() }).await
//! }
//!
//! # reveille_executor::block_on(async {
//! assert_eq!(connection().await, "connected");
//! # });
//! ```
//!
//! # States
//!
//! The states are those of the permit to initialize a [`OnceSlot`], in
//! `raw/initialize.rs`: the task that has the *permit* runs its initializer. If the
//! initializer fails, panics or is dropped, the permit passes to the first caller that is
//! queued for it, which runs its own. The value and its waiters are those of a
//! [`OnceSlot`].

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
use crate::protocol::{Bits, Waiter};
use crate::raw::{INITIALIZED, INITIALIZING, Init, Initialize, Made, OnceSlot, Queued};

/// Holds a value that is initialized once, and then shared. See the [module](self).
///
/// # Examples
///
/// ```
/// use reveille::OnceCell;
///
/// # reveille_executor::block_on(async {
/// let cell = OnceCell::new();
/// assert_eq!(cell.get_or_init(|| async { 7 }).await, &7);
/// assert_eq!(cell.get_or_init(|| async { 8 }).await, &7);
/// # });
/// ```
///
/// # Differences
///
/// Differences from `tokio::sync::OnceCell`: [`get_or_init`](Self::get_or_init) and
/// [`get_or_try_init`](Self::get_or_try_init) are named futures that are `Unpin`, and
/// they put the future of an initializer that has started on the heap; `new` is
/// `const`; [`wait`](Self::wait), [`new_in`](Self::new_in),
/// [`waiting`](Self::waiting) and [`granted`](Self::granted) are additions.
pub struct OnceCell<T, B: Backend = DefaultBackend> {
    slot: OnceSlot<T, Queued<()>, B>,
}

impl<T> OnceCell<T> {
    const_unless_loom! {
        /// Creates an empty cell.
        pub const fn new() -> Self {
            Self::const_new()
        }

        /// Creates an empty cell. It is the same as [`new`](Self::new).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::OnceCell;
        ///
        /// static CELL: OnceCell<u32> = OnceCell::const_new();
        /// CELL.set(7).unwrap();
        /// assert_eq!(CELL.get(), Some(&7));
        /// ```
        pub const fn const_new() -> Self {
            Self {
                slot: OnceSlot::const_new(Queued::new(())),
            }
        }

        /// Creates a cell with `value`, in a constant.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::OnceCell;
        ///
        /// static CELL: OnceCell<u32> = OnceCell::const_new_with(7);
        /// assert_eq!(CELL.get(), Some(&7));
        /// ```
        pub const fn const_new_with(value: T) -> Self {
            Self {
                slot: OnceSlot::const_new_with(value, Queued::new(())),
            }
        }
    }
}

impl<T> OnceCell<T> {
    /// Creates a cell with the value in `value`, or an empty cell if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// assert_eq!(OnceCell::new_with(Some(7)).get(), Some(&7));
    /// assert_eq!(OnceCell::<u32>::new_with(None).get(), None);
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        Self::new_with_in(value)
    }
}

impl<T, B: Backend> OnceCell<T, B> {
    /// Creates an empty cell over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OnceCell, backend::Local};
    ///
    /// // For a single thread: no atomics, and not `Sync`.
    /// let cell = OnceCell::<_, Local>::new_in();
    /// cell.set(7).unwrap();
    /// assert_eq!(cell.get(), Some(&7));
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            slot: OnceSlot::new_in(Queued::new(())),
        }
    }

    fn new_with_in(value: Option<T>) -> Self {
        match value {
            Some(value) => Self {
                slot: OnceSlot::new_with_in(value, Queued::new(())),
            },
            None => Self::new_in(),
        }
    }

    /// Returns `true` if the cell has a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// let cell = OnceCell::new();
    /// assert!(!cell.initialized());
    /// cell.set(7).unwrap();
    /// assert!(cell.initialized());
    /// ```
    #[inline]
    pub fn initialized(&self) -> bool {
        self.slot.is_initialized()
    }

    /// Returns the value, or `None` if the cell has none yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// let cell = OnceCell::new();
    /// assert_eq!(cell.get(), None);
    /// cell.set(7).unwrap();
    /// assert_eq!(cell.get(), Some(&7));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.slot.get()
    }

    /// Returns a mutable reference to the value, or `None` if the cell has none.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// let mut cell = OnceCell::new_with(Some(7));
    /// *cell.get_mut().unwrap() += 1;
    /// assert_eq!(cell.get(), Some(&8));
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.slot.get_mut()
    }

    /// Sets the value of an empty cell, and wakes all tasks that wait for it. It does
    /// not wait for an initializer that is running.
    ///
    /// # Errors
    ///
    /// Returns `value` in
    /// [`AlreadyInitializedError`](SetError::AlreadyInitializedError) if the cell has
    /// a value, and in [`InitializingError`](SetError::InitializingError) if an
    /// initializer is running.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OnceCell, SetError};
    ///
    /// let cell = OnceCell::new();
    /// assert_eq!(cell.set(7), Ok(()));
    /// assert_eq!(cell.set(8), Err(SetError::AlreadyInitializedError(8)));
    /// ```
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        let not_initializing = |bits: Bits| (!bits.contains(INITIALIZING)).then_some(Bits::EMPTY);
        match self.slot.set(value, not_initializing) {
            Ok(_) => Ok(()),
            Err((value, bits)) if bits.contains(INITIALIZED) => {
                Err(SetError::AlreadyInitializedError(value))
            }
            Err((value, _)) => Err(SetError::InitializingError(value)),
        }
    }

    /// Returns the value, initializing the cell with the output of `f` if it is
    /// empty. If another initializer is running, the future waits for it. If that one
    /// fails, panics or is dropped, the future may run `f` instead.
    ///
    /// `f` is called at most once, and not at all if another initializer makes the
    /// value. The future that `f` returns is put on the heap, so that this future is
    /// `Unpin` and small. That is one allocation for each initializer that starts.
    ///
    /// An initializer that waits for its own cell deadlocks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the future of `f`, with what it has done so far. The
    /// permit passes to the next caller that is queued for it. If the future is
    /// queued, dropping it gives up its place in the queue. If the permit was granted
    /// but not yet observed, it passes on too.
    ///
    /// # Panics
    ///
    /// The poll panics if `f` or its future does. The permit then passes on as
    /// described above. It also panics if the future has panicked or completed
    /// before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// # reveille_executor::block_on(async {
    /// let cell = OnceCell::new();
    /// let length = cell.get_or_init(|| async { "reveille".len() }).await;
    /// assert_eq!(*length, 8);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn get_or_init<F, Fut>(&self, f: F) -> GetOrInit<'_, F, Fut, T, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        GetOrInit {
            init: Init::new(self, f, CallerLocation::capture()),
        }
    }

    /// Returns the value, initializing the cell with the output of `f` if it is empty
    /// and `f` succeeds. It waits as [`get_or_init`](Self::get_or_init) does. If `f`
    /// fails, its caller gets the error, and the permit passes to the next caller
    /// that is queued for it.
    ///
    /// # Errors
    ///
    /// Returns the error of `f` if `f` was called and failed.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`get_or_init`](Self::get_or_init).
    ///
    /// # Panics
    ///
    /// The same as those of [`get_or_init`](Self::get_or_init).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// # reveille_executor::block_on(async {
    /// let cell = OnceCell::new();
    /// let parsed = cell.get_or_try_init(|| async { "seven".parse::<u32>() }).await;
    /// assert!(parsed.is_err());
    /// let parsed = cell.get_or_try_init(|| async { "7".parse::<u32>() }).await;
    /// assert_eq!(parsed, Ok(&7));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn get_or_try_init<E, F, Fut>(&self, f: F) -> GetOrTryInit<'_, F, Fut, T, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        GetOrTryInit {
            init: Init::new(self, f, CallerLocation::capture()),
        }
    }

    /// Waits until another task has set or initialized the value, and returns it. If
    /// the cell has a value already, the future completes at its first poll, by one
    /// load.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. The value stays, and another wait finds it.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// let cell = OnceCell::new();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| cell.set(7).unwrap());
    ///     assert_eq!(reveille_executor::block_on(async { *cell.wait().await }), 7);
    /// });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait(&self) -> OnceCellWait<'_, T, B> {
        OnceCellWait {
            cell: self,
            location: CallerLocation::capture(),
            waiter: None,
        }
    }

    /// Takes the value out of the cell, if there is one, and leaves the cell empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// let mut cell = OnceCell::new_with(Some(7));
    /// assert_eq!(cell.take(), Some(7));
    /// assert_eq!(cell.take(), None);
    /// assert_eq!(cell.set(8), Ok(()));
    /// ```
    pub fn take(&mut self) -> Option<T> {
        self.slot.take(Queued::new(()))
    }

    /// Consumes the cell and returns the value, or `None` if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// assert_eq!(OnceCell::new_with(Some(7)).into_inner(), Some(7));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Returns the number of tasks that wait for the value, or for the permit to
    /// initialize it.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::OnceCell;
    ///
    /// let cell = OnceCell::<u32>::new();
    /// let mut waits = pin!(cell.wait());
    /// assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert_eq!(cell.waiting(), 1);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.slot.with(|section| section.state.waiting())
    }

    /// Returns the number of waits that have been notified, of the value or with the
    /// permit, and have not been polled since. A future that has the permit and is
    /// not polled any more keeps the cell empty and all others waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::OnceCell;
    ///
    /// let cell = OnceCell::new();
    /// let mut waits = pin!(cell.wait());
    /// assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// cell.set(7).unwrap();
    /// assert_eq!(cell.granted(), 1);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.slot.with(|section| section.state.granted())
    }

    /// Returns the locations in the source of the calls that wait, the oldest first.
    /// A call that has been notified and has not observed it is among them.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// assert!(OnceCell::<u32>::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.slot.with(|section| section.state.locations())
    }
}

impl<T, B: Backend> Initialize for OnceCell<T, B> {
    type Value = T;
    type Beside = ();
    type Backend = B;

    #[inline]
    fn slot(&self) -> &OnceSlot<T, Queued<()>, B> {
        &self.slot
    }
}

/// Returns the value of a cell that has one.
fn value<T, B: Backend>(cell: &OnceCell<T, B>) -> &T {
    cell.get().expect("the cell has its value")
}

/// The future of [`OnceCell::get_or_init`].
///
/// If it is leaked while its initializer runs, it keeps the permit until
/// [`take`](OnceCell::take) is called.
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct GetOrInit<'a, F, Fut, T, B: Backend = DefaultBackend> {
    init: Init<&'a OnceCell<T, B>, F, Fut>,
}

impl<'a, F, Fut, T, B: Backend> Future for GetOrInit<'a, F, Fut, T, B>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = T>,
{
    type Output = &'a T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        let made = self.get_mut().init.poll(cx, "OnceCell::get_or_init");
        made.map(|made| match made {
            Made::Value(cell) => value(cell),
            Made::Output(output, mut permit) => value(permit.set(output)),
        })
    }
}

/// The future of [`OnceCell::get_or_try_init`]. Its behavior when leaked or polled
/// again is that of [`GetOrInit`].
#[must_use = "futures do nothing unless polled"]
pub struct GetOrTryInit<'a, F, Fut, T, B: Backend = DefaultBackend> {
    init: Init<&'a OnceCell<T, B>, F, Fut>,
}

impl<'a, E, F, Fut, T, B: Backend> Future for GetOrTryInit<'a, F, Fut, T, B>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Output = Result<&'a T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let made = self.get_mut().init.poll(cx, "OnceCell::get_or_try_init");
        made.map(|made| match made {
            Made::Value(cell) => Ok(value(cell)),
            Made::Output(Ok(output), mut permit) => Ok(value(permit.set(output))),
            Made::Output(Err(error), permit) => {
                drop(permit);
                Err(error)
            }
        })
    }
}

impl<F, Fut, T, B: Backend> fmt::Debug for GetOrInit<'_, F, Fut, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetOrInit")
            .field("stage", &self.init)
            .finish()
    }
}

impl<F, Fut, T, B: Backend> fmt::Debug for GetOrTryInit<'_, F, Fut, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetOrTryInit")
            .field("stage", &self.init)
            .finish()
    }
}

/// The future of [`OnceCell::wait`].
///
/// If it is polled again after it has completed, it returns the value again.
#[must_use = "futures do nothing unless polled"]
pub struct OnceCellWait<'a, T, B: Backend = DefaultBackend> {
    cell: &'a OnceCell<T, B>,
    location: CallerLocation,
    /// The place in the queue, while the future has one.
    waiter: Option<Waiter>,
}

impl<'a, T, B: Backend> Future for OnceCellWait<'a, T, B> {
    type Output = &'a T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        let this = self.get_mut();
        this.cell
            .slot
            .poll_wait(&mut this.waiter, this.location, cx)
    }
}

impl<T, B: Backend> Drop for OnceCellWait<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        self.cell.slot.cancel_wait(&mut self.waiter);
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new_in()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        Self::new_with(Some(value))
    }
}

/// Clones the value, if there is one. The clone has no waiters.
impl<T: Clone, B: Backend> Clone for OnceCell<T, B> {
    fn clone(&self) -> Self {
        Self::new_with_in(self.get().cloned())
    }
}

impl<T: PartialEq, B: Backend> PartialEq for OnceCell<T, B> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq, B: Backend> Eq for OnceCell<T, B> {}

impl<T: fmt::Debug, B: Backend> fmt::Debug for OnceCell<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("OnceCell");
        f.field("value", &self.get())
            .field("initializing", &self.slot.load().contains(INITIALIZING))
            .field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<T, B: Backend> fmt::Debug for OnceCellWait<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCellWait")
            .field("queued", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

/// The error of [`OnceCell::set`]. It holds the value that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetError<T> {
    /// The cell has a value.
    AlreadyInitializedError(T),
    /// An initializer is running.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// Returns `true` if the cell had a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// let cell = OnceCell::new_with(Some(7));
    /// assert!(cell.set(8).unwrap_err().is_already_init_err());
    /// ```
    pub const fn is_already_init_err(&self) -> bool {
        matches!(self, Self::AlreadyInitializedError(_))
    }

    /// Returns `true` if an initializer was running.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceCell;
    ///
    /// # reveille_executor::block_on(async {
    /// let cell = OnceCell::new();
    /// let made = cell.get_or_init(|| async {
    ///     assert!(cell.set(8).unwrap_err().is_initializing_err());
    ///     7
    /// });
    /// assert_eq!(made.await, &7);
    /// # });
    /// ```
    pub const fn is_initializing_err(&self) -> bool {
        matches!(self, Self::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyInitializedError(_) => {
                "the cell has a value already, which cannot be replaced"
            }
            Self::InitializingError(_) => {
                "an initializer of the cell is running; wait for its value instead"
            }
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}
