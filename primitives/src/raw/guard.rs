//! A value under a lock, and the guards that hand it out.
//!
//! This is the one place where a primitive gives out `&mut T`. The lock is
//! [`Permits`], and a guard holds those of its [mode](super::mode).
//!
//! ```text
//!   Upgradable ──upgrade, takes the rest──▶ Exclusive
//!   Exclusive  ──downgrade, gives back────▶ Upgradable, Shared
//!   Upgradable ──downgrade, gives back────▶ Shared
//! ```
//!
//! Invariant: a guard holds the permits of its mode, of the lock that its handle
//! keeps. So there is one exclusive guard, or there are shared ones, of which one at
//! most is upgradable.
//!
//! *Auto traits.* A mode is a pointer to the value, and is `Send` and `Sync` as the
//! reference that it stands for. What a guard can become stands in its handle: only a
//! guard that holds a whole `RwLock` changes its mode, and a handle to that is `Send`
//! only if the value is `Send` and `Sync`. A guard that has been narrowed to the
//! [`RawLock`] keeps its mode.

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
use crate::backend::DefaultBackend;
use crate::backend::{Backend, SharedBackend};
use crate::protocol::Bits;
use crate::protocol::CallerLocation;
use crate::{Mutex, RwLock};

/// A value, and the lock under which it is reached.
pub(crate) struct Guarded<T: ?Sized, B: Backend> {
    lock: RawLock<B>,
    value: UnsafeCell<T>,
}

/// A lock without the value: what a guard holds on to, whatever the value's type.
///
/// Its permits are out of reach of everything but guards.
pub(crate) struct RawLock<B: Backend> {
    permits: Permits<B>,
    /// How many permits there are.
    all: usize,
    witness: Witness<B>,
    holders: Holders<B>,
}

impl<T> Guarded<T, DefaultBackend> {
    const_unless_loom! {
        /// A value under `all` permits, in a constant. Its fairness is `max_barges`.
        pub(crate) const fn const_new(all: usize, max_barges: u16, value: T) -> Self {
            assert!(all > 0, "a lock without a permit can never be holder");
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
    /// A value under `all` permits, over any backend. Its fairness is `max_barges`.
    pub(crate) fn new_in(all: usize, max_barges: u16, value: T) -> Self {
        assert!(all > 0, "a lock without a permit can never be holder");
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
    /// Returns the value by exclusive borrow.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns how many wait, and how many have been granted the lock and have not
    /// been polled since.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.lock.permits.waiting()
    }

    /// Returns where each waiter began to wait.
    #[cfg(feature = "locations")]
    pub(crate) fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.permits.waiters()
    }

    /// Returns where each holder took the lock.
    #[cfg(feature = "locations")]
    pub(crate) fn holders(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.holders.locations()
    }
}

impl<B: Backend> RawLock<B> {
    /// Takes the permits of a mode, if they are free.
    #[inline]
    fn try_acquire<M: Mode>(&self) -> bool {
        let taken = match M::EXCLUSIVE {
            true => self.permits.try_acquire_all(self.all),
            false => self.permits.try_acquire(self.request::<M>()),
        };
        taken.is_ok()
    }

    /// Takes the permits of a mode, if they are free and `acquire` has not been
    /// polled, or returns the bits found.
    #[inline]
    fn try_start<M: Mode>(&self, acquire: &AcquireState) -> Result<usize, Bits> {
        match M::EXCLUSIVE {
            true => acquire.try_start_all(self.all, &self.permits),
            false => acquire.try_start(self.request::<M>(), &self.permits),
        }
    }

    /// Gives the permits of a mode back.
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

    /// Returns how many permits an upgradable holder lacks to be an exclusive one.
    fn rest(&self) -> usize {
        self.all - Upgradable::<()>::permits(self.all)
    }
}

/// A primitive that is a value under a lock.
///
/// # Safety
///
/// `guarded` returns the same field of the primitive each time.
pub(crate) unsafe trait Lock {
    type Value: ?Sized;
    type Backend: Backend;

    fn guarded(&self) -> &Guarded<Self::Value, Self::Backend>;
}

// SAFETY: the one field.
unsafe impl<T: ?Sized, B: Backend> Lock for Mutex<T, B> {
    type Value = T;
    type Backend = B;

    #[inline]
    fn guarded(&self) -> &Guarded<T, B> {
        &self.guarded
    }
}

// SAFETY: the one field.
unsafe impl<T: ?Sized, B: Backend> Lock for RwLock<T, B> {
    type Value = T;
    type Backend = B;

    #[inline]
    fn guarded(&self) -> &Guarded<T, B> {
        &self.guarded
    }
}

// SAFETY: threads that share it reach the value one at a time: a mutex is held in
// exclusive mode only. The lock is `Sync`, by its parts.
unsafe impl<T: ?Sized + Send, B: SharedBackend> Sync for Mutex<T, B> {}
// SAFETY: threads that share it reach the value by `&mut`, one at a time, or by `&`,
// several at a time. The lock is `Sync`, by its parts.
unsafe impl<T: ?Sized + Send + Sync, B: SharedBackend> Sync for RwLock<T, B> {}

/// How a guard keeps the lock that it holds, and the value: by borrow or by `Arc`.
///
/// # Safety
///
/// `raw` returns the same lock each time, and that lock, with the value under it,
/// stays where it is for as long as the handle, or one that was made of it, exists. A
/// handle that dereferences to a [`Lock`] always does so to the same, which has the
/// lock `raw`.
pub(crate) unsafe trait Handle {
    type Backend: Backend;

    fn raw(&self) -> &RawLock<Self::Backend>;
}

// SAFETY: a borrow of the field of a primitive; it keeps the primitive borrowed.
unsafe impl<B: Backend> Handle for &RawLock<B> {
    type Backend = B;

    #[inline]
    fn raw(&self) -> &RawLock<B> {
        self
    }
}

// SAFETY: the primitive is borrowed, and by `Lock` its field is the same each time.
unsafe impl<K: Lock + ?Sized> Handle for &K {
    type Backend = K::Backend;

    #[inline]
    fn raw(&self) -> &RawLock<K::Backend> {
        &self.guarded().lock
    }
}

// SAFETY: as above; an `Arc` neither moves nor drops what it owns while it exists.
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
    /// A guard of the value of a whole primitive.
    ///
    /// # Safety
    ///
    /// The permits of the mode have been taken of this lock, for this guard; and only
    /// exclusive guards are made of a primitive other than an `RwLock`.
    #[inline]
    unsafe fn new<K>(handle: H, location: CallerLocation) -> Self
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        let value = handle.guarded().value.get();
        Self {
            // SAFETY: a cell's pointer is not null.
            mode: M::new(unsafe { NonNull::new_unchecked(value) }),
            holder: handle.raw().holders.enter(location),
            handle,
        }
    }

    pub(crate) fn handle(&self) -> &H {
        &self.handle
    }

    /// The guard with another pointer and handle. What has been taken for it, or will
    /// be given back, is the caller's part.
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

    /// The guard in another mode, of which the lock has, or will have, the permits.
    #[inline]
    fn in_mode<N: Mode>(self, mode: N) -> Guard<H, N> {
        self.with(mode, |handle| handle)
    }

    /// Keeps the permits of a smaller mode, and gives the rest back.
    #[inline]
    fn downgrade_to<N: Mode>(self, mode: N) -> Guard<H, N> {
        // First the guard: if a waker panics, the guard is dropped.
        let guard = self.in_mode(mode);
        let RawLock { permits, all, .. } = guard.handle.raw();
        permits.release(M::permits(*all) - N::permits(*all));
        guard
    }
}

impl<'a, K: Lock + ?Sized, M: Mode> Guard<&'a K, M> {
    /// Forgets the type of the whole value: the guard cannot change its mode any more.
    #[inline]
    pub(crate) fn narrow(self) -> Guard<&'a RawLock<K::Backend>, M> {
        let mode = M::new(self.mode.value());
        self.with(mode, |primitive| &primitive.guarded().lock)
    }
}

impl<'a, T: ?Sized, B: Backend, M: Mode> From<Guard<&'a RwLock<T, B>, M>>
    for Guard<&'a RawLock<B>, M>
{
    #[inline]
    fn from(guard: Guard<&'a RwLock<T, B>, M>) -> Self {
        guard.narrow()
    }
}

impl<H, K> Guard<H, Exclusive<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock + ?Sized,
{
    /// Takes the lock in exclusive mode, if it is free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_exclusive(handle: H) -> Option<Self> {
        let taken = handle.raw().try_acquire::<Exclusive<K::Value>>();
        // SAFETY: they have just been taken.
        taken.then(|| unsafe { Self::new(handle, CallerLocation::capture()) })
    }
}

impl<H, T: ?Sized, B: Backend> Guard<H, Shared<T>>
where
    H: Handle + Deref<Target = RwLock<T, B>>,
{
    /// Takes the lock in shared mode, if that is free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_shared(handle: H) -> Option<Self> {
        let taken = handle.raw().try_acquire::<Shared<T>>();
        // SAFETY: they have just been taken, of an `RwLock`.
        taken.then(|| unsafe { Self::new(handle, CallerLocation::capture()) })
    }
}

impl<H, T: ?Sized, B: Backend> Guard<H, Upgradable<T>>
where
    H: Handle + Deref<Target = RwLock<T, B>>,
{
    /// Takes the lock in upgradable mode, if that is free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_upgradable(handle: H) -> Option<Self> {
        let taken = handle.raw().try_acquire::<Upgradable<T>>();
        // SAFETY: they have just been taken, of an `RwLock`.
        taken.then(|| unsafe { Self::new(handle, CallerLocation::capture()) })
    }

    /// Becomes exclusive, if nothing else is held: before all that wait.
    pub(crate) fn try_upgrade(self) -> Result<Guard<H, Exclusive<T>>, Self> {
        let lock = self.handle.raw();
        match lock.permits.try_acquire_priority(lock.rest()) {
            // SAFETY: the rest has been taken for it.
            Ok(_) => Ok(unsafe { self.upgraded() }),
            Err(_) => Err(self),
        }
    }

    /// Becomes shared.
    pub(crate) fn downgrade(self) -> Guard<H, Shared<T>> {
        let shared = Shared::new(self.mode.value());
        self.downgrade_to(shared)
    }
}

impl<H: Handle, V: ?Sized> Guard<H, Upgradable<V>> {
    /// The exclusive guard.
    ///
    /// # Safety
    ///
    /// The rest of the permits has been taken for it, and it has not been mapped.
    unsafe fn upgraded(self) -> Guard<H, Exclusive<V>> {
        let exclusive = Exclusive::new(self.mode.value());
        self.in_mode(exclusive)
    }
}

/// What an exclusive guard of a whole `RwLock` can become.
impl<H, T: ?Sized, B: Backend> Guard<H, Exclusive<T>>
where
    H: Handle + Deref<Target = RwLock<T, B>>,
{
    /// Becomes shared.
    pub(crate) fn downgrade(self) -> Guard<H, Shared<T>> {
        let shared = Shared::new(self.mode.value());
        self.downgrade_to(shared)
    }

    /// Becomes upgradable.
    pub(crate) fn downgrade_to_upgradable(self) -> Guard<H, Upgradable<T>> {
        let upgradable = Upgradable::new(self.mode.value());
        self.downgrade_to(upgradable)
    }

    /// Becomes shared, over a part of the value.
    pub(crate) fn downgrade_map<W: ?Sized>(self, f: impl FnOnce(&T) -> &W) -> Guard<H, Shared<W>> {
        let shared = Shared::new(NonNull::from(f(&self)));
        self.downgrade_to(shared)
    }

    /// Becomes shared, over a part of the value, if there is that part.
    pub(crate) fn try_downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&T) -> Option<&W>,
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

    /// Narrows the guard to a part of the value, if there is that part.
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

    /// Narrows the guard to a part of the value, if there is that part.
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
        // value gave out, and the handle keeps the value. While this guard holds the
        // permits of its mode, no other is exclusive; if this one is, it is borrowed.
        // So there is no `&mut`.
        unsafe { self.mode.value().as_ref() }
    }
}

impl<H: Handle, V: ?Sized> DerefMut for Guard<H, Exclusive<V>> {
    #[inline]
    fn deref_mut(&mut self) -> &mut V {
        self.handle.raw().witness.write();
        // SAFETY: as for `deref`. The guard holds every permit, so there is no other,
        // and it is borrowed exclusively.
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

/// By a shared borrow a guard gives a `&` of its value, and of the primitive, which it
/// keeps locked. Not that of an `Arc`, which can be cloned and outlive the guard.
impl<K: ?Sized, M: Mode + RefUnwindSafe> RefUnwindSafe for Guard<&K, M> where for<'a> &'a K: Handle {}

/// A waiter for a [`Guard`].
#[must_use = "nothing is acquired unless it is polled"]
pub(crate) struct AcquireGuard<H: Handle, M: Mode> {
    /// None once it has been ready.
    handle: Option<H>,
    acquire: AcquireState,
    mode: PhantomData<fn() -> M>,
}

impl<H, K> AcquireGuard<H, Exclusive<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock + ?Sized,
{
    /// A waiter for exclusive mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn exclusive(handle: H) -> Self {
        Self::in_mode(handle)
    }
}

impl<H, T: ?Sized, B: Backend> AcquireGuard<H, Shared<T>>
where
    H: Handle + Deref<Target = RwLock<T, B>>,
{
    /// A waiter for shared mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn shared(handle: H) -> Self {
        Self::in_mode(handle)
    }
}

impl<H, T: ?Sized, B: Backend> AcquireGuard<H, Upgradable<T>>
where
    H: Handle + Deref<Target = RwLock<T, B>>,
{
    /// A waiter for upgradable mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn upgradable(handle: H) -> Self {
        Self::in_mode(handle)
    }
}

impl<H: Handle, M: Mode> AcquireGuard<H, M> {
    /// The caller has made sure that the primitive may be held in the mode.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    const fn in_mode(handle: H) -> Self {
        Self {
            handle: Some(handle),
            acquire: AcquireState::new(),
            mode: PhantomData,
        }
    }

    /// Polls for the guard, as the operation `name`. Ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name if it has been ready.
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
            // SAFETY: the permits have been taken just now; the constructors have seen
            // to the mode.
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
            // other, and has been given them just now; the constructors have seen to
            // the mode.
            Poll::Ready(Ok(_)) => Poll::Ready(unsafe { self.guard() }),
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
    }

    /// Makes the guard, once.
    ///
    /// # Safety
    ///
    /// As for [`Guard::new`], of this handle.
    #[inline]
    unsafe fn guard<K>(&mut self) -> Guard<H, M>
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        let handle = self.handle.take().expect("seen by the caller");
        // SAFETY: the caller's promise is the one asked for.
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
    /// None once it has been ready.
    guard: Option<Guard<H, Upgradable<V>>>,
    acquire: AcquireState,
}

impl<H, T: ?Sized, B: Backend> UpgradeGuard<H, T>
where
    H: Handle + Deref<Target = RwLock<T, B>>,
{
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(crate) const fn new(guard: Guard<H, Upgradable<T>>) -> Self {
        Self {
            guard: Some(guard),
            acquire: AcquireState::with_priority(),
        }
    }
}

impl<H: Handle, V: ?Sized> UpgradeGuard<H, V> {
    /// Polls for the guard, as the operation `name`. Ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name if it has been ready.
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
        // SAFETY: `acquire` asks for the rest of the permits, and has been given them
        // just now. No upgradable guard is ever mapped.
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
