//! Tasks: how one is known, joined and aborted, and how it fails.
//!
//! ```text
//!              ready ──▶ its future is dropped ──▶ Ok(output)
//!   running ── panics ─▶ its future is dropped ──▶ Err, is_panic
//!              aborted, or its executor ends ────▶ Err, is_cancelled
//! ```
//!
//! The names and the semantics are those of `tokio::task`. A task is a
//! [`protocol::task`](reveille::protocol::task()): its state, its outcome and who
//! waits for that stand under one lock, in one allocation.
//!
//! Invariant: the future of a task is gone before its handle answers, and no
//! panic of a task's own code reaches the executor that polls it.
//!
//! Differences from `tokio::task`: a detached task that waits, and that nobody can
//! wake any more, is dropped by its executor; there it stays until the runtime
//! ends.

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
pub(crate) use self::id::{Running, describe};
