//! Which executor runs the code on this thread.
//!
//! ```text
//!   none ──enter──▶ an executor ──enter──▶ another, within it
//!        ◀──drop──              ◀──drop──
//! ```

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::pool::Handle;
use crate::single::Single;

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
    /// Which it is, for a quick look.
    static TOKEN: Cell<usize> = const { Cell::new(0) };
    /// Of a worker, its pool and its index.
    static WORKER: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// An executor, as the code that it runs finds it.
#[derive(Clone)]
pub(crate) enum Current {
    Single(Rc<Single>),
    Pool(Handle),
}

/// While it lives, an executor is the current one of this thread.
pub(crate) struct Entered {
    before: Option<Current>,
    token: usize,
}

/// A thread that ends has no current executor any more, and gets none.
pub(crate) fn enter(current: Current, token: usize) -> Entered {
    match CURRENT.try_with(|it| it.replace(Some(current))) {
        Ok(before) => Entered {
            before,
            token: TOKEN.replace(token),
        },
        Err(_) => Entered {
            before: None,
            token: TOKEN.get(),
        },
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        TOKEN.set(self.token);
        // Outside of the borrow: it can be the last handle.
        drop(CURRENT.try_with(|current| current.replace(before)));
    }
}

/// Whether the executor with this token is the current one. A thread that ends has
/// none any more.
#[inline]
pub(crate) fn is_current(token: usize) -> bool {
    TOKEN.try_with(|current| current.get() == token) == Ok(true)
}

/// Does something with the current executor, which does not call back.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Current) -> R) -> Option<R> {
    let found = CURRENT.try_with(|current| current.borrow().as_ref().map(f));
    found.ok().flatten()
}

/// The current executor, which `what` needs.
#[track_caller]
pub(crate) fn current(what: &str) -> Current {
    match with(Clone::clone) {
        Some(current) => current,
        None => panic!(
            "{what} was called where no executor of this crate runs the caller: call it inside a \
             future that one runs, or spawn on the executor itself"
        ),
    }
}

/// Makes this thread a worker, for as long as it lives.
pub(crate) fn enter_worker(token: usize, index: usize) {
    WORKER.set(Some((token, index)));
}

/// Which worker this thread is of the pool with this token.
#[inline]
pub(crate) fn worker_of(token: usize) -> Option<usize> {
    let (pool, index) = WORKER.try_with(Cell::get).ok().flatten()?;
    (pool == token).then_some(index)
}
