//! The backend: the protocol's only way to touch the world.

use core::cell::UnsafeCell;

use super::RawStateLock;

/// What a primitive stands on: a lock, and a cell that a checker can watch.
///
/// Primitives are generic over it with a default, as `Vec<T, A>` is over its
/// allocator: `channel()` belongs to the default, `channel_in::<T, B>()` to any
/// other.
pub trait Backend: Sized + 'static {
    /// Bits and a state under one lock.
    type Lock<S>: RawStateLock<S>;

    /// Interior mutability whose accesses a checker can see.
    type Cell<T>: Cell<T>;
}

/// A backend whose locks threads may share.
///
/// # Safety
///
/// - The promises of [`RawStateLock`] hold between threads: a lock whose state is
///   `Send` may be sent to another thread, and used by several at once.
/// - A cell whose value is `Send` may be sent to another thread. Several threads may
///   use one cell at once, each by [`with`](Cell::with) or
///   [`with_mut`](Cell::with_mut), for as long as the accesses that they make through
///   the pointers do not race: reads beside reads, or a write that happens after all
///   accesses before it.
pub unsafe trait SharedBackend: Backend {}

/// A backend on which a thread can block.
pub trait BlockingBackend: SharedBackend {
    /// What blocks it.
    type Park: Park;
}

/// Interior mutability: `UnsafeCell` with its accesses as closures.
///
/// # Safety
///
/// - The pointers given out are to the one value of the cell, aligned, and valid for
///   reads and writes. They stay so after the closure has returned, until the cell is
///   moved, dropped or borrowed exclusively.
/// - The cell itself never accesses the value through a shared borrow. So neither
///   `with` nor `with_mut` is an access, on whatever thread it is called: accesses are
///   what the caller does through the pointers, and that they do not conflict is the
///   caller's part.
/// - Dropping the cell drops its value.
pub unsafe trait Cell<T> {
    /// A cell with a value.
    fn new(value: T) -> Self;

    /// Lends a pointer for a read, beside any number of others.
    ///
    /// A checker may panic where a write is under way.
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R;

    /// Lends a pointer for a write, beside no other access.
    ///
    /// A checker may panic where another access is under way.
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R;
}

/// What one blocked thread sleeps on.
///
/// An `unpark` that comes before the `park` is kept; several merge into one.
pub trait Park: Send + Sync + 'static {
    /// A parker for the current thread.
    fn new() -> Self;

    /// Blocks until unparked. Only the thread that made the parker calls this.
    fn park(&self);

    /// Lets the next or current `park` return.
    fn unpark(&self);
}

/// The backend of those who name none: [`Native`](super::Native) with `std`,
/// [`Spin`](super::Spin) without, and `Loom` under `--cfg loom`.
#[cfg(loom)]
pub type DefaultBackend = super::Loom;

/// The backend of those who name none: [`Native`](super::Native) with `std`,
/// [`Spin`](super::Spin) without, and `Loom` under `--cfg loom`.
#[cfg(all(not(loom), feature = "std"))]
pub type DefaultBackend = super::Native;

/// The backend of those who name none: `Native` with `std`,
/// [`Spin`](super::Spin) without, and `Loom` under `--cfg loom`.
#[cfg(all(not(loom), not(feature = "std")))]
pub type DefaultBackend = super::Spin;

// SAFETY: `UnsafeCell::get` is the address of the value, which stands in the cell, and
// accesses nothing. The cell drops its value.
unsafe impl<T> Cell<T> for UnsafeCell<T> {
    #[inline]
    fn new(value: T) -> Self {
        UnsafeCell::new(value)
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.get())
    }

    #[inline]
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.get())
    }
}
