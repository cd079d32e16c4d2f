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
use std::pin::pin;
use std::task::{Context, Poll};

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

/// Whether this poll can go on without keeping others waiting for long. Outside of the
/// executors of this crate it always can.
///
/// # Examples
///
/// ```
/// use reveille_executor::task::coop::has_budget_remaining;
///
/// assert!(has_budget_remaining());
/// ```
#[must_use]
pub fn has_budget_remaining() -> bool {
    LEFT.get() != Some(0)
}

fn poll_proceed(cx: &Context<'_>) -> Poll<()> {
    if has_budget_remaining() {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

fn made_progress() {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(1)));
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
    poll_fn(|cx| {
        let proceed = poll_proceed(cx);
        if proceed.is_ready() {
            made_progress();
        }
        proceed
    })
    .await;
}

/// A future that consumes a unit of the budget when it is ready, and where nothing of it
/// is left goes to the back of the queue before it is polled, as
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
        if poll_proceed(cx).is_pending() {
            return Poll::Pending;
        }
        let poll = future.as_mut().poll(cx);
        if poll.is_ready() {
            made_progress();
        }
        poll
    })
    .await
}
