//! Whether leaving out orders leaves out outcomes: what the engines see of
//! every small program over two locks, beside all interleavings of it, counted
//! out by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use reveille::backend::{BlockingBackend, Loom, Observed, Shuttle};
use reveille::protocol::{Bits, StateLock, WakerSlot};

use crate::engine::{self, Explored, Job, Limits};
use crate::execution::Probe;
use crate::judge::erased::erase;
use crate::program::Program;
use crate::subject::plan::Bound;
use crate::subject::plan::Order;
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{Started, Subject};

/// What is done with the two counters, each behind a lock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// Adds to the counter of a lock and wakes whoever waits for it; answers
    /// what was there.
    Add(usize),
    /// Reads it.
    Read(usize),
    /// Reads the first, then adds that much to the second: two sections.
    Copy,
    /// Waits until the first is not zero.
    Wait,
}

const OPS: [(&str, Op); 6] = [
    ("add0", Op::Add(0)),
    ("add1", Op::Add(1)),
    ("read0", Op::Read(0)),
    ("read1", Op::Read(1)),
    ("copy", Op::Copy),
    ("wait", Op::Wait),
];

/// What each call answered, by participant and number; none where it waits.
type Outcome = BTreeMap<(usize, usize), usize>;

/// The outcomes of all executions.
type Outcomes = Arc<Mutex<BTreeSet<Outcome>>>;

struct Counters<B>(Outcomes, PhantomData<fn() -> B>);

/// One execution's counters. Its outcome is noted when it is over.
struct Shared<B: BlockingBackend> {
    locks: [StateLock<[WakerSlot; 3], B>; 2],
    outcome: Mutex<Outcome>,
    outcomes: Outcomes,
}

impl<B: BlockingBackend> Drop for Shared<B> {
    fn drop(&mut self) {
        let outcome = std::mem::take(self.outcome.get_mut().expect("nobody panicked"));
        self.outcomes
            .lock()
            .expect("nobody panicked")
            .insert(outcome);
    }
}

impl<B: BlockingBackend> Shared<B> {
    fn add(&self, lock: usize, number: usize) -> usize {
        self.locks[lock].with(|section| {
            let before = section.bits.get();
            *section.bits = Bits::new(before + number);
            for slot in section.state {
                section.wakes.wake(slot);
            }
            before
        })
    }

    fn poll_wait(&self, who: usize, cx: &mut Context<'_>) -> Poll<usize> {
        self.locks[0].poll(cx, true, |section, registration| match section.bits.get() {
            0 => Err(registration.register(&mut section.state[who])),
            count => Ok(count),
        })
    }

    fn note(&self, call: (usize, usize), ret: usize) -> usize {
        let mut outcome = self.outcome.lock().expect("nobody panicked");
        outcome.insert(call, ret);
        ret
    }
}

impl<B: BlockingBackend> Subject for Counters<B> {
    type Op = Op;
    type Ret = usize;
    type Spec = Anything;
    type Actor = Arc<Shared<B>>;

    fn spec(&self) -> Anything {
        Anything
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let operation = |(name, op)| match op {
            Op::Wait => Operation::future(name, op),
            _ => Operation::immediate(name, op),
        };
        let role = Role {
            name: "thread",
            ops: OPS.into_iter().map(operation).collect(),
            symmetry: 0,
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Shared<B>>> {
        let lock = || StateLock::new_in(Bits::EMPTY, Default::default());
        let shared = Arc::new(Shared {
            locks: [lock(), lock()],
            outcome: Mutex::default(),
            outcomes: self.0.clone(),
        });
        vec![shared; participants]
    }

    fn start<'a>(
        &self,
        shared: &'a mut Arc<Shared<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, usize> {
        let (who, id) = (call.participant, (call.participant, call.index));
        Started::Done(match *call.op {
            Op::Add(lock) => shared.note(id, shared.add(lock, 1)),
            Op::Read(lock) => shared.note(id, shared.locks[lock].load().get()),
            Op::Copy => {
                let number = shared.locks[0].load().get();
                shared.note(id, shared.add(1, number))
            }
            Op::Wait => {
                return Started::future(poll_fn(move |cx| {
                    shared.poll_wait(who, cx).map(|ret| shared.note(id, ret))
                }));
            }
        })
    }
}

/// Allows everything: here nothing is judged.
struct Anything;

impl Spec for Anything {
    type Op = Op;
    type Ret = usize;
    type State = ();

    fn initial(&self) {}

    fn step(&self, (): &(), _: Call<'_, Op>) -> Vec<((), usize)> {
        (0..16).map(|ret| ((), ret)).collect()
    }

    fn is_due(&self, (): &(), _: Call<'_, Op>) -> bool {
        false
    }
}

/// Every interleaving of sections, one after the other.
#[derive(Clone)]
struct Model<'a> {
    program: &'a [Vec<Op>],
    counters: [usize; 2],
    /// The number of the operation that each is at.
    at: Vec<usize>,
    /// What the first section of a `copy` has read.
    read: Vec<Option<usize>>,
    waits: Vec<bool>,
    outcome: Outcome,
}

impl<'a> Model<'a> {
    fn new(program: &'a [Vec<Op>]) -> Self {
        Self {
            program,
            counters: [0; 2],
            at: vec![0; program.len()],
            read: vec![None; program.len()],
            waits: vec![false; program.len()],
            outcome: Outcome::new(),
        }
    }

    /// One section of a participant.
    fn step(&mut self, who: usize) {
        let ret = match self.program[who][self.at[who]] {
            Op::Add(lock) => self.add(lock, 1),
            Op::Read(lock) => self.counters[lock],
            Op::Copy => match self.read[who].take() {
                None => {
                    self.read[who] = Some(self.counters[0]);
                    return;
                }
                Some(number) => self.add(1, number),
            },
            Op::Wait if self.counters[0] == 0 => {
                self.waits[who] = true;
                return;
            }
            Op::Wait => self.counters[0],
        };
        self.outcome.insert((who, self.at[who]), ret);
        self.at[who] += 1;
    }

    fn add(&mut self, lock: usize, number: usize) -> usize {
        if lock == 0 {
            self.waits.fill(false);
        }
        let before = self.counters[lock];
        self.counters[lock] += number;
        before
    }

    /// Counts the interleavings, and notes their outcomes.
    fn explore(self, outcomes: &mut BTreeSet<Outcome>) -> u64 {
        let able = (0..self.program.len())
            .filter(|&who| self.at[who] < self.program[who].len() && !self.waits[who]);
        let mut count = 0;
        for who in able {
            let mut next = self.clone();
            next.step(who);
            count += next.explore(outcomes);
        }
        if count == 0 {
            outcomes.insert(self.outcome);
            return 1;
        }
        count
    }
}

/// An engine, which runs the counters over its backend.
type Engine = fn(&Arc<Job>, Limits) -> Explored;

fn run<B: BlockingBackend>(program: &Program, explore: Engine) -> (BTreeSet<Outcome>, u64) {
    let outcomes = Outcomes::default();
    let counters = Counters::<B>(outcomes.clone(), PhantomData);
    let subject = erase(counters, program.participants.len());
    let job = Job::new(subject, program.clone(), Order::RealTime, None);
    let limits = Limits {
        executions: 1_000_000,
        preemptions: None,
        seed: 0,
    };
    let explored = explore(&job, limits);
    assert!(explored.failure.is_none(), "{:?}", explored.failure);
    assert!(explored.exhausted);
    let outcomes = outcomes.lock().expect("nobody panicked");
    (outcomes.clone(), explored.executions)
}

/// The executions that an engine took over all programs of a bound, and how
/// many interleavings these have.
fn compare<B: BlockingBackend>(
    participants: usize,
    operations: usize,
    total: usize,
    explore: Engine,
) -> (u64, u64) {
    let bound = Bound {
        participants,
        operations,
        total,
        non_default: 0,
        blocking: false,
        panics: false,
    };
    let counters = Counters::<B>(Outcomes::default(), PhantomData);
    let subject = erase(counters, participants);
    let programs = Program::enumerate(&*subject, bound);
    assert!(programs.len() > 80);
    let (mut executions, mut interleavings) = (0, 0);
    for program in programs {
        let ops: Vec<Vec<Op>> = program
            .participants
            .iter()
            .map(|line| line.iter().map(|step| OPS[step.op].1).collect())
            .collect();
        let mut expected = BTreeSet::new();
        let most = Model::new(&ops).explore(&mut expected);
        let (found, taken) = run::<B>(&program, explore);
        let text = program.text(subject.roles());
        assert_eq!(found, expected, "outcomes of {text}");
        assert!(taken > 0, "{text} was not run");
        executions += taken;
        interleavings += most;
    }
    (executions, interleavings)
}

fn by_shuttle(participants: usize, operations: usize, total: usize) -> (u64, u64) {
    compare::<Observed<Shuttle, Probe>>(participants, operations, total, |job, limits| {
        engine::shuttle::explore(job, engine::shuttle::Mode::Exhaustive, limits)
    })
}

fn by_loom(participants: usize, operations: usize, total: usize) -> (u64, u64) {
    let explore = engine::loom::explore;
    compare::<Observed<Loom, Probe>>(participants, operations, total, explore)
}

#[test]
fn shuttle_sees_every_outcome_of_two_and_takes_fewer_executions() {
    let (executions, interleavings) = by_shuttle(2, 2, 4);
    assert!(
        executions < interleavings,
        "{executions} executions for {interleavings} interleavings"
    );
}

#[test]
fn shuttle_sees_every_outcome_of_three() {
    let (executions, interleavings) = by_shuttle(3, 2, 4);
    assert!(executions < interleavings);
}

#[test]
fn loom_sees_every_outcome_of_two() {
    by_loom(2, 2, 4);
}

#[test]
fn loom_sees_every_outcome_of_three() {
    by_loom(3, 1, 3);
}
