//! Blocking a thread on a future, as `blocking_recv` and its siblings do.
//!
//! ```text
//!   poll ──Ready──▶ return
//!    ▲ │
//!    │ └─Pending──▶ park ──wake──┐
//!    └───────────────────────────┘
//! ```
//!
//! Invariant: `park` returns once between two polls, for one wake or several merged
//! ones. No wake is lost from the first poll on: a wake that comes before the thread
//! parks is kept, and the next `park` returns at once.

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::backend::BlockingBackend;
use crate::backend::unparker::Unparker;

/// A parker of the current thread, with the waker that unparks it.
///
/// [`block_on`] creates one for a single future. A thread that blocks often keeps
/// one, so that blocking allocates nothing. It stays on the thread that created it:
///
/// ```compile_fail,E0277
/// use reveille::backend::Native;
/// use reveille::protocol::Parker;
///
/// let mut parker = Parker::<Native>::new();
/// std::thread::spawn(move || parker.block_on(async {}));
/// ```
///
/// A waker may outlive its future. It can then cause one spurious poll of the next
/// future (P7), and no more.
///
/// # Examples
///
/// ```
/// use reveille::backend::Native;
/// use reveille::protocol::Parker;
///
/// let mut parker = Parker::<Native>::new();
/// for round in 0..3 {
///     assert_eq!(parker.block_on(async { round }), round);
/// }
/// ```
pub struct Parker<B: BlockingBackend> {
    unparker: Arc<Unparker<B::Park>>,
    /// The waker of `unparker`, which is created once.
    waker: Waker,
    /// Only the thread that created it may call `Park::park`.
    on_its_thread: PhantomData<*const ()>,
}

impl<B: BlockingBackend> Parker<B> {
    /// Creates a parker for the current thread.
    #[must_use]
    pub fn new() -> Self {
        let unparker = Arc::new(Unparker::new::<B>());
        Self {
            waker: Waker::from(unparker.clone()),
            unparker,
            on_its_thread: PhantomData,
        }
    }

    /// Runs `future` to completion on the current thread, which parks while the
    /// future is pending.
    ///
    /// It takes `&mut self`, so the future cannot block on the same parker: the inner
    /// wait would consume the wakes of the outer one.
    #[inline]
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut cx = Context::from_waker(&self.waker);
        loop {
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => self.unparker.park(),
            }
        }
    }
}

impl<B: BlockingBackend> Default for Parker<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: BlockingBackend> fmt::Debug for Parker<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parker").finish_non_exhaustive()
    }
}

/// Runs `future` to completion on the current thread, which parks while the future is
/// pending.
///
/// It is the smallest executor there is, and knows of no other. Within another
/// executor it blocks a thread that other tasks may need. Use
/// `reveille_executor::block_on` in programs.
///
/// # Examples
///
/// ```
/// use reveille::backend::Native;
/// use reveille::protocol::block_on;
///
/// assert_eq!(block_on::<Native, _>(async { 7 }), 7);
/// ```
pub fn block_on<B: BlockingBackend, F: Future>(future: F) -> F::Output {
    Parker::<B>::new().block_on(future)
}
