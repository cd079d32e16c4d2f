//! The lock of the protocol: small bits and a state, changed by sections only.
//!
//! ```text
//!   update            bits ──▶ bits                    one compare-exchange, as a rule
//!   with              bits, state ──▶ bits, state      then the wakers it took out (P3)
//!   poll, first_poll  a result, or a registered waker  check and register in one (P2)
//!   rounds            with, again and again            more wakers than one list holds
//! ```
//!
//! Invariant: a section runs alone, calls no foreign code (P4), and what it takes out
//! is woken or dropped after the lock is released.

use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};

use super::wake::Armed;
use super::{Bits, Registered, Registration, WakeList};
#[cfg(feature = "std")]
use crate::backend::Native;
#[cfg(feature = "model")]
use crate::backend::Passage;
use crate::backend::watch::Alive;
#[cfg(feature = "model")]
use crate::backend::watch::{self, LeaveOnDrop};
use crate::backend::{Backend, DefaultBackend, Local, RawStateLock, SharedBackend, Spin};

/// What a section works on.
#[derive(Debug)]
pub struct Section<'a, S> {
    /// The small part of the state.
    pub bits: &'a mut Bits,
    /// The rest of it.
    pub state: &'a mut S,
    /// The wakers to wake or drop after the section.
    pub wakes: &'a mut WakeList,
}

/// Bits and a state under one lock, which sections alone access.
///
/// # Examples
///
/// This is a whole channel for one value. The value and the waker are under the same
/// lock, so there is no gap between the two in which a wake could be missed.
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use reveille::protocol::{Bits, StateLock, WakerSlot};
///
/// struct State {
///     value: Option<u32>,
///     receiver: WakerSlot,
/// }
///
/// let lock: StateLock<State> = StateLock::new_in(
///     Bits::EMPTY,
///     State { value: None, receiver: WakerSlot::new() },
/// );
/// let poll = |cx: &mut Context<'_>| {
///     lock.poll(cx, true, |section, registration| {
///         let State { value, receiver } = section.state;
///         value.take().ok_or_else(|| registration.register(receiver))
///     })
/// };
///
/// let mut cx = Context::from_waker(Waker::noop());
/// assert_eq!(poll(&mut cx), Poll::Pending);
/// lock.with(|section| {
///     section.state.value = Some(7);
///     section.wakes.wake(&mut section.state.receiver);
/// });
/// assert_eq!(poll(&mut cx), Poll::Ready(7));
/// ```
#[cfg_attr(feature = "model", repr(C))]
pub struct StateLock<S, B: Backend = DefaultBackend> {
    /// The first field, so that it is at the address of the lock.
    #[cfg_attr(
        not(feature = "model"),
        expect(dead_code, reason = "nothing is watched")
    )]
    alive: Alive<B>,
    raw: B::Lock<S>,
    state: PhantomData<S>,
}

/// Defines the constructors for constants, one for each backend.
macro_rules! const_new {
    ($($(#[$attribute:meta])* $backend:ident)*) => {$(
        $(#[$attribute])*
        impl<S> StateLock<S, $backend> {
            /// Creates a lock in a constant.
            #[must_use]
            pub const fn const_new(bits: Bits, state: S) -> Self {
                Self {
                    alive: Alive::new(),
                    raw: $backend::lock(bits, state),
                    state: PhantomData,
                }
            }
        }
    )*};
}

#[cfg(loom)]
impl<S> StateLock<S, DefaultBackend> {
    /// Creates a lock. Under `--cfg loom` it is not `const`.
    pub(crate) fn const_new(bits: Bits, state: S) -> Self {
        Self::new_in(bits, state)
    }
}

const_new! {
    #[cfg(feature = "std")]
    Native
    Local
    Spin
}

impl<S, B: Backend> StateLock<S, B> {
    /// Creates a lock over any backend.
    pub fn new_in(bits: Bits, state: S) -> Self {
        Self {
            alive: Alive::new(),
            raw: B::Lock::new(bits, state),
            state: PhantomData,
        }
    }

    /// Returns the bits, as the last completed section left them.
    #[inline]
    pub fn load(&self) -> Bits {
        #[cfg(feature = "model")]
        if B::is_watched() {
            return self.load_watched();
        }
        self.raw.load()
    }

    /// Runs a section that needs only the bits. On [`Native`](crate::backend::Native)
    /// it is one compare-exchange.
    ///
    /// If `f` returns `None`, nothing changes and nothing is published to later
    /// sections: see [`RawStateLock::update`].
    ///
    /// # Errors
    ///
    /// Returns the bits for which `f` returned `None`.
    #[inline]
    pub fn update(&self, f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        #[cfg(feature = "model")]
        return self.update_passage(f);
        #[cfg(not(feature = "model"))]
        self.raw.update(f)
    }

    /// Replaces the bits if they are `old`. It may fail spuriously. On
    /// [`Native`](crate::backend::Native) it is one compare-exchange.
    ///
    /// # Errors
    ///
    /// Returns the bits found, and has changed nothing.
    #[inline]
    pub fn exchange(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        #[cfg(feature = "model")]
        if B::is_watched() {
            return self.exchange_watched(old, new);
        }
        self.raw.exchange(old, new)
    }

    /// Runs a section that needs the state, then wakes what it took out (P3).
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(Section<'_, S>) -> R) -> R {
        let mut wakes = WakeList::new();
        let mut wakes = wakes.armed();
        let result = self.section(&mut wakes, f);
        wakes.fire();
        result
    }

    /// Runs a section as [`with`](Self::with) does, for a caller that has something
    /// to do between the release and the wakes. The caller fires the list.
    #[inline]
    pub(crate) fn section<R>(
        &self,
        wakes: &mut Armed<'_>,
        f: impl FnOnce(Section<'_, S>) -> R,
    ) -> R {
        let wakes = &mut *wakes.0;
        self.unlisted(|bits, state| f(Section { bits, state, wakes }))
    }

    /// Runs a section without a list, for a caller that takes out one waker at most.
    #[inline]
    pub(crate) fn unlisted<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        #[cfg(feature = "model")]
        return self.passage(Passage::With, f);
        #[cfg(not(feature = "model"))]
        self.raw.with(f)
    }

    /// Runs a section that only reads the state and wakes nothing.
    #[inline]
    pub(crate) fn look<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        #[cfg(feature = "model")]
        return self.passage(Passage::Look, |_, state| f(state));
        #[cfg(not(feature = "model"))]
        self.raw.with(|_, state| f(state))
    }

    /// Runs sections, one after another, until `f` returns `false`.
    ///
    /// `f` returns `true` if more wakers are due than fit in a [`WakeList`]. The
    /// lock is then released to wake those, and entered again. Waiters can come and
    /// go in between. A waker that panics does not stop the sections that follow
    /// (P8).
    pub fn rounds(&self, mut f: impl FnMut(Section<'_, S>) -> bool) {
        let mut wakes = WakeList::new();
        let mut wakes = wakes.armed();
        if self.section(&mut wakes, &mut f) {
            // Usually there is no second round, since most sections wake one task.
            let rounds = Rounds {
                lock: self,
                round: &mut f,
                more: true,
            };
            rounds.run(wakes);
        } else {
            wakes.fire();
        }
    }

    /// Runs the section of a poll: it finds the result, or registers the waker of
    /// the poll (P2).
    ///
    /// `f` returns `Ok` to be ready. To be pending, it registers its token and
    /// returns the [`Registered`] that it gets. `f` may run twice, and must allow
    /// that if the first run is pending.
    ///
    /// `fresh` states that the caller has registered no waker yet, as far as it
    /// knows. The waker is then cloned before the section, and not between two runs.
    /// It affects only the cost.
    #[inline]
    pub fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        fresh: bool,
        mut f: impl FnMut(Section<'_, S>, Registration<'_>) -> Result<R, Registered>,
    ) -> Poll<R> {
        let waker = cx.waker();
        let mut spare = fresh.then(|| waker.clone());
        loop {
            match self.with(|section| f(section, Registration::new(waker, &mut spare))) {
                Ok(result) => {
                    // The spare is dropped here and not at the return. If its
                    // destructor panicked there, the result would leak.
                    drop(spare);
                    return Poll::Ready(result);
                }
                Err(registered) if registered.needs_clone() => spare = Some(waker.clone()),
                Err(_) => return Poll::Pending,
            }
        }
    }

    /// Runs the section of a first poll: no waker is registered yet, and the section
    /// takes none out. It runs once.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use reveille::backend::Native;
    /// use reveille::protocol::{Bits, StateLock, WakerSlot};
    ///
    /// let lock = StateLock::<_, Native>::new_in(Bits::EMPTY, WakerSlot::new());
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let poll = lock.first_poll::<()>(&mut cx, |_, slot, registration| {
    ///     Err(registration.register(slot))
    /// });
    /// assert!(poll.is_pending());
    /// ```
    #[inline]
    pub fn first_poll<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnOnce(&mut Bits, &mut S, Registration<'_>) -> Result<R, Registered>,
    ) -> Poll<R> {
        let waker = cx.waker();
        let mut spare = Some(waker.clone());
        let result =
            self.unlisted(|bits, state| f(bits, state, Registration::new(waker, &mut spare)));
        // As in `poll`, it is dropped before the return.
        drop(spare);
        result.map_or(Poll::Pending, Poll::Ready)
    }

    /// Gives mutable access to the bits and the state, without locking.
    pub fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        #[cfg(feature = "model")]
        self.alive.borrowed();
        self.raw.get_mut(f)
    }
}

/// Sections that may be watched. What a checker is told is out of line, so that without
/// one a section stays small: a branch before it and one after.
#[cfg(feature = "model")]
impl<S, B: Backend> StateLock<S, B> {
    #[cold]
    #[inline(never)]
    fn load_watched(&self) -> Bits {
        let visit = watch::approach(&self.alive, Passage::Load);
        let bits = self.raw.load();
        watch::leave::<B>(visit, Passage::Load, bits, bits);
        bits
    }

    #[cold]
    #[inline(never)]
    fn exchange_watched(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        let visit = watch::approach(&self.alive, Passage::Update);
        let result = self.raw.exchange(old, new);
        let (before, after) = result.map_or_else(|found| (found, found), |()| (old, new));
        watch::leave::<B>(visit, Passage::Update, before, after);
        result
    }

    /// Runs an update. If its closure panics, nothing has changed, and the checker is not
    /// told of an end.
    #[inline]
    fn update_passage(&self, mut f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        let mut visit = watch::UNWATCHED;
        if B::is_watched() {
            visit = watch::approach(&self.alive, Passage::Update);
        }
        let mut after = Bits::EMPTY;
        let result = self.raw.update(|bits| {
            let new = f(bits);
            after = new.unwrap_or(bits);
            new
        });
        if visit != watch::UNWATCHED {
            let before = result.unwrap_or_else(|bits| bits);
            watch::leave::<B>(visit, Passage::Update, before, after);
        }
        result
    }

    /// Runs a section that needs the state.
    #[inline]
    fn passage<R>(&self, passage: Passage, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        let mut end = LeaveOnDrop::<B> {
            backend: PhantomData,
            visit: watch::UNWATCHED,
            passage,
            before: Bits::EMPTY,
            after: Bits::EMPTY,
        };
        if B::is_watched() {
            end.visit = watch::approach(&self.alive, passage);
        }
        self.raw.with(|bits, state| {
            end.enter(*bits);
            let result = f(bits, state);
            end.after = *bits;
            result
        })
    }
}

/// The sections that follow a first one. A panic of a waker does not stop them: when
/// they are dropped during the unwinding, they go on.
struct Rounds<'a, S, B: Backend> {
    lock: &'a StateLock<S, B>,
    round: &'a mut dyn FnMut(Section<'_, S>) -> bool,
    more: bool,
}

impl<S, B: Backend> Rounds<'_, S, B> {
    #[cold]
    fn run(mut self, wakes: Armed<'_>) {
        wakes.fire();
        while self.more {
            let mut wakes = WakeList::new();
            let mut wakes = wakes.armed();
            self.more = self.lock.section(&mut wakes, &mut self.round);
            wakes.fire();
        }
    }
}

impl<S, B: Backend> Drop for Rounds<'_, S, B> {
    fn drop(&mut self) {
        while self.more {
            // If it is dropped, a list wakes what is in it, and catches the panics.
            let mut wakes = WakeList::new();
            self.more = self.lock.section(&mut wakes.armed(), &mut self.round);
        }
    }
}

// SAFETY: `SharedBackend` promises that several threads may use a lock whose state is
// `Send`. No state is shared: each section borrows it exclusively.
unsafe impl<S: Send, B: SharedBackend> Sync for StateLock<S, B> {}
// SAFETY: `SharedBackend` promises that a lock whose state is `Send` may be sent.
unsafe impl<S: Send, B: SharedBackend> Send for StateLock<S, B> {}

/// A panic leaves nothing inconsistent. No foreign code runs in a section (P4), so no
/// foreign panic ends one, and wakers that panic do so after it (P8).
impl<S, B: Backend> RefUnwindSafe for StateLock<S, B> {}
impl<S, B: Backend> UnwindSafe for StateLock<S, B> {}

impl<S, B: Backend> fmt::Debug for StateLock<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateLock")
            .field("bits", &self.load())
            .finish_non_exhaustive()
    }
}
