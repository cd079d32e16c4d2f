//! `reveille::raw::task`, which every executor of the suite runs.
//!
//! ```text
//!   ender ──abort, cancel──▶ ┌──────┐ ◀──wakes── gate ◀──open, wake── waker
//!   joiner ◀────outcome───── │ task │
//!                            └──────┘ ──scheduled──▶ queue ──▶ runner
//! ```
//!
//! The future of the task waits for a value at a gate. The gate keeps to P2, so a lost
//! wake-up is lost by the task, or on the way through the queue.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock, WakerSlot};
use reveille::raw::{Abort, Failure, Join, Metadata, Owned, RunResult, Runnable, Schedule, task};

use crate::run::entry::{SubjectEntry, Surface};
use crate::subject::plan::Bound;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "task",
            "reveille::raw::task: run, woken, joined, aborted, cancelled",
            Tasks,
            Surface::Other("the operations of `raw::task`, by which executors are built"),
        )
        .in_group("executor"),
    ]
}

/// Tasks over every backend.
pub(crate) struct Tasks;

impl GenericSubject for Tasks {
    type On<B: BlockingBackend> = TasksOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        TasksOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        plans(mode, profile)
    }
}

/// Returns the plans of a subject with four roles.
pub(crate) fn plans(mode: Mode, profile: Profile) -> Vec<Plan> {
    let plan = Plan::of(mode, profile);
    let with = |operations, total, non_default, panics| Plan {
        bound: Bound {
            operations,
            total,
            non_default,
            panics,
            ..plan.bound
        },
        ..plan
    };
    use Mode::{Accesses, Exhaustive, Pct, Random, Sections, Steps, Threads};
    match (mode, profile) {
        (Steps, Profile::Quick) => vec![with(2, 3, 3, true), with(2, 4, 0, false)],
        (Steps, _) => vec![with(2, 5, 2, true)],
        (Sections, Profile::Quick) => vec![Plan {
            preemptions: Some(2),
            ..with(1, 2, 0, false)
        }],
        (Sections, _) => vec![with(1, 3, 0, false), with(2, 2, 2, true)],
        (Exhaustive, Profile::Quick) => vec![with(2, 2, 1, true), with(2, 3, 0, false)],
        (Exhaustive, Profile::Full) => vec![with(1, 4, 0, false), with(2, 4, 1, true)],
        (Exhaustive, Profile::Deep) => vec![with(2, 5, 2, true)],
        (Accesses, Profile::Quick) => Vec::new(),
        (Accesses, _) => vec![Plan {
            preemptions: Some(2),
            ..with(1, 3, 1, false)
        }],
        (Random | Pct | Threads, _) => vec![with(3, 8, 8, true)],
    }
}

pub(crate) struct TasksOn<B>(PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Runs the task whenever it is scheduled, until it has ended.
    RunLoop,
    /// Gives the future its value, and wakes it.
    Open,
    /// Wakes the future for no reason.
    Wake,
    Join,
    IsFinished,
    Abort,
    DropJoin,
    /// Cancels the task, as an executor does at its end.
    Cancel,
}

/// What an operation returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// It has no result.
    Unit,
    /// The output.
    Output(ValueId),
    /// There is no output, since the task was cancelled.
    Cancelled,
    /// Whether it is so.
    Is(bool),
}

/// Returns the roles and their operations. The specimens have the same ones.
pub(crate) fn roles() -> Vec<Role<Op>> {
    let role = |name, symmetry, ops| Role {
        name,
        symmetry,
        ops,
    };
    vec![
        // The runner is not woken by a waker that panics, since that would lose the
        // task that was taken from the queue.
        role(
            "runner",
            0,
            vec![
                Operation::future("run_loop", Op::RunLoop)
                    .alias()
                    .keeps_waker("the queue of this subject keeps the waker of its runner"),
            ],
        ),
        role(
            "waker",
            1,
            vec![
                Operation::immediate("open", Op::Open),
                Operation::immediate("wake", Op::Wake),
            ],
        ),
        role(
            "joiner",
            2,
            vec![
                Operation::future("join", Op::Join).keeps_waker(
                    "it polls a handle that outlives it, which keeps its latest waker",
                ),
                Operation::immediate("is_finished", Op::IsFinished),
                Operation::immediate("abort", Op::Abort),
                Operation::immediate("drop", Op::DropJoin).leaving(),
            ],
        ),
        role(
            "ender",
            3,
            vec![
                Operation::immediate("abort", Op::Abort),
                Operation::immediate("cancel", Op::Cancel),
                Operation::immediate("is_finished", Op::IsFinished),
            ],
        ),
    ]
}

/// Allows one value and one outcome, and no operation after the end of the join end.
pub(crate) fn follows(role: &Role<Op>, before: &[Step], next: Step) -> bool {
    let op = |step: &Step| role.ops[step.op].op;
    let for_ever = |step: &Step| step.polling.completes();
    let ended = |step: &Step| match op(step) {
        Op::DropJoin => true,
        Op::Join | Op::RunLoop => for_ever(step),
        _ => false,
    };
    let opened = |step: &Step| op(step) == Op::Open && op(&next) == Op::Open;
    !before.iter().any(|step| ended(step) || opened(step))
}

/// The gate at which the future waits.
pub(crate) struct Gate<B: BlockingBackend>(StateLock<Behind, B>);

struct Behind {
    value: Option<Value>,
    waker: WakerSlot,
}

impl<B: BlockingBackend> Gate<B> {
    pub(crate) fn new() -> Arc<Self> {
        let behind = Behind {
            value: None,
            waker: WakerSlot::new(),
        };
        Arc::new(Self(StateLock::new_in(Bits::EMPTY, behind)))
    }

    pub(crate) fn open(&self, value: Value) {
        self.0.with(|section| {
            section.state.value = Some(value);
            section.wakes.wake(&mut section.state.waker);
        });
    }

    pub(crate) fn wake(&self) {
        self.0
            .with(|section| section.wakes.wake(&mut section.state.waker));
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Value> {
        self.0.poll(cx, false, |section, registration| {
            match section.state.value.take() {
                Some(value) => Ok(value),
                None => Err(registration.register(&mut section.state.waker)),
            }
        })
    }
}

/// The queue of scheduled tasks.
struct Queue<B: BlockingBackend>(StateLock<Waiting<B>, B>);

struct Waiting<B: BlockingBackend> {
    runnables: VecDeque<Runnable<B>>,
    runner: WakerSlot,
    closed: bool,
}

impl<B: BlockingBackend> Queue<B> {
    fn new() -> Arc<Self> {
        let waiting = Waiting {
            runnables: VecDeque::new(),
            runner: WakerSlot::new(),
            closed: false,
        };
        Arc::new(Self(StateLock::new_in(Bits::EMPTY, waiting)))
    }

    fn push(&self, runnable: Runnable<B>) {
        let refused = self.0.with(|section| {
            if section.state.closed {
                return Some(runnable);
            }
            section.state.runnables.push_back(runnable);
            section.wakes.wake(&mut section.state.runner);
            None
        });
        drop(refused);
    }

    fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<Runnable<B>> {
        self.0.poll(cx, false, |section, registration| {
            match section.state.runnables.pop_front() {
                Some(runnable) => Ok(runnable),
                None => Err(registration.register(&mut section.state.runner)),
            }
        })
    }

    /// Runs scheduled tasks. It is ready when the task has ended.
    fn poll_serve(&self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(runnable) = self.poll_pop(cx) {
            match runnable.run() {
                RunResult::Pending => {}
                RunResult::Woken(runnable) => self.push(runnable),
                RunResult::Completed(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

/// The runner of scheduled tasks. At its end it leaves nothing in the queue, to which
/// the tasks hold references.
pub(crate) struct Runner<B: BlockingBackend>(Arc<Queue<B>>);

impl<B: BlockingBackend> Drop for Runner<B> {
    fn drop(&mut self) {
        let left = self.0.0.with(|section| {
            section.state.closed = true;
            std::mem::take(&mut section.state.runnables)
        });
        drop(left);
    }
}

struct ToQueue<B: BlockingBackend>(Arc<Queue<B>>);

impl<B: BlockingBackend> Schedule<B> for ToQueue<B> {
    fn schedule(&self, task: Runnable<B>) {
        self.0.push(task);
    }
}

/// What a participant holds.
pub(crate) enum Part<B: BlockingBackend> {
    Runner(Runner<B>),
    Waker(Arc<Gate<B>>),
    Joiner(Option<Join<Value, B>>),
    Ender(Ender<B>),
}

/// The reference of the executor, and a handle to abort with.
pub(crate) struct Ender<B: BlockingBackend> {
    held: Owned<B>,
    abort: Abort<B>,
}

/// Cancels the task, as an executor does that leaves no future behind.
impl<B: BlockingBackend> Drop for Ender<B> {
    fn drop(&mut self) {
        self.held.cancel();
    }
}

impl<B: BlockingBackend> Subject for TasksOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = TaskSpec;
    type Actor = Part<B>;

    fn spec(&self) -> TaskSpec {
        TaskSpec
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        roles()
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        follows(role, before, next)
    }

    fn actors(&self, _: usize) -> Vec<Part<B>> {
        let (gate, queue) = (Gate::new(), Queue::new());
        let metadata = Metadata {
            id: 0,
            location: Location::caller(),
            name: (),
        };
        let future = poll_fn({
            let gate = gate.clone();
            move |cx| gate.poll(cx)
        });
        let (runnable, held, join) = task(future, ToQueue(queue.clone()), metadata);
        queue.push(runnable);
        let abort = join.abort_handle();
        vec![
            Part::Runner(Runner(queue)),
            Part::Waker(gate),
            Part::Joiner(Some(join)),
            Part::Ender(Ender { held, abort }),
        ]
    }

    fn start<'a>(
        &self,
        part: &'a mut Part<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match (part, *call.op) {
            (Part::Runner(Runner(queue)), Op::RunLoop) => {
                return Started::future(async move {
                    poll_fn(|cx| queue.poll_serve(cx)).await;
                    Ret::Unit
                });
            }
            (Part::Waker(gate), Op::Open) => gate.open(value()),
            (Part::Waker(gate), Op::Wake) => gate.wake(),
            // The outcome has been taken.
            (Part::Joiner(None), Op::Join | Op::Abort) => {}
            (Part::Joiner(None), Op::IsFinished) => return Started::Done(Ret::Is(true)),
            (Part::Joiner(join), Op::Join) => {
                return Started::future(async move {
                    let outcome = poll_fn(|cx| match join {
                        Some(join) => join.poll(cx),
                        None => unreachable!("no step polls a join end that has left"),
                    });
                    let outcome = outcome.await;
                    *join = None;
                    match outcome {
                        Ok(value) => Ret::Output(value.id()),
                        Err(Failure::Cancelled) => Ret::Cancelled,
                        Err(Failure::Panicked(panic)) => std::panic::resume_unwind(panic),
                    }
                });
            }
            (Part::Joiner(join), Op::DropJoin) => drop(join.take()),
            (Part::Joiner(Some(join)), Op::Abort) => join.abort(),
            (Part::Joiner(Some(join)), Op::IsFinished) => {
                return Started::Done(Ret::Is(join.is_finished()));
            }
            (Part::Ender(ender), Op::Abort) => ender.abort.abort(),
            (Part::Ender(ender), Op::Cancel) => {
                return Started::Done(Ret::Is(ender.held.cancel()));
            }
            (Part::Ender(ender), Op::IsFinished) => {
                return Started::Done(Ret::Is(ender.abort.is_finished()));
            }
            (_, op) => unreachable!("{op:?} is not of this role"),
        }
        Started::Done(Ret::Unit)
    }
}

/// What the operations of a task mean, one at a time.
pub(crate) struct TaskSpec;

/// The state of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    value: Option<ValueId>,
    aborted: bool,
    /// Whether a runner runs it whenever it is scheduled.
    served: bool,
    outcome: Option<Outcome>,
    /// Whether the outcome has been taken.
    joined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Output(ValueId),
    Cancelled,
}

impl State {
    fn ended(&self, outcome: Outcome) -> Self {
        Self {
            outcome: Some(outcome),
            ..self.clone()
        }
    }

    /// Returns the ways in which it can end if it is run. An abort during the last poll
    /// comes too late.
    fn ends(&self) -> Vec<Self> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        let output = self.value.map(Outcome::Output);
        let cancelled = self.aborted.then_some(Outcome::Cancelled);
        let ends = output.into_iter().chain(cancelled);
        ends.map(|outcome| self.ended(outcome)).collect()
    }
}

impl Spec for TaskSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        *op == Op::RunLoop
    }

    fn begin(&self, state: &State, _: Call<'_, Op>) -> Vec<State> {
        vec![State {
            served: true,
            ..state.clone()
        }]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        match call.op {
            Op::RunLoop => vec![State {
                served: false,
                ..state.clone()
            }],
            Op::Join => vec![state.clone()],
            _ => self.effects(state, call),
        }
    }

    /// If it can end and is served, it must.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        match call.op {
            Op::Join => state.outcome.is_some() || state.served && !state.ends().is_empty(),
            Op::RunLoop => !state.ends().is_empty(),
            _ => false,
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let ret = match *call.op {
            Op::RunLoop => {
                let ends = state.ends().into_iter();
                return ends.map(|state| (state, Ret::Unit)).collect();
            }
            Op::Open => {
                next.value = Some(call.value());
                Ret::Unit
            }
            Op::Wake | Op::DropJoin => Ret::Unit,
            Op::Abort => {
                next.aborted |= state.outcome.is_none();
                Ret::Unit
            }
            Op::IsFinished => Ret::Is(state.outcome.is_some()),
            Op::Join if state.joined => Ret::Unit,
            Op::Join => {
                next.joined = true;
                match state.outcome {
                    None => return Vec::new(),
                    Some(Outcome::Output(value)) => Ret::Output(value),
                    Some(Outcome::Cancelled) => Ret::Cancelled,
                }
            }
            Op::Cancel if state.outcome.is_some() => Ret::Is(true),
            Op::Cancel => {
                let mut outcomes = vec![(state.ended(Outcome::Cancelled), Ret::Is(true))];
                // The task that polls it meanwhile handles that.
                if state.served {
                    next.aborted = true;
                    outcomes.push((next, Ret::Is(false)));
                }
                return outcomes;
            }
        };
        vec![(next, ret)]
    }
}
