//! A request to stop, which tasks can wait for and pass on to their own tasks.
//!
//! A [`CancellationToken`] is cancelled once, by any of its clones. A
//! [child](CancellationToken::child_token) is cancelled with its parent, and can be
//! cancelled alone.
//!
//! ```
//! use reveille::CancellationToken;
//!
//! # reveille_executor::block_on(async {
//! let server = CancellationToken::new();
//! let connection = server.child_token();
//! let serves = std::thread::spawn({
//!     let connection = connection.clone();
//!     move || reveille_executor::block_on(connection.run_until_cancelled(std::future::pending::<()>()))
//! });
//! server.cancel();
//! connection.cancelled().await;
//! assert_eq!(serves.join().unwrap(), None);
//! # });
//! ```
//!
//! # States
//!
//! ```text
//!   a token:   live ──cancel, of itself or of an ancestor──▶ cancelled
//!
//!   a tree:    root ─┬─ child ─┬─ grandchild        cancel(child): both leave the tree,
//!                    │         └─ grandchild        cancelled; drop(child): the
//!                    └─ child                       grandchildren become the root's
//! ```
//!
//! All tokens that descend from one token are nodes of one tree under one lock. `cancel`
//! cancels a token and its descendants in one section, and wakes after it. So no thread
//! sees a cancelled token with a descendant that is not, and a child is created either
//! before the section, and cancelled by it, or after it, and created cancelled.
//!
//! The bits say whether any node has been cancelled and whether all have been: with
//! these, `is_cancelled` reads and takes no lock.
//!
//! Invariants: a cancelled node has no links to others. A node that waits to be woken is
//! in the list of those that are due, and is freed when it leaves that list.
//!
//! Differences from `tokio_util::sync::CancellationToken`: the futures are `Unpin` if the
//! future inside is, and have names; [`new_in`](CancellationToken::new_in) is an
//! addition.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::{
    Bits, CallerLocation, Generation, Section, StateLock, Waiter, Waiters, WakeList,
};
use crate::raw::RunUntilCancelled;
use crate::slab::{NONE, Slab, Slot};

/// A node has been cancelled.
const ANY: Bits = Bits::new(1);
/// All nodes have been cancelled, and all that come are.
const ALL: Bits = Bits::new(1 << 1);

/// A request to stop. See the [module](self).
///
/// Clones are the same token. Two tokens are equal if one is a clone of the other.
pub struct CancellationToken<B: Backend = DefaultBackend> {
    tree: Arc<StateLock<Tree, B>>,
    node: u32,
}

/// The tokens that descend from one.
struct Tree {
    nodes: Slab<Node>,
    /// The number of nodes in use.
    used: usize,
    /// The number of live nodes without a parent.
    roots: usize,
    /// The first node whose waiters have been notified and are still to be woken.
    due: u32,
}

struct Node {
    stage: Stage,
    /// The number of tokens.
    tokens: usize,
    parent: u32,
    first_child: u32,
    /// The siblings. In a free node, `next` is the next free one.
    previous: u32,
    next: u32,
    /// In the list of those that are due: their waiters, and the next node.
    due: Option<(Generation, u32)>,
    waiters: Waiters<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    Live,
    Cancelled,
}

impl Node {
    fn new(stage: Stage) -> Self {
        Self {
            stage,
            tokens: 1,
            parent: NONE,
            first_child: NONE,
            previous: NONE,
            next: NONE,
            due: None,
            waiters: Waiters::new(),
        }
    }
}

impl Slot for Node {
    fn is_free(&self) -> bool {
        self.stage == Stage::Free
    }

    fn set_free(&mut self, next: u32) {
        *self = Self {
            next,
            ..Self::new(Stage::Free)
        };
    }

    fn next_free(&self) -> u32 {
        self.next
    }
}

impl Tree {
    fn new() -> Self {
        let mut tree = Self {
            nodes: Slab::new(),
            used: 0,
            roots: 1,
            due: NONE,
        };
        tree.insert(Stage::Live);
        tree
    }

    fn insert(&mut self, stage: Stage) -> u32 {
        self.used += 1;
        let what = "a tree holds at most 2^32 - 2 cancellation tokens";
        self.nodes.insert(Node::new(stage), NONE - 1, what)
    }

    fn is_cancelled(&self, node: u32) -> bool {
        self.nodes[node].stage == Stage::Cancelled
    }

    /// Adds a child, which is cancelled if its parent is.
    fn add_child(&mut self, parent: u32) -> u32 {
        let child = self.insert(self.nodes[parent].stage);
        if !self.is_cancelled(parent) {
            self.link(child, parent);
        }
        child
    }

    /// Puts a node in front of the children of another one.
    fn link(&mut self, child: u32, parent: u32) {
        let next = mem::replace(&mut self.nodes[parent].first_child, child);
        if next != NONE {
            self.nodes[next].previous = child;
        }
        let node = &mut self.nodes[child];
        (node.parent, node.previous, node.next) = (parent, NONE, next);
    }

    /// Takes a live node from its parent. Without one it is a root.
    fn unlink(&mut self, node: u32) {
        let node = &mut self.nodes[node];
        let (parent, previous, next) = (node.parent, node.previous, node.next);
        (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
        match (parent, previous) {
            (NONE, _) => self.roots -= 1,
            (parent, NONE) => self.nodes[parent].first_child = next,
            (_, previous) => self.nodes[previous].next = next,
        }
        if next != NONE {
            self.nodes[next].previous = previous;
        }
    }

    /// Cancels a live node and its descendants, and notifies those that wait.
    fn cancel(&mut self, node: u32) {
        self.unlink(node);
        // A list of what is still to be cancelled, by the links of siblings.
        let mut list = node;
        while list != NONE {
            let node = list;
            let child = self.nodes[node].first_child;
            list = mem::replace(&mut self.nodes[node].next, NONE);
            let mut last = child;
            while last != NONE {
                match self.nodes[last].next {
                    NONE => {
                        self.nodes[last].next = mem::replace(&mut list, child);
                        break;
                    }
                    next => last = next,
                }
            }
            let this = &mut self.nodes[node];
            (this.parent, this.first_child, this.previous) = (NONE, NONE, NONE);
            this.stage = Stage::Cancelled;
            if !this.waiters.is_empty() {
                this.due = Some((this.waiters.notify_all(), self.due));
                self.due = node;
            }
        }
    }

    /// Takes out the wakers that are due, as many as fit. Returns `true` if there are
    /// more.
    fn wake_due(&mut self, wakes: &mut WakeList) -> bool {
        while self.due != NONE {
            let index = self.due;
            let node = &mut self.nodes[index];
            let Some((generation, next)) = node.due else {
                unreachable!("a node in the list is due");
            };
            if node.waiters.wake_notified(generation, wakes) {
                return true;
            }
            node.due = None;
            self.due = next;
            self.free_unused(index);
        }
        false
    }

    /// Drops a token. The children of a node without a token become those of its parent.
    fn drop_token(&mut self, index: u32) {
        let node = &mut self.nodes[index];
        node.tokens -= 1;
        if node.tokens > 0 {
            return;
        }
        if node.stage == Stage::Live {
            let parent = node.parent;
            let mut child = mem::replace(&mut node.first_child, NONE);
            self.unlink(index);
            while child != NONE {
                let next = self.nodes[child].next;
                match parent {
                    NONE => {
                        let node = &mut self.nodes[child];
                        (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
                        self.roots += 1;
                    }
                    parent => self.link(child, parent),
                }
                child = next;
            }
        }
        self.free_unused(index);
    }

    /// Frees a node that has no token, and is not due.
    fn free_unused(&mut self, index: u32) {
        let node = &self.nodes[index];
        if node.tokens == 0 && node.due.is_none() {
            self.nodes.release(index, |_| ());
            self.used -= 1;
            let used = self.used;
            self.nodes.audit(|| used);
        }
    }

    /// The bits after a node has been cancelled or dropped.
    fn update(&self, bits: &mut Bits) {
        if self.roots == 0 {
            bits.insert(ALL);
        }
    }
}

impl CancellationToken {
    /// Creates a token that is not cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// assert!(!token.is_cancelled());
    /// ```
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<B: Backend> CancellationToken<B> {
    /// Creates a token that is not cancelled, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{CancellationToken, backend::Local};
    ///
    /// let token = CancellationToken::<Local>::new_in(); // for one thread
    /// token.cancel();
    /// assert!(token.is_cancelled());
    /// ```
    pub fn new_in() -> Self {
        Self {
            tree: Arc::new(StateLock::new_in(Bits::EMPTY, Tree::new())),
            node: 0,
        }
    }

    /// Creates a token that is cancelled when this one is.
    ///
    /// To cancel the child does not cancel this token. If this token is cancelled
    /// already, so is the child. The child is cancelled with the ancestors of this token
    /// also after this token has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let child = token.child_token();
    /// child.cancel();
    /// assert!(!token.is_cancelled());
    /// token.cancel();
    /// assert!(token.child_token().is_cancelled());
    /// ```
    pub fn child_token(&self) -> Self {
        let tree = self.tree.clone();
        let node = tree.unlisted(|_, tree| tree.add_child(self.node));
        Self { tree, node }
    }

    /// Cancels the token and its descendants, and wakes the tasks that wait for it.
    ///
    /// It takes a time in proportion to the number of descendants. To cancel a cancelled
    /// token does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let child = token.child_token();
    /// token.cancel();
    /// assert!(token.is_cancelled() && child.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        let mut first = true;
        self.tree.rounds(|Section { bits, state, wakes }| {
            if mem::take(&mut first) {
                if state.is_cancelled(self.node) {
                    return false;
                }
                state.cancel(self.node);
                bits.insert(ANY);
                state.update(bits);
            }
            state.wake_due(wakes)
        });
    }

    /// Returns `true` if the token is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let same = token.clone();
    /// same.cancel();
    /// assert!(token.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        match self.tree.load() {
            bits if bits.contains(ALL) => true,
            bits if !bits.contains(ANY) => false,
            _ => self.tree.unlisted(|_, tree| tree.is_cancelled(self.node)),
        }
    }

    /// Waits until the token is cancelled. If it is already, the future completes at its
    /// first poll.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// # reveille_executor::block_on(async {
    /// let token = CancellationToken::new();
    /// let cancels = std::thread::spawn({
    ///     let token = token.clone();
    ///     move || token.cancel()
    /// });
    /// token.cancelled().await;
    /// cancels.join().unwrap();
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_, B> {
        WaitForCancellationFuture {
            token: self,
            wait: Wait::new(CallerLocation::capture()),
        }
    }

    /// Waits until the token is cancelled. The future owns the token.
    ///
    /// # Cancel safety
    ///
    /// As for [`cancelled`](Self::cancelled).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// # reveille_executor::block_on(async {
    /// let token = CancellationToken::new();
    /// let cancelled = token.clone().cancelled_owned();
    /// token.cancel();
    /// cancelled.await;
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn cancelled_owned(self) -> WaitForCancellationFutureOwned<B> {
        WaitForCancellationFutureOwned {
            token: self,
            wait: Wait::new(CallerLocation::capture()),
        }
    }

    /// Creates a guard that cancels the token when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// drop(token.clone().drop_guard());
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard(self) -> DropGuard<B> {
        DropGuard { token: Some(self) }
    }

    /// Creates a guard that borrows the token and cancels it when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// drop(token.drop_guard_ref());
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard_ref(&self) -> DropGuardRef<'_, B> {
        DropGuardRef { token: Some(self) }
    }

    /// Runs `future` until it is ready or the token is cancelled. Returns its output, or
    /// `None` if the token was cancelled first.
    ///
    /// If the token is cancelled before the first poll, `future` is not polled. If both
    /// are ready later, the output is returned.
    ///
    /// # Cancel safety
    ///
    /// That of `future`, which is dropped with this one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// # reveille_executor::block_on(async {
    /// let token = CancellationToken::new();
    /// assert_eq!(token.run_until_cancelled(async { 7 }).await, Some(7));
    /// token.cancel();
    /// assert_eq!(token.run_until_cancelled(async { 7 }).await, None);
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn run_until_cancelled<F: Future>(
        &self,
        future: F,
    ) -> RunUntilCancelled<F, WaitForCancellationFuture<'_, B>> {
        RunUntilCancelled::new(future, self.cancelled())
    }

    /// Runs `future` as [`run_until_cancelled`](Self::run_until_cancelled) does. The
    /// future returned owns the token.
    ///
    /// # Cancel safety
    ///
    /// As for [`run_until_cancelled`](Self::run_until_cancelled).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// # reveille_executor::block_on(async {
    /// let token = CancellationToken::new();
    /// assert_eq!(token.run_until_cancelled_owned(async { 7 }).await, Some(7));
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn run_until_cancelled_owned<F: Future>(
        self,
        future: F,
    ) -> RunUntilCancelled<F, WaitForCancellationFutureOwned<B>> {
        RunUntilCancelled::new(future, self.cancelled_owned())
    }
}

/// The count of tokens cannot overflow: that of the `Arc`, which is as large, aborts
/// before.
impl<B: Backend> Clone for CancellationToken<B> {
    fn clone(&self) -> Self {
        let tree = self.tree.clone();
        tree.unlisted(|_, tree| tree.nodes[self.node].tokens += 1);
        Self {
            tree,
            node: self.node,
        }
    }
}

impl<B: Backend> Drop for CancellationToken<B> {
    fn drop(&mut self) {
        self.tree.unlisted(|bits, tree| {
            tree.drop_token(self.node);
            tree.update(bits);
        });
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> PartialEq for CancellationToken<B> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree) && self.node == other.node
    }
}

impl<B: Backend> Eq for CancellationToken<B> {}

impl<B: Backend> Hash for CancellationToken<B> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.tree).hash(state);
        self.node.hash(state);
    }
}

/// A wait, without its token: common to the borrowed and the owned future.
#[derive(Debug)]
struct Wait {
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl Wait {
    const fn new(location: CallerLocation) -> Self {
        Self {
            waiter: None,
            location,
        }
    }

    fn poll<B: Backend>(&mut self, token: &CancellationToken<B>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { waiter, location } = self;
        token
            .tree
            .poll(cx, waiter.is_none(), |section, registration| {
                let Section { state, wakes, .. } = section;
                let cancelled = state.is_cancelled(token.node);
                let waiters = &mut state.nodes[token.node].waiters;
                if cancelled {
                    if let Some(waiter) = waiter.take() {
                        waiters.remove(waiter, wakes);
                    }
                    return Ok(());
                }
                let waiter = waiter.get_or_insert_with(|| waiters.push(*location, ()));
                Err(registration.register(waiters.waker(waiter)))
            })
    }

    fn cancel<B: Backend>(&mut self, token: &CancellationToken<B>) {
        if let Some(waiter) = self.waiter.take() {
            token.tree.with(|Section { state, wakes, .. }| {
                state.nodes[token.node].waiters.remove(waiter, wakes);
            });
        }
    }
}

/// The future of [`CancellationToken::cancelled`].
///
/// Polled again after it was ready, it is ready again.
#[must_use = "futures do nothing unless polled"]
pub struct WaitForCancellationFuture<'a, B: Backend = DefaultBackend> {
    token: &'a CancellationToken<B>,
    wait: Wait,
}

impl<B: Backend> Future for WaitForCancellationFuture<'_, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.wait.poll(this.token, cx)
    }
}

impl<B: Backend> Drop for WaitForCancellationFuture<'_, B> {
    fn drop(&mut self) {
        self.wait.cancel(self.token);
    }
}

/// The future of [`CancellationToken::cancelled_owned`].
///
/// Polled again after it was ready, it is ready again.
#[must_use = "futures do nothing unless polled"]
pub struct WaitForCancellationFutureOwned<B: Backend = DefaultBackend> {
    token: CancellationToken<B>,
    wait: Wait,
}

impl<B: Backend> Future for WaitForCancellationFutureOwned<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.wait.poll(&this.token, cx)
    }
}

impl<B: Backend> Drop for WaitForCancellationFutureOwned<B> {
    fn drop(&mut self) {
        self.wait.cancel(&self.token);
    }
}

/// Cancels its token when it is dropped. It is created by
/// [`CancellationToken::drop_guard`].
#[must_use = "a guard that is not held cancels at once"]
pub struct DropGuard<B: Backend = DefaultBackend> {
    /// `None` only once it is disarmed.
    token: Option<CancellationToken<B>>,
}

impl<B: Backend> DropGuard<B> {
    /// Returns the token.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let guard = CancellationToken::new().drop_guard();
    /// assert!(!guard.token().is_cancelled());
    /// ```
    pub fn token(&self) -> &CancellationToken<B> {
        self.token.as_ref().expect("a guard has its token")
    }

    /// Returns the token without cancelling it.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new().drop_guard().disarm();
    /// assert!(!token.is_cancelled());
    /// ```
    pub fn disarm(mut self) -> CancellationToken<B> {
        self.token.take().expect("a guard has its token")
    }
}

impl<B: Backend> Drop for DropGuard<B> {
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            token.cancel();
        }
    }
}

/// Cancels the token that it borrows when it is dropped. It is created by
/// [`CancellationToken::drop_guard_ref`].
#[must_use = "a guard that is not held cancels at once"]
pub struct DropGuardRef<'a, B: Backend = DefaultBackend> {
    /// `None` only once it is disarmed.
    token: Option<&'a CancellationToken<B>>,
}

impl<'a, B: Backend> DropGuardRef<'a, B> {
    /// Returns the token.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// assert_eq!(token.drop_guard_ref().token(), &token);
    /// assert!(token.is_cancelled());
    /// ```
    pub fn token(&self) -> &CancellationToken<B> {
        self.token.expect("a guard has its token")
    }

    /// Returns the token without cancelling it.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// assert!(!token.drop_guard_ref().disarm().is_cancelled());
    /// ```
    pub fn disarm(mut self) -> &'a CancellationToken<B> {
        self.token.take().expect("a guard has its token")
    }
}

impl<B: Backend> Drop for DropGuardRef<'_, B> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            token.cancel();
        }
    }
}

impl<B: Backend> fmt::Debug for CancellationToken<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken")
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}

impl<B: Backend> fmt::Debug for WaitForCancellationFuture<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellationFuture")
            .field("queued", &self.wait.waiter.is_some())
            .finish()
    }
}

impl<B: Backend> fmt::Debug for WaitForCancellationFutureOwned<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellationFutureOwned")
            .field("queued", &self.wait.waiter.is_some())
            .finish()
    }
}

impl<B: Backend> fmt::Debug for DropGuard<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropGuard")
            .field("token", &self.token)
            .finish()
    }
}

impl<B: Backend> fmt::Debug for DropGuardRef<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropGuardRef")
            .field("token", &self.token)
            .finish()
    }
}
