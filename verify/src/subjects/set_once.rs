//! `reveille::SetOnce`, with every public operation that does not need exclusive
//! access.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille::SetOnce;
use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::raw::INITIALIZED;

use crate::run::entry::{
    Absent::{Creates, Exclusive, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "set-once",
        "reveille::SetOnce: one value, and all tasks that wait for it",
        SetOnces,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "set_once.rs",
    absent: &[
        ("const_new", Creates),
        ("const_new_with", Creates),
        ("into_inner", Exclusive),
        ("new", Creates),
        ("new_in", Creates),
        ("new_with", Creates),
        ("waiters", Locations),
    ],
}]);

/// `SetOnce` over every backend.
pub(crate) struct SetOnces;

impl GenericSubject for SetOnces {
    type On<B: BlockingBackend> = SetOnceOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SetOnceOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        sparingly(queueing(mode, profile), profile)
    }
}

pub(crate) struct SetOnceOn<B>(PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Wait,
    Set,
    Get,
    Initialized,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// The value of this call was set.
    Set,
    /// Another value was set before, and this one was returned.
    Refused(ValueId),
    /// The value, if there is one.
    Value(Option<ValueId>),
    /// Whether it is so.
    Is(bool),
    /// A number of tasks.
    Count(usize),
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("wait", Op::Wait),
            Operation::immediate("set", Op::Set),
            Operation::immediate("get", Op::Get).alias(),
            Operation::immediate("initialized", Op::Initialized).alias(),
            Operation::immediate("waiting", Op::Waiting).alias(),
            Operation::immediate("granted", Op::Granted).alias(),
        ],
    }
}

/// Describes the bits of a once slot for people.
pub(crate) fn describe(bits: Bits) -> String {
    match bits.contains(INITIALIZED) {
        true => "set",
        false => "empty",
    }
    .to_owned()
}

impl<B: BlockingBackend> Subject for SetOnceOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = SetOnceSpec;
    type Actor = Arc<SetOnce<Value, B>>;

    fn spec(&self) -> SetOnceSpec {
        SetOnceSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let once = Arc::new(SetOnce::new_in());
        vec![once; participants]
    }

    fn start<'a>(
        &self,
        once: &'a mut Self::Actor,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let id = |value: Option<&Value>| Ret::Value(value.map(Value::id));
        Started::Done(match call.op {
            Op::Wait => {
                let wait = once.wait();
                return Started::future(async move { id(Some(wait.await)) });
            }
            Op::Set => match once.set(value()) {
                Ok(()) => Ret::Set,
                Err(error) => Ret::Refused(error.0.id()),
            },
            Op::Get => id(once.get()),
            Op::Initialized => Ret::Is(once.initialized()),
            Op::Waiting => Ret::Count(once.waiting()),
            Op::Granted => Ret::Count(once.granted()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        describe(bits)
    }
}

/// What the operations of a `SetOnce` mean, one at a time.
pub(crate) struct SetOnceSpec;

/// The state of a `SetOnce`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    value: Option<ValueId>,
    /// The participants that wait, sorted.
    waits: Vec<usize>,
    /// The participants that waited when the value was set and have not observed it,
    /// sorted.
    notified: Vec<usize>,
}

impl Spec for SetOnceSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        *op == Op::Wait
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if state.value.is_none() {
            next.waits.push(call.participant);
            next.waits.sort_unstable();
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        next.waits
            .retain(|&participant_id| participant_id != call.participant);
        next.notified
            .retain(|&participant_id| participant_id != call.participant);
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Wait if state.value.is_none() => return Vec::new(),
            Op::Wait => {
                next.notified
                    .retain(|&participant_id| participant_id != call.participant);
                Ret::Value(state.value)
            }
            Op::Set if state.value.is_some() => Ret::Refused(call.value()),
            Op::Set => {
                next.value = Some(call.value());
                next.notified = std::mem::take(&mut next.waits);
                Ret::Set
            }
            Op::Get => Ret::Value(state.value),
            Op::Initialized => Ret::Is(state.value.is_some()),
            Op::Waiting => Ret::Count(state.waits.len()),
            Op::Granted => Ret::Count(state.notified.len()),
        };
        vec![(next, ret)]
    }
}
