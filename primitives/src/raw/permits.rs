//! Counted permits: the core of the semaphore, and of every lock.
//!
//! ```text
//!   bits = permits ‖ barges ‖ flags        flags: QUEUED, CLOSED, WOKEN, DEBT
//!
//!   acquire ──enough, queue is empty───────▶ taken: one compare-exchange
//!      │    ──enough, barges < bound─────────▶ taken, one more barge: likewise
//!      └──▶ queued ──granted by a release────▶ notified, the grant in its entry
//!             └──woken as the first (WOKEN), and finds enough─▶ taken
//! ```
//!
//! *Fairness is a bound.* With a bound of 0, a release hands its permits to the
//! waiters in order, and no request barges. With a bound of `K`, a release leaves the
//! permits free and wakes the first waiter to try for them. Other requests can take
//! them meanwhile: they barge. If the first waiter has been barged past `K` times, new
//! requests queue, and the release hands its permits over. A bound is not a clock, so
//! it can be checked.
//!
//! A request with *priority* goes before all others. Its holder has part of the
//! permits already and asks for the rest, and a request for all permits waits for
//! that part too.
//!
//! Invariants: between two sections, the first waiter cannot be granted what it asks
//! for (too few permits are free), or it has been woken and has not been polled since
//! (`WOKEN`). The permits that are free, granted but not observed, and held, less the
//! debt, are as many as were ever added.

use core::task::{Context, Poll};

use crate::backend::Backend;
use crate::backend::DefaultBackend;
use crate::protocol::CallerLocation;
use crate::protocol::{Bits, Generation, Section, StateLock, Waiter, Waiters, WakeList};

const QUEUED: Bits = Bits::new(1);
const CLOSED: Bits = Bits::new(1 << 1);
/// The first in the queue has been woken and has not been polled since.
const WOKEN: Bits = Bits::new(1 << 2);
/// Permits are owed: those that are released next are forgotten.
const DEBT: Bits = Bits::new(1 << 3);
const BARGE: usize = 1 << 4;
/// The largest bound. The rest of the word counts permits.
const MAX_BARGES: u16 = if usize::BITS < 64 { 0x3ff } else { u16::MAX };
const BARGES: usize = MAX_BARGES as usize * BARGE;
const PERMIT: usize = BARGES + BARGE;

/// Permits, the queue of requests that wait for some, and what stands beside them
/// under the same lock.
pub(crate) struct Permits<B: Backend, X = ()> {
    lock: StateLock<Queue<X>, B>,
    /// How often the first in the queue may be barged past.
    max_barges: u16,
    /// Whether each released permit is seen by [`Beside::after_assign`], before a close too.
    sees_all: bool,
}

/// What stands beside permits, under their lock.
///
/// A channel keeps its values there: one section takes the permit and stores the
/// value that it is for.
pub(crate) trait Beside {
    /// Whether the permits that come back after a close are seen by
    /// [`after_assign`](Self::after_assign), and a waiter that was granted permits before the
    /// close and polls after it is refused.
    const SEES_CLOSED: bool;

    /// Runs at the end of a section that gave permits back, once they have been
    /// assigned. It takes at most one waker out.
    fn after_assign(&mut self, bits: &mut Bits, wakes: &mut WakeList);
}

/// Nothing beside them.
impl Beside for () {
    const SEES_CLOSED: bool = false;

    #[inline]
    fn after_assign(&mut self, _: &mut Bits, _: &mut WakeList) {}
}

const fn clamp_barges(max_barges: u16) -> u16 {
    if max_barges < MAX_BARGES {
        max_barges
    } else {
        MAX_BARGES
    }
}

/// The requests that wait for permits, and what stands beside the permits.
#[derive(Debug)]
pub(crate) struct Queue<X> {
    /// Each with what it asks for, or has been granted.
    waiters: Waiters<Request>,
    debt: usize,
    /// What stands beside the permits.
    pub(crate) beside: X,
}

impl<X> Queue<X> {
    const fn new(beside: X) -> Self {
        Self {
            waiters: Waiters::new(),
            debt: 0,
            beside,
        }
    }

    /// Closes the permits, in a section. The waiters of the generation are woken by [`wake_notified`](Self::wake_notified).
    pub(crate) fn close_in(&mut self, bits: &mut Bits) -> Generation {
        bits.insert(CLOSED);
        none_queued(bits);
        self.waiters.notify_all()
    }

    /// Takes out wakers of a generation, as [`Waiters::wake_notified`] does.
    pub(crate) fn wake_notified(&mut self, generation: Generation, wakes: &mut WakeList) -> bool {
        self.waiters.wake_notified(generation, wakes)
    }

    /// Takes permits back, and forgets those that are owed.
    fn return_permits(&mut self, bits: &mut Bits, mut permits: usize) {
        if bits.contains(DEBT) {
            let paid = permits.min(self.debt);
            self.debt -= paid;
            if self.debt == 0 {
                bits.remove(DEBT);
            }
            permits -= paid;
        }
        give(bits, permits);
    }
}

/// What a waiter asks for or, if `most` is zero, what it has been granted. The two do
/// not collide: a request for no permits never waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    least: usize,
    most: usize,
}

impl Request {
    /// Asks for at least `least` and at most `most` permits.
    #[inline]
    pub(crate) const fn between(least: usize, most: usize) -> Self {
        Self { least, most }
    }

    /// Records a grant of `permits`.
    #[inline]
    const fn granted(permits: usize) -> Self {
        Self::between(permits, 0)
    }

    /// Returns how many permits were granted. A waiter that was notified without a
    /// grant has none: the permits are closed.
    #[inline]
    const fn grant(self) -> usize {
        if self.most == 0 { self.least } else { 0 }
    }

    /// Asks for `permits`.
    #[inline]
    pub(crate) const fn exactly(permits: usize) -> Self {
        Self::between(permits, permits)
    }
}

/// The permits are closed: no more will be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The permits are closed.
    Closed,
    /// Too few are free, or other requests wait for them.
    TooFew,
}

/// Returns why a request was refused, by the bits found.
fn refused(bits: Bits) -> Refused {
    match bits.contains(CLOSED) {
        true => Refused::Closed,
        false => Refused::TooFew,
    }
}

/// Returns the bits of new permits.
#[track_caller]
const fn start(permits: usize) -> Bits {
    assert!(
        permits <= Bits::MAX / PERMIT,
        "a semaphore holds at most Semaphore::MAX_PERMITS permits"
    );
    free(permits)
}

/// Returns the bits of `permits` that are free, with an empty queue.
#[inline]
const fn free(permits: usize) -> Bits {
    Bits::fitting(permits * PERMIT)
}

#[inline]
fn count(bits: Bits) -> usize {
    bits.get() / PERMIT
}

#[inline]
fn barges(bits: Bits) -> usize {
    (bits.get() & BARGES) / BARGE
}

/// Returns how many permits are free, by the bits.
#[inline]
pub(crate) fn free_in(bits: Bits) -> usize {
    count(bits)
}

/// Returns `true` if the permits are closed, by the bits.
#[inline]
pub(crate) fn closed_in(bits: Bits) -> bool {
    bits.contains(CLOSED)
}

/// Returns `true` if requests are queued, by the bits.
#[inline]
pub(crate) fn queued_in(bits: Bits) -> bool {
    bits.contains(QUEUED)
}

/// Sets how many permits are free, whatever else the bits say.
#[inline]
pub(crate) fn set_free(bits: &mut Bits, permits: usize) {
    *bits = Bits::fitting(bits.get() % PERMIT + permits * PERMIT);
}

/// Gives permits back. Permits can be added while others are held, so there can be
/// more than fit: that panics, and does not wrap.
#[inline]
fn give(bits: &mut Bits, permits: usize) {
    assert!(
        permits <= Bits::MAX / PERMIT - count(*bits),
        "a release makes more permits than Semaphore::MAX_PERMITS"
    );
    *bits = Bits::fitting(bits.get() + permits * PERMIT);
}

#[inline]
fn take(bits: &mut Bits, permits: usize) {
    *bits = Bits::fitting(bits.get() - permits * PERMIT);
}

/// Another waiter is the first: it has not been barged past, and is not woken.
#[inline]
fn new_first(bits: &mut Bits) {
    *bits = bits.without(Bits::new(BARGES | WOKEN.get()));
}

/// The queue is empty.
#[inline]
fn none_queued(bits: &mut Bits) {
    bits.remove(QUEUED);
    new_first(bits);
}

/// Counts a barge. There have been fewer than the bound.
#[inline]
fn barge(bits: &mut Bits) {
    *bits = Bits::fitting(bits.get() + BARGE);
}

impl Permits<DefaultBackend> {
    const_unless_loom! {
        #[track_caller]
        pub(crate) const fn const_new(permits: usize, max_barges: u16) -> Self {
            Self {
                lock: StateLock::<_, DefaultBackend>::const_new(start(permits), Queue::new(())),
                max_barges: clamp_barges(max_barges),
                sees_all: false,
            }
        }
    }
}

/// Writes what the bits of permits mean.
///
/// # Errors
///
/// Returns the error of the writer.
pub fn describe_permits(bits: Bits, f: &mut dyn core::fmt::Write) -> core::fmt::Result {
    write!(f, "{} free", count(bits))?;
    if barges(bits) > 0 {
        write!(f, ", {} barges", barges(bits))?;
    }
    for (flag, name) in [
        (QUEUED, "queued"),
        (CLOSED, "closed"),
        (WOKEN, "first woken"),
        (DEBT, "debt"),
    ] {
        if bits.contains(flag) {
            write!(f, ", {name}")?;
        }
    }
    Ok(())
}

impl<B: Backend> Permits<B> {
    /// Creates permits over any backend.
    ///
    /// # Panics
    ///
    /// Panics if `permits` is more than [`MAX`](Self::MAX).
    #[track_caller]
    pub(crate) fn new_in(permits: usize, max_barges: u16) -> Self {
        Self::with_beside_in(permits, max_barges, ())
    }
}

impl<B: Backend, X: Beside> Permits<B, X> {
    /// The largest number of permits.
    pub(crate) const MAX: usize = Bits::MAX / PERMIT;

    /// What keeps a release from being an update of the bits.
    const SLOW: Bits = match X::SEES_CLOSED {
        false => Bits::new(QUEUED.get() | DEBT.get()),
        true => Bits::new(QUEUED.get() | DEBT.get() | CLOSED.get()),
    };

    /// Creates permits with `beside` beside them, over any backend.
    ///
    /// # Panics
    ///
    /// Panics if `permits` is more than [`MAX`](Self::MAX).
    #[track_caller]
    pub(crate) fn with_beside_in(permits: usize, max_barges: u16, beside: X) -> Self {
        Self {
            lock: StateLock::new_in(start(permits), Queue::new(beside)),
            max_barges: clamp_barges(max_barges),
            sees_all: false,
        }
    }

    /// Has every permit that comes back seen by [`Beside::after_assign`], not only after a
    /// close.
    pub(crate) fn seeing_all(mut self) -> Self {
        self.sees_all = X::SEES_CLOSED;
        self
    }

    /// Returns `true` if a release is not an update of the bits, for the bits found.
    #[inline]
    fn is_slow(&self, bits: Bits) -> bool {
        bits.intersects(Self::SLOW) || (X::SEES_CLOSED && self.sees_all)
    }

    /// Returns the lock of the permits and of what stands beside them.
    #[inline]
    pub(crate) const fn lock(&self) -> &StateLock<Queue<X>, B> {
        &self.lock
    }

    /// Takes a permit, in a section, if one is free and the queue is empty.
    ///
    /// # Errors
    ///
    /// Returns the bits found.
    #[inline]
    pub(crate) fn take_one(bits: &mut Bits) -> Result<(), Bits> {
        if bits.intersects(QUEUED | CLOSED) || count(*bits) == 0 {
            return Err(*bits);
        }
        take(bits, 1);
        Ok(())
    }

    /// Gives permits, in a section, to the queue, and leaves the rest free. It grants
    /// at most one request if `permits` is one and each request is for one at least.
    #[inline]
    pub(crate) fn give_in(
        &self,
        bits: &mut Bits,
        state: &mut Queue<X>,
        permits: usize,
        wakes: &mut WakeList,
    ) -> bool {
        state.return_permits(bits, permits);
        self.assign(bits, state, wakes)
    }

    /// Returns how many permits are free.
    pub(crate) fn available(&self) -> usize {
        count(self.lock.load())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock.load().contains(CLOSED)
    }

    /// Returns how many requests wait, and how many have been granted permits and not
    /// been polled since.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.lock.with(|section| {
            (
                section.state.waiters.queued(),
                section.state.waiters.notified(),
            )
        })
    }

    /// Returns where each waiter began to wait.
    #[cfg(feature = "locations")]
    pub(crate) fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.with(|section| section.state.waiters.locations())
    }

    /// Takes permits without waiting: one compare-exchange.
    #[inline]
    pub(crate) fn try_acquire(&self, request: Request) -> Result<usize, Refused> {
        self.acquire_free(request)
            .or_else(|found| self.barge(found, request))
    }

    /// Takes all permits without waiting: one compare-exchange.
    #[inline]
    pub(crate) fn try_acquire_all(&self, all: usize) -> Result<usize, Refused> {
        self.acquire_all_free(all)
            .or_else(|found| self.barge(found, Request::exactly(all)))
    }

    /// Takes permits without waiting, before all other requests.
    pub(crate) fn try_acquire_priority(&self, permits: usize) -> Result<usize, Refused> {
        self.barge_slow(Request::exactly(permits), true)
            .map_err(refused)
    }

    /// Takes permits if the queue is empty, or returns the bits found.
    #[inline]
    fn acquire_free(&self, Request { least, most }: Request) -> Result<usize, Bits> {
        let taken = |bits: Bits| count(bits).min(most);
        let result = self.lock.update(|bits| {
            let free = !bits.intersects(QUEUED | CLOSED) && taken(bits) >= least;
            free.then(|| Bits::fitting(bits.get() - taken(bits) * PERMIT))
        });
        result.map(taken)
    }

    /// Takes all permits if they are free and no flag is set, or returns the bits
    /// found: one compare-exchange, without a load before it.
    #[inline]
    fn acquire_all_free(&self, all: usize) -> Result<usize, Bits> {
        self.lock.exchange(free(all), Bits::EMPTY).map(|()| all)
    }

    /// Takes permits past the waiters, as far as the bound allows. It does not try if
    /// the bits found show that too few are free.
    #[inline]
    fn barge(&self, found: Bits, request: Request) -> Result<usize, Refused> {
        let result = match count(found) < request.least {
            true => Err(found),
            false => self.barge_slow(request, false),
        };
        result.map_err(refused)
    }

    #[cold]
    #[inline(never)]
    fn barge_slow(&self, request: Request, priority: bool) -> Result<usize, Bits> {
        let mut taken = 0;
        let result = self.lock.update(|bits| {
            let mut bits = bits;
            taken = self.try_assign(&mut bits, request, priority)?;
            Some(bits)
        });
        result.map(|_| taken)
    }

    /// Gives all permits back: one compare-exchange, without a load before it, if the
    /// queue is empty.
    #[inline]
    pub(crate) fn release_all(&self, all: usize) {
        if let Err(found) = self.lock.exchange(Bits::EMPTY, free(all)) {
            self.release_slow(found, all);
        }
    }

    /// Takes permits for a request that is not queued, and returns how many.
    fn try_assign(&self, bits: &mut Bits, request: Request, priority: bool) -> Option<usize> {
        let queued = bits.contains(QUEUED);
        let free = count(*bits);
        if bits.contains(CLOSED) || free < request.least {
            return None;
        }
        let taken = free.min(request.most);
        if queued && taken > 0 && !priority {
            if barges(*bits) >= usize::from(self.max_barges) {
                // A request that is content with none gets none, and need not queue.
                return (request.least == 0).then_some(0);
            }
            barge(bits);
        }
        take(bits, taken);
        Some(taken)
    }

    /// Gives permits back, to the waiters if there are any.
    #[inline]
    pub(crate) fn release(&self, permits: usize) {
        let released = self.lock.update(|bits| {
            // The slow path panics if there are more than fit.
            let free = !self.is_slow(bits) && permits <= Self::MAX - count(bits);
            free.then(|| Bits::fitting(bits.get() + permits * PERMIT))
        });
        if let Err(found) = released
            && permits > 0
        {
            self.release_slow(found, permits);
        }
    }

    /// Gives permits back if requests wait for them, as far as the bits found show.
    #[cold]
    #[inline(never)]
    fn release_slow(&self, found: Bits, permits: usize) {
        let keeps = |bits: Bits| {
            self.keeps(bits).then(|| {
                let mut bits = bits;
                give(&mut bits, permits);
                bits
            })
        };
        if self.keeps(found) && self.lock.update(keeps).is_ok() {
            return;
        }
        let mut released = permits;
        self.lock.rounds(|section| {
            let Section { bits, state, wakes } = section;
            state.return_permits(bits, core::mem::take(&mut released));
            self.assign(bits, state, wakes)
        });
    }

    /// Returns `true` if released permits stay free: the queue is empty, or its first
    /// waiter has been woken for them.
    fn keeps(&self, bits: Bits) -> bool {
        !self.is_slow(bits)
            || (bits.contains(QUEUED | WOKEN)
                && !bits.contains(DEBT)
                && barges(bits) < usize::from(self.max_barges))
    }

    /// Adds permits.
    ///
    /// # Errors
    ///
    /// Returns how many are free, and has added none, if there would be more than
    /// [`MAX`](Self::MAX).
    pub(crate) fn add(&self, permits: usize) -> Result<(), usize> {
        let mut added = Some(permits);
        let mut refused = None;
        self.lock.rounds(|section| {
            let Section { bits, state, wakes } = section;
            if let Some(permits) = added.take() {
                let free = count(*bits);
                if permits.saturating_sub(state.debt) > Self::MAX - free {
                    refused = Some(free);
                    return false;
                }
                state.return_permits(bits, permits);
            }
            self.assign(bits, state, wakes)
        });
        refused.map_or(Ok(()), Err)
    }

    /// Takes up to `permits` that are free out of use, and returns how many.
    pub(crate) fn forget(&self, permits: usize) -> usize {
        let mut forgotten = 0;
        let result = self.lock.update(|bits| {
            let mut bits = bits;
            forgotten = count(bits).min(permits);
            take(&mut bits, forgotten);
            Some(bits)
        });
        debug_assert!(result.is_ok());
        forgotten
    }

    /// Takes permits out of use. Those that are held now leave when they are released.
    pub(crate) fn shrink(&self, permits: usize) {
        self.lock.with(|section| {
            let Section { bits, state, .. } = section;
            let now = count(*bits).min(permits);
            take(bits, now);
            state.debt = state.debt.saturating_add(permits - now);
            if state.debt > 0 {
                bits.insert(DEBT);
            }
        });
    }

    /// Closes the permits, and wakes all waiters.
    pub(crate) fn close(&self) {
        let mut notified = None;
        self.lock.rounds(|Section { bits, state, wakes }| {
            let generation = *notified.get_or_insert_with(|| state.close_in(bits));
            state.waiters.wake_notified(generation, wakes)
        });
    }

    /// Grants what can be granted, in order. Returns `true` if another section has to
    /// follow, because more wakers are due than fit in a list.
    #[inline]
    fn assign(&self, bits: &mut Bits, state: &mut Queue<X>, wakes: &mut WakeList) -> bool {
        let more = match state.waiters.is_empty() {
            true => {
                none_queued(bits);
                false
            }
            false => self.assign_queued(bits, &mut state.waiters, wakes),
        };
        if !more {
            state.beside.after_assign(bits, wakes);
        }
        more
    }

    #[inline(never)]
    fn assign_queued(
        &self,
        bits: &mut Bits,
        waiters: &mut Waiters<Request>,
        wakes: &mut WakeList,
    ) -> bool {
        while let Some(first) = waiters.first() {
            let Request { least, most } = waiters[&first];
            if count(*bits) < least {
                return false;
            }
            if barges(*bits) < usize::from(self.max_barges) {
                if !bits.contains(WOKEN) {
                    bits.insert(WOKEN);
                    wakes.wake(waiters.waker(&first));
                }
                return false;
            }
            if wakes.is_full() {
                return true;
            }
            let granted = count(*bits).min(most);
            take(bits, granted);
            new_first(bits);
            *waiters.notify_one(&first, wakes) = Request::granted(granted);
        }
        none_queued(bits);
        false
    }
}

impl<B: Backend, X: Beside> core::fmt::Debug for Permits<B, X> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (waiting, granted) = self.waiting();
        f.debug_struct("Permits")
            .field("available", &self.available())
            .field("closed", &self.is_closed())
            .field("waiting", &waiting)
            .field("granted", &granted)
            .finish_non_exhaustive()
    }
}

/// The state of a future that acquires permits. The future passes the same permits and
/// request to each call.
#[derive(Debug)]
pub(crate) struct AcquireState {
    stage: Stage,
    location: CallerLocation,
}

/// A waiter, or one of the stages below: a word.
#[derive(Debug, PartialEq, Eq)]
struct Stage(Waiter);

impl Stage {
    const CREATED: Self = Self(Waiter::sentinel(0));
    /// Created, with priority.
    const PRIORITY: Self = Self(Waiter::sentinel(3));
    /// It has the permits, as many as the request says now. Seen outside of a poll only
    /// if a waker panicked in its drop, after the section that took the permits (P8).
    const TAKEN: Self = Self(Waiter::sentinel(1));
    const DONE: Self = Self(Waiter::sentinel(2));
}

impl AcquireState {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            stage: Stage::CREATED,
            location: CallerLocation::capture(),
        }
    }

    /// Creates the state of a request that goes before all others. There is at most one
    /// of them at a time.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(crate) const fn with_priority() -> Self {
        Self {
            stage: Stage::PRIORITY,
            location: CallerLocation::capture(),
        }
    }

    /// Returns where the request was made.
    #[inline]
    pub(crate) const fn location(&self) -> CallerLocation {
        self.location
    }

    /// Takes permits if the queue is empty and the future has not been polled before.
    /// Otherwise returns the bits found, for [`poll`](Self::poll).
    #[inline]
    pub(crate) fn try_start<B: Backend, X: Beside>(
        &self,
        request: Request,
        permits: &Permits<B, X>,
    ) -> Result<usize, Bits> {
        match self.stage {
            Stage::CREATED => permits.acquire_free(request),
            _ => Err(Bits::EMPTY),
        }
    }

    /// Takes all permits, under the same conditions as [`try_start`](Self::try_start).
    #[inline]
    pub(crate) fn try_start_all<B: Backend, X: Beside>(
        &self,
        all: usize,
        permits: &Permits<B, X>,
    ) -> Result<usize, Bits> {
        match self.stage {
            Stage::CREATED => permits.acquire_all_free(all),
            _ => Err(Bits::EMPTY),
        }
    }

    /// Polls for the permits after [`try_start`](Self::try_start) has found `found`.
    /// The future is not polled again after it was ready.
    #[inline]
    pub(crate) fn poll<B: Backend, X: Beside>(
        &mut self,
        found: Bits,
        request: &mut Request,
        permits: &Permits<B, X>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Closed>> {
        match self.stage {
            Stage::CREATED | Stage::PRIORITY => self.first_poll(found, request, permits, cx),
            _ => self.next_poll(request, permits, cx),
        }
    }

    /// Takes permits or a place in the queue.
    #[inline(never)]
    fn first_poll<B: Backend, X: Beside>(
        &mut self,
        found: Bits,
        request: &mut Request,
        permits: &Permits<B, X>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Closed>> {
        let asked = *request;
        if let Ok(taken) = permits.barge(found, asked) {
            self.stage = Stage::DONE;
            return Poll::Ready(Ok(taken));
        }
        let Self { stage, location } = self;
        let priority = *stage == Stage::PRIORITY;
        let poll = permits.lock.first_poll(cx, |bits, queue, registration| {
            if let Some(taken) = permits.try_assign(bits, asked, priority) {
                *request = Request::exactly(taken);
                *stage = Stage::TAKEN;
                return Ok(Ok(taken));
            }
            if bits.contains(CLOSED) {
                *stage = Stage::DONE;
                return Ok(Err(Closed));
            }
            let waiters = &mut queue.waiters;
            let waiter = match priority {
                true => {
                    new_first(bits);
                    waiters.push_first(*location, asked)
                }
                false => waiters.push(*location, asked),
            };
            bits.insert(QUEUED);
            let registered = registration.register(waiters.waker(&waiter));
            *stage = Stage(waiter);
            Err(registered)
        });
        if poll.is_ready() {
            self.stage = Stage::DONE;
        }
        poll
    }

    /// Takes what the waiter has been granted, or what it has been woken for.
    #[inline(never)]
    fn next_poll<B: Backend, X: Beside>(
        &mut self,
        request: &mut Request,
        permits: &Permits<B, X>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Closed>> {
        match self.stage {
            Stage::TAKEN => {
                self.stage = Stage::DONE;
                return Poll::Ready(Ok(request.least));
            }
            // Refused, in a poll that a panic of a waker ended (P8).
            Stage::DONE => return Poll::Ready(Err(Closed)),
            _ => {}
        }
        let stage = &mut self.stage;
        let poll = permits.lock.poll(cx, false, |section, registration| {
            let Section { bits, state, wakes } = section;
            let waiters = &mut state.waiters;
            let Stage(waiter) = stage;
            let notified = waiters.is_notified(waiter);
            let taken = match notified {
                true => waiters[waiter].grant(),
                false => {
                    let first = waiters.is_first(waiter);
                    let enough = count(*bits) >= request.least;
                    if !enough || !(first || barges(*bits) < usize::from(permits.max_barges)) {
                        if first {
                            // From now on a release wakes it again.
                            bits.remove(WOKEN);
                        }
                        return Err(registration.register(waiters.waker(waiter)));
                    }
                    let taken = count(*bits).min(request.most);
                    take(bits, taken);
                    match first {
                        true => new_first(bits),
                        false => barge(bits),
                    }
                    taken
                }
            };
            let Stage(waiter) = core::mem::replace(stage, Stage::TAKEN);
            waiters.remove(waiter, wakes);
            if !notified {
                // With a bound of zero only a release grants. So the bound is above
                // zero here, at most one waiter is woken, and there is no second round.
                permits.assign(bits, state, wakes);
            } else if taken == 0 || X::SEES_CLOSED && bits.contains(CLOSED) {
                if taken > 0 {
                    // Nothing is queued after a close: there is no second round.
                    permits.give_in(bits, state, taken, wakes);
                }
                *stage = Stage::DONE;
                return Ok(Err(Closed));
            }
            *request = Request::exactly(taken);
            Ok(Ok(taken))
        });
        if poll.is_ready() {
            self.stage = Stage::DONE;
        }
        poll
    }

    /// Leaves the queue, and passes on what was granted.
    #[inline]
    pub(crate) fn cancel<B: Backend, X: Beside>(
        &mut self,
        request: &Request,
        permits: &Permits<B, X>,
    ) {
        if !matches!(self.stage, Stage::CREATED | Stage::PRIORITY | Stage::DONE) {
            self.cancel_slow(request, permits);
        }
    }

    #[cold]
    #[inline(never)]
    fn cancel_slow<B: Backend, X: Beside>(&mut self, request: &Request, permits: &Permits<B, X>) {
        match core::mem::replace(&mut self.stage, Stage::DONE) {
            Stage::TAKEN => permits.release(request.least),
            Stage(waiter) => cancel(waiter, permits),
        }
    }
}

#[inline]
fn cancel<B: Backend, X: Beside>(waiter: Waiter, permits: &Permits<B, X>) {
    let mut waiter = Some(waiter);
    permits.lock.rounds(|section| {
        let Section { bits, state, wakes } = section;
        if let Some(waiter) = waiter.take() {
            let first = state.waiters.is_first(&waiter);
            let granted = state.waiters.remove(waiter, wakes).grant();
            state.return_permits(bits, granted);
            if first {
                new_first(bits);
            } else if granted == 0 {
                // Nothing has changed for the first, and no permit has come back.
                return false;
            }
        }
        permits.assign(bits, state, wakes)
    });
}
