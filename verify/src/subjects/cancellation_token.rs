//! `reveille::CancellationToken`, with every public operation.

use std::marker::PhantomData;

use reveille::CancellationToken;
use reveille::backend::BlockingBackend;

use crate::run::entry::{
    Absent::{Constant, Creates, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::{main, queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "cancellation-token",
        "reveille::CancellationToken: a token, its child, and descendants that come and go",
        Tokens,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "cancellation_token.rs",
    absent: &[
        ("drop_guard_ref", SameAs("drop_guard")),
        ("new", Creates),
        ("new_in", Creates),
        ("run_until_cancelled_owned", SameAs("run_until_cancelled")),
        ("token", Constant),
    ],
}]);

/// `CancellationToken` over every backend.
pub(crate) struct Tokens;

impl GenericSubject for Tokens {
    type On<B: BlockingBackend> = TokensOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        TokensOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        match (mode, profile) {
            // An operation has up to six sections.
            (Mode::Exhaustive, Profile::Quick) => plans[1] = main(plans[1]),
            (Mode::Accesses, Profile::Quick) => plans[0].preemptions = Some(1),
            _ => {}
        }
        plans
    }
}

pub(crate) struct TokensOn<B>(PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Waits for the child.
    Cancelled,
    /// Waits for the root.
    CancelledRoot,
    CancelledOwned,
    RunUntilCancelled,
    /// Creates a child of the root, and waits for it.
    ChildToken,
    /// Creates a child of the child, and a child of that. Drops the former, and waits
    /// for the latter.
    Orphan,
    Cancel,
    CancelRoot,
    /// Cancels the child by a guard.
    DropGuard,
    Disarm,
    IsCancelled,
    RootIsCancelled,
}

/// What a participant holds: clones of the same two tokens.
pub(crate) struct Pair<B: BlockingBackend> {
    root: CancellationToken<B>,
    child: CancellationToken<B>,
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("cancelled", Op::Cancelled),
            Operation::immediate("cancel_root", Op::CancelRoot),
            Operation::immediate("cancel", Op::Cancel),
            Operation::future("child_token", Op::ChildToken).alias(),
            Operation::future("orphan", Op::Orphan).alias(),
            Operation::future("cancelled_root", Op::CancelledRoot).alias(),
            Operation::future("cancelled_owned", Op::CancelledOwned).alias(),
            Operation::future("run_until_cancelled", Op::RunUntilCancelled).alias(),
            Operation::immediate("is_cancelled", Op::IsCancelled).alias(),
            Operation::immediate("root_is_cancelled", Op::RootIsCancelled).alias(),
            Operation::immediate("drop_guard", Op::DropGuard).alias(),
            Operation::immediate("disarm", Op::Disarm).alias(),
        ],
    }
}

impl<B: BlockingBackend> Subject for TokensOn<B> {
    type Op = Op;
    /// Whether the token is cancelled, if the operation returns that.
    type Ret = Option<bool>;
    type Spec = TokenSpec;
    type Actor = Pair<B>;

    fn spec(&self) -> TokenSpec {
        TokenSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Pair<B>> {
        let root = CancellationToken::new_in();
        let child = root.child_token();
        let pair = || Pair {
            root: root.clone(),
            child: child.clone(),
        };
        (0..participants).map(|_| pair()).collect()
    }

    fn start<'a>(
        &self,
        pair: &'a mut Pair<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<bool>> {
        let Pair { root, child } = pair;
        match call.op {
            Op::Cancelled => return waits(child.cancelled()),
            Op::CancelledRoot => return waits(root.cancelled()),
            Op::CancelledOwned => return waits(child.clone().cancelled_owned()),
            Op::RunUntilCancelled => {
                let runs = child.run_until_cancelled(std::future::pending::<()>());
                return Started::future(async {
                    runs.await.map(|()| unreachable!("it is pending"))
                });
            }
            Op::ChildToken => return waits(root.child_token().cancelled_owned()),
            Op::Orphan => {
                let orphan = child.child_token().child_token();
                return waits(orphan.cancelled_owned());
            }
            Op::Cancel => child.cancel(),
            Op::CancelRoot => root.cancel(),
            Op::DropGuard => drop(child.clone().drop_guard()),
            Op::Disarm => drop(child.clone().drop_guard().disarm()),
            Op::IsCancelled => return Started::Done(Some(child.is_cancelled())),
            Op::RootIsCancelled => return Started::Done(Some(root.is_cancelled())),
        }
        Started::Done(None)
    }
}

fn waits<'a>(wait: impl Future<Output = ()> + Send + 'a) -> Started<'a, Option<bool>> {
    Started::future(async {
        wait.await;
        None
    })
}

/// What the operations of the tokens mean, one at a time.
pub(crate) struct TokenSpec;

/// Which of the two tokens have been cancelled: neither, the child, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cancelled {
    Neither,
    Child,
    Both,
}

impl Spec for TokenSpec {
    type Op = Op;
    type Ret = Option<bool>;
    type State = Cancelled;

    fn initial(&self) -> Cancelled {
        Cancelled::Neither
    }

    fn cancel(&self, state: &Cancelled, call: Call<'_, Op>) -> Vec<Cancelled> {
        match call.op {
            Op::Cancel | Op::CancelRoot | Op::DropGuard => self.effects(state, call),
            _ => vec![*state],
        }
    }

    fn step(&self, state: &Cancelled, call: Call<'_, Op>) -> Vec<(Cancelled, Option<bool>)> {
        let child = *state >= Cancelled::Child;
        let root = *state == Cancelled::Both;
        match call.op {
            Op::CancelledRoot | Op::ChildToken if !root => Vec::new(),
            Op::Cancelled | Op::CancelledOwned | Op::RunUntilCancelled | Op::Orphan if !child => {
                Vec::new()
            }
            Op::Cancel | Op::DropGuard => vec![((*state).max(Cancelled::Child), None)],
            Op::CancelRoot => vec![(Cancelled::Both, None)],
            Op::IsCancelled => vec![(*state, Some(child))],
            Op::RootIsCancelled => vec![(*state, Some(root))],
            _ => vec![(*state, None)],
        }
    }
}
