//! A channel of one value, with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault
//! is a line. With [`Fault::None`] it is correct.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::wake_all;
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::mpsc::{MpscSpec, Op, Ret, follows};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    let mut entries = SpecimenEntry::all_of("mpsc", 3, ALL, Specimen);
    entries.extend(SpecimenEntry::all_of("mpsc", 4, LONGER, Specimen));
    entries
}

/// What is wrong with the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P2: `recv` checks for a value in one section, and registers in another.
    ChecksThenRegisters,
    /// P2: `recv` checks for senders in one section, and registers in another.
    LastSenderUnseen,
    /// P3: the last sender does not wake the receiver.
    LastSenderSilent,
    /// P3: a permit that is released after the close does not wake the receiver.
    ReleaseAfterClose,
    /// P4: the receiver is woken under the lock.
    WakeUnderLock,
    /// P4: the values of a receiver that leaves are dropped under the lock.
    DropValueUnderLock,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// P6: a value is given to a waiting `recv`, and dropped with it.
    DroppedWithWait,
    /// P6: a send that is dropped keeps the permit it was granted.
    GrantKept,
    /// P8: a reservation loses the permit it was granted if the drop of a waker panics.
    PermitLostInPanic,
    /// Closing the channel drops the values in it.
    CloseLosesValues,
    /// A closed channel accepts values.
    SendsAfterClose,
    /// A full channel accepts values.
    OverCapacity,
}

/// The faults that programs of three operations must catch, each with its class. It is
/// `None` for a specimen that must pass.
const ALL: [(&str, Fault, Option<Class>); 11] = [
    ("plain", Fault::None, None),
    (
        "checks-then-registers",
        Fault::ChecksThenRegisters,
        Some(Class::LostWakeUp),
    ),
    (
        "last-sender-unseen",
        Fault::LastSenderUnseen,
        Some(Class::LostWakeUp),
    ),
    (
        "last-sender-silent",
        Fault::LastSenderSilent,
        Some(Class::LostWakeUp),
    ),
    (
        "wake-under-lock",
        Fault::WakeUnderLock,
        Some(Class::Reentrancy),
    ),
    (
        "drop-value-under-lock",
        Fault::DropValueUnderLock,
        Some(Class::Reentrancy),
    ),
    (
        "first-waker-kept",
        Fault::FirstWakerKept,
        Some(Class::StaleWaker),
    ),
    (
        "dropped-with-wait",
        Fault::DroppedWithWait,
        Some(Class::CancellationRace),
    ),
    (
        "close-loses-values",
        Fault::CloseLosesValues,
        Some(Class::WrongResult),
    ),
    (
        "sends-after-close",
        Fault::SendsAfterClose,
        Some(Class::WrongResult),
    ),
    (
        "over-capacity",
        Fault::OverCapacity,
        Some(Class::WrongResult),
    ),
];

/// The faults that take programs of four operations.
const LONGER: [(&str, Fault, Option<Class>); 3] = [
    (
        "release-after-close",
        Fault::ReleaseAfterClose,
        Some(Class::LostWakeUp),
    ),
    (
        "grant-kept",
        Fault::GrantKept,
        Some(Class::CancellationRace),
    ),
    (
        "permit-lost-in-panic",
        Fault::PermitLostInPanic,
        Some(Class::Panic),
    ),
];

struct State {
    values: Vec<Value>,
    free: usize,
    closed: bool,
    receiver_gone: bool,
    sender_gone: bool,
    receiver: Option<Waker>,
    /// The value given to a waiting `recv`, by the fault that does so.
    handed: Option<Value>,
    /// The value of a receive that a panic of a waker has ended: the next returns it.
    unobserved: Option<Value>,
    /// The send that waits, if there is one: whether it was granted a permit, and its
    /// waker.
    send: Option<(bool, Option<Waker>)>,
}

struct Chan<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

impl<B: BlockingBackend> Chan<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Releases a permit, and gives it to the send that waits, if there is one.
    fn give(&self, state: &mut State) -> Vec<Waker> {
        match &mut state.send {
            Some((granted, waker)) if !*granted && !state.closed => {
                *granted = true;
                waker.take().into_iter().collect()
            }
            _ => {
                state.free += 1;
                let idle = state.closed && !self.is(Fault::ReleaseAfterClose);
                let receiver = idle.then(|| state.receiver.take());
                receiver.flatten().into_iter().collect()
            }
        }
    }

    /// Stores a value that has its permit.
    fn store(&self, state: &mut State, value: Value) -> (Vec<Waker>, Option<Value>) {
        if state.receiver_gone {
            return (Vec::new(), Some(value));
        }
        let waker = state.receiver.take();
        if self.is(Fault::DroppedWithWait) && waker.is_some() {
            state.handed = Some(value);
        } else {
            state.values.push(value);
        }
        if self.is(Fault::WakeUnderLock) {
            waker.into_iter().for_each(Waker::wake);
            return (Vec::new(), None);
        }
        (waker.into_iter().collect(), None)
    }

    fn try_send(&self, value: Value) -> Ret {
        let id = value.id();
        let (ret, wakers, value) = self.lock.with(|section| {
            let state = section.state;
            if state.closed && !self.is(Fault::SendsAfterClose) {
                return (Ret::Closed(Some(id)), Vec::new(), Some(value));
            }
            let full = state.free == 0 || state.send.is_some();
            if full && !self.is(Fault::OverCapacity) {
                return (Ret::Full(Some(id)), Vec::new(), Some(value));
            }
            state.free = state.free.saturating_sub(1);
            let (wakers, value) = self.store(state, value);
            (Ret::Done, wakers, value)
        });
        wake_all(wakers);
        drop(value);
        ret
    }

    fn try_reserve(&self) -> Ret {
        self.lock.with(|section| {
            let state = section.state;
            if state.closed {
                return Ret::Closed(None);
            }
            if state.free == 0 || state.send.is_some() {
                return Ret::Full(None);
            }
            state.free -= 1;
            Ret::Done
        })
    }

    fn release(&self) {
        let wakers = self.lock.with(|section| self.give(section.state));
        wake_all(wakers);
    }

    fn drop_sender(&self) {
        let receiver = self.lock.with(|section| {
            section.state.sender_gone = true;
            let wakes = !self.is(Fault::LastSenderSilent);
            wakes.then(|| section.state.receiver.take()).flatten()
        });
        wake_all(receiver.into_iter().collect());
    }

    /// Receives a value, or `None` if there will be none.
    fn look(&self, state: &mut State) -> (Option<Option<Value>>, Vec<Waker>) {
        if let Some(value) = state.unobserved.take() {
            return (Some(Some(value)), Vec::new());
        }
        let value = match state.values.is_empty() {
            true => state.handed.take(),
            false => Some(state.values.remove(0)),
        };
        if let Some(value) = value {
            return (Some(Some(value)), self.give(state));
        }
        let idle = state.free == 1;
        let ended = state.sender_gone || (state.closed && idle);
        (ended.then_some(None), Vec::new())
    }

    fn try_recv(&self) -> Ret {
        let (received, wakers) = self.lock.with(|section| self.look(section.state));
        match self.deliver(received, wakers, None) {
            Some(value) => received_one(value),
            None => Ret::Empty,
        }
    }

    fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Option<Value>> {
        let waker = cx.waker().clone();
        if self.is(Fault::ChecksThenRegisters) || self.is(Fault::LastSenderUnseen) {
            let (found, wakers) = self.lock.with(|section| self.look(section.state));
            if let Some(value) = self.deliver(found, wakers, None) {
                return Poll::Ready(value);
            }
        }
        let (found, wakers, displaced) = self.lock.with(|section| {
            let state = section.state;
            let blind = match self.fault {
                Fault::ChecksThenRegisters => true,
                Fault::LastSenderUnseen => state.values.is_empty() && !state.closed,
                _ => false,
            };
            if !blind && let (Some(value), wakers) = self.look(state) {
                return (Some(value), wakers, Some(waker));
            }
            if self.is(Fault::FirstWakerKept) && state.receiver.is_some() {
                return (None, Vec::new(), Some(waker));
            }
            (None, Vec::new(), state.receiver.replace(waker))
        });
        self.deliver(found, wakers, displaced)
            .map_or(Poll::Pending, Poll::Ready)
    }

    /// Wakes what a receive has taken out, drops what it has displaced, and returns what
    /// it has found. If a waker panics, the value is kept for the next receive (P8).
    fn deliver(
        &self,
        found: Option<Option<Value>>,
        wakers: Vec<Waker>,
        displaced: Option<Waker>,
    ) -> Option<Option<Value>> {
        let woken = catch_unwind(AssertUnwindSafe(|| {
            wake_all(wakers);
            drop(displaced);
        }));
        if let Err(panic) = woken {
            if let Some(value @ Some(_)) = found {
                self.lock.with(|section| section.state.unobserved = value);
            }
            resume_unwind(panic);
        }
        found
    }

    fn cancel_recv(&self) {
        let left = self.lock.with(|section| {
            let state = section.state;
            let handed = state.handed.take();
            state.free += usize::from(handed.is_some());
            (state.receiver.take(), handed)
        });
        drop(left);
    }

    fn close(&self, receiver_gone: bool) {
        let (left, wakers) = self.lock.with(|section| {
            let state = section.state;
            state.closed = true;
            let mut values = Vec::new();
            let mut receiver = None;
            if receiver_gone || self.is(Fault::CloseLosesValues) {
                values = std::mem::take(&mut state.values);
                state.free += values.len();
                if self.is(Fault::DropValueUnderLock) {
                    values.clear();
                }
                receiver = state.receiver.take();
            }
            if receiver_gone {
                values.extend(state.unobserved.take());
            }
            state.receiver_gone |= receiver_gone;
            let wakers = state.send.as_mut().and_then(|(_, waker)| waker.take());
            ((values, receiver), wakers)
        });
        wake_all(wakers.into_iter().collect());
        drop(left);
    }
}

fn received_one(value: Option<Value>) -> Ret {
    Ret::Received(value.iter().map(Value::id).collect())
}

/// The future of a send. Without a value it is that of a reservation, which releases
/// its permit at once.
struct Sending<'a, B: BlockingBackend> {
    chan: &'a Chan<B>,
    value: Option<Value>,
    waits: bool,
}

impl<B: BlockingBackend> Future for Sending<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let this = self.get_mut();
        let chan = this.chan;
        let mut waker = Some(cx.waker().clone());
        let (waits, slot) = (&mut this.waits, &mut this.value);
        let (poll, wakers, unsent) = chan.lock.with(|section| {
            let state = section.state;
            let granted = *waits && state.send.as_ref().is_some_and(|(granted, _)| *granted);
            let takes = match *waits {
                true => granted && !state.closed,
                false => state.free > 0 && state.send.is_none() && !state.closed,
            };
            if takes {
                state.free -= usize::from(!*waits);
                *waits = false;
                state.send = state.send.take().filter(|_| !granted);
                return match slot.take() {
                    Some(value) => {
                        let (wakers, unsent) = chan.store(state, value);
                        (Some(Ret::Done), wakers, unsent)
                    }
                    None if chan.is(Fault::PermitLostInPanic) => {
                        (Some(Ret::Unit), Vec::new(), None)
                    }
                    None => (Some(Ret::Done), chan.give(state), None),
                };
            }
            if state.closed {
                let mut wakers = Vec::new();
                if std::mem::take(waits) {
                    let old = state.send.take();
                    if granted {
                        wakers.extend(chan.give(state));
                    }
                    waker = waker.take().or(old.and_then(|(_, waker)| waker));
                }
                let value = slot.take();
                let id = value.as_ref().map(Value::id);
                return (Some(Ret::Closed(id)), wakers, value);
            }
            *waits = true;
            match &mut state.send {
                Some((_, slot)) => std::mem::swap(slot, &mut waker),
                None => state.send = Some((false, waker.take())),
            }
            (None, Vec::new(), None)
        });
        wake_all(wakers);
        drop(unsent);
        drop(waker);
        if poll == Some(Ret::Unit) {
            // The permit has been taken, and is released only now.
            chan.release();
            return Poll::Ready(Ret::Done);
        }
        poll.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<B: BlockingBackend> Drop for Sending<'_, B> {
    fn drop(&mut self) {
        if !self.waits {
            return;
        }
        let chan = self.chan;
        let (wakers, old) = chan.lock.with(|section| {
            let state = section.state;
            let old = state.send.take();
            let granted = old.as_ref().is_some_and(|(granted, _)| *granted);
            match granted && !chan.is(Fault::GrantKept) {
                true => (chan.give(state), old),
                false => (Vec::new(), old),
            }
        });
        drop(old);
        wake_all(wakers);
    }
}

/// The future of a receive.
struct Receiving<'a, B: BlockingBackend> {
    chan: &'a Chan<B>,
    waits: bool,
}

impl<B: BlockingBackend> Future for Receiving<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let this = self.get_mut();
        this.waits = true;
        let poll = this.chan.poll_recv(cx);
        this.waits = poll.is_pending();
        poll.map(received_one)
    }
}

impl<B: BlockingBackend> Drop for Receiving<'_, B> {
    fn drop(&mut self) {
        if self.waits {
            self.chan.cancel_recv();
        }
    }
}

/// The specimen over every backend.
pub(crate) struct Specimen(pub(crate) Fault);

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            fault: self.0,
            backend: PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

/// What one participant holds.
pub(crate) struct Half<B: BlockingBackend> {
    chan: Arc<Chan<B>>,
    left: bool,
    kept: usize,
}

impl<B: BlockingBackend> Drop for Half<B> {
    fn drop(&mut self) {
        if !self.left {
            self.chan.close(true);
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = MpscSpec;
    type Actor = Half<B>;

    fn spec(&self) -> MpscSpec {
        MpscSpec {
            room: Some(1),
            senders: 1,
        }
    }

    /// Returns two roles, whatever the number.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |name, symmetry, ops| Role {
            name,
            ops,
            symmetry,
        };
        vec![
            role(
                "sender",
                0,
                vec![
                    Operation::future("send", Op::Send),
                    Operation::immediate("drop", Op::DropSender).leaving(),
                    Operation::future("reserve_many", Op::ReserveMany),
                    Operation::immediate("try_send", Op::TrySend),
                    Operation::immediate("try_reserve_owned", Op::TryReserveOwned),
                    Operation::immediate("permit_release", Op::PermitRelease),
                ],
            ),
            role(
                "receiver",
                1,
                vec![
                    Operation::future("recv", Op::Recv),
                    Operation::immediate("drop", Op::DropReceiver).leaving(),
                    Operation::immediate("try_recv", Op::TryRecv),
                    Operation::immediate("close", Op::Close),
                ],
            ),
        ]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        follows(role, before, next)
    }

    fn actors(&self, _: usize) -> Vec<Half<B>> {
        let chan = Arc::new(Chan {
            fault: self.fault,
            lock: StateLock::new_in(
                Bits::EMPTY,
                State {
                    values: Vec::new(),
                    free: 1,
                    closed: false,
                    receiver_gone: false,
                    sender_gone: false,
                    receiver: None,
                    handed: None,
                    unobserved: None,
                    send: None,
                },
            ),
        });
        let half = |chan| Half {
            chan,
            left: false,
            kept: 0,
        };
        vec![half(chan.clone()), half(chan)]
    }

    fn start<'a>(
        &self,
        half: &'a mut Half<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let chan = &half.chan;
        Started::Done(match *call.op {
            _ if half.left => Ret::Unit,
            Op::Send => {
                return Started::future(Sending {
                    chan,
                    value: Some(value()),
                    waits: false,
                });
            }
            Op::ReserveMany => {
                return Started::future(Sending {
                    chan,
                    value: None,
                    waits: false,
                });
            }
            Op::TrySend => chan.try_send(value()),
            Op::TryReserveOwned => {
                let reserved = chan.try_reserve();
                half.kept += usize::from(reserved == Ret::Done);
                reserved
            }
            Op::PermitRelease => match half.kept.checked_sub(1) {
                Some(kept) => {
                    half.kept = kept;
                    chan.release();
                    Ret::Done
                }
                None => Ret::Unit,
            },
            Op::DropSender => {
                half.left = true;
                chan.drop_sender();
                Ret::Unit
            }
            Op::Recv => return Started::future(Receiving { chan, waits: false }),
            Op::TryRecv => chan.try_recv(),
            Op::Close => {
                chan.close(false);
                Ret::Unit
            }
            Op::DropReceiver => {
                half.left = true;
                chan.close(true);
                Ret::Unit
            }
            _ => unreachable!("no role has it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
