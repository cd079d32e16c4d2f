//! What several of the tests need.

#![forbid(unsafe_code)]

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Runs a check on a thread of its own. Fails if it does not end in time, because a lost
/// wake-up would make the test wait for ever.
pub(crate) fn in_time<T: Send + 'static>(check: impl FnOnce() -> T + Send + 'static) -> T {
    const LIMIT: Duration = Duration::from_secs(20);
    let (running, ended) = mpsc::channel::<()>();
    let check = thread::spawn(move || {
        let _running = running;
        check()
    });
    match ended.recv_timeout(LIMIT) {
        // Nothing is ever sent. The check has ended, with or without a panic.
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            check.join().unwrap_or_else(|panic| resume_unwind(panic))
        }
        Err(RecvTimeoutError::Timeout) => {
            panic!("the check still waits after {LIMIT:?}: a wake-up was lost, or it deadlocks")
        }
    }
}
