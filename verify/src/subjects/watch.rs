//! `reveille::watch`, with every public operation of both halves.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::backend::BlockingBackend;
use reveille::watch::error::SendError;
use reveille::watch::{Receiver, Sender};

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
use crate::subjects::plans::{main, queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "watch",
        "reveille::watch: the value, its versions, and the end",
        Watches,
        Surface::Sources(&[Source {
            path: "watch.rs",
            absent: &[
                ("channel", Creates),
                ("channel_in", Creates),
                ("new", Creates),
                ("new_in", Creates),
                ("same_channel", Constant),
                ("send_modify", SameAs("send_replace")),
            ],
        }]),
    )]
}

/// `watch` over every backend.
pub(crate) struct Watches;

impl GenericSubject for Watches {
    type On<B: BlockingBackend> = WatchOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        WatchOn {
            receivers: AtomicUsize::new(1),
            backend: PhantomData,
        }
    }

    /// The locks of the value and of the version have too many orders with three
    /// participants for the quick profile.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        if let (Mode::Exhaustive, Profile::Quick) = (mode, profile) {
            plans[1] = main(plans[1]);
        }
        plans
    }
}

pub(crate) struct WatchOn<B> {
    /// The number of participants that receive, from the last call of `roles`.
    receivers: AtomicUsize,
    backend: PhantomData<fn() -> B>,
}

/// An operation of either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Send,
    SendReplace,
    /// Does not modify.
    SendIfModified,
    /// Looks at the value.
    Borrow,
    /// Creates a receiver that is kept and never used.
    Subscribe,
    IsClosed,
    Closed,
    ReceiverCount,
    SenderCount,
    DropSender,
    OwnBorrow,
    BorrowAndUpdate,
    Changed,
    /// Waits for a value that was sent.
    WaitFor,
    HasChanged,
    IsDisconnected,
    MarkChanged,
    MarkUnchanged,
    DropReceiver,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    Returned(ValueId),
    /// The value, and whether it was unseen.
    Value(Option<ValueId>, bool),
    Closed,
    Is(bool),
    Number(usize),
}

/// A value, which is `None` at first.
type Watched = Option<Arc<Value>>;

fn id(value: &Watched) -> Option<ValueId> {
    value.as_ref().map(|value| value.id())
}

/// What a participant holds.
pub(crate) enum Half<B: BlockingBackend> {
    Sender {
        tx: Option<Sender<Watched, B>>,
        kept: Vec<Receiver<Watched, B>>,
    },
    Receiver(Option<Receiver<Watched, B>>),
}

impl<B: BlockingBackend> Subject for WatchOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = WatchSpec;
    type Actor = Half<B>;

    fn spec(&self) -> WatchSpec {
        WatchSpec {
            receivers: self.receivers.load(Ordering::Relaxed),
        }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        self.receivers.store(participants - 1, Ordering::Relaxed);
        let sender = Role {
            name: "sender",
            symmetry: 0,
            ops: vec![
                Operation::immediate("send", Op::Send),
                Operation::immediate("drop", Op::DropSender).leaving(),
                Operation::future("closed", Op::Closed),
                Operation::immediate("send_replace", Op::SendReplace).alias(),
                Operation::immediate("send_if_modified", Op::SendIfModified).alias(),
                Operation::immediate("borrow", Op::Borrow).alias(),
                Operation::immediate("subscribe", Op::Subscribe),
                Operation::immediate("is_closed", Op::IsClosed).alias(),
                Operation::immediate("receiver_count", Op::ReceiverCount).alias(),
                Operation::immediate("sender_count", Op::SenderCount).alias(),
            ],
        };
        let receiver = Role {
            name: "receiver",
            symmetry: 1,
            ops: vec![
                Operation::future("changed", Op::Changed),
                Operation::immediate("drop", Op::DropReceiver).leaving(),
                Operation::immediate("borrow_and_update", Op::BorrowAndUpdate),
                Operation::immediate("borrow", Op::OwnBorrow).alias(),
                Operation::future("wait_for", Op::WaitFor).alias(),
                Operation::immediate("has_changed", Op::HasChanged).alias(),
                Operation::immediate("is_closed", Op::IsDisconnected).alias(),
                Operation::immediate("mark_changed", Op::MarkChanged).alias(),
                Operation::immediate("mark_unchanged", Op::MarkUnchanged).alias(),
            ],
        };
        let mut roles = vec![sender];
        roles.resize(participants, receiver);
        roles
    }

    /// Allows no operation after the end of a half.
    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        !before.iter().any(|step| role.ops[step.op].leaves)
    }

    fn actors(&self, participants: usize) -> Vec<Half<B>> {
        let tx = Sender::new_in(None);
        let receivers: Vec<_> = (1..participants)
            .map(|_| Half::Receiver(Some(tx.subscribe())))
            .collect();
        let mut halves = vec![Half::Sender {
            tx: Some(tx),
            kept: Vec::new(),
        }];
        halves.extend(receivers);
        halves
    }

    fn start<'a>(
        &self,
        half: &'a mut Half<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match half {
            Half::Sender { tx, kept } => sender(tx, kept, *call.op, value),
            Half::Receiver(rx) => receiver(rx, *call.op),
        }
    }
}

fn sender<'a, B: BlockingBackend>(
    half: &'a mut Option<Sender<Watched, B>>,
    kept: &mut Vec<Receiver<Watched, B>>,
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
        Op::Send => match tx.send(Some(Arc::new(value()))) {
            Ok(()) => Ret::Unit,
            Err(SendError(value)) => Ret::Returned(id(&value).expect("it is the value sent")),
        },
        Op::SendReplace => {
            let old = tx.send_replace(Some(Arc::new(value())));
            Ret::Value(id(&old), false)
        }
        Op::SendIfModified => Ret::Is(tx.send_if_modified(|_| false)),
        Op::Borrow => Ret::Value(id(&tx.borrow()), false),
        Op::Subscribe => {
            kept.push(tx.subscribe());
            Ret::Unit
        }
        Op::IsClosed => Ret::Is(tx.is_closed()),
        Op::Closed => {
            return Started::future(async {
                tx.closed().await;
                Ret::Closed
            });
        }
        Op::ReceiverCount => Ret::Number(tx.receiver_count()),
        Op::SenderCount => Ret::Number(tx.sender_count()),
        _ => unreachable!("no sender does it"),
    })
}

fn receiver<B: BlockingBackend>(
    half: &mut Option<Receiver<Watched, B>>,
    op: Op,
) -> Started<'_, Ret> {
    if op == Op::DropReceiver {
        drop(half.take());
        return Started::Done(Ret::Unit);
    }
    let Some(rx) = half else {
        return Started::Done(Ret::Unit);
    };
    Started::Done(match op {
        Op::OwnBorrow => {
            let value = rx.borrow();
            Ret::Value(id(&value), value.has_changed())
        }
        Op::BorrowAndUpdate => {
            let value = rx.borrow_and_update();
            Ret::Value(id(&value), value.has_changed())
        }
        Op::Changed => {
            return Started::future(async {
                match rx.changed().await {
                    Ok(()) => Ret::Unit,
                    Err(_) => Ret::Closed,
                }
            });
        }
        Op::WaitFor => {
            return Started::future(async {
                // The guard does not outlive the poll.
                match rx.wait_for(Option::is_some).await {
                    Ok(value) => Ret::Value(id(&value), value.has_changed()),
                    Err(_) => Ret::Closed,
                }
            });
        }
        Op::HasChanged => match rx.has_changed() {
            Ok(changed) => Ret::Is(changed),
            Err(_) => Ret::Closed,
        },
        Op::IsDisconnected => Ret::Is(rx.is_closed()),
        Op::MarkChanged => {
            rx.mark_changed();
            Ret::Unit
        }
        Op::MarkUnchanged => {
            rx.mark_unchanged();
            Ret::Unit
        }
        _ => unreachable!("no receiver does it"),
    })
}

/// What the operations of the channel mean, one at a time.
pub(crate) struct WatchSpec {
    /// The number of participants that receive.
    pub(crate) receivers: usize,
}

/// The state of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    value: Option<ValueId>,
    /// The receivers, by participant, with those that are kept; each with whether it
    /// has seen the value.
    receivers: Vec<(usize, bool)>,
    sender_gone: bool,
}

/// Stands for a receiver that is kept and never used.
const KEPT: usize = usize::MAX;

impl State {
    fn set(&mut self, value: ValueId) {
        self.value = Some(value);
        for (_, seen) in &mut self.receivers {
            *seen = false;
        }
    }

    fn see(&mut self, participant_id: usize, sees: bool) {
        if let Some(seen) = self.seen(participant_id) {
            *seen = sees;
        }
    }

    /// Whether the receiver has seen the value.
    fn seen(&mut self, participant_id: usize) -> Option<&mut bool> {
        let receiver = self.receivers.iter_mut().find(|it| it.0 == participant_id);
        receiver.map(|receiver| &mut receiver.1)
    }
}

impl Spec for WatchSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            receivers: (1..=self.receivers)
                .map(|participant_id| (participant_id, true))
                .collect(),
            ..State::default()
        }
    }

    /// A value that the predicate of `wait_for` was called with counts as seen.
    fn begins(&self, op: &Op) -> bool {
        *op == Op::WaitFor
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if state.value.is_none() {
            next.see(call.participant, true);
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::Changed | Op::Closed => vec![state.clone()],
            Op::WaitFor => {
                let mut next = state.clone();
                next.see(call.participant, true);
                vec![state.clone(), next]
            }
            _ => self.effects(state, call),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let participant_id = call.participant;
        let mut next = state.clone();
        let was_seen = next.seen(participant_id).is_none_or(|seen| *seen);
        let ret = match call.op {
            Op::Send if state.receivers.is_empty() => Ret::Returned(call.value()),
            Op::Send => {
                next.set(call.value());
                Ret::Unit
            }
            Op::SendReplace => {
                next.set(call.value());
                Ret::Value(state.value, false)
            }
            Op::SendIfModified => Ret::Is(false),
            Op::Borrow => Ret::Value(state.value, false),
            Op::Subscribe => {
                next.receivers.push((KEPT, true));
                Ret::Unit
            }
            Op::IsClosed => Ret::Is(state.receivers.is_empty()),
            Op::Closed if !state.receivers.is_empty() => return Vec::new(),
            Op::Closed => Ret::Closed,
            Op::ReceiverCount => Ret::Number(state.receivers.len()),
            Op::SenderCount => Ret::Number(1),
            Op::DropSender => {
                next.sender_gone = true;
                Ret::Unit
            }
            Op::OwnBorrow => Ret::Value(state.value, !was_seen),
            Op::BorrowAndUpdate => {
                next.see(participant_id, true);
                Ret::Value(state.value, !was_seen)
            }
            Op::Changed if was_seen && state.sender_gone => Ret::Closed,
            Op::Changed if was_seen => return Vec::new(),
            Op::Changed => {
                next.see(participant_id, true);
                Ret::Unit
            }
            Op::WaitFor if state.value.is_some() => {
                next.see(participant_id, true);
                Ret::Value(state.value, !was_seen)
            }
            Op::WaitFor if state.sender_gone => {
                next.see(participant_id, true);
                Ret::Closed
            }
            Op::WaitFor => return Vec::new(),
            Op::HasChanged if state.sender_gone => Ret::Closed,
            Op::HasChanged => Ret::Is(!was_seen),
            Op::IsDisconnected => Ret::Is(state.sender_gone),
            Op::MarkChanged => {
                next.see(participant_id, false);
                Ret::Unit
            }
            Op::MarkUnchanged => {
                next.see(participant_id, true);
                Ret::Unit
            }
            Op::DropReceiver => {
                next.receivers.retain(|it| it.0 != participant_id);
                Ret::Unit
            }
        };
        vec![(next, ret)]
    }
}
