//! A timeout around permits, with a fault that can be chosen.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::SpecimenEntry;
use crate::specimens::permits::{self, Acquire, Permits};
use crate::specimens::timers::{self, Sleep, Timers};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::step::{Polling, Step};
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::timeout::{Op, Pool, Ret, TimeoutSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("timeout", 4, ALL, Specimen)
}

/// What is wrong with the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P6: a timeout that is dropped keeps what it was granted.
    GrantKept,
    /// A permit that arrives after the deadline is discarded.
    LateGrantLost,
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 3] = [
    ("plain", Fault::None, None),
    (
        "grant-kept",
        Fault::GrantKept,
        Some(Class::CancellationRace),
    ),
    (
        "late-grant-lost",
        Fault::LateGrantLost,
        Some(Class::LostWakeUp),
    ),
];

/// Permits and timers.
pub(crate) struct Shared<B: BlockingBackend> {
    fault: Fault,
    permits: Arc<Permits<B>>,
    timers: Arc<Timers<B>>,
}

/// Acquires a permit, until a deadline.
struct Timeout<B: BlockingBackend> {
    fault: Fault,
    acquire: Acquire<B>,
    sleep: Sleep<B>,
}

impl<B: BlockingBackend> Future for Timeout<B> {
    /// Whether the permit was acquired.
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let this = self.get_mut();
        let acquired = Pin::new(&mut this.acquire).poll(cx).is_ready();
        if acquired && this.fault != Fault::LateGrantLost {
            return Poll::Ready(true);
        }
        match (acquired, Pin::new(&mut this.sleep).poll(cx)) {
            (_, Poll::Ready(())) => Poll::Ready(false),
            (true, Poll::Pending) => Poll::Ready(true),
            (false, Poll::Pending) => Poll::Pending,
        }
    }
}

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
    type Ret = Ret;
    type Spec = TimeoutSpec;
    type Actor = Arc<Shared<B>>;

    fn spec(&self) -> TimeoutSpec {
        TimeoutSpec
    }

    /// Returns four roles: one adds a permit, one moves the clock, one waits no longer
    /// than a tick, and one waits for what is left.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |name, symmetry, ops| Role {
            name,
            symmetry,
            ops,
        };
        let timeout = Op::TimeoutAt(1, Pool::Semaphore);
        let acquire = Op::Wait(Pool::Semaphore);
        vec![
            role(
                "releaser",
                0,
                vec![
                    Operation::immediate("add_permit", Op::AddPermit),
                    Operation::immediate("available_permits", Op::Available),
                ],
            ),
            role(
                "clock",
                1,
                vec![Operation::immediate("advance", Op::Advance(1))],
            ),
            role(
                "waiter",
                2,
                vec![Operation::future("timeout_acquire", timeout)],
            ),
            role(
                "waiter",
                3,
                vec![Operation::future("acquire", acquire).alias()],
            ),
        ]
    }

    /// Allows each role its operation once, and cancels only timeouts.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let waits = role.ops[next.op].op == Op::Wait(Pool::Semaphore);
        before.last().is_none_or(|last| last.op < next.op)
            && (!waits || next.polling == Polling::Await)
    }

    fn actors(&self, _: usize) -> Vec<Arc<Shared<B>>> {
        let permits = match self.fault {
            Fault::GrantKept => permits::Fault::GrantKept,
            Fault::None | Fault::LateGrantLost => permits::Fault::None,
        };
        let shared = Arc::new(Shared {
            fault: self.fault,
            permits: Permits::new(permits, 0),
            timers: Timers::new(timers::Fault::None),
        });
        vec![shared; 4]
    }

    fn start<'a>(
        &self,
        shared: &'a mut Arc<Shared<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Shared {
            fault,
            permits,
            timers,
        } = &**shared;
        Started::Done(match *call.op {
            Op::TimeoutAt(deadline, _) => {
                let timeout = Timeout {
                    fault: *fault,
                    acquire: permits.acquire(1),
                    sleep: timers.sleep_until(deadline),
                };
                return Started::future(async {
                    match timeout.await {
                        true => Ret::Granted,
                        false => Ret::Elapsed,
                    }
                });
            }
            Op::Wait(_) => {
                let acquire = permits.acquire(1);
                return Started::future(async {
                    acquire.await;
                    Ret::Granted
                });
            }
            Op::AddPermit => {
                permits.release(1);
                Ret::Unit
            }
            Op::Available => Ret::Number(permits.available()),
            Op::Advance(by) => {
                timers.advance(by);
                timers.fire();
                Ret::Unit
            }
            _ => unreachable!("no role has it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
