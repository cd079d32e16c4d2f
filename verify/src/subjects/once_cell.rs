//! `reveille::OnceCell`, with every public operation that does not need exclusive
//! access.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::raw::INITIALIZED;
use reveille::{OnceCell, SetError};

use crate::run::entry::{
    Absent::{Constant, Creates, Exclusive, Locations},
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
        "once-cell",
        "reveille::OnceCell: one value, initialized by the task that has the permit",
        OnceCells,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "once_cell.rs",
    absent: &[
        ("const_new", Creates),
        ("const_new_with", Creates),
        ("get_mut", Exclusive),
        ("into_inner", Exclusive),
        ("is_already_init_err", Constant),
        ("is_initializing_err", Constant),
        ("new", Creates),
        ("new_in", Creates),
        ("new_with", Creates),
        ("take", Exclusive),
        ("waiters", Locations),
    ],
}]);

/// `OnceCell` over every backend.
pub(crate) struct OnceCells;

impl GenericSubject for OnceCells {
    type On<B: BlockingBackend> = OnceCellOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        OnceCellOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        sparingly(queueing(mode, profile), profile)
    }
}

pub(crate) struct OnceCellOn<B>(PhantomData<fn() -> B>);

/// An operation. An initializer is polled twice before it has its value, so it can be
/// dropped halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    GetOrInit,
    /// `get_or_try_init`, with an initializer that succeeds.
    GetOrTryInit,
    /// `get_or_try_init`, with one that fails.
    FailToInit,
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
    /// There is a value already, and that of this call was returned.
    Already(ValueId),
    /// A value is being initialized, and that of this call was returned.
    Initializing(ValueId),
    /// The value, if there is one.
    Value(Option<ValueId>),
    /// The initializer failed.
    Failed,
    /// Whether it is so.
    Is(bool),
    /// A number of tasks.
    Count(usize),
}

/// Returns the role of every participant. The specimens have the same one. Waiting only
/// for the value is tried in every polling mode in the subject of `SetOnce`.
pub(crate) fn role() -> Role<Op> {
    Role {
        name: "task",
        symmetry: 0,
        ops: vec![
            Operation::future("get_or_init", Op::GetOrInit),
            Operation::future("fail_to_init", Op::FailToInit).alias(),
            Operation::future("wait", Op::Wait).alias(),
            Operation::immediate("set", Op::Set),
            Operation::immediate("get", Op::Get).alias(),
            Operation::future("get_or_try_init", Op::GetOrTryInit).alias(),
            Operation::immediate("initialized", Op::Initialized).alias(),
            Operation::immediate("waiting", Op::Waiting).alias(),
            Operation::immediate("granted", Op::Granted).alias(),
        ],
    }
}

/// The work of an initializer, which is pending once.
#[derive(Default)]
pub(crate) struct Work {
    begun: bool,
}

impl Future for Work {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<B: BlockingBackend> Subject for OnceCellOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = OnceCellSpec;
    type Actor = Arc<OnceCell<Value, B>>;

    fn spec(&self) -> OnceCellSpec {
        OnceCellSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let cell = Arc::new(OnceCell::new_in());
        vec![cell; participants]
    }

    fn start<'a>(
        &self,
        cell: &'a mut Self::Actor,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let cell = &**cell;
        let id = |value: Option<&Value>| Ret::Value(value.map(Value::id));
        Started::Done(match call.op {
            Op::GetOrInit => {
                let value = value();
                return Started::future(async move {
                    let made = cell.get_or_init(|| async {
                        Work::default().await;
                        value
                    });
                    id(Some(made.await))
                });
            }
            Op::GetOrTryInit => {
                let value = value();
                return Started::future(async move {
                    let made = cell.get_or_try_init(|| async {
                        Work::default().await;
                        Ok(value)
                    });
                    made.await
                        .map_or_else(|()| Ret::Failed, |value| id(Some(value)))
                });
            }
            Op::FailToInit => {
                return Started::future(async move {
                    let made = cell.get_or_try_init(|| async {
                        Work::default().await;
                        Err(())
                    });
                    made.await
                        .map_or_else(|()| Ret::Failed, |value| id(Some(value)))
                });
            }
            Op::Wait => {
                let wait = cell.wait();
                return Started::future(async move { id(Some(wait.await)) });
            }
            Op::Set => match cell.set(value()) {
                Ok(()) => Ret::Set,
                Err(SetError::AlreadyInitializedError(value)) => Ret::Already(value.id()),
                Err(SetError::InitializingError(value)) => Ret::Initializing(value.id()),
            },
            Op::Get => id(cell.get()),
            Op::Initialized => Ret::Is(cell.initialized()),
            Op::Waiting => Ret::Count(cell.waiting()),
            Op::Granted => Ret::Count(cell.granted()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        describe(bits)
    }
}

/// Describes the bits of a cell for people.
pub(crate) fn describe(bits: Bits) -> String {
    match (
        bits.contains(INITIALIZED),
        bits.without(INITIALIZED) != Bits::EMPTY,
    ) {
        (false, false) => "empty",
        (false, true) => "busy",
        (true, false) => "set",
        (true, true) => "set, busy",
    }
    .to_owned()
}

/// What the operations of a cell mean, one at a time. A call that needs the value takes
/// the *permit* to initialize it when it begins. If the permit is taken, the call takes a
/// place in the queue for it.
pub(crate) struct OnceCellSpec;

/// The state of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    value: Option<ValueId>,
    /// The participant that has the permit.
    permit: Option<usize>,
    /// The participants that are queued for the permit, in order.
    queue: Vec<usize>,
    /// The participants that wait only for the value, sorted.
    waits: Vec<usize>,
    /// The participants that have been notified of the value or the permit and have not
    /// returned, sorted. The one that has the permit may have observed it, which is no
    /// event of the specification.
    notified: Vec<usize>,
    /// Whether the permit was passed to the participant that has it, so that it may still
    /// be among those that have not observed it.
    handed: bool,
}

impl State {
    /// Passes the permit on.
    fn pass(&mut self) {
        self.permit = None;
        self.handed = false;
        if self.value.is_none() && !self.queue.is_empty() {
            self.permit = Some(self.queue.remove(0));
            self.handed = true;
        }
    }

    fn initialize(&mut self, value: ValueId) {
        self.value = Some(value);
        self.permit = None;
        self.handed = false;
        self.notified.append(&mut self.queue);
        self.notified.append(&mut self.waits);
        self.notified.sort_unstable();
    }
}

impl Spec for OnceCellSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::GetOrInit | Op::GetOrTryInit | Op::FailToInit | Op::Wait
        )
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match call.op {
            _ if state.value.is_some() => {}
            Op::GetOrInit | Op::GetOrTryInit | Op::FailToInit => match state.permit {
                Some(_) => next.queue.push(call.participant),
                None => next.permit = Some(call.participant),
            },
            Op::Wait => {
                next.waits.push(call.participant);
                next.waits.sort_unstable();
            }
            _ => {}
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        for list in [&mut next.queue, &mut next.waits, &mut next.notified] {
            list.retain(|&participant_id| participant_id != call.participant);
        }
        if next.permit == Some(call.participant) {
            next.pass();
        }
        vec![next]
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = self.cancel(state, call);
        // It sets the value before it returns, and a waker that it wakes may panic.
        let sets = matches!(call.op, Op::GetOrInit | Op::GetOrTryInit);
        if sets && state.permit == Some(call.participant) {
            next.extend(self.effects(state, call));
        }
        next
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Wait | Op::GetOrInit | Op::GetOrTryInit | Op::FailToInit
                if state.value.is_some() =>
            {
                next.notified
                    .retain(|&participant_id| participant_id != call.participant);
                Ret::Value(state.value)
            }
            Op::GetOrInit | Op::GetOrTryInit if state.permit == Some(call.participant) => {
                next.initialize(call.value());
                Ret::Value(next.value)
            }
            Op::FailToInit if state.permit == Some(call.participant) => {
                next.pass();
                Ret::Failed
            }
            Op::Wait | Op::GetOrInit | Op::GetOrTryInit | Op::FailToInit => return Vec::new(),
            Op::Set if state.value.is_some() => Ret::Already(call.value()),
            Op::Set if state.permit.is_some() => Ret::Initializing(call.value()),
            Op::Set => {
                next.initialize(call.value());
                Ret::Set
            }
            Op::Get => Ret::Value(state.value),
            Op::Initialized => Ret::Is(state.value.is_some()),
            Op::Waiting => Ret::Count(state.queue.len() + state.waits.len()),
            Op::Granted => {
                let counts =
                    state.notified.len()..=state.notified.len() + usize::from(state.handed);
                return counts.map(|n| (next.clone(), Ret::Count(n))).collect();
            }
        };
        vec![(next, ret)]
    }
}
