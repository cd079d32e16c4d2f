//! What the worker of a pool does that sleeps for all: it drives.
//!
//! ```text
//!   turn: what is due is done ──▶ parked until the next deadline ──▶ turn
//!                                    ▲ unparked: something to run, or a nearer deadline
//! ```
//!
//! What there is to drive is the pool's timers. A reactor for what the operating
//! system has ready is to stand here: it does in its turn what has become ready, and
//! waits for more where there is a park now.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::task::{Context, Waker};

use reveille::backend::{BlockingBackend, Native, Park, StdPark};
use reveille::time::{Driver, Instant};

use crate::catch_panic::catch_panic;

/// What is driven.
pub(crate) trait Drive<B: BlockingBackend>: Send + Sync + 'static {
    /// Does what is due: what workers do in between that are never idle.
    fn fire(&self);

    /// Does what is due, and returns until when there is nothing to do. The waker is
    /// called if that changes.
    fn turn(&self, cx: &mut Context<'_>) -> Option<Instant>;

    /// Sleeps until then, or until `park` is unparked.
    fn park(&self, park: &Arc<B::Park>, until: Option<Instant>);
}

/// What the workers of a pool have between them. It goes with the last of them.
pub(crate) struct Driving<B: BlockingBackend> {
    pub(super) drive: Box<dyn Drive<B>>,
    /// Notifies the worker that drives, or has an idle one drive.
    alarm: Waker,
}

impl<B: BlockingBackend> Driving<B> {
    pub(crate) fn new(drive: impl Drive<B>, alarm: Waker) -> Arc<Self> {
        Arc::new(Self {
            drive: Box::new(drive),
            alarm,
        })
    }

    pub(super) fn turn(&self) -> Option<Instant> {
        self.drive.turn(&mut Context::from_waker(&self.alarm))
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
