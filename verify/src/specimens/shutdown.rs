//! A shutdown with a fault that can be chosen.
//!
//! It stands on a token and a gate, which are correct, so that each fault is one of the
//! order in which it uses them. With [`Fault::None`] it is correct.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille::CancellationToken;
use reveille::backend::BlockingBackend;
use reveille::raw::{Gate, GateWait};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::asymmetric;
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::gate::{self, Ret};
use crate::subjects::shutdown::{self as real, Op, ShutdownSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("shutdown", 4, Fault::ALL, Specimen)
}

/// What is wrong with the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A wait waits for the guards first, and then for the request. A guard can be
    /// created in between.
    GuardsBeforeRequest,
    /// A wait checks once whether there are guards, and waits for the request only.
    GuardsCheckedOnce,
    /// A guard counts once its task looks for the request, not from its creation.
    CountedLate,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 4] = [
        ("plain", Self::None, None),
        (
            "guards-before-request",
            Self::GuardsBeforeRequest,
            Some(Class::WrongResult),
        ),
        (
            "guards-checked-once",
            Self::GuardsCheckedOnce,
            Some(Class::WrongResult),
        ),
        ("counted-late", Self::CountedLate, Some(Class::WrongResult)),
    ];
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

/// What a participant holds.
pub(crate) struct Task<B: BlockingBackend> {
    token: CancellationToken<B>,
    guards: Arc<Gate<B>>,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = ShutdownSpec;
    type Actor = Task<B>;

    fn spec(&self) -> ShutdownSpec {
        ShutdownSpec
    }

    /// Returns two roles: a task that waits, and one that requests and has a guard.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(), 0, |op| *op == Op::Wait),
            asymmetric(real::role(), 1, |op| {
                matches!(op, Op::Request | Op::Guard | Op::Leave | Op::Guards)
            }),
        ]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        (role.symmetry == 1 || before.is_empty()) && real::can_follow(role, before, next)
    }

    fn actors(&self, _: usize) -> Vec<Task<B>> {
        let token = CancellationToken::new_in();
        let guards = Arc::new(Gate::new_in(0));
        let task = |_| Task {
            token: token.clone(),
            guards: guards.clone(),
        };
        (0..2).map(task).collect()
    }

    fn start<'a>(
        &self,
        task: &'a mut Task<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Task { token, guards } = task;
        let fault = self.fault;
        match call.op {
            Op::Wait => {
                return gate::waits(async move {
                    if fault == Fault::GuardsBeforeRequest {
                        GateWait::new(&**guards).await;
                    }
                    token.cancelled().await;
                    match fault {
                        Fault::GuardsBeforeRequest => {}
                        Fault::GuardsCheckedOnce => _ = guards.is_open(),
                        _ => GateWait::new(&**guards).await,
                    }
                });
            }
            Op::Requested | Op::RequestedByGuard => return gate::waits(token.cancelled()),
            Op::Request => token.cancel(),
            Op::Guard if fault == Fault::CountedLate => {}
            Op::Guard => assert!(guards.add(1), "there are few guards"),
            Op::Leave => guards.subtract(1),
            Op::IsRequested => return Started::Done(Ret::Is(token.is_cancelled())),
            Op::Guards => return Started::Done(Ret::Count(guards.count())),
        }
        Started::Done(Ret::Done)
    }
}
