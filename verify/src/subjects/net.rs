//! The reactor of `reveille_executor::net`: the readiness of a socket, and the table of
//! sockets, on a model of the system.
//!
//! The system is a participant. It lets bytes come and lets room become free, and has an
//! event under way for each. The reactor is another one: it takes the events and notifies
//! the socket. So events come in every order, and as late as can be. The system tells of
//! each change, or only once after it was asked, as on other systems.
//!
//! A subject of its own has a socket that is closed and opened again under the same index,
//! while events of the old one are under way.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock, WakerSlot};
use reveille_executor::net::readiness::{Direction, Mode, Place, Ready, Source, System};
use reveille_executor::net::sources::{Key, Sources};

use crate::run::entry::{SubjectEntry, Surface};
use crate::subject::plan::{Bound, Mode as EngineMode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    let entry = |name, description, shape| {
        let surface = Surface::Other(
            "`net::readiness` and `net::sources`, on a model of the system; the sockets on them are tested on the real one",
        );
        SubjectEntry::new(name, description, Net(shape), surface).in_group("executor")
    };
    vec![
        entry(
            "net",
            "reveille_executor::net: readiness, on a system that tells of each change",
            Shape::new(Mode::Edge, false),
        ),
        entry(
            "net-once",
            "reveille_executor::net: readiness, on a system that has to be asked",
            Shape::new(Mode::Once, false),
        ),
        entry(
            "net-reopened",
            "reveille_executor::net: a socket that takes the place of a closed one",
            Shape::new(Mode::Edge, true),
        ),
    ]
}

/// How the system tells of sockets, and what the first task does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) mode: Mode,
    /// Whether it opens sockets, or uses one.
    pub(crate) reopens: bool,
    /// The least number of tasks.
    pub(crate) tasks: usize,
    /// Which operations the tasks perform.
    pub(crate) performs: fn(&Op) -> bool,
}

impl Shape {
    pub(crate) const fn new(mode: Mode, reopens: bool) -> Self {
        Self {
            mode,
            reopens,
            tasks: 1,
            performs: |_| true,
        }
    }
}

/// The reactor over every backend.
pub(crate) struct Net(Shape);

impl GenericSubject for Net {
    type On<B: BlockingBackend> = NetOn<B, Real>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        NetOn::new(self.0, ())
    }

    fn plans(&self, mode: EngineMode, profile: Profile) -> Vec<Plan> {
        plans(mode, profile, self.0)
    }
}

/// Returns the plans: a task, the system and the reactor, and with a second task. loom does
/// not apply: the table shares sockets by an `Arc` of the standard library, whose counts it
/// does not see.
fn plans(mode: EngineMode, profile: Profile, shape: Shape) -> Vec<Plan> {
    use EngineMode::{Accesses, Exhaustive, Pct, Random, Sections, Steps, Threads};
    let plan = Plan::of(mode, profile);
    let with = |participants, operations, total, non_default, panics| Plan {
        bound: Bound {
            participants,
            operations,
            total,
            non_default,
            panics,
            ..plan.bound
        },
        ..plan
    };
    let preempted = |most, plan| Plan {
        preemptions: Some(most),
        ..plan
    };
    // Two tasks would open sockets for one system. A waker of the reactor that panics loses
    // the event that was taken with it, which no real reactor does: it has no waker.
    let most = if shape.reopens { 3 } else { 4 };
    let all = with(most, 3, 12, 12, false);
    let drawn = |programs| Plan {
        drawn: Some(programs),
        ..all
    };
    match (mode, profile) {
        (Sections | Accesses, _) => Vec::new(),
        (Steps, Profile::Quick) => vec![with(3, 2, 4, 1, true)],
        (Steps, _) => vec![with(3, 2, 5, 2, true), with(4, 1, 4, 1, true)],
        (Exhaustive, Profile::Quick) => match (shape.mode, shape.reopens) {
            (Mode::Edge, true) => vec![
                with(3, 2, 3, 1, false),
                preempted(2, with(3, 2, 4, 0, false)),
            ],
            (Mode::Edge, false) => vec![
                with(3, 1, 3, 1, true),
                preempted(2, with(4, 1, 4, 0, false)),
            ],
            (Mode::Once, _) => vec![
                with(3, 1, 3, 0, false),
                preempted(1, with(3, 1, 3, 1, false)),
                preempted(0, with(4, 1, 4, 0, false)),
            ],
        },
        (Exhaustive, _) => vec![
            with(3, 1, 3, 2, true),
            preempted(2, with(4, 1, 4, 0, false)),
        ],
        (Random | Pct, Profile::Quick) => vec![drawn(50)],
        (Threads, Profile::Quick) => vec![drawn(20)],
        (Random | Pct | Threads, _) => vec![all],
    }
}

/// What is verified: a table of sockets, and their readiness. The specimens are others.
pub(crate) trait Port: Send + Sync + 'static {
    /// What a specimen has wrong.
    type Fault: Copy + Send + Sync + 'static;
    type Table<B: BlockingBackend>: Send + Sync;
    type Socket<B: BlockingBackend>: Send + Sync;
    type Place: Default + Send;

    fn table<B: BlockingBackend>(fault: Self::Fault) -> Self::Table<B>;

    /// Opens a socket and returns it with its key.
    fn open<B: BlockingBackend>(table: &Self::Table<B>) -> (usize, Arc<Self::Socket<B>>);

    fn close<B: BlockingBackend>(table: &Self::Table<B>, key: usize);

    /// Notifies the socket of a key.
    fn notify<B: BlockingBackend>(table: &Self::Table<B>, event: Event, to_both: bool);

    fn poll_ready<B: BlockingBackend>(
        socket: &Self::Socket<B>,
        place: &mut Self::Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
    ) -> Poll<io::Result<()>>;

    fn poll_with<B: BlockingBackend>(
        socket: &Self::Socket<B>,
        place: &mut Self::Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
        operation: impl FnMut() -> io::Result<()>,
    ) -> Poll<io::Result<()>>;

    fn try_with<B: BlockingBackend>(
        socket: &Self::Socket<B>,
        direction: Direction,
        operation: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()>;

    fn leave<B: BlockingBackend>(
        socket: &Self::Socket<B>,
        place: &mut Self::Place,
        direction: Direction,
    );
}

/// The readiness and the table of `reveille_executor::net`.
pub(crate) struct Real;

impl Port for Real {
    type Fault = ();
    type Table<B: BlockingBackend> = Sources<B>;
    type Socket<B: BlockingBackend> = Source<B>;
    type Place = Place;

    fn table<B: BlockingBackend>((): ()) -> Sources<B> {
        Sources::new_in(8)
    }

    fn open<B: BlockingBackend>(table: &Sources<B>) -> (usize, Arc<Source<B>>) {
        let source = Arc::new(Source::new_in());
        let key = table.insert(source.clone()).expect("there is room");
        (key.0, source)
    }

    fn close<B: BlockingBackend>(table: &Sources<B>, key: usize) {
        drop(table.remove(Key(key)));
    }

    fn notify<B: BlockingBackend>(table: &Sources<B>, event: Event, to_both: bool) {
        if let Some(source) = table.get(Key(event.key)) {
            source.notify(event.ready, to_both);
        }
    }

    fn poll_ready<B: BlockingBackend>(
        socket: &Source<B>,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
    ) -> Poll<io::Result<()>> {
        socket.poll_ready(place, direction, cx, system)
    }

    fn poll_with<B: BlockingBackend>(
        socket: &Source<B>,
        place: &mut Place,
        direction: Direction,
        cx: &mut Context<'_>,
        system: &impl System,
        operation: impl FnMut() -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        socket.poll_with(place, direction, cx, system, operation)
    }

    fn try_with<B: BlockingBackend>(
        socket: &Source<B>,
        direction: Direction,
        operation: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        socket.try_with(direction, operation)
    }

    fn leave<B: BlockingBackend>(socket: &Source<B>, place: &mut Place, direction: Direction) {
        socket.leave(place, direction);
    }
}

pub(crate) struct NetOn<B, P: Port> {
    shape: Shape,
    fault: P::Fault,
    backend: PhantomData<fn() -> B>,
}

impl<B, P: Port> NetOn<B, P> {
    pub(crate) fn new(shape: Shape, fault: P::Fault) -> Self {
        Self {
            shape,
            fault,
            backend: PhantomData,
        }
    }
}

/// An event on its way from the system to the reactor.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) key: usize,
    pub(crate) ready: Ready,
}

/// A model of the system, for one socket at a time. Its bits are unused.
struct Kernel {
    mode: Mode,
    /// The key of the socket, if it is open.
    key: Option<usize>,
    /// What would not block.
    level: Ready,
    /// The directions that it was asked about, if it has to be asked.
    asked: Ready,
    events: VecDeque<Event>,
    reactor: WakerSlot,
}

impl Kernel {
    /// Sends an event if one of these directions would not block, and was asked about.
    fn tell(&mut self, changed: Ready) {
        let told = |changed, level, asked| changed && level && (asked || self.mode == Mode::Edge);
        let ready = Ready {
            read: told(changed.read, self.level.read, self.asked.read),
            write: told(changed.write, self.level.write, self.asked.write),
        };
        if let Some(key) = self.key.filter(|_| ready != Ready::default()) {
            self.events.push_back(Event { key, ready });
            // It has to be asked again for both directions.
            self.asked = Ready::default();
        }
    }
}

/// What the participants share.
pub(crate) struct World<B: BlockingBackend, P: Port> {
    mode: Mode,
    kernel: StateLock<Kernel, B>,
    table: P::Table<B>,
}

impl<B: BlockingBackend, P: Port> World<B, P> {
    fn new(mode: Mode, fault: P::Fault) -> Self {
        let kernel = Kernel {
            mode,
            key: None,
            level: Ready::default(),
            asked: Ready::default(),
            events: VecDeque::new(),
            reactor: WakerSlot::new(),
        };
        Self {
            mode,
            kernel: StateLock::new_in(Bits::EMPTY, kernel),
            table: P::table::<B>(fault),
        }
    }

    /// Changes something in the system, and wakes the reactor if there is an event.
    fn change<R>(&self, f: impl FnOnce(&mut Kernel) -> R) -> R {
        self.kernel.with(|section| {
            let result = f(section.state);
            if !section.state.events.is_empty() {
                section.wakes.wake(&mut section.state.reactor);
            }
            result
        })
    }

    fn open(&self) -> (usize, Arc<P::Socket<B>>) {
        let (key, socket) = P::open::<B>(&self.table);
        self.change(|kernel| {
            kernel.key = Some(key);
            kernel.level = Ready::default();
            kernel.asked = Ready::BOTH;
        });
        (key, socket)
    }

    fn close(&self, key: usize) {
        self.change(|kernel| kernel.key = None);
        P::close::<B>(&self.table, key);
    }

    /// Reads or writes, if that would not block.
    fn perform(&self, direction: Direction) -> io::Result<()> {
        let level = |kernel: &mut Kernel| {
            let level = match direction {
                Direction::Read => &mut kernel.level.read,
                Direction::Write => &mut kernel.level.write,
            };
            std::mem::take(level)
        };
        match self.kernel.with(|section| level(section.state)) {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn notify(&self, event: Event) {
        P::notify::<B>(&self.table, event, self.mode == Mode::Once);
    }

    /// Takes the next event, or registers the reactor.
    fn poll_event(&self, cx: &mut Context<'_>) -> Poll<Event> {
        self.kernel.poll(cx, false, |section, registration| {
            let kernel = section.state;
            let event = kernel.events.pop_front();
            event.ok_or_else(|| registration.register(&mut kernel.reactor))
        })
    }
}

impl<B: BlockingBackend, P: Port> System for World<B, P> {
    fn mode(&self) -> Mode {
        self.mode
    }

    fn ask(&self, wanted: Ready) -> io::Result<()> {
        self.change(|kernel| {
            kernel.asked = wanted;
            kernel.tell(Ready::BOTH);
        });
        Ok(())
    }
}

/// A wait for a socket. If it is dropped, it leaves.
struct Wait<'a, B: BlockingBackend, P: Port> {
    socket: &'a P::Socket<B>,
    place: P::Place,
    direction: Direction,
}

impl<B: BlockingBackend, P: Port> Drop for Wait<'_, B, P> {
    fn drop(&mut self) {
        P::leave::<B>(self.socket, &mut self.place, self.direction);
    }
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend, P: Port> {
    world: Arc<World<B, P>>,
    key: usize,
    socket: Arc<P::Socket<B>>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
    Readable,
    TryRead,
    /// Closes the socket, and opens another.
    Reopen,
    /// Bytes come.
    Arrive,
    /// Room becomes free.
    Room,
    /// Notifies for ever.
    Drive,
}

/// What an operation returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Done,
    WouldBlock,
}

impl<B: BlockingBackend, P: Port> Subject for NetOn<B, P> {
    type Op = Op;
    type Ret = Ret;
    type Spec = NetSpec;
    type Actor = Actor<B, P>;

    fn spec(&self) -> NetSpec {
        NetSpec
    }

    /// Returns one role for the reactor, one for the system, and others for tasks.
    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = |name, symmetry, ops| Role {
            name,
            symmetry,
            ops,
        };
        let read = Operation::future("read", Op::Read);
        let readable = Operation::future("readable", Op::Readable);
        let mut task = match self.shape.reopens {
            true => vec![read, readable, Operation::immediate("reopen", Op::Reopen)],
            false => vec![
                read,
                readable.alias(),
                Operation::immediate("try_read", Op::TryRead),
                Operation::future("write", Op::Write),
            ],
        };
        task.retain(|operation| (self.shape.performs)(&operation.op));
        let mut changes = vec![Operation::immediate("arrive", Op::Arrive)];
        if !self.shape.reopens && (self.shape.performs)(&Op::Write) {
            changes.push(Operation::immediate("room", Op::Room));
        }
        let system = role("system", 1, changes);
        let why = "the reactor keeps the latest waker of its driver until an event comes";
        let drive = Operation::future("drive", Op::Drive).keeps_waker(why);
        let reactor = role("reactor", 2, vec![drive]);
        let mut roles =
            vec![role("task", 0, task); self.shape.tasks.max(participants.saturating_sub(2))];
        roles.extend([system, reactor]);
        roles
    }

    /// Allows no operation after the reactor has begun, and one task that opens sockets.
    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        role.symmetry < 2 || !before.iter().any(|step| step.polling.completes())
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B, P>> {
        let world = Arc::new(World::<B, P>::new(self.shape.mode, self.fault));
        let (key, socket): (_, Arc<P::Socket<B>>) = world.open();
        let actor = |_| Actor {
            world: world.clone(),
            key,
            socket: socket.clone(),
        };
        (0..participants).map(actor).collect()
    }

    fn start<'a>(
        &self,
        actor: &'a mut Actor<B, P>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let direction = match call.op {
            Op::Write => Direction::Write,
            _ => Direction::Read,
        };
        match call.op {
            Op::Read | Op::Write | Op::Readable => {
                let Actor { world, socket, .. } = actor;
                let looks = *call.op == Op::Readable;
                let mut wait = Wait::<B, P> {
                    socket,
                    place: P::Place::default(),
                    direction,
                };
                Started::future(poll_fn(move |cx| {
                    let Wait { socket, place, .. } = &mut wait;
                    let world = &**world;
                    let polled = match looks {
                        true => P::poll_ready::<B>(socket, place, direction, cx, world),
                        false => P::poll_with::<B>(socket, place, direction, cx, world, || {
                            world.perform(direction)
                        }),
                    };
                    polled.map(|result| match result {
                        Ok(()) => Ret::Done,
                        Err(_) => Ret::WouldBlock,
                    })
                }))
            }
            Op::TryRead => {
                let tried =
                    P::try_with::<B>(&actor.socket, direction, || actor.world.perform(direction));
                Started::Done(match tried {
                    Ok(()) => Ret::Done,
                    Err(_) => Ret::WouldBlock,
                })
            }
            Op::Reopen => {
                actor.world.close(actor.key);
                (actor.key, actor.socket) = actor.world.open();
                Started::Done(Ret::Done)
            }
            Op::Arrive => {
                actor.world.change(|kernel| {
                    kernel.level.read = true;
                    kernel.tell(Ready {
                        read: true,
                        write: false,
                    });
                });
                Started::Done(Ret::Done)
            }
            Op::Room => {
                actor.world.change(|kernel| {
                    kernel.level.write = true;
                    kernel.tell(Ready {
                        read: false,
                        write: true,
                    });
                });
                Started::Done(Ret::Done)
            }
            Op::Drive => {
                let world = &actor.world;
                Started::future(poll_fn(move |cx| {
                    while let Poll::Ready(event) = world.poll_event(cx) {
                        world.notify(event);
                    }
                    Poll::Pending
                }))
            }
        }
    }
}

/// What the operations mean, one at a time.
pub(crate) struct NetSpec;

/// The state of the socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What would not block.
    bytes: bool,
    room: bool,
    /// Bytes have come to this socket. It may be called readable from then on, since a task
    /// that waits for that has to try.
    came: bool,
    /// The participants that drive.
    drivers: Vec<usize>,
}

impl Spec for NetSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        *op == Op::Drive
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.drivers.push(call.participant);
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::Drive => {
                let mut next = state.clone();
                next.drivers.retain(|&driver| driver != call.participant);
                vec![next]
            }
            _ => vec![state.clone()],
        }
    }

    /// An operation must be over only if the reactor is driven.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        let driven = !state.drivers.is_empty();
        match call.op {
            Op::Read | Op::Readable => driven && state.bytes,
            Op::Write => driven && state.room,
            _ => false,
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match call.op {
            Op::Read if state.bytes => {
                next.bytes = false;
                Ret::Done
            }
            Op::Write if state.room => {
                next.room = false;
                Ret::Done
            }
            Op::Readable if state.came => Ret::Done,
            Op::Read | Op::Write | Op::Readable | Op::Drive => return Vec::new(),
            Op::TryRead if state.bytes => {
                next.bytes = false;
                Ret::Done
            }
            Op::TryRead => Ret::WouldBlock,
            Op::Reopen => {
                (next.bytes, next.room, next.came) = (false, false, false);
                Ret::Done
            }
            Op::Arrive => {
                (next.bytes, next.came) = (true, true);
                Ret::Done
            }
            Op::Room => {
                next.room = true;
                Ret::Done
            }
        };
        vec![(next, ret)]
    }
}
