//! A task with a fault that can be chosen, and the queue of its runner.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock, WakerSlot};
use reveille::raw::Witness;

use crate::run::entry::SpecimenEntry;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::task::{self as real, Gate, Op, Ret, TaskSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("task", 3, ALL, Specimen)
}

/// What is wrong with the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A wake while the task is polled is ignored, as if the poll would see it.
    WokenWhileRunning,
    /// The runner checks the queue in one section, and goes to sleep in another.
    LooksThenParks,
    /// An abort drops the future at once, even if it is being polled.
    AbortDropsPolled,
    /// The first waker of the join end is kept.
    JoinWakerKept,
    /// An abort does not schedule the task, and takes effect only at the next wake.
    AbortWaits,
    /// A task that is cancelled does not wake the join end.
    CancelledInSilence,
    /// A cancel sees in one section that the task runs, and leaves its request in
    /// another.
    LooksThenCancels,
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 8] = [
    ("plain", Fault::None, None),
    (
        "woken-while-running",
        Fault::WokenWhileRunning,
        Some(Class::LostWakeUp),
    ),
    (
        "looks-then-parks",
        Fault::LooksThenParks,
        Some(Class::LostWakeUp),
    ),
    (
        "abort-drops-polled",
        Fault::AbortDropsPolled,
        Some(Class::Race),
    ),
    (
        "join-waker-kept",
        Fault::JoinWakerKept,
        Some(Class::StaleWaker),
    ),
    ("abort-waits", Fault::AbortWaits, Some(Class::LostWakeUp)),
    (
        "cancelled-in-silence",
        Fault::CancelledInSilence,
        Some(Class::LostWakeUp),
    ),
    (
        "looks-then-cancels",
        Fault::LooksThenCancels,
        Some(Class::LostWakeUp),
    ),
];

/// The specimen over every backend.
pub(crate) struct Specimen(pub(crate) Fault);

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            fault: self.0,
            backend: PhantomData,
        }
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        real::plans(mode, profile)
    }
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

const SCHEDULED: Bits = Bits::new(1);
const RUNNING: Bits = Bits::new(1 << 1);
const ABORTED: Bits = Bits::new(1 << 2);
const DONE: Bits = Bits::new(1 << 3);

/// The task, and the queue in which it is scheduled.
pub(crate) struct Task<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<Ended, B>,
    queue: StateLock<Queue, B>,
    gate: Arc<Gate<B>>,
    /// The memory of the future.
    future: Witness<B>,
}

#[derive(Default)]
struct Ended {
    outcome: Option<Result<Value, Cancelled>>,
    join: Option<Waker>,
    joined: bool,
}

struct Cancelled;

#[derive(Default)]
struct Queue {
    scheduled: usize,
    runner: WakerSlot,
}

struct TaskWaker<B: BlockingBackend>(Weak<Task<B>>);

impl<B: BlockingBackend> Wake for TaskWaker<B> {
    fn wake(self: Arc<Self>) {
        if let Some(task) = self.0.upgrade() {
            task.wake();
        }
    }
}

/// Wakes a waker, and contains its panic (P8).
fn contain(waker: Option<Waker>) {
    let wake = AssertUnwindSafe(|| waker.map(Waker::wake));
    drop(catch_unwind(wake));
}

impl<B: BlockingBackend> Task<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn push(&self) {
        self.queue.with(|section| {
            section.state.scheduled += 1;
            section.wakes.wake(&mut section.state.runner);
        });
    }

    fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is(Fault::LooksThenParks) {
            let found = self.queue.with(|section| {
                let found = section.state.scheduled > 0;
                section.state.scheduled -= usize::from(found);
                found
            });
            if found {
                return Poll::Ready(());
            }
        }
        let looks = !self.is(Fault::LooksThenParks);
        self.queue.poll(cx, false, |section, registration| {
            if looks && section.state.scheduled > 0 {
                section.state.scheduled -= 1;
                return Ok(());
            }
            Err(registration.register(&mut section.state.runner))
        })
    }

    fn wake(&self) {
        let due = self.lock.with(|section| {
            let bits = section.bits;
            if bits.intersects(SCHEDULED | DONE) {
                return false;
            }
            if bits.contains(RUNNING) && self.is(Fault::WokenWhileRunning) {
                return false;
            }
            bits.insert(SCHEDULED);
            !bits.contains(RUNNING)
        });
        if due {
            self.push();
        }
    }

    fn abort(&self) {
        let mut drops = false;
        let due = self.lock.with(|section| {
            let bits = section.bits;
            if bits.intersects(ABORTED | DONE) {
                return false;
            }
            bits.insert(ABORTED);
            drops = self.is(Fault::AbortDropsPolled) && bits.contains(RUNNING);
            if self.is(Fault::AbortWaits) || bits.intersects(RUNNING | SCHEDULED) {
                return false;
            }
            bits.insert(SCHEDULED);
            true
        });
        if due {
            self.push();
        }
        if drops {
            self.end(Err(Cancelled));
        }
    }

    fn cancel(&self) -> bool {
        let entered = self.lock.with(|section| {
            let bits = section.bits;
            if bits.contains(DONE) {
                return Some(false);
            }
            if bits.contains(RUNNING) {
                if !self.is(Fault::LooksThenCancels) {
                    bits.insert(ABORTED);
                }
                return None;
            }
            bits.insert(RUNNING);
            Some(true)
        });
        if entered.is_none() && self.is(Fault::LooksThenCancels) {
            self.lock.with(|section| section.bits.insert(ABORTED));
        }
        if entered == Some(true) {
            self.end(Err(Cancelled));
        }
        entered.is_some()
    }

    /// Drops the future, and notifies the join end.
    fn end(&self, outcome: Result<Value, Cancelled>) {
        self.future.write();
        let silent = self.is(Fault::CancelledInSilence) && outcome.is_err();
        let (refused, waker) = self.lock.with(|section| {
            if section.bits.contains(DONE) {
                return (Some(outcome), None);
            }
            *section.bits = section.bits.without(RUNNING | SCHEDULED) | DONE;
            section.state.outcome = Some(outcome);
            (None, section.state.join.take_if(|_| !silent))
        });
        drop(refused);
        contain(waker);
    }

    /// Runs the task, and returns `true` if it has ended.
    fn run(self: &Arc<Self>) -> bool {
        let entered = self.lock.with(|section| {
            let bits = section.bits;
            let entered = !bits.intersects(RUNNING | DONE);
            if entered {
                *bits = bits.without(SCHEDULED) | RUNNING;
            }
            entered.then(|| bits.contains(ABORTED))
        });
        let Some(aborted) = entered else {
            return false;
        };
        if !aborted {
            let waker = Waker::from(Arc::new(TaskWaker(Arc::downgrade(self))));
            self.future.write();
            if let Poll::Ready(value) = self.gate.poll(&mut Context::from_waker(&waker)) {
                self.end(Ok(value));
                return true;
            }
        }
        let (ends, again) = self.lock.with(|section| {
            let bits = section.bits;
            if bits.intersects(ABORTED | DONE) {
                return (true, false);
            }
            bits.remove(RUNNING);
            (false, bits.contains(SCHEDULED))
        });
        if again {
            self.push();
        }
        if ends {
            self.end(Err(Cancelled));
        }
        ends
    }

    fn poll_serve(self: &Arc<Self>, cx: &mut Context<'_>) -> Poll<()> {
        while self.poll_pop(cx).is_ready() {
            if self.run() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    fn is_finished(&self) -> bool {
        self.lock.load().contains(DONE)
    }

    fn poll_join(&self, cx: &Context<'_>) -> Poll<Ret> {
        loop {
            // No waker is in hand here. A waker that panics when it is dropped would
            // lose the outcome.
            let outcome = self.lock.with(|section| {
                if section.state.joined {
                    return Some(None);
                }
                let outcome = section.state.outcome.take();
                section.state.joined = outcome.is_some();
                outcome.map(Some)
            });
            match outcome {
                Some(Some(Ok(value))) => return Poll::Ready(Ret::Output(value.id())),
                Some(Some(Err(Cancelled))) => return Poll::Ready(Ret::Cancelled),
                Some(None) => return Poll::Ready(Ret::Unit),
                None => {}
            }
            let waker = cx.waker().clone();
            let (registered, unused) = self.lock.with(|section| {
                if section.state.joined || section.state.outcome.is_some() {
                    return (false, Some(waker));
                }
                let join = &mut section.state.join;
                match self.is(Fault::JoinWakerKept) && join.is_some() {
                    true => (true, Some(waker)),
                    false => (true, join.replace(waker)),
                }
            });
            drop(unused);
            if registered {
                return Poll::Pending;
            }
        }
    }

    fn leave_join(&self) {
        let left = self
            .lock
            .with(|section| (section.state.join.take(), section.state.outcome.take()));
        drop(left);
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = TaskSpec;
    type Actor = Arc<Task<B>>;

    fn spec(&self) -> TaskSpec {
        TaskSpec
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        real::roles()
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        real::follows(role, before, next)
    }

    fn actors(&self, _: usize) -> Vec<Arc<Task<B>>> {
        let task = Arc::new(Task {
            fault: self.fault,
            lock: StateLock::new_in(SCHEDULED, Ended::default()),
            queue: StateLock::new_in(Bits::EMPTY, Queue::default()),
            gate: Gate::new(),
            future: Witness::new_in(),
        });
        task.push();
        vec![task; real::roles().len()]
    }

    fn start<'a>(
        &self,
        task: &'a mut Arc<Task<B>>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        match *call.op {
            Op::RunLoop => {
                return Started::future(async {
                    poll_fn(|cx| task.poll_serve(cx)).await;
                    Ret::Unit
                });
            }
            Op::Join => return Started::future(poll_fn(|cx| task.poll_join(cx))),
            Op::Open => task.gate.open(value()),
            Op::Wake => task.gate.wake(),
            Op::Abort => task.abort(),
            Op::DropJoin => task.leave_join(),
            Op::IsFinished => return Started::Done(Ret::Is(task.is_finished())),
            Op::Cancel => return Started::Done(Ret::Is(task.cancel())),
        }
        Started::Done(Ret::Unit)
    }
}
