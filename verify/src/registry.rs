//! The subjects and specimens that can be run by name.

use crate::run::entry::{SpecimenEntry, SubjectEntry};
use crate::{specimens, subjects};

/// Returns every subject, in the order in which they run.
#[must_use]
pub(crate) fn subjects() -> Vec<SubjectEntry> {
    subjects::all()
}

/// Returns every specimen.
#[must_use]
pub(crate) fn specimens() -> Vec<SpecimenEntry> {
    specimens::all()
}

/// Returns the names of the subjects of a group. There are none if there is no such
/// group.
pub(crate) fn group(name: &str) -> Vec<String> {
    let subjects = subjects().into_iter();
    subjects
        .filter(|subject| subject.group == Some(name))
        .map(|subject| subject.name)
        .collect()
}

/// Returns the subject or specimen of this name.
#[must_use]
pub(crate) fn find(name: &str) -> Option<SubjectEntry> {
    let specimens = specimens().into_iter().map(|specimen| specimen.named);
    subjects()
        .into_iter()
        .chain(specimens)
        .find(|named| named.name == name)
}
