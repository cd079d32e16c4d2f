//! A semaphore of one permit, with a fault that can be chosen.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::SpecimenEntry;
use crate::specimens::permits::{Fault, Outcome, Permits};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::semaphore::{Op, Ret, SemaphoreSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("semaphore", 3, ALL, Specimen)
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 9] = [
    ("plain", Fault::None, None),
    (
        "grant-kept",
        Fault::GrantKept,
        Some(Class::CancellationRace),
    ),
    (
        "place-kept",
        Fault::PlaceKept,
        Some(Class::CancellationRace),
    ),
    (
        "close-forgets",
        Fault::CloseForgets,
        Some(Class::LostWakeUp),
    ),
    (
        "first-waker-kept",
        Fault::FirstWakerKept,
        Some(Class::StaleWaker),
    ),
    (
        "checks-then-registers",
        Fault::ChecksThenRegisters,
        Some(Class::LostWakeUp),
    ),
    ("small-first", Fault::SmallFirst, Some(Class::WrongResult)),
    ("batch-stops", Fault::BatchStops, Some(Class::Panic)),
    ("waker-kept", Fault::WakerKept, Some(Class::Leak)),
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

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    permits: Arc<Permits<B>>,
    held: Vec<usize>,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = SemaphoreSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> SemaphoreSpec {
        SemaphoreSpec { bound: 0 }
    }

    /// Returns three roles: two acquire, and the third releases and closes. So two can
    /// be queued while the third acts on the queue.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |symmetry, ops| Role {
            name: "task",
            symmetry,
            ops,
        };
        vec![
            role(
                0,
                vec![
                    Operation::future("acquire", Op::Acquire(1, 1)),
                    Operation::future("acquire_many", Op::Acquire(2, 2)),
                    Operation::immediate("release", Op::Release),
                ],
            ),
            role(
                1,
                vec![
                    Operation::future("acquire", Op::Acquire(1, 1)).alias(),
                    Operation::immediate("try_acquire", Op::Try(1)),
                ],
            ),
            role(
                2,
                vec![
                    Operation::immediate("forget_permits", Op::Forget),
                    Operation::immediate("add_permits", Op::Add),
                    Operation::immediate("close", Op::Close),
                ],
            ),
        ]
    }

    /// Allows a release only after a step that may have acquired a permit.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let op = |step: &Step| role.ops[step.op].op;
        let acquired = before
            .iter()
            .any(|step| matches!(op(step), Op::Acquire(..) | Op::Try(_)));
        acquired || op(&next) != Op::Release
    }

    fn actors(&self, _: usize) -> Vec<Actor<B>> {
        let permits = Permits::new(self.fault, 1);
        (0..3)
            .map(|_| Actor {
                permits: permits.clone(),
                held: Vec::new(),
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { permits, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match *call.op {
            Op::Acquire(number, _) => {
                let acquire = permits.acquire(number);
                return Started::future(async move { keep(held, number, Some(acquire.await)) });
            }
            Op::Try(number) => keep(held, number, permits.try_acquire(number)),
            Op::Release => match held.pop() {
                Some(number) => {
                    permits.release(number);
                    Ret::Number(number)
                }
                None => Ret::Unit,
            },
            Op::Add => {
                permits.release(1);
                Ret::Unit
            }
            Op::Forget => Ret::Number(permits.forget()),
            Op::Close => {
                permits.close();
                Ret::Unit
            }
            _ => unreachable!("no role has it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}

fn keep(held: &mut Vec<usize>, number: usize, answer: Option<Outcome>) -> Ret {
    match answer {
        Some(Outcome::Granted) => {
            held.push(number);
            Ret::Acquired(number)
        }
        Some(Outcome::Closed) => Ret::Closed,
        None => Ret::NoPermits,
    }
}
