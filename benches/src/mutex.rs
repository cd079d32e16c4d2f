//! A lock that is held across an `await`: alone, handed over, contended by threads and by
//! tasks, and with a waiter that leaves the middle of a long queue.

use std::collections::VecDeque;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Arc;

use reveille::backend::{Local, Native};
use reveille::protocol::block_on;

use crate::scene::{RUNTIME, in_scene, now, on_two_threads, poll};
use crate::{Contender, Kind};

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = Vec::new();
    for (group, operation) in OPERATIONS {
        let contender = |kind, name, run| {
            let contender = Contender::new(group, kind, name, run);
            match operation {
                Operation::Threads | Operation::Tasks => contender.on_threads(),
                Operation::Alone | Operation::Handed | Operation::Cancelled => contender,
            }
        };
        all.extend([
            contender(Kind::Reveille, "reveille", operation.of::<Reveille>()),
            contender(
                Kind::Reveille,
                "reveille, strict",
                operation.of::<Bound<0>>(),
            ),
        ]);
        match operation {
            Operation::Alone => all.push(contender(Kind::Reveille, "reveille, Local", local)),
            Operation::Threads | Operation::Tasks => all.extend([
                contender(Kind::Reveille, "reveille, 10", operation.of::<Bound<10>>()),
                contender(
                    Kind::Reveille,
                    "reveille, 100",
                    operation.of::<Bound<100>>(),
                ),
                contender(
                    Kind::Reveille,
                    "reveille, 10000",
                    operation.of::<Bound<10_000>>(),
                ),
            ]),
            Operation::Handed | Operation::Cancelled => {}
        }
        all.extend([
            contender(Kind::Peer, "tokio", operation.of::<Tokio>()),
            contender(Kind::Peer, "async-lock", operation.of::<AsyncLock>()),
            contender(Kind::Peer, "futures", operation.of::<Futures>()),
            contender(Kind::Peer, "futures-intrusive", operation.of::<Intrusive>()),
        ]);
    }
    all
}

const OPERATIONS: [(&str, Operation); 5] = [
    ("mutex/alone", Operation::Alone),
    ("mutex/handed", Operation::Handed),
    ("mutex/threads", Operation::Threads),
    ("mutex/tasks", Operation::Tasks),
    ("mutex/cancelled", Operation::Cancelled),
];

#[derive(Clone, Copy)]
enum Operation {
    Alone,
    Handed,
    Threads,
    Tasks,
    Cancelled,
}

impl Operation {
    /// Returns the loop of this operation for one implementation.
    fn of<M: Mutex>(self) -> fn(u64) {
        match self {
            Self::Alone => alone::<M>,
            Self::Handed => handed::<M>,
            Self::Threads => threads::<M>,
            Self::Tasks => tasks::<M>,
            Self::Cancelled => cancelled::<M>,
        }
    }
}

/// A mutex over a count, as the loops use it.
trait Mutex: Send + Sync + 'static {
    type Guard<'a>: std::ops::DerefMut<Target = u64> + Send;

    fn new() -> Self;

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send;
}

/// Locks, and unlocks.
fn alone<M: Mutex>(iterations: u64) {
    let mutex = M::new();
    for _ in 0..iterations {
        *now(black_box(&mutex).lock()) += 1;
    }
    assert_eq!(*now(mutex.lock()), iterations);
}

/// Waits; unlocks, which hands over or wakes; locks by a poll.
fn handed<M: Mutex>(iterations: u64) {
    let mutex = M::new();
    let mut guard = Some(now(mutex.lock()));
    for _ in 0..iterations {
        let mut lock = pin!(black_box(&mutex).lock());
        assert!(poll(lock.as_mut()).is_pending());
        drop(guard.take());
        match poll(lock) {
            std::task::Poll::Ready(next) => guard = Some(next),
            std::task::Poll::Pending => panic!("the mutex is not locked"),
        }
    }
}

/// Locks and unlocks on two threads, half of the times on each.
fn threads<M: Mutex>(iterations: u64) {
    let mutex = Arc::new(M::new());
    let count = mutex.clone();
    on_two_threads(move || {
        for _ in 0..iterations.div_ceil(2) {
            *block_on::<Native, _>(mutex.lock()) += 1;
        }
    });
    assert!(*now(count.lock()) >= iterations);
}

/// Locks and unlocks in 32 tasks on two workers.
fn tasks<M: Mutex>(iterations: u64) {
    const TASKS: u64 = 32;
    let mutex = Arc::new(M::new());
    RUNTIME.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let mutex = mutex.clone();
                tokio::spawn(async move {
                    for _ in 0..iterations.div_ceil(TASKS) {
                        *mutex.lock().await += 1;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no task panics");
        }
    });
    assert!(*now(mutex.lock()) >= iterations);
}

/// A long queue for a mutex that is never unlocked.
struct Queue<M: Mutex> {
    mutex: &'static M,
    waits: VecDeque<Pin<Box<dyn Future<Output = M::Guard<'static>>>>>,
}

impl<M: Mutex> Queue<M> {
    fn join(&mut self) {
        let mut wait: Pin<Box<dyn Future<Output = _>>> = Box::pin(self.mutex.lock());
        assert!(poll(wait.as_mut()).is_pending());
        self.waits.push_back(wait);
    }
}

impl<M: Mutex> Default for Queue<M> {
    fn default() -> Self {
        let mutex: &'static M = Box::leak(Box::new(M::new()));
        std::mem::forget(now(mutex.lock()));
        let mut queue = Self {
            mutex,
            waits: VecDeque::new(),
        };
        (0..10_000).for_each(|_| queue.join());
        queue
    }
}

/// Drops the middle one of 10,000 waiters, and adds another at the end.
fn cancelled<M: Mutex>(iterations: u64) {
    in_scene(|queue: &mut Queue<M>| {
        for _ in 0..iterations {
            let middle = queue.waits.len() / 2;
            drop(queue.waits.swap_remove_back(middle));
            queue.join();
        }
    });
}

type Reveille = reveille::Mutex<u64>;

impl Mutex for Reveille {
    type Guard<'a> = reveille::MutexGuard<'a, u64>;

    fn new() -> Self {
        Self::new(0)
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.lock()
    }
}

/// A mutex with a given `max_barges`. With 0 it is first in, first out, as tokio's.
struct Bound<const K: u16>(Reveille);

impl<const K: u16> Mutex for Bound<K> {
    type Guard<'a> = reveille::MutexGuard<'a, u64>;

    fn new() -> Self {
        Self(reveille::Mutex::with_max_barges(0, K))
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.0.lock()
    }
}

fn local(iterations: u64) {
    let mutex = reveille::Mutex::<u64, Local>::with_max_barges_in(0, 0);
    for _ in 0..iterations {
        *now(black_box(&mutex).lock()) += 1;
    }
}

type Tokio = tokio::sync::Mutex<u64>;

impl Mutex for Tokio {
    type Guard<'a> = tokio::sync::MutexGuard<'a, u64>;

    fn new() -> Self {
        Self::new(0)
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.lock()
    }
}

type AsyncLock = async_lock::Mutex<u64>;

impl Mutex for AsyncLock {
    type Guard<'a> = async_lock::MutexGuard<'a, u64>;

    fn new() -> Self {
        Self::new(0)
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.lock()
    }
}

type Futures = futures_util::lock::Mutex<u64>;

impl Mutex for Futures {
    type Guard<'a> = futures_util::lock::MutexGuard<'a, u64>;

    fn new() -> Self {
        Self::new(0)
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.lock()
    }
}

type Intrusive = futures_intrusive::sync::Mutex<u64>;

impl Mutex for Intrusive {
    type Guard<'a> = futures_intrusive::sync::GenericMutexGuard<'a, parking_lot::RawMutex, u64>;

    fn new() -> Self {
        Self::new(0, true)
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.lock()
    }
}
