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
///
/// # Examples
///
/// The gate of the [documentation of the crate](crate#a-primitive-of-ones-own), for any
/// backend:
///
/// ```
/// use std::future::poll_fn;
/// use std::marker::PhantomData;
/// use std::sync::Arc;
/// use std::task::{Context, Poll};
///
/// use reveille::backend::BlockingBackend;
/// use reveille::protocol::{Bits, StateLock, WakerSlot};
/// use reveille_verify::{
///     Call, Class, GenericSubject, Mode, Operation, Plan, Profile, Role, Spec, Started, Subject, Value,
///     Verdict, check, explore, replay,
/// };
///
/// const OPEN: Bits = Bits::new(1);
///
/// struct Gate<B: BlockingBackend> {
///     lock: StateLock<WakerSlot, B>,
///     forgetful: bool,
/// }
///
/// impl<B: BlockingBackend> Gate<B> {
///     fn open(&self) {
///         self.lock.with(|section| {
///             section.bits.insert(OPEN);
///             section.wakes.wake(section.state);
///         });
///     }
///
///     fn poll_opened(&self, cx: &mut Context<'_>) -> Poll<()> {
///         if self.lock.load().contains(OPEN) {
///             return Poll::Ready(());
///         }
///         self.lock.poll(cx, true, |section, registration| {
///             // The gate may have been opened since.
///             if section.bits.contains(OPEN) && !self.forgetful {
///                 return Ok(());
///             }
///             Err(registration.register(section.state))
///         })
///     }
/// }
///
/// // The operations.
/// #[derive(Clone, Debug)]
/// enum Op {
///     Open,
///     Opened,
/// }
///
/// // What the operations mean, one at a time.
/// struct GateSpec;
///
/// impl Spec for GateSpec {
///     type Op = Op;
///     type Ret = ();
///     type State = bool; // whether it is open
///
///     fn initial(&self) -> bool {
///         false
///     }
///
///     fn step(&self, &open: &bool, call: Call<'_, Op>) -> Vec<(bool, ())> {
///         match call.op {
///             Op::Open => vec![(true, ())],
///             Op::Opened if open => vec![(true, ())],
///             Op::Opened => vec![], // the task waits
///         }
///     }
/// }
///
/// // How the operations are started on the real gate.
/// struct GateOn<B> {
///     forgetful: bool,
///     backend: PhantomData<fn() -> B>,
/// }
///
/// impl<B: BlockingBackend> Subject for GateOn<B> {
///     type Op = Op;
///     type Ret = ();
///     type Spec = GateSpec;
///     type Actor = Arc<Gate<B>>;
///
///     fn spec(&self) -> GateSpec {
///         GateSpec
///     }
///
///     fn roles(&self, _: usize) -> Vec<Role<Op>> {
///         let open = vec![Operation::immediate("open", Op::Open)];
///         // A `poll_fn` leaves its waker in the gate when it is dropped.
///         let opened = Operation::future("opened", Op::Opened)
///             .keeps_waker("until the gate opens");
///         vec![
///             Role { name: "porter", ops: open, symmetry: 0 },
///             Role { name: "guest", ops: vec![opened], symmetry: 1 },
///         ]
///     }
///
///     fn actors(&self, participants: usize) -> Vec<Arc<Gate<B>>> {
///         let gate = Arc::new(Gate {
///             lock: StateLock::new_in(Bits::EMPTY, WakerSlot::new()),
///             forgetful: self.forgetful,
///         });
///         vec![gate; participants]
///     }
///
///     fn start<'a>(
///         &self,
///         gate: &'a mut Arc<Gate<B>>,
///         call: Call<'_, Op>,
///         _: &dyn Fn() -> Value,
///     ) -> Started<'a, ()> {
///         match call.op {
///             Op::Open => Started::Done(gate.open()),
///             Op::Opened => Started::future(poll_fn(|cx| gate.poll_opened(cx))),
///         }
///     }
/// }
///
/// // The same over every backend, so that every engine can run it.
/// struct Gates {
///     forgetful: bool,
/// }
///
/// impl GenericSubject for Gates {
///     type On<B: BlockingBackend> = GateOn<B>;
///
///     fn on<B: BlockingBackend>(&self) -> GateOn<B> {
///         GateOn { forgetful: self.forgetful, backend: PhantomData }
///     }
/// }
///
/// // Check it under every engine, in a test.
/// for report in check(&Gates { forgetful: false }, "gate", Profile::Quick) {
///     assert!(report.holds(), "{report}");
/// }
///
/// // Explore the broken gate under one engine, and show what the failure looks like.
/// let broken = Gates { forgetful: true };
/// let plan = Plan::of(Mode::Exhaustive, Profile::Quick);
/// let report = explore(&broken, "forgetful-gate", Mode::Exhaustive, &plan);
/// let failure = &report.failures[0];
/// assert_eq!(failure.class, Class::LostWakeUp);
/// assert_eq!(failure.program, "open/opened");
/// println!("{failure}");
///
/// // The token runs exactly that execution again.
/// let again = replay(&broken, &failure.token).unwrap();
/// assert_eq!(again.table, failure.table);
/// ```
pub trait GenericSubject: Send + Sync + 'static {
    /// The subject over one backend.
    type On<B: BlockingBackend>: Subject;

    /// Returns the subject over a backend.
    fn on<B: BlockingBackend>(&self) -> Self::On<B>;

    /// Returns `true` if the subject is over [`Native`] whatever its backend is. Its
    /// sections are then observed through a hook, and not by the backend. By default it
    /// is not.
    fn is_native(&self) -> bool {
        false
    }

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
