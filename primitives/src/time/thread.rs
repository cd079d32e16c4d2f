//! The driver of timers that nobody else drives: a thread, started at the first
//! need.
//!
//! ```text
//!              a sleep waits, no driver                   the last handle is dropped
//!   unstarted ─────────────────────────▶ turn ⇄ parked ──────────────────────────────▶ gone
//! ```
//!
//! Invariant: the thread owns its timers only while it takes a turn, so that they
//! can go, and is not joined by anybody, so that the process can end. A waker that
//! panics ends a turn, and the next begins at once.

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
    /// Timers on the real clock, driven by a thread of their own: it starts when
    /// a sleep waits and they have no other [driver](Self::driver), and ends when
    /// they are dropped. It does not keep the process from ending.
    ///
    /// A child of `fork` has the timers and not the thread: what sleeps on them there
    /// sleeps for ever. Make others in the child.
    ///
    /// Their granularity is 2^16 ns, 66 µs: about what a system is late anyway when
    /// it wakes a thread by time.
    #[cfg(not(loom))]
    #[must_use]
    pub fn threaded() -> Self {
        Self::threaded_in(DEFAULT_GRANULARITY)
    }

    /// Timers on the real clock, to be driven by a [driver](Self::driver): nothing of
    /// a model outlives it, so there is no thread of their own.
    #[cfg(loom)]
    #[must_use]
    pub fn threaded() -> Self {
        Self::new(RealClock)
    }
}

impl<B: SharedBackend> Timers<B> {
    /// As [`threaded`](Timers::threaded), over any backend and with any
    /// [granularity](Self::new_in).
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
        // Whoever is due is fired in the turn, whatever panics in it.
        let turn = catch_unwind(AssertUnwindSafe(|| {
            timers.turn(slot, &mut Context::from_waker(&waker))
        }));
        let Ok(next) = turn else { continue };
        let sleep = next.map(|next| next - timers.now());
        // Where it is the last handle, that notifies the thread.
        if catch_unwind(AssertUnwindSafe(|| drop(timers))).is_ok() {
            waiter.wait(sleep);
        }
    }
}

/// What the thread sleeps on.
struct ThreadWaker {
    thread: Thread,
    /// Beside the token of the thread, which a waker that blocks in a turn of the
    /// driver may use up.
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
        // A turn follows, which looks at whatever it was notified for.
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
