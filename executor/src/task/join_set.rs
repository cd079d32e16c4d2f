//! `JoinSet`: tasks that are joined in the order in which they finish.
//!
//! ```text
//!   spawn ──▶ due ──poll: pending──▶ waits ──its waker──▶ due, and the set is woken
//!              │ poll: ready
//!              ▼
//!            joined
//! ```
//!
//! Invariants:
//!
//! 1. The key of a member is among those that are due, or the member waits with a waker
//!    that puts it there. The due keys and the waker of the set are under one lock.
//! 2. Only a poll registers the waker of the set. `try_join_next` leaves the waker as it
//!    is. A future of the set removes it when it is dropped.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use reveille::backend::Native;
use reveille::protocol::{Bits, StateLock, WakerSlot};

use super::{AbortHandle, Id, JoinError, JoinHandle};
use crate::pool::Handle;
use crate::{Executor, LocalExecutor, task};

/// A collection of tasks that are joined in the order in which they finish.
///
/// Dropping the set aborts the tasks that are left.
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
    /// Ordered, so that an operation on all tasks goes in the order of their spawns.
    members: BTreeMap<u64, Member<T>>,
    /// Keys are never reused, so that a late wake finds no member.
    next: u64,
    due: Arc<Due>,
}

struct Member<T> {
    handle: JoinHandle<T>,
    /// Makes the key of the member due.
    waker: Waker,
}

#[derive(Default)]
struct State {
    keys: VecDeque<u64>,
    set: WakerSlot,
}

/// The keys of the members to be polled, and the waker of the set.
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

/// The number of a task, and its outcome.
type Joined<T> = (Id, Result<T, JoinError>);

/// Waits for the next task to finish. The waker belongs to this future: if it is dropped,
/// it removes its waker from the set.
struct JoinNext<'a, T> {
    set: &'a mut JoinSet<T>,
    polled: bool,
}

impl<T> Future for JoinNext<'_, T> {
    type Output = Option<Joined<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.polled = true;
        self.set.poll_joined(cx)
    }
}

impl<T> Drop for JoinNext<'_, T> {
    fn drop(&mut self) {
        if self.polled {
            self.set.due.unregister();
        }
    }
}

impl Due {
    /// Returns the next due key, or registers the waker of the set.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<u64> {
        self.0.poll(cx, false, |section, registration| {
            match section.state.keys.pop_front() {
                Some(key) => Ok(key),
                None => Err(registration.register(&mut section.state.set)),
            }
        })
    }

    /// Returns the next due key, if there is one.
    fn pop(&self) -> Option<u64> {
        self.0.with(|section| section.state.keys.pop_front())
    }

    fn unregister(&self) {
        self.0
            .with(|section| section.wakes.discard(&mut section.state.set));
    }

    fn push(&self, key: u64) {
        self.0.with(|section| {
            section.state.keys.push_back(key);
            section.wakes.wake(&mut section.state.set);
        });
    }
}

impl<T: 'static> JoinSet<T> {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            next: 0,
            due: Arc::new(Due(StateLock::new_in(Bits::EMPTY, State::default()))),
        }
    }

    /// Returns the number of tasks that are left to be joined.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether no task is left to be joined.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Spawns a task on the executor that runs the caller, as [`task::spawn`] does.
    ///
    /// # Panics
    ///
    /// Panics if [`task::spawn`] does.
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
    /// Panics if [`task::spawn_local`] does.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(task::spawn_local(future))
    }

    /// Runs a function that may block, as [`task::spawn_blocking`] does.
    ///
    /// # Panics
    ///
    /// Panics if [`task::spawn_blocking`] does.
    #[track_caller]
    pub fn spawn_blocking(&mut self, call: impl FnOnce() -> T + Send + 'static) -> AbortHandle
    where
        T: Send,
    {
        self.insert(task::spawn_blocking(call))
    }

    /// Spawns a task on the given executor.
    ///
    /// # Panics
    ///
    /// Panics if the executor's `spawn` does.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{ThreadPool, task::JoinSet};
    ///
    /// let pool = ThreadPool::new();
    /// let mut set = JoinSet::new();
    /// set.spawn_on(async { 7 }, pool.handle());
    /// assert_eq!(pool.block_on(set.join_next()).unwrap().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn spawn_on<F, E>(&mut self, future: F, executor: &E) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        E: Executor<JoinHandle<T> = JoinHandle<T>>,
        T: Send,
    {
        self.insert(executor.spawn(future))
    }

    /// Spawns a task on an executor of one thread, as [`LocalExecutor::spawn_local`]
    /// does.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, future: F, executor: &LocalExecutor) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(executor.spawn_local(future))
    }

    /// Runs a function that may block on a thread of a pool, as
    /// [`Handle::spawn_blocking`] does.
    ///
    /// # Panics
    ///
    /// Panics if [`Handle::spawn_blocking`] does.
    #[track_caller]
    pub fn spawn_blocking_on(
        &mut self,
        call: impl FnOnce() -> T + Send + 'static,
        pool: &Handle,
    ) -> AbortHandle
    where
        T: Send,
    {
        self.insert(pool.spawn_blocking(call))
    }

    /// Adds a task that was spawned elsewhere.
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

    /// Waits for the next task to finish. Returns `None` if no task is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: no task is removed from the set.
    ///
    /// # Errors
    ///
    /// Returns a [`JoinError`] if the task panicked or was cancelled.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.next().await.map(|(_, joined)| joined)
    }

    /// Waits for the next task to finish, as [`join_next`](Self::join_next) does, and
    /// returns the number of the task with its output.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: no task is removed from the set.
    ///
    /// # Errors
    ///
    /// Returns a [`JoinError`] if the task panicked or was cancelled. The error [has the
    /// number](JoinError::id) of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{LocalExecutor, task::JoinSet};
    ///
    /// LocalExecutor::new().block_on(async {
    ///     let mut set = JoinSet::new();
    ///     let id = set.spawn(async { 7 }).id();
    ///     assert_eq!(set.join_next_with_id().await.unwrap().unwrap(), (id, 7));
    /// });
    /// ```
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.next().await.map(with_id)
    }

    /// Polls for the next task to finish, as [`join_next`](Self::join_next) does.
    ///
    /// If this returns `Pending`, the waker stays in the set.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_joined(cx)
            .map(|next| next.map(|(_, joined)| joined))
    }

    /// Polls for the next task to finish, as
    /// [`join_next_with_id`](Self::join_next_with_id) does.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.poll_joined(cx).map(|next| next.map(with_id))
    }

    /// Returns the next task that has finished, if there is one. A task that waits in
    /// [`poll_join_next`](Self::poll_join_next) goes on waiting.
    ///
    /// # Errors
    ///
    /// Those of [`join_next`](Self::join_next).
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
        self.try_joined().map(|(_, joined)| joined)
    }

    /// Returns the next task that has finished, with its number, as
    /// [`try_join_next`](Self::try_join_next) does.
    ///
    /// # Errors
    ///
    /// Those of [`join_next_with_id`](Self::join_next_with_id).
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.try_joined().map(with_id)
    }

    /// Waits for all tasks, and returns their outputs in the order in which the tasks
    /// finished.
    ///
    /// # Panics
    ///
    /// If a task panicked, the panic resumes in the caller. If a task was cancelled, this
    /// panics. In both cases the other tasks are aborted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the tasks. Their outputs are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{LocalExecutor, task::JoinSet};
    ///
    /// let outputs = LocalExecutor::new().block_on(async {
    ///     let set: JoinSet<u32> = (1..=3).map(|number| async move { number }).collect();
    ///     set.join_all().await
    /// });
    /// assert_eq!(outputs, [1, 2, 3]);
    /// ```
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(joined) = self.join_next().await {
            match joined.map_err(JoinError::try_into_panic) {
                Ok(output) => outputs.push(output),
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                Err(Err(cancelled)) => panic!("JoinSet::join_all: {cancelled}"),
            }
        }
        outputs
    }

    /// Aborts all tasks. They stay in the set, and are joined as cancelled.
    pub fn abort_all(&mut self) {
        for member in self.members.values() {
            member.handle.abort();
        }
    }

    /// Aborts all tasks, and waits until their futures are dropped.
    ///
    /// # Cancel safety
    ///
    /// The tasks are aborted in any case. If the future is dropped, the tasks that are
    /// left can still be joined.
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

    /// Detaches all tasks, which go on without the set. A task that waits in
    /// [`poll_join_next`](Self::poll_join_next) is woken, because no task is left.
    pub fn detach_all(&mut self) {
        self.members.clear();
        let Due(due) = &*self.due;
        drop(due.with(|section| {
            section.wakes.wake(&mut section.state.set);
            std::mem::take(&mut section.state.keys)
        }));
    }
}

impl<T> JoinSet<T> {
    fn next(&mut self) -> JoinNext<'_, T> {
        JoinNext {
            set: self,
            polled: false,
        }
    }

    fn poll_joined(&mut self, cx: &mut Context<'_>) -> Poll<Option<Joined<T>>> {
        while !self.members.is_empty() {
            let Poll::Ready(key) = self.due.poll(cx) else {
                return Poll::Pending;
            };
            if let Some(joined) = self.look_at(key) {
                return Poll::Ready(Some(joined));
            }
        }
        Poll::Ready(None)
    }

    fn try_joined(&mut self) -> Option<Joined<T>> {
        while let Some(key) = self.due.pop() {
            if let Some(joined) = self.look_at(key) {
                return Some(joined);
            }
        }
        None
    }

    /// Removes a member if it has finished. Otherwise the member waits, with its own
    /// waker.
    fn look_at(&mut self, key: u64) -> Option<Joined<T>> {
        let member = self.members.get_mut(&key)?;
        let id = member.handle.id();
        let mut cx = Context::from_waker(&member.waker);
        let Poll::Ready(joined) = Pin::new(&mut member.handle).poll(&mut cx) else {
            return None;
        };
        self.members.remove(&key);
        Some((id, joined))
    }
}

fn with_id<T>((id, joined): Joined<T>) -> Result<(Id, T), JoinError> {
    joined.map(|output| (id, output))
}

/// Aborts the tasks that are left.
impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for member in self.members.values() {
            member.handle.abort();
        }
        // The wakers of members own `due`. A member that finishes now can still reach the
        // waker of the set.
        self.due.unregister();
    }
}

/// Spawns each of the futures on the executor that runs the caller.
impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        for future in futures {
            self.spawn(future);
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
        set.extend(futures);
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
