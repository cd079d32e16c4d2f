//! `block_on`: one future, on this thread.
//!
//! The algorithm is [`Parker::block_on`]; what is added here is a parker for
//! each thread, made at its first call and kept, so that later calls allocate
//! nothing:
//!
//! ```text
//!   no parker ──first call──▶ free ──call──▶ lent to the call ──end, panic──▶ free
//!                                             │
//!                                             └─ nested call: panics
//! ```
//!
//! Invariant: a parker is lent to one call at a time, so a wake for a call is
//! never slept off by another.

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

/// Runs a future to its end on this thread, which sleeps while it is pending.
///
/// The future need not be `Send` or `'static`, and can borrow from the caller.
/// Waiting costs no processor time: the thread is parked until a wake, and a
/// wake that comes before that is kept. From the second call on a thread,
/// nothing is allocated.
///
/// # Panics
///
/// Panics when called inside a future that `block_on` runs on the same thread:
/// the outer future could not go on while the inner one waits. `.await` the
/// inner future there, or block on another thread. A panic of the future goes
/// on to the caller, and the next call finds everything in order.
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
/// What not to do:
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
    if Native::watcher().is_some() {
        // A checker runs several threads on this one, each with a parker of its own.
        return block_on_in::<Native, F>(future);
    }
    // Pinned out here, the future is dropped after the parker is given back,
    // and its destructor can block in turn.
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
        // The thread is ending and its parker is gone: this is the destructor
        // of another thread-local.
        Err(_) => block_on_in::<Native, _>(future),
    }
}

/// Runs a future to its end on this thread of any backend: the algorithm of
/// [`block_on`], for a checker to explore.
///
/// Under loom or shuttle the threads are theirs, and share the thread-locals of
/// one real thread; so each call makes its own parker, and nested calls are not
/// refused.
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
