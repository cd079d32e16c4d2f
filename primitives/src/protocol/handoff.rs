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
//!    nothing afterwards. Whoever finds the other's bit on leaving is the last
//!    and releases the place. A taker that sees `GIVER_LEFT` is the only user
//!    left and needs no section at all.
//! 3. Whoever leaves takes its own waker out in that section, and the waker of
//!    the other side if it waits for this. Closing decides what both sides wait
//!    for, so it takes out both, and nobody registers afterwards.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::{Backend, Bits, Cell, DefaultBackend, SharedBackend, StateLock, WakerSlot};

const FULL: Bits = Bits::new(1);
const GIVER_LEFT: Bits = Bits::new(1 << 1);
const CLOSED: Bits = Bits::new(1 << 2);
const TAKER_LEFT: Bits = Bits::new(1 << 3);
const GIVER_WAITS: Bits = Bits::new(1 << 4);
const TAKER_WAITS: Bits = Bits::new(1 << 5);

/// Where a giver and a taker meet.
///
/// One gets its two ends by [`Handoff::pair`], on the heap, or by
/// [`Handoff::split`], in a place of one's own.
pub struct Handoff<T, B: Backend = DefaultBackend> {
    lock: StateLock<Wakers, B>,
    value: B::Cell<MaybeUninit<T>>,
}

/// The wakers of the two sides.
#[derive(Debug, Default)]
struct Wakers {
    giver: WakerSlot,
    taker: WakerSlot,
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
        // SAFETY: the place is borrowed for `'a`.
        unsafe { self.handoff.as_ref() }
    }
}

// SAFETY: both pointers of a split come from one `&mut Handoff`.
unsafe impl<T, B: Backend> Release for SlotPointer<'_, T, B> {
    #[inline]
    unsafe fn release(self) {
        // The place is the caller's.
    }
}

// SAFETY: the pointer is a shared borrow of the handoff.
unsafe impl<T: Send, B: SharedBackend> Send for SlotPointer<'_, T, B> {}
// SAFETY: as above.
unsafe impl<T: Send, B: SharedBackend> Sync for SlotPointer<'_, T, B> {}

// SAFETY: the value goes from one thread to another and is never shared (its
// cell belongs to one side at a time, invariant 1), so `T: Send` is enough; the
// rest stands under the lock.
unsafe impl<T: Send, B: SharedBackend> Sync for Handoff<T, B> {}
// SAFETY: owning a handoff is owning its lock and its value.
unsafe impl<T: Send, B: SharedBackend> Send for Handoff<T, B> {}

impl<T, B: Backend> Handoff<T, B> {
    /// An empty handoff, over any backend.
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, Wakers::default()),
            value: B::Cell::new(MaybeUninit::uninit()),
        }
    }

    /// The two ends of a handoff on the heap.
    #[must_use]
    pub fn pair() -> (Giver<T, Boxed<B>>, Taker<T, Boxed<B>>) {
        let handoff = NonNull::from(Box::leak(Box::new(Self::new_in())));
        (
            Giver::new(BoxPointer(handoff)),
            Taker::new(BoxPointer(handoff)),
        )
    }

    /// The two ends of this handoff. What ends of an earlier split left behind
    /// by being leaked is dropped first.
    #[must_use]
    pub fn split(&mut self) -> (Giver<T, InSlot<'_, B>>, Taker<T, InSlot<'_, B>>) {
        self.clear();
        let handoff = NonNull::from(self);
        let pointer = || SlotPointer {
            handoff,
            borrow: PhantomData,
        };
        (Giver::new(pointer()), Taker::new(pointer()))
    }

    /// Drops what is left by ends that never left.
    fn clear(&mut self) {
        let (full, wakers) = self.lock.get_mut(|bits, wakers| {
            let full = bits.contains(FULL);
            *bits = Bits::EMPTY;
            (full, core::mem::take(wakers))
        });
        let value = full.then(|| self.read());
        drop((value, wakers));
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

/// Drops what ends that were leaked left behind; after ends that left there is
/// nothing.
impl<T, B: Backend> Drop for Handoff<T, B> {
    fn drop(&mut self) {
        self.clear();
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
    /// Whether this end has registered a waker: decides whether the next poll
    /// clones beforehand.
    waits: bool,
}

impl<T, P: Place> Giver<T, P> {
    fn new(handoff: P::Pointer<T>) -> Self {
        Self {
            handoff,
            waits: false,
        }
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
            Err(_) => Self::give_slow(this.handoff),
        }
    }

    /// Gives what has been written, where somebody waits or has closed.
    #[cold]
    fn give_slow(handoff: P::Pointer<T>) -> Result<(), T> {
        let ((refused, last), wakes) = handoff.lock.section(|section| {
            let bits = section.bits;
            bits.remove(GIVER_WAITS);
            section.wakes.discard(&mut section.state.giver);
            bits.insert(GIVER_LEFT);
            if bits.contains(CLOSED) {
                // Still the giver's: `FULL` is not set and will not be.
                (Some(handoff.read()), bits.contains(TAKER_LEFT))
            } else {
                bits.insert(FULL);
                bits.remove(TAKER_WAITS);
                section.wakes.wake(&mut section.state.taker);
                (None, false)
            }
        });
        if last {
            // SAFETY: the taker had left when the giver did (invariant 2).
            unsafe { handoff.release() };
        }
        wakes.fire();
        refused.map_or(Ok(()), Err)
    }

    /// Whether the taker has closed or left: a value given now is refused.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.handoff.lock.load().contains(CLOSED)
    }

    /// Ready once the taker has closed or left.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_closed() {
            return Poll::Ready(());
        }
        let fresh = !core::mem::replace(&mut self.waits, true);
        self.handoff.lock.poll(cx, fresh, |section, caller| {
            if section.bits.contains(CLOSED) {
                return Poll::Ready(());
            }
            caller.register(&mut section.state.giver);
            section.bits.insert(GIVER_WAITS);
            Poll::Pending
        })
    }
}

/// Leaves without having given.
impl<T, P: Place> Drop for Giver<T, P> {
    fn drop(&mut self) {
        let unwaited = self.handoff.lock.update(|bits| {
            (!bits.intersects(GIVER_WAITS | TAKER_WAITS)).then(|| bits | GIVER_LEFT)
        });
        let (before, wakes) = match unwaited {
            Ok(before) => (before, None),
            Err(_) => {
                let (before, wakes) = self.handoff.lock.section(|section| {
                    let before = *section.bits;
                    *section.bits = before.without(GIVER_WAITS | TAKER_WAITS) | GIVER_LEFT;
                    section.wakes.discard(&mut section.state.giver);
                    section.wakes.wake(&mut section.state.taker);
                    before
                });
                (before, Some(wakes))
            }
        };
        if before.contains(TAKER_LEFT) {
            // SAFETY: the taker had left when the giver did (invariant 2).
            unsafe { self.handoff.release() };
        }
        if let Some(wakes) = wakes {
            wakes.fire();
        }
    }
}

/// The end that takes.
///
/// Dropping it closes the handoff: a value given later is refused, one given
/// before is dropped with it.
pub struct Taker<T, P: Place> {
    handoff: P::Pointer<T>,
    /// As in [`Giver`].
    waits: bool,
}

impl<T, P: Place> Taker<T, P> {
    fn new(handoff: P::Pointer<T>) -> Self {
        Self {
            handoff,
            waits: false,
        }
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
        if !Self::is_settled(bits) {
            return Poll::Pending;
        }
        Self::settle(this, bits)
    }

    /// As [`try_take`](Self::try_take), leaving a waker where there is no
    /// answer yet.
    #[inline]
    pub fn poll_take(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match Self::try_take(this) {
            Poll::Pending => Self::poll_take_slow(this, cx),
            ready => ready,
        }
    }

    fn poll_take_slow(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(taker) = this else {
            return Poll::Ready(None);
        };
        let fresh = !core::mem::replace(&mut taker.waits, true);
        let bits = taker.handoff.lock.poll(cx, fresh, |section, caller| {
            if Self::is_settled(*section.bits) {
                return Poll::Ready(*section.bits);
            }
            caller.register(&mut section.state.taker);
            section.bits.insert(TAKER_WAITS);
            Poll::Pending
        });
        match bits {
            Poll::Ready(bits) => Self::settle(this, bits),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Takes nothing new from now on: a value given later is refused, one
    /// given before is still there to be taken.
    pub fn close(&self) {
        let lock = &self.handoff.lock;
        let unwaited = lock
            .update(|bits| (!bits.intersects(GIVER_WAITS | TAKER_WAITS)).then(|| bits | CLOSED));
        if unwaited.is_err() {
            lock.with(|section| {
                section.bits.insert(CLOSED);
                section.bits.remove(GIVER_WAITS | TAKER_WAITS);
                section.wakes.wake(&mut section.state.giver);
                section.wakes.wake(&mut section.state.taker);
            });
        }
    }

    /// Whether a value is there to be taken.
    pub fn is_full(&self) -> bool {
        self.handoff.lock.load().contains(FULL)
    }

    /// Whether what the taker will get is decided.
    fn is_settled(bits: Bits) -> bool {
        bits.intersects(GIVER_LEFT | CLOSED)
    }

    /// Answers a settled take and lets go of the end.
    #[inline]
    fn settle(this: &mut Option<Self>, bits: Bits) -> Poll<Option<T>> {
        let taker = this.take();
        match taker.map(ManuallyDrop::new) {
            Some(taker) if bits.contains(GIVER_LEFT) => {
                // SAFETY: the giver has left, and `taker` is not dropped.
                Poll::Ready(unsafe { Self::finish(taker.handoff, bits) })
            }
            taker => {
                drop(taker.map(ManuallyDrop::into_inner));
                Poll::Ready(None)
            }
        }
    }

    /// Takes the value if there is one, and releases the place.
    ///
    /// # Safety
    ///
    /// `bits` have been seen in this handoff and contain `GIVER_LEFT`; the
    /// taker does not use its pointer again.
    #[inline]
    unsafe fn finish(handoff: P::Pointer<T>, bits: Bits) -> Option<T> {
        let value = bits.contains(FULL).then(|| handoff.read());
        // SAFETY: the giver has left, so the taker is the only user (invariant
        // 2). What `FULL` spoke of is gone.
        unsafe { handoff.lock.store(Bits::EMPTY) };
        // SAFETY: both have left.
        unsafe { handoff.release() };
        value
    }
}

/// Closes and leaves.
impl<T, P: Place> Drop for Taker<T, P> {
    fn drop(&mut self) {
        let lock = &self.handoff.lock;
        let leave = CLOSED | TAKER_LEFT;
        let seen = match lock.update(|bits| {
            (!bits.intersects(GIVER_LEFT | GIVER_WAITS | TAKER_WAITS)).then(|| bits | leave)
        }) {
            Ok(_) => return,
            Err(bits) if bits.contains(GIVER_LEFT) => bits,
            Err(_) => {
                let (seen, wakes) = lock.section(|section| {
                    let seen = *section.bits;
                    if !seen.contains(GIVER_LEFT) {
                        *section.bits = seen.without(GIVER_WAITS | TAKER_WAITS) | leave;
                        section.wakes.discard(&mut section.state.taker);
                        section.wakes.wake(&mut section.state.giver);
                    }
                    seen
                });
                if !seen.contains(GIVER_LEFT) {
                    wakes.fire();
                    return;
                }
                seen
            }
        };
        // SAFETY: `GIVER_LEFT` has been seen, and `self` is being dropped.
        drop(unsafe { Self::finish(self.handoff, seen) });
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
