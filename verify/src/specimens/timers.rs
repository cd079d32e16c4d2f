//! Timers with a fault that can be chosen, on a clock that is moved by hand. The
//! specimens of sleeps and timeouts stand on them, as the primitives stand on `Timers`.
//!
//! They are written in the plain way, as a list under one lock with the time, so that
//! each fault is a line. With [`Fault::None`] they are correct.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::specimens::support::wake_all;

/// What is wrong with the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// P5: a sleep that is polled again keeps the old waker.
    FirstWakerKept,
    /// The driver is not woken for a deadline that is nearer than its own.
    NearerUntold,
    /// A sleep that is dropped leaves its entry.
    EntryKept,
    /// Firing stops at the first entry that is not due.
    FarHidesNear,
}

/// Timers in a list.
pub(crate) struct Timers<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    now: u64,
    /// In the order of their creation.
    entries: Vec<Entry>,
    /// The number of the next entry.
    next: usize,
    driver: Option<Driver>,
}

struct Entry {
    number: usize,
    deadline: u64,
    fired: bool,
    waker: Option<Waker>,
}

/// A driver that is asleep.
struct Driver {
    until: u64,
    waker: Waker,
}

impl State {
    fn place(&self, number: usize) -> usize {
        let mut entries = self.entries.iter();
        let place = entries.position(|entry| entry.number == number);
        place.expect("a sleep has its entry until it leaves")
    }

    /// Fires the entries that are due, and returns the wakers to wake.
    fn fire(&mut self, fault: Fault) -> Vec<Waker> {
        let now = self.now;
        let mut wakers = Vec::new();
        for entry in &mut self.entries {
            if entry.deadline <= now {
                entry.fired = true;
                wakers.extend(entry.waker.take());
            } else if fault == Fault::FarHidesNear {
                break;
            }
        }
        wakers
    }

    /// Adds an entry, and returns the waker of the driver if its deadline is nearer.
    fn insert(&mut self, deadline: u64, waker: Waker, fault: Fault) -> Option<Waker> {
        self.entries.push(Entry {
            number: self.next,
            deadline,
            fired: false,
            waker: Some(waker),
        });
        self.next += 1;
        let told = fault != Fault::NearerUntold;
        let driver = self
            .driver
            .take_if(|driver| told && deadline < driver.until);
        driver.map(|driver| driver.waker)
    }

    /// Returns the nearest deadline of the entries that have not fired.
    fn next_deadline(&self) -> u64 {
        let waiting = self.entries.iter().filter(|entry| !entry.fired);
        let deadlines = waiting.map(|entry| entry.deadline);
        deadlines.min().unwrap_or(u64::MAX)
    }
}

impl<B: BlockingBackend> Timers<B> {
    pub(crate) fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            fault,
            lock: StateLock::new_in(Bits::EMPTY, State::default()),
        })
    }

    /// Moves the clock, and wakes the driver if its deadline has passed.
    pub(crate) fn advance(&self, by: u64) {
        let driver = self.lock.with(|section| {
            let state = section.state;
            state.now += by;
            let now = state.now;
            state.driver.take_if(|driver| driver.until <= now)
        });
        wake_all(driver.into_iter().map(|driver| driver.waker).collect());
    }

    /// Fires the entries that are due.
    pub(crate) fn fire(&self) {
        let wakers = self.lock.with(|section| section.state.fire(self.fault));
        wake_all(wakers);
    }

    /// Runs one turn of a driver: fires the entries that are due, and sleeps until the
    /// next.
    pub(crate) fn turn(&self, cx: &mut Context<'_>) {
        let waker = cx.waker().clone();
        let (wakers, before) = self.lock.with(|section| {
            let state = section.state;
            let wakers = state.fire(self.fault);
            let until = state.next_deadline();
            (wakers, state.driver.replace(Driver { until, waker }))
        });
        drop(before);
        wake_all(wakers);
    }

    /// Creates a sleep until a deadline. The sleep keeps the timers by its `Arc`.
    pub(crate) fn sleep_until(self: &Arc<Self>, deadline: u64) -> Sleep<B> {
        Sleep {
            timers: self.clone(),
            deadline,
            number: None,
        }
    }
}

/// A sleep. It has an entry from its first poll.
pub(crate) struct Sleep<B: BlockingBackend> {
    timers: Arc<Timers<B>>,
    deadline: u64,
    /// The number of its entry.
    number: Option<usize>,
}

impl<B: BlockingBackend> Future for Sleep<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let fault = this.timers.fault;
        let waker = cx.waker().clone();
        let (over, unused, driver) = this.timers.lock.with(|section| {
            let state = section.state;
            let Some(number) = this.number else {
                if this.deadline <= state.now {
                    return (true, Some(waker), None);
                }
                this.number = Some(state.next);
                return (false, None, state.insert(this.deadline, waker, fault));
            };
            let place = state.place(number);
            if state.entries[place].fired {
                state.entries.remove(place);
                this.number = None;
                return (true, Some(waker), None);
            }
            let unused = match &mut state.entries[place].waker {
                Some(_) if fault == Fault::FirstWakerKept => Some(waker),
                place => place.replace(waker),
            };
            (false, unused, None)
        });
        drop(unused);
        wake_all(driver.into_iter().collect());
        match over {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl<B: BlockingBackend> Drop for Sleep<B> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        if self.timers.fault == Fault::EntryKept {
            return;
        }
        let entry = self.timers.lock.with(|section| {
            let place = section.state.place(number);
            section.state.entries.remove(place)
        });
        drop(entry);
    }
}
