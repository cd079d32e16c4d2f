//! `block_on`: runs one future on this thread.
//!
//! The algorithm is [`Parker::block_on`]. This module adds a parker for each thread. It
//! is created at the first call and kept, so that later calls allocate nothing:
//!
//! ```text
//!   no parker ──first call──▶ free ──call──▶ lent to the call ──end, panic──▶ free
//!                                             │
//!                                             └─ nested call: panics
//! ```
//!
//! Invariant: a parker is lent to one call at a time, so no call consumes a wake that was
//! meant for another.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;

use reveille::backend::{Backend, BlockingBackend, Native};
use reveille::protocol::{self, Parker};

use crate::task::coop::Budget;

thread_local! {
    static PARKER: RefCell<Parker<Native>> = RefCell::new(Parker::new());
}

/// Runs a future to completion on this thread, which sleeps while the future is pending.
///
/// The future need not be `Send` or `'static`, and can borrow from the caller. Waiting
/// costs no processor time: the thread is parked until a wake. A wake that comes before
/// the park is kept. Only the first call on a thread allocates.
///
/// # Panics
///
/// Panics if it is called inside a future that `block_on` runs on the same thread,
/// because the outer future could not go on while the inner one waits. `.await` the inner
/// future there, or block on another thread. A panic of the future resumes in the caller,
/// and later calls work as usual.
///
/// # Examples
///
/// ```
/// use reveille::oneshot;
///
/// let (tx, rx) = oneshot::channel();
/// let sender = std::thread::spawn(move || tx.send("up"));
/// assert_eq!(reveille_executor::block_on(rx), Ok("up"));
/// # sender.join().unwrap().unwrap();
/// ```
///
/// A nested call panics:
///
/// ```should_panic
/// use reveille_executor::block_on;
///
/// async fn inner() -> u32 {
///     7
/// }
///
/// block_on(async { block_on(inner()) }); // `inner().await` is meant
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    if Native::is_watched() {
        // A checker runs several threads on this one, each with a parker of its own.
        return block_on_in::<Native, F>(future);
    }
    // Pinned here, the future is dropped after the parker is given back, so that its
    // destructor can call `block_on` too.
    let mut future = pin!(future);
    let _budget = Budget::unbounded();
    let lent = PARKER.try_with(|parker| {
        let mut parker = parker.try_borrow_mut().ok()?;
        Some(parker.block_on(future.as_mut()))
    });
    match lent {
        Ok(Some(output)) => output,
        Ok(None) => panic!(
            "block_on was called inside a future that block_on runs on this thread, which \
             would stop the outer future while the inner one waits: `.await` the inner future, \
             or block on it from another thread"
        ),
        // The thread is ending and its parker is gone: the caller is the destructor of
        // another thread-local.
        Err(_) => block_on_in::<Native, _>(future),
    }
}

/// Runs a future to completion on this thread, over any backend. A checker can explore
/// it: the algorithm is that of [`block_on`].
///
/// Under loom and shuttle, the threads of a model share the thread-locals of one real
/// thread. So each call creates its own parker, and nested calls do not panic.
///
/// # Examples
///
/// ```
/// use reveille::{oneshot, backend::Spin};
///
/// let (tx, rx) = oneshot::channel_in::<_, Spin>();
/// let sender = std::thread::spawn(move || tx.send(7));
/// assert_eq!(reveille_executor::block_on_in::<Spin, _>(rx), Ok(7));
/// # sender.join().unwrap().unwrap();
/// ```
pub fn block_on_in<B: BlockingBackend, F: Future>(future: F) -> F::Output {
    let _budget = Budget::unbounded();
    protocol::block_on::<B, F>(future)
}
