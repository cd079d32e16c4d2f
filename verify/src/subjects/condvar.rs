//! `reveille::Condvar`, with every public operation and its mutex.
//!
//! Whether `try_lock` finds the mutex free is left open here, since the subject of the
//! mutex pins that. A participant that is refused does nothing.

use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::{Condvar, Mutex, OwnedMutexGuard};

use crate::run::entry::{
    Absent::{Creates, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::queueing;

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "condvar",
        "reveille::Condvar, with its mutex",
        Condvars,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "condvar.rs",
    absent: &[
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// `Condvar` over every backend.
pub(crate) struct Condvars;

impl GenericSubject for Condvars {
    type On<B: BlockingBackend> = CondvarOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        CondvarOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        queueing(mode, profile)
    }
}

pub(crate) struct CondvarOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Wait,
    /// Waits until the gate is open.
    WaitWhile,
    NotifyOne,
    NotifyAll,
    /// Opens the gate for which `WaitWhile` waits, and notifies no task.
    Open,
    Lock,
    Unlock,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    /// The mutex was not free.
    Refused,
    /// It waited, and has locked again.
    Woken,
    Number(usize),
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    shared: Arc<Shared<B>>,
    held: Option<OwnedMutexGuard<bool, B>>,
}

struct Shared<B: BlockingBackend> {
    /// The value is `true` when the gate is open.
    mutex: Arc<Mutex<bool, B>>,
    condvar: Condvar<B>,
}

impl<B: BlockingBackend> Subject for CondvarOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = CondvarSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> CondvarSpec {
        CondvarSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "task",
            symmetry: 0,
            ops: vec![
                Operation::future("wait", Op::Wait),
                Operation::immediate("notify_one", Op::NotifyOne),
                Operation::immediate("notify_all", Op::NotifyAll),
                Operation::future("wait_while", Op::WaitWhile).alias(),
                Operation::immediate("open", Op::Open),
                Operation::immediate("lock", Op::Lock),
                Operation::immediate("unlock", Op::Unlock),
                Operation::immediate("waiting", Op::Waiting).alias(),
                Operation::immediate("granted", Op::Granted).alias(),
            ],
        };
        vec![role; participants]
    }

    /// Allows a participant to lock only if it does not hold the lock, and to unlock
    /// only if it does.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let op = |step: &Step| role.ops[step.op].op;
        let held = before.iter().rev().map(op).find_map(|op| match op {
            Op::Lock => Some(true),
            Op::Unlock => Some(false),
            _ => None,
        }) == Some(true);
        match op(&next) {
            Op::Unlock => held,
            Op::Wait | Op::WaitWhile | Op::Open | Op::Lock => !held,
            _ => true,
        }
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let shared = Arc::new(Shared {
            mutex: Arc::new(Mutex::with_max_barges_in(false, 0)),
            condvar: Condvar::new_in(),
        });
        (0..participants)
            .map(|_| Actor {
                shared: shared.clone(),
                held: None,
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { shared, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Shared { mutex, condvar } = &**shared;
        Started::Done(match *call.op {
            Op::Wait => match mutex.try_lock() {
                Ok(guard) => {
                    let wait = condvar.wait(guard);
                    return Started::future(async {
                        drop(wait.await);
                        Ret::Woken
                    });
                }
                Err(_) => Ret::Refused,
            },
            Op::WaitWhile => match mutex.try_lock() {
                Ok(guard) => {
                    let wait = condvar.wait_while(guard, |open| !*open);
                    return Started::future(async {
                        drop(wait.await);
                        Ret::Woken
                    });
                }
                Err(_) => Ret::Refused,
            },
            Op::NotifyOne => {
                condvar.notify_one();
                Ret::Unit
            }
            Op::NotifyAll => {
                condvar.notify_all();
                Ret::Unit
            }
            Op::Open => match mutex.try_lock() {
                Ok(mut open) => {
                    *open = true;
                    Ret::Unit
                }
                Err(_) => Ret::Refused,
            },
            Op::Lock => match mutex.clone().try_lock_owned() {
                Ok(guard) => {
                    *held = Some(guard);
                    Ret::Unit
                }
                Err(_) => Ret::Refused,
            },
            Op::Unlock => {
                drop(held.take());
                Ret::Unit
            }
            Op::Waiting => Ret::Number(condvar.waiting()),
            Op::Granted => Ret::Number(condvar.granted()),
        })
    }
}

/// What the operations of a condvar mean, one at a time. The waiter that has waited
/// longest is notified first. A notification without a waiter is lost.
pub(crate) struct CondvarSpec;

/// The state of a condvar and its mutex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    open: bool,
    /// The participant that holds the mutex from step to step.
    holder: Option<usize>,
    /// The waits that have begun, in order.
    waits: Vec<Wait>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant_id: usize,
    /// Whether it waits until the gate is open.
    until_open: bool,
    grant: Grant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Grant {
    None,
    /// Notified by `notify_one`, so a dropped wait passes the notification on.
    One,
    /// Notified with all others, or after no wait.
    All,
    /// The mutex was not free, so there was no wait.
    Refused,
}

impl State {
    fn notify_one(&mut self) {
        let first = self.waits.iter_mut().find(|wait| wait.grant == Grant::None);
        if let Some(wait) = first {
            wait.grant = Grant::One;
        }
    }

    fn leave(&mut self, participant_id: usize) -> Option<Wait> {
        let index = self
            .waits
            .iter()
            .position(|wait| wait.participant_id == participant_id)?;
        Some(self.waits.remove(index))
    }

    /// Returns this state, and those in which some notified waiters have found the gate
    /// closed, and wait again.
    fn looked(self) -> Vec<Self> {
        let mut all = vec![self];
        let mut next = 0;
        while next < all.len() {
            let state = all[next].clone();
            next += 1;
            for wait in &state.waits {
                let notified = matches!(wait.grant, Grant::One | Grant::All);
                if wait.until_open && notified && !state.open {
                    let mut again = state.clone();
                    again.leave(wait.participant_id);
                    again.waits.push(Wait {
                        grant: Grant::None,
                        ..*wait
                    });
                    if !all.contains(&again) {
                        all.push(again);
                    }
                }
            }
        }
        all
    }
}

impl Spec for CondvarSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Wait | Op::WaitWhile)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let until_open = *call.op == Op::WaitWhile;
        let waits = match until_open && state.open {
            true => Grant::All,
            false => Grant::None,
        };
        let begun = |grant| {
            let mut next = state.clone();
            next.waits.push(Wait {
                participant_id: call.participant,
                until_open,
                grant,
            });
            next
        };
        vec![begun(waits), begun(Grant::Refused)]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        if let Some(wait) = next.leave(call.participant)
            && wait.grant == Grant::One
        {
            next.notify_one();
        }
        next.looked()
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::Wait | Op::WaitWhile => match next.leave(call.participant) {
                Some(wait) if wait.grant == Grant::Refused => Ret::Refused,
                Some(wait) => {
                    let open = !wait.until_open || state.open;
                    if wait.grant == Grant::None || !open || state.holder.is_some() {
                        return Vec::new();
                    }
                    Ret::Woken
                }
                None => return Vec::new(),
            },
            Op::NotifyOne => {
                next.notify_one();
                Ret::Unit
            }
            Op::NotifyAll => {
                for wait in &mut next.waits {
                    if wait.grant == Grant::None {
                        wait.grant = Grant::All;
                    }
                }
                Ret::Unit
            }
            Op::Open => {
                let refused = (state.clone(), Ret::Refused);
                if state.holder.is_some() {
                    return vec![refused];
                }
                next.open = true;
                return vec![(next, Ret::Unit), refused];
            }
            Op::Lock => {
                let refused = (state.clone(), Ret::Refused);
                if state.holder.is_some() {
                    return vec![refused];
                }
                next.holder = Some(call.participant);
                return vec![(next, Ret::Unit), refused];
            }
            Op::Unlock => {
                if state.holder == Some(call.participant) {
                    next.holder = None;
                }
                Ret::Unit
            }
            Op::Waiting | Op::Granted => {
                return (0..=state.waits.len())
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
        };
        next.looked()
            .into_iter()
            .map(|state| (state, ret.clone()))
            .collect()
    }
}
