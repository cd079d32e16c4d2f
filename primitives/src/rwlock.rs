//! A lock for many readers or one writer that tasks can hold across an `await`.
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
//! The lock is granted in the order of the requests. A reader that comes after a
//! waiting writer waits behind it, so writers do not starve. Readers that are next to
//! each other in the queue read together.
//!
//! A task that reads again while it holds a read guard may therefore deadlock. A
//! writer that comes between the two reads waits for the first, and the second waits
//! for the writer. Read once, and pass the guard on.
//!
//! # Upgrades
//!
//! A read guard cannot become a write guard: two readers that tried would wait for
//! each other. Use [`upgradable_read`](RwLock::upgradable_read) instead. At most one
//! upgradable guard exists at a time, beside other readers. Its
//! [`upgrade`](RwLockUpgradableReadGuard::upgrade) goes before all waiters, and no
//! other task writes in between, so what has been read still holds.
//!
//! # States
//!
//! The lock is a number of permits, one for each reader that there may be. A reader
//! holds one permit, an upgradable reader holds more than half of them, and a writer
//! holds all.
//!
//! Differences from `tokio::sync::RwLock`: reads can be upgradable; a lock for 0
//! readers cannot be created; a blocking call within an executor blocks its thread
//! instead of panicking, since the lock does not know about executors;
//! [`new_in`](RwLock::new_in), [`waiting`](RwLock::waiting) and
//! [`granted`](RwLock::granted) are additions.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

use crate::TryLockError;
use crate::backend::watch::refused;
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
        /// Creates an unlocked lock.
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

        /// Creates an unlocked lock for at most `max_reads` readers at a time. A
        /// reader that comes when there are as many waits.
        ///
        /// # Panics
        ///
        /// Panics if `max_reads` is 0 or above [`MAX_READS`](Self::MAX_READS).
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

        /// Creates an unlocked lock. It is the same as [`new`](Self::new).
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

        /// Creates an unlocked lock for at most `max_reads` readers at a time. It is
        /// the same as [`with_max_readers`](Self::with_max_readers).
        ///
        /// # Panics
        ///
        /// Panics if `max_reads` is 0 or above [`MAX_READS`](Self::MAX_READS).
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

/// Returns the number of permits of a lock for `max_reads` readers.
#[track_caller]
const fn permits<B: Backend>(max_reads: u32) -> usize {
    assert!(
        max_reads > 0 && max_reads <= RwLock::<(), B>::MAX_READS,
        "max_reads must be at least 1 and at most RwLock::MAX_READS"
    );
    max_reads as usize
}

impl<T, B: Backend> RwLock<T, B> {
    /// The largest number of readers at a time: 2^29 - 1, or less if fewer permits
    /// fit into a 32-bit word.
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
    /// Panics if `max_reads` is 0 or above [`MAX_READS`](Self::MAX_READS).
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

    /// Consumes the lock and returns the value.
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
    /// Locks for shared reading, waiting until there is no writer and no earlier
    /// waiter. The guard unlocks when it is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue. If the lock was granted
    /// but not yet observed, it passes to the next waiters.
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
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks for shared reading, waiting as [`read`](Self::read) does. The guard owns
    /// the lock, through the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`read`](Self::read).
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
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks for shared reading, blocking the thread until the lock is granted.
    ///
    /// It is meant for threads outside an executor. Within an executor it blocks a
    /// thread that may be needed to run the task that holds the lock.
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

    /// Locks for shared reading if the lock can be had at once, without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if there is a writer, if tasks wait, or if there are
    /// as many readers as the lock is for.
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
        match Guard::try_acquire(self) {
            Some(guard) => Ok(RwLockReadGuard {
                guard: Guard::narrow(guard),
            }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Locks for shared reading if the lock can be had at once, as
    /// [`try_read`](Self::try_read) does. The guard owns the lock, through the `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_read`](Self::try_read).
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
        match Guard::try_acquire(self) {
            Some(guard) => Ok(OwnedRwLockReadGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Locks for exclusive writing, waiting until there is no other holder and no
    /// earlier waiter. The guard unlocks when it is dropped.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`read`](Self::read).
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
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks for exclusive writing, waiting as [`write`](Self::write) does. The guard
    /// owns the lock, through the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`read`](Self::read).
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
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks for exclusive writing, blocking the thread until the lock is granted.
    ///
    /// It is meant for threads outside an executor. Within an executor it blocks a
    /// thread that may be needed to run the task that holds the lock.
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

    /// Locks for exclusive writing if the lock is free, without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if there is a reader or a writer, or if tasks wait.
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
        match Guard::try_acquire(self) {
            Some(guard) => Ok(RwLockWriteGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Locks for exclusive writing if the lock is free, as
    /// [`try_write`](Self::try_write) does. The guard owns the lock, through the
    /// `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_write`](Self::try_write).
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
        match Guard::try_acquire(self) {
            Some(guard) => Ok(OwnedRwLockWriteGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Locks for reading, with the right to upgrade to writing later. At most one
    /// upgradable guard exists at a time, beside other readers.
    ///
    /// While such a guard is held, the lock admits half as many readers as otherwise:
    /// half of the number that it was created for, which is
    /// [`MAX_READS`](RwLock::MAX_READS) by default.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`read`](Self::read).
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
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks for reading with the right to upgrade, waiting as
    /// [`upgradable_read`](Self::upgradable_read) does. The guard owns the lock,
    /// through the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`read`](Self::read).
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
            acquire: AcquireGuard::new(self),
        }
    }

    /// Locks for reading with the right to upgrade if the lock can be had at once,
    /// without waiting. See [`upgradable_read`](Self::upgradable_read).
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if there is a writer or another upgradable reader, if
    /// tasks wait, or if there are too many readers.
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
        match Guard::try_acquire(self) {
            Some(guard) => Ok(RwLockUpgradableReadGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Locks for reading with the right to upgrade if the lock can be had at once, as
    /// [`try_upgradable_read`](Self::try_upgradable_read) does. The guard owns the
    /// lock, through the `Arc`.
    ///
    /// # Errors
    ///
    /// The same as those of [`try_upgradable_read`](Self::try_upgradable_read).
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
        match Guard::try_acquire(self) {
            Some(guard) => Ok(OwnedRwLockUpgradableReadGuard { guard }),
            None => Err(refused::<B, _>(TryLockError(()))),
        }
    }

    /// Returns a mutable reference to the value. It does not lock, since the
    /// exclusive borrow rules out other holders.
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

    /// Returns the number of tasks that wait for the lock.
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

    /// Returns the number of waits that have been granted the lock and have not been
    /// polled since. If it stays above zero, there are futures that are not polled
    /// any more.
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

    /// Returns the locations in the source of the calls that wait for the lock, the
    /// oldest first. A call that has been granted the lock and has not observed it is
    /// among them.
    ///
    /// Available with the feature `locations`.
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

    /// Returns the locations in the source where the current holders acquired the
    /// lock, the oldest first.
    ///
    /// Available with the feature `locations`.
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

/// Holds a lock for shared reading, and unlocks it when dropped.
///
/// If a guard is leaked, no writer is ever admitted again.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockReadGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RawLock<B>, Shared<T>>,
}

/// Holds a lock in an `Arc` for shared reading, and unlocks it when dropped. `T` is
/// the type of the value, `U` that of the part that the guard gives access to.
///
/// If a guard is leaked, no writer is ever admitted again.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Shared<U>>,
}

/// Holds a lock for exclusive writing, and unlocks it when dropped.
///
/// If a guard is leaked, the lock stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RwLock<T, B>, Exclusive<T>>,
}

/// Holds a lock for exclusive writing and gives access to a part of its value. It
/// unlocks the lock when dropped.
///
/// If a guard is leaked, the lock stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RawLock<B>, Exclusive<T>>,
}

/// Holds a lock in an `Arc` for exclusive writing, and unlocks it when dropped.
///
/// If a guard is leaked, the lock stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockWriteGuard<T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Exclusive<T>>,
}

/// Holds a lock in an `Arc` for exclusive writing and gives access to a part of its
/// value. It unlocks the lock when dropped. `T` is the type of the value, `U` that of
/// the part.
///
/// If a guard is leaked, the lock stays locked.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Exclusive<U>>,
}

/// Holds a lock for reading, with the right to upgrade to writing. It unlocks the
/// lock when dropped.
///
/// If a guard is leaked, no writer and no other upgradable reader is ever admitted
/// again.
#[must_use = "a guard that is not held unlocks at once"]
pub struct RwLockUpgradableReadGuard<'a, T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<&'a RwLock<T, B>, Upgradable<T>>,
}

/// Holds a lock in an `Arc` for reading, with the right to upgrade to writing. It
/// unlocks the lock when dropped.
///
/// If a guard is leaked, no writer and no other upgradable reader is ever admitted
/// again.
#[must_use = "a guard that is not held unlocks at once"]
pub struct OwnedRwLockUpgradableReadGuard<T: ?Sized, B: Backend = DefaultBackend> {
    guard: Guard<Arc<RwLock<T, B>>, Upgradable<T>>,
}

impl<'a, T: ?Sized, B: Backend> RwLockReadGuard<'a, T, B> {
    /// Narrows the guard to a part of the value.
    ///
    /// It is an associated function, so that it does not hide a method of the value.
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

    /// Narrows the guard to a part of the value, if `f` returns one.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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
    /// Narrows the guard to a part of the value, as [`RwLockReadGuard::map`] does.
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

    /// Narrows the guard to a part of the value if `f` returns one, as
    /// [`RwLockReadGuard::try_map`] does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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

    /// Returns the lock that the guard holds.
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

    /// Narrows the guard to a part of the value, if `f` returns one.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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

    /// Downgrades to a read guard of a part of the value, and admits other readers.
    /// No other task writes in between.
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

    /// Downgrades to a read guard of a part of the value if `f` returns one, as
    /// [`downgrade_map`](Self::downgrade_map) does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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

    /// Converts the guard to a mapped guard of the whole value.
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

    /// Downgrades to a read guard, and admits other readers. No other task writes in
    /// between.
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

    /// Downgrades to an upgradable read guard, and admits other readers. No other
    /// task writes in between.
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
    /// Narrows the guard further, as [`RwLockWriteGuard::map`] does.
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

    /// Narrows the guard further if `f` returns a part, as
    /// [`RwLockWriteGuard::try_map`] does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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
    /// Narrows the guard to a part of the value, as [`RwLockWriteGuard::map`] does.
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

    /// Narrows the guard to a part of the value if `f` returns one, as
    /// [`RwLockWriteGuard::try_map`] does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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

    /// Downgrades to a read guard of a part of the value, as
    /// [`RwLockWriteGuard::downgrade_map`] does.
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

    /// Downgrades to a read guard of a part of the value if `f` returns one, as
    /// [`RwLockWriteGuard::try_downgrade_map`] does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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

    /// Converts the guard to a mapped guard of the whole value.
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

    /// Downgrades to a read guard, as [`RwLockWriteGuard::downgrade`] does.
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

    /// Downgrades to an upgradable read guard, as
    /// [`RwLockWriteGuard::downgrade_to_upgradable`] does.
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

    /// Returns the lock that the guard holds.
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
    /// Narrows the guard further, as [`RwLockWriteGuard::map`] does.
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

    /// Narrows the guard further if `f` returns a part, as
    /// [`RwLockWriteGuard::try_map`] does.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if `f` returns `None`.
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

    /// Returns the lock that the guard holds.
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
    /// Upgrades to a write guard, waiting until the other readers have unlocked. The
    /// request goes before all waiters, and no other task writes in between.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future unlocks: the upgradable guard is given up too.
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

    /// Upgrades to a write guard if there are no other readers, without waiting.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if there are other readers.
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
            Err(guard) => Err(refused::<B, _>(Self { guard })),
        }
    }

    /// Downgrades to a read guard, giving up the right to upgrade.
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
    /// Upgrades to a write guard, waiting as [`RwLockUpgradableReadGuard::upgrade`]
    /// does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future unlocks: the upgradable guard is given up too.
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

    /// Upgrades to a write guard if there are no other readers, without waiting.
    ///
    /// # Errors
    ///
    /// Returns the unchanged guard if there are other readers.
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
            Err(guard) => Err(refused::<B, _>(Self { guard })),
        }
    }

    /// Downgrades to a read guard, giving up the right to upgrade.
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

    /// Returns the lock that the guard holds.
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
