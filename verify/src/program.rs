//! Programs: a few participants with a few operations each, all of them.
//!
//! Programs come smallest first, so that the first that fails is the smallest
//! that does. Of programs that differ only by an exchange of equal participants
//! one is kept.

use std::cmp::Reverse;
use std::fmt;

use crate::erased::AnySubject;
use crate::subject::{Offer, Role, Runs};

/// One step of a participant: an operation of its role, in a manner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    /// The index of the operation among those of the role.
    pub op: usize,
    /// The manner.
    pub manner: Manner,
}

/// The manner in which an operation is carried out. Others than `Await` are
/// for futures only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Manner {
    /// Polled, and polled again with the same waker each time it was called.
    Await,
    /// As `Await`, but when pending first polled again with another waker.
    Repoll,
    /// Dropped while pending, after so many polls: none, one, or two. The last is
    /// for operations that wait for one thing after another.
    Cancel(u8),
    /// Polled until its waker is called, then dropped instead of polled.
    Granted,
    /// As `Await`, with a waker that panics when it is cloned, woken or
    /// dropped.
    Hostile(Hook),
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

impl Manner {
    /// All of them, the simplest first.
    pub const ALL: [Self; 9] = [
        Self::Await,
        Self::Repoll,
        Self::Cancel(1),
        Self::Granted,
        Self::Cancel(0),
        Self::Hostile(Hook::Clone),
        Self::Hostile(Hook::Wake),
        Self::Hostile(Hook::Drop),
        Self::Cancel(2),
    ];

    /// The manner in programs and tokens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Await => "await",
            Self::Repoll => "repoll",
            Self::Cancel(0) => "unpolled",
            Self::Cancel(1) => "cancel",
            Self::Cancel(_) => "cancel_later",
            Self::Granted => "granted",
            Self::Hostile(Hook::Clone) => "clone_panics",
            Self::Hostile(Hook::Wake) => "wake_panics",
            Self::Hostile(Hook::Drop) => "drop_panics",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|manner| manner.name() == name)
    }

    /// How much more a program is for it: decides the order of programs.
    fn weight(self) -> usize {
        Self::ALL
            .iter()
            .position(|&manner| manner == self)
            .unwrap_or(Self::ALL.len())
    }
}

/// What each participant does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Program {
    /// A list of steps for each participant.
    pub(crate) participants: Vec<Vec<Step>>,
}

/// Which programs are enumerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// How many participants, where the subject leaves it open.
    pub participants: usize,
    /// How many operations each has at most.
    pub operations: usize,
    /// How many operations all of them have at most together.
    pub total: usize,
    /// How many operations at most are carried out otherwise than by `Await`.
    pub unusual: usize,
    /// Whether operations that block their thread take part.
    pub blocking: bool,
    /// Whether wakers that panic take part.
    pub hostile: bool,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            participants,
            operations,
            total,
            unusual,
            blocking,
            hostile,
        } = self;
        write!(f, "{participants}x{operations}")?;
        if *total < participants * operations {
            write!(f, ", {total} in all")?;
        }
        if unusual < total {
            write!(f, ", {unusual} unusual")?;
        }
        if !blocking {
            f.write_str(", none blocking")?;
        }
        if !hostile {
            f.write_str(", no panics")?;
        }
        Ok(())
    }
}

impl Program {
    /// How many operations it has.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.participants.iter().map(Vec::len).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.participants.iter().flatten()
    }

    fn unusual(&self) -> usize {
        self.steps()
            .filter(|step| step.manner != Manner::Await)
            .count()
    }

    /// Smaller programs have smaller keys.
    fn key(&self) -> impl Ord + use<> {
        let longest = self.participants.iter().map(Vec::len).max();
        let weight: usize = self.steps().map(|step| step.manner.weight()).sum();
        (self.len(), longest, weight)
    }

    /// Whether this is the one that is kept of those that differ by an exchange
    /// of equal participants.
    fn is_canonical(&self, roles: &[Role<()>]) -> bool {
        let mut pairs = self.participants.windows(2).zip(roles.windows(2));
        pairs.all(|(steps, roles)| {
            roles[0].kind != roles[1].kind
                || (Reverse(steps[0].len()), &steps[0]) <= (Reverse(steps[1].len()), &steps[1])
        })
    }

    /// Every program of the subject within the bound, smallest first.
    pub(crate) fn enumerate(subject: &dyn AnySubject, bound: Bound) -> Vec<Self> {
        let roles = subject.roles();
        let lines: Vec<_> = (0..roles.len())
            .map(|who| lines(subject, who, bound))
            .collect();
        let mut programs = vec![Self {
            participants: Vec::new(),
        }];
        for lines in &lines {
            programs = programs
                .iter()
                .flat_map(|program| {
                    lines.iter().map(|line| {
                        let mut program = program.clone();
                        program.participants.push(line.clone());
                        program
                    })
                })
                .filter(|program| {
                    program.len() <= bound.total && program.unusual() <= bound.unusual
                })
                .collect();
        }
        programs.retain(|program| !program.is_empty() && program.is_canonical(roles));
        programs.sort_by_cached_key(|program| (program.key(), program.clone()));
        programs
    }

    /// One program within the bound, as long as it allows, drawn with `draw`,
    /// which answers a number below the one it is given.
    pub(crate) fn draw(
        subject: &dyn AnySubject,
        bound: Bound,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Self {
        let roles = subject.roles();
        let choices: Vec<_> = roles.iter().map(|role| choices(role, bound)).collect();
        let mut program = Self {
            participants: vec![Vec::new(); roles.len()],
        };
        let mut growing: Vec<usize> = (0..roles.len()).collect();
        while !growing.is_empty() && program.len() < bound.total {
            let index = draw(growing.len());
            let who = growing[index];
            let line = &program.participants[who];
            let usual = program.unusual() == bound.unusual;
            let allowed: Vec<_> = choices[who]
                .iter()
                .copied()
                .filter(|step| !usual || step.manner == Manner::Await)
                .filter(|&step| subject.follows(who, line, step))
                .collect();
            if line.len() == bound.operations || allowed.is_empty() {
                growing.swap_remove(index);
                continue;
            }
            program.participants[who].push(allowed[draw(allowed.len())]);
        }
        program
    }

    /// The programs that are one step smaller, or simpler in one step.
    pub(crate) fn smaller(&self, subject: &dyn AnySubject) -> Vec<Self> {
        let mut smaller = Vec::new();
        for (who, line) in self.participants.iter().enumerate() {
            for (index, step) in line.iter().enumerate() {
                let mut program = self.clone();
                program.participants[who].remove(index);
                smaller.push(program);
                if step.manner != Manner::Await {
                    let mut program = self.clone();
                    program.participants[who][index].manner = Manner::Await;
                    smaller.push(program);
                }
            }
        }
        smaller.retain(|program| {
            !program.is_empty()
                && program.participants.iter().enumerate().all(|(who, line)| {
                    (0..line.len()).all(|index| subject.follows(who, &line[..index], line[index]))
                })
        });
        smaller
    }

    /// The program as text, which [`parse`](Self::parse) reads.
    #[must_use]
    pub(crate) fn text(&self, roles: &[Role<()>]) -> String {
        let lines: Vec<String> = self
            .participants
            .iter()
            .zip(roles)
            .map(|(line, role)| {
                let steps: Vec<String> = line.iter().map(|&step| step.text(role)).collect();
                steps.join(",")
            })
            .collect();
        lines.join("/")
    }

    /// Reads a program from text. None where it names what the roles have not.
    #[must_use]
    pub(crate) fn parse(text: &str, roles: &[Role<()>]) -> Option<Self> {
        let lines: Vec<&str> = text.split('/').collect();
        if lines.len() != roles.len() {
            return None;
        }
        let participants = lines
            .into_iter()
            .zip(roles)
            .map(|(line, role)| {
                line.split(',')
                    .filter(|step| !step.is_empty())
                    .map(|step| Step::parse(step, role))
                    .collect()
            })
            .collect::<Option<_>>()?;
        Some(Self { participants })
    }
}

impl Step {
    /// The step as text.
    #[must_use]
    pub fn text<Op>(self, role: &Role<Op>) -> String {
        let name = role.ops[self.op].name;
        match self.manner {
            Manner::Await => name.to_owned(),
            manner => format!("{name}.{}", manner.name()),
        }
    }

    fn parse(text: &str, role: &Role<()>) -> Option<Self> {
        let (name, manner) = match text.split_once('.') {
            Some((name, manner)) => (name, Manner::by_name(manner)?),
            None => (text, Manner::Await),
        };
        let op = role.ops.iter().position(|offer| offer.name == name)?;
        Some(Self { op, manner })
    }
}

/// The steps that a role can take within the bound.
fn choices(role: &Role<()>, bound: Bound) -> Vec<Step> {
    let manners = |offer: &Offer<()>| -> Vec<Manner> {
        match offer.manner {
            Runs::Blocking if !bound.blocking => Vec::new(),
            Runs::AtOnce | Runs::Blocking => vec![Manner::Await],
            Runs::Async => Manner::ALL
                .into_iter()
                .filter(|manner| bound.hostile || !matches!(manner, Manner::Hostile(_)))
                .filter(|manner| offer.staged || *manner != Manner::Cancel(2))
                .filter(|manner| {
                    !offer.alias || matches!(manner, Manner::Await | Manner::Cancel(1))
                })
                .collect(),
        }
    };
    role.ops
        .iter()
        .enumerate()
        .flat_map(|(op, offer)| {
            manners(offer)
                .into_iter()
                .map(move |manner| Step { op, manner })
        })
        .collect()
}

/// Every list of steps of a participant within the bound.
fn lines(subject: &dyn AnySubject, who: usize, bound: Bound) -> Vec<Vec<Step>> {
    let choices = choices(&subject.roles()[who], bound);
    let mut lines = vec![Vec::new()];
    let mut grown = 0;
    for _ in 0..bound.operations.min(bound.total) {
        let longest = lines.len();
        for index in grown..longest {
            for &step in &choices {
                if subject.follows(who, &lines[index], step) {
                    let mut line = lines[index].clone();
                    line.push(step);
                    lines.push(line);
                }
            }
        }
        grown = longest;
    }
    lines
}
