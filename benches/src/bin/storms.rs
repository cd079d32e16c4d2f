//! Measures pools of two workers where there is too much to do: a storm of spawns, a
//! shutdown under load, and the memory that is left after a spike.
//!
//! ```sh
//! cargo run --profile bench -p reveille-benches --bin storms
//! ```
//!
//! Each sample is taken in a process of its own, which begins with a fresh heap. The
//! implementations take turns in each of a few rounds. The medians are printed. Memory is
//! that which is resident, as Linux tells it.

use std::future::{Future, poll_fn};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_executor::Executor as SmolExecutor;
use comfy_table::{Table, presets};
use reveille_executor::ThreadPool;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use self::allocator::{Observed, Observer};

#[path = "../../../primitives/tests/support/allocator.rs"]
mod allocator;

const WORKERS: usize = 2;
/// The threads outside of the pool that spawn at the same time.
const SPAWNERS: usize = 2;
const TASKS: usize = 1_000_000;
/// The tasks that wait, and those that always run, while the pool is shut down.
const WAITING: usize = 100_000;
const RUNNING: usize = 100;
const ROUNDS: usize = 7;

#[global_allocator]
static ALLOCATOR: Observed<Live> = Observed(Live {
    counts: AtomicBool::new(false),
    bytes: AtomicUsize::new(0),
});

/// The bytes that are allocated and not freed. They are counted only where no time is
/// measured.
struct Live {
    counts: AtomicBool,
    bytes: AtomicUsize,
}

impl Observer for Live {
    fn allocates(&self, size: usize) {
        if self.counts.load(Ordering::Relaxed) {
            self.bytes.fetch_add(size, Ordering::Relaxed);
        }
    }

    fn frees(&self, size: usize) {
        if self.counts.load(Ordering::Relaxed) {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    if let (Some(scene), Some(executor)) = (args.next(), args.next()) {
        let (_, _, run) = SCENES
            .into_iter()
            .find(|(name, ..)| *name == scene)
            .expect("the scene is in the table");
        let sample = match executor.as_str() {
            "reveille" => run.reveille,
            "tokio" => run.tokio,
            _ => run.smol,
        }();
        println!("{}", sample.map(|number| number.to_string()).join(" "));
        return;
    }
    for (scene, header, _) in SCENES {
        println!("{}\n", measured(scene, header));
    }
    println!(
        "storm: {TASKS} tasks, spawned by {SPAWNERS} threads; each yields once.\n\
         shutdown: {WAITING} tasks wait and {RUNNING} run all the time.\n\
         spike: {TASKS} tasks wait at the same time, twice; 0.2 s after each spike."
    );
}

const EXECUTORS: [&str; 3] = ["reveille", "tokio", "smol"];

/// A scene gives up to five numbers.
type Sample = [f64; 5];

/// A scene for each implementation.
#[derive(Clone, Copy)]
struct Scene {
    reveille: fn() -> Sample,
    tokio: fn() -> Sample,
    smol: fn() -> Sample,
}

impl Scene {
    const STORM: Self = Self {
        reveille: storm::<ThreadPool>,
        tokio: storm::<Runtime>,
        smol: storm::<Smol>,
    };
    const SHUTDOWN: Self = Self {
        reveille: shutdown::<ThreadPool>,
        tokio: shutdown::<Runtime>,
        smol: shutdown::<Smol>,
    };
    const SPIKE: Self = Self {
        reveille: spike::<ThreadPool>,
        tokio: spike::<Runtime>,
        smol: spike::<Smol>,
    };
}

const SCENES: [(&str, &[&str], Scene); 3] = [
    (
        "storm",
        &["ns per task", "ns of processor per task", "MiB at most"],
        Scene::STORM,
    ),
    ("shutdown", &["ms"], Scene::SHUTDOWN),
    (
        "spike",
        &[
            "bytes per task",
            "MiB before",
            "MiB after the first",
            "MiB after the second",
            "KiB of these allocated",
        ],
        Scene::SPIKE,
    ),
];

/// Runs a scene in rounds, and returns the medians for each implementation.
fn measured(scene: &str, header: &[&str]) -> Table {
    let this = std::env::current_exe().expect("this program has a path");
    let mut samples = EXECUTORS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (executor, samples) in EXECUTORS.into_iter().zip(&mut samples) {
            let mut command = Command::new(&this);
            let output = command.args([scene, executor]).output().expect("it runs");
            assert!(output.status.success(), "{scene} of {executor} fails");
            let text = String::from_utf8(output.stdout).expect("it prints numbers");
            let numbers = text.split_whitespace().map(|it| it.parse().unwrap());
            samples.push(numbers.collect::<Vec<f64>>());
        }
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header([&[scene], header].concat());
    for (executor, samples) in EXECUTORS.into_iter().zip(samples) {
        let median = |column: usize| {
            let mut column: Vec<_> = samples.iter().map(|sample| sample[column]).collect();
            column.sort_by(f64::total_cmp);
            let median = column[ROUNDS / 2];
            format!("{median:.*}", usize::from(median < 10.))
        };
        let mut row = vec![executor.to_owned()];
        row.extend((0..header.len()).map(median));
        table.add_row(row);
    }
    table
}

/// A pool of [`WORKERS`] threads.
trait Pool: Sync {
    fn start() -> Self;

    /// Spawns a task that is never joined.
    fn detach(&self, future: impl Future<Output = ()> + Send + 'static);

    /// Drops all tasks, and waits until the threads have ended.
    fn end(self);
}

impl Pool for ThreadPool {
    fn start() -> Self {
        Self::builder().workers(WORKERS).build()
    }

    fn detach(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.spawn(future));
    }

    fn end(self) {}
}

impl Pool for Runtime {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(WORKERS).build().expect("it starts")
    }

    fn detach(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.spawn(future));
    }

    fn end(self) {}
}

/// smol has no pool. This is what its users write.
struct Smol {
    executor: Arc<SmolExecutor<'static>>,
    /// The threads run tasks until it is closed.
    end: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool for Smol {
    fn start() -> Self {
        let executor = Arc::new(SmolExecutor::new());
        let end = Arc::new(Semaphore::new(0));
        let threads = (0..WORKERS)
            .map(|_| {
                let (executor, end) = (executor.clone(), end.clone());
                thread::spawn(move || {
                    let ended = futures_lite::future::block_on(executor.run(end.acquire()));
                    assert!(ended.is_err());
                })
            })
            .collect();
        Self {
            executor,
            end,
            threads,
        }
    }

    fn detach(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(future).detach();
    }

    fn end(self) {
        self.end.close();
        for thread in self.threads {
            thread.join().expect("the thread does not panic");
        }
        drop(self.executor);
    }
}

/// Counts the tasks that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Goes to the back of the queue once.
async fn yields() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Several threads spawn as fast as they can.
fn storm<P: Pool>() -> Sample {
    let pool = P::start();
    let ended = Arc::new(AtomicUsize::new(0));
    let (start, before) = (Instant::now(), processor());
    thread::scope(|scope| {
        for _ in 0..SPAWNERS {
            scope.spawn(|| {
                for _ in 0..TASKS / SPAWNERS {
                    let ended = ended.clone();
                    pool.detach(async move {
                        yields().await;
                        ended.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    wait_until(|| ended.load(Ordering::Relaxed) == TASKS);
    let per_task = |time: Duration| time.as_nanos() as f64 / TASKS as f64;
    let (took, spent) = (per_task(start.elapsed()), per_task(processor() - before));
    pool.end();
    [took, spent, mebibytes("VmHWM:"), 0., 0.]
}

/// The pool ends while tasks wait and others run.
fn shutdown<P: Pool>() -> Sample {
    let pool = P::start();
    let alive = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    // They wait for something that could come. A pool may drop a task that nothing can wake.
    let gate = Arc::new(Semaphore::new(0));
    for _ in 0..WAITING {
        let (gate, alive, begun) = (gate.clone(), Alive::new(&alive), begun.clone());
        pool.detach(async move {
            begun.fetch_add(1, Ordering::Relaxed);
            let _alive = alive;
            assert!(gate.acquire().await.is_err());
        });
    }
    for _ in 0..RUNNING {
        let alive = Alive::new(&alive);
        pool.detach(async move {
            let _alive = alive;
            loop {
                yields().await;
            }
        });
    }
    wait_until(|| begun.load(Ordering::Relaxed) == WAITING);
    assert_eq!(alive.load(Ordering::Acquire), WAITING + RUNNING);
    let start = Instant::now();
    pool.end();
    let took = start.elapsed();
    assert_eq!(alive.load(Ordering::Acquire), 0, "a task was not dropped");
    [took.as_secs_f64() * 1e3, 0., 0., 0., 0.]
}

/// Many tasks wait at the same time, and end. Then again.
fn spike<P: Pool>() -> Sample {
    ALLOCATOR.0.counts.store(true, Ordering::Relaxed);
    let pool = P::start();
    let before = mebibytes("VmRSS:");
    let [first, second] = [(); 2].map(|()| {
        let gate = Arc::new(Semaphore::new(0));
        let count = Arc::new(AtomicUsize::new(0));
        let begun = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS {
            let (gate, alive, begun) = (gate.clone(), Alive::new(&count), begun.clone());
            pool.detach(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                assert!(gate.acquire().await.is_err());
                drop(alive);
            });
        }
        wait_until(|| begun.load(Ordering::Relaxed) == TASKS);
        let during = mebibytes("VmRSS:");
        gate.close();
        wait_until(|| count.load(Ordering::Acquire) == 0);
        thread::sleep(Duration::from_millis(200));
        (during, mebibytes("VmRSS:"))
    });
    let per_task = (first.0 - before) * f64::from(1 << 20) / TASKS as f64;
    let allocated = ALLOCATOR.0.bytes.load(Ordering::Relaxed) as f64 / 1024.;
    pool.end();
    [per_task, before, first.1, second.1, allocated]
}

/// Returns a number of `/proc/self/status`.
fn mebibytes(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
    kibibytes.map_or(f64::NAN, |number| number.parse().unwrap_or(f64::NAN)) / 1024.
}

/// Returns the processor time of this process, including threads that have ended, in
/// steps of a hundredth of a second.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may contain anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    // The 12th and 13th numbers after the name are user and system time.
    let ticks: u64 = fields.skip(12).take(2).flat_map(str::parse::<u64>).sum();
    Duration::from_millis(10 * ticks)
}
