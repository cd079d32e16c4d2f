//! A value under permits, and the guards that hand it out.
//!
//! This is the one place where a primitive gives out `&mut T`. A guard is made
//! here, of permits that were taken here, and gives them back when it is
//! dropped; so whoever uses guards needs no unsafe code.
//!
//! ```text
//!   share   permits             beside it   its value
//!   One     one                 One, Half   &T
//!   Half    more than half      One         &T
//!   All     every one           nothing     &mut T
//! ```
//!
//! Invariant: a guard holds its share of the permits of its value. So there is
//! one guard of all, or there are shared ones, of which one at most holds half.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::{AcquireState, CallerLocation, Holder, Holders, Permits, Request, Witness};
use crate::backend::{Backend, SharedBackend};
use crate::protocol::Bits;

/// A value that is reached only through guards: of which shares, `A` says.
pub struct Guarded<T: ?Sized, B: Backend, A = Alone> {
    core: Core<B>,
    access: PhantomData<A>,
    value: UnsafeCell<T>,
}

/// Guards hold [`All`] of the value: one at a time.
#[derive(Debug)]
pub enum Alone {}

/// Guards hold any share: several reach the value at a time.
#[derive(Debug)]
pub enum Together {}

/// What a guard holds on to, whatever the type of the value.
pub struct Core<B: Backend> {
    permits: Permits<B>,
    /// How many permits there are.
    all: usize,
    witness: Witness<B>,
    holders: Holders<B>,
}

// SAFETY: it hands the value from thread to thread, to one holder at a time.
unsafe impl<T: ?Sized + Send, B: SharedBackend> Sync for Guarded<T, B, Alone> {}
// SAFETY: as above, or to several at a time.
unsafe impl<T: ?Sized + Send + Sync, B: SharedBackend> Sync for Guarded<T, B, Together> {}
// SAFETY: owning it is owning the value.
unsafe impl<T: ?Sized + Send, B: SharedBackend, A> Send for Guarded<T, B, A> {}

impl<T, B: Backend, A> Guarded<T, B, A> {
    /// A value under so many permits, all of which are free.
    pub(crate) const fn from_parts(
        permits: Permits<B>,
        all: usize,
        witness: Witness<B>,
        holders: Holders<B>,
        value: T,
    ) -> Self {
        assert!(all > 0, "a lock that nobody can hold: it needs a permit");
        Self {
            core: Core {
                permits,
                all,
                witness,
                holders,
            },
            access: PhantomData,
            value: UnsafeCell::new(value),
        }
    }

    /// The value, which nobody holds any more.
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, B: Backend, A> Guarded<T, B, A> {
    pub(crate) fn permits(&self) -> &Permits<B> {
        &self.core.permits
    }

    /// Where each who holds the value took it.
    #[cfg(feature = "locations")]
    pub(crate) fn holders(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.core.holders.locations()
    }

    /// The value, by exclusive borrow.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// How many permits a guard holds.
///
/// # Safety
///
/// Of the shares in use at the same time, by the permits they need, at most one
/// is a `Half` and none is beside an `All`.
pub unsafe trait Share {
    /// Whether it is all of them.
    const IS_ALL: bool = false;

    /// So many of `all`.
    fn of(all: usize) -> usize;
}

/// One permit: beside others of its kind.
#[derive(Debug)]
pub enum One {}

/// More than half of the permits: one at a time, beside those of one.
#[derive(Debug)]
pub enum Half {}

/// All of the permits.
#[derive(Debug)]
pub enum All {}

// SAFETY: one permit leaves the others nothing to be `All` of.
unsafe impl Share for One {
    #[inline]
    fn of(_: usize) -> usize {
        1
    }
}

// SAFETY: the permits have no two such halves.
unsafe impl Share for Half {
    #[inline]
    fn of(all: usize) -> usize {
        all / 2 + 1
    }
}

// SAFETY: it leaves nothing.
unsafe impl Share for All {
    const IS_ALL: bool = true;

    #[inline]
    fn of(all: usize) -> usize {
        all
    }
}

/// A share by which values of such an access may be reached.
///
/// # Safety
///
/// A share that others can stand beside is not of [`Alone`].
pub unsafe trait Of<A>: Share {}

// SAFETY: nothing stands beside it.
unsafe impl Of<Alone> for All {}
// SAFETY: any may be.
unsafe impl<S: Share> Of<Together> for S {}

/// A share that contains another.
///
/// # Safety
///
/// Whatever there are permits in all, those of `S` are no more than its own.
pub unsafe trait Contains<S: Share>: Share {}

// SAFETY: all contain any.
unsafe impl Contains<One> for All {}
// SAFETY: all contain any.
unsafe impl Contains<Half> for All {}
// SAFETY: more than half of one or more is one at least.
unsafe impl Contains<One> for Half {}

/// How a guard reaches the value it is of: by borrow, or by `Arc`.
///
/// # Safety
///
/// `guarded` answers with the same value for as long as the pointer, or what it
/// was narrowed to, exists; and the core is that value's.
pub unsafe trait Pointer: Hold {
    /// The value's type.
    type Value: ?Sized;
    /// Which guards it has.
    type Access;

    /// The value, with its permits.
    fn guarded(&self) -> &Guarded<Self::Value, Self::Backend, Self::Access>;
}

/// What keeps a guard's value alive, and its permits.
///
/// # Safety
///
/// What it is narrowed to keeps the same value, and has the same core.
pub unsafe trait Hold: Sized {
    /// The backend.
    type Backend: Backend;
    /// What remains where the type of the value no longer matters.
    type Narrow: Hold<Backend = Self::Backend>;

    /// Whose permits they are.
    fn core(&self) -> &Core<Self::Backend>;

    /// Forgets what it can of the value.
    fn narrow(self) -> Self::Narrow;
}

// SAFETY: it stays what it is.
unsafe impl<B: Backend> Hold for &Core<B> {
    type Backend = B;
    type Narrow = Self;

    #[inline]
    fn core(&self) -> &Core<B> {
        self
    }

    #[inline]
    fn narrow(self) -> Self {
        self
    }
}

/// A primitive that is a guarded value, and is held by borrow or by `Arc`.
macro_rules! pointers {
    ($primitive:ident, $access:ty) => {
        // SAFETY: a core is borrowed with the primitive it is in.
        unsafe impl<'a, T: ?Sized, B: Backend> Hold for &'a crate::$primitive<T, B> {
            type Backend = B;
            type Narrow = &'a Core<B>;

            #[inline]
            fn core(&self) -> &Core<B> {
                &self.guarded.core
            }

            #[inline]
            fn narrow(self) -> &'a Core<B> {
                &self.guarded.core
            }
        }

        // SAFETY: a shared borrow is of one primitive, and that has its value in
        // a field of its own.
        unsafe impl<T: ?Sized, B: Backend> Pointer for &crate::$primitive<T, B> {
            type Value = T;
            type Access = $access;

            #[inline]
            fn guarded(&self) -> &Guarded<T, B, $access> {
                &self.guarded
            }
        }

        // SAFETY: it stays what it is.
        unsafe impl<T: ?Sized, B: Backend> Hold for Arc<crate::$primitive<T, B>> {
            type Backend = B;
            type Narrow = Self;

            #[inline]
            fn core(&self) -> &Core<B> {
                &self.guarded.core
            }

            #[inline]
            fn narrow(self) -> Self {
                self
            }
        }

        // SAFETY: as by borrow.
        unsafe impl<T: ?Sized, B: Backend> Pointer for Arc<crate::$primitive<T, B>> {
            type Value = T;
            type Access = $access;

            #[inline]
            fn guarded(&self) -> &Guarded<T, B, $access> {
                &self.guarded
            }
        }
    };
}

pointers!(Mutex, Alone);
pointers!(RwLock, Together);

/// A guard over the value, or over a part of it.
pub struct Guard<V: ?Sized, H: Hold, S: Share> {
    value: NonNull<V>,
    hold: H,
    holder: Holder,
    share: PhantomData<S>,
    /// As `&mut V`: invariant.
    value_type: PhantomData<*mut V>,
}

// SAFETY: such a guard is a `&mut V`, and what it holds. It becomes a `&V` beside
// others only where it holds the lock itself (`downgrade`): a pointer to a value
// of `Together` is `Send` only if the value is `Sync`.
unsafe impl<V: ?Sized + Send, H: Hold + Send> Send for Guard<V, H, All> {}
// SAFETY: such a guard is a `&V`, becomes a `&mut V` when it is upgraded, and what
// it holds.
unsafe impl<V: ?Sized + Send + Sync, H: Hold + Send> Send for Guard<V, H, Half> {}
// SAFETY: such a guard is a `&V`, and what it holds.
unsafe impl<V: ?Sized + Sync, H: Hold + Send> Send for Guard<V, H, One> {}
// SAFETY: a guard that is shared is a `&V`, and what it holds.
unsafe impl<V: ?Sized + Sync, H: Hold + Sync, S: Share> Sync for Guard<V, H, S> {}

impl<V: ?Sized, H: Hold, S: Share> Guard<V, H, S> {
    /// A guard of a pointer's value.
    ///
    /// # Safety
    ///
    /// Its share of the permits has been taken, for this guard.
    #[inline]
    unsafe fn new(pointer: H, location: CallerLocation) -> Self
    where
        H: Pointer<Value = V>,
    {
        let value = pointer.guarded().value.get();
        Self {
            // SAFETY: a cell's pointer is not null.
            value: unsafe { NonNull::new_unchecked(value) },
            holder: pointer.core().holders.enter(location),
            hold: pointer,
            share: PhantomData,
            value_type: PhantomData,
        }
    }

    /// Takes its share of the permits, if they are there.
    #[cfg_attr(feature = "locations", track_caller)]
    #[inline]
    pub(crate) fn try_new(pointer: H) -> Option<Self>
    where
        H: Pointer<Value = V>,
        S: Of<H::Access>,
    {
        let location = CallerLocation::capture();
        let Core { permits, all, .. } = pointer.core();
        let taken = match S::IS_ALL {
            true => permits.try_acquire_all(*all),
            false => permits.try_acquire(Request::exactly(S::of(*all))),
        };
        // SAFETY: they have just been taken.
        taken
            .is_ok()
            .then(|| unsafe { Self::new(pointer, location) })
    }

    /// Forgets what it can of the value's type.
    #[inline]
    pub(crate) fn narrow(self) -> Guard<V, H::Narrow, S> {
        let value = self.value;
        self.with_value(value)
    }

    /// Keeps a smaller share, and gives the rest back.
    ///
    /// Only of a guard that holds the lock itself: see its `Send`.
    pub(crate) fn downgrade<L: Share>(self) -> Guard<V, H, L>
    where
        H: Pointer<Value = V, Access = Together>,
        S: Contains<L>,
    {
        let (value, hold, holder) = self.into_parts();
        // First the guard: a waker that panics is woken by what follows.
        let guard = Guard {
            value,
            hold,
            holder,
            share: PhantomData::<L>,
            value_type: PhantomData,
        };
        let Core { permits, all, .. } = guard.hold.core();
        permits.release(S::of(*all) - L::of(*all));
        guard
    }

    pub(crate) fn hold(&self) -> &H {
        &self.hold
    }

    /// The same share over another place, which is a part of the one before.
    #[inline]
    fn with_value<W: ?Sized>(self, value: NonNull<W>) -> Guard<W, H::Narrow, S> {
        let (_, hold, holder) = self.into_parts();
        Guard {
            value,
            hold: hold.narrow(),
            holder,
            share: PhantomData,
            value_type: PhantomData,
        }
    }

    /// The parts of a guard whose permits the caller keeps.
    #[inline]
    fn into_parts(self) -> (NonNull<V>, H, Holder) {
        let mut this = ManuallyDrop::new(self);
        let holder = core::mem::take(&mut this.holder);
        // SAFETY: `this` is not used again and not dropped.
        (
            this.value,
            unsafe { core::ptr::read(&raw const this.hold) },
            holder,
        )
    }
}

/// A share by which the value is read only.
///
/// # Safety
///
/// It is not [`All`]: what `&V` was narrowed to is not to be written.
pub unsafe trait Shared: Share {}

// SAFETY: it is another.
unsafe impl Shared for One {}
// SAFETY: it is another.
unsafe impl Shared for Half {}

impl<V: ?Sized, H: Hold, S: Shared> Guard<V, H, S> {
    /// Narrows the guard to a part of the value.
    pub(crate) fn map_shared<W: ?Sized>(self, f: impl FnOnce(&V) -> &W) -> Guard<W, H::Narrow, S> {
        let value = NonNull::from(f(&self));
        self.with_value(value)
    }

    /// Narrows the guard to a part of the value, if there is that part.
    pub(crate) fn try_map_shared<W: ?Sized>(
        self,
        f: impl FnOnce(&V) -> Option<&W>,
    ) -> Result<Guard<W, H::Narrow, S>, Self> {
        match f(&self).map(NonNull::from) {
            Some(value) => Ok(self.with_value(value)),
            None => Err(self),
        }
    }
}

impl<V: ?Sized, H: Hold> Guard<V, H, All> {
    /// Narrows the guard to a part of the value.
    pub(crate) fn map<W: ?Sized>(
        mut self,
        f: impl FnOnce(&mut V) -> &mut W,
    ) -> Guard<W, H::Narrow, All> {
        let value = NonNull::from(f(&mut self));
        self.with_value(value)
    }

    /// Narrows the guard to a part of the value, if there is that part.
    pub(crate) fn try_map<W: ?Sized>(
        mut self,
        f: impl FnOnce(&mut V) -> Option<&mut W>,
    ) -> Result<Guard<W, H::Narrow, All>, Self> {
        match f(&mut self).map(NonNull::from) {
            Some(value) => Ok(self.with_value(value)),
            None => Err(self),
        }
    }
}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> Guard<V, H, All> {
    /// Keeps one permit, over a part of the value.
    pub(crate) fn downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&V) -> &W,
    ) -> Guard<W, H::Narrow, One> {
        let value = NonNull::from(f(&self));
        self.downgrade().with_value(value)
    }

    /// Keeps one permit, over a part of the value, if there is that part.
    pub(crate) fn try_downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&V) -> Option<&W>,
    ) -> Result<Guard<W, H::Narrow, One>, Self> {
        match f(&self).map(NonNull::from) {
            Some(value) => Ok(self.downgrade().with_value(value)),
            None => Err(self),
        }
    }
}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> Guard<V, H, Half> {
    /// Takes the rest of the permits, if they are there, whoever waits for some.
    pub(crate) fn try_upgrade(self) -> Result<Guard<V, H, All>, Self> {
        let core = self.hold.core();
        match core.permits.try_acquire_priority(rest(core.all)) {
            // SAFETY: half and the rest are all.
            Ok(_) => Ok(unsafe { self.upgraded() }),
            Err(_) => Err(self),
        }
    }

    /// The guard of all.
    ///
    /// # Safety
    ///
    /// The rest of the permits has been taken, for this guard.
    unsafe fn upgraded(self) -> Guard<V, H, All> {
        let (value, hold, holder) = self.into_parts();
        Guard {
            value,
            hold,
            holder,
            share: PhantomData,
            value_type: PhantomData,
        }
    }
}

/// Forgets the type of the whole value.
impl<'a, T: ?Sized, V: ?Sized, B: Backend, S: Share> From<Guard<V, &'a crate::RwLock<T, B>, S>>
    for Guard<V, &'a Core<B>, S>
{
    #[inline]
    fn from(guard: Guard<V, &'a crate::RwLock<T, B>, S>) -> Self {
        guard.narrow()
    }
}

/// What half leaves of all.
fn rest(all: usize) -> usize {
    all - Half::of(all)
}

impl<V: ?Sized, H: Hold, S: Share> Deref for Guard<V, H, S> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.hold.core().witness.read();
        // SAFETY: while the guard holds its share, nobody holds all of the
        // permits, or it does itself and is borrowed: nobody writes. The value
        // is kept alive by what the guard holds.
        unsafe { self.value.as_ref() }
    }
}

impl<V: ?Sized, H: Hold> DerefMut for Guard<V, H, All> {
    #[inline]
    fn deref_mut(&mut self) -> &mut V {
        self.hold.core().witness.write();
        // SAFETY: the guard holds every permit, so nobody else reaches the
        // value, and is borrowed exclusively.
        unsafe { self.value.as_mut() }
    }
}

impl<V: ?Sized, H: Hold, S: Share> Drop for Guard<V, H, S> {
    #[inline]
    fn drop(&mut self) {
        let Core {
            permits,
            all,
            holders,
            ..
        } = self.hold.core();
        holders.leave(&mut self.holder);
        match S::IS_ALL {
            true => permits.release_all(*all),
            false => permits.release(S::of(*all)),
        }
    }
}

/// Somebody who waits for a [`Guard`].
#[must_use = "nothing is acquired unless it is polled"]
pub struct AcquireGuard<P: Pointer, S: Of<P::Access>> {
    /// None once it has been ready.
    pointer: Option<P>,
    acquire: AcquireState,
    share: PhantomData<S>,
}

impl<P: Pointer, S: Of<P::Access>> AcquireGuard<P, S> {
    #[cfg_attr(feature = "locations", track_caller)]
    #[inline]
    pub(crate) fn new(pointer: P) -> Self {
        Self {
            pointer: Some(pointer),
            acquire: AcquireState::new(),
            share: PhantomData,
        }
    }
}

impl<P: Pointer, S: Of<P::Access>> Unpin for AcquireGuard<P, S> {}

impl<P: Pointer, S: Of<P::Access>> AcquireGuard<P, S> {
    /// Polls for the guard, as the operation `name`. Ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name where it has been ready.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Guard<P::Value, P, S>> {
        let starts = match &self.pointer {
            Some(pointer) => {
                let Core { permits, all, .. } = pointer.core();
                match S::IS_ALL {
                    true => self.acquire.try_start_all(*all, permits),
                    false => {
                        let request = Request::exactly(S::of(*all));
                        self.acquire.try_start(request, permits)
                    }
                }
            }
            None => polled_again(name),
        };
        match starts {
            // SAFETY: the share's permits of this pointer's value have been taken
            // just now.
            Ok(_) => Poll::Ready(unsafe { self.guard() }),
            Err(found) => self.poll_slow(found, cx),
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_slow(&mut self, found: Bits, cx: &mut Context<'_>) -> Poll<Guard<P::Value, P, S>> {
        let pointer = self.pointer.as_ref().expect("it was there a moment ago");
        let Core { permits, all, .. } = pointer.core();
        let mut request = Request::exactly(S::of(*all));
        match self.acquire.poll(found, &mut request, permits, cx) {
            Poll::Pending => Poll::Pending,
            // SAFETY: `acquire` asks for the share's permits, of this pointer's
            // value and no other, and has been given them just now.
            Poll::Ready(Ok(_)) => Poll::Ready(unsafe { self.guard() }),
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
    }

    /// The guard, once.
    ///
    /// # Safety
    ///
    /// The share's permits, of this pointer's value, have been taken for it.
    #[inline]
    unsafe fn guard(&mut self) -> Guard<P::Value, P, S> {
        let pointer = self.pointer.take().expect("it was there a moment ago");
        // SAFETY: the caller's promise is the one asked for.
        unsafe { Guard::new(pointer, self.acquire.location()) }
    }
}

impl<P: Pointer, S: Of<P::Access>> Drop for AcquireGuard<P, S> {
    #[inline]
    fn drop(&mut self) {
        if let Some(pointer) = &self.pointer {
            let Core { permits, all, .. } = pointer.core();
            self.acquire.cancel(&Request::exactly(S::of(*all)), permits);
        }
    }
}

#[cold]
fn polled_again(name: &str) -> ! {
    panic!("{name} polled after it was ready")
}

/// Somebody who waits for a [`Guard`] of [`All`], with one of [`Half`].
#[must_use = "nothing is acquired unless it is polled"]
pub struct UpgradeGuard<V: ?Sized, H: Pointer<Value = V, Access = Together>> {
    /// None once it has been ready.
    guard: Option<Guard<V, H, Half>>,
    acquire: AcquireState,
}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> UpgradeGuard<V, H> {
    #[cfg_attr(feature = "locations", track_caller)]
    pub(crate) fn new(guard: Guard<V, H, Half>) -> Self {
        Self {
            guard: Some(guard),
            acquire: AcquireState::with_priority(),
        }
    }
}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> Unpin for UpgradeGuard<V, H> {}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> UpgradeGuard<V, H> {
    /// Polls for the guard, as the operation `name`. Ready once.
    ///
    /// # Panics
    ///
    /// Panics with the name where it has been ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Guard<V, H, All>> {
        let Some(guard) = &self.guard else {
            polled_again(name)
        };
        let Core { permits, all, .. } = guard.hold.core();
        let mut request = Request::exactly(rest(*all));
        match self.acquire.poll(Bits::EMPTY, &mut request, permits, cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(_)) => unreachable!("the permits of a value are never closed"),
        }
        let guard = self.guard.take().expect("it was there a moment ago");
        // SAFETY: `acquire` asks for the rest of the guard's permits, and has
        // been given them just now.
        Poll::Ready(unsafe { guard.upgraded() })
    }
}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> Drop for UpgradeGuard<V, H> {
    fn drop(&mut self) {
        if let Some(guard) = &self.guard {
            let Core { permits, all, .. } = guard.hold.core();
            self.acquire.cancel(&Request::exactly(rest(*all)), permits);
        }
    }
}

impl<T: ?Sized, B: Backend, A> fmt::Debug for Guarded<T, B, A> {
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

impl<V: ?Sized, H: Hold, S: Share> fmt::Debug for Guard<V, H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl<P: Pointer, S: Of<P::Access>> fmt::Debug for AcquireGuard<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireGuard").finish_non_exhaustive()
    }
}

impl<V: ?Sized, H: Pointer<Value = V, Access = Together>> fmt::Debug for UpgradeGuard<V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeGuard").finish_non_exhaustive()
    }
}
