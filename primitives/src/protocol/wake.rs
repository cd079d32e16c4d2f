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

    /// Creates a slot for a waker that leaves a section and was not in the state.
    #[inline]
    pub(crate) const fn of(waker: Waker) -> Self {
        Self(Some(waker))
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
/// A list first wakes the wakers that are to be woken, in the order in which they were
/// added, and then drops the others. So no task waits for the destructor of a waker.
///
/// Most sections let one waker go, or drop one. These two stand by themselves, and the
/// array is for sections that wake many. A list is large, and stays where it was
/// created.
///
/// A list has room for [`WakeList::CAPACITY`] wakers of one kind. If more are due, a section fills
/// the list, ends, and another section follows: see
/// [`StateLock::rounds`](super::StateLock::rounds).
///
/// If a waker panics, the others of the list are still woken, and the first panic
/// reaches the caller (P8). Without `std` a second panic aborts.
pub struct WakeList {
    /// The first waker to wake, and the first to drop.
    wake: MaybeUninit<Waker>,
    discard: MaybeUninit<Waker>,
    /// The further ones: `more[woken..wakes]` are initialized, and are woken. The last
    /// `discards` elements are initialized, and are dropped.
    more: [MaybeUninit<Waker>; Self::CAPACITY - 1],
    /// Whether `wake` and `discard` are initialized.
    wakes_one: bool,
    discards_one: bool,
    wakes: u8,
    discards: u8,
    woken: u8,
    /// Whether a waker has been added.
    used: bool,
}

impl WakeList {
    /// The number of wakers that fit. If both kinds leave, one more fits.
    pub const CAPACITY: usize = 32;

    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            wake: MaybeUninit::uninit(),
            discard: MaybeUninit::uninit(),
            more: [const { MaybeUninit::uninit() }; Self::CAPACITY - 1],
            wakes_one: false,
            discards_one: false,
            wakes: 0,
            discards: 0,
            woken: 0,
            used: false,
        }
    }

    /// Takes the waker out of `slot`, to be woken after the section.
    ///
    /// # Panics
    ///
    /// Panics if the list is full. The waker stays in its slot.
    #[inline]
    pub fn wake(&mut self, slot: &mut WakerSlot) {
        if !slot.is_registered() {
            return;
        }
        let first = !self.wakes_one;
        let room = match first {
            true => &mut self.wake,
            false => self.room(self.wakes.into()),
        };
        if let Some(waker) = slot.0.take() {
            room.write(waker);
            self.used = true;
            match first {
                true => self.wakes_one = true,
                false => self.wakes += 1,
            }
        }
    }

    /// Takes the waker out of `slot`, to be dropped after the section.
    ///
    /// # Panics
    ///
    /// Panics if the list is full. The waker stays in its slot.
    #[inline]
    pub fn discard(&mut self, slot: &mut WakerSlot) {
        if !slot.is_registered() {
            return;
        }
        let first = !self.discards_one;
        let room = match first {
            true => &mut self.discard,
            false => self.room((Self::CAPACITY - 2).saturating_sub(self.discards.into())),
        };
        if let Some(waker) = slot.0.take() {
            room.write(waker);
            self.used = true;
            match first {
                true => self.discards_one = true,
                false => self.discards += 1,
            }
        }
    }

    /// Returns `true` if there may be no room for a further waker.
    #[must_use]
    #[inline]
    pub const fn is_full(&self) -> bool {
        (self.wakes + self.discards) as usize >= Self::CAPACITY - 1
    }

    /// Returns an element of the array. The check comes before the waker leaves its slot,
    /// since the panic would otherwise drop it under the lock.
    #[inline]
    fn room(&mut self, index: usize) -> &mut MaybeUninit<Waker> {
        assert!(
            !self.is_full(),
            "a section took out more wakers than a WakeList holds"
        );
        &mut self.more[index]
    }

    /// Prepares for firing, before the section.
    #[inline]
    pub(crate) const fn armed(&mut self) -> Armed<'_> {
        Armed(self)
    }

    /// Wakes and drops the wakers. Each counts as gone before that, so that a panic finds
    /// the list consistent.
    #[inline]
    fn fire(&mut self) {
        if core::mem::take(&mut self.wakes_one) {
            // SAFETY: `wakes_one` was set, so `wake` has initialized it. It is clear now,
            // so it is not read again.
            unsafe { self.wake.assume_init_read() }.wake();
        }
        if self.wakes + self.discards > 0 {
            self.fire_more();
        }
        if core::mem::take(&mut self.discards_one) {
            // SAFETY: as above, by `discards_one` and `discard`.
            drop(unsafe { self.discard.assume_init_read() });
        }
    }

    #[inline(never)]
    fn fire_more(&mut self) {
        let wakes = usize::from(self.wakes);
        while let Some(waker) = self.more[..wakes].get(usize::from(self.woken)) {
            self.woken += 1;
            // SAFETY: the element is below `wakes`, so `wake` has initialized it. `woken`
            // has moved past it, so it is not read again.
            unsafe { waker.assume_init_read() }.wake();
        }
        (self.wakes, self.woken) = (0, 0);
        while self.discards > 0 {
            let index = Self::CAPACITY - 1 - usize::from(self.discards);
            self.discards -= 1;
            // SAFETY: the element is one of the last `discards`, so `discard` has
            // initialized it. It is not one of them any more, so it is not read again.
            drop(unsafe { self.more[index].assume_init_read() });
        }
    }

    /// Fires while a panic unwinds, and catches the panics of wakers.
    #[cold]
    #[inline(never)]
    fn fire_unwinding(&mut self) {
        #[cfg(feature = "std")]
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(
            || self.armed().fire(),
        )));
        #[cfg(not(feature = "std"))]
        self.armed().fire();
    }
}

/// A list that is fired after the section, also if the section panics.
pub(crate) struct Armed<'a>(pub(super) &'a mut WakeList);

impl Armed<'_> {
    /// Wakes and drops the wakers. If one panics, the drop fires the rest.
    #[inline]
    pub(crate) fn fire(self) {
        if self.0.used {
            self.0.fire();
        }
        core::mem::forget(self);
    }
}

/// This drop runs only while a panic of a waker or of the section unwinds, or if a
/// caller that unwinds does not fire.
impl Drop for Armed<'_> {
    #[inline]
    fn drop(&mut self) {
        let WakeList {
            wakes_one,
            discards_one,
            wakes,
            discards,
            ..
        } = *self.0;
        if wakes_one || discards_one || wakes + discards > 0 {
            self.0.fire_unwinding();
        }
    }
}

impl fmt::Debug for WakeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let single = u8::from(self.wakes_one) + u8::from(self.discards_one);
        let len = single + self.wakes - self.woken + self.discards;
        f.debug_struct("WakeList")
            .field("len", &len)
            .finish_non_exhaustive()
    }
}
