//! Tasks inside a host future, which is how tasks of this crate run on other executors.
//!
//! ```text
//!             schedule: put, wake the host              the host is polled: take, run
//!   task ────────────────────────────────▶ runnable ─────────────────────────────────▶
//! ```
//!
//! The host is a future that the other executor runs. It is woken when its task is
//! scheduled. If it is dropped before the task has finished, it cancels the task.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use reveille::backend::Native;
use reveille::protocol::{Bits, Section, StateLock, WakerSlot};
use reveille::raw::{Owned, RunResult, Runnable, Schedule};

use super::id::{cancel, describe};
use super::{JoinHandle, Running};

/// The host is gone: a scheduled task is not run any more.
const CLOSED: Bits = Bits::new(1);

#[derive(Default)]
struct State {
    runnable: Option<Runnable<Native>>,
    host: WakerSlot,
}

struct Link(StateLock<State, Native>);

struct ToHost(Arc<Link>);

impl Link {
    /// Stores the runnable for the host. Returns it if the host is gone, or the one that
    /// it replaces.
    fn put(&self, runnable: Runnable<Native>) -> Option<Runnable<Native>> {
        self.0.with(|Section { bits, state, wakes }| {
            if bits.contains(CLOSED) {
                return Some(runnable);
            }
            wakes.wake(&mut state.host);
            state.runnable.replace(runnable)
        })
    }
}

impl Schedule<Native> for ToHost {
    fn schedule(&self, task: Runnable<Native>) {
        drop(self.0.put(task));
    }
}

struct Host {
    link: Arc<Link>,
    held: Owned<Native>,
}

impl Future for Host {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let taken = self.link.0.poll(cx, false, |section, registration| {
                match section.state.runnable.take() {
                    Some(runnable) => Ok(runnable),
                    None => Err(registration.register(&mut section.state.host)),
                }
            });
            let runnable = ready!(taken);
            let _running = Running::enter(runnable.id());
            match runnable.run() {
                RunResult::Completed(completion) => {
                    drop(completion);
                    return Poll::Ready(());
                }
                RunResult::Pending => {}
                RunResult::Woken(runnable) => {
                    drop(self.link.put(runnable));
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }
}

/// Cancels the task, unless it has finished.
impl Drop for Host {
    fn drop(&mut self) {
        cancel(&self.held);
        // The task owns the link. A runnable left in the link would keep both alive.
        let left = self.link.0.with(|section| {
            section.bits.insert(CLOSED);
            section.wakes.discard(&mut section.state.host);
            section.state.runnable.take()
        });
        drop(left);
    }
}

/// Splits a future into a future that any executor can run, and a handle.
#[track_caller]
pub(crate) fn joinable<F>(future: F) -> (impl Future<Output = ()> + Send, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let link = Arc::new(Link(StateLock::new_in(Bits::EMPTY, State::default())));
    let (runnable, held, join) = reveille::raw::task(future, ToHost(link.clone()), describe(()));
    drop(link.put(runnable));
    (Host { link, held }, JoinHandle::new(join))
}
