//! Ten years of mixed timers, on a clock that an idle executor advances: none is
//! early, lost or out of order.

#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use reveille::time::{
    DelayQueue, Duration, Instant, Interval, Sleep, Timeout, Timers, VirtualClock,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Draws numbers, the same in each run, by splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a duration from a microsecond to a year, equally often on each scale.
    fn duration(&mut self) -> Duration {
        let bits = 10 + self.next() % 45;
        let nanos = (1 << bits) + self.next() % (1 << bits);
        Duration::from_nanos(nanos).min(YEAR)
    }
}

/// A user of a timer, for as long as the test lasts.
trait Actor {
    /// Does what is due, and returns how many of its timers fired. It is pending
    /// afterwards.
    fn run(&mut self, cx: &mut Context<'_>, watch: &Watch, draw: &mut Draw) -> usize;
}

/// Knows the time, and checks that it does not go back.
struct Watch {
    timers: Timers,
    last: Cell<Instant>,
}

impl Watch {
    /// Checks a timer for `deadline` that has fired. It fires exactly then, since the
    /// clock stops at each deadline, and after those that fired before.
    fn fired(&self, deadline: Instant) {
        assert_eq!(self.timers.now(), deadline, "neither early nor late");
        assert!(self.last.replace(deadline) <= deadline, "in order");
    }
}

fn poll<F: Future + Unpin>(future: &mut F, cx: &mut Context<'_>) -> Poll<F::Output> {
    Pin::new(future).poll(cx)
}

/// Sleeps again and again, with a new sleep when one is over.
struct Sleeper(Sleep);

impl Actor for Sleeper {
    fn run(&mut self, cx: &mut Context<'_>, watch: &Watch, draw: &mut Draw) -> usize {
        let mut fired = 0;
        while poll(&mut self.0, cx).is_ready() {
            watch.fired(self.0.deadline());
            fired += 1;
            match draw.next() % 2 {
                0 => self.0 = watch.timers.sleep(draw.duration()),
                _ => Pin::new(&mut self.0).reset(watch.timers.now() + draw.duration()),
            }
        }
        fired
    }
}

impl Actor for Interval {
    fn run(&mut self, cx: &mut Context<'_>, watch: &Watch, _: &mut Draw) -> usize {
        let mut fired = 0;
        while let Poll::Ready(tick) = self.poll_tick(cx) {
            watch.fired(tick);
            fired += 1;
        }
        fired
    }
}

/// Is busy about every other day. While it is busy, each hour postpones by a day what
/// happens when it is idle.
struct Keepalive {
    busy: bool,
    hours: Interval,
    idle: Timeout<std::future::Pending<()>>,
    since: Instant,
}

impl Actor for Keepalive {
    fn run(&mut self, cx: &mut Context<'_>, watch: &Watch, draw: &mut Draw) -> usize {
        let fired = self.hours.run(cx, watch, draw);
        if fired > 0 && draw.next().is_multiple_of(25) {
            self.busy = !self.busy;
        }
        if fired > 0 && self.busy {
            self.since = watch.timers.now();
            self.idle = watch.timers.timeout(DAY, pending());
        }
        let mut idle = 0;
        while poll(&mut self.idle, cx).is_ready() {
            watch.fired(self.since + DAY);
            self.since = watch.timers.now();
            self.idle = watch.timers.timeout(DAY, pending());
            idle += 1;
        }
        fired + idle
    }
}

/// A queue of a hundred entries, which is refilled.
struct Sessions(DelayQueue<Instant>);

impl Actor for Sessions {
    fn run(&mut self, cx: &mut Context<'_>, watch: &Watch, draw: &mut Draw) -> usize {
        let mut fired = 0;
        loop {
            while self.0.len() < 100 {
                let deadline = watch.timers.now() + draw.duration();
                self.0.insert_at(deadline, deadline);
            }
            let Poll::Ready(expired) = self.0.poll_expired(cx) else {
                return fired;
            };
            let expired = expired.expect("it was refilled");
            assert_eq!(expired.deadline(), *expired.get_ref());
            watch.fired(expired.deadline());
            fired += 1;
        }
    }
}

/// The actors that have been woken.
type Ready = Arc<Mutex<VecDeque<usize>>>;

struct Task {
    number: usize,
    ready: Ready,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.number);
    }
}

#[test]
fn ten_years_of_mixed_timers() {
    let clock = VirtualClock::when_idle();
    let timers = clock.timers();
    let end = timers.now() + 10 * YEAR;
    let mut draw = Draw(4);
    let watch = Watch {
        timers: timers.clone(),
        last: Cell::new(timers.now()),
    };
    let mut actors: Vec<Box<dyn Actor>> = Vec::new();
    for _ in 0..2000 {
        actors.push(Box::new(Sleeper(timers.sleep(draw.duration()))));
    }
    for period in [5 * MINUTE, 7 * MINUTE, HOUR, DAY, 7 * DAY, 30 * DAY, YEAR] {
        actors.push(Box::new(timers.interval(period)));
    }
    for _ in 0..3 {
        actors.push(Box::new(Keepalive {
            busy: true,
            hours: timers.interval(HOUR),
            idle: timers.timeout(DAY, pending()),
            since: timers.now(),
        }));
        actors.push(Box::new(Sessions(DelayQueue::new_in(timers))));
    }
    // This one is held all the time.
    actors.push(Box::new(Sleeper(timers.sleep(Duration::MAX))));

    let ready: Ready = Arc::new(Mutex::new((0..actors.len()).collect()));
    let wakers: Vec<Waker> = (0..actors.len())
        .map(|number| {
            let ready = ready.clone();
            Arc::new(Task { number, ready }).into()
        })
        .collect();
    let fired = Rc::new(RefCell::new(vec![0; actors.len()]));
    loop {
        let next = ready.lock().unwrap().pop_front();
        if let Some(next) = next {
            let mut cx = Context::from_waker(&wakers[next]);
            fired.borrow_mut()[next] += actors[next].run(&mut cx, &watch, &mut draw);
            continue;
        }
        // None is lost: no actor is ready, so nothing is due.
        let deadline = timers.next_deadline().expect("there is always one");
        assert!(deadline > timers.now());
        if deadline > end {
            break;
        }
        assert!(timers.idle());
        assert_eq!(timers.now(), deadline);
    }

    // Each interval ticked as often as it fits in, and once at the start.
    let fired = fired.borrow();
    let ticks = |period: Duration| (10 * YEAR).as_secs() as usize / period.as_secs() as usize + 1;
    let expected = [5 * MINUTE, 7 * MINUTE, HOUR, DAY, 7 * DAY, 30 * DAY, YEAR].map(ticks);
    assert_eq!(fired[2000..2007], expected);
    assert!(fired[2007] > ticks(HOUR) + 100, "it was idle at times");
    assert_eq!(fired[actors.len() - 1], 0);
    let all: usize = fired.iter().sum();
    assert!(all > 2_500_000, "{all} timers fired");
    drop(actors);
    assert_eq!(timers.waiting(), 0);
}
