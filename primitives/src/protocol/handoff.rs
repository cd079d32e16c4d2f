//! One value, handed from one giver to one taker: the core of a oneshot.
//!
//! The value stands in a cell beside the lock, and the bits say whose it is:
//!
//! ```text
//!                    give: FULL | GIVER_LEFT
//!   ┌───────┐  ─────────────────────────────────▶  ┌──────────────────┐
//!   │ empty │                                      │ the taker's alone│ take: by a plain load
//!   └───────┘  ─────────────────────────────────▶  └──────────────────┘
//!       │            leave: GIVER_LEFT
//!       │ close: CLOSED      (the taker takes nothing new; a give is refused)
//!       ▼
//!   ┌────────┐  taker leaves: CLOSED | TAKER_LEFT  ┌──────────────────┐
//!   │ closed │  ─────────────────────────────────▶ │ the giver's alone│
//!   └────────┘                                     └──────────────────┘
//!
//!   GIVER_WAITS, TAKER_WAITS: that side's waker is registered.
//! ```
//!
//! Invariants:
//!
//! 1. Until `FULL`, only the giver touches the cell; from then on only the
//!    taker. `FULL` never comes without `GIVER_LEFT`.
//! 2. Each side leaves once, in the section that sets its bit, and touches
//!    nothing afterwards. Who sees that the other has left is the only user,
//!    needs no section to leave, and releases the place.
//! 3. Giving, closing and leaving decide what both sides wait for. They are a
//!    section that takes out the wakers of both and clears both `WAITS`, and
//!    nobody registers afterwards. So a place is empty when it is released: no
//!    value, no waker.
//!
//! Whatever is rare is a function of its own, so that what is not fits inline.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::bell::Bell;
use super::wake::After;
use super::{Backend, Bits, Cell, DefaultBackend, SharedBackend, StateLock, WakeList};

const FULL: Bits = Bits::new(1);
const GIVER_LEFT: Bits = Bits::new(1 << 1);
const CLOSED: Bits = Bits::new(1 << 2);
const TAKER_LEFT: Bits = Bits::new(1 << 3);
const GIVER_WAITS: Bits = Bits::new(1 << 4);
const TAKER_WAITS: Bits = Bits::new(1 << 5);

/// What the taker waits for: either says what it will get.
const SETTLED: Bits = Bits::new(GIVER_LEFT.get() | CLOSED.get());

/// Where a giver and a taker meet.
///
/// One gets its two ends by [`Handoff::pair`], on the heap, or by
/// [`Handoff::split`], in a place of one's own.
pub struct Handoff<T, B: Backend = DefaultBackend> {
    lock: StateLock<(), B>,
    giver: Bell<B>,
    taker: Bell<B>,
    value: B::Cell<MaybeUninit<T>>,
}

/// What a handoff is made in: on the heap ([`Boxed`]) or in a place of the
/// caller's ([`InSlot`]).
pub trait Place {
    /// The backend of the handoff.
    type Backend: Backend;

    /// How each end reaches it.
    type Pointer<T>: Deref<Target = Handoff<T, Self::Backend>> + Release + Copy;
}

/// How the last end to leave releases the place.
///
/// # Safety
///
/// Dereferencing two pointers of one pair gives the same handoff, until
/// `release`.
pub unsafe trait Release {
    /// Releases the place.
    ///
    /// # Safety
    ///
    /// Both ends have left, and nothing uses the handoff any more.
    unsafe fn release(self);
}

/// The place of [`Handoff::pair`]: an allocation that the last end frees.
#[derive(Debug)]
pub struct Boxed<B = DefaultBackend>(PhantomData<B>);

impl<B: Backend> Place for Boxed<B> {
    type Backend = B;
    type Pointer<T> = BoxPointer<T, B>;
}

/// A pointer to the allocation that the two ends of a pair share.
#[derive(Debug)]
pub struct BoxPointer<T, B: Backend>(NonNull<Handoff<T, B>>);

impl<T, B: Backend> Clone for BoxPointer<T, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, B: Backend> Copy for BoxPointer<T, B> {}

impl<T, B: Backend> Deref for BoxPointer<T, B> {
    type Target = Handoff<T, B>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: the allocation lives until `release`, which the last end to
        // leave calls when neither uses its pointer any more (invariant 2).
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: both pointers of a pair come from one `Box::leak`.
unsafe impl<T, B: Backend> Release for BoxPointer<T, B> {
    #[inline]
    unsafe fn release(self) {
        // SAFETY: the pointer came from `Box::leak`, and by the caller's
        // promise this is its only user and the last.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: the pointer is a share in a handoff that both threads may use.
unsafe impl<T: Send, B: SharedBackend> Send for BoxPointer<T, B> {}
// SAFETY: as above; a shared pointer gives a shared handoff.
unsafe impl<T: Send, B: SharedBackend> Sync for BoxPointer<T, B> {}

/// The place of [`Handoff::split`]: the caller's, borrowed for `'a`.
#[derive(Debug)]
pub struct InSlot<'a, B = DefaultBackend>(PhantomData<(&'a (), B)>);

impl<'a, B: Backend> Place for InSlot<'a, B> {
    type Backend = B;
    type Pointer<T> = SlotPointer<'a, T, B>;
}

/// A pointer to the place that the two ends of a split share.
#[derive(Debug)]
pub struct SlotPointer<'a, T, B: Backend> {
    handoff: NonNull<Handoff<T, B>>,
    borrow: PhantomData<&'a ()>,
}

impl<T, B: Backend> Clone for SlotPointer<'_, T, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, B: Backend> Copy for SlotPointer<'_, T, B> {}

impl<T, B: Backend> Deref for SlotPointer<'_, T, B> {
    type Target = Handoff<T, B>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: the pointer came from a `&'a mut` of the place, and each end lives
        // within `'a`; both ends use it by shared borrow only.
        unsafe { self.handoff.as_ref() }
    }
}

// SAFETY: both pointers of a split come from one `&mut Handoff`.
unsafe impl<T, B: Backend> Release for SlotPointer<'_, T, B> {
    #[inline]
    unsafe fn release(self) {
        // The place is the caller's, who finds it as it was.
        // SAFETY: by the caller's promise nothing else uses the handoff.
        unsafe { self.lock.store(Bits::EMPTY) };
    }
}

// SAFETY: the pointer is a shared borrow of the handoff.
unsafe impl<T: Send, B: SharedBackend> Send for SlotPointer<'_, T, B> {}
// SAFETY: as above.
unsafe impl<T: Send, B: SharedBackend> Sync for SlotPointer<'_, T, B> {}

// SAFETY: the value goes from one thread to another and is never shared (its
// cell belongs to one side at a time, invariant 1), so `T: Send` is enough, and the
// accesses to its cell do not race, as `SharedBackend` asks. Neither do those to the
// cells of the bells, by the contract of `Bell::wait`. The rest is the lock.
unsafe impl<T: Send, B: SharedBackend> Sync for Handoff<T, B> {}
// SAFETY: its lock and its cells may be sent, as `SharedBackend` promises of a state
// and of values that are `Send`.
unsafe impl<T: Send, B: SharedBackend> Send for Handoff<T, B> {}

impl<T, B: Backend> Handoff<T, B> {
    /// An empty handoff, over any backend.
    #[must_use]
    #[inline]
    pub fn new_in() -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, ()),
            giver: Bell::new(),
            taker: Bell::new(),
            value: B::Cell::new(MaybeUninit::uninit()),
        }
    }

    /// The two ends of a handoff on the heap.
    #[must_use]
    #[inline]
    pub fn pair() -> (Giver<T, Boxed<B>>, Taker<T, Boxed<B>>) {
        // `Box::new` would make the handoff on the stack and copy it.
        let handoff = Box::write(Box::new_uninit(), Self::new_in());
        let handoff = NonNull::from(Box::leak(handoff));
        (
            Giver::new(BoxPointer(handoff)),
            Taker::new(BoxPointer(handoff)),
        )
    }

    /// The two ends of this handoff. What ends of an earlier split left behind
    /// by being leaked is dropped first.
    #[must_use]
    #[inline]
    pub fn split(&mut self) -> (Giver<T, InSlot<'_, B>>, Taker<T, InSlot<'_, B>>) {
        self.clear();
        let handoff = NonNull::from(self);
        let pointer = || SlotPointer {
            handoff,
            borrow: PhantomData,
        };
        (Giver::new(pointer()), Taker::new(pointer()))
    }

    /// Drops what ends that were leaked left behind. Dropping the handoff does
    /// not: after ends that left there is nothing (invariant 3).
    #[inline]
    pub fn clear(&mut self) {
        if self.lock.load() != Bits::EMPTY {
            self.clear_leaked();
        }
    }

    #[cold]
    fn clear_leaked(&mut self) {
        let before = self.lock.get_mut(|bits, ()| core::mem::take(bits));
        let value = before.contains(FULL).then(|| self.read());
        let giver = before.contains(GIVER_WAITS).then(|| {
            // SAFETY: registered and not taken out, and `self` is exclusive.
            unsafe { self.giver.take() }
        });
        let taker = before.contains(TAKER_WAITS).then(|| {
            // SAFETY: as above.
            unsafe { self.taker.take() }
        });
        drop((value, giver, taker));
    }

    /// A section that decides: puts what `f` answers, takes out both wakers
    /// (invariant 3), the one of `own` to be dropped, and returns the bits it
    /// found.
    #[cold]
    fn decide(&self, own: Bits, wakes: &mut WakeList, f: impl FnOnce(Bits) -> Bits) -> Bits {
        self.lock.section(wakes, |section| {
            let before = *section.bits;
            *section.bits = f(before).without(GIVER_WAITS | TAKER_WAITS);
            for (waits, bell) in [(GIVER_WAITS, &self.giver), (TAKER_WAITS, &self.taker)] {
                if before.contains(waits) {
                    let after = if own == waits {
                        After::Drop
                    } else {
                        After::Wake
                    };
                    // SAFETY: this section has found `waits` set and clears it.
                    section.wakes.push(unsafe { bell.take() }, after);
                }
            }
            before
        })
    }

    /// Names the bits of a handoff, for people.
    pub fn describe(bits: Bits, f: &mut dyn fmt::Write) -> fmt::Result {
        const NAMES: [(Bits, &str); 6] = [
            (FULL, "value"),
            (GIVER_LEFT, "giver left"),
            (CLOSED, "closed"),
            (TAKER_LEFT, "taker left"),
            (GIVER_WAITS, "giver waits"),
            (TAKER_WAITS, "taker waits"),
        ];
        let mut first = true;
        for (flag, name) in NAMES {
            if bits.contains(flag) {
                if !core::mem::take(&mut first) {
                    f.write_str(", ")?;
                }
                f.write_str(name)?;
            }
        }
        if first {
            f.write_str("empty")?;
        }
        Ok(())
    }

    #[inline]
    fn write(&self, value: T) {
        self.value.with_mut(|cell| {
            // SAFETY: only the giver calls this, before `FULL` (invariant 1).
            unsafe { cell.write(MaybeUninit::new(value)) }
        });
    }

    /// Moves the value out. The caller has written it and not set `FULL`, or
    /// is the taker and has seen `FULL`; and it does not come back for it.
    #[inline]
    fn read(&self) -> T {
        self.value.with_mut(|cell| {
            // SAFETY: initialised and the caller's alone (invariant 1).
            let value = unsafe { cell.read() };
            // SAFETY: as above.
            unsafe { value.assume_init() }
        })
    }
}

impl<T, B: Backend> fmt::Debug for Handoff<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").finish_non_exhaustive()
    }
}

/// The end that gives.
///
/// Dropping it without having given leaves the taker with nothing to wait for.
pub struct Giver<T, P: Place> {
    handoff: P::Pointer<T>,
}

impl<T, P: Place> Giver<T, P> {
    #[inline]
    fn new(handoff: P::Pointer<T>) -> Self {
        Self { handoff }
    }

    /// Gives the value and leaves; without a waiter, one compare-exchange.
    ///
    /// # Errors
    ///
    /// The value, where the taker has closed or left.
    #[inline]
    pub fn give(self, value: T) -> Result<(), T> {
        let this = ManuallyDrop::new(self);
        this.handoff.write(value);
        match this.handoff.lock.update(|bits| {
            (!bits.intersects(CLOSED | GIVER_WAITS | TAKER_WAITS)).then(|| bits | FULL | GIVER_LEFT)
        }) {
            // From here on all of it is the taker's.
            Ok(_) => Ok(()),
            Err(bits) if bits.contains(TAKER_LEFT) => {
                let value = this.handoff.read();
                // SAFETY: the taker has left, and the giver does so now.
                unsafe { this.handoff.release() };
                Err(value)
            }
            Err(bits) if bits.intersects(CLOSED | GIVER_WAITS) => Self::give_slow(this.handoff),
            Err(_) => Self::give_waiting(this.handoff),
        }
    }

    /// Gives what has been written to a taker that waits: the common case of
    /// [`give_slow`](Self::give_slow), with one waker and so without a list.
    #[inline(never)]
    fn give_waiting(handoff: P::Pointer<T>) -> Result<(), T> {
        let waker = handoff.lock.unlisted(|bits, ()| {
            // Since they were looked at, the taker may have closed, left or
            // taken its waker back.
            if bits.intersects(CLOSED | GIVER_WAITS) || !bits.contains(TAKER_WAITS) {
                return None;
            }
            *bits = bits.without(TAKER_WAITS) | FULL | GIVER_LEFT;
            // SAFETY: this section has found `TAKER_WAITS` set and clears it.
            Some(unsafe { handoff.taker.take() })
        });
        match waker {
            Some(waker) => {
                waker.wake();
                Ok(())
            }
            None => Self::give_slow(handoff),
        }
    }

    /// Gives what has been written, whatever the bits are.
    #[cold]
    fn give_slow(handoff: P::Pointer<T>) -> Result<(), T> {
        let mut wakes = WakeList::new();
        let mut result = Ok(());
        let before = handoff.decide(GIVER_WAITS, &mut wakes, |bits| {
            if bits.contains(CLOSED) {
                // Back out while the giver is still there: once it has left,
                // the taker may release the place.
                result = Err(handoff.read());
                bits | GIVER_LEFT
            } else {
                bits | GIVER_LEFT | FULL
            }
        });
        if before.contains(TAKER_LEFT) {
            // SAFETY: the taker had left when the giver did.
            unsafe { handoff.release() };
        }
        wakes.fire();
        result
    }

    /// Whether the taker has closed or left: a value given now is refused.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.handoff.lock.load().contains(CLOSED)
    }

    /// Ready once the taker has closed or left.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let bits = self.handoff.lock.load();
        if bits.contains(CLOSED) {
            return Poll::Ready(());
        }
        let Handoff { lock, giver, .. } = &*self.handoff;
        // SAFETY: the one giver is borrowed exclusively, and `GIVER_WAITS` is
        // cleared only by leaving it and by what sets `CLOSED` (invariant 3).
        let polled = unsafe { giver.wait(lock, GIVER_WAITS, CLOSED, bits, cx) };
        polled.map(|_| ())
    }

    /// Discards the waker that [`poll_closed`](Self::poll_closed) has left, if it is
    /// still there.
    pub fn unregister(&mut self) {
        let Handoff { lock, giver, .. } = &*self.handoff;
        // SAFETY: the one giver is borrowed exclusively, so nothing else registers;
        // `GIVER_WAITS` is this cell's.
        drop(unsafe { giver.unregister(lock, GIVER_WAITS) });
    }

    /// Leaves without having given, where somebody waits.
    ///
    /// # Safety
    ///
    /// The giver does not use its pointer again.
    #[cold]
    unsafe fn leave_slow(handoff: P::Pointer<T>) {
        let mut wakes = WakeList::new();
        let before = handoff.decide(GIVER_WAITS, &mut wakes, |bits| bits | GIVER_LEFT);
        if before.contains(TAKER_LEFT) {
            // SAFETY: the taker had left when the giver did.
            unsafe { handoff.release() };
        }
        wakes.fire();
    }
}

/// Leaves without having given.
impl<T, P: Place> Drop for Giver<T, P> {
    #[inline]
    fn drop(&mut self) {
        match self.handoff.lock.update(|bits| {
            (!bits.intersects(TAKER_LEFT | GIVER_WAITS | TAKER_WAITS)).then(|| bits | GIVER_LEFT)
        }) {
            Ok(_) => {}
            // SAFETY: the taker has left, and the giver does so now.
            Err(bits) if bits.contains(TAKER_LEFT) => unsafe { self.handoff.release() },
            // SAFETY: the giver is being dropped.
            Err(_) => unsafe { Self::leave_slow(self.handoff) },
        }
    }
}

/// The end that takes.
///
/// Dropping it closes the handoff: a value given later is refused, one given
/// before is dropped with it.
pub struct Taker<T, P: Place> {
    handoff: P::Pointer<T>,
}

impl<T, P: Place> Taker<T, P> {
    #[inline]
    fn new(handoff: P::Pointer<T>) -> Self {
        Self { handoff }
    }

    /// Takes the value, if it is there: a load, and no read-modify-write.
    ///
    /// Ready with `None` where no value will come any more. `this` is emptied
    /// with the answer, and an empty one is answered `None`.
    #[inline]
    pub fn try_take(this: &mut Option<Self>) -> Poll<Option<T>> {
        let Some(taker) = this else {
            return Poll::Ready(None);
        };
        let bits = taker.handoff.lock.load();
        if bits.intersects(SETTLED) {
            Self::settle(this, bits)
        } else {
            Poll::Pending
        }
    }

    /// As [`try_take`](Self::try_take), leaving a waker where there is no
    /// answer yet.
    #[inline]
    pub fn poll_take(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(taker) = this else {
            return Poll::Ready(None);
        };
        let mut bits = taker.handoff.lock.load();
        if !bits.intersects(SETTLED) {
            let Handoff { lock, taker, .. } = &*taker.handoff;
            // SAFETY: the one taker is borrowed exclusively, and `TAKER_WAITS`
            // is cleared only by leaving it and by what settles (invariant 3).
            match unsafe { taker.wait(lock, TAKER_WAITS, SETTLED, bits, cx) } {
                Poll::Ready(settled) => bits = settled,
                Poll::Pending => return Poll::Pending,
            }
        }
        Self::settle(this, bits)
    }

    /// Takes nothing new from now on: a value given later is refused, one
    /// given before is still there to be taken.
    pub fn close(&self) {
        let unwaited = self
            .handoff
            .lock
            .update(|bits| (!bits.intersects(GIVER_WAITS | TAKER_WAITS)).then(|| bits | CLOSED));
        if unwaited.is_err() {
            let mut wakes = WakeList::new();
            self.handoff
                .decide(Bits::EMPTY, &mut wakes, |bits| bits | CLOSED);
            wakes.fire();
        }
    }

    /// Whether a value is there to be taken.
    pub fn is_full(&self) -> bool {
        self.handoff.lock.load().contains(FULL)
    }

    /// Answers a settled take and lets go of the end.
    #[inline]
    fn settle(this: &mut Option<Self>, bits: Bits) -> Poll<Option<T>> {
        let Some(taker) = this.take() else {
            return Poll::Ready(None);
        };
        if bits.contains(GIVER_LEFT) {
            let taker = ManuallyDrop::new(taker);
            // SAFETY: the giver has left, and `taker` is not dropped.
            Poll::Ready(unsafe { Self::finish(taker.handoff, bits) })
        } else {
            taker.leave_closed();
            Poll::Ready(None)
        }
    }

    /// Drops the end, where it was closed and the giver is still there.
    #[cold]
    fn leave_closed(self) {}

    /// Takes the value if there is one, and releases the place.
    ///
    /// # Safety
    ///
    /// `bits` have been seen in this handoff and contain `GIVER_LEFT`; the
    /// taker does not use its pointer again.
    #[inline]
    unsafe fn finish(handoff: P::Pointer<T>, bits: Bits) -> Option<T> {
        let value = bits.contains(FULL).then(|| handoff.read());
        // SAFETY: the giver has left, and the taker does so now.
        unsafe { handoff.release() };
        value
    }

    /// Closes and leaves, where somebody waits.
    ///
    /// # Safety
    ///
    /// The taker does not use its pointer again.
    #[cold]
    unsafe fn leave_slow(handoff: P::Pointer<T>) {
        let mut wakes = WakeList::new();
        let before = handoff.decide(TAKER_WAITS, &mut wakes, |bits| bits | CLOSED | TAKER_LEFT);
        if before.contains(GIVER_LEFT) {
            // SAFETY: the giver had left when the taker did.
            drop(unsafe { Self::finish(handoff, before) });
        }
        wakes.fire();
    }
}

/// Closes and leaves.
impl<T, P: Place> Drop for Taker<T, P> {
    #[inline]
    fn drop(&mut self) {
        match self.handoff.lock.update(|bits| {
            (!bits.intersects(GIVER_LEFT | GIVER_WAITS | TAKER_WAITS))
                .then(|| bits | CLOSED | TAKER_LEFT)
        }) {
            Ok(_) => {}
            Err(bits) if bits.contains(GIVER_LEFT) => {
                // SAFETY: the giver has left, and the taker does so now.
                drop(unsafe { Self::finish(self.handoff, bits) });
            }
            // SAFETY: the taker is being dropped.
            Err(_) => unsafe { Self::leave_slow(self.handoff) },
        }
    }
}

impl<T, P: Place> fmt::Debug for Giver<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Giver")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T, P: Place> fmt::Debug for Taker<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taker")
            .field("is_full", &self.is_full())
            .finish_non_exhaustive()
    }
}
