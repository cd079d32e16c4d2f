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
//!   the first idle ──▶ drives: turns ⇄ parked until the next deadline
//!   it goes to run something while others are idle ──▶ one of those drives
//! ```
//!
//! Invariants:
//!
//! 1. No worker sleeps on what it should run. A worker enters itself among the idle
//!    first, in the section that finds the inject queue empty, and then enters the lock
//!    of every queue. A push has left the lock of the queue when it looks for the idle.
//!    So either the worker finds what was pushed, or its section comes before that push,
//!    which then sees it among the idle and unparks it. The one exception is a push into
//!    an empty lifo slot, which unparks no worker: what a task wakes runs after that
//!    task's poll, or on a worker that looks for something to steal.
//! 2. While a worker is idle, no deadline passes unseen. Which worker drives stands under
//!    the lock of the idle; it is the last of them to be unparked for something else. If it
//!    leaves with a deadline to come, or notified since its turn, it unparks
//!    another; if with none, the alarm of its turn is set, and notifies when there is.
//!    If no worker is idle, each looks now and then, and the next to be idle drives.
//!
//! It is generic over the backend, so that loom and shuttle explore it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Wake;

use reveille::backend::{BlockingBackend, Park};
use reveille::protocol::{Bits, StateLock};
use reveille::raw::{Owned, Runnable, Schedule};

use super::driver::Driving;
use crate::context;
use crate::registry::Registry;
use crate::task::cancel;

/// The pool has ended.
const CLOSED: Bits = Bits::new(1);
/// Something is in the inject queue.
const INJECTED: Bits = Bits::new(1 << 1);
/// Workers are idle.
const IDLE: Bits = Bits::new(1 << 2);
/// A worker drives, and has been notified: it takes another turn.
const NOTIFIED: Bits = Bits::new(1 << 3);

/// Something is in the queue.
const FULL: Bits = Bits::new(1);

/// How many times in a row a worker runs the task of its lifo slot before others: two
/// that wake each other would keep out all others.
const MAX_LIFO_POLLS: u32 = 3;
/// After how many tasks a worker looks at the clock and into the inject queue in any
/// case. A prime, as tokio's, so that it does not beat with what the tasks do.
const GLOBAL_QUEUE_INTERVAL: u32 = 61;

pub(crate) struct Workers<B: BlockingBackend> {
    state: StateLock<State<B>, B>,
    queues: Box<[StateLock<Queue<B>, B>]>,
    tasks: StateLock<Registry<B>, B>,
    /// Which worker of the pool with this token the caller is.
    find: fn(usize) -> Option<usize>,
    token: usize,
}

struct State<B: BlockingBackend> {
    inject_queue: VecDeque<Runnable<B>>,
    /// The next to be unparked is the last. The one that drives is the first.
    idle: Vec<(usize, Arc<B::Park>)>,
    /// Whether the first of the idle drives.
    driven: bool,
}

struct Queue<B: BlockingBackend> {
    /// The task that the worker woke last, whose data it is likely to have at hand.
    lifo: Option<Runnable<B>>,
    ready: VecDeque<Runnable<B>>,
}

thread_local! {
    /// Of a worker, the token of its pool and its index.
    static WORKER: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// While it lives, this thread is a worker.
pub(crate) struct OnWorker(());

impl Drop for OnWorker {
    fn drop(&mut self) {
        WORKER.set(None);
    }
}

/// Which worker this thread is of the pool with this token. The destructors of a
/// worker's thread-locals run on none.
#[inline]
pub(crate) fn find(token: usize) -> Option<usize> {
    let (pool, index) = WORKER.try_with(Cell::get).ok().flatten()?;
    (pool == token).then_some(index)
}

/// The scheduler of the tasks.
pub(crate) struct ToWorkers<B: BlockingBackend>(Arc<Workers<B>>);

/// Notifies a worker to drive.
pub(crate) struct Alarm<B: BlockingBackend>(pub(crate) Arc<Workers<B>>);

/// One worker, on its thread.
pub(crate) struct Worker<B: BlockingBackend> {
    workers: Arc<Workers<B>>,
    driving: Arc<Driving<B>>,
    index: usize,
    park: Arc<B::Park>,
    ticks: u32,
    lifo_polls: u32,
}

impl<B: BlockingBackend> Workers<B> {
    pub(crate) fn new(count: usize, find: fn(usize) -> Option<usize>) -> Arc<Self> {
        let queue = || {
            let queue = Queue {
                lifo: None,
                ready: VecDeque::new(),
            };
            StateLock::new_in(Bits::EMPTY, queue)
        };
        let state = State {
            inject_queue: VecDeque::new(),
            idle: Vec::new(),
            driven: false,
        };
        Arc::new(Self {
            state: StateLock::new_in(Bits::EMPTY, state),
            queues: (0..count).map(|_| queue()).collect(),
            tasks: StateLock::new_in(Bits::EMPTY, Registry::default()),
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

    /// Which of the workers the caller is.
    pub(crate) fn current(&self) -> Option<usize> {
        (self.find)(self.token)
    }

    /// Takes up a new task, and has it run. After the end the task is returned, for the
    /// caller to cancel.
    pub(crate) fn start(&self, runnable: Runnable<B>, task: Owned<B>) -> Result<(), Owned<B>> {
        self.tasks.with(|section| {
            if section.bits.contains(CLOSED) {
                return Err(task);
            }
            section.state.insert(task);
            Ok(())
        })?;
        match self.current() {
            // Not into the lifo slot: the task that spawns may block its worker, and the
            // others know of nothing there.
            Some(index) => self.push(index, [runnable], 0),
            None => self.inject(runnable),
        }
        Ok(())
    }

    /// Lets a task go that is done.
    pub(crate) fn done(&self, key: usize) {
        drop(self.tasks.with(|section| section.state.remove(key)));
    }

    fn schedule(&self, runnable: Runnable<B>) {
        match self.current() {
            Some(index) => self.push_lifo(index, runnable),
            None => self.inject(runnable),
        }
    }

    /// The lifo is not worth another worker's while; what it displaces is.
    fn push_lifo(&self, index: usize, runnable: Runnable<B>) {
        let displaced = self.queues[index].with(|section| {
            section.bits.insert(FULL);
            let displaced = section.state.lifo.replace(runnable);
            let any = displaced.is_some();
            section.state.ready.extend(displaced);
            any
        });
        if displaced {
            self.unpark_one();
        }
    }

    /// Puts tasks last on the caller's own queue. Where there are more than it will
    /// come to next, they are worth another worker's while.
    fn push(
        &self,
        index: usize,
        runnables: impl IntoIterator<Item = Runnable<B>>,
        comes_to: usize,
    ) {
        let more = self.queues[index].with(|section| {
            section.state.ready.extend(runnables);
            section.bits.insert(FULL);
            section.state.ready.len() > comes_to
        });
        if more {
            self.unpark_one();
        }
    }

    fn inject(&self, runnable: Runnable<B>) {
        let (refused, idle) = self.state.with(|section| {
            if section.bits.contains(CLOSED) {
                return (Some(runnable), None);
            }
            section.bits.insert(INJECTED);
            section.state.inject_queue.push_back(runnable);
            (None, section.state.pop_idle(section.bits))
        });
        // Its task is cancelled, or will be.
        drop(refused);
        if let Some(park) = idle {
            park.unpark();
        }
    }

    /// There is something to drive: the worker that drives takes another turn, or an idle
    /// one is unparked to drive. If no worker is idle, it is for the next that will be.
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

    fn unpark_one(&self) {
        if !self.state.load().contains(IDLE) {
            return;
        }
        let idle = self
            .state
            .with(|section| section.state.pop_idle(section.bits));
        if let Some(park) = idle {
            park.unpark();
        }
    }

    /// Ends the pool: no task begins any more, and the workers cancel those that
    /// there are.
    pub(crate) fn close(&self) {
        self.tasks.with(|section| section.bits.insert(CLOSED));
        let (inject_queue, idle) = self.state.with(|section| {
            *section.bits = section.bits.without(IDLE | INJECTED | NOTIFIED) | CLOSED;
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

    /// Whether the pool has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load().contains(CLOSED)
    }
}

impl<B: BlockingBackend> State<B> {
    /// Takes a worker in among the idle. Returns whether it is the one that drives.
    fn push_idle(&mut self, bits: &mut Bits, index: usize, park: Arc<B::Park>) -> bool {
        bits.insert(IDLE);
        let drives = !std::mem::replace(&mut self.driven, true);
        let place = if drives { 0 } else { self.idle.len() };
        self.idle.insert(place, (index, park));
        drives
    }

    /// Takes an idle worker out, to be unparked.
    fn pop_idle(&mut self, bits: &mut Bits) -> Option<Arc<B::Park>> {
        let (_, park) = self.idle.pop()?;
        self.settle(bits);
        Some(park)
    }

    fn settle(&mut self, bits: &mut Bits) {
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

/// By the timers, where a deadline comes up before the one that they are driven to.
impl<B: BlockingBackend> Wake for Alarm<B> {
    fn wake(self: Arc<Self>) {
        self.0.notify_driver();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_driver();
    }
}

impl<B: BlockingBackend> Worker<B> {
    /// The worker with this index, on this thread.
    pub(crate) fn new(workers: Arc<Workers<B>>, driving: Arc<Driving<B>>, index: usize) -> Self {
        Self {
            workers,
            driving,
            index,
            park: Arc::new(B::Park::new()),
            ticks: 0,
            lifo_polls: 0,
        }
    }

    /// Puts a task last that was woken while it ran.
    pub(crate) fn again(&self, runnable: Runnable<B>) {
        self.workers.push(self.index, [runnable], 1);
    }

    /// The next task, for which it sleeps; none at the end.
    pub(crate) fn next(&mut self) -> Option<Runnable<B>> {
        while !self.workers.is_closed() {
            let next = self
                .own()
                .or_else(|| self.take_injected())
                .or_else(|| self.steal());
            if next.is_some() {
                return next;
            }
            self.sleep();
        }
        None
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
        let (next, lifo) = queue.with(|section| {
            let Queue { lifo, ready } = section.state;
            if !prefers {
                ready.extend(lifo.take());
            }
            let (next, is_lifo) = match lifo.take() {
                Some(lifo) => (Some(lifo), true),
                None => (ready.pop_front(), false),
            };
            if ready.is_empty() {
                section.bits.remove(FULL);
            }
            (next, is_lifo)
        });
        self.lifo_polls = if lifo { self.lifo_polls + 1 } else { 0 };
        next
    }

    /// This worker's part of the inject queue.
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
            self.workers.push(self.index, part, 0);
        }
        next
    }

    /// Half of what another worker has.
    fn steal(&self) -> Option<Runnable<B>> {
        let count = self.workers.queues.len();
        for other in (1..count).map(|next| (self.index + next) % count) {
            let queue = &self.workers.queues[other];
            if !queue.load().contains(FULL) {
                continue;
            }
            let mut stolen = queue.with(|section| {
                let Queue { lifo, ready } = section.state;
                let half = ready.len().div_ceil(2);
                let mut stolen: VecDeque<_> = ready.drain(..half).collect();
                if stolen.is_empty() {
                    stolen.extend(lifo.take());
                }
                if ready.is_empty() && lifo.is_none() {
                    section.bits.remove(FULL);
                }
                stolen
            });
            let next = stolen.pop_front();
            if !stolen.is_empty() {
                self.workers.push(self.index, stolen, 0);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Does what is due. What that wakes runs after what is ready, in the order in
    /// which it is woken: what is lifo is not preferred.
    pub(super) fn fire(&self) {
        let queue = &self.workers.queues[self.index];
        let lifo = queue.with(|section| section.state.lifo.take());
        self.driving.drive.fire();
        queue.with(|section| {
            let Queue { lifo: last, ready } = section.state;
            ready.extend(last.take());
            *last = lifo;
            // Meanwhile it may have been found empty.
            if last.is_some() || !ready.is_empty() {
                section.bits.insert(FULL);
            }
        });
    }

    /// Sleeps until something is pushed, or a deadline has woken something, or the end.
    pub(super) fn sleep(&self) {
        let Workers { state, queues, .. } = &*self.workers;
        let drives = state.with(|section| {
            if section.bits.intersects(CLOSED | INJECTED) {
                return None;
            }
            let park = self.park.clone();
            Some(section.state.push_idle(section.bits, self.index, park))
        });
        let Some(drives) = drives else {
            return;
        };
        // By sections and not by loads: they order this look with each push.
        let found = queues
            .iter()
            .any(|queue| queue.with(|section| section.bits.contains(FULL)));
        // Without a turn it is not known what is to be driven.
        let mut left = true;
        if !found && drives {
            left = self.drive();
        } else if !found {
            self.park.park();
        }
        self.leave(left);
    }

    /// Drives, until there is something to run here, or this worker has been unparked
    /// for something else. Returns whether there is a deadline to come.
    fn drive(&self) -> bool {
        let Workers { state, queues, .. } = &*self.workers;
        let queue = &queues[self.index];
        loop {
            let next = self.driving.turn();
            // Only this worker fills its queue: a load will do.
            if queue.load().contains(FULL) {
                queue.with(|section| {
                    let Queue { lifo, ready } = section.state;
                    ready.extend(lifo.take());
                });
                return next.is_some();
            }
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

    /// Is idle no more, if it has not been unparked. A worker that drove and leaves
    /// something to be driven unparks another.
    fn leave(&self, left: bool) {
        let next = self.workers.state.with(|section| {
            let (bits, state) = (section.bits, section.state);
            let drove = state.is_driven_by(self.index);
            state.idle.retain(|&(index, _)| index != self.index);
            if drove {
                state.driven = false;
            }
            let left = drove && (left || bits.contains(NOTIFIED));
            if drove {
                bits.remove(NOTIFIED);
            }
            state.settle(bits);
            left.then(|| state.pop_idle(bits)).flatten()
        });
        if let Some(park) = next {
            park.unpark();
        }
    }
}

/// Cancels what is left, and leaves nothing in the queue, which the tasks have.
impl<B: BlockingBackend> Drop for Worker<B> {
    fn drop(&mut self) {
        while let Some(task) = self.workers.tasks.with(|section| section.state.pop()) {
            cancel(&task);
        }
        let left = self.workers.queues[self.index].with(|section| {
            (
                section.state.lifo.take(),
                std::mem::take(&mut section.state.ready),
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
