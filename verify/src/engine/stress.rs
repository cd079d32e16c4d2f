//! Runs programs on real threads over `Native`.
//!
//! Nothing is instrumented, so races are not slowed down. What can be seen from outside
//! is checked, operation by operation. The engine samples, and its failures may not be
//! reproducible.

use std::cell::Cell;
use std::sync::{Arc, Barrier, Mutex};
use std::thread::Thread;

use super::{Explored, Job, Limits, Run};
use crate::engine::quiet;
use crate::execution::Threads;

thread_local! {
    static ME: Cell<usize> = const { Cell::new(0) };
}

struct StdThreads(Mutex<Vec<Option<Thread>>>);

impl StdThreads {
    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Option<Thread>>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl Threads for StdThreads {
    fn register(&self, participant_id: usize) {
        ME.set(participant_id);
        self.threads()[participant_id] = Some(std::thread::current());
    }

    fn current(&self) -> usize {
        ME.get()
    }

    fn park(&self, _: usize) {
        std::thread::park();
    }

    fn unpark(&self, participant_id: usize) {
        let thread = self.threads()[participant_id].clone();
        thread.expect("a thread that parks has registered").unpark();
    }

    fn in_real_time(&self) -> bool {
        true
    }
}

/// Runs one program again and again.
pub(crate) fn explore(job: &Arc<Job>, limits: Limits) -> Explored {
    while job.executions() < limits.executions {
        let threads = StdThreads(Mutex::new(vec![None; job.participants()]));
        let (run, bodies) = Run::begin(job, Box::new(threads), false);
        let together = Barrier::new(bodies.len());
        let program = quiet::program();
        let remains = std::thread::scope(|scope| {
            let handles: Vec<_> = bodies
                .into_iter()
                .enumerate()
                .map(|(participant_id, body)| {
                    let (run, together) = (&run, &together);
                    let program = program.clone();
                    scope.spawn(move || {
                        quiet::set_program(program);
                        together.wait();
                        quiet::quietly(|| run.drive(participant_id, body))
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| handle.join().expect("participants catch their panics"))
                .collect()
        });
        if quiet::quietly(|| run.finish(remains)).is_err() {
            break;
        }
    }
    job.explored(false)
}
