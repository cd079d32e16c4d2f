//! Permits with a fault that can be chosen. The specimens of semaphores, mutexes and
//! reader-writer locks stand on them, as the primitives stand on `Permits`.
//!
//! They are written in the plain way, with everything under one lock, so that each
//! fault is a line. With [`Fault::None`] they are correct, and assign permits strictly
//! in order.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::specimens::support::wake_all;

/// What is wrong with the permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P6: a wait that is dropped keeps what it was granted.
    GrantKept,
    /// A wait that is dropped stays in the queue.
    PlaceKept,
    /// Only the first waiter is notified of the close.
    CloseForgets,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// P2: the waker is registered without another check.
    ChecksThenRegisters,
    /// Released permits are free for any task. The first waiter is woken to try again,
    /// and may come too late each time.
    Barges,
    /// A waiter that wants fewer permits gets past one that wants more.
    SmallFirst,
    /// Released permits are assigned to one waiter, even if there are enough for two.
    AssignsToOne,
    /// P8: if a waker panics, the wakers after it are not called.
    BatchStops,
    /// P8: permits are taken before the waker is cloned, which may panic.
    TakesThenClones,
    /// A wait that is dropped leaves its waker behind.
    WakerKept,
}

/// Permits, with a queue.
pub(crate) struct Permits<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

struct State {
    free: usize,
    closed: bool,
    queue: Vec<Wait>,
    /// The number of the next waiter.
    next: usize,
    /// For [`Fault::WakerKept`]: the wakers that are left behind.
    kept: Vec<Waker>,
}

struct Wait {
    number: usize,
    permits: usize,
    answer: Option<Outcome>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted,
    Closed,
}

impl State {
    fn is_queued(&self) -> bool {
        self.queue.iter().any(|wait| wait.answer.is_none())
    }

    /// Assigns permits in order, and returns the wakers to wake.
    fn assign(&mut self, fault: Fault) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for wait in &mut self.queue {
            if wait.answer.is_some() {
                continue;
            }
            if fault == Fault::Barges {
                wakers.extend(wait.waker.take().filter(|_| self.free > 0));
                break;
            }
            if self.free < wait.permits {
                if fault == Fault::SmallFirst {
                    continue;
                }
                break;
            }
            self.free -= wait.permits;
            wait.answer = Some(Outcome::Granted);
            wakers.extend(wait.waker.take());
            if fault == Fault::AssignsToOne {
                break;
            }
        }
        wakers
    }
}

impl<B: BlockingBackend> Permits<B> {
    pub(crate) fn new(fault: Fault, permits: usize) -> Arc<Self> {
        let state = State {
            free: permits,
            closed: false,
            queue: Vec::new(),
            next: 0,
            kept: Vec::new(),
        };
        Arc::new(Self {
            fault,
            lock: StateLock::new_in(Bits::EMPTY, state),
        })
    }

    /// Acquires permits without waiting. Returns `None` if there are too few.
    pub(crate) fn try_acquire(&self, permits: usize) -> Option<Outcome> {
        self.lock
            .with(|section| self.take(section.state, permits, false))
    }

    fn take(&self, state: &mut State, permits: usize, waited: bool) -> Option<Outcome> {
        if !self.has(state, permits, waited) {
            return None;
        }
        if state.closed {
            return Some(Outcome::Closed);
        }
        state.free -= permits;
        Some(Outcome::Granted)
    }

    fn has(&self, state: &State, permits: usize, waited: bool) -> bool {
        let polite = !matches!(self.fault, Fault::Barges | Fault::SmallFirst);
        let behind = polite && !waited && state.is_queued();
        state.closed || (state.free >= permits && !behind)
    }

    pub(crate) fn release(&self, permits: usize) {
        let wakers = self.lock.with(|section| {
            section.state.free += permits;
            section.state.assign(self.fault)
        });
        self.wake(wakers);
    }

    /// Forgets a permit, if there is one, and returns how many were forgotten.
    pub(crate) fn forget(&self) -> usize {
        self.lock.with(|section| {
            let forgotten = section.state.free.min(1);
            section.state.free -= forgotten;
            forgotten
        })
    }

    /// Returns how many permits are free.
    pub(crate) fn available(&self) -> usize {
        self.lock.with(|section| section.state.free)
    }

    pub(crate) fn close(&self) {
        let wakers = self.lock.with(|section| {
            let state = section.state;
            state.closed = true;
            let told = match self.fault {
                Fault::CloseForgets => 1,
                _ => usize::MAX,
            };
            let waiting = state.queue.iter_mut().filter(|wait| wait.answer.is_none());
            let mut wakers = Vec::new();
            for wait in waiting.take(told) {
                wait.answer = Some(Outcome::Closed);
                wakers.extend(wait.waker.take());
            }
            wakers
        });
        self.wake(wakers);
    }

    fn wake(&self, wakers: Vec<Waker>) {
        match self.fault {
            Fault::BatchStops => wakers.into_iter().for_each(Waker::wake),
            _ => wake_all(wakers),
        }
    }

    /// Creates a future that acquires permits. It keeps the permits by its `Arc`.
    pub(crate) fn acquire(self: &Arc<Self>, permits: usize) -> Acquire<B> {
        Acquire {
            from: self.clone(),
            permits,
            number: None,
        }
    }

    /// Returns `true` if [`look`](Self::look) would find a result.
    fn is_over(&self, state: &State, permits: usize, number: Option<usize>) -> bool {
        let Some(number) = number else {
            return self.has(state, permits, false);
        };
        let mut waits = state.queue.iter();
        waits
            .find(|wait| wait.number == number)
            .is_some_and(|wait| {
                let barges = self.fault == Fault::Barges;
                wait.answer.is_some() || (barges && self.has(state, permits, true))
            })
    }

    /// Checks whether a wait is over. A wait that has no number begins.
    fn look(&self, state: &mut State, permits: usize, number: Option<usize>) -> Option<Outcome> {
        let Some(number) = number else {
            return self.take(state, permits, false);
        };
        let place = state.queue.iter().position(|wait| wait.number == number)?;
        let answer = match state.queue[place].answer {
            None if self.fault == Fault::Barges => self.take(state, permits, true),
            answer => answer,
        };
        if answer.is_some() {
            state.queue.remove(place);
        }
        answer
    }
}

/// The future that acquires permits.
pub(crate) struct Acquire<B: BlockingBackend> {
    from: Arc<Permits<B>>,
    permits: usize,
    /// Its number in the queue.
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Acquire<B> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let this = self.get_mut();
        let from = &this.from;
        loop {
            // No waker is in hand here. A waker that panics when it is dropped would
            // lose the grant.
            let answer = from
                .lock
                .with(|section| from.look(section.state, this.permits, this.number));
            if let Some(answer) = answer {
                this.number = None;
                if from.fault == Fault::TakesThenClones {
                    drop(cx.waker().clone());
                }
                return Poll::Ready(answer);
            }
            let waker = cx.waker().clone();
            let (registered, unused) = from.lock.with(|section| {
                let state = section.state;
                if from.fault != Fault::ChecksThenRegisters
                    && from.is_over(state, this.permits, this.number)
                {
                    return (false, Some(waker));
                }
                let number = *this.number.get_or_insert_with(|| {
                    state.queue.push(Wait {
                        number: state.next,
                        permits: this.permits,
                        answer: None,
                        waker: None,
                    });
                    state.next += 1;
                    state.next - 1
                });
                let place = state.queue.iter_mut().find(|wait| wait.number == number);
                let unused = match place.map(|wait| &mut wait.waker) {
                    Some(Some(_)) if from.fault == Fault::FirstWakerKept => Some(waker),
                    Some(place) => place.replace(waker),
                    None => Some(waker),
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

impl<B: BlockingBackend> Drop for Acquire<B> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        let fault = self.from.fault;
        let (wait, wakers) = self.from.lock.with(|section| {
            let state = section.state;
            let place = state.queue.iter().position(|wait| wait.number == number);
            let place = place.expect("it has its place until it leaves");
            if fault == Fault::PlaceKept && state.queue[place].answer.is_none() {
                return (state.queue[place].waker.take(), Vec::new());
            }
            let mut wait = state.queue.remove(place);
            if fault == Fault::WakerKept {
                state.kept.extend(wait.waker.take());
            }
            if wait.answer == Some(Outcome::Granted) && fault != Fault::GrantKept {
                state.free += wait.permits;
            }
            (wait.waker, state.assign(fault))
        });
        drop(wait);
        self.from.wake(wakers);
    }
}
