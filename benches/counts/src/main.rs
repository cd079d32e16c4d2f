//! Hot paths, for `.ci/counts`: it runs this program under callgrind, which counts the
//! instructions and the read-modify-writes between entry and exit of [`counted`].
//!
//! Without an argument the program prints a line for each path: how many operations a run
//! has, and its name. With a name it runs that path. The path runs uncounted first, so
//! that queues, slabs and the allocator have their memory. A path uses one thread and
//! reads no clock, so its counts are the same in each run.

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use reveille::time::VirtualClock;
use reveille::{Mutex, Notify, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch};
use reveille_executor::LocalExecutor;

/// The operations of one run.
const RUNS: usize = 1000;
/// The waiters of a broadcast.
const WAITERS: usize = 256;
/// The number of unobserved runs, enough for every growth to have happened.
const WARM: usize = 3;

/// What is counted. A call of it is one run of a path.
#[inline(never)]
fn counted<S, R>(state: S, run: &mut impl FnMut(S) -> R) -> R {
    black_box(run(black_box(state)))
}

/// Runs a path. `set_up` is not counted, nor is the drop of what `run` returns.
fn path<S, R>(
    name: &str,
    operations: usize,
    mut set_up: impl FnMut() -> S,
    mut run: impl FnMut(S) -> R,
) {
    match std::env::args().nth(1) {
        None => println!("{operations} {name}"),
        Some(wanted) if wanted == name => {
            for _ in 0..WARM {
                drop(run(set_up()));
            }
            drop(counted(set_up(), &mut run));
        }
        Some(_) => {}
    }
}

/// Runs an operation again and again.
fn again(name: &str, mut operation: impl FnMut()) {
    path(name, RUNS, || (), |()| (0..RUNS).for_each(|_| operation()));
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future that has nothing to wait for.
fn now<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future has to wait"),
    }
}

/// Starts waits, which stay pending.
fn pending<F: Future + Unpin>(n: usize, wait: impl Fn() -> F) -> Vec<F> {
    let mut waits: Vec<_> = (0..n).map(|_| wait()).collect();
    for wait in &mut waits {
        assert!(poll(Pin::new(wait)).is_pending());
    }
    waits
}

fn main() {
    handoffs();
    notifications();
    locks();
    channels();
    tasks();
}

fn handoffs() {
    again("oneshot ready", || {
        let (sender, receiver) = oneshot::channel();
        assert!(sender.send(black_box(1)).is_ok());
        assert!(now(receiver).is_ok());
    });
    again("oneshot pending", || {
        let (sender, mut receiver) = oneshot::channel();
        assert!(poll(Pin::new(&mut receiver)).is_pending());
        assert!(sender.send(black_box(1)).is_ok());
        assert!(now(receiver).is_ok());
    });
    again("oneshot dropped", || {
        drop(black_box(oneshot::channel::<u64>()));
    });
    let once = SetOnce::new();
    assert!(once.set(1_u64).is_ok());
    again("set_once get", || assert!(black_box(&once).get().is_some()));
}

fn notifications() {
    let notify = Notify::new();
    again("notify permit", || {
        black_box(&notify).notify_one();
        now(notify.notified());
    });
    again("notify pending", || {
        let mut wait = pin!(black_box(&notify).notified());
        assert!(poll(wait.as_mut()).is_pending());
        notify.notify_one();
        assert!(poll(wait).is_ready());
    });
    let waits = || pending(WAITERS, || notify.notified());
    path("notify_waiters, a waiter", WAITERS, waits, |waits| {
        notify.notify_waiters();
        waits
    });
    path(
        "notify_waiters, whole wait",
        WAITERS,
        || (),
        |()| {
            let mut waits = waits();
            notify.notify_waiters();
            for wait in &mut waits {
                assert!(poll(Pin::new(wait)).is_ready());
            }
            waits
        },
    );
    path("notify, cancel the first", WAITERS, waits, drop);
    path("notify, cancel the last", WAITERS, waits, |mut waits| {
        while waits.pop().is_some() {}
    });
}

fn locks() {
    let mutex = Mutex::new(0_u64);
    again("mutex alone", || *now(black_box(&mutex).lock()) += 1);
    let strict = Mutex::with_max_barges(0_u64, 0);
    for (name, mutex) in [("mutex handed", &mutex), ("mutex handed, strict", &strict)] {
        let mut guard = Some(now(mutex.lock()));
        again(name, || {
            let mut lock = pin!(black_box(mutex).lock());
            assert!(poll(lock.as_mut()).is_pending());
            drop(guard.take());
            match poll(lock) {
                Poll::Ready(next) => guard = Some(next),
                Poll::Pending => panic!("the mutex is not locked"),
            }
        });
    }
    let guard = now(mutex.lock());
    let waits = || pending(WAITERS, || mutex.lock());
    path("mutex, cancel the last", WAITERS, waits, |mut waits| {
        while waits.pop().is_some() {}
    });
    drop(guard);

    let semaphore = Semaphore::new(1);
    again("semaphore try", || {
        drop(black_box(&semaphore).try_acquire().expect("a free permit"));
    });
    again("semaphore acquire", || {
        drop(now(black_box(&semaphore).acquire()).expect("it is open"));
    });
    let mut permit = now(semaphore.acquire()).ok();
    again("semaphore handed", || {
        let mut wait = pin!(black_box(&semaphore).acquire());
        assert!(poll(wait.as_mut()).is_pending());
        drop(permit.take());
        match poll(wait) {
            Poll::Ready(next) => permit = next.ok(),
            Poll::Pending => panic!("the permit was not handed over"),
        }
    });

    let rwlock = RwLock::new(0_u64);
    again("rwlock read", || {
        black_box(*now(black_box(&rwlock).read()));
    });
    again("rwlock write", || *now(black_box(&rwlock).write()) += 1);
}

fn channels() {
    let (sender, mut receiver) = mpsc::channel(16);
    again("mpsc ready", || {
        assert!(now(sender.send(black_box(1))).is_ok());
        assert!(now(receiver.recv()).is_some());
    });
    again("mpsc pending", || {
        let mut wait = pin!(receiver.recv());
        assert!(poll(wait.as_mut()).is_pending());
        assert!(now(sender.send(black_box(1))).is_ok());
        assert!(poll(wait).is_ready());
    });
    let (sender, mut receiver) = broadcast::channel(16);
    again("broadcast channel pending", || {
        let mut wait = pin!(receiver.recv());
        assert!(poll(wait.as_mut()).is_pending());
        assert!(sender.send(black_box(1)).is_ok());
        assert!(poll(wait).is_ready());
    });
    let (sender, mut receiver) = watch::channel(0);
    again("watch pending", || {
        let mut wait = pin!(receiver.changed());
        assert!(poll(wait.as_mut()).is_pending());
        assert!(sender.send(black_box(1)).is_ok());
        assert!(poll(wait).is_ready());
    });
}

fn tasks() {
    again("block_on ready", || {
        reveille_executor::block_on(async { black_box(1) });
    });
    again("block_on, one wake", || {
        let mut woken = false;
        reveille_executor::block_on(std::future::poll_fn(|cx| {
            if !std::mem::replace(&mut woken, true) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        }));
    });
    let timers = VirtualClock::when_idle().timers().clone();
    again("sleep, insert and cancel", || {
        let mut sleep = pin!(timers.sleep(std::time::Duration::from_millis(10)));
        assert!(poll(sleep.as_mut()).is_pending());
    });
    let executor = LocalExecutor::builder().timers(timers).build();
    let tasks = || (0..RUNS).for_each(|n| drop(executor.spawn_local(async move { n })));
    path(
        "LocalExecutor, a task",
        RUNS,
        || (),
        |()| {
            tasks();
            executor.run_until_idle();
        },
    );
    path(
        "LocalExecutor, spawn and join",
        RUNS,
        || (),
        |()| {
            executor.block_on(async {
                for n in 0..RUNS {
                    assert!(executor.spawn_local(async move { n }).await.is_ok());
                }
            });
        },
    );
}
