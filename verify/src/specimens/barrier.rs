//! A barrier with a fault that can be chosen.
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
use crate::specimens::support::{asymmetric, wake_all};
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::barrier::{self as real, BarrierSpec, Op, Ret};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("barrier", 3, Fault::ALL, Specimen)
}

/// What is wrong with the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// An arrival that is dropped stays counted.
    DroppedStaysCounted,
    /// The last task to arrive releases the others one by one, and with them a task
    /// that arrives meanwhile.
    LateWaitersNotified,
    /// The count is reset only after the wakes.
    ResetLate,
    /// A waiter passes if it finds a count of zero, instead of comparing generations.
    CountIsSign,
    /// P3: only the first waiter is woken.
    WakesOne,
    /// P5: the first waker is kept.
    FirstWakerKept,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 7] = [
        ("plain", Self::None, None),
        (
            "dropped-stays-counted",
            Self::DroppedStaysCounted,
            Some(Class::CancellationRace),
        ),
        (
            "late-waiters-notified",
            Self::LateWaitersNotified,
            Some(Class::WrongResult),
        ),
        ("reset-late", Self::ResetLate, Some(Class::WrongResult)),
        ("count-is-sign", Self::CountIsSign, Some(Class::LostWakeUp)),
        ("wakes-one", Self::WakesOne, Some(Class::LostWakeUp)),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
        ),
    ];

    /// Returns the size of the barrier: three if the fault takes two waiters, else two.
    fn n(self) -> usize {
        match self {
            Self::WakesOne => 3,
            _ => 2,
        }
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

/// What the participants share.
pub(crate) struct Barrier<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    /// How many tasks have arrived.
    count: usize,
    /// The waiters, with their numbers.
    here: Vec<(usize, Option<Waker>)>,
    /// The waiters that have been notified and have not observed it.
    notified: Vec<usize>,
    next: usize,
}

impl State {
    fn call(&mut self) -> Vec<Waker> {
        let (numbers, wakers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.here).into_iter().unzip();
        self.notified.extend(numbers);
        wakers.into_iter().flatten().collect()
    }
}

impl<B: BlockingBackend> Barrier<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Arrives, or checks whether the wait is over.
    fn look(&self, state: &mut State, number: &mut Option<usize>) -> Option<(Ret, Vec<Waker>)> {
        if let Some(known) = *number {
            let over = match self.is(Fault::CountIsSign) {
                true => state.count == 0,
                false => state.notified.contains(&known),
            };
            if !over {
                return None;
            }
            *number = None;
            state.notified.retain(|&one| one != known);
            return Some((Ret::Follows, Vec::new()));
        }
        state.count += 1;
        if state.count < self.fault.n() {
            *number = Some(state.next);
            state.here.push((state.next, None));
            state.next += 1;
            return None;
        }
        if !self.is(Fault::ResetLate) {
            state.count = 0;
        }
        let wakers = match self.is(Fault::LateWaitersNotified) {
            true => Vec::new(),
            false => state.call(),
        };
        Some((Ret::Leads, wakers))
    }

    fn poll(&self, cx: &mut Context<'_>, number: &mut Option<usize>) -> Poll<Ret> {
        // The arrival comes first: if cloning the waker panics, an arrival is
        // withdrawn. The panic does not prevent an arrival.
        let mut result = self.lock.with(|section| self.look(section.state, number));
        if result.is_none() {
            let waker = cx.waker().clone();
            let (again, unused) = self.lock.with(|section| {
                let state = section.state;
                if let Some(result) = self.look(state, number) {
                    return (Some(result), Some(waker));
                }
                let place = state.here.iter_mut().find(|(one, _)| Some(*one) == *number);
                let unused = match place {
                    Some((_, Some(_))) if self.is(Fault::FirstWakerKept) => Some(waker),
                    Some((_, place)) => place.replace(waker),
                    None => Some(waker),
                };
                (None, unused)
            });
            drop(unused);
            result = again;
        }
        let Some((result, mut wakers)) = result else {
            return Poll::Pending;
        };
        if result == Ret::Leads {
            while self.is(Fault::LateWaitersNotified) {
                let waker = self.lock.with(|section| {
                    let state = section.state;
                    if state.here.is_empty() {
                        return None;
                    }
                    let (number, waker) = state.here.remove(0);
                    state.notified.push(number);
                    state.count = state.here.len();
                    Some(waker)
                });
                match waker {
                    Some(waker) => waker.into_iter().for_each(Waker::wake),
                    None => break,
                }
            }
            if self.is(Fault::WakesOne) {
                wakers.truncate(1);
            }
            wake_all(wakers);
            if self.is(Fault::ResetLate) {
                self.lock.with(|section| section.state.count = 0);
            }
        }
        Poll::Ready(result)
    }

    fn leave(&self, number: usize) {
        let waker = self.lock.with(|section| {
            let state = section.state;
            state.notified.retain(|&notified| notified != number);
            let place = state.here.iter().position(|&(one, _)| one == number)?;
            if !self.is(Fault::DroppedStaysCounted) {
                // A task that is released with the generation before it has not been
                // counted yet.
                state.count = state.count.saturating_sub(1);
            }
            Some(state.here.remove(place))
        });
        drop(waker);
    }
}

/// A wait.
struct Wait<'a, B: BlockingBackend> {
    barrier: &'a Barrier<B>,
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Wait<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let this = self.get_mut();
        this.barrier.poll(cx, &mut this.number)
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            self.barrier.leave(number);
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = BarrierSpec;
    type Actor = Arc<Barrier<B>>;

    fn spec(&self) -> BarrierSpec {
        BarrierSpec(self.fault.n())
    }

    /// Returns three roles of one operation each: two tasks that meet, and a third that
    /// arrives later, counts, or meets them.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(), 0, |op| *op == Op::Wait),
            asymmetric(real::role(), 1, |op| *op == Op::Wait),
            asymmetric(real::role(), 2, |_| true),
        ]
    }

    fn follows(&self, _: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.is_empty()
    }

    fn actors(&self, _: usize) -> Vec<Arc<Barrier<B>>> {
        let barrier = Arc::new(Barrier {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
        });
        vec![barrier; 3]
    }

    fn start<'a>(
        &self,
        barrier: &'a mut Arc<Barrier<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Wait => {
                return Started::future(Wait {
                    barrier,
                    number: None,
                });
            }
            Op::Waiting => Ret::Count(barrier.lock.with(|section| section.state.count)),
            Op::Granted => Ret::Count(barrier.lock.with(|section| section.state.notified.len())),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
