//! An event without a value: a stored permit, a wait, and a notification of all waits.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;

use reveille::backend::Local;

use crate::scene::{Row, now, poll};
use crate::{Contender, Kind};

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = Vec::new();
    for (group, operation) in OPERATIONS {
        let mut add = |kind, name, run| {
            all.push(Contender::new(group, kind, name, run));
        };
        add(
            Kind::Reveille,
            "reveille",
            operation.of::<reveille::Notify>(),
        );
        let local = operation.of::<reveille::Notify<Local>>();
        add(Kind::Reveille, "reveille, Local", local);
        add(Kind::Peer, "tokio", operation.of::<tokio::sync::Notify>());
        add(
            Kind::Peer,
            "maitake-sync",
            operation.of::<maitake_sync::WaitQueue>(),
        );
    }
    all
}

const OPERATIONS: [(&str, Operation); 3] = [
    ("notify/permit", Operation::Permit),
    ("notify/pending", Operation::Pending),
    ("notify/broadcast", Operation::Broadcast),
];

#[derive(Clone, Copy)]
enum Operation {
    Permit,
    Pending,
    Broadcast,
}

impl Operation {
    /// Returns the loop of this operation for one implementation.
    fn of<N: Notify>(self) -> fn(u64) {
        match self {
            Self::Permit => permit::<N>,
            Self::Pending => pending::<N>,
            Self::Broadcast => broadcast::<N>,
        }
    }
}

/// A primitive to wait for an event, as the loops use it.
trait Notify: 'static {
    fn new() -> Self;

    fn notify_one(&self);

    fn notify_all(&self);

    fn notified(&self) -> impl Future;
}

/// Notifies, and waits, which completes at once.
fn permit<N: Notify>(iterations: u64) {
    let notify = N::new();
    for _ in 0..iterations {
        black_box(&notify).notify_one();
        now(notify.notified());
    }
}

/// Waits; notifies, which wakes; completes the wait.
fn pending<N: Notify>(iterations: u64) {
    let notify = N::new();
    for _ in 0..iterations {
        let mut wait = pin!(black_box(&notify).notified());
        assert!(poll(wait.as_mut()).is_pending());
        notify.notify_one();
        assert!(poll(wait).is_ready());
    }
}

/// Begins up to 4,096 waits, notifies all, and completes the waits. Each wait counts as
/// an iteration.
fn broadcast<N: Notify>(mut iterations: u64) {
    let notify = N::new();
    while iterations > 0 {
        let together = iterations.min(4096);
        iterations -= together;
        let mut waits = Row::of((0..together).map(|_| notify.notified()));
        waits.each(|wait| assert!(poll(wait).is_pending()));
        black_box(&notify).notify_all();
        waits.each(|wait| assert!(poll(wait).is_ready()));
    }
}

impl Notify for reveille::Notify {
    fn new() -> Self {
        Self::new()
    }

    fn notify_one(&self) {
        self.notify_one();
    }

    fn notify_all(&self) {
        self.notify_waiters();
    }

    fn notified(&self) -> impl Future {
        self.notified()
    }
}

impl Notify for reveille::Notify<Local> {
    fn new() -> Self {
        Self::new_in()
    }

    fn notify_one(&self) {
        self.notify_one();
    }

    fn notify_all(&self) {
        self.notify_waiters();
    }

    fn notified(&self) -> impl Future {
        self.notified()
    }
}

impl Notify for tokio::sync::Notify {
    fn new() -> Self {
        Self::new()
    }

    fn notify_one(&self) {
        self.notify_one();
    }

    fn notify_all(&self) {
        self.notify_waiters();
    }

    fn notified(&self) -> impl Future {
        self.notified()
    }
}

impl Notify for maitake_sync::WaitQueue {
    fn new() -> Self {
        Self::new()
    }

    fn notify_one(&self) {
        self.wake();
    }

    fn notify_all(&self) {
        self.wake_all();
    }

    fn notified(&self) -> impl Future {
        self.wait()
    }
}
