//! `reveille::Notify`, with every public operation.
//!
//! If a program has `wait_until`, how many tasks wait and how many have a grant is left
//! open up to the number of waits, since a wait that took the permit was never queued.
//! `primitives/tests/notify.rs` pins it, and that a `wait_until` which does not use a
//! notification passes it on.

use std::pin::{Pin, pin};
use std::sync::Arc;

use reveille::Notify;
use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::{
    Absent::{Creates, Locations, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::{heavy, queueing};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "notify",
        "reveille::Notify: notify one, last or all, and the permit",
        Notifies,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "notify.rs",
    absent: &[
        ("const_new", Creates),
        ("enable", SameAs("enabled")),
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// `Notify` over every backend.
pub(crate) struct Notifies;

impl GenericSubject for Notifies {
    type On<B: BlockingBackend> = NotifyOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        NotifyOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        heavy(queueing(mode, profile), mode, profile)
    }
}

pub(crate) struct NotifyOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Notified,
    /// A wait that is enabled before it is awaited.
    Enabled,
    NotifiedOwned,
    WaitUntil,
    NotifyOne,
    NotifyLast,
    NotifyWaiters,
    /// Opens the gate for which `WaitUntil` waits, and notifies no task.
    Open,
    Waiting,
    Granted,
}

/// What a participant holds.
pub(crate) struct Shared<B: BlockingBackend> {
    notify: Arc<Notify<B>>,
    /// Open if its bits are [`OPEN`]. `WaitUntil` waits for that.
    gate: StateLock<(), B>,
}

const OPEN: Bits = Bits::new(1);

impl<B: BlockingBackend> Subject for NotifyOn<B> {
    type Op = Op;
    /// A number, if the operation returns one.
    type Ret = Option<usize>;
    type Spec = NotifySpec;
    type Actor = Arc<Shared<B>>;

    fn spec(&self) -> NotifySpec {
        NotifySpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "task",
            symmetry: 0,
            ops: vec![
                Operation::future("notified", Op::Notified),
                Operation::immediate("notify_one", Op::NotifyOne),
                Operation::immediate("notify_waiters", Op::NotifyWaiters),
                Operation::immediate("notify_last", Op::NotifyLast),
                Operation::future("enabled", Op::Enabled).alias(),
                Operation::future("notified_owned", Op::NotifiedOwned).alias(),
                Operation::future("wait_until", Op::WaitUntil).alias(),
                Operation::immediate("open", Op::Open).alias(),
                Operation::immediate("waiting", Op::Waiting).alias(),
                Operation::immediate("granted", Op::Granted).alias(),
            ],
        };
        vec![role; participants]
    }

    fn describe(&self, bits: Bits) -> String {
        let bits = bits.get();
        let mut text = Vec::new();
        if bits & 1 != 0 {
            text.push("permit".to_owned());
        }
        if bits & 2 != 0 {
            text.push("queued".to_owned());
        }
        if bits > 7 || text.is_empty() {
            text.push(format!("{} calls", bits / 8));
        }
        text.join(", ")
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Shared<B>>> {
        let shared = Arc::new(Shared {
            notify: Arc::new(Notify::new_in()),
            gate: StateLock::new_in(Bits::EMPTY, ()),
        });
        vec![shared; participants]
    }

    fn start<'a>(
        &self,
        actor: &'a mut Arc<Shared<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<usize>> {
        let Shared { notify, gate } = &**actor;
        match call.op {
            Op::Notified => {
                let notified = notify.notified();
                return Started::future(async {
                    notified.await;
                    None
                });
            }
            Op::Enabled => {
                let mut notified = notify.notified();
                Pin::new(&mut notified).enable();
                return Started::future(async {
                    pin!(notified).await;
                    None
                });
            }
            Op::NotifiedOwned => {
                let notified = notify.clone().notified_owned();
                return Started::future(async {
                    notified.await;
                    None
                });
            }
            Op::WaitUntil => {
                let open = notify.wait_until(|| gate.load().contains(OPEN));
                return Started::future(async {
                    open.await;
                    None
                });
            }
            Op::NotifyOne => notify.notify_one(),
            Op::NotifyLast => notify.notify_last(),
            Op::NotifyWaiters => notify.notify_waiters(),
            Op::Open => gate.with(|section| section.bits.insert(OPEN)),
            Op::Waiting => return Started::Done(Some(notify.waiting())),
            Op::Granted => return Started::Done(Some(notify.granted())),
        }
        Started::Done(None)
    }
}

/// What the operations of a notify mean, one at a time.
///
/// A wait takes the permit, or a place in the queue, when it begins. `notify_one`
/// notifies the first waiter of the queue, and `notify_last` the last.
///
/// The specification leaves two things open. A wait that was created before
/// `notify_waiters` and is polled after it has taken neither permit nor place, so a
/// permit may be left. A wait for the gate gives up its place and takes a new one
/// whenever it is notified, so its place in the queue is not fixed.
pub(crate) struct NotifySpec;

/// The state of a notify.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    permit: bool,
    /// How often `notify_waiters` was called.
    calls: usize,
    open: bool,
    /// The waits that have begun, by participant.
    waits: Vec<(usize, Wait)>,
    /// The participants in the queue, in order, without those that wait for the gate.
    queue: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    calls: usize,
    granted: Option<End>,
    /// Whether it waits for the gate, and takes notifications on the way.
    until: bool,
    /// Whether it has begun, or has been notified, while the gate was open.
    due: bool,
}

/// The end of the queue from which a waiter is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    First,
    Last,
}

impl State {
    /// Returns the states after one waiter is notified.
    fn notified(&self, end: End) -> Vec<Self> {
        let next = match end {
            End::First => self.queue.first(),
            End::Last => self.queue.last(),
        };
        let mut states = vec![match next {
            Some(&participant_id) => self.granted(participant_id, end),
            None => Self {
                permit: true,
                ..self.clone()
            },
        }];
        for &(participant_id, wait) in &self.waits {
            if wait.until && wait.granted.is_none() && wait.calls == self.calls {
                states.push(self.granted(participant_id, end));
            }
        }
        states.extend(self.swallowed());
        states
    }

    fn granted(&self, participant_id: usize, end: End) -> Self {
        let mut next = self.clone();
        next.queue.retain(|&waiter| waiter != participant_id);
        for (owner, wait) in &mut next.waits {
            if *owner == participant_id {
                wait.granted = Some(end);
                wait.due = self.open;
            }
        }
        next
    }

    /// Returns the state after a wait for the gate has consumed a notification or the
    /// permit while the gate is closed.
    fn swallowed(&self) -> Option<Self> {
        self.has_until().then(|| Self {
            permit: false,
            ..self.clone()
        })
    }

    /// Returns `true` if a task waits for the gate.
    fn has_until(&self) -> bool {
        self.waits.iter().any(|(_, wait)| wait.until)
    }

    fn take(&mut self, participant_id: usize) -> Option<Wait> {
        self.queue.retain(|&waiter| waiter != participant_id);
        let index = self
            .waits
            .iter()
            .position(|&(owner, _)| owner == participant_id)?;
        Some(self.waits.remove(index).1)
    }
}

impl Spec for NotifySpec {
    type Op = Op;
    type Ret = Option<usize>;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::Notified | Op::Enabled | Op::NotifiedOwned | Op::WaitUntil
        )
    }

    /// Returns `true` if the operation has to be woken. A wait for the gate checks it
    /// when it begins and when it is notified, so it need not be woken if the gate was
    /// opened without a notification. A wait that is not in the queue is due if there
    /// is a permit.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        let own = state
            .waits
            .iter()
            .find(|&&(participant_id, _)| participant_id == call.participant);
        match call.op {
            Op::WaitUntil => own.is_some_and(|(_, wait)| wait.due),
            _ => !self.step(state, call).is_empty() || own.is_some() && state.permit,
        }
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let until = *call.op == Op::WaitUntil;
        let wait = Wait {
            calls: state.calls,
            granted: None,
            until,
            due: state.open,
        };
        next.waits.push((call.participant, wait));
        next.waits
            .sort_by_key(|&(participant_id, _)| participant_id);
        if until {
            let swallowed = next.swallowed();
            return [next].into_iter().chain(swallowed).collect();
        }
        if !state.permit {
            next.queue.push(call.participant);
            return vec![next];
        }
        let mut taken = next.granted(call.participant, End::First);
        taken.permit = false;
        vec![taken, next]
    }

    /// Cancels a wait. If it was notified by `notify_one` or `notify_last`, the
    /// notification is passed on.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        match next.take(call.participant).and_then(|wait| wait.granted) {
            Some(end) => next.notified(end),
            None => vec![next],
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Option<usize>)> {
        let mut next = state.clone();
        let outcomes = match call.op {
            Op::NotifyOne => state.notified(End::First),
            Op::NotifyLast => state.notified(End::Last),
            Op::NotifyWaiters => {
                next.calls += 1;
                next.queue.clear();
                for (_, wait) in &mut next.waits {
                    wait.due |= state.open;
                }
                vec![next]
            }
            Op::Open => {
                next.open = true;
                vec![next]
            }
            Op::Waiting if !state.has_until() => {
                return vec![(state.clone(), Some(state.queue.len()))];
            }
            Op::Waiting | Op::Granted => {
                // A wait that took the permit was never in the queue.
                let counts = 0..=state.waits.len();
                return counts.map(|n| (state.clone(), Some(n))).collect();
            }
            Op::WaitUntil => match next.take(call.participant) {
                Some(_) if state.open => vec![next],
                _ => Vec::new(),
            },
            Op::Notified | Op::Enabled | Op::NotifiedOwned => match next.take(call.participant) {
                Some(wait) if wait.granted.is_some() || wait.calls != state.calls => vec![next],
                _ => Vec::new(),
            },
        };
        let swallowed: Vec<_> = outcomes
            .iter()
            .filter(|state| state.permit)
            .filter_map(State::swallowed)
            .collect();
        outcomes
            .into_iter()
            .chain(swallowed)
            .map(|state| (state, None))
            .collect()
    }
}
