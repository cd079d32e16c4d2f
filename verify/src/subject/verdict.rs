//! Verdicts: how much was explored, and which rule was broken.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a run covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every interleaving of every program within the stated bound was explored. Of
    /// interleavings that differ only by an exchange of independent sections, one was.
    Complete,
    /// A limit on preemptions or on executions cut the search, or it ended at its first
    /// failure.
    Bounded,
    /// Programs and schedules were drawn.
    Sampled,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Complete => "complete",
            Self::Bounded => "bounded",
            Self::Sampled => "sampled",
        })
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A suspended operation could go on, and none of its wakers was called.
    LostWakeUp,
    /// A suspended operation could go on, and only a waker that a later poll had
    /// replaced was called.
    StaleWaker,
    /// A failure that occurs only if a future is dropped before it completes.
    CancellationRace,
    /// Foreign code was run under the lock.
    Reentrancy,
    /// A waker, a value or the primitive outlived its time.
    Leak,
    /// A panic that the program did not ask for, or harm done by one that it asked for.
    Panic,
    /// No order of the operations explains their results.
    WrongResult,
    /// Two accesses to memory race.
    Race,
    /// Threads block each other for ever.
    Deadlock,
}

impl Class {
    /// Returns the class of a panic in the code of a subject, or in the engine below
    /// it.
    pub(crate) fn of_panic(text: &str) -> Self {
        if text.contains("Causality violation") || text.contains("Concurrent read and write") {
            Self::Race
        } else if text.starts_with("deadlock") {
            Self::Deadlock
        } else {
            Self::Panic
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LostWakeUp => "lost wake-up",
            Self::StaleWaker => "stale waker",
            Self::CancellationRace => "cancellation race",
            Self::Reentrancy => "re-entrancy",
            Self::Leak => "leak",
            Self::Panic => "panic",
            Self::WrongResult => "wrong result",
            Self::Race => "data race",
            Self::Deadlock => "deadlock",
        })
    }
}

/// A rule that an execution broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Its class.
    pub(crate) class: Class,
    /// What happened, in a sentence. `{0}` stands for the first participant, and so on.
    pub(crate) sentence: String,
}
