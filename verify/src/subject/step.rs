//! Steps: an operation of a role, and the mode in which its future is polled.

use crate::subject::role::Role;

/// One step of a participant: an operation of its role, in a polling mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    /// The index of the operation among those of the role.
    pub op: usize,
    /// The polling mode.
    pub polling: Polling,
}

/// The polling mode of an operation: what is done with its future. Operations
/// that are no futures have only the default, [`Await`](Self::Await).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Polling {
    /// Polled, and polled again with the same waker each time it was woken.
    Await,
    /// As `Await`, but polled again with another waker after the first pending
    /// poll.
    Repoll,
    /// Dropped while pending, after this number of polls: zero, one, or two. The
    /// last is for operations that wait for one thing after another.
    Cancel(u8),
    /// Polled until its waker is woken, then dropped instead of polled.
    Granted,
    /// As `Await`, with a waker that panics when it is cloned, woken or
    /// dropped.
    Panics(Hook),
}

/// What is done with a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    /// It is cloned.
    Clone,
    /// It is woken.
    Wake,
    /// A clone of it is dropped.
    Drop,
}

impl Polling {
    /// All of them, the simplest first.
    pub const ALL: [Self; 9] = [
        Self::Await,
        Self::Repoll,
        Self::Cancel(1),
        Self::Granted,
        Self::Cancel(0),
        Self::Panics(Hook::Clone),
        Self::Panics(Hook::Wake),
        Self::Panics(Hook::Drop),
        Self::Cancel(2),
    ];

    /// Returns its name in programs and tokens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Await => "await",
            Self::Repoll => "repoll",
            Self::Cancel(0) => "unpolled",
            Self::Cancel(1) => "cancel",
            Self::Cancel(_) => "cancel_later",
            Self::Granted => "granted",
            Self::Panics(Hook::Clone) => "clone_panics",
            Self::Panics(Hook::Wake) => "wake_panics",
            Self::Panics(Hook::Drop) => "drop_panics",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|polling| polling.name() == name)
    }

    /// How much more complex a program is for it: decides the order of programs.
    pub(crate) fn weight(self) -> usize {
        Self::ALL
            .iter()
            .position(|&polling| polling == self)
            .unwrap_or(Self::ALL.len())
    }
}

impl Step {
    /// Returns the step as text.
    #[must_use]
    pub fn text<Op>(self, role: &Role<Op>) -> String {
        let name = role.ops[self.op].name;
        match self.polling {
            Polling::Await => name.to_owned(),
            polling => format!("{name}.{}", polling.name()),
        }
    }

    pub(crate) fn parse(text: &str, role: &Role<()>) -> Option<Self> {
        let (name, polling) = match text.split_once('.') {
            Some((name, polling)) => (name, Polling::by_name(polling)?),
            None => (text, Polling::Await),
        };
        let op = role.ops.iter().position(|op| op.name == name)?;
        Some(Self { op, polling })
    }
}
