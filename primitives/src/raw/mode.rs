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
//! reference that it stands for. It does not hold the permits: the guard does.

use core::marker::PhantomData;
use core::ptr::NonNull;

/// A mode in which a lock is held, with its pointer to the value.
pub(crate) trait Mode {
    /// The type that the guard gives access to.
    type Value: ?Sized;

    /// Whether the mode takes all permits.
    const EXCLUSIVE: bool = false;

    /// Returns the number of permits of the mode, out of `all`.
    fn permits(all: usize) -> usize;

    /// Creates a pointer in this mode, without permits.
    fn new(value: NonNull<Self::Value>) -> Self;

    /// Returns the pointer.
    fn value(&self) -> NonNull<Self::Value>;
}

/// The modes of a primitive that is held in exclusive mode only.
pub(crate) enum OnlyExclusive {}

/// The modes of a primitive that can be held in every mode.
pub(crate) enum AllModes {}

/// A mode that is one of `Modes`.
pub(crate) trait ModeOf<Modes>: Mode {}

/// A mode that takes fewer permits than `M`, to which a guard of `M` can be downgraded.
pub(crate) trait Below<M>: Mode {}

/// One permit: a `&V`, beside other holders.
pub(crate) struct Shared<V: ?Sized>(NonNull<V>);

/// More than half of the permits, which one holder has at a time: a `&V` that can
/// become a `&mut V`.
pub(crate) struct Upgradable<V: ?Sized>(Shared<V>, PhantomData<Exclusive<V>>);

/// All permits: a `&mut V`.
pub(crate) struct Exclusive<V: ?Sized>(NonNull<V>, PhantomData<(*mut V, NotUnwindSafe)>);

/// Not unwind safe, as every `&mut`.
type NotUnwindSafe = &'static mut ();

// SAFETY: it stands for a `&V`, which is `Send` if `V` is `Sync`.
unsafe impl<V: ?Sized + Sync> Send for Shared<V> {}
// SAFETY: it stands for a `&V`.
unsafe impl<V: ?Sized + Sync> Sync for Shared<V> {}
// SAFETY: it stands for a `&mut V`.
unsafe impl<V: ?Sized + Send> Send for Exclusive<V> {}
// SAFETY: it stands for a `&mut V`, of which a shared borrow gives a `&V`.
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

impl<V: ?Sized> ModeOf<AllModes> for Shared<V> {}
impl<V: ?Sized> ModeOf<AllModes> for Upgradable<V> {}
impl<V: ?Sized, Modes> ModeOf<Modes> for Exclusive<V> {}

impl<V: ?Sized, W: ?Sized> Below<Upgradable<V>> for Shared<W> {}
impl<V: ?Sized, W: ?Sized> Below<Exclusive<V>> for Shared<W> {}
impl<V: ?Sized, W: ?Sized> Below<Exclusive<V>> for Upgradable<W> {}
