//! A lock for readers and writers, with a fault that can be chosen.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::SpecimenEntry;
use crate::specimens::permits::{Fault, Permits};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::rwlock::{Op, Ret, RwLockSpec, Share};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("rwlock", 4, ALL, Specimen)
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 5] = [
    ("plain", Fault::None, None),
    (
        "cancelled-writer-stays",
        Fault::PlaceKept,
        Some(Class::CancellationRace),
    ),
    (
        "one-reader-woken",
        Fault::AssignsToOne,
        Some(Class::LostWakeUp),
    ),
    ("readers-barge", Fault::SmallFirst, Some(Class::WrongResult)),
    ("batch-stops", Fault::BatchStops, Some(Class::Panic)),
];

/// How many readers may hold the lock at once.
const READERS: usize = 8;

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
    lock: Arc<Permits<B>>,
    count: Arc<AtomicUsize>,
    held: Option<Share>,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = RwLockSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> RwLockSpec {
        RwLockSpec { all: READERS }
    }

    /// Returns three roles: one reads or writes in every polling mode, one reads, and
    /// one reads or writes and unlocks.
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
                    Operation::future("write_owned", Op::Lock(Share::Write)),
                    Operation::future("read_owned", Op::Lock(Share::Read)),
                ],
            ),
            role(
                1,
                vec![Operation::future("read_owned", Op::Lock(Share::Read)).alias()],
            ),
            role(
                2,
                vec![
                    Operation::future("write_owned", Op::Lock(Share::Write)).alias(),
                    Operation::future("read_owned", Op::Lock(Share::Read)).alias(),
                    Operation::immediate("unlock", Op::Unlock),
                ],
            ),
        ]
    }

    /// Allows a participant to lock once, and to unlock only what it has locked.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        before.is_empty() != (role.ops[next.op].op == Op::Unlock) && before.len() < 2
    }

    fn actors(&self, _: usize) -> Vec<Actor<B>> {
        let lock = Permits::new(self.fault, READERS);
        let count = Arc::new(AtomicUsize::new(0));
        (0..3)
            .map(|_| Actor {
                lock: lock.clone(),
                count: count.clone(),
                held: None,
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { lock, count, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match *call.op {
            Op::Lock(share) => {
                let acquire = lock.acquire(share.permits(READERS));
                return Started::future(async move {
                    acquire.await;
                    *held = Some(share);
                    Ret::Locked
                });
            }
            Op::Unlock => match held.take() {
                Some(share) => {
                    let ret = match share {
                        Share::Write => Ret::Wrote(count.fetch_add(1, Ordering::Relaxed)),
                        _ => Ret::Read(count.load(Ordering::Relaxed)),
                    };
                    lock.release(share.permits(READERS));
                    ret
                }
                None => Ret::Unit,
            },
            _ => unreachable!("no role has it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
