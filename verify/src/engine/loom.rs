//! loom: every interleaving, with memory orderings.
//!
//! A limit of loom would be taken for a pass, so none is used: executions are counted
//! here, and a model that is to stop panics.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{Arc, Mutex};

use super::{Explored, Failure, Job, Limits, Run};
use crate::engine::quiet;
use crate::execution::{Execution, Threads, panic_text};
use crate::subject::verdict::{Class, Violation};

/// Ends an exploration early.
struct Enough;

#[derive(Default)]
struct LoomThreads(Mutex<Vec<Option<loom::thread::Thread>>>);

impl LoomThreads {
    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Option<loom::thread::Thread>>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl Threads for LoomThreads {
    fn register(&self, participant_id: usize) {
        let mut threads = self.threads();
        if threads.len() <= participant_id {
            threads.resize(participant_id + 1, None);
        }
        threads[participant_id] = Some(loom::thread::current());
    }

    fn current(&self) -> usize {
        let me = loom::thread::current().id();
        self.threads()
            .iter()
            .position(|thread| thread.as_ref().is_some_and(|thread| thread.id() == me))
            .expect("participants run on registered threads")
    }

    fn park(&self, _: usize) {
        loom::thread::park();
    }

    fn unpark(&self, participant_id: usize) {
        let thread = self.threads()[participant_id].clone();
        thread.expect("a thread that parks has registered").unpark();
    }
}

/// The greatest number of accesses in an execution. A program has fewer, unless one of
/// its operations never ends.
const MAX_BRANCHES: usize = 10_000;

/// Explores one program.
pub(crate) fn explore(job: &Arc<Job>, limits: Limits) -> Explored {
    if job.participants() > loom::MAX_THREADS {
        job.fail(Failure {
            violation: Violation {
                class: Class::Panic,
                sentence: format!(
                    "loom runs at most {} threads, and there are {} participants: nothing was \
                     explored, and nothing is wrong with them",
                    loom::MAX_THREADS,
                    job.participants()
                ),
            },
            execution: 0,
            trace: Vec::new(),
        });
        return job.explored(false);
    }
    let mut builder = loom::model::Builder::new();
    builder.max_threads = job.participants().max(2);
    builder.max_branches = MAX_BRANCHES;
    builder.preemption_bound = limits.preemptions;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.checkpoint_file = None;
    builder.log = false;
    builder.location = false;

    let result = quiet::quietly(|| {
        let job = job.clone();
        catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                if job.executions() >= limits.executions {
                    panic_any(Enough);
                }
                if execute(&job).is_err() {
                    panic_any(Enough);
                }
            });
        }))
    });
    let exhausted = match result {
        Ok(()) => true,
        Err(panic) if panic.is::<Enough>() => false,
        Err(panic) => {
            // loom found a failure by itself. It knows no class and no program.
            let sentence = panic_text(&*panic);
            let violation = Execution::current()
                .and_then(|execution| execution.violation())
                .unwrap_or_else(|| Violation {
                    class: Class::of_panic(&sentence),
                    sentence: first_line(&sentence),
                });
            job.fail(Failure {
                violation,
                execution: job.executions(),
                trace: Execution::current().map_or_else(Vec::new, |e| e.take_trace()),
            });
            false
        }
    };
    Execution::leave();
    job.explored(exhausted && limits.preemptions.is_none())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Runs one execution. The first participant runs on loom's main thread.
fn execute(job: &Arc<Job>) -> Result<(), ()> {
    let (run, bodies) = Run::begin(job, Box::<LoomThreads>::default(), false);
    let mut bodies = bodies.into_iter().enumerate();
    let first = bodies.next();
    let others: Vec<_> = bodies
        .map(|(participant_id, body)| {
            let run = run.clone();
            loom::thread::spawn(move || run.drive(participant_id, body))
        })
        .collect();
    let mut remains: Vec<_> = first
        .map(|(participant_id, body)| run.drive(participant_id, body))
        .into_iter()
        .collect();
    for other in others {
        remains.push(other.join().expect("loom's threads do not fail alone"));
    }
    run.finish(remains)
}
