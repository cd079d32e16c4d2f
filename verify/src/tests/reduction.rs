//! Whether leaving out orders leaves out outcomes: what the engines see of every small
//! program over one, two and three locks, beside all interleavings of it, counted out by
//! hand. The engine of fibers takes as many executions as there are classes of equivalent
//! interleavings, neither more nor fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use reveille::backend::{BlockingBackend, Loom, Native, Observed};
use reveille::protocol::{Bits, StateLock, WakerSlot};

use crate::engine::{self, Explored, Job, Limits, Traced};
use crate::execution::Probe;
use crate::judge::erased::erase;
use crate::program::Program;
use crate::subject::plan::Bound;
use crate::subject::plan::Order;
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::{Started, Subject};

/// The operations on the counters, each of which has a lock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// Adds to the counter of a lock and wakes its waiters. Returns the value from
    /// before.
    Add(usize),
    /// Reads the counter of a lock.
    Read(usize),
    /// Reads one counter, then adds its value to the next, in two sections.
    Copy(usize),
    /// Waits until the first counter is not zero.
    Wait,
    /// Waits until the first or the second counter is not zero, with a section on each.
    Either,
}

/// The operations, each with the number of locks that it needs.
const OPS: [(&str, Op, usize); 10] = [
    ("add0", Op::Add(0), 1),
    ("read0", Op::Read(0), 1),
    ("wait", Op::Wait, 1),
    ("add1", Op::Add(1), 2),
    ("read1", Op::Read(1), 2),
    ("copy0", Op::Copy(0), 2),
    ("either", Op::Either, 2),
    ("add2", Op::Add(2), 3),
    ("read2", Op::Read(2), 3),
    ("copy1", Op::Copy(1), 3),
];

/// Returns the operations that need at most this many locks.
fn ops(locks: usize) -> impl Iterator<Item = (&'static str, Op)> {
    let fits = move |&(.., needs): &(&str, Op, usize)| needs <= locks;
    OPS.into_iter().filter(fits).map(|(name, op, _)| (name, op))
}

/// What each call returned, by participant and number. There is no entry for a call
/// that waits.
type Outcome = BTreeMap<(usize, usize), usize>;

/// The outcomes of all executions.
type Outcomes = Arc<Mutex<BTreeSet<Outcome>>>;

struct Counters<B> {
    outcomes: Outcomes,
    locks: usize,
    backend: PhantomData<fn() -> B>,
}

/// One execution's counters. Its outcome is noted when it is over.
struct Shared<B: BlockingBackend> {
    locks: [StateLock<[WakerSlot; 3], B>; 3],
    outcome: Mutex<Outcome>,
    outcomes: Outcomes,
}

impl<B: BlockingBackend> Drop for Shared<B> {
    fn drop(&mut self) {
        let outcome = std::mem::take(self.outcome.get_mut().expect("no participant panicked"));
        self.outcomes
            .lock()
            .expect("no participant panicked")
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

    fn poll_wait(&self, lock: usize, participant_id: usize, cx: &mut Context<'_>) -> Poll<usize> {
        self.locks[lock].poll(cx, true, |section, registration| match section.bits.get() {
            0 => Err(registration.register(&mut section.state[participant_id])),
            count => Ok(count),
        })
    }

    fn note(&self, call: (usize, usize), ret: usize) -> usize {
        let mut outcome = self.outcome.lock().expect("no participant panicked");
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
            Op::Wait | Op::Either => {
                Operation::future(name, op).keeps_waker("until the next turn of that lock")
            }
            _ => Operation::immediate(name, op),
        };
        let role = Role {
            name: "thread",
            ops: ops(self.locks).map(operation).collect(),
            symmetry: 0,
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Shared<B>>> {
        let lock = || StateLock::new_in(Bits::EMPTY, Default::default());
        let shared = Arc::new(Shared {
            locks: [lock(), lock(), lock()],
            outcome: Mutex::default(),
            outcomes: self.outcomes.clone(),
        });
        vec![shared; participants]
    }

    fn start<'a>(
        &self,
        shared: &'a mut Arc<Shared<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, usize> {
        let (participant_id, id) = (call.participant, (call.participant, call.index));
        Started::Done(match *call.op {
            Op::Add(lock) => shared.note(id, shared.add(lock, 1)),
            Op::Read(lock) => shared.note(id, shared.locks[lock].load().get()),
            Op::Copy(from) => {
                let number = shared.locks[from].load().get();
                shared.note(id, shared.add(from + 1, number))
            }
            Op::Wait => {
                return Started::future(poll_fn(move |cx| {
                    let poll = shared.poll_wait(0, participant_id, cx);
                    poll.map(|ret| shared.note(id, ret))
                }));
            }
            Op::Either => {
                return Started::future(poll_fn(move |cx| {
                    let mut poll = shared.poll_wait(0, participant_id, cx);
                    if poll.is_pending() {
                        poll = shared.poll_wait(1, participant_id, cx);
                    }
                    poll.map(|ret| shared.note(id, ret))
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
    counters: [usize; 3],
    /// The wakers that are registered at each lock: whose, and for which operation.
    registered: [[Option<usize>; 3]; 3],
    threads: Vec<Thread>,
    outcome: Outcome,
    steps: Vec<Section>,
}

#[derive(Clone, Default)]
struct Thread {
    /// The number of the operation that it is at.
    at: usize,
    /// What the first section of a `copy` has read.
    read: Option<usize>,
    /// It is at the second section of an `either`.
    second: bool,
    waits: bool,
    /// It was woken, and has not begun to poll again.
    starts: bool,
    /// It was woken since the poll began.
    woken: bool,
}

/// What was done, for telling which orders are equivalent.
#[derive(Clone)]
struct Section {
    participant_id: usize,
    lock: usize,
    changes: bool,
    /// The waiters that it woke, by participant and number of the operation.
    wakes: Vec<(usize, usize)>,
    /// It begins a poll for which its thread was woken.
    starts: Option<(usize, usize)>,
}

impl Section {
    fn depends(&self, other: &Self) -> bool {
        let wakes = |one: &Self, other: &Self| {
            let starts = other.starts;
            starts.is_some_and(|start| one.wakes.contains(&start))
        };
        self.participant_id == other.participant_id
            || self.lock == other.lock && (self.changes || other.changes)
            || wakes(self, other)
            || wakes(other, self)
    }
}

/// Which of any two dependent sections of an interleaving came first: the same for
/// equivalent ones.
type Class = BTreeSet<((usize, usize), (usize, usize))>;

/// What all interleavings come to.
#[derive(Default)]
struct Counted {
    interleavings: u64,
    outcomes: BTreeSet<Outcome>,
    classes: BTreeSet<Class>,
}

impl<'a> Model<'a> {
    fn new(program: &'a [Vec<Op>]) -> Self {
        Self {
            program,
            counters: [0; 3],
            registered: [[None; 3]; 3],
            threads: vec![Thread::default(); program.len()],
            outcome: Outcome::new(),
            steps: Vec::new(),
        }
    }

    /// One section of a participant.
    fn step(&mut self, participant_id: usize) {
        let at = self.threads[participant_id].at;
        let starts = std::mem::take(&mut self.threads[participant_id].starts)
            .then_some((participant_id, at));
        self.steps.push(Section {
            participant_id,
            lock: 0,
            changes: true,
            wakes: Vec::new(),
            starts,
        });
        let ret = match self.program[participant_id][at] {
            Op::Add(lock) => self.add(lock, 1),
            Op::Read(lock) => self.read(lock),
            Op::Copy(from) => match self.threads[participant_id].read.take() {
                None => {
                    self.threads[participant_id].read = Some(self.read(from));
                    return;
                }
                Some(number) => self.add(from + 1, number),
            },
            Op::Wait => match self.poll(0, participant_id) {
                Some(count) => count,
                None => return self.suspend(participant_id),
            },
            Op::Either => {
                let second = std::mem::take(&mut self.threads[participant_id].second);
                match self.poll(usize::from(second), participant_id) {
                    Some(count) => count,
                    None if second => return self.suspend(participant_id),
                    None => {
                        self.threads[participant_id].second = true;
                        return;
                    }
                }
            }
        };
        self.outcome.insert((participant_id, at), ret);
        let thread = &mut self.threads[participant_id];
        thread.at += 1;
        thread.woken = false;
    }

    fn section(&mut self) -> &mut Section {
        self.steps.last_mut().expect("a step is under way")
    }

    fn read(&mut self, lock: usize) -> usize {
        self.section().lock = lock;
        self.section().changes = false;
        self.counters[lock]
    }

    fn add(&mut self, lock: usize, number: usize) -> usize {
        self.section().lock = lock;
        for (participant_id, slot) in std::mem::take(&mut self.registered[lock])
            .into_iter()
            .enumerate()
        {
            let Some(at) = slot else { continue };
            self.section().wakes.push((participant_id, at));
            let thread = &mut self.threads[participant_id];
            if thread.at != at || thread.starts {
                continue; // It has what it waited for, or will look again anyway.
            }
            match std::mem::take(&mut thread.waits) {
                true => thread.starts = true,
                false => thread.woken = true,
            }
        }
        let before = self.counters[lock];
        self.counters[lock] += number;
        before
    }

    fn poll(&mut self, lock: usize, participant_id: usize) -> Option<usize> {
        self.section().lock = lock;
        match self.counters[lock] {
            0 => {
                self.registered[lock][participant_id] = Some(self.threads[participant_id].at);
                None
            }
            count => Some(count),
        }
    }

    fn suspend(&mut self, participant_id: usize) {
        let thread = &mut self.threads[participant_id];
        match std::mem::take(&mut thread.woken) {
            true => thread.starts = true,
            false => thread.waits = true,
        }
    }

    fn class(&self) -> Class {
        let mut numbers = vec![0; self.program.len()];
        let ids: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                numbers[step.participant_id] += 1;
                (step.participant_id, numbers[step.participant_id])
            })
            .collect();
        let mut class = Class::new();
        for (index, step) in self.steps.iter().enumerate() {
            for (earlier, before) in self.steps[..index].iter().enumerate() {
                if step.depends(before) {
                    class.insert((ids[earlier], ids[index]));
                }
            }
        }
        class
    }

    fn explore(self, counted: &mut Counted) {
        let able = (0..self.program.len()).filter(|&participant_id| {
            let thread = &self.threads[participant_id];
            thread.at < self.program[participant_id].len() && !thread.waits
        });
        let mut over = true;
        for participant_id in able {
            over = false;
            let mut next = self.clone();
            next.step(participant_id);
            next.explore(counted);
        }
        if over {
            counted.interleavings += 1;
            counted.classes.insert(self.class());
            counted.outcomes.insert(self.outcome);
        }
    }
}

/// An engine, which runs the counters over its backend.
type Engine = fn(&Arc<Job>, Limits) -> Explored;

fn run<B: BlockingBackend>(
    program: &Program,
    locks: usize,
    explore: Engine,
) -> (BTreeSet<Outcome>, Explored) {
    let counters = Counters::<B>::of(locks);
    let outcomes = counters.outcomes.clone();
    let subject = erase(counters, program.participants.len());
    let job = Job::new(subject, program.clone(), Order::RealTime, Traced::None);
    let limits = Limits {
        executions: 1_000_000,
        preemptions: None,
        seed: 0,
    };
    let explored = explore(&job, limits);
    assert!(explored.failure.is_none(), "{:?}", explored.failure);
    assert!(explored.exhausted);
    let outcomes = outcomes.lock().expect("no participant panicked");
    (outcomes.clone(), explored)
}

impl<B> Counters<B> {
    fn of(locks: usize) -> Self {
        Self {
            outcomes: Outcomes::default(),
            locks,
            backend: PhantomData,
        }
    }
}

/// What came of all programs of a bound.
#[derive(Debug, Default)]
struct Totals {
    programs: usize,
    executions: u64,
    repeated: u64,
    classes: u64,
    interleavings: u64,
}

/// Has an engine run all programs of a bound, and holds what it saw against all
/// interleavings.
fn compare<B: BlockingBackend>(
    locks: usize,
    [participants, operations, total]: [usize; 3],
    explore: Engine,
    check: impl Fn(&str, &Explored, u64),
) -> Totals {
    let bound = Bound {
        participants,
        operations,
        total,
        non_default: 0,
        suspensions: 1,
        blocking: false,
        aliases: true,
        panics: false,
        only_panics: false,
    };
    let subject = erase(Counters::<B>::of(locks), participants);
    let programs = Program::enumerate(&*subject, bound);
    let ops: Vec<_> = ops(locks).collect();
    let mut totals = Totals::default();
    for program in programs {
        let lines: Vec<Vec<Op>> = program
            .participants
            .iter()
            .map(|line| line.iter().map(|step| ops[step.op].1).collect())
            .collect();
        let mut counted = Counted::default();
        Model::new(&lines).explore(&mut counted);
        let (found, taken) = run::<B>(&program, locks, explore);
        let text = program.text(subject.roles());
        assert_eq!(found, counted.outcomes, "outcomes of {text}");
        let classes = counted.classes.len() as u64;
        check(&text, &taken, classes);
        totals.programs += 1;
        totals.executions += taken.executions;
        totals.repeated += taken.repeated;
        totals.classes += classes;
        totals.interleavings += counted.interleavings;
    }
    assert!(totals.programs > 10);
    totals
}

fn by_fibers(locks: usize, bound: [usize; 3]) -> Totals {
    let explore: Engine =
        |job, limits| engine::fibers::explore(job, engine::fibers::Mode::Exhaustive, limits);
    compare::<Observed<Native, Probe>>(locks, bound, explore, |text, taken, classes| {
        let different = taken.executions - taken.repeated;
        assert_eq!(different, classes, "executions of {text}, and its classes");
    })
}

fn by_loom(locks: usize, bound: [usize; 3]) {
    let explore = engine::loom::explore;
    compare::<Observed<Loom, Probe>>(locks, bound, explore, |text, taken, classes| {
        let taken = taken.executions;
        assert!(taken >= classes, "{text}: {taken} executions of {classes}");
    });
}

#[test]
fn fibers_run_one_execution_of_each_class() {
    for (locks, bound) in [
        (1, [2, 3, 6]),
        (1, [3, 2, 5]),
        (2, [2, 2, 4]),
        (2, [3, 1, 3]),
        (2, [3, 2, 4]),
        (3, [2, 2, 4]),
        (3, [3, 1, 3]),
    ] {
        let totals = by_fibers(locks, bound);
        eprintln!("{locks} locks, {bound:?}: {totals:?}");
        assert!(totals.classes < totals.interleavings, "{totals:?}");
    }
}

#[test]
fn loom_sees_every_outcome_of_two() {
    by_loom(2, [2, 2, 3]);
}

#[test]
fn loom_sees_every_outcome_of_three() {
    by_loom(2, [3, 1, 3]);
}
