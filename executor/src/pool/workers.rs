//! The workers of a pool: their queues, how they steal, and how they sleep.
//!
//! ```text
//!   wake on a worker ──▶ its lifo slot ──displaced──▶ its queue ◀──steal half── others
//!   spawn on a worker ─────────────────────────────────▲ ▲
//!   wake or spawn elsewhere ──▶ inject queue ──a part───┘
//!
//!   nothing to run ──▶ among the idle ──▶ looked everywhere again ──▶ parked
//!                        ▲ in one section with the look into the inject queue
//!
//!   parked ──a push unparks it──▶ searching ──finds a task──▶ unparks another if there is
//!     ▲                              │                        more, and runs
//!     └────────finds nothing─────────┘
//!
//!   the first idle ──▶ drives: turns ⇄ parked until the next deadline
//!   it goes to run something while others are idle ──▶ one of those drives
//! ```
//!
//! Invariants:
//!
//! 1. No worker sleeps while there is something that it should run. A worker first adds
//!    itself to the idle workers, in the section that finds the inject queue empty. Then
//!    it enters the lock of every queue. A push has left the lock of the queue before it
//!    looks for idle workers. So either the worker finds what was pushed, or its section
//!    comes before the push, which then finds it idle and unparks it. The one exception
//!    is a push into an empty lifo slot, which unparks no worker. A task in the lifo slot
//!    runs after the poll that woke it, or on a worker that steals it.
//!
//!    A push also unparks no worker if one is searching, which has been unparked for
//!    another push and has not found a task yet. So a burst of pushes unparks one worker
//!    after another, each when it is needed. A worker that finds a task stops searching in
//!    a section, and then enters the lock of every queue, as one that becomes idle does.
//!    So either it finds what was pushed, and unparks another worker, or its section comes
//!    before the push, which then finds that no worker searches.
//! 2. While a worker is idle, no deadline is missed. The lock of the idle workers also
//!    protects which of them drives. The one that drives is the last to be unparked for
//!    something else. If it leaves with a deadline to come, or if it was notified since
//!    its turn, it unparks another worker. If it leaves without a deadline, the deadline
//!    waker of its turn is set, and notifies when there is a deadline. If no worker is
//!    idle, each fires timers now and then, and the next idle worker drives.
//!
//! All of this is generic over the backend, so that loom and shuttle explore it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;

use reveille::backend::{BlockingBackend, Park};
use reveille::protocol::{Bits, StateLock};
use reveille::raw::{Completion, Owned, Runnable, Schedule};

use super::driver::Driving;
use crate::context;
use crate::dump::{Dump, TaskDump};
use crate::registry::{BATCH, Registry};
use crate::spike::give_back;
use crate::task::cancel;

/// The pool has ended.
const CLOSED: Bits = Bits::new(1);
/// The inject queue is not empty.
const INJECTED: Bits = Bits::new(1 << 1);
/// Workers are idle.
const IDLE: Bits = Bits::new(1 << 2);
/// The worker that drives has been notified, and takes another turn.
const NOTIFIED: Bits = Bits::new(1 << 3);
/// Workers search that have been unparked.
const SEARCHING: Bits = Bits::new(1 << 4);

/// The queue is not empty.
const FULL: Bits = Bits::new(1);

/// How many times in a row a worker prefers the task in its lifo slot. Without a bound,
/// two tasks that wake each other would keep out all others.
const MAX_LIFO_POLLS: u32 = 3;
/// The number of tasks after which a worker fires timers and takes from the inject queue
/// in any case. It is tokio's, and a prime, so that it is not in step with what the tasks
/// do.
const GLOBAL_QUEUE_INTERVAL: u32 = 61;

pub(crate) struct Workers<B: BlockingBackend> {
    state: StateLock<State<B>, B>,
    queues: Box<[StateLock<Queue<B>, B>]>,
    tasks: StateLock<Registry<B>, B>,
    counters: Box<[Counters]>,
    /// Returns the index of this thread among the workers of the pool with this token.
    find: fn(usize) -> Option<usize>,
    token: usize,
}

struct State<B: BlockingBackend> {
    inject_queue: VecDeque<Runnable<B>>,
    /// The last is the next to be unparked. The first is the one that drives, if
    /// `driven`.
    idle: Vec<(usize, Arc<B::Park>)>,
    /// The first idle worker drives.
    driven: bool,
    /// The number of workers that have been unparked, and have neither found a task nor
    /// become idle again.
    searching: usize,
}

struct Queue<B: BlockingBackend> {
    /// The task that the worker woke last. Its data is likely to be in the cache.
    lifo: Option<Runnable<B>>,
    ready: VecDeque<Runnable<B>>,
    /// The tasks that timers have woken. Half of the polls are for them, so that a sleep is
    /// not late by the length of the queue, and the queue is not kept out. While timers
    /// fire, it changes places with `ready`.
    fired: VecDeque<Runnable<B>>,
}

/// What a worker counts. Only the worker writes it.
#[derive(Default)]
pub(super) struct Counters {
    parks: AtomicU64,
    steals: AtomicU64,
}

impl Counters {
    fn parked(&self) {
        self.parks.fetch_add(1, Ordering::Relaxed);
    }

    fn stole(&self, tasks: usize) {
        self.steals.fetch_add(tasks as u64, Ordering::Relaxed);
    }

    /// Returns how often the worker has parked.
    pub(super) fn parks(&self) -> u64 {
        self.parks.load(Ordering::Relaxed)
    }

    /// Returns how many tasks the worker has stolen.
    pub(super) fn steals(&self) -> u64 {
        self.steals.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// If this thread is a worker, the token of its pool and its index.
    static WORKER: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// This thread is a worker, until this is dropped.
pub(crate) struct OnWorker(());

impl Drop for OnWorker {
    fn drop(&mut self) {
        WORKER.set(None);
    }
}

/// Returns the index of this thread among the workers of the pool with this token. While
/// the destructors of thread-locals run, the thread is no worker any more.
#[inline]
pub(crate) fn find(token: usize) -> Option<usize> {
    let (pool, index) = WORKER.try_with(Cell::get).ok().flatten()?;
    (pool == token).then_some(index)
}

/// The scheduler of the tasks.
pub(crate) struct ToWorkers<B: BlockingBackend>(Arc<Workers<B>>);

/// The waker that notifies a worker to drive.
pub(crate) struct DeadlineWaker<B: BlockingBackend>(pub(crate) Arc<Workers<B>>);

/// A worker, on its thread.
pub(crate) struct Worker<B: BlockingBackend> {
    workers: Arc<Workers<B>>,
    driving: Arc<Driving<B>>,
    index: usize,
    park: Arc<B::Park>,
    ticks: u32,
    lifo_polls: u32,
    /// It has been unparked, and is counted among those that search.
    searching: Cell<bool>,
    /// Another thread has taken its place.
    replaced: bool,
}

impl<B: BlockingBackend> Workers<B> {
    pub(crate) fn new(count: usize, find: fn(usize) -> Option<usize>) -> Arc<Self> {
        let queue = || {
            let queue = Queue {
                lifo: None,
                ready: VecDeque::new(),
                fired: VecDeque::new(),
            };
            StateLock::new_in(Bits::EMPTY, queue)
        };
        let state = State {
            inject_queue: VecDeque::new(),
            idle: Vec::new(),
            driven: false,
            searching: 0,
        };
        Arc::new(Self {
            state: StateLock::new_in(Bits::EMPTY, state),
            queues: (0..count).map(|_| queue()).collect(),
            tasks: StateLock::new_in(Bits::EMPTY, Registry::default()),
            counters: (0..count).map(|_| Counters::default()).collect(),
            find,
            token: context::new_token(),
        })
    }

    pub(crate) fn scheduler(self: &Arc<Self>) -> ToWorkers<B> {
        ToWorkers(self.clone())
    }

    /// Makes this thread the worker with this index.
    pub(crate) fn enter(&self, index: usize) -> OnWorker {
        WORKER.set(Some((self.token, index)));
        OnWorker(())
    }

    /// Makes this thread no worker any more, because another thread takes its place.
    pub(crate) fn leave(&self) {
        WORKER.set(None);
    }

    /// Returns the number of workers.
    pub(crate) fn count(&self) -> usize {
        self.queues.len()
    }

    /// Returns what a worker counts.
    pub(super) fn counters(&self, index: usize) -> &Counters {
        &self.counters[index]
    }

    /// Returns the number of tasks that have not ended.
    pub(crate) fn live_tasks(&self) -> usize {
        self.tasks.with(|section| section.state.len())
    }

    /// Returns the number of idle workers.
    pub(crate) fn idle(&self) -> usize {
        self.state.with(|section| section.state.idle.len())
    }

    /// Returns the length of the inject queue.
    pub(crate) fn injected(&self) -> usize {
        self.state.with(|section| section.state.inject_queue.len())
    }

    /// Returns the length of the queue of a worker, its lifo slot included.
    pub(crate) fn queued(&self, index: usize) -> usize {
        self.queues[index].with(|section| {
            let Queue { lifo, ready, fired } = section.state;
            ready.len() + fired.len() + usize::from(lifo.is_some())
        })
    }

    /// Describes what each task does.
    pub(crate) fn dump(&self) -> Dump {
        let (mut tasks, mut next) = (Vec::<TaskDump>::new(), Some(0));
        while let Some(from) = next {
            tasks.reserve(BATCH);
            next = self
                .tasks
                .with(|section| section.state.dump(from, &mut tasks));
        }
        Dump::new(tasks)
    }

    /// Returns the index of the worker that calls this.
    pub(crate) fn current(&self) -> Option<usize> {
        (self.find)(self.token)
    }

    /// Registers a new task, and schedules it. If the pool has ended, returns the task,
    /// which the caller has to cancel.
    pub(crate) fn start(&self, runnable: Runnable<B>, task: Owned<B>) -> Result<(), Owned<B>> {
        self.tasks.with(|section| {
            if section.bits.contains(CLOSED) {
                return Err(task);
            }
            section.state.insert(task);
            Ok(())
        })?;
        match self.current() {
            // Not into the lifo slot: the task that spawns may block its worker, and no
            // other worker is unparked for the slot.
            Some(index) => self.push_one(index, runnable, 0),
            None => self.inject(runnable),
        }
        Ok(())
    }

    /// Removes a task whose future is gone, and completes it.
    pub(crate) fn complete(&self, completion: Completion<B>) {
        let key = completion.key();
        let owned = self.tasks.with(|section| section.state.remove(key));
        completion.complete(owned);
    }

    fn schedule(&self, runnable: Runnable<B>) {
        match self.current() {
            Some(index) => self.push_lifo(index, runnable),
            None => self.inject(runnable),
        }
    }

    /// Puts a task into the lifo slot. Only a task that this displaces is worth unparking
    /// another worker.
    fn push_lifo(&self, index: usize, runnable: Runnable<B>) {
        let displaced = self.queues[index].with(|section| {
            section.bits.insert(FULL);
            let displaced = section.state.lifo.replace(runnable);
            let any = displaced.is_some();
            if let Some(displaced) = displaced {
                section.state.ready.push_back(displaced);
            }
            any
        });
        if displaced {
            self.unpark_one();
        }
    }

    /// Appends a task to the queue of the caller. If more than `comes_to` are there then,
    /// unparks another worker.
    fn push_one(&self, index: usize, runnable: Runnable<B>, comes_to: usize) {
        let more = self.queues[index].with(|section| {
            section.state.ready.push_back(runnable);
            section.bits.insert(FULL);
            section.state.ready.len() > comes_to
        });
        if more {
            self.unpark_one();
        }
    }

    /// Appends tasks to the queue of the caller, and unparks another worker.
    fn push_all(&self, index: usize, mut runnables: VecDeque<Runnable<B>>) {
        self.queues[index].with(|section| {
            section.state.ready.append(&mut runnables);
            section.bits.insert(FULL);
        });
        self.unpark_one();
    }

    fn inject(&self, runnable: Runnable<B>) {
        let (refused, idle) = self.state.with(|section| {
            if section.bits.contains(CLOSED) {
                return (Some(runnable), None);
            }
            section.bits.insert(INJECTED);
            section.state.inject_queue.push_back(runnable);
            (None, section.state.pop_for_push(section.bits))
        });
        // The task of a refused runnable is cancelled, or will be.
        drop(refused);
        if let Some(park) = idle {
            park.unpark();
        }
    }

    /// Notifies a worker that there is something to drive. The worker that drives takes
    /// another turn. If none drives, an idle worker is unparked to drive. If none is
    /// idle, the next idle worker drives.
    fn notify_driver(&self) {
        let park = self.state.with(|section| {
            if !section.state.driven {
                return section.state.pop_idle(section.bits);
            }
            section.bits.insert(NOTIFIED);
            section.state.idle.first().map(|(_, park)| park.clone())
        });
        if let Some(park) = park {
            park.unpark();
        }
    }

    /// Unparks an idle worker for what has been pushed, unless one searches.
    fn unpark_one(&self) {
        let bits = self.state.load();
        if !bits.contains(IDLE) || bits.contains(SEARCHING) {
            return;
        }
        let idle = self
            .state
            .with(|section| section.state.pop_for_push(section.bits));
        if let Some(park) = idle {
            park.unpark();
        }
    }

    /// Returns whether a queue is not empty. Entering the sections, instead of loading the
    /// bits, orders this search with each push. Queues that are empty give back the memory
    /// of a spike.
    fn any_queued(&self) -> bool {
        let mut queues = self.queues.iter();
        queues.any(|queue| {
            queue.with(|section| {
                give_back(&mut section.state.ready);
                give_back(&mut section.state.fired);
                section.bits.contains(FULL)
            })
        })
    }

    /// Ends the pool. No task begins any more, and the workers cancel those that are
    /// left.
    pub(crate) fn close(&self) {
        self.tasks.with(|section| section.bits.insert(CLOSED));
        let (inject_queue, idle) = self.state.with(|section| {
            let open = IDLE | INJECTED | NOTIFIED | SEARCHING;
            *section.bits = section.bits.without(open) | CLOSED;
            section.state.driven = false;
            (
                std::mem::take(&mut section.state.inject_queue),
                std::mem::take(&mut section.state.idle),
            )
        });
        drop(inject_queue);
        for (_, park) in idle {
            park.unpark();
        }
    }

    /// Returns whether the pool has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load().contains(CLOSED)
    }
}

impl<B: BlockingBackend> State<B> {
    /// Adds an idle worker. Returns whether it is the one that drives.
    fn push_idle(&mut self, bits: &mut Bits, index: usize, park: Arc<B::Park>) -> bool {
        bits.insert(IDLE);
        let drives = !std::mem::replace(&mut self.driven, true);
        let place = if drives { 0 } else { self.idle.len() };
        self.idle.insert(place, (index, park));
        drives
    }

    /// Removes an idle worker, which is to be unparked. It searches from now on.
    fn pop_idle(&mut self, bits: &mut Bits) -> Option<Arc<B::Park>> {
        let (_, park) = self.idle.pop()?;
        self.searching += 1;
        bits.insert(SEARCHING);
        self.clear_if_none_is_idle(bits);
        Some(park)
    }

    /// Removes an idle worker as [`pop_idle`](Self::pop_idle) does, unless one searches.
    fn pop_for_push(&mut self, bits: &mut Bits) -> Option<Arc<B::Park>> {
        match bits.contains(SEARCHING) {
            true => None,
            false => self.pop_idle(bits),
        }
    }

    /// A worker does not search any more.
    fn end_search(&mut self, bits: &mut Bits) {
        self.searching = self.searching.saturating_sub(1);
        if self.searching == 0 {
            bits.remove(SEARCHING);
        }
    }

    fn clear_if_none_is_idle(&mut self, bits: &mut Bits) {
        if self.idle.is_empty() {
            self.driven = false;
            *bits = bits.without(IDLE | NOTIFIED);
        }
    }

    fn is_driven_by(&self, worker: usize) -> bool {
        let first = self.idle.first();
        self.driven && first.is_some_and(|&(index, _)| index == worker)
    }
}

/// The timers call it if a deadline comes before the one that they are driven to.
impl<B: BlockingBackend> Wake for DeadlineWaker<B> {
    fn wake(self: Arc<Self>) {
        self.0.notify_driver();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_driver();
    }
}

impl<B: BlockingBackend> Worker<B> {
    /// Creates the worker with this index, on this thread.
    pub(crate) fn new(workers: Arc<Workers<B>>, driving: Arc<Driving<B>>, index: usize) -> Self {
        Self {
            workers,
            driving,
            index,
            park: Arc::new(B::Park::new()),
            ticks: 0,
            lifo_polls: 0,
            searching: Cell::new(false),
            replaced: false,
        }
    }

    /// Appends a task that was woken while it ran.
    pub(crate) fn again(&self, runnable: Runnable<B>) {
        self.workers.push_one(self.index, runnable, 1);
    }

    /// Ends on this thread, because another has taken its place. `woken` is the task that
    /// it ran last, if that was woken meanwhile.
    pub(crate) fn give_way(mut self, woken: Option<Runnable<B>>) {
        self.replaced = true;
        if let Some(runnable) = woken {
            self.workers.inject(runnable);
        }
    }

    /// Returns the next task to run. Sleeps while there is none. Returns `None` at the
    /// end.
    pub(crate) fn next(&mut self) -> Option<Runnable<B>> {
        while !self.workers.is_closed() {
            let next = self
                .own()
                .or_else(|| self.take_injected())
                .or_else(|| self.steal());
            if next.is_some() {
                if self.searching.get() {
                    self.found();
                }
                return next;
            }
            self.sleep();
        }
        None
    }

    /// Stops searching, because it has found a task. Unparks another worker if there is
    /// more to find.
    #[cold]
    fn found(&self) {
        let Workers { state, .. } = &*self.workers;
        self.searching.set(false);
        let bits = state.with(|section| {
            section.state.end_search(section.bits);
            *section.bits
        });
        if bits.contains(IDLE) && (bits.contains(INJECTED) || self.workers.any_queued()) {
            self.workers.unpark_one();
        }
    }

    fn own(&mut self) -> Option<Runnable<B>> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(GLOBAL_QUEUE_INTERVAL) {
            self.fire();
            if let Some(injected) = self.take_injected() {
                return Some(injected);
            }
        }
        let queue = &self.workers.queues[self.index];
        if !queue.load().contains(FULL) {
            return None;
        }
        let prefers = self.lifo_polls < MAX_LIFO_POLLS;
        let in_turn = self.ticks.is_multiple_of(2);
        let (next, lifo) = queue.with(|section| {
            let Queue { lifo, ready, fired } = section.state;
            if !prefers && let Some(lifo) = lifo.take() {
                ready.push_back(lifo);
            }
            let (next, is_lifo) = match lifo.take() {
                Some(lifo) => (Some(lifo), true),
                None if fired.is_empty() => (ready.pop_front(), false),
                None if in_turn || ready.is_empty() => (fired.pop_front(), false),
                None => (ready.pop_front(), false),
            };
            if ready.is_empty() && fired.is_empty() {
                section.bits.remove(FULL);
            }
            (next, is_lifo)
        });
        self.lifo_polls = if lifo { self.lifo_polls + 1 } else { 0 };
        next
    }

    /// Takes this worker's part of the inject queue. Returns the first task of it.
    fn take_injected(&self) -> Option<Runnable<B>> {
        let Workers { state, queues, .. } = &*self.workers;
        if !state.load().contains(INJECTED) {
            return None;
        }
        let mut part = state.with(|section| {
            let inject_queue = &mut section.state.inject_queue;
            let count = inject_queue.len().div_ceil(queues.len());
            let part: VecDeque<_> = inject_queue.drain(..count).collect();
            if inject_queue.is_empty() {
                section.bits.remove(INJECTED);
            }
            part
        });
        let next = part.pop_front();
        if !part.is_empty() {
            self.workers.push_all(self.index, part);
        }
        next
    }

    /// Steals half of the queue of another worker. Returns the first task of it.
    fn steal(&self) -> Option<Runnable<B>> {
        let count = self.workers.queues.len();
        for other in (1..count).map(|next| (self.index + next) % count) {
            let queue = &self.workers.queues[other];
            if !queue.load().contains(FULL) {
                continue;
            }
            let mut stolen = queue.with(|section| {
                let Queue { lifo, ready, fired } = section.state;
                let from = if ready.is_empty() { fired } else { ready };
                let half = from.len().div_ceil(2);
                let mut stolen: VecDeque<_> = from.drain(..half).collect();
                if stolen.is_empty() {
                    stolen.extend(lifo.take());
                }
                let Queue { lifo, ready, fired } = section.state;
                if ready.is_empty() && fired.is_empty() && lifo.is_none() {
                    section.bits.remove(FULL);
                }
                stolen
            });
            if !stolen.is_empty() {
                self.workers.counters[self.index].stole(stolen.len());
            }
            let next = stolen.pop_front();
            if !stolen.is_empty() {
                self.workers.push_all(self.index, stolen);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Fires what is due. The tasks that this wakes run in the order of their wakes, in turn
    /// with those that are ready. None of them stays in the lifo slot.
    pub(super) fn fire(&self) {
        let queue = &self.workers.queues[self.index];
        let lifo = queue.with(|section| {
            let Queue { lifo, ready, fired } = section.state;
            std::mem::swap(ready, fired);
            lifo.take()
        });
        self.driving.drive.fire();
        queue.with(|section| {
            let Queue {
                lifo: last,
                ready,
                fired,
            } = section.state;
            ready.extend(last.take());
            std::mem::swap(ready, fired);
            *last = lifo;
            // Another worker may have stolen everything meanwhile.
            if last.is_some() || !ready.is_empty() || !fired.is_empty() {
                section.bits.insert(FULL);
            }
        });
    }

    /// Sleeps until something is pushed, a deadline wakes a task, or the pool ends.
    pub(super) fn sleep(&self) {
        let Workers { state, .. } = &*self.workers;
        let drives = state.with(|section| {
            if section.bits.intersects(CLOSED | INJECTED) {
                return None;
            }
            if self.searching.take() {
                section.state.end_search(section.bits);
            }
            give_back(&mut section.state.inject_queue);
            let park = self.park.clone();
            Some(section.state.push_idle(section.bits, self.index, park))
        });
        let Some(drives) = drives else {
            return;
        };
        let found = self.workers.any_queued();
        // Without a turn, it is unknown whether there is a deadline to come.
        let mut left = true;
        if !found && drives {
            left = self.drive();
        } else if !found {
            self.workers.counters[self.index].parked();
            self.park.park();
        }
        self.leave(left);
    }

    /// Drives until there is something to run here, or until this worker has been
    /// unparked for something else. Returns whether there is a deadline to come.
    fn drive(&self) -> bool {
        let Workers { state, queues, .. } = &*self.workers;
        let queue = &queues[self.index];
        loop {
            let next = self.driving.turn();
            // Only this worker fills its queue, so a load is enough.
            if queue.load().contains(FULL) {
                queue.with(|section| {
                    let Queue { lifo, ready, .. } = section.state;
                    ready.extend(lifo.take());
                });
                return next.is_some();
            }
            self.workers.counters[self.index].parked();
            self.driving.drive.park(&self.park, next);
            let drives = state.with(|section| {
                let drives = section.state.is_driven_by(self.index);
                if drives {
                    section.bits.remove(NOTIFIED);
                }
                drives
            });
            if !drives {
                return false;
            }
        }
    }

    /// Removes this worker from the idle ones, if it is still among them. If it drove and
    /// there is still something to drive, it unparks another worker.
    fn leave(&self, left: bool) {
        let next = self.workers.state.with(|section| {
            let (bits, state) = (section.bits, section.state);
            let drove = state.is_driven_by(self.index);
            let idle = state.idle.len();
            state.idle.retain(|&(index, _)| index != self.index);
            // If it is not among the idle, it has been unparked.
            self.searching.set(state.idle.len() == idle);
            if drove {
                state.driven = false;
            }
            let left = drove && (left || bits.contains(NOTIFIED));
            if drove {
                bits.remove(NOTIFIED);
            }
            state.clear_if_none_is_idle(bits);
            left.then(|| state.pop_idle(bits)).flatten()
        });
        if let Some(park) = next {
            park.unpark();
        }
    }
}

/// Cancels the tasks that are left, and empties the queue. Tasks own the queue, so a
/// runnable left in it would keep itself alive.
impl<B: BlockingBackend> Drop for Worker<B> {
    fn drop(&mut self) {
        if self.replaced {
            return;
        }
        while let Some(task) = self.workers.tasks.with(|section| section.state.pop()) {
            cancel(&task);
        }
        let left = self.workers.queues[self.index].with(|section| {
            (
                section.state.lifo.take(),
                std::mem::take(&mut section.state.ready),
                std::mem::take(&mut section.state.fired),
            )
        });
        drop(left);
    }
}

impl<B: BlockingBackend> Schedule<B> for ToWorkers<B> {
    fn schedule(&self, task: Runnable<B>) {
        self.0.schedule(task);
    }
}
