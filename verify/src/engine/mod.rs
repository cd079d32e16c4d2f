//! The engines, which choose the executions of a program.
//!
//! | engine | mode | executions |
//! | --- | --- | --- |
//! | `sequential` | `steps` | all orders of whole steps, on one thread |
//! | `loom` | `sections` | all orders of sections, over the abstract lock |
//! | `loom` | `accesses` | all orders and orderings of accesses, over the real lock, up to a number of preemptions |
//! | `fibers` | `exhaustive` | of all orders of sections, one of each class |
//! | `fibers` | `random`, `pct` | drawn, of larger programs |
//! | `stress` | `threads` | as they come, on real threads over `Native` |
//!
//! All of them run the same participants ([`participate`]) in the same [`Execution`],
//! and use the same judge. An engine only decides which participant goes on when.
//! Nothing here depends on the types of the subject, which is an [`AnySubject`].

pub(crate) mod fiber;
pub(crate) mod fibers;
pub(crate) mod loom;
pub(crate) mod quiet;
pub(crate) mod search;
pub(crate) mod sequential;
pub(crate) mod stress;

use std::any::Any;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::execution::event::Event;
use crate::execution::{Execution, Resumed, Stopped, Threads, panic_text};
use crate::judge::erased::{Actor, AnySubject, BoxedRet};
use crate::judge::{Invocation, Name};
use crate::program::Program;
use crate::subject::Started;
use crate::subject::plan::Order;
use crate::subject::role::OperationKind;
use crate::subject::spec::Call;
use crate::subject::step::{Polling, Step};
use crate::subject::validate::mismatch;
use crate::subject::verdict::{Class, Violation};

/// A limit on how far one program is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The executions of one program.
    pub(crate) executions: u64,
    /// The preemptions in one execution, if the engine can bound them.
    pub(crate) preemptions: Option<usize>,
    /// The seed of the draws.
    pub(crate) seed: u64,
}

/// What an engine found on one program.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) executions: u64,
    /// How many of them were equivalent to an earlier one, if the engine knows.
    #[allow(dead_code, reason = "read by tests")]
    pub(crate) repeated: u64,
    /// Whether every execution of the engine's kind was run.
    pub(crate) exhausted: bool,
    pub(crate) failure: Option<Failure>,
    /// How many sections were observed, if a hook is what observes them.
    pub(crate) observed: Option<u64>,
}

/// The failure of an execution.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) violation: Violation,
    /// Its number, from 1.
    pub(crate) execution: u64,
    /// The events, if the execution was traced.
    pub(crate) trace: Vec<Event>,
}

/// The executions whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traced {
    None,
    /// That of this number.
    One(u64),
    /// Each, since one that fails cannot be run again.
    Each,
}

impl Traced {
    fn has(self, number: u64) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => one == number,
            Self::Each => true,
        }
    }
}

/// A program of a subject that an engine explores.
pub(crate) struct Job {
    subject: Arc<dyn AnySubject>,
    pub(crate) program: Program,
    /// The order in which its operations must be explained.
    order: Order,
    traced: Traced,
    /// How many executions have begun.
    executions: AtomicU64,
    /// How many of them have been judged, or have failed before.
    judged: AtomicU64,
    failure: Mutex<Option<Failure>>,
}

impl Job {
    pub(crate) fn new(
        subject: Arc<dyn AnySubject>,
        program: Program,
        order: Order,
        traced: Traced,
    ) -> Arc<Self> {
        Arc::new(Self {
            subject,
            program,
            order,
            traced,
            executions: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            failure: Mutex::new(None),
        })
    }

    /// Returns `true` if a hook observes the sections.
    pub(crate) fn is_native(&self) -> bool {
        self.subject.is_native()
    }

    fn participants(&self) -> usize {
        self.program.participants.len()
    }

    /// Counts an execution that begins, and returns its number.
    fn count(&self) -> u64 {
        self.executions.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn executions(&self) -> u64 {
        self.executions.load(Ordering::Relaxed)
    }

    fn fail(&self, failure: Failure) {
        let mut first = self
            .failure
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        first.get_or_insert(failure);
    }

    fn failure(&self) -> Option<Failure> {
        self.failure
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .clone()
    }

    /// Returns the result. An execution that has begun and was not judged is a failure,
    /// since nothing is known of it.
    fn explored(&self, exhausted: bool) -> Explored {
        let (begun, judged) = (self.executions(), self.judged.load(Ordering::Relaxed));
        if begun != judged && self.failure().is_none() {
            self.fail(Failure {
                violation: Violation {
                    class: Class::Panic,
                    sentence: format!(
                        "{begun} executions have begun and {judged} were judged: the engine has \
                         lost some, so nothing is known of the program"
                    ),
                },
                execution: begun,
                trace: Vec::new(),
            });
        }
        let failure = self.failure();
        Explored {
            executions: self.executions(),
            repeated: 0,
            exhausted: exhausted && failure.is_none(),
            failure,
            observed: None,
        }
    }
}

/// What remains of a participant at its end. It is suspended, or holds its actor.
pub(crate) type Remains = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The state of one execution.
pub(crate) struct Run {
    job: Arc<Job>,
    number: u64,
    execution: Arc<Execution>,
    /// The results of each participant's operations.
    rets: Vec<Mutex<Vec<Option<BoxedRet>>>>,
}

impl Run {
    /// Begins an execution on this thread.
    pub(crate) fn begin(
        job: &Arc<Job>,
        threads: Box<dyn Threads>,
        stepped: bool,
    ) -> (Arc<Self>, Vec<Remains>) {
        let number = job.count();
        let participants = job.participants();
        let execution = Execution::new(participants, threads, stepped, job.traced.has(number));
        execution.enter();
        let run = Arc::new(Self {
            job: job.clone(),
            number,
            execution,
            rets: (0..participants).map(|_| Mutex::default()).collect(),
        });
        let mut actors = job.subject.actors();
        if actors.len() != participants {
            // The roles and actors matched when they were first asked for. Without
            // actors no participant runs, and the execution ends with the violation.
            let sentence = mismatch(participants, actors.len());
            run.execution.violate(Class::Panic, sentence);
            actors.clear();
        }
        let bodies = actors
            .into_iter()
            .enumerate()
            .map(|(participant_id, actor)| {
                Box::pin(participate(run.clone(), participant_id, actor)) as Remains
            })
            .collect();
        run.execution.begin();
        (run, bodies)
    }

    /// Runs a participant on its own thread, until it has ended or its operation stays
    /// pending.
    pub(crate) fn drive(&self, participant_id: usize, mut body: Remains) -> Remains {
        self.execution.enter();
        self.execution.register(participant_id);
        let mut cx = Context::from_waker(Waker::noop());
        let poll = body.as_mut().poll(&mut cx);
        debug_assert!(poll.is_pending(), "a participant keeps what it holds");
        body
    }

    /// Judges the execution and cleans up after it. A violation that is found first is
    /// kept, whatever the clean-up finds.
    pub(crate) fn finish(self: Arc<Self>, remains: Vec<Remains>) -> Result<(), ()> {
        self.job.judged.fetch_add(1, Ordering::Relaxed);
        self.execution.tear_down();
        if self.execution.violation().is_none()
            && let Err(Violation { class, sentence }) = self.judge()
        {
            self.execution.violate(class, sentence);
        }
        let job = &self.job;
        self.execution.check_left_wakers(&|participant_id, index| {
            let step = job.program.participants[participant_id][index];
            job.subject.roles()[participant_id].ops[step.op]
                .keeps_waker
                .is_some()
        });
        for remains in remains {
            drop(self.execution.run(|| drop(remains)));
        }
        self.execution.check_leaks();
        Execution::leave();
        self.verdict()
    }

    /// Reports the violation to the job, if there is one.
    pub(crate) fn verdict(&self) -> Result<(), ()> {
        match self.execution.violation() {
            None => Ok(()),
            Some(violation) => {
                self.job.fail(Failure {
                    violation,
                    execution: self.number,
                    trace: self.execution.take_trace(),
                });
                Err(())
            }
        }
    }

    fn judge(&self) -> Result<(), Violation> {
        let job = &self.job;
        let history = (0..job.participants())
            .map(|participant_id| {
                let mut rets = self.rets(participant_id);
                let role = &job.subject.roles()[participant_id];
                self.execution
                    .calls(participant_id)
                    .into_iter()
                    .zip(&job.program.participants[participant_id])
                    .enumerate()
                    .map(|(index, (record, step))| Invocation {
                        op: &step.op,
                        name: Name::Step(role.ops[step.op].name, step.polling),
                        waits: role.ops[step.op].kind != OperationKind::Immediate,
                        record,
                        ret: rets.get_mut(index).and_then(Option::take),
                    })
                    .collect()
            })
            .collect();
        let judged = catch_unwind(AssertUnwindSafe(|| job.subject.judge(history, job.order)));
        judged.unwrap_or_else(|panic| {
            Err(Violation {
                class: Class::Panic,
                sentence: format!("the specification panics: {}", panic_text(&*panic)),
            })
        })
    }

    fn returned(&self, participant_id: usize, index: usize, ret: BoxedRet) {
        self.execution.done(participant_id, || format!("{ret:?}"));
        let mut rets = self.rets(participant_id);
        rets.resize_with(index, || None);
        rets.push(Some(ret));
    }

    fn rets(&self, participant_id: usize) -> MutexGuard<'_, Vec<Option<BoxedRet>>> {
        self.rets[participant_id]
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Runs a participant, which is the same under every engine. The future never
/// completes. It keeps what the participant holds until it is dropped.
async fn participate(run: Arc<Run>, participant_id: usize, mut actor: Actor) {
    let execution = &run.execution;
    let steps = &run.job.program.participants[participant_id];
    for (index, &step) in steps.iter().enumerate() {
        if index > 0 {
            execution.boundary().await;
        }
        perform(&run, participant_id, index, step, &mut *actor).await;
    }
    execution.end(participant_id);
    pending::<()>().await;
}

/// The greatest number of polls of an operation. A program has fewer wakes, unless it
/// wakes itself for ever.
const MAX_POLLS: usize = 200;

/// How long an operation may be polled on real threads. There it may be polled more
/// often, until another thread has acted.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Runs a step of a participant. It does not return from an operation that stays
/// pending.
async fn perform(
    run: &Arc<Run>,
    participant_id: usize,
    index: usize,
    step: Step,
    actor: &mut (dyn Any + Send),
) {
    let execution = &run.execution;
    let role = &run.job.subject.roles()[participant_id];
    let call = Call {
        participant: participant_id,
        index,
        op: &step.op,
    };
    execution.call(participant_id, &role.ops[step.op], || step.text(role));
    let value = || execution.value(call.value());
    let mut future = match execution.run(|| run.job.subject.start(actor, call, &value)) {
        Ok(Started::Done(ret)) => return run.returned(participant_id, index, ret),
        Ok(Started::Future(_)) if role.ops[step.op].kind != OperationKind::Async => {
            let name = role.ops[step.op].name;
            execution.violate(
                Class::Panic,
                format!(
                    "`{name}` starts a future, and is declared as an operation that is none: \
                     declare it by `Operation::future`"
                ),
            );
            return wait_in_vain(execution, participant_id).await;
        }
        Ok(Started::Future(future)) => future,
        Err(Stopped::Quiescent) => return wait_in_vain(execution, participant_id).await,
        Err(Stopped::WakerPanic | Stopped::Panicked) => return execution.unwound(participant_id),
    };

    let panics = match step.polling {
        Polling::Panics(hook) => Some(hook),
        _ => None,
    };
    let mut waker = Some(execution.waker(participant_id, panics));
    let mut polls = 0;
    let mut begun = None;
    let cancelled = loop {
        if polls >= MAX_POLLS {
            let endless = match execution.in_real_time() {
                true => begun.get_or_insert_with(Instant::now).elapsed() > MAX_TIME,
                false => true,
            };
            if endless {
                execution.violate(
                    Class::Deadlock,
                    format!(
                        "{{{participant_id}}} has been polled {polls} times in {}, and is woken again each \
                         time: it would go on for ever",
                        step.text(role)
                    ),
                );
                return wait_in_vain(execution, participant_id).await;
            }
        }
        // No polling mode does anything at a later suspension.
        let suspension = u8::try_from(polls).unwrap_or(u8::MAX);
        if step.polling == Polling::Cancel(suspension) {
            break true;
        }
        if polls > 0 {
            match step.polling {
                Polling::Repoll(at) if at == suspension => {
                    execution.boundary().await;
                    waker = Some(execution.waker(participant_id, None));
                }
                Polling::Spurious(at) if at == suspension => execution.boundary().await,
                polling => {
                    if execution.suspend(participant_id).await == Resumed::Quiescent {
                        return wait_in_vain(execution, participant_id).await;
                    }
                    if polling == Polling::Granted(suspension) {
                        break true;
                    }
                }
            }
        }
        execution.poll(participant_id);
        polls += 1;
        let poll = execution.run(|| {
            let waker = waker.as_ref().expect("there is one while polling");
            future.as_mut().poll(&mut Context::from_waker(waker))
        });
        match poll {
            Ok(Poll::Pending) => execution.pending(participant_id),
            Ok(Poll::Ready(ret)) => {
                run.returned(participant_id, index, ret);
                break false;
            }
            Err(Stopped::Quiescent) => return wait_in_vain(execution, participant_id).await,
            Err(Stopped::WakerPanic | Stopped::Panicked) => {
                execution.dropping(participant_id);
                drop(execution.run(|| drop(future)));
                drop(execution.run(|| drop(waker)));
                return execution.unwound(participant_id);
            }
        }
    };
    if cancelled {
        if matches!(step.polling, Polling::Cancel(1..)) {
            execution.boundary().await;
        }
        execution.dropping(participant_id);
    }
    let dropped = execution.run(|| drop(future));
    // This is the last of this call's wakers that the participant itself holds.
    let waker = execution.run(|| drop(waker));
    match (cancelled, dropped.and(waker)) {
        (true, Ok(())) => execution.cancelled(participant_id),
        (true, Err(_)) => execution.unwound(participant_id),
        (false, _) => {}
    }
}

async fn wait_in_vain(execution: &Execution, participant_id: usize) {
    execution.end(participant_id);
    pending().await
}
