//! `Executor` and `Timer` of hyper.
//!
//! ```
//! use hyper::rt::{Executor as _, Timer as _};
//! use reveille_executor::{ThreadPool, hyper::Timer};
//! use reveille::oneshot;
//! use std::time::Duration;
//!
//! let pool = ThreadPool::new();
//! let (tx, rx) = oneshot::channel();
//! let spawner = pool.handle().clone(); // for `hyper::server::conn::http2::Builder::new`
//! spawner.execute(async move {
//!     Timer::new().sleep(Duration::from_millis(1)).await;
//!     tx.send(7).unwrap();
//! });
//! assert_eq!(pool.block_on(rx), Ok(7));
//! ```

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ::hyper::rt;
use reveille::time::Timers;

use crate::pool::Handle;
use crate::task;

impl<F> rt::Executor<F> for Handle
where
    F: Future<Output: Send> + Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        drop(self.spawn(future));
    }
}

/// Spawns a task that stays on this thread, on the executor that runs the caller.
///
/// # Panics
///
/// Panics if [`task::spawn_local`] does.
///
/// # Examples
///
/// ```
/// use hyper::rt::Executor as _;
/// use reveille_executor::{LocalExecutor, hyper::LocalSpawner};
///
/// LocalExecutor::new().block_on(async {
///     LocalSpawner.execute(async {});
/// });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalSpawner;

impl<F: Future + 'static> rt::Executor<F> for LocalSpawner {
    #[track_caller]
    fn execute(&self, future: F) {
        drop(task::spawn_local(future));
    }
}

/// A timer for hyper, over [`Timers`].
///
/// hyper's instants are those of the system, so the timers have to be on the real clock.
#[derive(Clone, Debug)]
pub struct Timer {
    timers: Timers,
}

impl Timer {
    /// Creates a timer over the timers that are current here.
    #[must_use]
    pub fn new() -> Self {
        Self::over(Timers::current())
    }

    /// Creates a timer over the given timers.
    #[must_use]
    pub fn over(timers: Timers) -> Self {
        Self { timers }
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self::new()
    }
}

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep(self.timers.sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        let deadline = reveille::time::Instant::from_std(deadline);
        Box::pin(Sleep(self.timers.sleep_until(deadline)))
    }
}

struct Sleep(reveille::time::Sleep);

impl rt::Sleep for Sleep {}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}
