//! What the primitives share: permits, guards, the once slot, the handoff, tasks.

#![allow(
    unsafe_code,
    reason = "the one place of the crate that may: every block says why it is sound"
)]

mod exclusive;
mod guard;
mod handoff;
mod location;
pub(crate) mod mode;
mod once_slot;
pub(crate) mod permits;
#[cfg(feature = "std")]
mod task;
mod within;
mod witness;

pub use self::exclusive::Exclusive;
pub(crate) use self::guard::{AcquireGuard, Guard, Guarded, RawLock, UpgradeGuard};
pub use self::handoff::{Boxed, Handoff, InSlot, RawReceiver, RawSender, Storage};
#[cfg(feature = "locations")]
pub use self::location::Locations;
pub use self::location::{CallerLocation, Holder, Holders};
pub use self::once_slot::{INITIALIZED, OnceSlot, Queues};
pub use self::permits::{
    AcquireState, Beside, Closed, Permits, Queue, Refused, Request, describe_permits,
};
#[cfg(feature = "std")]
pub use self::task::{
    Abort, Aborted, Failure, Join, Metadata, Name, Outcome, Owned, RunResult, Runnable, Schedule,
    local_task, task,
};
pub use self::within::Within;
pub use self::witness::Witness;
