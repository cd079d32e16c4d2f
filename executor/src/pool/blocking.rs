//! The threads of a pool on which calls may block.
//!
//! ```text
//!   call ──▶ queue ──▶ an idle thread, or a new one below the bound
//!   a thread that was idle for so long ends
//! ```
//!
//! Invariant: while something is queued, a thread is on its way to it, or there are
//! as many as there may be.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use reveille::protocol::{Native, Runnable, Schedule};

thread_local! {
    /// Whose calls this thread runs, by its address; 0 where it runs none.
    static SERVED: Cell<usize> = const { Cell::new(0) };
}

/// What a call is run by.
type Run = Arc<dyn Fn(Runnable<Native>) + Send + Sync>;

pub(crate) struct Blocking {
    state: Mutex<State>,
    called: Condvar,
    ended: Condvar,
    most: usize,
    keep_alive: Duration,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Runnable<Native>>,
    threads: usize,
    /// Threads that wait for a call, each of which will take one.
    idle: usize,
    run: Option<Run>,
    closed: bool,
}

/// The scheduler of calls.
pub(crate) struct ToBlocking(pub(crate) Arc<Blocking>);

impl Blocking {
    pub(crate) fn new(most: usize, keep_alive: Duration) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            called: Condvar::new(),
            ended: Condvar::new(),
            most,
            keep_alive,
        })
    }

    /// Says how calls are run, before there is one.
    pub(crate) fn run_by(&self, run: Run) {
        self.lock().run = Some(run);
    }

    fn token(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether this is one of its threads: it would wait for itself.
    pub(crate) fn is_current(&self) -> bool {
        SERVED.try_with(Cell::get) == Ok(self.token())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(self: &Arc<Self>, call: Runnable<Native>) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return drop(call);
        }
        state.queue.push_back(call);
        if state.queue.len() > state.idle && state.threads < self.most {
            state.threads += 1;
            drop(state);
            self.start();
        } else {
            self.called.notify_one();
        }
    }

    fn start(self: &Arc<Self>) {
        let this = self.clone();
        let started = thread::Builder::new()
            .name("reveille-blocking".into())
            .spawn(move || this.serve());
        if let Err(error) = started {
            let mut state = self.lock();
            state.threads -= 1;
            // Without any thread nobody would come for it.
            assert!(
                state.threads > 0,
                "the system refused a thread for a blocking call: {error}"
            );
        }
    }

    fn serve(&self) {
        SERVED.set(self.token());
        while let Some((call, run)) = self.next() {
            run(call);
        }
        self.ended.notify_all();
    }

    /// The next call; none where there was none for too long.
    fn next(&self) -> Option<(Runnable<Native>, Run)> {
        let mut state = self.lock();
        // None where it lies beyond what an instant can be.
        let deadline = Instant::now().checked_add(self.keep_alive);
        loop {
            if let Some(call) = state.queue.pop_front() {
                let run = state.run.clone().expect("it is set before any call");
                return Some((call, run));
            }
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if state.closed || left.is_zero() {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let waited = self.called.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }

    /// Takes no further calls, and leaves those that have not begun.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.queue);
        let run = state.run.take();
        drop(state);
        self.called.notify_all();
        drop((left, run));
    }

    /// Waits until its threads have ended, or the time is over.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut state = self.lock();
        while state.threads > 0 {
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return false;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Schedule<Native> for ToBlocking {
    fn schedule(&self, task: Runnable<Native>) {
        self.0.push(task);
    }
}
