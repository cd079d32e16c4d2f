//! Reports: how much a run covered, and what it found.

pub(crate) mod page;
mod swimlane;
pub(crate) mod table;
pub(crate) mod trace;

use std::fmt;
use std::time::Duration;

use indicatif::HumanCount;
use serde::{Deserialize, Serialize};

use crate::report::trace::Trace;
use crate::subject::verdict::{Class, Verdict};

/// A program that failed, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counterexample {
    /// The class of the failure.
    pub class: Class,
    /// What went wrong, in a sentence.
    pub sentence: String,
    /// The program, as text.
    pub program: String,
    /// The number of the execution that failed, from 1.
    pub execution: u64,
    /// The token for `--replay`, which runs exactly this execution again.
    pub token: String,
    /// The execution as a table.
    pub table: String,
    /// The execution in lanes, for pages.
    #[serde(default)]
    pub(crate) trace: Trace,
}

/// How many programs of a run have an operation in a polling mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Coverage {
    /// The name of the operation.
    pub(crate) operation: String,
    /// The name of the polling mode.
    pub(crate) polling: String,
    /// The number of programs.
    pub(crate) programs: u64,
}

/// What one engine found on one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The subject.
    pub subject: String,
    /// The engine.
    pub engine: String,
    /// The mode of the engine.
    pub mode: String,
    /// How much it covered.
    pub verdict: Verdict,
    /// The bound within which the verdict holds.
    pub bound: String,
    /// How many programs were run.
    pub programs: u64,
    /// How many executions they took.
    pub executions: u64,
    /// How many sections were observed, for a subject over the native lock. Without one
    /// there was nothing to interleave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<u64>,
    /// How often each operation was run in each polling mode.
    pub(crate) coverage: Vec<Coverage>,
    /// The smallest program that failed. [`check`](crate::check) and its siblings
    /// report the smallest of each class.
    pub failures: Vec<Counterexample>,
    /// The time it took, added up over all workers.
    #[serde(with = "seconds")]
    pub seconds: Duration,
}

impl Report {
    /// Returns `true` if the subject holds. A run without an execution does not hold, nor
    /// does one that interleaves sections and has seen none.
    #[must_use]
    pub fn holds(&self) -> bool {
        let ran = self.programs > 0 && self.executions >= self.programs;
        self.failures.is_empty() && ran && self.observed != Some(0)
    }

    /// Formats the run in a line.
    pub(crate) fn line(&self) -> String {
        let found = match self.failures.first() {
            Some(failure) => format!("FAILS: {}", failure.class),
            None if self.holds() => "holds".to_owned(),
            None if self.observed == Some(0) => "FAILS: no section was seen".to_owned(),
            None => "FAILS: nothing was run".to_owned(),
        };
        format!(
            "{:<12} {:<20} {:<9} {:>8} programs {:>12} executions {:>7.2} s  {found}",
            self.subject,
            format!("{}/{}", self.engine, self.mode),
            self.verdict,
            HumanCount(self.programs).to_string(),
            HumanCount(self.executions).to_string(),
            self.seconds.as_secs_f64(),
        )
    }
}

impl Counterexample {
    /// What marks the event of a table after which a wake-up is missing.
    pub(crate) const MARK: &'static str = "<-- no wake of";
}

/// Formats the sentence, the program and the table.
impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            class,
            sentence,
            program,
            table,
            ..
        } = self;
        write!(f, "{class}: {sentence}\nprogram: {program}\n{table}")
    }
}

/// Formats the run in a line with its bound, and below it the failures with their
/// tokens.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, within {}", self.line(), self.bound)?;
        for failure in &self.failures {
            write!(
                f,
                "\n\n{failure}\nagain: with `replay`, or `replay_foreign`, and the token\n{}\n",
                failure.token
            )?;
        }
        Ok(())
    }
}

/// The result of a specimen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SpecimenReport {
    /// The name of the specimen.
    pub(crate) name: String,
    /// The class in which it must be caught. It is `None` if it must pass.
    pub(crate) expected: Option<Class>,
    /// The class in which it was caught. It is `None` if it passed.
    pub(crate) found: Option<Class>,
    /// The program that caught it, or the number of programs it passed.
    pub(crate) program: String,
    /// The number of executions.
    pub(crate) executions: u64,
    /// The time it took, added up over all workers.
    #[serde(with = "seconds")]
    pub(crate) seconds: Duration,
    /// The failure in which it was caught.
    pub(crate) counterexample: Option<Counterexample>,
}

impl SpecimenReport {
    /// Returns `true` if the specimen was caught in its class, or passed if it must.
    #[must_use]
    pub(crate) fn as_expected(&self) -> bool {
        self.expected == self.found && self.executions > 0
    }

    /// Says what was expected and what was found.
    pub(crate) fn judgement(&self) -> String {
        let class = |class: Option<Class>| class.map_or("nothing".to_owned(), |it| it.to_string());
        let (expected, found) = (class(self.expected), class(self.found));
        format!("expected {expected}, found {found}")
    }
}

/// A time as a number of seconds, to the millisecond.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64((time.as_secs_f64() * 1000.0).round() / 1000.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}
