//! Entries: what can be run by name, as the subjects and specimens declare it.

use std::fmt;

use crate::run::{Entry, Generic};
use crate::subject::GenericSubject;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::verdict::Class;

/// A subject with its name.
pub(crate) struct SubjectEntry {
    /// Its name.
    pub(crate) name: String,
    /// What it is, in a line.
    pub(crate) about: &'static str,
    /// How it is run.
    pub(crate) entry: Box<dyn Entry>,
    /// Which public operations its programs perform.
    pub(crate) surface: Surface,
    /// The group it belongs to: subjects that one name selects.
    pub(crate) group: Option<&'static str>,
}

/// Which public operations the programs of a subject perform.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surface {
    /// Those of source files, except some.
    Sources(&'static [Source]),
    /// Those of the subject of this name.
    As(&'static str),
    /// Those of no single file, for a reason.
    Other(&'static str),
}

/// A source file, and which of its public functions no program performs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// Its path below `primitives/src`.
    pub(crate) path: &'static str,
    /// The functions, each with the reason.
    pub(crate) absent: &'static [(&'static str, Absent)],
}

/// Why no program performs a public function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent {
    /// It creates the primitive, before the program begins.
    Creates,
    /// It needs exclusive access: no other operation can overlap it.
    Exclusive,
    /// It returns what never changes.
    Constant,
    /// It runs the same code as the operation of this name.
    SameAs(&'static str),
    /// It exists with the feature `locations` only, and decides nothing.
    Locations,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Creates => f.write_str("creates it"),
            Self::Exclusive => f.write_str("needs exclusive access"),
            Self::Constant => f.write_str("constant"),
            Self::SameAs(other) => write!(f, "same as {other}"),
            Self::Locations => f.write_str("with `locations` only"),
        }
    }
}

/// The operations that the programs perform, or that they do not, in a line.
impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::As(other) => write!(f, "those of {other}"),
            Self::Other(what) => f.write_str(what),
            Self::Sources(sources) => {
                f.write_str("all")?;
                let mut separator = ", except ";
                for Source { path, absent } in *sources {
                    for (name, why) in *absent {
                        write!(f, "{separator}{name} ({why})")?;
                        separator = ", ";
                    }
                    write!(f, " of {path}")?;
                    separator = "; ";
                }
                Ok(())
            }
        }
    }
}

impl SubjectEntry {
    /// A subject that is generic over its backend.
    pub(crate) fn new(
        name: &'static str,
        about: &'static str,
        subject: impl GenericSubject,
        surface: Surface,
    ) -> Self {
        Self::of(name, about, Box::new(Generic(subject)), surface)
    }

    /// Anything that can be run.
    pub(crate) fn of(
        name: &'static str,
        about: &'static str,
        entry: Box<dyn Entry>,
        surface: Surface,
    ) -> Self {
        Self {
            name: name.to_owned(),
            about,
            entry,
            surface,
            group: None,
        }
    }

    /// Adds the subject to a group.
    pub(crate) fn in_group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }
}

impl fmt::Debug for SubjectEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SubjectEntry").field(&self.name).finish()
    }
}

/// A specimen with its name, and the class in which it must be caught.
pub(crate) struct SpecimenEntry {
    /// Its name: that of its subject, a slash, and its own.
    pub(crate) named: SubjectEntry,
    /// The class it must be caught in; `None` if it must pass.
    pub(crate) expected: Option<Class>,
    /// How many operations the programs have at most.
    total: usize,
}

impl SpecimenEntry {
    /// The specimens of one subject: for each its name, its fault, and the class in
    /// which programs of at most `total` operations must catch it.
    pub(crate) fn all_of<F, S: GenericSubject, const N: usize>(
        subject: &str,
        total: usize,
        faults: [(&'static str, F, Option<Class>); N],
        specimen: fn(F) -> S,
    ) -> Vec<Self> {
        let entry = |(name, fault, expected): (&str, F, Option<Class>)| Self {
            named: SubjectEntry {
                name: format!("{subject}/{name}"),
                about: match expected {
                    Some(_) => "broken on purpose: must be caught",
                    None => "correct, if uncommon: must pass",
                },
                entry: Box::new(Generic(specimen(fault))),
                surface: Surface::Other("a specimen has the operations that its fault takes"),
                group: None,
            },
            expected,
            total,
        };
        faults.into_iter().map(entry).collect()
    }

    /// The mode it is run in: where races of accesses to memory are seen if it must
    /// be caught as one, and else where only sections are interleaved, which is
    /// cheapest.
    pub(crate) fn mode(&self) -> Mode {
        match self.expected {
            Some(Class::Race) => Mode::Sections,
            _ => Mode::Exhaustive,
        }
    }

    /// The programs it is run with.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = Plan::of(self.mode(), Profile::Quick);
        plan.bound.total = self.total;
        plan.bound.operations = self.total - 1;
        plan.bound.non_default = self.total;
        plan
    }
}

impl fmt::Debug for SpecimenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.named.name;
        f.debug_tuple("SpecimenEntry").field(name).finish()
    }
}
