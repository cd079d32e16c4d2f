//! Accesses to memory, without the memory.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::backend::{Backend, DefaultBackend, SharedCell};

/// Stands for a value whose accesses a checker watches. Under loom, a
/// [`write`](Self::write) that races with another access fails the model.
///
/// Put beside what a lock protects, it shows that the lock excludes and that each
/// holder sees what the previous one wrote. Over other backends it does nothing.
///
/// # Examples
///
/// ```
/// use reveille::raw::Witness;
///
/// let witness: Witness = Witness::new_in();
/// witness.write();
/// witness.read();
/// ```
pub struct Witness<B: Backend = DefaultBackend>(SharedCell<(), B>);

impl Witness {
    const_unless_loom! {
        /// Creates a witness, in a constant.
        #[must_use]
        pub const fn const_new() -> Self {
            Self(SharedCell::const_new(()))
        }
    }
}

impl<B: Backend> Witness<B> {
    /// Creates a witness over any backend.
    #[must_use]
    pub fn new_in() -> Self {
        Self(SharedCell::new(()))
    }

    /// Accesses the value as a reader does.
    pub fn read(&self) {
        self.0.with(|_| ());
    }

    /// Accesses the value as a writer does.
    pub fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

/// It holds nothing that a panic could leave inconsistent.
impl<B: Backend> RefUnwindSafe for Witness<B> {}
impl<B: Backend> UnwindSafe for Witness<B> {}

impl<B: Backend> fmt::Debug for Witness<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}
