//! `reveille::Mutex`, with every public operation that threads can share.
//!
//! The value is a count, to which each unlock adds one. A holder that did not exclude
//! the others, or did not see what the one before wrote, would return a number that no
//! order explains. Under loom the accesses of the guard are also checked.
//!
//! How many tasks wait, and whether one has a grant, is left open up to the length of the
//! queue. `primitives/tests/mutex.rs` pins it, and how often a waiter is barged past.

use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::mutex::{OwnedMappedMutexGuard, OwnedMutexGuard};
use reveille::protocol::Bits;
use reveille::raw::describe_permits;
use reveille::{Mutex, MutexGuard};

use crate::run::entry::{
    Absent::{Constant, Creates, Exclusive, Locations, SameAs},
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
    vec![
        SubjectEntry::new(
            "mutex",
            "reveille::Mutex, with at most one barge",
            Mutexes(1),
            SURFACE,
        ),
        SubjectEntry::new(
            "mutex-strict",
            "reveille::Mutex, first in, first out",
            Mutexes(0),
            Surface::As("mutex"),
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "mutex.rs",
    absent: &[
        ("const_new", Creates),
        ("get_mut", Exclusive),
        ("holder", Locations),
        ("into_inner", Exclusive),
        ("mutex", Constant),
        ("new", Creates),
        ("new_in", Creates),
        ("try_map", SameAs("map")),
        ("waiters", Locations),
        ("with_max_barges", Creates),
        ("with_max_barges_in", Creates),
    ],
}]);

/// `Mutex` over every backend, with a bound on barging.
pub(crate) struct Mutexes(pub(crate) u16);

impl GenericSubject for Mutexes {
    type On<B: BlockingBackend> = MutexOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        MutexOn {
            bound: self.0,
            backend: std::marker::PhantomData,
        }
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        queueing(mode, profile)
    }
}

pub(crate) struct MutexOn<B> {
    bound: u16,
    backend: std::marker::PhantomData<fn() -> B>,
}

/// An operation. An owned guard is held from step to step. A borrowed guard is locked
/// and unlocked in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    LockOwned,
    TryLockOwned,
    BlockingLockOwned,
    Map,
    Unlock,
    Lock,
    TryLock,
    BlockingLock,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// It has no result, or there was nothing to do.
    Unit,
    /// The lock is held.
    Locked,
    /// The lock was not free.
    Refused,
    /// It was unlocked. The count is what it found.
    Unlocked(usize),
    /// The number of waiters.
    Waiting(usize),
    /// Whether there is an unobserved grant.
    Granted(bool),
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    mutex: Arc<Mutex<usize, B>>,
    held: Option<Held<B>>,
}

enum Held<B: BlockingBackend> {
    Whole(OwnedMutexGuard<usize, B>),
    Mapped(OwnedMappedMutexGuard<usize, usize, B>),
}

impl<B: BlockingBackend> Subject for MutexOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = MutexSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> MutexSpec {
        MutexSpec { bound: self.bound }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "task",
            symmetry: 0,
            ops: vec![
                Operation::future("lock_owned", Op::LockOwned),
                Operation::immediate("unlock", Op::Unlock),
                Operation::immediate("try_lock_owned", Op::TryLockOwned),
                Operation::future("lock", Op::Lock).alias(),
                Operation::immediate("try_lock", Op::TryLock).alias(),
                Operation::blocking("blocking_lock", Op::BlockingLock).alias(),
                Operation::blocking("blocking_lock_owned", Op::BlockingLockOwned).alias(),
                Operation::immediate("map", Op::Map).alias(),
                Operation::immediate("waiting", Op::Waiting).alias(),
                Operation::immediate("granted", Op::Granted).alias(),
            ],
        };
        vec![role; participants]
    }

    /// Allows a participant that certainly holds the lock no request for it. One that
    /// cannot hold it does not unlock or map it.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let op = |step: &Step| role.ops[step.op].op;
        // Whether it may not hold the lock, and whether it may. A request may have been
        // refused, or given up.
        let (mut free, mut held) = (true, false);
        for step in before {
            match op(step) {
                Op::LockOwned if step.polling.completes() => (free, held) = (false, true),
                Op::LockOwned | Op::TryLockOwned => held = true,
                Op::BlockingLockOwned => (free, held) = (false, true),
                Op::Unlock => (free, held) = (true, false),
                _ => {}
            }
        }
        match op(&next) {
            Op::Unlock | Op::Map => held,
            Op::Waiting | Op::Granted => true,
            _ => free,
        }
    }

    fn describe(&self, bits: Bits) -> String {
        let mut text = String::new();
        describe_permits(bits, &mut text).expect("writing to a string does not fail");
        text
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let mutex = Arc::new(Mutex::with_max_barges_in(0, self.bound));
        (0..participants)
            .map(|_| Actor {
                mutex: mutex.clone(),
                held: None,
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { mutex, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let add = |guard: &mut usize| {
            *guard += 1;
            Ret::Unlocked(*guard - 1)
        };
        Started::Done(match call.op {
            Op::LockOwned => {
                let lock = mutex.clone().lock_owned();
                return Started::future(async {
                    *held = Some(Held::Whole(lock.await));
                    Ret::Locked
                });
            }
            Op::Lock => {
                return Started::future(async move { add(&mut *mutex.lock().await) });
            }
            Op::TryLockOwned => match mutex.clone().try_lock_owned() {
                Ok(guard) => {
                    *held = Some(Held::Whole(guard));
                    Ret::Locked
                }
                Err(_) => Ret::Refused,
            },
            Op::TryLock => match mutex.try_lock() {
                Ok(mut guard) => add(&mut guard),
                Err(_) => Ret::Refused,
            },
            Op::BlockingLock => {
                let guard = mutex.blocking_lock();
                add(&mut MutexGuard::map(guard, |count| count))
            }
            Op::BlockingLockOwned => {
                *held = Some(Held::Whole(mutex.clone().blocking_lock_owned()));
                Ret::Locked
            }
            Op::Map => {
                *held = match held.take() {
                    Some(Held::Whole(guard)) => {
                        Some(Held::Mapped(OwnedMutexGuard::map(guard, |count| count)))
                    }
                    held => held,
                };
                Ret::Unit
            }
            Op::Unlock => match held.take() {
                Some(Held::Whole(mut guard)) => add(&mut guard),
                Some(Held::Mapped(mut guard)) => add(&mut guard),
                None => Ret::Unit,
            },
            Op::Waiting => Ret::Waiting(mutex.waiting()),
            Op::Granted => Ret::Granted(mutex.granted()),
        })
    }
}

/// What the operations of a mutex mean, one at a time. The waiter at the head of the
/// queue is barged past at most as often as the bound says.
pub(crate) struct MutexSpec {
    pub(crate) bound: u16,
}

/// The state of a mutex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    holder: Option<usize>,
    count: usize,
    /// The waiters, in order.
    queue: Vec<usize>,
    /// How often tasks have barged past the first waiter.
    barged: u16,
    /// The participants that lock and unlock in one operation. While it lasts, the lock
    /// may be found held.
    passing: Vec<usize>,
}

impl State {
    /// Removes a participant from the queue.
    fn leave(&mut self, participant_id: usize) {
        if self.queue.first() == Some(&participant_id) {
            self.barged = 0;
        }
        self.queue.retain(|&waiter| waiter != participant_id);
        self.passing.retain(|&passer| passer != participant_id);
        if self.queue.is_empty() {
            self.barged = 0;
        }
    }

    /// Returns `true` if another participant is at the head of the queue.
    fn is_behind(&self, participant_id: usize) -> bool {
        self.queue
            .first()
            .is_some_and(|&first| first != participant_id)
    }

    /// Returns the state after a participant has barged past all waiters before it, if
    /// the bound permits that.
    fn passes(&self, participant_id: usize, bound: u16) -> Option<Self> {
        if self.holder.is_some() {
            return None;
        }
        let mut next = self.clone();
        if self.is_behind(participant_id) {
            if self.barged >= bound {
                return None;
            }
            next.barged += 1;
        }
        next.leave(participant_id);
        Some(next)
    }

    /// Returns the state after a participant that locks and unlocks in one operation.
    /// The moment of the lock is not visible from outside, nor is the waiter it barged
    /// past, so it does not count.
    fn passes_by(&self, participant_id: usize) -> Option<Self> {
        self.holder.is_none().then(|| {
            let mut next = self.clone();
            next.leave(participant_id);
            next
        })
    }
}

impl Spec for MutexSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        !matches!(
            op,
            Op::Unlock | Op::Map | Op::Waiting | Op::Granted | Op::TryLockOwned
        )
    }

    /// A free lock is due to the first waiter. Others may take it, and need not be
    /// given it.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        !self.step(state, call).is_empty() && !state.is_behind(call.participant)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if matches!(call.op, Op::Lock | Op::TryLock | Op::BlockingLock) {
            next.passing.push(call.participant);
        }
        if *call.op != Op::TryLock {
            next.queue.push(call.participant);
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if *call.op == Op::Unlock {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        next.leave(call.participant);
        vec![next]
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = self.cancel(state, call);
        // It unlocks before it returns, and a waker that it wakes may panic.
        if *call.op == Op::Lock {
            next.extend(self.effects(state, call));
        }
        next
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let passed = || state.passes(call.participant, self.bound);
        let locked = |mut next: State| {
            next.holder = Some(call.participant);
            (next, Ret::Locked)
        };
        let counted = |mut next: State| {
            next.count += 1;
            (next, Ret::Unlocked(state.count))
        };
        let passed_by = || state.passes_by(call.participant);
        // Others may hold the lock for a moment, or have used up the bound.
        let others = state
            .passing
            .iter()
            .any(|&passer| passer != call.participant);
        let refused = || {
            let mut next = state.clone();
            next.leave(call.participant);
            let may = others || state.holder.is_some() || state.is_behind(call.participant);
            may.then_some((next, Ret::Refused))
        };
        match call.op {
            Op::LockOwned | Op::BlockingLockOwned => passed().map(locked).into_iter().collect(),
            Op::Lock | Op::BlockingLock => passed_by().map(counted).into_iter().collect(),
            Op::TryLockOwned => passed().map(locked).into_iter().chain(refused()).collect(),
            Op::TryLock => passed_by()
                .map(counted)
                .into_iter()
                .chain(refused())
                .collect(),
            Op::Map => vec![(state.clone(), Ret::Unit)],
            Op::Unlock if state.holder == Some(call.participant) => {
                let mut next = state.clone();
                next.holder = None;
                vec![counted(next)]
            }
            Op::Unlock => vec![(state.clone(), Ret::Unit)],
            Op::Waiting => (0..=state.queue.len())
                .map(|n| (state.clone(), Ret::Waiting(n)))
                .collect(),
            // Whether the first waiter has been granted the lock and has not observed
            // it.
            Op::Granted => [false, !state.queue.is_empty()]
                .map(|granted| (state.clone(), Ret::Granted(granted)))
                .into(),
        }
    }
}
