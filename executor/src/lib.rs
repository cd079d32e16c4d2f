//! Executors over the Reveille protocol, and one trait over everybody's.

#![forbid(unsafe_code)]

use std::future::Future;

/// Runs a future to its end on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    reveille::protocol::block_on::<reveille::protocol::Native, F>(future)
}
