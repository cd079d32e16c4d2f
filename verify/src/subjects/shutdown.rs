//! `reveille::Shutdown`, with every public operation of both handles.

use std::marker::PhantomData;

use reveille::backend::BlockingBackend;
use reveille::{Shutdown, ShutdownGuard};

use crate::run::entry::{
    Absent::{Constant, Creates},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::gate::{self, Ret};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "shutdown",
        "reveille::Shutdown: a request, guards that come and go, and waits for both",
        Shutdowns,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "shutdown.rs",
    absent: &[("new", Creates), ("new_in", Creates), ("token", Constant)],
}]);

/// `Shutdown` over every backend.
pub(crate) struct Shutdowns;

impl GenericSubject for Shutdowns {
    type On<B: BlockingBackend> = ShutdownOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        ShutdownOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        if let (Mode::Sections, Profile::Quick) = (mode, profile) {
            plans.truncate(1);
        }
        plans
    }
}

pub(crate) struct ShutdownOn<B>(PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Wait,
    Requested,
    /// Waits for the request by a guard, and keeps the guard.
    RequestedByGuard,
    Request,
    Guard,
    /// Drops the guard.
    Leave,
    IsRequested,
    Guards,
}

/// What a participant holds: a handle, and a guard at times.
pub(crate) struct Task<B: BlockingBackend> {
    shutdown: Shutdown<B>,
    guard: Option<ShutdownGuard<B>>,
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("wait", Op::Wait),
            Operation::immediate("request", Op::Request),
            Operation::immediate("guard", Op::Guard),
            Operation::immediate("leave", Op::Leave),
            Operation::future("requested", Op::Requested).alias(),
            Operation::future("requested_by_guard", Op::RequestedByGuard).alias(),
            Operation::immediate("is_requested", Op::IsRequested),
            Operation::immediate("guards", Op::Guards),
        ],
    }
}

/// Returns `true` if a participant, which begins without a guard, can do the next step.
pub(crate) fn can_follow(role: &Role<Op>, before: &[Step], next: Step) -> bool {
    let op = |step: &Step| role.ops[step.op].op;
    let holds = before.iter().fold(false, |holds, step| match op(step) {
        Op::Guard => true,
        Op::Leave => false,
        _ => holds,
    });
    match op(&next) {
        Op::Guard => !holds,
        Op::Leave | Op::RequestedByGuard => holds,
        _ => true,
    }
}

impl<B: BlockingBackend> Subject for ShutdownOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = ShutdownSpec;
    type Actor = Task<B>;

    fn spec(&self) -> ShutdownSpec {
        ShutdownSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        can_follow(role, before, next)
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let shutdown = Shutdown::new_in();
        let task = |_| Task {
            shutdown: shutdown.clone(),
            guard: None,
        };
        (0..participants).map(task).collect()
    }

    fn start<'a>(
        &self,
        task: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Task { shutdown, guard } = task;
        match call.op {
            Op::Wait => return gate::waits(shutdown.wait()),
            Op::Requested => return gate::waits(shutdown.requested()),
            Op::RequestedByGuard => {
                let guard = guard.as_ref().expect("it has a guard");
                return gate::waits(guard.requested());
            }
            Op::Request => shutdown.request(),
            Op::Guard => *guard = Some(shutdown.guard()),
            Op::Leave => *guard = None,
            Op::IsRequested => {
                let requested = match guard {
                    Some(guard) => guard.is_requested(),
                    None => shutdown.is_requested(),
                };
                return Started::Done(Ret::Is(requested));
            }
            Op::Guards => return Started::Done(Ret::Count(shutdown.guards())),
        }
        Started::Done(Ret::Done)
    }
}

/// What the operations of a shutdown mean, one at a time.
pub(crate) struct ShutdownSpec;

/// Whether it is requested, and the number of guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    requested: bool,
    guards: usize,
}

impl Spec for ShutdownSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            requested: false,
            guards: 0,
        }
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::Wait | Op::Requested | Op::RequestedByGuard => vec![*state],
            _ => self.effects(state, call),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = *state;
        let ret = match call.op {
            Op::Wait if !state.requested || state.guards > 0 => return Vec::new(),
            Op::Requested | Op::RequestedByGuard if !state.requested => return Vec::new(),
            Op::Wait | Op::Requested | Op::RequestedByGuard => Ret::Done,
            Op::Request => {
                next.requested = true;
                Ret::Done
            }
            Op::Guard => {
                next.guards += 1;
                Ret::Done
            }
            Op::Leave => {
                next.guards -= 1;
                Ret::Done
            }
            Op::IsRequested => Ret::Is(state.requested),
            Op::Guards => Ret::Count(state.guards),
        };
        vec![(next, ret)]
    }
}
