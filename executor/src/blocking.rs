//! The threads of an executor for calls that may block.
//!
//! ```text
//!   call ──▶ queue, and in the same section:
//!              an idle thread is unparked ──▶ it takes a call, or is idle again
//!              or, below the bound, a new thread is started
//!
//!   a thread: takes calls ⇄ idle ──for too long, or the end──▶ gone
//!   the system refuses the only thread ──▶ the calls that are queued are cancelled
//! ```
//!
//! Invariants:
//!
//! 1. While a call is queued, there is a thread that will look into the queue before it
//!    is idle, or one that is being started. If a start is refused and there is neither,
//!    the section that finds this takes all calls out of the queue.
//! 2. The lock of the queue also protects which threads are idle. So a thread that has
//!    been unparked for a call does not end because it was idle for too long.
//!
//! All of this is generic over the backend, so that loom and shuttle explore it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use reveille::backend::{BlockingBackend, Park};
use reveille::protocol::{Bits, StateLock};
use reveille::raw::{Aborted, Join, Metadata, Owned, RunResult, Runnable, Schedule, task};

use crate::registry::Registry;
use crate::task::{Running, cancel};

/// The executor has ended. A call is refused.
const CLOSED: Bits = Bits::new(1);

/// Calls a function with the executor as the current one.
type Within = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// Starts threads, and puts them to sleep.
pub(crate) trait Threads<B: BlockingBackend>: Send + Sync + 'static {
    /// Starts a thread.
    fn start(&self, life: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Sleeps until `park` is unparked, or until a thread has been idle for too long.
    /// Returns whether it was idle for too long.
    fn park(&self, park: &B::Park) -> bool;

    /// Called after each call that is done.
    fn done(&self) {}
}

pub(crate) struct Blocking<B: BlockingBackend> {
    state: StateLock<State<B>, B>,
    tasks: StateLock<Registry<B>, B>,
    threads: Box<dyn Threads<B>>,
    max_threads: usize,
}

/// `threads` is called outside the lock, and shares no state with the executor.
impl<B: BlockingBackend> RefUnwindSafe for Blocking<B> {}

struct State<B: BlockingBackend> {
    queue: VecDeque<Runnable<B>>,
    /// The number of threads that exist or are being started.
    threads: usize,
    /// The threads that wait for a call. The last is the next to be unparked.
    idle: Vec<Arc<B::Park>>,
    within: Option<Within>,
    closed: bool,
}

/// What a thread does next.
enum Next<B: BlockingBackend> {
    Call(Runnable<B>),
    Idle,
    End,
}

/// What has to be done for a call that was pushed.
enum Pushed<B: BlockingBackend> {
    Refused(Runnable<B>),
    Unparks(Arc<B::Park>),
    Starts,
    Waits,
}

/// A call that has been queued, or refused because the executor has ended.
pub(crate) struct Spawned<T, B: BlockingBackend> {
    pub(crate) join: Join<T, B>,
    /// The caller has to cancel it.
    pub(crate) refused: Option<Owned<B>>,
}

/// The scheduler of calls.
struct ToBlocking<B: BlockingBackend>(Arc<Blocking<B>>);

impl<B: BlockingBackend> Blocking<B> {
    /// Creates the threads, of which there are at most `max_threads`.
    pub(crate) fn new(max_threads: usize, threads: impl Threads<B>) -> Arc<Self> {
        let state = State {
            queue: VecDeque::new(),
            threads: 0,
            idle: Vec::new(),
            within: None,
            closed: false,
        };
        Arc::new(Self {
            state: StateLock::new_in(Bits::EMPTY, state),
            tasks: StateLock::new_in(Bits::EMPTY, Registry::default()),
            threads: Box::new(threads),
            max_threads,
        })
    }

    /// Sets how the executor becomes the current one. It is called before there is a
    /// call.
    pub(crate) fn run_within(&self, within: Within) {
        let before = self
            .state
            .with(|section| section.state.within.replace(within));
        drop(before);
    }

    /// Calls `f` with the executor as the current one. After the end of the executor
    /// there is none.
    fn within(&self, mut f: impl FnMut()) {
        match self.state.with(|section| section.state.within.clone()) {
            Some(within) => within(&mut f),
            None => f(),
        }
    }

    /// Runs a call, or cancels it, with the call as the running task.
    fn end(&self, call: Runnable<B>, end: impl Fn(Runnable<B>) -> Option<u32>) {
        let (mut call, mut completed) = (Some(call), None);
        self.within(|| {
            if let Some(call) = call.take() {
                let _running = Running::enter(call.id());
                completed = end(call);
            }
        });
        if let Some(key) = completed {
            self.done(key);
        }
    }

    /// Queues a call, unless the executor has ended.
    ///
    /// Returns an error if the system refused a thread and no other thread will take the
    /// call. The call has been cancelled then, and so has every other call in the queue.
    pub(crate) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce() -> T + Send + 'static,
        metadata: Metadata<()>,
    ) -> io::Result<Spawned<T, B>> {
        let scheduler = ToBlocking(self.clone());
        let (runnable, held, join) = task(async { call() }, scheduler, metadata);
        let refused = self.tasks.with(|section| {
            if section.bits.contains(CLOSED) {
                return Some(held);
            }
            section.state.insert(held);
            None
        });
        if refused.is_none() {
            self.push(runnable)?;
        }
        Ok(Spawned { join, refused })
    }

    fn push(self: &Arc<Self>, call: Runnable<B>) -> io::Result<()> {
        let pushed = self.state.with(|section| {
            let state = section.state;
            if state.closed {
                return Pushed::Refused(call);
            }
            state.queue.push_back(call);
            if let Some(idle) = state.idle.pop() {
                return Pushed::Unparks(idle);
            }
            if state.threads == self.max_threads {
                return Pushed::Waits;
            }
            state.threads += 1;
            Pushed::Starts
        });
        match pushed {
            // The task of a refused runnable is cancelled, or will be.
            Pushed::Refused(call) => drop(call),
            Pushed::Unparks(idle) => idle.unpark(),
            Pushed::Starts => self.start()?,
            Pushed::Waits => {}
        }
        Ok(())
    }

    fn start(self: &Arc<Self>) -> io::Result<()> {
        let this = self.clone();
        let Err(error) = self.threads.start(Box::new(move || this.serve())) else {
            return Ok(());
        };
        let stranded = self.state.with(|section| {
            let state = section.state;
            state.threads -= 1;
            (state.threads == 0).then(|| std::mem::take(&mut state.queue))
        });
        let Some(stranded) = stranded else {
            // Another thread takes the call, or its refused start cancels the call as
            // below.
            return Ok(());
        };
        for call in stranded {
            self.end(call, Runnable::cancel);
        }
        Err(error)
    }

    fn serve(&self) {
        let park = Arc::new(B::Park::new());
        loop {
            match self.state.with(|section| section.state.next(&park)) {
                Next::Call(call) => self.end(call, |call| match call.run() {
                    RunResult::Completed(completion) => Some(completion.key()),
                    RunResult::Pending | RunResult::Woken(_) => None,
                }),
                Next::End => return,
                Next::Idle => {
                    let too_long = self.threads.park(&park);
                    let ends = |state: &mut State<B>| state.wakes(&park, too_long);
                    if self.state.with(|section| ends(section.state)) {
                        return;
                    }
                }
            }
        }
    }

    /// Removes a call that is done.
    fn done(&self, key: u32) {
        drop(self.tasks.with(|section| section.state.remove(key)));
        self.threads.done();
    }

    /// Returns whether every call is done.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.with(|section| section.state.len() == 0)
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.state.with(|section| section.state.threads)
    }

    /// Returns the number of threads that wait for a call.
    pub(crate) fn idle(&self) -> usize {
        self.state.with(|section| section.state.idle.len())
    }

    /// Returns the number of calls that wait for a thread.
    pub(crate) fn queued(&self) -> usize {
        self.state.with(|section| section.state.queue.len())
    }

    /// Refuses further calls, and cancels those that have not begun.
    pub(crate) fn close(&self) {
        self.tasks.with(|section| section.bits.insert(CLOSED));
        let (queue, idle) = self.state.with(|section| {
            let state = section.state;
            state.closed = true;
            (
                std::mem::take(&mut state.queue),
                std::mem::take(&mut state.idle),
            )
        });
        for park in idle {
            park.unpark();
        }
        self.within(|| {
            while let Some(call) = self.tasks.with(|section| section.state.pop()) {
                cancel(&call);
            }
        });
        // `within` owns the executor, which owns this. Dropping it breaks the cycle.
        let within = self.state.with(|section| section.state.within.take());
        drop((queue, within));
    }
}

impl<B: BlockingBackend> State<B> {
    fn next(&mut self, park: &Arc<B::Park>) -> Next<B> {
        if let Some(call) = self.queue.pop_front() {
            return Next::Call(call);
        }
        if self.closed {
            self.threads -= 1;
            return Next::End;
        }
        self.idle.push(park.clone());
        Next::Idle
    }

    /// Removes a thread from the idle ones. Returns whether it has to end: it was idle
    /// for too long, and has not been unparked for a call.
    fn wakes(&mut self, park: &Arc<B::Park>, too_long: bool) -> bool {
        let index = self.idle.iter().position(|idle| Arc::ptr_eq(idle, park));
        let Some(index) = index else {
            return false;
        };
        self.idle.remove(index);
        self.threads -= usize::from(too_long);
        too_long
    }
}

impl<B: BlockingBackend> Schedule<B> for ToBlocking<B> {
    /// A call is queued once, by [`Blocking::spawn`], and never waits for a wake.
    fn schedule(&self, task: Runnable<B>) {
        drop(task);
    }

    /// Drops at once what the call has captured, instead of when a thread takes it.
    fn aborted(&self, task: Aborted<'_, B>) {
        let (mut task, mut completed) = (Some(task), None);
        self.0.within(|| {
            if let Some(task) = task.take() {
                let _running = Running::enter(task.id());
                completed = task.cancel();
            }
        });
        if let Some(key) = completed {
            self.0.done(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use reveille::backend::{Native, StdPark};
    use reveille::protocol::block_on;
    use reveille::raw::{Failure, Outcome};

    use super::*;

    /// Refuses threads while `refuses` is set. Each start waits until `together` starts
    /// are under way.
    struct Refuses {
        refuses: Arc<AtomicBool>,
        together: std::sync::Barrier,
        threads: Mutex<Vec<thread::JoinHandle<()>>>,
    }

    impl Threads<Native> for Refuses {
        fn start(&self, life: Box<dyn FnOnce() + Send>) -> io::Result<()> {
            self.together.wait();
            if self.refuses.load(Ordering::SeqCst) {
                return Err(io::Error::other("refused"));
            }
            self.threads.lock().unwrap().push(thread::spawn(life));
            Ok(())
        }

        fn park(&self, park: &StdPark) -> bool {
            park.park();
            false
        }
    }

    fn refusing(together: usize, max_threads: usize) -> (Arc<Blocking<Native>>, Arc<AtomicBool>) {
        let refuses = Arc::new(AtomicBool::new(true));
        let system = Refuses {
            refuses: refuses.clone(),
            together: std::sync::Barrier::new(together),
            threads: Mutex::default(),
        };
        let blocking = Blocking::new(max_threads, system);
        blocking.run_within(Arc::new(|f| f()));
        (blocking, refuses)
    }

    fn metadata() -> Metadata<()> {
        Metadata {
            id: 0,
            location: Location::caller(),
            name: (),
        }
    }

    /// Makes a call. Returns its outcome, or the error if it is refused a thread.
    fn call(
        blocking: &Arc<Blocking<Native>>,
        ran: &Arc<AtomicUsize>,
    ) -> io::Result<Outcome<usize>> {
        let ran = ran.clone();
        let Spawned { mut join, refused } =
            blocking.spawn(move || ran.fetch_add(1, Ordering::SeqCst), metadata())?;
        assert!(refused.is_none());
        Ok(block_on::<Native, _>(std::future::poll_fn(|cx| {
            join.poll(cx)
        })))
    }

    #[test]
    fn a_call_without_a_thread_is_not_run_by_the_next() {
        let (blocking, refuses) = refusing(1, 8);
        let ran = Arc::new(AtomicUsize::new(0));
        call(&blocking, &ran).expect_err("the system refuses");
        assert_eq!(Arc::strong_count(&ran), 1, "the refused call still exists");
        refuses.store(false, Ordering::SeqCst);
        let next = call(&blocking, &ran).expect("the system starts a thread");
        assert_eq!(next.expect("the call runs"), 0);
        blocking.close();
    }

    /// Makes calls that are refused a thread. Each returns the error, or is cancelled.
    fn all_end(calls: usize, together: usize, max_threads: usize) {
        let (blocking, refuses) = refusing(together, max_threads);
        let ran = Arc::new(AtomicUsize::new(0));
        let (ended, ends) = mpsc::channel();
        for _ in 0..calls {
            let (blocking, ran, ended) = (blocking.clone(), ran.clone(), ended.clone());
            thread::spawn(move || ended.send(call(&blocking, &ran)).unwrap());
        }
        let mut refused = 0;
        for _ in 0..calls {
            let end = ends.recv_timeout(std::time::Duration::from_secs(20));
            match end.expect("a handle waits for a thread that never comes") {
                Err(_) => refused += 1,
                Ok(outcome) => assert!(matches!(outcome, Err(Failure::Cancelled))),
            }
        }
        assert!(refused > 0, "no call returned the error of the system");
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        let state = |state: &mut State<Native>| (state.threads, state.queue.len());
        let left = blocking.state.with(|section| state(section.state));
        assert_eq!(left, (0, 0), "threads and calls are left");
        drop(refuses);
    }

    #[test]
    fn of_two_calls_that_are_refused_at_once_none_waits_for_ever() {
        all_end(2, 2, 8);
    }

    /// The second call finds that the bound is reached, by a thread that is never
    /// started.
    #[test]
    fn a_call_that_waits_for_a_thread_that_is_refused_does_not_wait_for_ever() {
        let (blocking, _) = refusing(2, 1);
        let ran = Arc::new(AtomicUsize::new(0));
        let first = thread::spawn({
            let (blocking, ran) = (blocking.clone(), ran.clone());
            move || call(&blocking, &ran)
        });
        while blocking.state.with(|section| section.state.threads) == 0 {
            thread::yield_now();
        }
        let Spawned { mut join, .. } = blocking
            .spawn(|| (), metadata())
            .expect("the call is queued");
        blocking.threads.start(Box::new(|| ())).unwrap_err();
        first.join().unwrap().expect_err("the system refuses");
        let outcome = block_on::<Native, _>(std::future::poll_fn(|cx| join.poll(cx)));
        assert!(matches!(outcome, Err(Failure::Cancelled)));
    }
}
