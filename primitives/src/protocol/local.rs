//! `Local`: one thread, no atomics.

use core::cell::{Cell, RefCell, UnsafeCell};

use super::{Backend, Bits, RawStateLock, StateLock};

/// The backend for a single thread: no atomics, and nothing over it is `Send`
/// or `Sync`.
///
/// It does not block ([`BlockingBackend`](super::BlockingBackend) is not
/// implemented): on one thread nobody could end the wait.
///
/// ```compile_fail,E0277
/// use reveille::{oneshot, protocol::Local};
///
/// let (tx, rx) = oneshot::channel_in::<u32, Local>();
/// std::thread::spawn(move || tx.send(1));
/// ```
#[derive(Debug)]
pub struct Local;

impl Backend for Local {
    type Lock<S> = LocalLock<S>;
    type Cell<T> = UnsafeCell<T>;
}

impl<S> StateLock<S, Local> {
    /// A lock over [`Local`], in a constant.
    #[must_use]
    pub const fn const_new(bits: Bits, state: S) -> Self {
        Self::from_raw(LocalLock {
            bits: Cell::new(bits),
            state: RefCell::new(state),
        })
    }
}

/// Bits and a state of one thread. A section within a section, which the typed
/// lock rules out, panics.
#[derive(Debug)]
pub struct LocalLock<S> {
    bits: Cell<Bits>,
    state: RefCell<S>,
}

/// Leaves the bits of a section on the way out of it, by return or by
/// unwinding.
struct Held<'a> {
    lock: &'a Cell<Bits>,
    bits: Bits,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.set(self.bits);
    }
}

// SAFETY: exclusion: the lock is not `Sync`, so only one thread reaches it, and
// on it the `RefCell` refuses a section within another; `update` runs no code
// between its load and its store but `f`, whose outcome a section within `f`
// would make stale, and `f` is the primitive's own. Visibility and last access
// are those of one thread.
unsafe impl<S> RawStateLock<S> for LocalLock<S> {
    fn new(bits: Bits, state: S) -> Self {
        Self {
            bits: Cell::new(bits),
            state: RefCell::new(state),
        }
    }

    #[inline]
    fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        let old = self.bits.get();
        match f(old) {
            Some(new) => {
                self.bits.set(new);
                Ok(old)
            }
            None => Err(old),
        }
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let mut state = self.state.borrow_mut();
        let mut held = Held {
            bits: self.bits.get(),
            lock: &self.bits,
        };
        f(&mut held.bits, &mut state)
    }

    #[inline]
    fn load(&self) -> Bits {
        self.bits.get()
    }

    #[inline]
    unsafe fn store(&self, bits: Bits) {
        self.bits.set(bits);
    }

    fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        f(self.bits.get_mut(), self.state.get_mut())
    }
}
