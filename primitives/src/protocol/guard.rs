//! A value under permits, and the guards that hand it out.
//!
//! This is the one place where a primitive gives out `&mut T`. A guard is made
//! here, of permits that were taken here, and gives them back when it is
//! dropped; so whoever uses guards needs no unsafe code.
//!
//! Invariant: an exclusive guard holds every permit of its value, a shared one
//! holds one. So there is one exclusive guard, or there are shared ones.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::{Acquiring, Backend, Permits, SharedBackend, Witness};

/// A value that is reached only through guards.
pub struct Guarded<T: ?Sized, B: Backend> {
    core: Core<B>,
    value: UnsafeCell<T>,
}

/// What a guard holds on to, whatever the type of the value.
pub struct Core<B: Backend> {
    permits: Permits<B>,
    /// How many permits there are.
    all: usize,
    witness: Witness<B>,
}

// SAFETY: a shared `Guarded` hands the value from thread to thread, to one
// holder at a time (hence `Send`); shared guards, which hand it to several at
// once, ask for `T: Sync` themselves.
unsafe impl<T: ?Sized + Send, B: SharedBackend> Sync for Guarded<T, B> {}
// SAFETY: owning it is owning the value.
unsafe impl<T: ?Sized + Send, B: SharedBackend> Send for Guarded<T, B> {}

impl<T, B: Backend> Guarded<T, B> {
    pub(crate) const fn from_parts(
        permits: Permits<B>,
        all: usize,
        witness: Witness<B>,
        value: T,
    ) -> Self {
        Self {
            core: Core {
                permits,
                all,
                witness,
            },
            value: UnsafeCell::new(value),
        }
    }

    /// The value, which nobody holds any more.
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, B: Backend> Guarded<T, B> {
    pub(crate) fn permits(&self) -> &Permits<B> {
        &self.core.permits
    }

    /// The value, by exclusive borrow.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// How a guard reaches the value it is of: by borrow, or by `Arc`.
///
/// # Safety
///
/// `guarded` answers with the same value for as long as the pointer and what
/// `hold` makes of it exist, and the hold's core is that value's.
pub unsafe trait Pointer: Sized {
    /// The value's type.
    type Value: ?Sized;
    /// The backend.
    type Backend: Backend;
    /// What the guard keeps.
    type Hold: Hold<Backend = Self::Backend>;

    /// The value, with its permits.
    fn guarded(&self) -> &Guarded<Self::Value, Self::Backend>;

    /// What the guard keeps.
    fn hold(self) -> Self::Hold;
}

/// What keeps permits: they are given back to its core.
pub trait Hold {
    /// The backend.
    type Backend: Backend;

    /// Whose permits they are.
    fn core(&self) -> &Core<Self::Backend>;
}

impl<B: Backend> Hold for &Core<B> {
    type Backend = B;

    #[inline]
    fn core(&self) -> &Core<B> {
        self
    }
}

// SAFETY: a shared borrow is of one value.
unsafe impl<'a, T: ?Sized, B: Backend> Pointer for &'a Guarded<T, B> {
    type Value = T;
    type Backend = B;
    type Hold = &'a Core<B>;

    #[inline]
    fn guarded(&self) -> &Guarded<T, B> {
        self
    }

    #[inline]
    fn hold(self) -> &'a Core<B> {
        &self.core
    }
}

/// A primitive that is a guarded value, and is held by `Arc`.
macro_rules! owned_pointer {
    ($primitive:ident) => {
        impl<T: ?Sized, B: Backend> Hold for Arc<crate::$primitive<T, B>> {
            type Backend = B;

            #[inline]
            fn core(&self) -> &Core<B> {
                &self.guarded.core
            }
        }

        // SAFETY: an `Arc` keeps one primitive, and that has its value in a
        // field of its own.
        unsafe impl<T: ?Sized, B: Backend> Pointer for Arc<crate::$primitive<T, B>> {
            type Value = T;
            type Backend = B;
            type Hold = Self;

            #[inline]
            fn guarded(&self) -> &Guarded<T, B> {
                &self.guarded
            }

            #[inline]
            fn hold(self) -> Self {
                self
            }
        }
    };
}

owned_pointer!(Mutex);

/// A guard over the value, or over a part of it, that nobody else reaches.
pub struct Exclusive<V: ?Sized, H: Hold> {
    value: NonNull<V>,
    hold: H,
    /// As `&mut V`: invariant.
    value_type: PhantomData<*mut V>,
}

// SAFETY: a guard is a `&mut V`, and what it holds.
unsafe impl<V: ?Sized + Send, H: Hold + Send> Send for Exclusive<V, H> {}
// SAFETY: a shared guard is a `&V`, and what it holds.
unsafe impl<V: ?Sized + Sync, H: Hold + Sync> Sync for Exclusive<V, H> {}

impl<V: ?Sized, H: Hold> Exclusive<V, H> {
    /// A guard of a pointer's value.
    ///
    /// # Safety
    ///
    /// Every permit of it has been taken, for this guard.
    #[inline]
    unsafe fn new<P: Pointer<Value = V, Hold = H>>(pointer: P) -> Self {
        let value = pointer.guarded().value.get();
        Self {
            // SAFETY: a cell's pointer is not null.
            value: unsafe { NonNull::new_unchecked(value) },
            hold: pointer.hold(),
            value_type: PhantomData,
        }
    }

    /// Takes every permit, if they are there.
    #[inline]
    pub(crate) fn try_new<P: Pointer<Value = V, Hold = H>>(pointer: P) -> Option<Self> {
        let core = &pointer.guarded().core;
        core.permits.try_take(core.all, core.all).ok()?;
        // SAFETY: they have just been taken.
        Some(unsafe { Self::new(pointer) })
    }

    /// Narrows the guard to a part of the value.
    pub(crate) fn map<W: ?Sized>(mut self, f: impl FnOnce(&mut V) -> &mut W) -> Exclusive<W, H> {
        let value = NonNull::from(f(&mut self));
        self.with_value(value)
    }

    /// Narrows the guard to a part of the value, if there is that part.
    pub(crate) fn try_map<W: ?Sized>(
        mut self,
        f: impl FnOnce(&mut V) -> Option<&mut W>,
    ) -> Result<Exclusive<W, H>, Self> {
        match f(&mut self).map(NonNull::from) {
            Some(value) => Ok(self.with_value(value)),
            None => Err(self),
        }
    }

    /// The same hold over another place, which is a part of the one before.
    fn with_value<W: ?Sized>(self, value: NonNull<W>) -> Exclusive<W, H> {
        let this = ManuallyDrop::new(self);
        Exclusive {
            value,
            // SAFETY: `this` is not used again and not dropped.
            hold: unsafe { core::ptr::read(&raw const this.hold) },
            value_type: PhantomData,
        }
    }

    pub(crate) fn hold(&self) -> &H {
        &self.hold
    }
}

impl<V: ?Sized, H: Hold> Deref for Exclusive<V, H> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.hold.core().witness.read();
        // SAFETY: the guard holds every permit, so nobody else reaches the
        // value, which what it holds keeps alive.
        unsafe { self.value.as_ref() }
    }
}

impl<V: ?Sized, H: Hold> DerefMut for Exclusive<V, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut V {
        self.hold.core().witness.write();
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { self.value.as_mut() }
    }
}

impl<V: ?Sized, H: Hold> Drop for Exclusive<V, H> {
    #[inline]
    fn drop(&mut self) {
        let core = self.hold.core();
        core.permits.release(core.all);
    }
}

/// The future of an [`Exclusive`] guard.
#[must_use = "futures do nothing unless polled"]
pub struct AcquireExclusive<P: Pointer> {
    /// None once it has been ready.
    pointer: Option<P>,
    acquiring: Acquiring,
}

impl<P: Pointer> AcquireExclusive<P> {
    #[inline]
    pub(crate) fn new(pointer: P) -> Self {
        let all = pointer.guarded().core.all;
        Self {
            pointer: Some(pointer),
            acquiring: Acquiring::new(all, all),
        }
    }
}

impl<P: Pointer> Unpin for AcquireExclusive<P> {}

impl<P: Pointer> Future for AcquireExclusive<P> {
    type Output = Exclusive<P::Value, P::Hold>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let pointer = this
            .pointer
            .as_ref()
            .expect("a lock future was polled after it was ready");
        let permits = &pointer.guarded().core.permits;
        match this.acquiring.poll(permits, cx, "a lock future") {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(taken)) => taken.keep(),
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        };
        let pointer = this.pointer.take().expect("it was there a moment ago");
        // SAFETY: `acquiring` asks for every permit, of this pointer's value and
        // no other, and has been given them just now.
        Poll::Ready(unsafe { Exclusive::new(pointer) })
    }
}

impl<P: Pointer> Drop for AcquireExclusive<P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(pointer) = &self.pointer {
            self.acquiring.cancel(&pointer.guarded().core.permits);
        }
    }
}

impl<T: ?Sized, B: Backend> fmt::Debug for Guarded<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}

impl<B: Backend> fmt::Debug for Core<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}

impl<V: ?Sized, H: Hold> fmt::Debug for Exclusive<V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive").finish_non_exhaustive()
    }
}

impl<P: Pointer> fmt::Debug for AcquireExclusive<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireExclusive").finish_non_exhaustive()
    }
}
