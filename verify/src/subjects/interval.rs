//! `reveille::time::Interval` on a virtual clock, with every public operation.
//!
//! An interval has one user. Its operations interleave with those of others, which move
//! the clock: by less than a period, and by more than two.

use std::future::poll_fn;
use std::task::Poll;

use reveille::backend::BlockingBackend;
use reveille::time::{Interval, MissedTickBehavior, VirtualClock};

use crate::run::entry::{
    Absent::{Constant, Creates, Exclusive, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::time::{at, by_hand, plans, tick, ticks};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "interval",
            "reveille::time: an interval that ticks in time and late",
            Intervals,
            SURFACE,
        )
        .in_group("time"),
    ]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "time/interval.rs",
    absent: &[
        ("interval", Creates),
        ("interval_at", Creates),
        ("missed_tick_behavior", Exclusive),
        ("period", Constant),
        ("poll_tick", SameAs("tick")),
        ("set_missed_tick_behavior", SameAs("skip")),
    ],
}]);

/// `Interval` over every backend.
pub(crate) struct Intervals;

impl GenericSubject for Intervals {
    type On<B: BlockingBackend> = IntervalOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        IntervalOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        plans(mode, profile, 2)
    }
}

pub(crate) struct IntervalOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation. Times are in ticks of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Tick,
    /// Resets the interval to a time in the poll that was pending.
    TickReset(u64),
    Reset,
    ResetImmediately,
    ResetAfter(u64),
    ResetAt(u64),
    Missed(MissedTickBehavior),
    Advance(u64),
    Now,
}

/// Why an operation by `poll_tick` leaves its waker registered.
const POLLED: &str = "`poll_tick` keeps the latest waker until the next tick";

/// What an operation returns: a time, if it has one.
type Ret = Option<u64>;

/// When the first tick is due.
const FIRST: u64 = 1;
const PERIOD: u64 = 2;

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    clock: VirtualClock<B>,
    /// The interval, if this is the ticker.
    interval: Option<Interval<B>>,
}

impl<B: BlockingBackend> Subject for IntervalOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = IntervalSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> IntervalSpec {
        IntervalSpec
    }

    /// Returns one role for the user of the interval, and others that move the clock.
    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        use MissedTickBehavior::{Burst, Delay, Skip};
        let ticker = Role {
            name: "ticker",
            symmetry: 0,
            ops: vec![
                Operation::future("tick", Op::Tick),
                Operation::future("tick_reset_sooner", Op::TickReset(0))
                    .alias()
                    .keeps_waker(POLLED),
                Operation::future("tick_reset_later", Op::TickReset(2))
                    .alias()
                    .keeps_waker(POLLED),
                Operation::immediate("reset", Op::Reset),
                Operation::immediate("reset_immediately", Op::ResetImmediately),
                Operation::immediate("reset_after", Op::ResetAfter(1)),
                Operation::immediate("reset_at", Op::ResetAt(3)),
                Operation::immediate("delay", Op::Missed(Delay)),
                Operation::immediate("skip", Op::Missed(Skip)),
                Operation::immediate("burst", Op::Missed(Burst)),
            ],
        };
        let clock = Role {
            name: "clock",
            symmetry: 1,
            ops: vec![
                Operation::immediate("advance_1", Op::Advance(1)),
                Operation::immediate("advance_6", Op::Advance(6)),
                Operation::immediate("now", Op::Now),
            ],
        };
        let mut roles = vec![ticker];
        roles.resize(participants, clock);
        roles
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let clock = by_hand();
        let mut interval = Some(clock.timers().interval_at(at(FIRST), ticks(PERIOD)));
        (0..participants)
            .map(|_| Actor {
                clock: clock.clone(),
                interval: interval.take(),
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { clock, interval }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match (*call.op, interval) {
            (Op::Tick, Some(interval)) => {
                return Started::future(async { Some(tick(interval.tick().await)) });
            }
            (Op::TickReset(to), Some(interval)) => {
                let mut to = Some(at(to));
                return Started::future(poll_fn(move |cx| {
                    let poll = interval.poll_tick(cx);
                    if let Some(to) = to.take()
                        && poll.is_pending()
                    {
                        interval.reset_at(to);
                        return Poll::Pending;
                    }
                    poll.map(|due| Some(tick(due)))
                }));
            }
            (Op::Reset, Some(interval)) => interval.reset(),
            (Op::ResetImmediately, Some(interval)) => interval.reset_immediately(),
            (Op::ResetAfter(after), Some(interval)) => interval.reset_after(ticks(after)),
            (Op::ResetAt(time), Some(interval)) => interval.reset_at(at(time)),
            (Op::Missed(behavior), Some(interval)) => {
                interval.set_missed_tick_behavior(behavior);
            }
            (Op::Advance(by), _) => clock.advance(ticks(by)),
            (Op::Now, _) => return Started::Done(Some(tick(clock.now()))),
            (_, None) => unreachable!("the ticker has the interval"),
        }
        Started::Done(None)
    }
}

/// What the operations of an interval mean, one at a time.
pub(crate) struct IntervalSpec;

/// The state of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    /// When the next tick is due.
    due: u64,
    behavior: MissedTickBehavior,
    /// Whether a wait for the tick began before it was due. That wait may find that the
    /// tick has just become due, however far the clock was moved.
    awaited: bool,
}

impl State {
    /// Returns the state after the tick was taken at this time.
    fn taken(&self, time: u64) -> Self {
        let due = match self.behavior {
            MissedTickBehavior::Burst => self.due + PERIOD,
            MissedTickBehavior::Delay => time + PERIOD,
            MissedTickBehavior::Skip => {
                let multiples = (time - self.due) / PERIOD;
                self.due + (multiples + 1) * PERIOD
            }
        };
        Self {
            due,
            awaited: false,
            ..self.clone()
        }
    }
}

impl Spec for IntervalSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            now: 0,
            due: FIRST,
            behavior: MissedTickBehavior::Burst,
            awaited: false,
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Tick | Op::TickReset(_))
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let early = state.now < state.due;
        let awaited = State {
            awaited: true,
            ..state.clone()
        };
        match *call.op {
            Op::TickReset(due) if early => vec![State { due, ..awaited }],
            // If it has just become due, it is not reset.
            Op::TickReset(_) => vec![state.clone(), awaited],
            _ if early => vec![awaited],
            _ => vec![state.clone()],
        }
    }

    /// A tick that is dropped is not taken.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match self.begins(call.op) {
            true => vec![State {
                awaited: false,
                ..state.clone()
            }],
            false => self.effects(state, call),
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::Tick | Op::TickReset(_) => {
                if state.now < state.due {
                    return Vec::new();
                }
                let mut outcomes = vec![state.taken(state.now)];
                if state.awaited {
                    outcomes.push(state.taken(state.due));
                }
                let answer = |next| (next, Some(state.due));
                return outcomes.into_iter().map(answer).collect();
            }
            Op::Reset => {
                next.due = state.now + PERIOD;
                None
            }
            Op::ResetImmediately => {
                next.due = state.now;
                None
            }
            Op::ResetAfter(after) => {
                next.due = state.now + after;
                None
            }
            Op::ResetAt(time) => {
                next.due = time;
                None
            }
            Op::Missed(behavior) => {
                next.behavior = behavior;
                None
            }
            Op::Advance(by) => {
                next.now += by;
                None
            }
            Op::Now => Some(state.now),
        };
        vec![(next, ret)]
    }
}
