//! A hierarchical timing wheel: deadlines, in order, each in constant time.
//!
//! Eleven levels of sixty-four slots cover every tick of a `u64`. A slot of level
//! `l` spans `64^l` ticks, and an entry stands at the level of the highest digit,
//! to the base 64, in which its deadline differs from the wheel's position:
//!
//! ```text
//!   position   0 · 0 · 5
//!   deadline   0 · 0 · 9   level 0, slot 9    fires when the position is there
//!   deadline   0 · 2 · 1   level 1, slot 2 ── at 0·2·0 ──▶ level 0, slot 1
//!   deadline   3 · 0 · 7   level 2, slot 3 ── at 3·0·0 ──▶ level 0, slot 7
//! ```
//!
//! and an entry goes through
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
//! 1. The position is never ahead of the time, and a listed entry stands at the
//!    level that its deadline and the position say; one that is overdue, at the
//!    position. So whatever stands at a level comes before everything at the levels
//!    above, whatever stands in a slot comes before everything in the slots behind
//!    it, and the first occupied slot of the first occupied level is the next.
//! 2. The list of a slot is in the order of insertion among those of one tick:
//!    whoever comes to a lower level later than another of its tick finds that one
//!    there, since a slot is emptied, in its order, before the position enters it.
//! 3. The position moves on only where no entry stands at it: an entry that is
//!    listed there is found there.
//!
//! The scheme is that of G. Varghese and T. Lauck, *Hashed and Hierarchical Timing
//! Wheels* (SOSP 1987, scheme 7).

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use crate::slab::{NONE, Slab, Slot};

/// Ticks to a digit of the position: the slots of a level.
const SLOTS: usize = 64;
/// Bits to a digit.
const DIGIT: u32 = SLOTS.trailing_zeros();
/// Digits to a `u64`.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// In place of a neighbour: the entry has none, since it is not listed.
const UNLISTED: u32 = u32::MAX - 1;
/// In place of the neighbour before: the entry is free.
const FREE: u32 = u32::MAX - 2;
/// How many entries of one slot are looked at to spare a wake-up that sorts them out.
const SCAN_LIMIT: usize = 32;

/// Deadlines in ticks, each with some data.
///
/// The wheel has no lock and calls no foreign code. It is told the time, and asked what
/// is due. Room is kept for a load that comes again, which then allocates nothing, and
/// given back after a spike that does not.
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
    /// None before the first entry, then all of them: they are some kilobytes, which
    /// are not to be moved through somebody's stack.
    levels: Vec<Level>,
    /// Which levels are occupied, a bit each.
    occupied: u16,
    slab: Slab<Entry<D>>,
    len: usize,
    /// What is due by here has been popped.
    position: u64,
    /// Whatever is not later is due.
    now: u64,
}

/// An entry of a [`Wheel`], from its insertion to its removal.
///
/// It is a place, and says nothing about who stands there once it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timer(u32);

#[derive(Clone)]
struct Level {
    /// Which slots are occupied, a bit each.
    occupied: u64,
    /// The list of each slot. Both ends stand here, so that whoever comes and goes
    /// touches one entry of those that wait, which are many and out of the cache.
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
    /// An empty wheel, at the given time.
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

    /// The time that the wheel was told last.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// How many entries there are, due ones among them.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// For how many entries there is room.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slab.capacity()
    }

    /// Makes room for `additional` entries more, and keeps it until
    /// [`shrink_to_fit`](Self::shrink_to_fit) or [`compact`](Self::compact).
    ///
    /// # Panics
    ///
    /// Panics if there would be room for 2^32 - 1 entries or more.
    #[track_caller]
    pub fn reserve(&mut self, additional: usize) {
        self.slab.reserve(additional, self.len);
    }

    /// Gives back room, down to the last entry. Looks at every entry.
    pub fn shrink_to_fit(&mut self) {
        if self.is_empty() {
            self.levels = Vec::new();
        }
        self.slab.shrink_to_fit();
    }

    /// Moves entries from the end of the room to places that are free, and gives up
    /// what is then left over. Tells of each entry that has moved, with its new
    /// place. Looks at every entry.
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

    /// Adds an entry. One that is due already is popped next.
    ///
    /// # Panics
    ///
    /// Panics where there are 2^32 - 3 entries.
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

    /// Gives an entry another deadline, as if it had just been inserted, whether it
    /// has been popped or not.
    ///
    /// # Panics
    ///
    /// Panics where the entry has been removed, and its place is free.
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

    /// Takes an entry out. Its data stays in its place until that is used again or its
    /// room is given back: take out of it before what is to be dropped with care.
    ///
    /// # Panics
    ///
    /// As [`reset`](Self::reset).
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

    /// When an entry is due.
    #[must_use]
    pub fn deadline(&self, timer: Timer) -> u64 {
        self.entry_ref(timer.0).deadline
    }

    /// The data of an entry, if there ever was one in its place.
    #[must_use]
    pub fn get(&self, timer: Timer) -> Option<&D> {
        self.slab.get(timer.0).map(|entry| &entry.data)
    }

    /// Whether an entry is due: popped, or about to be.
    #[must_use]
    pub fn is_due(&self, timer: Timer) -> bool {
        self.deadline(timer) <= self.now
    }

    /// Tells the wheel the time, which never goes back. Everything that is not
    /// later is due from now on.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Takes the next entry that is due by `to` off the list, and leaves it in its
    /// place: those of an earlier tick first, and those of one tick in the order in
    /// which they were inserted or reset. [Advances](Self::advance) the wheel.
    ///
    /// An entry whose deadline lies before that of one which has been popped already
    /// comes next, after others like it.
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
        // Nothing that is listed stands before it.
        self.position = self.position.max(to);
        None
    }

    /// The first entry by deadline, whether it is due or not. Looks at every entry
    /// of one slot.
    #[must_use]
    pub fn first_listed(&self) -> Option<Timer> {
        let place = self.soonest()?;
        self.earliest(place, usize::MAX).map(Timer)
    }

    /// The deadline of the first entry that has not been popped. Looks at every
    /// entry of one slot.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.first_listed().map(|timer| self.deadline(timer))
    }

    /// When to pop next: the first deadline, or a time before it at which entries
    /// have to be sorted out. In constant time.
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
    /// assert!(wheel.next_pop() <= Some(1000)); // to sort them out
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
            "a timer is used that has been removed"
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

    /// Where a listed entry with this deadline stands.
    #[inline]
    fn place(&self, deadline: u64) -> Place {
        let deadline = deadline.max(self.position);
        // The lowest digit counts as different, so that there is always one.
        let different = (self.position ^ deadline) | (SLOTS as u64 - 1);
        let level = different.ilog2() / DIGIT;
        let slot = (deadline >> (level * DIGIT)) % SLOTS as u64;
        Place {
            level: level as usize,
            slot: slot as usize,
        }
    }

    /// The first occupied slot.
    #[inline]
    fn soonest(&self) -> Option<Place> {
        (self.occupied != 0).then(|| {
            let level = self.occupied.trailing_zeros() as usize;
            let slot = self.levels[level].occupied.trailing_zeros() as usize;
            Place { level, slot }
        })
    }

    /// The first tick of an occupied slot. The digits above its level are those of
    /// the position.
    #[inline]
    fn start(&self, Place { level, slot }: Place) -> u64 {
        let shift = level as u32 * DIGIT;
        let above = u64::MAX.checked_shl(shift + DIGIT).unwrap_or(0);
        (self.position & above) | ((slot as u64) << shift)
    }

    /// The first by deadline in a slot; none where it holds more than `at_most`.
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

    /// Sorts the entries of a slot, which the position has entered, into the
    /// levels below.
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

    /// Puts an entry at the end of the slot that its deadline says.
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

    /// Takes an entry out of its slot, if it is in one.
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
            // Both are none: it was alone.
            self.vacate(place);
        }
    }

    fn list(&mut self, Place { level, slot }: Place) -> &mut List {
        &mut self.levels[level].slots[slot]
    }

    /// A slot is empty.
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

/// The data of an entry.
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
