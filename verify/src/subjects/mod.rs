//! The suite's own primitives, as subjects.

pub(crate) mod mutex;
pub(crate) mod notify;
pub(crate) mod oneshot;
pub(crate) mod semaphore;
pub(crate) mod state_lock;
