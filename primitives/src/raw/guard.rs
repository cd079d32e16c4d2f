//! The guards that give access to a value under a lock.
//!
//! Only this file gives out `&mut T`. A guard is a pointer to the value in its
//! [mode](super::mode), and the [`Held`] permits of that mode.
//!
//! Invariant: the pointer of a guard is to the value of the lock that it holds, or to a
//! part that a reference to the value gave out.
//!
//! *Auto traits.* A mode is a pointer to the value, and is `Send` and `Sync` as the
//! reference that it stands for. The handle determines what a guard can become. Only
//! a guard that holds a whole primitive of [`AllModes`] changes its mode, and a handle
//! to such a primitive is `Send` only if the value is `Send` and `Sync`. A guard that
//! has been narrowed to the [`RawLock`] keeps its mode.

use core::ops::{Deref, DerefMut};
use core::panic::RefUnwindSafe;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use super::held::{Acquire, Handle, Held, Lock, RawLock, Upgrade};
use super::mode::{AllModes, Exclusive, Mode, ModeOf, Shared, Upgradable};
use crate::protocol::CallerLocation;

/// A lock, held through the handle `H` in the mode `M`.
pub(crate) struct Guard<H: Handle, M: Mode> {
    mode: M,
    held: Held<H, M>,
}

impl<H: Handle, M: Mode> Guard<H, M> {
    /// Makes the guard of the value of a whole primitive.
    #[inline]
    fn new<K>(held: Held<H, M>) -> Self
    where
        H: Deref<Target = K>,
        K: Lock<Value = M::Value> + ?Sized,
    {
        Self {
            mode: M::new(held.handle().guarded().value()),
            held,
        }
    }

    /// Acquires the lock in the mode `M`, if its permits are free.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) fn try_acquire<K>(handle: H) -> Option<Self>
    where
        H: Deref<Target = K>,
        K: Lock + ?Sized,
        M: ModeOf<K::Modes> + Mode<Value = K::Value>,
    {
        Held::try_acquire(handle, CallerLocation::capture()).map(Self::new)
    }

    pub(crate) const fn handle(&self) -> &H {
        self.held.handle()
    }
}

impl<'a, K: Lock + ?Sized, M: Mode> Guard<&'a K, M> {
    /// Forgets the type of the whole value. The guard cannot change its mode from
    /// then on.
    #[inline]
    pub(crate) fn narrow(self) -> Guard<&'a RawLock<K::Backend>, M> {
        Guard {
            mode: self.mode,
            held: self.held.narrow(),
        }
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

impl<H, K> Guard<H, Upgradable<K::Value>>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    /// Upgrades to exclusive mode if there is no other holder. It goes before all
    /// waiters.
    pub(crate) fn try_upgrade(self) -> Result<Guard<H, Exclusive<K::Value>>, Self> {
        let Self { mode, held } = self;
        match held.try_upgrade() {
            Ok(held) => Ok(Guard::new(held)),
            Err(held) => Err(Self { mode, held }),
        }
    }

    /// Downgrades to shared mode.
    pub(crate) fn downgrade(self) -> Guard<H, Shared<K::Value>> {
        Guard::new(self.held.downgrade())
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
        Guard::new(self.held.downgrade())
    }

    /// Downgrades to upgradable mode.
    pub(crate) fn downgrade_to_upgradable(self) -> Guard<H, Upgradable<K::Value>> {
        Guard::new(self.held.downgrade())
    }

    /// Downgrades to shared mode, over a part of the value.
    pub(crate) fn downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&K::Value) -> &W,
    ) -> Guard<H, Shared<W>> {
        let part = NonNull::from(f(&self));
        Guard {
            mode: Shared::new(part),
            held: self.held.downgrade(),
        }
    }

    /// Downgrades to shared mode, over a part of the value, if `f` returns one.
    pub(crate) fn try_downgrade_map<W: ?Sized>(
        self,
        f: impl FnOnce(&K::Value) -> Option<&W>,
    ) -> Result<Guard<H, Shared<W>>, Self> {
        match f(&self).map(NonNull::from) {
            Some(part) => Ok(Guard {
                mode: Shared::new(part),
                held: self.held.downgrade(),
            }),
            None => Err(self),
        }
    }
}

impl<H: Handle, V: ?Sized> Guard<H, Shared<V>> {
    /// Narrows the guard to a part of the value.
    pub(crate) fn map<W: ?Sized>(self, f: impl FnOnce(&V) -> &W) -> Guard<H, Shared<W>> {
        let part = NonNull::from(f(&self));
        Guard {
            mode: Shared::new(part),
            held: self.held.of_part(),
        }
    }

    /// Narrows the guard to a part of the value, if `f` returns one.
    pub(crate) fn try_map<W: ?Sized>(
        self,
        f: impl FnOnce(&V) -> Option<&W>,
    ) -> Result<Guard<H, Shared<W>>, Self> {
        match f(&self).map(NonNull::from) {
            Some(part) => Ok(Guard {
                mode: Shared::new(part),
                held: self.held.of_part(),
            }),
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
        Guard {
            mode: Exclusive::new(part),
            held: self.held.of_part(),
        }
    }

    /// Narrows the guard to a part of the value, if `f` returns one.
    pub(crate) fn try_map<W: ?Sized>(
        mut self,
        f: impl FnOnce(&mut V) -> Option<&mut W>,
    ) -> Result<Guard<H, Exclusive<W>>, Self> {
        match f(&mut self).map(NonNull::from) {
            Some(part) => Ok(Guard {
                mode: Exclusive::new(part),
                held: self.held.of_part(),
            }),
            None => Err(self),
        }
    }
}

impl<H: Handle, M: Mode> Deref for Guard<H, M> {
    type Target = M::Value;

    #[inline]
    fn deref(&self) -> &M::Value {
        self.held.reads();
        // SAFETY: the pointer is to the value, or to a part that a reference to the
        // value gave out, and the handle keeps the value alive. By the invariant of
        // `Held` no other guard is exclusive while this guard exists. If this guard
        // is exclusive, it is borrowed here. So there is no `&mut`.
        unsafe { self.mode.value().as_ref() }
    }
}

impl<H: Handle, V: ?Sized> DerefMut for Guard<H, Exclusive<V>> {
    #[inline]
    fn deref_mut(&mut self) -> &mut V {
        self.held.writes();
        // SAFETY: as for `deref`. By the invariant of `Held` there is no other guard,
        // and this one is borrowed exclusively.
        unsafe { self.mode.value().as_mut() }
    }
}

/// A shared borrow of a guard gives a `&` of its value, and of the primitive, which
/// stays locked. This does not hold for an `Arc`, which can be cloned and outlive the
/// guard.
impl<K: ?Sized, M: Mode + RefUnwindSafe> RefUnwindSafe for Guard<&K, M> where for<'a> &'a K: Handle {}

/// A waiter for a [`Guard`].
#[must_use = "nothing is acquired unless it is polled"]
pub(crate) struct AcquireGuard<H: Handle, M: Mode>(Acquire<H, M>);

impl<H, K, M> AcquireGuard<H, M>
where
    H: Handle + Deref<Target = K>,
    K: Lock + ?Sized,
    M: Mode<Value = K::Value>,
{
    /// Creates a waiter for the mode `M`.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn new(handle: H) -> Self
    where
        M: ModeOf<K::Modes>,
    {
        Self(Acquire::new(handle))
    }

    /// Polls for the guard, as [`Acquire::poll`] does.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, name: &str) -> Poll<Guard<H, M>> {
        self.0.poll(cx, name).map(Guard::new)
    }
}

/// A waiter for an exclusive guard that holds the lock in upgradable mode.
#[must_use = "nothing is acquired unless it is polled"]
pub(crate) struct UpgradeGuard<H: Handle, V: ?Sized>(Upgrade<H, V>);

/// It holds what a [`Guard`] holds, so the same is true of it.
impl<K: ?Sized, V: ?Sized> RefUnwindSafe for UpgradeGuard<&K, V>
where
    for<'a> &'a K: Handle,
    Upgradable<V>: RefUnwindSafe,
{
}

impl<H, K> UpgradeGuard<H, K::Value>
where
    H: Handle + Deref<Target = K>,
    K: Lock<Modes = AllModes> + ?Sized,
{
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(crate) fn new(guard: Guard<H, Upgradable<K::Value>>) -> Self {
        Self(Upgrade::new(guard.held))
    }

    /// Polls for the guard, as [`Upgrade::poll`] does.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Guard<H, Exclusive<K::Value>>> {
        self.0.poll(cx, name).map(Guard::new)
    }
}
