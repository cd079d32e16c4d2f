//! A budget for each poll, so that a task whose futures are always ready lets others run.
//!
//! ```text
//!   poll begins ──▶ 128 ──consumed──▶ 127 ─ … ─▶ 0 ──asks for more──▶ woken, pending
//! ```
//!
//! Invariant: the budget belongs to the poll under way on this thread, and ends with it.
//! A poll within a poll has its own.
//!
//! The names are those of `tokio::task::coop`. In tokio, each of the runtime's own
//! primitives consumes budget when it is ready. The primitives of `reveille` do not. They
//! know of no executor, and reading a thread-local would cost as much as an uncontended
//! lock. A loop opts in by [`cooperative`] or [`consume_budget`]. Nothing stops a loop
//! that neither waits nor opts in; it shows as a [`LongPoll`](crate::LongPoll).

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::{Future, IntoFuture, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// The budget of a poll. It is tokio's.
const BUDGET: u32 = 128;

thread_local! {
    /// The budget that is left for the poll under way. `None` outside of polls, where
    /// there is no bound.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A poll with a budget, or one without a bound, until this is dropped.
pub(crate) struct Budget {
    before: Option<u32>,
}

impl Budget {
    #[inline]
    pub(crate) fn enter() -> Self {
        Self {
            before: LEFT.replace(Some(BUDGET)),
        }
    }

    /// Lifts the bound for polls that keep no other task waiting. Returns `None` if there
    /// was no bound before.
    #[inline]
    pub(crate) fn unbounded() -> Option<Self> {
        let before = LEFT.get();
        before.is_some().then(|| {
            LEFT.set(None);
            Self { before }
        })
    }
}

impl Drop for Budget {
    #[inline]
    fn drop(&mut self) {
        LEFT.set(self.before);
    }
}

/// Returns whether the current poll has budget left. Outside of the executors of this
/// crate, this is always `true`.
///
/// # Examples
///
/// ```
/// use reveille_executor::task::coop::has_budget_remaining;
///
/// assert!(has_budget_remaining());
/// ```
pub fn has_budget_remaining() -> bool {
    LEFT.get() != Some(0)
}

/// Consumes a unit of the budget of the current poll. If no budget is left, wakes the
/// task and returns `Pending`; the caller has to return `Pending` too.
///
/// Dropping the returned value gives the unit back, unless
/// [`made_progress`](RestoreOnPending::made_progress) was called. Use this in futures
/// that are written by hand. [`cooperative`] wraps any future.
///
/// # Examples
///
/// ```
/// use std::pin::Pin;
/// use std::task::{Context, Poll, ready};
/// use reveille_executor::task::coop::poll_proceed;
///
/// fn poll_cooperatively<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
///     let restores = ready!(poll_proceed(cx));
///     let poll = future.poll(cx);
///     if poll.is_ready() {
///         restores.made_progress();
///     }
///     poll
/// }
/// # let mut ready = std::pin::pin!(std::future::ready(7));
/// # let polled = std::future::poll_fn(|cx| poll_cooperatively(ready.as_mut(), cx));
/// # assert_eq!(reveille_executor::block_on(polled), 7);
/// ```
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    let left = LEFT.get();
    if left == Some(0) {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    LEFT.set(left.map(|left| left - 1));
    Poll::Ready(RestoreOnPending {
        before: Cell::new(left),
        on_its_thread: PhantomData,
    })
}

/// Gives back the unit of the budget that [`poll_proceed`] consumed, when dropped.
#[derive(Debug)]
#[must_use = "dropped at once, it gives the budget back"]
pub struct RestoreOnPending {
    /// `None` if there is no bound, or if progress was made.
    before: Cell<Option<u32>>,
    /// The budget belongs to a poll on one thread.
    on_its_thread: PhantomData<*mut ()>,
}

impl RestoreOnPending {
    /// Keeps the unit consumed, because the poll made progress.
    pub fn made_progress(&self) {
        self.before.set(None);
    }
}

impl Drop for RestoreOnPending {
    fn drop(&mut self) {
        if let Some(before) = self.before.get() {
            LEFT.set(Some(before));
        }
    }
}

/// Consumes a unit of the budget of the current poll. If no budget is left, the task
/// first goes to the back of the queue, as with [`yield_now`](super::yield_now()).
///
/// Use it in loops that wait for nothing and would be too slow with a `yield_now` in each
/// iteration.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
///
/// # Examples
///
/// ```
/// use reveille_executor::{LocalExecutor, task};
///
/// let executor = LocalExecutor::new();
/// let endless = executor.spawn_local(async {
///     loop {
///         task::consume_budget().await;
///     }
/// });
/// assert_eq!(executor.block_on(executor.spawn_local(async { 7 })).unwrap(), 7);
/// # let _: task::JoinHandle<()> = endless;
/// ```
pub async fn consume_budget() {
    poll_fn(|cx| poll_proceed(cx).map(|restores| restores.made_progress())).await;
}

/// Runs a future without a budget. However much it consumes, it is never sent to the back
/// of the queue.
///
/// # Cancel safety
///
/// It is that of the future.
///
/// # Examples
///
/// ```
/// use reveille_executor::{LocalExecutor, task};
///
/// LocalExecutor::new().block_on(task::unconstrained(async {
///     for _ in 0..1000 {
///         task::consume_budget().await; // never goes to the back of the queue
///     }
/// }));
/// ```
pub async fn unconstrained<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    poll_fn(|cx| {
        let _budget = Budget::unbounded();
        future.as_mut().poll(cx)
    })
    .await
}

/// Runs a future that consumes a unit of the budget when it is ready. If no budget is
/// left, the task goes to the back of the queue before the future is polled, as with
/// [`yield_now`](super::yield_now()).
///
/// It costs an access to a thread-local for each poll. If the future has to wait, it
/// consumes no budget.
///
/// # Cancel safety
///
/// It is that of the future.
///
/// # Examples
///
/// A task locks a mutex that is always free, in an endless loop. The other task still
/// runs:
///
/// ```
/// use std::rc::Rc;
/// use reveille::Mutex;
/// use reveille_executor::{LocalExecutor, task::{self, coop::cooperative}};
///
/// let executor = LocalExecutor::new();
/// let count = Rc::new(Mutex::new(0_u64));
/// let endless = executor.spawn_local(async move {
///     loop {
///         *cooperative(count.lock()).await += 1;
///     }
/// });
/// assert_eq!(executor.block_on(executor.spawn_local(async { 7 })).unwrap(), 7);
/// # let _: task::JoinHandle<()> = endless;
/// ```
pub async fn cooperative<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    poll_fn(|cx| {
        let restores = ready!(poll_proceed(cx));
        let poll = future.as_mut().poll(cx);
        if poll.is_ready() {
            restores.made_progress();
        }
        poll
    })
    .await
}
