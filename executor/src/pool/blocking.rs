//! The threads of a pool on which calls may block.
//!
//! ```text
//!   call ──▶ queue, and in the same section:
//!              an idle thread is called ──▶ it takes a call, or is idle again
//!              or a new one is started, below the bound
//!
//!   a thread: takes calls ⇄ idle ──for too long, or the end──▶ gone
//! ```
//!
//! Invariant: while something is queued, as many threads are on their way to it, or
//! there are as many as there may be, each of which looks into the queue before it is
//! idle. Who is idle stands under the lock of the queue, so that whoever has been
//! called does not end for having been idle for too long.
//!
//! It is generic over the backend, so that loom and shuttle explore it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use reveille::backend::{BlockingBackend, Park};
use reveille::protocol::{Bits, StateLock};
use reveille::raw::{Runnable, Schedule};

/// What a call is run by.
type Run<B> = Arc<dyn Fn(Runnable<B>) + Send + Sync>;

/// What threads there are.
pub(crate) trait Threads<B: BlockingBackend>: Send + Sync + 'static {
    /// Starts one.
    fn start(&self, life: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Sleeps until unparked, or for as long as a thread may be idle. Answers whether
    /// it was that long.
    fn park(&self, park: &B::Park) -> bool;
}

pub(crate) struct Blocking<B: BlockingBackend> {
    state: StateLock<State<B>, B>,
    threads: Box<dyn Threads<B>>,
    most: usize,
}

struct State<B: BlockingBackend> {
    queue: VecDeque<Runnable<B>>,
    threads: usize,
    /// Those that wait for a call, the next to be called last.
    idle: Vec<Arc<B::Park>>,
    run: Option<Run<B>>,
    closed: bool,
}

/// What a thread does next.
enum Next<B: BlockingBackend> {
    Call(Runnable<B>, Run<B>),
    Idle,
    End,
}

/// What is done about a call.
enum Pushed<B: BlockingBackend> {
    Refused(Runnable<B>),
    Calls(Arc<B::Park>),
    Starts,
    Waits,
}

/// The scheduler of calls.
pub(crate) struct ToBlocking<B: BlockingBackend>(pub(crate) Arc<Blocking<B>>);

impl<B: BlockingBackend> Blocking<B> {
    pub(crate) fn new(most: usize, threads: impl Threads<B>) -> Arc<Self> {
        let state = State {
            queue: VecDeque::new(),
            threads: 0,
            idle: Vec::new(),
            run: None,
            closed: false,
        };
        Arc::new(Self {
            state: StateLock::new_in(Bits::EMPTY, state),
            threads: Box::new(threads),
            most,
        })
    }

    /// Says how calls are run, before there is one.
    pub(crate) fn run_by(&self, run: Run<B>) {
        let before = self.state.with(|section| section.state.run.replace(run));
        drop(before);
    }

    pub(crate) fn push(self: &Arc<Self>, call: Runnable<B>) {
        let pushed = self.state.with(|section| {
            let state = section.state;
            if state.closed {
                return Pushed::Refused(call);
            }
            state.queue.push_back(call);
            if let Some(idle) = state.idle.pop() {
                return Pushed::Calls(idle);
            }
            if state.threads == self.most {
                return Pushed::Waits;
            }
            state.threads += 1;
            Pushed::Starts
        });
        match pushed {
            // Its task is cancelled, or will be.
            Pushed::Refused(call) => drop(call),
            Pushed::Calls(idle) => idle.unpark(),
            Pushed::Starts => self.start(),
            Pushed::Waits => {}
        }
    }

    fn start(self: &Arc<Self>) {
        let this = self.clone();
        if let Err(error) = self.threads.start(Box::new(move || this.serve())) {
            let left = self.state.with(|section| {
                section.state.threads -= 1;
                section.state.threads
            });
            // Without any thread nobody would come for it.
            assert!(
                left > 0,
                "the system refused a thread for a blocking call: {error}"
            );
        }
    }

    fn serve(&self) {
        let park = Arc::new(B::Park::new());
        loop {
            match self.state.with(|section| section.state.next(&park)) {
                Next::Call(call, run) => run(call),
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

    /// Takes no further calls, and leaves those that have not begun.
    pub(crate) fn close(&self) {
        let (queue, run, idle) = self.state.with(|section| {
            let state = section.state;
            state.closed = true;
            (
                std::mem::take(&mut state.queue),
                state.run.take(),
                std::mem::take(&mut state.idle),
            )
        });
        for park in idle {
            park.unpark();
        }
        drop((queue, run));
    }
}

impl<B: BlockingBackend> State<B> {
    fn next(&mut self, park: &Arc<B::Park>) -> Next<B> {
        if let Some(call) = self.queue.pop_front() {
            let run = self.run.clone().expect("it is set before any call");
            return Next::Call(call, run);
        }
        if self.closed {
            self.threads -= 1;
            return Next::End;
        }
        self.idle.push(park.clone());
        Next::Idle
    }

    /// A thread is idle no more. Answers whether it ends: if it was so for too long,
    /// and nobody has called it.
    fn wakes(&mut self, park: &Arc<B::Park>, too_long: bool) -> bool {
        let place = self.idle.iter().position(|idle| Arc::ptr_eq(idle, park));
        let Some(place) = place else {
            return false;
        };
        self.idle.remove(place);
        self.threads -= usize::from(too_long);
        too_long
    }
}

impl<B: BlockingBackend> Schedule<B> for ToBlocking<B> {
    fn schedule(&self, task: Runnable<B>) {
        self.0.push(task);
    }
}
