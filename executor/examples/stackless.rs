//! What a suspended task costs beside a parked thread: bytes, and nanoseconds from one to
//! the next. A task has no stack. It is a value that holds what lives across an `await`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use reveille::{Event, Notify};
use reveille_executor::{LocalExecutor, task};

use self::allocator::{Observed, Observer};

#[path = "../../primitives/tests/support/allocator.rs"]
mod allocator;

const TASKS: usize = 10_000;
const THREADS: usize = 100;
/// The default of std, unless `RUST_MIN_STACK` is set.
const STACK: usize = 2 << 20;
const SWITCHES: u32 = 5_000;

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

/// Returns the bytes of a task that waits, with its place among the waiters.
fn bytes_of_a_task() -> usize {
    let executor = LocalExecutor::new();
    let event = Arc::new(Event::new());
    let before = ALLOCATOR.0.bytes();
    for _ in 0..TASKS {
        let event = event.clone();
        drop(executor.spawn_local(async move { event.wait().await }));
    }
    executor.run_until_idle();
    (ALLOCATOR.0.bytes() - before) / TASKS
}

/// Returns the resident bytes of a parked thread, on Linux. Its stack of 2 MiB is
/// reserved. The pages of it that are used are resident.
fn resident_bytes_of_a_thread() -> Option<usize> {
    let before = resident()?;
    let (parks, parked) = mpsc::channel();
    let end = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (parks, end) = (parks.clone(), end.clone());
            thread::spawn(move || {
                parks.send(()).unwrap();
                while !end.load(Ordering::Relaxed) {
                    thread::park();
                }
            })
        })
        .collect();
    parked.iter().take(THREADS).for_each(drop);
    let bytes = resident()?.saturating_sub(before) / THREADS;
    end.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
    Some(bytes)
}

/// Returns the resident bytes of the process, where the system tells.
fn resident() -> Option<usize> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = rollup.lines().find(|line| line.starts_with("Rss:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Two tasks wake each other in turn. Returns the nanoseconds per switch.
fn switch_of_tasks() -> u128 {
    LocalExecutor::new().block_on(async {
        let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let start = Instant::now();
        let other = task::spawn_local({
            let (ping, pong) = (ping.clone(), pong.clone());
            async move {
                for _ in 0..SWITCHES {
                    ping.notified().await;
                    pong.notify_one();
                }
            }
        });
        for _ in 0..SWITCHES {
            ping.notify_one();
            pong.notified().await;
        }
        other.await.unwrap();
        start.elapsed().as_nanos() / u128::from(2 * SWITCHES)
    })
}

/// Two threads unpark each other in turn. Returns the nanoseconds per switch.
fn switch_of_threads() -> u128 {
    let turn = Arc::new(AtomicBool::new(false));
    let takes_turns = |turn: &AtomicBool, mine: bool, other: &thread::Thread| {
        for _ in 0..SWITCHES {
            while turn.load(Ordering::Acquire) != mine {
                thread::park();
            }
            turn.store(!mine, Ordering::Release);
            other.unpark();
        }
    };
    let start = Instant::now();
    let this = thread::current();
    let thread = thread::spawn({
        let turn = turn.clone();
        move || takes_turns(&turn, true, &this)
    });
    takes_turns(&turn, false, thread.thread());
    thread.join().unwrap();
    start.elapsed().as_nanos() / u128::from(2 * SWITCHES)
}

fn main() {
    let task = bytes_of_a_task();
    println!("a suspended task: {task} bytes");
    println!("a parked thread: {STACK} bytes of stack");
    assert!(task < STACK / 1000);
    if let Some(thread) = resident_bytes_of_a_thread() {
        println!("of which {thread} bytes are resident");
        assert!(task < thread);
    }

    // The best of a few: what else the machine does only adds.
    let best = |switch: fn() -> u128| (0..5).map(|_| switch()).min().expect("there are five");
    let (task, thread) = (best(switch_of_tasks), best(switch_of_threads));
    println!("from task to task: {task} ns");
    println!("from thread to thread: {thread} ns");
    // Unoptimised, a poll takes about as long as a switch of the kernel's.
    assert!(cfg!(debug_assertions) || task < thread);
}

#[test]
fn what_is_printed_holds() {
    main();
}
