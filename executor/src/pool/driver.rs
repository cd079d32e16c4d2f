//! What the idle worker of a pool does for all workers: it drives the timers.
//!
//! ```text
//!   turn: what is due is done ──▶ parked until the next deadline ──▶ turn
//!                                    ▲ unparked: something to run, or a nearer deadline
//! ```
//!
//! Only the timers of the pool are driven. A reactor for I/O events would also belong
//! here. Its turn would process the events that are ready, and its park would wait for
//! more.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::task::{Context, Waker};

use reveille::backend::{BlockingBackend, Native, Park, StdPark};
use reveille::time::{Driver, Instant};

use crate::catch_panic::catch_panic;

/// Something that an idle worker drives.
pub(crate) trait Drive<B: BlockingBackend>: Send + Sync + 'static {
    /// Fires what is due. Workers that are never idle call it now and then.
    fn fire(&self);

    /// Fires what is due, and returns the next deadline. The waker is called if an
    /// earlier deadline is added.
    fn turn(&self, cx: &mut Context<'_>) -> Option<Instant>;

    /// Sleeps until `until`, or until `park` is unparked.
    fn park(&self, park: &Arc<B::Park>, until: Option<Instant>);
}

/// The state that the workers of a pool share. It is dropped with the last of them.
pub(crate) struct Driving<B: BlockingBackend> {
    pub(super) drive: Box<dyn Drive<B>>,
    /// Notifies the worker that drives, or unparks an idle one to drive.
    deadline_waker: Waker,
}

impl<B: BlockingBackend> Driving<B> {
    pub(crate) fn new(drive: impl Drive<B>, deadline_waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            drive: Box::new(drive),
            deadline_waker,
        })
    }

    pub(super) fn turn(&self) -> Option<Instant> {
        self.drive
            .turn(&mut Context::from_waker(&self.deadline_waker))
    }
}

impl Drive<Native> for Driver {
    fn fire(&self) {
        catch_panic(|| self.timers().fire());
    }

    fn turn(&self, cx: &mut Context<'_>) -> Option<Instant> {
        loop {
            if let Some(next) = catch_panic(|| Driver::turn(self, cx)) {
                return next;
            }
        }
    }

    fn park(&self, park: &Arc<StdPark>, until: Option<Instant>) {
        match until {
            Some(until) => park.park_timeout(until - self.timers().now()),
            None => park.park(),
        }
    }
}
