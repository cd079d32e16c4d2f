//! Notifications that are kept: one at most, for the next task that waits, or for all.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille_verify::{Call, Closures, Operation, Role, Spec, Started, Subject, Value, subject};

use super::BoxFuture;

/// An event of a crate that stays set, for all. It is not reset: a wait that was
/// notified may return after a reset, so its result would say nothing of the state.
pub(crate) trait Event: Send + Sync + 'static {
    fn new() -> Self;
    fn set(&self);
    fn is_set(&self) -> bool;
    fn wait(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// An event as a subject.
pub(crate) fn event<E: Event>() -> Closures<E, bool> {
    subject(E::new, false)
        .role("setter")
        .op("set", |event: &E| event.set(), |_| [(true, ())])
        .op("is_set", E::is_set, |&set| [(set, set)])
        .role("task")
        .times(2)
        .future("wait", E::wait, |&set| set.then_some((set, ())))
}

/// A notification of a crate that is kept for one task.
pub(crate) trait Notify: Send + Sync + 'static {
    fn new() -> Self;
    fn notify_one(&self);
    fn wait(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// A notification for the only task that waits, as a subject. Such a notification is a
/// flag: a second one before the task has seen the first is the same.
pub(crate) fn signal<N: Notify>() -> Closures<N, bool> {
    subject(N::new, false)
        .role("notifier")
        .op("notify", N::notify_one, |_| [(true, ())])
        .role("task")
        .future("wait", N::wait, |&set| set.then_some((false, ())))
        // The cell keeps the waker of the last task for as long as it is there.
        .keeps_waker("until the next one is registered")
}

/// A notification as a subject.
pub(crate) struct Notifies<N>(PhantomData<fn() -> N>);

impl<N> Notifies<N> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Notify,
    Wait,
}

impl<N: Notify> Subject for Notifies<N> {
    type Op = Op;
    type Ret = ();
    type Spec = NotifySpec;
    type Actor = Arc<N>;

    fn spec(&self) -> NotifySpec {
        NotifySpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let notify = vec![Operation::immediate("notify", Op::Notify)];
        let wait = vec![Operation::future("wait", Op::Wait)];
        let tasks = participants.max(2) - 1;
        let mut roles = vec![Role {
            name: "notifier",
            ops: notify,
            symmetry: 0,
        }];
        roles.extend(vec![
            Role {
                name: "task",
                ops: wait,
                symmetry: 1
            };
            tasks
        ]);
        roles
    }

    fn actors(&self, participants: usize) -> Vec<Arc<N>> {
        vec![Arc::new(N::new()); participants]
    }

    fn start<'a>(
        &self,
        notify: &'a mut Arc<N>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, ()> {
        match call.op {
            Op::Notify => {
                notify.notify_one();
                Started::Done(())
            }
            Op::Wait => Started::Future(notify.clone().wait()),
        }
    }
}

/// The tasks that wait, those of them that are notified, and whether a notification is
/// kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    waiting: Vec<usize>,
    notified: Vec<usize>,
    kept: bool,
}

impl State {
    /// Returns the states after one notification, which any task that waits may get.
    fn notify(&self) -> Vec<Self> {
        if self.waiting.is_empty() {
            return vec![Self {
                kept: true,
                ..self.clone()
            }];
        }
        let each = self.waiting.iter().map(|&participant_id| {
            let mut next = self.clone();
            next.waiting.retain(|&waiter| waiter != participant_id);
            next.notified.push(participant_id);
            next.notified.sort_unstable();
            next
        });
        each.collect()
    }
}

pub(crate) struct NotifySpec;

impl Spec for NotifySpec {
    type Op = Op;
    type Ret = ();
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, ())> {
        let participant_id = call.participant;
        let mut next = state.clone();
        match call.op {
            Op::Notify => {
                return state
                    .notify()
                    .into_iter()
                    .map(|state| (state, ()))
                    .collect();
            }
            Op::Wait if state.notified.contains(&participant_id) => {
                next.notified.retain(|&notified| notified != participant_id);
            }
            Op::Wait if state.kept => {
                next.kept = false;
                next.waiting.retain(|&waiter| waiter != participant_id);
            }
            Op::Wait => return Vec::new(),
        }
        vec![(next, ())]
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Wait)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if !state.kept {
            next.waiting.push(call.participant);
            next.waiting.sort_unstable();
            next.waiting.dedup();
        }
        vec![next]
    }

    /// A task that was notified and gave up passes its notification on.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let participant_id = call.participant;
        let mut next = state.clone();
        next.waiting.retain(|&waiter| waiter != participant_id);
        if next.notified.contains(&participant_id) {
            next.notified.retain(|&notified| notified != participant_id);
            return next.notify();
        }
        vec![next]
    }

    /// A notification is there before the waker of a task is called.
    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut states = self.cancel(state, call);
        if matches!(call.op, Op::Notify) {
            states.extend(self.effects(state, call));
        }
        states
    }
}
