//! The suite's own primitives, as subjects.
//!
//! The list of the files is in `registered.rs`. What a file registers is what its
//! `entries` returns.

use crate::registered::registered;
use crate::run::entry::SubjectEntry;
use crate::soak;

pub(crate) mod gate;
pub(crate) mod plans;
pub(crate) mod time;

/// Declares the modules, and collects what they register.
macro_rules! subjects {
    ($($name:ident $(+ $specimens:ident)?,)*) => {
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

registered!(subjects);
