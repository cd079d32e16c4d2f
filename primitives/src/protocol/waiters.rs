//! The queue of everything that queues: a FIFO of waiters in a slab.
//!
//! ```text
//!            push                       notify_one, notify_all                 remove
//!   (free) ───────▶ queued, in order ───────────────────▶ notified ───────────────▶ (free)
//!                        └───────────────────────────────remove───────────────▶
//! ```
//!
//! A waiter is an index into the slab, kept by its future, so futures stay
//! `Unpin` and a few words small. A *notified* waiter is one that has been granted
//! what it waits for and has not seen it yet: its entry holds the grant until
//! the future takes it, or hands it on when it is dropped (P6).
//!
//! Invariants: an entry belongs to the future that pushed it, from `push` to
//! `remove`. One list links, in the order of their tickets, those who have been
//! notified in bulk and not been woken yet (their tickets are below the generation),
//! then those who are queued. Whoever was taken off the list has a ticket below
//! zero, so a ticket below the generation is that of one who has been notified, however
//! it was. Everything is O(1), wherever the entry stands and however many are
//! notified at once.
//!
//! The slab is empty until the first waiter. A load that comes again allocates
//! nothing; after a spike that does not, the room for it is given back.

#[cfg(feature = "locations")]
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use super::wake::{WakeList, WakerSlot};
use crate::raw::CallerLocation;
use crate::slab::{NONE, Slab, Slot};

/// A waiter: its place in the slab.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiter(u32);

/// How many indices are sentinels.
const SENTINELS: u32 = 8;

/// A sentinel in place of a waiter: for a future that is not queued, and keeps its
/// stage in the same word. One of a pointer and a word is passed in registers.
impl Waiter {
    /// One of eight sentinels.
    ///
    /// # Panics
    ///
    /// Panics where there are not as many.
    #[track_caller]
    #[must_use]
    pub const fn sentinel(sentinel: u32) -> Self {
        assert!(sentinel < SENTINELS, "there are eight sentinels");
        Self(NONE - sentinel)
    }

    /// Whether it is one.
    #[inline]
    #[must_use]
    pub const fn is_sentinel(&self) -> bool {
        self.0 > NONE - SENTINELS
    }
}

/// Waiters in the order in which they came, with what each waits for or has
/// been granted.
pub struct Waiters<D> {
    slab: Slab<Entry<D>>,
    /// The ends of the list.
    first: u32,
    last: u32,
    /// The first in the list that is queued.
    head: u32,
    /// The ticket of the next to come.
    ticket: i64,
    /// Whoever has a ticket below it has been notified.
    generation: i64,
    queued: usize,
    notified: usize,
}

/// Those who were notified by one [`notify_all`](Waiters::notify_all).
#[derive(Clone, Copy, Debug)]
pub struct Generation(i64);

struct Entry<D> {
    /// Off the list, with the sign bit set; [`FREE`] in a free entry.
    ticket: i64,
    /// The neighbours in the list. In a free entry, `next` is the next free one.
    previous: u32,
    next: u32,
    waker: WakerSlot,
    location: CallerLocation,
    data: D,
}

/// Marks the ticket of an entry that is not listed.
const UNLISTED: i64 = i64::MIN;
/// In place of the ticket of a free entry.
const FREE: i64 = -1;

impl<D: Copy> Waiters<D> {
    /// No waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slab: Slab::new(),
            first: NONE,
            last: NONE,
            head: NONE,
            ticket: 0,
            generation: 0,
            queued: 0,
            notified: 0,
        }
    }

    /// How many wait for their turn.
    #[must_use]
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// How many have been notified and have not seen it yet.
    #[must_use]
    pub const fn notified(&self) -> usize {
        self.notified
    }

    /// Whether nobody waits for a turn.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Puts a waiter at the end of the queue, with the place where it began to
    /// wait. It has no waker yet.
    ///
    /// # Panics
    ///
    /// Panics where there are 2^32 - 8 waiters.
    pub fn push(&mut self, location: CallerLocation, data: D) -> Waiter {
        let ticket = self.ticket;
        self.ticket += 1;
        self.insert(ticket, self.last, NONE, location, data)
    }

    /// Puts a waiter before all who are queued. It has no waker yet.
    ///
    /// # Panics
    ///
    /// As for [`push`](Self::push).
    pub fn push_first(&mut self, location: CallerLocation, data: D) -> Waiter {
        match self.head {
            NONE => self.push(location, data),
            head => {
                let Entry {
                    ticket, previous, ..
                } = *self.entry(head);
                self.insert(ticket, previous, head, location, data)
            }
        }
    }

    /// Puts a waiter into the list, between two neighbours.
    #[inline]
    fn insert(
        &mut self,
        ticket: i64,
        previous: u32,
        next: u32,
        location: CallerLocation,
        data: D,
    ) -> Waiter {
        let index = match self.slab.reuse() {
            NONE => self.grow(location, data),
            index => index,
        };
        let entry = self.entry(index);
        entry.ticket = ticket;
        entry.previous = previous;
        entry.next = next;
        entry.location = location;
        entry.data = data;
        self.queued += 1;
        match previous {
            NONE => self.first = index,
            previous => self.entry(previous).next = index,
        }
        match next {
            NONE => self.last = index,
            next => self.entry(next).previous = index,
        }
        if self.head == next {
            self.head = index;
        }
        Waiter(index)
    }

    /// Adds an entry to the slab.
    #[cold]
    fn grow(&mut self, location: CallerLocation, data: D) -> u32 {
        let entry = Entry {
            ticket: FREE,
            previous: NONE,
            next: NONE,
            waker: WakerSlot::new(),
            location,
            data,
        };
        let most = NONE - SENTINELS + 1;
        self.slab
            .push(entry, most, "a queue holds at most 2^32 - 8 waiters")
    }

    /// The waiter whose turn is next.
    #[must_use]
    pub const fn first(&self) -> Option<Waiter> {
        match self.head {
            NONE => None,
            index => Some(Waiter(index)),
        }
    }

    /// Whether it is the waiter's turn next.
    #[must_use]
    pub const fn is_first(&self, waiter: &Waiter) -> bool {
        self.head == waiter.0
    }

    /// The waiter that came last.
    #[must_use]
    pub const fn last(&self) -> Option<Waiter> {
        match self.head {
            NONE => None,
            _ => Some(Waiter(self.last)),
        }
    }

    /// Calls one who is queued, and takes its waker along. Answers with its data:
    /// what it has been granted, from now on.
    ///
    /// # Panics
    ///
    /// As [`WakeList::wake`].
    #[inline]
    pub fn notify_one(&mut self, waiter: &Waiter, wakes: &mut WakeList) -> &mut D {
        debug_assert!(!self.is_notified(waiter), "a waiter is notified once");
        let entry = self.entry(waiter.0);
        wakes.wake(&mut entry.waker);
        entry.ticket |= UNLISTED;
        let (previous, next) = (entry.previous, entry.next);
        self.unlink(waiter.0, previous, next);
        self.queued -= 1;
        self.notified += 1;
        &mut self[waiter]
    }

    /// Calls everybody who is queued, and nobody who comes later. Their wakers
    /// are taken by [`wake_notified`](Self::wake_notified), as many at a time as fit.
    pub fn notify_all(&mut self) -> Generation {
        self.notified += core::mem::take(&mut self.queued);
        self.generation = self.ticket;
        self.head = NONE;
        Generation(self.generation)
    }

    /// Takes out the wakers of those who were notified in bulk, up to a generation
    /// and as many as fit, and answers whether there are more.
    pub fn wake_notified(&mut self, generation: Generation, wakes: &mut WakeList) -> bool {
        loop {
            let index = self.first;
            if index == NONE {
                return false;
            }
            let entry = self.entry(index);
            if entry.ticket >= generation.0 {
                return false;
            }
            if wakes.is_full() {
                return true;
            }
            wakes.wake(&mut entry.waker);
            entry.ticket |= UNLISTED;
            let (previous, next) = (entry.previous, entry.next);
            self.unlink(index, previous, next);
        }
    }

    /// Whether the waiter has been notified.
    #[must_use]
    pub fn is_notified(&self, waiter: &Waiter) -> bool {
        self.slab[waiter.0].ticket < self.generation
    }

    /// Where the waiter's waker stands.
    pub fn waker(&mut self, waiter: &Waiter) -> &mut WakerSlot {
        &mut self.entry(waiter.0).waker
    }

    /// Takes a waiter out for good: with its data, and its waker to be dropped.
    ///
    /// # Panics
    ///
    /// As [`WakeList::discard`].
    #[inline]
    pub fn remove(&mut self, waiter: Waiter, wakes: &mut WakeList) -> D {
        let index = waiter.0;
        let (data, ticket, previous, next) = self.slab.release(index, |entry| {
            debug_assert!(entry.ticket != FREE, "a waiter is removed once");
            wakes.discard(&mut entry.waker);
            (entry.data, entry.ticket, entry.previous, entry.next)
        });
        match ticket < self.generation {
            true => self.notified -= 1,
            false => self.queued -= 1,
        }
        if ticket >= 0 {
            self.unlink(index, previous, next);
        }
        self.slab.audit(|| self.queued + self.notified);
        data
    }

    /// Where each of them began to wait, the first first; also of those who have
    /// been notified and have not seen it.
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn locations(&self) -> Vec<&'static core::panic::Location<'static>> {
        let mut waiters: Vec<_> = self
            .slab
            .entries()
            .iter()
            .filter(|entry| entry.ticket != FREE)
            .collect();
        waiters.sort_by_key(|entry| entry.ticket & !UNLISTED);
        waiters.iter().map(|entry| entry.location.get()).collect()
    }

    #[inline]
    fn entry(&mut self, index: u32) -> &mut Entry<D> {
        &mut self.slab[index]
    }

    /// Takes an entry, which knows of it already, off the list.
    #[inline]
    fn unlink(&mut self, index: u32, previous: u32, next: u32) {
        match previous {
            NONE => self.first = next,
            previous => self.entry(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.entry(next).previous = previous,
        }
        if self.head == index {
            self.head = next;
        }
    }
}

impl<D> Slot for Entry<D> {
    #[inline]
    fn is_free(&self) -> bool {
        self.ticket == FREE
    }

    #[inline]
    fn set_free(&mut self, next: u32) {
        self.ticket = FREE;
        self.next = next;
    }

    #[inline]
    fn next_free(&self) -> u32 {
        self.next
    }
}

impl<D: Copy> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// What the waiter waits for, or has been granted.
impl<D: Copy> Index<&Waiter> for Waiters<D> {
    type Output = D;

    fn index(&self, waiter: &Waiter) -> &D {
        &self.slab[waiter.0].data
    }
}

impl<D: Copy> IndexMut<&Waiter> for Waiters<D> {
    fn index_mut(&mut self, waiter: &Waiter) -> &mut D {
        &mut self.entry(waiter.0).data
    }
}

impl<D: Copy> fmt::Debug for Waiters<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters")
            .field("queued", &self.queued())
            .field("notified", &self.notified())
            .finish_non_exhaustive()
    }
}
