//! What is allocated. A oneshot allocates one block for a channel, none in a slot,
//! and none to wait, and all of it is freed, whichever way the channel ends. A
//! primitive that queues, or that waits for time, allocates nothing before the first
//! wait, and nothing for a wait once there have been as many at the same time.

#![cfg(not(loom))]

#[path = "support/allocator.rs"]
mod allocator;
mod support;

use std::cell::Cell;
use std::future::{pending, ready};
use std::hash::RandomState;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::oneshot::{self, Receiver, Sender, Slot};
use reveille::protocol::WakeList;
use reveille::raw::Storage;
use reveille::singleflight::Group;
use reveille::time::{Advance, DelayQueue, Duration, Instant, VirtualClock};
use reveille::{
    Barrier, Condvar, Event, Latch, Mutex, Notify, OnceCell, OnceMap, Phaser, Pool, RwLock,
    RwLockUpgradableReadGuard, Semaphore, SetOnce, mpmc, mpsc,
};

use allocator::{Observed, Observer};
use support::poll;
use support::probe::Probe;

/// Counts the allocations of each thread, since the test harness has threads of its
/// own.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
    /// Bytes allocated and not freed.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

fn count(counter: &'static std::thread::LocalKey<Cell<usize>>) {
    // A thread that ends frees memory after its counters are gone.
    let _ = counter.try_with(|count| count.set(count.get() + 1));
}

fn hold(size: usize, freed: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_add(size).wrapping_sub(freed)));
}

/// Returns how many more bytes are held than `before`. The count of a thread may be below
/// zero, and wraps: the harness has a test free what another thread allocated.
fn held_since(before: usize) -> usize {
    HELD.get().wrapping_sub(before)
}

impl Observer for Counting {
    fn allocates(&self, size: usize) {
        count(&ALLOCATED);
        hold(size, 0);
    }

    fn frees(&self, size: usize) {
        count(&FREED);
        hold(0, size);
    }
}

#[global_allocator]
static COUNTING: Observed<Counting> = Observed(Counting);

/// Returns how many blocks `f` allocates and frees.
fn counted<R>(f: impl FnOnce() -> R) -> (R, usize, usize) {
    let (allocated, freed) = (ALLOCATED.get(), FREED.get());
    let result = f();
    (result, ALLOCATED.get() - allocated, FREED.get() - freed)
}

/// The ways a channel ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Received,
    ReceivedAfterWaiting,
    DroppedWithTheValue,
    SenderFirst,
    ReceiverFirst,
    Refused,
    ClosedWhileBothWait,
}

const ENDS: [End; 7] = [
    End::Received,
    End::ReceivedAfterWaiting,
    End::DroppedWithTheValue,
    End::SenderFirst,
    End::ReceiverFirst,
    End::Refused,
    End::ClosedWhileBothWait,
];

fn run<P: Storage>(end: End, task: &Probe, mut tx: Sender<u64, P>, mut rx: Receiver<u64, P>) {
    match end {
        End::Received => {
            tx.send(7).unwrap();
            assert_eq!(rx.try_recv(), Ok(7));
        }
        End::ReceivedAfterWaiting => {
            assert_eq!(poll(&mut rx, task), Poll::Pending);
            tx.send(7).unwrap();
            assert_eq!(poll(&mut rx, task), Poll::Ready(Ok(7)));
        }
        End::DroppedWithTheValue => {
            tx.send(7).unwrap();
            drop(rx);
        }
        End::SenderFirst => {
            drop(tx);
            drop(rx);
        }
        End::ReceiverFirst => {
            drop(rx);
            drop(tx);
        }
        End::Refused => {
            drop(rx);
            assert_eq!(tx.send(7), Err(7));
        }
        End::ClosedWhileBothWait => {
            assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Pending);
            assert_eq!(poll(&mut rx, task), Poll::Pending);
            rx.close();
            assert_eq!(tx.poll_closed(&mut task.cx()), Poll::Ready(()));
            assert!(poll(&mut rx, task).is_ready());
        }
    }
}

fn a_channel_is_one_block<B: Backend>() {
    let task = Probe::new();
    for end in ENDS {
        let ((tx, rx), allocated, freed) = counted(oneshot::channel_in::<u64, B>);
        assert_eq!((allocated, freed), (1, 0), "{end:?}");
        let ((), allocated, freed) = counted(|| run(end, &task, tx, rx));
        assert_eq!((allocated, freed), (0, 1), "{end:?}");
    }
}

fn a_slot_is_no_block<B: Backend>() {
    let task = Probe::new();
    let ((), allocated, freed) = counted(|| {
        let mut slot = Slot::<u64, B>::new_in();
        for end in ENDS {
            let (tx, rx) = slot.split();
            run(end, &task, tx, rx);
            // What leaked halves leave is not a block either.
            std::mem::forget(slot.split());
        }
    });
    assert_eq!((allocated, freed), (0, 0));
}

#[test]
fn the_allocator_counts() {
    let (block, allocated, freed) = counted(|| Box::new(7));
    assert_eq!((allocated, freed), (1, 0));
    let ((), allocated, freed) = counted(|| drop(block));
    assert_eq!((allocated, freed), (0, 1));
}

#[test]
fn a_channel_is_one_block_on_each_backend() {
    a_channel_is_one_block::<Native>();
    a_channel_is_one_block::<Spin>();
    a_channel_is_one_block::<Local>();
}

#[test]
fn a_slot_is_no_block_on_each_backend() {
    a_slot_is_no_block::<Native>();
    a_slot_is_no_block::<Spin>();
    a_slot_is_no_block::<Local>();
}

/// The number of waits at a time. It takes more than one section to wake them all.
const WAITS: usize = WakeList::CAPACITY + 8;

/// Polls `WAITS` futures, which are all pending.
fn wait<F: Future + Unpin>(task: &Probe, mut future: impl FnMut() -> F) -> [F; WAITS] {
    std::array::from_fn(|_| {
        let mut future = future();
        assert!(poll(&mut future, task).is_pending());
        future
    })
}

/// Polls all futures, in order. Each is ready.
fn end<F: Future + Unpin>(task: &Probe, waits: [F; WAITS]) {
    for mut future in waits {
        assert!(poll(&mut future, task).is_ready());
    }
}

/// Checks that nothing is allocated without a wait, nor by waits that are not the
/// first.
fn allocates_once(what: &str, mut alone: impl FnMut(), mut waits: impl FnMut()) {
    let nothing = ((), 0, 0);
    assert_eq!(counted(&mut alone), nothing, "{what}, without a wait");
    let ((), allocated, _) = counted(&mut waits);
    assert!(allocated > 0, "{what}: there has to be a queue");
    assert_eq!(counted(&mut waits), nothing, "{what}, once warm");
    assert_eq!(counted(&mut alone), nothing, "{what}, afterwards");
}

fn notify<B: Backend>(task: &Probe) {
    let notify = Arc::new(Notify::<B>::new_in());
    allocates_once(
        "Notify",
        || {
            notify.notify_waiters();
            notify.notify_one();
            assert!(poll(&mut notify.notified(), task).is_ready());
        },
        || {
            let waits = wait(task, || notify.notified());
            notify.notify_waiters();
            end(task, waits);
            let waits = wait(task, || notify.clone().notified_owned());
            (0..WAITS).for_each(|_| notify.notify_one());
            end(task, waits);
            drop(wait(task, || notify.wait_until(|| false)));
        },
    );
}

fn mutex<B: Backend>(task: &Probe) {
    let mutex = Arc::new(Mutex::<_, B>::with_max_barges_in(0, 0));
    allocates_once(
        "Mutex",
        || {
            assert!(poll(&mut mutex.lock(), task).is_ready());
            assert!(poll(&mut mutex.clone().lock_owned(), task).is_ready());
            assert!(mutex.try_lock().is_ok());
        },
        || {
            let guard = mutex.try_lock().unwrap();
            let waits = wait(task, || mutex.lock());
            drop(guard);
            end(task, waits);
            let _guard = mutex.try_lock().unwrap();
            drop(wait(task, || mutex.clone().lock_owned()));
        },
    );
}

fn semaphore<B: Backend>(task: &Probe) {
    let semaphore = Arc::new(Semaphore::<B>::with_max_barges_in(WAITS, 0));
    allocates_once(
        "Semaphore",
        || {
            assert!(poll(&mut semaphore.acquire_many(2), task).is_ready());
            assert!(poll(&mut semaphore.clone().acquire_owned(), task).is_ready());
            assert!(semaphore.try_acquire().is_ok());
        },
        || {
            let permits = semaphore.try_acquire_many(WAITS).unwrap();
            let waits = wait(task, || semaphore.acquire());
            drop(permits);
            end(task, waits);
            let _permits = semaphore.try_acquire_many(WAITS).unwrap();
            drop(wait(task, || semaphore.clone().acquire_many_owned(2)));
        },
    );
}

fn rw_lock<B: Backend>(task: &Probe) {
    let lock = Arc::new(RwLock::<_, B>::with_max_readers_in(0, 2 * WAITS as u32));
    allocates_once(
        "RwLock",
        || {
            assert!(poll(&mut lock.read(), task).is_ready());
            assert!(poll(&mut lock.clone().write_owned(), task).is_ready());
            let looks = lock.try_upgradable_read().unwrap();
            let mut upgrade = RwLockUpgradableReadGuard::upgrade(looks);
            assert!(poll(&mut upgrade, task).is_ready());
        },
        || {
            let writes = lock.try_write().unwrap();
            let waits = wait(task, || lock.read());
            drop(writes);
            end(task, waits);
            let _reads = lock.try_read().unwrap();
            drop(wait(task, || lock.clone().write_owned()));
        },
    );
}

fn condvar<B: Backend>(task: &Probe) {
    let (mutex, condvar) = (
        Mutex::<_, B>::with_max_barges_in(0, 0),
        Condvar::<B>::new_in(),
    );
    allocates_once(
        "Condvar",
        || {
            condvar.notify_one();
            condvar.notify_all();
        },
        || {
            let waits = wait(task, || condvar.wait(mutex.try_lock().unwrap()));
            condvar.notify_all();
            end(task, waits);
            drop(wait(task, || {
                condvar.wait_while(mutex.try_lock().unwrap(), |_| true)
            }));
        },
    );
}

fn barrier<B: Backend>(task: &Probe) {
    let (alone, barrier) = (Barrier::<B>::new_in(1), Barrier::<B>::new_in(WAITS + 1));
    allocates_once(
        "Barrier",
        || assert!(poll(&mut alone.wait(), task).is_ready()),
        || {
            let waits = wait(task, || barrier.wait());
            assert!(poll(&mut barrier.wait(), task).is_ready());
            end(task, waits);
        },
    );
}

fn set_once<B: Backend>(task: &Probe) {
    let (set, unset) = (SetOnce::<_, B>::new_in(), SetOnce::<u32, B>::new_in());
    set.set(7).unwrap();
    allocates_once(
        "SetOnce",
        || assert!(poll(&mut set.wait(), task).is_ready()),
        || drop(wait(task, || unset.wait())),
    );
    let waits = wait(task, || unset.wait());
    assert_eq!(counted(|| unset.set(7).unwrap()), ((), 0, 0));
    end(task, waits);
}

/// The initializer is not counted: it goes to the heap when it starts.
fn once_cell<B: Backend>(task: &Probe) {
    let (set, unset) = (OnceCell::<_, B>::new_in(), OnceCell::<u32, B>::new_in());
    set.set(7).unwrap();
    let mut makes = unset.get_or_init(pending);
    assert!(poll(&mut makes, task).is_pending());
    allocates_once(
        "OnceCell",
        || {
            assert!(poll(&mut set.wait(), task).is_ready());
            assert!(poll(&mut set.get_or_init(|| ready(8)), task).is_ready());
        },
        || {
            drop(wait(task, || unset.wait()));
            drop(wait(task, || unset.get_or_init(|| ready(8))));
        },
    );
}

fn what_queues<B: Backend>() {
    let task = Probe::new();
    for primitive in [
        notify::<B>,
        mutex::<B>,
        semaphore::<B>,
        rw_lock::<B>,
        condvar::<B>,
        barrier::<B>,
        set_once::<B>,
        once_cell::<B>,
    ] {
        primitive(&task);
    }
}

#[test]
fn what_queues_allocates_for_the_first_waits_alone() {
    what_queues::<Native>();
    what_queues::<Spin>();
    what_queues::<Local>();
}

#[test]
fn what_is_free_is_had_without_a_block_by_blocking_calls_too() {
    let mutex = Arc::new(Mutex::new(7));
    let lock = RwLock::new(7);
    let semaphore = Arc::new(Semaphore::new(4));
    let free = counted(|| {
        drop(mutex.blocking_lock());
        drop(mutex.clone().blocking_lock_owned());
        drop(lock.blocking_read());
        drop(lock.blocking_write());
        drop(semaphore.blocking_acquire());
        drop(semaphore.blocking_acquire_many(2));
        drop(semaphore.clone().blocking_acquire_owned());
        drop(semaphore.clone().blocking_acquire_many_owned(2));
    });
    assert_eq!(free, ((), 0, 0));
}

fn waiting_for_time_is_no_block<B: Backend>() {
    const MS: Duration = Duration::from_millis(1);
    let task = Probe::new();
    let nanosecond = Duration::from_nanos(1);
    let clock = VirtualClock::<B>::new_in(Instant::ORIGIN, Advance::ByHand, nanosecond);
    let timers = clock.timers();
    let mut interval = timers.interval(MS);
    let mut queue = DelayQueue::new_in(timers);
    let mut round = || {
        let mut sleeps: [_; 100] = std::array::from_fn(|ms| timers.sleep(MS * (ms as u32 + 1)));
        for sleep in &mut sleeps {
            assert_eq!(poll(sleep, &task), Poll::Pending);
        }
        let mut late = timers.timeout(MS, std::future::pending::<()>());
        assert!(poll(&mut late, &task).is_pending());
        while poll(&mut interval.tick(), &task).is_ready() {}
        for ms in 0..100 {
            queue.insert(ms, MS * ms);
        }
        let key = queue.insert(100, MS);
        queue.reset(&key, MS * 2);
        queue.remove(&key);
        Pin::new(&mut sleeps[7]).reset(timers.now() + MS * 70);
        clock.advance(MS * 50);
        assert!(poll(&mut late, &task).is_ready());
        while poll(&mut queue.expired(), &task).is_ready() {}
        clock.advance(MS * 50);
        while !queue.is_empty() {
            assert!(poll(&mut queue.expired(), &task).is_ready());
        }
        assert_eq!(poll(&mut sleeps[99], &task), Poll::Ready(()));
    };
    round();
    let ((), allocated, freed) = counted(|| (0..10).for_each(|_| round()));
    assert_eq!((allocated, freed), (0, 0));
}

#[test]
fn waiting_for_time_is_no_block_on_each_backend() {
    waiting_for_time_is_no_block::<Native>();
    waiting_for_time_is_no_block::<Spin>();
    waiting_for_time_is_no_block::<Local>();
}

/// The number of waits in a spike.
const SPIKE: usize = 100_000;

/// Checks what a spike of waits leaves in memory, and what a third spike allocates
/// after a second.
fn spike(what: &str, mut waits: impl FnMut()) {
    waits_once_and_again(&mut waits, |held, blocks| {
        assert!(held < 20_000, "{what}: {held} bytes are left after a spike");
        assert_eq!(
            blocks, 0,
            "{what}: the same spike again and again allocates"
        );
    });
}

fn waits_once_and_again(waits: &mut impl FnMut(), check: impl FnOnce(usize, usize)) {
    let before = HELD.get();
    waits();
    let held = held_since(before);
    waits();
    let ((), blocks, _) = counted(waits);
    check(held, blocks);
}

/// Polls `SPIKE` futures, without a block of its own each time.
fn crowd<F: Future + Unpin>(task: &Probe, into: &mut Vec<F>, mut future: impl FnMut() -> F) {
    for _ in 0..SPIKE {
        let mut future = future();
        assert!(poll(&mut future, task).is_pending());
        into.push(future);
    }
}

fn a_spike_is_given_back<B: Backend>() {
    let task = Probe::new();
    let notify = Notify::<B>::new_in();
    let mut notified = Vec::with_capacity(SPIKE);
    spike("Notify", || {
        crowd(&task, &mut notified, || notify.notified());
        notify.notify_waiters();
        notified.clear();
    });
    let event = Event::<B>::new_in();
    let mut events = Vec::with_capacity(SPIKE);
    spike("Event", || {
        crowd(&task, &mut events, || event.wait());
        event.set();
        events.clear();
        event.reset();
    });
    let latch = Latch::<B>::new_in(1);
    let mut latched = Vec::with_capacity(SPIKE);
    spike("Latch", || {
        crowd(&task, &mut latched, || latch.wait());
        latched.clear();
    });
    let phaser = Phaser::<B>::new_in();
    let mut phases = Vec::with_capacity(SPIKE);
    spike("Phaser", || {
        let party = phaser.register();
        crowd(&task, &mut phases, || phaser.wait(phaser.phase()));
        drop(party);
        phases.clear();
    });
    let pool = Pool::<_, _, B>::with_check_in(1, |_: &mut u8| true);
    let mut gets = Vec::with_capacity(SPIKE);
    spike("Pool", || {
        let create = || ready(Ok::<_, ()>(0));
        let Poll::Ready(Ok(object)) = poll(&mut pool.get(create), &task) else {
            panic!("the object is there, or a place for it");
        };
        crowd(&task, &mut gets, || pool.get(create));
        drop(object);
        gets.drain(..SPIKE / 2);
        while gets.pop().is_some() {}
    });
    let mutex = Mutex::<_, B>::with_max_barges_in(0, 0);
    let mut locks = Vec::with_capacity(SPIKE);
    spike("Mutex", || {
        let guard = mutex.try_lock().unwrap();
        crowd(&task, &mut locks, || mutex.lock());
        drop(guard);
        // Each is granted in turn and passes the grant on. The last come first.
        locks.drain(..SPIKE / 2);
        while locks.pop().is_some() {}
    });
    let semaphore = Semaphore::<B>::with_max_barges_in(0, 0);
    let mut permits = Vec::with_capacity(SPIKE);
    spike("Semaphore", || {
        crowd(&task, &mut permits, || semaphore.acquire());
        permits.clear();
    });
    let clock =
        VirtualClock::<B>::new_in(Instant::ORIGIN, Advance::ByHand, Duration::from_nanos(1));
    let timers = clock.timers();
    let mut sleeps = Vec::with_capacity(SPIKE);
    // The slots of the wheel are allocated here, and stay.
    assert!(poll(&mut timers.sleep(Duration::from_nanos(1)), &task).is_pending());
    spike("Timers", || {
        let mut ahead = 0;
        crowd(&task, &mut sleeps, || {
            ahead += 1;
            timers.sleep(Duration::from_nanos(ahead % 1000 + 1))
        });
        clock.advance(Duration::from_nanos(500));
        sleeps.clear();
    });
    let mut queue = DelayQueue::new_in(timers);
    queue.insert(0, Duration::ZERO);
    assert!(poll(&mut queue.expired(), &task).is_ready());
    spike("DelayQueue", || {
        for ahead in 0..SPIKE as u64 {
            queue.insert(ahead, Duration::from_nanos(ahead % 1000));
        }
        clock.advance(Duration::from_nanos(1000));
        for _ in 0..SPIKE {
            assert!(poll(&mut queue.expired(), &task).is_ready());
        }
    });
}

#[test]
fn a_spike_is_given_back_and_a_load_that_comes_again_allocates_nothing() {
    a_spike_is_given_back::<Native>();
    a_spike_is_given_back::<Local>();
}

fn a_million_keys_leave_nothing<B: Backend>() {
    let (task, before) = (Probe::new(), HELD.get());
    let map = OnceMap::<u32, u32, _, B>::with_hasher_in(RandomState::new());
    for key in 0..1_000_000 {
        let mut call = map.get_or_init(key, || ready(key));
        assert!(poll(&mut call, &task).is_ready());
    }
    assert!(held_since(before) > 16_000_000, "the keys are there");
    for key in 0..1_000_000 {
        assert_eq!(map.remove(&key), Some(key));
    }
    let held = held_since(before);
    assert!(held < 2_000, "OnceMap: {held} bytes are left");
    // Calls that are given up leave nothing either.
    let group = Group::<u32, u32, _, B>::with_hasher_in(RandomState::new());
    let mut calls = Vec::with_capacity(SPIKE);
    let before = HELD.get();
    let mut key = 0;
    crowd(&task, &mut calls, || {
        key += 1;
        group.work(key / 2, pending)
    });
    calls.clear();
    let held = held_since(before);
    assert!(held < 2_000, "Group: {held} bytes are left");
}

#[test]
fn a_map_and_a_group_give_back_the_memory_of_their_keys() {
    a_million_keys_leave_nothing::<Native>();
    a_million_keys_leave_nothing::<Local>();
}

/// Returns how many bytes a channel holds after `messages` have been sent and received.
macro_rules! held_after {
    ($messages:expr, $channel:expr, $receive:ident) => {{
        let before = HELD.get();
        #[allow(unused_mut, reason = "some receivers are shared")]
        let (tx, mut rx) = $channel;
        // The first message makes the room that an idle channel keeps.
        for messages in [1, $messages] {
            for message in 0..messages {
                tx.try_send_any(message);
            }
            for message in 0..messages {
                assert_eq!(rx.$receive().ok(), Some(message));
            }
        }
        held_since(before)
    }};
}

/// Sends on any channel.
trait TrySendAny {
    fn try_send_any(&self, message: u64);
}

impl TrySendAny for mpsc::Sender<u64> {
    fn try_send_any(&self, message: u64) {
        self.try_send(message).unwrap();
    }
}

impl TrySendAny for mpsc::UnboundedSender<u64> {
    fn try_send_any(&self, message: u64) {
        self.send(message).unwrap();
    }
}

impl TrySendAny for mpmc::Sender<u64> {
    fn try_send_any(&self, message: u64) {
        self.try_send(message).unwrap();
    }
}

/// What is left beyond an empty channel is the room that each buffer keeps: two of 1 KiB.
#[test]
fn a_million_messages_leave_what_an_empty_channel_holds() {
    const MILLION: u64 = 1_000_000;
    let kept = 2 * 1024;
    let bound = usize::try_from(MILLION).unwrap();
    for (name, empty, spike) in [
        (
            "mpsc",
            held_after!(0, mpsc::channel(bound), try_recv),
            held_after!(MILLION, mpsc::channel(bound), try_recv),
        ),
        (
            "mpsc, unbounded",
            held_after!(0, mpsc::unbounded_channel(), try_recv),
            held_after!(MILLION, mpsc::unbounded_channel(), try_recv),
        ),
        (
            "mpmc",
            held_after!(0, mpmc::bounded(bound), try_recv),
            held_after!(MILLION, mpmc::bounded(bound), try_recv),
        ),
        (
            "mpmc, unbounded",
            held_after!(0, mpmc::unbounded(), try_recv),
            held_after!(MILLION, mpmc::unbounded(), try_recv),
        ),
    ] {
        println!("{name}: {empty} bytes empty, {spike} after a spike");
        assert!(empty < 1024, "{name}: {empty} bytes");
        assert!(spike <= empty + kept, "{name}: {spike} bytes, not {empty}");
    }
}
