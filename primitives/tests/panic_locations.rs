//! A panic about an argument is reported at the line of the caller that passed it.
//!
//! `PANICS` calls each function with an argument that it refuses, and compares the
//! file of the panic with this one. `documented_panics_name_the_caller` reads the
//! sources: a public function that documents a panic has `#[track_caller]`, or is
//! listed in `OTHERS` with the reason.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reveille::backend::{Local, Native, Spin};
use reveille::protocol::{Bits, Waiter};
use reveille::raw::Gate;
use reveille::time::wheel::Wheel;
use reveille::time::{DelayQueue, Instant, VirtualClock, interval, interval_at};
use reveille::{Latch, Pool, RwLock, Semaphore, mpsc, oneshot};
use reveille_executor::task;
use reveille_executor::{Executor, LocalExecutor, Simulation, ThreadPool, Threads, block_on, pool};

type Call = fn();

reveille_executor::task_local! {
    static KEY: ();
}

/// The functions, with a call of each that panics.
const PANICS: &[(&str, Call)] = &[
    ("RwLock::with_max_readers(_, 0)", || {
        let _ = RwLock::with_max_readers((), 0);
    }),
    ("RwLock::with_max_readers(_, too many)", || {
        let _ = RwLock::with_max_readers((), RwLock::<()>::MAX_READS + 1);
    }),
    ("RwLock::const_with_max_readers", || {
        let _ = RwLock::const_with_max_readers((), 0);
    }),
    ("RwLock::new_in", || {
        let _ = RwLock::<_, Local>::with_max_readers_in((), 0);
    }),
    ("Pool::new", || {
        let _ = Pool::<u32>::new(0);
    }),
    ("Pool::with_check", || {
        let _ = Pool::<u32, fn(&mut u32) -> bool>::with_check(0, |_| true);
    }),
    ("Pool::with_check_in", || {
        let _ = Pool::<u32, _, Local>::with_check_in(0, |_| true);
    }),
    ("Latch::new", || {
        let _ = Latch::new(Latch::<Native>::MAX_COUNT + 1);
    }),
    ("Latch::new_in", || {
        let _ = Latch::<Local>::new_in(usize::MAX);
    }),
    ("Gate::const_new", || {
        let _ = Gate::const_new(usize::MAX);
    }),
    ("Gate::new_in", || {
        let _ = Gate::<Local>::new_in(usize::MAX);
    }),
    ("Semaphore::new", || {
        let _ = Semaphore::new(Semaphore::MAX_PERMITS + 1);
    }),
    ("Semaphore::const_new", || {
        let _ = Semaphore::const_new(Semaphore::MAX_PERMITS + 1);
    }),
    ("Semaphore::with_max_barges", || {
        let _ = Semaphore::with_max_barges(Semaphore::MAX_PERMITS + 1, 0);
    }),
    ("Semaphore::new_in", || {
        let _ = Semaphore::<Spin>::with_max_barges_in(Semaphore::MAX_PERMITS + 1, 0);
    }),
    ("Semaphore::add_permits", || {
        Semaphore::new(1).add_permits(Semaphore::MAX_PERMITS);
    }),
    ("Semaphore::acquire_up_to", || {
        drop(Semaphore::new(1).acquire_up_to(2, 1));
    }),
    ("SemaphorePermit::merge", || {
        let (one, other) = (Semaphore::new(1), Semaphore::new(1));
        let mut permit = one.try_acquire().unwrap();
        permit.merge(other.try_acquire().unwrap());
    }),
    ("OwnedSemaphorePermit::merge", || {
        let (one, other) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        let mut permit = one.try_acquire_owned().unwrap();
        permit.merge(other.try_acquire_owned().unwrap());
    }),
    ("oneshot::Receiver::blocking_recv", || {
        let (tx, mut rx) = oneshot::channel();
        tx.send(7).unwrap();
        rx.try_recv().unwrap();
        let _ = rx.blocking_recv();
    }),
    ("mpsc::channel", || {
        drop(mpsc::channel::<()>(Semaphore::MAX_PERMITS + 1));
    }),
    ("mpsc::channel_in", || {
        drop(mpsc::channel_in::<(), Local>(Semaphore::MAX_PERMITS + 1));
    }),
    ("time::interval", || drop(interval(Duration::ZERO))),
    ("time::interval_at", || {
        drop(interval_at(Instant::now(), Duration::ZERO));
    }),
    ("Timers::interval", || {
        drop(VirtualClock::by_hand().timers().interval(Duration::ZERO));
    }),
    ("Timers::interval_at", || {
        let clock = VirtualClock::by_hand();
        drop(clock.timers().interval_at(clock.now(), Duration::ZERO));
    }),
    ("DelayQueue::with_capacity", || {
        drop(DelayQueue::<()>::with_capacity(usize::MAX));
    }),
    ("DelayQueue::reserve", || {
        DelayQueue::<()>::new().reserve(u32::MAX as usize);
    }),
    ("DelayQueue::remove", || {
        let mut queue = DelayQueue::new();
        let key = queue.insert((), Duration::ZERO);
        queue.clear();
        queue.remove(&key);
    }),
    ("DelayQueue::reset", || {
        let mut queue = DelayQueue::new();
        let key = queue.insert((), Duration::ZERO);
        queue.clear();
        queue.reset(&key, Duration::ZERO);
    }),
    ("DelayQueue::reset_at", || {
        let mut queue = DelayQueue::new();
        let key = queue.insert((), Duration::ZERO);
        queue.clear();
        queue.reset_at(&key, Instant::now());
    }),
    ("DelayQueue::deadline", || {
        let mut queue = DelayQueue::new();
        let key = queue.insert((), Duration::ZERO);
        queue.clear();
        let _ = queue.deadline(&key);
    }),
    ("Wheel::reserve", || Wheel::<()>::new(0).reserve(usize::MAX)),
    ("Wheel::reset", || {
        let mut wheel = Wheel::new(0);
        let timer = wheel.insert(1, ());
        wheel.remove(timer);
        wheel.reset(timer, 2);
    }),
    ("Wheel::remove", || {
        let mut wheel = Wheel::new(0);
        let timer = wheel.insert(1, ());
        wheel.remove(timer);
        wheel.remove(timer);
    }),
    ("Bits::new", || {
        let _ = Bits::new(usize::MAX);
    }),
    ("Waiter::sentinel", || {
        let _ = Waiter::sentinel(8);
    }),
    ("block_on within block_on", || {
        block_on(async { block_on(async {}) });
    }),
    ("LocalExecutor::block_on within itself", || {
        let executor = LocalExecutor::new();
        executor.block_on(async { executor.block_on(async {}) });
    }),
    ("LocalExecutor::run_until_idle within itself", || {
        let executor = LocalExecutor::new();
        executor.block_on(async { executor.run_until_idle() });
    }),
    ("Simulation::block_on within itself", || {
        let simulation = Simulation::new(7);
        simulation.block_on(async { simulation.block_on(async {}) });
    }),
    ("ThreadPool::block_on on a worker", || {
        let pool = ThreadPool::builder().workers(1).build();
        let handle = pool.handle().clone();
        let blocks = pool.spawn(async move { handle.block_on(async {}) });
        panic::resume_unwind(pool.block_on(blocks).unwrap_err().into_panic());
    }),
    ("Threads::block_on within itself", || {
        Threads.block_on(async { Threads.block_on(async {}) });
    }),
    ("pool::Builder::workers", || {
        let _ = ThreadPool::builder().workers(0);
    }),
    ("pool::Builder::max_blocking", || {
        let _ = ThreadPool::builder().max_blocking(0);
    }),
    ("task::spawn outside of an executor", || {
        drop(task::spawn(async {}));
    }),
    ("task::spawn_local outside of an executor", || {
        drop(task::spawn_local(async {}));
    }),
    ("JoinSet::spawn outside of an executor", || {
        task::JoinSet::new().spawn(async {});
    }),
    ("JoinSet::spawn_local outside of an executor", || {
        task::JoinSet::new().spawn_local(async {});
    }),
    ("JoinSet::from_iter outside of an executor", || {
        drop(task::JoinSet::from_iter([async {}]));
    }),
    ("LocalKey::with outside of a scope", || KEY.with(|_| {})),
    ("LocalKey::get outside of a scope", || {
        KEY.get();
    }),
    ("LocalKey::sync_scope within with", || {
        KEY.sync_scope((), || KEY.with(|()| KEY.sync_scope((), || {})));
    }),
    ("pool::Handle::current outside of a pool", || {
        drop(pool::Handle::current());
    }),
    ("task::id outside of a task", || {
        let _ = task::id();
    }),
    ("JoinError::into_panic of a task that was aborted", || {
        let executor = LocalExecutor::new();
        let task = executor.spawn_local(std::future::pending::<()>());
        task.abort();
        drop(executor.block_on(task).unwrap_err().into_panic());
    }),
];

#[test]
fn a_panic_about_an_argument_names_the_line_of_the_caller() {
    thread_local! {
        /// The file of the first panic since it was taken.
        static FILE: Cell<Option<String>> = const { Cell::new(None) };
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let file = info.location().map(|location| location.file().to_owned());
        FILE.set(FILE.take().or(file));
    }));
    let mut wrong = String::new();
    for (name, call) in PANICS {
        FILE.take();
        // A panic of a task happens on its worker, which records no file for this
        // thread.
        let result = catch_unwind(AssertUnwindSafe(call));
        match (result, FILE.take()) {
            (Ok(()), _) => writeln!(wrong, "{name} does not panic").unwrap(),
            (Err(_), Some(file)) if file != file!() => {
                writeln!(wrong, "{name} panics in {file}").unwrap();
            }
            (Err(_), _) => {}
        }
    }
    panic::set_hook(before);
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Functions that document a panic which no argument causes, by file.
const OTHERS: &[(&str, &[&str])] = &[
    // The panic is one of a closure that the caller passed, and has its own line.
    ("condvar.rs", &["wait_while"]),
    ("lazy.rs", &["force"]),
    ("notify.rs", &["wait_until"]),
    ("once_cell.rs", &["get_or_init", "get_or_try_init"]),
    ("once_map.rs", &["get_or_init", "get_or_try_init"]),
    ("pool.rs", &["get", "get_owned"]),
    ("raw/once_slot.rs", &["poll"]),
    ("simulation.rs", &["explore"]),
    ("singleflight.rs", &["work", "try_work"]),
    ("watch.rs", &["send_modify", "send_if_modified"]),
    // The panic is one of a waker.
    ("time/virtual_clock.rs", &["advance"]),
    // The panic is one of a later poll, or of a task.
    ("barrier.rs", &["wait"]),
    ("phaser.rs", &["arrive_and_wait"]),
    ("task/join_set.rs", &["join_all"]),
    ("task/local_key.rs", &["scope"]),
    ("raw/task.rs", &["run", "cancel", "poll"]),
    // There are too many of what is counted: 2^32 waiters, values or wakers.
    (
        "protocol/waiters.rs",
        &["push", "push_first", "notify_one", "remove"],
    ),
    ("protocol/wake.rs", &["wake", "discard"]),
    ("time/delay_queue.rs", &["insert", "insert_at"]),
    ("time/wheel.rs", &["insert"]),
];

/// Returns the public functions of a file that document a panic and do not have
/// `#[track_caller]`.
fn untracked(source: &str) -> Vec<String> {
    let (mut documented, mut tracked, mut found) = (false, false, Vec::new());
    for line in source.lines().map(str::trim_start) {
        if let Some(doc) = line.strip_prefix("///") {
            documented |= doc.trim() == "# Panics";
        } else if line.starts_with('#') {
            tracked |= line == "#[track_caller]";
        } else {
            let signature = line.strip_prefix("pub ").unwrap_or("");
            if let Some((_, name)) = signature.split_once("fn ")
                && documented
                && !tracked
            {
                let end = name.find(['(', '<']).expect("a function has parameters");
                found.push(name[..end].to_owned());
            }
            (documented, tracked) = (false, false);
        }
    }
    found
}

/// Finds all source files below a folder.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("a folder can be listed").path();
        match path.is_dir() {
            true => sources(&path, into),
            false => into.push(path),
        }
    }
}

#[test]
fn documented_panics_name_the_caller() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut wrong, mut seen, mut excused) = (String::new(), 0, Vec::new());
    for root in ["primitives/src", "executor/src"].map(|root| crates.join(root)) {
        let mut files = Vec::new();
        sources(&root, &mut files);
        for file in files {
            let source = fs::read_to_string(&file).expect("a source is text");
            let name = file.strip_prefix(&root).expect("it is below");
            let others = OTHERS.iter().find(|(of, _)| Path::new(of) == name);
            let others = others.map_or(&[][..], |(_, others)| others);
            seen += source.matches("#[track_caller]").count();
            for function in untracked(&source) {
                match others.iter().find(|other| **other == function) {
                    Some(other) => excused.push((name.to_owned(), *other)),
                    None => writeln!(wrong, "{}: {function}", name.display()).unwrap(),
                }
            }
        }
    }
    assert!(seen > 50, "the sources have been read: {seen}");
    for (file, others) in OTHERS {
        for other in *others {
            let has_it = |(of, it): &(PathBuf, &str)| of == Path::new(file) && it == other;
            assert!(
                excused.iter().any(has_it),
                "OTHERS has {other} of {file} in vain"
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "they document a panic: add #[track_caller] and a row in PANICS, or a line in OTHERS\n{wrong}"
    );
}
