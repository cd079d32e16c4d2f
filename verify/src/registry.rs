//! What can be run by name: the subjects, then the specimens.

use crate::run::entry::{SpecimenEntry, SubjectEntry};
use crate::{specimens, subjects};

/// Every subject, in the order in which they run.
#[must_use]
pub(crate) fn subjects() -> Vec<SubjectEntry> {
    subjects::all()
}

/// Every specimen.
#[must_use]
pub(crate) fn specimens() -> Vec<SpecimenEntry> {
    specimens::all()
}

/// The names of the subjects of a group; empty if there is no such group.
pub(crate) fn group(name: &str) -> Vec<String> {
    let subjects = subjects().into_iter();
    subjects
        .filter(|subject| subject.group == Some(name))
        .map(|subject| subject.name)
        .collect()
}

/// The subject or specimen of a name.
#[must_use]
pub(crate) fn find(name: &str) -> Option<SubjectEntry> {
    let specimens = specimens().into_iter().map(|specimen| specimen.named);
    subjects()
        .into_iter()
        .chain(specimens)
        .find(|named| named.name == name)
}
