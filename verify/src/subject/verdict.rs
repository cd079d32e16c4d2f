//! Verdicts: how much was explored, and which rule was broken.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a run covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every interleaving of every program within the stated bound; of those
    /// that differ by an exchange of sections that do not touch, one.
    Complete,
    /// A limit cut it, on preemptions or on executions; or it ended at its first failure.
    Bounded,
    /// So many were drawn.
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
    /// A suspended operation could go on, and no waker of its was called.
    LostWakeUp,
    /// A suspended operation could go on, and only a waker that a later poll
    /// had superseded was called.
    StaleWaker,
    /// It takes a future dropped on the way.
    CancellationRace,
    /// Foreign code was run under the lock.
    Reentrancy,
    /// A waker, a value or the primitive outlived its time.
    Leak,
    /// A panic nobody called for, or the harm that one did which somebody did.
    Panic,
    /// No order of the operations explains their results.
    WrongResult,
    /// Two accesses to memory race.
    Race,
    /// Threads block each other for ever.
    Deadlock,
}

impl Class {
    /// The class of a panic that came out of the subject's code or of the
    /// engine below it.
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
    /// Which kind.
    pub(crate) class: Class,
    /// In a sentence. `{0}` stands for the first participant, and so on.
    pub(crate) sentence: String,
}
