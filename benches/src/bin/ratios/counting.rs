//! An allocator that counts, so that the table shows a contender's allocations beside its
//! time.

#![allow(
    unsafe_code,
    reason = "an allocator is an unsafe trait; this one adds two sums to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting {
    on: AtomicBool::new(false),
    allocations: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
};

/// The system's allocator. It counts only on demand, and not while contenders are timed.
/// They all pay for the same load and branch.
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
    ALLOCATOR.allocations.store(0, Ordering::Relaxed);
    ALLOCATOR.bytes.store(0, Ordering::Relaxed);
    ALLOCATOR.on.store(true, Ordering::Relaxed);
    f();
    ALLOCATOR.on.store(false, Ordering::Relaxed);
    Allocated {
        allocations: ALLOCATOR.allocations.load(Ordering::Relaxed),
        bytes: ALLOCATOR.bytes.load(Ordering::Relaxed),
    }
}

impl Counting {
    #[inline]
    fn count(&self, size: usize) {
        if self.on.load(Ordering::Relaxed) {
            self.allocations.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(size as u64, Ordering::Relaxed);
        }
    }
}

// SAFETY: all calls go to the system's allocator. Counting accesses three atomics, and
// does not allocate.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: the caller keeps the contract, which is the same for `System`.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
