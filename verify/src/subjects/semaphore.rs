//! `reveille::Semaphore`, with every public operation.
//!
//! How many tasks wait and how many have a grant is left open up to the number of waits.
//! `primitives/tests/semaphore.rs` pins it, and how often a request is barged past.

use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::raw::describe_permits;
use reveille::semaphore::{OwnedSemaphorePermit, TryAcquireError};
use reveille::{AcquireError, Semaphore};

use crate::run::entry::{
    Absent::{Constant, Creates, Locations, SameAs},
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
            "semaphore",
            "reveille::Semaphore, first in, first out",
            Semaphores(0),
            SURFACE,
        ),
        SubjectEntry::new(
            "semaphore-bounded",
            "reveille::Semaphore, with at most two barges",
            Semaphores(2),
            Surface::As("semaphore"),
        ),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "semaphore.rs",
    absent: &[
        ("acquire_many_owned", SameAs("acquire_many")),
        ("acquire_owned", SameAs("acquire")),
        ("blocking_acquire_many", SameAs("blocking_acquire")),
        ("blocking_acquire_many_owned", SameAs("blocking_acquire")),
        ("blocking_acquire_owned", SameAs("blocking_acquire")),
        ("const_new", Creates),
        ("holders", Locations),
        ("merge", SameAs("split_merge")),
        ("new", Creates),
        ("new_in", Creates),
        ("num_permits", Constant),
        ("semaphore", Constant),
        ("split", SameAs("split_merge")),
        ("try_acquire_many_owned", SameAs("try_acquire_many")),
        ("try_acquire_owned", SameAs("try_acquire")),
        ("waiters", Locations),
        ("with_max_barges", Creates),
        ("with_max_barges_in", Creates),
    ],
}]);

/// `Semaphore` over every backend, with one permit at first, and a bound on barging.
pub(crate) struct Semaphores(pub(crate) u16);

impl GenericSubject for Semaphores {
    type On<B: BlockingBackend> = SemaphoreOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SemaphoreOn {
            bound: self.0,
            backend: std::marker::PhantomData,
        }
    }

    /// The bound makes no difference to the real lock and its accesses to memory, so in
    /// the quick profile one bound is explored.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        match (mode, profile) {
            (Mode::Sections | Mode::Accesses, Profile::Quick) if self.0 > 0 => Vec::new(),
            _ => queueing(mode, profile),
        }
    }
}

pub(crate) struct SemaphoreOn<B> {
    bound: u16,
    backend: std::marker::PhantomData<fn() -> B>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Acquires a number of permits between these two.
    Acquire(usize, usize),
    Blocking,
    Try(usize),
    Release,
    /// Splits a permit, merges it again, and releases it.
    SplitMerge,
    /// Forgets a permit.
    ForgetHeld,
    Add,
    Forget,
    Shrink,
    Close,
    IsClosed,
    Available,
    Waiting,
    Granted,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    Acquired(usize),
    NoPermits,
    Closed,
    Number(usize),
    Is(bool),
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    semaphore: Arc<Semaphore<B>>,
    held: Vec<OwnedSemaphorePermit<B>>,
}

impl<B: BlockingBackend> Subject for SemaphoreOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = SemaphoreSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> SemaphoreSpec {
        SemaphoreSpec {
            bound: usize::from(self.bound),
        }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "task",
            symmetry: 0,
            ops: vec![
                Operation::future("acquire", Op::Acquire(1, 1)),
                Operation::immediate("release", Op::Release),
                Operation::immediate("try_acquire", Op::Try(1)),
                Operation::immediate("add_permits", Op::Add),
                Operation::immediate("close", Op::Close),
                Operation::future("acquire_many", Op::Acquire(2, 2)).alias(),
                Operation::future("acquire_up_to", Op::Acquire(1, 2)).alias(),
                Operation::immediate("try_acquire_many", Op::Try(2)).alias(),
                Operation::blocking("blocking_acquire", Op::Blocking).alias(),
                Operation::immediate("split_merge", Op::SplitMerge).alias(),
                Operation::immediate("forget", Op::ForgetHeld),
                Operation::immediate("forget_permits", Op::Forget),
                Operation::immediate("shrink", Op::Shrink),
                Operation::immediate("is_closed", Op::IsClosed).alias(),
                Operation::immediate("available_permits", Op::Available).alias(),
                Operation::immediate("waiting", Op::Waiting).alias(),
                Operation::immediate("granted", Op::Granted).alias(),
            ],
        };
        vec![role; participants]
    }

    /// Allows a release only after a step that may have acquired a permit.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let op = |step: &Step| role.ops[step.op].op;
        let acquired = before
            .iter()
            .any(|step| matches!(op(step), Op::Acquire(..) | Op::Blocking | Op::Try(_)));
        acquired || !matches!(op(&next), Op::Release | Op::SplitMerge | Op::ForgetHeld)
    }

    fn describe(&self, bits: Bits) -> String {
        let mut text = String::new();
        describe_permits(bits, &mut text).expect("writing to a string does not fail");
        text
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let semaphore = Arc::new(Semaphore::with_max_barges_in(1, self.bound));
        (0..participants)
            .map(|_| Actor {
                semaphore: semaphore.clone(),
                held: Vec::new(),
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { semaphore, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match *call.op {
            Op::Acquire(1, 1) => {
                let acquire = semaphore.clone().acquire_owned();
                return Started::future(async { keep(acquire.await, held) });
            }
            Op::Acquire(2, 2) => {
                let acquire = semaphore.clone().acquire_many_owned(2);
                return Started::future(async { keep(acquire.await, held) });
            }
            // It has no owned guard, so it is released at the end of the step.
            Op::Acquire(least, most) => {
                return Started::future(async move {
                    match semaphore.acquire_up_to(least, most).await {
                        Ok(permits) => {
                            let number = permits.num_permits();
                            permits.forget();
                            Ret::Number(number)
                        }
                        Err(_) => Ret::Closed,
                    }
                });
            }
            Op::Blocking => match semaphore.blocking_acquire() {
                Ok(permit) => {
                    permit.forget();
                    Ret::Number(1)
                }
                Err(_) => Ret::Closed,
            },
            Op::Try(1) => tried(semaphore.clone().try_acquire_owned(), held),
            Op::Try(permits) => tried(semaphore.clone().try_acquire_many_owned(permits), held),
            Op::Release => match held.pop() {
                Some(permits) => Ret::Number(permits.num_permits()),
                None => Ret::Unit,
            },
            Op::SplitMerge => match held.pop() {
                Some(mut permits) => {
                    if let Some(one) = permits.split(1) {
                        permits.merge(one);
                    }
                    Ret::Number(permits.num_permits())
                }
                None => Ret::Unit,
            },
            Op::ForgetHeld => match held.pop() {
                Some(permits) => {
                    permits.forget();
                    Ret::Unit
                }
                None => Ret::Unit,
            },
            Op::Add => {
                semaphore.add_permits(1);
                Ret::Unit
            }
            Op::Forget => Ret::Number(semaphore.forget_permits(1)),
            Op::Shrink => {
                semaphore.shrink(1);
                Ret::Unit
            }
            Op::Close => {
                semaphore.close();
                Ret::Unit
            }
            Op::IsClosed => Ret::Is(semaphore.is_closed()),
            Op::Available => Ret::Number(semaphore.available_permits()),
            Op::Waiting => Ret::Number(semaphore.waiting()),
            Op::Granted => Ret::Number(semaphore.granted()),
        })
    }
}

fn keep<B: BlockingBackend>(
    acquired: Result<OwnedSemaphorePermit<B>, AcquireError>,
    held: &mut Vec<OwnedSemaphorePermit<B>>,
) -> Ret {
    match acquired {
        Ok(permits) => {
            let number = permits.num_permits();
            held.push(permits);
            Ret::Acquired(number)
        }
        Err(_) => Ret::Closed,
    }
}

fn tried<B: BlockingBackend>(
    acquired: Result<OwnedSemaphorePermit<B>, TryAcquireError>,
    held: &mut Vec<OwnedSemaphorePermit<B>>,
) -> Ret {
    match acquired {
        Ok(permits) => {
            let number = permits.num_permits();
            held.push(permits);
            Ret::Acquired(number)
        }
        Err(TryAcquireError::Closed) => Ret::Closed,
        Err(TryAcquireError::NoPermits) => Ret::NoPermits,
    }
}

/// What the operations of a semaphore mean, one at a time. Requests are granted first
/// in, first out. A request that can be granted is granted at once.
///
/// With a bound above 0, a request may barge past the first waiter, at most as often as
/// the bound says. The moment at which a waiter takes its permits, between its grant
/// and its next poll, is not visible from outside. In the specification it takes them
/// when it is ready, and until then others may find them gone.
pub(crate) struct SemaphoreSpec {
    pub(crate) bound: usize,
}

/// The state of a semaphore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    free: usize,
    debt: usize,
    closed: bool,
    /// The requests that have begun, in order.
    waits: Vec<Wait>,
    /// How often requests have barged past the first waiter without a result.
    barged: usize,
    /// The participants that hold permits, with how many.
    held: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant_id: usize,
    least: usize,
    most: usize,
    answer: Option<Reply>,
}

/// The result that a request was given and has not observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Granted(usize),
    Closed,
}

impl State {
    /// Grants at most `at_most` requests, in order.
    fn assign(&mut self, at_most: usize) {
        let free = &mut self.free;
        let unanswered = self.waits.iter_mut().filter(|wait| wait.answer.is_none());
        for wait in unanswered.take(at_most) {
            if *free < wait.least {
                return;
            }
            let granted = (*free).min(wait.most);
            *free -= granted;
            wait.answer = Some(Reply::Granted(granted));
        }
    }

    fn give_back(&mut self, permits: usize) {
        let paid = permits.min(self.debt);
        self.debt -= paid;
        self.free += permits - paid;
    }

    /// Returns the participant at the head of the queue.
    fn first(&self) -> Option<usize> {
        let mut waits = self.waits.iter();
        waits
            .find(|wait| wait.answer.is_none())
            .map(|wait| wait.participant_id)
    }

    /// Returns the state after a participant has taken permits, and their number, if
    /// there are enough and the bound permits that.
    fn takes(
        &self,
        participant_id: usize,
        least: usize,
        most: usize,
        bound: usize,
    ) -> Option<(Self, usize)> {
        if self.free < least {
            return None;
        }
        let mut next = self.clone();
        if self.first().is_some_and(|first| first != participant_id) {
            if self.barged >= bound {
                return None;
            }
            next.barged += 1;
        }
        next.leave(participant_id);
        let taken = self.free.min(most);
        next.free -= taken;
        Some((next, taken))
    }

    fn leave(&mut self, participant_id: usize) -> Option<Wait> {
        let index = self
            .waits
            .iter()
            .position(|wait| wait.participant_id == participant_id)?;
        if self.first() == Some(participant_id) {
            self.barged = 0;
        }
        Some(self.waits.remove(index))
    }

    /// Removes the permits that a participant acquired last, and returns their number.
    fn drop_held(&mut self, participant_id: usize) -> Option<usize> {
        let index = self
            .held
            .iter()
            .rposition(|&(owner, _)| owner == participant_id)?;
        Some(self.held.remove(index).1)
    }
}

impl SemaphoreSpec {
    /// Grants all requests that can be granted, if no request may barge.
    fn assigned(&self, mut state: State) -> State {
        if self.bound == 0 {
            state.assign(usize::MAX);
        }
        state
    }

    /// Returns `true` if permits may be gone that a waiter will be seen to have.
    fn hides(&self, state: &State) -> bool {
        self.bound > 0 && state.first().is_some()
    }
}

impl Spec for SemaphoreSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            free: 1,
            ..State::default()
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Acquire(..) | Op::Blocking)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let (least, most) = match *call.op {
            Op::Acquire(least, most) => (least, most),
            _ => (1, 1),
        };
        let mut next = state.clone();
        next.waits.push(Wait {
            participant_id: call.participant,
            least,
            most,
            answer: state.closed.then_some(Reply::Closed),
        });
        vec![self.assigned(next)]
    }

    /// Free permits are due to the first waiter. Others may take them, and need not be
    /// given them.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        let behind = state.first().is_some_and(|first| first != call.participant);
        let answered =
            |wait: &Wait| wait.participant_id == call.participant && wait.answer.is_some();
        !self.step(state, call).is_empty() && (!behind || state.waits.iter().any(answered))
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        if let Some(Reply::Granted(permits)) =
            next.leave(call.participant).and_then(|wait| wait.answer)
        {
            next.give_back(permits);
        }
        vec![self.assigned(next)]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::Acquire(..) | Op::Blocking => {
                let wait = state
                    .waits
                    .iter()
                    .find(|wait| wait.participant_id == call.participant);
                let Some(&Wait {
                    least,
                    most,
                    answer,
                    ..
                }) = wait
                else {
                    return Vec::new();
                };
                let granted = match answer {
                    Some(Reply::Granted(permits)) => {
                        next.leave(call.participant);
                        permits
                    }
                    Some(Reply::Closed) => {
                        next.leave(call.participant);
                        return vec![(next, Ret::Closed)];
                    }
                    None => match state.takes(call.participant, least, most, self.bound) {
                        Some((taken, permits)) if self.bound > 0 => {
                            next = taken;
                            permits
                        }
                        _ => return Vec::new(),
                    },
                };
                if *call.op == Op::Acquire(least, most) && least == most {
                    next.held.push((call.participant, granted));
                    Ret::Acquired(granted)
                } else {
                    Ret::Number(granted)
                }
            }
            Op::Try(_) if state.closed => Ret::Closed,
            Op::Try(permits) => {
                let refused = (state.clone(), Ret::NoPermits);
                let taken = state.takes(call.participant, permits, permits, self.bound);
                let Some((mut next, permits)) = taken else {
                    return vec![refused];
                };
                next.held.push((call.participant, permits));
                let taken = (next, Ret::Acquired(permits));
                return match self.hides(state) {
                    true => vec![taken, refused],
                    false => vec![taken],
                };
            }
            Op::Release | Op::SplitMerge => match next.drop_held(call.participant) {
                Some(permits) => {
                    next.give_back(permits);
                    Ret::Number(permits)
                }
                None => Ret::Unit,
            },
            Op::ForgetHeld => {
                next.drop_held(call.participant);
                Ret::Unit
            }
            Op::Add => {
                next.give_back(1);
                Ret::Unit
            }
            Op::Forget => {
                let forgotten = |number| {
                    let mut next = state.clone();
                    next.free -= number;
                    (next, Ret::Number(number))
                };
                let number = state.free.min(1);
                return match self.hides(state) && number > 0 {
                    true => vec![forgotten(number), forgotten(0)],
                    false => vec![forgotten(number)],
                };
            }
            Op::Shrink => {
                let mut owed = state.clone();
                owed.debt += 1;
                if state.free == 0 {
                    return vec![(owed, Ret::Unit)];
                }
                next.free -= 1;
                if self.hides(state) {
                    return vec![(next, Ret::Unit), (owed, Ret::Unit)];
                }
                Ret::Unit
            }
            // A waiter that was granted its permits before the close keeps them.
            Op::Close => {
                let most = if self.hides(state) {
                    state.waits.len()
                } else {
                    0
                };
                let closed = |assigned| {
                    let mut next = state.clone();
                    next.assign(assigned);
                    next.closed = true;
                    next.barged = 0;
                    for wait in &mut next.waits {
                        wait.answer.get_or_insert(Reply::Closed);
                    }
                    (next, Ret::Unit)
                };
                return (0..=most).map(closed).collect();
            }
            Op::IsClosed => Ret::Is(state.closed),
            Op::Available if self.hides(state) => {
                return (0..=state.free)
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
            Op::Available => Ret::Number(state.free),
            // A request that was granted at once was never in the queue. Here it cannot
            // be told from one that was granted in the queue.
            Op::Waiting | Op::Granted => {
                return (0..=state.waits.len())
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
        };
        vec![(self.assigned(next), ret)]
    }
}
