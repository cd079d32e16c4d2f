//! Messages from senders to receivers, each to one, in their order.

use std::collections::VecDeque;
use std::marker::PhantomData;

use reveille_verify::{Call, Operation, Role, Spec, Started, Subject, Value, ValueId};

use super::BoxFuture;

/// A channel of a crate.
pub(crate) trait Channel: Send + Sync + 'static {
    type Tx: Send + 'static;
    type Rx: Send + 'static;

    /// How many messages it holds.
    const CAPACITY: Option<usize>;

    /// Whether a receiver takes the message from a sender that waits, so that a send
    /// that is given up afterwards has sent. A variant of the specification.
    const TAKES_FROM_WAITING: bool;

    /// Creates a channel with as many handles.
    fn channel(senders: usize, receivers: usize) -> (Vec<Self::Tx>, Vec<Self::Rx>);

    /// Returns `false` if the receivers have gone.
    fn send(tx: &mut Self::Tx, value: Value) -> BoxFuture<'_, bool>;

    /// Returns `None` if the senders have gone and nothing is left.
    fn recv(rx: &mut Self::Rx) -> BoxFuture<'_, Option<Value>>;

    fn try_send(tx: &mut Self::Tx, value: Value) -> TrySend;

    fn try_recv(rx: &mut Self::Rx) -> TryRecv;
}

pub(crate) enum TrySend {
    Sent,
    Full,
    Closed,
}

pub(crate) enum TryRecv {
    Got(Value),
    Empty,
    Closed,
}

/// A channel as a subject, with as many senders and receivers.
pub(crate) struct Channels<C> {
    channel: PhantomData<fn() -> C>,
    senders: usize,
    receivers: usize,
}

impl<C> Channels<C> {
    pub(crate) fn new(senders: usize, receivers: usize) -> Self {
        Self {
            channel: PhantomData,
            senders,
            receivers,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Send,
    TrySend,
    Recv,
    TryRecv,
    Drop,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Sent,
    Full,
    Closed,
    Got(ValueId),
    Empty,
    Dropped,
    /// The handle had gone.
    Over,
}

pub(crate) enum Half<C: Channel> {
    Tx(Option<C::Tx>),
    Rx(Option<C::Rx>),
}

impl<C: Channel> Subject for Channels<C> {
    type Op = Op;
    type Ret = Ret;
    type Spec = ChannelSpec;
    type Actor = Half<C>;

    fn spec(&self) -> ChannelSpec {
        ChannelSpec {
            capacity: C::CAPACITY,
            takes_from_waiting: C::TAKES_FROM_WAITING,
            senders: self.senders,
            receivers: self.receivers,
        }
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let sender = vec![
            Operation::future("send", Op::Send),
            Operation::immediate("try_send", Op::TrySend),
            Operation::immediate("drop", Op::Drop).leaving(),
        ];
        let receiver = vec![
            // A receiver that one task uses may keep its waker until it is polled again.
            Operation::future("recv", Op::Recv).keeps_waker("until the receiver is dropped"),
            Operation::immediate("try_recv", Op::TryRecv),
            Operation::immediate("drop", Op::Drop).leaving(),
        ];
        let sender = Role {
            name: "sender",
            ops: sender,
            symmetry: 0,
        };
        let receiver = Role {
            name: "receiver",
            ops: receiver,
            symmetry: 1,
        };
        let mut roles = vec![sender; self.senders];
        roles.extend(vec![receiver; self.receivers]);
        roles
    }

    fn actors(&self, _: usize) -> Vec<Half<C>> {
        let (senders, receivers) = C::channel(self.senders, self.receivers);
        let senders = senders.into_iter().map(|tx| Half::Tx(Some(tx)));
        let receivers = receivers.into_iter().map(|rx| Half::Rx(Some(rx)));
        senders.chain(receivers).collect()
    }

    fn start<'a>(
        &self,
        half: &'a mut Half<C>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match (call.op, half) {
            (Op::Drop, Half::Tx(tx)) => Started::Done(gone(tx.take())),
            (Op::Drop, Half::Rx(rx)) => Started::Done(gone(rx.take())),
            (_, Half::Tx(None) | Half::Rx(None)) => Started::Done(Ret::Over),
            (Op::Send, Half::Tx(Some(tx))) => {
                let sent = C::send(tx, value());
                Started::future(async { if sent.await { Ret::Sent } else { Ret::Closed } })
            }
            (Op::TrySend, Half::Tx(Some(tx))) => Started::Done(match C::try_send(tx, value()) {
                TrySend::Sent => Ret::Sent,
                TrySend::Full => Ret::Full,
                TrySend::Closed => Ret::Closed,
            }),
            (Op::Recv, Half::Rx(Some(rx))) => {
                let value = C::recv(rx);
                Started::future(async {
                    value
                        .await
                        .map_or(Ret::Closed, |value| Ret::Got(value.id()))
                })
            }
            (Op::TryRecv, Half::Rx(Some(rx))) => Started::Done(match C::try_recv(rx) {
                TryRecv::Got(value) => Ret::Got(value.id()),
                TryRecv::Empty => Ret::Empty,
                TryRecv::Closed => Ret::Closed,
            }),
            (op, _) => unreachable!("no role has {op:?}"),
        }
    }
}

fn gone<T>(half: Option<T>) -> Ret {
    half.map_or(Ret::Over, |_| Ret::Dropped)
}

pub(crate) struct ChannelSpec {
    capacity: Option<usize>,
    takes_from_waiting: bool,
    senders: usize,
    receivers: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    queue: VecDeque<ValueId>,
    /// Which handles are left.
    handles: Vec<bool>,
    /// Which senders wait, with their messages.
    waiting: Vec<(usize, ValueId)>,
    /// Which senders that wait have sent.
    taken: Vec<usize>,
}

impl State {
    fn no_longer_waits(&mut self, sender: usize) {
        self.waiting.retain(|&(waiting, _)| waiting != sender);
        self.taken.retain(|&taken| taken != sender);
    }
}

impl ChannelSpec {
    fn any_left(&self, state: &State, senders: bool) -> bool {
        let (tx, rx) = state.handles.split_at(self.senders);
        if senders { tx } else { rx }.contains(&true)
    }
}

impl Spec for ChannelSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            queue: VecDeque::new(),
            handles: vec![true; self.senders + self.receivers],
            waiting: Vec::new(),
            taken: Vec::new(),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        if !state.handles[call.participant] {
            return vec![(next, Ret::Over)];
        }
        let full = self.capacity.is_some_and(|most| state.queue.len() >= most);
        let ret = match call.op {
            Op::Send if state.taken.contains(&call.participant) => {
                next.no_longer_waits(call.participant);
                Ret::Sent
            }
            Op::Send | Op::TrySend if !self.any_left(state, false) => {
                next.no_longer_waits(call.participant);
                Ret::Closed
            }
            Op::Send if full => return Vec::new(),
            Op::TrySend if full => Ret::Full,
            // A free place may be meant for a sender that waits.
            Op::TrySend if !state.waiting.is_empty() => {
                next.queue.push_back(call.value());
                return vec![(next, Ret::Sent), (state.clone(), Ret::Full)];
            }
            Op::Send | Op::TrySend => {
                next.queue.push_back(call.value());
                next.no_longer_waits(call.participant);
                Ret::Sent
            }
            Op::Recv | Op::TryRecv => match next.queue.pop_front() {
                Some(value) => {
                    if self.takes_from_waiting && !next.waiting.is_empty() {
                        let (sender, value) = next.waiting.remove(0);
                        next.queue.push_back(value);
                        next.taken.push(sender);
                    }
                    Ret::Got(value)
                }
                None if !self.any_left(state, true) => Ret::Closed,
                None if matches!(call.op, Op::TryRecv) => Ret::Empty,
                None => return Vec::new(),
            },
            Op::Drop => {
                next.handles[call.participant] = false;
                if !self.any_left(&next, false) {
                    next.queue.clear();
                }
                Ret::Dropped
            }
        };
        vec![(next, ret)]
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Send) && self.capacity.is_some()
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if matches!(call.op, Op::Send) {
            next.waiting.push((call.participant, call.value()));
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.no_longer_waits(call.participant);
        vec![next]
    }

    /// A message is there before the waker of a receiver is called.
    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut states = self.cancel(state, call);
        if !matches!(call.op, Op::Recv) {
            states.extend(self.effects(state, call));
        }
        states
    }
}
