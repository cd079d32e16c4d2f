//! `Local`: one thread, no atomics.

use core::cell::{Cell, RefCell, UnsafeCell};
use core::sync::atomic::AtomicUsize;

use super::{Backend, RawStateLock};
use crate::protocol::Bits;

/// The backend for a single thread: no atomics, and nothing over it is `Send`
/// or `Sync`.
///
/// It does not block, so [`BlockingBackend`](super::BlockingBackend) is not
/// implemented: on one thread, a wait that blocks it would never end.
///
/// ```compile_fail,E0277
/// use reveille::{oneshot, backend::Local};
///
/// let (tx, rx) = oneshot::channel_in::<u32, Local>();
/// std::thread::spawn(move || tx.send(1));
/// ```
#[derive(Debug)]
pub struct Local;

impl Backend for Local {
    type Lock<S> = LocalLock<S>;
    type Cell<T> = UnsafeCell<T>;
    type Word = AtomicUsize;
}

impl Local {
    /// Creates a lock in a constant.
    pub(crate) const fn lock<S>(bits: Bits, state: S) -> LocalLock<S> {
        LocalLock {
            bits: Cell::new(bits),
            state: RefCell::new(state),
        }
    }
}

/// Bits and a state of one thread.
///
/// A section within the closure of a `with` panics. A section within the closure of
/// an `update` runs, and the closure runs again if that section has replaced the
/// bits.
#[derive(Debug)]
pub struct LocalLock<S> {
    bits: Cell<Bits>,
    state: RefCell<S>,
}

/// Stores the bits of a section when it ends, by a return or a panic.
struct UnlockOnDrop<'a> {
    lock: &'a Cell<Bits>,
    bits: Bits,
}

impl Drop for UnlockOnDrop<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.set(self.bits);
    }
}

/// The message of a section that cannot begin, since another one runs on this thread,
/// further up the stack.
const WITHIN_ANOTHER: &str = "a section of a `Local` lock began within another of the same lock: \
    leave the first one before the second";

// SAFETY: Exclusion: the lock is not `Sync`, so only one thread reaches it. On that
// thread, the `RefCell` refuses a `with` within a `with`, and `update` checks it
// before it stores. An `update` runs no code between its comparison and its store,
// and stores only if the bits are those that its closure was given. A section within
// the closure has then left them as they were. Visibility and last access are those
// of one thread.
unsafe impl<S> RawStateLock<S> for LocalLock<S> {
    fn new(bits: Bits, state: S) -> Self {
        Self {
            bits: Cell::new(bits),
            state: RefCell::new(state),
        }
    }

    #[inline]
    fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        loop {
            let old = self.bits.get();
            let Some(new) = f(old) else {
                return Err(old);
            };
            assert!(self.state.try_borrow_mut().is_ok(), "{WITHIN_ANOTHER}");
            // If a section within `f` has replaced the bits, `f` runs again, as over
            // a lock of threads.
            if self.bits.get() == old {
                self.bits.set(new);
                return Ok(old);
            }
        }
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let Ok(mut state) = self.state.try_borrow_mut() else {
            panic!("{WITHIN_ANOTHER}")
        };
        let mut guard = UnlockOnDrop {
            bits: self.bits.get(),
            lock: &self.bits,
        };
        f(&mut guard.bits, &mut state)
    }

    #[inline]
    fn load(&self) -> Bits {
        self.bits.get()
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        f(self.bits.get_mut(), self.state.get_mut())
    }
}
