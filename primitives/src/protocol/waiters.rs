//! The queue of every primitive that queues: a FIFO of waiters in a slab.
//!
//! ```text
//!            push              notify_one, notify_all             remove
//!   (free) ───────▶ queued ──────────────────────────▶ notified ─────────▶ (free)
//!                      └─────────────────remove──────────────────────────▶
//! ```
//!
//! A waiter is an index into the slab. Its future keeps the index, so futures are
//! `Unpin` and a few words small. A *notified* waiter has been granted what it waits
//! for, or has been told that the queue is closed, and has not observed it. Its entry
//! holds the grant until the future takes it, or passes it on in its `drop` (P6).
//!
//! ```text
//!   list:  front ⇄ … ⇄ │ head ⇄ … ⇄ last      tickets never descend
//!          notified,   │ queued
//!          not woken   │
//!                  generation
//! ```
//!
//! Invariants:
//!
//! 1. An entry belongs to the future that pushed it, from `push` to `remove`.
//! 2. One list links, in the order of their tickets, the waiters that `notify_all` has
//!    notified and that have not been woken, and then the queued ones. The tickets
//!    of the former are below the generation. `head` is the first queued one.
//! 3. A waiter that has left the list has a negative ticket. So a waiter is notified
//!    if and only if its ticket is below the generation.
//!
//! Every operation is O(1), wherever the entry is and however many waiters are
//! notified. The slab is empty until the first waiter. A recurring load allocates
//! nothing. The memory of a spike that does not recur is given back.

#[cfg(feature = "locations")]
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use super::wake::{WakeList, WakerSlot};
#[cfg(feature = "model")]
use crate::backend::{Native, watch::tell};
use crate::location::{self, CallerLocation};
use crate::slab::{NONE, Slab, Slot};

/// A waiter: its index in the slab.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiter(u32);

/// The number of indices that are sentinels.
const SENTINELS: u32 = 8;

/// A sentinel in place of an index. A future that is not queued stores its stage in
/// this word, so it stays two words and is passed in registers.
impl Waiter {
    /// Returns one of the eight sentinels.
    ///
    /// # Panics
    ///
    /// Panics if `sentinel` is above 7.
    #[track_caller]
    #[must_use]
    pub const fn sentinel(sentinel: u32) -> Self {
        assert!(sentinel < SENTINELS, "there are eight sentinels");
        Self(NONE - sentinel)
    }

    /// Returns `true` if this is a sentinel.
    #[inline]
    #[must_use]
    pub const fn is_sentinel(&self) -> bool {
        self.0 > NONE - SENTINELS
    }
}

/// Waiters in the order of their arrival, each with what it waits for or has been
/// granted.
///
/// # Examples
///
/// Waits that end one by one:
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use reveille::protocol::{Bits, CallerLocation, StateLock, Waiter, Waiters};
///
/// let lock: StateLock<Waiters<()>> = StateLock::new_in(Bits::EMPTY, Waiters::new());
/// let poll = |waiter: &mut Option<Waiter>, cx: &mut Context<'_>| {
///     lock.poll(cx, waiter.is_none(), |section, registration| {
///         let waiters = section.state;
///         if let Some(waiter) = waiter.take_if(|waiter| waiters.is_notified(waiter)) {
///             waiters.remove(waiter, section.wakes);
///             return Ok(());
///         }
///         let location = CallerLocation::capture();
///         let waiter = waiter.get_or_insert_with(|| waiters.push(location, ()));
///         Err(registration.register(waiters.waker(waiter)))
///     })
/// };
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let (mut first, mut second) = (None, None);
/// assert!(poll(&mut first, &mut cx).is_pending());
/// assert!(poll(&mut second, &mut cx).is_pending());
/// lock.with(|section| {
///     let first = section.state.first().expect("two waiters are queued");
///     section.state.notify_one(&first, section.wakes);
/// });
/// assert_eq!(poll(&mut first, &mut cx), Poll::Ready(()));
/// assert!(poll(&mut second, &mut cx).is_pending());
/// ```
pub struct Waiters<D> {
    slab: Slab<Entry<D>>,
    /// The ends of the list.
    front: u32,
    last: u32,
    /// The first queued waiter in the list.
    head: u32,
    /// The ticket of the next waiter.
    ticket: i64,
    /// The tickets of notified waiters are below it.
    generation: i64,
    queued: usize,
    notified: usize,
}

/// The waiters that one [`notify_all`](Waiters::notify_all) has notified, by the ticket
/// that follows theirs.
#[derive(Clone, Copy, Debug)]
pub struct Generation(i64);

struct Entry<D> {
    /// The ticket of the waiter, with [`UNLISTED`] if the entry is off the list, or
    /// [`FREE`] in a free entry.
    ticket: i64,
    /// The neighbours in the list. In a free entry, `next` is the next free entry.
    previous: u32,
    next: u32,
    waker: WakerSlot,
    location: CallerLocation,
    data: D,
}

/// The sign bit, which is set in the ticket of an entry that is off the list.
const UNLISTED: i64 = i64::MIN;
/// The ticket of a free entry.
const FREE: i64 = -1;

impl<D: Copy> Waiters<D> {
    /// Creates an empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slab: Slab::new(),
            front: NONE,
            last: NONE,
            head: NONE,
            ticket: 0,
            generation: 0,
            queued: 0,
            notified: 0,
        }
    }

    /// Returns the number of queued waiters.
    #[must_use]
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the number of notified waiters that have not been removed.
    #[must_use]
    pub const fn notified(&self) -> usize {
        self.notified
    }

    /// Returns `true` if no waiter is queued.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Adds a waiter at the end of the queue. `location` is where it began to wait. It
    /// has no waker yet.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 - 8 waiters.
    pub fn push(&mut self, location: CallerLocation, data: D) -> Waiter {
        let ticket = self.ticket;
        self.ticket += 1;
        self.insert(ticket, self.last, NONE, location, data)
    }

    /// Adds a waiter in front of the queue. It has no waker yet.
    ///
    /// # Panics
    ///
    /// The same as those of [`push`](Self::push).
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

    /// Adds a waiter to the list, between two neighbours.
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
            Some((index, entry)) => {
                entry.ticket = ticket;
                entry.previous = previous;
                entry.next = next;
                entry.location = location;
                entry.data = data;
                index
            }
            None => self.grow(Entry {
                ticket,
                previous,
                next,
                waker: WakerSlot::new(),
                location,
                data,
            }),
        };
        self.queued += 1;
        match previous {
            NONE => self.front = index,
            previous => self.entry(previous).next = index,
        }
        match next {
            NONE => self.last = index,
            next => self.entry(next).previous = index,
        }
        if self.head == next {
            self.head = index;
        }
        #[cfg(feature = "model")]
        tell::<Native>(|watcher| watcher.queues(self.number(index), location.get()));
        Waiter(index)
    }

    /// Adds an entry to the slab.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, entry: Entry<D>) -> u32 {
        let most = NONE - SENTINELS + 1;
        self.slab
            .push(entry, most, "a queue holds at most 2^32 - 8 waiters")
    }

    /// Returns the head of the queue.
    #[must_use]
    pub const fn first(&self) -> Option<Waiter> {
        match self.head {
            NONE => None,
            index => Some(Waiter(index)),
        }
    }

    /// Returns `true` if the waiter is the head of the queue.
    #[must_use]
    pub const fn is_first(&self, waiter: &Waiter) -> bool {
        self.head == waiter.0
    }

    /// Returns the last waiter of the queue.
    #[must_use]
    pub const fn last(&self) -> Option<Waiter> {
        match self.head {
            NONE => None,
            _ => Some(Waiter(self.last)),
        }
    }

    /// Notifies a queued waiter and takes out its waker. Returns its data, which from
    /// now on says what the waiter has been granted.
    ///
    /// # Panics
    ///
    /// The same as those of [`WakeList::wake`].
    #[inline]
    pub fn notify_one(&mut self, waiter: &Waiter, wakes: &mut WakeList) -> &mut D {
        debug_assert!(!self.is_notified(waiter), "a waiter is notified once");
        let entry = self.entry(waiter.0);
        wakes.wake(&mut entry.waker);
        entry.ticket |= UNLISTED;
        let (previous, next) = (entry.previous, entry.next);
        #[cfg(feature = "model")]
        tell::<Native>(|watcher| watcher.grants(self.number(waiter.0)));
        self.unlink(waiter.0, previous, next);
        self.queued -= 1;
        self.notified += 1;
        &mut self[waiter]
    }

    /// Notifies every queued waiter, and none that comes later.
    /// [`wake_notified`](Self::wake_notified) takes out their wakers, as many at a time
    /// as fit into a list.
    pub fn notify_all(&mut self) -> Generation {
        self.notified += core::mem::take(&mut self.queued);
        self.generation = self.ticket;
        self.head = NONE;
        Generation(self.generation)
    }

    /// Takes out the wakers of a generation, as many as fit. Returns `true` if there are
    /// more.
    pub fn wake_notified(&mut self, generation: Generation, wakes: &mut WakeList) -> bool {
        let mut index = self.front;
        let more = loop {
            // There is no entry at `NONE`.
            let Some(entry) = self.slab.get_mut(index) else {
                break false;
            };
            if entry.ticket >= generation.0 {
                break false;
            }
            if wakes.is_full() {
                break true;
            }
            wakes.wake(&mut entry.waker);
            entry.ticket |= UNLISTED;
            let next = entry.next;
            #[cfg(feature = "model")]
            tell::<Native>(|watcher| watcher.grants(self.number(index)));
            index = next;
        };
        // The rest of the list begins here.
        self.front = index;
        match self.slab.get_mut(index) {
            Some(entry) => entry.previous = NONE,
            None => self.last = NONE,
        }
        more
    }

    /// Returns `true` if the waiter has been notified.
    #[must_use]
    pub fn is_notified(&self, waiter: &Waiter) -> bool {
        self.slab[waiter.0].ticket < self.generation
    }

    /// Returns the slot of the waiter's waker.
    pub fn waker(&mut self, waiter: &Waiter) -> &mut WakerSlot {
        let entry = self.entry(waiter.0);
        location::note_call(entry.location);
        &mut entry.waker
    }

    /// Removes a waiter and returns its data. Its waker is dropped after the section.
    ///
    /// # Panics
    ///
    /// The same as those of [`WakeList::discard`].
    #[inline]
    pub fn remove(&mut self, waiter: Waiter, wakes: &mut WakeList) -> D {
        let index = waiter.0;
        #[cfg(feature = "model")]
        tell::<Native>(|watcher| watcher.unqueues(self.number(index)));
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

    /// Returns the location at which each waiter began to wait, in the order of their
    /// tickets. Notified waiters are included.
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

    /// Returns a number of an entry that no entry of another queue has: the address of the
    /// queue, which does not move while waiters are in it, and the index.
    #[cfg(feature = "model")]
    fn number(&self, index: u32) -> usize {
        (core::ptr::from_ref(self).addr() << 20) ^ index as usize
    }

    #[inline]
    fn entry(&mut self, index: u32) -> &mut Entry<D> {
        &mut self.slab[index]
    }

    /// Takes an entry with these neighbours off the list.
    #[inline]
    fn unlink(&mut self, index: u32, previous: u32, next: u32) {
        match previous {
            NONE => self.front = next,
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

/// The data of a waiter: what it waits for, or has been granted.
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
