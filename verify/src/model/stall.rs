//! Watches a model from another thread, and names a task that blocks the thread of the
//! model.
//!
//! ```text
//!   a step ──▶ the next step ──a period without one──▶ the task is named, once
//! ```

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long a step may take.
const PERIOD: Duration = Duration::from_secs(5);

/// The progress of a model.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    steps: AtomicU64,
    running: AtomicUsize,
    names: Mutex<Vec<String>>,
    over: Mutex<bool>,
    ended: Condvar,
}

impl Progress {
    /// Records that a step of a process begins.
    pub(crate) fn step(&self, process: usize) {
        self.running.store(process, Ordering::Relaxed);
        self.steps.fetch_add(1, Ordering::Release);
    }

    /// Sets the names of the processes. The names of the first execution are kept.
    pub(crate) fn name(&self, names: impl FnOnce() -> Vec<String>) {
        let mut known = lock(&self.names);
        if known.is_empty() {
            *known = names();
        }
    }

    /// Returns the name of the process that runs.
    fn current(&self) -> String {
        let names = lock(&self.names);
        let name = names.get(self.running.load(Ordering::Relaxed));
        name.cloned().unwrap_or_else(|| "a task".to_owned())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Watches a model until it is dropped.
pub(crate) struct Stall(Arc<Progress>);

impl Stall {
    pub(crate) fn watch(progress: Arc<Progress>) -> Self {
        let model = std::thread::current().name().unwrap_or("model").to_owned();
        Self::watch_for(progress, PERIOD, move |task| {
            eprintln!(
                "{model}: a step of {task} has taken {} s. It blocks the thread that runs the \
                 model: by a std::sync::Mutex that another task holds across an await, by a real \
                 sleep, or by a loop that waits for another task",
                PERIOD.as_secs()
            );
        })
    }

    fn watch_for(
        progress: Arc<Progress>,
        period: Duration,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Self {
        let watched = progress.clone();
        let watch = move || {
            let (mut last, mut told) = (0, false);
            let mut over = lock(&watched.over);
            while !*over {
                let waited = watched.ended.wait_timeout(over, period);
                over = waited.unwrap_or_else(|poison| poison.into_inner()).0;
                let steps = watched.steps.load(Ordering::Acquire);
                if steps != last {
                    (last, told) = (steps, false);
                } else if steps > 0 && !*over && !std::mem::replace(&mut told, true) {
                    tell(&watched.current());
                }
            }
        };
        let watcher = std::thread::Builder::new().name("reveille-model".to_owned());
        // Without it, nothing is named, and that is all.
        drop(watcher.spawn(watch));
        Self(progress)
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        *lock(&self.0.over) = true;
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_step_that_takes_long_is_told_once_with_its_task() {
        let progress = Arc::new(Progress::default());
        progress.name(|| vec!["alice".to_owned(), "bob".to_owned()]);
        let (tx, rx) = mpsc::channel();
        let tell = move |task: &str| tx.send(task.to_owned()).unwrap();
        let stall = Stall::watch_for(progress.clone(), Duration::from_millis(5), tell);
        progress.step(1);
        assert_eq!(rx.recv().unwrap(), "bob");
        progress.step(0);
        assert_eq!(rx.recv().unwrap(), "alice");
        drop(stall);
        assert!(rx.recv().is_err(), "once for each");
    }
}
