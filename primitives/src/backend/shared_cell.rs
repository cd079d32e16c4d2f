//! A cell that threads share, as far as the backend and the value allow it.
//!
//! The primitives keep values beside a lock whose bits say which thread may access
//! them. This type carries the auto traits of all of these cells. It gives out raw
//! pointers only, so each access has an argument of its own.

use super::{Backend, Cell, DefaultBackend, SharedBackend};

/// A cell of the backend `B`. It is `Sync` if the value may move from thread to thread,
/// since a shared borrow gives no reference to it.
pub(crate) struct SharedCell<T, B: Backend>(B::Cell<T>);

impl<T> SharedCell<T, DefaultBackend> {
    const_unless_loom! {
        /// Creates a cell, in a constant.
        pub(crate) const fn const_new(value: T) -> Self {
            Self(super::default_cell(value))
        }
    }
}

impl<T, B: Backend> SharedCell<T, B> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self(B::Cell::new(value))
    }

    /// Lends a pointer for a read, as [`Cell::with`] does.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// Lends a pointer for a write, as [`Cell::with_mut`] does.
    #[inline]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

// SAFETY: several threads may use a cell of a shared backend whose value is `Send`, for
// as long as the accesses that they make through the pointers do not race
// (`SharedBackend`). Lending a pointer is no access (`Cell`), and what makes an access
// argues that it does not race.
unsafe impl<T: Send, B: SharedBackend> Sync for SharedCell<T, B> {}
// SAFETY: a cell whose value is `Send` may be sent (`SharedBackend`).
unsafe impl<T: Send, B: SharedBackend> Send for SharedCell<T, B> {}
