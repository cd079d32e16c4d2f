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
//! Where the lock is held only for a moment, and never across an `await`, the
//! standard library's is as good and cheaper when threads contend. This one is
//! for holding on while something is awaited: whoever waits for it leaves the
//! thread to others.
//!
//! # Fairness
//!
//! Fairness is a bound: the task that has waited longest is overtaken at most
//! so many times ([`Mutex::DEFAULT_MAX_BARGES`], or as chosen by
//! [`with_max_barges`](Mutex::with_max_barges)) before the lock is handed to it. A bound
//! of 0 is strict first come, first served, as in `tokio::sync`: then the lock
//! is handed over at every release, and each hand-over costs a switch of tasks.
//!
//! # Two waits of one task
//!
//! A task that has two futures in the queue and polls only one of them can wait
//! for itself: the lock may be handed to the future it does not poll. That is so
//! of every fair lock; drop futures that are not polled any more, and leak none:
//! a leaked one keeps its place. [`granted`] tells of it, and so does the `Debug`
//! output.
//!
//! # States
//!
//! The lock is one permit: taken, it is locked.
//! Locking a free mutex is one compare-exchange, and so is unlocking one for
//! which nobody waits.
//!
//! Differences from `tokio::sync::Mutex`: the bound; a blocking call within an
//! executor blocks its thread instead of panicking, since the mutex does not
//! know about executors; [`new_in`], [`waiting`] and [`granted`] are additions.
//!
//! [`new_in`]: Mutex::new_in
//! [`waiting`]: Mutex::waiting
//! [`granted`]: Mutex::granted

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

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
        /// An unlocked mutex.
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

        /// An unlocked mutex, in a constant: the same as [`new`](Self::new).
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

        /// An unlocked mutex of a fairness of one's own: whoever has waited longest
        /// is overtaken at most `max_barges` times; at most 1023 on a 32-bit machine.
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
    /// How often whoever has waited longest is overtaken at most, where no
    /// other bound is chosen.
    ///
    /// The choice is one of measurement (`cargo ratios mutex/t`), for locks that are held
    /// for a moment. Handed over, a lock waits for a task or a thread that has yet to
    /// run, and to wake a thread takes as long as some hundreds of such holds. Tasks pay
    /// for that with bounds of 0 and 10, and threads on processors of their own with 100
    /// still; above this one nothing is gained.
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

    /// Creates an unlocked mutex over any backend. Its fairness is that of
    /// [`with_max_barges`](Mutex::with_max_barges).
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

    /// The value, of a mutex that nobody needs any more.
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
    /// Locks the mutex, waiting until it is free.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped loses its place in the queue. Was the lock handed
    /// to it and it has not seen it, the lock goes on to the next.
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
            acquire: AcquireGuard::exclusive(self),
        }
    }

    /// Locks the mutex, holding on to it by its `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`lock`](Self::lock).
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
            acquire: AcquireGuard::exclusive(self),
        }
    }

    /// Locks the mutex, blocking the thread until it is free.
    ///
    /// For threads outside an executor. Within one it blocks the thread that
    /// may have to run whoever holds the lock.
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

    /// As [`blocking_lock`](Self::blocking_lock), holding on to the mutex by its
    /// `Arc`.
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

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] where it is locked, or where others wait for it whom
    /// the bound protects.
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
        match Guard::try_exclusive(self) {
            Some(guard) => Ok(MutexGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// As [`try_lock`](Self::try_lock), holding on to the mutex by its `Arc`.
    ///
    /// # Errors
    ///
    /// As for [`try_lock`](Self::try_lock).
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
        match Guard::try_exclusive(self) {
            Some(guard) => Ok(OwnedMutexGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// The value, by exclusive borrow, without locking.
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

    /// How many wait for the lock.
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

    /// Whether the lock has been handed to a future that has not been polled
    /// since: a future that nobody polls, if it stays so.
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

    /// Where in the source each who waits began to, the first first; also those
    /// who have been handed the lock and have not seen it.
    ///
    /// With the feature `locations`.
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

    /// Where in the source the lock was taken by whoever holds it.
    ///
    /// With the feature `locations`.
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

/// The lock, held: unlocked when dropped.
///
/// A guard that is leaked keeps the mutex locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct MutexGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    pub(crate) guard: Guard<&'a Mutex<T, B>, Exclusive<T>>,
}

/// The lock of a part of the value, held: unlocked when dropped.
///
/// A guard that is leaked keeps the mutex locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct MappedMutexGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RawLock<B>, Exclusive<T>>,
}

/// The lock of a mutex in an `Arc`, held: unlocked when dropped.
///
/// A guard that is leaked keeps the mutex locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedMutexGuard<T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<Arc<Mutex<T, B>>, Exclusive<T>>,
}

/// The lock of a part of the value of a mutex in an `Arc`, held: unlocked when
/// dropped. `U` is what is locked, `T` what the mutex has.
///
/// A guard that is leaked keeps the mutex locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T, B: Backend = DefaultBackend> {
    guard: Guard<Arc<Mutex<T, B>>, Exclusive<U>>,
}

impl<'a, T: ?Sized, B: Backend> MutexGuard<'a, T, B> {
    /// Narrows the guard to a part of the value.
    ///
    /// An associated function, so that it does not hide a method of the value.
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

    /// Narrows the guard to a part of the value, if there is that part.
    ///
    /// # Errors
    ///
    /// The guard as it was.
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

    /// The mutex that is locked.
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
    /// As [`MutexGuard::map`].
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

    /// As [`MutexGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
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
    /// As [`MutexGuard::map`].
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

    /// As [`MutexGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
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

    /// The mutex that is locked.
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
    /// As [`MutexGuard::map`].
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

    /// As [`MutexGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
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

/// The answer of [`Mutex::try_lock`] where the mutex is not free.
#[derive(Debug, PartialEq, Eq)]
pub struct TryLockError(pub(crate) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is held, or others wait for it: await it instead")
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
