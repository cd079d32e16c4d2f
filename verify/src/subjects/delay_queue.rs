//! `reveille::time::DelayQueue` on a virtual clock, with every public operation.
//!
//! A queue has one user. Its operations interleave with those of others, which move the
//! clock. In one operation the user waits, changes the queue so that the result
//! changes, and must be woken for it.

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

/// Returns the subjects of this file.
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

/// The public operations, and those that no program performs.
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

/// `DelayQueue` over every backend.
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
            // Two values are inserted before one expires.
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

/// An operation. Times are in ticks.
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

/// A change of the queue. If it does not insert a value, it changes the one that was
/// inserted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert(u64),
    /// Inserts a value with a deadline that is far off.
    InsertAt(u64),
    Remove,
    Reset(u64),
    Clear,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    /// A value with this deadline has expired.
    Out(ValueId, u64),
    /// There is no such value, or it has expired.
    None,
    At(u64),
    Is(bool),
    Number(usize),
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    clock: VirtualClock<B>,
    /// The queue, if this is its user.
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

    /// Returns one role for the user of the queue, and others that move the clock.
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

    /// Allows a change only after an insertion. An operation changes the queue within
    /// its wait only if no earlier waker may panic there, since it would be unknown
    /// whether the change was made.
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
        let queue = queue.as_mut().expect("the user has the queue");
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
            // Returns whether it is the value that was inserted last.
            Op::Peek => match queue.queue.peek() {
                Some(key) => Ret::Is(last == Some(&key)),
                None => Ret::None,
            },
            Op::Len => Ret::Number(queue.queue.len()),
            Op::Advance(_) => unreachable!("the clock was moved above"),
        })
    }
}

/// What the operations of a delay queue mean, one at a time.
pub(crate) struct DelayQueueSpec;

/// The state of a delay queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    /// The values in the queue, in the order in which they were inserted or reset.
    entries: Vec<(ValueId, u64)>,
    /// The values that were inserted and not removed.
    keys: Vec<ValueId>,
}

impl State {
    /// Returns the index of the value that expires next.
    fn first(&self) -> Option<usize> {
        // Of equal deadlines the first is the minimum.
        (0..self.entries.len()).min_by_key(|&index| self.entries[index].1)
    }

    /// Returns the index of the value that was inserted last.
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

    /// A wait ends at once if a value is due, or if there is nothing to wait for and
    /// nothing to change. Otherwise it changes the queue, where a value may have become
    /// due meanwhile.
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
            // The value is in the queue. Its key was lost in the panic.
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
