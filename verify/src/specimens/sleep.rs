//! A sleep with a fault that can be chosen, and its driver.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::SpecimenEntry;
use crate::specimens::timers::{Fault, Timers};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::driven::{DrivenSpec, Op};
use crate::subjects::time::FAR;

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("sleep", 4, ALL, Specimen)
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 5] = [
    ("plain", Fault::None, None),
    (
        "first-waker-kept",
        Fault::FirstWakerKept,
        Some(Class::StaleWaker),
    ),
    (
        "nearer-untold",
        Fault::NearerUntold,
        Some(Class::LostWakeUp),
    ),
    ("entry-kept", Fault::EntryKept, Some(Class::Leak)),
    (
        "far-hides-near",
        Fault::FarHidesNear,
        Some(Class::LostWakeUp),
    ),
];

/// The specimen over every backend.
pub(crate) struct Specimen(pub(crate) Fault);

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            fault: self.0,
            backend: PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = ();
    type Spec = DrivenSpec;
    type Actor = Arc<Timers<B>>;

    fn spec(&self) -> DrivenSpec {
        DrivenSpec
    }

    /// Returns four roles: two sleep, one drives, and one moves the clock, and fires if
    /// there is no driver.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |name, symmetry, ops| Role {
            name,
            symmetry,
            ops,
        };
        let near = Operation::future("sleep_until_1", Op::SleepUntil(1)).leaving();
        let far = Operation::future("sleep_until_70", Op::SleepUntil(FAR)).leaving();
        vec![
            role("sleeper", 0, vec![near.clone(), far.alias()]),
            role("sleeper", 1, vec![near.alias()]),
            role(
                "driver",
                2,
                vec![
                    Operation::future("drive", Op::Drive)
                        .alias()
                        .keeps_waker("the driver of this subject keeps its latest waker"),
                ],
            ),
            role(
                "clock",
                3,
                vec![
                    Operation::immediate("advance_1", Op::Advance(1)),
                    Operation::immediate("fire", Op::Fire),
                ],
            ),
        ]
    }

    /// Allows each role its operations once, in their order.
    fn follows(&self, _: &Role<Op>, before: &[Step], next: Step) -> bool {
        before.last().is_none_or(|last| last.op < next.op)
    }

    fn actors(&self, _: usize) -> Vec<Arc<Timers<B>>> {
        vec![Timers::new(self.fault); 4]
    }

    fn start<'a>(
        &self,
        timers: &'a mut Arc<Timers<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, ()> {
        match *call.op {
            Op::SleepUntil(deadline) => return Started::future(timers.sleep_until(deadline)),
            Op::Drive => {
                return Started::future(poll_fn(|cx| {
                    timers.turn(cx);
                    Poll::Pending
                }));
            }
            Op::Advance(by) => timers.advance(by),
            Op::Fire => timers.fire(),
            Op::Reset(..) => unreachable!("no role has it"),
        }
        Started::Done(())
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
