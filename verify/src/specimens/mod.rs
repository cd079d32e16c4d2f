//! Primitives that are broken on purpose, and some that only look it.
//!
//! They check the checker: each breaks one rule and must be caught, in its
//! class; the unusual ones break none and must pass. A verifier that cries wolf
//! is as useless as a blind one.

pub(crate) mod barrier;
pub(crate) mod condvar;
pub(crate) mod mutex;
pub(crate) mod notify;
pub(crate) mod once_cell;
pub(crate) mod oneshot;
pub(crate) mod permits;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod set_once;
pub(crate) mod sleep;
pub(crate) mod timeout;
pub(crate) mod timers;
