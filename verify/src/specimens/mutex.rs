//! A mutex with a fault that can be chosen. Without a fault it is strictly first in,
//! first out.

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
use crate::subjects::mutex::{MutexSpec, Op, Ret};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("mutex", 4, ALL, Specimen)
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 6] = [
    ("plain", Fault::None, None),
    (
        "grant-kept",
        Fault::GrantKept,
        Some(Class::CancellationRace),
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
    ("barges", Fault::Barges, Some(Class::WrongResult)),
    (
        "takes-then-clones",
        Fault::TakesThenClones,
        Some(Class::Panic),
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

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    lock: Arc<Permits<B>>,
    /// The value. Only the holder of the lock touches it.
    count: Arc<AtomicUsize>,
    held: bool,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = MutexSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> MutexSpec {
        MutexSpec { bound: 0 }
    }

    /// Returns two roles: one locks in every polling mode and unlocks, and one may also
    /// lock again.
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
                    Operation::future("lock_owned", Op::LockOwned),
                    Operation::immediate("unlock", Op::Unlock),
                ],
            ),
            role(
                1,
                vec![
                    Operation::future("lock_owned", Op::LockOwned).alias(),
                    Operation::immediate("unlock", Op::Unlock),
                    Operation::immediate("try_lock_owned", Op::TryLockOwned),
                ],
            ),
        ]
    }

    /// Forbids the holder of the lock to wait for it.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let last = before.last().map(|step| role.ops[step.op].op);
        match role.ops[next.op].op {
            Op::Unlock => matches!(last, Some(Op::LockOwned | Op::TryLockOwned)),
            _ => matches!(last, None | Some(Op::Unlock)),
        }
    }

    fn actors(&self, _: usize) -> Vec<Actor<B>> {
        let lock = Permits::new(self.fault, 1);
        let count = Arc::new(AtomicUsize::new(0));
        (0..2)
            .map(|_| Actor {
                lock: lock.clone(),
                count: count.clone(),
                held: false,
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
            Op::LockOwned => {
                let acquire = lock.acquire(1);
                return Started::future(async {
                    acquire.await;
                    *held = true;
                    Ret::Locked
                });
            }
            Op::TryLockOwned => match lock.try_acquire(1) {
                Some(_) => {
                    *held = true;
                    Ret::Locked
                }
                None => Ret::Refused,
            },
            Op::Unlock if std::mem::take(held) => {
                let before = count.fetch_add(1, Ordering::Relaxed);
                lock.release(1);
                Ret::Unlocked(before)
            }
            Op::Unlock => Ret::Unit,
            _ => unreachable!("no role has it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
