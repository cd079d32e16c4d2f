//! The protocol: one small set of rules that carries every primitive.
//!
//! A waiting primitive has two parties. The *consumer* polls: it looks for a result and,
//! if there is none, leaves its waker. The *producer* completes: it stores the result and
//! wakes. Every lost wake-up, stale waker and cancellation race is a gap between two steps
//! of these. Eight rules close the gaps:
//!
//! | rule | | kept by |
//! | --- | --- | --- |
//! | **P1** | *One lock.* What decides readiness and the wakers of the waiters are under the same lock. | [`StateLock`] holds both: [`Bits`] and a state |
//! | **P2** | *Check and register are one section.* | [`StateLock::poll`] and [`first_poll`](StateLock::first_poll) are the only ways to register in a [`WakerSlot`]; for a single waiter, one update of a `WakerCell` |
//! | **P3** | *Complete, release, wake.* | [`StateLock::with`] releases, then wakes what the section took out |
//! | **P4** | *No foreign code under the lock.* A waker is never cloned, dropped or woken under it; no value is dropped, no closure called. | [`WakerSlot`] gives no waker out; a section cannot fire a [`WakeList`] |
//! | **P5** | *The latest waker wins.* A pending poll leaves its waker, whatever was there before. | a section is pending with a [`Registered`], which only [`Registration::register`] gives |
//! | **P6** | *A grant is a result.* A future that is dropped with an unobserved grant passes it on. | each primitive's `Drop`, explored by the verifier |
//! | **P7** | *A wake is a hint.* Spurious, merged and early wakes are legal. | every poll checks again |
//! | **P8** | *Foreign panics do no harm.* | [`WakeList`] wakes the rest while it unwinds |
//!
//! # How a lock is handed over
//!
//! ```text
//!   task A holds the lock            task B polls `lock()`
//!          │                                │ poll: no permit is free, so push a waiter and
//!          │                                │ register the waker, in one section  (P1, P2, P5)
//!          │                             pending
//!   drop the guard                          ┊
//!          │ with: the permit goes to the   ┊
//!          │ first waiter (notify_one),     ┊
//!          │ its waker into the WakeList    ┊                                   (P1, P4)
//!          │ release, then wake ───────────▶│                                   (P3)
//!                                           │ poll: the waiter is notified, so remove
//!                                           │ it; the permit in its entry is B's
//!                                         ready
//! ```
//!
//! If B is dropped between the wake and its next poll, `Drop` removes the waiter, finds the
//! permit in the entry and gives it to the next waiter, in one section (P6).
//!
//! # Files
//!
//! They are read in this order: `bits`, [`lock`](StateLock), [`wake`](WakeList),
//! [`waiters`](Waiters), `waker_cell`, [`blocking`](block_on). What a lock stands on,
//! and what a thread blocks on, is in [`backend`](crate::backend). What the primitives
//! share is in [`raw`](crate::raw).

#![allow(
    unsafe_code,
    reason = "sections access their state through it, and each block says why it is sound"
)]

mod bits;
mod blocking;
mod lock;
mod waiters;
pub(crate) mod wake;
pub(crate) mod waker_cell;

pub use self::bits::Bits;
pub use self::blocking::{Parker, block_on};
pub use self::lock::{Section, StateLock};
pub use self::waiters::{Generation, Waiter, Waiters};
pub use self::wake::{Registered, Registration, WakeList, WakerSlot};
pub use crate::location::CallerLocation;
#[cfg(feature = "locations")]
pub(crate) use crate::location::Locations;
