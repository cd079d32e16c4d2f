//! The engine of the executors of one thread.
//!
//! ```text
//!   wake on this thread ─────▶ queue ──▶ run ──▶ woken meanwhile: back into the queue
//!   wake on another ─▶ inbox ────▲
//!
//!   queue empty ──▶ timers fire ──▶ nothing to do ──▶ a virtual clock moves, or parked
//! ```
//!
//! The future of `block_on` is queued like any task.
//!
//! Invariants:
//!
//! 1. What is woken on the thread that runs the executor goes into the queue, without a
//!    lock. What is woken elsewhere goes into the inbox, under its lock. The thread parks
//!    in the section that finds the inbox empty (P2). The wake that fills the inbox
//!    unparks it.
//! 2. Ready tasks run before timers fire. They run in the order in which they were woken,
//!    unless the executor draws the order. The inbox is read and timers fire when a
//!    `block_on` begins, and after each [`ROUND`] polls, even if tasks are ready. The tasks
//!    that are woken then come first, in the order of deadlines, at most half a round of
//!    them in each round. So a sleep is not late by the length of the queue, and no task
//!    in the queue is kept out.

#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::Future;
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use reveille::backend::{Backend, Native, Park, StdPark};
use reveille::protocol::{Bits, Section, StateLock};
use reveille::raw::{Metadata, Name, Runnable, Schedule, local_task};
use reveille::time::{Driver, Timers};

use crate::blocking::Blocking;
use crate::catch_panic::catch_panic;
use crate::context;
use crate::dump::Dump;
use crate::long_poll::Polls;
use crate::registry::Registry;
use crate::spike::give_back;
use crate::task::coop::Budget;
use crate::task::{JoinHandle, cancel, cancel_refused, describe};
use crate::thread_set::{SystemThreads, ThreadOptions, ThreadSet};

/// The maximum number of polls before the inbox is read and timers fire.
const ROUND: u32 = 256;

/// The maximum number of tasks that timers have woken which come before a round of others.
const FIRST: usize = ROUND as usize / 2;

/// The inbox is not empty.
const FULL: Bits = Bits::new(1);
/// The thread is parked, or about to be.
const PARKED: Bits = Bits::new(1 << 1);
/// The next park returns at once.
const NOTIFIED: Bits = Bits::new(1 << 2);
/// The executor has ended.
const CLOSED: Bits = Bits::new(1 << 3);

/// Something that is ready: a task, or the future of `block_on`.
pub(crate) enum Item {
    Task(Runnable<Native>),
    Main,
}

/// The differences between executors of one thread.
pub(crate) trait Order: Debug {
    /// Removes the next item from the queue.
    fn next(&mut self, queue: &mut VecDeque<Item>) -> Option<Item>;

    /// Sees the metadata of a task that is being spawned. Returns the number of the task.
    fn spawned(&mut self, metadata: &Metadata, timers: &Timers) -> u64 {
        let _ = timers;
        metadata.id
    }

    /// Sees a task that is about to be polled.
    fn polled(&mut self, metadata: &Metadata, timers: &Timers) {
        let _ = (metadata, timers);
    }

    /// Called if nothing is ready and no deadline is left, when the thread is about to be
    /// parked. Returns a message if it must not be parked.
    fn stuck(&mut self) -> Option<String> {
        None
    }
}

/// First in, first out.
#[derive(Debug)]
pub(crate) struct InTurn;

impl Order for InTurn {
    #[inline]
    fn next(&mut self, queue: &mut VecDeque<Item>) -> Option<Item> {
        queue.pop_front()
    }
}

pub(crate) struct Single {
    shared: Arc<Shared>,
    queue: RefCell<VecDeque<Item>>,
    /// What timers have woken while tasks were ready.
    fired: RefCell<VecDeque<Item>>,
    tasks: RefCell<Registry>,
    order: RefCell<Box<dyn Order>>,
    /// The order is not [`InTurn`].
    ordered: bool,
    polls: Polls,
    driver: Driver,
    main: Arc<Main>,
    /// Ends the park.
    deadline_waker: Waker,
    running: Cell<bool>,
    /// The executor has ended: a task that is spawned is cancelled.
    ended: Cell<bool>,
    /// Created by the first blocking call.
    blocking: OnceCell<CallThreads>,
}

/// The threads for blocking calls.
struct CallThreads {
    blocking: Arc<Blocking<Native>>,
    set: Arc<ThreadSet>,
}

/// The maximum number of blocking calls under way, and how long a thread waits for the
/// next. These are also the defaults of a pool.
pub(crate) const MAX_BLOCKING: usize = 512;
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

thread_local! {
    /// The innermost executor that runs on this thread. Its queue takes what is woken
    /// here.
    static RUNS: RefCell<Option<Rc<Single>>> = const { RefCell::new(None) };
}

/// The only owner of the executor. Dropping it ends the executor.
pub(crate) struct Owner(Rc<Single>);

/// The part of the executor that other threads reach.
struct Shared {
    inbox: StateLock<VecDeque<Item>, Native>,
    park: StdPark,
}

/// The scheduler of the tasks.
struct ToSingle(Arc<Shared>);

/// The waker of the future of `block_on`.
struct Main {
    shared: Arc<Shared>,
    queued: AtomicBool,
}

struct DeadlineWaker(Arc<Shared>);

impl Owner {
    pub(crate) fn new(order: Option<Box<dyn Order>>, polls: Polls, timers: &Timers) -> Self {
        let shared = Arc::new(Shared {
            inbox: StateLock::new_in(Bits::EMPTY, VecDeque::new()),
            park: StdPark::new(),
        });
        Self(Rc::new(Single {
            queue: RefCell::default(),
            fired: RefCell::default(),
            tasks: RefCell::default(),
            ordered: order.is_some(),
            order: RefCell::new(order.unwrap_or_else(|| Box::new(InTurn))),
            polls,
            driver: timers.driver(),
            main: Arc::new(Main {
                shared: shared.clone(),
                queued: AtomicBool::new(false),
            }),
            deadline_waker: Waker::from(Arc::new(DeadlineWaker(shared.clone()))),
            running: Cell::new(false),
            ended: Cell::new(false),
            blocking: OnceCell::new(),
            shared,
        }))
    }
}

impl Single {
    pub(crate) fn timers(&self) -> &Timers {
        self.driver.timers()
    }

    #[track_caller]
    pub(crate) fn spawn<F>(&self, name: impl Name, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let mut metadata = describe(name);
        if self.ordered {
            let mut order = self.order.borrow_mut();
            let seen = Metadata {
                id: metadata.id,
                location: metadata.location,
                name: metadata.name.get().cloned(),
            };
            metadata.id = order.spawned(&seen, self.timers());
        }
        let scheduler = ToSingle(self.shared.clone());
        let (runnable, held, join) = local_task(future, scheduler, metadata);
        if self.ended.get() {
            cancel_refused(held);
            return JoinHandle::new(join);
        }
        self.tasks.borrow_mut().insert(held);
        self.queue.borrow_mut().push_back(Item::Task(runnable));
        JoinHandle::new(join)
    }

    /// Describes what each task does.
    pub(crate) fn dump(&self) -> Dump {
        let (mut tasks, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            next = self.tasks.borrow().dump(from, &mut tasks);
        }
        Dump::new(tasks)
    }

    /// Runs a function that may block, on a thread for such calls.
    #[track_caller]
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        if self.ordered {
            // What other threads do would not follow from the seed.
            return self.spawn((), async { call() });
        }
        let threads = self.blocking.get_or_init(|| self.call_threads());
        if self.ended.get() {
            threads.blocking.close();
        }
        JoinHandle::of_call(threads.blocking.spawn(call, describe(())))
    }

    fn call_threads(&self) -> CallThreads {
        let set = ThreadSet::new(ThreadOptions::default());
        let threads = SystemThreads {
            set: set.clone(),
            keep_alive: KEEP_ALIVE,
            done: Some(self.deadline_waker.clone()),
        };
        let blocking = Blocking::new(MAX_BLOCKING, threads);
        let timers = self.timers().clone();
        blocking.run_within(Arc::new(move |f| {
            let _timers = timers.enter();
            f();
        }));
        CallThreads { blocking, set }
    }

    /// Runs a future to completion, and tasks meanwhile.
    #[track_caller]
    pub(crate) fn block_on<F: Future>(self: &Rc<Self>, name: &str, future: F) -> F::Output {
        let mut future = pin!(future);
        let _entered = self.enter(name);
        self.main.wake_by_ref();
        // A call that ends within its first round would otherwise never fire timers.
        self.fire();
        let waker = Waker::from(self.main.clone());
        let mut cx = Context::from_waker(&waker);
        loop {
            let round = self.round(&mut || match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            });
            match round {
                Round::Main(output) => return output,
                Round::Over => self.fire(),
                Round::Idle => self.rest(),
            }
        }
    }

    /// Runs tasks until none is ready. Timers do not fire.
    #[track_caller]
    pub(crate) fn run_until_idle(self: &Rc<Self>, name: &str) {
        let _entered = self.enter(name);
        while !matches!(self.round::<()>(&mut || None), Round::Idle) {}
    }

    #[track_caller]
    fn enter(self: &Rc<Self>, name: &str) -> impl Drop + use<> {
        assert!(
            !self.running.replace(true),
            "{name} was called inside a future that the same executor runs, which would stop the \
             outer future while the inner one waits: `.await` the inner future, or spawn it and \
             `.await` its handle"
        );
        Inside {
            _current: self.enter_thread(),
            single: self.clone(),
        }
    }

    /// Makes this the current executor of the thread.
    fn enter_thread(self: &Rc<Self>) -> impl Drop + use<> {
        let before = RUNS.try_with(|runs| runs.replace(Some(self.clone())));
        OnThread {
            _timers: self.timers().enter(),
            _current: context::enter(self.clone()),
            before: before.ok().flatten(),
        }
    }

    /// Runs up to [`ROUND`] ready items, in order.
    #[inline]
    fn round<T>(&self, main: &mut dyn FnMut() -> Option<T>) -> Round<T> {
        // First, because a call that ends within its first round would otherwise never
        // read the inbox.
        self.collect();
        for _ in 0..ROUND {
            let next = if self.ordered {
                let mut order = self.order.borrow_mut();
                order.next(&mut self.queue.borrow_mut())
            } else {
                self.queue.borrow_mut().pop_front()
            };
            match next {
                Some(Item::Task(runnable)) => self.run(runnable),
                Some(Item::Main) => {
                    // A swap, not a store: a wake that found the future queued happens
                    // before this poll, which sees what was written before that wake.
                    self.main.queued.swap(false, Ordering::AcqRel);
                    let _budget = Budget::enter();
                    if let Some(output) = main() {
                        return Round::Main(output);
                    }
                }
                None if self.collect() || self.admit() => {}
                None => {
                    give_back(&mut self.queue.borrow_mut());
                    give_back(&mut self.fired.borrow_mut());
                    return Round::Idle;
                }
            }
        }
        Round::Over
    }

    #[inline]
    fn run(&self, runnable: Runnable<Native>) {
        if self.ordered {
            let mut order = self.order.borrow_mut();
            order.polled(&runnable.metadata(), self.timers());
        }
        let woken = self.polls.run(runnable, |completion| {
            let owned = self.tasks.borrow_mut().remove(completion.key());
            completion.complete(owned);
        });
        if let Some(runnable) = woken {
            self.queue.borrow_mut().push_back(Item::Task(runnable));
        }
    }

    /// Moves the inbox into the queue. Returns whether there was something.
    fn collect(&self) -> bool {
        let Shared { inbox, .. } = &*self.shared;
        if !inbox.load().contains(FULL) {
            return false;
        }
        let mut queue = self.queue.borrow_mut();
        inbox.with(|Section { bits, state, .. }| {
            bits.remove(FULL);
            queue.append(state);
            give_back(state);
        });
        true
    }

    /// Fires what is due, even if tasks are ready. What this wakes comes first.
    fn fire(&self) {
        if self.ordered {
            catch_panic(|| self.driver.fire());
            return;
        }
        self.queue.swap(&self.fired);
        catch_panic(|| self.driver.fire());
        self.queue.swap(&self.fired);
        self.admit();
    }

    /// Puts what timers have woken in front of the queue, as much as comes before a round.
    /// Returns whether there was something.
    fn admit(&self) -> bool {
        let mut fired = self.fired.borrow_mut();
        if fired.is_empty() {
            return false;
        }
        let count = fired.len().min(FIRST);
        let mut queue = self.queue.borrow_mut();
        fired
            .drain(..count)
            .rev()
            .for_each(|item| queue.push_front(item));
        true
    }

    /// Fires timers, and sleeps if no task is ready after that.
    fn rest(&self) {
        let mut deadline_waker = Context::from_waker(&self.deadline_waker);
        let Some(next) = catch_panic(|| self.driver.turn(&mut deadline_waker)) else {
            return; // The next call fires what is left.
        };
        // A blocking call takes real time, so virtual time stands still while one is
        // under way. Otherwise a timeout around the call would expire at once. The
        // deadline waker notifies when the call ends.
        let calls = self.blocking.get();
        let is_idle = calls.is_none_or(|calls| calls.blocking.is_idle());
        if !self.queue.borrow().is_empty() || is_idle && self.timers().idle() {
            return;
        }
        if next.is_none()
            && let Some(why) = self.order.borrow_mut().stuck()
        {
            panic!("{why}");
        }
        self.shared
            .park(next.map(|next| next - self.timers().now()));
    }
}

/// Cancels the tasks that are left, on this thread, as the current executor. Their
/// destructors can use what tasks can. A task that they spawn is cancelled at once.
impl Drop for Owner {
    fn drop(&mut self) {
        let single = &self.0;
        let _current = single.enter_thread();
        single.ended.set(true);
        single.polls.close();
        if let Some(CallThreads { blocking, .. }) = single.blocking.get() {
            blocking.close();
        }
        let unread = single.shared.inbox.with(|section| {
            section.bits.insert(CLOSED);
            std::mem::take(section.state)
        });
        let next = || single.tasks.borrow_mut().pop();
        while let Some(task) = next() {
            cancel(&task);
        }
        // The futures of these tasks have been dropped.
        drop((unread, single.queue.take(), single.fired.take()));
        if let Some(CallThreads { set, .. }) = single.blocking.get()
            && !set.is_current()
        {
            set.join(None);
        }
    }
}

impl Deref for Owner {
    type Target = Rc<Single>;

    fn deref(&self) -> &Rc<Single> {
        &self.0
    }
}

/// What ended a round.
enum Round<T> {
    /// The future of `block_on` is ready.
    Main(T),
    /// Something may still be ready.
    Over,
    /// Nothing is ready.
    Idle,
}

/// The executor runs, until this is dropped.
struct Inside<D> {
    _current: D,
    single: Rc<Single>,
}

/// The executor is the current one of the thread, until this is dropped.
struct OnThread {
    _current: context::Entered,
    _timers: reveille::time::Entered,
    before: Option<Rc<Single>>,
}

impl Drop for OnThread {
    fn drop(&mut self) {
        let before = self.before.take();
        // Dropped outside of the borrow, because it can be the last reference.
        drop(RUNS.try_with(|runs| runs.replace(before)));
    }
}

impl<D> Drop for Inside<D> {
    fn drop(&mut self) {
        self.single.running.set(false);
    }
}

impl Shared {
    #[inline]
    fn push(&self, item: Item) {
        let mut item = Some(item);
        // On a thread that ends, no executor runs any more.
        let _ = RUNS.try_with(|runs| {
            if let Some(single) = &*runs.borrow()
                && std::ptr::eq(&*single.shared, self)
            {
                single.queue.borrow_mut().extend(item.take());
            }
        });
        if let Some(item) = item {
            self.push_from_elsewhere(item);
        }
    }

    #[cold]
    fn push_from_elsewhere(&self, item: Item) {
        let mut refused = None;
        let parked = self.inbox.with(|Section { bits, state, .. }| {
            if bits.contains(CLOSED) {
                refused = Some(item);
                return false;
            }
            let parked = bits.contains(PARKED);
            *bits = bits.without(PARKED) | FULL;
            state.push_back(item);
            parked
        });
        drop(refused);
        if parked {
            self.park.unpark();
        }
    }

    /// Sleeps until something is in the inbox, the deadline waker notifies, or
    /// `at_most` has passed.
    fn park(&self, at_most: Option<Duration>) {
        let parks = self
            .inbox
            .update(|bits| (!bits.intersects(FULL | NOTIFIED)).then(|| bits | PARKED));
        if parks.is_ok() {
            assert!(
                !Native::is_watched(),
                "an executor waits on the thread of a checker, on which the tasks that it waits for \
                 run too: spawn its tasks on the handle of the model, or await them in a task of it"
            );
            match at_most {
                Some(duration) => self.park.park_timeout(duration),
                None => self.park.park(),
            }
        }
        let awake = self
            .inbox
            .update(|bits| Some(bits.without(PARKED | NOTIFIED)));
        debug_assert!(awake.is_ok());
    }

    fn notify(&self) {
        let notified = self
            .inbox
            .update(|bits| Some(bits.without(PARKED) | NOTIFIED));
        if notified.is_ok_and(|before| before.contains(PARKED)) {
            self.park.unpark();
        }
    }
}

impl Schedule<Native> for ToSingle {
    #[inline]
    fn schedule(&self, task: Runnable<Native>) {
        self.0.push(Item::Task(task));
    }
}

impl Wake for Main {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.shared.push(Item::Main);
        }
    }
}

impl Wake for DeadlineWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A deadline comes between the turn and the park.
    #[test]
    fn a_notification_before_the_park_ends_it() {
        let (parked, ended) = mpsc::channel();
        let parks = thread::spawn(move || {
            let shared = Shared {
                inbox: StateLock::new_in(Bits::EMPTY, VecDeque::new()),
                park: StdPark::new(),
            };
            for _ in 0..2 {
                shared.notify();
                shared.park(None);
            }
            parked.send(()).expect("the test waits for the parks");
        });
        let ended = ended.recv_timeout(Duration::from_secs(20));
        ended.expect("a park goes on for ever, although it was notified");
        parks.join().expect("the thread ends without a panic");
    }
}
