//! A count with its waiters, with a fault that can be chosen: an event, a latch and a wait
//! group that are broken on purpose.
//!
//! It is written in the plain way, with everything under one lock, so that each fault is
//! a line. With [`Fault::None`] it is correct.

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
use crate::subjects::gate::{GateSpec, Op, Ret};
use crate::subjects::{event, latch, wait_group};

/// Returns the specimens of `Event`.
pub(crate) fn events() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("event", 3, EVENTS, |fault| Specimen {
        kind: Kind::Event,
        fault,
    })
}

/// Returns the specimens of `Latch`.
pub(crate) fn latches() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("latch", 3, LATCHES, |fault| Specimen {
        kind: Kind::Latch,
        fault,
    })
}

/// Returns the specimens of `WaitGroup`.
pub(crate) fn groups() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("wait-group", 3, GROUPS, |fault| Specimen {
        kind: Kind::WaitGroup,
        fault,
    })
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P2: a wait checks the count in one section, and registers in another. The last
    /// leave can come in between.
    CheckThenRegister,
    /// A wait that was released checks the count again, so that a reset takes back a set
    /// that the wait has not seen.
    ResetWipesSet,
    /// P3: only the first waiter is woken.
    WakesOne,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// A wait that is dropped keeps its place.
    DroppedStaysQueued,
    /// P8: if a waker panics, the wakers after it are not called.
    StopsAtPanic,
    /// The count is read in one section and written in another.
    CountsInTwoSections,
    /// A count of zero goes on below zero, by which the gate is closed again.
    CountsPastZero,
}

const fn lost(name: &'static str, fault: Fault) -> (&'static str, Fault, Option<Class>) {
    (name, fault, Some(Class::LostWakeUp))
}

/// Each with its name and the class in which it must be caught. It is `None` for a
/// specimen that must pass.
const EVENTS: [(&str, Fault, Option<Class>); 6] = [
    ("plain", Fault::None, None),
    lost("reset-wipes-set", Fault::ResetWipesSet),
    lost("check-then-register", Fault::CheckThenRegister),
    (
        "first-waker-kept",
        Fault::FirstWakerKept,
        Some(Class::StaleWaker),
    ),
    (
        "dropped-stays-queued",
        Fault::DroppedStaysQueued,
        Some(Class::Leak),
    ),
    ("stops-at-panic", Fault::StopsAtPanic, Some(Class::Panic)),
];

/// As for [`EVENTS`].
const LATCHES: [(&str, Fault, Option<Class>); 4] = [
    ("plain", Fault::None, None),
    lost("wakes-one", Fault::WakesOne),
    lost("counts-in-two-sections", Fault::CountsInTwoSections),
    lost("counts-past-zero", Fault::CountsPastZero),
];

/// As for [`EVENTS`].
const GROUPS: [(&str, Fault, Option<Class>); 3] = [
    ("plain", Fault::None, None),
    lost("last-leave-before-first-wait", Fault::CheckThenRegister),
    lost("leaves-in-two-sections", Fault::CountsInTwoSections),
];

/// Which primitive it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Latch,
    WaitGroup,
}

/// The specimen over every backend.
#[derive(Clone, Copy)]
pub(crate) struct Specimen {
    kind: Kind,
    fault: Fault,
}

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            specimen: *self,
            backend: PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    specimen: Specimen,
    backend: PhantomData<fn() -> B>,
}

/// What the participants share.
pub(crate) struct Gate<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

struct State {
    /// It can be below zero only by a fault.
    count: isize,
    /// The waiters, with their numbers.
    waits: Vec<(usize, Waker)>,
    /// The waiters that have been released and have not observed it.
    called: Vec<usize>,
    next: usize,
}

impl<B: BlockingBackend> Gate<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn subtract(&self, n: isize) {
        let before = self.lock.with(|section| section.state.count);
        let wakers = self.lock.with(|section| {
            let state = section.state;
            let count = match self.is(Fault::CountsInTwoSections) {
                true => before,
                false => state.count,
            };
            state.count = match self.is(Fault::CountsPastZero) {
                true => count - n,
                false => (count - n).max(0),
            };
            if state.count > 0 {
                return Vec::new();
            }
            let mut waits = std::mem::take(&mut state.waits);
            if self.is(Fault::WakesOne) && waits.len() > 1 {
                state.waits = waits.split_off(1);
            }
            let (numbers, wakers): (Vec<_>, Vec<_>) = waits.into_iter().unzip();
            state.called.extend(numbers);
            wakers
        });
        match self.is(Fault::StopsAtPanic) {
            true => wakers.into_iter().for_each(Waker::wake),
            false => wake_all(wakers),
        }
    }

    fn is_open(&self) -> bool {
        self.lock.with(|section| section.state.count == 0)
    }

    fn poll(&self, cx: &mut Context<'_>, number: &mut Option<usize>) -> Poll<Ret> {
        let late = self.is(Fault::CheckThenRegister);
        if late && self.is_open() {
            return Poll::Ready(Ret::Done);
        }
        let waker = cx.waker().clone();
        let (passes, unused) = self.lock.with(|section| {
            let state = section.state;
            let known = *number;
            let called = known.is_some_and(|known| state.called.contains(&known));
            let passes = match known {
                Some(_) if self.is(Fault::ResetWipesSet) => state.count == 0,
                Some(_) => called,
                None => state.count == 0 && !late,
            };
            if called {
                state.called.retain(|&one| Some(one) != known);
            }
            if passes {
                *number = None;
                return (true, Some(waker));
            }
            let number = *number.get_or_insert(state.next);
            state.next = state.next.max(number + 1);
            let place = state.waits.iter_mut().find(|(one, _)| *one == number);
            let unused = match place {
                Some(_) if self.is(Fault::FirstWakerKept) => Some(waker),
                Some((_, place)) => Some(std::mem::replace(place, waker)),
                None => {
                    state.waits.push((number, waker));
                    None
                }
            };
            (false, unused)
        });
        drop(unused);
        match passes {
            true => Poll::Ready(Ret::Done),
            false => Poll::Pending,
        }
    }

    fn leave(&self, number: usize) {
        if self.is(Fault::DroppedStaysQueued) {
            return;
        }
        let waker = self.lock.with(|section| {
            let state = section.state;
            state.called.retain(|&called| called != number);
            let place = state.waits.iter().position(|&(one, _)| one == number)?;
            Some(state.waits.remove(place))
        });
        drop(waker);
    }
}

/// A wait.
struct Wait<'a, B: BlockingBackend> {
    gate: &'a Gate<B>,
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Wait<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let this = self.get_mut();
        this.gate.poll(cx, &mut this.number)
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            self.gate.leave(number);
        }
    }
}

impl<B: BlockingBackend> SpecimenOn<B> {
    /// Returns the role of every participant, and the count at the beginning.
    fn real(&self) -> (Role<Op>, usize) {
        match self.specimen.kind {
            Kind::Event => (event::role(), 1),
            Kind::Latch => (latch::role(), latch::COUNT),
            Kind::WaitGroup => (wait_group::roles(1).remove(0), wait_group::MEMBERS),
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = GateSpec;
    type Actor = Arc<Gate<B>>;

    fn spec(&self) -> GateSpec {
        GateSpec(self.real().1)
    }

    /// Returns three roles: the first waits in every polling mode, or changes the count
    /// once; the second waits or changes it; the third changes it up to twice, or looks.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = || self.real().0;
        let changes = |op: &Op| matches!(op, Op::Subtract(_) | Op::Close);
        vec![
            asymmetric(role(), 0, |op| *op == Op::Wait || *op == Op::Subtract(1)),
            asymmetric(role(), 1, |op| *op == Op::Wait || changes(op)),
            asymmetric(role(), 2, |op| changes(op) || *op == Op::Count),
        ]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.len() < if role.symmetry == 2 { 2 } else { 1 }
    }

    fn actors(&self, _: usize) -> Vec<Arc<Gate<B>>> {
        let state = State {
            count: self.real().1 as isize,
            waits: Vec::new(),
            called: Vec::new(),
            next: 0,
        };
        let gate = Arc::new(Gate {
            fault: self.specimen.fault,
            lock: StateLock::new_in(Bits::EMPTY, state),
        });
        vec![gate; 3]
    }

    fn start<'a>(
        &self,
        gate: &'a mut Arc<Gate<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let look =
            |look: fn(&State) -> usize| Ret::Count(gate.lock.with(|section| look(section.state)));
        Started::Done(match *call.op {
            Op::Wait | Op::WaitOwned => {
                return Started::future(Wait { gate, number: None });
            }
            Op::Subtract(n) => {
                gate.subtract(n as isize);
                Ret::Done
            }
            Op::Add => {
                gate.lock.with(|section| section.state.count += 1);
                Ret::Done
            }
            Op::Close => {
                gate.lock.with(|section| {
                    let count = &mut section.state.count;
                    *count = (*count).max(1);
                });
                Ret::Done
            }
            Op::Count => look(|state| state.count as usize),
            Op::IsOpen => Ret::Is(gate.is_open()),
            Op::Waiting => look(|state| state.waits.len()),
            Op::Granted => look(|state| state.called.len()),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
