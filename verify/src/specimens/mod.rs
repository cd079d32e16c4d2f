//! Primitives that are broken on purpose, and some that are correct but uncommon.
//!
//! They check the verifier. A broken specimen breaks one rule, and must be caught in
//! its class. The others must pass: a verifier that reports faults that are none is as
//! useless as one that misses them.
//!
//! The list of the files is in `registered.rs`. What a file registers is what its
//! `entries` returns.

use crate::registered::registered;
use crate::run::entry::SpecimenEntry;

pub(crate) mod gate;
pub(crate) mod permits;
pub(crate) mod support;
pub(crate) mod timers;

/// Declares the modules of the lines that have specimens, and collects what they
/// register.
macro_rules! specimens {
    (@file specimens $name:ident) => {
        pub(crate) mod $name;
    };
    (@entries specimens $name:ident) => {
        $name::entries()
    };
    (@name specimens $name:ident) => {
        stringify!($name)
    };
    ($($name:ident $(+ $specimens:ident)?,)*) => {
        $($(specimens!(@file $specimens $name);)?)*

        /// Returns every specimen.
        pub(crate) fn all() -> Vec<SpecimenEntry> {
            let files = [$($(specimens!(@entries $specimens $name),)?)*];
            files.into_iter().flatten().collect()
        }

        /// The files of the list.
        #[cfg(test)]
        pub(crate) const FILES: &[&str] = &[$($(specimens!(@name $specimens $name),)?)*];
    };
}

registered!(specimens);
