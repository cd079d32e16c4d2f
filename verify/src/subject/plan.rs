//! Plans: the bounds of each engine in each profile.

use std::fmt;

use crate::subject::verdict::Verdict;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// All orders of whole steps, on one thread.
    Sequential,
    /// Every interleaving, with memory orderings.
    Loom,
    /// Every interleaving of sections, one of each class. Larger programs are drawn.
    Fibers,
    /// Real threads.
    Stress,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 4] = [Self::Sequential, Self::Loom, Self::Fibers, Self::Stress];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Loom => "loom",
            Self::Fibers => "fibers",
            Self::Stress => "stress",
        }
    }
}

/// A mode of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// `sequential`: all orders of steps.
    Steps,
    /// `loom` over the abstract lock: all orders of sections.
    Sections,
    /// `loom` over the real lock: orders and orderings of accesses.
    Accesses,
    /// `fibers`: of all orders of sections, one of each class.
    Exhaustive,
    /// `fibers`: drawn schedules of drawn programs.
    Random,
    /// `fibers`: drawn programs, schedules by probabilistic concurrency
    /// testing.
    Pct,
    /// `stress`: threads of the system.
    Threads,
}

impl Mode {
    /// All modes, in the order in which they are run.
    pub const ALL: [Self; 7] = [
        Self::Steps,
        Self::Sections,
        Self::Accesses,
        Self::Exhaustive,
        Self::Random,
        Self::Pct,
        Self::Threads,
    ];

    /// Returns the engine of this mode.
    #[must_use]
    pub const fn engine(self) -> Engine {
        match self {
            Self::Steps => Engine::Sequential,
            Self::Sections | Self::Accesses => Engine::Loom,
            Self::Exhaustive | Self::Random | Self::Pct => Engine::Fibers,
            Self::Threads => Engine::Stress,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Sections => "sections",
            Self::Accesses => "accesses",
            Self::Exhaustive => "exhaustive",
            Self::Random => "random",
            Self::Pct => "pct",
            Self::Threads => "threads",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns the order in which operations must be explained.
    pub(crate) const fn order(self) -> Order {
        match self {
            Self::Accesses => Order::Program,
            _ => Order::RealTime,
        }
    }

    /// Returns the best verdict of a run in this mode.
    #[must_use]
    pub const fn best(self) -> Verdict {
        match self {
            Self::Steps | Self::Sections | Self::Accesses | Self::Exhaustive => Verdict::Complete,
            Self::Random | Self::Pct | Self::Threads => Verdict::Sampled,
        }
    }
}

/// The orders in which operations may be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// An operation that begins after another has ended comes after it
    /// (linearizability).
    RealTime,
    /// Each participant's operations are in their order (sequential consistency). If
    /// memory orderings are explored there is no time: a load may return a value from
    /// before a store that "came before" on another thread.
    Program,
}

/// How much is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Under a minute on two cores for all of this project's subjects. It runs at every
    /// commit.
    #[default]
    Quick,
    /// Some minutes.
    Full,
    /// As long as it takes.
    Deep,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Full, Self::Deep];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Deep => "deep",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The bound of the programs that are enumerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The number of participants, if the subject leaves it open.
    pub participants: usize,
    /// The greatest number of operations of each participant.
    pub operations: usize,
    /// The greatest number of operations of all participants together.
    pub total: usize,
    /// The greatest number of operations that are polled in a mode other than `Await`.
    pub non_default: usize,
    /// The last suspension at which anything other than waiting is done: 1 or 2.
    pub suspensions: u8,
    /// Whether programs have operations that block their thread.
    pub blocking: bool,
    /// Whether programs have operations that are
    /// [aliases](crate::Operation::alias).
    pub aliases: bool,
    /// Whether programs have wakers that panic.
    pub panics: bool,
    /// Whether only programs that have one are run.
    pub only_panics: bool,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            participants,
            operations,
            total,
            non_default,
            suspensions,
            blocking,
            aliases,
            panics,
            only_panics,
        } = self;
        write!(f, "{participants}x{operations}")?;
        if *total < participants * operations {
            write!(f, ", {total} in all")?;
        }
        if non_default < total {
            write!(f, ", {non_default} non-default")?;
        }
        if *suspensions < 2 && *non_default > 0 {
            f.write_str(" at the first suspension")?;
        }
        if !blocking {
            f.write_str(", none blocking")?;
        }
        if !aliases {
            f.write_str(", no aliases")?;
        }
        match (*panics, *only_panics) {
            (false, _) => f.write_str(", no panics")?,
            (true, true) => f.write_str(", with panics")?,
            (true, false) => {}
        }
        Ok(())
    }
}

/// What one mode runs of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The bound of its programs.
    pub bound: Bound,
    /// The number of programs that are drawn. If it is `None`, all are run.
    pub drawn: Option<u64>,
    /// The greatest number of executions of each program.
    pub executions: u64,
    /// The greatest number of preemptions in an execution, if it is bounded.
    pub preemptions: Option<usize>,
}

impl Plan {
    /// Returns the default plan, for two participants.
    #[must_use]
    pub fn of(mode: Mode, profile: Profile) -> Self {
        let bound = |operations, total, non_default, panics| Bound {
            participants: 2,
            operations,
            total,
            non_default,
            // loom is slow, and another engine carries the bounds.
            suspensions: if matches!(mode, Mode::Sections | Mode::Accesses) {
                1
            } else {
                2
            },
            blocking: mode != Mode::Steps,
            aliases: true,
            panics,
            only_panics: false,
        };
        let every = |bound| Self {
            bound,
            drawn: None,
            executions: 1_000_000,
            preemptions: None,
        };
        let some = |bound, drawn, executions| Self {
            bound,
            drawn: Some(drawn),
            executions,
            preemptions: None,
        };
        use Profile::{Deep, Full, Quick};
        match (mode, profile) {
            (Mode::Steps, Quick) => every(bound(2, 4, 4, true)),
            (Mode::Steps, Full) => every(bound(3, 6, 2, true)),
            (Mode::Steps, Deep) => every(bound(3, 6, 6, true)),
            (Mode::Sections, Quick) => every(bound(1, 2, 2, true)),
            (Mode::Sections, Full) => every(bound(2, 3, 2, true)),
            (Mode::Sections, Deep) => every(bound(2, 4, 4, true)),
            (Mode::Exhaustive, Quick) => every(bound(2, 4, 2, true)),
            (Mode::Exhaustive, Full) => every(bound(3, 6, 2, true)),
            (Mode::Exhaustive, Deep) => every(bound(3, 6, 6, true)),
            (Mode::Accesses, Quick) => Self {
                preemptions: Some(2),
                ..every(bound(1, 2, 2, false))
            },
            (Mode::Accesses, Full) => Self {
                preemptions: Some(2),
                ..every(bound(2, 3, 3, true))
            },
            (Mode::Accesses, Deep) => Self {
                preemptions: Some(3),
                ..every(bound(2, 4, 4, true))
            },
            (Mode::Random | Mode::Pct, Quick) => some(bound(4, 8, 8, true), 200, 50),
            (Mode::Random | Mode::Pct, Full) => some(bound(5, 10, 10, true), 5_000, 200),
            (Mode::Random | Mode::Pct, Deep) => some(bound(6, 12, 12, true), 50_000, 500),
            (Mode::Threads, Quick) => some(bound(3, 6, 6, true), 50, 50),
            (Mode::Threads, Full) => some(bound(3, 6, 6, true), 2_000, 200),
            (Mode::Threads, Deep) => some(bound(4, 8, 8, true), 20_000, 500),
        }
    }

    /// Returns the default plan for three participants, which runs beside that for two.
    /// A waiter behind another can be forgotten only if there are three. It is `None`
    /// for a mode that has enough to do with two.
    #[must_use]
    pub fn of_three(mode: Mode, profile: Profile) -> Option<Self> {
        let bound = |operations, total, non_default, panics| Bound {
            participants: 3,
            operations,
            total,
            non_default,
            // loom is slow, and another engine carries the bounds.
            suspensions: if matches!(mode, Mode::Sections | Mode::Accesses) {
                1
            } else {
                2
            },
            blocking: mode != Mode::Steps,
            aliases: true,
            panics,
            only_panics: false,
        };
        use Profile::{Deep, Full, Quick};
        let bound = match (mode, profile) {
            (Mode::Accesses, _) | (Mode::Sections, Quick) => return None,
            (Mode::Sections, Full) => bound(1, 3, 0, false),
            (Mode::Sections, Deep) => bound(1, 3, 1, true),
            (Mode::Steps, Quick) => bound(2, 4, 0, false),
            (Mode::Steps, Full) => bound(2, 4, 1, true),
            (Mode::Steps, Deep) => bound(3, 5, 1, true),
            (Mode::Exhaustive, Quick) => bound(1, 3, 1, true),
            (Mode::Exhaustive, Full) => bound(2, 4, 1, true),
            (Mode::Exhaustive, Deep) => bound(2, 5, 2, true),
            (Mode::Random | Mode::Pct | Mode::Threads, _) => bound(3, 9, 9, true),
        };
        Some(Self {
            bound,
            ..Self::of(mode, profile)
        })
    }

    /// Returns the bound in words.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_of(&self.bound.to_string())
    }

    /// Returns the limits on executions in words, behind those on programs.
    pub(crate) fn text_of(&self, programs: &str) -> String {
        let mut text = programs.to_owned();
        if let Some(preemptions) = self.preemptions {
            let s = if preemptions == 1 { "" } else { "s" };
            text += &format!(", {preemptions} preemption{s}");
        }
        if self.drawn.is_some() {
            text += &format!(", {} each", self.executions);
        }
        text
    }
}
