//! `reveille::time::Timers` on a clock of the subject, with their driver as a
//! participant.
//!
//! A driver takes turns. In between it sleeps until the deadline that the turn
//! returned, and the clock wakes it when it has been moved that far. If the driver is
//! not woken for a nearer deadline, that deadline passes while it is asleep.
//!
//! There is one driver, or there are two that share the timers, as two executors do. If
//! one of the two is dropped, the other fires the sleeps of both.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock, WakerSlot};
use reveille::time::{Clock, Instant, Timers};

use crate::run::entry::{SubjectEntry, Surface};
use crate::subject::plan::{Bound, Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::sleep::reset;
use crate::subjects::time::{FAR, at, plans, tick, ticks};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    let entry = |name, description, drivers| {
        let surface = Surface::Other(
            "the sleeps of `sleep`, and the driver of `time::Timers`, which tests of its own cover",
        );
        SubjectEntry::new(name, description, Driven { drivers }, surface).in_group("time")
    };
    vec![
        entry(
            "sleep-driven",
            "reveille::time: sleeps on a separate clock, and their driver",
            1,
        ),
        entry(
            "sleep-driven-by-two",
            "reveille::time: sleeps on a separate clock, and two drivers",
            2,
        ),
    ]
}

/// Driven timers over every backend.
pub(crate) struct Driven {
    drivers: usize,
}

impl GenericSubject for Driven {
    type On<B: BlockingBackend> = DrivenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        DrivenOn {
            drivers: self.drivers,
            backend: PhantomData,
        }
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        match self.drivers {
            1 => plans(mode, profile, 3),
            _ => plans_of_two(mode, profile),
        }
    }
}

/// Returns the plans of two drivers: a sleep, both drivers and the clock. loom, which
/// checks the verdicts of the exhaustive mode, does so for one driver.
fn plans_of_two(mode: Mode, profile: Profile) -> Vec<Plan> {
    let plan = Plan::of(mode, profile);
    let with = |total, non_default| {
        let bound = Bound {
            participants: 4,
            operations: 1,
            total,
            non_default,
            panics: false,
            aliases: false,
            ..plan.bound
        };
        Plan { bound, ..plan }
    };
    let preempted = |most, plan| Plan {
        preemptions: Some(most),
        ..plan
    };
    match (mode, profile) {
        (Mode::Steps, Profile::Quick) => vec![with(4, 1)],
        (Mode::Steps, _) => vec![with(4, 2)],
        (Mode::Exhaustive, Profile::Quick) => vec![preempted(1, with(4, 1))],
        (Mode::Exhaustive, _) => vec![preempted(2, with(4, 1)), with(3, 1)],
        (Mode::Random | Mode::Pct, _) => plans(mode, profile, 4),
        (Mode::Sections | Mode::Accesses | Mode::Threads, _) => Vec::new(),
    }
}

pub(crate) struct DrivenOn<B> {
    drivers: usize,
    backend: PhantomData<fn() -> B>,
}

/// An operation. Times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    SleepUntil(u64),
    /// Resets the deadline from one to another in the poll that was pending.
    Reset(u64, u64),
    /// Takes turns for ever.
    Drive,
    Advance(u64),
    Fire,
}

/// A clock that is moved by hand, on which the drivers sleep. Its bits are its time.
struct Hand<B: BlockingBackend>(Arc<StateLock<[Deadline; 2], B>>);

/// Of a driver.
struct Deadline {
    /// When the driver is woken.
    at: u64,
    sleeper: WakerSlot,
}

fn shown(bits: Bits) -> u64 {
    bits.get() as u64
}

impl<B: BlockingBackend> Clone for Hand<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: BlockingBackend> Clock for Hand<B> {
    fn now(&self) -> Instant {
        at(shown(self.0.load()))
    }
}

impl<B: BlockingBackend> Hand<B> {
    fn new() -> Self {
        let deadlines = std::array::from_fn(|_| Deadline {
            at: u64::MAX,
            sleeper: WakerSlot::new(),
        });
        Self(Arc::new(StateLock::new_in(Bits::EMPTY, deadlines)))
    }

    fn advance(&self, by: usize) {
        self.0.with(|section| {
            *section.bits = Bits::new(section.bits.get() + by);
            for deadline in section.state {
                if deadline.at <= shown(*section.bits) {
                    section.wakes.wake(&mut deadline.sleeper);
                }
            }
        });
    }

    /// Returns ready to a driver when the clock shows this time.
    fn poll_reached(&self, driver: usize, time: u64, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx, false, |section, registration| {
            if time <= shown(*section.bits) {
                return Ok(());
            }
            let deadline = &mut section.state[driver];
            deadline.at = time;
            Err(registration.register(&mut deadline.sleeper))
        })
    }
}

/// What a participant holds.
pub(crate) struct Shared<B: BlockingBackend> {
    hand: Hand<B>,
    timers: Timers<B>,
}

impl<B: BlockingBackend> Subject for DrivenOn<B> {
    type Op = Op;
    type Ret = ();
    type Spec = DrivenSpec;
    type Actor = Arc<Shared<B>>;

    fn spec(&self) -> DrivenSpec {
        DrivenSpec
    }

    /// Returns the roles that drive, one that moves the clock, and others that sleep.
    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = |name, symmetry, ops| Role {
            name,
            symmetry,
            ops,
        };
        let sleeper = role(
            "sleeper",
            0,
            vec![
                Operation::future("sleep_until_1", Op::SleepUntil(1)),
                Operation::future("sleep_until_70", Op::SleepUntil(FAR)).alias(),
                Operation::future("reset_sooner", Op::Reset(FAR, 1)).alias(),
                Operation::future("reset_later", Op::Reset(1, 2)).alias(),
            ],
        );
        let driver = role("driver", 1, vec![Operation::future("drive", Op::Drive).keeps_waker("a driver's turn keeps the latest waker until the next, and the clock is read by polls")]);
        let clock = role(
            "clock",
            2,
            vec![
                Operation::immediate("advance_1", Op::Advance(1)),
                Operation::immediate("advance_70", Op::Advance(FAR)),
                Operation::immediate("fire", Op::Fire),
            ],
        );
        let others = 1 + self.drivers;
        let mut roles = vec![sleeper; participants.max(others + 1) - others];
        roles.extend(vec![driver; self.drivers]);
        roles.push(clock);
        roles
    }

    /// Allows no operation after a participant has begun to drive.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let drives = role.ops[next.op].op == Op::Drive;
        let for_ever = |step: &Step| step.polling.completes();
        !drives || !before.iter().any(for_ever)
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Shared<B>>> {
        let hand = Hand::new();
        let timers = Timers::new_in(hand.clone(), ticks(1));
        let shared = Arc::new(Shared { hand, timers });
        vec![shared; participants]
    }

    fn start<'a>(
        &self,
        shared: &'a mut Arc<Shared<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, ()> {
        let Shared { hand, timers } = &**shared;
        match *call.op {
            Op::SleepUntil(deadline) => {
                return Started::future(timers.sleep_until(at(deadline)));
            }
            Op::Reset(from, to) => {
                return Started::future(reset(timers.sleep_until(at(from)), to));
            }
            Op::Drive => {
                let driver = timers.driver();
                // The participants that drive are neighbours.
                let place = call.participant % 2;
                return Started::future(poll_fn(move |cx| {
                    loop {
                        let until = driver.turn(cx).map_or(u64::MAX, tick);
                        if hand.poll_reached(place, until, cx).is_pending() {
                            return Poll::Pending;
                        }
                    }
                }));
            }
            Op::Advance(by) => hand.advance(usize::try_from(by).expect("a few ticks")),
            Op::Fire => timers.fire(),
        }
        Started::Done(())
    }
}

/// What the operations of driven timers mean, one at a time.
pub(crate) struct DrivenSpec;

/// The state of driven timers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    /// The time at which the timers fired last.
    fired: u64,
    /// The participants that drive.
    drivers: Vec<usize>,
}

impl Spec for DrivenSpec {
    type Op = Op;
    type Ret = ();
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        *op == Op::Drive
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.drivers.push(call.participant);
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::Drive => {
                let mut next = state.clone();
                next.drivers.retain(|&driver| driver != call.participant);
                vec![next]
            }
            Op::SleepUntil(_) | Op::Reset(..) => vec![state.clone()],
            Op::Advance(_) | Op::Fire => self.effects(state, call),
        }
    }

    /// A sleep is never over early. It must be over only if the timers have fired since
    /// its deadline.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        match *call.op {
            Op::SleepUntil(deadline) | Op::Reset(_, deadline) => {
                let seen = match state.drivers.is_empty() {
                    true => state.fired,
                    false => state.now,
                };
                deadline <= seen
            }
            _ => false,
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, ())> {
        let mut next = state.clone();
        match *call.op {
            Op::SleepUntil(deadline) | Op::Reset(_, deadline) if deadline <= state.now => {}
            Op::SleepUntil(_) | Op::Reset(..) | Op::Drive => return Vec::new(),
            Op::Advance(by) => next.now += by,
            Op::Fire => next.fired = state.now,
        }
        vec![(next, ())]
    }
}
