//! What a source is ready for, and the tasks that wait for it.
//!
//! ```text
//!             notify: the system has said so              a task finds that it would block
//!   not ready ──────────────────────────────▶ ready, tick ──────────────────────────────▶ not ready
//!             all waiters of the direction are woken        only if the tick is the one that
//!                                                           the task has seen
//! ```
//!
//! The readiness of both directions and the wakers of the tasks that wait are under one
//! lock (P1). A poll looks and registers in one section (P2). An event stores the readiness
//! and takes the wakers out in one section, and wakes after it (P3).
//!
//! Invariants:
//!
//! 1. A tick counts the events of a direction. A task that found that it would block
//!    clears the readiness only if no event came since it saw the direction ready. So an
//!    event that comes between the two is not lost.
//! 2. A waiter that is queued waits for a direction that is not ready. Readiness is seen by
//!    all tasks, so a waiter that is dropped has nothing to pass on.
//! 3. If the system tells of a source once and then has to be asked again ([`Mode::Once`]),
//!    an event wakes the waiters of both directions. Each poll that is pending asks the
//!    system before it returns, so it has been asked for every direction that a task waits
//!    for.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use reveille::backend::{Backend, DefaultBackend};
use reveille::protocol::{Bits, CallerLocation, Section, StateLock, Waiter, Waiters};

/// A direction in which data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the system to the program.
    Read,
    /// From the program to the system.
    Write,
}

/// The directions in which a source is ready, or in which the system is asked about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ready {
    /// Whether a read would not block.
    pub read: bool,
    /// Whether a write would not block.
    pub write: bool,
}

impl Ready {
    /// Both directions.
    pub const BOTH: Self = Self {
        read: true,
        write: true,
    };

    const fn bits(self) -> Bits {
        let read = if self.read { READ } else { Bits::EMPTY };
        let write = if self.write { WRITE } else { Bits::EMPTY };
        read.with(write)
    }
}

/// How the system tells of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At each change, without being asked again.
    Edge,
    /// Once, and then again after it was asked.
    Once,
}

/// The system, as a source asks it.
pub trait System {
    /// Returns how the system tells of the source.
    fn mode(&self) -> Mode;

    /// Asks the system to tell once of these directions of the source, if its mode is
    /// [`Mode::Once`].
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn ask(&self, wanted: Ready) -> io::Result<()>;
}

const READ: Bits = Bits::new(1);
const WRITE: Bits = Bits::new(1 << 1);

impl Direction {
    const fn bit(self) -> Bits {
        match self {
            Self::Read => READ,
            Self::Write => WRITE,
        }
    }
}

/// The tasks that wait for one direction.
struct Side {
    /// The number of events so far.
    tick: u64,
    waiters: Waiters<()>,
}

/// The readiness of a source and the tasks that wait for it. See the [module](self).
///
/// # Examples
///
/// A system that tells of each change, and of bytes that have come:
///
/// ```
/// use reveille_executor::net::readiness::{Direction, Mode, Place, Ready, Source, System};
/// use std::cell::Cell;
/// use std::io;
/// use std::task::{Context, Waker};
///
/// struct Tells;
///
/// impl System for Tells {
///     fn mode(&self) -> Mode {
///         Mode::Edge
///     }
///
///     fn ask(&self, _: Ready) -> io::Result<()> {
///         Ok(())
///     }
/// }
///
/// let (source, bytes) = (Source::<reveille::backend::Local>::new_in(), Cell::new(0));
/// let read = || match bytes.take() {
///     0 => Err(io::ErrorKind::WouldBlock.into()),
///     n => Ok(n),
/// };
/// let mut place = Place::new();
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut poll = || source.poll_with(&mut place, Direction::Read, &mut cx, &Tells, read);
/// assert!(poll().is_pending());
/// bytes.set(7);
/// source.notify(Ready { read: true, write: false }, false);
/// assert!(matches!(poll(), std::task::Poll::Ready(Ok(7))));
/// ```
pub struct Source<B: Backend = DefaultBackend> {
    lock: StateLock<[Side; 2], B>,
}

/// What a task keeps between its polls of one direction: its place among the waiters, and
/// what it has seen.
#[derive(Debug, Default)]
pub struct Place {
    waiter: Option<Waiter>,
    /// The tick at which the direction was ready.
    seen: u64,
    /// An operation would have blocked since.
    blocked: bool,
}

impl Place {
    /// Returns the place of a task that has seen nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            waiter: None,
            seen: 0,
            blocked: false,
        }
    }
}

impl<B: Backend> Source<B> {
    /// Creates the readiness of a source of which nothing is known.
    #[must_use]
    pub fn new_in() -> Self {
        let side = || Side {
            tick: 0,
            waiters: Waiters::new(),
        };
        Self {
            lock: StateLock::new_in(Bits::EMPTY, [side(), side()]),
        }
    }

    /// Stores what an event says, and wakes the tasks that wait for it. With `to_both`, it
    /// wakes those of both directions, so that each asks the system again.
    pub fn notify(&self, ready: Ready, to_both: bool) {
        let mut generations = None;
        self.lock.rounds(|Section { bits, state, wakes }| {
            let generations = generations.get_or_insert_with(|| {
                bits.insert(ready.bits());
                let notify = |side: &mut Side, is_ready: bool| {
                    side.tick += u64::from(is_ready);
                    (is_ready || to_both).then(|| side.waiters.notify_all())
                };
                let [read, write] = state;
                [notify(read, ready.read), notify(write, ready.write)]
            });
            let mut more = false;
            for (side, generation) in state.iter_mut().zip(generations) {
                if let Some(generation) = generation {
                    more |= side.waiters.wake_notified(*generation, wakes);
                }
            }
            more
        });
    }

    /// Returns the directions that are ready.
    #[must_use]
    pub fn ready(&self) -> Ready {
        let bits = self.lock.load();
        Ready {
            read: bits.contains(READ),
            write: bits.contains(WRITE),
        }
    }

    /// Polls for a direction to be ready. If an operation of
    /// [`poll_with`](Self::poll_with) would have blocked since the last poll, the direction is
    /// no longer ready, unless an event has come since.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// A task that waits no longer calls [`leave`](Self::leave).
    pub fn poll_ready(
        &self,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
    ) -> Poll<io::Result<()>> {
        if self.poll(place, direction, cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        match system.mode() {
            Mode::Edge => Poll::Pending,
            Mode::Once => match self.arm(system) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        }
    }

    /// Performs an operation as soon as it would not block.
    ///
    /// # Errors
    ///
    /// Returns the error of the operation, or of the system if it cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// The same as that of [`poll_ready`](Self::poll_ready).
    pub fn poll_with<R>(
        &self,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
        mut operation: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            ready!(self.poll_ready(place, direction, cx, system))?;
            match operation() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => place.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Performs an operation that does not wait. If it would block, the direction is no
    /// longer ready, unless an event has come since the operation began.
    ///
    /// # Errors
    ///
    /// Returns the error of the operation.
    pub fn try_with<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let seen = self
            .lock
            .with(|section| section.state[direction as usize].tick);
        loop {
            match operation() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.lock.with(|Section { bits, state, .. }| {
                        if seen == state[direction as usize].tick {
                            bits.remove(direction.bit());
                        }
                    });
                    return Err(error);
                }
                result => return result,
            }
        }
    }

    /// Looks for readiness and registers, in one section.
    fn poll(&self, place: &mut Place, direction: Direction, cx: &mut Context<'_>) -> Poll<()> {
        let location = CallerLocation::capture();
        self.lock
            .poll(cx, place.waiter.is_none(), |section, registration| {
                let Section { bits, state, wakes } = section;
                let side = &mut state[direction as usize];
                if place.blocked && place.seen == side.tick {
                    bits.remove(direction.bit());
                }
                let ready = bits.contains(direction.bit());
                let waiters = &mut side.waiters;
                // A waiter that has been notified is in the queue no longer. If another task was
                // faster, it queues again.
                if let Some(waiter) = place
                    .waiter
                    .take_if(|waiter| ready || waiters.is_notified(waiter))
                {
                    waiters.remove(waiter, wakes);
                }
                if ready {
                    place.seen = side.tick;
                    place.blocked = false;
                    return Ok(());
                }
                let waiter = place
                    .waiter
                    .get_or_insert_with(|| waiters.push(location, ()));
                Err(registration.register(waiters.waker(waiter)))
            })
    }

    /// Asks the system to tell once of the directions that are not ready.
    ///
    /// Two tasks can do so at the same time, and the system heeds the later request. So each
    /// looks again afterwards, and asks again if something else is wanted by then.
    fn arm(&self, system: &impl System) -> io::Result<()> {
        let wanted = || {
            let ready = self.ready();
            Ready {
                read: !ready.read,
                write: !ready.write,
            }
        };
        let mut asked = wanted();
        loop {
            system.ask(asked)?;
            let now = wanted();
            if now == asked {
                return Ok(());
            }
            asked = now;
        }
    }

    /// Gives up the place of a task that waits no longer.
    pub fn leave(&self, place: &mut Place, direction: Direction) {
        if let Some(waiter) = place.waiter.take() {
            self.lock.with(|section| {
                let waiters = &mut section.state[direction as usize].waiters;
                waiters.remove(waiter, section.wakes);
            });
        }
    }
}

impl<B: Backend> fmt::Debug for Source<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [readers, writers] = self.lock.with(|section| {
            let [read, write] = section.state;
            [read.waiters.queued(), write.waiters.queued()]
        });
        f.debug_struct("Source")
            .field("ready", &self.ready())
            .field("readers", &readers)
            .field("writers", &writers)
            .finish()
    }
}
