//! Values: what a primitive carries from one participant to another.

use std::fmt;
use std::sync::Arc;

use crate::subject::spec::ValueId;

/// A value whose drops are counted. It must be delivered, returned or dropped exactly
/// once.
pub struct Value {
    id: ValueId,
    index: usize,
    drops: Arc<dyn CountDrops>,
}

/// Counts the drops of values.
pub(crate) trait CountDrops: Send + Sync {
    /// Records that the value of this index was dropped.
    fn dropped(&self, index: usize, id: ValueId);
}

impl Value {
    pub(crate) fn new(id: ValueId, index: usize, drops: Arc<dyn CountDrops>) -> Self {
        Self { id, index, drops }
    }

    /// Returns its number.
    #[must_use]
    pub fn id(&self) -> ValueId {
        self.id
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.drops.dropped(self.index, self.id);
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.id.0)
    }
}
