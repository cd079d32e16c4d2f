//! Permits with a fault to order: the semaphore, the mutex and the lock for
//! readers and writers among the specimens stand on them, as the suite's own
//! stand on `Permits`.
//!
//! Written the plain way, with everything under one lock, so that a fault is a
//! line. With [`Fault::None`] they are correct, and serve strictly in order.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::specimens::support::wake_all;

/// What is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P6: a wait that is dropped keeps what it was granted.
    GrantKept,
    /// A wait that is dropped stays in the queue.
    PlaceKept,
    /// Only the first of those who wait is told of the close.
    CloseForgets,
    /// P5: the first waker is kept.
    FirstWakerKept,
    /// P2: the waker is left without another look.
    ChecksThenRegisters,
    /// What is released is there for anybody; the first is woken to try, and may
    /// come too late for ever.
    Overtakes,
    /// Whoever is content with less gets past whoever wants more.
    SmallFirst,
    /// What is released is granted to one, even where it is enough for two.
    ServesOne,
    /// P8: a waker that panics keeps those after it from being woken.
    BatchStops,
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
    /// The number of the next to come.
    next: usize,
}

struct Wait {
    number: usize,
    permits: usize,
    answer: Option<BoxedRet>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoxedRet {
    Granted,
    Closed,
}

impl State {
    fn is_queued(&self) -> bool {
        self.queue.iter().any(|wait| wait.answer.is_none())
    }

    /// Grants what can be granted, in order, and answers whom to wake.
    fn serve(&mut self, fault: Fault) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for wait in &mut self.queue {
            if wait.answer.is_some() {
                continue;
            }
            if fault == Fault::Overtakes {
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
            wait.answer = Some(BoxedRet::Granted);
            wakers.extend(wait.waker.take());
            if fault == Fault::ServesOne {
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
        };
        Arc::new(Self {
            fault,
            lock: StateLock::new_in(Bits::EMPTY, state),
        })
    }

    /// Takes permits without waiting. None: there are too few.
    pub(crate) fn try_acquire(&self, permits: usize) -> Option<BoxedRet> {
        self.lock
            .with(|section| self.take(section.state, permits, false))
    }

    fn take(&self, state: &mut State, permits: usize, waited: bool) -> Option<BoxedRet> {
        if state.closed {
            return Some(BoxedRet::Closed);
        }
        let polite = !matches!(self.fault, Fault::Overtakes | Fault::SmallFirst);
        if state.free < permits || (polite && !waited && state.is_queued()) {
            return None;
        }
        state.free -= permits;
        Some(BoxedRet::Granted)
    }

    pub(crate) fn release(&self, permits: usize) {
        let wakers = self.lock.with(|section| {
            section.state.free += permits;
            section.state.serve(self.fault)
        });
        self.wake(wakers);
    }

    /// Takes a permit out of use, if there is one, and answers how many.
    pub(crate) fn forget(&self) -> usize {
        self.lock.with(|section| {
            let forgotten = section.state.free.min(1);
            section.state.free -= forgotten;
            forgotten
        })
    }

    /// How many are free.
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
                wait.answer = Some(BoxedRet::Closed);
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

    /// Acquires permits, holding on to all of them by its `Arc`.
    pub(crate) fn acquire(self: &Arc<Self>, permits: usize) -> Acquire<B> {
        Acquire {
            from: self.clone(),
            permits,
            number: None,
        }
    }

    /// Looks whether a wait is over; one that has no number begins.
    fn look(&self, state: &mut State, permits: usize, number: Option<usize>) -> Option<BoxedRet> {
        let Some(number) = number else {
            return self.take(state, permits, false);
        };
        let place = state.queue.iter().position(|wait| wait.number == number)?;
        let answer = match state.queue[place].answer {
            None if self.fault == Fault::Overtakes => self.take(state, permits, true),
            answer => answer,
        };
        if answer.is_some() {
            state.queue.remove(place);
        }
        answer
    }
}

/// The future of permits.
pub(crate) struct Acquire<B: BlockingBackend> {
    from: Arc<Permits<B>>,
    permits: usize,
    /// Its number in the queue.
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Acquire<B> {
    type Output = BoxedRet;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BoxedRet> {
        let this = self.get_mut();
        let from = &this.from;
        let look = |state: &mut State, number| from.look(state, this.permits, number);
        let mut answer = from.lock.with(|section| look(section.state, this.number));
        if answer.is_none() {
            let waker = cx.waker().clone();
            let (again, unused) = from.lock.with(|section| {
                let state = section.state;
                if from.fault != Fault::ChecksThenRegisters
                    && let Some(answer) = look(state, this.number)
                {
                    return (Some(answer), Some(waker));
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
                (None, unused)
            });
            answer = again;
            if answer.is_some() {
                // Before the waker, which may panic when it is dropped: it has left.
                this.number = None;
            }
            drop(unused);
        }
        match answer {
            Some(answer) => {
                this.number = None;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
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
            let wait = state.queue.remove(place);
            if wait.answer == Some(BoxedRet::Granted) && fault != Fault::GrantKept {
                state.free += wait.permits;
            }
            (wait.waker, state.serve(fault))
        });
        drop(wait);
        self.from.wake(wakers);
    }
}
