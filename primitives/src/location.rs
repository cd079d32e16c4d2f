//! Where in the source a wait or a hold began.
//!
//! A location is recorded with the features `locations` and `model`. Without them, a
//! location takes no memory and no time.
//!
//! With them, each poll that registers a waker also notes on its thread what it waits
//! for, and a task keeps the last note of its poll.

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

/// What a task waits for.
///
/// A primitive notes it when a poll registers a waker. If a task waits for several
/// things, the last one is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// It waits in a queue, since the call at this location.
    Call(&'static core::panic::Location<'static>),
    /// It waits for the task with this number.
    Task(u64),
    /// It waits for a deadline.
    Deadline,
    /// It waits for a value, or for something else that one task waits for.
    Value,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(location) => write!(f, "waits at {location}"),
            Self::Task(id) => write!(f, "waits for task {id}"),
            Self::Deadline => f.write_str("waits for a deadline"),
            Self::Value => f.write_str("waits for a value"),
        }
    }
}

#[cfg(all(feature = "caller-locations", feature = "std"))]
mod noted {
    use core::cell::Cell;

    use super::{CallerLocation, Wait};

    std::thread_local! {
        /// What the poll under way waits for.
        static NOTE: Cell<Option<Wait>> = const { Cell::new(None) };
        /// Where the waiter began to wait whose waker is about to be registered.
        static CALL: Cell<Option<CallerLocation>> = const { Cell::new(None) };
    }

    /// Notes where the waiter began to wait whose waker is registered next.
    pub(crate) fn note_call(location: CallerLocation) {
        CALL.try_with(|call| call.set(Some(location))).ok();
    }

    /// Notes that a waker has been registered.
    pub(crate) fn note_registered() {
        let call = CALL.try_with(Cell::take).ok().flatten();
        note(call.map_or(Wait::Value, |call| Wait::Call(call.get())));
    }

    /// Notes what the poll under way waits for.
    pub(crate) fn note(wait: Wait) {
        NOTE.try_with(|note| note.set(Some(wait))).ok();
    }

    /// Returns the note of the poll that has ended, and begins without one.
    pub(crate) fn take_note() -> Option<Wait> {
        NOTE.try_with(Cell::take).ok().flatten()
    }
}

#[cfg(not(all(feature = "caller-locations", feature = "std")))]
mod noted {
    use super::{CallerLocation, Wait};

    #[inline]
    pub(crate) const fn note_call(_: CallerLocation) {}

    #[inline]
    pub(crate) const fn note_registered() {}

    #[inline]
    pub(crate) const fn note(_: Wait) {}
}

#[cfg(all(feature = "caller-locations", feature = "std"))]
pub(crate) use self::noted::take_note;
pub(crate) use self::noted::{note, note_call, note_registered};

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
