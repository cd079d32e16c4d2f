//! Counted permits: the core of the semaphore, and of every lock.
//!
//! ```text
//!   bits = permits ‖ overtakes ‖ flags        flags: QUEUED, CLOSED, WOKEN, DEBT
//!
//!   acquire ──enough, nobody queued────────▶ taken: one compare-exchange
//!      │    ──enough, overtakes < bound────▶ taken, one overtake more: likewise
//!      └──▶ queued ──granted by a release──▶ called, the grant in its entry
//!             └──woken as the first (WOKEN), and finds enough─▶ taken
//! ```
//!
//! *Fairness is a bound.* With a bound of 0 a release hands permits to those
//! who are queued, in order, and nobody overtakes. With a bound of `K` it leaves
//! the permits where whoever comes first can take them and wakes the first in
//! the queue to try; but the first is overtaken at most `K` times: then newcomers
//! queue, and the release hands over. A bound is not a clock, so it can be
//! checked.
//!
//! An *urgent* request goes before all others: it is the rest of what its holder
//! has part of, and whoever waits for all waits for that part too.
//!
//! Invariants: whenever no section is under way, the first in the queue cannot
//! be granted (there are too few permits), or it has been woken and has not been
//! polled since (`WOKEN`). Permits in the bits, with those granted and not yet
//! observed, those held and less the debt, are as many as were ever added.

use core::task::{Context, Poll};

#[cfg(not(loom))]
use super::DefaultBackend;
use super::{Backend, Bits, Section, Site, StateLock, Waiter, Waiters};

const QUEUED: Bits = Bits::new(1);
const CLOSED: Bits = Bits::new(1 << 1);
/// The first in the queue has been woken and has not been polled since.
const WOKEN: Bits = Bits::new(1 << 2);
/// Permits are owed: the next to be released are forgotten.
const DEBT: Bits = Bits::new(1 << 3);
const OVERTAKE: usize = 1 << 4;
/// The largest bound: what is left of the word is permits.
const MAX_BOUND: u16 = if usize::BITS < 64 { 0x3ff } else { u16::MAX };
const OVERTAKES: usize = MAX_BOUND as usize * OVERTAKE;
const PERMIT: usize = OVERTAKES + OVERTAKE;

/// Permits, with a queue of those who wait for some.
pub struct Permits<B: Backend> {
    lock: StateLock<Queue, B>,
    /// How often the first in the queue may be overtaken.
    bound: u16,
}

const fn at_most(bound: u16) -> u16 {
    if bound < MAX_BOUND { bound } else { MAX_BOUND }
}

#[derive(Debug)]
struct Queue {
    waiters: Waiters<Wait>,
    debt: usize,
}

impl Queue {
    const EMPTY: Self = Self {
        waiters: Waiters::new(),
        debt: 0,
    };

    /// Takes permits back: what is owed of them is forgotten.
    fn give_back(&mut self, bits: &mut Bits, permits: usize) {
        let paid = permits.min(self.debt);
        self.debt -= paid;
        if self.debt == 0 {
            bits.remove(DEBT);
        }
        give(bits, permits - paid);
    }
}

/// What somebody waits for, and has been granted.
#[derive(Clone, Copy, Debug)]
struct Wait {
    least: usize,
    most: usize,
    /// Called with nothing granted: the permits are closed.
    granted: usize,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    least: usize,
    most: usize,
    /// It goes before all others, whoever came first.
    urgent: bool,
}

impl Request {
    /// Between `least` and `most` permits.
    #[inline]
    pub(crate) const fn between(least: usize, most: usize) -> Self {
        Self {
            least,
            most,
            urgent: false,
        }
    }

    /// So many permits.
    #[inline]
    pub(crate) const fn exactly(permits: usize) -> Self {
        Self::between(permits, permits)
    }

    /// So many permits, before all others. There is one such at a time.
    #[inline]
    pub(crate) const fn urgently(permits: usize) -> Self {
        Self {
            urgent: true,
            ..Self::exactly(permits)
        }
    }
}

/// No permits will be given any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Why nothing was given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No permits will be given any more.
    Closed,
    /// There are too few, or others wait for them.
    TooFew,
}

/// The bits of so many permits.
#[inline]
const fn start(permits: usize) -> Bits {
    assert!(
        permits <= Bits::MAX / PERMIT,
        "more permits than a semaphore holds: see MAX_PERMITS"
    );
    Bits::new(permits * PERMIT)
}

#[inline]
fn count(bits: Bits) -> usize {
    bits.get() / PERMIT
}

#[inline]
fn overtakes(bits: Bits) -> usize {
    (bits.get() & OVERTAKES) / OVERTAKE
}

/// Panics rather than wraps: by adding permits while others are out, there can
/// be more than fit.
#[inline]
fn give(bits: &mut Bits, permits: usize) {
    assert!(
        permits <= Bits::MAX / PERMIT - count(*bits),
        "more permits are released than a semaphore holds"
    );
    *bits = Bits::new(bits.get() + permits * PERMIT);
}

#[inline]
fn take(bits: &mut Bits, permits: usize) {
    *bits = Bits::new(bits.get() - permits * PERMIT);
}

/// The queue has another first: nobody has overtaken it, and it is not woken.
#[inline]
fn new_first(bits: &mut Bits) {
    *bits = Bits::new(bits.get() & !OVERTAKES).without(WOKEN);
}

#[cfg(not(loom))]
impl Permits<DefaultBackend> {
    pub(crate) const fn const_new(permits: usize, bound: u16) -> Self {
        Self {
            lock: StateLock::<_, DefaultBackend>::const_new(start(permits), Queue::EMPTY),
            bound: at_most(bound),
        }
    }
}

/// Names the bits of permits, for people.
///
/// # Errors
///
/// Those of writing.
pub fn describe_permits(bits: Bits, f: &mut dyn core::fmt::Write) -> core::fmt::Result {
    write!(f, "{} free", count(bits))?;
    if overtakes(bits) > 0 {
        write!(f, ", {} overtakes", overtakes(bits))?;
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
    /// The most permits there can be.
    pub const MAX: usize = Bits::MAX / PERMIT;

    /// So many permits, over any backend.
    ///
    /// # Panics
    ///
    /// Panics where there are more than [`MAX`](Self::MAX).
    pub(crate) fn new_in(permits: usize, bound: u16) -> Self {
        Self {
            lock: StateLock::new_in(start(permits), Queue::EMPTY),
            bound: at_most(bound),
        }
    }

    /// How many are there to be taken.
    pub(crate) fn available(&self) -> usize {
        count(self.lock.load())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock.load().contains(CLOSED)
    }

    /// How many wait, and how many have been granted permits and not been polled
    /// since.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.lock.with(|section| {
            (
                section.state.waiters.queued(),
                section.state.waiters.called(),
            )
        })
    }

    /// Where each who waits began to.
    #[cfg(feature = "locations")]
    pub(crate) fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.with(|section| section.state.waiters.locations())
    }

    /// Takes permits without waiting: one compare-exchange.
    #[inline]
    pub(crate) fn try_take(&self, request: Request) -> Result<usize, Refused> {
        let mut taken = 0;
        let result = self.lock.update(|bits| {
            let mut bits = bits;
            taken = self.takes(&mut bits, request)?;
            Some(bits)
        });
        match result {
            Ok(_) => Ok(taken),
            Err(bits) if bits.contains(CLOSED) => Err(Refused::Closed),
            Err(_) => Err(Refused::TooFew),
        }
    }

    /// Takes all permits there are, if they are there, and nobody waits, and
    /// nothing else is the case: one compare-exchange, without a look before.
    #[inline]
    pub(crate) fn try_take_all(&self, all: usize) -> bool {
        match self.lock.exchange(start(all), Bits::EMPTY) {
            Ok(()) => true,
            Err(mut found) => {
                let request = Request::exactly(all);
                // Where there was nothing to be had, a further look is none.
                self.takes(&mut found, request).is_some() && self.try_take(request).is_ok()
            }
        }
    }

    /// Gives back all permits there are: one compare-exchange, where nobody waits
    /// for them, without a look before.
    #[inline]
    pub(crate) fn release_all(&self, all: usize) {
        match self.lock.exchange(Bits::EMPTY, start(all)) {
            Ok(()) => {}
            Err(found) if self.keeps(found) => self.release(all),
            Err(_) => self.release_slow(all),
        }
    }

    /// What somebody who is not queued takes, if anything.
    #[inline]
    fn takes(&self, bits: &mut Bits, request: Request) -> Option<usize> {
        let queued = bits.contains(QUEUED);
        let free = count(*bits);
        if bits.contains(CLOSED) || free < request.least {
            return None;
        }
        let taken = free.min(request.most);
        if queued && taken > 0 && !request.urgent {
            if overtakes(*bits) >= usize::from(self.bound) {
                // Whoever is content with none has none, and need not queue.
                return (request.least == 0).then_some(0);
            }
            *bits = Bits::new(bits.get() + OVERTAKE);
        }
        take(bits, taken);
        Some(taken)
    }

    /// Gives permits back, to whoever waits for them.
    #[inline]
    pub(crate) fn release(&self, permits: usize) {
        if permits == 0 {
            return;
        }
        let simple = self.lock.update(|bits| {
            self.keeps(bits).then(|| {
                let mut bits = bits;
                give(&mut bits, permits);
                bits
            })
        });
        if simple.is_err() {
            self.release_slow(permits);
        }
    }

    /// Whether what is released stays where it is: nobody waits for it, or
    /// whoever is first has been told.
    #[inline]
    fn keeps(&self, bits: Bits) -> bool {
        !bits.intersects(QUEUED | DEBT)
            || (bits.contains(QUEUED | WOKEN)
                && !bits.contains(DEBT)
                && overtakes(bits) < usize::from(self.bound))
    }

    #[cold]
    fn release_slow(&self, permits: usize) {
        let mut released = permits;
        self.lock.rounds(|section| {
            let Section { bits, state, wakes } = section;
            state.give_back(bits, core::mem::take(&mut released));
            self.serve(Section { bits, state, wakes })
        });
    }

    /// Adds permits.
    ///
    /// # Errors
    ///
    /// Nothing has been added where there would be more than [`MAX`](Self::MAX).
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
                state.give_back(bits, permits);
            }
            self.serve(Section { bits, state, wakes })
        });
        refused.map_or(Ok(()), Err)
    }

    /// Takes permits out of use, as many as are there up to `permits`.
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

    /// Takes permits out of use, and those that are not there as soon as they
    /// are released.
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

    /// Gives no permits any more; whoever waits is told so.
    pub(crate) fn close(&self) {
        self.lock.broadcast(
            |queue| &mut queue.waiters,
            |Section { bits, state, .. }| {
                bits.insert(CLOSED);
                bits.remove(QUEUED);
                new_first(bits);
                ((), state.waiters.call_all())
            },
        );
    }

    /// Grants what can be granted, in order, and answers whether to go on in
    /// another section: more wakers are due than one lets go.
    fn serve(&self, section: Section<'_, Queue>) -> bool {
        let Section { bits, state, wakes } = section;
        let waiters = &mut state.waiters;
        let more = loop {
            let Some(first) = waiters.first() else {
                break false;
            };
            let Wait { least, most, .. } = waiters[&first];
            if count(*bits) < least {
                break false;
            }
            if overtakes(*bits) < usize::from(self.bound) {
                if !bits.contains(WOKEN) {
                    bits.insert(WOKEN);
                    wakes.wake(waiters.waker(&first));
                }
                break false;
            }
            if wakes.is_full() {
                break true;
            }
            let granted = count(*bits).min(most);
            take(bits, granted);
            waiters[&first].granted = granted;
            waiters.call(&first, wakes);
            new_first(bits);
        };
        match waiters.is_empty() {
            true => {
                bits.remove(QUEUED);
                new_first(bits);
            }
            false => bits.insert(QUEUED),
        }
        more
    }
}

impl<B: Backend> core::fmt::Debug for Permits<B> {
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

/// Somebody who wants permits: what they are, he says at each call, and always
/// the same.
#[derive(Debug)]
pub struct Acquiring {
    stage: Stage,
    site: Site,
}

#[derive(Debug)]
enum Stage {
    Created,
    Queued(Waiter),
    /// It has them, as many as the request says now. Seen from outside only where
    /// a waker panicked as it was dropped, after the section that took them (P8).
    Taken,
    Done,
}

impl Acquiring {
    #[cfg_attr(feature = "locations", track_caller)]
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            stage: Stage::Created,
            site: Site::here(),
        }
    }

    /// Where it was asked for.
    #[inline]
    pub(crate) const fn site(&self) -> Site {
        self.site
    }

    /// Polls for the permits. Ready once: a later poll is a mistake of the
    /// caller's, which it names.
    ///
    /// # Panics
    ///
    /// Panics where it has been ready.
    #[inline]
    pub(crate) fn poll<B: Backend>(
        &mut self,
        request: &mut Request,
        permits: &Permits<B>,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Result<usize, Closed>> {
        if let Stage::Created = self.stage
            && let Ok(count) = permits.try_take(*request)
        {
            self.stage = Stage::Done;
            return Poll::Ready(Ok(count));
        }
        self.poll_slow(request, permits, cx, name)
    }

    /// As [`poll`](Self::poll), for all permits there are.
    #[inline]
    pub(crate) fn poll_all<B: Backend>(
        &mut self,
        all: usize,
        permits: &Permits<B>,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Result<usize, Closed>> {
        if let Stage::Created = self.stage
            && permits.try_take_all(all)
        {
            self.stage = Stage::Done;
            return Poll::Ready(Ok(all));
        }
        self.poll_slow(&mut Request::exactly(all), permits, cx, name)
    }

    #[cold]
    #[inline(never)]
    fn poll_slow<B: Backend>(
        &mut self,
        request: &mut Request,
        permits: &Permits<B>,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Result<usize, Closed>> {
        let fresh = match self.stage {
            Stage::Created => true,
            Stage::Queued(_) => false,
            Stage::Taken => {
                self.stage = Stage::Done;
                return Poll::Ready(Ok(request.least));
            }
            Stage::Done => panic!("{name} polled after it was ready"),
        };
        let poll = permits.lock.poll(cx, fresh, |section, caller| {
            let Section { bits, state, wakes } = section;
            let poll = self.step(
                request,
                permits,
                Section {
                    bits: &mut *bits,
                    state: &mut *state,
                    wakes,
                },
            );
            if let Stage::Queued(waiter) = &self.stage {
                if state.waiters.first().as_ref() == Some(waiter) {
                    // From now on a release wakes it again.
                    bits.remove(WOKEN);
                }
                caller.register(state.waiters.waker(waiter));
            }
            poll
        });
        if poll.is_ready() {
            self.stage = Stage::Done;
        }
        poll
    }

    /// Goes on as far as it can: into the queue, or out of it with permits.
    fn step<B: Backend>(
        &mut self,
        request: &mut Request,
        permits: &Permits<B>,
        section: Section<'_, Queue>,
    ) -> Poll<Result<usize, Closed>> {
        let Section { bits, state, wakes } = section;
        let taken = match core::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Created => {
                if let Some(taken) = permits.takes(bits, *request) {
                    taken
                } else if bits.contains(CLOSED) {
                    return Poll::Ready(Err(Closed));
                } else {
                    let Request {
                        least,
                        most,
                        urgent,
                    } = *request;
                    let wait = Wait {
                        least,
                        most,
                        granted: 0,
                    };
                    let waiter = match urgent {
                        true => {
                            new_first(bits);
                            state.waiters.push_first(self.site, wait)
                        }
                        false => state.waiters.push(self.site, wait),
                    };
                    self.stage = Stage::Queued(waiter);
                    bits.insert(QUEUED);
                    return Poll::Pending;
                }
            }
            Stage::Queued(waiter) if state.waiters.is_called(&waiter) => {
                match state.waiters.remove(waiter, wakes).granted {
                    0 => return Poll::Ready(Err(Closed)),
                    granted => granted,
                }
            }
            Stage::Queued(waiter) => {
                let first = state.waiters.first().as_ref() == Some(&waiter);
                let enough = count(*bits) >= request.least;
                if !enough || !(first || overtakes(*bits) < usize::from(permits.bound)) {
                    self.stage = Stage::Queued(waiter);
                    return Poll::Pending;
                }
                let taken = count(*bits).min(request.most);
                take(bits, taken);
                match first {
                    true => new_first(bits),
                    false => *bits = Bits::new(bits.get() + OVERTAKE),
                }
                state.waiters.remove(waiter, wakes);
                // One is woken at most, since whoever overtakes is not the first
                // and the bound is not zero: there is no second round.
                permits.serve(Section { bits, state, wakes });
                taken
            }
            Stage::Taken | Stage::Done => unreachable!("only a wait that goes on takes a step"),
        };
        self.stage = Stage::Taken;
        *request = Request::exactly(taken);
        Poll::Ready(Ok(taken))
    }

    /// Gives up: leaves the queue, and hands on what it was granted.
    #[inline]
    pub(crate) fn cancel<B: Backend>(&mut self, request: Request, permits: &Permits<B>) {
        match core::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Queued(waiter) => cancel(waiter, permits),
            Stage::Taken => permits.release(request.least),
            Stage::Created | Stage::Done => {}
        }
    }
}

#[cold]
fn cancel<B: Backend>(waiter: Waiter, permits: &Permits<B>) {
    let mut waiter = Some(waiter);
    permits.lock.rounds(|section| {
        let Section { bits, state, wakes } = section;
        if let Some(waiter) = waiter.take() {
            let first = state.waiters.first().as_ref() == Some(&waiter);
            let Wait { granted, .. } = state.waiters.remove(waiter, wakes);
            state.give_back(bits, granted);
            if first {
                new_first(bits);
            }
        }
        permits.serve(Section { bits, state, wakes })
    });
}
