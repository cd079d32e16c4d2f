//! The protocol: one small set of rules that carries every primitive.
//!
//! A waiting primitive has two parties. The *consumer* polls: it looks for a result and,
//! if there is none, leaves its waker. The *producer* completes: it stores the result and
//! wakes. Every lost wake-up, stale waker and cancellation race is a gap between two steps
//! of these. Eight rules close the gaps:
//!
//! | rule | | kept by |
//! | --- | --- | --- |
//! | **P1** | *One lock.* The state that decides readiness and the wakers of the waiters are under the same lock. | [`StateLock`] holds both: [`Bits`] and a state |
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
//! With a bound of 0 on barging, or after the bound is reached, a release hands the
//! lock to the first waiter:
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
//! Below the bound, the release leaves the permit free, so that a running task can take it
//! at once, and wakes the first waiter to try for it. The waiter stays in the queue:
//!
//! ```text
//!   drop the guard                          ┊ B is the first waiter
//!          │ with: the permit is free; set  ┊
//!          │ WOKEN, and take B's waker out  ┊
//!          │ release, then wake ───────────▶│
//!                                           │ poll: the permit is free, so take it and
//!                                           │ remove the waiter: ready. Or another task has
//!                                           │ barged: clear WOKEN, register, pending.
//! ```
//!
//! WOKEN is a bit of the primitive, beside its permits. While it is set, a release wakes
//! no task, since B is about to look. If B is dropped then, `Drop` removes it, and the
//! section wakes the new first waiter if the permit is free.
//!
//! # Files
//!
//! They are read in this order: `bits`, [`lock`](StateLock), [`wake`](WakeList),
//! [`waiters`](Waiters), `waker_cell`, [`blocking`](block_on). The locks themselves, and
//! what a thread blocks on, are in [`backend`](crate::backend). What the primitives
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
