//! A map whose values are each computed once, by the first task that needs it.
//!
//! An [`OnceMap`] is a [`OnceCell`](crate::OnceCell) for each key. It keeps the values. To
//! share a computation only while it runs, use a
//! [`singleflight::Group`](crate::singleflight::Group).
//!
//! ```
//! use reveille::OnceMap;
//!
//! # reveille_executor::block_on(async {
//! let lengths = OnceMap::new();
//! let length = lengths.get_or_init("reveille", || async { "reveille".len() }).await;
//! assert_eq!(length, 8);
//! assert_eq!(lengths.get("reveille"), Some(8));
//! # });
//! ```
//!
//! # States
//!
//! A key is in the map while a call computes its value, and then until it is
//! [removed](OnceMap::remove). If all calls of a key fail, panic or are dropped before
//! there is a value, the key leaves the map. No lock is held while a key is hashed,
//! compared or dropped, or while a value is computed, cloned or dropped.

#![forbid(unsafe_code)]

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use crate::backend::{Backend, DefaultBackend};
pub use crate::keyed::{Compute, DefaultHashBuilder, TryCompute};
use crate::keyed::{Keyed, cloned};

/// A map whose values are each computed once. See the [module](self).
///
/// Values are returned as clones. To share a value that is large, put it into an `Arc`.
///
/// # Examples
///
/// ```
/// use reveille::OnceMap;
///
/// # reveille_executor::block_on(async {
/// let map = OnceMap::new();
/// assert_eq!(map.get_or_init("a", || async { 7 }).await, 7);
/// assert_eq!(map.get_or_init("a", || async { 8 }).await, 7);
/// # });
/// ```
pub struct OnceMap<K, V, S = DefaultHashBuilder, B: Backend = DefaultBackend> {
    keyed: Keyed<K, V, S, B>,
}

#[cfg(feature = "std")]
impl<K, V> OnceMap<K, V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::default())
    }
}

impl<K, V, S> OnceMap<K, V, S> {
    /// Creates an empty map that hashes its keys with `hasher`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceMap;
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// let hasher = BuildHasherDefault::<DefaultHasher>::default();
    /// let map = OnceMap::<&str, u32, _>::with_hasher(hasher);
    /// assert!(map.is_empty());
    /// ```
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_hasher_in(hasher)
    }
}

impl<K, V, S, B: Backend> OnceMap<K, V, S, B> {
    /// Creates an empty map that hashes its keys with `hasher`, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{OnceMap, backend::Local};
    /// use std::hash::RandomState;
    ///
    /// // For one thread.
    /// let map = OnceMap::<&str, u32, _, Local>::with_hasher_in(RandomState::new());
    /// assert_eq!(map.len(), 0);
    /// ```
    #[must_use]
    pub fn with_hasher_in(hasher: S) -> Self {
        Self {
            keyed: Keyed::new_in(hasher, true),
        }
    }

    /// Returns the number of keys that have a value, or whose value is being computed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceMap;
    ///
    /// assert_eq!(OnceMap::<&str, u32>::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.keyed.len()
    }

    /// Returns `true` if no key has a value, and none is being computed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceMap;
    ///
    /// assert!(OnceMap::<&str, u32>::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, B: Backend> OnceMap<K, V, S, B> {
    /// Returns the value of `key`, or `None` if it has none yet. It does not wait for a
    /// computation.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceMap;
    ///
    /// let map = OnceMap::<String, u32>::new();
    /// assert_eq!(map.get("reveille"), None);
    /// ```
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: Clone,
    {
        self.keyed.get(key)
    }

    /// Removes `key`, and returns its value if it has one.
    ///
    /// Calls that wait for the value of the key, or compute it, go on and share their
    /// result, which the map does not keep. A call that comes later computes a value anew.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::OnceMap;
    ///
    /// # reveille_executor::block_on(async {
    /// let map = OnceMap::new();
    /// map.get_or_init("a", || async { 7 }).await;
    /// assert_eq!(map.remove("a"), Some(7));
    /// assert_eq!(map.remove("a"), None);
    /// # });
    /// ```
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: Clone,
    {
        self.keyed.remove(key).flatten().map(cloned)
    }

    /// Returns the value of `key`, computing it by `f` if it has none. If another call
    /// computes it, the future waits for that. If that one fails, panics or is dropped, the
    /// future may run `f` instead.
    ///
    /// `f` is called at most once, and not at all if another call makes the value. The
    /// future that `f` returns is put on the heap. A computation that waits for its own
    /// key deadlocks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the future of `f`, with what it has done so far. Another
    /// call that waits for the key then runs its own function. If there is none, the key
    /// leaves the map.
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
    /// use reveille::OnceMap;
    ///
    /// # reveille_executor::block_on(async {
    /// let map = OnceMap::new();
    /// assert_eq!(map.get_or_init("a", || async { 7 }).await, 7);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn get_or_init<F, Fut>(&self, key: K, f: F) -> Compute<'_, K, V, F, Fut, S, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = V>,
    {
        Compute::new(&self.keyed, key, f, "OnceMap::get_or_init")
    }

    /// Returns the value of `key`, computing it by `f` if it has none and `f` succeeds. It
    /// waits as [`get_or_init`](Self::get_or_init) does. If `f` fails, its caller gets the
    /// error, and another call that waits for the key runs its own function.
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
    /// use reveille::OnceMap;
    ///
    /// # reveille_executor::block_on(async {
    /// let map = OnceMap::new();
    /// let parsed = map.get_or_try_init("seven", || async { "seven".parse::<u32>() }).await;
    /// assert!(parsed.is_err());
    /// assert!(map.is_empty());
    /// let parsed = map.get_or_try_init("7", || async { "7".parse::<u32>() }).await;
    /// assert_eq!(parsed, Ok(7));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn get_or_try_init<E, F, Fut>(
        &self,
        key: K,
        f: F,
    ) -> TryCompute<'_, K, V, F, Fut, S, B>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        TryCompute::new(&self.keyed, key, f, "OnceMap::get_or_try_init")
    }
}

#[cfg(feature = "std")]
impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S, B: Backend> fmt::Debug for OnceMap<K, V, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceMap")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
