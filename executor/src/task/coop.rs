//! A budget, so that a task whose every `await` is ready leaves the others a turn.
//!
//! ```text
//!   poll begins ──▶ 128 ──consumed──▶ 127 ─ … ─▶ 0 ──asks for more──▶ woken, pending
//! ```
//!
//! Invariant: the budget is that of the poll under way on this thread, and ends with
//! it; a poll within a poll has its own.
//!
//! The names are those of `tokio::task::coop`. There each of the runtime's own
//! primitives consumes budget when it is ready. Those of `reveille` do not: they know
//! of no executor, and a look at a thread-local is what an uncontended lock costs. So
//! it is for the loop to say so, by [`cooperative`] or [`consume_budget`]. A loop that
//! neither waits nor does is not stopped by anything; it shows as a
//! [`LongPoll`](crate::LongPoll).

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::{Future, IntoFuture, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// How much there is for a poll: tokio's.
const BUDGET: u32 = 128;

thread_local! {
    /// What is left for the poll under way; none outside of polls, where there is no
    /// bound.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// While it lives, a poll is under way.
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

    /// Polls are under way that keep no others waiting: there is no bound. None where
    /// there was none before.
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

/// Returns whether this poll can go on without keeping others waiting for long. Outside of the
/// executors of this crate it always can.
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

/// Consumes a unit of the budget of this poll. If nothing of it is left, wakes the task
/// and returns `Pending`, and so must the caller.
///
/// The unit is given back when what this returns is dropped, unless
/// [`made_progress`](RestoreOnPending::made_progress) was called. For futures that are
/// written by hand; [`cooperative`] wraps any.
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

/// Gives back the unit of the budget that [`poll_proceed`] has consumed, when it is
/// dropped.
#[derive(Debug)]
#[must_use = "dropped at once, it gives the budget back"]
pub struct RestoreOnPending {
    /// None where there is no bound, or progress was made.
    before: Cell<Option<u32>>,
    /// The budget is that of a poll on one thread.
    on_its_thread: PhantomData<*mut ()>,
}

impl RestoreOnPending {
    /// Keeps the unit consumed: the poll has come to something.
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

/// Consumes a unit of the budget of this poll; where nothing of it is left, goes to the
/// back of the queue first, as [`yield_now`](super::yield_now()) does.
///
/// For loops that wait for nothing, and would be too slow with a `yield_now` in each
/// round.
///
/// # Cancel safety
///
/// There is nothing to lose.
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

/// Runs a future without a budget: whatever it consumes, it is not stopped.
///
/// # Cancel safety
///
/// That of the future.
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

/// Runs a future that consumes a unit of the budget when it is ready. If nothing of the
/// budget is left, it goes to the back of the queue before it is polled, as
/// [`yield_now`](super::yield_now()) does.
///
/// On what it wraps it costs a look at a thread-local; where the future has to wait, it
/// consumes nothing.
///
/// # Cancel safety
///
/// That of the future.
///
/// # Examples
///
/// A mutex that is always free, taken for ever, and a neighbour that runs all the same:
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
