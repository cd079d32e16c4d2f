//! Foreign code whose panics are to take nobody down.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls what is not the executor's: a waker, a report. The panic hook has told of a
/// panic of it, and that is all that comes of it.
pub(crate) fn contain<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(answer) => Some(answer),
        Err(panic) => {
            // A payload can panic in turn when it is dropped.
            std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
            None
        }
    }
}
