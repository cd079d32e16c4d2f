//! The bits of the locks that checkers explore, beside the mutex that excludes their
//! sections.
//!
//! A checker runs all its threads on one thread of the system, and switches between
//! them only where one acquires its mutex. So what follows the release of the mutex,
//! up to the next operation of the checker, is one step with the section before it.
//! An update needs this. Its closure runs outside the section, where it may enter
//! another section of the same lock, and the exploration does not gain a scheduling
//! point.
//!
//! Invariant: the bits are taken out exactly while the closure of a `with` runs.

use core::cell::Cell;

use crate::protocol::Bits;

/// The bits, which a section takes out and puts back.
#[derive(Debug)]
pub(crate) struct SteppedBits(Cell<Option<Bits>>);

/// The bits that a section has taken out. They are put back when it ends, by a return
/// or a panic.
pub(crate) struct Taken<'a> {
    home: &'a SteppedBits,
    pub(crate) bits: Bits,
}

impl SteppedBits {
    pub(crate) const fn new(bits: Bits) -> Self {
        Self(Cell::new(Some(bits)))
    }

    /// Takes the bits out. The caller holds the mutex.
    pub(crate) fn take(&self) -> Taken<'_> {
        let bits = self.0.take().expect("the mutex excludes sections");
        Taken { home: self, bits }
    }

    /// Replaces the bits by those that `f` returns, as an update does. `section` is
    /// an empty section: when it returns, the mutex has been acquired and released.
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
            // replaced the bits or has taken them out.
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
