//! Foreign code whose panics must not end the thread that calls it.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls code that is not the executor's: a waker, a report. The panic hook has reported
/// a panic of it, and nothing else comes of it.
pub(crate) fn catch_panic<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(output) => Some(output),
        Err(panic) => {
            // A payload can panic in turn when it is dropped.
            std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
            None
        }
    }
}
