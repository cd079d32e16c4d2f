//! Fibers: explores all orders of sections, with one execution of each class, or draws
//! orders.
//!
//! Participants are coroutines on one thread, over the real lock, which is never
//! contended. A participant suspends when it is about to enter a section. It enters the
//! section when it is chosen and the lock is free.
//!
//! ```text
//!            a section is near              chosen
//!   running ───────────────────▶ poised ──────────────▶ running
//!      │ pending                            ▲
//!      └──────────────▶ suspended ── woken ─┘
//! ```
//!
//! Between sections a participant does nothing that another could notice. So a
//! participant that is neither poised nor suspended goes on without a choice, and the
//! [`Search`] is asked only when every participant is one or the other.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use super::fiber::{self, Fiber, Pause};
use super::search::{MOST, Next, Search, Touch, Touches, Wakers};
use super::{Explored, Failure, Job, Limits, Remains, Run};
use crate::engine::quiet;
use crate::execution::{Access, Execution, Threads, let_go, panic_text};
use crate::subject::verdict::{Class, Violation};

/// How executions are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One execution of each class.
    Exhaustive,
    /// Each choice is drawn.
    Random,
    /// Probabilistic concurrency testing, of this depth.
    Pct(usize),
}

/// The state of the participants in the current execution.
#[derive(Default)]
struct Stage {
    /// The participant that runs.
    running: usize,
    /// The section that each participant is about to enter.
    poised: Vec<Option<Access>>,
    /// The locks in whose sections participants are, with these participants.
    held: Vec<(usize, usize)>,
    /// The accesses of the current step.
    touches: Option<Touches>,
    /// Whether all participants are to unwind.
    torn: bool,
    /// How many locks have been met.
    met: usize,
}

impl Stage {
    fn touch(&mut self, touch: Touch) {
        if let Some(touches) = &mut self.touches {
            touches.push(touch);
        }
    }

    fn is_free(&self, lock: usize) -> bool {
        self.held.iter().all(|&(held, _)| held != lock)
    }
}

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::default();
}

fn stage<R>(f: impl FnOnce(&mut Stage) -> R) -> R {
    STAGE.with_borrow_mut(f)
}

/// Runs participants as fibers of this thread.
struct Fibers;

impl Threads for Fibers {
    fn register(&self, _: usize) {}

    fn current(&self) -> usize {
        stage(|stage| stage.running)
    }

    /// Suspends the participant. The engine resumes it only after a wake.
    fn park(&self, _: usize) {
        fiber::suspend();
    }

    fn unpark(&self, _: usize) {}

    fn merges_wakes(&self) -> bool {
        true
    }

    fn woken(&self, participant_id: usize, waker: usize) {
        stage(|stage| stage.touch(Touch::wake(waker_number(participant_id, waker))));
    }

    fn approach(&self, participant_id: usize, access: Access, starts: Option<usize>) {
        stage(|stage| stage.met = stage.met.max(access.lock + 1));
        loop {
            let (free, torn) = stage(|stage| (stage.is_free(access.lock), stage.torn));
            // A participant that unwinds goes on: the panic belongs to the thread, and
            // all fibers run on it.
            let unwinding = std::thread::panicking();
            if torn && !unwinding {
                stage(|stage| stage.poised[participant_id] = None);
                let_go();
            }
            if unwinding && free {
                break;
            }
            stage(|stage| stage.poised[participant_id] = Some(access));
            fiber::suspend();
            if stage(|stage| stage.poised[participant_id].is_none()) {
                break;
            }
        }
        stage(|stage| {
            if access.excludes {
                stage.held.push((access.lock, participant_id));
            }
            // The section of an update may turn out to change nothing.
            stage.touch(Touch::lock(access.lock, access.excludes));
            if let Some(waker) = starts {
                stage.touch(Touch::start(waker_number(participant_id, waker)));
            }
        });
    }

    fn left(&self, participant_id: usize, lock: usize, changed: bool) {
        stage(|stage| {
            stage.held.retain(|&held| held != (lock, participant_id));
            if changed {
                stage.touch(Touch::lock(lock, true));
            }
        });
    }
}

/// Returns a number for a waker that is the same in every order.
fn waker_number(participant_id: usize, waker: usize) -> usize {
    waker * MOST + participant_id
}

/// Explores one program.
pub(crate) fn explore(job: &Arc<Job>, mode: Mode, limits: Limits) -> Explored {
    let mut search = match mode {
        Mode::Exhaustive if limits.preemptions.is_some() => Search::every(limits.preemptions),
        Mode::Exhaustive => Search::optimal(Wakers::Registered),
        Mode::Random => Search::random(limits.seed),
        Mode::Pct(depth) => Search::pct(limits.seed, depth),
    };
    if job.participants() > MOST {
        job.fail(Failure {
            violation: Violation {
                class: Class::Panic,
                sentence: format!(
                    "the engine of fibers runs at most {MOST} participants, and there are {}: \
                     nothing was explored",
                    job.participants()
                ),
            },
            execution: 0,
            trace: Vec::new(),
        });
        return job.explored(false);
    }
    let exhausted = quiet::quietly(|| {
        loop {
            if job.failure().is_some() {
                return false;
            }
            if job.executions() == limits.executions {
                // This was the last execution, or there is one more.
                return mode == Mode::Exhaustive && limits.executions > 0 && !search.begin();
            }
            if !search.begin() {
                return mode == Mode::Exhaustive;
            }
            execute(job, &mut search);
            search.end();
        }
    });
    Execution::leave();
    if let Some(step) = search.strayed() {
        job.fail(Failure {
            violation: Violation {
                class: Class::WrongResult,
                sentence: format!(
                    "the program did something else when it was run again: step {} differs, \
                     so it depends on something that is not the order of sections",
                    step + 1
                ),
            },
            execution: job.executions(),
            trace: Vec::new(),
        });
    }
    Explored {
        repeated: search.repeated(),
        ..job.explored(exhausted && limits.preemptions.is_none())
    }
}

/// The participants of one execution.
struct Cast {
    fibers: Vec<Option<Fiber>>,
    /// The remains of the participants that have returned.
    remains: Rc<RefCell<Vec<Option<Remains>>>>,
    panic: Rc<RefCell<Option<Box<dyn Any + Send>>>>,
}

impl Cast {
    fn new(run: &Arc<Run>, bodies: Vec<Remains>) -> Self {
        let remains: Rc<RefCell<Vec<_>>> = Rc::default();
        remains.borrow_mut().resize_with(bodies.len(), || None);
        let panic: Rc<RefCell<Option<_>>> = Rc::default();
        let mut cast = Self {
            fibers: Vec::with_capacity(bodies.len()),
            remains: remains.clone(),
            panic: panic.clone(),
        };
        for (participant_id, body) in bodies.into_iter().enumerate() {
            let (run, remains, panic) = (run.clone(), remains.clone(), panic.clone());
            let job = move || {
                let driven = catch_unwind(AssertUnwindSafe(|| run.drive(participant_id, body)));
                drop(run);
                match driven {
                    Ok(left) => remains.borrow_mut()[participant_id] = Some(left),
                    Err(payload) => *panic.borrow_mut() = Some(payload),
                }
            };
            stage(|stage| stage.running = participant_id);
            let (fiber, pause) = Fiber::run(Box::new(job));
            cast.fibers.push(Some(fiber));
            cast.paused(participant_id, pause);
        }
        cast
    }

    fn resume(&mut self, participant_id: usize) {
        stage(|stage| stage.running = participant_id);
        let fiber = self.fibers[participant_id].as_mut();
        let pause = fiber.expect("it has not returned").resume();
        self.paused(participant_id, pause);
    }

    fn paused(&mut self, participant_id: usize, pause: Pause) {
        if pause == Pause::Returned
            && let Some(fiber) = self.fibers[participant_id].take()
        {
            fiber.keep();
        }
    }

    fn waits(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.fibers.len()).filter(|&participant_id| self.fibers[participant_id].is_some())
    }

    /// Resumes participants until each is poised or suspended.
    fn run_to_next_choices(&mut self, execution: &Execution) {
        while let Some(participant_id) = {
            let mut waits = self.waits();
            waits.find(|&participant_id| {
                stage(|stage| stage.poised[participant_id].is_none())
                    && !execution.is_suspended(participant_id)
            })
        } {
            self.resume(participant_id);
        }
    }

    /// Unwinds participants that block one another.
    fn tear(&mut self, execution: &Execution) {
        execution.declare_quiescent();
        stage(|stage| stage.torn = true);
        // A participant that holds a lock through which another unwinds goes first, so
        // there is a round for each.
        for _ in 0..=self.fibers.len() {
            let waits: Vec<_> = self.waits().collect();
            for participant_id in waits {
                self.resume(participant_id);
            }
        }
        for fiber in self.fibers.iter_mut().filter_map(Option::take) {
            // It holds a lock through which another participant unwinds, and can
            // neither go on nor be unwound.
            std::mem::forget(fiber);
        }
    }
}

/// The greatest number of sections in an execution. A program has fewer, unless one of
/// its operations never ends.
const MAX_SECTIONS: usize = 10_000;

fn execute(job: &Arc<Job>, search: &mut Search) {
    let participants = job.participants();
    stage(|stage| {
        stage.poised.clear();
        stage.poised.resize(participants, None);
        stage.held.clear();
        stage.met = 0;
        stage.touches = None;
        stage.torn = false;
    });
    let (run, bodies) = Run::begin(job, Box::new(Fibers), false);
    let execution = Execution::current().expect("the run has just begun");
    let mut cast = Cast::new(&run, bodies);
    let mut current = None;
    for section in 0.. {
        cast.run_to_next_choices(&execution);
        let (mut able, mut poised) = (0_u32, 0_u32);
        stage(|stage| {
            for participant_id in 0..participants {
                let Some(next) = stage.poised[participant_id] else {
                    continue;
                };
                poised |= 1 << participant_id;
                able |= u32::from(stage.is_free(next.lock)) << participant_id;
            }
        });
        if able == 0 {
            if poised != 0 {
                let sentence = deadlock(poised);
                execution.violate(Class::Deadlock, sentence);
                cast.tear(&execution);
            }
            break;
        }
        if section == MAX_SECTIONS {
            let sentence = endless(&execution, current.unwrap_or_default());
            execution.violate(Class::Deadlock, sentence);
            cast.tear(&execution);
            break;
        }
        let participant_id = search.choose(able, current, stage(|stage| stage.met));
        current = Some(participant_id);
        let next = stage(|stage| {
            stage.touches = Some(Touches::NONE);
            stage.poised[participant_id].take().expect("it is able")
        });
        cast.resume(participant_id);
        cast.run_to_next_choices(&execution);
        let touches = stage(|stage| stage.touches.take()).expect("set above");
        let next = Next {
            process: participant_id,
            changes: !next.reads,
        };
        search.executed(next, &touches);
    }
    if let Some(panic) = cast.panic.borrow_mut().take() {
        let sentence = panic_text(&*panic);
        execution.violate(Class::of_panic(&sentence), sentence);
    }
    let remains = cast.remains.take().into_iter().flatten().collect();
    drop(execution);
    // A failure is recorded in the job.
    let _ = run.finish(remains);
}

/// Describes an execution without end. The participant is the last that ran.
fn endless(execution: &Execution, participant_id: usize) -> String {
    let number = execution.calls(participant_id).len();
    format!(
        "{MAX_SECTIONS} sections have been entered, the last by {{{participant_id}}} in its operation \
         {number}: it would go on for ever"
    )
}

/// Describes which participant waits for which lock, and which holds it.
fn deadlock(poised: u32) -> String {
    stage(|stage| {
        let waits = |waiter: usize| {
            let lock = stage.poised[waiter].map_or(0, |access| access.lock);
            let holder = stage.held.iter().find(|&&(held, _)| held == lock);
            let by = match holder {
                Some(&(_, holder)) if holder == waiter => "it holds itself".to_owned(),
                Some(&(_, holder)) => format!("{{{holder}}} holds"),
                None => "is held".to_owned(),
            };
            format!("{{{waiter}}} waits for lock {}, which {by}", lock + 1)
        };
        let blocked =
            (0..stage.poised.len()).filter(|participant_id| poised >> participant_id & 1 == 1);
        let blocked: Vec<_> = blocked.map(waits).collect();
        format!("deadlock: {}", blocked.join("; "))
    })
}
