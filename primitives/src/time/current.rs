//! The timers that are current on a thread.
//!
//! ```text
//!   entered last on this thread, of those whose guards live
//!        └──none──▶ those of the process, which a thread drives
//! ```
//!
//! Invariant: each guard takes out what it has put in, wherever that stands. So guards
//! can be dropped in any order, and the timers that were entered last are the current
//! ones.

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use std::cell::RefCell;
use std::thread_local;

use super::Timers;

/// The timers whose guards live, in the order in which they were entered.
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

    /// Makes these timers the current ones of this thread, until the guard is dropped:
    /// what an executor does on the threads on which it runs tasks.
    ///
    /// Of several guards that live at the same time, the last one counts. They can be
    /// dropped in any order.
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

/// While it lives, the timers that were entered are those of this thread, unless others
/// were entered later. See [`Timers::enter`].
#[must_use = "dropped, it makes the timers from before the current ones again"]
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
        // Outside of the borrow: the last handle calls a waker.
        drop(left);
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}
