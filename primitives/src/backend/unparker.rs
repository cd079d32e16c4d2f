//! What a thread blocks on, as a waker.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use alloc::task::Wake;

#[cfg(feature = "model")]
use super::Watcher;
use super::{BlockingBackend, Park};

/// What a thread blocks on: a [`Park`] of its own, or the checker of the thread.
pub(crate) enum Unparker<P> {
    Own(P),
    /// A checker, which suspends the thread itself. This is the number that it returned.
    #[cfg(feature = "model")]
    Watched(&'static dyn Watcher, usize),
}

impl<P: Park> Unparker<P> {
    #[cfg_attr(
        not(feature = "model"),
        expect(
            clippy::extra_unused_type_parameters,
            reason = "the backend says whether there is a checker"
        )
    )]
    pub(crate) fn new<B: BlockingBackend<Park = P>>() -> Self {
        #[cfg(feature = "model")]
        if let Some(watcher) = B::watcher() {
            return Self::Watched(watcher, watcher.parker());
        }
        Self::Own(P::new())
    }

    #[inline]
    pub(crate) fn park(&self) {
        match self {
            Self::Own(park) => park.park(),
            #[cfg(feature = "model")]
            Self::Watched(watcher, parker) => watcher.park(*parker),
        }
    }
}

impl<P: Park> Wake for Unparker<P> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match &**self {
            Self::Own(park) => park.unpark(),
            #[cfg(feature = "model")]
            Self::Watched(watcher, parker) => watcher.unpark(*parker),
        }
    }
}
