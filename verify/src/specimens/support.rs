//! What specimens share.

use std::task::Waker;

use crate::subject::role::Role;

/// Returns a role with a symmetry class of its own and some of the operations of
/// another. Only class 0 performs them in every polling mode.
pub(crate) fn asymmetric<Op>(
    mut role: Role<Op>,
    symmetry: usize,
    plays: impl Fn(&Op) -> bool,
) -> Role<Op> {
    role.symmetry = symmetry;
    role.ops.retain(|operation| plays(&operation.op));
    for operation in &mut role.ops {
        operation.alias |= symmetry > 0;
    }
    role
}

/// Wakes all wakers. If one panics, the rest are woken nevertheless (P8).
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
