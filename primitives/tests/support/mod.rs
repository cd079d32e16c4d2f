//! What the test binaries share: wakers that record what happens to them, channels
//! over every storage and backend, values that are counted, and a watchdog.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod channel;
pub(crate) mod models;
pub(crate) mod probe;
pub(crate) mod token;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use self::probe::Probe;

/// Makes one test of each generic test for each backend that is meant for use.
#[allow(unused_macros, reason = "each test binary uses its own part")]
macro_rules! on_every_backend {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            use super::*;

            #[test]
            fn on_native() {
                super::$test::<Native>();
            }

            #[test]
            fn on_local() {
                super::$test::<Local>();
            }

            #[test]
            fn on_spin() {
                super::$test::<Spin>();
            }
        }
    )* };
}

#[allow(unused_imports, reason = "each test binary uses its own part")]
pub(crate) use on_every_backend;

/// Long enough for a loaded machine and for valgrind, and short enough to report a
/// deadlock.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `f` on a thread of its own, and fails with `what` in the message if it does
/// not return. A test of a lock must be able to fail by a deadlock.
pub(crate) fn returns(what: &str, f: impl FnOnce() + Send + 'static) {
    let (sender, result) = mpsc::channel();
    let thread = thread::Builder::new()
        .name(what.to_owned())
        .spawn(move || {
            // The receiver is gone only if the test has failed already.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(f)));
        })
        .expect("a thread can be started");
    match result.recv_timeout(PATIENCE) {
        // It is joined, so that what `f` left in thread-locals is gone too.
        Ok(Ok(())) => thread.join().expect("nothing panics while it ends"),
        Ok(Err(panic)) => {
            eprintln!("failed: {what}");
            resume_unwind(panic);
        }
        Err(_) => panic!("{what}: does not return"),
    }
}

/// Returns the message of the panic of `f`, or `None` if it returned.
pub(crate) fn panic_of(f: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(f)).err()?;
    Some(match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().expect("a message")).to_owned(),
    })
}

/// Polls `future` once, as the task of `probe`.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, probe: &Probe) -> Poll<F::Output> {
    Pin::new(future).poll(&mut probe.cx())
}
