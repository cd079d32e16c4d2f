//! What a oneshot allocates: one block a channel, none in a slot, none to wait;
//! and all of it is freed, whichever way the channel ends. And what waiting for
//! time allocates: nothing, once as many have waited at a time.

#![cfg(not(loom))]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::task::Poll;

use reveille::oneshot::{self, Receiver, Sender, Slot};
use reveille::protocol::{Backend, Local, Native, Place, Spin};
use reveille::time::{Advance, DelayQueue, Duration, Instant, VirtualClock};

use support::poll;
use support::probe::Probe;

/// The system's allocator, counting for each thread: the test harness has
/// threads of its own.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

fn count(counter: &'static std::thread::LocalKey<Cell<usize>>) {
    // A thread that ends frees after its counters are gone.
    let _ = counter.try_with(|count| count.set(count.get() + 1));
}

#[allow(unsafe_code, reason = "there is no other way to count allocations")]
// SAFETY: every block comes from `System` and goes back to it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&ALLOCATED);
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(&FREED);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(&ALLOCATED);
        count(&FREED);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How many blocks `f` allocates and frees.
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

fn run<P: Place>(end: End, task: &Probe, mut tx: Sender<u64, P>, mut rx: Receiver<u64, P>) {
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
            // What leaked halves leave is no block either.
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
        sleeps[7].reset(timers.now() + MS * 70);
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
