//! Permits that are counted.

use std::marker::PhantomData;

use reveille_verify::{Call, Operation, Role, Spec, Started, Subject, Value};

use super::BoxFuture;

/// A semaphore of a crate, with two permits. What it grants is owned.
pub(crate) trait Semaphore: Send + Sync + 'static {
    type Semaphore: Clone + Send + Sync + 'static;
    type Permit: Send + 'static;

    /// Whether several permits can be acquired at once.
    const MANY: bool;

    fn new(permits: usize) -> Self::Semaphore;
    fn acquire(semaphore: Self::Semaphore, permits: usize) -> BoxFuture<'static, Self::Permit>;
    fn try_acquire(semaphore: Self::Semaphore, permits: usize) -> Option<Self::Permit>;
}

/// The permits that there are.
const PERMITS: usize = 2;

/// A semaphore as a subject.
pub(crate) struct Semaphores<S>(PhantomData<fn() -> S>);

impl<S> Semaphores<S> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Acquire(usize),
    TryAcquire,
    Release,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Acquired,
    Refused,
    Released(usize),
}

pub(crate) struct Holder<S: Semaphore> {
    /// What it has acquired, the permits and their number.
    held: Vec<(S::Permit, usize)>,
    semaphore: S::Semaphore,
}

impl<S: Semaphore> Subject for Semaphores<S> {
    type Op = Op;
    type Ret = Ret;
    type Spec = SemaphoreSpec;
    type Actor = Holder<S>;

    fn spec(&self) -> SemaphoreSpec {
        SemaphoreSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let mut ops = vec![
            Operation::future("acquire", Op::Acquire(1)),
            Operation::immediate("try_acquire", Op::TryAcquire),
            Operation::immediate("release", Op::Release),
        ];
        if S::MANY {
            ops.push(Operation::future("acquire_two", Op::Acquire(2)));
        }
        vec![
            Role {
                name: "task",
                ops,
                symmetry: 0
            };
            participants
        ]
    }

    fn actors(&self, participants: usize) -> Vec<Holder<S>> {
        let semaphore = S::new(PERMITS);
        (0..participants)
            .map(|_| Holder {
                held: Vec::new(),
                semaphore: semaphore.clone(),
            })
            .collect()
    }

    fn start<'a>(
        &self,
        holder: &'a mut Holder<S>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Holder { held, semaphore } = holder;
        match *call.op {
            Op::Acquire(permits) => {
                let acquired = S::acquire(semaphore.clone(), permits);
                Started::future(async move {
                    held.push((acquired.await, permits));
                    Ret::Acquired
                })
            }
            Op::TryAcquire => {
                let acquired = S::try_acquire(semaphore.clone(), 1);
                let ret = if acquired.is_some() {
                    Ret::Acquired
                } else {
                    Ret::Refused
                };
                held.extend(acquired.map(|permit| (permit, 1)));
                Started::Done(ret)
            }
            Op::Release => Started::Done(Ret::Released(held.drain(..).map(|(_, n)| n).sum())),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    available: usize,
    held: Vec<usize>,
    /// Those that wait.
    waiting: Vec<usize>,
}

pub(crate) struct SemaphoreSpec;

impl Spec for SemaphoreSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            available: PERMITS,
            held: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let participant_id = call.participant;
        let mut next = state.clone();
        next.held.resize(next.held.len().max(participant_id + 1), 0);
        let mut take = |permits: usize| {
            next.available -= permits;
            next.held[participant_id] += permits;
            next.waiting.retain(|&waiter| waiter != participant_id);
        };
        let ret = match *call.op {
            Op::Acquire(permits) if permits <= state.available => {
                take(permits);
                Ret::Acquired
            }
            Op::Acquire(_) => return Vec::new(),
            Op::TryAcquire if state.available > 0 => {
                take(1);
                let acquired = (next, Ret::Acquired);
                // A fair semaphore refuses while others wait.
                return match state.waiting.is_empty() {
                    true => vec![acquired],
                    false => vec![acquired, (state.clone(), Ret::Refused)],
                };
            }
            Op::TryAcquire => Ret::Refused,
            Op::Release => {
                let held = std::mem::take(&mut next.held[participant_id]);
                next.available += held;
                Ret::Released(held)
            }
        };
        vec![(next, ret)]
    }

    /// A fair semaphore makes a small request wait behind a large one.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        let others = state
            .waiting
            .iter()
            .any(|&waiter| waiter != call.participant);
        let all = matches!(call.op, Op::Acquire(_)) && state.available == PERMITS;
        all || (!others && !self.step(state, call).is_empty())
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Acquire(_))
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.waiting.push(call.participant);
        next.waiting.sort_unstable();
        next.waiting.dedup();
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.waiting.retain(|&waiter| waiter != call.participant);
        vec![next]
    }

    /// Permits are there before the waker of another is called.
    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut states = self.cancel(state, call);
        if matches!(call.op, Op::Release) {
            states.extend(self.effects(state, call));
        }
        states
    }
}
