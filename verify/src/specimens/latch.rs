//! Broken latches, on the gate of [`gate`].

use crate::run::entry::SpecimenEntry;
use crate::specimens::gate;

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    gate::latches()
}
