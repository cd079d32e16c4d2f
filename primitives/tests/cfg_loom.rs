//! `--cfg loom`, as is usual for crates that loom checks: the default backend is
//! loom's, and a crate that does not name a backend is explored without a change.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p reveille --test cfg_loom --target-dir target/cfg-loom
//! ```

#![cfg(loom)]

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
use reveille::backend::{DefaultBackend, Loom};
use reveille::oneshot::{self, Receiver, Sender, Slot};
use reveille::protocol::block_on;
use reveille::raw::Boxed;

/// Explores `f`, and returns the number of executions.
fn explore(f: impl Fn() + Send + Sync + 'static) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    loom::model(move || {
        count.fetch_add(1, Ordering::Relaxed);
        f();
    });
    executions.load(Ordering::Relaxed)
}

#[test]
fn the_default_backend_is_looms() {
    assert_eq!(TypeId::of::<DefaultBackend>(), TypeId::of::<Loom>());
    // As in the types that users write.
    let _: fn() -> (Sender<u32, Boxed<Loom>>, Receiver<u32, Boxed<Loom>>) = oneshot::channel::<u32>;
}

#[test]
fn a_channel_that_names_no_backend_is_explored() {
    let executions = explore(|| {
        let (tx, rx) = oneshot::channel();
        let sender = thread::spawn(move || tx.send(7).unwrap());
        assert_eq!(rx.blocking_recv(), Ok(7));
        sender.join().unwrap();
    });
    assert!(executions > 5, "{executions} executions");
}

#[test]
fn both_sides_of_a_race_are_found() {
    static RECEIVED: AtomicUsize = AtomicUsize::new(0);
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let (tx, mut rx) = oneshot::channel();
        let sender = thread::spawn(move || tx.send(7).is_ok());
        rx.close();
        let received = rx.try_recv().is_ok();
        assert_eq!(sender.join().unwrap(), received);
        let found = if received { &RECEIVED } else { &REFUSED };
        found.fetch_add(1, Ordering::Relaxed);
    });
    assert!(RECEIVED.load(Ordering::Relaxed) > 0);
    assert!(REFUSED.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_sender_that_waits_is_woken_in_every_order() {
    let executions = explore(|| {
        let (mut tx, rx) = oneshot::channel::<u32>();
        let receiver = thread::spawn(move || drop(rx));
        block_on::<DefaultBackend, _>(tx.closed());
        receiver.join().unwrap();
    });
    assert!(executions > 3, "{executions} executions");
}

#[test]
fn a_slot_that_names_no_backend_is_loomed_too() {
    explore(|| {
        let mut slot = Slot::new();
        let (tx, rx) = slot.split();
        tx.send(7).unwrap();
        assert_eq!(rx.blocking_recv(), Ok(7));
    });
}

#[test]
fn what_is_wrong_is_found() {
    let explored = std::panic::catch_unwind(|| {
        explore(|| {
            let (tx, mut rx) = oneshot::channel();
            let sender = thread::spawn(move || tx.send(7).unwrap());
            // The value may not have been sent yet.
            let received = rx.try_recv();
            sender.join().unwrap();
            assert_eq!(received, Ok(7));
        })
    });
    assert!(explored.is_err());
}
