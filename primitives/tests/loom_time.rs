//! The races of time under loom: a deadline passes while a sleep is polled, reset or
//! dropped, while a grant comes, or while the driver has its turn. Every interleaving
//! of sections is explored.

mod support;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;
use reveille::Semaphore;
use reveille::backend::Loom;
use reveille::protocol::block_on;
use reveille::time::{Advance, Clock, Duration, Instant, Sleep, Timers, VirtualClock};

use support::models::explore;

const TICK: Duration = Duration::from_nanos(1);

fn by_hand() -> VirtualClock<Loom> {
    VirtualClock::new_in(Instant::ORIGIN, Advance::ByHand, TICK)
}

fn at(ticks: u32) -> Instant {
    Instant::ORIGIN + TICK * ticks
}

/// A task, which counts its wakes.
#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The model ends if no wake is lost: loom reports threads that all wait.
#[test]
fn the_deadline_passes_while_a_sleep_is_polled() {
    let executions = explore(None, || {
        let clock = by_hand();
        let sleep = clock.timers().sleep(TICK);
        let sleeps = thread::spawn(move || block_on::<Loom, _>(sleep));
        clock.advance(TICK);
        sleeps.join().unwrap();
        assert_eq!(clock.timers().waiting(), 0);
    });
    assert!(executions > 3);
}

#[test]
fn two_move_the_clock_while_two_sleep() {
    let executions = explore(None, || {
        let clock = by_hand();
        let sleeps = [1, 2].map(|ticks| clock.timers().sleep(TICK * ticks));
        let moves = thread::spawn({
            let clock = clock.clone();
            move || clock.advance(TICK)
        });
        let sleeps = thread::spawn(move || sleeps.map(block_on::<Loom, Sleep<Loom>>));
        clock.advance(TICK);
        moves.join().unwrap();
        sleeps.join().unwrap();
        assert_eq!((clock.now(), clock.timers().waiting()), (at(2), 0));
    });
    assert!(executions > 10);
}

/// Reset against fire: the new deadline is met, and the sleep is not ready before it.
#[test]
fn the_deadline_passes_while_the_sleep_is_reset() {
    let executions = explore(None, || {
        let clock = by_hand();
        let mut sleep = clock.timers().sleep(TICK);
        let sleeps = thread::spawn({
            let clock = clock.clone();
            move || {
                let mut reset = false;
                block_on::<Loom, _>(poll_fn(|cx| {
                    let first = Pin::new(&mut sleep).poll(cx);
                    if !std::mem::replace(&mut reset, true) {
                        Pin::new(&mut sleep).reset(at(2));
                        if first.is_ready() {
                            return Pin::new(&mut sleep).poll(cx);
                        }
                        return Poll::Pending;
                    }
                    first
                }));
                assert!(clock.now() >= at(2));
            }
        });
        clock.advance(TICK);
        clock.advance(TICK);
        sleeps.join().unwrap();
        assert_eq!(clock.timers().waiting(), 0);
    });
    assert!(executions > 10);
}

#[test]
fn the_deadline_passes_while_the_sleep_is_given_up() {
    let executions = explore(None, || {
        let clock = by_hand();
        let task = Arc::new(Counts::default());
        let mut sleep = clock.timers().sleep(TICK);
        let waker = Waker::from(task.clone());
        let poll = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        drop(waker);
        let gives_up = thread::spawn(move || drop(sleep));
        clock.advance(TICK);
        gives_up.join().unwrap();
        assert!(task.0.load(Ordering::Relaxed) <= 1);
        assert_eq!((Arc::strong_count(&task), clock.timers().waiting()), (1, 0));
    });
    assert!(executions > 1);
}

/// CA-06: the permit is either delivered or returned.
#[test]
fn a_grant_comes_while_the_deadline_passes() {
    let executions = explore(None, || {
        let clock = by_hand();
        let semaphore = Arc::new(Semaphore::<Loom>::with_max_barges_in(0, 0));
        let acquire = clock
            .timers()
            .timeout(TICK, semaphore.clone().acquire_owned());
        let acquires = thread::spawn(move || {
            let acquired = block_on::<Loom, _>(acquire);
            acquired
                .map(|permit| permit.expect("it is open").forget())
                .is_ok()
        });
        let adds = thread::spawn({
            let semaphore = semaphore.clone();
            move || semaphore.add_permits(1)
        });
        clock.advance(TICK);
        let acquired = acquires.join().unwrap();
        adds.join().unwrap();
        assert_eq!(semaphore.available_permits(), usize::from(!acquired));
        assert_eq!(clock.timers().waiting(), 0);
    });
    assert!(executions > 10);
}

/// A clock that does not advance.
struct Still;

impl Clock for Still {
    fn now(&self) -> Instant {
        Instant::ORIGIN
    }
}

/// TM-01: the driver knows of the nearest deadline, or is woken.
#[test]
fn nearer_deadlines_come_while_the_driver_takes_its_turn() {
    let executions = explore(None, || {
        let timers = Timers::<Loom>::new_in(Still, TICK);
        let (driving, driver) = (timers.driver(), Arc::new(Counts::default()));
        let sleeps = [3, 5].map(|ticks| {
            let mut sleep = timers.sleep(TICK * ticks);
            thread::spawn(move || {
                let mut cx = Context::from_waker(Waker::noop());
                assert!(Pin::new(&mut sleep).poll(&mut cx).is_pending());
                sleep
            })
        });
        let waker = Waker::from(driver.clone());
        let next = driving.turn(&mut Context::from_waker(&waker));
        let sleeps = sleeps.map(|sleep| sleep.join().unwrap());
        let woken = driver.0.load(Ordering::Relaxed);
        assert!(next == Some(at(3)) && woken == 0 || next != Some(at(3)) && woken == 1);
        drop(sleeps);
    });
    assert!(executions > 10);
}
