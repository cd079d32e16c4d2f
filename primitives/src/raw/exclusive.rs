//! A value that is reached by exclusive borrow only, and so can be shared.

use core::fmt;
use core::panic::RefUnwindSafe;

/// A value that is reached by exclusive borrow only.
///
/// A shared reference to it reaches nothing, so threads may share it whatever the
/// value is: a receiver of values that are `Send` can be `Sync`.
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

    /// Returns the value by exclusive borrow.
    #[inline]
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

// SAFETY: nothing of this type gives access to the value by `&self`: the one way to
// it is `&mut self`, which one thread has at a time, and to have it on another thread
// takes `T: Send`, since `Exclusive<T>` is `Send` only where `T` is.
unsafe impl<T> Sync for Exclusive<T> {}

/// As for `Sync`: a shared borrow reaches nothing.
impl<T> RefUnwindSafe for Exclusive<T> {}

impl<T> fmt::Debug for Exclusive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive").finish_non_exhaustive()
    }
}
