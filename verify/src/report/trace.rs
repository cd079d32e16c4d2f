//! An execution as lines of text in lanes, which a terminal and a page draw.
//!
//! A [`Trace`] can be sent to another process and written to a file. Its events name no
//! type of the primitive any more.

use std::fmt::Write as _;

use reveille::backend::Passage;
use reveille::protocol::Bits;
use serde::{Deserialize, Serialize};

use crate::execution::event::{Event, What};
use crate::subject::step::Hook;
use crate::subject::verdict::Class;

/// The name of the lane after those of the participants.
pub(crate) const CLEAN_UP: &str = "clean-up";

/// What happened in one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trace {
    /// The names of the participants.
    pub(crate) participants: Vec<String>,
    /// The events, in their order.
    pub(crate) events: Vec<Line>,
    /// The wake-ups that are missing, if that is what went wrong.
    pub(crate) missing: Vec<Missing>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The lane: the number of a participant, or one more for the clean-up.
    pub(crate) lane: usize,
    /// What happened, as text.
    pub(crate) text: String,
    /// What kind of event it is.
    pub(crate) kind: Kind,
}

/// The kinds of event that are drawn differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A call begins.
    Call,
    /// A call ends.
    Return,
    /// A poll begins.
    Poll,
    /// A poll returns `Pending`.
    Pending,
    /// The participant waits.
    Waits,
    /// A section of the lock of this number.
    Section { lock: usize, effect: Effect },
    /// A waker of this participant is called, or its thread is unparked.
    Wake { owner: usize },
    /// Anything else.
    Other,
}

/// What a section did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Effect {
    /// It read.
    None,
    /// It had access to the state behind the bits, which are as they were.
    Unknown,
    /// It left other bits than it found.
    Changed,
}

/// A wake-up that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Missing {
    /// The last event after which it could have come: the last section in which another
    /// participant changed something.
    pub(crate) after: usize,
    /// The event in which the participant begins to wait for ever.
    pub(crate) waits: usize,
}

impl Trace {
    /// Creates the trace of events, for a failure of this class.
    pub(crate) fn new(
        events: &[Event],
        names: &[String],
        class: Class,
        describe: &dyn Fn(Bits) -> String,
    ) -> Self {
        let lines = events.iter().map(|event| Line {
            lane: event.participant_id.min(names.len()),
            text: text(&event.what, names, describe),
            kind: kind(&event.what),
        });
        let mut trace = Self {
            participants: names.to_vec(),
            events: lines.collect(),
            missing: Vec::new(),
        };
        if matches!(
            class,
            Class::LostWakeUp | Class::StaleWaker | Class::CancellationRace
        ) {
            trace.missing = (0..names.len())
                .filter_map(|lane| trace.missing_in(lane))
                .collect();
        }
        trace
    }

    /// Returns the wake-up that a participant lacks, if it waits at the end.
    fn missing_in(&self, lane: usize) -> Option<Missing> {
        let mut own = self.events.iter().enumerate().rev();
        let (waits, last) = own.find(|(_, line)| line.lane == lane)?;
        if last.kind != Kind::Waits {
            return None;
        }
        let others = self.events.iter().enumerate();
        let others =
            others.filter(|(_, line)| line.lane != lane && line.lane < self.participants.len());
        let effects = others.filter_map(|(event, line)| match line.kind {
            Kind::Section { effect, .. } if effect > Effect::None => Some((effect, event)),
            _ => None,
        });
        Some(Missing {
            after: effects.max().map_or(waits, |(_, after)| after),
            waits,
        })
    }

    /// Returns the names of the lanes: those of the participants, and the clean-up if it
    /// does anything.
    pub(crate) fn lanes(&self) -> Vec<&str> {
        let mut lanes: Vec<&str> = self.participants.iter().map(String::as_str).collect();
        if self.events.iter().any(|line| line.lane == lanes.len()) {
            lanes.push(CLEAN_UP);
        }
        lanes
    }

    /// Returns the number of locks.
    pub(crate) fn locks(&self) -> usize {
        let locks = self.events.iter().map(|line| match line.kind {
            Kind::Section { lock, .. } => lock + 1,
            _ => 0,
        });
        locks.max().unwrap_or(0)
    }
}

fn kind(what: &What) -> Kind {
    match what {
        What::Call(_) => Kind::Call,
        What::Return(_) | What::Cancelled | What::Unwound => Kind::Return,
        What::Poll { .. } => Kind::Poll,
        What::Pending => Kind::Pending,
        What::Suspended => Kind::Waits,
        What::Section {
            lock,
            passage,
            before,
            after,
        } => Kind::Section {
            lock: *lock,
            effect: match passage {
                _ if before != after => Effect::Changed,
                Passage::With | Passage::Update => Effect::Unknown,
                Passage::Load | Passage::Look => Effect::None,
            },
        },
        What::Waker {
            hook: Hook::Wake,
            owner,
            ..
        }
        | What::Unpark { owner } => Kind::Wake { owner: *owner },
        What::Waker { .. } | What::DropFuture | What::DropValue(_) | What::More => Kind::Other,
    }
}

fn text(what: &What, names: &[String], describe: &dyn Fn(Bits) -> String) -> String {
    let whose = |owner: usize| names.get(owner).map_or(CLEAN_UP, String::as_str);
    let mut text = String::new();
    match what {
        What::Call(call) => write!(text, "{call}"),
        What::Return(ret) => write!(text, "= {ret}"),
        What::Poll { polls: 1, waker } => write!(text, "  poll with w{waker}"),
        What::Poll { waker, .. } => write!(text, "  poll again with w{waker}"),
        What::Pending => write!(text, "  pending"),
        What::Suspended => write!(text, "  waits"),
        What::DropFuture => write!(text, "  drop the future"),
        What::Cancelled => write!(text, "= cancelled"),
        What::Unwound => write!(text, "= unwound by a waker's panic"),
        What::Section {
            lock,
            passage,
            before,
            after,
        } => {
            let lock = match lock {
                0 => String::new(),
                n => format!(" {}", n + 1),
            };
            match passage {
                Passage::Load => write!(text, "  see{lock} [{}]", describe(*before)),
                _ if before == after => write!(text, "  lock{lock} [{}]", describe(*before)),
                _ => write!(
                    text,
                    "  lock{lock} [{}] -> [{}]",
                    describe(*before),
                    describe(*after)
                ),
            }
        }
        What::Waker { hook, owner, waker } => {
            let done = match hook {
                Hook::Clone => "clone",
                Hook::Wake => "WAKE",
                Hook::Drop => "drop",
            };
            write!(text, "  {done} w{waker} of {}", whose(*owner))
        }
        What::Unpark { owner } => write!(text, "  UNPARK {}", whose(*owner)),
        What::DropValue(id) => write!(text, "  drop value {id}"),
        What::More => write!(text, "  and so on"),
    }
    .expect("writing to a string does not fail");
    text
}
