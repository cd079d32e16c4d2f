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

use reveille::singleflight::Group;
use reveille::{
    Barrier, Condvar, Event, Latch, Lazy, Mutex, Notify, OnceCell, OnceMap,
    OwnedRwLockUpgradableReadGuard, Phaser, Pool, RwLock, Semaphore, SetOnce, Shutdown, WaitGroup,
    oneshot,
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
    turns_by_once_map_add_up => by_once_map,
    turns_by_lazy_add_up => by_lazy,
    turns_by_pool_add_up => by_pool,
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
    an_event_reaches_its_waiters => event_set,
    a_latch_opens_for_its_waiters => counted_down,
    the_last_member_releases_the_waiters => left,
    the_end_of_a_phase_reaches_its_waiters => arrived,
    the_end_of_a_shutdown_reaches_its_waiters => stopped,
    a_lazy_value_is_resumed => resumed,
    a_computation_for_a_key_is_taken_over => computed,
    a_shared_flight_is_taken_over => shared,
    an_object_is_handed_over => given_back,
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

fn by_once_map() -> Turns {
    let turn = |map: Arc<OnceMap<usize, usize>>, task, round: usize| async move {
        let value = second_try(|| map.get_or_init(round, move || ready(task))).await;
        assert_eq!(map.get(&round), Some(value));
        usize::from(value == task)
    };
    Turns::new(OnceMap::new(), turn, ROUNDS)
}

fn by_lazy() -> Turns {
    type Rounds =
        [Lazy<usize, std::future::Ready<usize>, fn() -> std::future::Ready<usize>>; ROUNDS];
    let turn = |lazies: Arc<Rounds>, _, round: usize| async move {
        *second_try(|| lazies[round].force()).await
    };
    let lazies: Rounds = std::array::from_fn(|_| Lazy::new((|| ready(1)) as fn() -> _));
    Turns::new(lazies, turn, TASKS * ROUNDS)
}

fn by_pool() -> Turns {
    let turn = |pool: Arc<Pool<usize>>, _, _| async move {
        let get = || pool.get(|| ready(Ok::<_, ()>(0)));
        last(&mut second_try(get).await.unwrap())
    };
    Turns::new(Pool::new(1), turn, 1)
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

fn event_set() -> Scene {
    let event = Arc::new(Event::new());
    let open = event.clone();
    Scene::new(
        event,
        Event::wait_owned,
        Box::pin(async move { open.set() }),
    )
}

fn counted_down() -> Scene {
    let latch = Arc::new(Latch::new(1));
    let open = latch.clone();
    let open = Box::pin(async move { open.count_down() });
    Scene::new(latch, Latch::wait_owned, open)
}

fn left() -> Scene {
    let group = WaitGroup::new();
    let member = group.clone();
    let wait =
        |wait: Arc<reveille::wait_group::WaitGroupWait>| async move { (*wait).clone().await };
    Scene::new(
        Arc::new(group.wait()),
        wait,
        Box::pin(async { drop(member) }),
    )
}

fn arrived() -> Scene {
    let phaser = Phaser::new();
    let party = phaser.register();
    let wait = |phaser: Arc<Phaser>| async move { phaser.wait(0).await };
    Scene::new(Arc::new(phaser), wait, Box::pin(async { drop(party) }))
}

fn stopped() -> Scene {
    let shutdown = Shutdown::new();
    let (guard, requests) = (shutdown.guard(), shutdown.clone());
    let open = Box::pin(async move {
        requests.request();
        drop(guard);
    });
    let wait = |shutdown: Arc<Shutdown>| async move { shutdown.wait().await };
    Scene::new(Arc::new(shutdown), wait, open)
}

fn resumed() -> Scene {
    let event = Arc::new(Event::new());
    let open = event.clone();
    let lazy = Lazy::new(move || -> Boxed<()> { Box::pin(event.wait_owned()) });
    let wait = |lazy: Arc<Lazy<_, _, _>>| async move { *lazy.force().await };
    Scene::new(Arc::new(lazy), wait, Box::pin(async move { open.set() }))
}

fn computed() -> Scene {
    let scene = Arc::new((OnceMap::<u8, u8>::new(), Event::new()));
    let open = scene.clone();
    let wait = |scene: Arc<(OnceMap<u8, u8>, Event)>| async move {
        let (map, event) = &*scene;
        let compute = || async {
            event.wait().await;
            7
        };
        map.get_or_init(0, compute).await
    };
    Scene::new(scene, wait, Box::pin(async move { open.1.set() }))
}

fn shared() -> Scene {
    let scene = Arc::new((Group::<u8, u8>::new(), Event::new()));
    let open = scene.clone();
    let wait = |scene: Arc<(Group<u8, u8>, Event)>| async move {
        let (group, event) = &*scene;
        let compute = || async {
            event.wait().await;
            7
        };
        group.work(0, compute).await
    };
    Scene::new(scene, wait, Box::pin(async move { open.1.set() }))
}

fn given_back() -> Scene {
    let create = || ready(Ok::<_, ()>(0));
    let pool = Arc::new(Pool::<u8>::new(1));
    let Poll::Ready(object) =
        Pin::new(&mut pool.clone().get_owned(create)).poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("there is a place");
    };
    let wait = |pool: Arc<Pool<u8>>| pool.get_owned(|| ready(Ok::<_, ()>(0)));
    Scene::new(pool, wait, Box::pin(async { drop(object) }))
}
