//! `reveille::Semaphore`, every public operation.

use std::sync::Arc;

use reveille::protocol::{Bits, BlockingBackend, describe_permits};
use reveille::semaphore::{OwnedSemaphorePermit, TryAcquireError};
use reveille::{AcquireError, Semaphore};

use super::notify::queueing;
use crate::execution::Value;
use crate::plan::{Mode, Plan, Profile};
use crate::program::Step;
use crate::spec::{Call, Spec};
use crate::subject::{Family, Offer, Role, Started, Subject};

/// `Semaphore` over every backend, with one permit to begin with.
pub(crate) struct Semaphores;

impl Family for Semaphores {
    type On<B: BlockingBackend> = SemaphoreOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SemaphoreOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        queueing(mode, profile)
    }
}

pub(crate) struct SemaphoreOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Between so many permits.
    Acquire(usize, usize),
    Blocking,
    Try(usize),
    Release,
    /// Splits what is held, merges it again, and releases it.
    SplitMerge,
    /// Gives up a permit for good.
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

/// What an operation answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    Acquired(usize),
    NoPermits,
    Closed,
    Number(usize),
    Is(bool),
}

/// What one participant holds.
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
        SemaphoreSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "task",
            kind: 0,
            ops: vec![
                Offer::future("acquire", Op::Acquire(1, 1)),
                Offer::at_once("release", Op::Release),
                Offer::at_once("try_acquire", Op::Try(1)),
                Offer::at_once("add_permits", Op::Add),
                Offer::at_once("close", Op::Close),
                Offer::future("acquire_many", Op::Acquire(2, 2)).alias(),
                Offer::future("acquire_up_to", Op::Acquire(1, 2)).alias(),
                Offer::at_once("try_acquire_many", Op::Try(2)),
                Offer::blocking("blocking_acquire", Op::Blocking),
                Offer::at_once("split_merge", Op::SplitMerge),
                Offer::at_once("forget", Op::ForgetHeld),
                Offer::at_once("forget_permits", Op::Forget),
                Offer::at_once("shrink", Op::Shrink),
                Offer::at_once("is_closed", Op::IsClosed),
                Offer::at_once("available_permits", Op::Available),
                Offer::at_once("waiting", Op::Waiting),
                Offer::at_once("granted", Op::Granted),
            ],
        };
        vec![role; participants]
    }

    /// Nobody gives back what no step before can have acquired.
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
        let semaphore = Arc::new(Semaphore::new_in(1, 0));
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
            // There is none of an owned kind: released at the end of the step.
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

/// What a semaphore is, one operation at a time: first come, first served.
pub(crate) struct SemaphoreSpec;

/// Its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    free: usize,
    debt: usize,
    closed: bool,
    /// Who waits, in order.
    queue: Vec<usize>,
    /// What is held, and by whom.
    held: Vec<(usize, usize)>,
}

impl State {
    fn give_back(&mut self, permits: usize) {
        let paid = permits.min(self.debt);
        self.debt -= paid;
        self.free += permits - paid;
    }

    fn leave(&mut self, who: usize) {
        self.queue.retain(|&waiter| waiter != who);
    }

    /// What somebody gives up who holds permits: the last he acquired.
    fn drop_held(&mut self, who: usize) -> Option<usize> {
        let index = self.held.iter().rposition(|&(owner, _)| owner == who)?;
        Some(self.held.remove(index).1)
    }
}

impl Spec for SemaphoreSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            free: 1,
            debt: 0,
            closed: false,
            queue: Vec::new(),
            held: Vec::new(),
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Acquire(..) | Op::Blocking)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.queue.push(call.who);
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.leave(call.who);
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let first = state.queue.first().is_none_or(|&first| first == call.who);
        let ret = match *call.op {
            Op::Acquire(..) | Op::Blocking if state.closed => {
                next.leave(call.who);
                Ret::Closed
            }
            Op::Acquire(least, most) => {
                if !first || state.free < least {
                    return Vec::new();
                }
                let taken = state.free.min(most);
                next.free -= taken;
                next.leave(call.who);
                if least == most {
                    next.held.push((call.who, taken));
                    Ret::Acquired(taken)
                } else {
                    Ret::Number(taken)
                }
            }
            Op::Blocking => {
                if !first || state.free < 1 {
                    return Vec::new();
                }
                next.free -= 1;
                next.leave(call.who);
                Ret::Number(1)
            }
            Op::Try(_) if state.closed => Ret::Closed,
            Op::Try(permits) => {
                // Somebody who waits may have been granted what is free.
                let mut outcomes = Vec::new();
                if !first || state.free < permits {
                    outcomes.push((state.clone(), Ret::NoPermits));
                }
                if first && state.free >= permits {
                    next.free -= permits;
                    next.held.push((call.who, permits));
                    outcomes.push((next, Ret::Acquired(permits)));
                }
                return outcomes;
            }
            Op::Release | Op::SplitMerge => match next.drop_held(call.who) {
                Some(permits) => {
                    next.give_back(permits);
                    Ret::Number(permits)
                }
                None => Ret::Unit,
            },
            Op::ForgetHeld => {
                next.drop_held(call.who);
                Ret::Unit
            }
            Op::Add => {
                next.give_back(1);
                Ret::Unit
            }
            Op::Forget => {
                // What has been granted to somebody who then gives up his wait
                // is not there to be forgotten meanwhile.
                let mut outcomes = Vec::new();
                if !state.queue.is_empty() || state.free == 0 {
                    outcomes.push((state.clone(), Ret::Number(0)));
                }
                if state.free > 0 {
                    next.free -= 1;
                    outcomes.push((next, Ret::Number(1)));
                }
                return outcomes;
            }
            Op::Shrink => {
                match state.free {
                    0 => next.debt += 1,
                    _ => next.free -= 1,
                }
                Ret::Unit
            }
            Op::Close => {
                next.closed = true;
                Ret::Unit
            }
            Op::IsClosed => Ret::Is(state.closed),
            Op::Available => {
                let least = if state.queue.is_empty() {
                    state.free
                } else {
                    0
                };
                return (least..=state.free)
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
            Op::Waiting | Op::Granted => {
                // Who has been granted and has not looked is told by neither the
                // queue nor the results: no more than there are participants.
                return (0..4).map(|n| (state.clone(), Ret::Number(n))).collect();
            }
        };
        vec![(next, ret)]
    }
}
