//! A condvar over the suite's mutex, with a fault that can be chosen.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::mutex::LockOwned;
use reveille::protocol::Bits;
use reveille::{Mutex, OwnedMutexGuard};

use crate::run::entry::SpecimenEntry;
use crate::specimens::notify::{self, Notified, Notify};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::{Polling, Step};
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::condvar::{CondvarSpec, Op, Ret};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("condvar", 5, ALL, Specimen)
}

/// What is wrong with the condvar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A wait unlocks before it takes its place in the queue.
    UnlocksFirst,
    /// P6: a wait that is dropped before it has locked again does not pass its
    /// notification on.
    GrantSwallowed,
}

/// Every fault, with its name and the class in which it must be caught.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 2] = [
    (
        "unlocks-first",
        Fault::UnlocksFirst,
        Some(Class::LostWakeUp),
    ),
    (
        "grant-swallowed",
        Fault::GrantSwallowed,
        Some(Class::CancellationRace),
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
    shared: Arc<Shared<B>>,
    held: Option<OwnedMutexGuard<bool, B>>,
}

struct Shared<B: BlockingBackend> {
    fault: Fault,
    /// The value is `true` when the gate is open.
    mutex: Arc<Mutex<bool, B>>,
    notify: Arc<Notify<B>>,
}

/// A wait for a notification, or until the gate is open.
struct Wait<'a, B: BlockingBackend> {
    shared: &'a Shared<B>,
    until_open: bool,
    stage: Stage<B>,
}

enum Stage<B: BlockingBackend> {
    Begins(OwnedMutexGuard<bool, B>),
    Waits(Notified<B>),
    Locks(LockOwned<bool, B>),
    Done,
}

impl<B: BlockingBackend> Future for Wait<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let Self {
            shared,
            until_open,
            stage,
        } = self.get_mut();
        loop {
            match stage {
                Stage::Begins(_) => {
                    let Stage::Begins(guard) = std::mem::replace(stage, Stage::Done) else {
                        unreachable!("it begins")
                    };
                    if *until_open && *guard {
                        return Poll::Ready(Ret::Woken);
                    }
                    let mut guard = Some(guard);
                    if shared.fault == Fault::UnlocksFirst {
                        drop(guard.take());
                    }
                    let mut notified = shared.notify.notified();
                    let poll = Pin::new(&mut notified).poll(cx);
                    *stage = Stage::Waits(notified);
                    drop(guard);
                    if poll.is_pending() {
                        return Poll::Pending;
                    }
                }
                Stage::Waits(notified) => {
                    if Pin::new(notified).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    *stage = Stage::Locks(shared.mutex.clone().lock_owned());
                }
                Stage::Locks(lock) => match Pin::new(lock).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(guard) if *until_open => *stage = Stage::Begins(guard),
                    Poll::Ready(_) => {
                        *stage = Stage::Done;
                        return Poll::Ready(Ret::Woken);
                    }
                },
                Stage::Done => unreachable!("it is polled until it is ready"),
            }
        }
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        if let Stage::Locks(_) = self.stage
            && self.shared.fault != Fault::GrantSwallowed
        {
            self.shared.notify.notify_one();
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = CondvarSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> CondvarSpec {
        CondvarSpec
    }

    /// Returns three roles: two wait, and the third locks, opens and notifies.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |symmetry, ops| Role {
            name: "task",
            symmetry,
            ops,
        };
        let wait = match self.fault {
            Fault::UnlocksFirst => Operation::future("wait_while", Op::WaitWhile),
            Fault::GrantSwallowed => Operation::future("wait", Op::Wait),
        };
        vec![
            role(0, vec![wait.clone()]),
            role(1, vec![wait.alias()]),
            role(
                2,
                vec![
                    Operation::immediate("open", Op::Open),
                    Operation::immediate("lock", Op::Lock),
                    Operation::immediate("notify_one", Op::NotifyOne),
                    Operation::immediate("unlock", Op::Unlock),
                ],
            ),
        ]
    }

    /// Allows each wait once. The first may be dropped on its way to the lock if the
    /// fault is in that. The third role performs its operations in this order.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        if role.symmetry < 2 {
            let late = next.polling == Polling::Cancel(2);
            let hunted = self.fault == Fault::GrantSwallowed && role.symmetry == 0;
            return before.is_empty() && late == hunted;
        }
        before.last().is_none_or(|last| last.op < next.op)
    }

    fn actors(&self, _: usize) -> Vec<Actor<B>> {
        let shared = Arc::new(Shared {
            fault: self.fault,
            mutex: Arc::new(Mutex::with_max_barges_in(false, 0)),
            notify: Notify::new(notify::Fault::None, false),
        });
        (0..3)
            .map(|_| Actor {
                shared: shared.clone(),
                held: None,
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { shared, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let lock = || shared.mutex.clone().try_lock_owned().ok();
        let done = match *call.op {
            Op::NotifyOne => {
                shared.notify.notify_one();
                Some(())
            }
            Op::Unlock => {
                drop(held.take());
                Some(())
            }
            Op::Open => lock().map(|mut open| *open = true),
            Op::Lock => lock().map(|guard| *held = Some(guard)),
            Op::Wait | Op::WaitWhile => match lock() {
                Some(guard) => {
                    return Started::future(Wait {
                        shared,
                        until_open: *call.op == Op::WaitWhile,
                        stage: Stage::Begins(guard),
                    });
                }
                None => None,
            },
            _ => unreachable!("no role has it"),
        };
        Started::Done(done.map_or(Ret::Refused, |()| Ret::Unit))
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
