//! `yield_now`: goes to the back of the queue once.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Lets other ready tasks run first: the task goes to the back of the queue.
///
/// Under a [`Simulation`](crate::Simulation), which draws the order of tasks, the same
/// task may be next.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
///
/// # Examples
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use reveille_executor::{LocalExecutor, task};
///
/// let executor = LocalExecutor::new();
/// let order = Rc::new(RefCell::new(Vec::new()));
/// for name in ["a", "b"] {
///     let order = order.clone();
///     executor.spawn_local(async move {
///         order.borrow_mut().push(name);
///         task::yield_now().await;
///         order.borrow_mut().push(name);
///     });
/// }
/// executor.run_until_idle();
/// assert_eq!(*order.borrow(), ["a", "b", "a", "b"]);
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
