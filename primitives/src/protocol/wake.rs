//! How wakers come into a section and leave it.
//!
//! A waker is foreign code: its `clone`, `drop` and `wake` may do anything, and may
//! re-enter the primitive and panic. So a section never has access to one. It has
//! [`WakerSlot`]s. A [`Registration`] puts a waker into a slot, and a [`WakeList`]
//! takes it out:
//!
//! ```text
//!   Registration ──register──▶ WakerSlot ──wake / discard──▶ WakeList
//!   (cloned before             (under the lock,              (woken and dropped
//!    the section)               never called)                 after the release)
//! ```
//!
//! Invariant: between two sections a slot is empty or holds the waker of the
//! latest poll that returned `Pending` (P5).

use core::fmt;
use core::mem::MaybeUninit;
use core::task::Waker;

use crate::location;

/// A slot for one waker, under a lock.
///
/// It is filled by [`Registration::register`] and emptied into a [`WakeList`].
/// Nothing else gets the waker out, so nothing can clone or wake it while the lock is
/// held. The types do not rule out that a section overwrites or drops a slot that is
/// not empty, which would drop the waker under the lock. Such a slot must be emptied
/// first.
#[derive(Default)]
pub struct WakerSlot(Option<Waker>);

impl WakerSlot {
    /// Creates an empty slot.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns `true` if a waker is registered.
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for WakerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_registered() {
            "WakerSlot(registered)"
        } else {
            "WakerSlot(empty)"
        })
    }
}

/// The right to register the waker of the current poll, once.
///
/// [`StateLock::poll`](super::StateLock::poll) and
/// [`first_poll`](super::StateLock::first_poll) give one to the section of a poll.
/// The section returns the [`Registered`] that it gets for the token, so a poll cannot
/// be pending without a registered waker.
///
/// The waker is cloned outside the section. If the slot already holds a waker of the
/// same task (`will_wake`), it stays there and nothing is cloned.
#[derive(Debug)]
pub struct Registration<'a> {
    waker: &'a Waker,
    /// The clone to leave in the slot. Afterwards, the waker that it displaced.
    spare: &'a mut Option<Waker>,
}

/// The proof that a [`Registration`] has been used. A section returns it to be
/// pending. Either the waker is registered, or the section runs once more with a clone
/// of the waker, which it registers then.
#[derive(Debug)]
pub struct Registered {
    /// Whether the section has to run again, with a clone of the waker.
    needs_clone: bool,
}

impl<'a> Registration<'a> {
    #[inline]
    pub(super) const fn new(waker: &'a Waker, spare: &'a mut Option<Waker>) -> Self {
        Self { waker, spare }
    }

    /// Leaves the waker of this poll in `slot`, and displaces the waker there.
    ///
    /// The section returns the result. It may run once more before the poll
    /// returns, if a clone of the waker turns out to be needed.
    #[inline]
    pub fn register(self, slot: &mut WakerSlot) -> Registered {
        location::note_registered();
        if slot.0.as_ref().is_some_and(|it| it.will_wake(self.waker)) {
            return Registered { needs_clone: false };
        }
        let needs_clone = self.spare.is_none();
        if !needs_clone {
            // The displaced waker is dropped after the section.
            core::mem::swap(&mut slot.0, self.spare);
        }
        Registered { needs_clone }
    }
}

impl Registered {
    #[inline]
    pub(super) const fn needs_clone(&self) -> bool {
        self.needs_clone
    }
}

/// The wakers that leave a section: they are woken or dropped after the lock is
/// released.
///
/// Only [`StateLock::with`](super::StateLock::with) and its siblings create a list,
/// outside the section, and fire it there. A section fills the list of its
/// [`Section`](super::Section) and can do no more with it.
///
/// A list is large, and stays where it was created.
///
/// A list holds [`WakeList::CAPACITY`] wakers. If more are due, a section fills the
/// list, ends, and another section follows: see
/// [`StateLock::rounds`](super::StateLock::rounds).
///
/// If a waker panics, the others of the list are still woken, and the first panic
/// reaches the caller (P8). Without `std` a second panic aborts.
pub struct WakeList {
    wakers: [MaybeUninit<Waker>; Self::CAPACITY],
    /// A bit for each waker that is dropped and not woken.
    discarded: u32,
    /// `wakers[next..len]` are initialized.
    next: usize,
    len: usize,
}

/// What happens to a waker after the section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Wake,
    Drop,
}

impl WakeList {
    /// The number of wakers that fit.
    pub const CAPACITY: usize = 32;

    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            wakers: [const { MaybeUninit::uninit() }; Self::CAPACITY],
            discarded: 0,
            next: 0,
            len: 0,
        }
    }

    /// Takes the waker out of `slot`, to be woken after the section.
    ///
    /// # Panics
    ///
    /// Panics if the list is full. The waker stays in its slot.
    #[inline]
    pub fn wake(&mut self, slot: &mut WakerSlot) {
        self.take(slot, After::Wake);
    }

    /// Takes the waker out of `slot`, to be dropped after the section.
    ///
    /// # Panics
    ///
    /// Panics if the list is full. The waker stays in its slot.
    #[inline]
    pub fn discard(&mut self, slot: &mut WakerSlot) {
        self.take(slot, After::Drop);
    }

    /// Returns `true` if no further waker fits.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len >= Self::CAPACITY
    }

    /// Takes the waker out of `slot`, if there is one. It checks for room first,
    /// since the panic would otherwise drop the waker under the lock.
    #[inline]
    fn take(&mut self, slot: &mut WakerSlot, after: After) {
        if slot.is_registered() {
            let room = self.room();
            if let Some(waker) = slot.0.take() {
                room.write(waker);
                self.pushed(after);
            }
        }
    }

    /// Adds a waker.
    #[inline]
    pub(crate) fn push(&mut self, waker: Waker, after: After) {
        self.room().write(waker);
        self.pushed(after);
    }

    #[inline]
    fn room(&mut self) -> &mut MaybeUninit<Waker> {
        match self.wakers.get_mut(self.len) {
            Some(room) => room,
            None => panic!("a section took out more wakers than a WakeList holds"),
        }
    }

    #[inline]
    fn pushed(&mut self, after: After) {
        if after == After::Drop {
            self.discarded |= 1 << self.len;
        }
        self.len += 1;
    }

    /// Wakes or drops each waker, in the order in which they were added.
    #[inline]
    pub(crate) fn fire(&mut self) {
        while self.next < self.len {
            self.fire_next();
        }
    }

    /// Fires while a panic unwinds, and catches the panics of wakers.
    #[cold]
    fn fire_unwinding(&mut self) {
        while self.next < self.len {
            #[cfg(feature = "std")]
            drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(
                || self.fire_next(),
            )));
            #[cfg(not(feature = "std"))]
            self.fire_next();
        }
    }

    /// Wakes or drops one waker. The waker counts as gone before that, so that a
    /// panic finds the list consistent.
    #[inline]
    fn fire_next(&mut self) {
        let index = self.next;
        self.next += 1;
        // SAFETY: callers check `index < len`, so `push` has initialized this
        // element. `next` has moved past it, so it is not read again.
        let waker = unsafe { self.wakers[index].assume_init_read() };
        if self.discarded & (1 << index) == 0 {
            waker.wake();
        }
    }
}

/// There are wakers inside only while a panic of a waker or of the section unwinds.
impl Drop for WakeList {
    #[inline]
    fn drop(&mut self) {
        if self.next < self.len {
            self.fire_unwinding();
        }
    }
}

impl fmt::Debug for WakeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeList")
            .field("len", &(self.len - self.next))
            .finish_non_exhaustive()
    }
}
