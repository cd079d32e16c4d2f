//! Subjects: a primitive under test, and how its operations are started.

pub(crate) mod closures;
pub(crate) mod plan;
pub(crate) mod role;
pub(crate) mod spec;
pub(crate) mod step;
pub(crate) mod validate;
pub(crate) mod value;
pub(crate) mod verdict;

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;

use reveille::backend::{BlockingBackend, Native};
use reveille::protocol::Bits;

use crate::subject::plan::{Bound, Mode, Plan, Profile};
use crate::subject::role::{OperationKind, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;

/// A primitive under test.
///
/// A *participant* is one thread of a program. Its *actor* is what it holds of the
/// primitive: a half of a channel, or a shared reference and the guards it has
/// acquired. An operation borrows the actor for as long as it lasts.
pub trait Subject: Send + Sync + Sized + 'static {
    /// An operation.
    type Op: Clone + Debug + Send + Sync + 'static;

    /// What an operation returns.
    type Ret: Clone + Eq + Hash + Debug + Send + 'static;

    /// The meaning of the operations.
    type Spec: Spec<Op = Self::Op, Ret = Self::Ret>;

    /// What one participant holds.
    type Actor: Send + 'static;

    /// Returns the specification.
    fn spec(&self) -> Self::Spec;

    /// Returns the specification for programs of this many participants. By default it
    /// is the same for any number.
    fn spec_for(&self, participants: usize) -> Self::Spec {
        let _ = participants;
        self.spec()
    }

    /// Returns the roles for this many participants, and the operations of each. A
    /// subject with a fixed number of roles returns these for any number.
    fn roles(&self, participants: usize) -> Vec<Role<Self::Op>>;

    /// Creates a primitive, and returns what each participant holds of it.
    fn actors(&self, participants: usize) -> Vec<Self::Actor>;

    /// Starts an operation.
    fn start<'a>(
        &self,
        actor: &'a mut Self::Actor,
        call: Call<'_, Self::Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Self::Ret>;

    /// Returns `true` if a participant may do `next` after `before`. A subject excludes
    /// steps that are a misuse, or have no effect.
    fn follows(&self, role: &Role<Self::Op>, before: &[Step], next: Step) -> bool {
        let _ = (role, before, next);
        true
    }

    /// Describes the bits of the primitive's lock for people.
    fn describe(&self, bits: Bits) -> String {
        format!("{:#b}", bits.get())
    }
}

/// A shared subject is the same subject.
impl<S: Subject> Subject for Arc<S> {
    type Op = S::Op;
    type Ret = S::Ret;
    type Spec = S::Spec;
    type Actor = S::Actor;

    fn spec(&self) -> S::Spec {
        (**self).spec()
    }

    fn spec_for(&self, participants: usize) -> S::Spec {
        (**self).spec_for(participants)
    }

    fn roles(&self, participants: usize) -> Vec<Role<S::Op>> {
        (**self).roles(participants)
    }

    fn actors(&self, participants: usize) -> Vec<S::Actor> {
        (**self).actors(participants)
    }

    fn start<'a>(
        &self,
        actor: &'a mut S::Actor,
        call: Call<'_, S::Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, S::Ret> {
        (**self).start(actor, call, value)
    }

    fn follows(&self, role: &Role<S::Op>, before: &[Step], next: Step) -> bool {
        (**self).follows(role, before, next)
    }

    fn describe(&self, bits: Bits) -> String {
        (**self).describe(bits)
    }
}

/// A subject that is generic over its backend, which the engines run.
pub trait GenericSubject: Send + Sync + 'static {
    /// The subject over one backend.
    type On<B: BlockingBackend>: Subject;

    /// Returns the subject over a backend.
    fn on<B: BlockingBackend>(&self) -> Self::On<B>;

    /// Returns the plans of a mode in a profile. There may be none, if the mode does
    /// not apply to the subject, or more than one, if a single bound is not enough.
    ///
    /// By default they are [`Plan::of`] for two participants, and [`Plan::of_three`] if
    /// the subject has [roles](Subject::roles) for three. A fault that needs more than
    /// these bounds is not found.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        default_plans(&self.on::<Native>(), mode, profile)
    }
}

/// Returns the plans of a subject that declares none, for two participants and for
/// three. If it has futures, each is run without wakers that panic and then with them,
/// so a failure that only these cause hides no other.
pub(crate) fn default_plans(subject: &impl Subject, mode: Mode, profile: Profile) -> Vec<Plan> {
    let takes_three = subject.roles(3).len() == 3;
    let roles = subject.roles(2);
    let mut operations = roles.iter().flat_map(|role| &role.ops);
    let has_futures = operations.any(|operation| operation.kind == OperationKind::Async);
    let of_three = takes_three.then(|| Plan::of_three(mode, profile));
    let plans = [Some(Plan::of(mode, profile)), of_three.flatten()];
    let mut all = Vec::new();
    for plan in plans.into_iter().flatten() {
        let with = |panics, only_panics| {
            let bound = Bound {
                panics,
                only_panics,
                ..plan.bound
            };
            Plan { bound, ..plan }
        };
        all.push(with(false, false));
        if has_futures && plan.bound.panics && plan.bound.non_default > 0 {
            all.push(with(true, true));
        }
    }
    all
}

/// An operation that has been started.
pub enum Started<'a, Ret> {
    /// The operation has returned.
    Done(Ret),
    /// The operation is this future.
    Future(Pin<Box<dyn Future<Output = Ret> + Send + 'a>>),
}

impl<'a, Ret> Started<'a, Ret> {
    /// Creates an operation that is a future.
    pub fn future(future: impl Future<Output = Ret> + Send + 'a) -> Self {
        Self::Future(Box::pin(future))
    }
}

impl<Ret: Debug> Debug for Started<'_, Ret> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done(ret) => f.debug_tuple("Done").field(ret).finish(),
            Self::Future(_) => f.write_str("Future(..)"),
        }
    }
}
