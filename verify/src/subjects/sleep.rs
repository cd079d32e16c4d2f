//! `reveille::time::Sleep` on a virtual clock, with every public operation of both.
//!
//! A sleep is over exactly when the clock has reached its deadline. The entries of the
//! wheel are also counted, so that an entry that is left behind is found.
//!
//! Deadlines are on the three lowest levels of the wheel. Those above are left to
//! `primitives/tests/time_wheel.rs`, which compares the wheel with a plain list. Drivers
//! are in `driven`.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use reveille::backend::BlockingBackend;
use reveille::time::{Sleep, VirtualClock};

use crate::run::entry::{
    Absent::{Constant, Creates, Exclusive, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::time::{FAR, FARTHER, at, by_hand, plans, tick, ticks};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "sleep",
            "reveille::time: sleeps and resets, on a virtual clock",
            Sleeps,
            SURFACE,
        )
        .in_group("time"),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[
    Source {
        path: "time/sleep.rs",
        absent: &[
            ("deadline", Exclusive),
            ("is_elapsed", SameAs("is_elapsed_1")),
            ("reset", SameAs("reset_sooner")),
            ("sleep", SameAs("sleep_1")),
            ("sleep_until", SameAs("sleep_until_1")),
        ],
    },
    Source {
        path: "time/virtual_clock.rs",
        absent: &[
            ("advance", SameAs("advance_1")),
            ("by_hand", Creates),
            ("new_in", Creates),
            ("starting_at", Creates),
            ("timers", Constant),
            ("when_idle", Creates),
        ],
    },
]);

/// `Sleep` over every backend.
pub(crate) struct Sleeps;

impl GenericSubject for Sleeps {
    type On<B: BlockingBackend> = SleepOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SleepOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        plans(mode, profile, 2)
    }
}

pub(crate) struct SleepOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation. Times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    SleepUntil(u64),
    /// Sleeps for this many ticks.
    Sleep(u64),
    /// Resets the deadline from one to another in the poll that was pending.
    Reset(u64, u64),
    /// Sleeps, and once more after a reset to another deadline.
    Again(u64, u64),
    Advance(u64),
    AdvanceTo(u64),
    AdvanceToNext,
    IsElapsed(u64),
    Now,
    Waiting,
    NextDeadline,
}

/// What an operation returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Unit,
    Is(bool),
    At(u64),
    Number(usize),
    /// There is no deadline.
    Nothing,
}

impl<B: BlockingBackend> Subject for SleepOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = SleepSpec;
    type Actor = VirtualClock<B>;

    fn spec(&self) -> SleepSpec {
        SleepSpec
    }

    /// Returns one role that moves the clock and looks, and others that sleep.
    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        // When a sleep is over, nothing of it is left in the wheel.
        let sleep = |name, op| Operation::future(name, op).leaving();
        let sleeper = Role {
            name: "sleeper",
            symmetry: 0,
            ops: vec![
                sleep("sleep_until_1", Op::SleepUntil(1)),
                sleep("sleep_until_2", Op::SleepUntil(2)).alias(),
                sleep("sleep_until_70", Op::SleepUntil(FAR)).alias(),
                sleep("sleep_until_5000", Op::SleepUntil(FARTHER)).alias(),
                sleep("sleep_1", Op::Sleep(1)).alias(),
                sleep("reset_sooner", Op::Reset(FAR, 1)),
                sleep("reset_later", Op::Reset(1, 2)).alias(),
                sleep("again", Op::Again(1, 2)).alias(),
            ],
        };
        let clock = Role {
            name: "clock",
            symmetry: 1,
            ops: vec![
                Operation::immediate("advance_1", Op::Advance(1)),
                Operation::immediate("advance_70", Op::Advance(FAR)),
                Operation::immediate("advance_5000", Op::Advance(FARTHER)),
                Operation::immediate("advance_to", Op::AdvanceTo(2)),
                Operation::immediate("advance_to_next", Op::AdvanceToNext),
                Operation::immediate("is_elapsed_1", Op::IsElapsed(1)),
                Operation::immediate("now", Op::Now),
                Operation::immediate("waiting", Op::Waiting),
                Operation::immediate("next_deadline", Op::NextDeadline),
            ],
        };
        let mut roles = vec![sleeper; participants - 1];
        roles.push(clock);
        roles
    }

    fn actors(&self, participants: usize) -> Vec<VirtualClock<B>> {
        vec![by_hand(); participants]
    }

    fn start<'a>(
        &self,
        clock: &'a mut VirtualClock<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let timers = clock.timers();
        Started::Done(match *call.op {
            Op::SleepUntil(deadline) => return over(timers.sleep_until(at(deadline))),
            Op::Sleep(duration) => return over(timers.sleep(ticks(duration))),
            Op::Reset(from, to) => return over(reset(timers.sleep_until(at(from)), to)),
            Op::Again(first, then) => {
                let mut sleep = timers.sleep_until(at(first));
                return over(async move {
                    (&mut sleep).await;
                    Pin::new(&mut sleep).reset(at(then));
                    sleep.await;
                });
            }
            Op::Advance(by) => {
                clock.advance(ticks(by));
                Ret::Unit
            }
            Op::AdvanceTo(time) => {
                clock.advance_to(at(time));
                Ret::Unit
            }
            Op::AdvanceToNext => Ret::Is(clock.advance_to_next()),
            Op::IsElapsed(deadline) => Ret::Is(timers.sleep_until(at(deadline)).is_elapsed()),
            Op::Now => Ret::At(tick(clock.now())),
            Op::Waiting => Ret::Number(timers.waiting()),
            Op::NextDeadline => match timers.next_deadline() {
                Some(deadline) => Ret::At(tick(deadline)),
                None => Ret::Nothing,
            },
        })
    }
}

/// Starts a wait of which nothing is left at its end.
fn over<'a>(wait: impl Future<Output = ()> + Send + 'a) -> Started<'a, Ret> {
    Started::future(async {
        wait.await;
        Ret::Unit
    })
}

/// Sleeps with a reset in the first poll. If the sleep waits, it goes on waiting and is
/// not polled for the reset.
pub(super) async fn reset<B: BlockingBackend>(mut sleep: Sleep<B>, to: u64) {
    let mut to = Some(at(to));
    poll_fn(|cx| {
        let poll = Pin::new(&mut sleep).poll(cx);
        let Some(to) = to.take() else {
            return poll;
        };
        Pin::new(&mut sleep).reset(to);
        match poll {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Pin::new(&mut sleep).poll(cx),
        }
    })
    .await;
}

/// What the operations of a sleep mean, one at a time.
pub(crate) struct SleepSpec;

/// The state of the sleeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    /// The sleeps that have begun.
    waits: Vec<Wait>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant_id: usize,
    /// When it is over.
    due: u64,
    entry: Entry,
}

/// The entry of a sleep in the wheel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    /// It has none, since it was due before it began.
    None,
    /// It has one at its deadline.
    One,
    /// It has one at one of these deadlines, or none. Its operation has more than one
    /// section, and is seen between them.
    Perhaps([u64; 2]),
}

impl State {
    fn take(&mut self, participant_id: usize) -> Option<Wait> {
        let index = self
            .waits
            .iter()
            .position(|wait| wait.participant_id == participant_id)?;
        Some(self.waits.remove(index))
    }

    /// Returns how many entries there may be in the wheel.
    fn waiting(&self) -> std::ops::RangeInclusive<usize> {
        let count = |counts: fn(&Entry) -> bool| {
            let counted = self.waits.iter().filter(|wait| counts(&wait.entry));
            counted.count()
        };
        let certain = count(|entry| *entry == Entry::One);
        certain..=certain + count(|entry| matches!(entry, Entry::Perhaps(_)))
    }

    /// Returns what the next deadline may be.
    fn next(&self) -> Vec<Option<u64>> {
        let (now, waits) = (self.now, &self.waits);
        let certain = waits.iter().filter(|wait| wait.entry == Entry::One);
        let first = certain.map(|wait| wait.due).filter(|&due| due > now).min();
        let perhaps = waits.iter().filter_map(|wait| match wait.entry {
            Entry::Perhaps(deadlines) => Some(deadlines),
            _ => None,
        });
        perhaps
            .flatten()
            .filter(|&deadline| deadline > now && first.is_none_or(|first| deadline < first))
            .map(Some)
            .chain([first])
            .collect()
    }
}

impl Spec for SleepSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::SleepUntil(_) | Op::Sleep(_) | Op::Reset(..) | Op::Again(..)
        )
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let now = state.now;
        let (due, entry) = match *call.op {
            Op::SleepUntil(deadline) if deadline <= now => (deadline, Entry::None),
            Op::SleepUntil(deadline) => (deadline, Entry::One),
            // Its entry is inserted some time after the clock was read.
            Op::Sleep(duration) => (now + duration, Entry::Perhaps([now + duration; 2])),
            Op::Reset(from, to) => (to, Entry::Perhaps([from, to])),
            Op::Again(first, then) => (first.max(then), Entry::Perhaps([first, then])),
            _ => unreachable!("it does not wait"),
        };
        let mut next = state.clone();
        let participant_id = call.participant;
        next.waits.push(Wait {
            participant_id,
            due,
            entry,
        });
        next.waits.sort_by_key(|wait| wait.participant_id);
        vec![next]
    }

    /// A sleep that is dropped leaves nothing behind. The clock has been moved even if
    /// a waker panics.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        next.take(call.participant);
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::SleepUntil(_) | Op::Sleep(_) | Op::Reset(..) | Op::Again(..) => {
                match next.take(call.participant) {
                    Some(wait) if wait.due <= state.now => Ret::Unit,
                    _ => return Vec::new(),
                }
            }
            Op::Advance(by) => {
                next.now += by;
                Ret::Unit
            }
            Op::AdvanceTo(time) => {
                next.now = state.now.max(time);
                Ret::Unit
            }
            Op::AdvanceToNext => {
                let moved = |to: Option<u64>| {
                    let now = to.unwrap_or(state.now);
                    let waits = state.waits.clone();
                    (State { now, waits }, Ret::Is(to.is_some()))
                };
                return state.next().into_iter().map(moved).collect();
            }
            Op::IsElapsed(deadline) => Ret::Is(deadline <= state.now),
            Op::Now => Ret::At(state.now),
            Op::Waiting => {
                let counts = state.waiting();
                return counts.map(|n| (state.clone(), Ret::Number(n))).collect();
            }
            Op::NextDeadline => {
                let answer = |next: Option<u64>| next.map_or(Ret::Nothing, Ret::At);
                let results = state.next().into_iter().map(answer);
                return results.map(|ret| (state.clone(), ret)).collect();
            }
        };
        vec![(next, ret)]
    }
}
