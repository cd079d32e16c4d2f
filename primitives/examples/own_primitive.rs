//! A primitive of one's own over the protocol: a gate that any number of tasks wait at,
//! until it is opened.
//!
//! ```text
//!   closed ──open: OPEN, every waiter is notified──▶ open
//! ```
//!
//! Invariant: no waiter is queued once `OPEN` is set.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::protocol::{Bits, CallerLocation, Section, StateLock, Waiter, Waiters};
use reveille_executor::ThreadPool;

const OPEN: Bits = Bits::new(1);

struct Gate {
    lock: StateLock<Waiters<()>>,
}

impl Gate {
    fn new() -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, Waiters::new()),
        }
    }

    /// Opens the gate and wakes every task that waits at it.
    fn open(&self) {
        let mut notified = None;
        // A list holds so many wakers and no more: the lock is released in between.
        self.lock.rounds(|Section { bits, state, wakes }| {
            let generation = *notified.get_or_insert_with(|| {
                bits.insert(OPEN);
                state.notify_all()
            });
            state.wake_notified(generation, wakes)
        });
    }

    /// Waits until the gate is open.
    fn opened(&self) -> Opened<'_> {
        Opened {
            gate: self,
            waiter: None,
        }
    }
}

struct Opened<'a> {
    gate: &'a Gate,
    waiter: Option<Waiter>,
}

impl Future for Opened<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { gate, waiter } = self.get_mut();
        if waiter.is_none() && gate.lock.load().contains(OPEN) {
            return Poll::Ready(());
        }
        let fresh = waiter.is_none();
        // The check and the registration are one section (P2).
        gate.lock.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            if bits.contains(OPEN) {
                if let Some(waiter) = waiter.take() {
                    state.remove(waiter, wakes);
                }
                return Ok(());
            }
            let waiter = waiter.get_or_insert_with(|| state.push(CallerLocation::capture(), ()));
            Err(registration.register(state.waker(waiter)))
        })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            // An open gate stays open: there is no grant to pass on (P6).
            self.gate.lock.with(|section| {
                section.state.remove(waiter, section.wakes);
            });
        }
    }
}

fn main() {
    let pool = ThreadPool::new();
    let gate = Arc::new(Gate::new());
    let tasks = [(); 100].map(|()| {
        let gate = gate.clone();
        pool.spawn(async move { gate.opened().await })
    });
    gate.open();
    for task in tasks {
        pool.block_on(task).expect("the task goes through the gate");
    }
    println!("all of them went through");
}

#[test]
fn what_is_printed_holds() {
    main();
}
