//! One value from one sender to one receiver.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::task::{Context, Poll};

use reveille_verify::{Call, Operation, Role, Spec, Started, Subject, Value, ValueId};

/// A oneshot of a crate.
pub(crate) trait Oneshot: Send + Sync + 'static {
    type Tx: Send + 'static;
    type Rx: Send + 'static;

    fn channel() -> (Self::Tx, Self::Rx);

    /// Sends a value. Returns `false` if the receiver has gone.
    fn send(tx: Self::Tx, value: Value) -> bool;

    /// Receives the value. The result is `None` if the sender has gone without sending.
    fn poll_recv(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Option<Value>>;

    /// Whether the sender can wait for the receiver to go.
    const CLOSED: bool = false;

    /// Why a waker stays after a wait for that was given up, if the crate says so.
    const KEEPS_WAKER: Option<&'static str> = None;

    /// Waits until the receiver has gone.
    fn poll_closed(_tx: &mut Self::Tx, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// A oneshot as a subject.
pub(crate) struct Oneshots<O>(PhantomData<fn() -> O>);

impl<O> Oneshots<O> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Send,
    Closed,
    Recv,
    Drop,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Sent,
    Refused,
    Got(ValueId),
    Closed,
    /// The half was used up already.
    Over,
    Dropped,
}

pub(crate) enum Half<O: Oneshot> {
    Tx(Option<O::Tx>),
    Rx(Option<O::Rx>),
}

impl<O: Oneshot> Subject for Oneshots<O> {
    type Op = Op;
    type Ret = Ret;
    type Spec = OneshotSpec;
    type Actor = Half<O>;

    fn spec(&self) -> OneshotSpec {
        OneshotSpec
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let mut sender = vec![
            Operation::immediate("send", Op::Send),
            Operation::immediate("drop", Op::Drop).leaving(),
        ];
        if O::CLOSED {
            let closed = Operation::future("closed", Op::Closed);
            sender.push(match O::KEEPS_WAKER {
                Some(reason) => closed.keeps_waker(reason),
                None => closed,
            });
        }
        let receiver = vec![
            // A poll of the half leaves its waker there until the half is polled again
            // or dropped.
            Operation::future("recv", Op::Recv).keeps_waker("until the half is dropped"),
            Operation::immediate("drop", Op::Drop).leaving(),
        ];
        vec![
            Role {
                name: "sender",
                ops: sender,
                symmetry: 0,
            },
            Role {
                name: "receiver",
                ops: receiver,
                symmetry: 1,
            },
        ]
    }

    fn actors(&self, _: usize) -> Vec<Half<O>> {
        let (tx, rx) = O::channel();
        vec![Half::Tx(Some(tx)), Half::Rx(Some(rx))]
    }

    fn start<'a>(
        &self,
        half: &'a mut Half<O>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match (call.op, half) {
            (Op::Send, Half::Tx(tx)) => Started::Done(match tx.take() {
                Some(tx) => match O::send(tx, value()) {
                    true => Ret::Sent,
                    false => Ret::Refused,
                },
                None => Ret::Over,
            }),
            (Op::Closed, Half::Tx(tx)) => Started::future(poll_fn(move |cx| match tx {
                Some(tx) => O::poll_closed(tx, cx).map(|()| Ret::Closed),
                None => Poll::Ready(Ret::Over),
            })),
            (Op::Recv, Half::Rx(rx)) => Started::future(poll_fn(move |cx| {
                let Some(half) = rx else {
                    return Poll::Ready(Ret::Over);
                };
                let result = O::poll_recv(half, cx);
                if result.is_ready() {
                    *rx = None;
                }
                result.map(|value| value.map_or(Ret::Closed, |value| Ret::Got(value.id())))
            })),
            (Op::Drop, Half::Tx(tx)) => Started::Done(gone(tx.take())),
            (Op::Drop, Half::Rx(rx)) => Started::Done(gone(rx.take())),
            (op, _) => unreachable!("no role has {op:?}"),
        }
    }
}

fn gone<T>(half: Option<T>) -> Ret {
    half.map_or(Ret::Over, |_| Ret::Dropped)
}

pub(crate) struct OneshotSpec;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    tx: bool,
    rx: bool,
    value: Option<ValueId>,
}

impl Spec for OneshotSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            tx: true,
            rx: true,
            value: None,
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let sends = call.participant == 0;
        let ret = match call.op {
            Op::Send if !state.tx => Ret::Over,
            Op::Send if state.rx => {
                (next.tx, next.value) = (false, Some(call.value()));
                Ret::Sent
            }
            Op::Send => {
                next.tx = false;
                Ret::Refused
            }
            Op::Closed if !state.tx => Ret::Over,
            Op::Closed if state.rx => return Vec::new(),
            Op::Closed => Ret::Closed,
            Op::Recv if !state.rx => Ret::Over,
            Op::Recv => match state.value {
                Some(value) => {
                    next.rx = false;
                    Ret::Got(value)
                }
                None if state.tx => return Vec::new(),
                None => {
                    next.rx = false;
                    Ret::Closed
                }
            },
            Op::Drop => {
                let half = if sends { &mut next.tx } else { &mut next.rx };
                match std::mem::replace(half, false) {
                    true => Ret::Dropped,
                    false => Ret::Over,
                }
            }
        };
        vec![(next, ret)]
    }

    /// A value is there before the waker of the receiver is called.
    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut states = vec![state.clone()];
        if !matches!(call.op, Op::Recv | Op::Closed) {
            states.extend(self.effects(state, call));
        }
        states
    }
}
