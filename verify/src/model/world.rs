//! The world of a model: its processes, and what they do in one execution.
//!
//! ```text
//!   new ──▶ running ──a section is near──▶ poised ──chosen, the lock is free──▶ running
//!              │ │
//!              │ └─pending, parked──▶ waiting ──woken──▶ running
//!              └─ready, returned──▶ done
//! ```
//!
//! A *process* is a task or a thread of the model, on a fiber. The clock is a process
//! that moves on to the next deadline. So is a source of spurious wakes of a task. The
//! search is asked only when each process is poised, waits or is done. A wake that
//! comes before the poll has entered its first section merges with the one that led to
//! the poll.
//!
//! The world is in a thread-local, where [`Watch`] finds it. The primitives know of no
//! model.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Context;

use reveille::backend::{Hooks, Passage, WatchedLock, Watcher, hooked, watch};
use reveille::protocol::Bits;
use reveille::time::{Advance, Duration, Instant, VirtualClock};

use crate::engine::fiber::{self, Fiber, Job, Pause};
use crate::engine::quiet;
use crate::engine::search::{MOST, Next, Search, Touch, Touches};
use crate::execution::panic_text;
use crate::model::report::{Event, Failure, Kind, Seen, What};
use crate::model::stall::{MOST_STEPS, NO_PROCESS, Track, lock};

/// A section that a process is about to enter.
#[derive(Clone, Copy)]
struct Access {
    /// The lock, by the order in which locks were met in this execution.
    lock: usize,
    passage: Passage,
}

/// The kind of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Task,
    /// A task that may wait for ever.
    Background,
    Thread,
    /// Moves time on.
    Clock,
    /// Wakes a task `left` more times, for no reason.
    Spurious {
        task: usize,
        left: usize,
    },
}

struct Process {
    name: String,
    role: Role,
    /// What it runs, if it has not begun.
    job: Option<Job>,
    poised: Option<Access>,
    /// The sleep on which it waits.
    waiting: Option<usize>,
    /// Whether each sleep was ended by a wake. The first is that of the task's waker,
    /// and each time the thread blocks adds one.
    sleeps: Vec<bool>,
    /// The sleep whose wake it resumes for, if it has not entered a section since.
    starting: Option<usize>,
    /// Whether it has woken itself, and lets others go first.
    yielded: bool,
    done: bool,
    /// Whether it was created by another process, and has not run.
    newborn: bool,
    cancelled: bool,
    /// How often it has been suspended at an `await`.
    suspensions: usize,
    /// The suspension at which it is to be dropped.
    cancel_at: Option<usize>,
    /// The last lock on which it had a section, and where the call that queued it is.
    last: Option<(usize, Option<&'static Location<'static>>)>,
    waker: Weak<TaskHooks>,
}

/// A lock that was met. A note in it has its number.
struct Lock {
    /// The name of the thing that contains it.
    name: Option<String>,
    /// Whether a section has changed something.
    changed: bool,
    dropped: bool,
    /// Whether an earlier execution has changed it.
    left_over: bool,
    /// The bits that the last section of a process has left. They are unknown after an
    /// exclusive borrow.
    bits: Option<Bits>,
}

/// The bits of a note that are the number of the lock, from 1. Those above are the
/// number of the execution.
const NUMBER: u32 = 20;

/// What a process has taken from a primitive, and where.
struct Taken {
    primitive: usize,
    lock: usize,
    process: usize,
    place: &'static Location<'static>,
}

/// A place in the queue of a primitive, and the process that waits in it.
struct Queued {
    /// The number that its primitive gave it.
    waiter: usize,
    lock: usize,
    process: usize,
    place: &'static Location<'static>,
    /// Whether what it waits for has been granted, and not been observed.
    granted: bool,
}

/// The state of one execution.
pub(crate) struct World {
    epoch: u64,
    processes: Vec<Process>,
    running: Option<usize>,
    /// Whether the process that runs has no fiber.
    bare: bool,
    /// The locks, in the order in which they were met.
    locks: Vec<Lock>,
    /// The addresses of things with names, and how many locks were met in each.
    names: Vec<(std::ops::Range<usize>, String, usize)>,
    /// The notes in locks that earlier executions have changed, and that live on.
    earlier: Vec<usize>,
    /// A lock that is left over and was used, and the process that used it.
    refused: Option<(usize, usize)>,
    held: Vec<(usize, usize)>,
    taken: Vec<Taken>,
    queued: Vec<Queued>,
    touches: Touches,
    torn: bool,
    /// Whether each poll begins with a choice of its own.
    every_order: bool,
    clock: Option<VirtualClock>,
    choices: Vec<u8>,
    trace: Option<Arc<Mutex<Vec<Event>>>>,
    failure: Option<Failure>,
    pub(crate) seen: Seen,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The number of executions so far. A waker of an earlier execution does nothing.
static EPOCHS: AtomicU64 = AtomicU64::new(0);

/// The last execution of which a waker was called on a thread that the model does not
/// run.
static ELSEWHERE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The bits of the number of a parker above these are those of the execution.
const OF_EPOCH: u32 = usize::BITS / 2;

/// Returns what the number of a parker says of its execution.
const fn known(epoch: u64) -> usize {
    (epoch as usize) << OF_EPOCH >> OF_EPOCH
}

/// Returns the execution, the process and the sleep of a parker.
const fn parked(parker: usize) -> (usize, usize, usize) {
    let sleep = known(parker as u64);
    (parker >> OF_EPOCH, sleep % MOST, sleep / MOST)
}

/// Calls `f` with the world of this thread.
///
/// # Panics
///
/// Panics if no model runs on this thread.
pub(crate) fn world<R>(f: impl FnOnce(&mut World) -> R) -> R {
    try_world(f).expect("no model runs on this thread: only code that a model runs can use it")
}

fn try_world<R>(f: impl FnOnce(&mut World) -> R) -> Option<R> {
    let found = WORLD.try_with(|world| world.borrow_mut().as_mut().map(f));
    found.ok().flatten()
}

/// Unwinds a process whose execution is over.
struct Torn;

impl World {
    fn touch(&mut self, touch: Touch) {
        self.touches.push(touch);
    }

    fn log(&mut self, process: Option<usize>, what: impl FnOnce(&mut Self) -> What) {
        if self.trace.is_some() {
            let what = what(self);
            let trace = self.trace.as_ref().expect("looked above");
            lock(trace).push(Event { process, what });
        }
    }

    /// Returns the number of a lock.
    fn lock(&mut self, lock: WatchedLock<'_>) -> usize {
        let note = lock.note.load(Ordering::Relaxed);
        let known = self.number(note);
        known.unwrap_or_else(|| self.meet(lock, note))
    }

    /// Returns the number in a note of this execution.
    fn number(&self, note: usize) -> Option<usize> {
        let number = note & ((1 << NUMBER) - 1);
        (number > 0 && note == self.note(number - 1)).then(|| number - 1)
    }

    fn note(&self, number: usize) -> usize {
        (self.epoch << NUMBER) as usize | (number + 1)
    }

    fn meet(&mut self, lock: WatchedLock<'_>, note: usize) -> usize {
        let number = self.locks.len();
        let contains = |range: &std::ops::Range<usize>| range.contains(&lock.address);
        let names = self.names.iter_mut();
        let within = names.filter(|(range, ..)| contains(range));
        // That of a part goes before that of the whole.
        let name = within.min_by_key(|(range, ..)| range.len());
        let name = name.map(|(_, name, locks)| {
            *locks += 1;
            match *locks {
                1 => name.clone(),
                more => format!("{name}#{more}"),
            }
        });
        let left_over = self.earlier.contains(&note);
        self.locks.push(Lock {
            name,
            changed: left_over,
            dropped: false,
            left_over,
            bits: None,
        });
        lock.note.store(self.note(number), Ordering::Relaxed);
        number
    }

    /// Fails if the last step of a process was on a lock that is left over, and the call
    /// that led to it is known. Otherwise, waits for one more step on it.
    fn refuse_left_over(&mut self, process: usize) {
        let Some((lock, place)) = self.processes[process].last else {
            return;
        };
        if !self.locks[lock].left_over {
            return;
        }
        let took = self.taken.iter().rfind(|taken| taken.lock == lock);
        let place = took.map(|taken| taken.place).or(place);
        let known = self.refused.replace((lock, process)) == Some((lock, process));
        if place.is_some() || known {
            self.refuse(place);
        }
    }

    /// Fails if a lock was used that is left over.
    fn refuse(&mut self, place: Option<&Location<'_>>) {
        let Some((lock, process)) = self.refused.take() else {
            return;
        };
        let at = place.map_or_else(String::new, |place| format!(", here at {place}"));
        let sentence = format!(
            "{} uses {}{at}, which an earlier execution has changed already: it is in a \
             static, or was created outside of the model. Each execution must begin in the same \
             state, so create it in the closure of the model",
            self.processes[process].name,
            self.lock_name(lock)
        );
        self.fail(Kind::LeftOver, sentence);
    }

    /// Fails since a lock is not as the last section of the model has left it.
    fn changed_elsewhere(&mut self, process: usize, lock: usize) {
        let sentence = format!(
            "{} finds {} changed by a thread that the model does not run. Its steps are not \
             explored: make threads by `thread` of the model, and spawn tasks on its `handle`",
            self.processes[process].name,
            self.lock_name(lock)
        );
        self.fail(Kind::Elsewhere, sentence);
    }

    /// Returns the notes in locks that live on in a state that is not that in which they
    /// were met.
    fn left_over(&self) -> impl Iterator<Item = usize> + '_ {
        let locks = self.locks.iter().enumerate();
        let left = locks.filter(|(_, lock)| lock.changed && !lock.dropped);
        left.map(|(number, _)| self.note(number))
    }

    /// Formats a lock for people.
    fn lock_name(&self, lock: usize) -> String {
        match &self.locks[lock].name {
            Some(name) => format!("`{name}`"),
            None => format!("lock {lock}"),
        }
    }

    fn is_free(&self, lock: usize) -> bool {
        self.held.iter().all(|&(held, _)| held != lock)
    }

    fn fail(&mut self, kind: Kind, sentence: String) {
        if self.failure.is_none() {
            self.failure = Some(Failure::new(kind, sentence));
        }
    }

    /// Returns the clock of this execution.
    fn clock(&self) -> VirtualClock {
        self.clock.clone().expect("it is there until the end")
    }

    /// Returns the number of a sleep among those of all processes.
    fn sleep(process: usize, sleep: usize) -> usize {
        sleep * MOST + process
    }

    fn wake(&mut self, process: usize, sleep: usize) {
        self.touch(Touch::wake(Self::sleep(process, sleep)));
        let by = self.running;
        let name = self.processes[process].name.clone();
        self.log(by, |_| What::Wakes(name));
        let woken = &mut self.processes[process];
        if woken.done || woken.starting == Some(sleep) {
            return;
        }
        woken.sleeps[sleep] = true;
        woken.yielded = by == Some(process) && sleep == 0;
    }

    /// Adds a process. Its job marks its end.
    pub(crate) fn add(&mut self, name: String, role: Role, job: Option<Job>) -> usize {
        let number = self.processes.len();
        assert!(
            number < MOST,
            "a model has {MOST} tasks, threads and clocks at most: split it"
        );
        self.touch(Touch::birth(number));
        self.processes.push(Process {
            name,
            role,
            job,
            poised: None,
            waiting: None,
            sleeps: vec![false],
            starting: None,
            yielded: false,
            done: false,
            newborn: self.running.is_some(),
            cancelled: false,
            suspensions: 0,
            cancel_at: None,
            last: None,
            waker: Weak::new(),
        });
        number
    }

    pub(crate) fn cancel_at(&mut self, process: usize, suspension: Option<usize>) {
        self.processes[process].cancel_at = suspension;
    }

    pub(crate) fn name(&mut self, range: std::ops::Range<usize>, name: &str) {
        self.names.push((range, name.to_owned(), 0));
    }

    /// Makes each poll begin with a choice of its own.
    pub(crate) fn every_order(&mut self, every_order: bool) {
        self.every_order = every_order;
    }

    /// Wakes a task.
    pub(crate) fn wake_task(&mut self, process: usize) {
        self.wake(process, 0);
    }

    /// Records that a task was dropped instead of polled.
    pub(crate) fn aborted(&mut self, process: usize) {
        self.processes[process].cancelled = true;
        self.log(Some(process), |_| What::Aborted);
    }

    pub(crate) fn is_done(&self, process: usize) -> bool {
        self.processes[process].done
    }

    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Adds spurious wakes of each task so far.
    pub(crate) fn add_spurious(&mut self, often: usize) {
        for task in 0..self.processes.len() {
            if matches!(self.processes[task].role, Role::Task | Role::Background) {
                let name = format!("wakes {}", self.processes[task].name);
                self.add(name, Role::Spurious { task, left: often }, None);
            }
        }
    }
}

/// The waker of a task.
struct TaskHooks {
    process: usize,
    epoch: u64,
}

impl Hooks for TaskHooks {
    fn cloned(&self) {}

    fn woken(&self) {
        let here = try_world(|world| {
            if world.epoch == self.epoch {
                world.wake(self.process, 0);
            }
        });
        if here.is_none() {
            ELSEWHERE.store(known(self.epoch), Ordering::Relaxed);
        }
    }

    fn dropped(&self) {}
}

/// What the primitives call before each section.
pub(crate) struct Watch;

/// In place of a lock: the section is that of the set-up, or of a check at the end.
const OF_NO_PROCESS: usize = usize::MAX / 2;

impl Watcher for Watch {
    fn approach(&self, lock: WatchedLock<'_>, passage: Passage) -> usize {
        let Some(running) = try_world(|world| world.running).flatten() else {
            return OF_NO_PROCESS;
        };
        let (access, bare) = world(|world| {
            let lock = world.lock(lock);
            let access = Access { lock, passage };
            (access, world.bare)
        });
        if !bare {
            await_choice(running, access);
        }
        world(|world| {
            world.processes[running].poised = None;
            let excludes = passage == Passage::With;
            if excludes {
                world.held.push((access.lock, running));
            }
            world.touch(Touch::lock(access.lock, excludes));
            if let Some(sleep) = world.processes[running].starting.take() {
                world.touch(Touch::start(World::sleep(running, sleep)));
            }
            world.processes[running].last = Some((access.lock, None));
        });
        access.lock
    }

    fn leave(&self, lock: usize, passage: Passage, before: Bits, after: Bits) {
        try_world(|world| {
            let Some(running) = world.running.filter(|_| lock != OF_NO_PROCESS) else {
                return;
            };
            if let Some(place) = world.held.iter().rposition(|&held| held == (lock, running)) {
                world.held.remove(place);
            }
            let changed = match passage {
                Passage::Load | Passage::Look => false,
                Passage::Update => before != after,
                Passage::With => true,
            };
            if changed {
                world.locks[lock].changed = true;
                world.touch(Touch::lock(lock, true));
            }
            let known = world.locks[lock].bits.replace(after);
            if known.is_some_and(|known| known != before) {
                world.changed_elsewhere(running, lock);
            }
            let place = world.processes[running].last.and_then(|(_, place)| place);
            world.log(Some(running), |world| What::Section {
                lock: world.lock_name(lock),
                changed,
                place,
            });
        });
    }

    fn borrowed(&self, lock: WatchedLock<'_>) {
        let note = lock.note.load(Ordering::Relaxed);
        try_world(|world| {
            if let Some(number) = world.number(note) {
                world.locks[number].bits = None;
            }
        });
    }

    fn dropped(&self, lock: WatchedLock<'_>) {
        let note = lock.note.load(Ordering::Relaxed);
        if note == 0 {
            return;
        }
        try_world(|world| {
            if let Some(number) = world.number(note) {
                world.locks[number].dropped = true;
            }
            world.earlier.retain(|&earlier| earlier != note);
        });
    }

    fn parker(&self) -> usize {
        world(|world| {
            let running = world.running.expect("a process of the model blocks");
            let sleeps = &mut world.processes[running].sleeps;
            sleeps.push(false);
            let sleep = World::sleep(running, sleeps.len() - 1);
            sleep | (world.epoch as usize) << OF_EPOCH
        })
    }

    fn park(&self, parker: usize) {
        let (_, process, sleep) = parked(parker);
        wait(process, sleep);
    }

    fn unpark(&self, parker: usize) {
        let (epoch, process, sleep) = parked(parker);
        let here = try_world(|world| {
            if known(world.epoch) == epoch {
                world.wake(process, sleep);
            }
        });
        if here.is_none() {
            ELSEWHERE.store(epoch, Ordering::Relaxed);
        }
    }

    fn queues(&self, waiter: usize, place: &'static Location<'static>) {
        try_world(|world| {
            if let Some(process) = world.running
                && let Some((lock, at)) = &mut world.processes[process].last
            {
                *at = Some(place);
                let lock = *lock;
                world.queued.push(Queued {
                    waiter,
                    lock,
                    process,
                    place,
                    granted: false,
                });
            }
        });
    }

    fn grants(&self, waiter: usize) {
        try_world(|world| {
            let mut queued = world.queued.iter_mut();
            if let Some(queued) = queued.find(|queued| queued.waiter == waiter) {
                queued.granted = true;
            }
        });
    }

    fn unqueues(&self, waiter: usize) {
        try_world(|world| world.queued.retain(|queued| queued.waiter != waiter));
    }

    fn refused(&self) {
        try_world(|world| {
            world.seen.refused = true;
            world.log(world.running, |_| What::Refused);
        });
    }

    fn timed_out(&self) {
        try_world(|world| {
            world.seen.timed_out = true;
            world.log(world.running, |_| What::TimedOut);
        });
    }

    fn took(&self, primitive: usize, place: &'static Location<'static>) {
        try_world(|world| {
            if let Some(running) = world.running
                && let Some((lock, _)) = world.processes[running].last
            {
                world.taken.push(Taken {
                    primitive,
                    lock,
                    process: running,
                    place,
                });
                world.log(Some(running), |world| What::Took {
                    lock: world.lock_name(lock),
                    place,
                });
            }
        });
    }

    fn gave(&self, primitive: usize) {
        try_world(|world| {
            let running = world.running;
            let of = |taken: &Taken| taken.primitive == primitive;
            let own = |taken: &Taken| of(taken) && Some(taken.process) == running;
            let place = world.taken.iter().rposition(own);
            if let Some(place) = place.or_else(|| world.taken.iter().rposition(of)) {
                world.taken.remove(place);
            }
        });
    }
}

/// Suspends the process that is about to enter a section, until it is chosen and the lock
/// is free.
fn await_choice(running: usize, access: Access) {
    loop {
        let (free, torn) = world(|world| (world.is_free(access.lock), world.torn));
        // A process that unwinds goes on: the panic belongs to the thread, and all
        // fibers run on it.
        let unwinding = std::thread::panicking();
        if torn && !unwinding {
            panic_any(Torn);
        }
        if unwinding && free {
            break;
        }
        world(|world| world.processes[running].poised = Some(access));
        fiber::suspend();
        if world(|world| world.processes[running].poised.is_none() && !world.torn) {
            break;
        }
    }
}

static WATCH: Watch = Watch;

/// Suspends the running process until its sleep is ended.
fn wait(process: usize, sleep: usize) {
    world(|world| {
        if let Some(unused) = world.processes[process].starting.take() {
            world.touch(Touch::start(World::sleep(process, unused)));
        }
    });
    loop {
        let (woken, torn) = world(|world| {
            world.seen.waited = true;
            let (torn, every_order) = (world.torn, world.every_order);
            let this = &mut world.processes[process];
            if torn || this.waiting.is_none() || !this.sleeps[sleep] {
                this.waiting = Some(sleep);
                return (false, torn);
            }
            // It has been suspended, and is resumed.
            this.sleeps[sleep] = false;
            this.waiting = None;
            if std::mem::take(&mut this.yielded) || every_order {
                world.touch(Touch::start(World::sleep(process, sleep)));
            } else {
                this.starting = Some(sleep);
            }
            (true, false)
        });
        if torn && !std::thread::panicking() {
            panic_any(Torn);
        }
        if woken || torn {
            return;
        }
        fiber::suspend();
    }
}

/// Returns the job of a task, which runs on a fiber.
pub(crate) fn task_job(process: usize, future: Pin<Box<dyn Future<Output = ()>>>) -> Job {
    Box::new(move || {
        let ended = catch_unwind(AssertUnwindSafe(|| run_task(process, future)));
        end(process, ended);
    })
}

/// Returns the job of a thread, which runs on a fiber.
pub(crate) fn thread_job(process: usize, body: Box<dyn FnOnce()>) -> Job {
    Box::new(move || {
        let ended = catch_unwind(AssertUnwindSafe(body));
        end(process, ended);
    })
}

fn run_task(process: usize, mut future: Pin<Box<dyn Future<Output = ()>>>) {
    let hooks = world(|world| {
        let hooks = Arc::new(TaskHooks {
            process,
            epoch: world.epoch,
        });
        world.processes[process].waker = Arc::downgrade(&hooks);
        hooks
    });
    let waker = hooked(hooks);
    let mut cx = Context::from_waker(&waker);
    loop {
        world(|world| world.log(Some(process), |_| What::Polls));
        if future.as_mut().poll(&mut cx).is_ready() {
            break;
        }
        let dropped = world(|world| {
            let this = &mut world.processes[process];
            this.suspensions += 1;
            let dropped = this.cancel_at == Some(this.suspensions);
            this.cancelled |= dropped;
            world.seen.cancelled |= dropped;
            world.log(Some(process), |_| match dropped {
                true => What::Dropped,
                false => What::Pending,
            });
            dropped
        });
        if dropped {
            break;
        }
        wait(process, 0);
    }
    drop(future);
}

fn end(process: usize, ended: Result<(), Box<dyn Any + Send>>) {
    let place = quiet::last_panic();
    world(|world| {
        let this = &mut world.processes[process];
        this.done = true;
        this.poised = None;
        this.waiting = None;
        match ended {
            Ok(()) => world.log(Some(process), |_| What::Ends),
            Err(panic) if panic.is::<Torn>() => {}
            Err(panic) => {
                let name = &this.name;
                let text = panic_text(&*panic);
                let at = place.map_or_else(String::new, |place| format!(", at {place}"));
                let sentence = format!("{name} panics: {text}{at}");
                world.log(Some(process), |_| What::Panics(text));
                world.fail(Kind::Panic, sentence);
            }
        }
    });
}

/// What a thread keeps from one execution for the next.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) choices: Vec<u8>,
    /// The notes in locks that were changed, and have outlived their execution.
    pub(crate) earlier: Vec<usize>,
}

/// Returns whether a model runs on this thread.
pub(crate) fn in_model() -> bool {
    try_world(|_| ()).is_some()
}

/// The result of an execution.
pub(crate) struct Ended {
    pub(crate) failure: Option<Failure>,
    pub(crate) seen: Seen,
    pub(crate) choices: Vec<u8>,
    /// How often each of the first processes was suspended.
    pub(crate) suspensions: Vec<usize>,
}

/// Sets up an execution, runs it as the search decides, and checks how it ended.
///
/// `set_up` adds the processes, and returns the checks for the end.
pub(crate) fn execute(
    trace: Option<Arc<Mutex<Vec<Event>>>>,
    memory: &mut Memory,
    set_up: impl FnOnce() -> Vec<Box<dyn FnOnce()>>,
    search: impl FnOnce() -> SearchOf,
    track: &Track,
) -> (Ended, SearchOf) {
    let mut choices = std::mem::take(&mut memory.choices);
    choices.clear();
    let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed);
    let day = Duration::from_secs(86_400);
    let clock = VirtualClock::starting_at(Instant::ORIGIN + day, Advance::ByHand);
    let entered = clock.timers().enter();
    let before = WORLD.replace(Some(World {
        epoch,
        processes: Vec::new(),
        running: None,
        bare: false,
        locks: Vec::new(),
        names: Vec::new(),
        earlier: std::mem::take(&mut memory.earlier),
        refused: None,
        held: Vec::new(),
        taken: Vec::new(),
        queued: Vec::new(),
        touches: Touches::NONE,
        torn: false,
        every_order: false,
        clock: Some(clock),
        choices,
        trace,
        failure: None,
        seen: Seen::default(),
    }));
    assert!(before.is_none(), "a model cannot run within another");
    let watched = watch(Some(&WATCH));
    let result = catch_unwind(AssertUnwindSafe(|| {
        let at_end = set_up();
        let mut search = search();
        let mut run = Running {
            fibers: Vec::new(),
            track,
        };
        world(|world| world.add("the clock".to_owned(), Role::Clock, None));
        track.name(|| world(|world| world.processes.iter().map(|p| p.name.clone()).collect()));
        run.go(&mut search);
        world(|world| world.refuse(None));
        if world(|world| world.failure.is_none()) {
            run.look_at_the_end();
        }
        run.tear();
        track.runs(NO_PROCESS);
        if world(|world| world.failure.is_none()) {
            for check in at_end {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(check)) {
                    let text = panic_text(&*panic);
                    let at =
                        quiet::last_panic().map_or_else(String::new, |at| format!(", at {at}"));
                    world(|world| world.fail(Kind::AtEnd, format!("at the end: {text}{at}")));
                }
            }
        }
        search
    }));
    drop(entered);
    // While it is watched, so that its locks are known to be gone.
    drop(world(|world| world.clock.take()));
    watch(watched);
    let world = WORLD.take().expect("set above");
    let left_over: Vec<usize> = world.left_over().collect();
    let World {
        processes,
        trace,
        mut failure,
        seen,
        choices,
        mut earlier,
        ..
    } = world;
    earlier.extend(left_over);
    memory.earlier = earlier;
    let search = result.unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        let at = quiet::last_panic().map_or_else(String::new, |at| format!(", at {at}"));
        failure = Some(Failure::new(
            Kind::Panic,
            format!("the set-up panics: {text}{at}"),
        ));
        SearchOf::Recorded(Vec::new())
    });
    // A waker that is still held is leaked.
    let leaked = processes
        .iter()
        .find(|process| process.waker.strong_count() > 0);
    if let (None, Some(leaked)) = (&failure, leaked) {
        failure = Some(Failure::new(
            Kind::Leak,
            format!(
                "the waker of {} is still held after everything was dropped",
                leaked.name
            ),
        ));
    }
    if let Some(failure) = &mut failure {
        failure.names = processes
            .iter()
            .map(|process| process.name.clone())
            .collect();
        failure.trace = trace.map_or_else(Vec::new, |trace| std::mem::take(&mut lock(&trace)));
    }
    let suspensions = processes
        .iter()
        .map(|process| process.suspensions)
        .collect();
    let ended = Ended {
        failure,
        seen,
        choices,
        suspensions,
    };
    (ended, search)
}

/// The source of choices.
pub(crate) enum SearchOf {
    Search(Search),
    /// The choices of an execution that is run again.
    Recorded(Vec<u8>),
}

impl SearchOf {
    fn choose(&mut self, able: u32, current: Option<usize>, step: usize) -> usize {
        match self {
            Self::Search(search) => {
                let met = world(|world| world.locks.len());
                search.choose(able, current, met)
            }
            Self::Recorded(choices) => match choices.get(step) {
                Some(&choice) if able >> choice & 1 == 1 => usize::from(choice),
                _ => able.trailing_zeros() as usize,
            },
        }
    }
}

/// The fibers of the processes.
struct Running<'a> {
    fibers: Vec<Option<Fiber>>,
    track: &'a Track,
}

impl Running<'_> {
    fn go(&mut self, search: &mut SearchOf) {
        let mut current = None;
        let mut timed_before = None;
        for step in 0.. {
            self.run_without_choice();
            let (able, timed) = Self::able();
            if let (SearchOf::Search(search), Some(clock), None) =
                (&mut *search, timed_before, timed)
                && current != Some(clock)
            {
                // The next step of the clock is gone, so it could have come before.
                search.offer(clock);
            }
            timed_before = timed;
            if able == 0 || world(|world| world.failure.is_some()) {
                return;
            }
            if step == MOST_STEPS {
                world(|world| {
                    let last = world.choices.last().copied().unwrap_or_default();
                    let name = &world.processes[usize::from(last)].name;
                    let sentence = format!(
                        "the execution has taken {MOST_STEPS} steps and does not end: {name} took \
                         the last of them"
                    );
                    world.fail(Kind::Livelock, sentence);
                });
                return;
            }
            let chosen = search.choose(able, current, step);
            self.track
                .chose(step, u8::try_from(chosen).expect("there are not as many"));
            current = Some(chosen);
            let changes = self.step(chosen);
            self.run_without_choice();
            let touches = world(|world| {
                world.refuse_left_over(chosen);
                world
                    .choices
                    .push(u8::try_from(chosen).expect("there are not as many"));
                std::mem::replace(&mut world.touches, Touches::NONE)
            });
            if let SearchOf::Search(search) = search {
                let next = Next {
                    process: chosen,
                    changes,
                };
                search.executed(next, &touches);
            }
        }
    }

    /// Returns the processes that can be chosen, and the clock if it is one of them.
    fn able() -> (u32, Option<usize>) {
        let before = watch(None);
        let deadline = world(|world| world.clock()).timers().next_deadline();
        watch(before);
        world(|world| {
            let (mut able, mut yielded, mut clock) = (0_u32, 0_u32, None);
            for (number, process) in world.processes.iter().enumerate() {
                if process.done {
                    continue;
                }
                let can = match (process.role, process.poised) {
                    (Role::Clock, _) => {
                        clock = deadline.is_some().then_some(number);
                        deadline.is_some()
                    }
                    (Role::Spurious { left, .. }, _) => left > 0,
                    (_, Some(access)) => world.is_free(access.lock),
                    _ => {
                        let woken = process.waiting.is_some_and(|sleep| process.sleeps[sleep]);
                        process.job.is_some() || woken
                    }
                };
                match process.yielded && process.waiting.is_some() {
                    true => yielded |= u32::from(can) << number,
                    false => able |= u32::from(can) << number,
                }
            }
            let able = if able == 0 { yielded } else { able };
            (able, clock)
        })
    }

    /// Runs a step of a process. Returns `true` if another step in its place could
    /// change something.
    fn step(&mut self, chosen: usize) -> bool {
        let (role, changes) = world(|world| {
            world.touches = Touches::NONE;
            for (number, process) in world.processes.iter_mut().enumerate() {
                process.yielded &= number == chosen;
            }
            let process = &mut world.processes[chosen];
            let newborn = std::mem::take(&mut process.newborn);
            let access = process.poised.take();
            let role = process.role;
            if newborn {
                world.touch(Touch::birth(chosen));
            }
            (
                role,
                access.is_none_or(|a| !matches!(a.passage, Passage::Load | Passage::Look)),
            )
        });
        match role {
            Role::Clock => bare(chosen, || {
                let clock = world(|world| {
                    world.seen.time_passed = true;
                    world.clock()
                });
                clock.advance_to_next();
                let now = clock.now();
                world(|world| world.log(Some(chosen), |_| What::Time(now)));
            }),
            Role::Spurious { task, left } => bare(chosen, || {
                world(|world| {
                    world.processes[chosen].role = Role::Spurious {
                        task,
                        left: left - 1,
                    };
                    world.wake(task, 0);
                });
            }),
            _ => self.resume(chosen),
        }
        changes
    }

    fn resume(&mut self, process: usize) {
        self.track.runs(process);
        if self.fibers.len() <= process {
            self.fibers.resize_with(process + 1, || None);
        }
        let job = world(|world| {
            world.running = Some(process);
            world.processes[process].job.take()
        });
        let pause = match (job, &mut self.fibers[process]) {
            (Some(job), fiber) => {
                let (new, pause) = Fiber::run(job);
                *fiber = Some(new);
                pause
            }
            (None, Some(fiber)) => fiber.resume(),
            (None, None) => unreachable!("a process that has no fiber has a job"),
        };
        world(|world| world.running = None);
        if pause == Pause::Returned
            && let Some(fiber) = self.fibers[process].take()
        {
            fiber.keep();
        }
    }

    /// Resumes the processes that can run without a choice, unless each poll is to
    /// begin with one.
    fn run_without_choice(&mut self) {
        while let Some(process) = world(|world| {
            let every_order = world.every_order;
            world.processes.iter().position(|process| {
                let woken = process.waiting.is_some_and(|sleep| process.sleeps[sleep]);
                let runs = process.job.is_some() || woken && !process.yielded;
                runs && !process.done && !every_order
            })
        }) {
            self.resume(process);
        }
    }

    /// Checks that each task has ended, when nothing moves any more.
    fn look_at_the_end(&self) {
        world(|world| {
            let stuck: Vec<usize> = (0..world.processes.len())
                .filter(|&number| {
                    let process = &world.processes[number];
                    let waits = process.waiting.is_some() && process.role != Role::Background;
                    !process.done && (waits || process.poised.is_some())
                })
                .collect();
            if let Some((kind, sentence)) = world.explain(&stuck) {
                world.fail(kind, sentence);
            }
        });
    }

    /// Unwinds the processes that have not ended.
    fn tear(&mut self) {
        world(|world| {
            world.torn = true;
            for process in &mut world.processes {
                process.job = None;
            }
        });
        // A process that holds a lock through which another unwinds goes first, so
        // there is a round for each.
        for _ in 0..=self.fibers.len() {
            for process in 0..self.fibers.len() {
                if self.fibers[process].is_some() {
                    self.resume(process);
                }
            }
        }
        for fiber in self.fibers.iter_mut().filter_map(Option::take) {
            // It can neither go on nor be unwound.
            std::mem::forget(fiber);
        }
    }
}

/// Runs a step of a process without a fiber.
fn bare(process: usize, step: impl FnOnce()) {
    world(|world| {
        world.running = Some(process);
        world.bare = true;
    });
    step();
    world(|world| {
        world.running = None;
        world.bare = false;
    });
}

impl World {
    /// Returns the processes that hold what a lock guards, or have been granted it, each
    /// with a line that says so.
    fn holders(&self, lock: usize) -> Vec<(usize, String)> {
        let state = |process: usize| {
            let Process {
                done, cancelled, ..
            } = self.processes[process];
            match (done, cancelled) {
                (_, true) => ", which was dropped",
                (true, _) => ", which has ended",
                _ => "",
            }
        };
        let name = |process: usize| &self.processes[process].name;
        let taken = self.taken.iter().filter(|taken| taken.lock == lock);
        let taken = taken.map(|&Taken { process, place, .. }| {
            let (name, state) = (name(process), state(process));
            (
                process,
                format!("  {name} holds it{state}, taken at {place}"),
            )
        });
        let granted = |queued: &&Queued| queued.lock == lock && queued.granted;
        let granted = self.queued.iter().filter(granted);
        let granted = granted.map(|&Queued { process, place, .. }| {
            let (name, state) = (name(process), state(process));
            let line = format!(
                "  {name} was granted it{state}, and does not poll the future that asked for it \
                 at {place}"
            );
            (process, line)
        });
        taken.chain(granted).collect()
    }

    /// Explains what each task waits for, when nothing moves any more.
    fn explain(&self, stuck: &[usize]) -> Option<(Kind, String)> {
        if stuck.is_empty() {
            return None;
        }
        let mut lines = Vec::new();
        // The pairs of a process and one that it waits for.
        let mut edges: Vec<(usize, usize)> = Vec::new();
        let mut dropped = false;
        for &number in stuck {
            let process = &self.processes[number];
            let name = &process.name;
            if let Some(access) = process.poised {
                let lock = self.lock_name(access.lock);
                let holder = self.held.iter().find(|&&(held, _)| held == access.lock);
                let holder = holder.map(|&(_, holder)| holder);
                edges.extend(holder.map(|holder| (number, holder)));
                let by = holder.map_or("nothing", |holder| &self.processes[holder].name);
                lines.push(format!(
                    "{name} waits for the section on {lock} of {by} to end"
                ));
                continue;
            }
            // One reference is the task's own.
            let forgotten = process.waiting == Some(0) && process.waker.strong_count() <= 1;
            dropped |= forgotten;
            let waker = "  its waker is registered nowhere: it was dropped uncalled";
            let mut waits: Vec<_> = self
                .queued
                .iter()
                .filter(|queued| queued.process == number && !queued.granted)
                .map(|queued| (queued.lock, Some(queued.place)))
                .collect();
            let known = |last: &(usize, _)| waits.iter().any(|&(lock, _)| lock == last.0);
            waits.extend(process.last.filter(|last| !known(last)));
            if waits.is_empty() {
                lines.push(format!("{name} waits, and has touched nothing"));
                lines.extend(forgotten.then(|| waker.to_owned()));
                continue;
            }
            let mut held = false;
            for (lock, place) in waits {
                let at = place.map_or_else(String::new, |place| format!(", asked for at {place}"));
                lines.push(format!("{name} waits for {}{at}", self.lock_name(lock)));
                for (holder, line) in self.holders(lock) {
                    held = true;
                    edges.push((number, holder));
                    lines.push(line);
                }
            }
            if forgotten {
                lines.push(waker.to_owned());
            } else if !held {
                lines.push("  nothing holds it, and nothing is left to wake it".to_owned());
            }
        }
        let mut reached: Vec<usize> = stuck.to_vec();
        // A process that waits for no process that waits is not on a cycle.
        loop {
            let len = reached.len();
            let waits = |from: usize, among: &[usize]| {
                edges.iter().any(|&(a, b)| a == from && among.contains(&b))
            };
            let among = reached.clone();
            reached.retain(|&number| waits(number, &among));
            if reached.len() == len {
                break;
            }
        }
        let ended: Vec<_> = self
            .processes
            .iter()
            .filter(|process| process.done)
            .map(|process| match process.cancelled {
                true => format!("{} (dropped)", process.name),
                false => process.name.clone(),
            })
            .collect();
        if !ended.is_empty() {
            lines.push(format!("ended: {}", ended.join(", ")));
        }
        let elsewhere = ELSEWHERE.load(Ordering::Relaxed) == known(self.epoch);
        if elsewhere {
            lines.push(
                "make threads by `thread` of the model, and spawn tasks on its `handle`".to_owned(),
            );
        }
        let (kind, head) = if elsewhere {
            (
                Kind::Elsewhere,
                "a task waits, and its waker was called on a thread that the model does not run",
            )
        } else if !reached.is_empty() {
            let itself = |&number: &usize| edges.contains(&(number, number));
            let head = match reached.iter().find(|number| itself(number)) {
                Some(_) => "a task waits for itself",
                None => "tasks wait for each other",
            };
            (Kind::Deadlock, head)
        } else if dropped {
            (Kind::NeverWoken, "a task waits that nothing can wake")
        } else {
            (
                Kind::LostWakeUp,
                "a task waits, and nothing is left that would wake it",
            )
        };
        Some((kind, format!("{head}\n  {}", lines.join("\n  "))))
    }
}
