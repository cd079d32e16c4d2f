//! `reveille::Notify`, every public operation.

use std::pin::{Pin, pin};
use std::sync::Arc;

use reveille::Notify;
use reveille::protocol::{Bits, BlockingBackend, StateLock};

use super::queueing;
use crate::execution::Value;
use crate::plan::{Mode, Plan, Profile};
use crate::spec::{Call, Spec};
use crate::subject::{Family, Offer, Role, Started, Subject};

/// `Notify` over every backend.
pub(crate) struct Notifies;

impl Family for Notifies {
    type On<B: BlockingBackend> = NotifyOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        NotifyOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        queueing(mode, profile)
    }
}

pub(crate) struct NotifyOn<B>(std::marker::PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Notified,
    /// Created, enabled, awaited.
    Enabled,
    NotifiedOwned,
    WaitUntil,
    NotifyOne,
    NotifyLast,
    NotifyWaiters,
    /// Makes true what `WaitUntil` waits for, and notifies nobody.
    Open,
    Waiting,
    Granted,
}

/// What one participant holds: all of it.
pub(crate) struct Shared<B: BlockingBackend> {
    notify: Arc<Notify<B>>,
    /// Whether it is open: what `WaitUntil` waits for.
    gate: StateLock<(), B>,
}

const OPEN: Bits = Bits::new(1);

impl<B: BlockingBackend> Subject for NotifyOn<B> {
    type Op = Op;
    /// A number, where the operation has one.
    type Ret = Option<usize>;
    type Spec = NotifySpec;
    type Actor = Arc<Shared<B>>;

    fn spec(&self) -> NotifySpec {
        NotifySpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = Role {
            name: "task",
            kind: 0,
            ops: vec![
                Offer::future("notified", Op::Notified),
                Offer::at_once("notify_one", Op::NotifyOne),
                Offer::at_once("notify_waiters", Op::NotifyWaiters),
                Offer::at_once("notify_last", Op::NotifyLast),
                Offer::future("enabled", Op::Enabled).alias(),
                Offer::future("notified_owned", Op::NotifiedOwned).alias(),
                Offer::future("wait_until", Op::WaitUntil).alias(),
                Offer::at_once("open", Op::Open),
                Offer::at_once("waiting", Op::Waiting),
                Offer::at_once("granted", Op::Granted),
            ],
        };
        vec![role; participants]
    }

    fn describe(&self, bits: Bits) -> String {
        let bits = bits.get();
        let mut text = Vec::new();
        if bits & 1 != 0 {
            text.push("permit".to_owned());
        }
        if bits & 2 != 0 {
            text.push("queued".to_owned());
        }
        if bits > 7 || text.is_empty() {
            text.push(format!("{} calls", bits / 8));
        }
        text.join(", ")
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Shared<B>>> {
        let shared = Arc::new(Shared {
            notify: Arc::new(Notify::new_in()),
            gate: StateLock::new_in(Bits::EMPTY, ()),
        });
        vec![shared; participants]
    }

    fn start<'a>(
        &self,
        actor: &'a mut Arc<Shared<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<usize>> {
        let Shared { notify, gate } = &**actor;
        match call.op {
            Op::Notified => {
                let notified = notify.notified();
                return Started::future(async {
                    notified.await;
                    None
                });
            }
            Op::Enabled => {
                let mut notified = notify.notified();
                Pin::new(&mut notified).enable();
                return Started::future(async {
                    pin!(notified).await;
                    None
                });
            }
            Op::NotifiedOwned => {
                let notified = notify.clone().notified_owned();
                return Started::future(async {
                    notified.await;
                    None
                });
            }
            Op::WaitUntil => {
                let open = notify.wait_until(|| gate.load().contains(OPEN));
                return Started::future(async {
                    open.await;
                    None
                });
            }
            Op::NotifyOne => notify.notify_one(),
            Op::NotifyLast => notify.notify_last(),
            Op::NotifyWaiters => notify.notify_waiters(),
            Op::Open => gate.with(|section| section.bits.insert(OPEN)),
            Op::Waiting => return Started::Done(Some(notify.waiting())),
            Op::Granted => return Started::Done(Some(notify.granted())),
        }
        Started::Done(None)
    }
}

/// What a notify is, one operation at a time. Which of several waits is
/// notified first is left open: that it is the first, or the last, is pinned by
/// tests; here it would need to be known when each took its place.
pub(crate) struct NotifySpec;

/// Its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    permit: bool,
    /// How often all were notified.
    calls: usize,
    open: bool,
    /// The waits going on, by participant.
    waits: Vec<(usize, Wait)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    calls: usize,
    granted: bool,
    /// It waits for the gate, and takes notifications on the way.
    until: bool,
    /// It has been notified, or has begun, with the gate open.
    due: bool,
}

impl State {
    /// The states after one is notified.
    fn notified(&self) -> Vec<Self> {
        let mut next = vec![Self {
            permit: true,
            ..self.clone()
        }];
        for (index, (_, wait)) in self.waits.iter().enumerate() {
            if !wait.granted && wait.calls == self.calls {
                let mut state = self.clone();
                state.waits[index].1.granted = true;
                state.waits[index].1.due = self.open;
                next.push(state);
            }
        }
        next.extend(self.swallowed());
        next
    }

    /// The state after a wait for the gate has taken a notification, or the
    /// permit, for nothing.
    fn swallowed(&self) -> Option<Self> {
        let until = self.waits.iter().any(|(_, wait)| wait.until);
        until.then(|| Self {
            permit: false,
            ..self.clone()
        })
    }

    fn take(&mut self, who: usize) -> Option<Wait> {
        let index = self.waits.iter().position(|&(owner, _)| owner == who)?;
        Some(self.waits.remove(index).1)
    }
}

impl Spec for NotifySpec {
    type Op = Op;
    type Ret = Option<usize>;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::Notified | Op::Enabled | Op::NotifiedOwned | Op::WaitUntil
        )
    }

    /// A wait for the gate looks at it when it begins and when it is notified:
    /// who opens it and tells nobody wakes nobody.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        match call.op {
            Op::WaitUntil => state
                .waits
                .iter()
                .any(|&(who, wait)| who == call.who && wait.due),
            _ => !self.step(state, call).is_empty(),
        }
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let wait = Wait {
            calls: state.calls,
            granted: false,
            until: *call.op == Op::WaitUntil,
            due: state.open,
        };
        next.waits.push((call.who, wait));
        next.waits.sort_by_key(|&(who, _)| who);
        let swallowed = next.swallowed();
        [next].into_iter().chain(swallowed).collect()
    }

    /// A wait that was notified alone hands it on.
    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        match next.take(call.who) {
            Some(wait) if wait.granted => next.notified(),
            _ => vec![next],
        }
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Option<usize>)> {
        let mut next = state.clone();
        let outcomes = match call.op {
            Op::NotifyOne | Op::NotifyLast => state.notified(),
            Op::NotifyWaiters => {
                next.calls += 1;
                for (_, wait) in &mut next.waits {
                    wait.due |= state.open;
                }
                vec![next]
            }
            Op::Open => {
                next.open = true;
                vec![next]
            }
            Op::Waiting | Op::Granted => {
                // How many of those who wait have taken their places is open.
                let counts = 0..=state.waits.len();
                return counts.map(|n| (state.clone(), Some(n))).collect();
            }
            Op::WaitUntil => match next.take(call.who) {
                Some(_) if state.open => vec![next],
                _ => Vec::new(),
            },
            Op::Notified | Op::Enabled | Op::NotifiedOwned => match next.take(call.who) {
                Some(wait) if wait.granted || wait.calls != state.calls => vec![next],
                Some(_) if state.permit => {
                    next.permit = false;
                    vec![next]
                }
                _ => Vec::new(),
            },
        };
        let swallowed: Vec<_> = outcomes
            .iter()
            .filter(|state| state.permit)
            .filter_map(State::swallowed)
            .collect();
        outcomes
            .into_iter()
            .chain(swallowed)
            .map(|state| (state, None))
            .collect()
    }
}
