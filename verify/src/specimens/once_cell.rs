//! A cell whose value is initialized once, with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault
//! is a line. With [`Fault::None`] it is correct. The *permit* is that to run the
//! initializer.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::{asymmetric, wake_all};
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::once_cell::{self as real, OnceCellSpec, Op, Ret, Work};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("once-cell", 3, Fault::ALL, Specimen)
}

/// What is wrong with the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// An initializer that is dropped keeps the permit.
    DroppedKeepsPermit,
    /// An initializer that fails keeps the permit.
    FailedKeepsPermit,
    /// P8: an initializer that panics keeps the permit.
    PanickedKeepsPermit,
    /// P6: a wait that is dropped with an unobserved permit does not pass it on.
    PermitLostOnCancel,
    /// A waiter that is woken assumes that it has the permit, even if there is a value.
    WakeIsPermit,
    /// Tasks that wait only for the value are not notified when it is set.
    ForgetsWaits,
    /// P2: a task checks for the value in one section, and queues in another.
    CheckThenQueue,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// An initializer takes no permit, so several run at once.
    NoPermit,
    /// P4: the initializer is called under the lock.
    InitializesUnderLock,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 11] = [
        ("plain", Self::None, None),
        (
            "dropped-keeps-permit",
            Self::DroppedKeepsPermit,
            Some(Class::CancellationRace),
        ),
        (
            "failed-keeps-permit",
            Self::FailedKeepsPermit,
            Some(Class::LostWakeUp),
        ),
        (
            "panicked-keeps-permit",
            Self::PanickedKeepsPermit,
            Some(Class::Panic),
        ),
        (
            "permit-lost-on-cancel",
            Self::PermitLostOnCancel,
            Some(Class::CancellationRace),
        ),
        (
            "wake-is-permit",
            Self::WakeIsPermit,
            Some(Class::WrongResult),
        ),
        ("forgets-waits", Self::ForgetsWaits, Some(Class::LostWakeUp)),
        (
            "check-then-queue",
            Self::CheckThenQueue,
            Some(Class::LostWakeUp),
        ),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
        ),
        ("no-permit", Self::NoPermit, Some(Class::WrongResult)),
        (
            "initializes-under-lock",
            Self::InitializesUnderLock,
            Some(Class::Reentrancy),
        ),
    ];
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

/// What the participants share.
pub(crate) struct Cell<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    value: Option<Arc<Value>>,
    busy: bool,
    /// The queue: for each waiter its number, whether it waits for the permit, and its
    /// waker.
    queue: Vec<(usize, bool, Waker)>,
    /// The waiters that have been notified and have not observed it.
    notified: Vec<usize>,
    next: usize,
}

impl State {
    /// Sets the value, and returns the wakers to wake.
    fn set(&mut self, value: Arc<Value>, forgets: bool) -> Vec<Waker> {
        self.value.get_or_insert(value);
        self.busy = false;
        let (told, left) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|&(_, permit, _)| permit || !forgets);
        self.queue = left;
        let told: Vec<_> = told;
        told.into_iter()
            .map(|(number, _, waker)| {
                self.notified.push(number);
                waker
            })
            .collect()
    }

    /// Passes the permit on, and returns the waker to wake.
    fn pass(&mut self) -> Option<Waker> {
        let Some(next) = self.queue.iter().position(|&(_, permit, _)| permit) else {
            self.busy = false;
            return None;
        };
        let (number, _, waker) = self.queue.remove(next);
        self.notified.push(number);
        Some(waker)
    }

    /// Leaves a waker in the queue, and returns one to drop.
    fn register(
        &mut self,
        number: &mut Option<usize>,
        permit: bool,
        waker: Waker,
        keeps: bool,
    ) -> Option<Waker> {
        let number = *number.get_or_insert(self.next);
        self.next = self.next.max(number + 1);
        match self.queue.iter_mut().find(|(one, ..)| *one == number) {
            Some(_) if keeps => Some(waker),
            Some((.., place)) => Some(std::mem::replace(place, waker)),
            None => {
                self.queue.push((number, permit, waker));
                None
            }
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<B: BlockingBackend> Cell<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn value(&self) -> Option<Arc<Value>> {
        self.lock.with(|section| section.state.value.clone())
    }

    fn set(&self, value: Value) -> Ret {
        let id = value.id();
        let value = Arc::new(value);
        let result = self.lock.with(|section| {
            let state = section.state;
            if state.value.is_some() {
                return Err((Ret::Already(id), value));
            }
            if state.busy {
                return Err((Ret::Initializing(id), value));
            }
            Ok(state.set(value, false))
        });
        match result {
            Ok(wakers) => {
                wake_all(wakers);
                Ret::Set
            }
            Err((ret, value)) => {
                drop(value);
                ret
            }
        }
    }

    fn initialize(&self, value: Value) -> Ret {
        let value = Arc::new(value);
        let (wakers, value) = self.lock.with(|section| {
            let state = section.state;
            if self.is(Fault::NoPermit) && state.value.is_some() {
                return (Vec::new(), value);
            }
            let wakers = state.set(value.clone(), self.is(Fault::ForgetsWaits));
            (wakers, value)
        });
        wake_all(wakers);
        Ret::Value(Some(value.id()))
    }
}

/// The value, or the permit to initialize it.
type Found<'a, B> = Result<Arc<Value>, Permit<'a, B>>;

/// A wait for the value, or for the permit to initialize it.
struct Wait<'a, B: BlockingBackend> {
    cell: &'a Cell<B>,
    /// Whether it waits for the permit.
    permit: bool,
    number: Option<usize>,
}

impl<'a, B: BlockingBackend> Future for Wait<'a, B> {
    type Output = Found<'a, B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            cell,
            permit,
            number,
        } = self.get_mut();
        let is = |fault| cell.is(fault);
        let waker = cx.waker().clone();
        // The permit becomes a guard before the waker is dropped, since that may panic.
        let found = |value: Option<Arc<Value>>| value.ok_or(Permit(cell));
        let look = |state: &mut State, number: &mut Option<usize>| {
            let notified = number.is_some_and(|number| state.notified.contains(&number));
            if notified && is(Fault::WakeIsPermit) && *permit {
                state.notified.retain(|&one| Some(one) != number.take());
                return Some(None);
            }
            if let Some(value) = &state.value {
                let number = number.take();
                state.notified.retain(|&one| Some(one) != number);
                return Some(Some(value.clone()));
            }
            if *permit && (notified || !state.busy || is(Fault::NoPermit)) {
                let number = number.take();
                state.notified.retain(|&one| Some(one) != number);
                state.busy = true;
                return Some(None);
            }
            None
        };
        if is(Fault::CheckThenQueue) {
            if let Some(value) = cell.lock.with(|section| look(section.state, number)) {
                let found = found(value);
                drop(waker);
                return Poll::Ready(found);
            }
            let unused = cell
                .lock
                .with(|section| section.state.register(number, *permit, waker, false));
            drop(unused);
            return Poll::Pending;
        }
        let (looked, unused) = cell.lock.with(|section| {
            let state = section.state;
            match look(state, number) {
                Some(value) => (Some(value), Some(waker)),
                None => (
                    None,
                    state.register(number, *permit, waker, is(Fault::FirstWakerKept)),
                ),
            }
        });
        let found = looked.map(found);
        drop(unused);
        found.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        let (place, next) = self.cell.lock.with(|section| {
            let state = section.state;
            let place = state.queue.iter().position(|&(one, ..)| one == number);
            let place = place.map(|place| state.queue.remove(place));
            let notified = state.notified.contains(&number);
            state.notified.retain(|&one| one != number);
            let granted = notified && self.permit && state.value.is_none();
            let next = match granted && !self.cell.is(Fault::PermitLostOnCancel) {
                true => state.pass(),
                false => None,
            };
            (place, next)
        });
        drop(place);
        wake(next);
    }
}

/// The permit to run the initializer.
struct Permit<'a, B: BlockingBackend>(&'a Cell<B>);

impl<B: BlockingBackend> Drop for Permit<'_, B> {
    fn drop(&mut self) {
        let keeps = match std::thread::panicking() {
            true => self.0.is(Fault::PanickedKeepsPermit),
            false => self.0.is(Fault::DroppedKeepsPermit),
        };
        if !keeps {
            wake(self.0.lock.with(|section| section.state.pass()));
        }
    }
}

async fn init<B: BlockingBackend>(cell: &Cell<B>, value: Option<Value>) -> Ret {
    let wait = Wait {
        cell,
        permit: true,
        number: None,
    };
    let permit = match wait.await {
        Ok(value) => return Ret::Value(Some(value.id())),
        Err(permit) => permit,
    };
    if cell.is(Fault::InitializesUnderLock) {
        let mut work = Work::default();
        std::future::poll_fn(|cx| cell.lock.with(|_| Pin::new(&mut work).poll(cx))).await;
    } else {
        Work::default().await;
    }
    match value {
        Some(value) => {
            std::mem::forget(permit);
            cell.initialize(value)
        }
        None => {
            std::mem::forget(permit);
            if !cell.is(Fault::FailedKeepsPermit) {
                wake(cell.lock.with(|section| section.state.pass()));
            }
            Ret::Failed
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = OnceCellSpec;
    type Actor = Arc<Cell<B>>;

    fn spec(&self) -> OnceCellSpec {
        OnceCellSpec
    }

    /// Returns three roles of one operation each: the first is queued for the permit in
    /// every polling mode, the second fails, and the third looks.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(), 0, |op| *op == Op::GetOrInit),
            asymmetric(real::role(), 1, |op| *op == Op::FailToInit),
            asymmetric(real::role(), 2, |op| {
                matches!(op, Op::GetOrInit | Op::Wait | Op::Set)
            }),
        ]
    }

    fn follows(&self, _: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.is_empty()
    }

    fn actors(&self, _: usize) -> Vec<Arc<Cell<B>>> {
        let cell = Arc::new(Cell {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
        });
        vec![cell; 3]
    }

    fn start<'a>(
        &self,
        cell: &'a mut Arc<Cell<B>>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let cell = &**cell;
        Started::Done(match call.op {
            Op::GetOrInit | Op::GetOrTryInit => return Started::future(init(cell, Some(value()))),
            Op::FailToInit => return Started::future(init(cell, None)),
            Op::Wait => {
                let wait = Wait {
                    cell,
                    permit: false,
                    number: None,
                };
                return Started::future(async {
                    Ret::Value(wait.await.ok().map(|value| value.id()))
                });
            }
            Op::Set => cell.set(value()),
            Op::Get => Ret::Value(cell.value().map(|value| value.id())),
            Op::Initialized => Ret::Is(cell.value().is_some()),
            Op::Waiting => Ret::Count(cell.lock.with(|section| section.state.queue.len())),
            Op::Granted => Ret::Count(cell.lock.with(|section| section.state.notified.len())),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
