//! Fibers: stackful coroutines, kept for the next execution.
//!
//! ```text
//!            run(job)                     suspend()
//!   idle ──────────────▶ running ───────────────────────▶ suspended
//!    ▲                    │    ▲                              │
//!    └── the job returns ─┘    └───────── resume() ───────────┘
//! ```
//!
//! A fiber runs one job after the other. An execution takes its fibers from the pool of
//! the thread, so it maps no stack.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// What a fiber runs.
pub(crate) type Job = Box<dyn FnOnce()>;

/// Why a fiber has suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// It waits to be resumed.
    Suspended,
    /// Its job has returned.
    Returned,
}

type Inside = Yielder<Option<Job>, Pause>;

/// A stack on which jobs run. Its memory is taken page by page, when it is used.
const STACK: usize = 1 << 20;

thread_local! {
    static IDLE: RefCell<Vec<Fiber>> = const { RefCell::new(Vec::new()) };
    /// The way out of the fiber that runs on this thread.
    static RUNNING: Cell<Option<NonNull<Inside>>> = const { Cell::new(None) };
}

/// A coroutine that runs jobs.
pub(crate) struct Fiber(Coroutine<Option<Job>, Pause, ()>);

impl Fiber {
    /// Runs a job until it is suspended or returns. It must not unwind.
    pub(crate) fn run(job: Job) -> (Self, Pause) {
        let idle = IDLE.with_borrow_mut(Vec::pop);
        let mut fiber = idle.unwrap_or_else(Self::new);
        let pause = fiber.go(Some(job));
        (fiber, pause)
    }

    /// Resumes a suspended job.
    pub(crate) fn resume(&mut self) -> Pause {
        self.go(None)
    }

    /// Keeps a fiber whose job has returned.
    pub(crate) fn keep(self) {
        IDLE.with_borrow_mut(|idle| idle.push(self));
    }

    fn new() -> Self {
        let stack = DefaultStack::new(STACK).expect("the system refused the stack of a fiber");
        let jobs = |inside: &Inside, mut job: Option<Job>| {
            loop {
                RUNNING.set(Some(NonNull::from(inside)));
                if let Some(job) = job.take() {
                    job();
                }
                job = inside.suspend(Pause::Returned);
            }
        };
        Self(Coroutine::with_stack(stack, jobs))
    }

    fn go(&mut self, job: Option<Job>) -> Pause {
        let outer = RUNNING.get();
        let pause = match self.0.resume(job) {
            CoroutineResult::Yield(pause) => pause,
            CoroutineResult::Return(()) => unreachable!("a fiber waits for its next job"),
        };
        RUNNING.set(outer);
        pause
    }
}

/// Suspends the fiber that runs the caller, until it is resumed.
///
/// # Panics
///
/// Panics if the caller runs on none.
pub(crate) fn suspend() {
    let inside = RUNNING.get().expect("a job suspends on its fiber");
    #[allow(unsafe_code, reason = "safe code cannot name how long a fiber lives")]
    // SAFETY: `RUNNING` holds the yielder of the fiber that runs on this thread: a fiber
    // sets it when a job begins and, below, whenever it is resumed, and `go` puts back the
    // one from before when the fiber gives the thread back. The yielder lives in the frame
    // of the fiber, which the caller runs above and which returns only when the fiber is
    // dropped. It is not shared with another thread, since a fiber is not `Send`.
    let yielder = unsafe { inside.as_ref() };
    drop(yielder.suspend(Pause::Suspended));
    RUNNING.set(Some(inside));
}
