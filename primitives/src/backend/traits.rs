//! The backend: the only way in which the protocol accesses the outside world.

use core::cell::UnsafeCell;

use super::Watcher;
use crate::protocol::Bits;

/// What a primitive stands on: a lock, and a cell that a checker can watch.
///
/// Primitives are generic over it with a default, as `Vec<T, A>` is over its
/// allocator. `channel()` belongs to the default, `channel_in::<T, B>()` to any
/// backend.
pub trait Backend: Sized + 'static {
    /// Bits and a state under one lock.
    type Lock<S>: RawStateLock<S>;

    /// Interior mutability whose accesses a checker can see.
    type Cell<T>: Cell<T>;

    /// An atomic word, for state that is not under a lock. loom explores its accesses
    /// and their orderings. To the other checkers they are no steps.
    type Word: Word + Send + Sync;

    /// Returns `true` if a checker watches the sections of this thread. Without one, this
    /// is all that a section costs.
    #[inline]
    #[must_use]
    fn is_watched() -> bool {
        false
    }

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
///   `update` or `exchange` replaces the bits. The state is borrowed by that
///   closure alone.
/// - The closure of an `update` runs outside every section and excludes nothing. What
///   it returned is stored in one step with a comparison, which has found the bits to
///   be those that it was given. If they are others, the closure runs again. So a
///   section may be entered within that closure, on the same thread too. An
///   `exchange` compares and stores in the same way.
/// - The bits with which `update` and `exchange` returned `Ok`, and what a `with`
///   leaves, also by a panic, are what the next section finds. The writes made before
///   a section ended are visible to a thread that enters the next section or sees its
///   bits, by `load` or as a result of `update` or `exchange`, `Err` included.
/// - Nothing of the lock is accessed after another thread can have entered a later
///   section. A thread that learns from the bits that it is the last user may free
///   the lock at once.
/// - A lock owns its state: dropping the lock drops the state, and `get_mut` gives
///   exclusive access to it.
///
/// A section within the closure of a `with` of the same lock never begins: a lock of
/// threads deadlocks, and `Local` and the checkers panic.
pub unsafe trait RawStateLock<S> {
    /// Creates an unlocked lock.
    fn new(bits: Bits, state: S) -> Self;

    /// Runs a section that needs only the bits: replaces them by those that `f`
    /// returns, and returns the bits that it found. If `f` returns `None`, nothing
    /// changes.
    ///
    /// `f` may run more than once, and sections may run between its return and the
    /// comparison with the bits that it was given. Only the last run counts.
    ///
    /// If `f` returns `None`, nothing is published either: what was written before
    /// need not be visible to later sections. A caller that must publish something,
    /// and finds that its flag is set already, returns the bits unchanged.
    ///
    /// # Errors
    ///
    /// Returns the bits for which `f` returned `None`.
    fn update(&self, f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits>;

    /// Runs a section that replaces the bits if they are `old`. It may fail
    /// spuriously. It is for a caller that expects the bits to be `old` and need not
    /// load them first.
    ///
    /// # Errors
    ///
    /// Returns the bits that it found.
    fn exchange(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        self.update(|bits| (bits == old).then_some(new)).map(|_| ())
    }

    /// Runs a section that needs the state too.
    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R;

    /// Returns the bits, as the last completed section left them.
    fn load(&self) -> Bits;

    /// Lends the bits and the state by exclusive borrow, without locking.
    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R;
}

/// A backend whose locks threads may share.
///
/// # Safety
///
/// - The promises of [`RawStateLock`] hold between threads. A lock whose state is
///   `Send` may be sent to another thread, and several threads may use it at once.
/// - A cell whose value is `Send` may be sent to another thread. Several threads may
///   use one cell at once, each by [`with`](Cell::with) or
///   [`with_mut`](Cell::with_mut), for as long as the accesses that they make through
///   the pointers do not race: reads beside reads, or a write that happens after all
///   accesses before it.
pub unsafe trait SharedBackend: Backend {}

/// A backend on which a thread can block.
pub trait BlockingBackend: SharedBackend {
    /// What blocks the thread.
    type Park: Park;
}

/// Interior mutability: an `UnsafeCell` with its accesses as closures.
///
/// # Safety
///
/// - The pointers given out are to the one value of the cell, aligned, and valid for
///   reads and writes. They stay so after the closure has returned, until the cell is
///   moved, dropped or borrowed exclusively.
/// - The cell itself never accesses the value through a shared borrow. So neither
///   `with` nor `with_mut` is an access, on whatever thread it is called. Accesses
///   are what the caller does through the pointers, and the caller ensures that they
///   do not conflict.
/// - Dropping the cell drops its value.
pub unsafe trait Cell<T> {
    /// Creates a cell with a value.
    fn new(value: T) -> Self;

    /// Lends a pointer for a read, beside any number of others.
    ///
    /// A checker may panic if a write is in progress.
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R;

    /// Lends a pointer for a write, beside no other access.
    ///
    /// A checker may panic if another access is in progress.
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R;
}

/// What one blocked thread sleeps on.
///
/// An `unpark` that comes before the `park` is kept. Several of them merge into one.
pub trait Park: Send + Sync + 'static {
    /// Creates a parker for the current thread.
    fn new() -> Self;

    /// Blocks until unparked. Only the thread that created the parker calls it.
    fn park(&self);

    /// Lets the current or next `park` return.
    fn unpark(&self);
}

// SAFETY: `UnsafeCell::get` returns the address of the value, which is stored in the
// cell, and accesses nothing. The cell drops its value.
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

/// An atomic word: the operations of `AtomicUsize` that the lock uses, with
/// the orderings it needs in their names.
pub trait Word: Sized {
    /// Creates a word.
    fn new(value: usize) -> Self;
    /// Loads the value, relaxed.
    fn load_relaxed(&self) -> usize;
    /// Loads the value, with acquire ordering.
    fn load_acquire(&self) -> usize;
    /// Stores a value, with release ordering.
    fn store_release(&self, value: usize);
    /// Compares and exchanges, with acquire ordering on success and relaxed
    /// otherwise. It may fail spuriously.
    ///
    /// # Errors
    ///
    /// Returns the value that it found.
    fn lock(&self, old: usize, new: usize) -> Result<usize, usize>;
    /// Compares and exchanges, with acquire and release ordering on success and
    /// acquire otherwise. It may fail spuriously.
    ///
    /// # Errors
    ///
    /// Returns the value that it found.
    fn update(&self, old: usize, new: usize) -> Result<usize, usize>;
    /// Lends the value by exclusive borrow.
    fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R;
}
