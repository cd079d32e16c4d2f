//! `reveille::oneshot`, with every public operation of both halves.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use reveille::backend::{Backend, BlockingBackend};
use reveille::oneshot::error::{RecvError, TryRecvError};
use reveille::oneshot::{Receiver, Sender, channel_in};
use reveille::protocol::Bits;
use reveille::raw::{Boxed, Handoff};

use crate::run::entry::{
    Absent::{Creates, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "oneshot",
        "reveille::oneshot: every operation of both halves",
        Oneshot,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "oneshot.rs",
    absent: &[
        ("channel", Creates),
        ("channel_in", Creates),
        ("new", Creates),
        ("new_in", Creates),
        ("poll_closed", SameAs("closed")),
        ("split", Creates),
    ],
}]);

/// `oneshot` over every backend.
pub(crate) struct Oneshot;

impl GenericSubject for Oneshot {
    type On<B: BlockingBackend> = OneshotOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        OneshotOn(PhantomData)
    }
}

pub(crate) struct OneshotOn<B>(PhantomData<fn() -> B>);

/// An operation of either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Send,
    Closed,
    IsClosed,
    DropSender,
    Recv,
    TryRecv,
    Close,
    IsEmpty,
    IsTerminated,
    BlockingRecv,
    DropReceiver,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// It has no result, or there was nothing to do.
    Unit,
    /// The value was sent.
    Sent,
    /// The value was returned.
    Returned(ValueId),
    /// The value was received.
    Received(ValueId),
    /// No value will come.
    Closed,
    /// No value has come yet.
    Empty,
    /// Whether it is so.
    Is(bool),
}

/// Returns the result of `recv` and its siblings.
pub(crate) fn received(result: Result<Value, RecvError>) -> Ret {
    result.map_or(Ret::Closed, |value| Ret::Received(value.id()))
}

/// Why a wait leaves its waker in the channel.
const BORROWED: &str = "it polls a receiver that outlives it, which keeps its latest waker";

/// Returns the roles and their operations. The specimens have the same ones.
pub(crate) fn roles() -> Vec<Role<Op>> {
    vec![
        Role {
            name: "sender",
            symmetry: 0,
            ops: vec![
                Operation::immediate("send", Op::Send).leaving(),
                Operation::immediate("drop", Op::DropSender).leaving(),
                Operation::future("closed", Op::Closed),
                Operation::immediate("is_closed", Op::IsClosed),
            ],
        },
        Role {
            name: "receiver",
            symmetry: 1,
            ops: vec![
                Operation::future("recv", Op::Recv).keeps_waker(BORROWED),
                Operation::immediate("drop", Op::DropReceiver).leaving(),
                Operation::immediate("try_recv", Op::TryRecv),
                Operation::immediate("close", Op::Close),
                Operation::blocking("blocking_recv", Op::BlockingRecv).leaving(),
                Operation::immediate("is_empty", Op::IsEmpty),
                Operation::immediate("is_terminated", Op::IsTerminated),
            ],
        },
    ]
}

/// Allows no operation after the end of a half, and no second wait for a result.
pub(crate) fn follows(role: &Role<Op>, before: &[Step], next: Step) -> bool {
    let op = |step: &Step| role.ops[step.op].op;
    let awaited = |step: &Step| op(step) == Op::Recv && step.polling.completes();
    let left = before.iter().any(|step| role.ops[step.op].leaves);
    let twice = op(&next) == Op::Recv && before.iter().any(awaited);
    !left && !twice
}

/// What a participant holds.
pub(crate) enum Half<B: Backend> {
    Sender(Option<Sender<Value, Boxed<B>>>),
    Receiver(Option<Receiver<Value, Boxed<B>>>),
}

impl<B: BlockingBackend> Subject for OneshotOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = OneshotSpec;
    type Actor = Half<B>;

    fn spec(&self) -> OneshotSpec {
        OneshotSpec
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        roles()
    }

    fn actors(&self, _: usize) -> Vec<Half<B>> {
        let (tx, rx) = channel_in();
        vec![Half::Sender(Some(tx)), Half::Receiver(Some(rx))]
    }

    fn start<'a>(
        &self,
        actor: &'a mut Half<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match actor {
            Half::Sender(half) => sender(half, *call.op, value),
            Half::Receiver(half) => receiver(half, *call.op),
        }
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        follows(role, before, next)
    }

    fn describe(&self, bits: Bits) -> String {
        let mut text = String::new();
        Handoff::<Value, B>::describe(bits, &mut text).expect("writing to a string does not fail");
        text
    }
}

fn sender<'a, B: BlockingBackend>(
    half: &'a mut Option<Sender<Value, Boxed<B>>>,
    op: Op,
    value: &dyn Fn() -> Value,
) -> Started<'a, Ret> {
    if matches!(op, Op::Send | Op::DropSender) {
        return Started::Done(match (half.take(), op) {
            (Some(tx), Op::Send) => match tx.send(value()) {
                Ok(()) => Ret::Sent,
                Err(value) => Ret::Returned(value.id()),
            },
            _ => Ret::Unit,
        });
    }
    match (half, op) {
        (Some(tx), Op::Closed) => Started::future(async {
            tx.closed().await;
            Ret::Closed
        }),
        (Some(tx), Op::IsClosed) => Started::Done(Ret::Is(tx.is_closed())),
        _ => Started::Done(Ret::Unit),
    }
}

fn receiver<B: BlockingBackend>(
    half: &mut Option<Receiver<Value, Boxed<B>>>,
    op: Op,
) -> Started<'_, Ret> {
    if matches!(op, Op::BlockingRecv | Op::DropReceiver) {
        return Started::Done(match (half.take(), op) {
            // A second wait for the result is a misuse, and panics.
            (Some(rx), Op::BlockingRecv) if !rx.is_terminated() => received(rx.blocking_recv()),
            _ => Ret::Unit,
        });
    }
    let Some(rx) = half else {
        return Started::Done(Ret::Unit);
    };
    Started::Done(match op {
        Op::Recv if !rx.is_terminated() => {
            return Started::future(async { received(Pin::new(rx).await) });
        }
        Op::TryRecv => match rx.try_recv() {
            Ok(value) => Ret::Received(value.id()),
            Err(TryRecvError::Closed) => Ret::Closed,
            Err(TryRecvError::Empty) => Ret::Empty,
        },
        Op::Close => {
            rx.close();
            Ret::Unit
        }
        Op::IsEmpty => Ret::Is(rx.is_empty()),
        Op::IsTerminated => Ret::Is(rx.is_terminated()),
        _ => Ret::Unit,
    })
}

/// What the operations of a oneshot mean, one at a time.
pub(crate) struct OneshotSpec;

/// The state of a oneshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    value: Option<ValueId>,
    sender_gone: bool,
    closed: bool,
    receiver_gone: bool,
    terminated: bool,
}

impl Spec for OneshotSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    /// An operation that takes a half by value has dropped it when it is given up.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match call.op {
            Op::Send | Op::DropSender => next.sender_gone = true,
            Op::BlockingRecv | Op::DropReceiver => {
                next.closed = true;
                next.receiver_gone = true;
                next.value = None;
            }
            _ => {}
        }
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Send if state.closed => {
                next.sender_gone = true;
                Ret::Returned(call.value())
            }
            Op::Send => {
                next.sender_gone = true;
                next.value = Some(call.value());
                Ret::Sent
            }
            Op::DropSender => {
                next.sender_gone = true;
                Ret::Unit
            }
            Op::Closed if state.closed => Ret::Closed,
            Op::Closed => return Vec::new(),
            Op::IsClosed => Ret::Is(state.closed),

            Op::Recv | Op::BlockingRecv if state.terminated => Ret::Unit,
            Op::Recv | Op::BlockingRecv | Op::TryRecv => {
                let blocking = *call.op == Op::BlockingRecv;
                if let Some(value) = next.value.take() {
                    next.terminated = true;
                    next.closed |= blocking;
                    Ret::Received(value)
                } else if state.sender_gone || state.closed || state.terminated {
                    next.terminated = true;
                    next.closed |= blocking;
                    Ret::Closed
                } else if *call.op == Op::TryRecv {
                    Ret::Empty
                } else {
                    return Vec::new();
                }
            }
            Op::Close => {
                // A receiver that has returned the result has left the channel already.
                next.closed = true;
                Ret::Unit
            }
            Op::IsEmpty => Ret::Is(state.value.is_none()),
            Op::IsTerminated => Ret::Is(state.terminated),
            Op::DropReceiver => {
                next.closed = true;
                next.receiver_gone = true;
                next.value = None;
                Ret::Unit
            }
        };
        vec![(next, ret)]
    }
}

/// Checks that the futures of the suite are `Unpin`, so they can be awaited in place.
const _: () = {
    const fn unpin<T: Unpin + Future>() {}
    unpin::<Receiver<u32>>();
};
