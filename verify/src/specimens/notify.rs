//! A notify with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault
//! is a line. With [`Fault::None`] it is correct.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::wake_all;
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::notify::{NotifySpec, Op};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("notify", 3, ALL, Specimen)
}

/// What is wrong with the notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P6: a wait that is dropped does not pass its notification on.
    GrantSwallowed,
    /// `notify_waiters` wakes waiters one by one, and with them a waiter that comes
    /// meanwhile.
    LateWaitersNotified,
    /// P8: if a waker panics, the wakers after it are not called.
    BatchStops,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// P2: the waker is registered without another check.
    ChecksThenRegisters,
    /// `notify_waiters` stores a permit.
    AllLeavePermit,
    /// The waiter that came last is notified first.
    LastGoesFirst,
}

/// Every fault, with its name and the class in which it must be caught. It is `None`
/// for a specimen that must pass.
pub(crate) const ALL: [(&str, Fault, Option<Class>); 8] = [
    ("plain", Fault::None, None),
    (
        "grant-swallowed",
        Fault::GrantSwallowed,
        Some(Class::CancellationRace),
    ),
    (
        "late-waiters-notified",
        Fault::LateWaitersNotified,
        Some(Class::WrongResult),
    ),
    ("batch-stops", Fault::BatchStops, Some(Class::Panic)),
    (
        "first-waker-kept",
        Fault::FirstWakerKept,
        Some(Class::StaleWaker),
    ),
    (
        "checks-then-registers",
        Fault::ChecksThenRegisters,
        Some(Class::LostWakeUp),
    ),
    (
        "all-leave-permit",
        Fault::AllLeavePermit,
        Some(Class::WrongResult),
    ),
    (
        "last-goes-first",
        Fault::LastGoesFirst,
        Some(Class::WrongResult),
    ),
];

/// Lets tasks wait for an event.
pub(crate) struct Notify<B: BlockingBackend> {
    fault: Fault,
    /// Whether a notification stores a permit if no task waits.
    leaves_permit: bool,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    last_goes_first: bool,
    permit: bool,
    queue: Vec<Wait>,
    /// The number of the next waiter.
    next: usize,
}

struct Wait {
    number: usize,
    grant: Grant,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grant {
    None,
    One,
    All,
}

impl State {
    fn grant(&mut self, grant: Grant) -> Option<Option<Waker>> {
        let waits = self.queue.iter_mut();
        let mut waiting = waits.filter(|wait| wait.grant == Grant::None);
        let wait = match self.last_goes_first {
            true => waiting.next_back()?,
            false => waiting.next()?,
        };
        wait.grant = grant;
        Some(wait.waker.take())
    }

    /// Notifies one waiter, or stores the permit.
    fn notify_one(&mut self, leaves_permit: bool) -> Option<Waker> {
        let granted = self.grant(Grant::One);
        self.permit |= leaves_permit && granted.is_none();
        granted.flatten()
    }

    fn place(&self, number: usize) -> usize {
        let mut waits = self.queue.iter();
        let place = waits.position(|wait| wait.number == number);
        place.expect("a wait has its place until it leaves")
    }
}

impl<B: BlockingBackend> Notify<B> {
    pub(crate) fn new(fault: Fault, leaves_permit: bool) -> Arc<Self> {
        Arc::new(Self {
            fault,
            leaves_permit,
            lock: StateLock::new_in(
                Bits::EMPTY,
                State {
                    last_goes_first: fault == Fault::LastGoesFirst,
                    ..State::default()
                },
            ),
        })
    }

    pub(crate) fn notify_one(&self) {
        let waker = self
            .lock
            .with(|section| section.state.notify_one(self.leaves_permit));
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn notify_all(&self) {
        if self.fault == Fault::LateWaitersNotified {
            while let Some(waker) = self.lock.with(|section| section.state.grant(Grant::All)) {
                waker.into_iter().for_each(Waker::wake);
            }
            return;
        }
        let wakers: Vec<_> = self.lock.with(|section| {
            let state = section.state;
            state.permit |= self.fault == Fault::AllLeavePermit;
            std::iter::from_fn(|| state.grant(Grant::All))
                .flatten()
                .collect()
        });
        match self.fault {
            Fault::BatchStops => wakers.into_iter().for_each(Waker::wake),
            _ => wake_all(wakers),
        }
    }

    pub(crate) fn notified(self: &Arc<Self>) -> Notified<B> {
        Notified {
            notify: self.clone(),
            number: None,
        }
    }

    /// Returns `true` if [`look`](Self::look) would find that a wait is over.
    fn is_over(&self, state: &State, number: Option<usize>) -> bool {
        match number {
            None => state.permit,
            Some(number) => state.queue[state.place(number)].grant != Grant::None,
        }
    }

    /// Checks whether a wait is over.
    fn look(&self, state: &mut State, number: Option<usize>) -> bool {
        match number {
            None => std::mem::take(&mut state.permit),
            Some(number) => {
                let place = state.place(number);
                let granted = state.queue[place].grant != Grant::None;
                if granted {
                    state.queue.remove(place);
                }
                granted
            }
        }
    }
}

/// A wait. It begins with its first poll.
pub(crate) struct Notified<B: BlockingBackend> {
    notify: Arc<Notify<B>>,
    /// Its number in the queue.
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Notified<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let notify = &this.notify;
        loop {
            // No waker is in hand here. A waker that panics when it is dropped would
            // lose the notification.
            let over = notify
                .lock
                .with(|section| notify.look(section.state, this.number));
            if over {
                this.number = None;
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            let (registered, unused) = notify.lock.with(|section| {
                let state = section.state;
                let looks = notify.fault != Fault::ChecksThenRegisters;
                if looks && notify.is_over(state, this.number) {
                    return (false, Some(waker));
                }
                let number = *this.number.get_or_insert_with(|| {
                    state.queue.push(Wait {
                        number: state.next,
                        grant: Grant::None,
                        waker: None,
                    });
                    state.next += 1;
                    state.next - 1
                });
                let place = state.place(number);
                let place = &mut state.queue[place].waker;
                let unused = match place {
                    Some(_) if notify.fault == Fault::FirstWakerKept => Some(waker),
                    place => place.replace(waker),
                };
                (true, unused)
            });
            drop(unused);
            if registered {
                return Poll::Pending;
            }
        }
    }
}

impl<B: BlockingBackend> Drop for Notified<B> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        let (wait, next) = self.notify.lock.with(|section| {
            let state = section.state;
            let place = state.place(number);
            let wait = state.queue.remove(place);
            let hands_on = self.notify.fault != Fault::GrantSwallowed && wait.grant == Grant::One;
            let leaves_permit = self.notify.leaves_permit;
            let next = hands_on.then(|| state.notify_one(leaves_permit));
            (wait, next.flatten())
        });
        drop(wait);
        next.into_iter().for_each(Waker::wake);
    }
}

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
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Option<usize>;
    type Spec = NotifySpec;
    type Actor = Arc<Notify<B>>;

    fn spec(&self) -> NotifySpec {
        NotifySpec
    }

    /// Returns three roles: two wait, the second perhaps twice, and the third notifies.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |symmetry, ops| Role {
            name: "task",
            symmetry,
            ops,
        };
        vec![
            role(0, vec![Operation::future("notified", Op::Notified)]),
            role(1, vec![Operation::future("notified", Op::Notified).alias()]),
            role(
                2,
                vec![
                    Operation::immediate("notify_one", Op::NotifyOne),
                    Operation::immediate("notify_waiters", Op::NotifyWaiters),
                ],
            ),
        ]
    }

    fn actors(&self, _: usize) -> Vec<Arc<Notify<B>>> {
        vec![Notify::new(self.fault, true); 3]
    }

    fn start<'a>(
        &self,
        notify: &'a mut Arc<Notify<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<usize>> {
        match call.op {
            Op::NotifyOne => notify.notify_one(),
            Op::NotifyWaiters => notify.notify_all(),
            Op::Notified => {
                let notified = notify.notified();
                return Started::future(async {
                    notified.await;
                    None
                });
            }
            _ => unreachable!("no role has it"),
        }
        Started::Done(None)
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
