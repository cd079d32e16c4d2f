//! The lock itself, and what it promises to all code above it.
//!
//! There are two counters, one in the bits and one in the state. Every section reads
//! them and adds to them. A section that overlapped another, or did not see what the
//! one before it wrote, would return a number that no order explains. The state is also
//! in a cell of the checker, which detects an access that races.

use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::{SubjectEntry, Surface};
use crate::subject::plan::Bound;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "state-lock",
        "the lock of the protocol: exclusion, visibility, no lost unpark",
        Lock,
        Surface::Other("the operations of `protocol::StateLock`, by which primitives are built"),
    )]
}

/// `StateLock` over every backend.
pub(crate) struct Lock;

impl GenericSubject for Lock {
    type On<B: BlockingBackend> = LockOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        LockOn(std::marker::PhantomData)
    }

    /// The real lock matters here, so it is explored without a bound on preemptions.
    /// The drawn programs have three threads.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let plan = Plan::of(mode, profile);
        let bound = |participants, operations, total| Bound {
            participants,
            operations,
            total,
            ..plan.bound
        };
        vec![match (mode, profile) {
            (Mode::Accesses, Profile::Quick) => Plan {
                bound: bound(2, 1, 2),
                preemptions: None,
                ..plan
            },
            (Mode::Accesses, Profile::Full) => Plan {
                bound: bound(2, 2, 4),
                preemptions: None,
                ..plan
            },
            (Mode::Accesses, Profile::Deep) => Plan {
                bound: bound(3, 1, 3),
                preemptions: None,
                ..plan
            },
            (Mode::Random | Mode::Pct | Mode::Threads, _) => Plan {
                bound: bound(3, plan.bound.operations, plan.bound.total),
                ..plan
            },
            _ => plan,
        }]
    }
}

pub(crate) struct LockOn<B>(std::marker::PhantomData<fn() -> B>);

/// A section. There is one operation for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `with`: adds to both counters.
    With,
    /// `update`: adds to the bits.
    Update,
    /// `update`: changes nothing.
    Refuse,
    /// `load`: reads the bits.
    Load,
}

impl<B: BlockingBackend> Subject for LockOn<B> {
    type Op = Op;
    /// The counters that were found: that of the bits, and that of the state if it was
    /// seen.
    type Ret = (usize, Option<usize>);
    type Spec = LockSpec;
    type Actor = Arc<StateLock<usize, B>>;

    fn spec(&self) -> LockSpec {
        LockSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "thread",
            symmetry: 0,
            ops: vec![
                Operation::immediate("with", Op::With),
                Operation::immediate("update", Op::Update),
                Operation::immediate("refuse", Op::Refuse),
                Operation::immediate("load", Op::Load),
            ],
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let lock = Arc::new(StateLock::new_in(Bits::EMPTY, 0));
        vec![lock; participants]
    }

    fn start<'a>(
        &self,
        lock: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Self::Ret> {
        let next = |bits: Bits| Bits::new(bits.get() + 1);
        Started::Done(match call.op {
            Op::With => lock.with(|section| {
                let found = (section.bits.get(), Some(*section.state));
                *section.bits = next(*section.bits);
                *section.state += 1;
                found
            }),
            Op::Update => match lock.update(|bits| Some(next(bits))) {
                Ok(found) | Err(found) => (found.get(), None),
            },
            Op::Refuse => match lock.update(|_| None) {
                Ok(found) | Err(found) => (found.get(), None),
            },
            Op::Load => (lock.load().get(), None),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        bits.get().to_string()
    }
}

/// Two counters.
pub(crate) struct LockSpec;

impl Spec for LockSpec {
    type Op = Op;
    type Ret = (usize, Option<usize>);
    type State = (usize, usize);

    fn initial(&self) -> (usize, usize) {
        (0, 0)
    }

    fn step(
        &self,
        &(bits, state): &(usize, usize),
        call: Call<'_, Op>,
    ) -> Vec<((usize, usize), Self::Ret)> {
        vec![match call.op {
            Op::With => ((bits + 1, state + 1), (bits, Some(state))),
            Op::Update => ((bits + 1, state), (bits, None)),
            Op::Refuse | Op::Load => ((bits, state), (bits, None)),
        }]
    }
}
