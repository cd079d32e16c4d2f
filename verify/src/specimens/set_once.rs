//! A value that is set once, with a fault that can be chosen.
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
use reveille::raw::Witness;

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::{asymmetric, wake_all};
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::set_once::{self as real, Op, Ret, SetOnceSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("set-once", 3, Fault::ALL, Specimen)
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P2: a wait checks in one section, and registers in another.
    CheckThenRegister,
    /// P3: only the first waiter is woken.
    WakesOne,
    /// P4: a value that is refused is dropped under the lock, and not returned.
    RefusedUnderLock,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// A wait that is dropped keeps its place.
    DroppedStaysQueued,
    /// P8: if a waker panics, the wakers after it are not called.
    StopsAtPanic,
    /// A second call replaces the value.
    SetTwice,
    /// The memory of the value is written after it is announced.
    AnnouncedEarly,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 9] = [
        ("plain", Self::None, None),
        (
            "check-then-register",
            Self::CheckThenRegister,
            Some(Class::LostWakeUp),
        ),
        ("wakes-one", Self::WakesOne, Some(Class::LostWakeUp)),
        (
            "refused-under-lock",
            Self::RefusedUnderLock,
            Some(Class::Reentrancy),
        ),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
        ),
        (
            "dropped-stays-queued",
            Self::DroppedStaysQueued,
            Some(Class::Leak),
        ),
        ("stops-at-panic", Self::StopsAtPanic, Some(Class::Panic)),
        ("set-twice", Self::SetTwice, Some(Class::WrongResult)),
        ("announced-early", Self::AnnouncedEarly, Some(Class::Race)),
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
pub(crate) struct Once<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
    /// For [`Fault::AnnouncedEarly`]: the memory of the value.
    memory: Witness<B>,
}

#[derive(Default)]
struct State {
    value: Option<Arc<Value>>,
    /// The waiters, with their numbers.
    waits: Vec<(usize, Waker)>,
    /// The waiters that have been notified and have not observed it.
    notified: Vec<usize>,
    next: usize,
}

impl<B: BlockingBackend> Once<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn set(&self, value: Value) -> Ret {
        let id = value.id();
        let value = Arc::new(value);
        let (refused, wakers) = self.lock.with(|section| {
            let state = section.state;
            if state.value.is_some() && !self.is(Fault::SetTwice) {
                if self.is(Fault::RefusedUnderLock) {
                    drop(value);
                    return (Some(None), Vec::new());
                }
                return (Some(Some(value)), Vec::new());
            }
            if !self.is(Fault::AnnouncedEarly) {
                self.memory.write();
            }
            let old = state.value.replace(value);
            let mut waits = std::mem::take(&mut state.waits);
            if self.is(Fault::WakesOne) && waits.len() > 1 {
                state.waits = waits.split_off(1);
            }
            let mut wakers = Vec::new();
            for (number, waker) in waits {
                state.notified.push(number);
                wakers.push(waker);
            }
            (old.map(Some), wakers)
        });
        if self.is(Fault::AnnouncedEarly) {
            self.memory.write();
        }
        let done = match refused {
            Some(_) if !self.is(Fault::SetTwice) => Ret::Refused(id),
            _ => Ret::Set,
        };
        match self.is(Fault::StopsAtPanic) {
            true => wakers.into_iter().for_each(Waker::wake),
            false => wake_all(wakers),
        }
        done
    }

    fn value(&self) -> Option<Arc<Value>> {
        let value = self.lock.with(|section| section.state.value.clone());
        if value.is_some() && !self.is(Fault::SetTwice) {
            self.memory.read();
        }
        value
    }

    fn poll(&self, cx: &mut Context<'_>, number: &mut Option<usize>) -> Poll<Ret> {
        if self.is(Fault::CheckThenRegister)
            && let Some(value) = self.value()
        {
            return Poll::Ready(Ret::Value(Some(value.id())));
        }
        let waker = cx.waker().clone();
        let (value, unused) = self.lock.with(|section| {
            let state = section.state;
            if let Some(value) = &state.value
                && !self.is(Fault::CheckThenRegister)
            {
                if let Some(number) = number.take() {
                    state.notified.retain(|&notified| notified != number);
                }
                return (Some(value.clone()), Some(waker));
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
            (None, unused)
        });
        drop(unused);
        match value {
            Some(value) => {
                self.memory.read();
                Poll::Ready(Ret::Value(Some(value.id())))
            }
            None => Poll::Pending,
        }
    }

    fn leave(&self, number: usize) {
        if self.is(Fault::DroppedStaysQueued) {
            return;
        }
        let waker = self.lock.with(|section| {
            let state = section.state;
            state.notified.retain(|&notified| notified != number);
            let place = state.waits.iter().position(|&(one, _)| one == number)?;
            Some(state.waits.remove(place))
        });
        drop(waker);
    }
}

/// A wait.
struct Wait<'a, B: BlockingBackend> {
    once: &'a Once<B>,
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Wait<'_, B> {
    type Output = Ret;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ret> {
        let this = self.get_mut();
        this.once.poll(cx, &mut this.number)
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            self.once.leave(number);
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = SetOnceSpec;
    type Actor = Arc<Once<B>>;

    fn spec(&self) -> SetOnceSpec {
        SetOnceSpec
    }

    /// Returns three roles of one operation each: the first waits in every polling
    /// mode, or sets; the second waits; the third sets, or counts.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(), 0, |op| matches!(op, Op::Wait | Op::Set)),
            asymmetric(real::role(), 1, |op| *op == Op::Wait),
            asymmetric(real::role(), 2, |op| matches!(op, Op::Set | Op::Waiting)),
        ]
    }

    fn follows(&self, _: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.is_empty()
    }

    fn actors(&self, _: usize) -> Vec<Arc<Once<B>>> {
        let once = Arc::new(Once {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
            memory: Witness::new_in(),
        });
        vec![once; 3]
    }

    fn start<'a>(
        &self,
        once: &'a mut Arc<Once<B>>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Wait => return Started::future(Wait { once, number: None }),
            Op::Set => once.set(value()),
            Op::Get => Ret::Value(once.value().map(|value| value.id())),
            Op::Initialized => Ret::Is(once.lock.with(|section| section.state.value.is_some())),
            Op::Waiting => Ret::Count(once.lock.with(|section| section.state.waits.len())),
            Op::Granted => Ret::Count(once.lock.with(|section| section.state.notified.len())),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
