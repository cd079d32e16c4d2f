//! The protocol: one small set of rules that carries every primitive.
//!
//! A waiting primitive has two parties. The *consumer* polls: it looks for a
//! result and, finding none, leaves its waker. The *producer* completes: it
//! stores the result and wakes. Every lost wake-up, stale waker and
//! cancellation race is a gap between two steps of these. Eight rules close
//! the gaps:
//!
//! | rule | | kept by |
//! | --- | --- | --- |
//! | **P1** | *One lock.* What decides readiness and what says whom to wake live under the same lock. | [`StateLock`] holds both: [`Bits`] and a state |
//! | **P2** | *Check and register are one section.* | [`StateLock::poll`] and [`first_poll`](StateLock::first_poll), and for a single waiter the update of a `Bell`, are the only ways to register a waker, and one section each |
//! | **P3** | *Complete, release, wake.* | [`StateLock::with`] wakes what the section took out, after releasing |
//! | **P4** | *No foreign code under the lock.* A waker is never cloned, dropped or woken under it, no value dropped, no closure called. | [`WakerSlot`] gives no waker out; [`WakeList`] cannot be fired inside a section |
//! | **P5** | *The latest waker wins.* | [`Caller::register`] replaces; a `Pending` without it panics in debug builds, or does not compile ([`Registered`]) |
//! | **P6** | *A grant is a result.* A future dropped with an unobserved one hands it on. | each primitive's `Drop`, checked by the verifier |
//! | **P7** | *A wake is a hint.* Spurious, merged and early wakes are legal. | every poll checks again |
//! | **P8** | *Foreign panics do no harm.* | [`WakeList`] wakes the rest while unwinding |
//!
//! The rules are written against an abstract lock, so that they can be run
//! over any: a [`Backend`] says which. `Native` is the default, and nobody who
//! does not look for a backend ever meets one.
//!
//! | backend | bits and state under | for |
//! | --- | --- | --- |
//! | [`Native`] | [`WordLock`] over `std`'s atomics, parking through `parking_lot_core` | threads |
//! | [`Spin`] | [`WordLock`] over `core`'s atomics, spinning | `no_std` |
//! | [`Local`] | two cells, no atomics | one thread |
//! | `Loom` | `loom::sync::Mutex` | every interleaving of sections |
//! | `LoomWord` | [`WordLock`] over loom's atomics | the seam: the real lock, every ordering |
//! | `Shuttle` | `shuttle::sync::Mutex` | large programs, randomly |
//!
//! Verification is layered accordingly: [`WordLock`] is explored once under
//! loom's atomics against the contract of [`RawStateLock`]; everything above
//! it is explored over the abstract lock, whose only scheduling points are
//! whole sections.

#![allow(
    unsafe_code,
    reason = "the one place of the crate that may: every block says why it is sound"
)]

mod backend;
mod bell;
mod bits;
mod blocking;
mod guard;
mod handoff;
mod hooked;
mod local;
mod lock;
#[cfg(any(loom, feature = "loom"))]
mod loom;
#[cfg(feature = "std")]
mod native;
mod observed;
mod permits;
mod settled;
#[cfg(feature = "shuttle")]
mod shuttle;
mod site;
mod spin;
#[cfg(any(loom, feature = "loom", feature = "shuttle"))]
mod stepped;
#[cfg(feature = "std")]
mod task;
mod waiters;
mod wake;
mod within;
mod witness;
mod word;

pub use self::backend::{Backend, BlockingBackend, Cell, DefaultBackend, Park, SharedBackend};
pub use self::bits::Bits;
pub use self::blocking::{Parker, block_on};
pub use self::guard::{
    AcquireGuard, All, Alone, Contains, Core, Guard, Guarded, Half, Hold, Of, One, Pointer, Share,
    Shared, Together, UpgradeGuard,
};
pub use self::handoff::{Boxed, Giver, Handoff, InSlot, Place, Taker};
pub use self::hooked::{Hooks, hooked};
pub use self::local::{Local, LocalLock};
pub use self::lock::{RawStateLock, Section, StateLock};
#[cfg(any(loom, feature = "loom"))]
pub use self::loom::{
    Loom, LoomAtomics, LoomCell, LoomLock, LoomLot, LoomPark, LoomStep, LoomWord,
};
#[cfg(feature = "std")]
pub use self::native::{Native, StdAtomics, StdLot, StdPark};
pub use self::observed::{Observed, ObservedLock, Observer, Passage};
pub use self::permits::{Acquiring, Closed, Permits, Refused, Request, describe_permits};
pub use self::settled::{Queues, SETTLED, Settled};
#[cfg(feature = "shuttle")]
pub use self::shuttle::{Shuttle, ShuttleLock, ShuttlePark};
#[cfg(feature = "locations")]
pub use self::site::Places;
pub use self::site::{Holders, Holding, Site};
pub use self::spin::{Spin, SpinAtomics, SpinLot, SpinPark};
#[cfg(feature = "std")]
pub use self::task::{
    Abort, Description, Failure, Held, Join, Name, Outcome, Ran, Runnable, Schedule, local_task,
    task,
};
pub use self::waiters::{Horizon, Waiter, Waiters};
pub use self::wake::{Caller, Newcomer, Registered, WakeList, WakerSlot};
pub use self::within::Within;
pub use self::witness::Witness;
pub use self::word::{Atomics, Lot, Word, WordLock};
