//! shuttle: exhaustive over sections, or drawn.
//!
//! shuttle offers many places to switch: before a lock, before an unlock, at
//! the start of a thread. Between sections a participant does nothing that
//! another could notice, so only one of them matters: the beginning of a
//! section. [`Gate`] lets whoever is between sections go on alone, and asks the
//! scheduler behind it only when everybody who can run is about to enter one.
//!
//! [`Sections`] is such a scheduler: depth first, with sleep sets (Godefroid,
//! 1996), which leave out orders that differ by an exchange of accesses that
//! commute: of different locks, or both reading.

use std::sync::Arc;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use super::{Explored, Failure, Job, Limits, Run};
use crate::engine::quiet;
use crate::execution::{Access, Execution, Threads, panic_text};
use crate::subject::verdict::{Class, Violation};

/// Participants are shuttle's tasks, in the order in which they were spawned.
struct ShuttleThreads;

impl Threads for ShuttleThreads {
    fn register(&self, _: usize) {}

    fn current(&self) -> usize {
        shuttle::current::me().into()
    }

    /// The gate does not let a suspended participant run.
    fn park(&self, _: usize) {
        shuttle::thread::yield_now();
    }

    fn unpark(&self, _: usize) {}
}

/// How executions are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Depth first, all of them.
    Exhaustive,
    /// Drawn at each choice.
    Random,
    /// Probabilistic concurrency testing, of this depth.
    Pct(usize),
}

/// Explores one program.
pub(crate) fn explore(job: &Arc<Job>, mode: Mode, limits: Limits) -> Explored {
    let exhausted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let executions = usize::try_from(limits.executions).unwrap_or(usize::MAX);
    let behind: Box<dyn Scheduler + Send> = match mode {
        Mode::Exhaustive => Box::new(Sections {
            left: limits.executions,
            exhausted: exhausted.clone(),
            path: Vec::new(),
            depth: 0,
            begun: false,
        }),
        Mode::Random => Box::new(shuttle::scheduler::RandomScheduler::new_from_seed(
            limits.seed,
            executions,
        )),
        Mode::Pct(depth) => Box::new(shuttle::scheduler::PctScheduler::new_from_seed(
            limits.seed,
            depth,
            executions,
        )),
    };
    let gate = Gate {
        mode,
        asked: None,
        participants: job.participants(),
        failed: {
            let job = job.clone();
            Box::new(move || job.failure().is_some())
        },
        behind,
    };
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;

    let result = quiet::quietly(|| {
        let job = job.clone();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            shuttle::Runner::new(gate, config).run(move || execute(&job))
        }))
    });
    if let Err(panic) = result {
        let sentence = panic_text(&*panic);
        job.fail(Failure {
            violation: Violation {
                class: Class::of_panic(&sentence),
                sentence,
            },
            execution: job.executions(),
            trace: Execution::current().map_or_else(Vec::new, |e| e.take_trace()),
        });
    }
    Execution::leave();
    job.explored(exhausted.load(std::sync::atomic::Ordering::Relaxed))
}

fn execute(job: &Arc<Job>) {
    let (run, bodies) = Run::begin(job, Box::new(ShuttleThreads), false);
    let mut bodies = bodies.into_iter().enumerate();
    let first = bodies.next();
    let others: Vec<_> = bodies
        .map(|(who, body)| {
            let run = run.clone();
            shuttle::thread::spawn(move || run.drive(who, body))
        })
        .collect();
    let mut remains: Vec<_> = first
        .map(|(who, body)| run.drive(who, body))
        .into_iter()
        .collect();
    for other in others {
        remains.push(other.join().expect("participants catch their panics"));
    }
    // A failure is found in the job; the gate ends the exploration.
    let _ = run.finish(remains);
}

/// Lets a scheduler decide only at the beginning of sections.
struct Gate {
    mode: Mode,
    /// Whether there was a choice in the last execution; none before the first.
    asked: Option<bool>,
    participants: usize,
    failed: Box<dyn Fn() -> bool + Send>,
    behind: Box<dyn Scheduler + Send>,
}

impl Scheduler for Gate {
    fn new_execution(&mut self) -> Option<Schedule> {
        // shuttle's PCT takes a program without a choice for a mistake.
        let no_choice = self.mode != Mode::Exhaustive && self.asked == Some(false);
        if no_choice || (self.failed)() {
            // shuttle's random scheduler, dropped before its end, prints advice.
            while self.mode == Mode::Random && self.behind.new_execution().is_some() {}
            return None;
        }
        self.asked = Some(false);
        self.behind.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        yielding: bool,
    ) -> Option<TaskId> {
        let Some(execution) = Execution::current() else {
            return runnable.first().map(|task| task.id());
        };
        let participant = |task: &Task| {
            let who = usize::from(task.id());
            (who < self.participants).then_some(who)
        };
        let able: Vec<&Task> = runnable
            .iter()
            .copied()
            .filter(|task| !participant(task).is_some_and(|who| execution.is_suspended(who)))
            .collect();
        let between =
            |task: &Task| participant(task).is_none_or(|who| execution.poised(who).is_none());
        let alone = able
            .iter()
            .find(|task| Some(task.id()) == current && between(task))
            .or_else(|| able.iter().find(|task| between(task)));
        if let Some(task) = alone {
            return Some(task.id());
        }
        let next = match able[..] {
            [] => return None,
            [only] => only.id(),
            _ => {
                self.asked = Some(true);
                self.behind.next_task(&able, current, yielding)?
            }
        };
        execution.admit(next.into());
        Some(next)
    }

    fn next_u64(&mut self) -> u64 {
        self.behind.next_u64()
    }
}

/// Every order of sections, depth first.
struct Sections {
    left: u64,
    exhausted: Arc<std::sync::atomic::AtomicBool>,
    path: Vec<Choice>,
    /// How many choices the current execution has made.
    depth: usize,
    begun: bool,
}

/// A place where several could go on.
struct Choice {
    /// Who could, what each is about to do, and whether it is asleep: what
    /// would come of choosing it has been seen elsewhere.
    able: Vec<(TaskId, Access, bool)>,
    chosen: usize,
}

impl Choice {
    /// The first that is awake, from an index on.
    fn awake(&self, from: usize) -> Option<usize> {
        (from..self.able.len()).find(|&index| !self.able[index].2)
    }
}

impl Scheduler for Sections {
    fn new_execution(&mut self) -> Option<Schedule> {
        if std::mem::replace(&mut self.begun, true) {
            // Back to the last choice that has another.
            loop {
                let Some(choice) = self.path.last_mut() else {
                    self.exhausted
                        .store(true, std::sync::atomic::Ordering::Relaxed);
                    return None;
                };
                choice.able[choice.chosen].2 = true;
                match choice.awake(choice.chosen + 1) {
                    Some(next) => {
                        choice.chosen = next;
                        break;
                    }
                    None => drop(self.path.pop()),
                }
            }
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.depth = 0;
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, able: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        let execution = Execution::current()?;
        if self.depth == self.path.len() {
            let before = self.path.last();
            let able = able
                .iter()
                .map(|task| {
                    let id = task.id();
                    let access = execution
                        .poised(id.into())
                        .expect("whoever is between sections is not asked for");
                    let asleep = before.is_some_and(|before| before.keeps_asleep(id, access));
                    (id, access, asleep)
                })
                .collect();
            let mut choice = Choice { able, chosen: 0 };
            // Where all are asleep, all of this has been seen: any will do.
            choice.chosen = choice.awake(0).unwrap_or(choice.able.len() - 1);
            self.path.push(choice);
        }
        let choice = &self.path[self.depth];
        self.depth += 1;
        Some(choice.able[choice.chosen].0)
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}

impl Choice {
    /// Whether somebody who was asleep here is still so after the choice.
    fn keeps_asleep(&self, id: TaskId, access: Access) -> bool {
        let chosen = &self.able[self.chosen];
        self.able.iter().any(|&(other, next, asleep)| {
            asleep && other == id && next == access && access.commutes(chosen.1)
        })
    }
}
