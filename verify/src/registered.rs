//! The list of what the suite verifies: a line for each primitive.
//!
//! A line registers `subjects/NAME.rs`, and with `+ specimens` also
//! `specimens/NAME.rs`. Both declare the rest themselves, in their `entries`. A test
//! fails if a file is not in the list, or if a primitive has no subject.

/// Calls a macro with the list.
macro_rules! registered {
    ($each:ident) => {
        $each! {
            state_lock,
            oneshot + specimens,
            mpsc + specimens,
            mpmc,
            broadcast,
            watch,
            cancellation_token + specimens,
            notify + specimens,
            mutex + specimens,
            condvar + specimens,
            rwlock + specimens,
            semaphore + specimens,
            set_once + specimens,
            barrier + specimens,
            event + specimens,
            latch + specimens,
            wait_group + specimens,
            phaser + specimens,
            shutdown + specimens,
            once_cell + specimens,
            lazy + specimens,
            once_map + specimens,
            pool + specimens,
            sleep + specimens,
            driven,
            timeout + specimens,
            interval,
            delay_queue,
            net + specimens,
            task + specimens,
        }
    };
}

pub(crate) use registered;
