//! A lock for many readers or one writer, without contention.

use std::future::Future;
use std::hint::black_box;

use reveille::backend::Local;

use crate::scene::now;
use crate::{Contender, Kind};

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = Vec::new();
    for (group, writes) in [("rwlock/read", false), ("rwlock/write", true)] {
        let mut add = |kind, name, reading: fn(u64), writing: fn(u64)| {
            all.push(Contender::new(
                group,
                kind,
                name,
                if writes { writing } else { reading },
            ));
        };
        type Reveille = reveille::RwLock<u64>;
        add(
            Kind::Reveille,
            "reveille",
            read::<Reveille>,
            write::<Reveille>,
        );
        type OnLocal = reveille::RwLock<u64, Local>;
        add(
            Kind::Reveille,
            "reveille, Local",
            read::<OnLocal>,
            write::<OnLocal>,
        );
        type Tokio = tokio::sync::RwLock<u64>;
        add(Kind::Peer, "tokio", read::<Tokio>, write::<Tokio>);
        type AsyncLock = async_lock::RwLock<u64>;
        add(
            Kind::Peer,
            "async-lock",
            read::<AsyncLock>,
            write::<AsyncLock>,
        );
        type Maitake = maitake_sync::RwLock<u64>;
        add(
            Kind::Peer,
            "maitake-sync",
            read::<Maitake>,
            write::<Maitake>,
        );
    }
    all
}

/// A lock over a count, as the loops use it.
trait RwLock: 'static {
    fn new() -> Self;

    fn read(&self) -> impl Future<Output: std::ops::Deref<Target = u64>>;

    fn write(&self) -> impl Future<Output: std::ops::DerefMut<Target = u64>>;
}

/// Locks for reading, and unlocks.
fn read<L: RwLock>(iterations: u64) {
    let lock = L::new();
    for _ in 0..iterations {
        assert_eq!(*now(black_box(&lock).read()), 0);
    }
}

/// Locks for writing, and unlocks.
fn write<L: RwLock>(iterations: u64) {
    let lock = L::new();
    for _ in 0..iterations {
        *now(black_box(&lock).write()) += 1;
    }
    assert_eq!(*now(lock.read()), iterations);
}

macro_rules! rwlock {
    ($lock:ty, $new:expr) => {
        impl RwLock for $lock {
            fn new() -> Self {
                $new
            }

            fn read(&self) -> impl Future<Output: std::ops::Deref<Target = u64>> {
                self.read()
            }

            fn write(&self) -> impl Future<Output: std::ops::DerefMut<Target = u64>> {
                self.write()
            }
        }
    };
}

rwlock!(reveille::RwLock<u64>, Self::new(0));
rwlock!(reveille::RwLock<u64, Local>, Self::new_in(0));
rwlock!(tokio::sync::RwLock<u64>, Self::new(0));
rwlock!(async_lock::RwLock<u64>, Self::new(0));
rwlock!(maitake_sync::RwLock<u64>, Self::new(0));
