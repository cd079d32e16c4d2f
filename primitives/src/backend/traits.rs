//! The backend: the protocol's only way to touch the world.

use core::cell::UnsafeCell;

use super::Watcher;
use crate::protocol::Bits;

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

    /// Returns the checker that watches the sections of this thread, if there is one. With
    /// the feature `model`, [`Native`](super::Native) looks for it; otherwise there is none.
    #[inline]
    #[must_use]
    fn watcher() -> Option<&'static dyn Watcher> {
        None
    }
}

/// Bits and a state under one lock: what a backend implements.
///
/// Primitives use it through [`StateLock`](crate::protocol::StateLock), which adds the rules.
///
/// # Safety
///
/// Sections exclude one another, and each happens after the one before it:
///
/// - While the closure of a `with` runs, no other closure of a `with` runs, and no
///   `update`, `exchange` or `store` replaces the bits. The state is borrowed by that
///   closure alone.
/// - The closure of an `update` runs outside every section: it excludes nothing. What
///   it returned is stored in one step with a comparison that has found the bits to be
///   those it was given; where they are others, the closure runs again. So a section
///   may be entered within that closure, on the same thread too. An `exchange` compares
///   and stores likewise.
/// - What `update` and `exchange` return `Ok` for, and what `with` leaves, also by a
///   panic, is what the next section finds. The writes made before a section ended are
///   visible to a thread that enters the next one or sees its bits, by `load` or as what
///   `update` or `exchange` returns, `Err` included.
/// - Nothing of the lock is accessed after another thread can have entered a
///   section that follows: a thread that learns from the bits that it is the last
///   user may free the lock at once.
/// - A lock owns its state: to drop the lock is to drop the state, and `get_mut` gives
///   exclusive access to it.
///
/// A section within the closure of a `with` of the same lock never begins: a lock of
/// threads waits for itself, `Local` and the checkers panic.
pub unsafe trait RawStateLock<S> {
    /// A lock, unlocked.
    fn new(bits: Bits, state: S) -> Self;

    /// A section that needs only the bits: replaces them by what `f` answers,
    /// and returns the bits it found; changes nothing where `f` answers `None`.
    ///
    /// `f` may run more than once, and sections may run between its return and the
    /// comparison with the bits it was given; only the last run counts.
    ///
    /// Where `f` answers `None`, nothing is published either: what was written before
    /// need not be visible to the sections that follow. Who has something to make
    /// known, and finds that its flag is set already, answers with the bits as they
    /// are.
    ///
    /// # Errors
    ///
    /// The bits for which `f` answered `None`.
    fn update(&self, f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits>;

    /// A section that replaces the bits if they are `old`, and may refuse also
    /// where they are: for whoever expects them to be, and need not look first.
    ///
    /// # Errors
    ///
    /// The bits it found.
    fn exchange(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        self.update(|bits| (bits == old).then_some(new)).map(|_| ())
    }

    /// A section that needs the state too.
    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R;

    /// The bits, as the last completed section left them.
    fn load(&self) -> Bits;

    /// A section that sets the bits, for a sole user: a plain store.
    ///
    /// # Safety
    ///
    /// No other thread is in a section or enters one before this call has
    /// returned and the caller has made it known.
    unsafe fn store(&self, bits: Bits);

    /// Bits and state by exclusive borrow, without locking.
    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R;
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
