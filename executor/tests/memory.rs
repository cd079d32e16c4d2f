//! After a spike of tasks, executors give back the memory that they took for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use reveille::Event;
use reveille_executor::{LocalExecutor, ThreadPool};

use self::allocator::{Observed, Observer};

#[path = "../../primitives/tests/support/allocator.rs"]
mod allocator;
mod support;

const TASKS: usize = 100_000;
/// What is kept for the next tasks is less, and so is what a test of the harness takes.
const LEFT: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: Observed<Live> = Observed(Live(AtomicUsize::new(0)));

/// The bytes that are allocated and not freed.
struct Live(AtomicUsize);

impl Live {
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Observer for Live {
    fn allocates(&self, size: usize) {
        self.0.fetch_add(size, Ordering::Relaxed);
    }

    fn frees(&self, size: usize) {
        self.0.fetch_sub(size, Ordering::Relaxed);
    }
}

/// Spawns tasks that wait for the event that is returned.
fn spike(mut spawn: impl FnMut(Arc<Event>)) -> Arc<Event> {
    let event = Arc::new(Event::new());
    (0..TASKS).for_each(|_| spawn(event.clone()));
    assert!(ALLOCATOR.0.bytes() > 10 * LEFT, "the spike is too small");
    event
}

/// One test, because another would allocate beside it.
#[test]
fn a_spike_leaves_no_memory_behind() {
    let executor = LocalExecutor::new();
    let before = ALLOCATOR.0.bytes();
    for _ in 0..2 {
        let event = spike(|event| drop(executor.spawn_local(async move { event.wait().await })));
        executor.run_until_idle();
        // The wakes come from another thread, through the inbox.
        thread::spawn(move || event.set()).join().unwrap();
        executor.run_until_idle();
        let left = ALLOCATOR.0.bytes().saturating_sub(before);
        assert!(left < LEFT, "{left} bytes are left");
    }

    support::in_time(|| {
        let pool = ThreadPool::builder().workers(2).build();
        // One task goes on, as that which accepts connections.
        let goes_on = Arc::new(Event::new());
        let waits = goes_on.clone();
        let task = pool.spawn(async move { waits.wait().await });
        let before = ALLOCATOR.0.bytes();
        for _ in 0..2 {
            let event = spike(|event| drop(pool.spawn(async move { event.wait().await })));
            while pool.handle().metrics().global_queue_depth() > 0 {
                thread::yield_now();
            }
            event.set();
            drop(event);
            // Others come and go.
            while ALLOCATOR.0.bytes() > before + LEFT {
                pool.block_on(pool.spawn(async {})).unwrap();
            }
        }
        goes_on.set();
        pool.block_on(task).unwrap();
    });
}
