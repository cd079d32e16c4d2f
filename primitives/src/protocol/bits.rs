//! The bits of a state: the small part that a lock keeps in its own word.

use core::fmt;
use core::ops::BitOr;

/// The small part of a primitive's state: a few flags, or a count.
///
/// A lock keeps them beside its own bit, so a section that needs only the
/// bits can be one compare-exchange. There are `usize::BITS - 1` of them.
///
/// # Examples
///
/// ```
/// use reveille::protocol::Bits;
///
/// const FULL: Bits = Bits::new(1);
/// const LEFT: Bits = Bits::new(2);
///
/// let bits = Bits::EMPTY.with(FULL);
/// assert!(bits.contains(FULL));
/// assert!(!bits.contains(FULL | LEFT));
/// assert!(bits.intersects(FULL | LEFT));
/// assert_eq!(bits.without(FULL), Bits::EMPTY);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits(usize);

impl Bits {
    /// No bits.
    pub const EMPTY: Self = Self(0);

    /// The largest value: one bit of a word belongs to the lock.
    pub const MAX: usize = usize::MAX >> 1;

    /// Creates bits of the given value.
    ///
    /// # Panics
    ///
    /// Panics if `value` is above [`Bits::MAX`].
    #[inline]
    #[track_caller]
    #[must_use]
    pub const fn new(value: usize) -> Self {
        assert!(
            value <= Self::MAX,
            "bits above Bits::MAX: one bit of the word belongs to the lock"
        );
        Self(value)
    }

    /// Creates bits of a value that is known to be at most [`Bits::MAX`].
    #[inline]
    pub(crate) const fn fitting(value: usize) -> Self {
        debug_assert!(value <= Self::MAX);
        Self(value)
    }

    /// Returns the value of the bits.
    #[inline]
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }

    /// Returns `true` if every bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if any bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these bits with those of `other` set.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these bits with those of `other` cleared.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Sets the bits of `other`.
    #[inline]
    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears the bits of `other`.
    #[inline]
    pub const fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Returns the word of an unlocked lock with these bits.
    #[inline]
    pub(crate) const fn to_word(self) -> usize {
        self.0 << 1
    }

    /// Returns the bits of a lock word.
    #[inline]
    pub(crate) const fn of_word(word: usize) -> Self {
        Self(word >> 1)
    }
}

impl BitOr for Bits {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({:#b})", self.0)
    }
}
