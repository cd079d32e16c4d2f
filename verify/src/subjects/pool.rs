//! `reveille::Pool` for one object, with every public operation.
//!
//! An object is a value, with a mark that makes the check refuse it when it comes back, or
//! panic.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::{GetError, Pool, Pooled};

use crate::run::entry::{
    Absent::{Constant, Creates, Locations, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::once_cell::Work;
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "pool",
            "reveille::Pool for one object: create, check, hand on, and close",
            Pools { breaks: false },
            SURFACE,
        ),
        SubjectEntry::new(
            "pool-broken",
            "reveille::Pool for one object, whose check may panic",
            Pools { breaks: true },
            Surface::As("pool"),
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "pool.rs",
    absent: &[
        ("get", SameAs("get_owned")),
        ("max_size", Constant),
        ("new", Creates),
        ("try_get", SameAs("try_get_owned")),
        ("unbounded", Creates),
        ("waiters", Locations),
        ("with_check", Creates),
        ("with_check_in", Creates),
    ],
}]);

/// `Pool` over every backend.
#[derive(Clone, Copy)]
pub(crate) struct Pools {
    /// Whether a check may panic. Then no waker does: two panics at once abort the process,
    /// as for any guard that is dropped while a panic unwinds.
    breaks: bool,
}

impl GenericSubject for Pools {
    type On<B: BlockingBackend> = PoolOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        PoolOn {
            breaks: self.breaks,
            backend: PhantomData,
        }
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        if let (Mode::Sections, Profile::Quick) = (mode, profile) {
            plans.truncate(1);
        }
        if self.breaks {
            if matches!(mode, Mode::Sections | Mode::Accesses) {
                return Vec::new();
            }
            plans.truncate(1);
            for plan in &mut plans {
                plan.bound.panics = false;
            }
        }
        plans
    }
}

pub(crate) struct PoolOn<B> {
    breaks: bool,
    backend: PhantomData<fn() -> B>,
}

/// An operation. A creation is polled twice before it has its object, so it can be
/// dropped halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Get,
    /// Gets an object, with a creation that fails.
    FailToGet,
    TryGet,
    /// Gives the object back that was checked out last.
    Put,
    /// Gives it back so that the check refuses it.
    Spoil,
    /// Gives it back so that the check panics.
    Break,
    Detach,
    Close,
    IsClosed,
    Size,
    Idle,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// An object, if there is one: it was checked out, or given back, or detached.
    Object(Option<ValueId>),
    /// The creation failed.
    Failed,
    /// The pool is closed.
    Closed,
    /// Nothing.
    Done,
    /// Whether it is so.
    Is(bool),
    /// A number.
    Count(usize),
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role(breaks: bool) -> Role<Op> {
    let mut role = Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("get_owned", Op::Get),
            Operation::immediate("put", Op::Put),
            Operation::immediate("spoil", Op::Spoil),
            Operation::immediate("close", Op::Close),
            Operation::future("fail_to_get", Op::FailToGet).alias(),
            Operation::immediate("try_get_owned", Op::TryGet),
            Operation::immediate("detach", Op::Detach),
            Operation::immediate("is_closed", Op::IsClosed),
            Operation::immediate("size", Op::Size),
            Operation::immediate("idle", Op::Idle),
            Operation::immediate("waiting", Op::Waiting),
            Operation::immediate("granted", Op::Granted),
        ],
    };
    if breaks {
        role.ops.push(Operation::immediate("break", Op::Break));
    }
    role
}

/// The largest number of objects.
const MAX_SIZE: usize = 1;

/// An object.
struct Object {
    value: Value,
    condition: Condition,
}

impl Object {
    fn new(value: Value) -> Self {
        Self {
            value,
            condition: Condition::Sound,
        }
    }

    fn id(&self) -> ValueId {
        self.value.id()
    }
}

/// What the check of an object does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// It keeps the object.
    Sound,
    /// It refuses the object.
    Spoilt,
    /// It panics.
    Broken,
}

impl Condition {
    /// Returns the condition in which an operation gives an object back.
    const fn after(op: Op) -> Self {
        match op {
            Op::Spoil => Self::Spoilt,
            Op::Break => Self::Broken,
            _ => Self::Sound,
        }
    }
}

/// Checks an object that comes back.
fn check(object: &mut Object) -> bool {
    if object.condition == Condition::Broken {
        // It writes no message.
        resume_unwind(Box::new("the check panics"));
    }
    object.condition == Condition::Sound
}

type Check = fn(&mut Object) -> bool;
type Held<B> = Pooled<Arc<Pool<Object, Check, B>>, Object, Check, B>;

/// What a participant holds: the pool, and objects that are checked out.
pub(crate) struct Task<B: BlockingBackend> {
    pool: Arc<Pool<Object, Check, B>>,
    held: Vec<Held<B>>,
}

impl<B: BlockingBackend> Subject for PoolOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = PoolSpec;
    type Actor = Task<B>;

    fn spec(&self) -> PoolSpec {
        PoolSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(self.breaks); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let pool = Arc::new(Pool::with_check_in(MAX_SIZE, check as Check));
        let task = |_| Task {
            pool: pool.clone(),
            held: Vec::new(),
        };
        (0..participants).map(task).collect()
    }

    fn start<'a>(
        &self,
        task: &'a mut Self::Actor,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Task { pool, held } = task;
        Started::Done(match call.op {
            Op::Get | Op::FailToGet => {
                let value = (*call.op == Op::Get).then(value);
                let pool = pool.clone();
                return Started::future(async move {
                    let got = pool.get_owned(|| async {
                        Work::default().await;
                        value.map(Object::new).ok_or(())
                    });
                    match got.await {
                        Ok(object) => {
                            let id = object.id();
                            held.push(object);
                            Ret::Object(Some(id))
                        }
                        Err(GetError::Create(())) => Ret::Failed,
                        Err(GetError::Closed) => Ret::Closed,
                    }
                });
            }
            Op::TryGet => {
                let object = pool.clone().try_get_owned();
                let id = object.as_ref().map(|object| object.id());
                held.extend(object);
                Ret::Object(id)
            }
            Op::Put | Op::Spoil | Op::Break => {
                let object = held.pop();
                let id = object.as_ref().map(|object| object.id());
                if let Some(mut object) = object {
                    object.condition = Condition::after(*call.op);
                    if object.condition == Condition::Broken {
                        let unwound = catch_unwind(AssertUnwindSafe(|| drop(object)));
                        assert!(unwound.is_err(), "the panic of the check was swallowed");
                    }
                }
                Ret::Object(id)
            }
            Op::Detach => Ret::Object(held.pop().map(|object| object.detach().value.id())),
            Op::Close => {
                pool.close();
                Ret::Done
            }
            Op::IsClosed => Ret::Is(pool.is_closed()),
            Op::Size => Ret::Count(pool.size()),
            Op::Idle => Ret::Count(pool.idle()),
            Op::Waiting => Ret::Count(pool.waiting()),
            Op::Granted => Ret::Count(pool.granted()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        match bits == Bits::EMPTY {
            true => "open",
            false => "closed",
        }
        .to_owned()
    }
}

/// What the operations of a pool mean, one at a time. A call takes an object or a place
/// when it begins, or takes its place in the queue.
pub(crate) struct PoolSpec;

/// What a call has that has begun and not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Has {
    Object(ValueId),
    Place,
    /// It has been told that the pool is closed.
    Closed,
}

/// The state of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    closed: bool,
    idle: Vec<ValueId>,
    places: usize,
    /// The participants that are queued, in order.
    queue: Vec<usize>,
    /// The participants that have something, and whether they were granted it as waiters.
    calls: Vec<(usize, Has, bool)>,
    /// The objects that are checked out, each with its participant.
    held: Vec<(usize, ValueId)>,
}

impl State {
    fn give(&mut self, object: ValueId) {
        if self.closed {
            self.places -= 1;
        } else if self.queue.is_empty() {
            self.idle.push(object);
        } else {
            let participant_id = self.queue.remove(0);
            self.calls.push((participant_id, Has::Object(object), true));
        }
    }

    fn give_place(&mut self) {
        if self.queue.is_empty() {
            self.places -= 1;
        } else {
            let participant_id = self.queue.remove(0);
            self.calls.push((participant_id, Has::Place, true));
        }
    }

    /// Takes the object that a participant has checked out last.
    fn pop(&mut self, participant_id: usize) -> Option<ValueId> {
        let place = self
            .held
            .iter()
            .rposition(|&(one, _)| one == participant_id)?;
        Some(self.held.remove(place).1)
    }
}

impl Spec for PoolSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Get | Op::FailToGet)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let has = if state.closed {
            Has::Closed
        } else if let Some(object) = next.idle.pop() {
            Has::Object(object)
        } else if state.places < MAX_SIZE {
            next.places += 1;
            Has::Place
        } else {
            next.queue.push(participant_id);
            return vec![next];
        };
        next.calls.push((participant_id, has, false));
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        let participant_id = call.participant;
        next.queue.retain(|&one| one != participant_id);
        if let Some(place) = next
            .calls
            .iter()
            .position(|&(one, ..)| one == participant_id)
        {
            match next.calls.remove(place).1 {
                Has::Object(object) => next.give(object),
                Has::Place => next.give_place(),
                Has::Closed => {}
            }
        }
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let ret = match call.op {
            Op::Get | Op::FailToGet => {
                let Some(place) = next
                    .calls
                    .iter()
                    .position(|&(one, ..)| one == participant_id)
                else {
                    return Vec::new();
                };
                match (next.calls.remove(place).1, call.op) {
                    (Has::Closed, _) => Ret::Closed,
                    (Has::Place, Op::FailToGet) => {
                        next.give_place();
                        Ret::Failed
                    }
                    (has, _) => {
                        let object = match has {
                            Has::Object(object) => object,
                            _ => call.value(),
                        };
                        next.held.push((participant_id, object));
                        Ret::Object(Some(object))
                    }
                }
            }
            Op::TryGet => {
                let object = next.idle.pop();
                next.held
                    .extend(object.map(|object| (participant_id, object)));
                Ret::Object(object)
            }
            Op::Put => {
                let object = next.pop(participant_id);
                if let Some(object) = object {
                    next.give(object);
                }
                Ret::Object(object)
            }
            Op::Spoil | Op::Break | Op::Detach => {
                let object = next.pop(participant_id);
                if object.is_some() {
                    next.give_place();
                }
                Ret::Object(object)
            }
            Op::Close => {
                next.closed = true;
                next.places -= next.idle.len();
                next.idle.clear();
                for participant_id in std::mem::take(&mut next.queue) {
                    next.calls.push((participant_id, Has::Closed, true));
                }
                Ret::Done
            }
            Op::IsClosed => Ret::Is(state.closed),
            Op::Size => Ret::Count(state.places),
            Op::Idle => Ret::Count(state.idle.len()),
            Op::Waiting => Ret::Count(state.queue.len()),
            Op::Granted => {
                // A call that was granted a place may have observed it, and be creating.
                let granted = state.calls.iter().filter(|&&(_, _, granted)| granted);
                let places = granted.clone().filter(|call| call.1 == Has::Place).count();
                let all = granted.count();
                let counts = all - places..=all;
                return counts.map(|n| (next.clone(), Ret::Count(n))).collect();
            }
        };
        vec![(next, ret)]
    }
}
