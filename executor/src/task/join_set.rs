//! `JoinSet`: tasks that are joined in the order in which they finish.
//!
//! ```text
//!   spawn ──▶ to be looked at ──poll: pending──▶ waits ──its waker──▶ to be looked at
//!                  │ poll: ready                                         (wakes the set)
//!                  ▼
//!               joined
//! ```
//!
//! Invariant: a member waits, with a waker that puts its key among those to be looked
//! at, or its key stands there. Both that and the waker of the set are under one lock.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use reveille::backend::Native;
use reveille::protocol::{Bits, StateLock, WakerSlot};

use super::{AbortHandle, JoinError, JoinHandle};
use crate::task;

/// A collection of tasks that are joined in the order in which they finish.
///
/// Dropped, it aborts those that are left.
///
/// # Examples
///
/// ```
/// use reveille_executor::{LocalExecutor, task::JoinSet};
///
/// let sum = LocalExecutor::new().block_on(async {
///     let mut set = JoinSet::new();
///     for number in 1..=4 {
///         set.spawn(async move { number });
///     }
///     let mut sum = 0;
///     while let Some(joined) = set.join_next().await {
///         sum += joined.unwrap();
///     }
///     sum
/// });
/// assert_eq!(sum, 10);
/// ```
pub struct JoinSet<T> {
    /// In order, so that what is done with all is done in that of their spawns.
    members: BTreeMap<u64, Member<T>>,
    /// Keys are not used again: a late wake is for nobody.
    next: u64,
    due: Arc<Due>,
}

struct Member<T> {
    handle: JoinHandle<T>,
    /// Puts its key among those that are due.
    waker: Waker,
}

#[derive(Default)]
struct State {
    keys: VecDeque<u64>,
    set: WakerSlot,
}

/// Which members are to be looked at.
struct Due(StateLock<State, Native>);

struct MemberWaker {
    due: Arc<Due>,
    key: u64,
}

impl Wake for MemberWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.due.push(self.key);
    }
}

impl Due {
    fn push(&self, key: u64) {
        self.0.with(|section| {
            section.state.keys.push_back(key);
            section.wakes.wake(&mut section.state.set);
        });
    }
}

impl<T: 'static> JoinSet<T> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            next: 0,
            due: Arc::new(Due(StateLock::new_in(Bits::EMPTY, State::default()))),
        }
    }

    /// How many tasks are left to be joined.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Spawns a task on the executor that runs the caller, as [`task::spawn`] does.
    ///
    /// # Panics
    ///
    /// As [`task::spawn`].
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(task::spawn(future))
    }

    /// Spawns a task that stays on this thread, as [`task::spawn_local`] does.
    ///
    /// # Panics
    ///
    /// As [`task::spawn_local`].
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(task::spawn_local(future))
    }

    /// Calls a function that may block, as [`task::spawn_blocking`] does.
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`].
    #[track_caller]
    pub fn spawn_blocking(&mut self, call: impl FnOnce() -> T + Send + 'static) -> AbortHandle
    where
        T: Send,
    {
        self.insert(task::spawn_blocking(call))
    }

    /// Takes a task in that was spawned elsewhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{ThreadPool, task::JoinSet};
    ///
    /// let pool = ThreadPool::new();
    /// let mut set = JoinSet::new();
    /// set.insert(pool.spawn(async { 7 }));
    /// assert_eq!(pool.block_on(set.join_next()).unwrap().unwrap(), 7);
    /// ```
    pub fn insert(&mut self, handle: JoinHandle<T>) -> AbortHandle {
        let abort = handle.abort_handle();
        let key = self.next;
        self.next += 1;
        let waker = Waker::from(Arc::new(MemberWaker {
            due: self.due.clone(),
            key,
        }));
        self.members.insert(key, Member { handle, waker });
        self.due.push(key);
        abort
    }

    /// Waits for the next task to finish; `None` where none is left.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the wait is given up.
    ///
    /// # Errors
    ///
    /// Answers a [`JoinError`] where the task panicked or was cancelled.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Polls for the next task to finish, as [`join_next`](Self::join_next) does.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        while !self.members.is_empty() {
            let due = self.due.0.poll(cx, false, |section, registration| {
                match section.state.keys.pop_front() {
                    Some(key) => Poll::Ready(key),
                    None => {
                        registration.register(&mut section.state.set);
                        Poll::Pending
                    }
                }
            });
            let Poll::Ready(key) = due else {
                return Poll::Pending;
            };
            let Some(member) = self.members.get_mut(&key) else {
                continue;
            };
            let mut cx = Context::from_waker(&member.waker);
            if let Poll::Ready(outcome) = Pin::new(&mut member.handle).poll(&mut cx) {
                self.members.remove(&key);
                return Poll::Ready(Some(outcome));
            }
        }
        Poll::Ready(None)
    }

    /// The next task that has finished, if one has by now.
    ///
    /// # Errors
    ///
    /// As for [`join_next`](Self::join_next).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{LocalExecutor, task::JoinSet};
    ///
    /// let executor = LocalExecutor::new();
    /// let mut set = JoinSet::new();
    /// set.insert(executor.spawn_local(async { 7 }));
    /// assert!(set.try_join_next().is_none());
    /// executor.run_until_idle();
    /// assert_eq!(set.try_join_next().unwrap().unwrap(), 7);
    /// ```
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        match self.poll_join_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        }
    }

    /// Waits for all tasks, and answers with what they answered, in the order in which
    /// they finished.
    ///
    /// # Panics
    ///
    /// Goes on with the panic of a task that panicked, and panics where one was
    /// cancelled. The others are aborted then.
    ///
    /// # Cancel safety
    ///
    /// Given up, it aborts the tasks, and the answers are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{LocalExecutor, task::JoinSet};
    ///
    /// let answers = LocalExecutor::new().block_on(async {
    ///     let set: JoinSet<u32> = (1..=3).map(|number| async move { number }).collect();
    ///     set.join_all().await
    /// });
    /// assert_eq!(answers, [1, 2, 3]);
    /// ```
    pub async fn join_all(mut self) -> Vec<T> {
        let mut answers = Vec::with_capacity(self.len());
        while let Some(joined) = self.join_next().await {
            match joined.map_err(JoinError::try_into_panic) {
                Ok(answer) => answers.push(answer),
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                Err(Err(cancelled)) => panic!("JoinSet::join_all: {cancelled}"),
            }
        }
        answers
    }

    /// Aborts all tasks, which are then joined as cancelled.
    pub fn abort_all(&mut self) {
        for member in self.members.values() {
            member.handle.abort();
        }
    }

    /// Aborts all tasks, and waits until their futures are gone.
    ///
    /// # Cancel safety
    ///
    /// The tasks are aborted in any case; those that are left can still be joined.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{LocalExecutor, task::JoinSet};
    ///
    /// LocalExecutor::new().block_on(async {
    ///     let mut set = JoinSet::new();
    ///     set.spawn(std::future::pending::<()>());
    ///     set.shutdown().await;
    ///     assert!(set.is_empty());
    /// });
    /// ```
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Lets all tasks go on without the set.
    pub fn detach_all(&mut self) {
        self.members.clear();
        let Due(due) = &*self.due;
        drop(due.with(|section| std::mem::take(&mut section.state.keys)));
    }
}

/// Aborts the tasks that are left.
impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for member in self.members.values() {
            member.handle.abort();
        }
    }
}

/// Spawns each of the futures on the executor that runs the caller.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        for future in futures {
            set.spawn(future);
        }
        set
    }
}

impl<T: 'static> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet")
            .field("len", &self.members.len())
            .finish_non_exhaustive()
    }
}
