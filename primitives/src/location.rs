//! Where in the source a wait or a hold began.
//!
//! A location is recorded with the features `locations` and `model`. Without them, a
//! location takes no memory and no time.

use core::fmt;
#[cfg(feature = "caller-locations")]
use core::panic::Location;

/// Where in the source a waiter began to wait, or a holder acquired what it holds.
#[derive(Clone, Copy)]
pub struct CallerLocation {
    #[cfg(feature = "caller-locations")]
    location: &'static Location<'static>,
}

impl CallerLocation {
    /// Captures the location of the caller.
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    #[must_use]
    pub const fn capture() -> Self {
        Self {
            #[cfg(feature = "caller-locations")]
            location: Location::caller(),
        }
    }

    /// Returns the location.
    #[cfg(feature = "caller-locations")]
    #[must_use]
    pub const fn get(self) -> &'static Location<'static> {
        self.location
    }
}

/// Locations in debug output, one on each line, in the format of compilers.
#[cfg(feature = "locations")]
pub(crate) struct Locations(pub(crate) alloc::vec::Vec<&'static Location<'static>>);

#[cfg(feature = "locations")]
impl fmt::Debug for Locations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for location in &self.0 {
            list.entry(&format_args!("{location}"));
        }
        list.finish()
    }
}

impl fmt::Debug for CallerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "caller-locations")]
        return fmt::Display::fmt(self.location, f);
        #[cfg(not(feature = "caller-locations"))]
        f.write_str("CallerLocation")
    }
}
