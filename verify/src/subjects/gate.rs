//! What the subjects on a gate share: operations on a count, and their meaning.

use reveille::protocol::Bits;
use reveille::raw::describe_gate;

use crate::subject::Started;
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};

/// An operation on a gate. Each subject has its own names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Wait,
    WaitOwned,
    /// Subtracts from the count.
    Subtract(usize),
    /// Adds one to the count.
    Add,
    /// Sets the count to one if it is zero.
    Close,
    Count,
    /// Whether the count is zero.
    IsOpen,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// Nothing.
    Done,
    /// A count, or a number of tasks.
    Count(usize),
    /// Whether it is so.
    Is(bool),
}

/// Returns the role of every participant, with these operations beside the wait.
pub(crate) fn role(own: Vec<Operation<Op>>) -> Role<Op> {
    let mut ops = vec![Operation::future("wait", Op::Wait)];
    ops.extend(own);
    ops.push(Operation::immediate("waiting", Op::Waiting));
    ops.push(Operation::immediate("granted", Op::Granted));
    Role {
        name: "task",
        symmetry: 0,
        ops,
    }
}

/// Returns an operation that is a wait.
pub(crate) fn waits<'a>(wait: impl Future<Output = ()> + Send + 'a) -> Started<'a, Ret> {
    Started::future(async {
        wait.await;
        Ret::Done
    })
}

/// Describes the bits of a gate for people.
pub(crate) fn describe(bits: Bits) -> String {
    let mut text = String::new();
    describe_gate(bits, &mut text).expect("a string can be written to");
    text
}

/// What operations on a gate that begins with this count mean, one at a time.
pub(crate) struct GateSpec(pub(crate) usize);

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    count: usize,
    /// The participants that wait, sorted.
    waits: Vec<usize>,
    /// The participants that have been released and have not observed it, sorted.
    called: Vec<usize>,
}

impl Spec for GateSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            count: self.0,
            waits: Vec::new(),
            called: Vec::new(),
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Wait | Op::WaitOwned)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if state.count > 0 {
            next.waits.push(call.participant);
            next.waits.sort_unstable();
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        next.waits
            .retain(|&participant_id| participant_id != call.participant);
        next.called
            .retain(|&participant_id| participant_id != call.participant);
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Wait | Op::WaitOwned if state.called.contains(&call.participant) => {
                next.called
                    .retain(|&participant_id| participant_id != call.participant);
                Ret::Done
            }
            Op::Wait | Op::WaitOwned if state.count > 0 => return Vec::new(),
            Op::Wait | Op::WaitOwned => Ret::Done,
            Op::Subtract(n) => {
                next.count = state.count.saturating_sub(*n);
                if next.count == 0 {
                    next.called.append(&mut next.waits);
                    next.called.sort_unstable();
                }
                Ret::Done
            }
            Op::Add => {
                next.count += 1;
                Ret::Done
            }
            Op::Close => {
                next.count = next.count.max(1);
                Ret::Done
            }
            Op::Count => Ret::Count(state.count),
            Op::IsOpen => Ret::Is(state.count == 0),
            Op::Waiting => Ret::Count(state.waits.len()),
            Op::Granted => Ret::Count(state.called.len()),
        };
        vec![(next, ret)]
    }
}
