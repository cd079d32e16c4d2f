//! How tasks, blocking calls, sets and pools end: what is dropped when, on which thread,
//! and what is left.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::fs;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use reveille_executor::pool::Handle;
use reveille_executor::task::coop::cooperative;
use reveille_executor::task::{self, JoinSet};
use reveille_executor::{Executor, LocalExecutor, Simulation, ThreadPool, Threads, block_on};

use support::in_time;

mod support;

const MS: Duration = Duration::from_millis(1);

fn pool(workers: usize) -> ThreadPool {
    ThreadPool::builder().workers(workers).build()
}

/// Runs a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Counts its wakes. The references to it count its wakers.
#[derive(Default)]
struct Watched {
    wakes: AtomicUsize,
}

impl Wake for Watched {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker. It knows how many others of the same task exist, and how often they were
/// called.
struct Watch(Arc<Watched>, Waker);

impl Watch {
    fn new() -> Self {
        let watched = Arc::<Watched>::default();
        Self(watched.clone(), Waker::from(watched))
    }

    fn poll<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        poll(&mut Context::from_waker(&self.1))
    }

    fn kept(&self) -> usize {
        Arc::strong_count(&self.0) - 2
    }

    fn wakes(&self) -> usize {
        self.0.wakes.load(Ordering::SeqCst)
    }
}

/// Panics. Unlike `panic!`, it has the type `()`, which the future of a task can have.
fn fails(message: &'static str) {
    std::panic::panic_any(message);
}

#[test]
fn a_look_at_a_set_leaves_the_task_that_waits_registered() {
    let executor = LocalExecutor::new();
    let mut set = JoinSet::new();
    set.insert(executor.spawn_local(async { 7 }));
    let watch = Watch::new();
    assert!(watch.poll(|cx| set.poll_join_next(cx)).is_pending());
    for _ in 0..2 {
        assert!(set.try_join_next().is_none());
        assert!(set.try_join_next_with_id().is_none());
    }
    executor.run_until_idle();
    assert_eq!(watch.wakes(), 1);
    let joined = watch.poll(|cx| set.poll_join_next(cx));
    assert!(matches!(joined, Poll::Ready(Some(Ok(7)))));
}

#[test]
fn a_set_that_is_detached_wakes_the_task_that_waits_and_keeps_no_waker() {
    let executor = LocalExecutor::new();
    let mut set = JoinSet::new();
    set.insert(executor.spawn_local(async {}));
    let watch = Watch::new();
    assert!(watch.poll(|cx| set.poll_join_next(cx)).is_pending());
    set.detach_all();
    assert_eq!((watch.wakes(), watch.kept()), (1, 0));
    assert!(matches!(
        watch.poll(|cx| set.poll_join_next(cx)),
        Poll::Ready(None)
    ));
}

/// Polls a future that is pending, drops it, and checks that none of its wakers is left.
fn leaves_nothing(future: impl Future) {
    let watch = Watch::new();
    {
        let mut future = pin!(future);
        assert!(watch.poll(|cx| future.as_mut().poll(cx)).is_pending());
        assert!(watch.kept() > 0, "a pending poll left no waker");
    }
    assert_eq!((watch.kept(), watch.wakes()), (0, 0));
}

#[test]
fn a_dropped_future_of_the_executor_leaves_no_waker() {
    let executor = LocalExecutor::new();
    let endless = || executor.spawn_local(pending::<()>());
    let mut set = JoinSet::new();
    let _left = set.insert(endless());
    leaves_nothing(set.join_next());
    leaves_nothing(set.join_next_with_id());
    let abort = endless();
    let _left = abort.abort_handle();
    leaves_nothing(abort);
    leaves_nothing(cooperative(endless()));
    leaves_nothing(task::unconstrained(endless()));
    leaves_nothing(set.shutdown());
    let mut all = JoinSet::new();
    let _left = all.insert(endless());
    leaves_nothing(all.join_all());
    let mut dropped = JoinSet::new();
    let _left = dropped.insert(endless());
    leaves_nothing(poll_fn(move |cx| dropped.poll_join_next(cx)));
}

/// The futures of this crate, by file. Each is either in the test above, or need not be.
#[test]
fn each_future_of_the_executor_is_accounted_for() {
    const ACCOUNTED: [(&str, &str); 6] = [
        ("task/handle.rs", "JoinHandle"),
        ("task/join_set.rs", "JoinNext"),
        // It wakes its task at once, by reference.
        ("task/yield_now.rs", "YieldNow"),
        // It removes its waker when it is dropped. Only the handle outlives it.
        ("task/hosted.rs", "Host"),
        // These wrap the futures of `reveille::time` and of tokio.
        ("hyper.rs", "Sleep"),
        ("tokio.rs", "JoinHandle"),
    ];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = [sources.clone(), sources.join("task"), sources.join("pool")];
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let file = path.strip_prefix(&sources).unwrap().to_str().unwrap();
            for name in source.split(" Future for ").skip(1) {
                let end = name.find(|c: char| !c.is_alphanumeric()).unwrap();
                found.push((file.to_owned(), name[..end].to_owned()));
            }
        }
    }
    let mut accounted = ACCOUNTED.map(|(file, name)| (file.to_owned(), name.to_owned()));
    found.sort();
    accounted.sort();
    assert_eq!(found, accounted);
}

/// A `std::sync::MutexGuard` sees it too, and poisons the mutex.
#[test]
fn the_destructors_of_a_task_that_panics_see_that_it_panics() {
    fn check(executor: &impl Executor<JoinHandle<()> = task::JoinHandle<()>>) {
        for begins in [false, true] {
            let seen = Arc::new(Mutex::new(None));
            let held = OnDrop({
                let seen = seen.clone();
                move || *seen.lock().unwrap() = Some(thread::panicking())
            });
            let panics = executor.spawn(async move {
                let _held = &held;
                if begins {
                    task::yield_now().await;
                }
                fails("on purpose");
            });
            assert!(executor.block_on(panics).unwrap_err().is_panic());
            assert_eq!(*seen.lock().unwrap(), Some(true));
        }
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&Simulation::new(7));
        check(&Threads);
        check(&pool(1));
    });
    static LOCK: Mutex<u32> = Mutex::new(7);
    let executor = LocalExecutor::new();
    let guard = LOCK.lock().unwrap();
    let panics = executor.spawn_local(poll_fn(move |_| {
        let _held = &guard;
        fails("on purpose");
        Poll::Ready(())
    }));
    assert!(executor.block_on(panics).unwrap_err().is_panic());
    assert!(LOCK.is_poisoned());
}

/// The first panic is the outcome. The second has no other effect.
#[test]
fn a_destructor_that_panics_while_its_task_does_takes_nothing_down() {
    fn check(executor: &impl Executor<JoinHandle<()> = task::JoinHandle<()>>) {
        let held = OnDrop(|| panic!("the destructor"));
        let panics = executor.spawn(poll_fn(move |_| {
            let _held = &held;
            fails("the poll");
            Poll::Ready(())
        }));
        let error = executor.block_on(panics).unwrap_err();
        assert_eq!(error.into_panic().downcast_ref(), Some(&"the poll"));
        executor.block_on(executor.spawn(async {})).unwrap();
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&pool(1));
    });
}

#[test]
fn an_aborted_call_that_has_not_begun_drops_what_it_captured_at_once() {
    in_time(|| {
        let pool = ThreadPool::builder().workers(1).max_blocking(1).build();
        let (goes_on, waits) = mpsc::channel::<()>();
        let first = pool.spawn_blocking(move || waits.recv());
        let seen = Arc::new(Mutex::new(None));
        let captured = OnDrop({
            let seen = seen.clone();
            move || *seen.lock().unwrap() = Some(task::id())
        });
        let second = pool.spawn_blocking(move || drop(captured));
        second.abort();
        assert_eq!(*seen.lock().unwrap(), Some(second.id()));
        assert!(second.is_finished());
        assert!(block_on(second).unwrap_err().is_cancelled());
        goes_on.send(()).unwrap();
        pool.block_on(first).unwrap().unwrap();
        assert_eq!(pool.block_on(pool.spawn_blocking(|| 7)).unwrap(), 7);
    });
}

/// Spawns another `Chain` when it is dropped, until `left` is 0.
struct Chain {
    left: usize,
    dropped: Arc<AtomicUsize>,
    pool: Option<Handle>,
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
        if self.left == 0 {
            return;
        }
        let next = Chain {
            left: self.left - 1,
            dropped: self.dropped.clone(),
            pool: self.pool.clone(),
        };
        match &self.pool {
            Some(pool) if self.left.is_multiple_of(2) => {
                drop(pool.spawn_blocking(move || drop(next)));
            }
            _ => drop(task::spawn(async move { drop(next) })),
        }
    }
}

#[test]
fn destructors_that_spawn_at_the_end_do_not_deepen_the_stack() {
    const DEPTH: usize = 100_000;
    fn check(executor: impl Executor, pool: Option<Handle>) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let chain = Chain {
            left: DEPTH,
            dropped: dropped.clone(),
            pool,
        };
        drop(executor.spawn(async move {
            let _chain = chain;
            pending::<()>().await;
        }));
        executor.block_on(executor.spawn(async {})).ok();
        drop(executor);
        assert_eq!(dropped.load(Ordering::SeqCst), DEPTH + 1);
    }
    in_time(|| {
        check(LocalExecutor::new(), None);
        check(Simulation::new(7), None);
        let pool = pool(1);
        let handle = pool.handle().clone();
        check(pool, Some(handle));
    });
}

#[test]
fn a_spawned_task_begins_though_the_task_that_spawned_it_blocks_its_worker() {
    in_time(|| {
        let pool = pool(2);
        for _ in 0..100 {
            let blocks = pool.spawn(async {
                let (tells, told) = mpsc::channel();
                let spawned = task::spawn(async move { tells.send(7).unwrap() });
                (told.recv().unwrap(), spawned)
            });
            let (seven, spawned) = pool.block_on(blocks).unwrap();
            pool.block_on(spawned).unwrap();
            assert_eq!(seven, 7);
        }
    });
}

type Call = Box<dyn FnMut()>;

thread_local! {
    static AT_THE_END: RefCell<Option<OnDrop<Call>>> = const { RefCell::new(None) };
}

/// Stores `f` in a thread-local, so that its destructor calls `f` when this thread ends.
fn at_the_end(f: impl FnMut() + 'static) {
    AT_THE_END.set(Some(OnDrop(Box::new(f))));
}

#[test]
fn the_drop_of_a_pool_waits_for_the_destructors_of_its_threads() {
    in_time(|| {
        let ended = Arc::new(AtomicUsize::new(0));
        let slowly = || {
            let ended = ended.clone();
            move || {
                let ended = ended.clone();
                at_the_end(move || {
                    thread::sleep(20 * MS);
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        };
        for end in [drop, |pool: ThreadPool| {
            assert!(pool.shutdown_timeout(Duration::from_secs(10)));
        }] {
            ended.store(0, Ordering::SeqCst);
            let pool = ThreadPool::builder().workers(1).keep_alive(MS).build();
            let on_worker = slowly();
            pool.block_on(pool.spawn(async move { on_worker() }))
                .unwrap();
            for _ in 0..2 {
                // Each call has a thread of its own, because the first has ended.
                pool.block_on(pool.spawn_blocking(slowly())).unwrap();
                thread::sleep(30 * MS);
            }
            end(pool);
            assert_eq!(ended.load(Ordering::SeqCst), 3);
        }
        let executor = LocalExecutor::new();
        executor
            .block_on(executor.spawn_blocking(slowly()))
            .unwrap();
        ended.store(0, Ordering::SeqCst);
        drop(executor);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    });
}

/// The other pool may have the address of this one, because its memory is reused.
#[test]
fn a_thread_that_ends_is_no_worker_of_another_pool() {
    in_time(|| {
        for _ in 0..50 {
            let first = pool(3);
            let (gives, given) = mpsc::channel::<Handle>();
            let (tells, told) = mpsc::channel();
            let given = Arc::new(Mutex::new(given));
            let begun = Arc::new(std::sync::Barrier::new(3));
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    let (given, tells, begun) = (given.clone(), tells.clone(), begun.clone());
                    first.spawn(async move {
                        begun.wait();
                        at_the_end(move || {
                            let handle = given.lock().unwrap().recv().unwrap();
                            let spawned =
                                catch_unwind(AssertUnwindSafe(|| handle.spawn(async { 7 })));
                            tells.send(spawned).unwrap();
                        });
                    })
                })
                .collect();
            for task in tasks {
                first.block_on(task).unwrap();
            }
            first.shutdown_background();
            thread::sleep(MS);
            let second = pool(1);
            for _ in 0..3 {
                gives.send(second.handle().clone()).unwrap();
                let spawned = told.recv().unwrap().expect("the spawn does not panic");
                assert_eq!(block_on(spawned).unwrap(), 7);
            }
        }
    });
}

/// The environment variable that tells the test below that it is the child.
const CHILD: &str = "REVEILLE_TEST_WITHOUT_ROOM";

/// Runs in a process without room for the stack of another thread.
#[cfg(target_os = "linux")]
#[test]
fn a_call_is_dropped_if_the_system_refuses_it_a_thread() {
    const NAME: &str = "a_call_is_dropped_if_the_system_refuses_it_a_thread";
    if std::env::var_os(CHILD).is_none() {
        let test = std::env::current_exe().unwrap();
        let child = Command::new("sh")
            .args([
                "-c",
                "ulimit -v 2000000; exec \"$0\" --exact \"$1\" --nocapture",
            ])
            .arg(test)
            .arg(NAME)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{child:?}");
        assert!(said.contains("1 passed"), "{said}");
        return;
    }
    let pool = pool(1);
    pool.block_on(pool.spawn(async {})).unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let captured = ran.clone();
    let mut room: Vec<Vec<u8>> = Vec::with_capacity(1 << 16);
    for size in [64 << 20, 1 << 20] {
        let mut block = Vec::new();
        while block.try_reserve_exact(size).is_ok() {
            room.push(std::mem::take(&mut block));
        }
    }
    let refused = catch_unwind(AssertUnwindSafe(|| {
        pool.spawn_blocking(move || captured.store(true, Ordering::SeqCst))
    }));
    drop(room);
    let panic = refused.expect_err("the system refuses a thread");
    let message = panic
        .downcast_ref::<String>()
        .expect("the payload is a message");
    assert!(message.contains("the system refused a thread"), "{message}");
    assert_eq!(Arc::strong_count(&ran), 1, "the refused call still exists");
    let next = pool.spawn_blocking(|| 7);
    assert_eq!(pool.block_on(next).unwrap(), 7);
    assert!(!ran.load(Ordering::SeqCst), "the refused call was run");
}

#[test]
fn a_set_takes_tasks_of_any_executor_and_tells_them_by_number() {
    let (executor, pool) = (LocalExecutor::new(), pool(1));
    let mut set = JoinSet::new();
    let ids = [
        set.spawn_on(async { 1 }, &pool).id(),
        set.spawn_on(async { 2 }, pool.handle()).id(),
        set.spawn_local_on(async { 3 }, &executor).id(),
        set.spawn_blocking_on(|| 4, pool.handle()).id(),
        set.insert(executor.spawn_blocking(|| 5)).id(),
    ];
    let mut joined = Vec::new();
    executor.block_on(async {
        set.extend([async { 6 }]);
        while let Some(next) = poll_fn(|cx| set.poll_join_next_with_id(cx)).await {
            joined.push(next.unwrap());
        }
    });
    joined.sort_by_key(|&(_, number)| number);
    assert_eq!(joined.len(), 6);
    assert_eq!(joined.iter().map(|it| it.0).collect::<Vec<_>>()[..5], ids);
    let failing = set.spawn_local_on(async { panic!("on purpose") }, &executor);
    executor.run_until_idle();
    let error = set.try_join_next_with_id().unwrap().unwrap_err();
    assert_eq!(error.id(), failing.id());
}

#[test]
fn a_handle_of_the_pool_is_found_where_it_runs_and_nowhere_else() {
    let pool = pool(1);
    assert!(Handle::try_current().is_none());
    let on_worker = pool.spawn(async { Handle::current().spawn(async { 7 }).await.unwrap() });
    assert_eq!(pool.block_on(on_worker).unwrap(), 7);
    let in_call = pool.spawn_blocking(|| Handle::current().spawn(async { 8 }));
    let in_call = pool.block_on(in_call).unwrap();
    assert_eq!(pool.block_on(in_call).unwrap(), 8);
    let nested = pool.block_on(async {
        let within = LocalExecutor::new().block_on(async { Handle::try_current().is_some() });
        (within, Handle::try_current().is_some())
    });
    assert_eq!(nested, (false, true));
}

#[test]
fn a_handle_polled_by_reference_keeps_its_waker_until_it_is_dropped() {
    let executor = LocalExecutor::new();
    let mut handle = executor.spawn_local(pending::<()>());
    let watch = Watch::new();
    assert!(watch.poll(|cx| Pin::new(&mut handle).poll(cx)).is_pending());
    assert_eq!(watch.kept(), 1);
    drop(handle);
    assert_eq!(watch.kept(), 0);
}
