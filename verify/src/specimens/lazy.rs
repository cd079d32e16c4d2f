//! A lazy value with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault is a
//! line. With [`Fault::None`] it is correct.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
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
use crate::subjects::lazy::{self as real, LazySpec, Making, Op, Ret, making};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("lazy", 3, Fault::ALL, Specimen)
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The initializer is dropped with the caller that drives it, and started again.
    StartsAgain,
    /// A caller that is dropped while it drives passes nothing on.
    DroppedKeepsTurn,
    /// A caller that was granted the turn and is dropped before it is polled passes nothing
    /// on.
    GrantLost,
    /// P3: only the first waiter is woken when the value is there.
    WakesOne,
    /// P5: the first waker is kept.
    FirstWakerKept,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 6] = [
        ("plain", Self::None, None),
        (
            "starts-again",
            Self::StartsAgain,
            Some(Class::CancellationRace),
        ),
        (
            "dropped-keeps-turn",
            Self::DroppedKeepsTurn,
            Some(Class::CancellationRace),
        ),
        ("grant-lost", Self::GrantLost, Some(Class::CancellationRace)),
        ("wakes-one", Self::WakesOne, Some(Class::LostWakeUp)),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
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
pub(crate) struct Lazy<B: BlockingBackend> {
    fault: Fault,
    started: Arc<AtomicUsize>,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    value: Option<usize>,
    busy: bool,
    work: Option<Making>,
    /// The waiters, with their numbers.
    waits: Vec<(usize, Waker)>,
    /// The waiters that have been notified and have not observed it.
    called: Vec<usize>,
    next: usize,
}

impl State {
    /// Passes the turn on.
    fn pass(&mut self) -> Option<Waker> {
        self.busy = !self.waits.is_empty();
        if !self.busy {
            return None;
        }
        let (number, waker) = self.waits.remove(0);
        self.called.push(number);
        Some(waker)
    }
}

/// A call.
struct Force<'a, B: BlockingBackend> {
    lazy: &'a Lazy<B>,
    number: Option<usize>,
    /// The initializer, while this call drives it.
    work: Option<Making>,
}

impl<B: BlockingBackend> Force<'_, B> {
    /// Takes the turn, or waits for it. Returns the value if it is there.
    fn enter(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let lazy = self.lazy;
        let waker = cx.waker().clone();
        let (found, unused) = lazy.lock.with(|section| {
            let state = section.state;
            let granted = self.number.is_some_and(|one| state.called.contains(&one));
            if granted || (self.number.is_none() && (state.value.is_some() || !state.busy)) {
                let number = self.number.take();
                state.called.retain(|&one| Some(one) != number);
                if state.value.is_none() {
                    state.busy = true;
                    self.work = state.work.take();
                }
                return (Poll::Ready(state.value), Some(waker));
            }
            let number = *self.number.get_or_insert(state.next);
            state.next = state.next.max(number + 1);
            let place = state.waits.iter_mut().find(|(one, _)| *one == number);
            let unused = match place {
                Some(_) if lazy.fault == Fault::FirstWakerKept => Some(waker),
                Some((_, place)) => Some(std::mem::replace(place, waker)),
                None => {
                    state.waits.push((number, waker));
                    None
                }
            };
            (Poll::Pending, unused)
        });
        // The turn is held before foreign code runs.
        if found == Poll::Ready(None) && self.work.is_none() {
            self.work = Some(making(lazy.started.clone()));
        }
        drop(unused);
        found
    }
}

impl<B: BlockingBackend> Future for Force<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let this = self.get_mut();
        if this.work.is_none() {
            match this.enter(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(value)) => return Poll::Ready(Ret::Value(Some(value))),
                Poll::Ready(None) => {}
            }
        }
        let work = this.work.as_mut().expect("it has the turn");
        let Poll::Ready(value) = work.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        this.work = None;
        let mut wakers = this.lazy.lock.with(|section| {
            let state = section.state;
            state.value = Some(value);
            state.busy = false;
            let (numbers, wakers): (Vec<_>, Vec<_>) =
                std::mem::take(&mut state.waits).into_iter().unzip();
            state.called.extend(numbers);
            wakers
        });
        if this.lazy.fault == Fault::WakesOne {
            wakers.truncate(1);
        }
        wake_all(wakers);
        Poll::Ready(Ret::Value(Some(value)))
    }
}

impl<B: BlockingBackend> Drop for Force<'_, B> {
    fn drop(&mut self) {
        let fault = self.lazy.fault;
        let work = self.work.take();
        if work.is_none() && self.number.is_none() {
            return;
        }
        let drives = work.is_some();
        let work = work.filter(|_| fault != Fault::StartsAgain);
        let (own, next) = self.lazy.lock.with(|section| {
            let state = section.state;
            let granted = self.number.is_some_and(|one| state.called.contains(&one));
            state.called.retain(|&one| Some(one) != self.number);
            let place = state
                .waits
                .iter()
                .position(|&(one, _)| Some(one) == self.number);
            let own = place.map(|place| state.waits.remove(place).1);
            if drives {
                state.work = work;
            }
            let passes = match fault {
                Fault::DroppedKeepsTurn => !drives,
                Fault::GrantLost => !granted,
                _ => true,
            };
            let turn = state.value.is_none() && (drives || granted);
            let next = (turn && passes).then(|| state.pass()).flatten();
            (own, next)
        });
        drop(own);
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = LazySpec;
    type Actor = Arc<Lazy<B>>;

    fn spec(&self) -> LazySpec {
        LazySpec
    }

    /// Returns three roles of one operation each: each forces, the first in every polling
    /// mode.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let forces = |symmetry| asymmetric(real::role(), symmetry, |op| *op == Op::Force);
        vec![forces(0), forces(1), forces(2)]
    }

    fn follows(&self, _: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.is_empty()
    }

    fn actors(&self, _: usize) -> Vec<Arc<Lazy<B>>> {
        let lazy = Arc::new(Lazy {
            fault: self.fault,
            started: Arc::default(),
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
        });
        vec![lazy; 3]
    }

    fn start<'a>(
        &self,
        lazy: &'a mut Arc<Lazy<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Force => {
                return Started::future(Force {
                    lazy,
                    number: None,
                    work: None,
                });
            }
            Op::Get => Ret::Value(lazy.lock.with(|section| section.state.value)),
            Op::Waiting => Ret::Count(lazy.lock.with(|section| section.state.waits.len())),
            Op::Granted => Ret::Count(lazy.lock.with(|section| section.state.called.len())),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
