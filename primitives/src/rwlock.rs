//! A lock for many readers or one writer, to be held across an `await`.
//!
//! ```
//! use reveille::RwLock;
//!
//! # reveille_executor::block_on(async {
//! let config = RwLock::new(vec![1]);
//! {
//!     let (one, two) = (config.read().await, config.read().await);
//!     assert_eq!(*one, *two);
//! }
//! config.write().await.push(2);
//! assert_eq!(config.read().await.len(), 2);
//! # });
//! ```
//!
//! # Fairness
//!
//! First come, first served: a reader that comes after a writer who waits does
//! not get past it, so writers do not starve; readers who come one after the
//! other read together.
//!
//! So a task that reads and reads again before it has let go may wait for
//! itself: a writer that comes between the two waits for the first, and the
//! second waits for the writer. Read once, and hand the guard on.
//!
//! # Reading first, writing perhaps
//!
//! A reader cannot become a writer: two who tried would wait for each other.
//! [`upgradable_read`](RwLock::upgradable_read) is for that. Of its guards there
//! is one at a time, beside other readers; an
//! [`upgrade`](RwLockUpgradableReadGuard::upgrade) of it goes before everybody
//! who waits and lets nobody write in between, so what has been read still holds.
//!
//! # States
//!
//! The lock is a number of permits, as many as there
//! may be readers. A reader has one, an upgradable reader has more than half, a
//! writer has all.
//!
//! Differences from `tokio::sync::RwLock`: upgradable reads; no lock is for no
//! reader; a blocking call within an executor blocks its thread instead of
//! panicking, since the lock does not know about executors;
//! [`new_in`](RwLock::new_in), [`waiting`](RwLock::waiting) and
//! [`granted`](RwLock::granted) are additions.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

use crate::TryLockError;
use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::guards::{exclusive_guard, guard_future, shared_guard};
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::block_on;
use crate::raw::mode::{Exclusive, Shared, Upgradable};
use crate::raw::{AcquireGuard, Guard, Guarded, Permits, RawLock, UpgradeGuard};

/// A lock for many readers or one writer. See the [module](self).
pub struct RwLock<T: ?Sized, B: Backend = DefaultBackend> {
    pub(crate) guarded: Guarded<T, B>,
}

impl<T> RwLock<T> {
    const_unless_loom! {
        /// An unlocked lock.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::RwLock;
        ///
        /// let lock = RwLock::new(7);
        /// assert_eq!(*lock.try_read().unwrap(), 7);
        /// ```
        pub const fn new(value: T) -> Self {
            Self::const_new(value)
        }

        /// An unlocked lock for at most so many readers at a time: whoever comes when
        /// there are as many waits.
        ///
        /// # Panics
        ///
        /// Panics where `max_reads` is 0 or above [`MAX_READS`](Self::MAX_READS).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::RwLock;
        ///
        /// let lock = RwLock::with_max_readers(7, 1);
        /// let reads = lock.try_read().unwrap();
        /// assert!(lock.try_read().is_err());
        /// # drop(reads);
        /// ```
        #[track_caller]
        pub const fn with_max_readers(value: T, max_reads: u32) -> Self {
            Self::const_with_max_readers(value, max_reads)
        }

        /// An unlocked lock, in a constant: the same as [`new`](Self::new).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::RwLock;
        ///
        /// static LEVEL: RwLock<u32> = RwLock::const_new(1);
        /// *LEVEL.blocking_write() = 2;
        /// ```
        pub const fn const_new(value: T) -> Self {
            Self::const_with_max_readers(value, Self::MAX_READS)
        }

        /// An unlocked lock for at most so many readers, in a constant: the same as
        /// [`with_max_readers`](Self::with_max_readers).
        ///
        /// # Panics
        ///
        /// As for [`with_max_readers`](Self::with_max_readers).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::RwLock;
        ///
        /// static LEVEL: RwLock<u32> = RwLock::const_with_max_readers(1, 8);
        /// assert_eq!(*LEVEL.blocking_read(), 1);
        /// ```
        #[track_caller]
        pub const fn const_with_max_readers(value: T, max_reads: u32) -> Self {
            Self {
                guarded: Guarded::const_new(permits::<DefaultBackend>(max_reads), 0, value),
            }
        }
    }
}

/// So many permits are there for so many readers.
#[track_caller]
const fn permits<B: Backend>(max_reads: u32) -> usize {
    assert!(
        max_reads > 0 && max_reads <= RwLock::<(), B>::MAX_READS,
        "a lock is for one reader at least and MAX_READS at most"
    );
    max_reads as usize
}

impl<T, B: Backend> RwLock<T, B> {
    /// How many readers there can be at a time: 2^29 - 1, or as many as fit into
    /// the bits of a 32-bit word.
    pub const MAX_READS: u32 = {
        let fit = Permits::<B>::MAX;
        let most = u32::MAX >> 3;
        if fit < most as usize {
            fit as u32
        } else {
            most
        }
    };

    /// Creates an unlocked lock over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, backend::Local};
    ///
    /// let lock = RwLock::<_, Local>::new_in(7); // of one thread
    /// *lock.try_write().unwrap() += 1;
    /// assert_eq!(lock.into_inner(), 8);
    /// ```
    #[must_use]
    pub fn new_in(value: T) -> Self {
        Self::with_max_readers_in(value, Self::MAX_READS)
    }

    /// Creates an unlocked lock for at most `max_reads` readers, over any backend.
    ///
    /// # Panics
    ///
    /// Panics where `max_reads` is 0 or above [`MAX_READS`](Self::MAX_READS).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, backend::Local};
    ///
    /// let lock = RwLock::<_, Local>::with_max_readers_in(7, 8); // of one thread
    /// *lock.try_write().unwrap() += 1;
    /// assert_eq!(lock.into_inner(), 8);
    /// ```
    #[track_caller]
    #[must_use]
    pub fn with_max_readers_in(value: T, max_reads: u32) -> Self {
        Self {
            guarded: Guarded::new_in(permits::<B>(max_reads), 0, value),
        }
    }

    /// The value, of a lock that nobody needs any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// assert_eq!(RwLock::new(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        self.guarded.into_inner()
    }
}

impl<T: ?Sized, B: Backend> RwLock<T, B> {
    /// Locks for reading, beside other readers, waiting until nobody writes or
    /// has waited longer to.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped loses its place in the queue. Was the lock handed
    /// to it and it has not seen it, the lock goes on to the next.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = RwLock::new(7);
    /// let (one, two) = (lock.read().await, lock.read().await);
    /// assert_eq!(*one + *two, 14);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn read(&self) -> Read<'_, T, B> {
        Read {
            acquire: AcquireGuard::shared(self),
        }
    }

    /// As [`read`](Self::read), holding on to the lock by its `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = Arc::new(RwLock::new(7));
    /// let guard = lock.clone().read_owned().await;
    /// assert_eq!(*guard, 7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn read_owned(self: Arc<Self>) -> ReadOwned<T, B> {
        ReadOwned {
            acquire: AcquireGuard::shared(self),
        }
    }

    /// Locks for reading, blocking the thread until it can.
    ///
    /// For threads outside an executor. Within one it blocks the thread that may
    /// have to run whoever holds the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// assert_eq!(*RwLock::new(7).blocking_read(), 7);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T, B>
    where
        B: BlockingBackend,
    {
        match self.try_read() {
            Ok(guard) => guard,
            Err(_) => block_on::<B, _>(self.read()),
        }
    }

    /// Locks for reading if nobody writes or waits, and no more read than may.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let lock = RwLock::new(7);
    /// let writes = lock.try_write().unwrap();
    /// assert!(lock.try_read().is_err());
    /// # drop(writes);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T, B>, TryLockError> {
        match Guard::try_shared(self) {
            Some(guard) => Ok(RwLockReadGuard {
                guard: guard.narrow(),
            }),
            None => Err(TryLockError(())),
        }
    }

    /// As [`try_read`](Self::try_read), holding on to the lock by its `Arc`.
    ///
    /// # Errors
    ///
    /// As for [`try_read`](Self::try_read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// assert_eq!(*lock.clone().try_read_owned().unwrap(), 7);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T, T, B>, TryLockError> {
        match Guard::try_shared(self) {
            Some(guard) => Ok(OwnedRwLockReadGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// Locks for writing, waiting until nobody else reads or writes.
    ///
    /// # Cancel safety
    ///
    /// As for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = RwLock::new(7);
    /// *lock.write().await += 1;
    /// assert_eq!(lock.into_inner(), 8);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn write(&self) -> Write<'_, T, B> {
        Write {
            acquire: AcquireGuard::exclusive(self),
        }
    }

    /// As [`write`](Self::write), holding on to the lock by its `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = Arc::new(RwLock::new(7));
    /// *lock.clone().write_owned().await += 1;
    /// assert_eq!(*lock.read().await, 8);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn write_owned(self: Arc<Self>) -> WriteOwned<T, B> {
        WriteOwned {
            acquire: AcquireGuard::exclusive(self),
        }
    }

    /// Locks for writing, blocking the thread until it can.
    ///
    /// For threads outside an executor. Within one it blocks the thread that may
    /// have to run whoever holds the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let lock = RwLock::new(7);
    /// *lock.blocking_write() += 1;
    /// assert_eq!(lock.into_inner(), 8);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T, B>
    where
        B: BlockingBackend,
    {
        match self.try_write() {
            Ok(guard) => guard,
            Err(_) => block_on::<B, _>(self.write()),
        }
    }

    /// Locks for writing if nobody reads, writes or waits.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let lock = RwLock::new(7);
    /// let reads = lock.try_read().unwrap();
    /// assert!(lock.try_write().is_err());
    /// # drop(reads);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T, B>, TryLockError> {
        match Guard::try_exclusive(self) {
            Some(guard) => Ok(RwLockWriteGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// As [`try_write`](Self::try_write), holding on to the lock by its `Arc`.
    ///
    /// # Errors
    ///
    /// As for [`try_write`](Self::try_write).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// *lock.clone().try_write_owned().unwrap() += 1;
    /// assert_eq!(*lock.try_read().unwrap(), 8);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T, B>, TryLockError> {
        match Guard::try_exclusive(self) {
            Some(guard) => Ok(OwnedRwLockWriteGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// Locks for reading, with the right to write later: one at a time, beside
    /// other readers.
    ///
    /// Beside such a guard there is room for half of the readers only: of those
    /// that the lock is for, or of [`MAX_READS`](RwLock::MAX_READS).
    ///
    /// # Cancel safety
    ///
    /// As for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockUpgradableReadGuard};
    ///
    /// # reveille_executor::block_on(async {
    /// let names = RwLock::new(vec!["ada"]);
    /// let looks = names.upgradable_read().await;
    /// if !looks.contains(&"grace") {
    ///     RwLockUpgradableReadGuard::upgrade(looks).await.push("grace");
    /// }
    /// assert_eq!(names.read().await.len(), 2);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn upgradable_read(&self) -> UpgradableRead<'_, T, B> {
        UpgradableRead {
            acquire: AcquireGuard::upgradable(self),
        }
    }

    /// As [`upgradable_read`](Self::upgradable_read), holding on to the lock by
    /// its `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`read`](Self::read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockUpgradableReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = Arc::new(RwLock::new(7));
    /// let looks = lock.clone().upgradable_read_owned().await;
    /// *OwnedRwLockUpgradableReadGuard::upgrade(looks).await += 1;
    /// assert_eq!(*lock.read().await, 8);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn upgradable_read_owned(self: Arc<Self>) -> UpgradableReadOwned<T, B> {
        UpgradableReadOwned {
            acquire: AcquireGuard::upgradable(self),
        }
    }

    /// As [`upgradable_read`](Self::upgradable_read), if nobody else does,
    /// writes or waits.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let lock = RwLock::new(7);
    /// let looks = lock.try_upgradable_read().unwrap();
    /// assert!(lock.try_read().is_ok());
    /// assert!(lock.try_upgradable_read().is_err());
    /// # drop(looks);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_upgradable_read(&self) -> Result<RwLockUpgradableReadGuard<'_, T, B>, TryLockError> {
        match Guard::try_upgradable(self) {
            Some(guard) => Ok(RwLockUpgradableReadGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// As [`try_upgradable_read`](Self::try_upgradable_read), holding on to the
    /// lock by its `Arc`.
    ///
    /// # Errors
    ///
    /// As for [`try_upgradable_read`](Self::try_upgradable_read).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// assert_eq!(*lock.try_upgradable_read_owned().unwrap(), 7);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn try_upgradable_read_owned(
        self: Arc<Self>,
    ) -> Result<OwnedRwLockUpgradableReadGuard<T, B>, TryLockError> {
        match Guard::try_upgradable(self) {
            Some(guard) => Ok(OwnedRwLockUpgradableReadGuard { guard }),
            None => Err(TryLockError(())),
        }
    }

    /// The value, by exclusive borrow: no lock is needed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let mut lock = RwLock::new(7);
    /// *lock.get_mut() = 8;
    /// assert_eq!(lock.into_inner(), 8);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.guarded.get_mut()
    }

    /// How many wait for the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// assert_eq!(RwLock::new(7).waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.guarded.waiting().0
    }

    /// How many have been handed the lock and have not been polled since: a
    /// number that stays above zero tells of futures that nobody polls.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// assert_eq!(RwLock::new(7).granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.guarded.waiting().1
    }

    /// Where in the source each who waits began to, the first first; also those
    /// who have been handed the lock and have not seen it.
    ///
    /// With the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// assert!(RwLock::new(7).waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.guarded.waiters()
    }

    /// Where in the source each who holds the lock took it, the first first.
    ///
    /// With the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let lock = RwLock::new(7);
    /// let held = lock.try_read().unwrap();
    /// assert_eq!(lock.holders()[0].line(), line!() - 1);
    /// # drop(held);
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn holders(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.guarded.holders()
    }
}

guard_future! {
    /// The future of [`RwLock::read`].
    Read['a, T: ?Sized, B: Backend = DefaultBackend]['a, T, B]:
        AcquireGuard<&'a RwLock<T, B>, Shared<T>>, "RwLock::read"
            => RwLockReadGuard<'a, T, B>
}

guard_future! {
    /// The future of [`RwLock::read_owned`].
    ReadOwned[T: ?Sized, B: Backend = DefaultBackend][T, B]:
        AcquireGuard<Arc<RwLock<T, B>>, Shared<T>>, "RwLock::read_owned"
            => OwnedRwLockReadGuard<T, T, B>
}

guard_future! {
    /// The future of [`RwLock::write`].
    Write['a, T: ?Sized, B: Backend = DefaultBackend]['a, T, B]:
        AcquireGuard<&'a RwLock<T, B>, Exclusive<T>>, "RwLock::write"
            => RwLockWriteGuard<'a, T, B>
}

guard_future! {
    /// The future of [`RwLock::write_owned`].
    WriteOwned[T: ?Sized, B: Backend = DefaultBackend][T, B]:
        AcquireGuard<Arc<RwLock<T, B>>, Exclusive<T>>, "RwLock::write_owned"
            => OwnedRwLockWriteGuard<T, B>
}

guard_future! {
    /// The future of [`RwLock::upgradable_read`].
    UpgradableRead['a, T: ?Sized, B: Backend = DefaultBackend]['a, T, B]:
        AcquireGuard<&'a RwLock<T, B>, Upgradable<T>>, "RwLock::upgradable_read"
            => RwLockUpgradableReadGuard<'a, T, B>
}

guard_future! {
    /// The future of [`RwLock::upgradable_read_owned`].
    UpgradableReadOwned[T: ?Sized, B: Backend = DefaultBackend][T, B]:
        AcquireGuard<Arc<RwLock<T, B>>, Upgradable<T>>, "RwLock::upgradable_read_owned"
            => OwnedRwLockUpgradableReadGuard<T, B>
}

guard_future! {
    /// The future of [`RwLockUpgradableReadGuard::upgrade`].
    Upgrade['a, T: ?Sized, B: Backend = DefaultBackend]['a, T, B]:
        UpgradeGuard<&'a RwLock<T, B>, T>, "RwLockUpgradableReadGuard::upgrade"
            => RwLockWriteGuard<'a, T, B>
}

guard_future! {
    /// The future of [`OwnedRwLockUpgradableReadGuard::upgrade`].
    UpgradeOwned[T: ?Sized, B: Backend = DefaultBackend][T, B]:
        UpgradeGuard<Arc<RwLock<T, B>>, T>, "OwnedRwLockUpgradableReadGuard::upgrade"
            => OwnedRwLockWriteGuard<T, B>
}

/// The lock, held for reading: unlocked when dropped.
///
/// A guard that is leaked keeps writers out for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockReadGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RawLock<B>, Shared<T>>,
}

/// A lock in an `Arc`, held for reading: unlocked when dropped. `U` is what is
/// read, `T` what the lock has.
///
/// A guard that is leaked keeps writers out for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Shared<U>>,
}

/// The lock, held for writing: unlocked when dropped.
///
/// A guard that is leaked keeps the lock locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RwLock<T, B>, Exclusive<T>>,
}

/// The lock of a part of the value, held for writing: unlocked when dropped.
///
/// A guard that is leaked keeps the lock locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RawLock<B>, Exclusive<T>>,
}

/// A lock in an `Arc`, held for writing: unlocked when dropped.
///
/// A guard that is leaked keeps the lock locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockWriteGuard<T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Exclusive<T>>,
}

/// The lock of a part of the value of a lock in an `Arc`, held for writing:
/// unlocked when dropped. `U` is what is written, `T` what the lock has.
///
/// A guard that is leaked keeps the lock locked for good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Exclusive<U>>,
}

/// The lock, held for reading with the right to write: unlocked when dropped.
///
/// A guard that is leaked keeps writers and other upgradable readers out for
/// good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockUpgradableReadGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RwLock<T, B>, Upgradable<T>>,
}

/// A lock in an `Arc`, held for reading with the right to write: unlocked when
/// dropped.
///
/// A guard that is leaked keeps writers and other upgradable readers out for
/// good.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockUpgradableReadGuard<T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Upgradable<T>>,
}

impl<'a, T: ?Sized, B: Backend> RwLockReadGuard<'a, T, B> {
    /// Narrows the guard to a part of the value.
    ///
    /// An associated function, so that it does not hide a method of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockReadGuard};
    ///
    /// let lock = RwLock::new((1, 2));
    /// let second = RwLockReadGuard::map(lock.try_read().unwrap(), |pair| &pair.1);
    /// assert_eq!(*second, 2);
    /// ```
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U, B>
    where
        F: FnOnce(&T) -> &U,
    {
        RwLockReadGuard {
            guard: this.guard.map(f),
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
    /// use reveille::{RwLock, RwLockReadGuard};
    ///
    /// let lock = RwLock::new(vec![1]);
    /// let guard = lock.try_read().unwrap();
    /// assert!(RwLockReadGuard::try_map(guard, |values| values.get(7)).is_err());
    /// ```
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U, B>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(RwLockReadGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }
}

impl<T: ?Sized, U: ?Sized, B: Backend> OwnedRwLockReadGuard<T, U, B> {
    /// As [`RwLockReadGuard::map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new((1, 2)));
    /// let guard = lock.try_read_owned().unwrap();
    /// assert_eq!(*OwnedRwLockReadGuard::map(guard, |pair| &pair.1), 2);
    /// ```
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, V, B>
    where
        F: FnOnce(&U) -> &V,
    {
        OwnedRwLockReadGuard {
            guard: this.guard.map(f),
        }
    }

    /// As [`RwLockReadGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(vec![1]));
    /// let guard = lock.try_read_owned().unwrap();
    /// assert!(OwnedRwLockReadGuard::try_map(guard, |values| values.get(7)).is_err());
    /// ```
    pub fn try_map<F, V: ?Sized>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, V, B>, Self>
    where
        F: FnOnce(&U) -> Option<&V>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(OwnedRwLockReadGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// The lock that is held.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let guard = lock.clone().try_read_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&guard), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T, B>> {
        this.guard.handle()
    }
}

impl<'a, T: ?Sized, B: Backend> RwLockWriteGuard<'a, T, B> {
    /// Narrows the guard to a part of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new((1, 2));
    /// *RwLockWriteGuard::map(lock.try_write().unwrap(), |pair| &mut pair.1) = 3;
    /// assert_eq!(lock.into_inner(), (1, 3));
    /// ```
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockMappedWriteGuard<'a, U, B>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        RwLockMappedWriteGuard {
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
    /// use reveille::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(vec![1]);
    /// let guard = lock.try_write().unwrap();
    /// assert!(RwLockWriteGuard::try_map(guard, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U, B>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(RwLockMappedWriteGuard {
                guard: guard.narrow(),
            }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// Goes on reading, a part of the value, and lets others read. Nobody writes
    /// in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new((1, 2));
    /// let second = RwLockWriteGuard::downgrade_map(lock.try_write().unwrap(), |pair| &pair.1);
    /// assert_eq!((*second, lock.try_read().is_ok()), (2, true));
    /// ```
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U, B>
    where
        F: FnOnce(&T) -> &U,
    {
        RwLockReadGuard {
            guard: this.guard.downgrade_map(f).narrow(),
        }
    }

    /// As [`downgrade_map`](Self::downgrade_map), if there is that part.
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(vec![1]);
    /// let guard = lock.try_write().unwrap();
    /// assert!(RwLockWriteGuard::try_downgrade_map(guard, |values| values.get(7)).is_err());
    /// ```
    pub fn try_downgrade_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<RwLockReadGuard<'a, U, B>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match this.guard.try_downgrade_map(f) {
            Ok(guard) => Ok(RwLockReadGuard {
                guard: guard.narrow(),
            }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// The guard, as one that was narrowed to the whole.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(7);
    /// *RwLockWriteGuard::into_mapped(lock.try_write().unwrap()) = 8;
    /// assert_eq!(lock.into_inner(), 8);
    /// ```
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T, B> {
        RwLockMappedWriteGuard {
            guard: this.guard.narrow(),
        }
    }

    /// Goes on reading, and lets others read. Nobody writes in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    ///
    /// let lock = RwLock::new(7);
    /// let mut writes = lock.try_write().unwrap();
    /// *writes = 8;
    /// let reads = writes.downgrade();
    /// assert_eq!((*reads, *lock.try_read().unwrap()), (8, 8));
    /// ```
    pub fn downgrade(self) -> RwLockReadGuard<'a, T, B> {
        RwLockReadGuard {
            guard: self.guard.downgrade().narrow(),
        }
    }

    /// Goes on reading with the right to write, and lets others read.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(7);
    /// let looks = RwLockWriteGuard::downgrade_to_upgradable(lock.try_write().unwrap());
    /// assert!(lock.try_read().is_ok() && lock.try_upgradable_read().is_err());
    /// # drop(looks);
    /// ```
    pub fn downgrade_to_upgradable(this: Self) -> RwLockUpgradableReadGuard<'a, T, B> {
        RwLockUpgradableReadGuard {
            guard: this.guard.downgrade_to_upgradable(),
        }
    }
}

impl<'a, T: ?Sized, B: Backend> RwLockMappedWriteGuard<'a, T, B> {
    /// As [`RwLockWriteGuard::map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new((1, (2, 3)));
    /// let pair = RwLockWriteGuard::map(lock.try_write().unwrap(), |value| &mut value.1);
    /// *RwLockMappedWriteGuard::map(pair, |pair| &mut pair.0) = 4;
    /// assert_eq!(lock.into_inner(), (1, (4, 3)));
    /// ```
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockMappedWriteGuard<'a, U, B>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        RwLockMappedWriteGuard {
            guard: this.guard.map(f),
        }
    }

    /// As [`RwLockWriteGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new((1, vec![2]));
    /// let values = RwLockWriteGuard::map(lock.try_write().unwrap(), |value| &mut value.1);
    /// assert!(RwLockMappedWriteGuard::try_map(values, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U, B>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(RwLockMappedWriteGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }
}

impl<T: ?Sized, B: Backend> OwnedRwLockWriteGuard<T, B> {
    /// As [`RwLockWriteGuard::map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new((1, 2)));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// *OwnedRwLockWriteGuard::map(guard, |pair| &mut pair.1) = 3;
    /// assert_eq!(*lock.try_read().unwrap(), (1, 3));
    /// ```
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, U, B>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        OwnedRwLockMappedWriteGuard {
            guard: this.guard.map(f),
        }
    }

    /// As [`RwLockWriteGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(vec![1]));
    /// let guard = lock.try_write_owned().unwrap();
    /// assert!(OwnedRwLockWriteGuard::try_map(guard, |values| values.get_mut(7)).is_err());
    /// ```
    pub fn try_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U, B>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(OwnedRwLockMappedWriteGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// As [`RwLockWriteGuard::downgrade_map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new((1, 2)));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// let second = OwnedRwLockWriteGuard::downgrade_map(guard, |pair| &pair.1);
    /// assert_eq!((*second, lock.try_read().is_ok()), (2, true));
    /// ```
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, U, B>
    where
        F: FnOnce(&T) -> &U,
    {
        OwnedRwLockReadGuard {
            guard: this.guard.downgrade_map(f),
        }
    }

    /// As [`RwLockWriteGuard::try_downgrade_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(vec![1]));
    /// let guard = lock.try_write_owned().unwrap();
    /// assert!(OwnedRwLockWriteGuard::try_downgrade_map(guard, |values| values.get(7)).is_err());
    /// ```
    pub fn try_downgrade_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockReadGuard<T, U, B>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match this.guard.try_downgrade_map(f) {
            Ok(guard) => Ok(OwnedRwLockReadGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// As [`RwLockWriteGuard::into_mapped`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// *OwnedRwLockWriteGuard::into_mapped(guard) = 8;
    /// assert_eq!(*lock.try_read().unwrap(), 8);
    /// ```
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T, T, B> {
        OwnedRwLockMappedWriteGuard { guard: this.guard }
    }

    /// As [`RwLockWriteGuard::downgrade`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::RwLock;
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let reads = lock.clone().try_write_owned().unwrap().downgrade();
    /// assert!(lock.try_read().is_ok());
    /// # drop(reads);
    /// ```
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T, T, B> {
        OwnedRwLockReadGuard {
            guard: self.guard.downgrade(),
        }
    }

    /// As [`RwLockWriteGuard::downgrade_to_upgradable`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// let looks = OwnedRwLockWriteGuard::downgrade_to_upgradable(guard);
    /// assert!(lock.try_read().is_ok() && lock.try_upgradable_read().is_err());
    /// # drop(looks);
    /// ```
    pub fn downgrade_to_upgradable(this: Self) -> OwnedRwLockUpgradableReadGuard<T, B> {
        OwnedRwLockUpgradableReadGuard {
            guard: this.guard.downgrade_to_upgradable(),
        }
    }

    /// The lock that is held.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&guard), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T, B>> {
        this.guard.handle()
    }
}

impl<T: ?Sized, U: ?Sized, B: Backend> OwnedRwLockMappedWriteGuard<T, U, B> {
    /// As [`RwLockWriteGuard::map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new((1, (2, 3))));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// let pair = OwnedRwLockWriteGuard::map(guard, |value| &mut value.1);
    /// *OwnedRwLockMappedWriteGuard::map(pair, |pair| &mut pair.0) = 4;
    /// assert_eq!(*lock.try_read().unwrap(), (1, (4, 3)));
    /// ```
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, V, B>
    where
        F: FnOnce(&mut U) -> &mut V,
    {
        OwnedRwLockMappedWriteGuard {
            guard: this.guard.map(f),
        }
    }

    /// As [`RwLockWriteGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new((1, vec![2])));
    /// let guard = lock.try_write_owned().unwrap();
    /// let values = OwnedRwLockWriteGuard::map(guard, |value| &mut value.1);
    /// let none = OwnedRwLockMappedWriteGuard::try_map(values, |values| values.get_mut(7));
    /// assert!(none.is_err());
    /// ```
    pub fn try_map<F, V: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V, B>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        match this.guard.try_map(f) {
            Ok(guard) => Ok(OwnedRwLockMappedWriteGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// The lock that is held.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new((1, 2)));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// let second = OwnedRwLockWriteGuard::map(guard, |pair| &mut pair.1);
    /// assert!(Arc::ptr_eq(OwnedRwLockMappedWriteGuard::rwlock(&second), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T, B>> {
        this.guard.handle()
    }
}

impl<'a, T: ?Sized, B: Backend> RwLockUpgradableReadGuard<'a, T, B> {
    /// Goes on to write as soon as the other readers have gone. It waits before
    /// everybody else, and nobody writes in between.
    ///
    /// # Cancel safety
    ///
    /// An upgrade that is dropped unlocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockUpgradableReadGuard};
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = RwLock::new(7);
    /// let looks = lock.upgradable_read().await;
    /// *RwLockUpgradableReadGuard::upgrade(looks).await += 1;
    /// assert_eq!(lock.into_inner(), 8);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn upgrade(this: Self) -> Upgrade<'a, T, B> {
        Upgrade {
            acquire: UpgradeGuard::new(this.guard),
        }
    }

    /// Goes on to write if there are no other readers.
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockUpgradableReadGuard};
    ///
    /// let lock = RwLock::new(7);
    /// let looks = lock.try_upgradable_read().unwrap();
    /// let reads = lock.try_read().unwrap();
    /// assert!(RwLockUpgradableReadGuard::try_upgrade(looks).is_err());
    /// # drop(reads);
    /// ```
    pub fn try_upgrade(this: Self) -> Result<RwLockWriteGuard<'a, T, B>, Self> {
        match this.guard.try_upgrade() {
            Ok(guard) => Ok(RwLockWriteGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// Gives up the right to write, and goes on reading.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{RwLock, RwLockUpgradableReadGuard};
    ///
    /// let lock = RwLock::new(7);
    /// let reads = RwLockUpgradableReadGuard::downgrade(lock.try_upgradable_read().unwrap());
    /// assert!(lock.try_upgradable_read().is_ok());
    /// # drop(reads);
    /// ```
    pub fn downgrade(this: Self) -> RwLockReadGuard<'a, T, B> {
        RwLockReadGuard {
            guard: this.guard.downgrade().narrow(),
        }
    }
}

impl<T: ?Sized, B: Backend> OwnedRwLockUpgradableReadGuard<T, B> {
    /// As [`RwLockUpgradableReadGuard::upgrade`].
    ///
    /// # Cancel safety
    ///
    /// An upgrade that is dropped unlocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockUpgradableReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let lock = Arc::new(RwLock::new(7));
    /// let looks = lock.clone().upgradable_read_owned().await;
    /// *OwnedRwLockUpgradableReadGuard::upgrade(looks).await += 1;
    /// assert_eq!(*lock.read().await, 8);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn upgrade(this: Self) -> UpgradeOwned<T, B> {
        UpgradeOwned {
            acquire: UpgradeGuard::new(this.guard),
        }
    }

    /// As [`RwLockUpgradableReadGuard::try_upgrade`].
    ///
    /// # Errors
    ///
    /// The guard as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockUpgradableReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let looks = lock.clone().try_upgradable_read_owned().unwrap();
    /// let reads = lock.try_read().unwrap();
    /// assert!(OwnedRwLockUpgradableReadGuard::try_upgrade(looks).is_err());
    /// # drop(reads);
    /// ```
    pub fn try_upgrade(this: Self) -> Result<OwnedRwLockWriteGuard<T, B>, Self> {
        match this.guard.try_upgrade() {
            Ok(guard) => Ok(OwnedRwLockWriteGuard { guard }),
            Err(guard) => Err(Self { guard }),
        }
    }

    /// As [`RwLockUpgradableReadGuard::downgrade`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockUpgradableReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let looks = lock.clone().try_upgradable_read_owned().unwrap();
    /// let reads = OwnedRwLockUpgradableReadGuard::downgrade(looks);
    /// assert!(lock.try_upgradable_read().is_ok());
    /// # drop(reads);
    /// ```
    pub fn downgrade(this: Self) -> OwnedRwLockReadGuard<T, T, B> {
        OwnedRwLockReadGuard {
            guard: this.guard.downgrade(),
        }
    }

    /// The lock that is held.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OwnedRwLockUpgradableReadGuard, RwLock};
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(RwLock::new(7));
    /// let looks = lock.clone().try_upgradable_read_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedRwLockUpgradableReadGuard::rwlock(&looks), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T, B>> {
        this.guard.handle()
    }
}

shared_guard!(['a, T: ?Sized, B: Backend] RwLockReadGuard<'a, T, B>, T);
shared_guard!([T: ?Sized, U: ?Sized, B: Backend] OwnedRwLockReadGuard<T, U, B>, U);
shared_guard!(['a, T: ?Sized, B: Backend] RwLockUpgradableReadGuard<'a, T, B>, T);
shared_guard!([T: ?Sized, B: Backend] OwnedRwLockUpgradableReadGuard<T, B>, T);
exclusive_guard!(['a, T: ?Sized, B: Backend] RwLockWriteGuard<'a, T, B>, T);
exclusive_guard!(['a, T: ?Sized, B: Backend] RwLockMappedWriteGuard<'a, T, B>, T);
exclusive_guard!([T: ?Sized, B: Backend] OwnedRwLockWriteGuard<T, B>, T);
exclusive_guard!([T: ?Sized, U: ?Sized, B: Backend] OwnedRwLockMappedWriteGuard<T, U, B>, U);

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug, B: Backend> fmt::Debug for RwLock<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, granted) = self.guarded.waiting();
        let mut f = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => f.field("data", &&*guard),
            Err(_) => f.field("data", &format_args!("<locked>")),
        };
        f.field("waiting", &waiting).field("granted", &granted);
        #[cfg(feature = "locations")]
        f.field("holders", &Locations(self.holders()))
            .field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}
