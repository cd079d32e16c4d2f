//! `reveille::time::DelayQueue` on a virtual clock, every public operation.
//!
//! A queue has one user. What interleaves with what he does is the clock, which
//! others move; and within one of his own operations he waits, changes the answer,
//! and is owed a wake-up for it.

use std::future::poll_fn;
use std::task::Poll;

use reveille::backend::BlockingBackend;
use reveille::time::{DelayQueue, Expired, Key, VirtualClock};

use crate::run::entry::{
    Absent::{Constant, Creates, Exclusive, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::Bound;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::step::{Polling, Step};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::time::{FAR, at, by_hand, plans, tick, ticks};

/// What this file registers.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "delay-queue",
            "reveille::time::DelayQueue: values, in the order of their deadlines",
            DelayQueues,
            SURFACE,
        )
        .in_group("time"),
    ]
}

/// Its public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "time/delay_queue.rs",
    absent: &[
        ("capacity", Exclusive),
        ("compact", Exclusive),
        ("get_mut", Exclusive),
        ("get_ref", Constant),
        ("insert", SameAs("insert_1")),
        ("into_inner", Exclusive),
        ("is_empty", SameAs("len")),
        ("key", Constant),
        ("new", Creates),
        ("new_in", Creates),
        ("poll_expired", SameAs("expired")),
        ("reserve", Exclusive),
        ("reset", SameAs("reset_1")),
        ("reset_at", SameAs("reset_1")),
        ("shrink_to_fit", Exclusive),
        ("try_remove", SameAs("remove")),
        ("with_capacity", Creates),
    ],
}]);

/// Queues of delays over every backend.
pub(crate) struct DelayQueues;

impl GenericSubject for DelayQueues {
    type On<B: BlockingBackend> = DelayQueueOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        DelayQueueOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = plans(mode, profile, 2);
        if let Some(&first) = plans.first()
            && mode == Mode::Steps
        {
            // Two are in it before one comes out.
            let Bound {
                operations, total, ..
            } = first.bound;
            let bound = Bound {
                operations: operations + 1,
                total: total + 1,
                non_default: 0,
                panics: false,
                ..first.bound
            };
            plans.push(Plan { bound, ..first });
        }
        plans
    }
}

pub(crate) struct DelayQueueOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation; times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Expired,
    /// Waits, and changes the queue in the poll that found nothing.
    ExpiredChange(Change),
    Change(Change),
    Deadline,
    Contains,
    Peek,
    Len,
    Advance(u64),
}

/// What is done to the queue: to the value that was put in last, where it is not a
/// new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert(u64),
    /// At a time that is far off.
    InsertAt(u64),
    Remove,
    Reset(u64),
    Clear,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    /// A value has come out, of this deadline.
    Out(ValueId, u64),
    /// There is none, or it has come out.
    None,
    At(u64),
    Is(bool),
    Number(usize),
}

/// What one participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    clock: VirtualClock<B>,
    /// The user's.
    queue: Option<Queue<B>>,
}

struct Queue<B: BlockingBackend> {
    queue: DelayQueue<Value, B>,
    keys: Vec<Key>,
}

impl Change {
    const fn inserts(self) -> bool {
        matches!(self, Self::Insert(_) | Self::InsertAt(_))
    }
}

impl<B: BlockingBackend> Queue<B> {
    fn new(clock: &VirtualClock<B>) -> Self {
        Self {
            queue: DelayQueue::new_in(clock.timers()),
            keys: Vec::new(),
        }
    }

    fn change(&mut self, change: Change, value: Option<Value>) -> Ret {
        let Self { queue, keys } = self;
        match (change, value) {
            (Change::Insert(delay), Some(value)) => keys.push(queue.insert(value, ticks(delay))),
            (Change::InsertAt(time), Some(value)) => keys.push(queue.insert_at(value, at(time))),
            (Change::Insert(_) | Change::InsertAt(_), None) => unreachable!("it takes a value"),
            (Change::Remove, _) => {
                let removed = keys.pop().and_then(|key| queue.try_remove(&key));
                return removed.map_or(Ret::None, out);
            }
            (Change::Reset(delay), _) => match keys.last() {
                Some(key) if queue.contains(key) => queue.reset(key, ticks(delay)),
                _ => return Ret::None,
            },
            (Change::Clear, _) => queue.clear(),
        }
        Ret::Unit
    }
}

fn out(expired: Expired<Value>) -> Ret {
    Ret::Out(expired.get_ref().id(), tick(expired.deadline()))
}

impl<B: BlockingBackend> Subject for DelayQueueOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = DelayQueueSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> DelayQueueSpec {
        DelayQueueSpec
    }

    /// One whose queue it is; all others move the clock.
    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let change = |name, change| Operation::immediate(name, Op::Change(change));
        let expired_change = |name, change| {
            Operation::future(name, Op::ExpiredChange(change))
                .alias()
                .keeps_waker("`poll_expired` keeps the latest waker until the next poll")
        };
        let user = Role {
            name: "user",
            symmetry: 0,
            ops: vec![
                change("insert_1", Change::Insert(1)),
                Operation::future("expired", Op::Expired),
                change("insert_70", Change::Insert(FAR)),
                change("remove", Change::Remove),
                change("reset_1", Change::Reset(1)),
                change("reset_70", Change::Reset(FAR)),
                expired_change("expired_insert", Change::Insert(1)),
                expired_change("expired_remove", Change::Remove),
                expired_change("expired_reset_1", Change::Reset(1)),
                expired_change("expired_reset_70", Change::Reset(FAR)),
                expired_change("expired_clear", Change::Clear),
                change("insert_at", Change::InsertAt(10 * FAR)),
                change("clear", Change::Clear),
                Operation::immediate("deadline", Op::Deadline),
                Operation::immediate("contains", Op::Contains),
                Operation::immediate("peek", Op::Peek),
                Operation::immediate("len", Op::Len),
            ],
        };
        let clock = Role {
            name: "clock",
            symmetry: 1,
            ops: vec![
                Operation::immediate("advance_1", Op::Advance(1)),
                Operation::immediate("advance_70", Op::Advance(FAR)),
            ],
        };
        let mut roles = vec![user];
        roles.resize(participants, clock);
        roles
    }

    /// Nothing is done to a value before one was put in. And where an earlier waker
    /// may panic in the middle of a wait, nothing is changed in it: nobody could say
    /// whether it was.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let op = |step: &Step| role.ops[step.op].op;
        let inserts = |op| match op {
            Op::Change(change) | Op::ExpiredChange(change) => change.inserts(),
            _ => false,
        };
        let mut pollings = before.iter().map(|step| step.polling);
        let next = op(&next);
        if matches!(next, Op::ExpiredChange(_))
            && pollings.any(|polling| matches!(polling, Polling::Panics(_)))
        {
            return false;
        }
        matches!(next, Op::Advance(_) | Op::Expired)
            || inserts(next)
            || before.iter().map(op).any(inserts)
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let clock = by_hand();
        let mut queue = Some(Queue::new(&clock));
        (0..participants)
            .map(|_| Actor {
                clock: clock.clone(),
                queue: queue.take(),
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { clock, queue }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        if let Op::Advance(by) = *call.op {
            clock.advance(ticks(by));
            return Started::Done(Ret::Unit);
        }
        let queue = queue.as_mut().expect("the queue is the user's");
        let made = |change: Change| change.inserts().then(value);
        let last = queue.keys.last();
        Started::Done(match *call.op {
            Op::Expired => {
                return Started::future(async {
                    queue.queue.expired().await.map_or(Ret::None, out)
                });
            }
            Op::ExpiredChange(change) => {
                let mut change = Some((change, made(change)));
                return Started::future(poll_fn(move |cx| {
                    let poll = queue.queue.poll_expired(cx);
                    let Some((change, value)) = change.take() else {
                        return poll.map(|expired| expired.map_or(Ret::None, out));
                    };
                    let changes = match poll {
                        Poll::Ready(Some(_)) => false,
                        Poll::Ready(None) => change.inserts(),
                        Poll::Pending => true,
                    };
                    if changes {
                        queue.change(change, value);
                        return Poll::Pending;
                    }
                    poll.map(|expired| expired.map_or(Ret::None, out))
                }));
            }
            Op::Change(change) => queue.change(change, made(change)),
            Op::Deadline => match last {
                Some(key) if queue.queue.contains(key) => Ret::At(tick(queue.queue.deadline(key))),
                _ => Ret::None,
            },
            Op::Contains => Ret::Is(last.is_some_and(|key| queue.queue.contains(key))),
            // Whether it is the one that was put in last.
            Op::Peek => match queue.queue.peek() {
                Some(key) => Ret::Is(last == Some(&key)),
                None => Ret::None,
            },
            Op::Len => Ret::Number(queue.queue.len()),
            Op::Advance(_) => unreachable!("it has been done"),
        })
    }
}

/// What a queue of delays is, one operation at a time.
pub(crate) struct DelayQueueSpec;

/// Its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    /// The values in it, in the order in which they were inserted or reset.
    entries: Vec<(ValueId, u64)>,
    /// All that were put in and not removed.
    keys: Vec<ValueId>,
}

impl State {
    /// Which comes out next.
    fn first(&self) -> Option<usize> {
        // Of those that are equal the first is the least.
        (0..self.entries.len()).min_by_key(|&index| self.entries[index].1)
    }

    /// Where the value stands that was put in last.
    fn last(&self) -> Option<usize> {
        let last = self.keys.last()?;
        self.entries.iter().position(|(id, _)| id == last)
    }

    fn due(&self) -> Option<usize> {
        self.first()
            .filter(|&first| self.entries[first].1 <= self.now)
    }

    fn change(&mut self, change: Change, value: ValueId) -> Ret {
        let last = self.last();
        let deadline = match (change, last) {
            (Change::Remove, _) => {
                self.keys.pop();
                return match last {
                    Some(last) => self.take(last),
                    None => Ret::None,
                };
            }
            (Change::Clear, _) => {
                self.entries.clear();
                return Ret::Unit;
            }
            (Change::Reset(_), None) => return Ret::None,
            (Change::Insert(delay) | Change::Reset(delay), _) => self.now + delay,
            (Change::InsertAt(time), _) => time,
        };
        let value = match (change, last) {
            (Change::Reset(_), Some(last)) => self.entries.remove(last).0,
            _ => {
                self.keys.push(value);
                value
            }
        };
        self.entries.push((value, deadline));
        Ret::Unit
    }

    fn take(&mut self, index: usize) -> Ret {
        let (value, deadline) = self.entries.remove(index);
        Ret::Out(value, deadline)
    }
}

impl Spec for DelayQueueSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::ExpiredChange(_))
    }

    /// It finds what is due, or that there is nothing to wait for and nothing to
    /// change; or it changes the queue, where something may have become due meanwhile.
    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let Op::ExpiredChange(change) = *call.op else {
            unreachable!("it does nothing before it waits")
        };
        if state.entries.is_empty() && !change.inserts() {
            return vec![state.clone()];
        }
        let mut changed = state.clone();
        changed.change(change, call.value());
        let found = state.due().map(|_| state.clone());
        [changed].into_iter().chain(found).collect()
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::Expired | Op::ExpiredChange(_) => vec![state.clone()],
            // The value is in it; the key went with the panic.
            Op::Change(change) if change.inserts() => {
                let mut next = self.effects(state, call);
                for state in &mut next {
                    state.keys.pop();
                }
                next
            }
            _ => self.effects(state, call),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::Expired | Op::ExpiredChange(_) => match (state.due(), state.entries.is_empty()) {
                (Some(due), _) => next.take(due),
                (None, true) => Ret::None,
                (None, false) => return Vec::new(),
            },
            Op::Change(change) => next.change(change, call.value()),
            Op::Deadline => match state.last() {
                Some(last) => Ret::At(state.entries[last].1),
                None => Ret::None,
            },
            Op::Contains => Ret::Is(state.last().is_some()),
            Op::Peek => match state.first() {
                Some(first) => Ret::Is(state.last() == Some(first)),
                None => Ret::None,
            },
            Op::Len => Ret::Number(state.entries.len()),
            Op::Advance(by) => {
                next.now += by;
                Ret::Unit
            }
        };
        vec![(next, ret)]
    }
}
