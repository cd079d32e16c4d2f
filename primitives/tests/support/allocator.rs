//! The system's allocator, with an observer of every block. The tests of allocations and
//! the benches share it.

use std::alloc::{GlobalAlloc, Layout, System};

/// What is told of blocks. It must not allocate.
pub(crate) trait Observer: Sync {
    /// Called before a block is allocated, or reallocated to this size.
    fn allocates(&self, size: usize);

    /// Called before a block of this size is freed or reallocated.
    fn frees(&self, size: usize);
}

/// An allocator that tells `O` of every block.
pub(crate) struct Observed<O>(pub(crate) O);

// SAFETY: every block comes from `System` and goes back to it, with the layout of the
// caller. An observer is not given the block.
#[allow(unsafe_code, reason = "there is no other way to count allocations")]
unsafe impl<O: Observer> GlobalAlloc for Observed<O> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.allocates(layout.size());
        // SAFETY: the contract of this function is that of `System`.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.0.frees(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.0.frees(layout.size());
        self.0.allocates(size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
