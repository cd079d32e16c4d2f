//! What `reveille::RwLock` promises: the semantics of `tokio::sync::RwLock`
//! over every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::block_on;
use reveille::rwlock::{Read, ReadOwned, Upgrade, Write};
use reveille::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    readers_read_together,
    a_writer_is_alone,
    a_writer_waits_for_all_readers,
    no_more_read_than_there_may,
    a_reader_does_not_get_past_a_waiting_writer,
    a_recursive_read_behind_a_queued_writer_waits,
    readers_that_wait_in_a_row_read_together,
    a_writer_that_gives_up_admits_the_readers_behind,
    a_grant_that_is_dropped_unseen_goes_on,
    try_refuses_while_a_task_waits,
    a_downgrade_lets_readers_in_and_no_writer,
    there_is_one_upgradable_reader_beside_others,
    an_upgrade_waits_for_the_other_readers_alone,
    an_upgrade_goes_before_all_waiters,
    an_upgrade_that_is_dropped_unlocks,
    an_upgrade_granted_and_dropped_unlocks,
    a_failed_try_upgrade_goes_on_reading,
    beside_an_upgradable_reader_half_may_read,
    one_reader_may_be_an_upgradable_one,
    a_waker_that_panics_costs_no_other_the_lock,
    a_leaked_reader_keeps_writers_out_and_readers_in,
    a_leaked_writer_keeps_all_others_out,
    a_leaked_upgradable_reader_lets_readers_in_alone,
    debug_output_names_what_is_known,
];

fn lock<B: Backend>() -> RwLock<u32, B> {
    RwLock::new_in(0)
}

fn readers_read_together<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let guards = [(); 3].map(|()| poll(&mut lock.read(), &task));
    assert!(guards.iter().all(Poll::is_ready));
    assert_eq!(task.clones(), 0, "no task waited");
}

fn a_writer_is_alone<B: Backend>() {
    let lock = lock::<B>();
    let writes = lock.try_write().expect("it is free");
    assert!(lock.try_read().is_err());
    assert!(lock.try_write().is_err());
    assert!(lock.try_upgradable_read().is_err());
    drop(writes);
    assert!(lock.try_write().is_ok());
}

fn a_writer_waits_for_all_readers<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let (one, two) = (lock.try_read().unwrap(), lock.try_read().unwrap());
    let mut write = lock.write();
    assert!(poll(&mut write, &task).is_pending());
    drop(one);
    assert_eq!(task.wakes(), 0, "one reads still");
    drop(two);
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut write, &task).is_ready());
}

fn no_more_read_than_there_may<B: Backend>() {
    let (lock, task) = (RwLock::<_, B>::with_max_readers_in(0, 2), Probe::new());
    let (one, two) = (lock.try_read().unwrap(), lock.try_read().unwrap());
    let mut third = lock.read();
    assert!(poll(&mut third, &task).is_pending());
    drop(one);
    assert!(poll(&mut third, &task).is_ready());
    drop(two);
    assert!(lock.try_write().is_ok());
}

fn a_reader_does_not_get_past_a_waiting_writer<B: Backend>() {
    let (lock, writer, reader) = (lock::<B>(), Probe::new(), Probe::new());
    let reads = lock.try_read().unwrap();
    let (mut write, mut read) = (lock.write(), lock.read());
    assert!(poll(&mut write, &writer).is_pending());
    assert!(poll(&mut read, &reader).is_pending());
    drop(reads);
    assert_eq!((writer.wakes(), reader.wakes()), (1, 0));
    let Poll::Ready(writes) = poll(&mut write, &writer) else {
        panic!("the lock was handed to the writer")
    };
    assert!(poll(&mut read, &reader).is_pending());
    drop(writes);
    assert_eq!(reader.wakes(), 1);
    assert!(poll(&mut read, &reader).is_ready());
}

fn a_recursive_read_behind_a_queued_writer_waits<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let outer = lock.try_read().unwrap();
    let mut write = lock.write();
    assert!(poll(&mut write, &task).is_pending());
    let mut inner = lock.read();
    assert!(poll(&mut inner, &task).is_pending());
    assert!(lock.try_read().is_err());
    drop(outer);
    assert!(poll(&mut write, &task).is_ready());
    assert!(poll(&mut inner, &task).is_ready());
}

fn readers_that_wait_in_a_row_read_together<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let writes = lock.try_write().unwrap();
    let mut reads: Vec<Read<'_, u32, B>> = (0..100).map(|_| lock.read()).collect();
    for read in &mut reads {
        assert!(poll(read, &task).is_pending());
    }
    let (mut write, writer) = (lock.write(), Probe::new());
    assert!(poll(&mut write, &writer).is_pending());
    drop(writes);
    assert_eq!((task.wakes(), writer.wakes()), (100, 0));
    let guards: Vec<_> = reads.iter_mut().map(|read| poll(read, &task)).collect();
    assert!(guards.iter().all(Poll::is_ready));
    drop(guards);
    assert_eq!(writer.wakes(), 1);
    assert!(poll(&mut write, &writer).is_ready());
}

fn a_writer_that_gives_up_admits_the_readers_behind<B: Backend>() {
    let (lock, writer, reader) = (lock::<B>(), Probe::new(), Probe::new());
    let reads = lock.try_read().unwrap();
    let (mut write, mut read) = (lock.write(), lock.read());
    assert!(poll(&mut write, &writer).is_pending());
    assert!(poll(&mut read, &reader).is_pending());
    drop(write);
    assert_eq!((reader.wakes(), writer.kept()), (1, 0));
    assert!(poll(&mut read, &reader).is_ready());
    drop(reads);
    assert!(lock.try_write().is_ok(), "nothing of the writer is left");
}

fn a_grant_that_is_dropped_unseen_goes_on<B: Backend>() {
    let (lock, writer, reader) = (lock::<B>(), Probe::new(), Probe::new());
    let writes = lock.try_write().unwrap();
    let (mut write, mut read) = (lock.write(), lock.read());
    assert!(poll(&mut write, &writer).is_pending());
    assert!(poll(&mut read, &reader).is_pending());
    drop(writes);
    assert_eq!((lock.granted(), lock.waiting()), (1, 1));
    drop(write);
    assert_eq!((reader.wakes(), lock.granted(), lock.waiting()), (1, 1, 0));
    assert!(poll(&mut read, &reader).is_ready());
}

fn try_refuses_while_a_task_waits<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let reads = lock.try_read().unwrap();
    let mut write = lock.write();
    assert!(poll(&mut write, &task).is_pending());
    for refused in [
        lock.try_read().is_err(),
        lock.try_write().is_err(),
        lock.try_upgradable_read().is_err(),
    ] {
        assert!(refused);
    }
    drop((reads, write));
    assert!(lock.try_read().is_ok());
}

fn a_downgrade_lets_readers_in_and_no_writer<B: Backend>() {
    let (lock, reader, writer) = (lock::<B>(), Probe::new(), Probe::new());
    let mut writes = lock.try_write().unwrap();
    let (mut read, mut write) = (lock.read(), lock.write());
    assert!(poll(&mut read, &reader).is_pending());
    assert!(poll(&mut write, &writer).is_pending());
    *writes = 7;
    let reads = writes.downgrade();
    assert_eq!((reader.wakes(), writer.wakes()), (1, 0));
    let Poll::Ready(other) = poll(&mut read, &reader) else {
        panic!("a reader is let in")
    };
    assert_eq!((*reads, *other), (7, 7));
    drop((reads, other));
    assert!(poll(&mut write, &writer).is_ready());
}

fn there_is_one_upgradable_reader_beside_others<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let reads = lock.try_read().unwrap();
    let looks = lock.try_upgradable_read().unwrap();
    assert!(lock.try_read().is_ok());
    let mut second = lock.upgradable_read();
    assert!(poll(&mut second, &task).is_pending());
    drop(looks);
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut second, &task).is_ready());
    drop(reads);
}

fn upgrading<'a, B: Backend>(lock: &'a RwLock<u32, B>) -> Upgrade<'a, u32, B> {
    RwLockUpgradableReadGuard::upgrade(lock.try_upgradable_read().expect("there is no writer"))
}

fn an_upgrade_waits_for_the_other_readers_alone<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let reads = lock.try_read().unwrap();
    let mut upgrade = upgrading(&lock);
    assert!(poll(&mut upgrade, &task).is_pending());
    assert!(lock.try_read().is_err(), "no reader comes in before it");
    drop(reads);
    assert_eq!(task.wakes(), 1);
    let Poll::Ready(mut writes) = poll(&mut upgrade, &task) else {
        panic!("the other reader has gone")
    };
    *writes += 1;
    drop(writes);
    drop(upgrade);
    assert_eq!(lock.into_inner(), 1);
}

fn an_upgrade_goes_before_all_waiters<B: Backend>() {
    let (lock, upgrader, others) = (lock::<B>(), Probe::new(), Probe::new());
    let reads = lock.try_read().unwrap();
    let looks = lock.try_upgradable_read().unwrap();
    let (mut write, mut read): (Write<'_, _, B>, _) = (lock.write(), lock.read());
    assert!(poll(&mut write, &others).is_pending());
    assert!(poll(&mut read, &others).is_pending());
    let mut upgrade = RwLockUpgradableReadGuard::upgrade(looks);
    assert!(poll(&mut upgrade, &upgrader).is_pending());
    drop(reads);
    assert_eq!((upgrader.wakes(), others.wakes()), (1, 0));
    let Poll::Ready(writes) = poll(&mut upgrade, &upgrader) else {
        panic!("it goes first")
    };
    drop(writes);
    assert!(poll(&mut write, &others).is_ready());
    assert!(poll(&mut read, &others).is_ready());
}

fn an_upgrade_that_is_dropped_unlocks<B: Backend>() {
    let (lock, upgrader, writer) = (lock::<B>(), Probe::new(), Probe::new());
    let reads = lock.try_read().unwrap();
    let mut upgrade = upgrading(&lock);
    assert!(poll(&mut upgrade, &upgrader).is_pending());
    let mut write = lock.write();
    assert!(poll(&mut write, &writer).is_pending());
    drop(upgrade);
    assert_eq!((upgrader.kept(), writer.wakes()), (0, 0));
    drop(reads);
    assert_eq!(writer.wakes(), 1);
    assert!(poll(&mut write, &writer).is_ready());
}

fn an_upgrade_granted_and_dropped_unlocks<B: Backend>() {
    let (lock, upgrader, writer) = (lock::<B>(), Probe::new(), Probe::new());
    let reads = lock.try_read().unwrap();
    let mut upgrade = upgrading(&lock);
    assert!(poll(&mut upgrade, &upgrader).is_pending());
    let mut write = lock.write();
    assert!(poll(&mut write, &writer).is_pending());
    drop(reads);
    assert_eq!((lock.granted(), writer.wakes()), (1, 0));
    drop(upgrade);
    assert_eq!(writer.wakes(), 1);
    assert!(poll(&mut write, &writer).is_ready());
}

fn a_failed_try_upgrade_goes_on_reading<B: Backend>() {
    let lock = lock::<B>();
    let reads = lock.try_read().unwrap();
    let looks = lock.try_upgradable_read().unwrap();
    let Err(looks) = RwLockUpgradableReadGuard::try_upgrade(looks) else {
        panic!("another reads")
    };
    drop(reads);
    assert_eq!(*looks, 0);
    let Ok(writes) = RwLockUpgradableReadGuard::try_upgrade(looks) else {
        panic!("there is no other reader")
    };
    let looks = RwLockWriteGuard::downgrade_to_upgradable(writes);
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    drop(looks);
    assert!(lock.try_write().is_ok());
}

fn beside_an_upgradable_reader_half_may_read<B: Backend>() {
    let lock = RwLock::<_, B>::with_max_readers_in(0, 5);
    let looks = lock.try_upgradable_read().unwrap();
    let reads: Vec<_> = std::iter::from_fn(|| lock.try_read().ok()).collect();
    assert_eq!(reads.len(), 2);
    drop((looks, reads));
    let reads: Vec<_> = std::iter::from_fn(|| lock.try_read().ok()).collect();
    assert_eq!(reads.len(), 5);
}

fn one_reader_may_be_an_upgradable_one<B: Backend>() {
    let (lock, task) = (RwLock::<_, B>::with_max_readers_in(0, 1), Probe::new());
    let looks = lock.try_upgradable_read().unwrap();
    assert!(lock.try_read().is_err());
    let mut upgrade = RwLockUpgradableReadGuard::upgrade(looks);
    assert!(poll(&mut upgrade, &task).is_ready());
    assert!(lock.try_write().is_ok());
}

fn a_waker_that_panics_costs_no_other_the_lock<B: Backend>() {
    let (lock, first, second) = (lock::<B>(), Probe::new(), Probe::new());
    let writes = lock.try_write().unwrap();
    let (mut one, mut two) = (lock.read(), lock.read());
    assert!(poll(&mut one, &first).is_pending());
    assert!(poll(&mut two, &second).is_pending());
    first.panic_on(Event::Wake);
    // It panics while its downgrade wakes, and the guard is dropped with it.
    panic_of(|| drop(writes.downgrade()));
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert!(poll(&mut one, &first).is_ready());
    assert!(poll(&mut two, &second).is_ready());
    drop((one, two));
    assert!(lock.try_write().is_ok());
}

fn a_leaked_reader_keeps_writers_out_and_readers_in<B: Backend>() {
    let lock = lock::<B>();
    std::mem::forget(lock.try_read().unwrap());
    assert!(lock.try_read().is_ok());
    assert!(lock.try_write().is_err());
}

fn a_leaked_writer_keeps_all_others_out<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    std::mem::forget(lock.try_write().unwrap());
    assert!(lock.try_read().is_err() && lock.try_write().is_err());
    assert!(poll(&mut lock.read(), &task).is_pending());
}

fn a_leaked_upgradable_reader_lets_readers_in_alone<B: Backend>() {
    let lock = lock::<B>();
    std::mem::forget(lock.try_upgradable_read().unwrap());
    assert!(lock.try_read().is_ok());
    assert!(lock.try_upgradable_read().is_err() && lock.try_write().is_err());
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (lock, task) = (lock::<B>(), Probe::new());
    let writes = lock.try_write().unwrap();
    let mut read = lock.read();
    assert!(poll(&mut read, &task).is_pending());
    let locked = "RwLock { data: <locked>, waiting: 1, granted: 0 }";
    assert_eq!(format!("{lock:?}"), locked);
    drop(writes);
    let granted = "RwLock { data: 0, waiting: 0, granted: 1 }";
    assert_eq!(format!("{lock:?}"), granted);
}

#[test]
fn guards_narrow_to_a_part() {
    let lock = Arc::new(RwLock::new((1, vec![2])));
    {
        let guard = RwLockReadGuard::map(lock.try_read().unwrap(), |value| &value.1);
        let guard = RwLockReadGuard::try_map(guard, |values| values.first()).unwrap();
        assert_eq!(*guard, 2);
        assert!(lock.try_write().is_err());
    }
    {
        let guard = RwLockWriteGuard::map(lock.try_write().unwrap(), |value| &mut value.1);
        *reveille::RwLockMappedWriteGuard::map(guard, |values| &mut values[0]) = 3;
    }
    {
        let guard = lock.clone().try_write_owned().unwrap();
        let guard = OwnedRwLockWriteGuard::try_downgrade_map(guard, |value| value.1.first());
        let guard = guard.unwrap();
        assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&guard), &lock));
        assert_eq!(*guard, 3);
        assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    }
    let guard = lock.try_write().unwrap();
    let guard = RwLockWriteGuard::try_downgrade_map(guard, |value| value.1.get(7)).unwrap_err();
    assert!(lock.try_read().is_err(), "it still writes");
    drop(guard);
}

#[test]
fn the_value_may_be_unsized_and_not_send() {
    let shared: Arc<RwLock<[u8]>> = Arc::new(RwLock::new([1, 2]));
    assert_eq!(shared.try_read().unwrap().len(), 2);
    shared.clone().try_write_owned().unwrap()[0] = 3;
    assert_eq!(shared.try_read().unwrap()[0], 3);
    let lock = RwLock::new(Rc::new(1));
    assert_eq!(**lock.try_read().unwrap(), 1);
}

#[test]
fn a_lock_for_no_reader_is_refused() {
    let panic = panic_of(|| drop(RwLock::with_max_readers((), 0)));
    assert!(panic.expect("it panics").contains("at least 1"));
    let panic = panic_of(|| drop(RwLock::with_max_readers((), u32::MAX)));
    assert!(panic.expect("it panics").contains("MAX_READS"));
}

#[test]
fn polling_after_the_end_panics_with_the_name() {
    let (lock, task) = (RwLock::new(0), Probe::new());
    let mut read = lock.read();
    drop(poll(&mut read, &task));
    let panic = panic_of(|| drop(poll(&mut read, &task)));
    assert_eq!(
        panic.as_deref(),
        Some("RwLock::read polled after it was ready")
    );
    let looks = lock.try_upgradable_read().unwrap();
    let mut upgrade = RwLockUpgradableReadGuard::upgrade(looks);
    drop(poll(&mut upgrade, &task));
    let panic = panic_of(|| drop(poll(&mut upgrade, &task)));
    assert_eq!(
        panic.as_deref(),
        Some("RwLockUpgradableReadGuard::upgrade polled after it was ready")
    );
}

/// They block the thread, as documented, so the guard must be dropped on another
/// thread.
#[test]
fn blocking_calls_within_an_executor_block_their_thread() {
    let lock = Arc::new(RwLock::new(0));
    let writes = lock.clone().try_write_owned().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while lock.waiting() == 0 {
                thread::yield_now();
            }
            drop(writes);
        });
        reveille_executor::block_on(async {
            assert_eq!(*lock.blocking_read(), 0);
            *lock.blocking_write() += 1;
        });
    });
    assert_eq!(*lock.try_read().unwrap(), 1);
}

#[test]
fn futures_and_guards_are_what_they_should_be() {
    fn send_sync_unpin<T: Send + Sync + Unpin>() {}
    send_sync_unpin::<Read<'_, u32>>();
    send_sync_unpin::<ReadOwned<u32>>();
    send_sync_unpin::<Upgrade<'_, u32>>();
    send_sync_unpin::<RwLockReadGuard<'_, u32>>();
    send_sync_unpin::<RwLockWriteGuard<'_, u32>>();
    send_sync_unpin::<OwnedRwLockReadGuard<u32>>();
    assert!(size_of::<Read<'_, u32>>() <= 5 * size_of::<usize>());
}

#[test]
fn threads_that_read_write_and_upgrade_add_up() {
    const ROUNDS: usize = 200;
    let lock = RwLock::new(0);
    let reads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    *block_on::<Native, _>(lock.write()) += 1;
                    reads.fetch_add(usize::from(*lock.blocking_read() > 0), Ordering::Relaxed);
                }
            });
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let looks = block_on::<Native, _>(lock.upgradable_read());
                    let before = *looks;
                    let mut writes =
                        block_on::<Native, _>(RwLockUpgradableReadGuard::upgrade(looks));
                    assert_eq!(*writes, before, "no task writes in between");
                    *writes += 1;
                    let reads = writes.downgrade();
                    assert_eq!(*reads, before + 1);
                }
            });
        }
    });
    assert_eq!(reads.into_inner(), 2 * ROUNDS);
    assert_eq!(lock.into_inner(), 4 * ROUNDS);
}

/// Guards change into guards of another mode on a thread other than that of the
/// lock's other readers. Programs with values that must stay on one thread are
/// refused: `rustc/refused`.
#[test]
fn guards_change_their_mode_on_another_thread() {
    let lock = RwLock::new(vec![1]);
    for round in 0..100 {
        let mut writes = lock.try_write().expect("the lock is free");
        writes.push(round);
        thread::scope(|scope| {
            let reads = scope.spawn(move || {
                let looks = RwLockWriteGuard::downgrade_to_upgradable(writes);
                looks.len()
            });
            let mut seen = 0;
            while seen == 0 {
                seen = lock.try_read().map_or(0, |values| values.len());
            }
            assert_eq!(reads.join().expect("it reads"), seen);
        });

        let looks = lock
            .try_upgradable_read()
            .expect("there is no other upgradable reader");
        let beside = lock.try_read().expect("beside it");
        thread::scope(|scope| {
            let writes = scope.spawn(move || {
                let upgrade = RwLockUpgradableReadGuard::upgrade(looks);
                let mut values = reveille_executor::block_on(upgrade);
                values.push(round);
                RwLockWriteGuard::downgrade(values).len()
            });
            let before = beside.len();
            drop(beside);
            assert_eq!(writes.join().expect("it writes"), before + 1);
        });
    }
}
