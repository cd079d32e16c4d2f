//! `reveille::WaitGroup`, with every public operation.
//!
//! A wait is a clone of one that was created before the program began, since `wait` is
//! two steps: it leaves, and then it waits. `leave` drops a member by `wait`.

use std::marker::PhantomData;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::{WaitGroup, WaitGroupWait};

use crate::run::entry::{
    Absent::{Creates, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::gate::{self, GateSpec, Op, Ret};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "wait-group",
        "reveille::WaitGroup: members that join and leave, and waits for the last",
        WaitGroups,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "wait_group.rs",
    absent: &[
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// `WaitGroup` over every backend.
pub(crate) struct WaitGroups;

impl GenericSubject for WaitGroups {
    type On<B: BlockingBackend> = WaitGroupOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        WaitGroupOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        if let (Mode::Sections, Profile::Quick) = (mode, profile) {
            plans.truncate(1);
        }
        plans
    }
}

pub(crate) struct WaitGroupOn<B>(PhantomData<fn() -> B>);

/// What a participant holds: a wait, and members.
pub(crate) struct Members<B: BlockingBackend> {
    waits: WaitGroupWait<B>,
    members: Vec<WaitGroup<B>>,
}

/// The number of members at the beginning.
pub(crate) const MEMBERS: usize = 2;

/// Returns the roles: two participants begin as a member each, and others only wait. The
/// specimens have the same ones.
pub(crate) fn roles(participants: usize) -> Vec<Role<Op>> {
    let member = gate::role(vec![
        Operation::immediate("leave", Op::Subtract(1)),
        Operation::immediate("join", Op::Add),
        Operation::immediate("members", Op::Count),
    ]);
    let waiter = Role {
        name: "task",
        symmetry: 1,
        ops: vec![Operation::future("wait", Op::Wait)],
    };
    let role = |participant| match participant < MEMBERS {
        true => member.clone(),
        false => waiter.clone(),
    };
    (0..participants).map(role).collect()
}

/// Returns `true` if a participant that begins as a member is one after these steps, or
/// if the next step takes no member.
pub(crate) fn can_follow(role: &Role<Op>, before: &[Step], next: Step) -> bool {
    let op = |step: &Step| role.ops[step.op].op;
    let members = before.iter().fold(1, |members, step| match op(step) {
        Op::Subtract(_) => members - 1,
        Op::Add => members + 1,
        _ => members,
    });
    op(&next) == Op::Wait || members > 0
}

impl<B: BlockingBackend> Subject for WaitGroupOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = GateSpec;
    type Actor = Members<B>;

    fn spec(&self) -> GateSpec {
        GateSpec(MEMBERS)
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        roles(participants)
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        can_follow(role, before, next)
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let group = WaitGroup::new_in();
        let members = |participant| Members {
            waits: group.clone().wait(),
            members: Vec::from_iter((participant < MEMBERS).then(|| group.clone())),
        };
        (0..participants).map(members).collect()
    }

    fn start<'a>(
        &self,
        actor: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Members { waits, members } = actor;
        let Some(member) = members.last() else {
            return gate::waits(waits.clone());
        };
        Started::Done(match call.op {
            Op::Add => {
                let joined = member.clone();
                members.push(joined);
                Ret::Done
            }
            Op::Subtract(_) => {
                drop(members.pop().map(WaitGroup::wait));
                Ret::Done
            }
            Op::Count => Ret::Count(member.members()),
            Op::Waiting => Ret::Count(member.waiting()),
            Op::Granted => Ret::Count(member.granted()),
            Op::Wait | Op::WaitOwned | Op::Close | Op::IsOpen => return gate::waits(waits.clone()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        gate::describe(bits)
    }
}
