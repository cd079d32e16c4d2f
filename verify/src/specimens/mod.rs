//! Primitives that are broken on purpose, and some that only look it.
//!
//! They check the checker: each breaks one rule and must be caught, in its
//! class; the others break none and must pass. A verifier that cries wolf
//! is as useless as a blind one.

pub(crate) mod barrier;
pub(crate) mod condvar;
pub(crate) mod mutex;
pub(crate) mod notify;
pub(crate) mod once_cell;
pub(crate) mod oneshot;
pub(crate) mod permits;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod set_once;
pub(crate) mod sleep;
pub(crate) mod task;
pub(crate) mod timeout;
pub(crate) mod timers;

use std::task::Waker;

use crate::subject::role::Role;

/// A part of a specimen in which every part is its own kind: with some of the
/// operations of a role, which only the first part tries in every polling mode.
pub(crate) fn part<Op>(mut role: Role<Op>, kind: usize, plays: impl Fn(&Op) -> bool) -> Role<Op> {
    role.symmetry = kind;
    role.ops.retain(|operation| plays(&operation.op));
    for operation in &mut role.ops {
        operation.alias |= kind > 0;
    }
    role
}

/// Wakes all of them; where one panics, the others too (P8).
pub(crate) fn wake_all(wakers: Vec<Waker>) {
    struct Rest(std::vec::IntoIter<Waker>);

    impl Drop for Rest {
        fn drop(&mut self) {
            for waker in self.0.by_ref() {
                let wake = std::panic::AssertUnwindSafe(|| waker.wake());
                drop(std::panic::catch_unwind(wake));
            }
        }
    }

    let mut rest = Rest(wakers.into_iter());
    for waker in rest.0.by_ref() {
        waker.wake();
    }
}
