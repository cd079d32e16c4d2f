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
use core::task::{Context, Poll};

use crate::backend::{Backend, Cell, DefaultBackend, SharedBackend};
use crate::protocol::wake::After;
use crate::protocol::waker_cell::WakerCell;
use crate::protocol::{Bits, StateLock, WakeList};

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
    value: B::Cell<MaybeUninit<T>>,
}

/// The storage of a handoff: on the heap ([`Boxed`]) or in a slot of the caller
/// ([`InSlot`]).
pub trait Storage {
    /// The backend of the handoff.
    type Backend: Backend;

    /// How each half refers to the handoff.
    type Pointer<T>: Deref<Target = Handoff<T, Self::Backend>> + Release + Copy;
}

/// How the last half to leave releases the storage.
///
/// # Safety
///
/// Before `release`, dereferencing the two pointers of one pair gives the same
/// handoff.
pub unsafe trait Release {
    /// Releases the storage.
    ///
    /// # Safety
    ///
    /// Both halves have left, and nothing uses the handoff afterwards.
    unsafe fn release(self);
}

/// The storage of [`Handoff::pair`]: an allocation that the last half to leave frees.
#[derive(Debug)]
pub struct Boxed<B = DefaultBackend>(PhantomData<B>);

impl<B: Backend> Storage for Boxed<B> {
    type Backend = B;
    type Pointer<T> = BoxPointer<T, B>;
}

/// A pointer to the allocation that the two halves of a pair share.
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
        // SAFETY: the allocation lives until `release`, which the last half to leave
        // calls when neither half uses its pointer any more (invariant 2).
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: both pointers of a pair come from one `Box::leak`.
unsafe impl<T, B: Backend> Release for BoxPointer<T, B> {
    #[inline]
    unsafe fn release(self) {
        // SAFETY: the pointer came from `Box::leak`, and by the contract of `release`
        // this is its last use.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: the pointer stands for a shared reference to a handoff that both threads
// may use.
unsafe impl<T: Send, B: SharedBackend> Send for BoxPointer<T, B> {}
// SAFETY: as above. A shared pointer gives a shared handoff.
unsafe impl<T: Send, B: SharedBackend> Sync for BoxPointer<T, B> {}

/// The storage of [`Handoff::split`]: a slot of the caller, borrowed for `'a`.
#[derive(Debug)]
pub struct InSlot<'a, B = DefaultBackend>(PhantomData<(&'a (), B)>);

impl<'a, B: Backend> Storage for InSlot<'a, B> {
    type Backend = B;
    type Pointer<T> = SlotPointer<'a, T, B>;
}

/// A pointer to the slot that the two halves of a split share.
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
        // SAFETY: the pointer came from a `&'a mut` of the slot, and each half lives
        // within `'a`. Both halves use it by shared borrow only.
        unsafe { self.handoff.as_ref() }
    }
}

// SAFETY: both pointers of a split come from one `&mut Handoff`.
unsafe impl<T, B: Backend> Release for SlotPointer<'_, T, B> {
    #[inline]
    unsafe fn release(self) {
        // The caller finds the slot empty again. SAFETY: by the contract of `release`
        // nothing else uses the handoff.
        unsafe { self.lock.store(Bits::EMPTY) };
    }
}

// SAFETY: the pointer is a shared borrow of the handoff.
unsafe impl<T: Send, B: SharedBackend> Send for SlotPointer<'_, T, B> {}
// SAFETY: as above.
unsafe impl<T: Send, B: SharedBackend> Sync for SlotPointer<'_, T, B> {}

// SAFETY: the value moves from one thread to another and is never shared, since its
// cell belongs to one side at a time (invariant 1). So `T: Send` is enough, and the
// accesses to its cell do not race, as `SharedBackend` asks. The accesses to the
// waker cells do not race either, by the contract of `WakerCell::wait`. The rest is
// the lock.
unsafe impl<T: Send, B: SharedBackend> Sync for Handoff<T, B> {}
// SAFETY: its lock and its cells may be sent, as `SharedBackend` promises for a state
// and for values that are `Send`.
unsafe impl<T: Send, B: SharedBackend> Send for Handoff<T, B> {}

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
            value: B::Cell::new(MaybeUninit::uninit()),
        }
    }

    /// Creates the two halves of a handoff on the heap.
    #[must_use]
    #[inline]
    pub fn pair() -> (RawSender<T, Boxed<B>>, RawReceiver<T, Boxed<B>>) {
        // `Box::new` would make the handoff on the stack and copy it.
        let handoff = Box::write(Box::new_uninit(), Self::new_in());
        let handoff = NonNull::from(Box::leak(handoff));
        (
            RawSender::new(BoxPointer(handoff)),
            RawReceiver::new(BoxPointer(handoff)),
        )
    }

    /// Splits this handoff into its two halves. If halves of an earlier split were
    /// leaked, what they left behind is dropped first.
    #[must_use]
    #[inline]
    pub fn split(&mut self) -> (RawSender<T, InSlot<'_, B>>, RawReceiver<T, InSlot<'_, B>>) {
        self.clear();
        let handoff = NonNull::from(self);
        let pointer = || SlotPointer {
            handoff,
            borrow: PhantomData,
        };
        (RawSender::new(pointer()), RawReceiver::new(pointer()))
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
        let before = self.lock.get_mut(|bits, ()| core::mem::take(bits));
        let value = before.contains(VALUE_SENT).then(|| self.read());
        let sender = before.contains(TX_WAKER_SET).then(|| {
            // SAFETY: the waker is registered and has not been taken out, and `self`
            // is exclusive.
            unsafe { self.tx_waker.take() }
        });
        let receiver = before.contains(RX_WAKER_SET).then(|| {
            // SAFETY: as above.
            unsafe { self.rx_waker.take() }
        });
        drop((value, sender, receiver));
    }

    /// Completes the waits, in a section: stores the bits that `f` returns, takes out
    /// both wakers (invariant 3), and returns the bits that it found. The waker of
    /// `own` is dropped and the other is woken.
    #[cold]
    fn complete(&self, own: Bits, wakes: &mut WakeList, f: impl FnOnce(Bits) -> Bits) -> Bits {
        self.lock.section(wakes, |section| {
            let before = *section.bits;
            *section.bits = f(before).without(TX_WAKER_SET | RX_WAKER_SET);
            for (waits, cell) in [
                (TX_WAKER_SET, &self.tx_waker),
                (RX_WAKER_SET, &self.rx_waker),
            ] {
                if before.contains(waits) {
                    let after = if own == waits {
                        After::Drop
                    } else {
                        After::Wake
                    };
                    // SAFETY: this section has found `waits` set and clears it.
                    section.wakes.push(unsafe { cell.take() }, after);
                }
            }
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

/// The sending half.
///
/// Dropping it without sending completes the wait of the receiver, without a value.
pub struct RawSender<T, P: Storage> {
    handoff: P::Pointer<T>,
}

impl<T, P: Storage> RawSender<T, P> {
    #[inline]
    fn new(handoff: P::Pointer<T>) -> Self {
        Self { handoff }
    }

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
            Err(bits) if bits.contains(RX_DROPPED) => {
                let value = this.handoff.read();
                // SAFETY: the receiver has left, and the sender leaves now.
                unsafe { this.handoff.release() };
                Err(value)
            }
            Err(bits) if bits.intersects(RX_CLOSED | TX_WAKER_SET) => Self::send_slow(this.handoff),
            Err(_) => Self::send_waiting(this.handoff),
        }
    }

    /// Sends the value, which has been written, to a receiver that waits. It is the
    /// common case of [`send_slow`](Self::send_slow): there is one waker, and so no
    /// list.
    #[inline(never)]
    fn send_waiting(handoff: P::Pointer<T>) -> Result<(), T> {
        let waker = handoff.lock.unlisted(|bits, ()| {
            // Since the bits were loaded, the receiver may have closed, left or taken
            // its waker back.
            if bits.intersects(RX_CLOSED | TX_WAKER_SET) || !bits.contains(RX_WAKER_SET) {
                return None;
            }
            *bits = bits.without(RX_WAKER_SET) | VALUE_SENT | TX_CLOSED;
            // SAFETY: this section has found `RX_WAKER_SET` set and clears it.
            Some(unsafe { handoff.rx_waker.take() })
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
    fn send_slow(handoff: P::Pointer<T>) -> Result<(), T> {
        let mut wakes = WakeList::new();
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
            // SAFETY: the receiver had left when the sender left.
            unsafe { handoff.release() };
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

    /// Leaves without having sent, if a waker is registered.
    ///
    /// # Safety
    ///
    /// The sender does not use its pointer again.
    #[cold]
    unsafe fn leave_slow(handoff: P::Pointer<T>) {
        let mut wakes = WakeList::new();
        let before = handoff.complete(TX_WAKER_SET, &mut wakes, |bits| bits | TX_CLOSED);
        if before.contains(RX_DROPPED) {
            // SAFETY: the receiver had left when the sender left.
            unsafe { handoff.release() };
        }
        wakes.fire();
    }
}

/// Leaves without having sent.
impl<T, P: Storage> Drop for RawSender<T, P> {
    #[inline]
    fn drop(&mut self) {
        match self.handoff.lock.update(|bits| {
            (!bits.intersects(RX_DROPPED | TX_WAKER_SET | RX_WAKER_SET)).then(|| bits | TX_CLOSED)
        }) {
            Ok(_) => {}
            // SAFETY: the receiver has left, and the sender leaves now.
            Err(bits) if bits.contains(RX_DROPPED) => unsafe { self.handoff.release() },
            // SAFETY: the sender is being dropped.
            Err(_) => unsafe { Self::leave_slow(self.handoff) },
        }
    }
}

/// The receiving half.
///
/// Dropping it closes the handoff. A value sent later is refused, and a value sent
/// before is dropped with it.
pub struct RawReceiver<T, P: Storage> {
    handoff: P::Pointer<T>,
}

impl<T, P: Storage> RawReceiver<T, P> {
    #[inline]
    fn new(handoff: P::Pointer<T>) -> Self {
        Self { handoff }
    }

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
            // SAFETY: the sender has left, and `receiver` is not dropped.
            Poll::Ready(unsafe { Self::finish(receiver.handoff, bits) })
        } else {
            receiver.leave_closed();
            Poll::Ready(None)
        }
    }

    /// Drops the half, if it is closed and the sender has not left.
    #[cold]
    fn leave_closed(self) {}

    /// Takes the value if there is one, and releases the storage.
    ///
    /// # Safety
    ///
    /// `bits` have been seen in this handoff and contain `TX_CLOSED`. The receiver
    /// does not use its pointer again.
    #[inline]
    unsafe fn finish(handoff: P::Pointer<T>, bits: Bits) -> Option<T> {
        let value = bits.contains(VALUE_SENT).then(|| handoff.read());
        // SAFETY: the sender has left, and the receiver leaves now.
        unsafe { handoff.release() };
        value
    }

    /// Closes and leaves, if a waker is registered.
    ///
    /// # Safety
    ///
    /// The receiver does not use its pointer again.
    #[cold]
    unsafe fn leave_slow(handoff: P::Pointer<T>) {
        let mut wakes = WakeList::new();
        let before = handoff.complete(RX_WAKER_SET, &mut wakes, |bits| {
            bits | RX_CLOSED | RX_DROPPED
        });
        if before.contains(TX_CLOSED) {
            // SAFETY: the sender had left when the receiver left.
            drop(unsafe { Self::finish(handoff, before) });
        }
        wakes.fire();
    }
}

/// Closes and leaves.
impl<T, P: Storage> Drop for RawReceiver<T, P> {
    #[inline]
    fn drop(&mut self) {
        match self.handoff.lock.update(|bits| {
            (!bits.intersects(TX_CLOSED | TX_WAKER_SET | RX_WAKER_SET))
                .then(|| bits | RX_CLOSED | RX_DROPPED)
        }) {
            Ok(_) => {}
            Err(bits) if bits.contains(TX_CLOSED) => {
                // SAFETY: the sender has left, and the receiver leaves now.
                drop(unsafe { Self::finish(self.handoff, bits) });
            }
            // SAFETY: the receiver is being dropped.
            Err(_) => unsafe { Self::leave_slow(self.handoff) },
        }
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
