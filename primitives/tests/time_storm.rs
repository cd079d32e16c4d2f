//! Storms of resets, cancellations and firings, on sleeps and queues. Each has a
//! model beside it that knows which tasks must have been woken, and by when.

#![cfg(not(loom))]

mod support;

use std::pin::Pin;
use std::task::Poll;

use proptest::prelude::*;
use reveille::backend::Native;
use reveille::time::{Advance, DelayQueue, Driver, Duration, Instant, Key, Sleep, VirtualClock};

use support::poll;
use support::probe::Probe;

/// The number of sleeps.
const SLEEPS: usize = 6;
const TASKS: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    /// Replaces a sleep by a new one.
    Sleep(usize, u64),
    Poll(usize, usize),
    Reset(usize, u64),
    /// Resets to a deadline that has passed.
    ResetBack(usize, u64),
    Advance(u64),
    AdvanceToNext,
    /// The driver has its turn.
    Turn,
}

/// A sleep, and what it should be.
struct Slept {
    sleep: Sleep<Native>,
    deadline: Instant,
    /// The task whose waker it holds.
    task: Option<usize>,
    /// Whether it has an entry in the wheel, woken or not.
    entered: bool,
}

struct Storm {
    clock: VirtualClock<Native>,
    now: Instant,
    sleeps: Vec<Slept>,
    tasks: Vec<Probe>,
    woken: [usize; TASKS],
    driving: Driver,
    driver: Probe,
    /// The time until which the driver needs no wake, or none while it is awake.
    until: Option<Instant>,
    drives: usize,
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

impl Storm {
    fn new(start: Instant) -> Self {
        let clock = VirtualClock::new_in(start, Advance::ByHand, nanos(1));
        let mut storm = Self {
            now: start,
            sleeps: Vec::new(),
            tasks: (0..TASKS).map(|_| Probe::new()).collect(),
            woken: [0; TASKS],
            driving: clock.timers().driver(),
            driver: Probe::new(),
            until: None,
            drives: 0,
            clock,
        };
        for place in 0..SLEEPS {
            let slept = storm.slept(place as u64);
            storm.sleeps.push(slept);
        }
        storm
    }

    fn slept(&self, ahead: u64) -> Slept {
        let sleep = self.clock.timers().sleep(nanos(ahead));
        Slept {
            deadline: sleep.deadline(),
            sleep,
            task: None,
            entered: false,
        }
    }

    fn wake(&mut self, place: usize) {
        if let Some(task) = self.sleeps[place].task.take() {
            self.woken[task] += 1;
        }
    }

    fn tell_driver(&mut self, deadline: Instant) {
        if self.until.is_some_and(|until| deadline < until) {
            self.until = None;
            self.drives += 1;
        }
    }

    fn reset(&mut self, place: usize, deadline: Instant) {
        Pin::new(&mut self.sleeps[place].sleep).reset(deadline);
        self.sleeps[place].deadline = deadline;
        if self.sleeps[place].entered && deadline <= self.now {
            self.wake(place);
            self.sleeps[place].entered = false;
        } else if self.sleeps[place].entered {
            self.tell_driver(deadline);
        }
    }

    fn moved(&mut self) {
        for place in 0..SLEEPS {
            if self.sleeps[place].deadline <= self.now {
                self.wake(place);
            }
        }
    }

    fn first(&self) -> Option<Instant> {
        let waiting = |slept: &&Slept| slept.entered && slept.deadline > self.now;
        self.sleeps
            .iter()
            .filter(waiting)
            .map(|it| it.deadline)
            .min()
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Sleep(place, ahead) => self.sleeps[place] = self.slept(ahead),
            Op::Poll(place, task) => {
                let slept = &mut self.sleeps[place];
                let over = slept.deadline <= self.now;
                let ready = poll(&mut slept.sleep, &self.tasks[task]).is_ready();
                assert_eq!(ready, over, "{:?} at {:?}", slept.deadline, self.now);
                slept.task = (!over).then_some(task);
                let entered = std::mem::replace(&mut slept.entered, !over);
                if !over && !entered {
                    let deadline = slept.deadline;
                    self.tell_driver(deadline);
                }
            }
            Op::Reset(place, ahead) => self.reset(place, self.now + nanos(ahead)),
            Op::ResetBack(place, back) => self.reset(place, self.now - nanos(back)),
            Op::Advance(by) => {
                self.clock.advance(nanos(by));
                self.now += nanos(by);
                self.moved();
            }
            Op::AdvanceToNext => {
                let first = self.first().filter(|&first| first < Instant::MAX);
                assert_eq!(self.clock.advance_to_next(), first.is_some());
                self.now = first.unwrap_or(self.now);
                self.moved();
            }
            Op::Turn => {
                assert_eq!(self.driving.turn(&mut self.driver.cx()), None);
                self.until = Some(self.first().unwrap_or(Instant::MAX));
            }
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.clock.now(), self.now);
        let first = self.first().filter(|&first| first < Instant::MAX);
        assert_eq!(self.clock.timers().next_deadline(), first);
        let entered = self.sleeps.iter().filter(|slept| slept.entered);
        assert_eq!(self.clock.timers().waiting(), entered.count());
        for (number, task) in self.tasks.iter().enumerate() {
            let kept = self
                .sleeps
                .iter()
                .filter(|slept| slept.task == Some(number));
            assert_eq!(
                (task.wakes(), task.kept()),
                (self.woken[number], kept.count())
            );
        }
        for slept in &self.sleeps {
            assert_eq!(slept.sleep.deadline(), slept.deadline);
            assert_eq!(slept.sleep.is_elapsed(), slept.deadline <= self.now);
        }
        assert_eq!(self.driver.wakes(), self.drives);
    }
}

/// Draws near and far durations equally often.
fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..4u64,
        2 => 0..200u64,
        1 => (0..=64u32, any::<u64>())
            .prop_map(|(bits, any)| any.checked_shr(64 - bits).unwrap_or(0)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let place = || 0..SLEEPS;
    prop_oneof![
        2 => (place(), ahead()).prop_map(|(place, ahead)| Op::Sleep(place, ahead)),
        5 => (place(), 0..TASKS).prop_map(|(place, task)| Op::Poll(place, task)),
        3 => (place(), ahead()).prop_map(|(place, ahead)| Op::Reset(place, ahead)),
        1 => (place(), ahead()).prop_map(|(place, back)| Op::ResetBack(place, back)),
        3 => (0..100u64).prop_map(Op::Advance),
        2 => Just(Op::AdvanceToNext),
        2 => Just(Op::Turn),
    ]
}

fn start() -> impl Strategy<Value = Instant> {
    let edges = [0, 64, 4096, 1 << 30, 1 << 36, 1 << 60, u64::MAX - 500];
    (proptest::sample::select(edges.to_vec()), 0..100u64)
        .prop_map(|(edge, before)| Instant::ORIGIN + nanos(edge) - nanos(before))
}

/// A queue with a value for each deadline, beside a list of them.
fn queue_storm(start: Instant, ops: &[Op]) {
    let clock = VirtualClock::<Native>::new_in(start, Advance::ByHand, nanos(1));
    let task = Probe::new();
    let mut queue = DelayQueue::new_in(clock.timers());
    let mut model: Vec<(Key, Instant, usize)> = Vec::new();
    // The result of the last poll, if it was not a value, and the wakes until then.
    let mut told: Option<(Poll<()>, usize)> = None;
    for (number, op) in ops.iter().enumerate() {
        match *op {
            Op::Sleep(_, ahead) => {
                let key = queue.insert(number, nanos(ahead));
                model.push((key, clock.now() + nanos(ahead), number));
            }
            Op::Reset(place, ahead) if place < model.len() => {
                let (key, deadline, _) = &mut model[place];
                queue.reset(key, nanos(ahead));
                *deadline = clock.now() + nanos(ahead);
            }
            Op::ResetBack(place, _) if place < model.len() => {
                let (key, deadline, value) = model.remove(place);
                let removed = queue.remove(&key);
                assert_eq!(
                    (removed.deadline(), removed.into_inner()),
                    (deadline, value)
                );
            }
            Op::Advance(by) => clock.advance(nanos(by)),
            Op::AdvanceToNext => _ = clock.advance_to_next(),
            Op::Poll(..) => match queue.poll_expired(&mut task.cx()) {
                Poll::Ready(Some(out)) => {
                    assert!(out.deadline() <= clock.now(), "never early");
                    let place = model.iter().position(|&(key, ..)| key == out.key());
                    let (_, deadline, value) = model.remove(place.expect("it was in it"));
                    assert_eq!((out.deadline(), out.into_inner()), (deadline, value));
                    told = None;
                }
                Poll::Ready(None) => {
                    assert!(model.is_empty());
                    told = Some((Poll::Ready(()), task.wakes()));
                }
                Poll::Pending => {
                    assert!(!model.is_empty());
                    assert!(model.iter().all(|&(_, deadline, _)| deadline > clock.now()));
                    told = Some((Poll::Pending, task.wakes()));
                }
            },
            _ => {}
        }
        assert_eq!(queue.len(), model.len());
        for &(key, deadline, _) in &model {
            assert_eq!(queue.deadline(&key), deadline);
        }
        // No wake is lost: if the result of a poll has changed, the task has been
        // woken. This does not hold at the end of time, for which nothing can wait.
        if let Some((told, wakes)) = told
            && clock.now() < Instant::MAX
        {
            let due = model
                .iter()
                .any(|&(_, deadline, _)| deadline <= clock.now());
            let changed = due || told.is_ready() != model.is_empty();
            assert!(!changed || task.wakes() > wakes, "{op:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sleeps_are_the_model(
        start in start(),
        ops in proptest::collection::vec(op(), 0..150),
    ) {
        let mut storm = Storm::new(start);
        for op in &ops {
            storm.apply(op);
        }
    }

    #[test]
    fn queues_are_the_model(
        start in start(),
        ops in proptest::collection::vec(op(), 0..150),
    ) {
        queue_storm(start, &ops);
    }
}
