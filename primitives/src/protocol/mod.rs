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
//! | **P2** | *Check and register are one section.* | [`StateLock::poll`] and [`first_poll`](StateLock::first_poll), and for a single waiter the update of a `WakerCell`, are the only ways to register a waker, and one section each |
//! | **P3** | *Complete, release, wake.* | [`StateLock::with`] wakes what the section took out, after releasing |
//! | **P4** | *No foreign code under the lock.* A waker is never cloned, dropped or woken under it, no value dropped, no closure called. | [`WakerSlot`] gives no waker out; [`WakeList`] cannot be fired inside a section |
//! | **P5** | *The latest waker wins.* | [`Registration::register`] replaces; a `Pending` without it panics in debug builds, or does not compile ([`Registered`]) |
//! | **P6** | *A grant is a result.* A future dropped with an unobserved one hands it on. | each primitive's `Drop`, checked by the verifier |
//! | **P7** | *A wake is a hint.* Spurious, merged and early wakes are legal. | every poll checks again |
//! | **P8** | *Foreign panics do no harm.* | [`WakeList`] wakes the rest while unwinding |
//!
//! The rules are written against an abstract lock, so that they can be run
//! over any: a [`Backend`](crate::backend::Backend) says which. `Native` is the default, and nobody who
//! does not look for a backend ever meets one.
//!
//! | backend | bits and state under | for |
//! | --- | --- | --- |
//! | [`Native`](crate::backend::Native) | [`WordLock`](crate::backend::WordLock) over `std`'s atomics | threads |
//! | [`Spin`](crate::backend::Spin) | [`WordLock`](crate::backend::WordLock) over `core`'s atomics, spinning | `no_std` |
//! | [`Local`](crate::backend::Local) | two cells, no atomics | one thread |
//! | `Loom` | `loom::sync::Mutex` | every interleaving of sections |
//! | `LoomWord` | [`WordLock`](crate::backend::WordLock) over loom's atomics | the seam: the real lock, every ordering |
//! | `Shuttle` | `shuttle::sync::Mutex` | large programs, randomly |
//!
//! Verification is layered accordingly: [`WordLock`](crate::backend::WordLock) is explored once under
//! loom's atomics against the contract of [`RawStateLock`](crate::backend::RawStateLock); everything above
//! it is explored over the abstract lock, whose only scheduling points are
//! whole sections.

#![allow(
    unsafe_code,
    reason = "the one place of the crate that may: every block says why it is sound"
)]

mod bits;
mod blocking;
pub(crate) mod lock;
mod waiters;
pub(crate) mod wake;
pub(crate) mod waker_cell;

pub use self::bits::Bits;
pub use self::blocking::{Parker, block_on};
pub use self::lock::{Section, StateLock};
pub use self::waiters::{Generation, Waiter, Waiters};
pub use self::wake::{Registered, Registration, WakeList, WakerSlot};
