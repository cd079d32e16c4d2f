//! Situations that hurt users of other primitives, as public reports tell
//! them: each written once, and played with every waiting operation of the
//! suite. A test is named for the case and for what comes out of it.
//!
//! Of the cases that concern primitives, these need what a oneshot has not,
//! and wait here for the primitive that has:
//!
//! | case | needs |
//! | --- | --- |
//! | LW-01 | a permit that outlives its waiter, stored beside a queue |
//! | LW-03 | a broadcast over many waiters |
//! | CA-07 | requests of different sizes |
//! | FA-01, FA-02, FA-04 | several waiters on one object: an order among them |
//! | OV-01 | a count of permits |
//! | OV-03, OV-06 | deadlines |
//! | RE-03 | tasks, which are the executor's |
//!
//! Others apply in part. A oneshot has one waiter a side, so where a cancelled
//! waiter must hand its grant to the next (CA-01, CA-02, CA-04), here the
//! result goes back to the other side, or is dropped, then and there; and
//! where several permits or values are counted (CA-06, UB-09), here it is one.

#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;
mod table;

mod cancellation;
mod dead_halves;
mod foreign_panics;
mod lost_wakes;
mod reentrancy;
mod stale_wakers;

use support::returns;
use support::token::Token;
use table::{Row, Scene, table};

/// Plays a case with every row of the table, each on a thread of its own that
/// must come back: a case can fail by a deadlock.
fn with_each(play: fn(&Row)) {
    let mut played = 0;
    for row in table() {
        let what = row.name.clone();
        returns(&what, move || {
            play(&row);
            assert_eq!(Token::alive(), 0, "every value was dropped");
        });
        played += 1;
    }
    assert!(played > 0, "the table has rows");
}

impl Row {
    fn scene(&self) -> Scene {
        (self.scene)()
    }
}
