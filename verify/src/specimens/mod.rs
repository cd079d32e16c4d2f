//! Primitives that are broken on purpose, and some that only look it.
//!
//! They check the checker: each breaks one rule and must be caught, in its
//! class; the others break none and must pass. A verifier that cries wolf
//! is as useless as a blind one.
//!
//! The list below is the registry: a line adds a file, and with it everything that
//! its `entries` declares.

use crate::run::entry::SpecimenEntry;

pub(crate) mod permits;
pub(crate) mod support;
pub(crate) mod timers;

/// Declares the modules, and collects what they register.
macro_rules! specimens {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// Every specimen.
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
