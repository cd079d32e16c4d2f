//! `reveille::Barrier`, with every public operation.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille::Barrier;
use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::{
    Absent::{Constant, Creates, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "barrier",
            "reveille::Barrier for two: generations, and withdrawn arrivals",
            Barriers(2),
            SURFACE,
        ),
        SubjectEntry::new(
            "barrier-of-three",
            "reveille::Barrier for three: two waiters are notified at once",
            Barriers(3),
            Surface::As("barrier"),
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "barrier.rs",
    absent: &[
        ("is_leader", Constant),
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// A `Barrier` for this many tasks, over every backend.
pub(crate) struct Barriers(pub(crate) usize);

impl GenericSubject for Barriers {
    type On<B: BlockingBackend> = BarrierOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        BarrierOn {
            n: self.0,
            backend: PhantomData,
        }
    }

    /// A barrier for three takes three participants. Two cannot pass it.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        plans.retain(|plan| plan.bound.participants >= self.0);
        plans
    }
}

pub(crate) struct BarrierOn<B> {
    n: usize,
    backend: PhantomData<fn() -> B>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Wait,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// Another task arrived last, and this one was notified.
    Follows,
    /// This task arrived last.
    Leads,
    /// A number of tasks.
    Count(usize),
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("wait", Op::Wait),
            Operation::immediate("waiting", Op::Waiting).alias(),
            Operation::immediate("granted", Op::Granted).alias(),
        ],
    }
}

impl<B: BlockingBackend> Subject for BarrierOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = BarrierSpec;
    type Actor = Arc<Barrier<B>>;

    fn spec(&self) -> BarrierSpec {
        BarrierSpec(self.n)
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Barrier<B>>> {
        let barrier = Arc::new(Barrier::new_in(self.n));
        vec![barrier; participants]
    }

    fn start<'a>(
        &self,
        barrier: &'a mut Arc<Barrier<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Wait => {
                let wait = barrier.wait();
                return Started::future(async move {
                    match wait.await.is_leader() {
                        true => Ret::Leads,
                        false => Ret::Follows,
                    }
                });
            }
            Op::Waiting => Ret::Count(barrier.waiting()),
            Op::Granted => Ret::Count(barrier.granted()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        format!("{} here", bits.get())
    }
}

/// What the operations of a barrier for this many tasks mean, one at a time. A task
/// arrives when its wait begins.
pub(crate) struct BarrierSpec(pub(crate) usize);

/// The state of a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The participants that wait, sorted.
    here: Vec<usize>,
    /// The participants that have been notified and have not observed it, sorted.
    notified: Vec<usize>,
    /// The participants that arrived last and have not returned.
    leads: Vec<usize>,
}

impl Spec for BarrierSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        *op == Op::Wait
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if *call.op == Op::Wait {
            if next.here.len() + 1 == self.0 {
                next.leads.push(call.participant);
                next.notified.append(&mut next.here);
                next.notified.sort_unstable();
            } else {
                next.here.push(call.participant);
                next.here.sort_unstable();
            }
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        for list in [&mut next.here, &mut next.notified, &mut next.leads] {
            list.retain(|&participant_id| participant_id != call.participant);
        }
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Wait if state.notified.contains(&call.participant) => {
                next.notified
                    .retain(|&participant_id| participant_id != call.participant);
                Ret::Follows
            }
            Op::Wait if state.leads.contains(&call.participant) => {
                next.leads
                    .retain(|&participant_id| participant_id != call.participant);
                Ret::Leads
            }
            Op::Wait => return Vec::new(),
            Op::Waiting => Ret::Count(state.here.len()),
            Op::Granted => Ret::Count(state.notified.len()),
        };
        vec![(next, ret)]
    }
}
