//! Blocking on a future: what `blocking_recv` and its siblings do, and the
//! algorithm of `reveille_executor::block_on`.
//!
//! ```text
//!   poll ──Ready──▶ return
//!    ▲ │
//!    │ └─Pending──▶ park ──wake──┐
//!    └───────────────────────────┘
//! ```
//!
//! Invariant: between two polls there is one return of `park`, and that is one
//! wake or several merged ones. A wake at any moment after the first poll began
//! either lets the park that follows return or is the one that ended it: `Park`
//! keeps what comes early.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::backend::{BlockingBackend, Park};

struct Unparker<P>(P);

impl<P: Park> Wake for Unparker<P> {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// What a thread blocks on futures with: its parker, and the waker that ends
/// its park.
///
/// [`block_on`] makes one for a single future. A thread that blocks often keeps
/// one, and then blocking allocates nothing. It stays on the thread that made
/// it:
///
/// ```compile_fail,E0277
/// use reveille::backend::Native;
/// use reveille::protocol::Parker;
///
/// let mut parker = Parker::<Native>::new();
/// std::thread::spawn(move || parker.block_on(async {}));
/// ```
///
/// A waker that outlives the future it was made for can only make the next
/// future be polled once more than it had to (P7).
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
    /// The same as a waker, made once.
    waker: Waker,
    /// `Park::park` is for the thread that made it.
    on_its_thread: PhantomData<*const ()>,
}

impl<B: BlockingBackend> Parker<B> {
    /// A parker for the current thread.
    #[must_use]
    pub fn new() -> Self {
        let unparker = Arc::new(Unparker(B::Park::new()));
        Self {
            waker: Waker::from(unparker.clone()),
            unparker,
            on_its_thread: PhantomData,
        }
    }

    /// Runs `future` to its end on this thread, which sleeps while it is
    /// pending.
    ///
    /// It is `&mut self` that rules out blocking within the future on the same
    /// parker, where the inner wait would swallow the wakes of the outer.
    #[inline]
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut cx = Context::from_waker(&self.waker);
        loop {
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => self.unparker.0.park(),
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

/// Runs `future` to its end on this thread, which sleeps while it is pending.
///
/// This is the least an executor can be; `reveille_executor::block_on` is one
/// to use. Within an executor it blocks the thread that would have to run the
/// other side.
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
