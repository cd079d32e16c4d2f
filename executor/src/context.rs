//! The executor that runs the code on this thread.
//!
//! ```text
//!   none ──enter──▶ an executor ──enter──▶ another, within it
//!        ◀──drop──              ◀──drop──
//! ```
//!
//! This module knows no type of executor. A caller that looks for one names its type.

#![forbid(unsafe_code)]

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// An executor, as the code that it runs finds it. The handle stays on its thread, so that
/// finding it costs no atomic operation, even if several threads share the executor.
pub(crate) type Current = Rc<dyn Any>;

/// An executor is the current one of this thread, until this is dropped.
pub(crate) struct Entered {
    before: Option<Current>,
}

/// Makes an executor the current one of this thread. On a thread that ends, this has no
/// effect.
pub(crate) fn enter(current: Current) -> Entered {
    let before = CURRENT.try_with(|it| it.replace(Some(current)));
    Entered {
        before: before.ok().flatten(),
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // Dropped outside of the borrow, because it can be the last handle.
        drop(CURRENT.try_with(|current| current.replace(before)));
    }
}

/// Returns the current executor.
pub(crate) fn current() -> Option<Current> {
    let found = CURRENT.try_with(|current| current.borrow().clone());
    found.ok().flatten()
}

/// Returns a number that identifies an executor in the process. Unlike an address, it is
/// never reused. It is never 0.
pub(crate) fn new_token() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
