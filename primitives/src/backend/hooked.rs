//! A waker that reports everything that is done with it.

use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::task::{RawWaker, RawWakerVTable, Waker};

/// What a [`hooked`] waker calls. A waker made from a `Wake` reports wakes, but not
/// clones and drops, which are foreign code too (P4).
///
/// Each method may panic, and may re-enter the primitive that holds the waker.
pub trait Hooks: Send + Sync + 'static {
    /// Called before the waker is cloned.
    fn cloned(&self);

    /// Called when the waker is woken, by value or by reference.
    fn woken(&self);

    /// Called when a clone of the waker is dropped, except by a wake by value.
    fn dropped(&self);
}

/// Creates a waker that calls `hooks`. Two wakers with the same `Arc` wake the same
/// task.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use reveille::backend::{Hooks, hooked};
///
/// #[derive(Default)]
/// struct Clones(AtomicUsize);
///
/// impl Hooks for Clones {
///     fn cloned(&self) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
///     fn woken(&self) {}
///     fn dropped(&self) {}
/// }
///
/// let clones = Arc::new(Clones::default());
/// let waker = hooked(clones.clone());
/// assert!(waker.clone().will_wake(&waker));
/// assert_eq!(clones.0.load(Ordering::Relaxed), 1);
/// ```
pub fn hooked<H: Hooks>(hooks: Arc<H>) -> Waker {
    // SAFETY: the data is a raw `Arc<H>`, and the vtable is that of `H`.
    unsafe { Waker::new(Arc::into_raw(hooks).cast(), VTable::<H>::vtable()) }
}

struct VTable<H>(H);

impl<H: Hooks> VTable<H> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// Returns the one vtable. `will_wake` compares its address, and a constant that
    /// two functions name may have two addresses.
    #[inline(never)]
    fn vtable() -> &'static RawWakerVTable {
        &Self::VTABLE
    }

    /// # Safety
    ///
    /// `data` is that of a waker made by [`hooked`], which outlives the result.
    unsafe fn borrow(data: *const ()) -> ManuallyDrop<Arc<H>> {
        // SAFETY: `data` came from `Arc::into_raw`, and `ManuallyDrop` leaves alone
        // the count that stands for the waker.
        ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: called by a waker, for its data.
        let hooks = unsafe { Self::borrow(data) };
        hooks.cloned();
        RawWaker::new(Arc::into_raw(Arc::clone(&hooks)).cast(), Self::vtable())
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: called by a waker, for its data, which it gives up.
        ManuallyDrop::into_inner(unsafe { Self::borrow(data) }).woken();
    }

    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: called by a waker, for its data.
        unsafe { Self::borrow(data) }.woken();
    }

    unsafe fn drop(data: *const ()) {
        // SAFETY: called by a waker, for its data, which it gives up.
        ManuallyDrop::into_inner(unsafe { Self::borrow(data) }).dropped();
    }
}
