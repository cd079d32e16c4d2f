//! The timers of those who name none.
//!
//! ```text
//!   entered on this thread ──none──▶ those of the process, which a thread drives
//! ```

#![forbid(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use std::cell::RefCell;
use std::thread_local;

use super::Timers;

thread_local! {
    static ENTERED: RefCell<Option<Timers>> = const { RefCell::new(None) };
}

#[cfg(not(loom))]
fn of_the_process() -> &'static Timers {
    static TIMERS: std::sync::OnceLock<Timers> = std::sync::OnceLock::new();
    TIMERS.get_or_init(Timers::threaded)
}

/// Nothing of a model outlives it.
#[cfg(loom)]
fn of_the_process() -> &'static Timers {
    panic!("under loom there are no timers of the process: enter those of a VirtualClock")
}

/// Does `f` with the current timers. They are not borrowed meanwhile from where
/// they are kept: `f` may enter others.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Timers) -> R) -> R {
    // A thread that ends has none entered any more.
    let entered = ENTERED.try_with(|entered| entered.borrow().clone());
    match entered {
        Ok(Some(timers)) => f(&timers),
        _ => f(of_the_process()),
    }
}

impl Timers {
    /// The timers that `reveille::time`'s functions use here: those
    /// [entered](Self::enter) on this thread, or else those of the process, which
    /// are on the real clock and driven by a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Timers};
    ///
    /// reveille_executor::block_on(Timers::current().sleep(Duration::from_millis(1)));
    /// ```
    #[must_use]
    pub fn current() -> Self {
        with(Clone::clone)
    }

    /// Makes these timers the current ones of this thread, until the guard is
    /// dropped: what an executor does on the threads on which it runs tasks.
    ///
    /// Guards are dropped in the reverse order, each of which brings back those from
    /// before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let entered = clock.timers().enter();
    /// let start = Instant::now();
    /// clock.advance(Duration::from_secs(3600));
    /// assert_eq!(start.elapsed(), Duration::from_secs(3600));
    /// # drop(entered);
    /// ```
    pub fn enter(&self) -> Entered {
        // A thread that ends has none entered any more.
        let before = ENTERED.try_with(|entered| entered.replace(Some(self.clone())));
        Entered {
            before: before.ok().flatten(),
            on_its_thread: PhantomData,
        }
    }
}

/// While it lives, the timers that were entered are those of this thread. See
/// [`Timers::enter`].
#[must_use = "dropped, it makes the timers from before the current ones again"]
pub struct Entered {
    before: Option<Timers>,
    on_its_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // Dropped out here: the last handle calls a waker.
        let entered = ENTERED.try_with(|entered| entered.replace(before));
        drop(entered);
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}
