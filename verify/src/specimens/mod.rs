//! Primitives that are broken on purpose, and some that only look it.
//!
//! They check the checker: each breaks one rule and must be caught, in its
//! class; the unusual ones break none and must pass. A verifier that cries wolf
//! is as useless as a blind one.

pub(crate) mod barrier;
pub(crate) mod once_cell;
pub(crate) mod oneshot;
pub(crate) mod set_once;
