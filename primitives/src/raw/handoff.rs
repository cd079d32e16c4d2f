//! The handoff of one value from one sender to one receiver: the core of a oneshot.
//!
//! The value is in a cell beside the lock, and the bits say which side the cell
//! belongs to:
//!
//! ```text
//!               send: VALUE_SENT | TX_CLOSED
//!   ┌───────┐ ──────────────────────────────▶ ┌──────────┐
//!   │ empty │                                 │ receiver │ takes the value by a plain load
//!   └───────┘ ──────────────────────────────▶ └──────────┘
//!       │        sender dropped: TX_CLOSED
//!       │ close: RX_CLOSED    (a value sent now is refused)
//!       ▼
//!   ┌────────┐    receiver dropped:           ┌────────┐
//!   │ closed │    RX_CLOSED | RX_DROPPED      │ sender │
//!   └────────┘ ─────────────────────────────▶ └────────┘
//!
//!   TX_WAKER_SET, RX_WAKER_SET: that side's waker is registered.
//! ```
//!
//! Invariants:
//!
//! 1. Before `VALUE_SENT`, only the sender accesses the cell. After it, only the
//!    receiver does. `VALUE_SENT` is never set without `TX_CLOSED`.
//! 2. Each side leaves once, in the section that sets its bit, and accesses nothing
//!    afterwards. A side that sees that the other has left is the only user. It needs
//!    no section to leave, and releases the storage.
//! 3. Sending, closing and leaving complete the waits of both sides. Each is a
//!    section that takes out both wakers and clears both `WAKER_SET` bits, and no
//!    waker is registered afterwards. So when the storage is released there is no
//!    value and no waker in it.
//!
//! Rare cases are functions of their own, so that the common case is inlined.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use crate::backend::{Backend, DefaultBackend, SharedBackend, SharedCell};
use crate::protocol::wake::Armed;
use crate::protocol::waker_cell::WakerCell;
use crate::protocol::{Bits, StateLock, WakeList, WakerSlot};

const VALUE_SENT: Bits = Bits::new(1);
const TX_CLOSED: Bits = Bits::new(1 << 1);
const RX_CLOSED: Bits = Bits::new(1 << 2);
const RX_DROPPED: Bits = Bits::new(1 << 3);
const TX_WAKER_SET: Bits = Bits::new(1 << 4);
const RX_WAKER_SET: Bits = Bits::new(1 << 5);

/// What the receiver waits for. Each of these bits completes its wait.
const COMPLETE: Bits = Bits::new(TX_CLOSED.get() | RX_CLOSED.get());

/// Hands one value from a sender to a receiver.
///
/// [`Handoff::pair`] creates its two halves on the heap. [`Handoff::split`] borrows
/// them from a handoff that the caller stores.
pub struct Handoff<T, B: Backend = DefaultBackend> {
    lock: StateLock<(), B>,
    tx_waker: WakerCell<B>,
    rx_waker: WakerCell<B>,
    /// The value moves from one thread to another and is never shared, since its cell
    /// belongs to one side at a time (invariant 1).
    value: SharedCell<MaybeUninit<T>, B>,
}

/// The storage of a handoff: on the heap ([`Boxed`]) or in a slot of the caller
/// ([`InSlot`]).
pub trait Storage {
    /// The backend of the handoff.
    type Backend: Backend;

    /// Whether the last half to leave frees the handoff. Otherwise it empties it.
    const ON_HEAP: bool;
}

/// The storage of [`Handoff::pair`]: an allocation that the last half to leave frees.
#[derive(Debug)]
pub struct Boxed<B = DefaultBackend>(PhantomData<B>);

impl<B: Backend> Storage for Boxed<B> {
    type Backend = B;
    const ON_HEAP: bool = true;
}

/// The storage of [`Handoff::split`]: a slot of the caller, borrowed for `'a`.
#[derive(Debug)]
pub struct InSlot<'a, B = DefaultBackend>(PhantomData<(&'a (), B)>);

impl<B: Backend> Storage for InSlot<'_, B> {
    type Backend = B;
    const ON_HEAP: bool = false;
}

/// A pointer to a handoff. Each half has one, and uses it until it leaves.
///
/// Invariant: it comes from [`Handoff::pair`] if the storage is on the heap, and
/// otherwise from the `&mut` of [`Handoff::split`], whose borrow the storage keeps.
struct Pointer<T, P: Storage> {
    handoff: NonNull<Handoff<T, P::Backend>>,
    storage: PhantomData<fn() -> P>,
}

impl<T, P: Storage> Clone for Pointer<T, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, P: Storage> Copy for Pointer<T, P> {}

impl<T, P: Storage> Deref for Pointer<T, P> {
    type Target = Handoff<T, P::Backend>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: the handoff lives until the last half has left, or for as long as
        // its slot is borrowed. Before that it is borrowed shared only, and a half
        // that has left does not use its pointer (invariant 2).
        unsafe { self.handoff.as_ref() }
    }
}

// SAFETY: the pointer stands for a shared reference to a handoff, which is `Sync` on
// these conditions. The thread on which the last half leaves may drop the handoff and
// a value of the other thread, since `T` is `Send`.
unsafe impl<T: Send, P: Storage<Backend: SharedBackend>> Send for Pointer<T, P> {}
// SAFETY: as above. A shared pointer gives a shared handoff.
unsafe impl<T: Send, P: Storage<Backend: SharedBackend>> Sync for Pointer<T, P> {}

/// One of the two halves, by the bits of its leaving.
#[derive(Clone, Copy)]
struct Side {
    /// What it sets when it leaves.
    leaves: Bits,
    /// What the other half has set if it has left.
    other_left: Bits,
    /// Says that its waker is registered.
    waker: Bits,
    /// Whether a value that was sent is its own.
    receives: bool,
}

const TX: Side = Side {
    leaves: TX_CLOSED,
    other_left: RX_DROPPED,
    waker: TX_WAKER_SET,
    receives: false,
};

const RX: Side = Side {
    leaves: Bits::new(RX_CLOSED.get() | RX_DROPPED.get()),
    other_left: TX_CLOSED,
    waker: RX_WAKER_SET,
    receives: true,
};

impl<T, P: Storage> Pointer<T, P> {
    /// Leaves, as a half that is being dropped.
    #[inline]
    fn leave(self, side: Side) {
        let left = self.lock.update(|bits| {
            (!bits.intersects(side.other_left | TX_WAKER_SET | RX_WAKER_SET))
                .then(|| bits | side.leaves)
        });
        match left {
            Ok(_) => {}
            Err(bits) if bits.contains(side.other_left) => drop(Last(self).finish(side, bits)),
            Err(_) => self.leave_slow(side),
        }
    }

    /// Leaves, if a waker is registered.
    #[cold]
    fn leave_slow(self, side: Side) {
        let mut wakes = WakeList::new();
        let mut wakes = wakes.armed();
        let before = self.complete(side.waker, &mut wakes, |bits| bits | side.leaves);
        if before.contains(side.other_left) {
            drop(Last(self).finish(side, before));
        }
        wakes.fire();
    }
}

/// The last half to use a handoff, which releases the storage.
///
/// Invariant: it is made of the pointer of a half that leaves by it, or has left, after
/// the bits have told that the other half has left. So nothing else uses the handoff,
/// now or later (invariant 2 of the module).
#[must_use = "the storage leaks unless it is released"]
struct Last<T, P: Storage>(Pointer<T, P>);

impl<T, P: Storage> Last<T, P> {
    /// Returns the value, if one was sent to this side, and releases the storage.
    #[inline]
    fn finish(self, side: Side, bits: Bits) -> Option<T> {
        let sent = side.receives && bits.contains(VALUE_SENT);
        let value = sent.then(|| self.0.read());
        self.release();
        value
    }

    /// Returns the value that the sender has written and not sent, and releases the
    /// storage.
    #[inline]
    fn refuse(self) -> T {
        let value = self.0.read();
        self.release();
        value
    }

    #[inline]
    fn release(self) {
        let handoff = self.0.handoff.as_ptr();
        if P::ON_HEAP {
            // SAFETY: the pointer came from the `Box::leak` of `pair`, and this is its
            // last use.
            drop(unsafe { Box::from_raw(handoff) });
        } else {
            // SAFETY: the pointer came from the `&mut` of `split`, which is still
            // borrowed, and nothing else uses the handoff.
            let lock = unsafe { &mut (*handoff).lock };
            // The caller finds the slot empty again.
            lock.get_mut(|bits, ()| *bits = Bits::EMPTY);
        }
    }
}

/// A shared borrow gives no access to the value, which moves from one side to the
/// other as a whole.
impl<T, B: Backend> RefUnwindSafe for Handoff<T, B> {}
impl<T, B: Backend> UnwindSafe for Handoff<T, B> {}

impl<T, B: Backend> Handoff<T, B> {
    /// Creates an empty handoff over any backend.
    #[must_use]
    #[inline]
    pub fn new_in() -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, ()),
            tx_waker: WakerCell::new(),
            rx_waker: WakerCell::new(),
            value: SharedCell::new(MaybeUninit::uninit()),
        }
    }

    /// Creates the two halves of a handoff on the heap.
    #[must_use]
    #[inline]
    pub fn pair() -> (RawSender<T, Boxed<B>>, RawReceiver<T, Boxed<B>>) {
        // `Box::new` would make the handoff on the stack and copy it.
        let handoff = Box::write(Box::new_uninit(), Self::new_in());
        halves(NonNull::from(Box::leak(handoff)))
    }

    /// Splits this handoff into its two halves. If halves of an earlier split were
    /// leaked, what they left behind is dropped first.
    #[must_use]
    #[inline]
    pub fn split(&mut self) -> (RawSender<T, InSlot<'_, B>>, RawReceiver<T, InSlot<'_, B>>) {
        self.clear();
        halves(NonNull::from(self))
    }

    /// Drops what leaked halves left behind. Dropping the handoff does not do this.
    /// Halves that left have left nothing behind (invariant 3).
    #[inline]
    pub fn clear(&mut self) {
        if self.lock.load() != Bits::EMPTY {
            self.clear_leaked();
        }
    }

    #[cold]
    fn clear_leaked(&mut self) {
        let mut discarded = WakeList::new();
        let mut discarded = discarded.armed();
        let before = self.complete(TX.waker | RX.waker, &mut discarded, |_| Bits::EMPTY);
        drop(before.contains(VALUE_SENT).then(|| self.read()));
        discarded.fire();
    }

    /// Completes the waits, in a section: stores the bits that `f` returns, takes out
    /// both wakers (invariant 3), and returns the bits that it found. The wakers of
    /// `own` are dropped and the others are woken.
    #[cold]
    fn complete(&self, own: Bits, wakes: &mut Armed<'_>, f: impl FnOnce(Bits) -> Bits) -> Bits {
        self.lock.section(wakes, |section| {
            let before = *section.bits;
            for (waits, cell) in [
                (TX_WAKER_SET, &self.tx_waker),
                (RX_WAKER_SET, &self.rx_waker),
            ] {
                if let Some(waker) = take_waker(cell, waits, section.bits) {
                    let mut slot = WakerSlot::of(waker);
                    match own.contains(waits) {
                        true => section.wakes.discard(&mut slot),
                        false => section.wakes.wake(&mut slot),
                    }
                }
            }
            *section.bits = f(*section.bits);
            before
        })
    }

    /// Writes the names of the bits of a handoff, for debug output.
    pub fn describe(bits: Bits, f: &mut dyn fmt::Write) -> fmt::Result {
        const NAMES: [(Bits, &str); 6] = [
            (VALUE_SENT, "value"),
            (TX_CLOSED, "sender left"),
            (RX_CLOSED, "closed"),
            (RX_DROPPED, "receiver left"),
            (TX_WAKER_SET, "sender waits"),
            (RX_WAKER_SET, "receiver waits"),
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
            // SAFETY: only the sender calls this, before `VALUE_SENT` (invariant 1).
            unsafe { cell.write(MaybeUninit::new(value)) }
        });
    }

    /// Moves the value out, once. The caller has written it and not set `VALUE_SENT`,
    /// or is the receiver and has seen `VALUE_SENT`.
    #[inline]
    fn read(&self) -> T {
        self.value.with_mut(|cell| {
            // SAFETY: the value is initialized, and the cell belongs to the caller
            // (invariant 1).
            unsafe { cell.cast::<T>().read() }
        })
    }
}

/// Takes a registered waker out, in the section of these bits.
#[inline]
fn take_waker<B: Backend>(cell: &WakerCell<B>, waits: Bits, bits: &mut Bits) -> Option<Waker> {
    bits.contains(waits).then(|| {
        *bits = bits.without(waits);
        // SAFETY: this section has found `waits` set and has cleared it, and `waits` is
        // the bit of this cell.
        unsafe { cell.take() }
    })
}

/// Creates the two halves of a handoff.
#[inline]
fn halves<T, P: Storage>(
    handoff: NonNull<Handoff<T, P::Backend>>,
) -> (RawSender<T, P>, RawReceiver<T, P>) {
    let handoff = Pointer {
        handoff,
        storage: PhantomData,
    };
    (RawSender { handoff }, RawReceiver { handoff })
}

impl<T, B: Backend> fmt::Debug for Handoff<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").finish_non_exhaustive()
    }
}

/// The sending half.
///
/// Dropping it without sending completes the wait of the receiver, without a value.
pub struct RawSender<T, P: Storage> {
    handoff: Pointer<T, P>,
}

impl<T, P: Storage> RawSender<T, P> {
    /// Sends the value and leaves. If the receiver does not wait, this is one
    /// compare-exchange.
    ///
    /// # Errors
    ///
    /// Returns the value if the receiver has closed or left.
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        let this = ManuallyDrop::new(self);
        this.handoff.write(value);
        match this.handoff.lock.update(|bits| {
            (!bits.intersects(RX_CLOSED | TX_WAKER_SET | RX_WAKER_SET))
                .then(|| bits | VALUE_SENT | TX_CLOSED)
        }) {
            // From here on the handoff belongs to the receiver.
            Ok(_) => Ok(()),
            Err(bits) if bits.contains(RX_DROPPED) => Err(Last(this.handoff).refuse()),
            Err(bits) if bits.intersects(RX_CLOSED | TX_WAKER_SET) => Self::send_slow(this.handoff),
            Err(_) => Self::send_waiting(this.handoff),
        }
    }

    /// Sends the value, which has been written, to a receiver that waits. It is the
    /// common case of [`send_slow`](Self::send_slow): there is one waker, and so no
    /// list.
    #[inline(never)]
    fn send_waiting(handoff: Pointer<T, P>) -> Result<(), T> {
        let waker = handoff.lock.unlisted(|bits, ()| {
            // Since the bits were loaded, the receiver may have closed, left or taken
            // its waker back.
            if bits.intersects(RX_CLOSED | TX_WAKER_SET) {
                return None;
            }
            let waker = take_waker(&handoff.rx_waker, RX_WAKER_SET, bits)?;
            *bits = *bits | VALUE_SENT | TX_CLOSED;
            Some(waker)
        });
        match waker {
            Some(waker) => {
                waker.wake();
                Ok(())
            }
            None => Self::send_slow(handoff),
        }
    }

    /// Sends the value, which has been written, whatever the bits are.
    #[cold]
    fn send_slow(handoff: Pointer<T, P>) -> Result<(), T> {
        let mut wakes = WakeList::new();
        let mut wakes = wakes.armed();
        let mut result = Ok(());
        let before = handoff.complete(TX_WAKER_SET, &mut wakes, |bits| {
            if bits.contains(RX_CLOSED) {
                // The value is moved out before the sender leaves. Once it has left,
                // the receiver may release the storage.
                result = Err(handoff.read());
                bits | TX_CLOSED
            } else {
                bits | TX_CLOSED | VALUE_SENT
            }
        });
        if before.contains(RX_DROPPED) {
            Last(handoff).release();
        }
        wakes.fire();
        result
    }

    /// Returns `true` if the receiver has closed or left. A value sent now is
    /// refused.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.handoff.lock.load().contains(RX_CLOSED)
    }

    /// Polls for the receiver to close or leave.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let bits = self.handoff.lock.load();
        if bits.contains(RX_CLOSED) {
            return Poll::Ready(());
        }
        let Handoff { lock, tx_waker, .. } = &*self.handoff;
        // SAFETY: the one sender is borrowed exclusively. `TX_WAKER_SET` is cleared
        // only by `wait` itself and by what sets `RX_CLOSED` (invariant 3).
        let polled = unsafe { tx_waker.wait(lock, TX_WAKER_SET, RX_CLOSED, bits, cx) };
        polled.map(|_| ())
    }

    /// Discards the waker that [`poll_closed`](Self::poll_closed) has registered, if
    /// it is still there.
    pub fn unregister(&mut self) {
        let Handoff { lock, tx_waker, .. } = &*self.handoff;
        // SAFETY: the one sender is borrowed exclusively, so nothing else registers
        // in this cell, and `TX_WAKER_SET` is the bit of this cell.
        drop(unsafe { tx_waker.unregister(lock, TX_WAKER_SET) });
    }
}

/// Leaves without having sent.
impl<T, P: Storage> Drop for RawSender<T, P> {
    #[inline]
    fn drop(&mut self) {
        self.handoff.leave(TX);
    }
}

/// The receiving half.
///
/// Dropping it closes the handoff. A value sent later is refused, and a value sent
/// before is dropped with it.
pub struct RawReceiver<T, P: Storage> {
    handoff: Pointer<T, P>,
}

impl<T, P: Storage> RawReceiver<T, P> {
    /// Takes the value, if it is there, by a load without a read-modify-write.
    ///
    /// Returns `Ready(None)` if no value will come any more. A call that returns
    /// `Ready` empties `this`, and a call with an empty `this` returns `Ready(None)`.
    #[inline]
    pub fn try_recv(this: &mut Option<Self>) -> Poll<Option<T>> {
        let Some(receiver) = this else {
            return Poll::Ready(None);
        };
        let bits = receiver.handoff.lock.load();
        if bits.intersects(COMPLETE) {
            Self::complete_recv(this, bits)
        } else {
            Poll::Pending
        }
    }

    /// Takes the value as [`try_recv`](Self::try_recv) does. If the result is
    /// `Pending`, it registers the waker.
    #[inline]
    pub fn poll_recv(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(receiver) = this else {
            return Poll::Ready(None);
        };
        let mut bits = receiver.handoff.lock.load();
        if !bits.intersects(COMPLETE) {
            let Handoff { lock, rx_waker, .. } = &*receiver.handoff;
            // SAFETY: the one receiver is borrowed exclusively. `RX_WAKER_SET` is
            // cleared only by `wait` itself and by what completes the handoff
            // (invariant 3).
            match unsafe { rx_waker.wait(lock, RX_WAKER_SET, COMPLETE, bits, cx) } {
                Poll::Ready(complete) => bits = complete,
                Poll::Pending => return Poll::Pending,
            }
        }
        Self::complete_recv(this, bits)
    }

    /// Closes the handoff. A value sent later is refused, and a value sent before can
    /// still be taken.
    pub fn close(&self) {
        let unwaited = self.handoff.lock.update(|bits| {
            (!bits.intersects(TX_WAKER_SET | RX_WAKER_SET)).then(|| bits | RX_CLOSED)
        });
        if unwaited.is_err() {
            let mut wakes = WakeList::new();
            let mut wakes = wakes.armed();
            self.handoff
                .complete(Bits::EMPTY, &mut wakes, |bits| bits | RX_CLOSED);
            wakes.fire();
        }
    }

    /// Returns `true` if there is a value to take.
    pub fn is_full(&self) -> bool {
        self.handoff.lock.load().contains(VALUE_SENT)
    }

    /// Returns what a complete handoff holds, and leaves.
    #[inline]
    fn complete_recv(this: &mut Option<Self>, bits: Bits) -> Poll<Option<T>> {
        let Some(receiver) = this.take() else {
            return Poll::Ready(None);
        };
        if bits.contains(TX_CLOSED) {
            let receiver = ManuallyDrop::new(receiver);
            Poll::Ready(Last(receiver.handoff).finish(RX, bits))
        } else {
            receiver.leave_closed();
            Poll::Ready(None)
        }
    }

    /// Drops the half, if it is closed and the sender has not left.
    #[cold]
    fn leave_closed(self) {}
}

/// Closes and leaves.
impl<T, P: Storage> Drop for RawReceiver<T, P> {
    #[inline]
    fn drop(&mut self) {
        self.handoff.leave(RX);
    }
}

impl<T, P: Storage> fmt::Debug for RawSender<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSender")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T, P: Storage> fmt::Debug for RawReceiver<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawReceiver")
            .field("is_full", &self.is_full())
            .finish_non_exhaustive()
    }
}
