//! The lock of the protocol: a raw trait that backends implement, and the
//! typed lock over it through which every primitive goes.

use core::fmt;
use core::marker::PhantomData;
use core::task::{Context, Poll};

use super::wake::Progress;
use super::{Bits, FirstRegistration, Generation, Registered, Registration, Waiters, WakeList};
use crate::backend::{Backend, DefaultBackend, SharedBackend};

/// Bits and a state under one lock: what a backend implements.
///
/// Primitives use it through [`StateLock`], which adds the rules.
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

/// Bits and a state under one lock, entered only by the rules.
///
/// # Examples
///
/// A one-value channel, whole: the value and the waker stand under the same
/// lock, and there is no step between which they could miss each other.
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use reveille::backend::Native;
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
///     lock.poll(cx, true, |section, registration| match section.state.value.take() {
///         Some(value) => Poll::Ready(value),
///         None => {
///             registration.register(&mut section.state.receiver);
///             Poll::Pending
///         }
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
pub struct StateLock<S, B: Backend = DefaultBackend> {
    raw: B::Lock<S>,
    state: PhantomData<S>,
}

impl<S, B: Backend> StateLock<S, B> {
    /// A lock over any backend.
    pub fn new_in(bits: Bits, state: S) -> Self {
        Self::from_raw(B::Lock::new(bits, state))
    }

    pub(crate) const fn from_raw(raw: B::Lock<S>) -> Self {
        Self {
            raw,
            state: PhantomData,
        }
    }

    /// The bits, as the last completed section left them.
    #[inline]
    pub fn load(&self) -> Bits {
        self.raw.load()
    }

    /// A section that needs only the bits; on [`Native`](crate::backend::Native), one
    /// compare-exchange.
    ///
    /// Where `f` answers `None` it is a look, which tells those who come later
    /// nothing: see [`RawStateLock::update`].
    ///
    /// `f` runs outside the lock. It may enter sections of this lock, and runs again
    /// where one of them, or of another thread, has replaced the bits.
    ///
    /// # Errors
    ///
    /// The bits for which `f` answered `None`; nothing has changed then.
    #[inline]
    pub fn update(&self, f: impl FnMut(Bits) -> Option<Bits>) -> Result<Bits, Bits> {
        self.raw.update(f)
    }

    /// A section that replaces the bits if they are `old`, and may refuse also
    /// where they are; on [`Native`](crate::backend::Native), one compare-exchange.
    ///
    /// # Errors
    ///
    /// The bits it found; nothing has changed then.
    #[inline]
    pub fn exchange(&self, old: Bits, new: Bits) -> Result<(), Bits> {
        self.raw.exchange(old, new)
    }

    /// A section that needs the state. What it took out is woken after it (P3).
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(Section<'_, S>) -> R) -> R {
        let mut wakes = WakeList::new();
        let result = self.section(&mut wakes, f);
        wakes.fire();
        result
    }

    /// As [`with`](Self::with), for callers who have something to do between
    /// the release and the wakes: they fire the list.
    #[inline]
    pub(crate) fn section<R>(
        &self,
        wakes: &mut WakeList,
        f: impl FnOnce(Section<'_, S>) -> R,
    ) -> R {
        self.unlisted(|bits, state| f(Section { bits, state, wakes }))
    }

    /// A section without a list, for callers who take one waker out at most.
    #[inline]
    pub(crate) fn unlisted<R>(&self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        self.raw.with(f)
    }

    /// Sections, one after another for as long as `f` answers `true`: more
    /// wakers are due than a [`WakeList`] holds, so the lock is left to wake
    /// some, and entered again. A waker that panics ends no round but its own
    /// (P8).
    pub fn rounds(&self, mut f: impl FnMut(Section<'_, S>) -> bool) {
        let mut wakes = WakeList::new();
        match self.section(&mut wakes, &mut f) {
            false => wakes.fire(),
            true => self.further_rounds(&mut wakes, &mut f),
        }
    }

    /// The rounds after the first, which has left `wakes`. There are none as a
    /// rule: most sections wake one.
    #[cold]
    fn further_rounds(&self, wakes: &mut WakeList, round: &mut dyn FnMut(Section<'_, S>) -> bool) {
        let rounds = Rounds {
            lock: self,
            round,
            more: true,
        };
        wakes.fire();
        rounds.run();
    }

    /// A section after which many are woken: those whom `f` called in bulk.
    ///
    /// It takes [rounds](Self::rounds), but only up to the generation, so nobody
    /// who comes in between is swept up, and it ends whatever they do.
    pub fn broadcast<R, D: Copy>(
        &self,
        waiters: fn(&mut S) -> &mut Waiters<D>,
        f: impl FnOnce(Section<'_, S>) -> (R, Generation),
    ) -> R {
        let mut f = Some(f);
        let mut outcome = None;
        self.rounds(|section| {
            let Section { bits, state, wakes } = section;
            if let Some(f) = f.take() {
                outcome = Some(f(Section {
                    bits,
                    state: &mut *state,
                    wakes: &mut *wakes,
                }));
            }
            let generation = outcome.as_ref().map(|&(_, generation)| generation);
            generation.is_some_and(|generation| waiters(state).wake_notified(generation, wakes))
        });
        outcome.expect("there is a first round").0
    }

    /// A consumer's section: finds the result or registers the caller's waker,
    /// in one (P2).
    ///
    /// `fresh` says that the caller has no waker registered as far as it knows,
    /// so that its waker is best cloned beforehand; it decides cost, nothing
    /// else. `f` may run again, once for each slot it registers in: what it does
    /// on its way to `Pending` must be fit to be done again.
    ///
    /// # Panics
    ///
    /// In debug builds, where `f` answers `Pending` without having registered.
    #[inline]
    pub fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        fresh: bool,
        mut f: impl FnMut(Section<'_, S>, &mut Registration<'_>) -> Poll<R>,
    ) -> Poll<R> {
        let mut registration = Registration::new(cx, fresh);
        loop {
            let poll = self.with(|section| f(section, &mut registration));
            if poll.is_ready() {
                // Before the return, not in it: a waker that panics when it is
                // dropped would otherwise leak what is being returned.
                drop(registration);
                return poll;
            }
            match registration.outcome() {
                Progress::Done => return Poll::Pending,
                Progress::NeedsClone => registration.prepare(),
                Progress::None => {
                    debug_assert!(false, "a poll was pending without registering its waker");
                    return Poll::Pending;
                }
            }
        }
    }

    /// As [`poll`](Self::poll), for a consumer that has left no waker yet, leaves
    /// one in one slot at most, and takes none out. One section always does.
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
    /// let poll = lock.first_poll::<()>(&mut cx, |_, slot, registration| Err(registration.register(slot)));
    /// assert!(poll.is_pending());
    /// ```
    #[inline]
    pub fn first_poll<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnOnce(&mut Bits, &mut S, FirstRegistration<'_>) -> Result<R, Registered>,
    ) -> Poll<R> {
        let mut waker = Some(cx.waker().clone());
        let result =
            self.unlisted(|bits, state| f(bits, state, FirstRegistration::new(&mut waker)));
        // As in `poll`: before the return.
        drop(waker);
        result.map_or(Poll::Pending, Poll::Ready)
    }

    /// Sets the bits, for a sole user.
    ///
    /// # Safety
    ///
    /// As for [`RawStateLock::store`].
    #[inline]
    pub(crate) unsafe fn store(&self, bits: Bits) {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.raw.store(bits) }
    }

    /// Bits and state by exclusive borrow, without locking.
    pub fn get_mut<R>(&mut self, f: impl FnOnce(&mut Bits, &mut S) -> R) -> R {
        self.raw.get_mut(f)
    }
}

/// Sections that follow one another, which a panic of a waker does not stop.
struct Rounds<'a, S, B: Backend> {
    lock: &'a StateLock<S, B>,
    round: &'a mut dyn FnMut(Section<'_, S>) -> bool,
    more: bool,
}

impl<S, B: Backend> Rounds<'_, S, B> {
    fn run(mut self) {
        while self.more {
            let mut wakes = WakeList::new();
            self.next(&mut wakes);
            wakes.fire();
        }
    }

    fn next(&mut self, wakes: &mut WakeList) {
        self.more = self.lock.section(wakes, &mut self.round);
    }
}

impl<S, B: Backend> Drop for Rounds<'_, S, B> {
    fn drop(&mut self) {
        while self.more {
            // Dropping a list wakes what is in it, and stops its panics.
            let mut wakes = WakeList::new();
            self.next(&mut wakes);
        }
    }
}

// SAFETY: `SharedBackend` promises that several threads may use a lock whose state is
// `Send`. No state is shared: each section borrows it exclusively.
unsafe impl<S: Send, B: SharedBackend> Sync for StateLock<S, B> {}
// SAFETY: `SharedBackend` promises that a lock whose state is `Send` may be sent.
unsafe impl<S: Send, B: SharedBackend> Send for StateLock<S, B> {}

impl<S, B: Backend> fmt::Debug for StateLock<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateLock")
            .field("bits", &self.load())
            .finish_non_exhaustive()
    }
}
