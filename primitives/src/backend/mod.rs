//! Backends: what primitives stand on.
//!
//! Primitives are generic over a [`Backend`] with a default, so most programs do not
//! name one.
//!
//! | backend | bits and state under | for |
//! | --- | --- | --- |
//! | [`Native`] | [`WordLock`] over the atomics of `std` | threads |
//! | [`Spin`] | [`WordLock`] over the atomics of `core`, spinning | `no_std` |
//! | [`Local`] | two cells, no atomics | one thread |
//! | `Loom` | `loom::sync::Mutex` | every interleaving of sections |
//! | `LoomWord` | [`WordLock`] over the atomics of loom | the real lock, every ordering |
//! | `Shuttle` | `shuttle::sync::Mutex` | large programs, randomly |
//!
//! Verification is layered. [`WordLock`] is explored once, over the atomics of loom,
//! against the contract of [`RawStateLock`]. Everything above it is explored over the
//! abstract lock, whose only scheduling points are whole sections.

#![allow(
    unsafe_code,
    reason = "a backend makes the lock safe, and each block says why it is sound"
)]

mod hooked;
mod local;
#[cfg(any(loom, feature = "loom"))]
mod loom;
#[cfg(feature = "std")]
mod native;
mod observed;
mod shared_cell;
#[cfg(feature = "shuttle")]
mod shuttle;
mod spin;
#[cfg(feature = "std")]
mod std_park;
#[cfg(any(loom, feature = "loom", feature = "shuttle"))]
mod stepped;
mod traits;
pub(crate) mod unparker;
pub(crate) mod watch;
mod watcher;
pub(crate) mod word;

pub use self::hooked::{Hooks, hooked};
pub use self::local::{Local, LocalLock};
#[cfg(any(loom, feature = "loom"))]
pub use self::loom::{Loom, LoomAtomicWord, LoomAtomics, LoomCell, LoomLock, LoomPark, LoomWord};
#[cfg(feature = "std")]
pub use self::native::{Native, StdAtomics};
pub use self::observed::{Observed, ObservedLock, Observer};
pub(crate) use self::shared_cell::SharedCell;
#[cfg(feature = "shuttle")]
pub use self::shuttle::{Shuttle, ShuttleLock, ShuttlePark};
pub use self::spin::{Spin, SpinAtomics, SpinPark};
#[cfg(feature = "std")]
pub use self::std_park::StdPark;
pub use self::traits::{Backend, BlockingBackend, Cell, Park, RawStateLock, SharedBackend, Word};
#[cfg(feature = "model")]
pub use self::watch::watch;
pub use self::watcher::{Passage, WatchedLock, Watcher};
pub use self::word::{Atomics, WordLock};

/// The backend of a primitive that does not name one: [`Native`] with the feature
/// `std`, [`Spin`] without it, and `Loom` under `--cfg loom`.
#[cfg(loom)]
pub type DefaultBackend = Loom;

/// The backend of a primitive that does not name one: [`Native`] with the feature
/// `std`, [`Spin`] without it, and `Loom` under `--cfg loom`.
#[cfg(all(not(loom), feature = "std"))]
pub type DefaultBackend = Native;

/// The backend of a primitive that does not name one: `Native` with the feature
/// `std`, [`Spin`] without it, and `Loom` under `--cfg loom`.
#[cfg(all(not(loom), not(feature = "std")))]
pub type DefaultBackend = Spin;

/// What `std_park` stands on. Its model replaces these by loom's.
#[cfg(feature = "std")]
mod sync {
    pub(super) use core::sync::atomic::AtomicU32;
    pub(super) use std::sync::{Condvar, Mutex};
}

/// Creates a cell of the default backend.
#[cfg(not(loom))]
pub(crate) const fn default_cell<T>(value: T) -> core::cell::UnsafeCell<T> {
    core::cell::UnsafeCell::new(value)
}

/// Creates a cell of the default backend.
#[cfg(loom)]
pub(crate) fn default_cell<T>(value: T) -> LoomCell<T> {
    Cell::new(value)
}
