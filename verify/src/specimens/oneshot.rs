//! A oneshot with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault
//! is a line. With [`Fault::None`] it is correct.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};
use reveille::raw::Witness;

use crate::run::entry::SpecimenEntry;
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::oneshot::{self as real, OneshotSpec, Op, Ret};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("oneshot", 3, Fault::ALL, Specimen)
}

/// What is wrong with the oneshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P1: the value and the waker are under two locks, taken one after the other.
    TwoLocks,
    /// P2: the receiver checks in one section, and registers in another.
    CheckThenRegister,
    /// P3: a value is stored, and the receiver is not woken.
    NoWake,
    /// P3: the receiver is woken before the value is stored.
    WakeBeforeStore,
    /// P4: the waker is woken under the lock.
    WakeUnderLock,
    /// P4: the waker is cloned under the lock.
    CloneUnderLock,
    /// P4: a waker that is replaced is dropped under the lock.
    DropWakerUnderLock,
    /// P4: the value of a receiver that leaves is dropped under the lock.
    DropValueUnderLock,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// P5 and P7: a poll with the waker that is registered already takes it out, and
    /// registers none.
    SameWakerDropped,
    /// P5 and P3: a receiver that leaves keeps its waker in the channel.
    WakerOutlivesHalf,
    /// P6: a value is given to the wait, and dropped with it.
    DroppedWithWait,
    /// P6: as `DroppedWithWait`, but only by a wait that was woken and is suspended
    /// again. A registration wakes itself once.
    DroppedWithSecondWait,
    /// P6: a value sent to a receiver that then leaves is never dropped.
    ValueLost,
    /// P7: a receiver that is polled again assumes that there is a result.
    WakeIsAnswer,
    /// P8: a panic of the waker leaves the channel marked as busy.
    BusyAfterPanic,
    /// A value sent to a closed channel is accepted, and lost.
    AcceptedWhenClosed,
    /// The memory of the value is written after it is announced.
    AnnouncedEarly,

    /// Unusual but correct: every wake comes twice.
    WakesTwice,
    /// Unusual but correct: a registration wakes itself once.
    WakesItself,
    /// Unusual but correct: it registers in one section, and then checks in another.
    RegisterThenCheck,
    /// Unusual but correct: every change wakes both sides.
    WakesBoth,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 23] = [
        ("plain", Self::None, None),
        ("two-locks", Self::TwoLocks, Some(Class::LostWakeUp)),
        (
            "check-then-register",
            Self::CheckThenRegister,
            Some(Class::LostWakeUp),
        ),
        ("no-wake", Self::NoWake, Some(Class::LostWakeUp)),
        (
            "wake-before-store",
            Self::WakeBeforeStore,
            Some(Class::LostWakeUp),
        ),
        (
            "wake-under-lock",
            Self::WakeUnderLock,
            Some(Class::Reentrancy),
        ),
        (
            "clone-under-lock",
            Self::CloneUnderLock,
            Some(Class::Reentrancy),
        ),
        (
            "drop-waker-under-lock",
            Self::DropWakerUnderLock,
            Some(Class::Reentrancy),
        ),
        (
            "drop-value-under-lock",
            Self::DropValueUnderLock,
            Some(Class::Reentrancy),
        ),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
        ),
        (
            "same-waker-dropped",
            Self::SameWakerDropped,
            Some(Class::LostWakeUp),
        ),
        (
            "waker-outlives-half",
            Self::WakerOutlivesHalf,
            Some(Class::Leak),
        ),
        (
            "dropped-with-wait",
            Self::DroppedWithWait,
            Some(Class::CancellationRace),
        ),
        (
            "dropped-with-second-wait",
            Self::DroppedWithSecondWait,
            Some(Class::CancellationRace),
        ),
        ("value-lost", Self::ValueLost, Some(Class::Leak)),
        (
            "wake-is-result",
            Self::WakeIsAnswer,
            Some(Class::WrongResult),
        ),
        ("busy-after-panic", Self::BusyAfterPanic, Some(Class::Panic)),
        (
            "accepted-when-closed",
            Self::AcceptedWhenClosed,
            Some(Class::WrongResult),
        ),
        ("announced-early", Self::AnnouncedEarly, Some(Class::Race)),
        ("wakes-twice", Self::WakesTwice, None),
        ("wakes-itself", Self::WakesItself, None),
        ("register-then-check", Self::RegisterThenCheck, None),
        ("wakes-both", Self::WakesBoth, None),
    ];
}

/// The specimen over every backend.
pub(crate) struct Specimen(pub(crate) Fault);

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            fault: self.0,
            backend: std::marker::PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: std::marker::PhantomData<fn() -> B>,
}

/// What the two halves share.
pub(crate) struct Channel<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
    /// For [`Fault::TwoLocks`]: the receiver's waker.
    other: StateLock<Option<Waker>, B>,
    /// For [`Fault::AnnouncedEarly`]: the memory of the value.
    memory: Witness<B>,
}

#[derive(Default)]
struct State {
    value: Option<Value>,
    /// For [`Fault::DroppedWithWait`]: the value given to the wait.
    handed: Option<Value>,
    /// For [`Fault::DroppedWithSecondWait`]: the wait has been woken already.
    woken: bool,
    sender: Option<Waker>,
    receiver: Option<Waker>,
    sender_gone: bool,
    closed: bool,
    /// For [`Fault::BusyAfterPanic`]: whether the sender is waking. It wakes again the
    /// task that waits for it to finish.
    busy: bool,
}

/// The wait for the receiver to close.
struct Closed<'a, B: BlockingBackend>(&'a Channel<B>);

impl<B: BlockingBackend> Future for Closed<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        self.0.poll_closed(cx)
    }
}

impl<B: BlockingBackend> Drop for Closed<'_, B> {
    fn drop(&mut self) {
        drop(self.0.lock.with(|section| section.state.sender.take()));
    }
}

/// A half, while it is held.
pub(crate) enum Half<B: BlockingBackend> {
    Sender(Option<Arc<Channel<B>>>),
    Receiver {
        channel: Option<Arc<Channel<B>>>,
        terminated: bool,
    },
}

impl<B: BlockingBackend> Channel<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn send(&self, value: Value) -> Ret {
        if self.is(Fault::WakeBeforeStore) {
            let waker = self.lock.with(|section| section.state.receiver.take());
            wake(waker, false);
        }
        let mut value = Some(value);
        let (refused, wakers) = self.lock.with(|section| {
            let state = section.state;
            state.sender_gone = true;
            if state.closed && !self.is(Fault::AcceptedWhenClosed) {
                return (value.take(), [None, state.sender.take()]);
            }
            let hands = match self.fault {
                Fault::DroppedWithWait => state.receiver.is_some(),
                Fault::DroppedWithSecondWait => state.receiver.is_some() && state.woken,
                _ => false,
            };
            if hands {
                state.handed = value.take();
            } else {
                state.value = value.take();
            }
            state.busy = self.is(Fault::BusyAfterPanic);
            if self.is(Fault::NoWake) || self.is(Fault::WakeBeforeStore) {
                return (None, [None, state.sender.take()]);
            }
            let waker = state.receiver.take();
            if self.is(Fault::WakeUnderLock) {
                wake(waker, false);
                return (None, [None, state.sender.take()]);
            }
            (None, [waker, state.sender.take()])
        });
        if self.is(Fault::AnnouncedEarly) {
            self.memory.write();
        }
        // Wakes come first, so a waker that panics when it is dropped prevents none of
        // them.
        let [waker, _own] = wakers;
        let waker = match self.is(Fault::TwoLocks) {
            true => self.other.with(|section| section.state.take()),
            false => waker,
        };
        wake(waker, self.is(Fault::WakesTwice));
        if self.is(Fault::BusyAfterPanic) {
            let waker = self.lock.with(|section| {
                section.state.busy = false;
                section.state.receiver.take()
            });
            wake(waker, false);
        }
        match refused {
            Some(value) => Ret::Returned(value.id()),
            None => Ret::Sent,
        }
    }

    fn leave_sender(&self) {
        let [waker, _own] = self.lock.with(|section| {
            section.state.sender_gone = true;
            [section.state.receiver.take(), section.state.sender.take()]
        });
        let waker = match self.is(Fault::TwoLocks) {
            true => self.other.with(|section| section.state.take()),
            false => waker,
        };
        wake(waker, false);
    }

    fn leave_receiver(&self) {
        let (sender, receiver, value, handed) = self.lock.with(|section| {
            let state = section.state;
            state.closed = true;
            if self.is(Fault::DropValueUnderLock) {
                state.value = None;
            }
            if self.is(Fault::WakerOutlivesHalf) {
                return (state.sender.take(), None, state.value.take(), None);
            }
            (
                state.sender.take(),
                state.receiver.take(),
                state.value.take(),
                state.handed.take(),
            )
        });
        wake(sender, false);
        drop(receiver);
        if self.is(Fault::TwoLocks) {
            drop(self.other.with(|section| section.state.take()));
        }
        if self.is(Fault::ValueLost) {
            std::mem::forget(value);
        } else {
            drop(value);
        }
        drop(handed);
    }

    fn close(&self) {
        let [sender, receiver] = self.lock.with(|section| {
            section.state.closed = true;
            let receiver = match self.is(Fault::WakesBoth) {
                true => section.state.receiver.take(),
                false => None,
            };
            [section.state.sender.take(), receiver]
        });
        wake(sender, false);
        wake(receiver, false);
    }

    fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<Ret> {
        let waker = cx.waker().clone();
        let (poll, old) = self.lock.with(|section| {
            // Either way a waker is left to be dropped outside.
            if section.state.closed {
                return (Poll::Ready(Ret::Closed), Some(waker));
            }
            (Poll::Pending, section.state.sender.replace(waker))
        });
        drop(old);
        poll
    }

    /// Returns the result, if there is one.
    fn answer(&self, state: &mut State) -> Option<Result<Value, ()>> {
        if let Some(value) = state.value.take().or_else(|| state.handed.take()) {
            return Some(Ok(value));
        }
        (state.sender_gone || state.closed).then_some(Err(()))
    }

    /// Returns `true` if a wait has a result.
    fn is_ready(&self, state: &State) -> bool {
        let decided = state.sender_gone || state.closed;
        !state.busy && (state.value.is_some() || state.handed.is_some() || decided)
    }

    fn received(&self, answer: Result<Value, ()>) -> Ret {
        match answer {
            Ok(value) => {
                if self.is(Fault::AnnouncedEarly) {
                    self.memory.read();
                }
                Ret::Received(value.id())
            }
            Err(()) => Ret::Closed,
        }
    }

    fn poll_recv(&self, cx: &mut Context<'_>, polls: &mut usize) -> Poll<Ret> {
        *polls += 1;
        match self.fault {
            Fault::CheckThenRegister => {
                if let Some(answer) = self.lock.with(|section| self.answer(section.state)) {
                    return Poll::Ready(self.received(answer));
                }
                let waker = cx.waker().clone();
                drop(
                    self.lock
                        .with(|section| section.state.receiver.replace(waker)),
                );
                Poll::Pending
            }
            Fault::RegisterThenCheck => {
                let waker = cx.waker().clone();
                drop(
                    self.lock
                        .with(|section| section.state.receiver.replace(waker)),
                );
                match self.lock.with(|section| self.answer(section.state)) {
                    Some(answer) => Poll::Ready(self.received(answer)),
                    None => Poll::Pending,
                }
            }
            Fault::TwoLocks => {
                if let Some(answer) = self.lock.with(|section| self.answer(section.state)) {
                    return Poll::Ready(self.received(answer));
                }
                let waker = cx.waker().clone();
                drop(self.other.with(|section| section.state.replace(waker)));
                Poll::Pending
            }
            _ => self.poll_recv_in_one(cx, *polls),
        }
    }

    fn poll_recv_in_one(&self, cx: &mut Context<'_>, polls: usize) -> Poll<Ret> {
        loop {
            // No waker is in hand here. A waker that panics when it is dropped would
            // lose the result.
            let answer = self.lock.with(|section| {
                let ready = self.is_ready(section.state);
                ready.then(|| self.answer(section.state)).flatten()
            });
            if let Some(answer) = answer {
                return Poll::Ready(self.received(answer));
            }
            if self.is(Fault::WakeIsAnswer) && polls > 1 {
                return Poll::Ready(self.received(Err(())));
            }
            if self.is(Fault::SameWakerDropped) {
                let same = self.lock.with(|section| {
                    let receiver = &mut section.state.receiver;
                    receiver.take_if(|waker| waker.will_wake(cx.waker()))
                });
                if same.is_some() {
                    return Poll::Pending;
                }
            }
            let waker = match self.is(Fault::CloneUnderLock) {
                true => None,
                false => Some(cx.waker().clone()),
            };
            let (registered, old) = self.lock.with(|section| {
                let state = section.state;
                if self.is_ready(state) {
                    return (false, waker);
                }
                if self.is(Fault::FirstWakerKept) && state.receiver.is_some() {
                    return (true, waker);
                }
                let waker = waker.or_else(|| Some(cx.waker().clone()));
                state.woken = polls > 1;
                let old = std::mem::replace(&mut state.receiver, waker);
                if self.is(Fault::DropWakerUnderLock) {
                    drop(old);
                    return (true, None);
                }
                (true, old)
            });
            drop(old);
            if registered {
                let again = self.is(Fault::WakesItself) || self.is(Fault::DroppedWithSecondWait);
                if again && polls == 1 {
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            }
        }
    }
}

fn wake(waker: Option<Waker>, twice: bool) {
    if let Some(waker) = waker {
        if twice {
            waker.wake_by_ref();
        }
        waker.wake();
    }
}

/// The wait of a receiver.
struct Recv<'a, B: BlockingBackend> {
    channel: &'a Channel<B>,
    terminated: &'a mut bool,
    polls: usize,
    /// The last poll has returned that it is pending.
    suspended: bool,
}

impl<B: BlockingBackend> Future for Recv<'_, B> {
    type Output = Ret;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let channel = self.channel;
        self.suspended = false;
        let poll = channel.poll_recv(cx, &mut self.polls);
        self.suspended = poll.is_pending();
        *self.terminated |= poll.is_ready();
        poll
    }
}

impl<B: BlockingBackend> Drop for Recv<'_, B> {
    fn drop(&mut self) {
        let hands = matches!(
            self.channel.fault,
            Fault::DroppedWithWait | Fault::DroppedWithSecondWait
        );
        if hands && !*self.terminated {
            // A poll that unwinds, and is no wait any more, gives it back.
            let gives_back = self.channel.is(Fault::DroppedWithSecondWait) && !self.suspended;
            let left = self.channel.lock.with(|section| {
                let state = section.state;
                if gives_back && state.value.is_none() {
                    state.value = state.handed.take();
                }
                (state.handed.take(), state.receiver.take())
            });
            drop(left);
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = OneshotSpec;
    type Actor = Half<B>;

    fn spec(&self) -> OneshotSpec {
        OneshotSpec
    }

    /// Returns the roles of the real subject, without the blocking operation.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let mut roles = real::roles();
        for role in &mut roles {
            role.ops
                .retain(|operation| operation.op != Op::BlockingRecv);
        }
        roles
    }

    fn actors(&self, _: usize) -> Vec<Half<B>> {
        let channel = Arc::new(Channel {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
            other: StateLock::new_in(Bits::EMPTY, None),
            memory: Witness::new_in(),
        });
        vec![
            Half::Sender(Some(channel.clone())),
            Half::Receiver {
                channel: Some(channel),
                terminated: false,
            },
        ]
    }

    fn start<'a>(
        &self,
        actor: &'a mut Half<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match actor {
            Half::Sender(half) => sender(half, *call.op, value),
            Half::Receiver {
                channel,
                terminated,
            } => receiver(channel, terminated, *call.op),
        }
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        real::follows(role, before, next)
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}

fn sender<'a, B: BlockingBackend>(
    half: &'a mut Option<Arc<Channel<B>>>,
    op: Op,
    value: &dyn Fn() -> Value,
) -> Started<'a, Ret> {
    if matches!(op, Op::Send | Op::DropSender) {
        return Started::Done(match (half.take(), op) {
            (Some(channel), Op::Send) => channel.send(value()),
            (Some(channel), _) => {
                channel.leave_sender();
                Ret::Unit
            }
            (None, _) => Ret::Unit,
        });
    }
    match (half, op) {
        (Some(channel), Op::Closed) => Started::future(Closed(channel)),
        (Some(channel), Op::IsClosed) => {
            Started::Done(Ret::Is(channel.lock.with(|section| section.state.closed)))
        }
        _ => Started::Done(Ret::Unit),
    }
}

fn receiver<'a, B: BlockingBackend>(
    half: &'a mut Option<Arc<Channel<B>>>,
    terminated: &'a mut bool,
    op: Op,
) -> Started<'a, Ret> {
    if op == Op::DropReceiver {
        if let Some(channel) = half.take() {
            channel.leave_receiver();
        }
        return Started::Done(Ret::Unit);
    }
    let Some(channel) = half else {
        return Started::Done(Ret::Unit);
    };
    Started::Done(match op {
        Op::Recv if !*terminated => {
            return Started::future(Recv {
                channel,
                terminated,
                polls: 0,
                suspended: false,
            });
        }
        Op::TryRecv if *terminated => Ret::Closed,
        Op::TryRecv => match channel.lock.with(|section| channel.answer(section.state)) {
            Some(answer) => {
                *terminated = true;
                channel.received(answer)
            }
            None => Ret::Empty,
        },
        Op::Close => {
            channel.close();
            Ret::Unit
        }
        Op::IsEmpty => Ret::Is(
            channel
                .lock
                .with(|section| section.state.value.is_none() && section.state.handed.is_none()),
        ),
        Op::IsTerminated => Ret::Is(*terminated),
        _ => Ret::Unit,
    })
}
