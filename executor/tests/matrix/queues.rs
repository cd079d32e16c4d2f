//! The contract of the primitives with a queue, on any executor: turns that exclude each
//! other, and waits that are handed over, even if an earlier wait is dropped.
//!
//! To add a primitive, add a line to each table. The futures are boxed there, so that
//! each executor compiles the checks only once.

#![forbid(unsafe_code)]

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use reveille::{
    Barrier, Condvar, Mutex, Notify, OnceCell, OwnedRwLockUpgradableReadGuard, RwLock, Semaphore,
    SetOnce, oneshot,
};
use reveille_executor::Executor;

use crate::{announced, poll_once};

/// Makes a check of each line of a table.
macro_rules! table {
    ($play:ident: $($check:ident => $scene:expr),* $(,)?) => {
        matrix! { $($check),* }

        $(fn $check<E: Executor>(executor: &E) {
            $play(executor, $scene);
        })*
    };
}

table! { add_up:
    turns_by_notify_add_up => by_notify,
    turns_by_mutex_add_up => by_mutex,
    turns_by_semaphore_add_up => by_semaphore,
    turns_by_rw_lock_add_up => by_rw_lock,
    turns_by_condvar_add_up => by_condvar,
    turns_by_barrier_add_up => by_barrier,
    turns_by_once_cell_add_up => by_once_cell,
    turns_by_set_once_add_up => by_set_once,
}

table! { go_on:
    a_notification_is_handed_over => notified,
    a_mutex_is_handed_over => locked,
    a_permit_is_handed_over => permitted,
    a_lock_is_handed_to_a_reader => read,
    a_lock_is_handed_to_a_writer => written,
    a_lock_is_handed_to_an_upgrade => upgraded,
    a_notification_of_a_condvar_is_handed_over => notified_by_condvar,
    a_barrier_opens_without_a_wait_that_was_dropped => met,
    a_turn_to_make_the_value_is_handed_over => made_in_turn,
    a_value_that_is_made_reaches_its_waiters => made,
    a_value_that_is_set_reaches_its_waiters => set,
}

/// A future of any type.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

const TASKS: usize = 4;
const ROUNDS: usize = 25;

/// Tasks that take turns, and the sum of their results.
struct Turns {
    tasks: Vec<Boxed<usize>>,
    sum: usize,
}

impl Turns {
    fn new<P, F>(primitive: P, turn: fn(Arc<P>, usize, usize) -> F, sum: usize) -> Self
    where
        P: Send + Sync + 'static,
        F: Future<Output = usize> + Send + 'static,
    {
        let primitive = Arc::new(primitive);
        let task = |task| -> Boxed<usize> {
            let primitive = primitive.clone();
            Box::pin(async move {
                let mut sum = 0;
                for round in 0..ROUNDS {
                    sum += turn(primitive.clone(), task, round).await;
                }
                sum
            })
        };
        Self {
            tasks: (0..TASKS).map(task).collect(),
            sum,
        }
    }
}

fn add_up<E: Executor>(executor: &E, turns: fn() -> Turns) {
    let Turns { tasks, sum } = turns();
    executor.block_on(async {
        let tasks: Vec<_> = tasks.into_iter().map(|it| executor.spawn(it)).collect();
        let mut added = 0;
        for task in tasks {
            added += task.await.unwrap();
        }
        assert_eq!(added, sum);
    });
}

/// Waits; if the first poll is pending, drops the wait and waits again.
async fn second_try<F: Future + Unpin>(wait: impl Fn() -> F) -> F::Output {
    let (polled, given_up) = poll_once(wait()).await;
    drop(given_up);
    match polled {
        Poll::Ready(output) => output,
        Poll::Pending => wait().await,
    }
}

/// Counts a turn. The last turn returns 1 if no turns have overlapped.
fn last(count: &mut usize) -> usize {
    *count += 1;
    usize::from(*count == TASKS * ROUNDS)
}

fn by_notify() -> Turns {
    let (notify, count) = (Notify::new(), AtomicUsize::new(0));
    notify.notify_one();
    let turn = |shared: Arc<(Notify, AtomicUsize)>, _, _| async move {
        second_try(|| shared.0.notified()).await;
        let mut count = shared.1.load(Ordering::Relaxed);
        let last = last(&mut count);
        shared.1.store(count, Ordering::Relaxed);
        shared.0.notify_one();
        last
    };
    Turns::new((notify, count), turn, 1)
}

fn by_mutex() -> Turns {
    let turn = |mutex: Arc<Mutex<_>>, _, _| async move {
        let mut count = second_try(|| mutex.lock()).await;
        last(&mut count)
    };
    Turns::new(Mutex::new(0), turn, 1)
}

fn by_semaphore() -> Turns {
    let turn = |shared: Arc<(Semaphore, AtomicUsize)>, task, _| async move {
        let (semaphore, held) = &*shared;
        let wanted = 1 + task % 2;
        let permits = second_try(|| semaphore.acquire_many(wanted)).await;
        let now = held.fetch_add(wanted, Ordering::Relaxed) + wanted;
        assert!(now <= 2, "{now} of 2 are held");
        held.fetch_sub(wanted, Ordering::Relaxed);
        permits.unwrap().num_permits()
    };
    let shared = (Semaphore::new(2), AtomicUsize::new(0));
    Turns::new(shared, turn, ROUNDS * TASKS * (1 + 2) / 2)
}

fn by_rw_lock() -> Turns {
    let turn = |lock: Arc<RwLock<_>>, task, _| async move {
        let mut count = match task % 2 {
            0 => second_try(|| lock.clone().write_owned()).await,
            _ => {
                let before = *second_try(|| lock.read()).await;
                let looks = lock.clone().upgradable_read_owned().await;
                assert!(*looks >= before);
                OwnedRwLockUpgradableReadGuard::upgrade(looks).await
            }
        };
        last(&mut count)
    };
    Turns::new(RwLock::new(0), turn, 1)
}

fn by_condvar() -> Turns {
    let turn = |shared: Arc<(Mutex<_>, Condvar)>, task, round| async move {
        let (mutex, changed) = &*shared;
        let wait = || {
            Box::pin(async {
                let count = mutex.lock().await;
                let mine = round * TASKS + task;
                changed.wait_while(count, |count| *count != mine).await
            })
        };
        let last = last(&mut *second_try(wait).await);
        changed.notify_all();
        last
    };
    Turns::new((Mutex::new(0), Condvar::new()), turn, 1)
}

fn by_barrier() -> Turns {
    // A wait that was polled is not dropped: the others may have completed with it, and
    // its task would then be one too many in the next round.
    let turn = |barrier: Arc<Barrier>, _, _| async move {
        drop(barrier.wait());
        usize::from(barrier.wait().await.is_leader())
    };
    Turns::new(Barrier::new(TASKS), turn, ROUNDS)
}

fn by_once_cell() -> Turns {
    let turn = |cells: Arc<[OnceCell<usize>; ROUNDS]>, task, round: usize| async move {
        let cell = &cells[round];
        let value = *second_try(|| cell.get_or_init(move || ready(task))).await;
        assert_eq!(cell.wait().await, &value);
        usize::from(value == task)
    };
    Turns::new(Default::default(), turn, ROUNDS)
}

fn by_set_once() -> Turns {
    let turn = |onces: Arc<[SetOnce<usize>; ROUNDS]>, task, round: usize| async move {
        if round % TASKS == task {
            onces[round].set(round).unwrap();
        }
        *second_try(|| onces[round].wait()).await
    };
    let sum = TASKS * (0..ROUNDS).sum::<usize>();
    Turns::new(Default::default(), turn, sum)
}

/// Waits of some kind, and the future that completes one of them.
struct Scene {
    wait: Box<dyn Fn() -> Boxed<()>>,
    open: Boxed<()>,
    /// Whether a wait that is dropped after it was granted passes the grant on.
    hands_on: bool,
}

impl Scene {
    fn new<P, F>(primitive: Arc<P>, wait: fn(Arc<P>) -> F, open: Boxed<()>) -> Self
    where
        P: Send + Sync + 'static,
        F: Future<Output: Send> + Send + 'static,
    {
        Self {
            wait: Box::new(move || {
                let wait = wait(primitive.clone());
                Box::pin(async { drop(wait.await) })
            }),
            open,
            hands_on: true,
        }
    }
}

/// Two tasks wait. The first has ended, and another task drops its future, before or
/// after a third task opens. The wait that is left completes.
fn go_on<E: Executor>(executor: &E, scene: fn() -> Scene) {
    for after in [false, true] {
        let Scene {
            wait,
            open,
            hands_on,
        } = scene();
        if after && !hands_on {
            continue;
        }
        executor.block_on(async {
            let (polled, first) = executor.spawn(poll_once(wait())).await.unwrap();
            assert!(polled.is_pending());
            let (waits, waiting) = oneshot::channel();
            let second = executor.spawn(announced(waits, wait()));
            waiting.await.unwrap();
            let give_up: Boxed<()> = Box::pin(async { drop(first) });
            let steps = if after {
                [open, give_up]
            } else {
                [give_up, open]
            };
            for step in steps {
                executor.spawn(step).await.unwrap();
            }
            second.await.unwrap();
        });
    }
}

fn notified() -> Scene {
    let notify = Arc::new(Notify::new());
    let open = notify.clone();
    let open = Box::pin(async move { open.notify_one() });
    Scene::new(notify, Notify::notified_owned, open)
}

fn locked() -> Scene {
    let mutex = Arc::new(Mutex::with_max_barges(0, 0));
    let guard = mutex.clone().try_lock_owned().unwrap();
    Scene::new(mutex, Mutex::lock_owned, Box::pin(async { drop(guard) }))
}

fn permitted() -> Scene {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.clone().try_acquire_owned();
    let open = Box::pin(async { drop(permit) });
    Scene::new(semaphore, Semaphore::acquire_owned, open)
}

fn read() -> Scene {
    let lock = Arc::new(RwLock::new(0));
    let guard = lock.clone().try_write_owned().unwrap();
    Scene::new(lock, RwLock::read_owned, Box::pin(async { drop(guard) }))
}

fn written() -> Scene {
    let lock = Arc::new(RwLock::new(0));
    let guard = lock.clone().try_read_owned().unwrap();
    Scene::new(lock, RwLock::write_owned, Box::pin(async { drop(guard) }))
}

/// Only one upgradable reader exists at a time, so the second wait has yet to become it.
fn upgraded() -> Scene {
    let lock = Arc::new(RwLock::new(0));
    let guard = lock.clone().try_read_owned().unwrap();
    let wait = |lock: Arc<RwLock<_>>| async {
        let looks = lock.upgradable_read_owned().await;
        OwnedRwLockUpgradableReadGuard::upgrade(looks).await
    };
    Scene::new(lock, wait, Box::pin(async { drop(guard) }))
}

fn notified_by_condvar() -> Scene {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let open = shared.clone();
    let wait = |shared: Arc<(Mutex<_>, Condvar)>| async move {
        let guard = shared.0.lock().await;
        *shared.1.wait(guard).await
    };
    Scene::new(shared, wait, Box::pin(async move { open.1.notify_one() }))
}

fn met() -> Scene {
    let barrier = Arc::new(Barrier::new(3));
    let open = barrier.clone();
    let wait = |barrier: Arc<Barrier>| async move { barrier.wait().await };
    let two_arrive = Box::pin(async move {
        let (polled, early) = poll_once(open.wait()).await;
        assert!(polled.is_pending());
        assert!(poll_once(open.wait()).await.0.is_ready());
        drop(early);
    });
    Scene {
        hands_on: false,
        ..Scene::new(barrier, wait, two_arrive)
    }
}

fn made_in_turn() -> Scene {
    let cell = Arc::new(OnceCell::<u32>::new());
    let making = cell.clone();
    let (fail, fails) = oneshot::channel();
    let mut makes: Boxed<_> = Box::pin(async move {
        let made = making.get_or_try_init(|| fails);
        made.await.is_ok()
    });
    let mut cx = Context::from_waker(Waker::noop());
    assert!(makes.as_mut().poll(&mut cx).is_pending());
    let wait = |cell: Arc<OnceCell<_>>| async move { *cell.get_or_init(|| ready(7)).await };
    let open = Box::pin(async move {
        drop(fail);
        assert!(!makes.await);
    });
    Scene::new(cell, wait, open)
}

fn made() -> Scene {
    let cell = Arc::new(OnceCell::new());
    let open = cell.clone();
    let wait = |cell: Arc<OnceCell<_>>| async move { *cell.wait().await };
    let open = Box::pin(async move { assert_eq!(*open.get_or_init(|| ready(7)).await, 7) });
    Scene::new(cell, wait, open)
}

fn set() -> Scene {
    let once = Arc::new(SetOnce::new());
    let open = once.clone();
    let wait = |once: Arc<SetOnce<_>>| async move { *once.wait().await };
    Scene::new(once, wait, Box::pin(async move { open.set(7).unwrap() }))
}
