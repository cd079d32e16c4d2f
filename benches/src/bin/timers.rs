//! Measures what does not fit a loop: how long firing takes, the memory of a pending
//! sleep, and how late sleeps are by granularity, at which cost.
//!
//! ```sh
//! cargo run --profile bench -p reveille-benches --bin timers
//! ```
//!
//! It uses the real clock. The implementations run one after another in each of a few
//! rounds. The medians are printed.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use comfy_table::{Table, presets};
use reveille::backend::Native;
use reveille::time::{DelayQueue, RealClock, Timers};

use self::allocator::{Observed, Observer};

#[path = "../../../primitives/tests/support/allocator.rs"]
mod allocator;

/// The number of timers that are due at a time.
const DUE: usize = 100_000;
/// The range of their deadlines: none, or as many ticks as it takes for each timer to
/// have its own slot.
const SPREADS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(40)];
const ROUNDS: usize = 15;

#[global_allocator]
static ALLOCATOR: Observed<Live> = Observed(Live(AtomicUsize::new(0)));

/// The bytes that are allocated and not freed.
struct Live(AtomicUsize);

impl Live {
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Observer for Live {
    fn allocates(&self, size: usize) {
        self.0.fetch_add(size, Ordering::Relaxed);
    }

    fn frees(&self, size: usize) {
        self.0.fetch_sub(size, Ordering::Relaxed);
    }
}

fn main() {
    println!("{}", firing());
    println!(
        "{DUE} timers, created in no order of deadlines: the driver's turn when all are due.\n"
    );
    println!("{}", memory());
    println!("Bytes per pending sleep. Inline is what the owner of a sleep stores.\n");
    println!("{}", lateness());
    println!(
        "Sleeps of 1 to 2 ms on 200 tasks at a time, driven by a thread: how late they fire, \
         and\nthe processor time of the process per sleep."
    );
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header);
    table
}

/// Returns the middle sample in ascending order.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn waits(future: Pin<&mut impl Future>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(future.poll(&mut cx).is_pending());
}

fn delays(spread: Duration) -> impl Iterator<Item = Duration> {
    let mut seed = 1u64;
    let start = Instant::now();
    (0..DUE).map(move |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let after = (u128::from(seed >> 33) * spread.as_nanos()) >> 31;
        // The first timer is not due before the last has been created.
        let due = Duration::from_millis(60) + Duration::from_nanos(after as u64);
        due.saturating_sub(start.elapsed())
    })
}

/// Waits until all timers are due, and returns the nanoseconds of the turn per timer.
fn timed(fire: impl FnOnce()) -> f64 {
    thread::sleep(Duration::from_millis(110));
    let start = Instant::now();
    fire();
    start.elapsed().as_nanos() as f64 / DUE as f64
}

fn fire_ours(spread: Duration) -> f64 {
    let timers = Timers::new(RealClock);
    let mut sleeps: Vec<_> = delays(spread).map(|delay| timers.sleep(delay)).collect();
    sleeps.iter_mut().for_each(|sleep| waits(Pin::new(sleep)));
    let took = timed(|| timers.fire());
    assert!(sleeps.iter().all(|sleep| sleep.is_elapsed()));
    took
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("tokio starts")
}

fn fire_tokio(spread: Duration) -> f64 {
    let runtime = tokio_runtime();
    let entered = runtime.enter();
    let mut sleeps: Vec<_> = delays(spread)
        .map(|it| Box::pin(tokio::time::sleep(it)))
        .collect();
    sleeps.iter_mut().for_each(|sleep| waits(sleep.as_mut()));
    drop(entered);
    // The task yields, and runs again after the turn of the driver.
    let took = timed(|| runtime.block_on(tokio::task::yield_now()));
    assert!(sleeps.iter().all(|sleep| sleep.is_elapsed()));
    took
}

fn fire_our_queue(spread: Duration) -> f64 {
    let mut queue = DelayQueue::new_in(&Timers::new(RealClock));
    delays(spread).for_each(|delay| _ = queue.insert(7u64, delay));
    let mut cx = Context::from_waker(Waker::noop());
    timed(|| {
        for _ in 0..DUE {
            assert!(queue.poll_expired(&mut cx).is_ready());
        }
    })
}

fn fire_tokio_queue(spread: Duration) -> f64 {
    let runtime = tokio_runtime();
    let _entered = runtime.enter();
    let mut queue = tokio_util::time::DelayQueue::new();
    delays(spread).for_each(|delay| _ = queue.insert(7u64, delay));
    let mut cx = Context::from_waker(Waker::noop());
    // The first poll creates the sleep, which the turn of the driver fires.
    assert!(queue.poll_expired(&mut cx).is_pending());
    timed(|| {
        let mut left = DUE;
        while left > 0 {
            match queue.poll_expired(&mut cx) {
                std::task::Poll::Ready(value) => left -= usize::from(value.is_some()),
                std::task::Poll::Pending => runtime.block_on(tokio::task::yield_now()),
            }
        }
    })
}

fn fire_intrusive(spread: Duration) -> f64 {
    use futures_intrusive::timer::{LocalTimer, LocalTimerService, StdClock};

    let clock: &'static _ = Box::leak(Box::new(StdClock::new()));
    let service = LocalTimerService::new(clock);
    let mut sleeps: Vec<_> = delays(spread)
        .map(|it| Box::pin(service.delay(it)))
        .collect();
    sleeps.iter_mut().for_each(|sleep| waits(sleep.as_mut()));
    timed(|| service.check_expirations())
}

/// Fires timers with deadlines in a range, and returns the nanoseconds per timer.
type Fire = fn(Duration) -> f64;

fn firing() -> Table {
    let mut table = table([
        "firing, ns per timer",
        "all at once",
        "scattered over 40 ms",
    ]);
    let contenders: [(&str, Fire); 5] = [
        ("reveille", fire_ours),
        ("tokio", fire_tokio),
        ("futures-intrusive", fire_intrusive),
        ("reveille DelayQueue", fire_our_queue),
        ("tokio-util DelayQueue", fire_tokio_queue),
    ];
    let mut samples = contenders.map(|_| SPREADS.map(|_| Vec::new()));
    for _ in 0..ROUNDS {
        for ((_, fire), samples) in contenders.iter().zip(&mut samples) {
            for (spread, samples) in SPREADS.into_iter().zip(samples) {
                samples.push(fire(spread));
            }
        }
    }
    for ((name, _), samples) in contenders.iter().zip(samples) {
        let [at_once, scattered] = samples.map(|samples| format!("{:.1}", median(samples)));
        table.add_row([name.to_string(), at_once, scattered]);
    }
    table
}

/// Returns the bytes per sleep that `count` pending sleeps have on the heap. The vector
/// in which their owner stores them does not count.
fn heap<S>(count: usize, sleep: impl Fn() -> S, poll: impl Fn(&mut S)) -> f64 {
    let mut sleeps = Vec::with_capacity(count);
    let before = ALLOCATOR.0.bytes();
    for _ in 0..count {
        let mut new = sleep();
        poll(&mut new);
        sleeps.push(new);
    }
    let bytes = ALLOCATOR.0.bytes() - before;
    black_box(&sleeps);
    bytes as f64 / count as f64
}

fn memory() -> Table {
    const LONG: Duration = Duration::from_secs(1000);
    let mut table = table([
        "memory",
        "inline",
        "heap of 1,000",
        "of 100,000",
        "of 1,000,000",
    ]);
    let counts = [1000, 100_000, 1_000_000];
    let mut row = |name: &str, inline: usize, heap: [f64; 3]| {
        let heap = heap.map(|bytes| format!("{bytes:.1}"));
        table.add_row([vec![name.to_string(), inline.to_string()], heap.to_vec()].concat());
    };
    row(
        "reveille",
        size_of::<reveille::time::Sleep>(),
        counts.map(|count| {
            let timers = Timers::new(RealClock);
            heap(count, || timers.sleep(LONG), |it| waits(Pin::new(it)))
        }),
    );
    row(
        "tokio, boxed to be kept",
        size_of::<Pin<Box<tokio::time::Sleep>>>(),
        counts.map(|count| {
            let runtime = tokio_runtime();
            let _entered = runtime.enter();
            heap(
                count,
                || Box::pin(tokio::time::sleep(LONG)),
                |it| waits(it.as_mut()),
            )
        }),
    );
    row(
        "async-io",
        size_of::<async_io::Timer>(),
        counts.map(|count| {
            heap(
                count,
                || async_io::Timer::after(LONG),
                |it| waits(Pin::new(it)),
            )
        }),
    );
    table
}

/// Returns the processor time of this process, including threads that have ended, in
/// steps of a hundredth of a second.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may contain anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    // The 12th and 13th numbers after the name are user and system time.
    let ticks: u64 = fields
        .skip(12)
        .take(2)
        .filter_map(|it| it.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// A task of the thread that polls. Its waker tells the thread which task to poll.
struct Task {
    number: usize,
    woken: Arc<Mutex<Vec<usize>>>,
    polls: Thread,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.number);
        self.polls.unpark();
    }
}

fn lateness() -> Table {
    const TASKS: usize = 200;
    const SLEEPS: usize = 200_000;
    let mut table = table([
        "granularity",
        "median delay",
        "99th percentile",
        "µs of processor per sleep",
    ]);
    for shift in [10, 12, 14, 16, 17, 18, 20] {
        let granularity = Duration::from_nanos(1 << shift);
        let timers = Timers::<Native>::threaded_in(granularity);
        let woken = Arc::new(Mutex::new((0..TASKS).collect::<Vec<_>>()));
        let mut tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let (woken, polls) = (woken.clone(), thread::current());
                let task = Arc::new(Task {
                    number,
                    woken,
                    polls,
                });
                (timers.sleep(Duration::from_millis(1)), Waker::from(task))
            })
            .collect();
        let (before, mut seed, mut late) = (processor(), 1u64, Vec::new());
        while late.len() < SLEEPS {
            let due = std::mem::take(&mut *woken.lock().unwrap());
            if due.is_empty() {
                thread::park();
            }
            for number in due {
                let (sleep, waker) = &mut tasks[number];
                let mut cx = Context::from_waker(waker);
                while Pin::new(&mut *sleep).poll(&mut cx).is_ready() {
                    let now = timers.now();
                    late.push((now - sleep.deadline()).as_nanos() as f64 / 1000.);
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    Pin::new(&mut *sleep)
                        .reset(now + Duration::from_nanos(1_000_000 + (seed >> 33) % 1_000_000));
                }
            }
        }
        let spent = (processor() - before).as_nanos() as f64 / 1000. / late.len() as f64;
        late.sort_by(f64::total_cmp);
        table.add_row([
            format!(
                "2^{shift} ns, {:.1} µs",
                granularity.as_nanos() as f64 / 1000.
            ),
            format!("{:.0} µs", late[late.len() / 2]),
            format!("{:.0} µs", late[late.len() * 99 / 100]),
            format!("{spent:.2}"),
        ]);
    }
    table
}
