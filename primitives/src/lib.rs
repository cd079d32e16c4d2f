//! Async synchronization primitives, carried by one small protocol that is
//! explored, not trusted.
//!
//! | module | |
//! | --- | --- |
//! | [`oneshot`] | sends one value from one task to another |
//! | [`mpsc`] | sends values from many tasks to one: bounded, unbounded, or as a rendezvous |
//! | [`mpmc`] | sends values from many tasks to many, each of which receives some |
//! | [`broadcast`] | sends values from many tasks to many, each of which receives all |
//! | [`watch`] | publishes one value, of which receivers see the latest |
//! | [`Barrier`] | lets a fixed number of tasks wait for one another, again and again |
//! | [`Phaser`] | lets tasks that come and go wait for one another, phase after phase |
//! | [`Latch`] | lets tasks wait until a count has reached zero |
//! | [`WaitGroup`] | lets tasks wait until all members of a group have left |
//! | [`Event`] | lets tasks wait until it is set, and can be reset |
//! | [`Mutex`] | a lock that can be held across an `await` |
//! | [`Condvar`] | waits for a change of what a mutex protects |
//! | [`RwLock`] | a lock for many readers or one writer |
//! | [`Semaphore`] | permits to acquire and release |
//! | [`Notify`] | wakes tasks at an event, without a value |
//! | [`CancellationToken`] | a request to stop, which children inherit |
//! | [`Shutdown`] | a request to stop, with a wait until all tasks have stopped |
//! | [`OnceCell`] | a value that is initialized once, by the first task that needs it |
//! | [`Lazy`] | a value with its initializer, which the next caller resumes |
//! | [`OnceMap`] | a map whose values are each computed once |
//! | [`singleflight`] | lets calls for the same key share one computation |
//! | [`Pool`] | objects that tasks take and give back |
//! | [`SetOnce`] | a value that is set once, and that tasks wait for: a promise |
//! | [`time`] | sleeps, timeouts, intervals and delay queues, on any clock |
//! | [`protocol`] | what all of these stand on, and what to build a primitive on |
//!
//! Names and semantics are those of `tokio::sync`. tokio has no [`Condvar`]; its names
//! are those of [`std::sync`]. It has no [`Event`], [`Latch`], [`WaitGroup`], [`Phaser`],
//! [`Shutdown`], [`Lazy`], [`OnceMap`], [`singleflight`] and [`Pool`] either. Nothing here needs a particular executor.
//!
//! # Which primitive for what
//!
//! | to | use |
//! | --- | --- |
//! | protect a value | [`Mutex`], or [`RwLock`] if most tasks only read |
//! | wait until a protected value has changed | [`Condvar`] |
//! | bound how many tasks do something at once | [`Semaphore`] |
//! | send values to one task | [`mpsc`], or [`oneshot`] for a single value |
//! | send each value to all of several tasks | [`broadcast`] |
//! | publish a value of which the latest counts | [`watch`] |
//! | wake one task, and keep the wake if none waits | [`Notify`]: an event with auto reset |
//! | wake all tasks, and let later ones pass | [`Event`]: an event with manual reset |
//! | wait until `n` things have happened, once | [`Latch`] |
//! | wait until all that were started have ended | [`WaitGroup`] |
//! | go on together, always as many tasks | [`Barrier`] |
//! | go on together, as tasks come and go | [`Phaser`] |
//! | tell tasks to stop | [`CancellationToken`] |
//! | tell tasks to stop, and wait until they have | [`Shutdown`] |
//! | make a value once, with what the first caller passes | [`OnceCell`] |
//! | make a value once, and go on where a dropped caller was | [`Lazy`] |
//! | make a value for each key once, and keep it | [`OnceMap`] |
//! | make a value for each key once at a time | [`singleflight::Group`] |
//! | wait for a value that is set from outside | [`SetOnce`] |
//! | use connections again, and bound how many there are | [`Pool`] |
//!
//! # Differences
//!
//! To come from tokio, a change of `use` lines is usually enough. Each module or type
//! lists its differences. These matter most:
//!
//! - Counts of permits are `usize`.
//! - A [`Mutex`] can be acquired before the task at the head of the queue, up to a
//!   [bound](mutex#fairness).
//! - No primitive consumes a coop budget. If every `await` of a loop is ready, the loop
//!   itself must yield to other tasks, for example by `reveille_executor::task::coop`.
//! - tokio's paused time has no effect here. Use a [`VirtualClock`](time::VirtualClock)
//!   instead.
//!
//! # Futures and backends
//!
//! Each future is `Unpin` and a few words small. Each primitive is generic over a
//! [backend](backend::Backend), which defaults to threads. `reveille-verify` enumerates
//! every small program over each primitive and explores every interleaving of it.
//!
//! # Features
//!
//! - `std` (default): threads park. Without it the crate is `no_std` with `alloc`, and
//!   the default backend spins.
//! - `futures-core`: implements `FusedFuture` for the futures that are fused, and
//!   `Stream` for the receivers of [`mpsc`] and [`mpmc`], and for [`DelayQueue`](time::DelayQueue).
//! - `locations`: each primitive records where in the source its waiters began to wait
//!   and its holders acquired it, and shows that in `Debug` too.
//! - `model`: each section first asks whether a checker runs the thread, as
//!   `reveille_verify::model` does. It changes no type.
//! - `loom`, `shuttle`: add the backends that loom and shuttle explore. They add types
//!   and change none.
//!
//! Under `RUSTFLAGS="--cfg loom"`, as is usual for crates that loom checks, loom's
//! backend is the default. A crate that is built on this one is then explored by loom
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
pub mod cancellation_token;
pub mod condvar;
pub mod event;
/// The named futures of [`Notify`], as in `tokio::sync::futures`.
pub mod futures {
    pub use crate::notify::{Notified, OwnedNotified};
}
mod guards;
mod keyed;
pub mod latch;
pub mod lazy;
mod location;
pub mod mpmc;
pub mod mpsc;
pub mod mutex;
pub mod notify;
pub mod once_cell;
pub mod once_map;
pub mod oneshot;
pub mod phaser;
pub mod pool;
pub mod protocol;
pub mod raw;
pub mod rwlock;
pub mod semaphore;
pub mod set_once;
pub mod shutdown;
pub mod singleflight;
mod slab;
pub mod time;
pub mod wait_group;
pub mod watch;

pub use self::barrier::{Barrier, BarrierWait, BarrierWaitResult};
pub use self::cancellation_token::{
    CancellationToken, DropGuard, DropGuardRef, WaitForCancellationFuture,
    WaitForCancellationFutureOwned,
};
pub use self::condvar::Condvar;
pub use self::event::{Event, EventWait, OwnedEventWait};
pub use self::latch::{Latch, LatchWait, OwnedLatchWait};
pub use self::lazy::{Lazy, LazyForce};
pub use self::mutex::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};
pub use self::notify::{Notified, Notify, OwnedNotified, WaitUntil};
pub use self::once_cell::{GetOrInit, GetOrTryInit, OnceCell, OnceCellWait, SetError};
pub use self::once_map::OnceMap;
pub use self::phaser::{ArriveAndWait, Party, Phaser, PhaserWait};
pub use self::pool::{Get, GetError, Pool, Pooled};
pub use self::raw::RunUntilCancelled;
pub use self::rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockUpgradableReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockMappedWriteGuard, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use self::semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
pub use self::set_once::{SetOnce, SetOnceError, SetOnceWait};
pub use self::shutdown::{Shutdown, ShutdownGuard, ShutdownWait};
pub use self::wait_group::{WaitGroup, WaitGroupWait};
