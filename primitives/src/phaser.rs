//! A phaser, at which a changing number of parties meet, phase after phase.
//!
//! A [`Phaser`] is a [`Barrier`](crate::Barrier) whose parties come and go. Each
//! [`Party`] arrives once in each phase. The phase ends when all parties have arrived.
//!
//! ```
//! use reveille::Phaser;
//!
//! let phaser = Phaser::new();
//! // All parties are registered before the first of them arrives.
//! let parties = [phaser.register(), phaser.register()];
//! std::thread::scope(|scope| {
//!     for mut party in parties {
//!         scope.spawn(move || {
//!             assert_eq!(reveille_executor::block_on(party.arrive_and_wait()), 1);
//!             assert_eq!(reveille_executor::block_on(party.arrive_and_wait()), 2);
//!         });
//!     }
//! });
//! ```
//!
//! # States
//!
//! The bits hold the number of the phase. The state holds how many parties there are, and
//! how many of them have not arrived in this phase.
//!
//! ```text
//!                 arrive                        the last party arrives, or leaves
//!   unarrived ─────────────▶ arrived, or waits ───────────────────────────────────┐
//!    ▲     ▲                          │                                           │
//!    │     └── the wait is dropped: ──┘                                           │
//!    │         the arrival is withdrawn                                           │
//!    └──────────────────── the next phase, all waits are notified ◀───────────────┘
//! ```
//!
//! Invariant: between two sections, a party has not arrived yet, or there are no parties.
//! All waits that are queued wait for the end of this phase, so the end of a phase
//! notifies all of them.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Generation, Section, StateLock, Waiter, Waiters};

/// Lets a changing number of parties wait for one another. See the [module](self).
///
/// A phaser is a handle. A clone is another handle of the same phaser, and no party.
///
/// # Examples
///
/// ```
/// use reveille::Phaser;
///
/// let phaser = Phaser::new();
/// let (mut first, second) = (phaser.register(), phaser.register());
/// first.arrive();
/// assert_eq!(phaser.phase(), 0);
/// drop(second); // The only party left has arrived.
/// assert_eq!(phaser.phase(), 1);
/// ```
pub struct Phaser<B: Backend = DefaultBackend> {
    shared: Arc<Shared<B>>,
}

type Shared<B> = StateLock<State, B>;

struct State {
    waiters: Waiters<()>,
    parties: usize,
    /// The number of parties that have not arrived in this phase.
    unarrived: usize,
}

impl State {
    /// Ends the phase if all parties have arrived. Returns the waits to wake.
    fn advance(&mut self, bits: &mut Bits) -> Option<Generation> {
        if self.unarrived > 0 {
            return None;
        }
        self.unarrived = self.parties;
        *bits = following(*bits);
        Some(self.waiters.notify_all())
    }
}

/// Returns the next phase. The number wraps.
const fn following(phase: Bits) -> Bits {
    Bits::fitting(phase.get().wrapping_add(1) & Bits::MAX)
}

impl Phaser {
    /// Creates a phaser without parties, in phase 0.
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<B: Backend> Phaser<B> {
    /// Creates a phaser without parties, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Phaser, backend::Local};
    ///
    /// let phaser = Phaser::<Local>::new_in(); // for one thread
    /// let mut party = phaser.register();
    /// party.arrive();
    /// assert_eq!(phaser.phase(), 1);
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        let state = State {
            waiters: Waiters::new(),
            parties: 0,
            unarrived: 0,
        };
        Self {
            shared: Arc::new(StateLock::new_in(Bits::EMPTY, state)),
        }
    }

    /// Registers a party, which has not arrived in the current phase.
    ///
    /// Register all parties before the first of them arrives, or keep one that does not.
    /// Otherwise the first parties can end phases before the others are there.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// let phaser = Phaser::new();
    /// let mut party = phaser.register();
    /// assert_eq!(phaser.parties(), 1);
    /// # drop(party);
    /// ```
    pub fn register(&self) -> Party<B> {
        self.shared.unlisted(|_, state| {
            state.parties += 1;
            state.unarrived += 1;
        });
        Party {
            phaser: self.clone(),
            arrived: None,
        }
    }

    /// Returns the number of the current phase. It begins with 0, and wraps at
    /// [`Bits::MAX`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// assert_eq!(Phaser::new().phase(), 0);
    /// ```
    #[must_use]
    pub fn phase(&self) -> usize {
        self.shared.load().get()
    }

    /// Returns the number of parties.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// assert_eq!(Phaser::new().parties(), 0);
    /// ```
    #[must_use]
    pub fn parties(&self) -> usize {
        self.shared.look(|state| state.parties)
    }

    /// Returns the number of parties that have arrived in the current phase.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// let phaser = Phaser::new();
    /// let (mut first, second) = (phaser.register(), phaser.register());
    /// first.arrive();
    /// assert_eq!(phaser.arrived(), 1);
    /// # drop(second);
    /// ```
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.shared.look(|state| state.parties - state.unarrived)
    }

    /// Waits until the current phase is another than `phase`, and returns its number. It
    /// is not a party, and does not arrive.
    ///
    /// If the current phase is another already, the future completes at its first poll.
    /// So it does not wait for a later phase.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// let phaser = Phaser::new();
    /// let mut party = phaser.register();
    /// let phase = party.arrive();
    /// assert_eq!(reveille_executor::block_on(phaser.wait(phase)), phase + 1);
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn wait(&self, phase: usize) -> PhaserWait<'_, B> {
        PhaserWait {
            phaser: self,
            phase,
            location: CallerLocation::capture(),
            waiter: None,
        }
    }

    /// Returns the number of waits for the end of the phase, those of parties and those
    /// of [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// assert_eq!(Phaser::new().waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.look(|state| state.waiters.queued())
    }

    /// Returns the number of waits that have been notified and not been polled since. A
    /// number that stays above zero shows that a future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// assert_eq!(Phaser::new().granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.shared.look(|state| state.waiters.notified())
    }

    /// Returns where in the source each wait began, the oldest first. Waits that have
    /// been notified and not been polled since are included.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// assert!(Phaser::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.shared.look(|state| state.waiters.locations())
    }

    /// Runs a section that may end the phase, and wakes the waits for its end.
    fn change<R>(&self, f: impl FnOnce(&mut Bits, &mut State) -> R) -> R {
        let mut f = Some(f);
        let mut result = None;
        let mut ended = None;
        self.shared.rounds(|Section { bits, state, wakes }| {
            if let Some(f) = f.take() {
                result = Some(f(bits, state));
                ended = state.advance(bits);
            }
            ended.is_some_and(|ended| state.waiters.wake_notified(ended, wakes))
        });
        result.expect("the first round has run it")
    }
}

/// Another handle of the same phaser. It is no party.
impl<B: Backend> Clone for Phaser<B> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl Default for Phaser {
    fn default() -> Self {
        Self::new()
    }
}

/// A party of a [`Phaser`]. Dropping it deregisters the party.
///
/// If it was the only party that had not arrived, dropping it ends the phase. If it is
/// leaked, the phase never ends.
#[must_use = "a party that is dropped has left the phaser"]
pub struct Party<B: Backend = DefaultBackend> {
    phaser: Phaser<B>,
    /// The last phase in which it has arrived.
    arrived: Option<Bits>,
}

impl<B: Backend> Party<B> {
    /// Arrives in the current phase, and does not wait for its end. Returns the number of
    /// the phase.
    ///
    /// If the party has arrived in this phase before, this changes nothing. To wait for
    /// the end of the phase, pass its number to [`Phaser::wait`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// let phaser = Phaser::new();
    /// let (mut first, mut second) = (phaser.register(), phaser.register());
    /// assert_eq!((first.arrive(), first.arrive()), (0, 0));
    /// assert_eq!(second.arrive(), 0);
    /// assert_eq!(first.arrive(), 1);
    /// ```
    pub fn arrive(&mut self) -> usize {
        let arrived = &mut self.arrived;
        self.phaser.change(|bits, state| {
            if *arrived != Some(*bits) {
                *arrived = Some(*bits);
                state.unarrived -= 1;
            }
            bits.get()
        })
    }

    /// Arrives in the current phase, waits for its end, and returns the number of the
    /// next phase.
    ///
    /// The party arrives at the first poll. If it has arrived in the current phase before,
    /// by [`arrive`](Self::arrive), the future only waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the end of the phase withdraws the arrival that it has
    /// made. The party stays registered. Dropping it after the end of the phase changes
    /// nothing: the other parties go on.
    ///
    /// # Panics
    ///
    /// The poll panics if the future has completed before, or if 2^32 - 8 tasks wait
    /// already.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// # reveille_executor::block_on(async {
    /// let phaser = Phaser::new();
    /// let (mut first, mut second) = (phaser.register(), phaser.register());
    /// first.arrive();
    /// assert_eq!(second.arrive_and_wait().await, 1);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub const fn arrive_and_wait(&mut self) -> ArriveAndWait<'_, B> {
        ArriveAndWait {
            party: self,
            location: CallerLocation::capture(),
            stage: Stage::Created,
        }
    }

    /// Returns the phaser.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Phaser;
    ///
    /// let party = Phaser::new().register();
    /// assert_eq!(party.phaser().parties(), 1);
    /// ```
    pub const fn phaser(&self) -> &Phaser<B> {
        &self.phaser
    }
}

/// Deregisters the party.
impl<B: Backend> Drop for Party<B> {
    fn drop(&mut self) {
        let arrived = self.arrived;
        self.phaser.change(|bits, state| {
            state.parties -= 1;
            if arrived != Some(*bits) {
                state.unarrived -= 1;
            }
        });
    }
}

#[derive(Debug)]
enum Stage {
    Created,
    /// It waits for the end of the phase, and has arrived in it itself, or not.
    Here(Waiter, Arrival),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// The future has arrived.
    Own,
    /// The party had arrived before.
    Earlier,
}

/// The future of [`Party::arrive_and_wait`].
///
/// If it is leaked after its first poll, the arrival counts and is never withdrawn.
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct ArriveAndWait<'a, B: Backend = DefaultBackend> {
    party: &'a mut Party<B>,
    location: CallerLocation,
    stage: Stage,
}

impl<B: Backend> Future for ArriveAndWait<'_, B> {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let Self {
            party,
            location,
            stage,
        } = self.get_mut();
        let Party { phaser, arrived } = &mut **party;
        assert!(
            !matches!(stage, Stage::Done),
            "Party::arrive_and_wait polled after it was ready"
        );
        // As in a barrier, the waker is cloned only if this is not the last arrival: a
        // panic of its destructor would keep the other parties from being woken.
        let ended = phaser.shared.poll(cx, false, |section, registration| {
            let Section { bits, state, wakes } = section;
            let (waiter, arrival) = match core::mem::replace(stage, Stage::Done) {
                Stage::Here(waiter, _) if state.waiters.is_notified(&waiter) => {
                    state.waiters.remove(waiter, wakes);
                    return Ok((bits.get(), None));
                }
                Stage::Here(waiter, arrival) => (waiter, arrival),
                _ => {
                    let arrival = match *arrived == Some(*bits) {
                        true => Arrival::Earlier,
                        false => Arrival::Own,
                    };
                    if arrival == Arrival::Own {
                        *arrived = Some(*bits);
                        state.unarrived -= 1;
                        if let Some(ended) = state.advance(bits) {
                            return Ok((bits.get(), Some(ended)));
                        }
                    }
                    (state.waiters.push(*location, ()), arrival)
                }
            };
            let registered = registration.register(state.waiters.waker(&waiter));
            *stage = Stage::Here(waiter, arrival);
            Err(registered)
        });
        ended.map(|(phase, ended)| {
            if let Some(ended) = ended {
                phaser
                    .shared
                    .rounds(|section| section.state.waiters.wake_notified(ended, section.wakes));
            }
            phase
        })
    }
}

/// Withdraws the arrival, unless the phase has ended.
impl<B: Backend> Drop for ArriveAndWait<'_, B> {
    fn drop(&mut self) {
        if let Stage::Here(waiter, arrival) = core::mem::replace(&mut self.stage, Stage::Done) {
            let Party { phaser, arrived } = &mut *self.party;
            phaser.shared.with(|Section { state, wakes, .. }| {
                if arrival == Arrival::Own && !state.waiters.is_notified(&waiter) {
                    state.unarrived += 1;
                    *arrived = None;
                }
                state.waiters.remove(waiter, wakes);
            });
        }
    }
}

/// The future of [`Phaser::wait`].
///
/// If it is polled again after it has completed, it returns the current phase again.
#[must_use = "futures do nothing unless polled"]
pub struct PhaserWait<'a, B: Backend = DefaultBackend> {
    phaser: &'a Phaser<B>,
    phase: usize,
    location: CallerLocation,
    /// The place in the queue, while the future has one.
    waiter: Option<Waiter>,
}

impl<B: Backend> Future for PhaserWait<'_, B> {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let Self {
            phaser,
            phase,
            location,
            waiter,
        } = self.get_mut();
        let fresh = waiter.is_none();
        phaser.shared.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            // A wait that is queued is notified by the end of the phase.
            if bits.get() != *phase {
                if let Some(waiter) = waiter.take() {
                    state.waiters.remove(waiter, wakes);
                }
                return Ok(bits.get());
            }
            let waiter = waiter.get_or_insert_with(|| state.waiters.push(*location, ()));
            Err(registration.register(state.waiters.waker(waiter)))
        })
    }
}

/// Gives up the place in the queue.
impl<B: Backend> Drop for PhaserWait<'_, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.phaser.shared.with(|Section { state, wakes, .. }| {
                state.waiters.remove(waiter, wakes);
            });
        }
    }
}

impl<B: Backend> fmt::Debug for Phaser<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Phaser");
        f.field("phase", &self.phase())
            .field("parties", &self.parties())
            .field("arrived", &self.arrived())
            .field("waiting", &self.waiting())
            .field("granted", &self.granted());
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<B: Backend> fmt::Debug for Party<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Party")
            .field("arrived", &self.arrived.map(Bits::get))
            .field("phaser", &self.phaser)
            .finish()
    }
}

impl<B: Backend> fmt::Debug for ArriveAndWait<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArriveAndWait")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> fmt::Debug for PhaserWait<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhaserWait")
            .field("phase", &self.phase)
            .field("queued", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}
