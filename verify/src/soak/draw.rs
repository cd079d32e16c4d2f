//! The choices that a task of the soak draws, and how tasks are run.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The choices of a task. They depend only on its number.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(task: u64) -> Self {
        Self((task + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns a number below `n`, by Marsaglia's xorshift.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % n
    }

    /// Awaits a future to its end, or gives it up. It is given up when a timeout
    /// passes, or some time after its first poll, whether it has been woken since or
    /// not.
    pub(super) async fn perhaps<F: Future>(&mut self, future: F) -> Option<F::Output> {
        match self.below(4) {
            0 => {
                let mut future = pin!(future);
                let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
                if let Poll::Ready(output) = first {
                    return Some(output);
                }
                self.pause().await;
                None
            }
            1 => {
                let time = Duration::from_micros(self.below(300));
                tokio::time::timeout(time, future).await.ok()
            }
            _ => Some(future.await),
        }
    }

    /// Yields to other tasks a few times, or not at all.
    pub(super) async fn pause(&mut self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

/// Returns an error if `found` is not what is expected.
pub(super) fn expect<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: T,
    expected: T,
) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

/// Runs `number` tasks to their ends, and returns the sum of their results.
pub(super) async fn tasks<F>(number: u64, task: impl Fn(u64) -> F) -> Result<u64, String>
where
    F: Future<Output = u64> + Send + 'static,
{
    let tasks: Vec<_> = (0..number)
        .map(|number| tokio::spawn(task(number)))
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task
            .await
            .map_err(|error| format!("a task failed: {error}"))?;
    }
    Ok(sum)
}
