//! Situations that hurt users of other primitives, as public reports describe them.
//! Each is written once, and played with every waiting operation of the suite. A test
//! is named for the case and for its outcome.
//!
//! A primitive joins by a line of the table. A primitive with several waiters on an
//! object is also played with several. The remaining cases need more than a wait and
//! what ends it, and are tests of the primitive that has it:
//!
//! | case | needs |
//! | --- | --- |
//! | LW-01, LW-03 | a call that completes all waits: `Notify` |
//! | CA-07, FA-04 | requests of different sizes: `Semaphore` |
//! | FA-01 | two kinds of waiters |
//! | FA-02 | nothing: that a grant waits for its poll is how it is, and `granted` tells of it |
//! | OV-01 | a count of permits: `Semaphore` |
//! | OV-03, OV-06, TM-* | deadlines: `time` |
//! | RE-03 | tasks, which are the executor's |
//!
//! A oneshot has one waiter on each side and no queue. In the cases in which a
//! cancelled waiter passes its grant on (CA-01, CA-02, CA-04), the value returns to
//! the sender or is dropped at once. CA-06 and UB-09 count permits and values, and a
//! oneshot has one.

#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;
mod table;

mod cancellation;
mod dead_halves;
mod dropped_futures;
mod foreign_panics;
mod lost_wakes;
mod reentrancy;
mod stale_wakers;

use support::returns;
use support::token::Token;
use table::{Row, table};

/// Plays a case with every row of the table.
fn with_each(play: fn(&Row)) {
    let played = table().into_iter().map(|row| on_its_thread(row, play));
    assert!(played.count() > 0, "the table has rows");
}

/// Plays a case with every row whose object has several waiters.
fn with_each_queue(play: fn(&Row)) {
    let several = |row: &Row| row.scene().others::<1>().is_some();
    let queues = table().into_iter().filter(several);
    let played = queues.map(|row| on_its_thread(row, play));
    assert!(
        played.count() > 0,
        "the table has rows with several waiters"
    );
}

/// Runs a case on a thread of its own, which must end, since a case can fail by a
/// deadlock.
fn on_its_thread(row: Row, play: fn(&Row)) {
    let name = row.name.clone();
    returns(&name, move || {
        play(&row);
        assert_eq!(Token::alive(), 0, "every value was dropped");
    });
}
