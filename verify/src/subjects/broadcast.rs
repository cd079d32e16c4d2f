//! `reveille::broadcast`, with every public operation of both halves.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::backend::BlockingBackend;
use reveille::broadcast::error::{RecvError, SendError, TryRecvError};
use reveille::broadcast::{Receiver, Sender, WeakSender};

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
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "broadcast",
            "reveille::broadcast, which retains one value",
            Broadcasts(1),
            SURFACE,
        ),
        SubjectEntry::new(
            "broadcast-two",
            "reveille::broadcast, which retains two values",
            Broadcasts(2),
            Surface::As("broadcast"),
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "broadcast.rs",
    absent: &[
        ("channel", Creates),
        ("channel_in", Creates),
        ("new", Creates),
        ("new_in", Creates),
        ("same_channel", Constant),
        ("sender_strong_count", SameAs("strong_count")),
        ("sender_weak_count", SameAs("weak_count")),
    ],
}]);

/// `broadcast` over every backend, with a capacity.
pub(crate) struct Broadcasts(usize);

impl GenericSubject for Broadcasts {
    type On<B: BlockingBackend> = BroadcastOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        BroadcastOn {
            capacity: self.0,
            receivers: AtomicUsize::new(1),
            backend: PhantomData,
        }
    }

    /// Under the real lock the capacity makes no difference, so in the quick profile
    /// one capacity is explored.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        match (mode, profile) {
            (Mode::Sections | Mode::Accesses, Profile::Quick) if self.0 != 1 => plans.clear(),
            _ => {}
        }
        plans
    }
}

pub(crate) struct BroadcastOn<B> {
    capacity: usize,
    /// The number of participants that receive, from the last call of `roles`.
    receivers: AtomicUsize,
    backend: PhantomData<fn() -> B>,
}

/// An operation of either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Send,
    /// Creates a receiver that is kept and never used.
    Subscribe,
    Len,
    IsEmpty,
    ReceiverCount,
    Closed,
    /// Creates a weak sender, and drops it.
    Downgrade,
    /// Upgrades a weak sender, and drops the sender.
    Upgrade,
    StrongCount,
    WeakCount,
    DropSender,
    Recv,
    BlockingRecv,
    TryRecv,
    /// Creates a receiver that is kept and never used.
    Resubscribe,
    OwnLen,
    OwnIsEmpty,
    IsClosed,
    DropReceiver,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    /// The value was sent to this many receivers.
    Sent(usize),
    Returned(ValueId),
    Received(ValueId),
    Lagged(u64),
    Empty,
    Closed,
    Number(usize),
    Is(bool),
}

/// A value that can be cloned.
pub(crate) type Cloned = Arc<Value>;

/// What a participant holds.
pub(crate) enum Half<B: BlockingBackend> {
    Sender {
        tx: Option<Sender<Cloned, B>>,
        weak: WeakSender<Cloned, B>,
        kept: Vec<Receiver<Cloned, B>>,
    },
    Receiver {
        rx: Option<Receiver<Cloned, B>>,
        kept: Vec<Receiver<Cloned, B>>,
    },
}

/// Returns the roles and their operations. The specimens have the same ones.
pub(crate) fn roles(participants: usize) -> Vec<Role<Op>> {
    let sender = Role {
        name: "sender",
        symmetry: 0,
        ops: vec![
            Operation::immediate("send", Op::Send),
            Operation::immediate("drop", Op::DropSender).leaving(),
            Operation::future("closed", Op::Closed),
            Operation::immediate("subscribe", Op::Subscribe),
            Operation::immediate("len", Op::Len).alias(),
            Operation::immediate("is_empty", Op::IsEmpty).alias(),
            Operation::immediate("receiver_count", Op::ReceiverCount).alias(),
            Operation::immediate("downgrade", Op::Downgrade).alias(),
            Operation::immediate("upgrade", Op::Upgrade).alias(),
            Operation::immediate("strong_count", Op::StrongCount).alias(),
            Operation::immediate("weak_count", Op::WeakCount).alias(),
        ],
    };
    let receiver = Role {
        name: "receiver",
        symmetry: 1,
        ops: vec![
            Operation::future("recv", Op::Recv),
            Operation::immediate("drop", Op::DropReceiver).leaving(),
            Operation::immediate("try_recv", Op::TryRecv),
            Operation::blocking("blocking_recv", Op::BlockingRecv).alias(),
            Operation::immediate("resubscribe", Op::Resubscribe),
            Operation::immediate("len", Op::OwnLen).alias(),
            Operation::immediate("is_empty", Op::OwnIsEmpty).alias(),
            Operation::immediate("is_closed", Op::IsClosed).alias(),
        ],
    };
    let mut roles = vec![sender];
    roles.resize(participants, receiver);
    roles
}

/// Allows no operation after the end of a half.
pub(crate) fn follows(role: &Role<Op>, before: &[Step]) -> bool {
    !before.iter().any(|step| role.ops[step.op].leaves)
}

pub(crate) fn received(result: Result<Cloned, RecvError>) -> Ret {
    match result {
        Ok(value) => Ret::Received(value.id()),
        Err(RecvError::Closed) => Ret::Closed,
        Err(RecvError::Lagged(missed)) => Ret::Lagged(missed),
    }
}

impl<B: BlockingBackend> Subject for BroadcastOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = BroadcastSpec;
    type Actor = Half<B>;

    fn spec(&self) -> BroadcastSpec {
        BroadcastSpec {
            capacity: self.capacity,
            receivers: self.receivers.load(Ordering::Relaxed),
        }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        self.receivers.store(participants - 1, Ordering::Relaxed);
        roles(participants)
    }

    fn actors(&self, participants: usize) -> Vec<Half<B>> {
        let tx = Sender::new_in(self.capacity);
        let receivers: Vec<_> = (1..participants)
            .map(|_| Half::Receiver {
                rx: Some(tx.subscribe()),
                kept: Vec::new(),
            })
            .collect();
        let mut halves = vec![Half::Sender {
            weak: tx.downgrade(),
            tx: Some(tx),
            kept: Vec::new(),
        }];
        halves.extend(receivers);
        halves
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        follows(role, before)
    }

    fn start<'a>(
        &self,
        half: &'a mut Half<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let op = *call.op;
        match half {
            Half::Sender { tx, weak, kept } => sender(tx, weak, kept, op, value),
            Half::Receiver { rx, kept } => receiver(rx, kept, op),
        }
    }
}

fn sender<'a, B: BlockingBackend>(
    half: &'a mut Option<Sender<Cloned, B>>,
    weak: &WeakSender<Cloned, B>,
    kept: &mut Vec<Receiver<Cloned, B>>,
    op: Op,
    value: &dyn Fn() -> Value,
) -> Started<'a, Ret> {
    if op == Op::DropSender {
        drop(half.take());
        return Started::Done(Ret::Unit);
    }
    let Some(tx) = half else {
        return Started::Done(Ret::Unit);
    };
    Started::Done(match op {
        Op::Send => match tx.send(Arc::new(value())) {
            Ok(receivers) => Ret::Sent(receivers),
            Err(SendError(value)) => Ret::Returned(value.id()),
        },
        Op::Subscribe => {
            kept.push(tx.subscribe());
            Ret::Unit
        }
        Op::Len => Ret::Number(tx.len()),
        Op::IsEmpty => Ret::Is(tx.is_empty()),
        Op::ReceiverCount => Ret::Number(tx.receiver_count()),
        Op::Closed => {
            return Started::future(async {
                tx.closed().await;
                Ret::Closed
            });
        }
        Op::Downgrade => {
            drop(tx.downgrade());
            Ret::Unit
        }
        Op::Upgrade => Ret::Is(weak.upgrade().is_some()),
        Op::StrongCount => Ret::Number(tx.strong_count()),
        Op::WeakCount => Ret::Number(tx.weak_count()),
        _ => unreachable!("no sender does it"),
    })
}

fn receiver<'a, B: BlockingBackend>(
    half: &'a mut Option<Receiver<Cloned, B>>,
    kept: &mut Vec<Receiver<Cloned, B>>,
    op: Op,
) -> Started<'a, Ret> {
    if op == Op::DropReceiver {
        drop(half.take());
        return Started::Done(Ret::Unit);
    }
    let Some(rx) = half else {
        return Started::Done(Ret::Unit);
    };
    Started::Done(match op {
        Op::Recv => return Started::future(async { received(rx.recv().await) }),
        Op::BlockingRecv => received(rx.blocking_recv()),
        Op::TryRecv => match rx.try_recv() {
            Ok(value) => Ret::Received(value.id()),
            Err(TryRecvError::Empty) => Ret::Empty,
            Err(TryRecvError::Closed) => Ret::Closed,
            Err(TryRecvError::Lagged(missed)) => Ret::Lagged(missed),
        },
        Op::Resubscribe => {
            kept.push(rx.resubscribe());
            Ret::Unit
        }
        Op::OwnLen => Ret::Number(rx.len()),
        Op::OwnIsEmpty => Ret::Is(rx.is_empty()),
        Op::IsClosed => Ret::Is(rx.is_closed()),
        _ => unreachable!("no receiver does it"),
    })
}

/// What the operations of the channel mean, one at a time.
pub(crate) struct BroadcastSpec {
    pub(crate) capacity: usize,
    /// The number of participants that receive.
    pub(crate) receivers: usize,
}

/// The state of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The retained values, each with the receivers that have not received it.
    ring: Vec<(ValueId, Vec<usize>)>,
    sent: u64,
    /// The receivers, by participant, each with the number of the value that it
    /// receives next. Receivers that are kept are entered as [`KEPT`].
    receivers: Vec<(usize, u64)>,
    sender_gone: bool,
    /// What a receive had taken when the panic of a waker ended it, by participant.
    undelivered: Vec<(usize, Ret)>,
}

/// Stands for a receiver that is kept and never used.
const KEPT: usize = usize::MAX;

impl State {
    fn oldest(&self) -> u64 {
        self.sent - self.ring.len() as u64
    }

    fn trim(&mut self) {
        while self
            .ring
            .first()
            .is_some_and(|(_, unseen)| unseen.is_empty())
        {
            self.ring.remove(0);
        }
    }

    /// Returns what a receiver receives, and the state after it.
    fn receive(&self, participant_id: usize) -> Option<(Self, Ret)> {
        let mut next = self.clone();
        if let Some(index) = self
            .undelivered
            .iter()
            .position(|&(owner, _)| owner == participant_id)
        {
            let (_, ret) = next.undelivered.remove(index);
            return Some((next, ret));
        }
        let receiver = next
            .receivers
            .iter_mut()
            .find(|it| it.0 == participant_id)?;
        let oldest = self.oldest();
        if receiver.1 < oldest {
            let missed = oldest - receiver.1;
            receiver.1 = oldest;
            return Some((next, Ret::Lagged(missed)));
        }
        let index = usize::try_from(receiver.1 - oldest).expect("a small number");
        if let Some((value, unseen)) = next.ring.get_mut(index) {
            receiver.1 += 1;
            unseen.retain(|&other| other != participant_id);
            let value = *value;
            next.trim();
            return Some((next, Ret::Received(value)));
        }
        self.sender_gone.then_some((next, Ret::Closed))
    }

    /// Returns the number of values that a receiver has not received.
    fn behind(&self, participant_id: usize) -> usize {
        let taken = |(owner, ret): &(usize, Ret)| {
            *owner == participant_id && matches!(ret, Ret::Received(_))
        };
        let undelivered = self.undelivered.iter().any(taken);
        let receiver = self.receivers.iter().find(|it| it.0 == participant_id);
        let behind = receiver.map_or(0, |receiver| self.sent - receiver.1);
        usize::try_from(behind).expect("a small number") + usize::from(undelivered)
    }
}

impl Spec for BroadcastSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            receivers: (1..=self.receivers)
                .map(|participant_id| (participant_id, 0))
                .collect(),
            ..State::default()
        }
    }

    /// A receive that the panic of a waker ended may have taken a value.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::Recv | Op::BlockingRecv | Op::TryRecv => {
                let mut states = vec![state.clone()];
                if let Some((mut next, ret)) = state.receive(call.participant) {
                    next.undelivered.push((call.participant, ret));
                    states.push(next);
                }
                states
            }
            Op::Closed => vec![state.clone()],
            _ => self.effects(state, call),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let ret = match call.op {
            Op::Send if state.receivers.is_empty() => Ret::Returned(call.value()),
            Op::Send => {
                if state.ring.len() == self.capacity {
                    next.ring.remove(0);
                }
                let unseen = state
                    .receivers
                    .iter()
                    .map(|&(participant_id, _)| participant_id)
                    .collect();
                next.ring.push((call.value(), unseen));
                next.sent += 1;
                Ret::Sent(state.receivers.len())
            }
            Op::Subscribe | Op::Resubscribe => {
                next.receivers.push((KEPT, state.sent));
                Ret::Unit
            }
            Op::Len => Ret::Number(state.ring.len()),
            Op::IsEmpty => Ret::Is(state.ring.is_empty()),
            Op::ReceiverCount => Ret::Number(state.receivers.len()),
            Op::Closed if !state.receivers.is_empty() => return Vec::new(),
            Op::Closed => Ret::Closed,
            Op::Downgrade => Ret::Unit,
            // The sender is this participant's own, so it is there.
            Op::Upgrade => Ret::Is(true),
            Op::StrongCount | Op::WeakCount => Ret::Number(1),
            Op::DropSender => {
                next.sender_gone = true;
                Ret::Unit
            }
            Op::Recv | Op::BlockingRecv => {
                return state.receive(participant_id).into_iter().collect();
            }
            Op::TryRecv => {
                return vec![
                    state
                        .receive(participant_id)
                        .unwrap_or_else(|| (state.clone(), Ret::Empty)),
                ];
            }
            Op::OwnLen => Ret::Number(state.behind(participant_id)),
            Op::OwnIsEmpty => Ret::Is(state.behind(participant_id) == 0),
            Op::IsClosed => Ret::Is(state.sender_gone),
            Op::DropReceiver => {
                next.receivers.retain(|it| it.0 != participant_id);
                for (_, unseen) in &mut next.ring {
                    unseen.retain(|&other| other != participant_id);
                }
                next.undelivered.retain(|it| it.0 != participant_id);
                next.trim();
                Ret::Unit
            }
        };
        vec![(next, ret)]
    }
}
