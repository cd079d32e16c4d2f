//! The readiness of a socket and the table of sockets, with a fault that can be chosen.
//!
//! They are written in the plain way, as lists under one lock, so that each fault is a line.
//! With [`Fault::None`] they are correct.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};
use reveille_executor::net::readiness::{Direction, Mode, Ready, System};

use crate::run::Generic;
use crate::run::entry::SpecimenEntry;
use crate::specimens::support::wake_all;
use crate::subject::GenericSubject;
use crate::subject::verdict::Class;
use crate::subjects::net::{Event, NetOn, Op, Port, Shape};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    let of = |name: &str, shape, fault, class, total| {
        let specimen = Generic(Specimen { shape, fault });
        SpecimenEntry::new(name.to_owned(), specimen, class, total)
    };
    let shape = |mode, reopens, tasks, performs| Shape {
        tasks,
        performs,
        ..Shape::new(mode, reopens)
    };
    let reads = shape(Mode::Edge, false, 1, |op| *op == Op::Read);
    let two_wait = shape(Mode::Edge, false, 2, |op| *op == Op::Readable);
    let tries = shape(Mode::Edge, false, 1, |op| {
        matches!(op, Op::Read | Op::TryRead)
    });
    let writes = shape(Mode::Once, false, 1, |op| *op == Op::Write);
    let reopens = shape(Mode::Edge, true, 1, |op| {
        matches!(op, Op::Readable | Op::Reopen)
    });
    let lost = Some(Class::LostWakeUp);
    let stale = Some(Class::StaleWaker);
    vec![
        of("net/plain", reads, Fault::None, None, 3),
        of("net/edge-lost", tries, Fault::EdgeLost, lost, 5).awaited(),
        of(
            "net/checks-then-registers",
            reads,
            Fault::ChecksThenRegisters,
            lost,
            3,
        ),
        of(
            "net/first-waker-kept",
            reads,
            Fault::FirstWakerKept,
            stale,
            3,
        ),
        of("net/one-woken", two_wait, Fault::OneWoken, lost, 4).awaited(),
        of(
            "net/waker-kept",
            reads,
            Fault::WakerKept,
            Some(Class::Leak),
            2,
        ),
        of("net-once/plain", writes, Fault::None, None, 4).awaited(),
        of("net-once/not-asked", writes, Fault::NotAsked, lost, 4).awaited(),
        of(
            "net-once/other-direction-forgotten",
            writes,
            Fault::OtherDirectionForgotten,
            lost,
            4,
        )
        .awaited(),
        of("net-reopened/plain", reopens, Fault::None, None, 4).awaited(),
        of(
            "net-reopened/no-generation",
            reopens,
            Fault::NoGeneration,
            Some(Class::WrongResult),
            4,
        )
        .awaited(),
    ]
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A task that finds that it would block clears the readiness, also if an event has come
    /// in between: the edge is lost.
    EdgeLost,
    /// P2: a task looks for readiness in one section and registers in another.
    ChecksThenRegisters,
    /// P5: a task that is polled again keeps the old waker.
    FirstWakerKept,
    /// An event wakes one of the tasks that wait.
    OneWoken,
    /// A task that waits does not ask the system again.
    NotAsked,
    /// An event wakes only the tasks of its direction, although the system has to be asked
    /// again for both.
    OtherDirectionForgotten,
    /// A key has no generation: an event of a socket that is closed reaches the next one.
    NoGeneration,
    /// A wait that is dropped leaves its waker.
    WakerKept,
}

struct Specimen {
    shape: Shape,
    fault: Fault,
}

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = NetOn<B, Broken>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        NetOn::new(self.shape, self.fault)
    }
}

/// The port of the specimens.
pub(crate) struct Broken;

#[derive(Default)]
struct Side {
    ready: bool,
    tick: u64,
    wakers: Vec<(usize, Waker)>,
}

#[derive(Default)]
struct State {
    sides: [Side; 2],
    next: usize,
}

/// A socket.
pub(crate) struct Socket<B: BlockingBackend> {
    fault: Fault,
    state: StateLock<State, B>,
}

/// A socket that is open, with its key.
type Open<B> = Option<(usize, Arc<Socket<B>>)>;

/// A table of one socket.
pub(crate) struct Table<B: BlockingBackend> {
    fault: Fault,
    /// The socket with its key, and the next key.
    open: StateLock<(Open<B>, usize), B>,
}

/// What a task keeps between its polls.
#[derive(Default)]
pub(crate) struct Place {
    number: Option<usize>,
    seen: u64,
    blocked: bool,
}

impl<B: BlockingBackend> Socket<B> {
    fn poll(
        &self,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
    ) -> Poll<io::Result<()>> {
        if self.fault == Fault::ChecksThenRegisters && self.look(place, direction) {
            return Poll::Ready(Ok(()));
        }
        let waker = cx.waker().clone();
        let (ready, unused) = self.state.with(|section| {
            let State { sides, next } = section.state;
            let side = &mut sides[direction as usize];
            let looks = self.fault != Fault::ChecksThenRegisters;
            if looks && side.look(place, self.fault) {
                let gone = side.remove(place);
                return (true, [Some(waker), gone]);
            }
            let number = *place.number.get_or_insert_with(|| {
                *next += 1;
                *next
            });
            match side.wakers.iter_mut().find(|(one, _)| *one == number) {
                Some(_) if self.fault == Fault::FirstWakerKept => (false, [Some(waker), None]),
                Some((_, old)) => (false, [Some(std::mem::replace(old, waker)), None]),
                None => {
                    side.wakers.push((number, waker));
                    (false, [None, None])
                }
            }
        });
        drop(unused);
        if ready {
            return Poll::Ready(Ok(()));
        }
        if system.mode() == Mode::Once && self.fault != Fault::NotAsked {
            return match self.ask(system) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        Poll::Pending
    }

    fn look(&self, place: &mut Place, direction: Direction) -> bool {
        let (ready, gone) = self.state.with(|section| {
            let side = &mut section.state.sides[direction as usize];
            let ready = side.look(place, self.fault);
            (ready, ready.then(|| side.remove(place)).flatten())
        });
        drop(gone);
        ready
    }

    fn ask(&self, system: &impl System) -> io::Result<()> {
        let wanted = || {
            self.state.with(|section| {
                let [read, write] = &section.state.sides;
                Ready {
                    read: !read.ready,
                    write: !write.ready,
                }
            })
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

    fn notify(&self, ready: Ready, to_both: bool) {
        let wakers = self.state.with(|section| {
            let mut wakers = Vec::new();
            let [read, write] = &mut section.state.sides;
            for (side, is_ready) in [(read, ready.read), (write, ready.write)] {
                side.ready |= is_ready;
                side.tick += u64::from(is_ready);
                let forgets = self.fault == Fault::OtherDirectionForgotten;
                if is_ready || (to_both && !forgets) {
                    let all = side.wakers.len();
                    let most = if self.fault == Fault::OneWoken {
                        1
                    } else {
                        all
                    };
                    let woken = side.wakers.drain(..most.min(all));
                    wakers.extend(woken.map(|(_, waker)| waker));
                }
            }
            wakers
        });
        wake_all(wakers);
    }
}

impl Side {
    /// Clears the readiness if the task has found that it would block, and returns it.
    fn look(&mut self, place: &mut Place, fault: Fault) -> bool {
        if place.blocked && (place.seen == self.tick || fault == Fault::EdgeLost) {
            self.ready = false;
        }
        place.blocked = false;
        if self.ready {
            place.seen = self.tick;
        }
        self.ready
    }

    fn remove(&mut self, place: &mut Place) -> Option<Waker> {
        let number = place.number.take()?;
        let index = self.wakers.iter().position(|&(one, _)| one == number)?;
        Some(self.wakers.remove(index).1)
    }
}

impl Port for Broken {
    type Fault = Fault;
    type Table<B: BlockingBackend> = Table<B>;
    type Socket<B: BlockingBackend> = Socket<B>;
    type Place = Place;

    fn table<B: BlockingBackend>(fault: Fault) -> Table<B> {
        Table {
            fault,
            open: StateLock::new_in(Bits::EMPTY, (None, 0)),
        }
    }

    fn open<B: BlockingBackend>(table: &Table<B>) -> (usize, Arc<Socket<B>>) {
        let socket = Arc::new(Socket {
            fault: table.fault,
            state: StateLock::new_in(Bits::EMPTY, State::default()),
        });
        let key = table.open.with(|section| {
            let (open, next) = section.state;
            let key = *next;
            if table.fault != Fault::NoGeneration {
                *next += 1;
            }
            *open = Some((key, socket.clone()));
            key
        });
        (key, socket)
    }

    fn close<B: BlockingBackend>(table: &Table<B>, key: usize) {
        drop(table.open.with(|section| {
            let open = &mut section.state.0;
            open.take_if(|(one, _)| *one == key)
        }));
    }

    fn notify<B: BlockingBackend>(table: &Table<B>, event: Event, to_both: bool) {
        let socket = table.open.with(|section| {
            let open = section.state.0.as_ref();
            let found = open.filter(|(key, _)| *key == event.key);
            found.map(|(_, socket)| socket.clone())
        });
        if let Some(socket) = socket {
            socket.notify(event.ready, to_both);
        }
    }

    fn poll_ready<B: BlockingBackend>(
        socket: &Socket<B>,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
    ) -> Poll<io::Result<()>> {
        socket.poll(place, direction, cx, system)
    }

    fn poll_with<B: BlockingBackend>(
        socket: &Socket<B>,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
        mut operation: impl FnMut() -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            match socket.poll(place, direction, cx, system) {
                Poll::Ready(Ok(())) => {}
                polled => return polled,
            }
            match operation() {
                Err(_) => place.blocked = true,
                Ok(()) => return Poll::Ready(Ok(())),
            }
        }
    }

    fn try_with<B: BlockingBackend>(
        socket: &Socket<B>,
        direction: Direction,
        mut operation: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let side = direction as usize;
        let seen = socket.state.with(|section| section.state.sides[side].tick);
        operation().inspect_err(|_| {
            socket.state.with(|section| {
                let side = &mut section.state.sides[side];
                side.ready &= side.tick != seen;
            });
        })
    }

    fn leave<B: BlockingBackend>(socket: &Socket<B>, place: &mut Place, direction: Direction) {
        if socket.fault == Fault::WakerKept {
            return;
        }
        let gone = socket
            .state
            .with(|section| section.state.sides[direction as usize].remove(place));
        drop(gone);
    }
}
