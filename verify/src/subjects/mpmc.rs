//! `reveille::mpmc`, with every public operation of both halves.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::backend::BlockingBackend;
use reveille::mpmc::{
    Receiver, RecvError, SendError, Sender, TryRecvError, TrySendError, WeakReceiver, WeakSender,
    bounded_in, unbounded_in,
};

use crate::run::entry::{
    Absent::{Constant, Creates, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::{heavy, main, queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    let subject = |name, description, room, many| {
        let surface = match name {
            "mpmc" => SURFACE,
            _ => Surface::As("mpmc"),
        };
        SubjectEntry::new(name, description, Mpmc { room, many }, surface)
    };
    vec![
        subject(
            "mpmc",
            "reveille::mpmc, of one value, with several receivers",
            Some(1),
            Many::Receivers,
        ),
        subject(
            "mpmc-two",
            "reveille::mpmc, of two values, with several senders",
            Some(2),
            Many::Senders,
        ),
        subject(
            "mpmc-rendezvous",
            "reveille::mpmc, of none, with several receivers",
            Some(0),
            Many::Receivers,
        ),
        subject(
            "mpmc-rendezvous-senders",
            "reveille::mpmc, of none, with several senders",
            Some(0),
            Many::Senders,
        ),
        subject(
            "mpmc-unbounded",
            "reveille::mpmc, unbounded, with several receivers",
            None,
            Many::Receivers,
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[
    Source {
        path: "mpmc/halves.rs",
        absent: &[
            ("bounded", Creates),
            ("bounded_in", Creates),
            ("capacity", Constant),
            ("poll_recv", SameAs("recv")),
            ("same_channel", Constant),
            ("unbounded", Creates),
            ("unbounded_in", Creates),
        ],
    },
    Source {
        path: "mpmc/futures.rs",
        absent: &[("into_inner", SameAs("send"))],
    },
]);

/// Which half there are several of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    Senders,
    Receivers,
}

/// `mpmc` over every backend, with a capacity, or unbounded.
pub(crate) struct Mpmc {
    pub(crate) room: Option<usize>,
    pub(crate) many: Many,
}

impl GenericSubject for Mpmc {
    type On<B: BlockingBackend> = MpmcOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        MpmcOn {
            room: self.room,
            many: self.many,
            participants: AtomicUsize::new(2),
            backend: PhantomData,
        }
    }

    /// The capacity makes no difference to the real lock and its accesses to memory, so
    /// in the quick profile one capacity is explored.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = heavy(queueing(mode, profile), mode, profile);
        plans = sparingly(plans, profile);
        match (mode, profile) {
            (Mode::Sections | Mode::Accesses, Profile::Quick) if self.room != Some(1) => {
                plans.clear();
            }
            (Mode::Exhaustive, Profile::Quick) => plans[0] = main(plans[0]),
            _ => {}
        }
        plans
    }
}

pub(crate) struct MpmcOn<B> {
    room: Option<usize>,
    many: Many,
    /// The number of participants, from the last call of `roles`.
    participants: AtomicUsize,
    backend: PhantomData<fn() -> B>,
}

/// An operation of either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Send,
    SendBlocking,
    TrySend,
    ForceSend,
    Closed,
    DropSender,
    /// Creates a weak sender, and drops it.
    DowngradeSender,
    /// Upgrades a weak receiver, and drops the receiver.
    UpgradeReceiver,
    Recv,
    RecvBlocking,
    TryRecv,
    DropReceiver,
    /// Creates a weak receiver, and drops it.
    DowngradeReceiver,
    /// Upgrades a weak sender, and drops the sender.
    UpgradeSender,
    Close,
    IsClosed,
    IsEmpty,
    IsFull,
    Len,
    SenderCount,
    ReceiverCount,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// It has no result, or there was nothing to do.
    Unit,
    Sent,
    /// It was sent, and this value was replaced.
    Replaced(ValueId),
    /// The value was returned because the channel is full.
    Full(ValueId),
    /// The value was returned because the channel is closed.
    Returned(ValueId),
    Received(ValueId),
    Empty,
    Closed,
    Is(bool),
    Number(usize),
}

/// Returns the roles and their operations. The specimens have the same ones.
pub(crate) fn roles(many: Many, participants: usize) -> Vec<Role<Op>> {
    let sender = Role {
        name: "sender",
        symmetry: 0,
        ops: vec![
            Operation::future("send", Op::Send),
            Operation::immediate("drop", Op::DropSender).leaving(),
            Operation::immediate("try_send", Op::TrySend),
            Operation::immediate("force_send", Op::ForceSend),
            Operation::blocking("send_blocking", Op::SendBlocking).alias(),
            Operation::immediate("close", Op::Close),
            Operation::future("closed", Op::Closed).alias(),
            Operation::immediate("is_closed", Op::IsClosed).alias(),
            Operation::immediate("downgrade", Op::DowngradeSender).alias(),
            Operation::immediate("upgrade", Op::UpgradeReceiver).alias(),
            Operation::immediate("receiver_count", Op::ReceiverCount).alias(),
            Operation::immediate("is_full", Op::IsFull).alias(),
        ],
    };
    let receiver = Role {
        name: "receiver",
        symmetry: 1,
        ops: vec![
            Operation::future("recv", Op::Recv),
            Operation::immediate("drop", Op::DropReceiver).leaving(),
            Operation::immediate("try_recv", Op::TryRecv),
            Operation::blocking("recv_blocking", Op::RecvBlocking).alias(),
            Operation::immediate("close", Op::Close),
            Operation::immediate("downgrade", Op::DowngradeReceiver).alias(),
            Operation::immediate("upgrade", Op::UpgradeSender).alias(),
            Operation::immediate("sender_count", Op::SenderCount).alias(),
            Operation::immediate("is_empty", Op::IsEmpty).alias(),
            Operation::immediate("len", Op::Len).alias(),
        ],
    };
    let others = participants - 1;
    match many {
        Many::Senders => {
            let mut roles = vec![sender; others];
            roles.push(receiver);
            roles
        }
        Many::Receivers => {
            let mut roles = vec![sender];
            roles.extend(vec![receiver; others]);
            roles
        }
    }
}

/// Allows no operation after the end of a half.
pub(crate) fn follows(role: &Role<Op>, before: &[Step]) -> bool {
    !before.iter().any(|step| role.ops[step.op].leaves)
}

/// What a participant holds.
pub(crate) enum Side<B: BlockingBackend> {
    Sender(Option<Sender<Value, B>>, WeakReceiver<Value, B>),
    Receiver(Option<Receiver<Value, B>>, WeakSender<Value, B>),
}

fn sent(result: Result<(), SendError<Value>>) -> Ret {
    match result {
        Ok(()) => Ret::Sent,
        Err(SendError(value)) => Ret::Returned(value.id()),
    }
}

fn received(result: Result<Value, RecvError>) -> Ret {
    match result {
        Ok(value) => Ret::Received(value.id()),
        Err(RecvError) => Ret::Closed,
    }
}

impl<B: BlockingBackend> Subject for MpmcOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = MpmcSpec;
    type Actor = Side<B>;

    fn spec(&self) -> MpmcSpec {
        MpmcSpec::new(
            self.room,
            self.many,
            self.participants.load(Ordering::Relaxed),
        )
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        self.participants.store(participants, Ordering::Relaxed);
        roles(self.many, participants)
    }

    fn actors(&self, participants: usize) -> Vec<Side<B>> {
        let (tx, rx) = match self.room {
            Some(capacity) => bounded_in(capacity),
            None => unbounded_in(),
        };
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        let sender = |tx| Side::Sender(Some(tx), weak_rx.clone());
        let receiver = |rx| Side::Receiver(Some(rx), weak_tx.clone());
        let others = participants - 2;
        match self.many {
            Many::Senders => {
                let mut sides: Vec<_> = (0..others).map(|_| sender(tx.clone())).collect();
                sides.extend([sender(tx), receiver(rx)]);
                sides
            }
            Many::Receivers => {
                let clones: Vec<_> = (0..others).map(|_| receiver(rx.clone())).collect();
                let mut sides = vec![sender(tx), receiver(rx)];
                sides.extend(clones);
                sides
            }
        }
    }

    fn start<'a>(
        &self,
        side: &'a mut Side<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match side {
            Side::Sender(half, _) if *call.op == Op::DropSender => {
                drop(half.take());
                Started::Done(Ret::Unit)
            }
            Side::Receiver(half, _) if *call.op == Op::DropReceiver => {
                drop(half.take());
                Started::Done(Ret::Unit)
            }
            Side::Sender(Some(tx), weak) => sender(tx, weak, *call.op, value),
            Side::Receiver(Some(rx), weak) => receiver(rx, weak, *call.op),
            _ => Started::Done(Ret::Unit),
        }
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        follows(role, before)
    }
}

fn sender<'a, B: BlockingBackend>(
    tx: &'a Sender<Value, B>,
    weak: &WeakReceiver<Value, B>,
    op: Op,
    value: &dyn Fn() -> Value,
) -> Started<'a, Ret> {
    Started::Done(match op {
        Op::Send => {
            let send = tx.send(value());
            return Started::future(async move { sent(send.await) });
        }
        Op::SendBlocking => sent(tx.send_blocking(value())),
        Op::TrySend => match tx.try_send(value()) {
            Ok(()) => Ret::Sent,
            Err(TrySendError::Full(value)) => Ret::Full(value.id()),
            Err(TrySendError::Closed(value)) => Ret::Returned(value.id()),
        },
        Op::ForceSend => match tx.force_send(value()) {
            Ok(None) => Ret::Sent,
            Ok(Some(replaced)) => Ret::Replaced(replaced.id()),
            Err(SendError(value)) => Ret::Returned(value.id()),
        },
        Op::Closed => {
            return Started::future(async {
                tx.closed().await;
                Ret::Closed
            });
        }
        Op::DowngradeSender => {
            drop(tx.downgrade());
            Ret::Unit
        }
        Op::UpgradeReceiver => Ret::Is(weak.upgrade().is_some()),
        Op::Close => Ret::Is(tx.close()),
        Op::IsClosed => Ret::Is(tx.is_closed()),
        Op::IsFull => Ret::Is(tx.is_full()),
        Op::ReceiverCount => Ret::Number(tx.receiver_count()),
        _ => unreachable!("no sender does it"),
    })
}

fn receiver<'a, B: BlockingBackend>(
    rx: &'a Receiver<Value, B>,
    weak: &WeakSender<Value, B>,
    op: Op,
) -> Started<'a, Ret> {
    Started::Done(match op {
        Op::Recv => return Started::future(async { received(rx.recv().await) }),
        Op::RecvBlocking => received(rx.recv_blocking()),
        Op::TryRecv => match rx.try_recv() {
            Ok(value) => Ret::Received(value.id()),
            Err(TryRecvError::Empty) => Ret::Empty,
            Err(TryRecvError::Closed) => Ret::Closed,
        },
        Op::DowngradeReceiver => {
            drop(rx.downgrade());
            Ret::Unit
        }
        Op::UpgradeSender => Ret::Is(weak.upgrade().is_some()),
        Op::Close => Ret::Is(rx.close()),
        Op::IsEmpty => Ret::Is(rx.is_empty()),
        Op::Len => Ret::Number(rx.len()),
        Op::SenderCount => Ret::Number(rx.sender_count()),
        _ => unreachable!("no receiver does it"),
    })
}

/// What the operations of the channel mean, one at a time. Values and room are granted
/// at once, in order, to the operations that wait for them.
pub(crate) struct MpmcSpec {
    room: Option<usize>,
    senders: usize,
    receivers: usize,
}

/// The state of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    values: Vec<ValueId>,
    /// The sends and the receives that have not ended, in order.
    sends: Vec<Wait>,
    receives: Vec<Wait>,
    /// How many halves there are, those that are upgraded for a moment included.
    senders: usize,
    receivers: usize,
    /// The participants that hold an upgraded half for a moment.
    upgraded: Vec<usize>,
    closed: bool,
    /// A receive that the panic of a waker ended put its value back, and others may have
    /// received meanwhile.
    disordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant: usize,
    granted: bool,
}

fn granted(waits: &[Wait]) -> usize {
    waits.iter().filter(|wait| wait.granted).count()
}

fn first_waiting(waits: &mut [Wait]) -> Option<&mut Wait> {
    waits.iter_mut().find(|wait| !wait.granted)
}

fn leave(waits: &mut Vec<Wait>, participant: usize) -> Option<Wait> {
    let position = |wait: &Wait| wait.participant == participant;
    let index = waits.iter().position(position)?;
    Some(waits.remove(index))
}

impl State {
    fn has_free_value(&self) -> bool {
        self.values.len() > granted(&self.receives)
    }

    /// Returns the states after a value was received, each with the value.
    fn received(&self) -> Vec<(Self, ValueId)> {
        let most = match self.disordered {
            true => self.values.len(),
            false => 1,
        };
        (0..most)
            .map(|index| {
                let mut next = self.clone();
                let value = next.values.remove(index);
                (next, value)
            })
            .collect()
    }

    fn close(&mut self) {
        self.closed = true;
        if self.receivers == 0 {
            self.values.clear();
        }
    }
}

impl MpmcSpec {
    pub(crate) const fn new(room: Option<usize>, many: Many, participants: usize) -> Self {
        let (senders, receivers) = match many {
            Many::Senders => (participants - 1, 1),
            Many::Receivers => (1, participants - 1),
        };
        Self {
            room,
            senders,
            receivers,
        }
    }

    fn has_room(&self, state: &State) -> bool {
        let room = match self.room {
            None => usize::MAX,
            Some(0) => state.receives.len(),
            Some(room) => room,
        };
        state.values.len() + granted(&state.sends) < room
    }

    /// Grants values and room, in order.
    fn served(&self, mut state: State) -> State {
        if state.closed {
            return state;
        }
        while state.has_free_value()
            && let Some(wait) = first_waiting(&mut state.receives)
        {
            wait.granted = true;
        }
        while self.has_room(&state)
            && let Some(wait) = first_waiting(&mut state.sends)
        {
            wait.granted = true;
        }
        state
    }

    /// Returns the states after a value was put back: a sender was granted its room.
    fn put_back(&self, state: &State) -> State {
        let mut next = state.clone();
        next.disordered = true;
        if !state.closed
            && let Some(wait) = first_waiting(&mut next.sends)
        {
            wait.granted = true;
        }
        self.served(next)
    }

    fn receive(&self, state: &State) -> Vec<(State, Ret)> {
        let received = state.received().into_iter();
        received
            .map(|(next, value)| (self.served(next), Ret::Received(value)))
            .collect()
    }
}

impl Spec for MpmcSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            senders: self.senders,
            receivers: self.receivers,
            ..State::default()
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::Send
                | Op::SendBlocking
                | Op::Recv
                | Op::RecvBlocking
                | Op::UpgradeSender
                | Op::UpgradeReceiver
        )
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let wait = Wait {
            participant: call.participant,
            granted: false,
        };
        match *call.op {
            Op::Send | Op::SendBlocking => next.sends.push(wait),
            Op::Recv | Op::RecvBlocking => next.receives.push(wait),
            Op::UpgradeSender if !state.closed && state.senders > 0 => {
                next.senders += 1;
                next.upgraded.push(call.participant);
            }
            Op::UpgradeReceiver if !state.closed && state.receivers > 0 => {
                next.receivers += 1;
                next.upgraded.push(call.participant);
            }
            _ => {}
        }
        vec![self.served(next)]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match *call.op {
            Op::Send | Op::SendBlocking => {
                leave(&mut next.sends, call.participant);
            }
            Op::Recv | Op::RecvBlocking => {
                leave(&mut next.receives, call.participant);
                // It may not have been queued, and then no sender was granted its room.
                if self.room == Some(0)
                    && let Some(last) = next.sends.iter().rposition(|wait| wait.granted)
                {
                    let mut without = next.clone();
                    without.sends[last].granted = false;
                    let served = self.served(next);
                    return vec![self.put_back(&served), served, self.served(without)];
                }
            }
            Op::Closed => {}
            Op::TryRecv => return vec![next.clone(), self.put_back(&next)],
            _ => return self.effects(state, call),
        }
        let next = self.served(next);
        // It is not dropped: it was given up by the panic of a waker.
        match *call.op {
            Op::RecvBlocking => vec![self.put_back(&next), next],
            _ => vec![next],
        }
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut states = self.cancel(state, call);
        match *call.op {
            // It sends before it returns, and the waker of a receiver may panic.
            Op::Send | Op::SendBlocking => states.extend(self.effects(state, call)),
            Op::Recv | Op::RecvBlocking => {
                let put_back = states.iter().map(|state| self.put_back(state));
                states.extend(put_back.collect::<Vec<_>>());
            }
            _ => {}
        }
        states
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each operation")]
    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::Send | Op::SendBlocking => {
                let Some(wait) = leave(&mut next.sends, call.participant) else {
                    return Vec::new();
                };
                if state.closed {
                    Ret::Returned(call.value())
                } else if wait.granted {
                    next.values.push(call.value());
                    Ret::Sent
                } else {
                    return Vec::new();
                }
            }
            Op::TrySend | Op::ForceSend if state.closed => Ret::Returned(call.value()),
            Op::TrySend | Op::ForceSend if self.has_room(state) => {
                next.values.push(call.value());
                Ret::Sent
            }
            Op::TrySend => Ret::Full(call.value()),
            Op::ForceSend => {
                if state.values.is_empty() {
                    return vec![(next, Ret::Replaced(call.value()))];
                }
                let replaced = state.received().into_iter();
                return replaced
                    .map(|(mut next, value)| {
                        next.values.push(call.value());
                        (next, Ret::Replaced(value))
                    })
                    .collect();
            }
            Op::Recv | Op::RecvBlocking => {
                let Some(wait) = leave(&mut next.receives, call.participant) else {
                    return Vec::new();
                };
                if wait.granted || state.closed && state.has_free_value() {
                    return self.receive(&next);
                }
                if !state.closed {
                    return Vec::new();
                }
                Ret::Closed
            }
            Op::TryRecv if state.has_free_value() => return self.receive(state),
            Op::TryRecv if state.closed => Ret::Closed,
            Op::TryRecv => {
                if self.room == Some(0)
                    && state.values.len() + granted(&state.sends) == 0
                    && let Some(wait) = first_waiting(&mut next.sends)
                {
                    wait.granted = true;
                }
                Ret::Empty
            }
            Op::Closed if !state.closed => return Vec::new(),
            Op::Closed => Ret::Closed,
            Op::DropSender => {
                next.senders -= 1;
                Ret::Unit
            }
            Op::DropReceiver => {
                next.receivers -= 1;
                Ret::Unit
            }
            Op::UpgradeSender | Op::UpgradeReceiver => {
                let own = |&participant_id: &usize| participant_id == call.participant;
                let Some(index) = next.upgraded.iter().position(own) else {
                    return vec![(next, Ret::Is(false))];
                };
                next.upgraded.remove(index);
                match *call.op {
                    Op::UpgradeSender => next.senders -= 1,
                    _ => next.receivers -= 1,
                }
                Ret::Is(true)
            }
            Op::DowngradeSender | Op::DowngradeReceiver => Ret::Unit,
            Op::Close => {
                next.close();
                Ret::Is(!state.closed)
            }
            Op::IsClosed => Ret::Is(state.closed),
            Op::IsEmpty => Ret::Is(state.values.is_empty()),
            Op::IsFull => Ret::Is(self.room.is_some_and(|room| state.values.len() >= room)),
            Op::Len => Ret::Number(state.values.len()),
            Op::SenderCount => Ret::Number(state.senders),
            Op::ReceiverCount => Ret::Number(state.receivers),
        };
        if next.senders == 0 || next.receivers == 0 {
            next.close();
        }
        vec![(self.served(next), ret)]
    }
}
