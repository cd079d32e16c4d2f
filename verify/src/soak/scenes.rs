//! The scenes of the soak, one for each primitive.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use reveille::{
    Barrier, Condvar, Mutex, Notify, OnceCell, RwLock, RwLockUpgradableReadGuard, Semaphore,
    SetOnce, oneshot,
};

use crate::soak::draw::{Draw, expect, tasks};

/// A scene: a primitive, and what its tasks do with it. It returns an error if the
/// results do not add up.
pub(super) type Scene = fn(tasks: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// How many rounds each task runs.
const ROUNDS: u64 = 10;

/// Longer than another task takes to arrive.
const MOMENT: Duration = Duration::from_millis(5);

pub(super) const ALL: [(&str, Scene); 9] = [
    ("oneshot", |tasks| Box::pin(oneshots(tasks))),
    ("notify", |tasks| Box::pin(notifies(tasks))),
    ("mutex", |tasks| Box::pin(mutexes(tasks))),
    ("condvar", |tasks| Box::pin(condvars(tasks))),
    ("rwlock", |tasks| Box::pin(rwlocks(tasks))),
    ("semaphore", |tasks| Box::pin(semaphores(tasks))),
    ("barrier", |tasks| Box::pin(barriers(tasks))),
    ("once-cell", |tasks| Box::pin(once_cells(tasks))),
    ("set-once", |tasks| Box::pin(set_onces(tasks))),
];

/// Checks that each value is received or returned. No value is lost or duplicated.
async fn oneshots(number: u64) -> Result<(), String> {
    let back = Arc::new(AtomicU64::new(0));
    let refused = back.clone();
    let received = tasks(number, move |task| {
        let refused = refused.clone();
        async move {
            let mut draw = Draw::new(task);
            let mut received = 0;
            for _ in 0..ROUNDS {
                let (tx, rx) = oneshot::channel();
                let sends = tokio::spawn(async move { tx.send(1) });
                let got = draw.perhaps(rx).await;
                let sent = sends.await.expect("it does not panic");
                match (got, sent) {
                    (Some(Ok(value)), Ok(())) => received += value,
                    (None, Err(value)) => drop(refused.fetch_add(value, SeqCst)),
                    // Sent before the receiver was dropped, and dropped with it.
                    (None, Ok(())) => drop(refused.fetch_add(1, SeqCst)),
                    (Some(_), _) => {}
                }
            }
            received
        }
    })
    .await?;
    expect("values", received + back.load(SeqCst), number * ROUNDS)
}

/// Checks that all goods are taken, by tasks that have been notified of them.
async fn notifies(number: u64) -> Result<(), String> {
    struct Shop {
        goods: AtomicU64,
        arrival: Notify,
    }
    let shop = Arc::new(Shop {
        goods: AtomicU64::new(0),
        arrival: Notify::new(),
    });
    let take = |shop: &Shop| {
        let taken = shop
            .goods
            .fetch_update(SeqCst, SeqCst, |goods| goods.checked_sub(1));
        taken.is_ok()
    };
    let shared = shop.clone();
    let taken = tasks(number, move |task| {
        let shop = shared.clone();
        async move {
            let mut draw = Draw::new(task);
            let mut taken = 0;
            for _ in 0..ROUNDS {
                shop.goods.fetch_add(1, SeqCst);
                match draw.below(3) {
                    0 => shop.arrival.notify_waiters(),
                    1 => shop.arrival.notify_last(),
                    _ => shop.arrival.notify_one(),
                }
                // There is an item for each task that looks: a task that gave up left
                // its own.
                let wait = shop.arrival.wait_until(|| take(&shop));
                taken += u64::from(draw.perhaps(wait).await.is_some());
            }
            taken
        }
    })
    .await?;
    expect("goods", taken + shop.goods.load(SeqCst), number * ROUNDS)?;
    expect(
        "waiters",
        shop.arrival.waiting() + shop.arrival.granted(),
        0,
    )
}

/// Checks that no increment is lost, and that no two tasks hold the lock at once.
async fn mutexes(number: u64) -> Result<(), String> {
    let mutex = Arc::new(Mutex::new(0));
    let shared = mutex.clone();
    let locked = tasks(number, move |task| {
        let mutex = shared.clone();
        async move {
            let mut draw = Draw::new(task);
            let mut locked = 0;
            for _ in 0..ROUNDS {
                if let Some(mut count) = draw.perhaps(mutex.lock()).await {
                    let before = *count;
                    draw.pause().await;
                    *count = before + 1;
                    locked += 1;
                }
            }
            locked
        }
    })
    .await?;
    expect("waiters", mutex.waiting(), 0)?;
    expect("an unobserved grant", mutex.granted(), false)?;
    let count = *mutex.try_lock().map_err(|error| error.to_string())?;
    expect("the count", count, locked)
}

/// Checks that all goods are taken. The goods are under the lock.
async fn condvars(number: u64) -> Result<(), String> {
    struct Shop {
        goods: Mutex<u64>,
        arrival: Condvar,
    }
    let shop = Arc::new(Shop {
        goods: Mutex::new(0),
        arrival: Condvar::new(),
    });
    let shared = shop.clone();
    let taken = tasks(number, move |task| {
        let shop = shared.clone();
        async move {
            let mut draw = Draw::new(task);
            let mut taken = 0;
            for _ in 0..ROUNDS {
                *shop.goods.lock().await += 1;
                match draw.below(3) {
                    0 => shop.arrival.notify_all(),
                    _ => shop.arrival.notify_one(),
                }
                let guard = shop.goods.lock().await;
                let wait = shop.arrival.wait_while(guard, |goods| *goods == 0);
                if let Some(mut goods) = draw.perhaps(wait).await {
                    *goods -= 1;
                    taken += 1;
                }
            }
            taken
        }
    })
    .await?;
    let left = *shop.goods.try_lock().map_err(|error| error.to_string())?;
    expect("goods", taken + left, number * ROUNDS)?;
    expect(
        "waiters",
        shop.arrival.waiting() + shop.arrival.granted(),
        0,
    )
}

/// Checks that a writer is alone, and that no write is lost.
async fn rwlocks(number: u64) -> Result<(), String> {
    let shared = Arc::new((RwLock::new(0), AtomicBool::new(false)));
    let scene = shared.clone();
    let written = tasks(number, move |task| {
        let shared = scene.clone();
        async move {
            let (lock, writing) = &*shared;
            let write = |count: &mut u64| {
                assert!(!writing.swap(true, SeqCst), "two tasks write at once");
                *count += 1;
                assert!(
                    writing.swap(false, SeqCst),
                    "another task wrote at the same time"
                );
            };
            let mut draw = Draw::new(task);
            let mut written = 0;
            for _ in 0..ROUNDS {
                match draw.below(4) {
                    0 => {
                        if let Some(mut count) = draw.perhaps(lock.write()).await {
                            write(&mut count);
                            written += 1;
                        }
                    }
                    1 => {
                        let Some(looks) = draw.perhaps(lock.upgradable_read()).await else {
                            continue;
                        };
                        let before = *looks;
                        let upgrade = RwLockUpgradableReadGuard::upgrade(looks);
                        if let Some(mut count) = draw.perhaps(upgrade).await {
                            assert_eq!(*count, before, "another task wrote before the upgrade");
                            write(&mut count);
                            written += 1;
                        }
                    }
                    _ => {
                        if let Some(count) = draw.perhaps(lock.read()).await {
                            let before = *count;
                            draw.pause().await;
                            assert!(!writing.load(SeqCst), "a task writes beside a reader");
                            assert_eq!(*count, before);
                        }
                    }
                }
            }
            written
        }
    })
    .await?;
    let (lock, _) = &*shared;
    expect("waiters", lock.waiting() + lock.granted(), 0)?;
    let count = *lock.try_write().map_err(|error| error.to_string())?;
    expect("the count", count, written)
}

/// Checks that no more permits are held than exist, and that all of them come back.
async fn semaphores(number: u64) -> Result<(), String> {
    const PERMITS: usize = 5;
    let shared = Arc::new((Semaphore::new(PERMITS), AtomicUsize::new(0)));
    let scene = shared.clone();
    tasks(number, move |task| {
        let shared = scene.clone();
        async move {
            let (semaphore, held) = &*shared;
            let mut draw = Draw::new(task);
            for _ in 0..ROUNDS {
                let least = 1 + draw.below(3);
                let most = least + draw.below(3);
                let bounds = (least as usize, most as usize);
                let acquire = semaphore.acquire_up_to(bounds.0, bounds.1);
                if let Some(permits) = draw.perhaps(acquire).await {
                    let permits = permits.expect("it is not closed");
                    let count = permits.num_permits();
                    let now = held.fetch_add(count, SeqCst) + count;
                    assert!(now <= PERMITS, "{now} permits of {PERMITS} are held");
                    draw.pause().await;
                    held.fetch_sub(count, SeqCst);
                }
            }
            0
        }
    })
    .await?;
    let (semaphore, _) = &*shared;
    expect("waiters", semaphore.waiting() + semaphore.granted(), 0)?;
    expect("permits", semaphore.available_permits(), PERMITS)
}

/// Checks that each generation has one leader, and at most `N` tasks, although some
/// give up.
async fn barriers(number: u64) -> Result<(), String> {
    const N: u64 = 4;
    let shared = Arc::new((Barrier::new(N as usize), AtomicU64::new(0)));
    let scene = shared.clone();
    let passed = tasks(number, move |task| {
        let shared = scene.clone();
        async move {
            let (barrier, leaders) = &*shared;
            let mut draw = Draw::new(task);
            let mut passed = 0;
            for _ in 0..ROUNDS {
                // The last task may find no other to meet.
                let wait = tokio::time::timeout(MOMENT, draw.perhaps(barrier.wait()));
                if let Ok(Some(met)) = wait.await {
                    passed += 1;
                    leaders.fetch_add(u64::from(met.is_leader()), SeqCst);
                }
            }
            passed
        }
    })
    .await?;
    let (barrier, leaders) = &*shared;
    expect("waiters", barrier.waiting() + barrier.granted(), 0)?;
    let generations = leaders.load(SeqCst);
    let possible = generations..=generations * N;
    expect(
        "the number of tasks that passed is possible",
        possible.contains(&passed),
        true,
    )?;
    expect("no tasks met", generations == 0, false)
}

/// Initializes the value, and waits once on the way.
async fn make(made: Arc<AtomicU64>) -> u64 {
    tokio::task::yield_now().await;
    made.fetch_add(1, SeqCst);
    7
}

/// Checks that the value is initialized once, and that every task sees it.
async fn once_cells(number: u64) -> Result<(), String> {
    let made = Arc::new(AtomicU64::new(0));
    let cell = Arc::new(OnceCell::new());
    let scene = (cell.clone(), made.clone());
    tasks(number, move |task| {
        let (cell, made) = scene.clone();
        async move {
            let mut draw = Draw::new(task);
            let init = || make(made.clone());
            while draw.perhaps(cell.get_or_init(init)).await.is_none() {}
            assert_eq!(*cell.wait().await, 7);
            0
        }
    })
    .await?;
    expect("values made", made.load(SeqCst), 1)?;
    expect("waiters", cell.waiting() + cell.granted(), 0)
}

/// Checks that the value is set once, and that every waiter sees it.
async fn set_onces(number: u64) -> Result<(), String> {
    let once = Arc::new(SetOnce::new());
    let scene = once.clone();
    let set = tasks(number, move |task| {
        let once = scene.clone();
        async move {
            let mut draw = Draw::new(task);
            let mut set = u64::from(task + 1 == number && once.set(task).is_ok());
            while draw.perhaps(once.wait()).await.is_none() {
                set += u64::from(draw.below(64) == 0 && once.set(task).is_ok());
            }
            set
        }
    })
    .await?;
    expect("times it was set", set, 1)?;
    expect("waiters", once.waiting() + once.granted(), 0)
}
