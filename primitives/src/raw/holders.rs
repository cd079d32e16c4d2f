//! The holders of a lock or of permits, for debug output.
//!
//! They are recorded with the feature `locations`. Without it, the list takes no
//! memory and no time.

use core::fmt;
#[cfg(feature = "locations")]
use core::panic::Location;

use crate::backend::Backend;
#[cfg(feature = "locations")]
use crate::backend::DefaultBackend;
#[cfg(feature = "model")]
use crate::backend::watch::tell;
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::{Bits, StateLock, Waiter, Waiters};

/// The holders of a lock or of permits, with the locations at which they acquired it.
/// The list is for debug output and decides nothing.
pub(crate) struct Holders<B: Backend> {
    /// Each holder is listed as a waiter that is never notified.
    #[cfg(feature = "locations")]
    lock: StateLock<Waiters<()>, B>,
    #[cfg(not(feature = "locations"))]
    backend: core::marker::PhantomData<fn() -> B>,
}

/// An entry in the list, from `enter` to `leave`.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    #[cfg(feature = "locations")]
    entry: Option<Waiter>,
}

impl Holders<crate::backend::DefaultBackend> {
    const_unless_loom! {
        pub(crate) const fn const_new() -> Self {
            Self {
                #[cfg(feature = "locations")]
                lock: StateLock::<_, DefaultBackend>::const_new(Bits::EMPTY, Waiters::new()),
                #[cfg(not(feature = "locations"))]
                backend: core::marker::PhantomData,
            }
        }
    }
}

#[allow(
    clippy::unused_self,
    clippy::missing_const_for_fn,
    reason = "so they are without the feature"
)]
impl<B: Backend> Holders<B> {
    pub(crate) fn new_in() -> Self {
        Self {
            #[cfg(feature = "locations")]
            lock: StateLock::new_in(Bits::EMPTY, Waiters::new()),
            #[cfg(not(feature = "locations"))]
            backend: core::marker::PhantomData,
        }
    }

    #[inline]
    pub(crate) fn enter(&self, location: CallerLocation) -> Holder {
        #[cfg(feature = "locations")]
        let entry = self.lock.with(|section| section.state.push(location, ()));
        #[cfg(feature = "model")]
        tell::<B>(|watcher| watcher.took(core::ptr::from_ref(self).addr(), location.get()));
        let _ = location;
        Holder {
            #[cfg(feature = "locations")]
            entry: Some(entry),
        }
    }

    #[inline]
    pub(crate) fn leave(&self, holder: &mut Holder) {
        #[cfg(feature = "locations")]
        if let Some(entry) = holder.entry.take() {
            self.lock
                .with(|section| section.state.remove(entry, section.wakes));
        }
        #[cfg(feature = "model")]
        tell::<B>(|watcher| watcher.gave(core::ptr::from_ref(self).addr()));
        let _ = holder;
    }

    /// Returns the location at which each holder acquired what it holds, the oldest
    /// first.
    #[cfg(feature = "locations")]
    pub(crate) fn locations(&self) -> alloc::vec::Vec<&'static Location<'static>> {
        self.lock.with(|section| section.state.locations())
    }
}

impl<B: Backend> fmt::Debug for Holders<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holders").finish_non_exhaustive()
    }
}
