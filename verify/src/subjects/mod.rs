//! The suite's own primitives, as subjects.
//!
//! The list below is the registry. A line adds a file, and with it everything that its
//! `entries` returns. `registered` in `tests/registry.rs` fails if a file is not in the
//! list, or if a primitive has no subject.

use crate::run::entry::SubjectEntry;
use crate::soak;

pub(crate) mod plans;
pub(crate) mod time;

/// Declares the modules, and collects what they register.
macro_rules! subjects {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// Returns every subject, in the order in which they run.
        pub(crate) fn all() -> Vec<SubjectEntry> {
            let files = [$($name::entries(),)* soak::entries()];
            files.into_iter().flatten().collect()
        }

        /// The files of the list.
        #[cfg(test)]
        pub(crate) const FILES: &[&str] = &[$(stringify!($name)),*];
    };
}

subjects! {
    state_lock,
    oneshot,
    mpsc,
    broadcast,
    watch,
    cancellation_token,
    notify,
    mutex,
    condvar,
    rwlock,
    semaphore,
    set_once,
    barrier,
    once_cell,
    sleep,
    driven,
    timeout,
    interval,
    delay_queue,
    task,
}
