//! A value that is set once and then shared: the core of `OnceCell` and `SetOnce`.
//!
//! The value is in a cell beside the lock, and one bit says how the cell may be used:
//!
//! ```text
//!              set: INITIALIZED, all waiters are notified
//!   ┌───────┐ ────────────────────────────────────────────▶ ┌───────────────────┐
//!   │ empty │                                               │ shared, read only │
//!   └───────┘ ◀──────────────────────────────────────────── └───────────────────┘
//!              take: by exclusive borrow
//! ```
//!
//! Invariants:
//!
//! 1. Before `INITIALIZED`, only the section that sets it accesses the cell. After
//!    it, the cell is only read, or accessed by exclusive borrow. No section of a
//!    primitive can change the bit: a change to it is not kept. An `update` keeps the
//!    bit as its closure was given it, and stores nothing if the bits have changed by
//!    then.
//! 2. `INITIALIZED` is set in the section in which all waiters are notified, and no
//!    waiter queues afterwards. So each further round of notifying all waiters finds
//!    only those that were notified then.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend, SharedCell};
use crate::protocol::CallerLocation;
use crate::protocol::{
    Bits, Registered, Registration, Section, StateLock, Waiter, Waiters, WakeList,
};

/// Holds a value that is set once, and the waiters for it.
///
/// `S` is the state of the waiters ([`Queues`]): a queue for the value alone, or more
/// queues of the primitive.
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
    value: SharedCell<MaybeUninit<T>, B>,
    /// Threads that share the slot share the value.
    shared: PhantomData<T>,
}

/// The bit that says that the value is set. The bits above it belong to the
/// primitive.
pub const INITIALIZED: Bits = Bits::new(1);

/// The waiters of a once slot.
pub trait Queues {
    /// Returns the queue of those that wait for the value and for nothing else.
    fn waits(&mut self) -> &mut Waiters<()>;

    /// Notifies all waiters and takes out the wakers of notified waiters, as many as
    /// fit into the list. Returns `true` if there are more.
    fn wake_all(&mut self, wakes: &mut WakeList) -> bool;
}

impl<D: Copy> Waiters<D> {
    /// Notifies all waiters, as [`Queues::wake_all`] does. No waiter may queue
    /// afterwards.
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
        /// Creates a slot without a value, in a constant.
        #[must_use]
        pub const fn const_new(state: S) -> Self {
            Self {
                lock: StateLock::<S, DefaultBackend>::const_new(Bits::EMPTY, state),
                value: SharedCell::const_new(MaybeUninit::uninit()),
                shared: PhantomData,
            }
        }

        /// Creates a slot with its value, in a constant.
        #[must_use]
        pub const fn const_new_with(value: T, state: S) -> Self {
            Self {
                lock: StateLock::<S, DefaultBackend>::const_new(INITIALIZED, state),
                value: SharedCell::const_new(MaybeUninit::new(value)),
                shared: PhantomData,
            }
        }
    }
}

impl<T, S, B: Backend> OnceSlot<T, S, B> {
    /// Creates a slot without a value, over any backend.
    pub fn new_in(state: S) -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, state),
            value: SharedCell::new(MaybeUninit::uninit()),
            shared: PhantomData,
        }
    }

    /// Creates a slot with its value, over any backend.
    pub fn new_with_in(value: T, state: S) -> Self {
        Self {
            lock: StateLock::new_in(INITIALIZED, state),
            value: SharedCell::new(MaybeUninit::new(value)),
            shared: PhantomData,
        }
    }

    /// Returns `true` if the value is set.
    #[inline]
    pub fn is_initialized(&self) -> bool {
        self.lock.load().contains(INITIALIZED)
    }

    /// Returns the value if it is set, by a load without a read-modify-write.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.is_initialized().then(|| self.value())
    }

    /// Returns a mutable reference to the value, if it is set.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.lock.get_mut(|bits, _| bits.contains(INITIALIZED)) {
            return None;
        }
        Some(self.value.with_mut(|cell| {
            // SAFETY: the cell is borrowed exclusively, as `self` is. `INITIALIZED` is
            // set, so the value has been written.
            unsafe { &mut *cell.cast::<T>() }
        }))
    }

    /// Takes the value out, if it is set. The slot is then as new, with the given
    /// state and without what leaked futures left in it.
    pub fn take(&mut self, state: S) -> Option<T> {
        let value = self.take_value();
        drop(self.lock.get_mut(|bits, old| {
            *bits = Bits::EMPTY;
            core::mem::replace(old, state)
        }));
        value
    }

    /// Takes the value out, if it is set. The bits no longer say that it is there.
    fn take_value(&mut self) -> Option<T> {
        let initialized = self.lock.get_mut(|bits, _| {
            let before = *bits;
            *bits = before.without(INITIALIZED);
            before.contains(INITIALIZED)
        });
        initialized.then(|| {
            self.value.with_mut(|cell| {
                // SAFETY: `INITIALIZED` was set, so the value has been written, and the
                // cell is borrowed exclusively. The value is not read again, since the
                // bits no longer say that it is there.
                unsafe { cell.cast::<T>().read() }
            })
        })
    }

    /// Returns the bits, as the last completed section left them.
    #[inline]
    pub fn load(&self) -> Bits {
        self.lock.load()
    }

    /// Runs a section that needs only the bits, as [`StateLock::update`] does. It may
    /// run `f` again, and cannot change [`INITIALIZED`].
    ///
    /// # Errors
    ///
    /// Returns the bits for which `f` returned `None`.
    #[inline]
    pub fn update(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        self.lock.update(|bits| Some(kept(bits, f(bits)?)))
    }

    /// Runs a section that needs the state, as [`StateLock::with`] does.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(Section<'_, S>) -> R) -> R {
        self.lock.with(|section| guarded(section, f))
    }

    /// Runs a section of a consumer, as [`StateLock::poll`] does. If `f` returns
    /// `Ok(None)`, the poll is ready with the value. If it returns `Ok(Some(..))`,
    /// the poll is ready with that.
    ///
    /// # Panics
    ///
    /// Panics as [`StateLock::poll`] does, and if `f` returns `Ok(None)` in a section
    /// in which the value is not set.
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

    /// Returns the value. The caller has seen `INITIALIZED`.
    #[inline]
    fn value(&self) -> &T {
        self.value.with(|cell| {
            // SAFETY: `Cell` lends the pointer for as long as the cell is borrowed,
            // as `self` is. Since `INITIALIZED` the cell is only read (invariant 1).
            // Several threads may read it at once (`SharedBackend`), since `T` is
            // `Sync` if `self` is. A thread that has seen the bit sees what was
            // written before it.
            unsafe { &*cell.cast::<T>() }
        })
    }
}

impl<T, S: Queues, B: Backend> OnceSlot<T, S, B> {
    /// Sets the value and wakes all waiters, unless the value is set or `flags`
    /// returns `None` for the bits. The bits that `flags` returns become the bits of
    /// the primitive.
    ///
    /// # Errors
    ///
    /// Returns `value` and the bits that were found.
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
                    // another, so nothing else accesses the cell (invariant 1).
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

    /// Polls for the value. If it is not set, the wait that began at `location`
    /// queues, and its place is stored in `waiter`.
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

    /// Returns the location at which each waiter for the value began to wait.
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

/// Returns the bits `after`, with `INITIALIZED` as in `before` (invariant 1).
#[inline]
const fn kept(before: Bits, after: Bits) -> Bits {
    match before.contains(INITIALIZED) {
        true => after.with(INITIALIZED),
        false => after.without(INITIALIZED),
    }
}

/// Runs a section of a primitive on a copy of the bits, so that [`kept`] applies even
/// if the section panics.
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

/// Drops the value, if it is set.
impl<T, S, B: Backend> Drop for OnceSlot<T, S, B> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            drop(self.take_value());
        }
    }
}

/// A shared borrow gives a `&T`, and takes a `T` as a whole.
impl<T: RefUnwindSafe + UnwindSafe, S, B: Backend> RefUnwindSafe for OnceSlot<T, S, B> {}
impl<T: UnwindSafe, S, B: Backend> UnwindSafe for OnceSlot<T, S, B> {}

impl<T, S, B: Backend> fmt::Debug for OnceSlot<T, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceSlot")
            .field("is_initialized", &self.is_initialized())
            .finish_non_exhaustive()
    }
}
