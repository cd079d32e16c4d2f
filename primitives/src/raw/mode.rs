//! The modes in which a lock is held.
//!
//! ```text
//!   mode         permits           beside it              its value
//!   Shared       one               Shared, Upgradable     &T
//!   Upgradable   more than half    Shared                 &T
//!   Exclusive    all               nothing                &mut T
//! ```
//!
//! A mode is a pointer to the value, and has the auto traits and the variance of the
//! reference that it stands for. It says nothing of the permits: those are the guard's.

use core::marker::PhantomData;
use core::ptr::NonNull;

/// A mode in which a lock is held, and the pointer to the value that goes with it.
pub(crate) trait Mode {
    /// What the guard reaches.
    type Value: ?Sized;

    /// Whether it is all permits.
    const EXCLUSIVE: bool = false;

    /// Returns how many of `all` permits it is.
    fn permits(all: usize) -> usize;

    /// A pointer in this mode, which says nothing of the permits.
    fn new(value: NonNull<Self::Value>) -> Self;

    /// Returns the pointer.
    fn value(&self) -> NonNull<Self::Value>;
}

/// One permit: a `&V`, beside others.
pub(crate) struct Shared<V: ?Sized>(NonNull<V>);

/// More than half of the permits, of which there is one holder: a `&V` that can
/// become a `&mut V`.
pub(crate) struct Upgradable<V: ?Sized>(Shared<V>, PhantomData<Exclusive<V>>);

/// All permits: a `&mut V`.
pub(crate) struct Exclusive<V: ?Sized>(NonNull<V>, PhantomData<(*mut V, NotUnwindSafe)>);

/// As every `&mut`.
type NotUnwindSafe = &'static mut ();

// SAFETY: it stands for a `&V`, which is `Send` if `V` is `Sync`.
unsafe impl<V: ?Sized + Sync> Send for Shared<V> {}
// SAFETY: it stands for a `&V`.
unsafe impl<V: ?Sized + Sync> Sync for Shared<V> {}
// SAFETY: it stands for a `&mut V`.
unsafe impl<V: ?Sized + Send> Send for Exclusive<V> {}
// SAFETY: it stands for a `&mut V`, which gives by shared borrow a `&V`.
unsafe impl<V: ?Sized + Sync> Sync for Exclusive<V> {}

impl<V: ?Sized> Mode for Shared<V> {
    type Value = V;

    #[inline]
    fn permits(_: usize) -> usize {
        1
    }

    #[inline]
    fn new(value: NonNull<V>) -> Self {
        Self(value)
    }

    #[inline]
    fn value(&self) -> NonNull<V> {
        self.0
    }
}

impl<V: ?Sized> Mode for Upgradable<V> {
    type Value = V;

    #[inline]
    fn permits(all: usize) -> usize {
        all / 2 + 1
    }

    #[inline]
    fn new(value: NonNull<V>) -> Self {
        Self(Shared(value), PhantomData)
    }

    #[inline]
    fn value(&self) -> NonNull<V> {
        self.0.0
    }
}

impl<V: ?Sized> Mode for Exclusive<V> {
    type Value = V;
    const EXCLUSIVE: bool = true;

    #[inline]
    fn permits(all: usize) -> usize {
        all
    }

    #[inline]
    fn new(value: NonNull<V>) -> Self {
        Self(value, PhantomData)
    }

    #[inline]
    fn value(&self) -> NonNull<V> {
        self.0
    }
}
