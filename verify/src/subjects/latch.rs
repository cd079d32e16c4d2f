//! `reveille::Latch` with a count of two, with every public operation.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille::Latch;
use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::{
    Absent::{Creates, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::gate::{self, GateSpec, Op, Ret};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "latch",
        "reveille::Latch: a count of two, and all tasks that wait for zero",
        Latches,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "latch.rs",
    absent: &[
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// `Latch` over every backend.
pub(crate) struct Latches;

impl GenericSubject for Latches {
    type On<B: BlockingBackend> = LatchOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        LatchOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        if let (Mode::Sections, Profile::Quick) = (mode, profile) {
            plans.truncate(1);
        }
        plans
    }
}

pub(crate) struct LatchOn<B>(PhantomData<fn() -> B>);

/// The count of the latch.
pub(crate) const COUNT: usize = 2;

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    gate::role(vec![
        Operation::immediate("count_down", Op::Subtract(1)),
        Operation::immediate("count_down_by", Op::Subtract(2)),
        Operation::immediate("count", Op::Count),
        Operation::future("wait_owned", Op::WaitOwned).alias(),
    ])
}

impl<B: BlockingBackend> Subject for LatchOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = GateSpec;
    type Actor = Arc<Latch<B>>;

    fn spec(&self) -> GateSpec {
        GateSpec(COUNT)
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let latch = Arc::new(Latch::new_in(COUNT));
        vec![latch; participants]
    }

    fn start<'a>(
        &self,
        latch: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match *call.op {
            Op::Wait => return gate::waits(latch.wait()),
            Op::WaitOwned => return gate::waits(latch.clone().wait_owned()),
            Op::Subtract(1) => {
                latch.count_down();
                Ret::Done
            }
            Op::Subtract(n) => {
                latch.count_down_by(n);
                Ret::Done
            }
            Op::Waiting => Ret::Count(latch.waiting()),
            Op::Granted => Ret::Count(latch.granted()),
            Op::Count | Op::Add | Op::Close | Op::IsOpen => Ret::Count(latch.count()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        gate::describe(bits)
    }
}
