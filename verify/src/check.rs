//! The verifier as functions, for tests of other primitives.

use std::sync::Arc;

use reveille::backend::BlockingBackend;

use crate::report::{Counterexample, Report};
use crate::run;
use crate::run::token::Token;
use crate::subject::plan::{Engine, Mode, Plan, Profile};
use crate::subject::{GenericSubject, Subject, default_plans};

/// Runs every engine over a primitive that is generic over its backend, and returns a
/// report for each run.
///
/// `name` appears in the reports and in the replay tokens. [`GenericSubject::plans`]
/// decides the bounds, which the reports state.
///
/// # Panics
///
/// Panics if `name` is empty, or has a character that divides replay tokens: a colon,
/// a quotation mark or white space. Panics with a sentence that says what is wrong if
/// the subject contradicts itself: no roles, a number of actors other than that of the
/// roles, `actors` that panics, roles of one symmetry class with different operations,
/// an operation whose name is empty, is that of another of its role, or has one of
/// these characters, a slash, a comma or a dot.
///
/// # Examples
///
/// At [`GenericSubject`].
#[must_use]
pub fn check<F: GenericSubject>(subject: &F, name: &str, profile: Profile) -> Vec<Report> {
    Mode::ALL
        .into_iter()
        .flat_map(|mode| {
            let plans = subject.plans(mode, profile).into_iter();
            plans.map(move |plan| explore(subject, name, mode, &plan))
        })
        .collect()
}

/// Runs a primitive in one mode, within the bounds of a plan.
///
/// # Panics
///
/// Panics as [`check`] does.
///
/// # Examples
///
/// At [`GenericSubject`].
#[must_use]
pub fn explore<F: GenericSubject>(subject: &F, name: &str, mode: Mode, plan: &Plan) -> Report {
    assert_is_name(name);
    run::run_each_class(subject, name, mode, plan)
}

/// Runs a failing execution again, from the token of its [`Counterexample`].
///
/// # Errors
///
/// Returns an error, as a sentence, if the token cannot be run or its execution did not
/// fail.
///
/// # Examples
///
/// At [`GenericSubject`].
pub fn replay<F: GenericSubject>(subject: &F, token: &str) -> Result<Counterexample, String> {
    run::replay(subject, &Token::parse(token)?)
}

/// Runs a primitive of any crate that is not generic over a backend.
///
/// Nothing is instrumented, so two engines apply. `sequential` runs the operations in
/// every order, but none of them beside another. `stress` runs them on real threads.
/// Operations that block their thread are left out.
///
/// # Panics
///
/// Panics as [`check`] does.
///
/// # Examples
///
/// A mailbox that keeps the first waker it was polled with:
///
/// ```
/// use std::future::poll_fn;
/// use std::sync::{Arc, Mutex};
/// use std::task::{Poll, Waker};
///
/// use reveille_verify::{
///     Call, Class, Operation, Profile, Role, Spec, Started, Subject, Value, check_foreign,
/// };
///
/// #[derive(Default)]
/// struct Mailbox {
///     full: bool,
///     waiting: Option<Waker>,
/// }
///
/// #[derive(Clone, Debug)]
/// enum Op {
///     Put,
///     Take,
/// }
///
/// struct Mail;
///
/// impl Subject for Mail {
///     type Op = Op;
///     type Ret = ();
///     type Spec = MailSpec;
///     type Actor = Arc<Mutex<Mailbox>>;
///
///     fn spec(&self) -> MailSpec {
///         MailSpec
///     }
///
///     fn roles(&self, _: usize) -> Vec<Role<Op>> {
///         let put = vec![Operation::immediate("put", Op::Put)];
///         // A `poll_fn` leaves its waker in the mailbox when it is dropped.
///         let take = Operation::future("take", Op::Take).keeps_waker("until a put");
///         vec![
///             Role { name: "sender", ops: put, symmetry: 0 },
///             Role { name: "receiver", ops: vec![take], symmetry: 1 },
///         ]
///     }
///
///     fn actors(&self, participants: usize) -> Vec<Self::Actor> {
///         vec![Arc::default(); participants]
///     }
///
///     fn start<'a>(
///         &self,
///         mailbox: &'a mut Self::Actor,
///         call: Call<'_, Op>,
///         _: &dyn Fn() -> Value,
///     ) -> Started<'a, ()> {
///         match call.op {
///             Op::Put => {
///                 let mut mailbox = mailbox.lock().unwrap();
///                 mailbox.full = true;
///                 let waiting = mailbox.waiting.take();
///                 drop(mailbox);
///                 Started::Done(waiting.into_iter().for_each(Waker::wake))
///             }
///             Op::Take => Started::future(poll_fn(|cx| {
///                 let waker = cx.waker().clone();
///                 let mut mailbox = mailbox.lock().unwrap();
///                 if std::mem::take(&mut mailbox.full) {
///                     return Poll::Ready(());
///                 }
///                 mailbox.waiting.get_or_insert(waker); // here
///                 Poll::Pending
///             })),
///         }
///     }
/// }
///
/// /// Whether the mailbox is full.
/// struct MailSpec;
///
/// impl Spec for MailSpec {
///     type Op = Op;
///     type Ret = ();
///     type State = bool;
///
///     fn initial(&self) -> bool {
///         false
///     }
///
///     fn step(&self, &full: &bool, call: Call<'_, Op>) -> Vec<(bool, ())> {
///         match call.op {
///             Op::Put => vec![(true, ())],
///             Op::Take if full => vec![(false, ())],
///             Op::Take => vec![], // waits
///         }
///     }
/// }
///
/// let reports = check_foreign(Mail, "mailbox", Profile::Quick);
/// let failure = &reports[0].failures[0];
/// assert_eq!(failure.class, Class::StaleWaker);
/// assert_eq!(failure.program, "put/take.repoll");
/// ```
#[must_use]
pub fn check_foreign<S: Subject>(subject: S, name: &str, profile: Profile) -> Vec<Report> {
    check(&Foreign(Arc::new(subject)), name, profile)
}

/// Runs a primitive that is not generic over a backend in one mode, within the bounds
/// of a plan. Only [`Mode::Steps`] and [`Mode::Threads`] need nothing instrumented.
/// Operations that block their thread are left out.
///
/// # Panics
///
/// Panics as [`check`] does, and if the mode is another.
#[must_use]
pub fn explore_foreign<S: Subject>(subject: S, name: &str, mode: Mode, plan: &Plan) -> Report {
    assert!(
        matches!(mode, Mode::Steps | Mode::Threads),
        "`{}` explores the backend of a primitive, and this one has none: run `steps` or `threads`",
        mode.name()
    );
    let mut plan = *plan;
    plan.bound.blocking = false;
    explore(&Foreign(Arc::new(subject)), name, mode, &plan)
}

/// Runs an execution again that [`check_foreign`] or [`explore_foreign`] found to fail.
///
/// # Errors
///
/// Returns an error, as a sentence, if the token cannot be run or its execution did not
/// fail.
pub fn replay_foreign<S: Subject>(subject: S, token: &str) -> Result<Counterexample, String> {
    replay(&Foreign(Arc::new(subject)), token)
}

/// Runs a primitive that is made of Reveille's primitives, or of its
/// [`StateLock`](reveille::protocol::StateLock), over the default backend.
///
/// The sections of the native lock are observed, so they are interleaved in every order
/// by the engine `fibers`, and the primitive need not be generic over a backend. What is
/// shared by other means, as an atomic or a `std::sync::Mutex`, is not observed: its
/// accesses are not interleaved, and operations that use it are declared as
/// [spanning](crate::Operation::spanning).
/// Operations that block their thread are left out. `loom` does not apply.
///
/// A run of `fibers` that has seen no section does not [hold](Report::holds).
///
/// # Panics
///
/// Panics as [`check`] does.
///
/// # Examples
///
/// In the [documentation of the crate](crate#a-primitive-of-ones-own).
#[must_use]
pub fn check_native<S: Subject>(subject: S, name: &str, profile: Profile) -> Vec<Report> {
    check(&OverNative(Arc::new(subject)), name, profile)
}

/// Runs a primitive as [`check_native`] does, in one mode, within the bounds of a plan.
///
/// # Panics
///
/// Panics as [`check`] does, and if the mode is one of loom.
#[must_use]
pub fn explore_native<S: Subject>(subject: S, name: &str, mode: Mode, plan: &Plan) -> Report {
    assert!(
        mode.engine() != Engine::Loom,
        "`{}` replaces the lock, and this subject has that of the default backend: make it \
         generic over its backend, and run `explore`",
        mode.name()
    );
    let mut plan = *plan;
    plan.bound.blocking = false;
    explore(&OverNative(Arc::new(subject)), name, mode, &plan)
}

/// Runs an execution again that [`check_native`] or [`explore_native`] found to fail.
///
/// # Errors
///
/// Returns an error, as a sentence, if the token cannot be run or its execution did not
/// fail.
pub fn replay_native<S: Subject>(subject: S, token: &str) -> Result<Counterexample, String> {
    replay(&OverNative(Arc::new(subject)), token)
}

/// A subject over the native lock, whatever the backend.
pub(crate) struct OverNative<S>(pub(crate) Arc<S>);

impl<S: Subject> GenericSubject for OverNative<S> {
    type On<B: BlockingBackend> = Arc<S>;

    fn on<B: BlockingBackend>(&self) -> Arc<S> {
        self.0.clone()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        match mode.engine() {
            Engine::Loom => Vec::new(),
            _ => without_blocking(&self.0, mode, profile),
        }
    }
}

/// Returns the default plans, without operations that block their thread.
fn without_blocking(subject: &impl Subject, mode: Mode, profile: Profile) -> Vec<Plan> {
    let mut plans = default_plans(subject, mode, profile);
    for plan in &mut plans {
        plan.bound.blocking = false;
    }
    plans
}

/// A subject that is the same over every backend.
pub(crate) struct Foreign<S>(pub(crate) Arc<S>);

impl<S: Subject> GenericSubject for Foreign<S> {
    type On<B: BlockingBackend> = Arc<S>;

    fn on<B: BlockingBackend>(&self) -> Arc<S> {
        self.0.clone()
    }

    /// A thread that blocks in the subject is not seen, so blocking operations are left
    /// out.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        match mode {
            Mode::Steps | Mode::Threads => without_blocking(&self.0, mode, profile),
            _ => Vec::new(),
        }
    }
}

/// Checks that a name does not divide replay tokens.
pub(crate) fn assert_is_name(name: &str) {
    let divides = |c: char| c == ':' || c == '\'' || c.is_whitespace();
    assert!(
        !name.is_empty() && !name.contains(divides),
        "`{name}` cannot be the name of a subject: replay tokens are divided by colons, \
         quotation marks and white space"
    );
}
