//! The threads of an executor: how many run, and how each is joined.
//!
//! ```text
//!   start ──▶ runs ──its work ends──▶ last ended ──the next ends, or `join`──▶ joined
//! ```
//!
//! Invariant: a thread that ends stores its own handle as the last that ended, and joins
//! the one that was stored before. So at most one ended thread has not been joined.
//! Joining that one joins all.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::panic::RefUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use reveille::backend::{Native, StdPark};

use crate::blocking::Threads;
use crate::catch_panic::catch_panic;
use crate::context;

thread_local! {
    /// The token of the set that this thread belongs to, or 0. It stays until the thread
    /// is gone, for the destructors of its thread-locals.
    static SET: Cell<usize> = const { Cell::new(0) };
}

pub(crate) struct ThreadSet {
    token: usize,
    options: ThreadOptions,
    state: Mutex<State>,
    ended: Condvar,
}

/// A function that is called on a thread.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// What the threads of a set have in common.
#[derive(Clone, Default)]
pub(crate) struct ThreadOptions {
    /// If there is none, the name says what the thread is for.
    pub(crate) name: Option<String>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
}

/// The hooks are called outside the lock of the set, and share no state with it.
impl RefUnwindSafe for ThreadOptions {}

impl fmt::Debug for ThreadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadOptions")
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

/// Calls the hook of a thread that stops, when it is dropped. A panic of the hook does
/// not keep the thread from ending as others do.
struct Stops(Option<Hook>);

impl Drop for Stops {
    fn drop(&mut self) {
        if let Some(hook) = &self.0 {
            catch_panic(|| hook());
        }
    }
}

#[derive(Default)]
struct State {
    next: u64,
    running: HashMap<u64, JoinHandle<()>>,
    last_ended: Option<JoinHandle<()>>,
}

/// A thread of a set, while it runs.
struct Member {
    set: Arc<ThreadSet>,
    key: u64,
}

impl ThreadSet {
    pub(crate) fn new(options: ThreadOptions) -> Arc<Self> {
        Arc::new(Self {
            token: context::new_token(),
            options,
            state: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Starts a thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        name: String,
        life: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        // The lock is held until the handle is stored. A thread that ends at once waits
        // for it, and then finds its handle.
        let mut state = self.lock();
        let key = state.next;
        let set = self.clone();
        let options = &self.options;
        let mut builder = thread::Builder::new().name(options.name.clone().unwrap_or(name));
        if let Some(bytes) = options.stack_size {
            builder = builder.stack_size(bytes);
        }
        let (on_start, on_stop) = (options.on_start.clone(), options.on_stop.clone());
        let thread = builder.spawn(move || {
            SET.set(set.token);
            let _member = Member { set, key };
            if let Some(hook) = on_start {
                catch_panic(|| hook());
            }
            let _stops = Stops(on_stop);
            life();
        })?;
        state.next += 1;
        state.running.insert(key, thread);
        Ok(())
    }

    /// Returns whether the caller is one of the threads, or a destructor of its
    /// thread-locals.
    pub(crate) fn is_current(&self) -> bool {
        SET.try_with(Cell::get) == Ok(self.token)
    }

    /// Waits until no thread runs, and joins the threads, so that the destructors of
    /// their thread-locals have run. Returns whether the threads ended before the
    /// deadline. If not, none is joined. The destructors are waited for even past the
    /// deadline.
    pub(crate) fn join(&self, deadline: Option<Instant>) -> bool {
        let mut state = self.lock();
        while !state.running.is_empty() {
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return false;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let last = state.last_ended.take();
        drop(state);
        join(last);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins a thread. If it panicked, the panic hook has reported that.
fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        thread.join().ok();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.set.lock();
        let own = state.running.remove(&self.key);
        let before = std::mem::replace(&mut state.last_ended, own);
        drop(state);
        self.set.ended.notify_all();
        join(before);
    }
}

/// Threads of the system for calls that may block.
pub(crate) struct SystemThreads {
    pub(crate) set: Arc<ThreadSet>,
    pub(crate) keep_alive: Duration,
    /// Woken after each call that is done.
    pub(crate) done: Option<Waker>,
}

impl Threads<Native> for SystemThreads {
    fn start(&self, life: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.set.start("reveille-blocking".into(), life)
    }

    fn park(&self, park: &StdPark) -> bool {
        let start = Instant::now();
        park.park_timeout(self.keep_alive);
        start.elapsed() >= self.keep_alive
    }

    fn done(&self) {
        if let Some(done) = &self.done {
            done.wake_by_ref();
        }
    }
}
