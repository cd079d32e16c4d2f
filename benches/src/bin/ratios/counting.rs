//! An allocator that counts, so that the table shows a contender's allocations beside its
//! time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use self::allocator::{Observed, Observer};

#[path = "../../../../primitives/tests/support/allocator.rs"]
mod allocator;

#[global_allocator]
static ALLOCATOR: Observed<Counting> = Observed(Counting {
    on: AtomicBool::new(false),
    allocations: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
});

/// Counts only on demand, and not while contenders are timed. They all pay for the same
/// load and branch.
struct Counting {
    on: AtomicBool,
    allocations: AtomicU64,
    bytes: AtomicU64,
}

/// The allocations of a run, including those that it freed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocated {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

/// Runs `f`, and counts what the process allocates meanwhile.
pub(crate) fn counted(f: impl FnOnce()) -> Allocated {
    let counting = &ALLOCATOR.0;
    counting.allocations.store(0, Ordering::Relaxed);
    counting.bytes.store(0, Ordering::Relaxed);
    counting.on.store(true, Ordering::Relaxed);
    f();
    counting.on.store(false, Ordering::Relaxed);
    Allocated {
        allocations: counting.allocations.load(Ordering::Relaxed),
        bytes: counting.bytes.load(Ordering::Relaxed),
    }
}

impl Observer for Counting {
    #[inline]
    fn allocates(&self, size: usize) {
        if self.on.load(Ordering::Relaxed) {
            self.allocations.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(size as u64, Ordering::Relaxed);
        }
    }

    #[inline]
    fn frees(&self, _: usize) {}
}
