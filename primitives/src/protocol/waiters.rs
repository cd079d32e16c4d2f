//! The queue of everything that queues: a FIFO of waiters in a slab.
//!
//! ```text
//!            push                       call, call_all                 remove
//!   (free) ───────▶ queued, in order ───────────────────▶ called ───────────────▶ (free)
//!                        └───────────────────────────────remove───────────────▶
//! ```
//!
//! A waiter is an index into the slab, kept by its future, so futures stay
//! `Unpin` and a few words small. A *called* waiter is one that has been granted
//! what it waits for and has not seen it yet: its entry holds the grant until
//! the future takes it, or hands it on when it is dropped (P6).
//!
//! Invariants: an entry belongs to the future that pushed it, from `push` to
//! `remove`. One list links, in the order of their tickets, those who have been
//! called in bulk and not been woken yet (their tickets are below the horizon),
//! then those who are queued. Everything is O(1), wherever the entry stands and
//! however many are called at once.
//!
//! The slab is empty until the first waiter and keeps its room, so a wait
//! allocates nothing once there have been as many at the same time.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use super::Site;
use super::wake::{WakeList, WakerSlot};

/// A waiter: its place in the slab.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiter(u32);

/// Waiters in the order in which they came, with what each waits for or has
/// been granted.
pub struct Waiters<D> {
    slab: Vec<Entry<D>>,
    free: u32,
    /// The ends of the list.
    first: u32,
    last: u32,
    /// The first in the list that is queued.
    turn: u32,
    /// The ticket of the next to come.
    ticket: u64,
    /// Whoever has a ticket below it has been called.
    horizon: u64,
    queued: usize,
    called: usize,
}

/// Those who were called by one [`call_all`](Waiters::call_all).
#[derive(Clone, Copy, Debug)]
pub struct Horizon(u64);

struct Entry<D> {
    previous: u32,
    next: u32,
    ticket: u64,
    listed: bool,
    waker: WakerSlot,
    #[cfg_attr(
        not(feature = "locations"),
        expect(dead_code, reason = "there is nothing in it to be read")
    )]
    site: Site,
    /// None in a free entry.
    data: Option<D>,
}

/// No entry.
const NONE: u32 = u32::MAX;

impl<D> Waiters<D> {
    /// No waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slab: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
            turn: NONE,
            ticket: 0,
            horizon: 0,
            queued: 0,
            called: 0,
        }
    }

    /// How many wait for their turn.
    #[must_use]
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// How many have been called and have not seen it yet.
    #[must_use]
    pub const fn called(&self) -> usize {
        self.called
    }

    /// Whether nobody waits for a turn.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.turn == NONE
    }

    /// Puts a waiter at the end of the queue, with the place where it began to
    /// wait. It has no waker yet.
    ///
    /// # Panics
    ///
    /// Panics where there are 2^32 - 1 waiters.
    pub fn push(&mut self, site: Site, data: D) -> Waiter {
        let ticket = self.ticket;
        self.ticket += 1;
        self.insert(ticket, NONE, site, data)
    }

    /// Puts a waiter before all who are queued. It has no waker yet.
    ///
    /// # Panics
    ///
    /// As for [`push`](Self::push).
    pub fn push_first(&mut self, site: Site, data: D) -> Waiter {
        match self.turn {
            NONE => self.push(site, data),
            turn => {
                let ticket = self.entry(turn).ticket;
                self.insert(ticket, turn, site, data)
            }
        }
    }

    /// Puts a waiter into the list, before `next`, or at its end.
    fn insert(&mut self, ticket: u64, next: u32, site: Site, data: D) -> Waiter {
        let previous = match next {
            NONE => self.last,
            next => self.entry(next).previous,
        };
        let entry = Entry {
            previous,
            next,
            ticket,
            listed: true,
            waker: WakerSlot::new(),
            site,
            data: Some(data),
        };
        self.queued += 1;
        let index = match self.free {
            NONE => {
                let index = u32::try_from(self.slab.len()).unwrap_or(NONE);
                assert!(index != NONE, "a queue holds at most 2^32 - 1 waiters");
                self.slab.push(entry);
                index
            }
            index => {
                self.free = core::mem::replace(self.entry(index), entry).next;
                index
            }
        };
        match previous {
            NONE => self.first = index,
            previous => self.entry(previous).next = index,
        }
        match next {
            NONE => self.last = index,
            next => self.entry(next).previous = index,
        }
        if self.turn == next {
            self.turn = index;
        }
        Waiter(index)
    }

    /// The waiter whose turn is next.
    #[must_use]
    pub const fn first(&self) -> Option<Waiter> {
        match self.turn {
            NONE => None,
            index => Some(Waiter(index)),
        }
    }

    /// The waiter that came last.
    #[must_use]
    pub const fn last(&self) -> Option<Waiter> {
        match self.turn {
            NONE => None,
            _ => Some(Waiter(self.last)),
        }
    }

    /// Calls one who is queued, and takes its waker along: what it has been
    /// granted is in its data from now on.
    pub fn call(&mut self, waiter: &Waiter, wakes: &mut WakeList) {
        debug_assert!(!self.is_called(waiter), "a waiter is called once");
        self.unlink(waiter.0);
        self.queued -= 1;
        self.called += 1;
        wakes.wake(&mut self.entry(waiter.0).waker);
    }

    /// Calls everybody who is queued, and nobody who comes later. Their wakers
    /// are taken by [`wake_due`](Self::wake_due), as many at a time as fit.
    pub fn call_all(&mut self) -> Horizon {
        self.called += core::mem::take(&mut self.queued);
        self.horizon = self.ticket;
        self.turn = NONE;
        Horizon(self.horizon)
    }

    /// Takes out the wakers of those who were called in bulk, up to a horizon
    /// and as many as fit, and answers whether there are more.
    pub fn wake_due(&mut self, horizon: Horizon, wakes: &mut WakeList) -> bool {
        loop {
            let index = self.first;
            if index == NONE || self.entry(index).ticket >= horizon.0 {
                return false;
            }
            if wakes.is_full() {
                return true;
            }
            self.unlink(index);
            wakes.wake(&mut self.entry(index).waker);
        }
    }

    /// Whether the waiter has been called.
    #[must_use]
    pub fn is_called(&self, waiter: &Waiter) -> bool {
        let entry = &self.slab[waiter.0 as usize];
        !entry.listed || entry.ticket < self.horizon
    }

    /// Where the waiter's waker stands.
    pub fn waker(&mut self, waiter: &Waiter) -> &mut WakerSlot {
        &mut self.entry(waiter.0).waker
    }

    /// Takes a waiter out for good: with its data, and its waker to be dropped.
    pub fn remove(&mut self, waiter: Waiter, wakes: &mut WakeList) -> D {
        match self.is_called(&waiter) {
            true => self.called -= 1,
            false => self.queued -= 1,
        }
        let index = waiter.0;
        if self.entry(index).listed {
            self.unlink(index);
        }
        let free = core::mem::replace(&mut self.free, index);
        let entry = self.entry(index);
        entry.next = free;
        wakes.discard(&mut entry.waker);
        entry.data.take().expect("a waiter is removed once")
    }

    /// Where each of them began to wait, the first first; also of those who have
    /// been called and have not seen it.
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn locations(&self) -> Vec<&'static core::panic::Location<'static>> {
        let mut waiters: Vec<_> = self
            .slab
            .iter()
            .filter(|entry| entry.data.is_some())
            .collect();
        waiters.sort_by_key(|entry| entry.ticket);
        waiters.iter().map(|entry| entry.site.location()).collect()
    }

    fn entry(&mut self, index: u32) -> &mut Entry<D> {
        &mut self.slab[index as usize]
    }

    fn unlink(&mut self, index: u32) {
        let entry = self.entry(index);
        entry.listed = false;
        let (previous, next) = (entry.previous, entry.next);
        match previous {
            NONE => self.first = next,
            previous => self.entry(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.entry(next).previous = previous,
        }
        if self.turn == index {
            self.turn = next;
        }
    }
}

impl<D> Default for Waiters<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// What the waiter waits for, or has been granted.
impl<D> Index<&Waiter> for Waiters<D> {
    type Output = D;

    fn index(&self, waiter: &Waiter) -> &D {
        let data = &self.slab[waiter.0 as usize].data;
        data.as_ref().expect("a waiter has its data")
    }
}

impl<D> IndexMut<&Waiter> for Waiters<D> {
    fn index_mut(&mut self, waiter: &Waiter) -> &mut D {
        let data = &mut self.entry(waiter.0).data;
        data.as_mut().expect("a waiter has its data")
    }
}

impl<D> fmt::Debug for Waiters<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters")
            .field("queued", &self.queued())
            .field("called", &self.called())
            .finish_non_exhaustive()
    }
}
