//! Blocking on a future: what `blocking_recv` and its siblings do.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use super::{BlockingBackend, Park};

struct Unparker<P>(P);

impl<P: Park> Wake for Unparker<P> {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs `future` to its end on this thread, which sleeps while it is pending.
///
/// This is the least an executor can be; `reveille_executor::block_on` is one
/// to use. Within an executor it blocks the thread that would have to run the
/// other side.
///
/// # Examples
///
/// ```
/// use reveille::protocol::{block_on, Native};
///
/// assert_eq!(block_on::<Native, _>(async { 7 }), 7);
/// ```
pub fn block_on<B: BlockingBackend, F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let unparker = Arc::new(Unparker(B::Park::new()));
    let waker = Waker::from(unparker.clone());
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => unparker.0.park(),
        }
    }
}
