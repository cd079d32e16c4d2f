//! The workers of a pool: their queues, how they steal, and how they sleep.
//!
//! ```text
//!   wake on a worker ──▶ its newest ──▶ its queue ◀──steal half── other workers
//!   wake elsewhere ────▶ injected ────────▲ a share of it
//!
//!   nothing to run ──▶ among the idle ──▶ looked everywhere again ──▶ parked
//!                        ▲ in one section with the look at what is injected
//! ```
//!
//! Invariant: no worker sleeps on what it should run. A worker enters itself among
//! the idle first, in the section that finds nothing injected, and then enters the
//! lock of every queue. Whoever pushes has left the lock of the queue when it looks
//! for the idle. So either the worker finds what was pushed, or its section comes
//! before that push, which then sees it among the idle and unparks it.
//!
//! It is generic over the backend, so that loom explores it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use reveille::protocol::{Bits, BlockingBackend, Held, Park, Runnable, Schedule, StateLock};

use crate::registry::Registry;

/// The pool has ended.
const CLOSED: Bits = Bits::new(1);
/// Something is injected.
const INJECTED: Bits = Bits::new(1 << 1);
/// Workers are idle.
const IDLE: Bits = Bits::new(1 << 2);

/// Something is in the queue.
const FULL: Bits = Bits::new(1);

/// How many times in a row a worker prefers the task that was woken last: two that
/// wake each other would keep out all others.
const NEWEST_IN_A_ROW: u32 = 3;
/// After how many tasks a worker looks at what is injected in any case. A prime, as
/// tokio's, so that it does not beat with what the tasks do.
const INJECTED_EVERY: u32 = 61;

pub(crate) struct Workers<B: BlockingBackend> {
    state: StateLock<State<B>, B>,
    queues: Box<[StateLock<Queue<B>, B>]>,
    tasks: StateLock<Registry<B>, B>,
    /// Which worker of the pool with this token the caller is.
    find: fn(usize) -> Option<usize>,
}

struct State<B: BlockingBackend> {
    injected: VecDeque<Runnable<B>>,
    idle: Vec<(usize, Arc<B::Park>)>,
}

struct Queue<B: BlockingBackend> {
    /// What was woken last by the worker, which is likely to have its data at hand.
    newest: Option<Runnable<B>>,
    ready: VecDeque<Runnable<B>>,
}

/// The scheduler of the tasks.
pub(crate) struct ToWorkers<B: BlockingBackend>(Arc<Workers<B>>);

/// One worker, on its thread.
pub(crate) struct Worker<B: BlockingBackend> {
    workers: Arc<Workers<B>>,
    index: usize,
    park: Arc<B::Park>,
    ticks: u32,
    newest_in_a_row: u32,
}

impl<B: BlockingBackend> Workers<B> {
    pub(crate) fn new(count: usize, find: fn(usize) -> Option<usize>) -> Arc<Self> {
        let queue = || {
            let queue = Queue {
                newest: None,
                ready: VecDeque::new(),
            };
            StateLock::new_in(Bits::EMPTY, queue)
        };
        let state = State {
            injected: VecDeque::new(),
            idle: Vec::new(),
        };
        Arc::new(Self {
            state: StateLock::new_in(Bits::EMPTY, state),
            queues: (0..count).map(|_| queue()).collect(),
            tasks: StateLock::new_in(Bits::EMPTY, Registry::default()),
            find,
        })
    }

    pub(crate) fn scheduler(self: &Arc<Self>) -> ToWorkers<B> {
        ToWorkers(self.clone())
    }

    /// Tells the pool from others that live at the same time.
    pub(crate) fn token(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Which of the workers the caller is.
    pub(crate) fn current(&self) -> Option<usize> {
        (self.find)(self.token())
    }

    /// Takes up a new task, and has it run. After the end it is cancelled at once.
    pub(crate) fn start(&self, runnable: Runnable<B>, held: Held<B>) {
        match self.hold(held) {
            Ok(()) => self.schedule(runnable),
            Err(refused) => {
                refused.cancel();
            }
        }
    }

    /// Keeps the executor's share of a task, until the end.
    pub(crate) fn hold(&self, held: Held<B>) -> Result<(), Held<B>> {
        self.tasks.with(|section| {
            if section.bits.contains(CLOSED) {
                return Err(held);
            }
            section.state.insert(held);
            Ok(())
        })
    }

    /// Lets a task go that is done.
    pub(crate) fn done(&self, key: usize) {
        drop(self.tasks.with(|section| section.state.remove(key)));
    }

    fn schedule(&self, runnable: Runnable<B>) {
        match self.current() {
            Some(index) => self.push_newest(index, runnable),
            None => self.inject(runnable),
        }
    }

    /// The newest is not worth another worker's while; what it displaces is.
    fn push_newest(&self, index: usize, runnable: Runnable<B>) {
        let displaced = self.queues[index].with(|section| {
            section.bits.insert(FULL);
            let displaced = section.state.newest.replace(runnable);
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
            section.state.injected.push_back(runnable);
            (None, section.state.pop_idle(section.bits))
        });
        // Its task is cancelled, or will be.
        drop(refused);
        if let Some((_, park)) = idle {
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
        if let Some((_, park)) = idle {
            park.unpark();
        }
    }

    /// Ends the pool: no task begins any more, and the workers cancel those that
    /// there are.
    pub(crate) fn close(&self) {
        self.tasks.with(|section| section.bits.insert(CLOSED));
        let (injected, idle) = self.state.with(|section| {
            *section.bits = section.bits.without(IDLE | INJECTED) | CLOSED;
            (
                std::mem::take(&mut section.state.injected),
                std::mem::take(&mut section.state.idle),
            )
        });
        drop(injected);
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
    fn pop_idle(&mut self, bits: &mut Bits) -> Option<(usize, Arc<B::Park>)> {
        let idle = self.idle.pop();
        if self.idle.is_empty() {
            bits.remove(IDLE);
        }
        idle
    }
}

impl<B: BlockingBackend> Worker<B> {
    /// The worker with this index, on this thread.
    pub(crate) fn new(workers: Arc<Workers<B>>, index: usize) -> Self {
        Self {
            workers,
            index,
            park: Arc::new(B::Park::new()),
            ticks: 0,
            newest_in_a_row: 0,
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
                .or_else(|| self.injected())
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
        if self.ticks.is_multiple_of(INJECTED_EVERY)
            && let Some(injected) = self.injected()
        {
            return Some(injected);
        }
        let queue = &self.workers.queues[self.index];
        if !queue.load().contains(FULL) {
            return None;
        }
        let prefers = self.newest_in_a_row < NEWEST_IN_A_ROW;
        let (next, newest) = queue.with(|section| {
            let Queue { newest, ready } = section.state;
            if !prefers {
                ready.extend(newest.take());
            }
            let (next, is_newest) = match newest.take() {
                Some(newest) => (Some(newest), true),
                None => (ready.pop_front(), false),
            };
            if ready.is_empty() {
                section.bits.remove(FULL);
            }
            (next, is_newest)
        });
        self.newest_in_a_row = if newest { self.newest_in_a_row + 1 } else { 0 };
        next
    }

    /// This worker's share of what is injected.
    fn injected(&self) -> Option<Runnable<B>> {
        let Workers { state, queues, .. } = &*self.workers;
        if !state.load().contains(INJECTED) {
            return None;
        }
        let mut share = state.with(|section| {
            let injected = &mut section.state.injected;
            let share = injected.len().div_ceil(queues.len());
            let share: VecDeque<_> = injected.drain(..share).collect();
            if injected.is_empty() {
                section.bits.remove(INJECTED);
            }
            share
        });
        let next = share.pop_front();
        if !share.is_empty() {
            self.workers.push(self.index, share, 0);
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
                let Queue { newest, ready } = section.state;
                let half = ready.len().div_ceil(2);
                let mut stolen: VecDeque<_> = ready.drain(..half).collect();
                if stolen.is_empty() {
                    stolen.extend(newest.take());
                }
                if ready.is_empty() && newest.is_none() {
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

    /// Sleeps until something is pushed, or the end.
    ///
    /// This is where a driver of what the operating system has ready will wait,
    /// until the next deadline, in place of the park.
    fn sleep(&self) {
        let Workers { state, queues, .. } = &*self.workers;
        let idle = state.with(|section| {
            if section.bits.intersects(CLOSED | INJECTED) {
                return false;
            }
            section.bits.insert(IDLE);
            section.state.idle.push((self.index, self.park.clone()));
            true
        });
        if !idle {
            return;
        }
        // By sections and not by loads: they order this look with each push.
        let found = queues
            .iter()
            .any(|queue| queue.with(|section| section.bits.contains(FULL)));
        if !found {
            self.park.park();
        }
        // Whoever unparks takes it from among the idle; but it may not have been
        // parked, or the unpark may be an older one.
        state.with(|section| {
            section.state.idle.retain(|&(index, _)| index != self.index);
            if section.state.idle.is_empty() {
                section.bits.remove(IDLE);
            }
        });
    }
}

/// Cancels what is left, and leaves nothing in the queue, which the tasks have.
impl<B: BlockingBackend> Drop for Worker<B> {
    fn drop(&mut self) {
        while let Some(task) = self.workers.tasks.with(|section| section.state.pop()) {
            task.cancel();
        }
        let left = self.workers.queues[self.index].with(|section| {
            (
                section.state.newest.take(),
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
