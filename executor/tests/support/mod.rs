//! What more than one of the tests needs.

#![forbid(unsafe_code)]

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Runs a check on a thread of its own, and fails where it does not end: with
/// a lost wake-up it would keep the test for ever.
pub(crate) fn in_time<T: Send + 'static>(check: impl FnOnce() -> T + Send + 'static) -> T {
    const LIMIT: Duration = Duration::from_secs(20);
    let (running, ended) = mpsc::channel::<()>();
    let check = thread::spawn(move || {
        let _running = running;
        check()
    });
    match ended.recv_timeout(LIMIT) {
        // Nothing is ever sent: the check ended, well or by a panic.
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            check.join().unwrap_or_else(|panic| resume_unwind(panic))
        }
        Err(RecvTimeoutError::Timeout) => {
            panic!("the check still waits after {LIMIT:?}: a wake-up was lost, or it deadlocks")
        }
    }
}
