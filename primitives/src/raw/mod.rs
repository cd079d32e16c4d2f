//! What several primitives share, and what primitives can be built on.
//!
//! | item | |
//! | --- | --- |
//! | [`Handoff`] | one value, from one sender to one receiver: the core of `oneshot` |
//! | [`Gate`] | a count, and the waiters for it to become zero: the core of `Event`, `Latch` and `WaitGroup` |
//! | [`OnceSlot`] | one value, set once and then shared: the core of `OnceCell` and `SetOnce` |
//! | [`task()`] | a future that an executor schedules, with a handle to its output |
//! | [`Witness`] | accesses to memory that a checker watches |
//! | [`Exclusive`] | a value that is `Sync` because it is only borrowed exclusively |
//!
//! The permits, guards and holders of the locks are in this module too, and are
//! private.

#![allow(
    unsafe_code,
    reason = "values and guards are reached by it, and each block says why it is sound"
)]

mod exclusive;
mod gate;
mod guard;
mod handoff;
mod held;
mod holders;
mod initialize;
mod locks;
pub(crate) mod mode;
mod once_slot;
pub(crate) mod permits;
#[cfg(feature = "std")]
mod task;
mod timeout;
mod until;
mod witness;

pub use self::exclusive::Exclusive;
pub use self::gate::{Gate, GateWait, Gated, describe_gate};
pub(crate) use self::guard::{AcquireGuard, Guard, UpgradeGuard};
pub use self::handoff::{Boxed, Handoff, InSlot, RawReceiver, RawSender, Storage};
pub(crate) use self::held::{Guarded, RawLock};
pub(crate) use self::holders::{Holder, Holders};
pub(crate) use self::initialize::{
    AcquirePermit, Found, INITIALIZING, Init, Initialize, Made, Permit, Queued,
};
pub use self::once_slot::{INITIALIZED, OnceSlot, Queues};
pub use self::permits::describe_permits;
pub(crate) use self::permits::{AcquireState, Beside, Permits, Queue, Refused, Request};
#[cfg(feature = "std")]
pub use self::task::{
    Abort, Aborted, Activity, Completion, Failure, Join, Metadata, Name, Outcome, Owned, RunResult,
    Runnable, Schedule, local_task, task,
};
pub use self::timeout::Timeout;
pub use self::until::RunUntilCancelled;
pub use self::witness::Witness;
pub use crate::location::Wait;
