//! One value, settled once and then shared: the core of a cell that is written
//! once.
//!
//! The value stands in a cell beside the lock, and one bit says whose it is:
//!
//! ```text
//!                 set: INITIALIZED, everybody is called
//!   ┌──────────┐  ────────────────────────────────────▶  ┌─────────────────┐
//!   │ empty│                                         │ everybody's, by │
//!   │          │  ◀────────────────────────────────────  │ shared borrow   │
//!   └──────────┘      take: by exclusive borrow          └─────────────────┘
//! ```
//!
//! Invariants:
//!
//! 1. Until `INITIALIZED`, only the section that sets it touches the cell; from
//!    then on it is only read, or used by exclusive borrow. No section of a
//!    primitive's own can change the bit: what it does to it is not kept. An
//!    `update` keeps it as its closure was given it, and stores nothing if the
//!    bits are others by then.
//! 2. `INITIALIZED` comes in the section in which everybody who waits is called,
//!    and nobody queues afterwards. So calling everybody again, round after
//!    round, finds only those who were called then.

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};

use crate::backend::{Backend, Cell, DefaultBackend, SharedBackend};
use crate::protocol::CallerLocation;
use crate::protocol::{
    Bits, Registered, Registration, Section, StateLock, Waiter, Waiters, WakeList,
};

/// A place for a value that is settled once, and for those who wait for it.
///
/// `S` is who can wait ([`Queues`]): a queue for the value alone, or one for
/// something of the primitive's own too.
///
/// # Examples
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use reveille::backend::Native;
/// use reveille::protocol::{Bits, Waiters};
/// use reveille::protocol::CallerLocation;
/// use reveille::raw::OnceSlot;
///
/// let slot = OnceSlot::<u32, Waiters<()>, Native>::new_in(Waiters::new());
/// let mut cx = Context::from_waker(Waker::noop());
/// let (mut waiter, location) = (None, CallerLocation::capture());
/// assert_eq!(slot.poll_wait(&mut waiter, location, &mut cx), Poll::Pending);
/// assert_eq!(slot.set(7, |_| Some(Bits::EMPTY)), Ok(&7));
/// assert_eq!(slot.poll_wait(&mut waiter, location, &mut cx), Poll::Ready(&7));
/// assert_eq!(slot.get(), Some(&7));
/// ```
pub struct OnceSlot<T, S, B: Backend = DefaultBackend> {
    lock: StateLock<S, B>,
    value: B::Cell<MaybeUninit<T>>,
}

/// The bit that says that the value is there. The bits above it are the
/// primitive's.
pub const INITIALIZED: Bits = Bits::new(1);

/// Who waits beside a value.
pub trait Queues {
    /// Those who wait for the value, and for nothing else.
    fn waits(&mut self) -> &mut Waiters<()>;

    /// Calls everybody who is queued and takes out the wakers of those who have
    /// been called, as many as fit; answers whether there are more.
    fn wake_all(&mut self, wakes: &mut WakeList) -> bool;
}

impl<D: Copy> Waiters<D> {
    /// As [`Queues::wake_all`], for a queue that nobody joins any more.
    pub fn wake_all(&mut self, wakes: &mut WakeList) -> bool {
        let generation = self.notify_all();
        self.wake_notified(generation, wakes)
    }
}

impl Queues for Waiters<()> {
    fn waits(&mut self) -> &mut Waiters<()> {
        self
    }

    fn wake_all(&mut self, wakes: &mut WakeList) -> bool {
        self.wake_all(wakes)
    }
}

impl<T, S> OnceSlot<T, S> {
    const_unless_loom! {
        /// A place without a value, in a constant.
        #[must_use]
        pub const fn const_new(state: S) -> Self {
            Self {
                lock: StateLock::<S, DefaultBackend>::const_new(Bits::EMPTY, state),
                value: crate::backend::default_cell(MaybeUninit::uninit()),
            }
        }

        /// A place with its value, in a constant.
        #[must_use]
        pub const fn const_new_with(value: T, state: S) -> Self {
            Self {
                lock: StateLock::<S, DefaultBackend>::const_new(INITIALIZED, state),
                value: crate::backend::default_cell(MaybeUninit::new(value)),
            }
        }
    }
}

impl<T, S, B: Backend> OnceSlot<T, S, B> {
    /// A place without a value, over any backend.
    pub fn new_in(state: S) -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, state),
            value: B::Cell::new(MaybeUninit::uninit()),
        }
    }

    /// A place with its value, over any backend.
    pub fn new_with_in(value: T, state: S) -> Self {
        Self {
            lock: StateLock::new_in(INITIALIZED, state),
            value: B::Cell::new(MaybeUninit::new(value)),
        }
    }

    /// Whether the value is there.
    #[inline]
    pub fn is_initialized(&self) -> bool {
        self.lock.load().contains(INITIALIZED)
    }

    /// The value, if it is there: a load, and no read-modify-write.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.is_initialized().then(|| self.value())
    }

    /// The value by exclusive borrow, if it is there.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.lock.get_mut(|bits, _| bits.contains(INITIALIZED)) {
            return None;
        }
        Some(self.value.with_mut(|cell| {
            // SAFETY: the cell is borrowed exclusively, as `self` is.
            let cell = unsafe { &mut *cell };
            // SAFETY: `INITIALIZED` is set, so the value has been written.
            unsafe { cell.assume_init_mut() }
        }))
    }

    /// Takes the value out, if it is there, and leaves the place as new: with
    /// the given state, and without what leaked futures left in it.
    pub fn take(&mut self, state: S) -> Option<T> {
        let (initialized, left) = self.lock.get_mut(|bits, old| {
            let initialized = bits.contains(INITIALIZED);
            *bits = Bits::EMPTY;
            (initialized, core::mem::replace(old, state))
        });
        let value = initialized.then(|| {
            self.value.with_mut(|cell| {
                // SAFETY: by exclusive borrow, and nothing reads the value
                // again: the bits no longer speak of it.
                let value = unsafe { cell.read() };
                // SAFETY: `INITIALIZED` was set.
                unsafe { value.assume_init() }
            })
        });
        drop(left);
        value
    }

    /// The bits, as the last completed section left them.
    #[inline]
    pub fn load(&self) -> Bits {
        self.lock.load()
    }

    /// A section that needs only the bits, as [`StateLock::update`]: it may run `f`
    /// again, and cannot change [`INITIALIZED`].
    ///
    /// # Errors
    ///
    /// The bits for which `f` answered `None`.
    #[inline]
    pub fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        self.lock.update(|bits| Some(kept(bits, f(bits)?)))
    }

    /// A section that needs the state, as [`StateLock::with`].
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(Section<'_, S>) -> R) -> R {
        self.lock.with(|section| guarded(section, f))
    }

    /// A consumer's section, as [`StateLock::poll`]; ready with the value where
    /// `f` answers `None`, and otherwise with what it answers.
    ///
    /// # Panics
    ///
    /// As [`StateLock::poll`]; and where `f` answers `None` in a section in
    /// which the value is not there.
    #[inline]
    pub fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        fresh: bool,
        mut f: impl FnMut(Section<'_, S>, Registration<'_>) -> Result<Option<R>, Registered>,
    ) -> Poll<Result<&T, R>> {
        let found = self.lock.poll(cx, fresh, |section, registration| {
            let initialized = section.bits.contains(INITIALIZED);
            guarded(section, |section| f(section, registration)).inspect(|result| {
                assert!(initialized || result.is_some(), "there is no value yet");
            })
        });
        found.map(|result| match result {
            Some(result) => Err(result),
            None => Ok(self.value()),
        })
    }

    /// The value. `INITIALIZED` has been seen.
    #[inline]
    fn value(&self) -> &T {
        self.value.with(|cell| {
            // SAFETY: `Cell` lends the pointer for as long as the cell is borrowed,
            // as `self` is. Since `INITIALIZED` the cell is only read (invariant 1), by
            // several threads perhaps, which may (`SharedBackend`), since `T` is
            // `Sync` where `self` is. A thread that has seen the bit sees what was
            // written before it.
            let cell = unsafe { &*cell };
            // SAFETY: as above, it has been written.
            unsafe { cell.assume_init_ref() }
        })
    }
}

impl<T, S: Queues, B: Backend> OnceSlot<T, S, B> {
    /// Settles the value and wakes everybody, unless it is settled or `flags`
    /// refuses the bits; what it answers are the primitive's bits from then on.
    ///
    /// # Errors
    ///
    /// The value, and the bits that were found.
    pub fn set(&self, value: T, flags: impl FnOnce(Bits) -> Option<Bits>) -> Result<&T, (T, Bits)> {
        let mut given = Some((value, flags));
        let mut refused = None;
        self.lock.rounds(|section| {
            if let Some((value, flags)) = given.take() {
                let before = *section.bits;
                let flags = match before.contains(INITIALIZED) {
                    true => None,
                    false => flags(before),
                };
                let Some(flags) = flags else {
                    refused = Some((value, before));
                    return false;
                };
                self.value.with_mut(|cell| {
                    // SAFETY: `INITIALIZED` is not set, and sections exclude one
                    // another, so nobody else touches the cell (invariant 1).
                    unsafe { cell.write(MaybeUninit::new(value)) }
                });
                *section.bits = flags | INITIALIZED;
            }
            section.state.wake_all(section.wakes)
        });
        match refused {
            Some(refused) => Err(refused),
            None => Ok(self.value()),
        }
    }

    /// Waits for the value, with a place in the queue that `waiter` remembers, as
    /// one that began at `location`.
    #[inline]
    pub fn poll_wait(
        &self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<&T> {
        if waiter.is_none()
            && let Some(value) = self.get()
        {
            return Poll::Ready(value);
        }
        self.lock
            .poll(cx, waiter.is_none(), |section, registration| {
                let waits = section.state.waits();
                if section.bits.contains(INITIALIZED) {
                    if let Some(waiter) = waiter.take() {
                        waits.remove(waiter, section.wakes);
                    }
                    return Ok(());
                }
                let waiter = waiter.get_or_insert_with(|| waits.push(location, ()));
                Err(registration.register(waits.waker(waiter)))
            })
            .map(|()| self.value())
    }

    /// Where each who waits for the value began to.
    #[cfg(feature = "locations")]
    pub(crate) fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.with(|section| section.state.waits().locations())
    }

    /// Gives up the place in the queue.
    pub fn cancel_wait(&self, waiter: &mut Option<Waiter>) {
        if let Some(waiter) = waiter.take() {
            self.lock.with(|section| {
                section.state.waits().remove(waiter, section.wakes);
            });
        }
    }
}

/// New bits, with `INITIALIZED` as it was (invariant 1).
#[inline]
const fn kept(before: Bits, after: Bits) -> Bits {
    match before.contains(INITIALIZED) {
        true => after.with(INITIALIZED),
        false => after.without(INITIALIZED),
    }
}

/// Runs a primitive's own section on a copy of the bits, so that a panic in it
/// does not get past [`kept`] either.
#[inline]
fn guarded<S, R>(section: Section<'_, S>, f: impl FnOnce(Section<'_, S>) -> R) -> R {
    let Section { bits, state, wakes } = section;
    let mut after = *bits;
    let result = f(Section {
        bits: &mut after,
        state,
        wakes,
    });
    *bits = kept(*bits, after);
    result
}

/// Drops the value, if it is there.
impl<T, S, B: Backend> Drop for OnceSlot<T, S, B> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() && self.lock.get_mut(|bits, _| bits.contains(INITIALIZED)) {
            self.value.with_mut(|cell| {
                // SAFETY: by exclusive borrow, for the last time.
                let cell = unsafe { &mut *cell };
                // SAFETY: `INITIALIZED` is set, so the value has been written.
                unsafe { cell.assume_init_drop() };
            });
        }
    }
}

// SAFETY: threads that share it share the value (`T: Sync`), and one can settle
// what another drops (`T: Send`). The accesses to the cell do not race (invariant 1),
// so several threads may use it (`SharedBackend`). The rest stands under the lock.
unsafe impl<T: Send + Sync, S: Send, B: SharedBackend> Sync for OnceSlot<T, S, B> {}
// SAFETY: its lock and its cell may be sent, as `SharedBackend` promises of a state
// and a value that are `Send`.
unsafe impl<T: Send, S: Send, B: SharedBackend> Send for OnceSlot<T, S, B> {}

/// A shared borrow gives a `&T`, and takes a `T`, as a whole.
impl<T: RefUnwindSafe + UnwindSafe, S, B: Backend> RefUnwindSafe for OnceSlot<T, S, B> {}
impl<T: UnwindSafe, S, B: Backend> UnwindSafe for OnceSlot<T, S, B> {}

impl<T, S, B: Backend> fmt::Debug for OnceSlot<T, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceSlot")
            .field("is_initialized", &self.is_initialized())
            .finish_non_exhaustive()
    }
}
