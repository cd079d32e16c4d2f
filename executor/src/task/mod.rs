//! Tasks: their handles, their numbers, how they are joined and aborted, and how they
//! fail.
//!
//! ```text
//!              ready ──▶ its future is dropped ──▶ Ok(output)
//!   running ── panics ─▶ its future is dropped ──▶ Err, is_panic
//!              aborted, or its executor ends ────▶ Err, is_cancelled
//! ```
//!
//! Names and semantics are those of `tokio::task`, except for the differences below. A
//! task is a [`raw::task`](reveille::raw::task()). Its state, its outcome and the waker
//! of its handle are under one lock, in one allocation.
//!
//! Invariant: the future of a task is dropped before its handle is ready. A panic of the
//! task's own code never reaches the executor that polls it.
//!
//! # Differences from `tokio::task`
//!
//! - If a detached task waits and nothing can wake it any more, its executor drops it. In
//!   tokio it stays until the runtime ends.
//! - The budget is opt-in: only [`consume_budget`], [`coop::cooperative`] and
//!   [`coop::poll_proceed`] consume it. [`unconstrained`] lifts it for these.
//! - [`unconstrained`], [`coop::cooperative`], [`LocalKey::scope`] and the futures of a
//!   [`JoinSet`] have no named type: there is no `Unconstrained`, `Coop` or
//!   `TaskLocalFuture`. Write `impl Future`, or box them.
//! - There is no `LocalSet`. A [`LocalExecutor`](crate::LocalExecutor) takes its place:
//!   it runs tasks that are not `Send` on one thread, and has [`spawn_local`],
//!   [`block_on`](crate::LocalExecutor::block_on) and
//!   [`run_until_idle`](crate::LocalExecutor::run_until_idle). It needs no runtime around
//!   it. To run it beside a pool, give it a thread of its own.
//! - [`Handle::current`](crate::pool::Handle::current) returns the handle of a
//!   [`ThreadPool`](crate::ThreadPool). On an executor of one thread, [`spawn`],
//!   [`spawn_local`] and [`spawn_blocking`] find the executor.
//! - An executor can run inside another. Within a task, `block_on` of a *different*
//!   [`LocalExecutor`](crate::LocalExecutor) blocks the thread of the task, as any
//!   blocking call does. In tokio it panics. The inner future must not wait for a task of
//!   the blocked thread.
//! - [`JoinSet::spawn_on`] takes any [`Executor`](crate::Executor) with the handles of
//!   this module, and [`JoinSet::spawn_local_on`] takes a
//!   [`LocalExecutor`](crate::LocalExecutor). [`JoinSet::insert`] takes the handle of a
//!   task that was spawned anywhere.
//! - A dropped `join_next` leaves no waker in its set.
//! - Tasks can have a [name](JoinHandle::name).

#![forbid(unsafe_code)]

pub mod coop;
mod error;
mod handle;
mod hosted;
mod id;
mod join_set;
mod local_key;
mod meta;
mod spawn;
mod yield_now;

pub use self::coop::{consume_budget, unconstrained};
pub use self::error::JoinError;
pub use self::handle::{AbortHandle, JoinHandle};
pub use self::id::{Id, id, try_id};
pub use self::join_set::JoinSet;
pub use self::local_key::{AccessError, LocalKey};
pub use self::meta::TaskMeta;
pub use self::spawn::{block_in_place, spawn, spawn_blocking, spawn_local};
pub use self::yield_now::{YieldNow, yield_now};

pub(crate) use self::hosted::joinable;
pub(crate) use self::id::{Running, cancel, cancel_refused, describe};
