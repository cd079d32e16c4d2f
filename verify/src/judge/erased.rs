//! Subjects whose types have been erased. Programs are enumerated over them, and the
//! engines run them.
//!
//! There are many subjects, each over every backend, and the engines do the same with
//! all of them. The engines meet a subject only through [`AnySubject`], so they are
//! compiled once and not once for each subject. An operation is known by its index in
//! its role, and actors and results are boxed. The code of this file is compiled for
//! every subject and backend, so it only recovers the types.

use std::any::Any;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::protocol::Bits;

use crate::judge::{self, Invocation};
use crate::program::Alphabet;
use crate::subject::plan::Order;
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Violation;
use crate::subject::{Started, Subject};

/// A [`Subject`] with its roles for a number of participants, as an object.
pub(crate) trait AnySubject: Alphabet + Send + Sync {
    /// Returns [`Subject::actors`], one for each role.
    fn actors(&self) -> Vec<Actor>;

    /// Starts an operation by [`Subject::start`]. The actor must be one of this
    /// subject.
    fn start<'a>(
        &self,
        actor: &'a mut (dyn Any + Send),
        call: Call<'_, usize>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, BoxedRet>;

    /// Judges a history by [`Subject::spec`].
    fn judge(&self, history: History<'_>, order: Order) -> Result<(), Violation>;

    /// Describes bits by [`Subject::describe`].
    fn describe(&self, bits: Bits) -> String;

    /// Returns `true` if its sections are those of the native lock, which a hook reports.
    fn is_native(&self) -> bool;
}

/// What a participant holds.
pub(crate) type Actor = Box<dyn Any + Send>;

/// What an operation returned.
pub(crate) type BoxedRet = Box<dyn AnyRet>;

/// What is needed of a result of any type.
pub(crate) trait AnyRet: Any + Debug + Send {}

impl<Ret: Any + Debug + Send> AnyRet for Ret {}

/// The operations of each participant, with their results.
pub(crate) type History<'a> = Vec<Vec<Invocation<'a, usize, BoxedRet>>>;

/// Returns the subject for this many participants, with its types erased.
pub(crate) fn erase<S: Subject>(subject: S, participants: usize) -> Arc<dyn AnySubject> {
    Arc::new(Known::new(subject, participants, false))
}

/// Erases the types of a subject whose sections are those of the native lock.
pub(crate) fn erase_native<S: Subject>(subject: S, participants: usize) -> Arc<dyn AnySubject> {
    Arc::new(Known::new(subject, participants, true))
}

/// Returns a role whose operations have no type.
fn bare<Op>(role: &Role<Op>) -> Role<()> {
    Role {
        name: role.name,
        ops: role.ops.iter().map(Operation::erased).collect(),
        symmetry: role.symmetry,
    }
}

struct Known<S: Subject> {
    subject: S,
    roles: Vec<Role<S::Op>>,
    bare: Vec<Role<()>>,
    native: bool,
}

impl<S: Subject> Known<S> {
    fn new(subject: S, participants: usize, native: bool) -> Self {
        let roles = subject.roles(participants);
        let bare = roles.iter().map(bare).collect();
        Self {
            subject,
            roles,
            bare,
            native,
        }
    }
}

impl<S: Subject> Alphabet for Known<S> {
    fn roles(&self) -> &[Role<()>] {
        &self.bare
    }

    fn follows(&self, participant_id: usize, before: &[Step], next: Step) -> bool {
        self.subject
            .follows(&self.roles[participant_id], before, next)
    }
}

impl<S: Subject> AnySubject for Known<S> {
    fn actors(&self) -> Vec<Actor> {
        let actors = self.subject.actors(self.roles.len());
        actors
            .into_iter()
            .map(|actor| Box::new(actor) as Actor)
            .collect()
    }

    fn start<'a>(
        &self,
        actor: &'a mut (dyn Any + Send),
        call: Call<'_, usize>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, BoxedRet> {
        let actor = actor.downcast_mut().expect("the actor is this subject's");
        let call = known_call(&self.roles, call);
        erase_ret(self.subject.start(actor, call, value))
    }

    fn judge(&self, history: History<'_>, order: Order) -> Result<(), Violation> {
        let spec = self.subject.spec_for(self.roles.len());
        judge_known(&spec, &self.roles, history, order)
    }

    fn describe(&self, bits: Bits) -> String {
        self.subject.describe(bits)
    }

    fn is_native(&self) -> bool {
        self.native
    }
}

// What follows is generic only over the types of a specification, so it is compiled
// once for all the backends of a subject.

fn known_call<'a, Op>(roles: &'a [Role<Op>], call: Call<'_, usize>) -> Call<'a, Op> {
    let Call {
        participant,
        index,
        op,
    } = call;
    Call {
        participant,
        index,
        op: &roles[participant].ops[*op].op,
    }
}

fn erase_ret<Ret: AnyRet>(started: Started<'_, Ret>) -> Started<'_, BoxedRet> {
    match started {
        Started::Done(ret) => Started::Done(Box::new(ret)),
        Started::Future(future) => Started::future(ErasedFuture(future)),
    }
}

/// A future whose result is boxed. An `async` block that awaits the inner future would
/// drop it when it is ready. Here the participant decides when to drop it.
struct ErasedFuture<'a, Ret>(Pin<Box<dyn Future<Output = Ret> + Send + 'a>>);

impl<Ret: AnyRet> Future for ErasedFuture<'_, Ret> {
    type Output = BoxedRet;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BoxedRet> {
        let poll = self.0.as_mut().poll(cx);
        poll.map(|ret| Box::new(ret) as BoxedRet)
    }
}

fn judge_known<S: Spec<Ret: 'static>>(
    spec: &S,
    roles: &[Role<S::Op>],
    history: History<'_>,
    order: Order,
) -> Result<(), Violation> {
    let known = |ret: BoxedRet| -> S::Ret {
        let ret: Box<dyn Any> = ret;
        *ret.downcast().expect("the result is this subject's")
    };
    let history: Vec<Vec<_>> = history
        .into_iter()
        .zip(roles)
        .map(|(operations, role)| {
            operations
                .into_iter()
                .map(|operation| Invocation {
                    op: &role.ops[*operation.op].op,
                    name: operation.name,
                    waits: operation.waits,
                    record: operation.record,
                    ret: operation.ret.map(known),
                })
                .collect()
        })
        .collect();
    judge::judge(spec, &history, order)
}
