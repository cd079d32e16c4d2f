//! The bits of the locks that checkers explore, beside the mutex that excludes
//! their sections.
//!
//! A checker runs all its threads on one thread of the system and switches between
//! them only where one takes its mutex. So what follows the release of the mutex, up to
//! the next operation of the checker's, is one step with the section before it. An
//! update needs that: its closure runs outside the section, where it may enter another
//! of the same lock, and the exploration has no scheduling point more for it.
//!
//! Invariant: the bits are away exactly while the closure of a `with` runs.

use core::cell::Cell;

use crate::protocol::Bits;

/// Bits that a section takes out and puts back.
#[derive(Debug)]
pub(crate) struct SteppedBits(Cell<Option<Bits>>);

/// The bits of a section, on their way back: by return or by unwinding.
pub(crate) struct Taken<'a> {
    home: &'a SteppedBits,
    pub(crate) bits: Bits,
}

impl SteppedBits {
    pub(crate) const fn new(bits: Bits) -> Self {
        Self(Cell::new(Some(bits)))
    }

    /// Takes the bits out. The caller has the mutex.
    pub(crate) fn take(&self) -> Taken<'_> {
        let bits = self.0.take().expect("the mutex excludes sections");
        Taken { home: self, bits }
    }

    /// Replaces the bits by what `f` returns, as an update does. `section` is an
    /// empty section: when it returns, the mutex has been taken and released.
    pub(crate) fn update(
        &self,
        section: impl Fn(),
        mut f: impl FnMut(Bits) -> Option<Bits>,
    ) -> Result<Bits, Bits> {
        loop {
            section();
            let old = self.0.get().expect("no section runs in this step");
            let new = f(old).ok_or(old)?;
            // Otherwise a section within `f`, or one that `f` has waited for, has
            // replaced the bits, or has them.
            if self.0.get() == Some(old) {
                self.0.set(Some(new));
                return Ok(old);
            }
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut Bits {
        let bits = self.0.get_mut();
        bits.as_mut().expect("the lock is borrowed exclusively")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.home.0.set(Some(self.bits));
    }
}
