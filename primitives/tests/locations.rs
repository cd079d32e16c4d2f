//! What each primitive records with the feature `locations`: where in the source its
//! waiters began to wait, and where its holders acquired it.

#![cfg(all(feature = "locations", not(loom)))]

mod support;

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use reveille::{
    Barrier, Condvar, Event, Latch, Lazy, Mutex, Notify, OnceCell, Phaser, Pool, RwLock,
    RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore, SetOnce, WaitGroup,
};

use support::poll;
use support::probe::Probe;

/// Returns the lines of locations, which are all in this file.
fn lines(places: &[&Location<'_>]) -> Vec<u32> {
    assert!(places.iter().all(|place| place.file() == file!()));
    places.iter().map(|place| place.line()).collect()
}

/// Polls a wait that is pending, asks for the locations, drops it, and asks again.
fn waits<F: Future + Unpin>(
    line: u32,
    mut wait: F,
    waiters: impl Fn() -> Vec<&'static Location<'static>>,
) {
    assert!(poll(&mut wait, &Probe::new()).is_pending());
    assert_eq!(lines(&waiters()), [line]);
    drop(wait);
    assert_eq!(lines(&waiters()), []);
}

#[test]
fn a_wait_is_located_at_its_call() {
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.try_lock().unwrap();
    waits(line!(), mutex.lock(), || mutex.waiters());
    waits(line!(), mutex.clone().lock_owned(), || mutex.waiters());
    drop(guard);

    let lock = Arc::new(RwLock::new(()));
    let guard = lock.try_write().unwrap();
    waits(line!(), lock.read(), || lock.waiters());
    waits(line!(), lock.write(), || lock.waiters());
    waits(line!(), lock.upgradable_read(), || lock.waiters());
    waits(line!(), lock.clone().read_owned(), || lock.waiters());
    waits(line!(), lock.clone().write_owned(), || lock.waiters());
    drop(guard);
    let (_reads, looks) = (lock.try_read(), lock.try_upgradable_read().unwrap());
    let upgrade = RwLockUpgradableReadGuard::upgrade(looks);
    waits(line!() - 1, upgrade, || lock.waiters());

    let semaphore = Arc::new(Semaphore::new(0));
    waits(line!(), semaphore.acquire(), || semaphore.waiters());
    waits(line!(), semaphore.acquire_many(2), || semaphore.waiters());
    waits(line!(), semaphore.acquire_up_to(1, 2), || {
        semaphore.waiters()
    });
    let owned = semaphore.clone().acquire_owned();
    waits(line!() - 1, owned, || semaphore.waiters());

    let notify = Arc::new(Notify::new());
    waits(line!(), notify.notified(), || notify.waiters());
    waits(line!(), notify.clone().notified_owned(), || {
        notify.waiters()
    });
    waits(line!(), notify.wait_until(|| false), || notify.waiters());

    let condvar = Condvar::new();
    let wait = condvar.wait(mutex.try_lock().unwrap());
    waits(line!() - 1, wait, || condvar.waiters());
    let wait = condvar.wait_while(mutex.try_lock().unwrap(), |()| true);
    waits(line!() - 1, wait, || condvar.waiters());

    let barrier = Barrier::new(2);
    waits(line!(), barrier.wait(), || barrier.waiters());
    let event = Arc::new(Event::new());
    waits(line!(), event.wait(), || event.waiters());
    waits(line!(), event.clone().wait_owned(), || event.waiters());
    let latch = Arc::new(Latch::new(1));
    waits(line!(), latch.wait(), || latch.waiters());
    waits(line!(), latch.clone().wait_owned(), || latch.waiters());
    let group = WaitGroup::new();
    waits(line!(), group.clone().wait(), || group.waiters());
    let phaser = Phaser::new();
    let (mut party, _other) = (phaser.register(), phaser.register());
    waits(line!(), party.arrive_and_wait(), || phaser.waiters());
    waits(line!(), phaser.wait(0), || phaser.waiters());
    let once = SetOnce::<()>::new();
    waits(line!(), once.wait(), || once.waiters());
    let cell = OnceCell::<()>::new();
    waits(line!(), cell.wait(), || cell.waiters());
    let mut first = Box::pin(cell.get_or_init(std::future::pending));
    assert!(poll(&mut first, &Probe::new()).is_pending());
    let second = Box::pin(cell.get_or_init(std::future::pending));
    waits(line!() - 1, second, || cell.waiters());
    let lazy = Lazy::new(std::future::pending::<()>);
    let mut first = lazy.force();
    assert!(poll(&mut first, &Probe::new()).is_pending());
    waits(line!(), lazy.force(), || lazy.waiters());
    let pool = Pool::new(1);
    let create = || std::future::pending::<Result<(), ()>>();
    let mut first = pool.get(create);
    assert!(poll(&mut first, &Probe::new()).is_pending());
    waits(line!(), pool.get(create), || pool.waiters());
}

#[test]
fn a_holder_is_where_it_took_what_it_holds() {
    let mutex = Mutex::new((1, 2));
    let guard = mutex.try_lock().unwrap();
    assert_eq!(mutex.holder().map(Location::line), Some(line!() - 1));
    drop(reveille::MutexGuard::map(guard, |pair| &mut pair.0));
    assert_eq!(mutex.holder(), None);
    let guard = mutex.blocking_lock();
    assert_eq!(mutex.holder().map(Location::line), Some(line!() - 1));
    std::mem::forget(guard);
    assert!(mutex.holder().is_some(), "a leaked guard is told of");

    let lock = RwLock::new(());
    let guards = (lock.try_read(), lock.blocking_read());
    assert_eq!(lines(&lock.holders()), [line!() - 1; 2]);
    drop(guards);
    let writes = lock.try_write().unwrap();
    let reads = RwLockWriteGuard::downgrade(writes);
    assert_eq!(lines(&lock.holders()), [line!() - 2], "as it was taken");
    drop(reads);
    assert_eq!(lines(&lock.holders()), []);

    let semaphore = Semaphore::new(3);
    let mut two = semaphore.try_acquire_many(2).unwrap();
    let one = two.split(1).unwrap();
    assert_eq!(lines(&semaphore.holders()), [line!() - 2, line!() - 1]);
    two.merge(one);
    assert_eq!(lines(&semaphore.holders()), [line!() - 4]);
    two.forget();
    assert_eq!(lines(&semaphore.holders()), []);
}

#[test]
fn a_guard_is_located_at_the_call_of_its_future() {
    let (mutex, task) = (Mutex::new(()), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut lock = mutex.lock();
    assert!(poll(&mut lock, &task).is_pending());
    drop(guard);
    let guard = poll(&mut lock, &task);
    assert_eq!(mutex.holder().map(Location::line), Some(line!() - 4));
    drop(guard);
}

#[test]
fn debug_output_names_the_places() {
    let (mutex, task) = (Mutex::new(()), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut lock = mutex.lock();
    assert!(poll(&mut lock, &task).is_pending());
    let (held, waits) = (line!() - 3, line!() - 2);
    let text = format!("{mutex:?}");
    let file = file!();
    assert!(text.contains(&format!("holder: [{file}:{held}:")), "{text}");
    assert!(
        text.contains(&format!("waiters: [{file}:{waits}:")),
        "{text}"
    );
    drop(guard);
}
