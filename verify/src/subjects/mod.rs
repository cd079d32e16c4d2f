//! The suite's own primitives, as subjects.

pub(crate) mod barrier;
pub(crate) mod condvar;
pub(crate) mod delay_queue;
pub(crate) mod driven;
pub(crate) mod interval;
pub(crate) mod mutex;
pub(crate) mod notify;
pub(crate) mod once_cell;
pub(crate) mod oneshot;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod set_once;
pub(crate) mod sleep;
pub(crate) mod state_lock;
pub(crate) mod time;
pub(crate) mod timeout;
