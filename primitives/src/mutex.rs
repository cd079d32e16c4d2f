//! A lock that tasks can hold across an `await`.
//!
//! ```
//! use reveille::Mutex;
//!
//! # reveille_executor::block_on(async {
//! let count = Mutex::new(0);
//! *count.lock().await += 1;
//! assert_eq!(*count.lock().await, 1);
//! # });
//! ```
//!
//! # Which mutex
//!
//! If the lock is held only for a moment and never across an `await`, the mutex of
//! the standard library is as good, and cheaper when threads contend. This one is for
//! a lock that is held while its task awaits. A task that waits for it leaves the
//! thread to other tasks.
//!
//! # Fairness
//!
//! A task that finds the lock free may acquire it before the task at the head of the
//! queue. It *barges*. Fairness is a bound on this: after `max_barges` barges, the
//! lock is handed to the head. The bound is [`Mutex::DEFAULT_MAX_BARGES`], unless
//! [`with_max_barges`](Mutex::with_max_barges) sets another. If it is 0, the lock is
//! granted in the order of the requests, as in `tokio::sync`. Every release then
//! hands the lock over, and each hand-over costs a switch of tasks.
//!
//! # Two waits of one task
//!
//! A task that has two futures in the queue and polls only one of them can deadlock:
//! the lock may be handed to the future that it does not poll. This is true of every
//! fair lock. Drop futures that are no longer polled. A leaked future keeps its place
//! in the queue, and the waiters behind it are not woken. [`waiting`] counts it. After a
//! hand-over to it, [`granted`] returns `true`.
//!
//! # States
//!
//! The lock is one permit, and the mutex is locked while the permit is taken. Locking
//! a free mutex takes one compare-exchange, and so does unlocking a mutex for which
//! no task waits.
//!
//! Differences from `tokio::sync::Mutex`: fairness has a bound; a blocking call
//! within an executor blocks its thread instead of panicking, since the mutex does
//! not know about executors; [`new_in`], [`waiting`] and [`granted`] are additions.
//!
//! [`new_in`]: Mutex::new_in
//! [`waiting`]: Mutex::waiting
//! [`granted`]: Mutex::granted

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

use crate::backend::watch::refused;
use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::guards::{exclusive_guard, guard_future};
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::block_on;
use crate::raw::mode::Exclusive;
use crate::raw::{AcquireGuard, Guard, Guarded, RawLock};

/// A lock that tasks can hold across an `await`. See the [module](self).
pub struct Mutex<T: ?Sized, B: Backend = DefaultBackend> {
    pub(crate) guarded: Guarded<T, B>,
}

impl<T> Mutex<T> {
    const_unless_loom! {
        /// Creates an unlocked mutex.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Mutex;
        ///
        /// let mutex = Mutex::new(7);
        /// assert_eq!(*mutex.try_lock().unwrap(), 7);
        /// ```
        pub const fn new(value: T) -> Self {
            Self::const_new(value)
        }

        /// Creates an unlocked mutex. It is the same as [`new`](Self::new).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Mutex;
        ///
        /// static COUNT: Mutex<u32> = Mutex::const_new(0);
        /// *COUNT.blocking_lock() += 1;
        /// ```
        pub const fn const_new(value: T) -> Self {
            Self::with_max_barges(value, Self::DEFAULT_MAX_BARGES)
        }

        /// Creates an unlocked mutex with a bound on barging.
        ///
        /// Other tasks can acquire the lock before the task at the head of the queue
        /// at most `max_barges` times. Then the lock is handed to that task. On a
        /// 32-bit machine the bound is at most 1023.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Mutex;
        ///
        /// let strict = Mutex::with_max_barges(7, 0);
        /// assert_eq!(*strict.try_lock().unwrap(), 7);
        /// ```
        #[must_use]
        pub const fn with_max_barges(value: T, max_barges: u16) -> Self {
            Self {
                guarded: Guarded::const_new(1, max_barges, value),
            }
        }
    }
}

impl<T, B: Backend> Mutex<T, B> {
    /// The bound on barging if no other is set.
    ///
    /// The number was chosen by measurement (`cargo ratios mutex/t`), for locks that
    /// are held for a moment. A lock that is handed over stays locked until another
    /// task or thread runs, and waking a thread takes as long as some hundreds of
    /// short holds. Tasks pay for this with bounds of 0 and 10, and threads on
    /// processors of their own still do with a bound of 100. A bound above this one
    /// gains nothing.
    pub const DEFAULT_MAX_BARGES: u16 = 1000;

    /// Creates an unlocked mutex over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, backend::Local};
    ///
    /// let mutex = Mutex::<_, Local>::new_in(7); // of one thread
    /// *mutex.try_lock().unwrap() += 1;
    /// assert_eq!(mutex.into_inner(), 8);
    /// ```
    #[must_use]
    pub fn new_in(value: T) -> Self {
        Self::with_max_barges_in(value, Self::DEFAULT_MAX_BARGES)
    }

    /// Creates an unlocked mutex with a bound on barging, as
    /// [`with_max_barges`](Mutex::with_max_barges) does, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, backend::Local};
    ///
    /// let strict = Mutex::<_, Local>::with_max_barges_in(7, 0);
    /// assert_eq!(*strict.try_lock().unwrap(), 7);
    /// ```
    #[must_use]
    pub fn with_max_barges_in(value: T, max_barges: u16) -> Self {
        Self {
            guarded: Guarded::new_in(1, max_barges, value),
        }
    }

    /// Consumes the mutex and returns the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// assert_eq!(Mutex::new(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        self.guarded.into_inner()
    }
}

impl<T: ?Sized, B: Backend> Mutex<T, B> {
    /// Locks the mutex, waiting until it is free. The guard unlocks it when it is
    /// dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue. If the future
    /// was woken for the lock, or granted it, and has not been polled since, the next
    /// waiter is woken for it instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// # reveille_executor::block_on(async {
    /// let mutex = Mutex::new(7);
    /// let guard = mutex.lock().await;
    /// assert_eq!(*guard, 7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn lock(&self) -> Lock<'_, T, B> {
        Lock {
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks the mutex, waiting until it is free. The guard owns the mutex, through
    /// the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let mutex = Arc::new(Mutex::new(7));
    /// let guard = mutex.clone().lock_owned().await;
    /// assert_eq!(*guard, 7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn lock_owned(self: Arc<Self>) -> LockOwned<T, B> {
        LockOwned {
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks the mutex, blocking the thread until it is free.
    ///
    /// It is meant for threads outside an executor. Within an executor it blocks a
    /// thread that may be needed to run the task that holds the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// assert_eq!(*mutex.blocking_lock(), 7);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T, B>
    where
        B: BlockingBackend,
    {
        match self.try_lock() {
            Ok(guard) => guard,
            Err(_) => block_on::<B, _>(self.lock()),
        }
    }

    /// Locks the mutex, blocking the thread until it is free. The guard owns the
    /// mutex, through the `Arc`. See [`blocking_lock`](Self::blocking_lock).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new(7));
    /// assert_eq!(*mutex.blocking_lock_owned(), 7);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T, B>
    where
        B: BlockingBackend,
    {
        self.clone()
            .try_lock_owned()
            .unwrap_or_else(|_| block_on::<B, _>(self.lock_owned()))
    }

    /// Locks the mutex if it is free, without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if the mutex is locked, or if tasks wait for it and
    /// the bound on barging is reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// let guard = mutex.try_lock().unwrap();
    /// assert!(mutex.try_lock().is_err());
    /// # drop(guard);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T, B>, TryLockError> {
        match Guard::try_acquire(self) {
            Some(guard) => Ok(MutexGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Locks the mutex if it is free, without waiting. The guard owns the mutex,
    /// through the `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_lock`](Self::try_lock).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new(7));
    /// let guard = mutex.clone().try_lock_owned().unwrap();
    /// assert!(mutex.try_lock_owned().is_err());
    /// # drop(guard);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T, B>, TryLockError> {
        match Guard::try_acquire(self) {
            Some(guard) => Ok(OwnedMutexGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Returns a mutable reference to the value. It does not lock, since the
    /// exclusive borrow rules out other holders.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// let mut mutex = Mutex::new(7);
    /// *mutex.get_mut() = 8;
    /// assert_eq!(mutex.into_inner(), 8);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.guarded.get_mut()
    }

    /// Returns the number of tasks that wait for the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// assert_eq!(Mutex::new(7).waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.guarded.waiting().0
    }

    /// Returns `true` if the lock has been handed to a future that has not been
    /// polled since. If it stays so, the future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// assert!(!Mutex::new(7).granted());
    /// ```
    #[must_use]
    pub fn granted(&self) -> bool {
        self.guarded.waiting().1 > 0
    }

    /// Returns the locations in the source of the calls that wait for the lock, the
    /// oldest first. A call that has been granted the lock and has not observed it is
    /// among them.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use reveille::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// let guard = mutex.try_lock().unwrap();
    /// let mut lock = Box::pin(mutex.lock());
    /// let line = line!() - 1;
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(lock.as_mut().poll(&mut cx).is_pending());
    /// assert_eq!(mutex.waiters()[0].line(), line);
    /// # drop(guard);
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.guarded.waiters()
    }

    /// Returns the location in the source where the current holder locked the mutex,
    /// or `None` if it is not locked.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// let guard = mutex.try_lock().unwrap();
    /// assert_eq!(mutex.holder().unwrap().line(), line!() - 1);
    /// drop(guard);
    /// assert_eq!(mutex.holder(), None);
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn holder(&self) -> Option<&'static core::panic::Location<'static>> {
        self.guarded.holders().pop()
    }
}

guard_future! {
    /// The future of [`Mutex::lock`].
    Lock['a, T: ?Sized, B: Backend = DefaultBackend]['a, T, B]:
        AcquireGuard<&'a Mutex<T, B>, Exclusive<T>>, "Mutex::lock"
            => MutexGuard<'a, T, B>
}

guard_future! {
    /// The future of [`Mutex::lock_owned`].
    LockOwned[T: ?Sized, B: Backend = DefaultBackend][T, B]:
        AcquireGuard<Arc<Mutex<T, B>>, Exclusive<T>>, "Mutex::lock_owned"
            => OwnedMutexGuard<T, B>
}

/// Holds a mutex locked, and unlocks it when dropped.
///
/// If a guard is leaked, the mutex stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct MutexGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    pub(crate) guard: Guard<&'a Mutex<T, B>, Exclusive<T>>,
}

/// Holds a mutex locked and gives access to a part of its value. It unlocks the mutex
/// when dropped.
///
/// If a guard is leaked, the mutex stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct MappedMutexGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RawLock<B>, Exclusive<T>>,
}

/// Holds a mutex in an `Arc` locked, and unlocks it when dropped.
///
/// If a guard is leaked, the mutex stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedMutexGuard<T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<Arc<Mutex<T, B>>, Exclusive<T>>,
}

/// Holds a mutex in an `Arc` locked and gives access to a part of its value. It
/// unlocks the mutex when dropped. `T` is the type of the value, `U` that of the
/// part.
///
/// If a guard is leaked, the mutex stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T, B: Backend = DefaultBackend> {
    guard: Guard<Arc<Mutex<T, B>>, Exclusive<U>>,
}

impl<'a, T: ?Sized, B: Backend> MutexGuard<'a, T, B> {
    /// Narrows the guard to a part of the value.
    ///
    /// It is an associated function, so that it does not hide a method of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new((1, 2));
    /// let mut second = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.1);
    /// *second = 3;
    /// drop(second);
    /// assert_eq!(mutex.into_inner(), (1, 3));
    /// ```
    pub fn map<U: ?Sized, F>(this: Self, f: F) -> MappedMutexGuard<'a, U, B>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        MappedMutexGuard {
            guard: this.guard.map(f).narrow(),
        }
    }

    /// Narrows the guard to a part of the value, if `f` returns one.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(vec![1]);
    /// let guard = mutex.try_lock().unwrap();
    /// assert!(MutexGuard::try_map(guard, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<U: ?Sized, F>(this: Self, f: F) -> Result<MappedMutexGuard<'a, U, B>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(MappedMutexGuard {
                guard: guard.narrow(),
            }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// Returns the mutex that the guard locks.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(7);
    /// let guard = mutex.try_lock().unwrap();
    /// assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    /// ```
    pub fn mutex(this: &Self) -> &'a Mutex<T, B> {
        this.guard.handle()
    }
}

impl<'a, T: ?Sized, B: Backend> MappedMutexGuard<'a, T, B> {
    /// Narrows the guard further, as [`MutexGuard::map`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{MappedMutexGuard, Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new((1, (2, 3)));
    /// let pair = MutexGuard::map(mutex.try_lock().unwrap(), |value| &mut value.1);
    /// *MappedMutexGuard::map(pair, |pair| &mut pair.0) = 4;
    /// assert_eq!(mutex.into_inner(), (1, (4, 3)));
    /// ```
    pub fn map<U: ?Sized, F>(this: Self, f: F) -> MappedMutexGuard<'a, U, B>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        MappedMutexGuard {
            guard: this.guard.map(f),
        }
    }

    /// Narrows the guard further if `f` returns a part, as [`MutexGuard::try_map`]
    /// does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{MappedMutexGuard, Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new((1, vec![2]));
    /// let values = MutexGuard::map(mutex.try_lock().unwrap(), |value| &mut value.1);
    /// assert!(MappedMutexGuard::try_map(values, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<U: ?Sized, F>(this: Self, f: F) -> Result<MappedMutexGuard<'a, U, B>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(MappedMutexGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }
}

impl<T: ?Sized, B: Backend> OwnedMutexGuard<T, B> {
    /// Narrows the guard to a part of the value, as [`MutexGuard::map`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, OwnedMutexGuard};
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new((1, 2)));
    /// let guard = mutex.clone().try_lock_owned().unwrap();
    /// *OwnedMutexGuard::map(guard, |pair| &mut pair.1) = 3;
    /// assert_eq!(*mutex.try_lock().unwrap(), (1, 3));
    /// ```
    pub fn map<U: ?Sized, F>(this: Self, f: F) -> OwnedMappedMutexGuard<T, U, B>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        OwnedMappedMutexGuard {
            guard: this.guard.map(f),
        }
    }

    /// Narrows the guard to a part of the value if `f` returns one, as
    /// [`MutexGuard::try_map`] does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, OwnedMutexGuard};
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new(vec![1]));
    /// let guard = mutex.try_lock_owned().unwrap();
    /// assert!(OwnedMutexGuard::try_map(guard, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<U: ?Sized, F>(this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, U, B>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(OwnedMappedMutexGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// Returns the mutex that the guard locks.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, OwnedMutexGuard};
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new(7));
    /// let guard = mutex.clone().try_lock_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    /// ```
    pub fn mutex(this: &Self) -> &Arc<Mutex<T, B>> {
        this.guard.handle()
    }
}

impl<T: ?Sized, U: ?Sized, B: Backend> OwnedMappedMutexGuard<T, U, B> {
    /// Narrows the guard further, as [`MutexGuard::map`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new((1, (2, 3))));
    /// let guard = mutex.clone().try_lock_owned().unwrap();
    /// let pair = OwnedMutexGuard::map(guard, |value| &mut value.1);
    /// *OwnedMappedMutexGuard::map(pair, |pair| &mut pair.0) = 4;
    /// assert_eq!(*mutex.try_lock().unwrap(), (1, (4, 3)));
    /// ```
    pub fn map<S: ?Sized, F>(this: Self, f: F) -> OwnedMappedMutexGuard<T, S, B>
    where
        F: FnOnce(&mut U) -> &mut S,
    {
        OwnedMappedMutexGuard {
            guard: this.guard.map(f),
        }
    }

    /// Narrows the guard further if `f` returns a part, as [`MutexGuard::try_map`]
    /// does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
    /// use std::sync::Arc;
    ///
    /// let mutex = Arc::new(Mutex::new((1, vec![2])));
    /// let guard = mutex.try_lock_owned().unwrap();
    /// let values = OwnedMutexGuard::map(guard, |value| &mut value.1);
    /// assert!(OwnedMappedMutexGuard::try_map(values, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<S: ?Sized, F>(this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, S, B>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut S>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(OwnedMappedMutexGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }
}

exclusive_guard!(['a, T: ?Sized, B: Backend] MutexGuard<'a, T, B>, T);
exclusive_guard!(['a, T: ?Sized, B: Backend] MappedMutexGuard<'a, T, B>, T);
exclusive_guard!([T: ?Sized, B: Backend] OwnedMutexGuard<T, B>, T);
exclusive_guard!([T: ?Sized, U: ?Sized, B: Backend] OwnedMappedMutexGuard<T, U, B>, U);

/// The error of [`Mutex::try_lock`] and of the `try_` methods of
/// [`RwLock`](crate::RwLock): the lock could not be acquired at once.
#[derive(Debug, PartialEq, Eq)]
pub struct TryLockError(pub(crate) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is held, or other tasks wait for it; await it instead")
    }
}

impl core::error::Error for TryLockError {}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug, B: Backend> fmt::Debug for Mutex<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, granted) = self.guarded.waiting();
        let mut f = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => f.field("data", &&*guard),
            Err(_) => f.field("data", &format_args!("<locked>")),
        };
        f.field("waiting", &waiting)
            .field("granted", &(granted > 0));
        #[cfg(feature = "locations")]
        f.field("holder", &Locations(self.holder().into_iter().collect()))
            .field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}
