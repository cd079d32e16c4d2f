//! Primitives that are broken on purpose, and some that are correct but uncommon.
//!
//! They check the verifier. A broken specimen breaks one rule, and must be caught in
//! its class. The others must pass: a verifier that reports faults that are none is as
//! useless as one that misses them.
//!
//! The list below is the registry. A line adds a file, and with it everything that its
//! `entries` returns.

use crate::run::entry::SpecimenEntry;

pub(crate) mod permits;
pub(crate) mod support;
pub(crate) mod timers;

/// Declares the modules, and collects what they register.
macro_rules! specimens {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// Returns every specimen.
        pub(crate) fn all() -> Vec<SpecimenEntry> {
            [$($name::entries()),*].into_iter().flatten().collect()
        }

        /// The files of the list.
        #[cfg(test)]
        pub(crate) const FILES: &[&str] = &[$(stringify!($name)),*];
    };
}

specimens! {
    oneshot,
    mpsc,
    cancellation_token,
    notify,
    mutex,
    condvar,
    rwlock,
    semaphore,
    barrier,
    once_cell,
    set_once,
    sleep,
    timeout,
    task,
}
