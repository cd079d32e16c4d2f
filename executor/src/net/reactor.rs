//! The reactor: waits for the system to tell of sources, and notifies them.
//!
//! ```text
//!   system ──event: key, directions──▶ reactor ──key──▶ Sources ──▶ Source::notify ──▶ wakers
//! ```
//!
//! There is one for the process. Its thread starts with the first socket and never ends, so
//! a socket works under any executor. The table of sources and their readiness are in
//! [`sources`](super::sources) and [`readiness`](super::readiness), which know no system and
//! are explored over models of one.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;

use polling::{Event, Events, PollMode, Poller};

use super::pollable::Pollable;
use super::readiness::{Direction, Mode, Place, Ready, Source, System};
use super::sources::{Key, Sources};
use crate::catch_panic::catch_panic;
use crate::task::coop;

/// The number of events that one wait returns at most.
const EVENTS: usize = 1024;

pub(super) struct Reactor {
    poller: Poller,
    mode: Mode,
    sources: Sources,
}

impl Reactor {
    /// Returns the reactor of the process, and starts it if there is none.
    fn of_process() -> io::Result<&'static Arc<Self>> {
        static REACTOR: OnceLock<Arc<Reactor>> = OnceLock::new();
        static STARTS: Mutex<()> = Mutex::new(());
        if let Some(reactor) = REACTOR.get() {
            return Ok(reactor);
        }
        let _starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reactor) = REACTOR.get() {
            return Ok(reactor);
        }
        let poller = Poller::new()?;
        let reactor = Arc::new(Self {
            mode: match poller.supports_edge() {
                true => Mode::Edge,
                false => Mode::Once,
            },
            poller,
            sources: Sources::new_in(Sources::<reveille::backend::Native>::MAX_GENERATIONS),
        });
        let runs = reactor.clone();
        thread::Builder::new()
            .name("reveille-net".to_owned())
            .spawn(move || runs.run())?;
        Ok(REACTOR.get_or_init(|| reactor))
    }

    fn run(&self) {
        let mut events = Events::with_capacity(EVENTS.try_into().expect("it is not zero"));
        loop {
            events.clear();
            match self.poller.wait(&mut events, None) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("the system does not tell of sockets any more: {error}"),
            }
            for event in events.iter() {
                // A waker that panics does not end the thread (P8).
                catch_panic(|| self.dispatch(event));
            }
        }
    }

    fn dispatch(&self, event: Event) {
        if let Some(source) = self.sources.get(Key(event.key)) {
            let ready = Ready {
                read: event.readable,
                write: event.writable,
            };
            source.notify(ready, self.mode == Mode::Once);
        }
    }
}

/// A source that the reactor knows. It is deregistered before it is dropped.
pub(super) struct Registered<T: Pollable> {
    /// It is absent only after [`into_inner`](Self::into_inner).
    io: Option<T>,
    key: Key,
    source: Arc<Source>,
    reactor: &'static Reactor,
}

impl<T: Pollable> Registered<T> {
    /// Registers a source, which no longer blocks from then on.
    #[allow(unsafe_code)]
    pub(super) fn new(io: T) -> io::Result<Self> {
        let reactor = Reactor::of_process()?;
        socket2::SockRef::from(&io).set_nonblocking(true)?;
        let source = Arc::new(Source::new_in());
        let too_many = || io::Error::other("there are more sockets than keys");
        let key = reactor
            .sources
            .insert(source.clone())
            .ok_or_else(too_many)?;
        // Complete before the source is added, so that a failure is undone by its drop.
        let registered = Self {
            io: Some(io),
            key,
            source,
            reactor,
        };
        let mode = match reactor.mode {
            Mode::Edge => PollMode::Edge,
            Mode::Once => PollMode::Oneshot,
        };
        let interest = Event::all(key.0);
        // SAFETY: `Poller` demands that the source is deleted before it is dropped. The
        // source is in `registered`, whose `drop` and `into_inner` delete it first. Until
        // then nothing closes its descriptor or replaces it: `Pollable` promises so of a
        // shared reference, and nothing here gives out another.
        unsafe {
            reactor
                .poller
                .add_with_mode(&registered.io().source(), interest, mode)?;
        }
        Ok(registered)
    }

    pub(super) fn io(&self) -> &T {
        self.io.as_ref().expect("it is there until it is taken out")
    }

    /// Deregisters the source and returns it. It still does not block.
    pub(super) fn into_inner(mut self) -> T {
        self.deregister();
        self.io.take().expect("it is taken out once")
    }

    fn deregister(&mut self) {
        if let Some(io) = &self.io {
            // It fails only if the source was not added, or if the system has forgotten it.
            let _ = self.reactor.poller.delete(io);
            drop(self.reactor.sources.remove(self.key));
        }
    }

    /// Polls for a direction to be ready.
    pub(super) fn poll_ready(
        &self,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.source.poll_ready(place, direction, cx, self)
    }

    /// Performs an operation as soon as it would not block.
    pub(super) fn poll_with<R>(
        &self,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let budget = ready!(coop::poll_proceed(cx));
        let operation = || operation(self.io());
        let result = ready!(self.source.poll_with(place, direction, cx, self, operation));
        budget.made_progress();
        Poll::Ready(result)
    }

    /// Performs an operation that does not wait.
    pub(super) fn try_with<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.source.try_with(direction, || operation(self.io()))
    }

    pub(super) fn leave(&self, place: &mut Place, direction: Direction) {
        self.source.leave(place, direction);
    }
}

impl<T: Pollable> System for Registered<T> {
    fn mode(&self) -> Mode {
        self.reactor.mode
    }

    fn ask(&self, wanted: Ready) -> io::Result<()> {
        let interest = Event::new(self.key.0, wanted.read, wanted.write);
        self.reactor.poller.modify(self.io(), interest)
    }
}

impl<T: Pollable> Drop for Registered<T> {
    fn drop(&mut self) {
        self.deregister();
    }
}

impl<T: Pollable + fmt::Debug> fmt::Debug for Registered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("io", &self.io)
            .field("source", &self.source)
            .finish()
    }
}

/// Returns the number of sources that are registered.
pub(super) fn registered() -> usize {
    Reactor::of_process().map_or(0, |reactor| reactor.sources.len())
}
