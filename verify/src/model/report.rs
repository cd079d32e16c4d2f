//! The report of a model: what went wrong, and how much was covered.

use std::fmt;
use std::fmt::Write as _;
use std::panic::Location;

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::HumanCount;
use reveille::time::{Duration, Instant};

use crate::subject::verdict::Verdict;

/// What happened in an execution.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) waited: bool,
    pub(crate) time_passed: bool,
    pub(crate) timed_out: bool,
    pub(crate) refused: bool,
    pub(crate) cancelled: bool,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Tasks wait for each other in a circle.
    Deadlock,
    /// A task waits although it could go on, and nothing is left that would wake it.
    LostWakeUp,
    /// A task waits, and its waker was dropped without having been called.
    NeverWoken,
    /// A task or a thread has panicked.
    Panic,
    /// A check of [`at_end`](crate::Model::at_end) failed.
    AtEnd,
    /// A waker is still held after everything was dropped.
    Leak,
    /// An execution does not end.
    Livelock,
    /// A task blocks the thread that runs the model.
    Blocked,
    /// A primitive that an earlier execution has used is used again, such as one in a
    /// static.
    LeftOver,
    /// A thread that the model does not run uses a primitive of the model.
    Elsewhere,
    /// The same order of steps gave different results.
    NonDeterminism,
    /// A mark of [`sometimes`](crate::Model::sometimes) was never reached.
    NeverReached,
    /// The verdict is not `complete`, although the model expects it.
    Incomplete,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Deadlock => "deadlock",
            Self::LostWakeUp => "lost wake-up",
            Self::NeverWoken => "never woken",
            Self::Panic => "panic",
            Self::AtEnd => "wrong at the end",
            Self::Leak => "leak",
            Self::Livelock => "livelock",
            Self::Blocked => "blocked thread",
            Self::LeftOver => "left over",
            Self::Elsewhere => "another thread",
            Self::NonDeterminism => "non-determinism",
            Self::NeverReached => "never reached",
            Self::Incomplete => "incomplete",
        })
    }
}

/// The failure of a model.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub kind: Kind,
    /// What went wrong: a sentence, and below it what each task waits for.
    pub sentence: String,
    /// The value of `REVEILLE_REPLAY` that runs this execution again. It is empty if
    /// the failure is not that of one execution.
    pub token: String,
    pub(crate) names: Vec<String>,
    pub(crate) trace: Vec<Event>,
}

/// How many events a table shows of the beginning, and of the end.
const SHOWN: usize = 100;

impl Failure {
    pub(crate) const fn new(kind: Kind, sentence: String) -> Self {
        Self {
            kind,
            sentence,
            token: String::new(),
            names: Vec::new(),
            trace: Vec::new(),
        }
    }

    /// Returns the execution as a table with a column for each task and a row for each
    /// event. Of more than 200 events, the table shows the first and the last 100.
    #[must_use]
    pub fn table(&self) -> String {
        // A process that does nothing has no column.
        let acts = |number: usize| self.trace.iter().any(|event| event.process == Some(number));
        let columns: Vec<usize> = (0..self.names.len()).filter(|&n| acts(n)).collect();
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_BORDERS_ONLY)
            .set_content_arrangement(ContentArrangement::Disabled);
        let mut header = vec![String::new()];
        header.extend(columns.iter().map(|&number| self.names[number].clone()));
        table.set_header(header);
        let last = self.trace.len().saturating_sub(SHOWN);
        for (number, event) in self.trace.iter().enumerate() {
            if (SHOWN..last).contains(&number) {
                if number == SHOWN {
                    table.add_row(["…"]);
                }
                continue;
            }
            let mut row = vec![String::new(); columns.len() + 1];
            row[0] = (number + 1).to_string();
            let column = columns.iter().position(|&c| Some(c) == event.process);
            if let Some(column) = column {
                row[column + 1] = event.what.text();
            }
            table.add_row(row);
        }
        table.to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.sentence)?;
        if !self.trace.is_empty() {
            write!(f, "\n{}", self.table())?;
        }
        Ok(())
    }
}

/// An event of an execution.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) process: Option<usize>,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Polls,
    Pending,
    Dropped,
    Aborted,
    TimedOut,
    Refused,
    Ends,
    Panics(String),
    Section {
        lock: String,
        changed: bool,
        place: Option<&'static Location<'static>>,
    },
    Took {
        lock: String,
        place: &'static Location<'static>,
    },
    Wakes(String),
    Time(Instant),
}

impl What {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let written = match self {
            Self::Polls => write!(text, "poll"),
            Self::Pending => write!(text, "pending"),
            Self::Dropped => write!(text, "dropped while it waits"),
            Self::Aborted => write!(text, "dropped: aborted"),
            Self::TimedOut => write!(text, "  timed out"),
            Self::Refused => write!(text, "  refused"),
            Self::Ends => write!(text, "end"),
            Self::Panics(what) => write!(text, "PANIC: {what}"),
            Self::Section {
                lock,
                changed,
                place,
            } => {
                let verb = if *changed { "section on" } else { "look at" };
                match place {
                    Some(place) => {
                        write!(text, "  {verb} {lock}: queued by {}", short(place))
                    }
                    None => write!(text, "  {verb} {lock}"),
                }
            }
            Self::Took { lock, place } => write!(text, "  took {lock} at {}", short(place)),
            Self::Wakes(task) => write!(text, "  WAKE {task}"),
            Self::Time(now) => {
                let day = Duration::from_secs(86_400);
                write!(
                    text,
                    "it is {:?} later",
                    now.since_origin().saturating_sub(day)
                )
            }
        };
        written.expect("writing to a string does not fail");
        text
    }
}

/// Formats a location without its folder, since rows are narrow.
fn short(place: &Location<'_>) -> String {
    let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
    format!("{file}:{}", place.line())
}

/// What a model has covered, and what it found.
#[derive(Clone, Debug)]
pub struct ModelReport {
    /// How much was covered.
    pub verdict: Verdict,
    /// The bound within which it was covered.
    pub bound: String,
    /// How many executions were run.
    pub executions: u64,
    /// How many of them were equivalent to an earlier one.
    pub repeated: u64,
    /// The number of executions in which a task waited.
    pub waited: u64,
    /// The number of executions in which time passed.
    pub time_passed: u64,
    /// The number of executions in which a timeout elapsed.
    pub timed_out: u64,
    /// The number of executions in which a call that does not wait was refused, such as
    /// `try_lock`. The first try of a call that blocks its thread counts too.
    pub refused: u64,
    /// The number of executions in which a task was dropped while it waited.
    pub cancelled: u64,
    /// How long the exploration took.
    pub time: std::time::Duration,
    /// What went wrong, if anything did.
    pub failure: Option<Failure>,
}

impl ModelReport {
    /// Counts an execution.
    pub(crate) fn count(&mut self, seen: Seen) {
        self.executions += 1;
        self.waited += u64::from(seen.waited);
        self.time_passed += u64::from(seen.time_passed);
        self.timed_out += u64::from(seen.timed_out);
        self.refused += u64::from(seen.refused);
        self.cancelled += u64::from(seen.cancelled);
    }

    /// Adds the counts of another report.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.repeated += other.repeated;
        self.waited += other.waited;
        self.time_passed += other.time_passed;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
        self.cancelled += other.cancelled;
    }

    /// Creates the report of a model that has not run.
    pub(crate) const fn new() -> Self {
        Self {
            verdict: Verdict::Complete,
            bound: String::new(),
            executions: 0,
            repeated: 0,
            waited: 0,
            time_passed: 0,
            timed_out: 0,
            refused: 0,
            cancelled: 0,
            time: std::time::Duration::ZERO,
            failure: None,
        }
    }
}

/// Returns an execution as a word: where tasks are dropped, and which process was
/// chosen at each step.
pub(crate) fn token(plan: &[usize], choices: &[u8]) -> String {
    let plan: Vec<String> = plan.iter().map(ToString::to_string).collect();
    let digit = |&choice: &u8| char::from_digit(u32::from(choice), 36).unwrap_or('?');
    let choices: String = choices.iter().map(digit).collect();
    format!("{}-{choices}", plan.join("."))
}

/// Returns what a [`token`] stands for, unless it is damaged.
pub(crate) fn parse(token: &str) -> Option<(Vec<usize>, Vec<u8>)> {
    let (plan, choices) = token.split_once('-')?;
    let plan = plan.split('.').filter(|part| !part.is_empty());
    let plan = plan.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let choice = |digit: char| digit.to_digit(32).and_then(|d| u8::try_from(d).ok());
    let choices = choices.chars().map(choice).collect::<Option<_>>()?;
    Some((plan, choices))
}

impl fmt::Display for ModelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        write!(
            f,
            "{} ({}): {} executions in {seconds:.2} s, {:.1} µs each; something waited in {}, \
             time passed in {}, something timed out in {}, a try was refused in {}, a task was \
             dropped in {}",
            self.verdict,
            self.bound,
            HumanCount(self.executions),
            seconds * 1e6 / self.executions.max(1) as f64,
            HumanCount(self.waited),
            HumanCount(self.time_passed),
            HumanCount(self.timed_out),
            HumanCount(self.refused),
            HumanCount(self.cancelled),
        )
    }
}
