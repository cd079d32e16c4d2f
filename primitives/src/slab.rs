//! A slab: entries with stable indices, in one block, whose memory is given back
//! after a spike.
//!
//! ```text
//!            push, or reuse of a free index                 release
//!   (none) ────────────────────────────────▶ in use ─────────────────▶ free
//!                                               ▲                       │
//!                                               └───────── reuse ───────┘
//! ```
//!
//! An index belongs to its user from the push to the release. So entries never move,
//! and memory can be given back only behind the last entry in use. Releases are
//! counted, and from time to time an *audit* looks at how much of the capacity is in
//! use:
//!
//! ```text
//!   busy: more than a quarter ──▶ quiet: a quarter at most ──▶ room is given back
//!            ▲                            │
//!            └────────────────────────────┘
//! ```
//!
//! Invariants:
//!
//! 1. A spike that comes once leaves nothing behind. When it is over, the capacity
//!    returns to what it was before, at the latest with the release that leaves no
//!    entry in use, if nothing was pushed meanwhile.
//! 2. A recurring load allocates nothing. The size of a spike is remembered, and
//!    capacity for a second spike of that size is kept. The remembered size halves
//!    with each [`PATIENCE`] quiet audits, and the capacity with it.
//! 3. Amortized over the pushes and releases, all of it takes constant time. An audit
//!    that looks at the entries is paid for by at least an eighth as many releases.
//! 4. Capacity for [`KEPT`] entries, or for as many as were reserved, is never given
//!    back.

#![forbid(unsafe_code)]

use alloc::vec::Vec;

/// No index.
pub(crate) const NONE: u32 = u32::MAX;

/// The number of entries for which capacity is always kept, once it is there.
const KEPT: u32 = 128;
/// The number of quiet audits after which the expected load is halved.
const PATIENCE: u32 = 16;

/// An entry of a [`Slab`]. Free entries link to one another.
pub(crate) trait Slot {
    /// Returns `true` if the entry is free.
    fn is_free(&self) -> bool;

    /// Makes the entry free. `next` is the next free index.
    fn set_free(&mut self, next: u32);

    /// Returns the free index that follows this one.
    fn next_free(&self) -> u32;
}

/// Entries with stable indices. See the [module](self).
pub(crate) struct Slab<E> {
    entries: Vec<E>,
    /// The first free index.
    free: u32,
    /// The number of releases until the next audit, at least one.
    until_audit: u32,
    /// The number of releases since the entries were last looked at, as of the next
    /// audit.
    releases: u32,
    /// The capacity that is kept, if it is more than `reserved`.
    keep: u32,
    /// The largest spike that is remembered.
    expected: u32,
    /// The least capacity to keep.
    reserved: u32,
    /// The number of quiet audits since the slab was busy or the expectation halved,
    /// or [`BUSY`] if it is busy.
    quiet: u32,
}

/// Stands in place of a number of quiet audits if more than a quarter of the capacity
/// is in use.
const BUSY: u32 = u32::MAX;

impl<E: Slot> Slab<E> {
    /// Creates a slab without capacity.
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            until_audit: KEPT,
            releases: KEPT,
            keep: 0,
            expected: 0,
            reserved: KEPT,
            quiet: 0,
        }
    }

    /// Takes a free index for use, with its entry. The entry is still marked as free, and
    /// the caller changes that. There is no entry at [`NONE`].
    #[inline]
    pub(crate) fn reuse(&mut self) -> Option<(u32, &mut E)> {
        let index = self.free;
        let entry = self.entries.get_mut(index as usize)?;
        self.free = entry.next_free();
        Some((index, entry))
    }

    /// Stores an entry at a free index, or behind the others, and returns its index.
    ///
    /// # Panics
    ///
    /// Panics if there are `most` entries. The message names them by `what`.
    #[inline]
    pub(crate) fn insert(&mut self, entry: E, most: u32, what: &str) -> u32 {
        match self.free {
            NONE => self.push(entry, most, what),
            index => {
                let free = core::mem::replace(&mut self.entries[index as usize], entry);
                self.free = free.next_free();
                index
            }
        }
    }

    /// Adds an entry behind the others, none of which is free, and returns its index.
    ///
    /// # Panics
    ///
    /// Panics if there are `most` entries. The message names them by `what`.
    #[cold]
    pub(crate) fn push(&mut self, entry: E, most: u32, what: &str) -> u32 {
        let index = u32::try_from(self.entries.len()).unwrap_or(NONE);
        assert!(index < most, "{what}");
        self.entries.push(entry);
        index
    }

    /// Makes an index free, after `take` has taken out what the caller keeps of the
    /// entry. [`audit`](Self::audit) is called afterwards.
    #[inline]
    pub(crate) fn release<R>(&mut self, index: u32, take: impl FnOnce(&mut E) -> R) -> R {
        let entry = &mut self.entries[index as usize];
        let taken = take(entry);
        entry.set_free(core::mem::replace(&mut self.free, index));
        taken
    }

    /// Counts a release, and gives back memory if it is time to. Indices of free
    /// entries may be out of bounds afterwards.
    #[inline]
    pub(crate) fn audit(&mut self, used: impl FnOnce() -> usize) {
        self.until_audit -= 1;
        if self.until_audit == 0 {
            self.audit_now(used());
        }
    }

    /// Returns the entry at an index, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&E> {
        self.entries.get(index as usize)
    }

    /// Returns the entry at an index, if there is one, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut E> {
        self.entries.get_mut(index as usize)
    }

    /// Returns all entries, the free ones included, by index.
    #[cfg(feature = "locations")]
    pub(crate) fn entries(&self) -> &[E] {
        &self.entries
    }

    /// Returns the number of entries for which there is capacity.
    pub(crate) const fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Reserves capacity for `additional` entries beside the `used` ones, and keeps
    /// it.
    ///
    /// # Panics
    ///
    /// Panics if an index cannot count that many, or if the allocation fails.
    #[track_caller]
    pub(crate) fn reserve(&mut self, additional: usize, used: usize) {
        let room = u32::try_from(used.saturating_add(additional)).unwrap_or(NONE);
        assert!(
            room < NONE,
            "no room for {additional} entries beside {used}: there are at most 2^32 - 2"
        );
        let free = self.entries.len() - used;
        self.entries.reserve(additional.saturating_sub(free));
        self.reserved = self.reserved.max(room);
    }

    /// Gives back all capacity behind the last entry in use, also that which was
    /// reserved.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.reserved = KEPT;
        self.truncate();
        self.entries.shrink_to_fit();
    }

    /// Moves the last entry in use to a free index from `hole` on, and returns that
    /// index. Returns `None` if there is no free entry among the `used` ones. Until
    /// [`shrink_to_fit`](Self::shrink_to_fit) no index is reused.
    pub(crate) fn fill_hole(&mut self, used: usize, hole: &mut u32) -> Option<u32> {
        self.free = NONE;
        while self.entries.len() > used {
            let Some(entry) = self.entries.pop() else {
                break;
            };
            if entry.is_free() {
                continue;
            }
            while !self[*hole].is_free() {
                *hole += 1;
            }
            self[*hole] = entry;
            return Some(*hole);
        }
        None
    }

    /// Looks at how much of the capacity is in use, and gives back what is too much.
    #[cold]
    fn audit_now(&mut self, used: usize) {
        let room = u32::try_from(self.entries.capacity()).unwrap_or(NONE);
        let used = u32::try_from(used).unwrap_or(NONE);
        if used > room / 4 {
            self.quiet = BUSY;
            return self.audit_after(used - room / 4);
        }
        if self.quiet == BUSY {
            // A spike is over. The capacity that is kept is as much of it as was
            // expected.
            self.quiet = 0;
            self.keep = self.expected;
            self.expected = self.expected.max(room);
        } else {
            self.quiet += 1;
        }
        if self.quiet == PATIENCE {
            self.quiet = 0;
            self.expected /= 2;
            self.keep = self.keep.min(self.expected);
        }
        if room / 2 >= self.keep.max(self.reserved) {
            self.give_back(used);
        }
        self.audit_after(used);
    }

    fn audit_after(&mut self, releases: u32) {
        self.until_audit = releases.max(KEPT);
        self.releases = self.releases.saturating_add(self.until_audit);
    }

    /// Gives back memory, down to what is kept or to the last entry in use.
    fn give_back(&mut self, used: u32) {
        let len = self.entries.len();
        if used == 0 {
            self.entries.clear();
            self.free = NONE;
        } else if self.releases as usize >= len / 8 {
            self.releases = 0;
            self.truncate();
        } else {
            return;
        }
        let room = self.keep.max(self.reserved) as usize;
        if self.entries.capacity() / 2 >= room.max(self.entries.len()) {
            self.entries.shrink_to(room);
        }
    }

    /// Removes the free entries behind the last one in use, and links the others with
    /// the lowest index first, so that in time the last ones become free.
    fn truncate(&mut self) {
        while self.entries.pop_if(|entry| entry.is_free()).is_some() {}
        self.free = NONE;
        for index in (0..self.entries.len()).rev() {
            if self.entries[index].is_free() {
                self.entries[index].set_free(self.free);
                // The index is below the number of entries, which fits into 32 bits.
                self.free = index as u32;
            }
        }
    }
}

impl<E: Slot> core::ops::Index<u32> for Slab<E> {
    type Output = E;

    #[inline]
    fn index(&self, index: u32) -> &E {
        &self.entries[index as usize]
    }
}

impl<E: Slot> core::ops::IndexMut<u32> for Slab<E> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut E {
        &mut self.entries[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The next free index, if the entry is free.
    #[derive(Debug)]
    struct Link(Option<u32>);

    impl Slot for Link {
        fn is_free(&self) -> bool {
            self.0.is_some()
        }

        fn set_free(&mut self, next: u32) {
            self.0 = Some(next);
        }

        fn next_free(&self) -> u32 {
            self.0.expect("only free entries are linked")
        }
    }

    struct Checked {
        slab: Slab<Link>,
        used: BTreeSet<u32>,
    }

    impl Checked {
        fn new() -> Self {
            Self {
                slab: Slab::new(),
                used: BTreeSet::new(),
            }
        }

        fn take(&mut self) -> u32 {
            let index = self.slab.insert(Link(None), NONE, "full");
            assert!(self.used.insert(index), "{index} is in use");
            index
        }

        fn release(&mut self, index: u32) {
            assert!(self.used.remove(&index));
            self.slab.release(index, |_| {});
            self.slab.audit(|| self.used.len());
            for &index in self.used.range(index.saturating_sub(2)..).take(3) {
                assert!(!self.slab[index].is_free());
            }
        }

        fn spike(&mut self, size: usize) {
            let indices: Vec<_> = (0..size).map(|_| self.take()).collect();
            indices.into_iter().for_each(|index| self.release(index));
        }

        fn quiet(&mut self, releases: usize) {
            for _ in 0..releases {
                let index = self.take();
                self.release(index);
            }
        }
    }

    const KEPT: usize = super::KEPT as usize;

    #[test]
    fn a_spike_leaves_nothing_behind() {
        for size in [1000, 4097, 100_000] {
            let mut slab = Checked::new();
            slab.quiet(77);
            slab.spike(size);
            assert!(slab.slab.capacity() <= KEPT, "{}", slab.slab.capacity());
        }
    }

    #[test]
    fn a_spike_beside_entries_that_stay_leaves_little_behind() {
        let mut slab = Checked::new();
        let stay: Vec<_> = (0..10).map(|_| slab.take()).collect();
        slab.spike(100_000);
        slab.quiet(3 * KEPT);
        assert!(slab.slab.capacity() <= KEPT, "{}", slab.slab.capacity());
        stay.into_iter().for_each(|index| slab.release(index));
    }

    #[test]
    fn a_late_entry_that_stays_holds_the_room_until_it_leaves() {
        let mut slab = Checked::new();
        let spike: Vec<_> = (0..100_000).map(|_| slab.take()).collect();
        let late = slab.take();
        spike.into_iter().for_each(|index| slab.release(index));
        slab.quiet(100_000);
        assert!(slab.slab.capacity() > 100_000);
        slab.release(late);
        slab.quiet(KEPT);
        assert!(slab.slab.capacity() <= KEPT);
    }

    #[test]
    fn a_load_that_comes_again_allocates_nothing() {
        for size in [KEPT / 2, KEPT * 2, 1000, 50_000] {
            let mut slab = Checked::new();
            (0..2).for_each(|_| slab.spike(size));
            let room = slab.slab.capacity();
            assert!(room >= size);
            for _ in 0..10 {
                slab.spike(size);
                slab.quiet(KEPT * 4);
                assert_eq!(slab.slab.capacity(), room);
            }
        }
    }

    #[test]
    fn what_was_expected_and_does_not_come_is_given_back() {
        let mut slab = Checked::new();
        (0..3).for_each(|_| slab.spike(10_000));
        assert!(slab.slab.capacity() >= 10_000);
        slab.quiet(KEPT * PATIENCE as usize * 8);
        assert!(slab.slab.capacity() <= KEPT);
    }

    #[test]
    fn what_was_reserved_is_kept_until_it_is_given_up() {
        let mut slab = Checked::new();
        slab.slab.reserve(5000, 0);
        slab.spike(20_000);
        slab.quiet(KEPT * PATIENCE as usize * 8);
        assert!((5000..10_000).contains(&slab.slab.capacity()));
        slab.slab.shrink_to_fit();
        assert_eq!(slab.slab.capacity(), 0);
    }

    /// Each look at an entry is paid for by an eighth of a release, and each entry is
    /// copied at most twice as often as it was pushed.
    #[test]
    fn an_audit_is_paid_for() {
        use core::cell::Cell;

        std::thread_local! { static LOOKS: Cell<usize> = const { Cell::new(0) }; }
        struct Looked(Option<u32>);
        impl Slot for Looked {
            fn is_free(&self) -> bool {
                LOOKS.set(LOOKS.get() + 1);
                self.0.is_some()
            }
            fn set_free(&mut self, next: u32) {
                self.0 = Some(next);
            }
            fn next_free(&self) -> u32 {
                self.0.unwrap_or(NONE)
            }
        }
        let mut slab = Slab::new();
        // The last entry stays, so the memory cannot be given back however often the
        // audit tries.
        let spike = 100_000_u32;
        (0..=spike).for_each(|_| _ = slab.push(Looked(None), NONE, "full"));
        let mut releases = 0;
        for index in (0..spike).chain((0..spike).cycle().take(1_000_000)) {
            releases += 1;
            if releases > spike {
                let (index, entry) = slab.reuse().expect("an index is free");
                *entry = Looked(None);
                slab.release(index, |_| {});
                slab.audit(|| 1);
            } else {
                slab.release(index, |_| {});
                slab.audit(|| (spike - index) as usize);
            }
        }
        let looks = LOOKS.get();
        assert!(looks <= 9 * releases as usize, "{looks} for {releases}");
    }
}
