//! Calls for the same key share one computation while it runs.
//!
//! A [`Group`] keeps no values. The first call for a key computes, calls that come
//! meanwhile get a clone of its result, and the next call after that computes anew. To
//! keep the values, use an [`OnceMap`](crate::OnceMap).
//!
//! ```
//! use reveille::singleflight::Group;
//!
//! # reveille_executor::block_on(async {
//! let group = Group::new();
//! assert_eq!(group.work("reveille", || async { 7 }).await, 7);
//! assert_eq!(group.work("reveille", || async { 8 }).await, 8);
//! # });
//! ```
//!
//! # States
//!
//! A key is in the group from the first call to the end of the computation. If the call
//! that computes fails, panics or is dropped, the next call that waits for the key runs
//! its own function. If there is none, the key leaves the group. No lock is held while a
//! key is hashed, compared or dropped, or while a value is computed, cloned or dropped.

#![forbid(unsafe_code)]

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use crate::backend::{Backend, DefaultBackend};
use crate::keyed::Keyed;
pub use crate::keyed::{Compute, DefaultHashBuilder, TryCompute};

/// Lets calls for the same key share one computation. See the [module](self).
///
/// Values are returned as clones. To share a value that is large, put it into an `Arc`.
///
/// # Examples
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use core::{future::Future, pin::pin};
/// use reveille::{Event, singleflight::Group};
///
/// let (group, loaded) = (Group::new(), Event::new());
/// let load = || async {
///     loaded.wait().await;
///     7
/// };
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut first = pin!(group.work("a", load));
/// let mut second = pin!(group.work("a", || async { unreachable!("the first computes") }));
/// assert!(first.as_mut().poll(&mut cx).is_pending());
/// assert!(second.as_mut().poll(&mut cx).is_pending());
/// loaded.set();
/// assert_eq!(first.poll(&mut cx), Poll::Ready(7));
/// assert_eq!(second.poll(&mut cx), Poll::Ready(7));
/// ```
pub struct Group<K, V, S = DefaultHashBuilder, B: Backend = DefaultBackend> {
    keyed: Keyed<K, V, S, B>,
}

#[cfg(feature = "std")]
impl<K, V> Group<K, V> {
    /// Creates an empty group.
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::default())
    }
}

impl<K, V, S> Group<K, V, S> {
    /// Creates an empty group that hashes its keys with `hasher`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::singleflight::Group;
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// let hasher = BuildHasherDefault::<DefaultHasher>::default();
    /// let group = Group::<&str, u32, _>::with_hasher(hasher);
    /// assert!(group.is_empty());
    /// ```
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_hasher_in(hasher)
    }
}

impl<K, V, S, B: Backend> Group<K, V, S, B> {
    /// Creates an empty group that hashes its keys with `hasher`, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{backend::Local, singleflight::Group};
    /// use std::hash::RandomState;
    ///
    /// // For one thread.
    /// let group = Group::<&str, u32, _, Local>::with_hasher_in(RandomState::new());
    /// assert_eq!(group.len(), 0);
    /// ```
    #[must_use]
    pub fn with_hasher_in(hasher: S) -> Self {
        Self {
            keyed: Keyed::new_in(hasher, false),
        }
    }

    /// Returns the number of keys whose value is being computed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::singleflight::Group;
    ///
    /// assert_eq!(Group::<&str, u32>::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.keyed.len()
    }

    /// Returns `true` if no value is being computed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::singleflight::Group;
    ///
    /// assert!(Group::<&str, u32>::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, B: Backend> Group<K, V, S, B> {
    /// Removes `key`, and returns `true` if its value was being computed. A call that comes
    /// later computes anew, beside the calls that are there, which go on.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::singleflight::Group;
    ///
    /// assert!(!Group::<String, u32>::new().forget("reveille"));
    /// ```
    pub fn forget<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.keyed.remove(key).is_some()
    }

    /// Returns the value of `key`, as another call computes it or, if there is none, by `f`.
    /// If the call that computes fails, panics or is dropped, the future may run `f`
    /// instead.
    ///
    /// `f` is called at most once. The future that it returns is put on the heap. A
    /// computation that waits for its own key deadlocks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the future of `f`, with what it has done so far. Another
    /// call that waits for the key then runs its own function. If there is none, the key
    /// leaves the group.
    ///
    /// # Panics
    ///
    /// The poll panics if `f` or its future does, or if hashing, comparing or cloning does.
    /// Another call that waits for the key then runs its own function. It also panics if
    /// the future has panicked or completed before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::singleflight::Group;
    ///
    /// # reveille_executor::block_on(async {
    /// let group = Group::new();
    /// assert_eq!(group.work("a", || async { 7 }).await, 7);
    /// assert!(group.is_empty());
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn work<F, Fut>(&self, key: K, f: F) -> Compute<'_, K, V, F, Fut, S, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = V>,
    {
        Compute::new(&self.keyed, key, f, "Group::work")
    }

    /// Returns the value of `key` as [`work`](Self::work) does, with a function that can
    /// fail. If `f` fails, its caller gets the error, and another call that waits for the
    /// key runs its own function.
    ///
    /// # Errors
    ///
    /// Returns the error of `f` if `f` was called and failed.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`work`](Self::work).
    ///
    /// # Panics
    ///
    /// The same as those of [`work`](Self::work).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::singleflight::Group;
    ///
    /// # reveille_executor::block_on(async {
    /// let group = Group::new();
    /// let parsed = group.try_work("7", || async { "7".parse::<u32>() }).await;
    /// assert_eq!(parsed, Ok(7));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn try_work<E, F, Fut>(&self, key: K, f: F) -> TryCompute<'_, K, V, F, Fut, S, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        TryCompute::new(&self.keyed, key, f, "Group::try_work")
    }
}

#[cfg(feature = "std")]
impl<K, V> Default for Group<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S, B: Backend> fmt::Debug for Group<K, V, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
