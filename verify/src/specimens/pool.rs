//! A pool of one object, with a fault that can be chosen.
//!
//! It is written in the plain way, as lists under one lock, so that each fault is a line.
//! With [`Fault::None`] it is correct.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

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
use crate::subjects::once_cell::Work;
use crate::subjects::pool::{self as real, Op, PoolSpec, Ret};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("pool", 4, ALL, Specimen)
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P6: a call that is dropped after it was served keeps what it was given.
    GrantKept,
    /// A call that is dropped while it waits stays in the queue, and is served.
    DroppedCallServed,
    /// A creation that is dropped halfway keeps its place.
    DroppedCreationKeepsPlace,
    /// A creation that fails keeps its place.
    FailedCreationKeepsPlace,
    /// An object that the check refuses keeps its place.
    RefusedKeepsPlace,
    /// An object whose check panics keeps its place.
    BrokenKeepsPlace,
    /// An object that comes back is put into the pool, and no call is told.
    NotHandedOn,
    /// An object that comes back goes to the call that has waited least.
    LatestFirst,
    /// P5: a call that is polled again keeps the old waker.
    FirstWakerKept,
    /// P2: a call looks for an object in one section and registers in another.
    ChecksThenRegisters,
    /// Closing does not wake the calls that wait.
    CloseForgets,
    /// An object that comes back after the pool was closed is kept.
    KeptAfterClose,
}

/// Each with its name and the class in which it must be caught. It is `None` for a
/// specimen that must pass.
const ALL: [(&str, Fault, Option<Class>); 13] = [
    ("plain", Fault::None, None),
    (
        "grant-kept",
        Fault::GrantKept,
        Some(Class::CancellationRace),
    ),
    (
        "dropped-call-served",
        Fault::DroppedCallServed,
        Some(Class::CancellationRace),
    ),
    (
        "dropped-creation-keeps-place",
        Fault::DroppedCreationKeepsPlace,
        Some(Class::CancellationRace),
    ),
    (
        "failed-creation-keeps-place",
        Fault::FailedCreationKeepsPlace,
        Some(Class::LostWakeUp),
    ),
    (
        "refused-keeps-place",
        Fault::RefusedKeepsPlace,
        Some(Class::LostWakeUp),
    ),
    (
        "broken-keeps-place",
        Fault::BrokenKeepsPlace,
        Some(Class::LostWakeUp),
    ),
    ("not-handed-on", Fault::NotHandedOn, Some(Class::LostWakeUp)),
    ("latest-first", Fault::LatestFirst, Some(Class::WrongResult)),
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
        "close-forgets",
        Fault::CloseForgets,
        Some(Class::LostWakeUp),
    ),
    (
        "kept-after-close",
        Fault::KeptAfterClose,
        Some(Class::WrongResult),
    ),
];

/// The specimen over every backend.
pub(crate) struct Specimen(Fault);

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

/// What a call is given.
enum Grant {
    Object(Value),
    Place,
    Closed,
}

struct Waiter {
    number: usize,
    waker: Option<Waker>,
    grant: Option<Grant>,
}

#[derive(Default)]
struct State {
    closed: bool,
    idle: Vec<Value>,
    /// Whether an object exists, or is being created.
    taken: bool,
    waiters: Vec<Waiter>,
    next: usize,
}

/// What leaves a section: wakers to wake, and objects to drop.
type Left = (Vec<Waker>, Vec<Value>);

impl State {
    /// Returns what a call can have at once.
    fn take(&mut self) -> Option<Grant> {
        if self.closed {
            return Some(Grant::Closed);
        }
        if let Some(object) = self.idle.pop() {
            return Some(Grant::Object(object));
        }
        let free = !self.taken;
        self.taken = true;
        free.then_some(Grant::Place)
    }

    /// Gives an object or a place to a waiter, or keeps it.
    fn give(&mut self, fault: Fault, grant: Grant) -> Left {
        let closed = self.closed && fault != Fault::KeptAfterClose;
        let mut queued = self.waiters.iter_mut().filter(|one| one.grant.is_none());
        let waiter = match fault {
            Fault::LatestFirst => queued.next_back(),
            Fault::NotHandedOn if matches!(grant, Grant::Object(_)) => None,
            _ => queued.next(),
        };
        match (grant, waiter) {
            (Grant::Object(object), _) if closed => {
                self.taken = false;
                (Vec::new(), vec![object])
            }
            (grant, Some(waiter)) => {
                waiter.grant = Some(grant);
                (waiter.waker.take().into_iter().collect(), Vec::new())
            }
            (Grant::Object(object), None) => {
                self.idle.push(object);
                (Vec::new(), Vec::new())
            }
            (Grant::Place | Grant::Closed, None) => {
                self.taken = false;
                (Vec::new(), Vec::new())
            }
        }
    }

    fn close(&mut self, fault: Fault) -> Left {
        self.closed = true;
        self.taken &= self.idle.is_empty();
        let mut wakers = Vec::new();
        for waiter in self.waiters.iter_mut().filter(|one| one.grant.is_none()) {
            waiter.grant = Some(Grant::Closed);
            if fault != Fault::CloseForgets {
                wakers.extend(waiter.waker.take());
            }
        }
        (wakers, std::mem::take(&mut self.idle))
    }
}

/// What the participants share.
pub(crate) struct Pool<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

/// Wakes and drops after the section.
fn finish((wakers, objects): Left) {
    let _objects = objects;
    wake_all(wakers);
}

/// A call in the queue. If it is dropped, it leaves the queue and passes on what it was
/// given.
struct Queued<'a, B: BlockingBackend> {
    pool: &'a Pool<B>,
    number: Option<usize>,
}

impl<B: BlockingBackend> Drop for Queued<'_, B> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let fault = self.pool.fault;
        let (left, waker) = self.pool.lock.with(|section| {
            let state = section.state;
            let place = state.waiters.iter().position(|one| one.number == number);
            let place = place.expect("it is queued until it leaves");
            if fault == Fault::DroppedCallServed && state.waiters[place].grant.is_none() {
                return (Left::default(), state.waiters[place].waker.take());
            }
            let waiter = state.waiters.remove(place);
            let left = match waiter.grant {
                None | Some(Grant::Closed) => Left::default(),
                Some(Grant::Object(object)) if fault == Fault::GrantKept => {
                    (Vec::new(), vec![object])
                }
                Some(_) if fault == Fault::GrantKept => Left::default(),
                Some(grant) => state.give(fault, grant),
            };
            (left, waiter.waker)
        });
        drop(waker);
        finish(left);
    }
}

/// What a call was given and has not returned. If it is dropped, it is given back.
struct Granted<'a, B: BlockingBackend> {
    pool: &'a Pool<B>,
    grant: Option<Grant>,
}

impl<B: BlockingBackend> Drop for Granted<'_, B> {
    fn drop(&mut self) {
        if let Some(grant @ (Grant::Object(_) | Grant::Place)) = self.grant.take() {
            self.pool.give(grant);
        }
    }
}

/// A place for an object that is being created. If it is dropped, it is given back.
struct Creating<'a, B: BlockingBackend> {
    pool: &'a Pool<B>,
    keeps: bool,
}

impl<B: BlockingBackend> Drop for Creating<'_, B> {
    fn drop(&mut self) {
        if !self.keeps {
            self.pool.give(Grant::Place);
        }
    }
}

impl<B: BlockingBackend> Pool<B> {
    fn give(&self, grant: Grant) {
        finish(
            self.lock
                .with(|section| section.state.give(self.fault, grant)),
        );
    }

    /// Returns what the call is given, after it has waited for it.
    async fn acquire(&self) -> Grant {
        let mut queued = Queued {
            pool: self,
            number: None,
        };
        poll_fn(|cx| {
            if self.fault == Fault::ChecksThenRegisters
                && queued.number.is_none()
                && let Some(grant) = self.lock.with(|section| section.state.take())
            {
                return Poll::Ready(grant);
            }
            let waker = cx.waker().clone();
            let (ready, unused) = self.lock.with(|section| {
                let state = section.state;
                let Some(number) = queued.number else {
                    let looks = self.fault != Fault::ChecksThenRegisters;
                    if let Some(grant) = looks.then(|| state.take()).flatten() {
                        return (Some(grant), Some(waker));
                    }
                    queued.number = Some(state.next);
                    state.waiters.push(Waiter {
                        number: state.next,
                        waker: Some(waker),
                        grant: None,
                    });
                    state.next += 1;
                    return (None, None);
                };
                let place = state.waiters.iter().position(|one| one.number == number);
                let place = place.expect("it is queued until it leaves");
                if state.waiters[place].grant.is_some() {
                    queued.number = None;
                    let waiter = state.waiters.remove(place);
                    return (waiter.grant, Some(waker));
                }
                if self.fault == Fault::FirstWakerKept {
                    return (None, Some(waker));
                }
                (None, state.waiters[place].waker.replace(waker))
            });
            // If the waker panics when it is dropped, the grant is given back (P8).
            let mut granted = Granted {
                pool: self,
                grant: ready,
            };
            drop(unused);
            match granted.grant.take() {
                Some(grant) => Poll::Ready(grant),
                None => Poll::Pending,
            }
        })
        .await
    }

    async fn get(&self, value: Option<Value>) -> Result<Value, Ret> {
        match self.acquire().await {
            Grant::Closed => Err(Ret::Closed),
            Grant::Object(object) => Ok(object),
            Grant::Place => {
                let mut creating = Creating {
                    pool: self,
                    keeps: self.fault == Fault::DroppedCreationKeepsPlace,
                };
                let mut work = pin!(Work::default());
                poll_fn(|cx| work.as_mut().poll(cx)).await;
                creating.keeps = value.is_some() || self.fault == Fault::FailedCreationKeepsPlace;
                drop(creating);
                value.ok_or(Ret::Failed)
            }
        }
    }
}

/// What a participant holds: the pool, and objects that are checked out.
pub(crate) struct Task<B: BlockingBackend> {
    pool: Arc<Pool<B>>,
    held: Vec<Value>,
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = PoolSpec;
    type Actor = Task<B>;

    fn spec(&self) -> PoolSpec {
        PoolSpec
    }

    /// Returns three roles: the first gets, in every polling mode, and gives back; the
    /// second gets or closes; the third gets, so that two can wait for one object, or looks.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(true), 0, |op| {
                matches!(
                    op,
                    Op::Get | Op::FailToGet | Op::Put | Op::Spoil | Op::Break
                )
            }),
            asymmetric(real::role(true), 1, |op| matches!(op, Op::Get | Op::Close)),
            asymmetric(real::role(true), 2, |op| matches!(op, Op::Get | Op::Size)),
        ]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.len() < if role.symmetry == 0 { 2 } else { 1 }
    }

    fn actors(&self, _: usize) -> Vec<Task<B>> {
        let pool = Arc::new(Pool {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
        });
        let task = |_| Task {
            pool: pool.clone(),
            held: Vec::new(),
        };
        (0..3).map(task).collect()
    }

    fn start<'a>(
        &self,
        task: &'a mut Task<B>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Task { pool, held } = task;
        Started::Done(match call.op {
            Op::Get | Op::FailToGet => {
                let value = (*call.op == Op::Get).then(value);
                return Started::future(async move {
                    match pool.get(value).await {
                        Ok(object) => {
                            let id = object.id();
                            held.push(object);
                            Ret::Object(Some(id))
                        }
                        Err(ret) => ret,
                    }
                });
            }
            Op::Put | Op::Spoil | Op::Break => {
                let object = held.pop();
                let id = object.as_ref().map(Value::id);
                match object {
                    Some(object) if *call.op == Op::Put => pool.give(Grant::Object(object)),
                    Some(refused) => {
                        drop(refused);
                        let keeps = match call.op {
                            Op::Break => Fault::BrokenKeepsPlace,
                            _ => Fault::RefusedKeepsPlace,
                        };
                        if self.fault != keeps {
                            pool.give(Grant::Place);
                        }
                    }
                    None => {}
                }
                Ret::Object(id)
            }
            Op::Close => {
                finish(pool.lock.with(|section| section.state.close(self.fault)));
                Ret::Done
            }
            Op::Size => Ret::Count(pool.lock.with(|section| usize::from(section.state.taken))),
            _ => unreachable!("no role performs it"),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
