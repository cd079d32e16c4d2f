//! A shutdown: a request to stop, and a wait until all tasks have stopped.
//!
//! A [`Shutdown`] is a [`CancellationToken`] with a [`WaitGroup`]. Each task holds a
//! [`ShutdownGuard`] for as long as it works. To bound the wait, put it into a
//! [`timeout`](crate::time::timeout).
//!
//! ```
//! use reveille::Shutdown;
//! use reveille::time::{Duration, timeout};
//!
//! let shutdown = Shutdown::new();
//! for _ in 0..3 {
//!     let guard = shutdown.guard();
//!     std::thread::spawn(move || reveille_executor::block_on(guard.requested()));
//! }
//! shutdown.request();
//! let stopped = timeout(Duration::from_secs(60), shutdown.wait());
//! reveille_executor::block_on(stopped).expect("all tasks stop in time");
//! ```
//!
//! # States
//!
//! Invariant: a wait ends at a moment at which the shutdown has been requested and there
//! is no guard. It waits for the request first, and then for the guards.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use crate::backend::{Backend, DefaultBackend};
use crate::raw::{Gate, GateWait};
use crate::{CancellationToken, WaitForCancellationFuture, WaitGroup};

/// Requests that tasks stop, and waits until they have. See the [module](self).
///
/// It is a handle. A clone is another handle of the same shutdown, and no guard.
///
/// # Examples
///
/// ```
/// use reveille::Shutdown;
///
/// # reveille_executor::block_on(async {
/// let shutdown = Shutdown::new();
/// let guard = shutdown.guard();
/// shutdown.request();
/// assert!(guard.is_requested());
/// drop(guard); // The task has stopped.
/// shutdown.wait().await;
/// # });
/// ```
pub struct Shutdown<B: Backend = DefaultBackend> {
    token: CancellationToken<B>,
    guards: Arc<Gate<B>>,
}

impl Shutdown {
    /// Creates a shutdown that has not been requested.
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<B: Backend> Shutdown<B> {
    /// Creates a shutdown that has not been requested, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Shutdown, backend::Local};
    ///
    /// let shutdown = Shutdown::<Local>::new_in(); // for one thread
    /// shutdown.request();
    /// assert!(shutdown.is_requested());
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            token: CancellationToken::new_in(),
            guards: Arc::new(Gate::new_in(0)),
        }
    }

    /// Creates a guard. A [`wait`](Self::wait) does not end before it is dropped.
    ///
    /// Create the guard before the task is spawned. A guard that is created after the
    /// shutdown was requested is waited for only if a wait has not ended before.
    ///
    /// # Panics
    ///
    /// Panics if there are a quarter of [`usize::MAX`] guards.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// let shutdown = Shutdown::new();
    /// let guard = shutdown.guard();
    /// assert_eq!(shutdown.guards(), 1);
    /// # drop(guard);
    /// ```
    #[track_caller]
    pub fn guard(&self) -> ShutdownGuard<B> {
        ShutdownGuard {
            token: self.token.clone(),
            member: WaitGroup::join(&self.guards),
        }
    }

    /// Requests that tasks stop, and wakes those that wait for the request. To request it
    /// again does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// let shutdown = Shutdown::new();
    /// shutdown.request();
    /// assert!(shutdown.is_requested());
    /// ```
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Returns `true` if the shutdown has been requested.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// assert!(!Shutdown::new().is_requested());
    /// ```
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the shutdown is requested.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// # reveille_executor::block_on(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.request();
    /// shutdown.requested().await;
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn requested(&self) -> WaitForCancellationFuture<'_, B> {
        self.token.cancelled()
    }

    /// Waits until the shutdown has been requested and all guards have been dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// # reveille_executor::block_on(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.request();
    /// shutdown.wait().await;
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait(&self) -> ShutdownWait<'_, B> {
        ShutdownWait {
            token: &self.token,
            requested: Some(self.token.cancelled()),
            guards: GateWait::new(&self.guards),
        }
    }

    /// Returns the number of guards.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// assert_eq!(Shutdown::new().guards(), 0);
    /// ```
    #[must_use]
    pub fn guards(&self) -> usize {
        self.guards.count()
    }

    /// Returns the token that the request cancels, for code that takes a token.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// let shutdown = Shutdown::new();
    /// let child = shutdown.token().child_token();
    /// shutdown.request();
    /// assert!(child.is_cancelled());
    /// ```
    pub const fn token(&self) -> &CancellationToken<B> {
        &self.token
    }
}

/// Another handle of the same shutdown. It is no guard.
impl<B: Backend> Clone for Shutdown<B> {
    fn clone(&self) -> Self {
        Self {
            token: self.token.clone(),
            guards: self.guards.clone(),
        }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps the waits of a [`Shutdown`] from ending until it is dropped.
///
/// A clone is another guard, for a task that this task spawns.
#[must_use = "a guard that is not held keeps no wait from ending"]
pub struct ShutdownGuard<B: Backend = DefaultBackend> {
    token: CancellationToken<B>,
    member: WaitGroup<B>,
}

impl<B: Backend> ShutdownGuard<B> {
    /// Returns `true` if the shutdown has been requested.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// assert!(!Shutdown::new().guard().is_requested());
    /// ```
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the shutdown is requested. See [`Shutdown::requested`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// # reveille_executor::block_on(async {
    /// let shutdown = Shutdown::new();
    /// let guard = shutdown.guard();
    /// shutdown.request();
    /// guard.requested().await;
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn requested(&self) -> WaitForCancellationFuture<'_, B> {
        self.token.cancelled()
    }

    /// Returns the token that the request cancels. See [`Shutdown::token`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Shutdown;
    ///
    /// # reveille_executor::block_on(async {
    /// let shutdown = Shutdown::new();
    /// let guard = shutdown.guard();
    /// shutdown.request();
    /// let work = guard.token().run_until_cancelled(std::future::pending::<()>());
    /// assert_eq!(work.await, None);
    /// # });
    /// ```
    pub const fn token(&self) -> &CancellationToken<B> {
        &self.token
    }
}

/// Another guard of the same shutdown.
impl<B: Backend> Clone for ShutdownGuard<B> {
    #[track_caller]
    fn clone(&self) -> Self {
        Self {
            token: self.token.clone(),
            member: self.member.clone(),
        }
    }
}

/// The future of [`Shutdown::wait`].
///
/// If it is polled again after it has completed, it waits for the guards again.
#[must_use = "futures do nothing unless polled"]
pub struct ShutdownWait<'a, B: Backend = DefaultBackend> {
    token: &'a CancellationToken<B>,
    /// The wait for the request, until it has ended.
    requested: Option<WaitForCancellationFuture<'a, B>>,
    guards: GateWait<&'a Gate<B>>,
}

impl<B: Backend> Future for ShutdownWait<'_, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            token,
            requested,
            guards,
        } = self.get_mut();
        if let Some(future) = requested {
            // If it has been requested, the waker is not cloned to wait for that.
            if !token.is_cancelled() {
                ready!(Pin::new(future).poll(cx));
            }
            *requested = None;
        }
        Pin::new(guards).poll(cx)
    }
}

impl<B: Backend> fmt::Debug for Shutdown<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Shutdown");
        f.field("requested", &self.is_requested())
            .field("guards", &self.guards());
        self.guards.describe(&mut f)
    }
}

impl<B: Backend> fmt::Debug for ShutdownGuard<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShutdownGuard")
            .field("requested", &self.is_requested())
            .field("member", &self.member)
            .finish()
    }
}

impl<B: Backend> fmt::Debug for ShutdownWait<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShutdownWait")
            .field("requested", &self.requested.is_none())
            .field("guards", &self.guards)
            .finish()
    }
}
