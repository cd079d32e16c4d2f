//! A wrapper that gives access to its value by exclusive borrow only, so that it can
//! be shared.

use core::fmt;
use core::panic::RefUnwindSafe;

/// Wraps a value that is reached by exclusive borrow only.
///
/// A shared reference to the wrapper gives no access to the value, so it is `Sync`
/// for every value. A receiver of values that are only `Send` can therefore be
/// `Sync`.
///
/// # Examples
///
/// ```
/// use core::cell::Cell;
/// use reveille::raw::Exclusive;
///
/// const fn sync<T: Sync>(_: &T) {}
/// let mut exclusive = Exclusive::new(Cell::new(1));
/// sync(&exclusive);
/// exclusive.get_mut().set(2);
/// assert_eq!(exclusive.get_mut().get(), 2);
/// ```
#[derive(Default)]
pub struct Exclusive<T>(T);

impl<T> Exclusive<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns a mutable reference to the value.
    #[inline]
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

// SAFETY: no method of this type gives access to the value by `&self`. The only way
// to it is `&mut self`, which one thread has at a time. To have it on another thread
// takes `T: Send`, since `Exclusive<T>` is `Send` only if `T` is.
unsafe impl<T> Sync for Exclusive<T> {}

/// A shared borrow gives no access, as for `Sync`.
impl<T> RefUnwindSafe for Exclusive<T> {}

impl<T> fmt::Debug for Exclusive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive").finish_non_exhaustive()
    }
}
