//! The suite's primitives, as subjects.

pub(crate) mod oneshot;
