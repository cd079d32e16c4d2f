//! A value under a lock, and the guards that give access to it.
//!
//! Only this file gives out `&mut T`. The lock is a [`Permits`], and a guard holds
//! the permits of its [mode](super::mode).
//!
//! ```text
//!   Upgradable ──upgrade: acquires the rest──▶ Exclusive
//!   Exclusive  ──downgrade: releases a part──▶ Upgradable, Shared
//!   Upgradable ──downgrade: releases a part──▶ Shared
//! ```
//!
//! Invariant: a guard holds the permits of its mode, of the lock that its handle
//! keeps alive. So there is one exclusive guard, or there are shared guards, at most
//! one of which is upgradable.
//!
//! *Auto traits.* A mode is a pointer to the value, and is `Send` and `Sync` as the
//! reference that it stands for. The handle determines what a guard can become. Only
//! a guard that holds a whole primitive of [`AllModes`] changes its mode, and a handle
//! to such a primitive is `Send` only if the value is `Send` and `Sync`. A guard that
//! has been narrowed to the [`RawLock`] keeps its mode.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::panic::RefUnwindSafe;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::mode::{Exclusive, Mode, Shared, Upgradable};
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
/// value.
///
/// Private, so that only guards acquire and release them.
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
/// [`AllModes`], the primitive is `Sync` only if its value is `Send` and `Sync`.
pub(crate) unsafe trait Lock {
    type Value: ?Sized;
    type Backend: Backend;
    /// [`OnlyExclusive`] or [`AllModes`].
    type Modes;

    fn guarded(&self) -> &Guarded<Self::Value, Self::Backend>;
}

/// Marks a primitive that is held in exclusive mode only.
pub(crate) enum OnlyExclusive {}

/// Marks a primitive that can be held in every mode.
pub(crate) enum AllModes {}

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

/// A lock, held through the handle `H` in the mode `M`.
pub(crate) struct Guard<H: Handle, M: Mode> {
    mode: M,
    handle: H,
    holder: Holder,
}

impl<H: Handle, M: Mode> Guard<H, M> {
    /// Makes the guard of the value of a whole primitive.
    ///
    /// # Safety
    ///
    /// The permits of the mode have been acquired of this lock, for this guard. If
    /// the primitive is not one of [`AllModes`], the mode is exclusive.
    #[inline]
    unsafe fn new<K>(handle: H, location: CallerLocation) -> Self
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        let value = handle.guarded().value.get();
        Self {
            // SAFETY: the pointer of a cell is not null.
            mode: M::new(unsafe { NonNull::new_unchecked(value) }),
            holder: handle.raw().holders.enter(location),
            handle,
        }
    }

    pub(crate) fn handle(&self) -> &H {
        &self.handle
    }

    /// Replaces the pointer and the handle of the guard. The caller is responsible
    /// for the permits that the new guard needs or gives up.
    #[inline]
    fn with<G: Handle, N: Mode>(self, mode: N, handle: impl FnOnce(H) -> G) -> Guard<G, N> {
        let mut this = ManuallyDrop::new(self);
        let holder = core::mem::take(&mut this.holder);
        // SAFETY: `this` is neither used again nor dropped.
        let kept = unsafe { core::ptr::read(&raw const this.handle) };
        Guard {
            mode,
            handle: handle(kept),
            holder,
        }
    }

    /// Changes the mode of the guard. The caller has acquired the permits of the new
    /// mode, or releases the difference.
    #[inline]
    fn in_mode<N: Mode>(self, mode: N) -> Guard<H, N> {
        self.with(mode, |handle| handle)
    }

    /// Keeps the permits of a smaller mode, and releases the rest.
    #[inline]
    fn downgrade_to<N: Mode>(self, mode: N) -> Guard<H, N> {
        // The guard is made first, so that it is dropped if a waker panics.
        let guard = self.in_mode(mode);
        let RawLock { permits, all, .. } = guard.handle.raw();
        permits.release(M::permits(*all) - N::permits(*all));
        guard
    }
}

impl<'a, K: Lock + ?Sized, M: Mode> Guard<&'a K, M> {
    /// Forgets the type of the whole value. The guard cannot change its mode from
    /// then on.
    #[inline]
    pub(crate) fn narrow(self) -> Guard<&'a RawLock<K::Backend>, M> {
        let mode = M::new(self.mode.value());
        self.with(mode, |primitive| &primitive.guarded().lock)
    }
}

impl<'a, K: Lock<Modes = AllModes> + ?Sized, M: Mode> From<Guard<&'a K, M>>
    for Guard<&'a RawLock<K::Backend>, M>
{
    #[inline]
    fn from(guard: Guard<&'a K, M>) -> Self {
        guard.narrow()
    }
}

impl<H, K> Guard<H, Exclusive<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock + ?Sized,
{
    /// Acquires the lock in exclusive mode, if it is free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_exclusive(handle: H) -> Option<Self> {
        // Outside the closure below, which does not know its caller.
        let location = CallerLocation::capture();
        let taken = handle.raw().try_acquire::<Exclusive<K::Value>>();
        // SAFETY: the permits have just been acquired.
        taken.then(|| unsafe { Self::new(handle, location) })
    }
}

impl<H, K> Guard<H, Shared<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    /// Acquires the lock in shared mode, if its permit is free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_shared(handle: H) -> Option<Self> {
        // Outside the closure below, which does not know its caller.
        let location = CallerLocation::capture();
        let taken = handle.raw().try_acquire::<Shared<K::Value>>();
        // SAFETY: the permit has just been acquired, of a primitive of all modes.
        taken.then(|| unsafe { Self::new(handle, location) })
    }
}

impl<H, K> Guard<H, Upgradable<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    /// Acquires the lock in upgradable mode, if its permits are free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_upgradable(handle: H) -> Option<Self> {
        // Outside the closure below, which does not know its caller.
        let location = CallerLocation::capture();
        let taken = handle.raw().try_acquire::<Upgradable<K::Value>>();
        // SAFETY: the permits have just been acquired, of a primitive of all
        // modes.
        taken.then(|| unsafe { Self::new(handle, location) })
    }

    /// Upgrades to exclusive mode if there is no other holder. It goes before all
    /// waiters.
    pub(crate) fn try_upgrade(self) -> Result<Guard<H, Exclusive<K::Value>>, Self> {
        let lock = self.handle.raw();
        match lock.permits.try_acquire_priority(lock.rest()) {
            // SAFETY: the rest of the permits has been acquired for this guard.
            Ok(_) => Ok(unsafe { self.upgraded() }),
            Err(_) => Err(self),
        }
    }

    /// Downgrades to shared mode.
    pub(crate) fn downgrade(self) -> Guard<H, Shared<K::Value>> {
        let shared = Shared::new(self.mode.value());
        self.downgrade_to(shared)
    }
}

impl<H: Handle, V: ?Sized> Guard<H, Upgradable<V>> {
    /// Makes this guard exclusive.
    ///
    /// # Safety
    ///
    /// The rest of the permits has been acquired for this guard, and it has not been
    /// mapped.
    unsafe fn upgraded(self) -> Guard<H, Exclusive<V>> {
        let exclusive = Exclusive::new(self.mode.value());
        self.in_mode(exclusive)
    }
}

/// What an exclusive guard of a whole primitive can become.
impl<H, K> Guard<H, Exclusive<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    /// Downgrades to shared mode.
    pub(crate) fn downgrade(self) -> Guard<H, Shared<K::Value>> {
        let shared = Shared::new(self.mode.value());
        self.downgrade_to(shared)
    }

    /// Downgrades to upgradable mode.
    pub(crate) fn downgrade_to_upgradable(self) -> Guard<H, Upgradable<K::Value>> {
        let upgradable = Upgradable::new(self.mode.value());
        self.downgrade_to(upgradable)
    }

    /// Downgrades to shared mode, over a part of the value.
    pub(crate) fn downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&K::Value) -> &W,
    ) -> Guard<H, Shared<W>> {
        let shared = Shared::new(NonNull::from(f(&self)));
        self.downgrade_to(shared)
    }

    /// Downgrades to shared mode, over a part of the value, if `f` returns one.
    pub(crate) fn try_downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&K::Value) -> Option<&W>,
    ) -> Result<Guard<H, Shared<W>>, Self> {
        match f(&self).map(NonNull::from) {
            Some(part) => Ok(self.downgrade_to(Shared::new(part))),
            None => Err(self),
        }
    }
}

impl<H: Handle, V: ?Sized> Guard<H, Shared<V>> {
    /// Narrows the guard to a part of the value.
    pub(crate) fn map<W: ?Sized>(self, f: impl FnOnce(&V) -> &W) -> Guard<H, Shared<W>> {
        let part = NonNull::from(f(&self));
        self.in_mode(Shared::new(part))
    }

    /// Narrows the guard to a part of the value, if `f` returns one.
    pub(crate) fn try_map<W: ?Sized>(
        self,
        f: impl FnOnce(&V) -> Option<&W>,
    ) -> Result<Guard<H, Shared<W>>, Self> {
        match f(&self).map(NonNull::from) {
            Some(part) => Ok(self.in_mode(Shared::new(part))),
            None => Err(self),
        }
    }
}

impl<H: Handle, V: ?Sized> Guard<H, Exclusive<V>> {
    /// Narrows the guard to a part of the value.
    pub(crate) fn map<W: ?Sized>(
        mut self,
        f: impl FnOnce(&mut V) -> &mut W,
    ) -> Guard<H, Exclusive<W>> {
        let part = NonNull::from(f(&mut self));
        self.in_mode(Exclusive::new(part))
    }

    /// Narrows the guard to a part of the value, if `f` returns one.
    pub(crate) fn try_map<W: ?Sized>(
        mut self,
        f: impl FnOnce(&mut V) -> Option<&mut W>,
    ) -> Result<Guard<H, Exclusive<W>>, Self> {
        match f(&mut self).map(NonNull::from) {
            Some(part) => Ok(self.in_mode(Exclusive::new(part))),
            None => Err(self),
        }
    }
}

impl<H: Handle, M: Mode> Deref for Guard<H, M> {
    type Target = M::Value;

    #[inline]
    fn deref(&self) -> &M::Value {
        self.handle.raw().witness.read();
        // SAFETY: the pointer is to the value, or to a part that a reference to the
        // value gave out, and the handle keeps the value alive. While this guard
        // holds the permits of its mode, no other guard is exclusive. If this guard
        // is exclusive, it is borrowed here. So there is no `&mut`.
        unsafe { self.mode.value().as_ref() }
    }
}

impl<H: Handle, V: ?Sized> DerefMut for Guard<H, Exclusive<V>> {
    #[inline]
    fn deref_mut(&mut self) -> &mut V {
        self.handle.raw().witness.write();
        // SAFETY: as for `deref`. The guard holds all permits, so there is no other
        // guard, and it is borrowed exclusively.
        unsafe { self.mode.value().as_mut() }
    }
}

impl<H: Handle, M: Mode> Drop for Guard<H, M> {
    #[inline]
    fn drop(&mut self) {
        let lock = self.handle.raw();
        lock.holders.leave(&mut self.holder);
        lock.release::<M>();
    }
}

/// A shared borrow of a guard gives a `&` of its value, and of the primitive, which
/// stays locked. This does not hold for an `Arc`, which can be cloned and outlive the
/// guard.
impl<K: ?Sized, M: Mode + RefUnwindSafe> RefUnwindSafe for Guard<&K, M> where for<'a> &'a K: Handle {}

/// A waiter for a [`Guard`].
#[must_use = "nothing is acquired unless it is polled"]
pub(crate) struct AcquireGuard<H: Handle, M: Mode> {
    /// `None` after completion.
    handle: Option<H>,
    acquire: AcquireState,
    mode: PhantomData<fn() -> M>,
}

impl<H, K> AcquireGuard<H, Exclusive<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock + ?Sized,
{
    /// Creates a waiter for exclusive mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn exclusive(handle: H) -> Self {
        Self::in_mode(handle)
    }
}

impl<H, K> AcquireGuard<H, Shared<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    /// Creates a waiter for shared mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn shared(handle: H) -> Self {
        Self::in_mode(handle)
    }
}

impl<H, K> AcquireGuard<H, Upgradable<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    /// Creates a waiter for upgradable mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn upgradable(handle: H) -> Self {
        Self::in_mode(handle)
    }
}

impl<H: Handle, M: Mode> AcquireGuard<H, M> {
    /// Creates a waiter for a mode. The caller ensures that the primitive may be held
    /// in it.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    const fn in_mode(handle: H) -> Self {
        Self {
            handle: Some(handle),
            acquire: AcquireState::new(),
            mode: PhantomData,
        }
    }

    /// Polls for the guard, on behalf of the operation `name`. It is ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name if it has completed before.
    #[inline]
    pub(crate) fn poll<K>(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Guard<H, M>>
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        let Some(handle) = &self.handle else {
            polled_again(name)
        };
        match handle.raw().try_start::<M>(&self.acquire) {
            // SAFETY: the permits have just been acquired. The constructors ensure
            // that the primitive may be held in the mode.
            Ok(_) => Poll::Ready(unsafe { self.guard() }),
            Err(found) => self.poll_slow(found, cx),
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_slow<K>(&mut self, found: Bits, cx: &mut Context<'_>) -> Poll<Guard<H, M>>
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        let lock = self.handle.as_ref().expect("seen by the caller").raw();
        let mut request = lock.request::<M>();
        let polled = self.acquire.poll(found, &mut request, &lock.permits, cx);
        match polled {
            Poll::Pending => Poll::Pending,
            // SAFETY: `acquire` asks for the permits of the mode, of this lock and no
            // other, and has just been granted them. The constructors ensure that the
            // primitive may be held in the mode.
            Poll::Ready(Ok(_)) => Poll::Ready(unsafe { self.guard() }),
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
    }

    /// Makes the guard. It is called once.
    ///
    /// # Safety
    ///
    /// The contract is that of [`Guard::new`], for this handle.
    #[inline]
    unsafe fn guard<K>(&mut self) -> Guard<H, M>
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        let handle = self.handle.take().expect("seen by the caller");
        // SAFETY: the contract of this function is that of `Guard::new`.
        unsafe { Guard::new(handle, self.acquire.location()) }
    }
}

impl<H: Handle, M: Mode> Drop for AcquireGuard<H, M> {
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
#[must_use = "nothing is acquired unless it is polled"]
pub(crate) struct UpgradeGuard<H: Handle, V: ?Sized> {
    /// `None` after completion.
    guard: Option<Guard<H, Upgradable<V>>>,
    acquire: AcquireState,
}

impl<H, K> UpgradeGuard<H, K::Value>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(crate) const fn new(guard: Guard<H, Upgradable<K::Value>>) -> Self {
        Self {
            guard: Some(guard),
            acquire: AcquireState::with_priority(),
        }
    }
}

impl<H: Handle, V: ?Sized> UpgradeGuard<H, V> {
    /// Polls for the guard, on behalf of the operation `name`. It is ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name if it has completed before.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Guard<H, Exclusive<V>>> {
        let Some(guard) = &self.guard else {
            polled_again(name)
        };
        let lock = guard.handle.raw();
        let mut rest = Request::exactly(lock.rest());
        match self.acquire.poll(Bits::EMPTY, &mut rest, &lock.permits, cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
        let guard = self.guard.take().expect("seen above");
        // SAFETY: `acquire` asks for the rest of the permits, and has just been
        // granted them. No upgradable guard is ever mapped.
        Poll::Ready(unsafe { guard.upgraded() })
    }
}

impl<H: Handle, V: ?Sized> Drop for UpgradeGuard<H, V> {
    fn drop(&mut self) {
        if let Some(guard) = &self.guard {
            let lock = guard.handle.raw();
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
