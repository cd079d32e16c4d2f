//! The values of a channel: a queue that gives memory back after a spike.
//!
//! ```text
//!   push ──▶ back ──full, and as large as a segment──▶ segments ──▶ pop, while there are some
//!              └──────────────────────────────────────────────────▶ pop, otherwise
//! ```
//!
//! A small queue is one ring. What does not fit into a ring of one segment's size is
//! kept in further rings of that size: a push moves at most one segment, however many
//! values there are, and a ring is freed as soon as it is empty. The ring that is left
//! is freed when it is empty, if it has room for more than [`KEPT`](Buffer::KEPT)
//! values.
//!
//! Invariants: no ring in `segments` is empty. Its values come before those of `back`.

#![forbid(unsafe_code)]

use alloc::collections::VecDeque;
use core::fmt;

/// A first-in first-out queue of values.
pub(crate) struct Buffer<T> {
    /// What is full, in order.
    segments: VecDeque<VecDeque<T>>,
    /// What is pushed to, and popped from if there are no segments.
    back: VecDeque<T>,
}

/// How many values of a size fit into so many bytes, and no fewer than `least`.
const fn slots(bytes: usize, size: usize, least: usize) -> usize {
    match bytes.checked_div(size) {
        None => bytes,
        Some(slots) if slots < least => least,
        Some(slots) => slots,
    }
}

impl<T> Buffer<T> {
    /// For how many values an empty buffer keeps room.
    pub(crate) const KEPT: usize = slots(1 << 10, size_of::<T>(), 32);

    /// How many values a segment has.
    const SEGMENT: usize = slots(1 << 14, size_of::<T>(), 64);

    /// Creates an empty buffer, without an allocation.
    pub(crate) const fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            back: VecDeque::new(),
        }
    }

    /// Whether there are no values.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.back.is_empty() && self.segments.is_empty()
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        let segments: usize = self.segments.iter().map(VecDeque::len).sum();
        segments + self.back.len()
    }

    /// For how many values there is room without an allocation.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        let segments: usize = self.segments.iter().map(VecDeque::capacity).sum();
        segments + self.back.capacity()
    }

    /// Adds a value at the end.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if self.back.len() == self.back.capacity() {
            self.grow();
        }
        self.back.push_back(value);
    }

    /// Makes room for one more.
    #[cold]
    fn grow(&mut self) {
        match self.back.capacity() {
            0 => self.back.reserve(4),
            room if room < Self::SEGMENT => self.back.reserve(room),
            _ => {
                let room = VecDeque::with_capacity(Self::SEGMENT);
                let full = core::mem::replace(&mut self.back, room);
                self.segments.push_back(full);
            }
        }
    }

    /// Takes the value that came first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if !self.segments.is_empty() {
            return self.pop_of_segment();
        }
        let value = self.back.pop_front();
        if self.back.is_empty() && self.back.capacity() > Self::KEPT {
            self.give_back();
        }
        value
    }

    /// Puts a value back in front of the others.
    #[cold]
    pub(crate) fn unpop(&mut self, value: T) {
        self.segments
            .front_mut()
            .unwrap_or(&mut self.back)
            .push_front(value);
    }

    #[cold]
    fn pop_of_segment(&mut self) -> Option<T> {
        let first = self.segments.front_mut()?;
        let value = first.pop_front();
        if first.is_empty() {
            self.segments.pop_front();
            if self.segments.is_empty() {
                self.segments = VecDeque::new();
            }
        }
        value
    }

    /// Frees the room of an empty buffer.
    #[cold]
    fn give_back(&mut self) {
        self.back = VecDeque::new();
    }

    /// Moves all values of another buffer to the end of this one.
    #[inline]
    pub(crate) fn append(&mut self, other: &mut Self) {
        match self.is_empty() {
            true => core::mem::swap(self, other),
            false => self.append_slow(other),
        }
    }

    #[cold]
    fn append_slow(&mut self, other: &mut Self) {
        let mut other = core::mem::take(other);
        if !self.back.is_empty() {
            self.segments.push_back(core::mem::take(&mut self.back));
        }
        self.segments.append(&mut other.segments);
        self.back = other.back;
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Buffer;

    #[test]
    fn values_come_out_in_the_order_they_went_in() {
        let mut buffer = Buffer::new();
        let (mut next, mut expected) = (0, 0);
        for round in 0..200 {
            for _ in 0..round * 37 % 101 * 60 {
                buffer.push(next);
                next += 1;
            }
            for _ in 0..round * 53 % 97 * 60 {
                match buffer.pop() {
                    Some(value) => assert_eq!(value, expected),
                    None => break,
                }
                expected += 1;
            }
            assert_eq!(buffer.len(), next - expected);
            assert_eq!(buffer.is_empty(), next == expected);
        }
        assert!(next > 100_000);
    }

    #[test]
    fn a_value_that_is_put_back_comes_first() {
        for values in [1, 2, 10_000] {
            let mut buffer = Buffer::new();
            (0..values).for_each(|value| buffer.push(value));
            let first = buffer.pop().expect("a value was pushed");
            buffer.unpop(first);
            let popped: Vec<i32> = core::iter::from_fn(|| buffer.pop()).collect();
            assert_eq!(popped, (0..values).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_appended_comes_after_what_was_there() {
        for (ours, theirs) in [(0, 3), (3, 0), (3, 5), (5000, 7), (7, 5000), (5000, 5000)] {
            let (mut buffer, mut other) = (Buffer::new(), Buffer::new());
            (0..ours).for_each(|value| buffer.push(value));
            (ours..ours + theirs).for_each(|value| other.push(value));
            buffer.append(&mut other);
            assert!(other.is_empty());
            buffer.push(ours + theirs);
            let values: Vec<i32> = core::iter::from_fn(|| buffer.pop()).collect();
            assert_eq!(values, (0..=ours + theirs).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_spike_leaves_no_more_room_than_an_empty_buffer_keeps() {
        let mut buffer = Buffer::new();
        for spike in [1, 10, 1_000, 1_000_000] {
            (0..spike).for_each(|value| buffer.push(value));
            let most = 2 * spike.max(4) as usize + Buffer::<i32>::SEGMENT;
            assert!(
                buffer.capacity() <= most,
                "{} for {spike}",
                buffer.capacity()
            );
            while buffer.pop().is_some() {}
            assert!(buffer.capacity() <= Buffer::<i32>::KEPT);
            assert_eq!(buffer.segments.capacity(), 0);
        }
    }

    #[test]
    fn segments_are_freed_one_by_one() {
        let mut buffer = Buffer::new();
        let values = 10 * Buffer::<u64>::SEGMENT;
        (0..values as u64).for_each(|value| buffer.push(value));
        let full = buffer.capacity();
        for _ in 0..values / 2 {
            buffer.pop();
        }
        assert!(buffer.capacity() <= full / 2 + Buffer::<u64>::SEGMENT);
    }

    #[test]
    fn values_of_no_size_take_no_room() {
        let mut buffer = Buffer::new();
        for _ in 0..100_000 {
            buffer.push(());
        }
        assert_eq!(buffer.len(), 100_000);
        while buffer.pop().is_some() {}
        assert!(buffer.is_empty());
    }
}
