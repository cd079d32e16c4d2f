//! Compiled against the crate without features, and run.

use std::any::TypeId;
use std::thread;

use reveille::oneshot::{self, Slot};
use reveille::backend::{DefaultBackend, Spin};

fn main() {
    assert_eq!(TypeId::of::<DefaultBackend>(), TypeId::of::<Spin>());

    for round in 0..100 {
        let (tx, rx) = oneshot::channel();
        let sender = thread::spawn(move || tx.send(round));
        assert_eq!(rx.blocking_recv(), Ok(round));
        sender.join().unwrap().unwrap();
    }

    let mut slot = Slot::new();
    let (tx, mut rx) = slot.split();
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
}
