//! `reveille::time::Timeout` on a virtual clock, around a mutex, a semaphore, a notify
//! and a oneshot.
//!
//! A grant that arrives while the deadline passes is either delivered or passed back,
//! never neither and never both. A result that is there when it is polled for wins over
//! a deadline that has also passed. A history cannot show that, since the poll is in
//! the middle of an operation: tests pin it.

use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::oneshot::error::{RecvError, TryRecvError};
use reveille::oneshot::{Receiver, Sender, channel_in};
use reveille::raw::Boxed;
use reveille::time::VirtualClock;
use reveille::time::error::Elapsed;
use reveille::{Mutex, Notify, OwnedMutexGuard, Semaphore};

use crate::run::entry::{SubjectEntry, Surface};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::time::{at, by_hand, plans, ticks};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "timeout",
            "reveille::time: timeouts around a mutex, a semaphore, a notify, a oneshot",
            Timeouts,
            Surface::Other("the operations of the primitives that it wraps"),
        )
        .in_group("time"),
    ]
}

/// `Timeout` over every backend.
pub(crate) struct Timeouts;

impl GenericSubject for Timeouts {
    type On<B: BlockingBackend> = TimeoutOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        TimeoutOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        plans(mode, profile, 3)
    }
}

pub(crate) struct TimeoutOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation. Times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Waits for a grant until this tick.
    TimeoutAt(u64, Pool),
    /// Waits for a grant for this many ticks.
    Timeout(u64, Pool),
    /// Waits for a grant without a deadline.
    Wait(Pool),
    /// Waits for the value, and keeps the receiver if it does not come.
    RecvUntil(u64),
    /// Waits for the value, and drops the receiver if it does not come.
    RecvOwnedUntil(u64),
    TryRecv,
    Send,
    Unlock,
    TryLock,
    AddPermit,
    NotifyOne,
    Available,
    Advance(u64),
}

/// The primitive that grants, first in, first out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pool {
    Mutex,
    Semaphore,
    Notify,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    Granted,
    Elapsed,
    Refused,
    Sent,
    Returned(ValueId),
    Received(ValueId),
    /// Nothing has been sent.
    Empty,
    /// There is nothing left to do it with.
    Gone,
    Number(usize),
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    clock: VirtualClock<B>,
    mutex: Arc<Mutex<(), B>>,
    semaphore: Arc<Semaphore<B>>,
    notify: Arc<Notify<B>>,
    guard: Option<OwnedMutexGuard<(), B>>,
    sender: Option<Sender<Value, Boxed<B>>>,
    receiver: Option<Receiver<Value, Boxed<B>>>,
}

impl<B: BlockingBackend> Subject for TimeoutOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = TimeoutSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> TimeoutSpec {
        TimeoutSpec
    }

    /// Returns one role that releases, one that moves the clock, and others that wait. The
    /// first of these has the receiver.
    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        use Pool::{Mutex, Notify, Semaphore};
        let role = |name, symmetry, ops| Role {
            name,
            symmetry,
            ops,
        };
        let waits = vec![
            Operation::future("timeout_acquire", Op::TimeoutAt(1, Semaphore)),
            Operation::future("timeout_lock", Op::TimeoutAt(1, Mutex)).alias(),
            Operation::future("timeout_notified", Op::TimeoutAt(1, Notify)).alias(),
            Operation::future("timeout_for_acquire", Op::Timeout(1, Semaphore)).alias(),
            Operation::future("acquire", Op::Wait(Semaphore)).alias(),
            Operation::future("lock", Op::Wait(Mutex)).alias(),
            Operation::future("notified", Op::Wait(Notify)).alias(),
            Operation::immediate("unlock", Op::Unlock),
        ];
        let mut receives = waits.clone();
        receives.extend([
            Operation::future("timeout_recv", Op::RecvUntil(1))
                .alias()
                .keeps_waker("it polls a receiver that outlives it, which keeps its latest waker"),
            Operation::future("timeout_recv_owned", Op::RecvOwnedUntil(1)).alias(),
            Operation::immediate("try_recv", Op::TryRecv),
        ]);
        let releases = vec![
            Operation::immediate("add_permit", Op::AddPermit),
            Operation::immediate("unlock", Op::Unlock),
            Operation::immediate("notify_one", Op::NotifyOne),
            Operation::immediate("send", Op::Send),
            Operation::immediate("try_lock", Op::TryLock),
            Operation::immediate("available_permits", Op::Available),
        ];
        let advance = vec![Operation::immediate("advance", Op::Advance(1))];
        let mut roles = vec![
            role("releaser", 0, releases),
            role("clock", 1, advance),
            role("receiver", 2, receives),
        ];
        roles.resize(participants.max(3), role("waiter", 3, waits));
        roles
    }

    /// Allows a participant to wait for the mutex only if it does not hold it, and to
    /// unlock it only if it may.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let op = |step: &Step| role.ops[step.op].op;
        let releases = role
            .ops
            .iter()
            .any(|operation| operation.op == Op::AddPermit);
        let held = before.iter().map(op).fold(releases, |held, op| match op {
            Op::TimeoutAt(_, Pool::Mutex) | Op::Wait(Pool::Mutex) | Op::TryLock => true,
            Op::Unlock => false,
            _ => held,
        });
        match op(&next) {
            Op::Unlock => held,
            Op::TimeoutAt(_, Pool::Mutex) | Op::Wait(Pool::Mutex) | Op::TryLock => !held,
            _ => true,
        }
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let clock = by_hand();
        let mutex = Arc::new(Mutex::with_max_barges_in((), 0));
        let semaphore = Arc::new(Semaphore::with_max_barges_in(0, 0));
        let notify = Arc::new(Notify::new_in());
        let (tx, rx) = channel_in();
        let (mut sender, mut receiver) = (Some(tx), Some(rx));
        (0..participants)
            .map(|participant_id| {
                let releases = participant_id == RELEASER;
                Actor {
                    clock: clock.clone(),
                    mutex: mutex.clone(),
                    semaphore: semaphore.clone(),
                    notify: notify.clone(),
                    guard: releases.then(|| {
                        let guard = mutex.clone().try_lock_owned();
                        guard.expect("no other participant has locked it")
                    }),
                    sender: sender.take_if(|_| releases),
                    receiver: receiver.take_if(|_| participant_id == RECEIVER),
                }
            })
            .collect()
    }

    fn start<'a>(
        &self,
        actor: &'a mut Actor<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match *call.op {
            Op::TimeoutAt(deadline, pool) => {
                let clock = actor.clock.clone();
                let timeout = clock
                    .timers()
                    .timeout_at(at(deadline), granted(actor, pool));
                return Started::future(async { timeout.await.unwrap_or(Ret::Elapsed) });
            }
            Op::Timeout(duration, pool) => {
                let clock = actor.clock.clone();
                let timeout = clock
                    .timers()
                    .timeout(ticks(duration), granted(actor, pool));
                return Started::future(async { timeout.await.unwrap_or(Ret::Elapsed) });
            }
            Op::Wait(pool) => return Started::future(granted(actor, pool)),
            Op::RecvUntil(deadline) => {
                return Started::future(async move {
                    let Some(rx) = &mut actor.receiver else {
                        return Ret::Gone;
                    };
                    let received = actor.clock.timers().timeout_at(at(deadline), rx).await;
                    if received.is_ok() {
                        actor.receiver = None;
                    }
                    answer(received)
                });
            }
            Op::RecvOwnedUntil(deadline) => {
                let Some(rx) = actor.receiver.take() else {
                    return Started::Done(Ret::Gone);
                };
                let received = actor.clock.timers().timeout_at(at(deadline), rx);
                return Started::future(async { answer(received.await) });
            }
            Op::TryRecv => match actor.receiver.as_mut().map(Receiver::try_recv) {
                Some(Ok(value)) => {
                    actor.receiver = None;
                    Ret::Received(value.id())
                }
                Some(Err(TryRecvError::Empty)) => Ret::Empty,
                Some(Err(TryRecvError::Closed)) | None => Ret::Gone,
            },
            Op::Send => match actor.sender.take().map(|tx| tx.send(value())) {
                Some(Ok(())) => Ret::Sent,
                Some(Err(value)) => Ret::Returned(value.id()),
                None => Ret::Gone,
            },
            Op::Unlock => {
                drop(actor.guard.take());
                Ret::Unit
            }
            Op::TryLock => match actor.mutex.clone().try_lock_owned() {
                Ok(guard) => {
                    actor.guard = Some(guard);
                    Ret::Granted
                }
                Err(_) => Ret::Refused,
            },
            Op::AddPermit => {
                actor.semaphore.add_permits(1);
                Ret::Unit
            }
            Op::NotifyOne => {
                actor.notify.notify_one();
                Ret::Unit
            }
            Op::Available => Ret::Number(actor.semaphore.available_permits()),
            Op::Advance(by) => {
                actor.clock.advance(ticks(by));
                Ret::Unit
            }
        })
    }
}

/// The participant that releases, and that holds the mutex at first.
const RELEASER: usize = 0;
/// The participant that has the receiver.
const RECEIVER: usize = 2;

fn answer(received: Result<Result<Value, RecvError>, Elapsed>) -> Ret {
    match received {
        Ok(Ok(value)) => Ret::Received(value.id()),
        Ok(Err(_)) => Ret::Gone,
        Err(_) => Ret::Elapsed,
    }
}

/// Waits for a grant, and keeps it: the mutex stays locked, the permit is used up.
async fn granted<B: BlockingBackend>(actor: &mut Actor<B>, pool: Pool) -> Ret {
    match pool {
        Pool::Mutex => actor.guard = Some(actor.mutex.clone().lock_owned().await),
        Pool::Semaphore => {
            let permit = actor.semaphore.acquire().await;
            permit.expect("no operation closes it").forget();
        }
        Pool::Notify => actor.notify.notified().await,
    }
    Ret::Granted
}

/// What the operations of timeouts mean, one at a time.
pub(crate) struct TimeoutSpec;

/// The state of all that the timeouts wait for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    /// The participant that holds the mutex. It is `None` if the mutex is free, or
    /// granted and not observed.
    holder: Option<usize>,
    free: Free,
    channel: Channel,
    /// The waits for a grant, in order.
    waits: Vec<Wait>,
}

/// What the next request can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Free {
    mutex: bool,
    permits: usize,
    notification: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Channel {
    /// Whether it has this half still.
    sender: bool,
    receiver: bool,
    /// What was sent and not received.
    value: Option<ValueId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant_id: usize,
    pool: Pool,
    deadline: u64,
    granted: bool,
}

impl Free {
    /// Takes one, if there is one.
    fn take(&mut self, pool: Pool) -> bool {
        match pool {
            Pool::Mutex => std::mem::take(&mut self.mutex),
            Pool::Notify => std::mem::take(&mut self.notification),
            Pool::Semaphore => {
                let free = self.permits > 0;
                self.permits -= usize::from(free);
                free
            }
        }
    }
}

impl State {
    /// Grants one to the waiter that has waited longest, or leaves it free.
    fn give(&mut self, pool: Pool) {
        let mut waits = self.waits.iter_mut();
        match waits.find(|wait| wait.pool == pool && !wait.granted) {
            Some(wait) => wait.granted = true,
            None => match pool {
                Pool::Mutex => self.free.mutex = true,
                Pool::Semaphore => self.free.permits += 1,
                Pool::Notify => self.free.notification = true,
            },
        }
    }

    fn leave(&mut self, participant_id: usize) -> Option<Wait> {
        let index = self
            .waits
            .iter()
            .position(|wait| wait.participant_id == participant_id)?;
        Some(self.waits.remove(index))
    }

    /// Gives up a wait, and passes its grant on.
    fn give_up(&mut self, participant_id: usize) {
        if let Some(wait) = self.leave(participant_id)
            && wait.granted
        {
            self.give(wait.pool);
        }
    }

    /// Receives the value, and drops the receiver.
    fn receive(&mut self) -> Option<Ret> {
        let value = self.channel.value.take()?;
        self.channel.receiver = false;
        Some(Ret::Received(value))
    }
}

impl Spec for TimeoutSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            now: 0,
            holder: Some(RELEASER),
            free: Free {
                mutex: false,
                permits: 0,
                notification: false,
            },
            channel: Channel {
                sender: true,
                receiver: true,
                value: None,
            },
            waits: Vec::new(),
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::TimeoutAt(..) | Op::Timeout(..) | Op::Wait(_))
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let (pool, deadline) = match *call.op {
            Op::TimeoutAt(deadline, pool) => (pool, deadline),
            Op::Timeout(duration, pool) => (pool, state.now + duration),
            Op::Wait(pool) => (pool, u64::MAX),
            _ => unreachable!("it does not wait for a grant"),
        };
        let mut next = state.clone();
        let granted = next.free.take(pool);
        next.waits.push(Wait {
            participant_id: call.participant,
            pool,
            deadline,
            granted,
        });
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        match *call.op {
            Op::TimeoutAt(..) | Op::Timeout(..) | Op::Wait(_) => next.give_up(call.participant),
            Op::RecvOwnedUntil(_) => {
                next.channel.receiver = false;
                next.channel.value = None;
            }
            Op::RecvUntil(_) => {}
            _ => return self.effects(state, call),
        }
        vec![next]
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = self.cancel(state, call);
        // Its grant may have come, and the waker of the timer may panic when it is
        // dropped.
        if matches!(call.op, Op::TimeoutAt(..) | Op::Timeout(..)) {
            next.extend(self.effects(state, call));
        }
        next
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let ret = match *call.op {
            Op::TimeoutAt(..) | Op::Timeout(..) | Op::Wait(_) => {
                let Some(wait) = next.leave(participant_id) else {
                    return Vec::new();
                };
                let mut outcomes = Vec::new();
                if wait.deadline <= state.now {
                    let mut elapsed = state.clone();
                    elapsed.give_up(participant_id);
                    outcomes.push((elapsed, Ret::Elapsed));
                }
                if wait.granted {
                    if wait.pool == Pool::Mutex {
                        next.holder = Some(participant_id);
                    }
                    outcomes.push((next, Ret::Granted));
                }
                return outcomes;
            }
            Op::RecvUntil(_) | Op::RecvOwnedUntil(_) if !state.channel.receiver => Ret::Gone,
            Op::RecvUntil(deadline) | Op::RecvOwnedUntil(deadline) => {
                let mut outcomes = Vec::new();
                if deadline <= state.now {
                    let elapsed = match call.op {
                        Op::RecvOwnedUntil(_) => self.cancel(state, call).remove(0),
                        _ => state.clone(),
                    };
                    outcomes.push((elapsed, Ret::Elapsed));
                }
                if let Some(received) = next.receive() {
                    outcomes.push((next, received));
                }
                return outcomes;
            }
            Op::TryRecv if !state.channel.receiver => Ret::Gone,
            Op::TryRecv => next.receive().unwrap_or(Ret::Empty),
            Op::Send if !std::mem::take(&mut next.channel.sender) => Ret::Gone,
            Op::Send if !state.channel.receiver => Ret::Returned(call.value()),
            Op::Send => {
                next.channel.value = Some(call.value());
                Ret::Sent
            }
            Op::Unlock => {
                if state.holder == Some(participant_id) {
                    next.holder = None;
                    next.give(Pool::Mutex);
                }
                Ret::Unit
            }
            Op::TryLock if next.free.take(Pool::Mutex) => {
                next.holder = Some(participant_id);
                Ret::Granted
            }
            Op::TryLock => Ret::Refused,
            Op::AddPermit => {
                next.give(Pool::Semaphore);
                Ret::Unit
            }
            Op::NotifyOne => {
                next.give(Pool::Notify);
                Ret::Unit
            }
            Op::Available => Ret::Number(state.free.permits),
            Op::Advance(by) => {
                next.now += by;
                Ret::Unit
            }
        };
        vec![(next, ret)]
    }
}
