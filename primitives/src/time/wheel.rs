//! A hierarchical timing wheel: deadlines in order, with constant time for each
//! operation.
//!
//! Eleven levels of sixty-four slots cover every tick of a `u64`. A slot of level `l`
//! spans `64^l` ticks. The level of an entry is the highest digit, to the base 64, in
//! which its deadline differs from the wheel's position:
//!
//! ```text
//!   position   0 · 0 · 5
//!   deadline   0 · 0 · 9   level 0, slot 9    fires when the position is there
//!   deadline   0 · 2 · 1   level 1, slot 2 ── at 0·2·0 ──▶ level 0, slot 1
//!   deadline   3 · 0 · 7   level 2, slot 3 ── at 3·0·0 ──▶ level 0, slot 7
//! ```
//!
//! An entry goes through these states:
//!
//! ```text
//!            insert               pop                 remove
//!   (free) ─────────▶ listed ───────────▶ unlisted ───────────▶ (free)
//!                     │    ▲                    │
//!                     │    └───────reset────────┘
//!                     └──────────remove───────────────────────▶ (free)
//! ```
//!
//! Invariants:
//!
//! 1. The position is never ahead of the time. A listed entry is at the level that its
//!    deadline and the position determine. An overdue entry is at the position. So all
//!    entries of a level come before those of the levels above, and all entries of a slot
//!    come before those of the slots behind it. The first occupied slot of the first
//!    occupied level comes next.
//! 2. Within the list of a slot, entries of one tick are in the order of insertion. If
//!    one entry of a tick comes to a lower level later than another, it is appended
//!    behind that one, because a slot is emptied, in its order, before the position
//!    enters it.
//! 3. The position moves on only if no entry is at it. So an entry that is listed there
//!    is found.
//!
//! The scheme is that of G. Varghese and T. Lauck, *Hashed and Hierarchical Timing
//! Wheels* (SOSP 1987, scheme 7).

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use crate::slab::{NONE, Slab, Slot};

/// The slots of a level, which are the values of a digit of the position.
const SLOTS: usize = 64;
/// The bits of a digit.
const DIGIT: u32 = SLOTS.trailing_zeros();
/// The digits of a `u64`.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// In place of a neighbour: the entry is not listed, and has none.
const UNLISTED: u32 = u32::MAX - 1;
/// In place of the previous neighbour: the entry is free.
const FREE: u32 = u32::MAX - 2;
/// How many entries of a slot are scanned to spare a wake-up that sorts them into lower
/// levels.
const SCAN_LIMIT: usize = 32;

/// A timing wheel: deadlines in ticks, each with some data.
///
/// The wheel has no lock and calls no foreign code. Its methods take the time. It keeps
/// room for a load that comes again, so that nothing is allocated then. After a spike it
/// gives room back.
///
/// Ticks do not wrap. A deadline of `u64::MAX` is as good as any other.
///
/// # Examples
///
/// ```
/// use reveille::time::wheel::Wheel;
///
/// let mut wheel = Wheel::<&str>::new(0);
/// let late = wheel.insert(1 << 40, "late");
/// let soon = wheel.insert(3, "soon");
/// assert_eq!(wheel.next_deadline(), Some(3));
///
/// assert_eq!(wheel.pop(2), None);
/// assert_eq!(wheel.pop(3), Some(soon));
/// assert_eq!(wheel[soon], "soon");
/// wheel.remove(soon);
///
/// wheel.reset(late, 5);
/// assert_eq!(wheel.pop(1 << 50), Some(late));
/// ```
pub struct Wheel<D> {
    /// Empty before the first entry, then all levels. They are some kilobytes, which must
    /// not be moved through the stack of a caller.
    levels: Vec<Level>,
    /// A bit for each level that is occupied.
    occupied: u16,
    slab: Slab<Entry<D>>,
    len: usize,
    /// Everything due up to here has been popped.
    position: u64,
    /// Every deadline that is not later is due.
    now: u64,
}

/// The index of an entry of a [`Wheel`], from its insertion to its removal.
///
/// It does not identify an entry: after a removal, another entry may have the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timer(u32);

#[derive(Clone)]
struct Level {
    /// A bit for each slot that is occupied.
    occupied: u64,
    /// The list of each slot. Both ends are here, so that an insertion or removal touches
    /// only one other entry. Entries are many, and out of the cache.
    slots: [List; SLOTS],
}

/// The ends of a list.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

struct Entry<D> {
    deadline: u64,
    /// The neighbours in the slot. In a free entry, `next` is the next free one.
    previous: u32,
    next: u32,
    data: D,
}

/// A slot of a level.
#[derive(Clone, Copy)]
struct Place {
    level: usize,
    slot: usize,
}

impl<D> Wheel<D> {
    /// Creates an empty wheel at the given time.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self {
            levels: Vec::new(),
            occupied: 0,
            slab: Slab::new(),
            len: 0,
            position: now,
            now,
        }
    }

    /// Returns the latest time that the wheel was given.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Returns the number of entries, including those that are due.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of entries for which there is room.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slab.capacity()
    }

    /// Reserves room for `additional` more entries, and keeps it until
    /// [`shrink_to_fit`](Self::shrink_to_fit) or [`compact`](Self::compact).
    ///
    /// # Panics
    ///
    /// Panics if there would be room for 2^32 - 1 entries or more.
    #[track_caller]
    pub fn reserve(&mut self, additional: usize) {
        self.slab.reserve(additional, self.len);
    }

    /// Frees the room behind the last entry. It scans all entries.
    pub fn shrink_to_fit(&mut self) {
        if self.is_empty() {
            self.levels = Vec::new();
        }
        self.slab.shrink_to_fit();
    }

    /// Moves entries from the end of the room to free places, and frees the room behind
    /// them. It calls `moved` for each entry that has moved, with its new place. It scans
    /// all entries.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::wheel::Wheel;
    ///
    /// let mut wheel = Wheel::new(0);
    /// let (first, mut last) = (wheel.insert(1, "first"), wheel.insert(2, "last"));
    /// wheel.remove(first);
    /// wheel.compact(|data, place| {
    ///     assert_eq!(*data, "last");
    ///     last = place;
    /// });
    /// assert_eq!(wheel.pop(2), Some(last));
    /// ```
    pub fn compact(&mut self, mut moved: impl FnMut(&mut D, Timer)) {
        let mut hole = 0;
        while let Some(index) = self.slab.fill_hole(self.len, &mut hole) {
            let entry = self.entry(index);
            let (deadline, previous, next) = (entry.deadline, entry.previous, entry.next);
            if next != UNLISTED {
                let place = self.place(deadline);
                match previous {
                    NONE => self.list(place).first = index,
                    previous => self.entry(previous).next = index,
                }
                match next {
                    NONE => self.list(place).last = index,
                    next => self.entry(next).previous = index,
                }
            }
            moved(&mut self.entry(index).data, Timer(index));
        }
        self.slab.shrink_to_fit();
    }

    /// Inserts an entry. If it is due already, it is popped next.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 - 3 entries.
    pub fn insert(&mut self, deadline: u64, data: D) -> Timer {
        let entry = Entry {
            deadline,
            previous: UNLISTED,
            next: UNLISTED,
            data,
        };
        let what = "a wheel holds at most 2^32 - 3 entries";
        let index = self.slab.insert(entry, FREE, what);
        self.len += 1;
        self.link(index);
        Timer(index)
    }

    /// Gives an entry another deadline, as if it had just been inserted. It may have been
    /// popped.
    ///
    /// # Panics
    ///
    /// Panics if the entry has been removed, and its place is free.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::wheel::Wheel;
    ///
    /// let mut wheel = Wheel::new(0);
    /// let timer = wheel.insert(3, ());
    /// wheel.reset(timer, 5);
    /// assert_eq!(wheel.pop(4), None);
    /// assert_eq!(wheel.pop(5), Some(timer));
    /// ```
    #[track_caller]
    pub fn reset(&mut self, timer: Timer, deadline: u64) {
        self.assert_in_use(timer);
        self.unlink(timer.0);
        self.entry(timer.0).deadline = deadline;
        self.link(timer.0);
    }

    /// Removes an entry. Its data stays until the place is used again or its room is
    /// freed. Take data out before if its destructor matters.
    ///
    /// # Panics
    ///
    /// Panics if the entry has been removed, and its place is free.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::wheel::Wheel;
    ///
    /// let mut wheel = Wheel::new(0);
    /// let timer = wheel.insert(3, ());
    /// wheel.remove(timer);
    /// assert!(wheel.is_empty());
    /// assert_eq!(wheel.pop(3), None);
    /// ```
    #[track_caller]
    pub fn remove(&mut self, timer: Timer) {
        self.assert_in_use(timer);
        self.unlink(timer.0);
        self.len -= 1;
        self.slab.release(timer.0, |_| {});
        self.slab.audit(|| self.len);
    }

    /// Returns the deadline of an entry.
    #[must_use]
    pub fn deadline(&self, timer: Timer) -> u64 {
        self.entry_ref(timer.0).deadline
    }

    /// Returns the data of an entry, if its place was ever used.
    #[must_use]
    pub fn get(&self, timer: Timer) -> Option<&D> {
        self.slab.get(timer.0).map(|entry| &entry.data)
    }

    /// Returns whether an entry is due: it has been popped, or is about to be.
    #[must_use]
    pub fn is_due(&self, timer: Timer) -> bool {
        self.deadline(timer) <= self.now
    }

    /// Moves the time of the wheel, which never goes back. Every deadline that is not
    /// later is due from now on.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Removes the next entry that is due by `to` from the list, and keeps its place.
    /// Entries of an earlier tick come first. Entries of one tick come in the order in
    /// which they were inserted or reset. [Advances](Self::advance) the wheel to `to`.
    ///
    /// If the deadline of an entry is before that of one that has been popped already,
    /// the entry comes next, after others like it.
    pub fn pop(&mut self, to: u64) -> Option<Timer> {
        self.advance(to);
        while let Some(place) = self.soonest() {
            let start = self.start(place);
            if start > to {
                break;
            }
            self.position = start;
            if place.level == 0 {
                let first = self.first(place);
                self.unlink(first);
                return Some(Timer(first));
            }
            self.cascade(place);
        }
        // No listed entry is before `to`.
        self.position = self.position.max(to);
        None
    }

    /// Returns the first entry by deadline, whether it is due or not. It scans the
    /// entries of one slot.
    #[must_use]
    pub fn first_listed(&self) -> Option<Timer> {
        let place = self.soonest()?;
        self.earliest(place, usize::MAX).map(Timer)
    }

    /// Returns the deadline of the first entry that has not been popped. It scans the
    /// entries of one slot.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.first_listed().map(|timer| self.deadline(timer))
    }

    /// Returns when to pop next. It is the first deadline, or an earlier time at which
    /// entries have to be sorted into lower levels. It takes constant time.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::wheel::Wheel;
    ///
    /// let mut wheel = Wheel::new(0);
    /// wheel.insert(1000, ());
    /// assert_eq!(wheel.next_pop(), Some(1000));
    /// for _ in 0..100 {
    ///     wheel.insert(1001, ());
    /// }
    /// assert!(wheel.next_pop() <= Some(1000)); // to sort entries into lower levels
    /// ```
    #[must_use]
    pub fn next_pop(&self) -> Option<u64> {
        let place = self.soonest()?;
        Some(match self.earliest(place, SCAN_LIMIT) {
            Some(index) => self.entry_ref(index).deadline,
            None => self.start(place),
        })
    }

    #[inline]
    #[track_caller]
    fn assert_in_use(&self, timer: Timer) {
        let entry = self.slab.get(timer.0);
        assert!(
            entry.is_some_and(|entry| entry.previous != FREE),
            "the timer has been removed from the wheel"
        );
    }

    fn entry(&mut self, index: u32) -> &mut Entry<D> {
        &mut self.slab[index]
    }

    fn entry_ref(&self, index: u32) -> &Entry<D> {
        &self.slab[index]
    }

    fn first(&self, Place { level, slot }: Place) -> u32 {
        self.levels[level].slots[slot].first
    }

    /// Returns the slot for a deadline.
    #[inline]
    fn place(&self, deadline: u64) -> Place {
        let deadline = deadline.max(self.position);
        // The lowest digit counts as different, so that there always is one.
        let different = (self.position ^ deadline) | (SLOTS as u64 - 1);
        let level = different.ilog2() / DIGIT;
        let slot = (deadline >> (level * DIGIT)) % SLOTS as u64;
        Place {
            level: level as usize,
            slot: slot as usize,
        }
    }

    /// Returns the first occupied slot.
    #[inline]
    fn soonest(&self) -> Option<Place> {
        (self.occupied != 0).then(|| {
            let level = self.occupied.trailing_zeros() as usize;
            let slot = self.levels[level].occupied.trailing_zeros() as usize;
            Place { level, slot }
        })
    }

    /// Returns the first tick of an occupied slot. The digits above its level are those
    /// of the position.
    #[inline]
    fn start(&self, Place { level, slot }: Place) -> u64 {
        let shift = level as u32 * DIGIT;
        let above = u64::MAX.checked_shl(shift + DIGIT).unwrap_or(0);
        (self.position & above) | ((slot as u64) << shift)
    }

    /// Returns the first entry of a slot by deadline. Returns `None` if the slot holds
    /// more than `at_most`.
    fn earliest(&self, place: Place, at_most: usize) -> Option<u32> {
        let first = self.first(place);
        if place.level == 0 {
            return Some(first);
        }
        let (mut earliest, mut index) = (first, first);
        for _ in 0..at_most {
            index = self.entry_ref(index).next;
            if index == NONE {
                return Some(earliest);
            }
            if self.entry_ref(index).deadline < self.entry_ref(earliest).deadline {
                earliest = index;
            }
        }
        None
    }

    /// Sorts the entries of a slot, which the position has entered, into the levels
    /// below.
    fn cascade(&mut self, place: Place) {
        let mut index = self.first(place);
        *self.list(place) = List::EMPTY;
        self.vacate(place);
        while index != NONE {
            let next = self.entry(index).next;
            self.link(index);
            index = next;
        }
    }

    #[cold]
    fn make_levels(&mut self) {
        self.levels.resize(LEVELS, Level::EMPTY);
    }

    /// Appends an entry to the slot of its deadline.
    #[inline]
    fn link(&mut self, index: u32) {
        let place = self.place(self.entry_ref(index).deadline);
        if self.levels.is_empty() {
            self.make_levels();
        }
        let level = &mut self.levels[place.level];
        level.occupied |= 1 << place.slot;
        self.occupied |= 1 << place.level;
        let list = &mut level.slots[place.slot];
        let last = core::mem::replace(&mut list.last, index);
        match last {
            NONE => list.first = index,
            last => self.entry(last).next = index,
        }
        let entry = self.entry(index);
        entry.previous = last;
        entry.next = NONE;
    }

    /// Removes an entry from its slot, if it is in one.
    #[inline]
    fn unlink(&mut self, index: u32) {
        let entry = self.entry(index);
        let next = core::mem::replace(&mut entry.next, UNLISTED);
        if next == UNLISTED {
            return;
        }
        let (previous, deadline) = (entry.previous, entry.deadline);
        let place = self.place(deadline);
        match previous {
            NONE => self.list(place).first = next,
            previous => self.entry(previous).next = next,
        }
        match next {
            NONE => self.list(place).last = previous,
            next => self.entry(next).previous = previous,
        }
        if previous == next {
            // Both neighbours are none: the entry was alone.
            self.vacate(place);
        }
    }

    fn list(&mut self, Place { level, slot }: Place) -> &mut List {
        &mut self.levels[level].slots[slot]
    }

    /// Marks a slot as empty.
    fn vacate(&mut self, Place { level, slot }: Place) {
        let occupied = &mut self.levels[level].occupied;
        *occupied &= !(1 << slot);
        if *occupied == 0 {
            self.occupied &= !(1 << level);
        }
    }
}

impl<D> Slot for Entry<D> {
    #[inline]
    fn is_free(&self) -> bool {
        self.previous == FREE
    }

    #[inline]
    fn set_free(&mut self, next: u32) {
        self.previous = FREE;
        self.next = next;
    }

    #[inline]
    fn next_free(&self) -> u32 {
        self.next
    }
}

impl Level {
    const EMPTY: Self = Self {
        occupied: 0,
        slots: [List::EMPTY; SLOTS],
    };
}

impl List {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// Accesses the data of an entry.
impl<D> Index<Timer> for Wheel<D> {
    type Output = D;

    fn index(&self, timer: Timer) -> &D {
        &self.entry_ref(timer.0).data
    }
}

impl<D> IndexMut<Timer> for Wheel<D> {
    fn index_mut(&mut self, timer: Timer) -> &mut D {
        &mut self.entry(timer.0).data
    }
}

impl<D> fmt::Debug for Wheel<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
