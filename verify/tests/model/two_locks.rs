//! Two locks, taken in two orders.

use std::sync::Arc;

use reveille::Mutex;
use reveille_verify::{Kind, Model};

use crate::{fails, holds};

struct Accounts([Mutex<i64>; 2]);

impl Accounts {
    /// Locks in the given order, which differs from caller to caller.
    async fn transfer(self: Arc<Self>, from: usize, to: usize) {
        let mut source = self.0[from].lock().await;
        let mut target = self.0[to].lock().await;
        *source -= 10;
        *target += 10;
    }

    /// Locks in the same order for every caller.
    async fn transfer_in_order(self: Arc<Self>, from: usize, to: usize) {
        let mut low = self.0[0].lock().await;
        let mut high = self.0[1].lock().await;
        let moved = if from < to { 10 } else { -10 };
        *low -= moved;
        *high += moved;
    }
}

fn bank(m: &Model) -> Arc<Accounts> {
    let accounts = Arc::new(Accounts([100, 100].map(Mutex::new)));
    m.name(&accounts.0[0], "savings");
    m.name(&accounts.0[1], "current");
    accounts
}

#[test]
fn tasks_that_lock_in_opposite_orders_wait_for_each_other() {
    let failure = fails(Kind::Deadlock, |m| {
        let accounts = bank(m);
        m.spawn("alice", accounts.clone().transfer(0, 1));
        m.spawn("bob", accounts.transfer(1, 0));
    });
    let parts = ["alice waits for `current`", "bob holds it", ".rs:16"];
    for part in parts {
        assert!(failure.sentence.contains(part), "{failure}");
    }
}

#[test]
fn in_one_order_transfers_end() {
    holds(|m| {
        let accounts = bank(m);
        m.spawn("alice", accounts.clone().transfer_in_order(0, 1));
        m.spawn("bob", accounts.transfer_in_order(1, 0));
    });
}
