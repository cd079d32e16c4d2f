//! What the halves share: the values and both queues of waiters, under one lock.
//!
//! ```text
//!   send:  created ──there is room──────▶ stored
//!             └──▶ queued ──granted room──▶ notified ──polled──▶ stored
//!   recv:  created ──a value is free────▶ received
//!             └──▶ queued ──granted a value─▶ notified ──polled──▶ received
//!   close: notifies every waiter
//! ```
//!
//! Of a rendezvous, each receiver that waits is room for one value.
//!
//! Invariants, between two sections:
//!
//! 1. If a receiver is queued, each stored value is granted to a receiver. If a sender is
//!    queued, there is no room.
//! 2. If the channel is closed, no waiter is queued, and nothing is stored any more.
//! 3. `READY` is set if and only if a value is free or the channel is closed.
//!
//! A receive takes its value out in the section that grants the room to the next sender.
//! If the waker of that sender panics, the value goes back to the front (P8): see
//! [`Taken`].

#![forbid(unsafe_code)]

use core::fmt;
use core::mem;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};

use crate::backend::Backend;
use crate::backend::watch::refused;
use crate::buffer::Buffer;
use crate::mpsc::error::{SendError, TrySendError};
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, CallerLocation, Section, StateLock, Waiter, Waiters, WakeList};

use super::error::{RecvError, TryRecvError};

const CLOSED: Bits = Bits::new(1);
/// A receive need not wait.
const READY: Bits = Bits::new(1 << 1);

/// What the halves of a channel share.
pub(super) struct Chan<T, B: Backend> {
    lock: StateLock<State<T>, B>,
    /// `usize::MAX` if it is unbounded.
    pub(super) capacity: usize,
}

struct State<T> {
    values: Buffer<T>,
    /// The number of values.
    stored: usize,
    /// Each with whether it has been granted room.
    senders: Waiters<bool>,
    /// The number of senders that have been granted room and have not been polled since.
    reserved: usize,
    /// Each with whether it has been granted a value.
    receivers: Waiters<bool>,
    /// The number of receivers that have been granted a value, likewise.
    granted: usize,
    /// Of the tasks that wait for the channel to close.
    closers: Waiters<()>,
    capacity: usize,
    sender_count: usize,
    receiver_count: usize,
}

/// How a send goes on.
pub(super) enum Sending {
    Created,
    Waits(Waiter),
    /// Seen outside of a poll only if a waker panicked in the poll that sent the value.
    Sent,
    Done,
}

/// The half that a count belongs to.
#[derive(Clone, Copy)]
pub(super) enum Half {
    Sender,
    Receiver,
}

impl<T> State<T> {
    fn has_room(&self) -> bool {
        let room = match self.capacity {
            0 => self.receivers.queued() + self.granted,
            capacity => capacity,
        };
        self.stored + self.reserved < room
    }

    /// Returns `true` if a value is granted to no receiver.
    fn has_free_value(&self) -> bool {
        self.stored > self.granted
    }

    /// Grants values and room to the waiters, in order. Every section that changes the
    /// one or the other ends here. It takes out one waker of each queue at most, since a
    /// section changes each by one at most.
    #[inline]
    fn assign(&mut self, bits: &mut Bits, wakes: &mut WakeList) {
        while self.has_free_value()
            && let Some(first) = self.receivers.first()
        {
            *self.receivers.notify_one(&first, wakes) = true;
            self.granted += 1;
        }
        while self.has_room()
            && let Some(first) = self.senders.first()
        {
            *self.senders.notify_one(&first, wakes) = true;
            self.reserved += 1;
        }
        match self.has_free_value() || bits.contains(CLOSED) {
            true => bits.insert(READY),
            false => bits.remove(READY),
        }
    }

    #[inline]
    fn store(&mut self, bits: &mut Bits, value: T, wakes: &mut WakeList) {
        self.values.push(value);
        self.stored += 1;
        self.assign(bits, wakes);
    }

    /// Takes the first value, which is there.
    #[inline]
    fn take(&mut self, bits: &mut Bits, wakes: &mut WakeList) -> Option<T> {
        self.stored -= 1;
        let value = self.values.pop();
        self.assign(bits, wakes);
        value
    }

    fn count(&mut self, half: Half) -> &mut usize {
        match half {
            Half::Sender => &mut self.sender_count,
            Half::Receiver => &mut self.receiver_count,
        }
    }
}

/// A value on its way from a section to the caller. It goes back to the front of the
/// channel if the panic of a waker comes between.
struct Taken<'a, T, B: Backend> {
    chan: &'a Chan<T, B>,
    value: Option<T>,
}

impl<T, B: Backend> Drop for Taken<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.chan.put_back(value);
        }
    }
}

impl<T, B: Backend> Chan<T, B> {
    pub(super) fn new(capacity: usize) -> Self {
        let state = State {
            values: Buffer::new(),
            stored: 0,
            senders: Waiters::new(),
            reserved: 0,
            receivers: Waiters::new(),
            granted: 0,
            closers: Waiters::new(),
            capacity,
            sender_count: 1,
            receiver_count: 1,
        };
        Self {
            lock: StateLock::new_in(Bits::EMPTY, state),
            capacity,
        }
    }

    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.lock.with(|Section { bits, state, wakes }| {
            if bits.contains(CLOSED) {
                return Err(TrySendError::Closed(value));
            }
            if !state.has_room() {
                return Err(refused::<B, _>(TrySendError::Full(value)));
            }
            state.store(bits, value, wakes);
            Ok(())
        })
    }

    pub(super) fn force_send(&self, value: T) -> Result<Option<T>, SendError<T>> {
        self.lock.with(|Section { bits, state, wakes }| {
            if bits.contains(CLOSED) {
                return Err(SendError(value));
            }
            if state.has_room() {
                state.store(bits, value, wakes);
                return Ok(None);
            }
            // As many values as before: nothing is granted.
            match state.values.pop() {
                Some(first) => {
                    state.values.push(value);
                    Ok(Some(first))
                }
                None => Ok(Some(value)),
            }
        })
    }

    #[inline]
    pub(super) fn poll_send(
        &self,
        sending: &mut Sending,
        value: &mut Option<T>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        loop {
            match sending {
                Sending::Created => {
                    let unsent = value.take().expect("a value is sent once");
                    // Before the wake, which may panic.
                    *sending = Sending::Sent;
                    match self.try_send(unsent) {
                        Ok(()) => {}
                        Err(TrySendError::Closed(unsent)) => {
                            *sending = Sending::Done;
                            return Poll::Ready(Err(SendError(unsent)));
                        }
                        Err(TrySendError::Full(unsent)) => {
                            *value = Some(unsent);
                            *sending = Sending::Created;
                            if self.poll_queue(sending, location, cx).is_pending() {
                                return Poll::Pending;
                            }
                        }
                    }
                }
                Sending::Waits(_) => match self.poll_queued(sending, value, cx) {
                    Poll::Ready(Some(unsent)) => return Poll::Ready(Err(SendError(unsent))),
                    Poll::Ready(None) => {}
                    Poll::Pending => return Poll::Pending,
                },
                Sending::Sent => {
                    *sending = Sending::Done;
                    return Poll::Ready(Ok(()));
                }
                Sending::Done => panic!("mpmc::Sender::send polled after it was ready"),
            }
        }
    }

    /// Queues a sender, or is ready if it need not wait.
    fn poll_queue(
        &self,
        sending: &mut Sending,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        self.lock.first_poll(cx, |bits, state, registration| {
            if bits.contains(CLOSED) || state.has_room() {
                return Ok(());
            }
            let waiter = state.senders.push(location, false);
            let registered = registration.register(state.senders.waker(&waiter));
            *sending = Sending::Waits(waiter);
            Err(registered)
        })
    }

    /// Polls a sender that is queued or notified. It is ready with its value if the
    /// channel is closed.
    fn poll_queued(
        &self,
        sending: &mut Sending,
        value: &mut Option<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        let poll = self.lock.poll(cx, false, |section, registration| {
            let Section { bits, state, wakes } = section;
            if let Sending::Waits(waiter) = &*sending
                && !state.senders.is_notified(waiter)
            {
                return Err(registration.register(state.senders.waker(waiter)));
            }
            if let Sending::Waits(waiter) = mem::replace(sending, Sending::Sent)
                && state.senders.remove(waiter, wakes)
            {
                state.reserved -= 1;
            }
            if bits.contains(CLOSED) {
                *sending = Sending::Created;
            } else if let Some(value) = value.take() {
                state.store(bits, value, wakes);
            }
            Ok(())
        });
        poll.map(|()| match sending {
            Sending::Created => {
                *sending = Sending::Done;
                value.take()
            }
            _ => None,
        })
    }

    /// Ends the wait of a sender, and passes on the room that it was granted.
    pub(super) fn cancel_send(&self, waiter: Waiter) {
        self.lock.with(|Section { bits, state, wakes }| {
            if state.senders.remove(waiter, wakes) {
                state.reserved -= 1;
                state.assign(bits, wakes);
            }
        });
    }

    #[inline]
    pub(super) fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut taken = Taken {
            chan: self,
            value: None,
        };
        self.lock.with(|Section { bits, state, wakes }| {
            if state.has_free_value() {
                taken.value = state.take(bits, wakes);
                return Ok(());
            }
            if bits.contains(CLOSED) {
                return Err(TryRecvError::Closed);
            }
            if state.capacity == 0
                && state.stored + state.reserved == 0
                && let Some(first) = state.senders.first()
            {
                *state.senders.notify_one(&first, wakes) = true;
                state.reserved += 1;
            }
            Err(refused::<B, _>(TryRecvError::Empty))
        })?;
        taken.value.take().ok_or(TryRecvError::Empty)
    }

    /// Polls for a value. `waiter` is that of the caller, while it waits.
    #[inline]
    pub(super) fn poll_recv(
        &self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, RecvError>> {
        loop {
            if waiter.is_some() {
                return self.poll_granted(waiter, cx);
            }
            if self.lock.load().contains(READY)
                && let Some(found) = self.take_free()
            {
                return Poll::Ready(found);
            }
            if self.poll_wait(waiter, location, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Takes a value that is free. Returns `None` if there is none, and one may come.
    #[inline]
    fn take_free(&self) -> Option<Result<T, RecvError>> {
        let mut taken = Taken {
            chan: self,
            value: None,
        };
        let closed = self.lock.with(|Section { bits, state, wakes }| {
            if state.has_free_value() {
                taken.value = state.take(bits, wakes);
            }
            bits.contains(CLOSED)
        });
        match taken.value.take() {
            Some(value) => Some(Ok(value)),
            None => closed.then_some(Err(RecvError)),
        }
    }

    /// Queues a receiver, or is ready if it need not wait.
    fn poll_wait(
        &self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        self.lock.poll(cx, true, |section, registration| {
            let Section { bits, state, wakes } = section;
            if bits.contains(READY) {
                return Ok(());
            }
            let receivers = &mut state.receivers;
            let waiter = waiter.get_or_insert_with(|| receivers.push(location, false));
            let registered = registration.register(receivers.waker(waiter));
            // Of a rendezvous, it is room for a value.
            state.assign(bits, wakes);
            Err(registered)
        })
    }

    /// Polls a receiver that is queued or notified.
    fn poll_granted(
        &self,
        waiter: &mut Option<Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, RecvError>> {
        let mut taken = Taken {
            chan: self,
            value: None,
        };
        let poll = self.lock.poll(cx, false, |section, registration| {
            let Section { bits, state, wakes } = section;
            if let Some(waiter) = waiter
                && !state.receivers.is_notified(waiter)
            {
                return Err(registration.register(state.receivers.waker(waiter)));
            }
            if let Some(waiter) = waiter.take()
                && state.receivers.remove(waiter, wakes)
            {
                state.granted -= 1;
            }
            // There is none only if the channel is closed.
            if state.has_free_value() {
                taken.value = state.take(bits, wakes);
            }
            Ok(())
        });
        poll.map(|()| taken.value.take().ok_or(RecvError))
    }

    /// Ends the wait of a receiver, and passes on the value that it was granted.
    pub(super) fn cancel_recv(&self, waiter: Waiter) {
        self.lock.with(|Section { bits, state, wakes }| {
            if state.receivers.remove(waiter, wakes) {
                state.granted -= 1;
                state.assign(bits, wakes);
            }
        });
    }

    /// Puts a value back that was not received, while a panic unwinds. The list is not
    /// fired but dropped, which catches further panics.
    #[cold]
    fn put_back(&self, value: T) {
        let mut wakes = WakeList::new();
        self.lock
            .section(&mut wakes.armed(), |Section { bits, state, wakes }| {
                state.values.unpop(value);
                state.stored += 1;
                state.assign(bits, wakes);
            });
    }

    /// Closes the channel. Returns `true` if it was open.
    pub(super) fn close(&self) -> bool {
        self.close_if(|_, _, _| true)
    }

    /// Counts a half that is dropped, and ends its wait. The last of its kind closes the
    /// channel.
    pub(super) fn leave(&self, half: Half, receiver: Option<Waiter>) {
        self.close_if(|bits, state, wakes| {
            if let Some(waiter) = receiver
                && state.receivers.remove(waiter, wakes)
            {
                state.granted -= 1;
                state.assign(bits, wakes);
            }
            let count = state.count(half);
            *count -= 1;
            *count == 0
        });
    }

    /// Closes the channel, if `f` returns `true`. The values go with the last receiver.
    fn close_if(&self, f: impl FnOnce(&mut Bits, &mut State<T>, &mut WakeList) -> bool) -> bool {
        let mut f = Some(f);
        let mut notified = None;
        let mut was_open = false;
        let mut unreceived = Buffer::new();
        self.lock.rounds(|Section { bits, state, wakes }| {
            if let Some(f) = f.take() {
                if !f(bits, state, wakes) {
                    return false;
                }
                was_open = !bits.contains(CLOSED);
                bits.insert(CLOSED);
                bits.insert(READY);
                if state.receiver_count == 0 {
                    unreceived = mem::take(&mut state.values);
                    state.stored = 0;
                }
                notified = Some((
                    state.senders.notify_all(),
                    state.receivers.notify_all(),
                    state.closers.notify_all(),
                ));
            }
            notified.is_some_and(|(senders, receivers, closers)| {
                state.senders.wake_notified(senders, wakes)
                    || state.receivers.wake_notified(receivers, wakes)
                    || state.closers.wake_notified(closers, wakes)
            })
        });
        drop(unreceived);
        was_open
    }

    /// Polls for the channel to be closed.
    pub(super) fn poll_closed(
        &self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let fresh = waiter.is_none();
        if fresh && self.is_closed() {
            return Poll::Ready(());
        }
        self.lock.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            let closers = &mut state.closers;
            if bits.contains(CLOSED) {
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
        self.lock
            .with(|Section { state, wakes, .. }| state.closers.remove(waiter, wakes));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock.load().contains(CLOSED)
    }

    pub(super) fn len(&self) -> usize {
        self.lock.look(|state| state.stored)
    }

    pub(super) fn count(&self, half: Half) -> usize {
        self.lock.with(|Section { state, .. }| *state.count(half))
    }

    /// Counts another half. `Arc`'s own count, which is as large, aborts before this one
    /// overflows.
    pub(super) fn join(&self, half: Half) {
        self.lock
            .with(|Section { state, .. }| *state.count(half) += 1);
    }

    /// Counts another half, if there is one still and the channel is open.
    pub(super) fn try_join(&self, half: Half) -> bool {
        self.lock.with(|Section { bits, state, .. }| {
            let count = state.count(half);
            let joins = *count > 0 && !bits.contains(CLOSED);
            *count += usize::from(joins);
            joins
        })
    }
}

/// A panic leaves a channel as it leaves any of the suite: see P8.
impl<T, B: Backend> UnwindSafe for Chan<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Chan<T, B> {}

/// The values of the channel, its halves and its waiters.
impl<T, B: Backend> fmt::Debug for Chan<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Chan");
        self.lock.with(|Section { state, .. }| {
            f.field("capacity", &state.capacity)
                .field("len", &state.stored)
                .field("senders", &state.sender_count)
                .field("receivers", &state.receiver_count)
                .field("waiting_senders", &state.senders.queued())
                .field("reserved", &state.reserved)
                .field("waiting_receivers", &state.receivers.queued())
                .field("granted", &state.granted);
        });
        #[cfg(feature = "locations")]
        {
            let (senders, receivers) = self.lock.with(|Section { state, .. }| {
                (state.senders.locations(), state.receivers.locations())
            });
            f.field("senders_at", &Locations(senders))
                .field("receivers_at", &Locations(receivers));
        }
        f.finish_non_exhaustive()
    }
}
