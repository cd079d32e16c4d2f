//! The hooks of a pool, its metrics, and what its tasks do.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use reveille::time::sleep;
use reveille::{Mutex as AsyncMutex, Notify};
use reveille_executor::dump::Activity;
use reveille_executor::pool::Handle;
use reveille_executor::{LocalExecutor, Simulation, ThreadPool, block_on, task};

/// Waits until the condition holds.
fn soon(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not yet");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn hooks_run_on_each_thread_first_and_last() {
    thread_local! {
        static STARTED: Cell<bool> = const { Cell::new(false) };
    }
    let log = Arc::new(Mutex::new(Vec::new()));
    let says = |what| {
        let log = log.clone();
        move || {
            STARTED.set(true);
            log.lock().unwrap().push((what, thread::current().id()));
        }
    };
    let pool = ThreadPool::builder()
        .workers(2)
        .on_thread_start(says("start"))
        .on_thread_stop(says("stop"))
        .build();
    assert!(pool.block_on(pool.spawn(async { STARTED.get() })).unwrap());
    assert!(
        pool.block_on(pool.spawn_blocking(|| STARTED.get()))
            .unwrap()
    );
    drop(pool);
    let log = log.lock().unwrap();
    let of = |what| log.iter().filter(move |(which, _)| *which == what);
    assert_eq!(of("start").count(), 3, "two workers and a thread for calls");
    for (_, thread) in of("start") {
        assert_eq!(of("stop").filter(|(_, other)| other == thread).count(), 1);
    }
}

#[test]
fn a_hook_that_panics_ends_no_thread() {
    let pool = ThreadPool::builder()
        .workers(1)
        .on_thread_start(|| panic!("no coffee"))
        .on_thread_stop(|| panic!("no tea"))
        .build();
    assert_eq!(pool.block_on(pool.spawn(async { 7 })).unwrap(), 7);
}

#[test]
fn threads_have_the_name_and_the_stack_that_were_set() {
    let pool = ThreadPool::builder()
        .workers(1)
        .thread_name("brew")
        .thread_stack_size(16 << 20)
        .build();
    let name = || thread::current().name().map(String::from);
    let deep = || {
        fn deep(left: usize) -> usize {
            let block = std::hint::black_box([left as u8; 4096]);
            match left {
                0 => 0,
                _ => deep(left - 1) + usize::from(block[left % 4096] == left as u8),
            }
        }
        deep(2000)
    };
    let of_worker = pool.spawn(async move { (name(), deep()) });
    let brew = Some(String::from("brew"));
    assert_eq!(pool.block_on(of_worker).unwrap(), (brew.clone(), 2000));
    assert_eq!(pool.block_on(pool.spawn_blocking(name)).unwrap(), brew);
    let plain = ThreadPool::builder().workers(1).build();
    let of_worker = plain.block_on(plain.spawn(async move { name() })).unwrap();
    assert_eq!(of_worker, Some(String::from("reveille-0")));
}

#[test]
fn a_hook_is_told_of_each_task() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let pool = ThreadPool::builder()
        .on_task_spawn({
            let told = told.clone();
            move |task| {
                let name = task.name().map(String::from);
                told.lock()
                    .unwrap()
                    .push((task.id(), name, task.location().line()));
            }
        })
        .build();
    let line = line!() + 1;
    let first = pool.spawn(async { task::spawn(async {}).await.unwrap() });
    let id = first.id();
    pool.block_on(first).unwrap();
    let named = pool.spawn_named("seventh", async {});
    let told = told.lock().unwrap();
    assert_eq!(told[0], (id, None, line));
    assert_eq!(told[1].1, None);
    assert_eq!(
        (told[2].0, told[2].1.as_deref()),
        (named.id(), Some("seventh"))
    );
}

#[test]
fn metrics_count_tasks_queues_parks_and_steals() {
    let pool = ThreadPool::builder().workers(2).build();
    let metrics = pool.handle().metrics();
    assert_eq!((metrics.num_workers(), metrics.num_alive_tasks()), (2, 0));
    let parked = || metrics.worker_park_count(0) + metrics.worker_park_count(1);
    soon("both workers sleep", || metrics.num_idle_workers() == 2);
    assert!(parked() >= 1);
    // A worker fills its queue, and blocks. The other has to steal all of it.
    let (tx, rx) = mpsc::channel();
    let blocks = pool.spawn(async move {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let tx = tx.clone();
                task::spawn(async move { tx.send(()).unwrap() })
            })
            .collect();
        rx.iter().take(8).for_each(drop);
        drop(tasks);
    });
    pool.block_on(blocks).unwrap();
    let stolen = metrics.worker_steal_count(0) + metrics.worker_steal_count(1);
    assert!(stolen >= 8, "{stolen} of 8 tasks were stolen");
    let waits = pool.spawn(pending::<()>());
    assert_eq!(metrics.num_alive_tasks(), 1);
    soon("the queues are empty", || {
        let queued = metrics.worker_local_queue_depth(0) + metrics.worker_local_queue_depth(1);
        metrics.global_queue_depth() + queued == 0
    });
    waits.abort();
    soon("the task ends", || metrics.num_alive_tasks() == 0);
    let wrong = catch_unwind(AssertUnwindSafe(|| metrics.worker_park_count(2)));
    let message = *wrong.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(message, "the pool has 2 workers, and none with the index 2");
}

#[test]
fn metrics_count_the_threads_for_calls() {
    let pool = ThreadPool::builder().workers(1).max_blocking(1).build();
    let metrics = pool.handle().metrics();
    assert_eq!(
        (
            metrics.num_blocking_threads(),
            metrics.blocking_queue_depth()
        ),
        (0, 0)
    );
    let (tx, rx) = mpsc::channel::<()>();
    let first = pool.spawn_blocking(move || rx.recv().is_ok());
    let second = pool.spawn_blocking(|| ());
    soon("the first call begins", || {
        metrics.blocking_queue_depth() == 1
    });
    assert_eq!(
        (
            metrics.num_blocking_threads(),
            metrics.num_idle_blocking_threads()
        ),
        (1, 0)
    );
    tx.send(()).unwrap();
    assert!(pool.block_on(first).unwrap());
    pool.block_on(second).unwrap();
    soon("the thread is idle", || {
        metrics.num_idle_blocking_threads() == 1
    });
}

#[test]
fn poll_times_are_measured_only_if_asked_for() {
    let plain = ThreadPool::builder().workers(1).build();
    assert!(plain.handle().metrics().poll_times().is_none());
    let pool = ThreadPool::builder().workers(1).measure_polls().build();
    for _ in 0..10 {
        pool.block_on(pool.spawn(async {})).unwrap();
    }
    let slow = pool.spawn(async { thread::sleep(Duration::from_millis(3)) });
    pool.block_on(slow).unwrap();
    let metrics = pool.handle().metrics();
    soon("all polls are counted", || {
        let times = metrics.poll_times().unwrap();
        let polls = |least: Duration| -> u64 {
            let from = times.buckets().filter(|(from, _)| *from >= least);
            from.map(|(_, polls)| polls).sum()
        };
        polls(Duration::ZERO) == 11 && polls(Duration::from_millis(2)) >= 1
    });
}

#[test]
fn a_dump_says_of_each_task_what_it_waits_for() {
    let pool = ThreadPool::builder().workers(1).build();
    let (lock, notify) = (Arc::new(AsyncMutex::new(())), Arc::new(Notify::new()));
    let held = lock.clone().try_lock_owned().expect("it is free");
    let line = line!() + 3;
    let locks = {
        let lock = lock.clone();
        pool.spawn_named("locks", async move { drop(lock.lock().await) })
    };
    let sleeps = pool.spawn_named("sleeps", sleep(Duration::from_secs(1000)));
    let joins = {
        let notify = notify.clone();
        pool.spawn_named("joins", async move {
            let inner = task::spawn(async move { notify.notified().await });
            inner.await.unwrap();
        })
    };
    let (began, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    soon("all tasks wait", || {
        let dump = pool.handle().dump();
        let waits = |task: &&_| is_waiting(task);
        dump.tasks().len() == 4 && dump.tasks().iter().filter(waits).count() == 4
    });
    let runs = pool.spawn_named("runs", async move {
        began.send(()).unwrap();
        ends.recv().ok();
    });
    begins.recv().unwrap();
    let text = pool.handle().dump().to_string();
    let of = |name: &str| {
        let name = format!("`{name}`");
        let line = text.lines().find(|line| line.contains(&name));
        line.unwrap_or_else(|| panic!("{name} is not in {text}"))
    };
    assert!(text.starts_with("5 tasks\n"), "{text}");
    assert!(of("runs").ends_with(", runs"), "{text}");
    if !cfg!(feature = "locations") {
        return; // The primitives do not note what a task waits for.
    }
    let place = format!("waits at executor/tests/pool.rs:{line}:");
    assert!(of("locks").contains(&place), "{place} is not in {text}");
    assert!(of("sleeps").ends_with("waits for a deadline"), "{text}");
    assert!(of("joins").contains("waits for task "), "{text}");
    drop(end);
    drop((held, locks, sleeps, joins, runs));
}

fn is_waiting(task: &reveille_executor::dump::TaskDump) -> bool {
    task.activity() == Activity::Waits
}

#[test]
fn a_dump_of_many_tasks_has_all_of_them() {
    let executor = LocalExecutor::new();
    let tasks: Vec<_> = (0..1000)
        .map(|_| executor.spawn_local(pending::<()>()))
        .collect();
    assert_eq!(executor.dump().tasks().len(), 1000);
    drop(tasks);
}

#[test]
fn a_task_that_blocks_in_place_keeps_no_worker() {
    let pool = ThreadPool::builder().workers(1).build();
    let outer = pool.spawn(async {
        let inner = task::spawn(async { 1 });
        let first = task::block_in_place(|| block_on(inner)).unwrap();
        // The thread is no worker any more. The function runs as it is.
        let second = task::block_in_place(|| Handle::current().block_on(async { 2 }));
        task::yield_now().await;
        // It is on a worker again.
        let inner = task::spawn(async { 4 });
        first + second + task::block_in_place(|| block_on(inner)).unwrap()
    });
    assert_eq!(pool.block_on(outer).unwrap(), 7);
    assert_eq!(pool.handle().metrics().num_workers(), 1);
}

#[test]
fn many_tasks_block_in_place_at_a_time() {
    let pool = ThreadPool::builder().workers(2).build();
    let barrier = Arc::new(std::sync::Barrier::new(20));
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let barrier = barrier.clone();
            pool.spawn(async move {
                task::block_in_place(|| barrier.wait());
                number
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(pool.block_on(task).unwrap(), number);
    }
}

#[test]
fn a_panic_in_place_is_the_outcome_of_the_task() {
    let pool = ThreadPool::builder().workers(1).build();
    let panics = pool.spawn(async { task::block_in_place(|| panic!("no coffee")) });
    assert!(pool.block_on(panics).unwrap_err().is_panic());
    assert_eq!(pool.block_on(pool.spawn(async { 7 })).unwrap(), 7);
}

#[test]
fn a_pool_that_ends_waits_for_what_blocks_in_place() {
    let ended = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::builder().workers(1).build();
    let (began, begins) = mpsc::channel();
    let blocks = pool.spawn({
        let ended = ended.clone();
        async move {
            task::block_in_place(|| {
                began.send(()).unwrap();
                thread::sleep(Duration::from_millis(20));
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    begins.recv().unwrap();
    drop(pool);
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    drop(blocks);
}

#[test]
fn block_in_place_runs_as_it_is_where_there_is_no_worker() {
    assert_eq!(task::block_in_place(|| 7), 7);
    let pool = ThreadPool::builder().workers(1).build();
    assert_eq!(pool.block_on(async { task::block_in_place(|| 7) }), 7);
    let call = pool.spawn_blocking(|| task::block_in_place(|| 7));
    assert_eq!(pool.block_on(call).unwrap(), 7);
    let local = LocalExecutor::new();
    let refused = local.spawn_local(async { task::block_in_place(|| 7) });
    let panic = local.block_on(refused).unwrap_err().into_panic();
    let message = panic.downcast_ref::<&str>().unwrap();
    assert!(message.contains("use task::spawn_blocking"), "{message}");
}

#[test]
fn a_simulation_runs_blocking_calls_in_the_order_of_its_seed() {
    let run = |seed| {
        let simulation = Simulation::new(seed);
        simulation.block_on(async {
            let order = Arc::new(Mutex::new(Vec::new()));
            let calls: Vec<_> = (0..6)
                .map(|number| {
                    let order = order.clone();
                    task::spawn_blocking(move || order.lock().unwrap().push(number))
                })
                .collect();
            for call in calls {
                call.await.unwrap();
            }
            order.lock().unwrap().clone()
        })
    };
    assert_eq!(run(3), run(3));
    assert!(
        (0..20).any(|seed| run(seed) != run(3)),
        "the order is drawn"
    );
}

#[test]
fn blocking_calls_work_outside_of_an_executor() {
    let here = thread::current().id();
    let call = task::spawn_blocking(move || (7, thread::current().id() != here));
    assert_eq!(block_on(call).unwrap(), (7, true));
    let panics = task::spawn_blocking(|| panic!("no coffee"));
    assert!(block_on(panics).unwrap_err().is_panic());
}

#[test]
fn a_task_that_never_yields_is_reported_with_its_name() {
    let over = Duration::from_millis(1);
    let (says, said) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let endless = |stop: Arc<AtomicBool>| async move {
        while !stop.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    };
    let pool = ThreadPool::builder()
        .workers(1)
        .on_long_poll(over, {
            let says = says.clone();
            move |poll| {
                says.send((poll.name().map(String::from), poll.goes_on()))
                    .unwrap()
            }
        })
        .build();
    let spins = pool.spawn_named("spins", endless(stop.clone()));
    let first = said.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(first, (Some(String::from("spins")), true));
    stop.store(true, Ordering::SeqCst);
    let last = said.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(last, (Some(String::from("spins")), false));
    pool.block_on(spins).unwrap();

    stop.store(false, Ordering::SeqCst);
    let spins = thread::spawn({
        let stop = stop.clone();
        move || {
            let executor = LocalExecutor::builder()
                .on_long_poll(over, move |poll| says.send((None, poll.goes_on())).unwrap())
                .build();
            executor
                .block_on(executor.spawn_local(endless(stop)))
                .unwrap();
        }
    });
    assert_eq!(
        said.recv_timeout(Duration::from_secs(20)).unwrap(),
        (None, true)
    );
    stop.store(true, Ordering::SeqCst);
    spins.join().unwrap();
}
