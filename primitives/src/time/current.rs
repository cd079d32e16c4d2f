//! The timers that are current on a thread.
//!
//! ```text
//!   the timers entered last on this thread, while their guard lives
//!        └──none──▶ the timers of the process, which a thread drives
//! ```
//!
//! Invariant: each guard removes its own entry, wherever that is in the stack. So guards
//! can be dropped in any order, and the timers that were entered last are the current
//! ones.

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::cell::RefCell;
use std::thread_local;

use super::{Instant, Timers};

/// The timers with a live guard, in the order in which they were entered.
struct Stack {
    entered: Vec<(u64, Timers)>,
    /// The number of the next guard.
    next: u64,
}

thread_local! {
    static STACK: RefCell<Stack> = const {
        RefCell::new(Stack {
            entered: Vec::new(),
            next: 0,
        })
    };
}

#[cfg(not(loom))]
fn of_the_process() -> &'static Timers {
    static TIMERS: std::sync::OnceLock<Timers> = std::sync::OnceLock::new();
    TIMERS.get_or_init(Timers::threaded)
}

/// No timers of the process: they would outlive a model of loom.
#[cfg(loom)]
fn of_the_process() -> &'static Timers {
    panic!("under loom there are no timers of the process: enter those of a VirtualClock")
}

/// Calls `f` with the current timers. The stack is not borrowed meanwhile, so `f` may
/// enter others.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Timers) -> R) -> R {
    // On a thread that ends, no timers are entered any more.
    let entered = STACK.try_with(|stack| {
        let stack = stack.borrow();
        stack.entered.last().map(|(_, timers)| timers.clone())
    });
    match entered {
        Ok(Some(timers)) => f(&timers),
        _ => f(of_the_process()),
    }
}

impl Timers {
    /// Returns the timers that the functions of `reveille::time` use here. These are the
    /// timers [entered](Self::enter) on this thread. If there are none, they are the
    /// timers of the process, which are on the real clock and driven by a thread.
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

    /// Makes these timers the current ones of this thread, until the guard is dropped. An
    /// executor does so on the threads that run its tasks.
    ///
    /// If several guards live at the same time, the last one counts. They can be dropped
    /// in any order.
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
        // On a thread that ends, no timers are entered any more.
        let number = STACK.try_with(|stack| {
            let mut stack = stack.borrow_mut();
            let number = stack.next;
            stack.next += 1;
            stack.entered.push((number, self.clone()));
            number
        });
        Entered {
            number: number.ok(),
            on_its_thread: PhantomData,
        }
    }
}

impl Instant {
    /// Returns the time that has passed since this instant, by the timers that are
    /// [current](super::Timers::current).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant};
    ///
    /// assert!(Instant::now().elapsed() < Duration::from_secs(60));
    /// ```
    pub fn elapsed(&self) -> Duration {
        Self::now() - *self
    }

    /// Returns the current time, by the timers that are
    /// [current](super::Timers::current).
    pub fn now() -> Self {
        with(Timers::now)
    }
}

/// A guard that keeps timers entered. While it lives, they are the current ones of this
/// thread, unless others were entered later. See [`Timers::enter`].
#[must_use = "dropping it makes the earlier timers the current ones again"]
pub struct Entered {
    number: Option<u64>,
    on_its_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let left = STACK.try_with(|stack| {
            let mut stack = stack.borrow_mut();
            let place = stack.entered.iter().rposition(|&(it, _)| it == number)?;
            Some(stack.entered.remove(place))
        });
        // Dropped outside of the borrow, because the last handle calls a waker.
        drop(left);
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}
