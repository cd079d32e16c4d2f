//! The thread that drives timers without a driver. It starts when it is first needed.
//!
//! ```text
//!              a sleep waits, no driver                   the last handle is dropped
//!   unstarted ─────────────────────────▶ turn ⇄ parked ──────────────────────────────▶ gone
//! ```
//!
//! Invariant: the thread owns its timers only during a turn, so that they can be dropped.
//! It is never joined, so that the process can end. A waker that panics ends a turn, and
//! the next turn begins at once.

#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, Thread};

#[cfg(not(loom))]
use super::timers::DEFAULT_GRANULARITY;
use super::timers::{Inner, Source};
use super::{Clock, RealClock, Timers};
use crate::backend::SharedBackend;

impl Timers {
    /// Creates timers on the real clock, driven by a thread of their own. The thread
    /// starts when a sleep waits and the timers have no other [driver](Self::driver). It
    /// ends when the timers are dropped. It does not keep the process from ending.
    ///
    /// After a `fork`, the child has the timers but not the thread: a sleep on them never
    /// ends there. Create others in the child.
    ///
    /// Their granularity is 2^16 ns (66 µs). This is about as late as a system wakes a
    /// thread.
    #[cfg(not(loom))]
    #[must_use]
    pub fn threaded() -> Self {
        Self::threaded_in(DEFAULT_GRANULARITY)
    }

    /// Creates timers on the real clock, which a [driver](Self::driver) has to drive.
    /// Under loom they have no thread, because it would outlive the model.
    #[cfg(loom)]
    #[must_use]
    pub fn threaded() -> Self {
        Self::new(RealClock)
    }
}

impl<B: SharedBackend> Timers<B> {
    /// Creates timers as [`threaded`](Timers::threaded) does, over any backend and with
    /// any [granularity](Self::new_in).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::backend::Native;
    /// use reveille::time::{Duration, Timers};
    ///
    /// let timers = Timers::<Native>::threaded_in(Duration::from_micros(1));
    /// reveille_executor::block_on(timers.sleep(Duration::from_millis(1)));
    /// ```
    #[must_use]
    pub fn threaded_in(granularity: Duration) -> Self {
        Self::from_source(
            Source::Clock(Box::new(RealClock)),
            RealClock.now(),
            granularity,
            Some(start),
        )
    }
}

fn start<B: SharedBackend>(timers: &Timers<B>, slot: usize) -> Result<(), String> {
    let driven = Arc::downgrade(&timers.inner);
    let started = thread::Builder::new()
        .name(String::from("reveille-timers"))
        .spawn(move || drive(&driven, slot));
    started.map(drop).map_err(|error| error.to_string())
}

fn drive<B: SharedBackend>(driven: &Weak<Inner<B>>, slot: usize) {
    let waiter = Arc::new(ThreadWaker {
        thread: thread::current(),
        notified: AtomicBool::new(false),
    });
    let waker = Waker::from(waiter.clone());
    while let Some(inner) = driven.upgrade() {
        let timers = Timers { inner };
        // Everything that is due fires in the turn, whatever panics in it.
        let turn = catch_unwind(AssertUnwindSafe(|| {
            timers.turn(slot, &mut Context::from_waker(&waker))
        }));
        let Ok(next) = turn else { continue };
        let sleep = next.map(|next| next - timers.now());
        // If this is the last handle, dropping it notifies this thread.
        if catch_unwind(AssertUnwindSafe(|| drop(timers))).is_ok() {
            waiter.wait(sleep);
        }
    }
}

/// The waker of the thread, and what it sleeps on.
struct ThreadWaker {
    thread: Thread,
    /// Kept beside the token of the thread, because a waker that blocks during a turn can
    /// consume the token.
    notified: AtomicBool,
}

impl ThreadWaker {
    fn wait(&self, at_most: Option<Duration>) {
        if self.notified.swap(false, Ordering::Acquire) {
            return;
        }
        match at_most {
            Some(duration) => thread::park_timeout(duration),
            None => thread::park(),
        }
        // The turn that follows sees what the notification was for.
        self.notified.swap(false, Ordering::Acquire);
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.notified.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}
