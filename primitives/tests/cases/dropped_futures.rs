//! A future that is dropped leaves none of its wakers anywhere, even if the object
//! that it waited on lives on. The table holds every future of the crate: the sources
//! are searched for futures that it lacks.

use std::collections::BTreeSet;
use std::fs;
use std::future::{Future, pending, ready};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use reveille::backend::Native;
use reveille::singleflight::Group;
use reveille::time::{DelayQueue, VirtualClock};
use reveille::{
    Barrier, CancellationToken, Condvar, Event, Latch, Lazy, Mutex, Notify, OnceCell, OnceMap,
    OwnedRwLockUpgradableReadGuard, Phaser, Pool, RwLock, RwLockUpgradableReadGuard, Semaphore,
    SetOnce, Shutdown, WaitGroup, broadcast, mpmc, mpsc, oneshot, watch,
};

use crate::support::probe::Probe;

const SECOND: Duration = Duration::from_secs(1);

/// Polls a future that is pending, drops it, and counts what it has left. The caller
/// keeps the object until this returns.
fn leaves_nothing(future: impl Future) {
    let task = Probe::new();
    {
        let mut future = pin!(future);
        assert!(future.as_mut().poll(&mut task.cx()).is_pending());
        assert!(task.kept() > 0, "a pending poll leaves its waker");
    }
    assert_eq!((task.kept(), task.wakes()), (0, 0));
}

/// Creates a channel that is full.
fn full_channel() -> (mpsc::Sender<u32>, mpsc::Receiver<u32>) {
    let (tx, rx) = mpsc::channel(1);
    tx.try_send(7).unwrap();
    (tx, rx)
}

/// Each future, by its module of the crate and the name of its type.
const FUTURES: &[(&str, fn())] = &[
    ("semaphore::Acquire", || {
        let semaphore = Arc::new(Semaphore::new(0));
        leaves_nothing(semaphore.acquire());
        leaves_nothing(semaphore.acquire_many(2));
        leaves_nothing(semaphore.clone().acquire_owned());
        leaves_nothing(semaphore.clone().acquire_many_owned(2));
    }),
    ("barrier::BarrierWait", || {
        let barrier = Barrier::new(2);
        leaves_nothing(barrier.wait());
    }),
    ("raw::GateWait", || {
        let (event, latch, group) = (Event::new(), Latch::new(1), WaitGroup::new());
        leaves_nothing(event.wait());
        leaves_nothing(latch.wait());
        leaves_nothing(group.clone().wait());
    }),
    ("lazy::LazyForce", || {
        let lazy = Lazy::new(pending::<u32>);
        let task = Probe::new();
        let mut drives = pin!(lazy.force());
        assert!(drives.as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(lazy.force());
    }),
    ("keyed::Compute", || {
        let map = OnceMap::<_, u32>::new();
        let task = Probe::new();
        let mut computes = pin!(map.get_or_init("a", pending));
        assert!(computes.as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(map.get_or_init("a", || ready(7)));
    }),
    ("keyed::TryCompute", || {
        let group = Group::<_, u32>::new();
        let task = Probe::new();
        let mut computes = pin!(group.work("a", pending));
        assert!(computes.as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(group.try_work("a", || ready(Err::<u32, _>(()))));
    }),
    ("pool::Get", || {
        let pool = Pool::new(1);
        let task = Probe::new();
        let mut creates = pin!(pool.get(pending::<Result<u32, ()>>));
        assert!(creates.as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(pool.get(|| ready(Ok::<_, ()>(7))));
    }),
    ("phaser::ArriveAndWait", || {
        let phaser = Phaser::new();
        let (mut party, _other) = (phaser.register(), phaser.register());
        leaves_nothing(party.arrive_and_wait());
    }),
    ("phaser::PhaserWait", || {
        let phaser = Phaser::new();
        leaves_nothing(phaser.wait(0));
    }),
    ("shutdown::ShutdownWait", || {
        let shutdown = Shutdown::new();
        leaves_nothing(shutdown.wait());
        let _guard = shutdown.guard();
        shutdown.request();
        leaves_nothing(shutdown.wait());
    }),
    ("cancellation_token::WaitForCancellationFuture", || {
        let token = CancellationToken::new();
        leaves_nothing(token.cancelled());
    }),
    ("cancellation_token::WaitForCancellationFutureOwned", || {
        let token = CancellationToken::new();
        leaves_nothing(token.clone().cancelled_owned());
    }),
    ("raw::RunUntilCancelled", || {
        let token = CancellationToken::new();
        leaves_nothing(token.run_until_cancelled(pending::<()>()));
        leaves_nothing(token.clone().run_until_cancelled_owned(pending::<()>()));
    }),
    ("oneshot::Closed", || {
        let (mut tx, rx) = oneshot::channel::<u32>();
        leaves_nothing(tx.closed());
        drop(rx);
    }),
    ("once_cell::GetOrInit", || {
        let cell = OnceCell::<u32>::new();
        let task = Probe::new();
        let mut at_work = pin!(cell.get_or_init(pending));
        assert!(at_work.as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(cell.get_or_init(|| ready(7)));
    }),
    ("once_cell::GetOrTryInit", || {
        let cell = OnceCell::<u32>::new();
        let task = Probe::new();
        let mut at_work = pin!(cell.get_or_init(pending));
        assert!(at_work.as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(cell.get_or_try_init(|| ready(Err::<u32, _>(()))));
    }),
    ("mpmc::Closed", || {
        let (tx, _rx) = mpmc::bounded::<u32>(1);
        leaves_nothing(tx.closed());
    }),
    ("mpmc::Recv", || {
        let (_tx, rx) = mpmc::bounded::<u32>(1);
        leaves_nothing(rx.recv());
        let (_tx, rx) = mpmc::bounded::<u32>(0);
        leaves_nothing(rx.recv());
    }),
    ("mpmc::SendFuture", || {
        let (tx, _rx) = mpmc::bounded(0);
        leaves_nothing(tx.send(8));
    }),
    ("mpsc::Closed", || {
        let (tx, _rx) = mpsc::channel::<u32>(1);
        leaves_nothing(tx.closed());
        let (tx, _rx) = mpsc::unbounded_channel::<u32>();
        leaves_nothing(tx.closed());
    }),
    ("mpsc::Recv", || {
        let (_tx, mut rx) = mpsc::channel::<u32>(1);
        leaves_nothing(rx.recv());
        let (_tx, mut rx) = mpsc::unbounded_channel::<u32>();
        leaves_nothing(rx.recv());
    }),
    ("mpsc::RecvMany", || {
        let (_tx, mut rx) = mpsc::channel::<u32>(1);
        let mut buffer = Vec::new();
        leaves_nothing(rx.recv_many(&mut buffer, 2));
    }),
    ("mpsc::Reserve", || {
        let (tx, _rx) = full_channel();
        leaves_nothing(tx.reserve());
    }),
    ("mpsc::ReserveMany", || {
        let (tx, _rx) = full_channel();
        leaves_nothing(tx.reserve_many(1));
    }),
    ("mpsc::ReserveOwned", || {
        let (tx, _rx) = full_channel();
        leaves_nothing(tx.clone().reserve_owned());
    }),
    ("mpsc::SendFuture", || {
        let (tx, _rx) = full_channel();
        leaves_nothing(tx.send(8));
    }),
    ("mpsc::SendTimeout", || {
        let clock = VirtualClock::by_hand();
        let _current = clock.timers().enter();
        let (tx, _rx) = full_channel();
        leaves_nothing(tx.send_timeout(8, SECOND));
    }),
    ("broadcast::Closed", || {
        let (tx, _rx) = broadcast::channel::<u32>(1);
        leaves_nothing(tx.closed());
    }),
    ("broadcast::Recv", || {
        let (_tx, mut rx) = broadcast::channel::<u32>(1);
        leaves_nothing(rx.recv());
    }),
    ("watch::Changed", || {
        let (_tx, mut rx) = watch::channel(7);
        leaves_nothing(rx.changed());
    }),
    ("watch::Closed", || {
        let (tx, _rx) = watch::channel(7);
        leaves_nothing(tx.closed());
    }),
    ("watch::WaitFor", || {
        let (_tx, mut rx) = watch::channel(7);
        leaves_nothing(rx.wait_for(|value| *value == 8));
    }),
    ("mutex::Lock", || {
        let mutex = Mutex::new(7);
        let _guard = mutex.try_lock().unwrap();
        leaves_nothing(mutex.lock());
    }),
    ("mutex::LockOwned", || {
        let mutex = Arc::new(Mutex::new(7));
        let _guard = mutex.try_lock().unwrap();
        leaves_nothing(mutex.clone().lock_owned());
    }),
    ("time::NextExpired", || {
        let clock = VirtualClock::by_hand();
        let mut queue = DelayQueue::new_in(clock.timers());
        queue.insert(7, SECOND);
        leaves_nothing(queue.expired());
        queue.clear();
        // A waker is kept after `None` too, for the next insertion.
        let task = Probe::new();
        {
            let mut expired = pin!(queue.expired());
            assert!(expired.as_mut().poll(&mut task.cx()).is_ready());
        }
        assert_eq!(task.kept(), 0);
    }),
    ("notify::Notified", || {
        let notify = Notify::new();
        leaves_nothing(notify.notified());
    }),
    ("once_cell::OnceCellWait", || {
        let cell = OnceCell::<u32>::new();
        leaves_nothing(cell.wait());
    }),
    ("notify::OwnedNotified", || {
        let notify = Arc::new(Notify::new());
        leaves_nothing(notify.clone().notified_owned());
    }),
    ("rwlock::Read", || {
        let lock = RwLock::new(7);
        let _guard = lock.try_write().unwrap();
        leaves_nothing(lock.read());
    }),
    ("rwlock::ReadOwned", || {
        let lock = Arc::new(RwLock::new(7));
        let _guard = lock.try_write().unwrap();
        leaves_nothing(lock.clone().read_owned());
    }),
    ("oneshot::Receiver", || {
        let (mut tx, mut rx) = oneshot::channel::<u32>();
        // By reference, the receiver itself waits and keeps the waker.
        let task = Probe::new();
        assert!(pin!(&mut rx).as_mut().poll(&mut task.cx()).is_pending());
        leaves_nothing(tx.closed());
        leaves_nothing(rx);
        assert_eq!(task.kept(), 0);
    }),
    ("set_once::SetOnceWait", || {
        let once = SetOnce::<u32>::new();
        leaves_nothing(once.wait());
    }),
    ("time::Sleep", || {
        let clock = VirtualClock::by_hand();
        leaves_nothing(clock.timers().sleep(SECOND));
    }),
    ("time::Tick", || {
        let clock = VirtualClock::by_hand();
        let mut interval = clock.timers().interval_at(clock.now() + SECOND, SECOND);
        leaves_nothing(interval.tick());
    }),
    ("rwlock::UpgradableRead", || {
        let lock = RwLock::new(7);
        let _guard = lock.try_write().unwrap();
        leaves_nothing(lock.upgradable_read());
    }),
    ("rwlock::UpgradableReadOwned", || {
        let lock = Arc::new(RwLock::new(7));
        let _guard = lock.try_write().unwrap();
        leaves_nothing(lock.clone().upgradable_read_owned());
    }),
    ("raw::Timeout", || {
        let notify = Notify::<Native>::new_in();
        let clock = VirtualClock::by_hand();
        leaves_nothing(clock.timers().timeout(SECOND, notify.notified()));
    }),
    ("rwlock::Upgrade", || {
        let lock = RwLock::new(7);
        let _guard = lock.try_read().unwrap();
        let looks = lock.try_upgradable_read().unwrap();
        leaves_nothing(RwLockUpgradableReadGuard::upgrade(looks));
    }),
    ("rwlock::UpgradeOwned", || {
        let lock = Arc::new(RwLock::new(7));
        let _guard = lock.try_read().unwrap();
        let looks = lock.clone().try_upgradable_read_owned().unwrap();
        leaves_nothing(OwnedRwLockUpgradableReadGuard::upgrade(looks));
    }),
    ("condvar::Wait", || {
        let (mutex, condvar) = (Mutex::new(7), Condvar::new());
        leaves_nothing(condvar.wait(mutex.try_lock().unwrap()));
    }),
    ("notify::WaitUntil", || {
        let notify = Notify::new();
        leaves_nothing(notify.wait_until(|| false));
    }),
    ("condvar::WaitWhile", || {
        let (mutex, condvar) = (Mutex::new(7), Condvar::new());
        leaves_nothing(condvar.wait_while(mutex.try_lock().unwrap(), |_| true));
    }),
    ("rwlock::Write", || {
        let lock = RwLock::new(7);
        let _guard = lock.try_read().unwrap();
        leaves_nothing(lock.write());
    }),
    ("rwlock::WriteOwned", || {
        let lock = Arc::new(RwLock::new(7));
        let _guard = lock.try_read().unwrap();
        leaves_nothing(lock.clone().write_owned());
    }),
];

/// Parts of other futures, which only those poll.
const PARTS: [&str; 1] = ["raw::AcquirePermit"];

#[test]
fn a_dropped_future_leaves_no_waker_in_its_object() {
    for (name, play) in FUTURES {
        println!("{name}");
        play();
    }
}

#[test]
fn the_table_of_dropped_futures_has_every_future_of_the_crate() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap();
        futures_in(&path, module, &mut found);
    }
    let named: BTreeSet<_> = FUTURES.iter().map(|(name, _)| *name).chain(PARTS).collect();
    let found: BTreeSet<_> = found.iter().map(String::as_str).collect();
    assert_eq!(found, named);
}

/// The modules with futures that have no row in the table of waits, each with the reason.
const NO_ROW: [(&str, &str); 5] = [
    (
        "broadcast",
        "several receivers wait for each value: tests/broadcast.rs",
    ),
    (
        "cancellation_token",
        "nothing is passed on: tests/cancellation_token.rs",
    ),
    ("condvar", "its waits are those of `Notify` and `Mutex`"),
    (
        "raw",
        "`Timeout` is in the rows of `time`, and `GateWait` in those of `Event`, `Latch` and \
         `WaitGroup`",
    ),
    (
        "watch",
        "several receivers wait for each version: tests/watch.rs",
    ),
];

#[test]
fn every_module_with_a_future_has_a_row_in_the_table_of_waits() {
    let rows = crate::table::table();
    let modules: BTreeSet<_> = FUTURES
        .iter()
        .filter_map(|(name, _)| Some(name.split_once("::")?.0))
        .collect();
    for module in modules {
        // `set_once` has the rows of `SetOnce`, and `mpsc` those of `mpsc::Receiver`.
        let bare = module.replace('_', "");
        let found = rows.iter().any(|row| {
            let name = row.name.split([':', ' ']).next().unwrap_or_default();
            name.to_lowercase() == bare
        });
        let excused = NO_ROW.iter().any(|&(excused, _)| excused == module);
        assert!(
            !(found && excused),
            "{module} has a row, and needs no excuse"
        );
        assert!(
            found || excused,
            "{module} has a future, and no row in tests/cases/table.rs: add one for each \
             backend, or say in `NO_ROW` why there is none"
        );
    }
}

/// Finds the futures that a file, or the files of a folder, implement or make by
/// `guard_future!`.
fn futures_in(path: &Path, module: &str, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            futures_in(&entry.unwrap().path(), module, found);
        }
        return;
    }
    let source = fs::read_to_string(path).unwrap();
    let implemented = source.split(" Future for ").skip(1);
    let made = source.split("\nguard_future! {").skip(1);
    let made = made.filter_map(|body| body.lines().map(str::trim).find(is_name));
    for name in implemented.chain(made) {
        let end = name.find(|c: char| !c.is_alphanumeric()).unwrap();
        if end > 0 {
            found.insert(format!("{module}::{}", &name[..end]));
        }
    }
}

/// Returns `true` if a line of a macro's input is the name of what it makes.
fn is_name(line: &&str) -> bool {
    line.starts_with(char::is_alphabetic)
}
