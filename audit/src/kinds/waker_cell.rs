//! A cell for the waker of one task, beside a flag, as its users write it: the task
//! registers and then looks at the flag, and another sets the flag and then wakes.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use reveille_verify::{Closures, subject};

/// A waker cell of a crate.
pub(crate) trait WakerCell: Send + Sync + 'static {
    fn new() -> Self;
    fn register(&self, waker: &Waker);
    fn wake(&self);
}

/// A flag with a cell.
pub(crate) struct Flag<C> {
    set: AtomicBool,
    cell: C,
}

impl<C: WakerCell> Flag<C> {
    fn set(&self) {
        self.set.store(true, SeqCst);
        self.cell.wake();
    }

    fn poll_set(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.cell.register(cx.waker());
        match self.set.swap(false, SeqCst) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// A waker cell as a subject.
pub(crate) fn waker_cell<C: WakerCell>() -> Closures<Flag<C>, bool> {
    let create = || Flag {
        set: AtomicBool::new(false),
        cell: C::new(),
    };
    subject(create, false)
        .role("setter")
        .op("set", Flag::set, |_| [(true, ())])
        .role("task")
        .poll("wait", Flag::poll_set, |&set| set.then_some((false, ())))
        .keeps_waker("until the next wake")
}
