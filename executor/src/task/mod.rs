//! Tasks: how one is known, joined and aborted, and how it fails.
//!
//! ```text
//!              ready ──▶ its future is dropped ──▶ Ok(output)
//!   running ── panics ─▶ its future is dropped ──▶ Err, is_panic
//!              aborted, or its executor ends ────▶ Err, is_cancelled
//! ```
//!
//! As far as they go, the names and the semantics are those of `tokio::task`. A task
//! is a [`raw::task`](reveille::raw::task()): its state, its outcome and the waker that
//! waits for that stand under one lock, in one allocation.
//!
//! Invariant: the future of a task is gone before its handle is ready, and no
//! panic of a task's own code reaches the executor that polls it.
//!
//! # Differences from `tokio::task`
//!
//! - A detached task that waits, and that nothing can wake any more, is dropped by its
//!   executor; with tokio it stays until the runtime ends.
//! - The budget is opt-in: only [`consume_budget`], [`coop::cooperative`] and
//!   [`coop::poll_proceed`] consume it. [`unconstrained`] lifts it for what does.
//! - [`unconstrained`], [`coop::cooperative`], [`LocalKey::scope`] and the futures of a
//!   [`JoinSet`] have no named type: there is no `Unconstrained`, `Coop` or
//!   `TaskLocalFuture`. Write `impl Future`, or box them.
//! - There is no `block_in_place`: a worker that blocks is not replaced. Make the call by
//!   [`spawn_blocking`].
//! - There is no `LocalSet`: a [`LocalExecutor`](crate::LocalExecutor) is one. It runs
//!   tasks that are not `Send` on one thread, has [`spawn_local`],
//!   [`block_on`](crate::LocalExecutor::block_on) and
//!   [`run_until_idle`](crate::LocalExecutor::run_until_idle), and needs no runtime around
//!   it: to give it a thread beside a pool, start that thread.
//! - [`Handle::current`](crate::pool::Handle::current) is that of a
//!   [`ThreadPool`](crate::ThreadPool). On an executor of one thread, [`spawn`],
//!   [`spawn_local`] and [`spawn_blocking`] find the executor.
//! - An executor can run inside another: `block_on` of a *different*
//!   [`LocalExecutor`](crate::LocalExecutor) within a task blocks the task's thread, as any
//!   call does, where tokio panics. What the inner future waits for must not be a task of
//!   the thread that is blocked.
//! - [`JoinSet::spawn_on`] takes any [`Executor`](crate::Executor) with the handles of this
//!   module, [`JoinSet::spawn_local_on`] a [`LocalExecutor`](crate::LocalExecutor).
//!   [`JoinSet::insert`] takes the handle of a task that was spawned anywhere.
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
mod spawn;
mod yield_now;

pub use self::coop::{consume_budget, unconstrained};
pub use self::error::JoinError;
pub use self::handle::{AbortHandle, JoinHandle};
pub use self::id::{Id, id, try_id};
pub use self::join_set::JoinSet;
pub use self::local_key::{AccessError, LocalKey};
pub use self::spawn::{spawn, spawn_blocking, spawn_local};
pub use self::yield_now::{YieldNow, yield_now};

pub(crate) use self::hosted::joinable;
pub(crate) use self::id::{Running, cancel, cancel_refused, describe};
