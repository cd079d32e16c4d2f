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

/// The polling mode of an operation, which decides what is done with its future.
/// Operations that are not futures have only the default, [`Await`](Self::Await).
///
/// Suspensions are counted from 1. A future is suspended by a poll that returns
/// `Pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Polling {
    /// Polled, and polled again with the same waker each time it is woken.
    Await,
    /// As `Await`, but polled again at once with another waker, at this suspension.
    Repoll(u8),
    /// As `Await`, but polled again at once with the same waker, at this suspension. It
    /// is a spurious poll, for which no waker was called.
    Spurious(u8),
    /// Dropped while it waits, at this suspension. With zero it is dropped before its
    /// first poll.
    Cancel(u8),
    /// Dropped when its waker is woken, at this suspension, instead of polled.
    Granted(u8),
    /// As `Await`, with a waker that panics when it is cloned, woken or
    /// dropped.
    Panics(Hook),
}

/// An operation on a waker.
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
    /// All polling modes, the simplest first.
    pub const ALL: [Self; 13] = [
        Self::Await,
        Self::Repoll(1),
        Self::Spurious(1),
        Self::Cancel(1),
        Self::Granted(1),
        Self::Cancel(0),
        Self::Panics(Hook::Clone),
        Self::Panics(Hook::Wake),
        Self::Panics(Hook::Drop),
        Self::Cancel(2),
        Self::Granted(2),
        Self::Repoll(2),
        Self::Spurious(2),
    ];

    /// Returns its name in programs and tokens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Await => "await",
            Self::Repoll(1) => "repoll",
            Self::Repoll(_) => "repoll_later",
            Self::Spurious(1) => "spurious",
            Self::Spurious(_) => "spurious_later",
            Self::Cancel(0) => "unpolled",
            Self::Cancel(1) => "cancel",
            Self::Cancel(_) => "cancel_later",
            Self::Granted(1) => "granted",
            Self::Granted(_) => "granted_later",
            Self::Panics(Hook::Clone) => "clone_panics",
            Self::Panics(Hook::Wake) => "wake_panics",
            Self::Panics(Hook::Drop) => "drop_panics",
        }
    }

    /// Returns the suspension at which something other than waiting is done. It is zero
    /// if there is none.
    pub(crate) const fn suspension(self) -> u8 {
        match self {
            Self::Await | Self::Panics(_) => 0,
            Self::Repoll(at) | Self::Spurious(at) | Self::Cancel(at) | Self::Granted(at) => at,
        }
    }

    /// Returns `true` if the future is polled until it returns, with a waker that does
    /// not panic.
    pub(crate) const fn completes(self) -> bool {
        matches!(self, Self::Await | Self::Repoll(_) | Self::Spurious(_))
    }

    /// Returns `true` if the waker panics.
    pub(crate) const fn panics(self) -> bool {
        matches!(self, Self::Panics(_))
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|polling| polling.name() == name)
    }

    /// Returns how much more complex it makes a program, which decides the order of
    /// programs.
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
