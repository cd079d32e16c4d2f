//! Calls foreign code whose panics must not end the thread.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls code that is not the executor's, as a waker or a report. Returns `None` if it
/// panics. The panic hook has reported the panic, which has no other consequence.
pub(crate) fn catch_panic<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(output) => Some(output),
        Err(panic) => {
            // The payload can panic too when it is dropped.
            std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
            None
        }
    }
}
