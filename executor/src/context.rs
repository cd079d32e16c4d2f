//! Which executor runs the code on this thread.
//!
//! ```text
//!   none ──enter──▶ an executor ──enter──▶ another, within it
//!        ◀──drop──              ◀──drop──
//! ```
//!
//! Executors are known here by their type alone, which a look for one names.

#![forbid(unsafe_code)]

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// An executor, as the code that it runs finds it.
#[derive(Clone)]
pub(crate) enum Current {
    /// One that stays on its thread.
    Local(Rc<dyn Any>),
    /// One that several threads share.
    Shared(Arc<dyn Any + Send + Sync>),
}

/// While it lives, an executor is the current one of this thread.
pub(crate) struct Entered {
    before: Option<Current>,
}

/// A thread that ends has no current executor any more, and gets none.
pub(crate) fn enter(current: Current) -> Entered {
    let before = CURRENT.try_with(|it| it.replace(Some(current)));
    Entered {
        before: before.ok().flatten(),
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // Outside of the borrow: it can be the last handle.
        drop(CURRENT.try_with(|current| current.replace(before)));
    }
}

/// The current executor.
pub(crate) fn current() -> Option<Current> {
    let found = CURRENT.try_with(|current| current.borrow().clone());
    found.ok().flatten()
}

/// A number that tells an executor from every other of the process, those that have
/// ended included: an address would not, since it is used again. It is never 0.
pub(crate) fn new_token() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
