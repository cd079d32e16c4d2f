//! The memory of an executor after a spike: what has room for many is given back once it
//! is needed no more.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// For how many tasks room is kept, once it is there. A load that comes again and again
/// and is no larger allocates nothing.
pub(crate) const KEPT: usize = 1 << 14;

/// Gives back the room of a queue that is empty. An executor calls it when it has nothing
/// to run.
#[inline]
pub(crate) fn give_back<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > KEPT && queue.is_empty() {
        *queue = VecDeque::new();
    }
}
