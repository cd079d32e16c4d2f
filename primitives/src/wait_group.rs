//! A group of members, and tasks that wait until the last member has left.
//!
//! A [`WaitGroup`] is one member. To clone it is to join, and to drop it is to leave. So a
//! member can be a field of anything, and leaves in its destructor, also while a panic
//! unwinds.
//!
//! ```
//! use reveille::WaitGroup;
//!
//! let group = WaitGroup::new();
//! for _ in 0..3 {
//!     let member = group.clone();
//!     std::thread::spawn(move || drop(member));
//! }
//! reveille_executor::block_on(group.wait());
//! ```
//!
//! # States
//!
//! A group is a [`Gate`] whose count is the number of members. A member is needed to
//! join, so the count stays zero after the last member has left.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::IntoFuture;

use crate::backend::{Backend, DefaultBackend};
use crate::raw::{Gate, GateWait};

/// A member of a group that tasks can wait for. See the [module](self).
///
/// If a member is leaked, the waits of its group never end.
///
/// # Examples
///
/// A member leaves while a panic unwinds:
///
/// ```
/// use reveille::WaitGroup;
///
/// let group = WaitGroup::new();
/// let member = group.clone();
/// let panics = std::thread::spawn(move || {
///     let _member = member;
///     panic!("the work fails");
/// });
/// assert!(panics.join().is_err());
/// reveille_executor::block_on(group.wait());
/// ```
pub struct WaitGroup<B: Backend = DefaultBackend> {
    gate: Arc<Gate<B>>,
}

/// The future of [`WaitGroup::wait`].
///
/// It is not a member. A clone of it waits for the same group.
pub type WaitGroupWait<B = DefaultBackend> = GateWait<Arc<Gate<B>>>;

impl WaitGroup {
    /// Creates a group of one member.
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<B: Backend> WaitGroup<B> {
    /// Creates a group of one member, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{WaitGroup, backend::Local};
    ///
    /// let group = WaitGroup::<Local>::new_in(); // for one thread
    /// assert_eq!(group.members(), 1);
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            gate: Arc::new(Gate::new_in(1)),
        }
    }

    /// Joins the group that has this gate.
    ///
    /// # Panics
    ///
    /// Panics if the group has a quarter of [`usize::MAX`] members.
    #[track_caller]
    pub(crate) fn join(gate: &Arc<Gate<B>>) -> Self {
        assert!(
            gate.add(1),
            "a group has at most {} members",
            Gate::<B>::MAX_COUNT
        );
        Self { gate: gate.clone() }
    }

    /// Leaves the group, and waits until all other members have left.
    ///
    /// This member leaves at the call, not at the first poll. To wait and stay a member,
    /// clone it: `group.clone().wait()` waits for `group` too. `group.await` is the same
    /// as `group.wait().await`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. The member has left.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::WaitGroup;
    ///
    /// # reveille_executor::block_on(async {
    /// let group = WaitGroup::new();
    /// let waits = group.clone().wait();
    /// drop(group);
    /// waits.await;
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait(self) -> WaitGroupWait<B> {
        let wait = GateWait::new(self.gate.clone());
        // The member leaves here and not at the return. If a waker that it wakes panicked
        // there, the wait being returned would leak.
        drop(self);
        wait
    }

    /// Returns the number of members, this one included.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::WaitGroup;
    ///
    /// let group = WaitGroup::new();
    /// let member = group.clone();
    /// assert_eq!(group.members(), 2);
    /// # drop(member);
    /// ```
    #[must_use]
    pub fn members(&self) -> usize {
        self.gate.count()
    }

    /// Returns the number of tasks that wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::WaitGroup;
    ///
    /// assert_eq!(WaitGroup::new().waiting(), 0);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// Returns the number of waits that have been released and not been polled since. A
    /// number that stays above zero shows that a future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::WaitGroup;
    ///
    /// assert_eq!(WaitGroup::new().granted(), 0);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.gate.granted()
    }

    /// Returns where in the source each wait began, the oldest first.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::WaitGroup;
    ///
    /// assert!(WaitGroup::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.gate.waiters()
    }
}

/// Joins the group.
///
/// # Panics
///
/// Panics if the group has a quarter of [`usize::MAX`] members, which takes members that
/// were leaked.
impl<B: Backend> Clone for WaitGroup<B> {
    #[track_caller]
    fn clone(&self) -> Self {
        Self::join(&self.gate)
    }
}

/// Leaves the group. The last member to leave releases the tasks that wait.
impl<B: Backend> Drop for WaitGroup<B> {
    fn drop(&mut self) {
        self.gate.subtract(1);
    }
}

/// Leaves the group, and waits until all other members have left.
impl<B: Backend> IntoFuture for WaitGroup<B> {
    type Output = ();
    type IntoFuture = WaitGroupWait<B>;

    #[cfg_attr(feature = "caller-locations", track_caller)]
    fn into_future(self) -> WaitGroupWait<B> {
        self.wait()
    }
}

/// A clone waits for the same group, and has no place in the queue yet.
impl<B: Backend> Clone for WaitGroupWait<B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    fn clone(&self) -> Self {
        GateWait::new(self.gated().clone())
    }
}

impl Default for WaitGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> fmt::Debug for WaitGroup<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("WaitGroup");
        f.field("members", &self.members());
        self.gate.describe(&mut f)
    }
}
