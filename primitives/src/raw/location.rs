//! Where in the source somebody began to wait, or took what he holds.
//!
//! It is known with the feature `locations`; without it, nothing of this takes
//! room or time.

use core::fmt;
#[cfg(feature = "locations")]
use core::panic::Location;

use crate::backend::Backend;
#[cfg(all(feature = "locations", not(loom)))]
use crate::backend::DefaultBackend;
#[cfg(feature = "locations")]
use crate::protocol::{Bits, StateLock, Waiter, Waiters};

/// A place in the source: that of the call by which somebody began to wait, or
/// took what he holds.
#[derive(Clone, Copy)]
pub struct CallerLocation {
    #[cfg(feature = "locations")]
    location: &'static Location<'static>,
}

impl CallerLocation {
    /// The place of the caller.
    #[cfg_attr(feature = "locations", track_caller)]
    #[inline]
    #[must_use]
    pub const fn capture() -> Self {
        Self {
            #[cfg(feature = "locations")]
            location: Location::caller(),
        }
    }

    /// The place.
    #[cfg(feature = "locations")]
    #[must_use]
    pub const fn get(self) -> &'static Location<'static> {
        self.location
    }
}

/// Locations, for people: a line each, as compilers print them.
#[cfg(feature = "locations")]
pub struct Locations(pub alloc::vec::Vec<&'static Location<'static>>);

#[cfg(feature = "locations")]
impl fmt::Debug for Locations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for place in &self.0 {
            list.entry(&format_args!("{place}"));
        }
        list.finish()
    }
}

/// Who holds something, and since which call: a list beside the permits, which
/// decides nothing.
pub struct Holders<B: Backend> {
    /// Those who hold stand in the structure of those who wait, and never do.
    #[cfg(feature = "locations")]
    lock: StateLock<Waiters<()>, B>,
    #[cfg(not(feature = "locations"))]
    backend: core::marker::PhantomData<fn() -> B>,
}

/// A place among the holders, from `enter` to `leave`.
#[derive(Debug, Default)]
pub struct Holder {
    #[cfg(feature = "locations")]
    entry: Option<Waiter>,
}

#[cfg(not(loom))]
impl Holders<crate::backend::DefaultBackend> {
    pub(crate) const fn const_new() -> Self {
        Self {
            #[cfg(feature = "locations")]
            lock: StateLock::<_, DefaultBackend>::const_new(Bits::EMPTY, Waiters::new()),
            #[cfg(not(feature = "locations"))]
            backend: core::marker::PhantomData,
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
        let _ = holder;
    }

    /// Where they took what they hold, the first first.
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

impl fmt::Debug for CallerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "locations")]
        return fmt::Display::fmt(self.location, f);
        #[cfg(not(feature = "locations"))]
        f.write_str("CallerLocation")
    }
}
