//! Watches a run, and names a program that takes long while it still runs.
//!
//! ```text
//!   begins(7) ──▶ at 7 ──a period──▶ named ──twice as long──▶ named again
//!                   └──begins(8)──▶ at 8                └──▶ …        dropped: over
//! ```
//!
//! An execution that does not end, because a poll of it spins, cannot report that
//! itself.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a program may take before it is named.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// The program that runs, and since when.
pub(crate) struct Watch {
    state: Mutex<State>,
    over: Condvar,
}

struct State {
    program: Option<usize>,
    since: Instant,
    over: bool,
}

impl Watch {
    /// Runs `f` while a thread watches it. The thread names each program that takes
    /// longer than the period.
    pub(crate) fn over<R>(
        period: Duration,
        name: impl Fn(usize, Duration) + Sync,
        f: impl FnOnce(&Self) -> R,
    ) -> R {
        let watch = Self {
            state: Mutex::new(State {
                program: None,
                since: Instant::now(),
                over: false,
            }),
            over: Condvar::new(),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| watch.keep(period, &name));
            let _until = Until(&watch);
            f(&watch)
        })
    }

    /// Records that a program begins. The one before it has ended.
    pub(crate) fn begins(&self, program: usize) {
        let mut state = self.state();
        state.program = Some(program);
        state.since = Instant::now();
    }

    fn keep(&self, period: Duration, name: &dyn Fn(usize, Duration)) {
        let mut state = self.state();
        let (mut watched, mut patience) = (None, period);
        while !state.over {
            if watched != state.program {
                (watched, patience) = (state.program, period);
            }
            let taken = state.since.elapsed();
            if let (Some(program), true) = (watched, taken >= patience) {
                patience *= 2;
                name(program, taken);
            }
            // The next program may have begun. No notification says so.
            let waited = self.over.wait_timeout(state, period / 2);
            (state, _) = waited.unwrap_or_else(|poison| poison.into_inner());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Ends the watch, even if the watched function panics.
struct Until<'a>(&'a Watch);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.over.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_program_that_takes_long_is_named_until_it_ends() {
        let period = Duration::from_millis(10);
        let named = AtomicUsize::new(0);
        let name = |program, taken| {
            assert!(taken >= period);
            if program == 7 {
                named.fetch_add(1, Ordering::Release);
            }
        };
        Watch::over(period, name, |watch| {
            (0..=7).for_each(|program| watch.begins(program));
            while named.load(Ordering::Acquire) < 2 {
                std::thread::yield_now();
            }
            watch.begins(8);
        });
    }

    #[test]
    fn what_is_watched_may_panic() {
        let run = || Watch::over(PERIOD, |_, _| {}, |_| panic!("it did"));
        let panic = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"it did"));
    }
}
