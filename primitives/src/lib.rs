//! Async synchronization primitives, carried by one small protocol that is
//! explored, not trusted.
//!
//! | module | |
//! | --- | --- |
//! | [`oneshot`] | one value, from one task to another |
//! | [`mpsc`] | values, from many tasks to one: bounded, unbounded, or a rendezvous |
//! | [`broadcast`] | values, from many tasks to many, each of which gets all |
//! | [`Barrier`] | a place where a number of tasks meet |
//! | [`Mutex`] | a lock to be held across an `await` |
//! | [`Condvar`] | waits for what a mutex protects to change |
//! | [`RwLock`] | the same for many readers or one writer |
//! | [`Semaphore`] | permits to be acquired and given back |
//! | [`Notify`] | an event, without a value |
//! | [`OnceCell`] | a value that is made once, by whoever needs it first |
//! | [`SetOnce`] | a value that is set once, and waited for: a promise |
//! | [`time`] | sleeps, timeouts, intervals and queues of delays, on any clock |
//! | [`protocol`] | what all of them stand on, and what to build one's own on |
//!
//! The names and the semantics are those of `tokio::sync`; those of [`Condvar`],
//! which tokio does not have, are those of [`std::sync`]. Nothing here needs a
//! particular executor.
//!
//! # Differences
//!
//! From tokio, as a rule a `use` line is all that changes. Each module or type lists
//! its differences; these are met first:
//!
//! - Counts of permits are `usize`.
//! - A [`Mutex`] lets others overtake whoever waits, up to a
//!   [bound](mutex#fairness).
//! - No primitive consumes a budget: a loop whose every `await` is ready says itself
//!   where others have their turn, by `reveille_executor::task::coop` for one.
//! - tokio's paused time moves nothing here: a [`VirtualClock`](time::VirtualClock)
//!   does.
//!
//! # Futures and backends
//!
//! Each future is `Unpin` and a few words small, each primitive is generic over
//! a [backend](backend::Backend) that defaults to threads, and each is
//! explored by `reveille-verify`: every interleaving of every small program.
//!
//! # Features
//!
//! - `std` (default): threads that park. Without it the crate is `no_std` with
//!   `alloc`, and the default backend spins.
//! - `futures-core`: `FusedFuture` for the futures that are fused, `Stream` for
//!   the receivers of [`mpsc`] and for [`DelayQueue`](time::DelayQueue).
//! - `locations`: each primitive tells where in the source those who wait began
//!   to, and those who hold it took it; in `Debug` too.
//! - `model`: sections ask first whether a checker runs this thread, as
//!   `reveille_verify::model` does. It changes no type.
//! - `loom`, `shuttle`: the backends that these explore. They only add types.
//!
//! Under `RUSTFLAGS="--cfg loom"`, the convention of the field, loom's backend
//! is the default one, so that a crate built on this one is explored by loom
//! without a change.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(loom, feature = "std"))]
extern crate std;

#[macro_use]
mod macros;

pub mod backend;
pub mod barrier;
pub mod broadcast;
mod buffer;
pub mod condvar;
/// Futures that are named by their type, as in `tokio::sync::futures`.
pub mod futures {
    pub use crate::notify::{Notified, OwnedNotified};
}
mod guards;
pub mod mpsc;
pub mod mutex;
pub mod notify;
pub mod once_cell;
pub mod oneshot;
pub mod protocol;
pub mod raw;
pub mod rwlock;
pub mod semaphore;
pub mod set_once;
mod slab;
pub mod time;

pub use self::barrier::{Barrier, BarrierWait, BarrierWaitResult};
pub use self::condvar::Condvar;
pub use self::mutex::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};
pub use self::notify::{Notified, Notify, OwnedNotified, WaitUntil};
pub use self::once_cell::{GetOrInit, GetOrTryInit, OnceCell, OnceCellWait, SetError};
pub use self::rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockUpgradableReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockMappedWriteGuard, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use self::semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
pub use self::set_once::{SetOnce, SetOnceError, SetOnceWait};
