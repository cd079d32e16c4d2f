//! What both kinds of channel stand on: the values and the permits under one lock.
//!
//! ```text
//!   a permit:   free ──try_send, send: taken, and its value stored────────▶ stored
//!                │  ──reserve───▶ reserved ──send: its value stored────────▶ stored
//!                ◀──────────────dropped─┘                                    │
//!                ◀──────────────────────────────────────────────received────┘
//!
//!   the values: stored ──a section of the receiver: all of them──▶ its batch ──▶ received
//! ```
//!
//! The receiver takes all values that are stored in one section, and receives them one
//! by one without the lock. A value keeps its permit until it is received, so the batch
//! counts as part of the channel.
//!
//! An unbounded channel takes no permits: there the one permit in the bits says that
//! values are stored. A channel without capacity, a rendezvous, has one permit while its
//! receiver waits for a value, and none otherwise.
//!
//! Invariants:
//!
//! 1. The permits that are free, reserved, granted to a waiter, stored or in the batch are
//!    as many as the capacity. A receiver that waits finds no value and is not
//!    disconnected: its waker stands in the slot, or has been taken out by the section
//!    that ended the wait.
//! 2. `paid` values at the front of the batch have given their permits back. A value
//!    leaves the batch only if it is one of them, and after every wake that its permit
//!    caused: a waker that panics loses no value and gives no permit twice (P8).
//! 3. Once the receiver is gone no value is stored.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::mem;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};

use crate::backend::Backend;
use crate::backend::watch::refused;
use crate::buffer::Buffer;
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Section, Waiter, Waiters, WakeList, WakerSlot};
use crate::raw::permits::{closed_in, free_in, queued_in, set_free};
use crate::raw::{Beside, Exclusive, Permits, Queue};

use super::error::TryRecvError;

/// How many values a channel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As many; with none, a value is sent only to a receiver that waits.
    Bounded(usize),
    Unbounded,
}

const RENDEZVOUS: Room = Room::Bounded(0);

/// What the halves of a channel share.
pub(super) struct Chan<T, B: Backend> {
    pub(super) permits: Permits<B, Shared<T>>,
    pub(super) room: Room,
}

/// What stands under the lock of the permits.
pub(super) struct Shared<T> {
    values: Buffer<T>,
    /// Of the task that waits for a value.
    receiver: WakerSlot,
    /// Of the tasks that wait for the channel to close.
    closers: Waiters<()>,
    /// How many permits there are, free or not: of a rendezvous, one while the receiver
    /// waits, or after it waited until the value that was sent to it is received.
    permits: usize,
    room: Room,
    receiver_gone: bool,
    senders: usize,
    weak_senders: usize,
}

impl<T> Shared<T> {
    /// Returns `true` if no permit is reserved, granted, or held by a value.
    fn is_idle(&self, bits: Bits) -> bool {
        self.room == Room::Unbounded || free_in(bits) == self.permits
    }

    /// Returns `true` if no value will be stored any more.
    fn is_disconnected(&self, bits: Bits) -> bool {
        self.senders == 0 || (closed_in(bits) && self.is_idle(bits))
    }

    /// Returns `true` if the receiver has to wait.
    fn waits(&self, bits: Bits) -> bool {
        self.values.is_empty() && !self.is_disconnected(bits)
    }

    /// Stores a value that has its permit.
    #[inline]
    fn store(&mut self, value: T, wakes: &mut WakeList) {
        self.values.push(value);
        wakes.wake(&mut self.receiver);
    }

    /// Takes the permit of a rendezvous back, if no value was sent by it.
    fn withdraw(&mut self, bits: &mut Bits) {
        if self.room == RENDEZVOUS && free_in(*bits) > 0 {
            set_free(bits, 0);
            self.permits = 0;
        }
    }
}

impl<T> Beside for Shared<T> {
    const SEES_CLOSED: bool = true;

    /// A permit that came back can be the last for which a closed channel waited.
    #[inline]
    fn after_assign(&mut self, bits: &mut Bits, wakes: &mut WakeList) {
        if !self.receiver.is_registered() {
            self.withdraw(bits);
        } else if closed_in(*bits) && self.is_idle(*bits) {
            wakes.wake(&mut self.receiver);
        }
    }
}

/// What a section of the receiver found.
enum Found {
    Values,
    Nothing,
    /// And there will be nothing.
    Disconnected,
}

impl<T, B: Backend> Chan<T, B> {
    /// Creates a channel and its halves.
    #[track_caller]
    pub(super) fn halves(room: Room) -> (Tx<T, B>, Rx<T, B>) {
        let permits = match room {
            Room::Bounded(permits) => permits,
            Room::Unbounded => 0,
        };
        let shared = Shared {
            values: Buffer::new(),
            receiver: WakerSlot::new(),
            closers: Waiters::new(),
            permits,
            room,
            receiver_gone: false,
            senders: 1,
            weak_senders: 0,
        };
        let permits = Permits::with_beside_in(permits, 0, shared);
        let chan = Arc::new(Self {
            permits: match room {
                RENDEZVOUS => permits.seeing_all(),
                _ => permits,
            },
            room,
        });
        let rx = Rx {
            chan: chan.clone(),
            batch: Batch {
                values: Exclusive::new(Buffer::new()),
                len: 0,
                paid: 0,
            },
        };
        (Tx { chan }, rx)
    }

    /// Sends a value if there is a permit for it.
    ///
    /// # Errors
    ///
    /// The bits found, and the value.
    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), (Bits, T)> {
        self.permits.lock().with(|Section { bits, state, wakes }| {
            match Permits::<B, Shared<T>>::take_one(bits) {
                Ok(()) => {
                    state.beside.store(value, wakes);
                    Ok(())
                }
                Err(found) => Err((found, value)),
            }
        })
    }

    /// Sends a value by a permit that is reserved. A value that comes after the receiver
    /// went is dropped.
    #[inline]
    pub(super) fn send_reserved(&self, value: T) {
        let unreceived = self.permits.lock().with(|Section { state, wakes, .. }| {
            let shared = &mut state.beside;
            if shared.receiver_gone {
                return Some(value);
            }
            shared.store(value, wakes);
            None
        });
        drop(unreceived);
    }

    /// Sends a value on an unbounded channel.
    ///
    /// # Errors
    ///
    /// The value, if the channel is closed.
    #[inline]
    pub(super) fn send_unbounded(&self, value: T) -> Result<(), T> {
        self.permits.lock().with(|Section { bits, state, wakes }| {
            if closed_in(*bits) {
                return Err(value);
            }
            set_free(bits, 1);
            state.beside.store(value, wakes);
            Ok(())
        })
    }

    /// Gives the permits of values that are received back.
    #[inline]
    fn return_permits(&self, permits: usize) {
        self.permits.release(permits);
    }

    /// Returns `true` if the receiver closed the channel, or is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    /// Closes the channel for senders; what is stored can still be received, if the
    /// receiver is not gone. Otherwise returns it.
    fn close(&self, receiver_gone: bool) -> Buffer<T> {
        let mut unreceived = Buffer::new();
        let mut called = None;
        self.permits.lock().rounds(|section| {
            let Section { bits, state, wakes } = section;
            let (reserving, closers) = *called.get_or_insert_with(|| {
                if receiver_gone {
                    state.beside.receiver_gone = true;
                    unreceived = mem::take(&mut state.beside.values);
                    wakes.discard(&mut state.beside.receiver);
                }
                (state.close_in(bits), state.beside.closers.notify_all())
            });
            state.wake_notified(reserving, wakes)
                || state.beside.closers.wake_notified(closers, wakes)
        });
        unreceived
    }

    /// Polls for the channel to be closed.
    pub(super) fn poll_closed(
        &self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if waiter.is_none() && self.is_closed() {
            return Poll::Ready(());
        }
        let fresh = waiter.is_none();
        self.permits
            .lock()
            .poll(cx, fresh, |section, registration| {
                let Section { bits, state, wakes } = section;
                let closers = &mut state.beside.closers;
                if closed_in(*bits) {
                    if let Some(waiter) = waiter.take() {
                        closers.remove(waiter, wakes);
                    }
                    return Ok(());
                }
                let waiter = waiter.get_or_insert_with(|| closers.push(location, ()));
                Err(registration.register(closers.waker(waiter)))
            })
    }

    /// Ends a wait for the channel to be closed.
    pub(super) fn cancel_closed(&self, waiter: Waiter) {
        self.permits.lock().with(|Section { state, wakes, .. }| {
            state.beside.closers.remove(waiter, wakes);
        });
    }

    /// How many senders there are, and how many weak ones.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.permits.lock().with(|Section { state, .. }| {
            let shared = &state.beside;
            (shared.senders, shared.weak_senders)
        })
    }

    /// Returns `true` if it looks as if values were stored, without a section.
    #[inline]
    fn seems_to_have_values(&self) -> bool {
        let free = free_in(self.permits.lock().load());
        match self.room {
            Room::Unbounded => free > 0,
            RENDEZVOUS => false,
            Room::Bounded(permits) => free < permits,
        }
    }

    /// In a section: moves all values that are stored to the end of the batch, and gives
    /// the permits of the first `limit` in it back. Returns also whether more waiters are
    /// to be served in another section: for one permit one is called at most, and there
    /// are none.
    #[inline]
    fn fill(
        &self,
        bits: &mut Bits,
        state: &mut Queue<Shared<T>>,
        wakes: &mut WakeList,
        batch: &mut Batch<T>,
        limit: usize,
    ) -> (Found, bool) {
        let shared = &mut state.beside;
        let stored = shared.values.len();
        if batch.len + stored == 0 {
            return match shared.is_disconnected(*bits) {
                true => {
                    wakes.discard(&mut shared.receiver);
                    shared.withdraw(bits);
                    (Found::Disconnected, false)
                }
                false => (Found::Nothing, false),
            };
        }
        batch.values.get_mut().append(&mut shared.values);
        batch.len += stored;
        match self.room {
            Room::Unbounded => {
                set_free(bits, 0);
                batch.paid = batch.len;
            }
            RENDEZVOUS => {
                shared.permits = 0;
                batch.paid = batch.len;
            }
            Room::Bounded(_) => {
                let owed = batch.len.min(limit).saturating_sub(batch.paid);
                batch.paid += owed;
                return (
                    Found::Values,
                    self.permits.give_in(bits, state, owed, wakes),
                );
            }
        }
        (Found::Values, false)
    }

    /// In a section of a receiver that found nothing: lets one value be sent, on a
    /// rendezvous.
    #[inline]
    fn ask(&self, bits: &mut Bits, state: &mut Queue<Shared<T>>, wakes: &mut WakeList) {
        if self.room == RENDEZVOUS && state.beside.permits == 0 && !closed_in(*bits) {
            state.beside.permits = 1;
            // For one permit one waiter is called at most: there is no second round.
            self.permits.give_in(bits, state, 1, wakes);
        }
    }
}

/// The values that the receiver has taken out and has not received.
struct Batch<T> {
    values: Exclusive<Buffer<T>>,
    len: usize,
    /// How many at the front have given their permits back.
    paid: usize,
}

impl<T> Batch<T> {
    /// Takes the first value, which is there and has given its permit back.
    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.len -= 1;
        self.paid -= 1;
        self.values.get_mut().pop()
    }
}

/// The receiving half of either kind.
pub(super) struct Rx<T, B: Backend> {
    pub(super) chan: Arc<Chan<T, B>>,
    batch: Batch<T>,
}

impl<T, B: Backend> Rx<T, B> {
    /// Polls for a value; `fresh` if the caller left no waker.
    #[inline]
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>, fresh: bool) -> Poll<Option<T>> {
        if self.batch.len == 0 {
            match self.poll_fill(cx, fresh, 1) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.pay(1);
        Poll::Ready(self.batch.pop())
    }

    /// Polls for so many values at most, which are moved to the end of `buffer`.
    pub(super) fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        fresh: bool,
        buffer: &mut alloc::vec::Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        if self.batch.len < limit {
            match self.poll_fill(cx, fresh, limit) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(0),
                Poll::Pending => return Poll::Pending,
            }
        }
        let received = self.batch.len.min(limit);
        self.pay(received);
        buffer.reserve(received);
        for _ in 0..received {
            if let Some(value) = self.batch.pop() {
                buffer.push(value);
            }
        }
        Poll::Ready(received)
    }

    /// Receives a value if there is one.
    #[inline]
    pub(super) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.batch.len == 0 {
            match self.try_fill(1) {
                Found::Values => {}
                Found::Nothing => return Err(refused::<B, _>(TryRecvError::Empty)),
                Found::Disconnected => return Err(TryRecvError::Disconnected),
            }
        }
        self.pay(1);
        self.batch.pop().ok_or(TryRecvError::Empty)
    }

    /// Gives back the permits of the first values of the batch, which are there.
    #[inline]
    fn pay(&mut self, values: usize) {
        if self.batch.paid < values {
            let owed = values - self.batch.paid;
            // Before the wakes, which may panic.
            self.batch.paid = values;
            self.chan.return_permits(owed);
        }
    }

    /// Moves what is stored into the batch, and pays for the first `limit` values of it.
    fn try_fill(&mut self, limit: usize) -> Found {
        let Self { chan, batch } = self;
        let mut found = None;
        chan.permits.lock().rounds(|section| {
            let Section { bits, state, wakes } = section;
            if found.is_some() {
                return chan.permits.give_in(bits, state, 0, wakes);
            }
            let (first, more) = chan.fill(bits, state, wakes, batch, limit);
            if matches!(first, Found::Nothing) && queued_in(*bits) {
                chan.ask(bits, state, wakes);
            }
            found = Some(first);
            more
        });
        found.unwrap_or(Found::Nothing)
    }

    /// Polls for values in the batch, of which the first `limit` are paid for. Returns
    /// whether there are some: otherwise there will be none.
    fn poll_fill(&mut self, cx: &mut Context<'_>, fresh: bool, limit: usize) -> Poll<bool> {
        let mut looks = !fresh || self.batch.len > 0 || self.chan.seems_to_have_values();
        loop {
            if looks {
                match self.try_fill(limit) {
                    Found::Values => return Poll::Ready(true),
                    Found::Disconnected => return Poll::Ready(false),
                    Found::Nothing => {}
                }
            }
            // What it finds stays: values are taken by this receiver only.
            if self.poll_waits(cx, fresh).is_pending() {
                return Poll::Pending;
            }
            looks = true;
        }
    }

    /// Registers the waker of a receiver that has nothing to receive, or returns.
    fn poll_waits(&self, cx: &mut Context<'_>, fresh: bool) -> Poll<()> {
        let chan = &self.chan;
        if fresh && chan.room != RENDEZVOUS {
            return chan.permits.lock().first_poll(cx, |bits, state, first| {
                match state.beside.waits(*bits) {
                    true => Err(first.register(&mut state.beside.receiver)),
                    false => Ok(()),
                }
            });
        }
        chan.permits
            .lock()
            .poll(cx, fresh, |section, registration| {
                let Section { bits, state, wakes } = section;
                if !state.beside.waits(*bits) {
                    return Ok(());
                }
                let registered = registration.register(&mut state.beside.receiver);
                if state.beside.receiver.is_registered() {
                    chan.ask(bits, state, wakes);
                }
                Err(registered)
            })
    }

    /// Ends a wait for a value.
    pub(super) fn cancel_recv(&self) {
        self.chan
            .permits
            .lock()
            .with(|Section { bits, state, wakes }| {
                wakes.discard(&mut state.beside.receiver);
                state.beside.withdraw(bits);
            });
    }

    pub(super) fn close(&mut self) {
        self.chan.close(false);
    }

    /// Returns `true` if the channel is closed, or has no senders.
    pub(super) fn is_closed(&self) -> bool {
        let lock = self.chan.permits.lock();
        lock.with(|Section { bits, state, .. }| closed_in(*bits) || state.beside.senders == 0)
    }

    /// How many values there are to be received.
    pub(super) fn len(&self) -> usize {
        let lock = self.chan.permits.lock();
        self.batch.len + lock.with(|Section { state, .. }| state.beside.values.len())
    }
}

/// A panic leaves a channel as it leaves any of the suite: see P8.
impl<T, B: Backend> UnwindSafe for Chan<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Chan<T, B> {}
impl<T> UnwindSafe for Batch<T> {}
impl<T> RefUnwindSafe for Batch<T> {}

/// Closes the channel, and drops the values in it.
impl<T, B: Backend> Drop for Rx<T, B> {
    fn drop(&mut self) {
        drop(self.chan.close(true));
    }
}

/// A sending half of either kind.
pub(super) struct Tx<T, B: Backend> {
    pub(super) chan: Arc<Chan<T, B>>,
}

impl<T, B: Backend> Tx<T, B> {
    /// A sending half that keeps no receiver waiting.
    pub(super) fn downgrade(&self) -> WeakTx<T, B> {
        WeakTx::new(&self.chan)
    }

    pub(super) fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }
}

/// The counts cannot overflow: `Arc`'s own, which is as large, aborts before.
impl<T, B: Backend> Clone for Tx<T, B> {
    fn clone(&self) -> Self {
        let chan = self.chan.clone();
        chan.permits
            .lock()
            .with(|Section { state, .. }| state.beside.senders += 1);
        Self { chan }
    }
}

/// The last one disconnects the channel.
impl<T, B: Backend> Drop for Tx<T, B> {
    fn drop(&mut self) {
        let lock = self.chan.permits.lock();
        lock.with(|Section { state, wakes, .. }| {
            let shared = &mut state.beside;
            shared.senders -= 1;
            if shared.senders == 0 {
                wakes.wake(&mut shared.receiver);
            }
        });
    }
}

/// A weak sending half of either kind.
pub(super) struct WeakTx<T, B: Backend> {
    pub(super) chan: Arc<Chan<T, B>>,
}

impl<T, B: Backend> WeakTx<T, B> {
    fn new(chan: &Arc<Chan<T, B>>) -> Self {
        let chan = chan.clone();
        chan.permits
            .lock()
            .with(|Section { state, .. }| state.beside.weak_senders += 1);
        Self { chan }
    }

    /// A sending half, if there is one still.
    pub(super) fn upgrade(&self) -> Option<Tx<T, B>> {
        let chan = self.chan.clone();
        let upgraded = chan.permits.lock().with(|Section { state, .. }| {
            let shared = &mut state.beside;
            let connected = shared.senders > 0;
            shared.senders += usize::from(connected);
            connected
        });
        upgraded.then(|| Tx { chan })
    }
}

impl<T, B: Backend> Clone for WeakTx<T, B> {
    fn clone(&self) -> Self {
        Self::new(&self.chan)
    }
}

impl<T, B: Backend> Drop for WeakTx<T, B> {
    fn drop(&mut self) {
        let lock = self.chan.permits.lock();
        lock.with(|Section { state, .. }| state.beside.weak_senders -= 1);
    }
}

impl<T, B: Backend> Chan<T, B> {
    /// How many values it holds at most.
    pub(super) const fn capacity(&self) -> usize {
        match self.room {
            Room::Bounded(permits) => permits,
            Room::Unbounded => usize::MAX,
        }
    }
}

/// The values of the channel, its halves and its waiters.
impl<T, B: Backend> fmt::Debug for Chan<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, granted) = self.permits.waiting();
        let (values, free, permits) = self.permits.lock().with(|section| {
            let shared = &section.state.beside;
            (shared.values.len(), free_in(*section.bits), shared.permits)
        });
        let mut f = f.debug_struct("Chan");
        f.field("room", &self.room).field("values", &values);
        if self.room != Room::Unbounded {
            f.field("free", &free)
                // Reserved, granted, or of values, those in the receiver's batch included.
                .field("taken", &permits.saturating_sub(free))
                .field("waiting", &waiting)
                .field("granted", &granted);
        }
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.permits.waiters()));
        f.finish_non_exhaustive()
    }
}
