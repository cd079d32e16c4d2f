//! All orders of whole steps, on one thread.
//!
//! A step is an operation or one poll of it, up to the next point at which a future is
//! polled, dropped or left suspended. This engine needs no instrumentation, so it runs
//! the primitives of any crate. It sees nothing within a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use super::{Explored, Job, Limits, Remains, Run};
use crate::engine::quiet;
use crate::execution::{Execution, Threads};

/// The participant that takes the current step.
#[derive(Clone, Default)]
struct OneThread(Arc<AtomicUsize>);

impl Threads for OneThread {
    fn register(&self, _: usize) {}

    fn current(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn park(&self, _: usize) {
        unreachable!("blocking operations are left out of programs for this engine");
    }

    fn unpark(&self, _: usize) {}
}

/// Explores one program.
pub(crate) fn explore(job: &Arc<Job>, limits: Limits) -> Explored {
    // The choices of the last execution: the index that was chosen, and the number of
    // choices.
    let mut path: Vec<(usize, usize)> = Vec::new();
    let exhausted = quiet::quietly(|| {
        while job.executions() < limits.executions {
            if execute(job, &mut path).is_err() {
                return false;
            }
            while path.last().is_some_and(|&(chosen, of)| chosen + 1 == of) {
                path.pop();
            }
            match path.last_mut() {
                Some((chosen, _)) => *chosen += 1,
                None => return true,
            }
        }
        false
    });
    job.explored(exhausted)
}

fn execute(job: &Arc<Job>, path: &mut Vec<(usize, usize)>) -> Result<(), ()> {
    let thread = OneThread::default();
    let (run, mut bodies) = Run::begin(job, Box::new(thread.clone()), true);
    let execution = Execution::current().expect("the run has just begun");
    let mut depth = 0;
    loop {
        let able: Vec<usize> = (0..bodies.len())
            .filter(|&participant_id| !execution.has_ended(participant_id))
            .filter(|&participant_id| {
                !execution.is_suspended(participant_id) || execution.can_resume(participant_id)
            })
            .collect();
        let participant_id = match able[..] {
            [] if (0..bodies.len()).all(|participant_id| execution.has_ended(participant_id)) => {
                break;
            }
            [] => {
                // Nothing moves any more, so all participants are released.
                execution.declare_quiescent();
                continue;
            }
            [only] => only,
            _ => {
                if depth == path.len() {
                    path.push((0, able.len()));
                }
                depth += 1;
                able[path[depth - 1].0]
            }
        };
        thread.0.store(participant_id, Ordering::Relaxed);
        step(&mut bodies[participant_id]);
    }
    run.finish(bodies)
}

fn step(body: &mut Remains) {
    let mut cx = Context::from_waker(Waker::noop());
    let poll = body.as_mut().poll(&mut cx);
    debug_assert!(poll.is_pending(), "a participant keeps what it holds");
}
