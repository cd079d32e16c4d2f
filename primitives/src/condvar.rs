//! Waits for what a mutex protects to change.
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
//! Whoever waits takes his place in the queue *before* he lets the mutex go.
//! So whoever changes the value afterwards, and notifies, finds him there: a
//! notification is not lost between the look and the wait, although nothing is
//! left where nobody waits.
//!
//! # States
//!
//! A condvar is a [`Notify`] that leaves no permits.
//!
//! ```text
//!            first poll: queued, then unlocked    notified           locked
//!   holding ─────────────────────────────────▶ waiting ────▶ locking ─────▶ done
//!                                                 │             │ dropped: hands the
//!                                                 ▼ dropped     ▼ notification on
//! ```
//!
//! Invariant: whoever has been notified alone ends with the lock, or hands the
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

/// Lets tasks wait for what a [`Mutex`] protects to change. See
/// the [module](self).
///
/// The names are those of [`std::sync::Condvar`]. A wait ends only when it is
/// notified; but between the notification and the lock, others may have changed
/// the value, so look again: [`wait_while`](Self::wait_while) does.
pub struct Condvar<B: Backend = DefaultBackend> {
    notify: Notify<B>,
}

impl Condvar {
    const_unless_loom! {
        /// A condvar, on which nobody waits.
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
    /// A condvar over any backend.
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

    /// Unlocks, waits to be notified, and locks again.
    ///
    /// Nothing happens before the first poll: until then, the lock is held.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped leaves the mutex unlocked; was it notified alone,
    /// the notification goes on to the next who waits. So a `timeout` around a
    /// wait loses nothing but the guard.
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

    /// As [`wait`](Self::wait), as one that began at `location`.
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

    /// Waits for as long as `condition` holds. It is asked now, and again after
    /// each notification, with the lock held.
    ///
    /// # Cancel safety
    ///
    /// As for [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// Where `condition` does; the mutex is unlocked then.
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

    /// Lets the task go on that has waited longest, if any does.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Condvar;
    ///
    /// Condvar::new().notify_one(); // nobody waits: nothing is left
    /// ```
    pub fn notify_one(&self) {
        self.notify.notify_one();
    }

    /// Lets all tasks go on that wait now.
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

    /// How many wait to be notified.
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

    /// How many have been notified and have not been polled since: a number that
    /// stays above zero tells of futures that nobody polls.
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

    /// Where in the source each who waits began to, the first first; also those
    /// who have been notified and have not seen it.
    ///
    /// With the feature `locations`.
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
/// Polling it again after it was ready panics. One that is leaked before its
/// first poll keeps the mutex locked; after it, it keeps its place, and a
/// notification that goes to it is lost.
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
                    // First the place in the queue, then the mutex: whoever
                    // notifies in between finds somebody there.
                    let poll = Pin::new(&mut notified).poll(cx);
                    let Stage::Holding(guard) = core::mem::replace(&mut this.stage, Stage::Done)
                    else {
                        unreachable!("it holds the lock")
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
                    let lock = AcquireGuard::exclusive(*mutex);
                    let Stage::Waiting(_, notified) =
                        core::mem::replace(&mut this.stage, Stage::Done)
                    else {
                        unreachable!("it waits")
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
            notified.hand_on();
        }
    }
}

/// The future of [`Condvar::wait_while`]. What is said of [`Wait`] holds.
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

/// The condition is never pinned: it is called, not polled.
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
