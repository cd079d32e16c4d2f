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
    // SAFETY: the data is a raw `Arc<H>`, and the functions of `VTable<H>` keep the
    // contract of `RawWaker`: a clone is one more `Arc`, a wake by value and a drop give
    // one up, and `Hooks` may be called from any thread.
    unsafe { Waker::new(Arc::into_raw(hooks).cast(), VTable::<H>::vtable()) }
}

struct VTable<H>(H);

impl<H: Hooks> VTable<H> {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |waker| {
            let hooks = Self::hooks(waker);
            hooks.cloned();
            RawWaker::new(Arc::into_raw(Arc::clone(&hooks)).cast(), Self::vtable())
        },
        |waker| ManuallyDrop::into_inner(Self::hooks(waker)).woken(),
        |waker| Self::hooks(waker).woken(),
        |waker| ManuallyDrop::into_inner(Self::hooks(waker)).dropped(),
    );

    /// Returns the one vtable. `will_wake` compares its address, and a constant that
    /// two functions name may have two addresses.
    #[inline(never)]
    fn vtable() -> &'static RawWakerVTable {
        &Self::VTABLE
    }

    /// Returns the `Arc` of a waker. The functions of the vtable are the only callers,
    /// and give one up only if they give up the waker.
    fn hooks(waker: *const ()) -> ManuallyDrop<Arc<H>> {
        // SAFETY: a `Waker` calls the functions of its vtable with its own data, which
        // came from `Arc::into_raw` in `hooked` or in a clone. `ManuallyDrop` leaves
        // alone the count that stands for the waker.
        ManuallyDrop::new(unsafe { Arc::from_raw(waker.cast()) })
    }
}
