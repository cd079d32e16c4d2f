//! `reveille::Lazy`, with every public operation that does not need exclusive access.
//!
//! The value is the number of times that the initializer was started, which is one,
//! however many callers drive it.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::Lazy;
use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::{
    Absent::{Creates, Exclusive, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::once_cell::{Work, describe};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "lazy",
        "reveille::Lazy: one initializer, which the next caller resumes",
        Lazies,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "lazy.rs",
    absent: &[
        ("const_new", Creates),
        ("get_mut", Exclusive),
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// `Lazy` over every backend.
pub(crate) struct Lazies;

impl GenericSubject for Lazies {
    type On<B: BlockingBackend> = LazyOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        LazyOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        match (mode, profile) {
            (Mode::Sections, Profile::Quick) => plans.truncate(1),
            // No specimen needs four operations. The full profile has them.
            (Mode::Exhaustive, Profile::Quick) => plans.truncate(2),
            _ => {}
        }
        plans
    }
}

pub(crate) struct LazyOn<B>(PhantomData<fn() -> B>);

/// An operation. The initializer is pending once, so it can be left halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Force,
    Get,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// The value, if there is one: the number of times that the initializer was started.
    Value(Option<usize>),
    /// A number of tasks.
    Count(usize),
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("force", Op::Force),
            Operation::immediate("get", Op::Get),
            Operation::immediate("waiting", Op::Waiting),
            Operation::immediate("granted", Op::Granted),
        ],
    }
}

/// The initializer.
pub(crate) type Making = Pin<Box<dyn Future<Output = usize> + Send>>;
type Start = Box<dyn FnOnce() -> Making + Send>;

/// Returns an initializer that counts how often it was started.
pub(crate) fn making(started: Arc<AtomicUsize>) -> Making {
    // Not an atomic of the model: only the caller that has the permit accesses it.
    started.fetch_add(1, Ordering::Relaxed);
    let mut work = Work::default();
    Box::pin(std::future::poll_fn(move |cx| {
        let ready = Pin::new(&mut work).poll(cx);
        ready.map(|()| started.load(Ordering::Relaxed))
    }))
}

impl<B: BlockingBackend> Subject for LazyOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = LazySpec;
    type Actor = Arc<Lazy<usize, Making, Start, B>>;

    fn spec(&self) -> LazySpec {
        LazySpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let start: Start = Box::new(|| making(Arc::default()));
        let lazy = Arc::new(Lazy::new_in(start));
        vec![lazy; participants]
    }

    fn start<'a>(
        &self,
        lazy: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Force => {
                let force = lazy.force();
                return Started::future(async move { Ret::Value(Some(*force.await)) });
            }
            Op::Get => Ret::Value(lazy.get().copied()),
            Op::Waiting => Ret::Count(lazy.waiting()),
            Op::Granted => Ret::Count(lazy.granted()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        describe(bits)
    }
}

/// What the operations of a lazy value mean, one at a time. A call takes the *turn*, which
/// is the permit to drive the initializer, when it begins. If the turn is taken, the call
/// takes a place in the queue for it.
pub(crate) struct LazySpec;

/// The state of a lazy value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    initialized: bool,
    /// The participant that has the turn.
    turn: Option<usize>,
    /// The participants that are queued for the turn, in order.
    queue: Vec<usize>,
    /// The participants that have been notified of the value and have not returned.
    called: Vec<usize>,
    /// Whether the turn was passed to the participant that has it, so that it may still
    /// not have observed it.
    handed: bool,
}

impl State {
    /// Passes the turn on.
    fn pass(&mut self) {
        self.turn = None;
        self.handed = false;
        if !self.initialized && !self.queue.is_empty() {
            self.turn = Some(self.queue.remove(0));
            self.handed = true;
        }
    }
}

impl Spec for LazySpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        *op == Op::Force
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match state.turn {
            _ if state.initialized => {}
            Some(_) => next.queue.push(call.participant),
            None => next.turn = Some(call.participant),
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        for list in [&mut next.queue, &mut next.called] {
            list.retain(|&participant_id| participant_id != call.participant);
        }
        if next.turn == Some(call.participant) {
            next.pass();
        }
        vec![next]
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = self.cancel(state, call);
        // It sets the value before it returns, and a waker that it wakes may panic.
        if state.turn == Some(call.participant) {
            next.extend(self.effects(state, call));
        }
        next
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Force if state.initialized => {
                next.called
                    .retain(|&participant_id| participant_id != call.participant);
                Ret::Value(Some(1))
            }
            Op::Force if state.turn == Some(call.participant) => {
                next.initialized = true;
                next.turn = None;
                next.handed = false;
                next.called.append(&mut next.queue);
                Ret::Value(Some(1))
            }
            Op::Force => return Vec::new(),
            Op::Get => Ret::Value(state.initialized.then_some(1)),
            Op::Waiting => Ret::Count(state.queue.len()),
            Op::Granted => {
                let counts = state.called.len()..=state.called.len() + usize::from(state.handed);
                return counts.map(|n| (next.clone(), Ret::Count(n))).collect();
            }
        };
        vec![(next, ret)]
    }
}
