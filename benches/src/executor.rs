//! Executors: the cost of spawning and joining a task, of yielding, of passing a value to
//! another task and back, and of blocking on a future, with one thread and with two.

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::Poll;

use futures_channel::oneshot;
use reveille_executor::{LocalExecutor, ThreadPool};

use crate::scene::RUNTIME;
use crate::{Contender, Kind};

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = Vec::new();
    for (one, two, operation) in OPERATIONS {
        let contender = |kind, name, run| Contender::new(one, kind, name, run);
        all.extend([
            contender(Kind::Reveille, "reveille", operation.of::<Local>()),
            contender(Kind::Peer, "tokio", operation.of::<TokioOne>()),
            contender(Kind::Peer, "async-executor", operation.of::<DynamicOne>()),
            contender(
                Kind::Peer,
                "async-executor, static",
                operation.of::<SmolOne>(),
            ),
        ]);
        let contender = |kind, name, run| Contender::new(two, kind, name, run).on_threads();
        all.extend([
            contender(Kind::Reveille, "reveille", operation.of::<Pool>()),
            contender(Kind::Peer, "tokio", operation.of::<TokioTwo>()),
            contender(Kind::Peer, "async-executor", operation.of::<DynamicTwo>()),
            contender(
                Kind::Peer,
                "async-executor, static",
                operation.of::<SmolTwo>(),
            ),
        ]);
    }
    for (group, contenders) in BLOCKING {
        for (kind, name, run) in contenders {
            all.push(Contender::new(group, kind, name, run));
        }
    }
    all
}

/// The operations, with the names of their groups for one thread and for two.
const OPERATIONS: [(&str, &str, Operation); 5] = [
    ("executor/join", "executor/join, two", Operation::Join),
    ("executor/many", "executor/many, two", Operation::Many),
    ("executor/yield", "executor/yield, two", Operation::Yield),
    (
        "executor/ping-pong",
        "executor/ping-pong, two",
        Operation::PingPong,
    ),
    ("executor/chain", "executor/chain, two", Operation::Chain),
];

type BlockOn = (Kind, &'static str, fn(u64));

const BLOCKING: [(&str, [BlockOn; 3]); 2] = [
    (
        "executor/block_on",
        [
            (Kind::Reveille, "reveille", |iterations| {
                ready(iterations, |number| {
                    reveille_executor::block_on(async { number })
                });
            }),
            (Kind::Peer, "futures", |iterations| {
                ready(iterations, |number| {
                    futures_executor::block_on(async { number })
                });
            }),
            (Kind::Peer, "futures-lite", |iterations| {
                ready(iterations, |number| {
                    futures_lite::future::block_on(async { number })
                });
            }),
        ],
    ),
    (
        "executor/block_on, woken",
        [
            (Kind::Reveille, "reveille", |iterations| {
                reveille_executor::block_on(yields(iterations));
            }),
            (Kind::Peer, "futures", |iterations| {
                futures_executor::block_on(yields(iterations));
            }),
            (Kind::Peer, "futures-lite", |iterations| {
                futures_lite::future::block_on(yields(iterations));
            }),
        ],
    ),
];

fn ready(iterations: u64, block_on: impl Fn(u64) -> u64) {
    for number in 0..iterations {
        assert_eq!(block_on(black_box(number)), number);
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Join,
    Many,
    Yield,
    PingPong,
    Chain,
}

impl Operation {
    /// Returns the loop of this operation for one implementation.
    fn of<E: Executor>(self) -> fn(u64) {
        match self {
            Self::Join => |iterations| E::run(join::<E>(iterations)),
            Self::Many => |iterations| E::run(many::<E>(iterations)),
            Self::Yield => |iterations| E::run(yields(iterations)),
            Self::PingPong => |iterations| E::run(ping_pong::<E>(iterations)),
            Self::Chain => |iterations| {
                E::run(async move {
                    let (tx, rx) = oneshot::channel();
                    E::detach(chain::<E>(iterations, tx));
                    rx.await.expect("the last task of the chain sends");
                });
            },
        }
    }
}

/// An executor, as the loops use it.
trait Executor: 'static {
    /// Runs a task to completion.
    fn run(future: impl Future<Output = ()> + Send + 'static);

    /// Spawns a task from within a task.
    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static;

    /// Spawns a task that is never joined.
    fn detach(future: impl Future<Output = ()> + Send + 'static);
}

/// Spawns a task and joins it.
async fn join<E: Executor>(iterations: u64) {
    for number in 0..iterations {
        assert_eq!(E::spawn(async move { number }).await, number);
    }
}

/// Spawns 10,000 tasks and joins them.
async fn many<E: Executor>(iterations: u64) {
    let mut left = iterations;
    while left > 0 {
        let batch = left.min(10_000);
        left -= batch;
        let tasks: Vec<_> = (0..batch)
            .map(|number| E::spawn(async move { number }))
            .collect();
        for (number, task) in (0..).zip(tasks) {
            assert_eq!(task.await, number);
        }
    }
}

/// Goes to the back of the queue.
async fn yields(iterations: u64) {
    for _ in 0..iterations {
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
}

/// Spawns a task that receives a value and sends it back.
async fn ping_pong<E: Executor>(iterations: u64) {
    for number in 0..iterations {
        let ((ping, pinged), (pong, ponged)) = (oneshot::channel(), oneshot::channel());
        E::detach(async move {
            let number: u64 = pinged.await.expect("it is sent");
            pong.send(number).expect("it is waited for");
        });
        ping.send(number).expect("it is waited for");
        assert_eq!(ponged.await, Ok(number));
    }
}

/// Spawns a chain of tasks, each by the one before.
fn chain<E: Executor>(
    left: u64,
    end: oneshot::Sender<()>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        match left {
            0 => end.send(()).expect("it is waited for"),
            _ => E::detach(chain::<E>(left - 1, end)),
        }
    })
}

struct Local;

thread_local! {
    static LOCAL: LocalExecutor = LocalExecutor::new();
}

impl Executor for Local {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        LOCAL.with(|local| local.block_on(local.spawn_local(future)).expect("it ends"));
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        let task = reveille_executor::task::spawn(future);
        async { task.await.expect("it ends") }
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        drop(reveille_executor::task::spawn(future));
    }
}

struct Pool;

static POOL: LazyLock<ThreadPool> = LazyLock::new(|| ThreadPool::builder().workers(2).build());

impl Executor for Pool {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        POOL.block_on(POOL.spawn(future)).expect("it ends");
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        Local::spawn(future)
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        Local::detach(future);
    }
}

struct TokioOne;

thread_local! {
    static TOKIO_ONE: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime can be made");
}

impl Executor for TokioOne {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        TOKIO_ONE.with(|tokio| tokio.block_on(tokio.spawn(future)).expect("it ends"));
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        let task = tokio::spawn(future);
        async { task.await.expect("it ends") }
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(future));
    }
}

struct TokioTwo;

impl Executor for TokioTwo {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        RUNTIME.block_on(RUNTIME.spawn(future)).expect("it ends");
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        TokioOne::spawn(future)
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        TokioOne::detach(future);
    }
}

struct SmolOne;

static SMOL_ONE: async_executor::StaticExecutor = async_executor::StaticExecutor::new();

impl Executor for SmolOne {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        // Tests run in parallel; measurements do not.
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock().unwrap();
        futures_lite::future::block_on(SMOL_ONE.run(SMOL_ONE.spawn(future)));
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        SMOL_ONE.spawn(future)
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        SMOL_ONE.spawn(future).detach();
    }
}

struct SmolTwo;

static SMOL_TWO: LazyLock<&'static async_executor::StaticExecutor> = LazyLock::new(|| {
    static EXECUTOR: async_executor::StaticExecutor = async_executor::StaticExecutor::new();
    for _ in 0..2 {
        std::thread::spawn(|| {
            futures_lite::future::block_on(EXECUTOR.run(std::future::pending::<()>()));
        });
    }
    &EXECUTOR
});

impl Executor for SmolTwo {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        futures_lite::future::block_on(SMOL_TWO.spawn(future));
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        SMOL_TWO.spawn(future)
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        SMOL_TWO.spawn(future).detach();
    }
}

struct DynamicOne;

/// It can be dropped, so it keeps its tasks in a slab.
static DYNAMIC_ONE: async_executor::Executor<'static> = async_executor::Executor::new();

impl Executor for DynamicOne {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock().unwrap();
        futures_lite::future::block_on(DYNAMIC_ONE.run(DYNAMIC_ONE.spawn(future)));
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        DYNAMIC_ONE.spawn(future)
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        DYNAMIC_ONE.spawn(future).detach();
    }
}

struct DynamicTwo;

static DYNAMIC_TWO: LazyLock<&'static async_executor::Executor<'static>> = LazyLock::new(|| {
    static EXECUTOR: async_executor::Executor<'static> = async_executor::Executor::new();
    for _ in 0..2 {
        std::thread::spawn(|| {
            futures_lite::future::block_on(EXECUTOR.run(std::future::pending::<()>()));
        });
    }
    &EXECUTOR
});

impl Executor for DynamicTwo {
    fn run(future: impl Future<Output = ()> + Send + 'static) {
        futures_lite::future::block_on(DYNAMIC_TWO.spawn(future));
    }

    fn spawn(
        future: impl Future<Output = u64> + Send + 'static,
    ) -> impl Future<Output = u64> + Send + 'static {
        DYNAMIC_TWO.spawn(future)
    }

    fn detach(future: impl Future<Output = ()> + Send + 'static) {
        DYNAMIC_TWO.spawn(future).detach();
    }
}
