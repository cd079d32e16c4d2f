//! A sleep that is cancelled before its deadline, as those of nearly all timeouts are. It
//! is created, polled once, and dropped, on the real clock, beside up to a million others
//! that wait.
//!
//! `cargo run --profile bench -p reveille-benches --bin timers` measures what does not
//! fit a loop: firing, memory, and lateness.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_intrusive::timer::{LocalTimer, LocalTimerService, StdClock};
use reveille::time::{DelayQueue, RealClock, Sleep, Timers};
use tokio::runtime::Runtime;

use crate::{Contender, Kind};

/// Returns the contenders, beside different numbers of other sleeps.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = among::<0>("time/cancelled among 0");
    all.extend(among::<1_000>("time/cancelled among 1000"));
    all.extend(among::<100_000>("time/cancelled among 100000"));
    all.extend(among::<1_000_000>("time/cancelled among 1000000"));
    all
}

fn among<const N: usize>(group: &'static str) -> Vec<Contender> {
    let contender = |kind, name, run| Contender::new(group, kind, name, run);
    vec![
        contender(Kind::Reveille, "reveille", cancelled::<Ours, N>),
        contender(Kind::Reveille, "reveille, ambient", cancelled::<Ambient, N>),
        contender(
            Kind::Reveille,
            "reveille DelayQueue",
            cancelled::<OurQueue, N>,
        ),
        contender(Kind::Peer, "tokio", cancelled::<Tokio, N>),
        contender(
            Kind::Peer,
            "tokio-util DelayQueue",
            cancelled::<TokioQueue, N>,
        ),
        contender(Kind::Peer, "futures-intrusive", cancelled::<Intrusive, N>),
        contender(Kind::Peer, "async-io", cancelled::<AsyncIo, N>),
        contender(Kind::Floor, "two clock reads alone", clock_reads),
    ]
}

/// Timers of an implementation, with others that wait.
trait Timed: 'static {
    /// Creates timers with `others` sleeps that wait.
    fn among(others: usize) -> Self;

    /// Creates a sleep, polls it, and drops it.
    fn cancelled(&mut self, duration: Duration);
}

/// Returns a duration between ten seconds and an hour, by an LCG of Knuth.
fn duration(seed: &mut u64) -> Duration {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    Duration::from_secs(10) + Duration::from_nanos((*seed >> 33) * 1671)
}

fn durations(count: usize) -> impl Iterator<Item = Duration> {
    let mut seed = 1;
    (0..count).map(move |_| duration(&mut seed))
}

thread_local! {
    /// Timers that take long to create, each created once.
    static MADE: RefCell<HashMap<(TypeId, usize), Box<dyn Any>>> = RefCell::default();
}

fn cancelled<T: Timed, const N: usize>(iterations: u64) {
    let key = (TypeId::of::<T>(), N);
    let made = MADE.with_borrow_mut(|made| made.remove(&key));
    let mut timed = made.unwrap_or_else(|| Box::new(T::among(N)));
    let all = timed
        .downcast_mut::<T>()
        .expect("timers are stored under their type");
    let mut seed = iterations;
    for _ in 0..iterations {
        all.cancelled(duration(&mut seed));
    }
    MADE.with_borrow_mut(|made| made.insert(key, timed));
}

/// Reads the clock twice: for the deadline of a new sleep, and for the comparison of its
/// first poll.
fn clock_reads(iterations: u64) {
    for _ in 0..iterations {
        std::hint::black_box((std::time::Instant::now(), std::time::Instant::now()));
    }
}

fn waits(future: Pin<&mut impl Future>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(future.poll(&mut cx).is_pending());
}

struct Ours {
    timers: Timers,
    _others: Vec<Sleep>,
}

impl Timed for Ours {
    fn among(others: usize) -> Self {
        let timers = Timers::new(RealClock);
        let mut sleeps: Vec<_> = durations(others).map(|it| timers.sleep(it)).collect();
        sleeps.iter_mut().for_each(|sleep| waits(Pin::new(sleep)));
        Self {
            timers,
            _others: sleeps,
        }
    }

    fn cancelled(&mut self, duration: Duration) {
        waits(pin!(self.timers.sleep(duration)));
    }
}

/// The timers of the process, which a thread drives.
struct Ambient(#[allow(dead_code, reason = "they wait")] Vec<Sleep>);

impl Timed for Ambient {
    fn among(others: usize) -> Self {
        let mut sleeps: Vec<_> = durations(others).map(reveille::time::sleep).collect();
        sleeps.iter_mut().for_each(|sleep| waits(Pin::new(sleep)));
        Self(sleeps)
    }

    fn cancelled(&mut self, duration: Duration) {
        waits(pin!(reveille::time::sleep(duration)));
    }
}

struct OurQueue(DelayQueue<u64>);

impl Timed for OurQueue {
    fn among(others: usize) -> Self {
        let mut queue = DelayQueue::new_in(&Timers::new(RealClock));
        durations(others).for_each(|duration| _ = queue.insert(7, duration));
        Self(queue)
    }

    fn cancelled(&mut self, duration: Duration) {
        let key = self.0.insert(7, duration);
        assert_eq!(self.0.remove(&key).into_inner(), 7);
    }
}

struct Tokio {
    _others: Vec<Pin<Box<tokio::time::Sleep>>>,
    runtime: Runtime,
}

fn tokio_runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("tokio starts")
}

impl Timed for Tokio {
    fn among(others: usize) -> Self {
        let runtime = tokio_runtime();
        let entered = runtime.enter();
        let sleeps = durations(others).map(|duration| Box::pin(tokio::time::sleep(duration)));
        let mut sleeps: Vec<_> = sleeps.collect();
        sleeps.iter_mut().for_each(|sleep| waits(sleep.as_mut()));
        drop(entered);
        Self {
            _others: sleeps,
            runtime,
        }
    }

    fn cancelled(&mut self, duration: Duration) {
        let _entered = self.runtime.enter();
        waits(pin!(tokio::time::sleep(duration)));
    }
}

struct TokioQueue {
    queue: tokio_util::time::DelayQueue<u64>,
    runtime: Runtime,
}

impl Timed for TokioQueue {
    fn among(others: usize) -> Self {
        let runtime = tokio_runtime();
        let entered = runtime.enter();
        let mut queue = tokio_util::time::DelayQueue::new();
        durations(others).for_each(|duration| _ = queue.insert(7, duration));
        drop(entered);
        Self { queue, runtime }
    }

    fn cancelled(&mut self, duration: Duration) {
        let _entered = self.runtime.enter();
        let key = self.queue.insert(7, duration);
        assert_eq!(self.queue.remove(&key).into_inner(), 7);
    }
}

/// A service without a lock, for one thread.
struct Intrusive {
    service: &'static LocalTimerService,
}

impl Timed for Intrusive {
    fn among(others: usize) -> Self {
        let clock: &'static _ = Box::leak(Box::new(StdClock::new()));
        let service: &'static _ = Box::leak(Box::new(LocalTimerService::new(clock)));
        for duration in durations(others) {
            let delay = Box::leak(Box::new(service.delay(duration)));
            waits(Pin::static_mut(delay));
        }
        Self { service }
    }

    fn cancelled(&mut self, duration: Duration) {
        waits(pin!(self.service.delay(duration)));
    }
}

struct AsyncIo(#[allow(dead_code, reason = "they wait")] Vec<async_io::Timer>);

impl Timed for AsyncIo {
    fn among(others: usize) -> Self {
        let mut timers: Vec<_> = durations(others).map(async_io::Timer::after).collect();
        timers.iter_mut().for_each(|timer| waits(Pin::new(timer)));
        Self(timers)
    }

    fn cancelled(&mut self, duration: Duration) {
        waits(pin!(async_io::Timer::after(duration)));
    }
}
