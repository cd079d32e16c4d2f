//! A condition variable: waits for a change of what a mutex protects.
//!
//! ```
//! use reveille::{Condvar, Mutex};
//!
//! let (jobs, more) = (Mutex::new(Vec::new()), Condvar::new());
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         jobs.blocking_lock().push("wash up");
//!         more.notify_one();
//!     });
//!     reveille_executor::block_on(async {
//!         let guard = jobs.lock().await;
//!         let mut guard = more.wait_while(guard, |jobs| jobs.is_empty()).await;
//!         assert_eq!(guard.pop(), Some("wash up"));
//!     });
//! });
//! ```
//!
//! A wait registers in the queue *before* it unlocks the mutex. A task that changes
//! the value afterwards and notifies finds the wait in the queue. So no notification
//! is lost between the look at the value and the wait, although none is stored when
//! no task waits.
//!
//! # States
//!
//! A condvar is a [`Notify`] that stores no permits.
//!
//! ```text
//!            first poll: queued, then unlocked    notified           locked
//!   holding ─────────────────────────────────▶ waiting ────▶ locking ─────▶ done
//!                                                 │ dropped     │ dropped: passes the
//!                                                 ▼             ▼ notification on
//! ```
//!
//! Invariant: a wait that was notified alone ends with the lock held, or passes the
//! notification on.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::mutex::{Mutex, MutexGuard};
use crate::notify::{Notified, Notify};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::raw::AcquireGuard;
use crate::raw::mode::Exclusive;

/// Lets tasks wait for a change of what a [`Mutex`] protects. See the [module](self).
///
/// The names are those of [`std::sync::Condvar`]. A wait ends only when it is
/// notified. Between the notification and the lock, other tasks may have changed the
/// value, so the value must be checked again. [`wait_while`](Self::wait_while) does
/// so.
pub struct Condvar<B: Backend = DefaultBackend> {
    notify: Notify<B>,
}

impl Condvar {
    const_unless_loom! {
        /// Creates a condvar.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Condvar;
        ///
        /// static CHANGED: Condvar = Condvar::new();
        /// CHANGED.notify_all();
        /// ```
        #[must_use]
        pub const fn new() -> Self {
            Self {
                notify: Notify::const_without_permit(),
            }
        }
    }
}

impl<B: Backend> Condvar<B> {
    /// Creates a condvar over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Condvar, backend::Local};
    ///
    /// Condvar::<Local>::new_in().notify_one(); // of one thread
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            notify: Notify::without_permit_in(),
        }
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again.
    ///
    /// The future does nothing before its first poll: until then the lock is held.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the mutex unlocked. If it was notified by
    /// [`notify_one`](Self::notify_one), the notification passes to the next waiter.
    /// So a `timeout` around a wait loses nothing but the guard.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Condvar, Mutex};
    ///
    /// let (mutex, changed) = (Mutex::new(0), Condvar::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while *mutex.blocking_lock() == 0 {
    ///             changed.notify_one();
    ///         }
    ///     });
    ///     reveille_executor::block_on(async {
    ///         let guard = mutex.lock().await;
    ///         *changed.wait(guard).await += 1;
    ///     });
    /// });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait<'a, T: ?Sized>(&'a self, guard: MutexGuard<'a, T, B>) -> Wait<'a, T, B> {
        self.wait_at(guard, CallerLocation::capture())
    }

    /// Waits as [`wait`](Self::wait) does, with the location of another wait.
    fn wait_at<'a, T: ?Sized>(
        &'a self,
        guard: MutexGuard<'a, T, B>,
        location: CallerLocation,
    ) -> Wait<'a, T, B> {
        Wait {
            condvar: self,
            location,
            stage: Stage::Holding(guard),
        }
    }

    /// Waits while `condition` returns `true`. The future calls it at its first poll
    /// and after each notification, with the lock held.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// The poll panics if `condition` does. The mutex is then unlocked.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Condvar, Mutex};
    ///
    /// let (free, changed) = (Mutex::new(0), Condvar::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         *free.blocking_lock() += 1;
    ///         changed.notify_all();
    ///     });
    ///     reveille_executor::block_on(async {
    ///         let guard = free.lock().await;
    ///         *changed.wait_while(guard, |free| *free == 0).await -= 1;
    ///     });
    /// });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait_while<'a, T: ?Sized, F>(
        &'a self,
        guard: MutexGuard<'a, T, B>,
        condition: F,
    ) -> WaitWhile<'a, T, F, B>
    where
        F: FnMut(&mut T) -> bool,
    {
        WaitWhile {
            condition,
            location: CallerLocation::capture(),
            phase: Phase::Check(self, guard),
        }
    }

    /// Notifies the task that has waited longest. If no task waits, it does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Condvar;
    ///
    /// Condvar::new().notify_one(); // no task waits, so nothing is stored
    /// ```
    pub fn notify_one(&self) {
        self.notify.notify_one();
    }

    /// Notifies all tasks that wait now.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Condvar;
    ///
    /// Condvar::new().notify_all();
    /// ```
    pub fn notify_all(&self) {
        self.notify.notify_waiters();
    }

    /// Returns the number of tasks that wait for a notification.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Condvar;
    ///
    /// assert_eq!(Condvar::new().waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.notify.waiting()
    }

    /// Returns the number of waits that have been notified and have not been polled
    /// since. If it stays above zero, there are futures that are not polled any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Condvar;
    ///
    /// assert_eq!(Condvar::new().granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.notify.granted()
    }

    /// Returns the locations in the source of the calls that wait, the oldest first.
    /// A call that has been notified and has not observed it is among them.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Condvar;
    ///
    /// assert!(Condvar::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.notify.waiters()
    }
}

/// The future of [`Condvar::wait`].
///
/// If it is leaked before its first poll, the mutex stays locked. If it is leaked
/// later, it keeps its place in the queue, and a notification that it is given is
/// lost.
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled: the lock is held until then"]
pub struct Wait<'a, T: ?Sized, B: Backend = DefaultBackend> {
    condvar: &'a Condvar<B>,
    location: CallerLocation,
    stage: Stage<'a, T, B>,
}

enum Stage<'a, T: ?Sized, B: Backend> {
    Holding(MutexGuard<'a, T, B>),
    Waiting(&'a Mutex<T, B>, Notified<'a, B>),
    Locking(AcquireGuard<&'a Mutex<T, B>, Exclusive<T>>, Notified<'a, B>),
    Done,
}

impl<'a, T: ?Sized, B: Backend> Future for Wait<'a, T, B> {
    type Output = MutexGuard<'a, T, B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match &mut this.stage {
                Stage::Holding(_) => {
                    let mut notified = this.condvar.notify.notified_at(this.location);
                    // The wait registers before it unlocks, so that a notification in
                    // between finds it in the queue.
                    let poll = Pin::new(&mut notified).poll(cx);
                    let Stage::Holding(guard) = core::mem::replace(&mut this.stage, Stage::Done)
                    else {
                        unreachable!("the wait holds the lock")
                    };
                    let mutex = *guard.guard.handle();
                    this.stage = Stage::Waiting(mutex, notified);
                    drop(guard);
                    if poll.is_pending() {
                        return Poll::Pending;
                    }
                }
                Stage::Waiting(mutex, notified) => {
                    if Pin::new(notified).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    let lock = AcquireGuard::new(*mutex);
                    let Stage::Waiting(_, notified) =
                        core::mem::replace(&mut this.stage, Stage::Done)
                    else {
                        unreachable!("the wait is queued")
                    };
                    this.stage = Stage::Locking(lock, notified);
                }
                Stage::Locking(lock, _) => {
                    let Poll::Ready(guard) = lock.poll(cx, "Condvar::wait") else {
                        return Poll::Pending;
                    };
                    this.stage = Stage::Done;
                    return Poll::Ready(MutexGuard { guard });
                }
                Stage::Done => panic!("Condvar::wait polled after it was ready"),
            }
        }
    }
}

impl<T: ?Sized, B: Backend> Drop for Wait<'_, T, B> {
    fn drop(&mut self) {
        if let Stage::Locking(_, notified) = &mut self.stage {
            notified.pass_on();
        }
    }
}

/// The future of [`Condvar::wait_while`]. Its behavior when leaked or polled again is
/// that of [`Wait`].
#[must_use = "futures do nothing unless polled: the lock is held until then"]
pub struct WaitWhile<'a, T: ?Sized, F, B: Backend = DefaultBackend> {
    condition: F,
    location: CallerLocation,
    phase: Phase<'a, T, B>,
}

enum Phase<'a, T: ?Sized, B: Backend> {
    Check(&'a Condvar<B>, MutexGuard<'a, T, B>),
    Waiting(Wait<'a, T, B>),
    Done,
}

impl<'a, T: ?Sized, F: FnMut(&mut T) -> bool, B: Backend> Future for WaitWhile<'a, T, F, B> {
    type Output = MutexGuard<'a, T, B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            this.phase = match core::mem::replace(&mut this.phase, Phase::Done) {
                Phase::Check(condvar, mut guard) => {
                    if !(this.condition)(&mut guard) {
                        return Poll::Ready(guard);
                    }
                    Phase::Waiting(condvar.wait_at(guard, this.location))
                }
                Phase::Waiting(mut wait) => match Pin::new(&mut wait).poll(cx) {
                    Poll::Ready(guard) => Phase::Check(wait.condvar, guard),
                    Poll::Pending => {
                        this.phase = Phase::Waiting(wait);
                        return Poll::Pending;
                    }
                },
                Phase::Done => panic!("Condvar::wait_while polled after it was ready"),
            };
        }
    }
}

/// The condition is never pinned, since it is called and not polled.
impl<T: ?Sized, F, B: Backend> Unpin for WaitWhile<'_, T, F, B> {}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> fmt::Debug for Condvar<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Condvar");
        f.field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<T: ?Sized, B: Backend> fmt::Debug for Wait<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Holding(_) => "holding",
            Stage::Waiting(..) => "waiting",
            Stage::Locking(..) => "locking",
            Stage::Done => "done",
        };
        f.debug_struct("Wait").field("stage", &stage).finish()
    }
}

impl<T: ?Sized, F, B: Backend> fmt::Debug for WaitWhile<'_, T, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitWhile").finish_non_exhaustive()
    }
}
