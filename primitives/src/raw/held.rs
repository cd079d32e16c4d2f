//! A value under a lock, and what holds the permits of the lock.
//!
//! ```text
//!   Upgradable ──upgrade: acquires the rest──▶ Exclusive
//!   Exclusive  ──downgrade: releases a part──▶ Upgradable, Shared
//!   Upgradable ──downgrade: releases a part──▶ Shared
//! ```
//!
//! Invariant: a [`Held`] holds the permits of its [mode](super::mode), of the lock that
//! its handle keeps alive, and the primitive may be held in that mode. Only this file
//! makes one: in [`Held::try_acquire`], and when [`Acquire`] or [`Upgrade`] is ready. So
//! there is one exclusive holder, or there are shared holders, at most one of which is
//! upgradable.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::mode::{Below, Exclusive, Mode, ModeOf, Shared, Upgradable};
use super::{AcquireState, Holder, Holders, Permits, Request, Witness};
use crate::backend::Backend;
use crate::backend::DefaultBackend;
use crate::protocol::Bits;
use crate::protocol::CallerLocation;

/// A value, and the lock that protects it.
pub(crate) struct Guarded<T: ?Sized, B: Backend> {
    lock: RawLock<B>,
    value: UnsafeCell<T>,
}

/// A lock without its value. A narrowed guard refers to it, whatever the type of the
/// value. Only this file acquires and releases its permits.
pub(crate) struct RawLock<B: Backend> {
    permits: Permits<B>,
    /// The number of permits.
    all: usize,
    witness: Witness<B>,
    holders: Holders<B>,
}

impl<T> Guarded<T, DefaultBackend> {
    const_unless_loom! {
        /// Creates a value under `all` permits, in a constant, with the bound
        /// `max_barges`.
        pub(crate) const fn const_new(all: usize, max_barges: u16, value: T) -> Self {
            assert!(all > 0, "a lock without a permit can never be held");
            Self {
                lock: RawLock {
                    permits: Permits::const_new(all, max_barges),
                    all,
                    witness: Witness::const_new(),
                    holders: Holders::const_new(),
                },
                value: UnsafeCell::new(value),
            }
        }
    }
}

impl<T, B: Backend> Guarded<T, B> {
    /// Creates a value under `all` permits, over any backend, with the bound
    /// `max_barges`.
    pub(crate) fn new_in(all: usize, max_barges: u16, value: T) -> Self {
        assert!(all > 0, "a lock without a permit can never be held");
        Self {
            lock: RawLock {
                permits: Permits::new_in(all, max_barges),
                all,
                witness: Witness::new_in(),
                holders: Holders::new_in(),
            },
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value.
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, B: Backend> Guarded<T, B> {
    /// Returns a mutable reference to the value.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns a pointer to the value.
    #[inline]
    pub(super) fn value(&self) -> NonNull<T> {
        NonNull::new(self.value.get()).expect("the pointer of a cell is not null")
    }

    /// Returns the number of waiters, and the number of waits that have been granted
    /// the lock and have not been polled since.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.lock.permits.waiting()
    }

    /// Returns the location at which each waiter began to wait.
    #[cfg(feature = "locations")]
    pub(crate) fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.permits.waiters()
    }

    /// Returns the location at which each holder acquired the lock.
    #[cfg(feature = "locations")]
    pub(crate) fn holders(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.holders.locations()
    }
}

impl<B: Backend> RawLock<B> {
    /// Acquires the permits of a mode, if they are free.
    #[inline]
    fn try_acquire<M: Mode>(&self) -> bool {
        let taken = match M::EXCLUSIVE {
            true => self.permits.try_acquire_all(self.all),
            false => self.permits.try_acquire(self.request::<M>()),
        };
        taken.is_ok()
    }

    /// Acquires the permits of a mode, if they are free and `acquire` has not been
    /// polled. Otherwise returns the bits that it found.
    #[inline]
    fn try_start<M: Mode>(&self, acquire: &AcquireState) -> Result<usize, Bits> {
        match M::EXCLUSIVE {
            true => acquire.try_start_all(self.all, &self.permits),
            false => acquire.try_start(self.request::<M>(), &self.permits),
        }
    }

    /// Releases the permits of a mode.
    #[inline]
    fn release<M: Mode>(&self) {
        match M::EXCLUSIVE {
            true => self.permits.release_all(self.all),
            false => self.permits.release(M::permits(self.all)),
        }
    }

    #[inline]
    fn request<M: Mode>(&self) -> Request {
        Request::exactly(M::permits(self.all))
    }

    /// Returns the number of permits that an upgradable holder lacks to be exclusive.
    fn rest(&self) -> usize {
        self.all - Upgradable::<()>::permits(self.all)
    }
}

/// A primitive that is a value under a lock.
///
/// # Safety
///
/// `guarded` returns the same field of the primitive at each call. If `Modes` is
/// [`AllModes`](super::mode::AllModes), the primitive is `Sync` only if its value is `Send` and `Sync`.
pub(crate) unsafe trait Lock {
    type Value: ?Sized;
    type Backend: Backend;
    /// [`OnlyExclusive`](super::mode::OnlyExclusive) or
    /// [`AllModes`](super::mode::AllModes).
    type Modes;

    fn guarded(&self) -> &Guarded<Self::Value, Self::Backend>;
}

/// How a guard refers to the lock that it holds, and to the value: by a borrow or by
/// an `Arc`.
///
/// # Safety
///
/// `raw` returns the same lock at each call. That lock, and the value under it, do
/// not move or drop while the handle exists, or another handle that was made from it.
/// A handle that dereferences to a [`Lock`] always dereferences to the same one,
/// whose lock is `raw`.
pub(crate) unsafe trait Handle {
    type Backend: Backend;

    fn raw(&self) -> &RawLock<Self::Backend>;
}

// SAFETY: the handle is a borrow of a field of a primitive, and keeps the primitive
// borrowed.
unsafe impl<B: Backend> Handle for &RawLock<B> {
    type Backend = B;

    #[inline]
    fn raw(&self) -> &RawLock<B> {
        self
    }
}

// SAFETY: the primitive is borrowed, and by the contract of `Lock` its field is the
// same at each call.
unsafe impl<K: Lock + ?Sized> Handle for &K {
    type Backend = K::Backend;

    #[inline]
    fn raw(&self) -> &RawLock<K::Backend> {
        &self.guarded().lock
    }
}

// SAFETY: as above. An `Arc` neither moves nor drops what it owns while it exists.
unsafe impl<K: Lock + ?Sized> Handle for Arc<K> {
    type Backend = K::Backend;

    #[inline]
    fn raw(&self) -> &RawLock<K::Backend> {
        &(**self).guarded().lock
    }
}

/// The permits of the mode `M`, of the lock of the handle `H`. They are released when
/// it is dropped.
pub(crate) struct Held<H: Handle, M: Mode> {
    handle: H,
    holder: Holder,
    mode: PhantomData<fn() -> M>,
}

impl<H: Handle, M: Mode> Held<H, M> {
    /// Acquires the permits, if they are free.
    #[inline]
    pub(crate) fn try_acquire<K>(handle: H, location: CallerLocation) -> Option<Self>
    where
        H: Deref<Target = K>,
        K: Lock + ?Sized,
        M: ModeOf<K::Modes>,
    {
        let taken = handle.raw().try_acquire::<M>();
        taken.then(|| Self::new(handle, location))
    }

    /// Enters a holder whose permits have just been acquired.
    #[inline]
    fn new(handle: H, location: CallerLocation) -> Self {
        Self {
            holder: handle.raw().holders.enter(location),
            handle,
            mode: PhantomData,
        }
    }

    #[inline]
    pub(crate) const fn handle(&self) -> &H {
        &self.handle
    }

    /// Tells a checker that the value is read.
    #[inline]
    pub(super) fn reads(&self) {
        self.handle.raw().witness.read();
    }

    /// Tells a checker that the value is written.
    #[inline]
    pub(super) fn writes(&self) {
        self.handle.raw().witness.write();
    }

    /// Replaces the mode, and the handle by another one to the same lock. The caller
    /// has acquired the permits of the new mode, or releases the difference.
    #[inline]
    fn with<G: Handle, N: Mode>(self, handle: impl FnOnce(H) -> G) -> Held<G, N> {
        let mut this = ManuallyDrop::new(self);
        let holder = core::mem::take(&mut this.holder);
        // SAFETY: `this` is neither used again nor dropped.
        let kept = unsafe { core::ptr::read(&raw const this.handle) };
        Held {
            handle: handle(kept),
            holder,
            mode: PhantomData,
        }
    }

    /// Keeps the permits of a smaller mode, and releases the rest.
    #[inline]
    pub(crate) fn downgrade<N: Mode + Below<M>>(self) -> Held<H, N> {
        // The holder is made first, so that it is dropped if a waker panics.
        let held = self.with(|handle| handle);
        let RawLock { permits, all, .. } = held.handle.raw();
        permits.release(M::permits(*all) - N::permits(*all));
        held
    }
}

impl<'a, K: Lock + ?Sized, M: Mode> Held<&'a K, M> {
    /// Forgets the type of the whole value.
    #[inline]
    pub(crate) fn narrow(self) -> Held<&'a RawLock<K::Backend>, M> {
        self.with(|primitive| &primitive.guarded().lock)
    }
}

impl<H: Handle, V: ?Sized> Held<H, Shared<V>> {
    /// Changes the type of the value, for a part of it.
    #[inline]
    pub(crate) fn of_part<W: ?Sized>(self) -> Held<H, Shared<W>> {
        self.with(|handle| handle)
    }
}

impl<H: Handle, V: ?Sized> Held<H, Exclusive<V>> {
    /// Changes the type of the value, for a part of it.
    #[inline]
    pub(crate) fn of_part<W: ?Sized>(self) -> Held<H, Exclusive<W>> {
        self.with(|handle| handle)
    }
}

impl<H: Handle, V: ?Sized> Held<H, Upgradable<V>> {
    /// Acquires the rest of the permits, if there is no other holder. It goes before
    /// all waiters.
    pub(crate) fn try_upgrade(self) -> Result<Held<H, Exclusive<V>>, Self> {
        let lock = self.handle.raw();
        match lock.permits.try_acquire_priority(lock.rest()) {
            Ok(_) => Ok(self.with(|handle| handle)),
            Err(_) => Err(self),
        }
    }
}

impl<H: Handle, M: Mode> Drop for Held<H, M> {
    #[cfg_attr(feature = "model", inline(always))]
    #[cfg_attr(not(feature = "model"), inline)]
    fn drop(&mut self) {
        let lock = self.handle.raw();
        lock.holders.leave(&mut self.holder);
        lock.release::<M>();
    }
}

/// A waiter for a [`Held`].
pub(crate) struct Acquire<H: Handle, M: Mode> {
    /// `None` after completion.
    handle: Option<H>,
    acquire: AcquireState,
    mode: PhantomData<fn() -> M>,
}

impl<H: Handle, M: Mode> Acquire<H, M> {
    /// Creates a waiter for the mode `M`.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn new<K>(handle: H) -> Self
    where
        H: Deref<Target = K>,
        K: Lock + ?Sized,
        M: ModeOf<K::Modes>,
    {
        Self {
            handle: Some(handle),
            acquire: AcquireState::new(),
            mode: PhantomData,
        }
    }

    /// Polls for the permits, on behalf of the operation `name`. It is ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name if it has completed before.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Held<H, M>> {
        let Some(handle) = &self.handle else {
            polled_again(name)
        };
        match handle.raw().try_start::<M>(&self.acquire) {
            Ok(_) => Poll::Ready(self.held()),
            Err(found) => self.poll_slow(found, cx),
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_slow(&mut self, found: Bits, cx: &mut Context<'_>) -> Poll<Held<H, M>> {
        let lock = self.handle.as_ref().expect("seen by the caller").raw();
        let mut request = lock.request::<M>();
        let polled = self.acquire.poll(found, &mut request, &lock.permits, cx);
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(_)) => Poll::Ready(self.held()),
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
    }

    /// Enters the holder. It is called once, after the permits have been acquired.
    #[inline]
    fn held(&mut self) -> Held<H, M> {
        let handle = self.handle.take().expect("seen by the caller");
        Held::new(handle, self.acquire.location())
    }
}

impl<H: Handle, M: Mode> Drop for Acquire<H, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            let lock = handle.raw();
            self.acquire.cancel(&lock.request::<M>(), &lock.permits);
        }
    }
}

#[cold]
fn polled_again(name: &str) -> ! {
    panic!("{name} polled after it was ready")
}

/// A waiter for exclusive mode that holds the lock in upgradable mode.
pub(crate) struct Upgrade<H: Handle, V: ?Sized> {
    /// `None` after completion.
    held: Option<Held<H, Upgradable<V>>>,
    acquire: AcquireState,
}

impl<H: Handle, V: ?Sized> Upgrade<H, V> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(crate) const fn new(held: Held<H, Upgradable<V>>) -> Self {
        Self {
            held: Some(held),
            acquire: AcquireState::with_priority(),
        }
    }

    /// Polls for the rest of the permits, on behalf of the operation `name`. It is
    /// ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name if it has completed before.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Held<H, Exclusive<V>>> {
        let Some(held) = &self.held else {
            polled_again(name)
        };
        let lock = held.handle.raw();
        let mut rest = Request::exactly(lock.rest());
        match self.acquire.poll(Bits::EMPTY, &mut rest, &lock.permits, cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
        let held = self.held.take().expect("seen above");
        Poll::Ready(held.with(|handle| handle))
    }
}

impl<H: Handle, V: ?Sized> Drop for Upgrade<H, V> {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            let lock = held.handle.raw();
            let rest = Request::exactly(lock.rest());
            self.acquire.cancel(&rest, &lock.permits);
        }
    }
}

impl<T: ?Sized, B: Backend> fmt::Debug for Guarded<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> fmt::Debug for RawLock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawLock")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
