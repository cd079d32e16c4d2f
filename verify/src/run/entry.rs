//! Entries: the subjects and specimens that can be run by name, as their files declare
//! them.

use std::fmt;

use crate::run::{Entry, Generic};
use crate::subject::GenericSubject;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::verdict::Class;

/// A subject with its name.
pub(crate) struct SubjectEntry {
    /// Its name.
    pub(crate) name: String,
    /// A description of one line.
    pub(crate) about: &'static str,
    /// How it is run.
    pub(crate) entry: Box<dyn Entry>,
    /// The public operations that its programs perform.
    pub(crate) surface: Surface,
    /// The group to which it belongs. A group's name selects all of its subjects.
    pub(crate) group: Option<&'static str>,
}

/// The public operations that the programs of a subject perform.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surface {
    /// Those of source files, with exceptions.
    Sources(&'static [Source]),
    /// Those of the subject of this name.
    As(&'static str),
    /// Those of no single file, for the given reason.
    Other(&'static str),
}

/// A source file, and the public functions of it that no program performs.
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
    /// It always returns the same.
    Constant,
    /// It runs the same code as the operation of this name.
    SameAs(&'static str),
    /// It exists only with the feature `locations`, and decides nothing.
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

/// Formats the operations that the programs perform, and those that they do not, in a
/// line.
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
    /// Creates the entry of a subject that is generic over its backend.
    pub(crate) fn new(
        name: &str,
        about: &'static str,
        subject: impl GenericSubject,
        surface: Surface,
    ) -> Self {
        Self::of(name, about, Box::new(Generic(subject)), surface)
    }

    /// Creates an entry of anything that can be run.
    pub(crate) fn of(
        name: &str,
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
    /// Its name, which is that of its subject, a slash, and its own.
    pub(crate) named: SubjectEntry,
    /// The class in which it must be caught. It is `None` if it must pass.
    pub(crate) expected: Option<Class>,
    /// The greatest number of operations of its programs.
    total: usize,
    /// Whether all operations are polled as awaited.
    awaited: bool,
}

impl SpecimenEntry {
    /// Creates the specimens of a subject. Each has a name, a fault, and the class in
    /// which programs of at most `total` operations must catch it.
    pub(crate) fn all_of<F, S: GenericSubject, const N: usize>(
        subject: &str,
        total: usize,
        faults: [(&'static str, F, Option<Class>); N],
        specimen: fn(F) -> S,
    ) -> Vec<Self> {
        let entry = |(name, fault, expected): (&str, F, Option<Class>)| {
            let name = format!("{subject}/{name}");
            Self::new(name, Generic(specimen(fault)), expected, total)
        };
        faults.into_iter().map(entry).collect()
    }

    /// Creates a specimen, which programs of at most `total` operations must catch.
    pub(crate) fn new(
        name: String,
        entry: impl Entry + 'static,
        expected: Option<Class>,
        total: usize,
    ) -> Self {
        Self {
            named: SubjectEntry {
                name,
                about: match expected {
                    Some(_) => "broken on purpose: must be caught",
                    None => "correct but uncommon: must pass",
                },
                entry: Box::new(entry),
                surface: Surface::Other("a specimen has the operations that its fault needs"),
                group: None,
            },
            expected,
            total,
            awaited: false,
        }
    }

    /// Polls all operations as awaited: the fault needs more of them, and no other way.
    pub(crate) fn awaited(mut self) -> Self {
        self.awaited = true;
        self
    }

    /// Returns the mode in which it is run. A race of accesses to memory is found only
    /// in `sections`. Every other class is found if sections are interleaved, which is
    /// cheapest.
    pub(crate) fn mode(&self) -> Mode {
        match self.expected {
            Some(Class::Race) => Mode::Sections,
            _ => Mode::Exhaustive,
        }
    }

    /// Returns the bounds of its programs. At most two operations are polled in another
    /// mode than awaited, since no fault needs more.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = Plan::of(self.mode(), Profile::Quick);
        plan.bound.total = self.total;
        plan.bound.operations = self.total - 1;
        plan.bound.non_default = if self.awaited { 0 } else { self.total.min(2) };
        plan
    }
}

impl fmt::Debug for SpecimenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.named.name;
        f.debug_tuple("SpecimenEntry").field(name).finish()
    }
}
