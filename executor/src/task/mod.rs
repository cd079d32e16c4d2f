//! Tasks: how one is known, joined and aborted, and how it fails.
//!
//! ```text
//!              ready ──▶ its future is dropped ──▶ Ok(output)
//!   running ── panics ─▶ its future is dropped ──▶ Err, is_panic
//!              aborted, or its executor ends ────▶ Err, is_cancelled
//! ```
//!
//! As far as they go, the names and the semantics are those of `tokio::task`. A task
//! is a [`raw::task`](reveille::raw::task()): its state, its outcome and who
//! waits for that stand under one lock, in one allocation.
//!
//! Invariant: the future of a task is gone before its handle answers, and no
//! panic of a task's own code reaches the executor that polls it.
//!
//! # Differences from `tokio::task`
//!
//! - A detached task that waits, and that nobody can wake any more, is dropped by its
//!   executor; there it stays until the runtime ends.
//! - The budget is opt-in: only [`consume_budget`] and [`coop::cooperative`] consume
//!   it. So there is no `unconstrained`.
//! - [`spawn_blocking`] is for what a [`ThreadPool`](crate::ThreadPool) runs only. There
//!   is no `block_in_place`.
//! - Nothing answers the current executor, as tokio's `Handle::current` does: [`spawn`]
//!   and [`spawn_local`] find it.
//! - Instead of a `LocalSet` there is [`LocalExecutor`](crate::LocalExecutor). There is
//!   no `task_local!`.
//! - [`JoinSet`] has no `spawn_on` and its like: [`insert`](JoinSet::insert) takes the
//!   handle of a task that was spawned anywhere. It has no `join_next_with_id` either,
//!   and a [`JoinError`] no `id`: a handle tells it.
//! - Tasks can have a [name](JoinHandle::name).

#![forbid(unsafe_code)]

pub mod coop;
mod error;
mod handle;
mod hosted;
mod id;
mod join_set;
mod spawn;
mod yield_now;

pub use self::coop::consume_budget;
pub use self::error::JoinError;
pub use self::handle::{AbortHandle, JoinHandle};
pub use self::id::{Id, id, try_id};
pub use self::join_set::JoinSet;
pub use self::spawn::{spawn, spawn_blocking, spawn_local};
pub use self::yield_now::{YieldNow, yield_now};

pub(crate) use self::hosted::joinable;
pub(crate) use self::id::{Running, cancel, cancel_refused, describe};
