//! Permits that are acquired and released.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::Poll;

use reveille::backend::Local;

use crate::scene::{now, poll};
use crate::{Contender, Kind};

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = Vec::new();
    for (group, handed) in [("semaphore/alone", false), ("semaphore/handed", true)] {
        let mut add = |kind, name, alone: fn(u64), in_queue: fn(u64)| {
            all.push(Contender::new(
                group,
                kind,
                name,
                if handed { in_queue } else { alone },
            ));
        };
        type Reveille = reveille::Semaphore;
        add(
            Kind::Reveille,
            "reveille",
            self::alone::<Reveille>,
            self::handed::<Reveille>,
        );
        type OnLocal = reveille::Semaphore<Local>;
        add(
            Kind::Reveille,
            "reveille, Local",
            self::alone::<OnLocal>,
            self::handed::<OnLocal>,
        );
        type Tokio = tokio::sync::Semaphore;
        add(
            Kind::Peer,
            "tokio",
            self::alone::<Tokio>,
            self::handed::<Tokio>,
        );
        type AsyncLock = async_lock::Semaphore;
        add(
            Kind::Peer,
            "async-lock",
            self::alone::<AsyncLock>,
            self::handed::<AsyncLock>,
        );
        type Intrusive = futures_intrusive::sync::Semaphore;
        add(
            Kind::Peer,
            "futures-intrusive",
            self::alone::<Intrusive>,
            self::handed::<Intrusive>,
        );
    }
    all
}

/// A semaphore of one permit, as the loops use it.
trait Semaphore: 'static {
    type Permit<'a>;

    fn new() -> Self;

    fn acquire(&self) -> impl Future<Output = Self::Permit<'_>>;
}

/// Acquires, and releases.
fn alone<S: Semaphore>(iterations: u64) {
    let semaphore = S::new();
    for _ in 0..iterations {
        drop(now(black_box(&semaphore).acquire()));
    }
}

/// Waits; releases, which hands over or wakes; acquires by a poll.
fn handed<S: Semaphore>(iterations: u64) {
    let semaphore = S::new();
    let mut permit = Some(now(semaphore.acquire()));
    for _ in 0..iterations {
        let mut acquire = pin!(black_box(&semaphore).acquire());
        assert!(poll(acquire.as_mut()).is_pending());
        drop(permit.take());
        match poll(acquire) {
            Poll::Ready(next) => permit = Some(next),
            Poll::Pending => panic!("the permit is not acquired"),
        }
    }
}

impl Semaphore for reveille::Semaphore {
    type Permit<'a> = reveille::SemaphorePermit<'a>;

    fn new() -> Self {
        Self::new(1)
    }

    async fn acquire(&self) -> Self::Permit<'_> {
        self.acquire().await.expect("the semaphore is never closed")
    }
}

impl Semaphore for reveille::Semaphore<Local> {
    type Permit<'a> = reveille::SemaphorePermit<'a, Local>;

    fn new() -> Self {
        Self::new_in(1)
    }

    async fn acquire(&self) -> Self::Permit<'_> {
        self.acquire().await.expect("the semaphore is never closed")
    }
}

impl Semaphore for tokio::sync::Semaphore {
    type Permit<'a> = tokio::sync::SemaphorePermit<'a>;

    fn new() -> Self {
        Self::new(1)
    }

    async fn acquire(&self) -> Self::Permit<'_> {
        self.acquire().await.expect("the semaphore is never closed")
    }
}

impl Semaphore for async_lock::Semaphore {
    type Permit<'a> = async_lock::SemaphoreGuard<'a>;

    fn new() -> Self {
        Self::new(1)
    }

    fn acquire(&self) -> impl Future<Output = Self::Permit<'_>> {
        self.acquire()
    }
}

impl Semaphore for futures_intrusive::sync::Semaphore {
    type Permit<'a> = futures_intrusive::sync::SemaphoreReleaser<'a>;

    fn new() -> Self {
        Self::new(true, 1)
    }

    fn acquire(&self) -> impl Future<Output = Self::Permit<'_>> {
        self.acquire(1)
    }
}
