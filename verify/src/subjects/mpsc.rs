//! `reveille::mpsc`, with every public operation of both halves and of the permits.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::backend::BlockingBackend;
use reveille::mpsc::error::{SendError, TryRecvError, TrySendError};
use reveille::mpsc::{
    OwnedPermit, Receiver, Sender, UnboundedReceiver, UnboundedSender, WeakSender,
    WeakUnboundedSender, channel_in, unbounded_channel_in,
};
use reveille::protocol::Bits;
use reveille::raw::describe_permits;

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
    vec![
        SubjectEntry::new(
            "mpsc",
            "reveille::mpsc, of one value",
            Mpsc(Some(1)),
            SURFACE,
        ),
        SubjectEntry::new(
            "mpsc-two",
            "reveille::mpsc, of two values",
            Mpsc(Some(2)),
            Surface::As("mpsc"),
        ),
        SubjectEntry::new(
            "mpsc-rendezvous",
            "reveille::mpsc, of none",
            Mpsc(Some(0)),
            Surface::As("mpsc"),
        ),
        SubjectEntry::new(
            "mpsc-unbounded",
            "reveille::mpsc, unbounded",
            Mpsc(None),
            UNBOUNDED,
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[
    Source {
        path: "mpsc/bounded.rs",
        absent: &[
            ("channel", Creates),
            ("channel_in", Creates),
            ("max_capacity", Constant),
            ("poll_recv", SameAs("recv")),
            ("poll_recv_many", SameAs("recv_many")),
            ("same_channel", Constant),
            ("send_timeout", SameAs("send")),
            ("sender_strong_count", SameAs("strong_count")),
            ("sender_weak_count", SameAs("weak_count")),
        ],
    },
    Source {
        path: "mpsc/futures.rs",
        absent: &[("into_inner", SameAs("send"))],
    },
    Source {
        path: "mpsc/permit.rs",
        absent: &[
            ("release", SameAs("permit_release")),
            ("same_channel", Constant),
            ("same_channel_as_sender", Constant),
        ],
    },
]);

const UNBOUNDED: Surface = Surface::Sources(&[Source {
    path: "mpsc/unbounded.rs",
    absent: &[
        ("poll_recv", SameAs("recv")),
        ("poll_recv_many", SameAs("recv_many")),
        ("same_channel", Constant),
        ("sender_strong_count", SameAs("strong_count")),
        ("sender_weak_count", SameAs("weak_count")),
        ("unbounded_channel", Creates),
        ("unbounded_channel_in", Creates),
    ],
}]);

/// `mpsc` over every backend, with a capacity, or unbounded.
pub(crate) struct Mpsc(pub(crate) Option<usize>);

impl GenericSubject for Mpsc {
    type On<B: BlockingBackend> = MpscOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        MpscOn {
            room: self.0,
            senders: AtomicUsize::new(1),
            backend: PhantomData,
        }
    }

    /// The capacity makes no difference to the real lock and its accesses to memory, so
    /// in the quick profile one capacity is explored.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = heavy(queueing(mode, profile), mode, profile);
        plans = sparingly(plans, profile);
        match (mode, profile) {
            (Mode::Sections | Mode::Accesses, Profile::Quick) if self.0 != Some(1) => plans.clear(),
            (Mode::Exhaustive, Profile::Quick) => plans[0] = main(plans[0]),
            _ => {}
        }
        plans
    }
}

pub(crate) struct MpscOn<B> {
    room: Option<usize>,
    /// The number of participants that send, from the last call of `roles`.
    senders: AtomicUsize,
    backend: PhantomData<fn() -> B>,
}

/// An operation of either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Send,
    BlockingSend,
    TrySend,
    /// Reserves a permit, and sends with it.
    Reserve,
    TryReserve,
    /// Reserves two permits, or as many as there are, and releases them.
    ReserveMany,
    TryReserveMany,
    /// Reserves a permit, and keeps it.
    ReserveOwned,
    TryReserveOwned,
    /// Sends with a permit that was kept.
    PermitSend,
    /// Releases a permit that was kept.
    PermitRelease,
    Closed,
    IsClosed,
    Capacity,
    /// Creates a weak sender, and drops it.
    Downgrade,
    /// Upgrades a weak sender, and drops the sender.
    Upgrade,
    StrongCount,
    WeakCount,
    DropSender,
    Recv,
    BlockingRecv,
    /// Receives at most two values.
    RecvMany,
    BlockingRecvMany,
    TryRecv,
    Close,
    IsDisconnected,
    IsEmpty,
    Len,
    DropReceiver,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// It has no result, or there was nothing to do.
    Unit,
    /// It was sent, or reserved.
    Done,
    /// The value was returned because the channel is full.
    Full(Option<ValueId>),
    /// The value was returned because the channel is closed.
    Closed(Option<ValueId>),
    /// The values that were received. There are none if none will come.
    Received(Vec<ValueId>),
    Empty,
    Is(bool),
    Number(usize),
}

fn tried(result: Result<(), TrySendError<Value>>) -> Ret {
    match result {
        Ok(()) => Ret::Done,
        Err(TrySendError::Full(value)) => Ret::Full(Some(value.id())),
        Err(TrySendError::Closed(value)) => Ret::Closed(Some(value.id())),
    }
}

fn sent(result: Result<(), SendError<Value>>) -> Ret {
    match result {
        Ok(()) => Ret::Done,
        Err(SendError(value)) => Ret::Closed(Some(value.id())),
    }
}

fn received(values: &[Value]) -> Ret {
    Ret::Received(values.iter().map(Value::id).collect())
}

fn tried_to_receive(result: Result<Value, TryRecvError>) -> Ret {
    match result {
        Ok(value) => Ret::Received(vec![value.id()]),
        Err(TryRecvError::Empty) => Ret::Empty,
        Err(TryRecvError::Disconnected) => Ret::Received(Vec::new()),
    }
}

/// Returns the roles and their operations. The specimens have the same ones.
pub(crate) fn roles(room: Option<usize>, participants: usize) -> Vec<Role<Op>> {
    let bounded = room.is_some();
    let mut ops = Vec::new();
    if bounded {
        ops.push(Operation::future("send", Op::Send));
    } else {
        ops.push(Operation::immediate("send", Op::TrySend));
    }
    ops.push(Operation::immediate("drop", Op::DropSender).leaving());
    if bounded {
        ops.extend([
            Operation::immediate("try_send", Op::TrySend),
            Operation::future("reserve", Op::Reserve).alias(),
            Operation::immediate("try_reserve", Op::TryReserve).alias(),
            Operation::future("reserve_many", Op::ReserveMany).alias(),
            Operation::immediate("try_reserve_many", Op::TryReserveMany).alias(),
            Operation::future("reserve_owned", Op::ReserveOwned).alias(),
            Operation::immediate("try_reserve_owned", Op::TryReserveOwned).alias(),
            Operation::immediate("permit_send", Op::PermitSend),
            Operation::immediate("permit_release", Op::PermitRelease),
            Operation::blocking("blocking_send", Op::BlockingSend).alias(),
            Operation::immediate("capacity", Op::Capacity).alias(),
        ]);
    }
    ops.extend([
        Operation::future("closed", Op::Closed),
        Operation::immediate("is_closed", Op::IsClosed).alias(),
        Operation::immediate("downgrade", Op::Downgrade).alias(),
        Operation::immediate("upgrade", Op::Upgrade).alias(),
        Operation::immediate("strong_count", Op::StrongCount).alias(),
        Operation::immediate("weak_count", Op::WeakCount).alias(),
    ]);
    let sender = Role {
        name: "sender",
        symmetry: 0,
        ops,
    };
    let mut ops = vec![
        Operation::future("recv", Op::Recv),
        Operation::immediate("drop", Op::DropReceiver).leaving(),
        Operation::immediate("try_recv", Op::TryRecv),
        Operation::immediate("close", Op::Close),
        Operation::future("recv_many", Op::RecvMany).alias(),
        Operation::blocking("blocking_recv", Op::BlockingRecv).alias(),
        Operation::blocking("blocking_recv_many", Op::BlockingRecvMany).alias(),
        Operation::immediate("is_closed", Op::IsDisconnected).alias(),
        Operation::immediate("is_empty", Op::IsEmpty).alias(),
        Operation::immediate("len", Op::Len).alias(),
        Operation::immediate("strong_count", Op::StrongCount).alias(),
    ];
    if bounded {
        ops.push(Operation::immediate("capacity", Op::Capacity).alias());
    }
    let receiver = Role {
        name: "receiver",
        symmetry: 1,
        ops,
    };
    let mut roles = vec![sender; participants - 1];
    roles.push(receiver);
    roles
}

/// Allows no operation after the end of a half. A permit must have been reserved before
/// it is used. A participant that keeps a permit keeps its sender, since dropping both
/// takes two steps.
pub(crate) fn follows(role: &Role<Op>, before: &[Step], next: Step) -> bool {
    let op = |step: &Step| role.ops[step.op].op;
    let left = before.iter().any(|step| role.ops[step.op].leaves);
    let reserved = before
        .iter()
        .any(|step| matches!(op(step), Op::ReserveOwned | Op::TryReserveOwned));
    !left
        && match op(&next) {
            Op::PermitSend | Op::PermitRelease => reserved,
            Op::DropSender => !reserved,
            _ => true,
        }
}

/// What a participant holds.
pub(crate) enum Half<B: BlockingBackend> {
    Sender {
        tx: Option<Sender<Value, B>>,
        weak: WeakSender<Value, B>,
        kept: Vec<OwnedPermit<Value, B>>,
    },
    Receiver(Option<Receiver<Value, B>>),
    UnboundedSender {
        tx: Option<UnboundedSender<Value, B>>,
        weak: WeakUnboundedSender<Value, B>,
    },
    UnboundedReceiver(Option<UnboundedReceiver<Value, B>>),
}

impl<B: BlockingBackend> Subject for MpscOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = MpscSpec;
    type Actor = Half<B>;

    fn spec(&self) -> MpscSpec {
        MpscSpec {
            room: self.room,
            senders: self.senders.load(Ordering::Relaxed),
        }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        self.senders.store(participants - 1, Ordering::Relaxed);
        roles(self.room, participants)
    }

    fn actors(&self, participants: usize) -> Vec<Half<B>> {
        match self.room {
            Some(capacity) => {
                let (tx, rx) = channel_in(capacity);
                let mut halves: Vec<_> = (2..participants)
                    .map(|_| tx.clone())
                    .collect::<Vec<_>>()
                    .into_iter()
                    .chain([tx])
                    .map(|tx| Half::Sender {
                        weak: tx.downgrade(),
                        tx: Some(tx),
                        kept: Vec::new(),
                    })
                    .collect();
                halves.push(Half::Receiver(Some(rx)));
                halves
            }
            None => {
                let (tx, rx) = unbounded_channel_in();
                let mut halves: Vec<_> = (2..participants)
                    .map(|_| tx.clone())
                    .collect::<Vec<_>>()
                    .into_iter()
                    .chain([tx])
                    .map(|tx| Half::UnboundedSender {
                        weak: tx.downgrade(),
                        tx: Some(tx),
                    })
                    .collect();
                halves.push(Half::UnboundedReceiver(Some(rx)));
                halves
            }
        }
    }

    fn start<'a>(
        &self,
        half: &'a mut Half<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let op = *call.op;
        match half {
            Half::Sender { tx, weak, kept } => sender(tx, weak, kept, op, many(self.room), value),
            Half::Receiver(rx) => receiver(rx, op),
            Half::UnboundedSender { tx, weak } => unbounded_sender(tx, weak, op, value),
            Half::UnboundedReceiver(rx) => unbounded_receiver(rx, op),
        }
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        follows(role, before, next)
    }

    fn describe(&self, bits: Bits) -> String {
        let mut text = String::new();
        describe_permits(bits, &mut text).expect("writing to a string does not fail");
        text
    }
}

/// Returns how many permits `reserve_many` reserves.
fn many(room: Option<usize>) -> usize {
    room.unwrap_or(1).clamp(1, 2)
}

fn sender<'a, B: BlockingBackend>(
    half: &'a mut Option<Sender<Value, B>>,
    weak: &WeakSender<Value, B>,
    kept: &'a mut Vec<OwnedPermit<Value, B>>,
    op: Op,
    many: usize,
    value: &dyn Fn() -> Value,
) -> Started<'a, Ret> {
    if op == Op::DropSender {
        drop(half.take());
        return Started::Done(Ret::Unit);
    }
    let Some(tx) = half else {
        return Started::Done(Ret::Unit);
    };
    let tx = &*tx;
    Started::Done(match op {
        Op::Send => {
            let send = tx.send(value());
            return Started::future(async move { sent(send.await) });
        }
        Op::BlockingSend => sent(tx.blocking_send(value())),
        Op::TrySend => tried(tx.try_send(value())),
        Op::Reserve => {
            let value = value();
            return Started::future(async move {
                match tx.reserve().await {
                    Ok(permit) => {
                        permit.send(value);
                        Ret::Done
                    }
                    Err(SendError(())) => Ret::Closed(Some(value.id())),
                }
            });
        }
        Op::TryReserve => {
            let value = value();
            match tx.try_reserve() {
                Ok(permit) => {
                    permit.send(value);
                    Ret::Done
                }
                Err(TrySendError::Full(())) => Ret::Full(Some(value.id())),
                Err(TrySendError::Closed(())) => Ret::Closed(Some(value.id())),
            }
        }
        Op::ReserveMany => {
            return Started::future(async move {
                match tx.reserve_many(many).await {
                    Ok(_) => Ret::Done,
                    Err(SendError(())) => Ret::Closed(None),
                }
            });
        }
        Op::TryReserveMany => match tx.try_reserve_many(many) {
            Ok(_) => Ret::Done,
            Err(TrySendError::Full(())) => Ret::Full(None),
            Err(TrySendError::Closed(())) => Ret::Closed(None),
        },
        Op::ReserveOwned => {
            let reserve = tx.clone().reserve_owned();
            return Started::future(async {
                match reserve.await {
                    Ok(permit) => {
                        kept.push(permit);
                        Ret::Done
                    }
                    Err(SendError(())) => Ret::Closed(None),
                }
            });
        }
        Op::TryReserveOwned => match tx.clone().try_reserve_owned() {
            Ok(permit) => {
                kept.push(permit);
                Ret::Done
            }
            Err(TrySendError::Full(_)) => Ret::Full(None),
            Err(TrySendError::Closed(_)) => Ret::Closed(None),
        },
        Op::PermitSend => match kept.pop() {
            Some(permit) => {
                permit.send(value());
                Ret::Done
            }
            None => Ret::Unit,
        },
        Op::PermitRelease => match kept.pop() {
            Some(permit) => {
                permit.release();
                Ret::Done
            }
            None => Ret::Unit,
        },
        Op::Closed => {
            return Started::future(async {
                tx.closed().await;
                Ret::Closed(None)
            });
        }
        Op::IsClosed => Ret::Is(tx.is_closed()),
        Op::Capacity => Ret::Number(tx.capacity()),
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

fn unbounded_sender<'a, B: BlockingBackend>(
    half: &'a mut Option<UnboundedSender<Value, B>>,
    weak: &WeakUnboundedSender<Value, B>,
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
        Op::TrySend => sent(tx.send(value())),
        Op::Closed => {
            return Started::future(async {
                tx.closed().await;
                Ret::Closed(None)
            });
        }
        Op::IsClosed => Ret::Is(tx.is_closed()),
        Op::Downgrade => {
            drop(tx.downgrade());
            Ret::Unit
        }
        Op::Upgrade => Ret::Is(weak.upgrade().is_some()),
        Op::StrongCount => Ret::Number(tx.strong_count()),
        Op::WeakCount => Ret::Number(tx.weak_count()),
        _ => unreachable!("no unbounded sender does it"),
    })
}

/// The operations that both kinds of receiver have.
macro_rules! receives {
    ($rx:ident, $op:ident, { $($own:tt)* }) => {
        Started::Done(match $op {
            Op::Recv => {
                return Started::future(async {
                    received(&$rx.recv().await.into_iter().collect::<Vec<_>>())
                });
            }
            Op::BlockingRecv => received(&$rx.blocking_recv().into_iter().collect::<Vec<_>>()),
            Op::RecvMany => {
                return Started::future(async {
                    let mut values = Vec::new();
                    $rx.recv_many(&mut values, 2).await;
                    received(&values)
                });
            }
            Op::BlockingRecvMany => {
                let mut values = Vec::new();
                $rx.blocking_recv_many(&mut values, 2);
                received(&values)
            }
            Op::TryRecv => tried_to_receive($rx.try_recv()),
            Op::Close => {
                $rx.close();
                Ret::Unit
            }
            Op::IsDisconnected => Ret::Is($rx.is_closed()),
            Op::IsEmpty => Ret::Is($rx.is_empty()),
            Op::Len => Ret::Number($rx.len()),
            Op::StrongCount => Ret::Number($rx.sender_strong_count()),
            $($own)*
            _ => unreachable!("no receiver does it"),
        })
    };
}

fn receiver<B: BlockingBackend>(half: &mut Option<Receiver<Value, B>>, op: Op) -> Started<'_, Ret> {
    if op == Op::DropReceiver {
        drop(half.take());
        return Started::Done(Ret::Unit);
    }
    let Some(rx) = half else {
        return Started::Done(Ret::Unit);
    };
    receives!(rx, op, { Op::Capacity => Ret::Number(rx.capacity()), })
}

fn unbounded_receiver<B: BlockingBackend>(
    half: &mut Option<UnboundedReceiver<Value, B>>,
    op: Op,
) -> Started<'_, Ret> {
    if op == Op::DropReceiver {
        drop(half.take());
        return Started::Done(Ret::Unit);
    }
    let Some(rx) = half else {
        return Started::Done(Ret::Unit);
    };
    receives!(rx, op, {})
}

/// What the operations of the channel mean, one at a time. Permits are assigned at
/// once, in order, to the operations that wait for them.
///
/// An operation that was granted its permit and finds the channel closed may fail or
/// send: it takes the permit in one section and stores its value in the next, and the
/// close can come before the first, or between them.
pub(crate) struct MpscSpec {
    pub(crate) room: Option<usize>,
    /// The number of participants that send.
    pub(crate) senders: usize,
}

/// The state of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    values: Vec<ValueId>,
    free: usize,
    /// The number of permits. A rendezvous has one if a receive has asked for it.
    permits: usize,
    /// The operations that take permits and have not ended, in order.
    waits: Vec<Wait>,
    /// The number of values at the front whose permits were released, in a receive that
    /// the panic of a waker ended.
    paid: usize,
    /// The participants that keep permits.
    kept: Vec<usize>,
    /// Whether `recv` waits.
    receives: bool,
    /// The participants that dropped their sender.
    senders_gone: Vec<usize>,
    /// The participants that hold an upgraded sender for a moment.
    upgraded: Vec<usize>,
    closed: bool,
    receiver_gone: bool,
    /// The number of participants that send.
    senders: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant: usize,
    permits: usize,
    answer: Option<Answer>,
}

/// What an operation was granted, and has not observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Granted,
    Full,
    Closed,
}

impl State {
    /// Assigns permits in order.
    fn assign(&mut self, rendezvous: bool) {
        let unanswered = self.waits.iter_mut().filter(|wait| wait.answer.is_none());
        for wait in unanswered {
            if self.free < wait.permits {
                break;
            }
            self.free -= wait.permits;
            wait.answer = Some(Answer::Granted);
        }
        if rendezvous && !self.receives && self.free > 0 {
            self.free = 0;
            self.permits = 0;
        }
    }

    fn is_queued(&self) -> bool {
        self.waits.iter().any(|wait| wait.answer.is_none())
    }

    fn leave(&mut self, participant: usize) -> Option<Wait> {
        let position = |wait: &Wait| wait.participant == participant;
        let index = self.waits.iter().position(position)?;
        Some(self.waits.remove(index))
    }

    fn is_idle(&self, unbounded: bool) -> bool {
        unbounded || self.free == self.permits
    }

    fn connected(&self) -> usize {
        self.senders - self.senders_gone.len() + self.upgraded.len()
    }

    fn is_disconnected(&self, unbounded: bool) -> bool {
        self.connected() == 0 || self.closed && self.is_idle(unbounded)
    }
}

impl MpscSpec {
    fn rendezvous(&self) -> bool {
        self.room == Some(0)
    }

    fn assigned(&self, mut state: State) -> State {
        state.assign(self.rendezvous());
        state
    }

    /// Returns the number of permits that the operation takes, if it takes any.
    fn takes(&self, op: Op) -> Option<usize> {
        match op {
            Op::Send | Op::BlockingSend | Op::Reserve | Op::ReserveOwned => Some(1),
            Op::TryReserve | Op::TryReserveOwned => Some(1),
            Op::TrySend if self.room.is_some() => Some(1),
            Op::ReserveMany | Op::TryReserveMany => Some(many(self.room)),
            _ => None,
        }
    }

    fn receive(&self, state: &State, most: usize) -> (State, Ret) {
        let mut next = state.clone();
        let values: Vec<_> = next.values.drain(..state.values.len().min(most)).collect();
        next.receives = false;
        next.paid = state.paid.saturating_sub(values.len());
        self.pay(&mut next, values.len().saturating_sub(state.paid));
        (self.assigned(next), Ret::Received(values))
    }

    /// Releases the permits of this many values.
    fn pay(&self, state: &mut State, values: usize) {
        match self.room {
            None => {}
            Some(0) => state.permits -= values,
            Some(_) => state.free += values,
        }
    }

    /// Returns the states that a receive leaves when it is given up. If the panic of a
    /// waker ended it, it may have released permits and left the values.
    fn give_up(&self, state: &State, most: usize) -> Vec<State> {
        let mut next = state.clone();
        next.receives = false;
        let mut paid = next.clone();
        let values = state.values.len().min(most);
        self.pay(&mut paid, values.saturating_sub(state.paid));
        paid.paid = state.paid.max(values);
        let mut states = vec![self.assigned(next.clone()), self.assigned(paid)];
        // It may not have begun, and then no sender of a rendezvous was granted a
        // permit.
        let granted = |wait: &&mut Wait| wait.answer == Some(Answer::Granted);
        if self.rendezvous()
            && state.values.is_empty()
            && let Some(wait) = next.waits.iter_mut().find(granted)
        {
            wait.answer = None;
            next.permits = 0;
            states.push(next);
        }
        states
    }
}

fn most(op: Op) -> usize {
    match op {
        Op::RecvMany | Op::BlockingRecvMany => 2,
        _ => 1,
    }
}

impl Spec for MpscSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        let permits = self.room.unwrap_or(0);
        State {
            free: permits,
            permits,
            senders: self.senders,
            ..State::default()
        }
    }

    fn begins(&self, op: &Op) -> bool {
        let receives = matches!(op, Op::Recv | Op::BlockingRecv | Op::RecvMany)
            || matches!(op, Op::BlockingRecvMany);
        self.takes(*op).is_some() || *op == Op::Upgrade || receives && self.rendezvous()
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match *call.op {
            Op::Upgrade => {
                if state.connected() > 0 {
                    next.upgraded.push(call.participant);
                }
                return vec![next];
            }
            Op::Recv | Op::BlockingRecv | Op::RecvMany | Op::BlockingRecvMany => {
                if state.values.is_empty() && !state.is_disconnected(false) {
                    next.receives = true;
                    if state.permits == 0 && !state.closed {
                        next.permits = 1;
                        next.free = 1;
                    }
                }
                return vec![self.assigned(next)];
            }
            _ => {}
        }
        let permits = self.takes(*call.op).unwrap_or(0);
        let at_once = matches!(
            call.op,
            Op::TrySend | Op::TryReserve | Op::TryReserveOwned | Op::TryReserveMany
        );
        let answer = if state.closed {
            Some(Answer::Closed)
        } else if at_once && (state.is_queued() || state.free < permits) {
            Some(Answer::Full)
        } else {
            None
        };
        next.waits.push(Wait {
            participant: call.participant,
            permits,
            answer,
        });
        vec![self.assigned(next)]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match *call.op {
            Op::Recv | Op::RecvMany | Op::BlockingRecv | Op::BlockingRecvMany | Op::TryRecv => {
                return self.give_up(state, most(*call.op));
            }
            Op::Upgrade => {
                next.upgraded
                    .retain(|&participant_id| participant_id != call.participant);
                return vec![next];
            }
            Op::Closed => return vec![next],
            _ if self.takes(*call.op).is_none() => return self.effects(state, call),
            _ => {}
        }
        if let Some(wait) = next.leave(call.participant)
            && wait.answer == Some(Answer::Granted)
        {
            next.free += wait.permits;
        }
        vec![self.assigned(next)]
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = self.cancel(state, call);
        // It sends before it returns, and a waker that it wakes may panic.
        if self.takes(*call.op).is_some() {
            next.extend(self.effects(state, call));
        }
        next
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each operation")]
    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let unbounded = self.room.is_none();
        let mut next = state.clone();
        let ret = match *call.op {
            op if self.takes(op).is_some() => {
                let Some(wait) = next.leave(call.participant) else {
                    return Vec::new();
                };
                let id = matches!(
                    op,
                    Op::Send | Op::BlockingSend | Op::TrySend | Op::Reserve | Op::TryReserve
                );
                let id = id.then(|| call.value());
                match wait.answer {
                    None => return Vec::new(),
                    Some(Answer::Full) => return vec![(next, Ret::Full(id))],
                    Some(Answer::Closed) => return vec![(next, Ret::Closed(id))],
                    Some(Answer::Granted) => {}
                }
                let mut refused = next.clone();
                refused.free += wait.permits;
                let refused = (self.assigned(refused), Ret::Closed(id));
                match op {
                    Op::ReserveMany | Op::TryReserveMany => next.free += wait.permits,
                    Op::ReserveOwned | Op::TryReserveOwned => next.kept.push(call.participant),
                    _ if state.receiver_gone => next.free += wait.permits,
                    _ => next.values.push(call.value()),
                }
                let mut outcomes = vec![(self.assigned(next), Ret::Done)];
                if state.closed {
                    outcomes.push(refused);
                }
                return outcomes;
            }
            Op::TrySend if state.closed => Ret::Closed(Some(call.value())),
            Op::TrySend => {
                next.values.push(call.value());
                Ret::Done
            }
            Op::PermitSend | Op::PermitRelease => {
                let own = |&participant_id: &usize| participant_id == call.participant;
                match next.kept.iter().rposition(own) {
                    Some(index) => {
                        next.kept.remove(index);
                        match *call.op == Op::PermitSend && !state.receiver_gone {
                            true => next.values.push(call.value()),
                            false => next.free += 1,
                        }
                        Ret::Done
                    }
                    None => Ret::Unit,
                }
            }
            Op::Closed if !state.closed => return Vec::new(),
            Op::Closed => Ret::Closed(None),
            Op::IsClosed => Ret::Is(state.closed),
            Op::Capacity => Ret::Number(state.free),
            Op::Downgrade => Ret::Unit,
            Op::Upgrade => {
                let own = |&participant_id: &usize| participant_id == call.participant;
                match next.upgraded.iter().position(own) {
                    Some(index) => {
                        next.upgraded.remove(index);
                        Ret::Is(true)
                    }
                    None => Ret::Is(false),
                }
            }
            // Clones that reserve, and senders that are upgraded for a moment, count
            // too. They are not steps of their own.
            Op::StrongCount => {
                let least = state.connected();
                return (least..=least + 4)
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
            Op::WeakCount => {
                return (state.senders..=2 * state.senders)
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
            Op::DropSender => {
                next.senders_gone.push(call.participant);
                next.senders_gone.sort_unstable();
                Ret::Unit
            }
            Op::Recv | Op::BlockingRecv | Op::RecvMany | Op::BlockingRecvMany | Op::TryRecv => {
                if !state.values.is_empty() {
                    return vec![self.receive(state, most(*call.op))];
                }
                if state.is_disconnected(unbounded) {
                    next.receives = false;
                    Ret::Received(Vec::new())
                } else if *call.op == Op::TryRecv {
                    if self.rendezvous() && state.permits == 0 && state.is_queued() {
                        next.permits = 1;
                        next.free = 1;
                    }
                    Ret::Empty
                } else {
                    return Vec::new();
                }
            }
            Op::Close | Op::DropReceiver => {
                next.closed = true;
                for wait in &mut next.waits {
                    wait.answer.get_or_insert(Answer::Closed);
                }
                if *call.op == Op::DropReceiver {
                    next.receiver_gone = true;
                    next.values.clear();
                    next.paid = 0;
                }
                Ret::Unit
            }
            Op::IsDisconnected => Ret::Is(state.closed || state.connected() == 0),
            Op::IsEmpty => Ret::Is(state.values.is_empty()),
            Op::Len => Ret::Number(state.values.len()),
            _ => unreachable!("operations that take permits are matched above"),
        };
        vec![(self.assigned(next), ret)]
    }
}
