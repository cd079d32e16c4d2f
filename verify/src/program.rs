//! Programs: all combinations of a few participants with a few operations each.
//!
//! Programs come smallest first, so the first that fails is one of the smallest. Of
//! programs that differ only by an exchange of equal participants, one is kept.

use std::cmp::Reverse;

use crate::subject::plan::Bound;
use crate::subject::role::{Operation, OperationKind, Role};
use crate::subject::step::{Polling, Step};

/// The operations of which programs are made.
pub(crate) trait Alphabet {
    /// Returns the roles, one for each participant. An operation is known by its index.
    fn roles(&self) -> &[Role<()>];

    /// Returns `true` if a participant may do `next` after `before`.
    fn follows(&self, who: usize, before: &[Step], next: Step) -> bool;
}

/// What each participant does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Program {
    /// A list of steps for each participant.
    pub(crate) participants: Vec<Vec<Step>>,
}

impl Program {
    /// Returns the number of operations.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.participants.iter().map(Vec::len).sum()
    }

    /// Returns `true` if there are no operations.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.participants.iter().flatten()
    }

    fn non_default(&self) -> usize {
        self.steps()
            .filter(|step| step.polling != Polling::Await)
            .count()
    }

    /// Returns `true` if a step uses a waker that panics.
    pub(crate) fn panics(&self) -> bool {
        self.steps()
            .any(|step| matches!(step.polling, Polling::Panics(_)))
    }

    /// Returns the key by which programs are ordered. Smaller programs have smaller
    /// keys.
    fn key(&self) -> impl Ord + use<> {
        let longest = self.participants.iter().map(Vec::len).max();
        let weight: usize = self.steps().map(|step| step.polling.weight()).sum();
        (self.len(), longest, weight)
    }

    /// Returns `true` if this is the program that is kept of those that differ only by
    /// an exchange of equal participants.
    fn is_canonical(&self, roles: &[Role<()>]) -> bool {
        let mut pairs = self.participants.windows(2).zip(roles.windows(2));
        pairs.all(|(steps, roles)| {
            roles[0].symmetry != roles[1].symmetry
                || (Reverse(steps[0].len()), &steps[0]) <= (Reverse(steps[1].len()), &steps[1])
        })
    }

    /// Returns every program of the subject within the bound, smallest first.
    pub(crate) fn enumerate(subject: &dyn Alphabet, bound: Bound) -> Vec<Self> {
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
                    program.len() <= bound.total && program.non_default() <= bound.non_default
                })
                .collect();
        }
        programs.retain(|program| {
            let wanted = !bound.only_panics || program.panics();
            !program.is_empty() && wanted && program.is_canonical(roles)
        });
        programs.sort_by_cached_key(|program| (program.key(), program.clone()));
        programs
    }

    /// Draws a program of the bound's full length. `draw` returns a number below the
    /// one it is given.
    pub(crate) fn draw(
        subject: &dyn Alphabet,
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
            let usual = program.non_default() == bound.non_default;
            let allowed: Vec<_> = choices[who]
                .iter()
                .copied()
                .filter(|step| !usual || step.polling == Polling::Await)
                .filter(|&step| subject.follows(who, line, step))
                .collect();
            if line.len() == bound.operations || allowed.is_empty() {
                growing.swap_remove(index);
                continue;
            }
            program.participants[who].push(one_of(&allowed, draw));
        }
        program
    }

    /// Returns the programs that are one step smaller, or simpler in one step.
    pub(crate) fn smaller(&self, subject: &dyn Alphabet) -> Vec<Self> {
        let mut smaller = Vec::new();
        for (who, line) in self.participants.iter().enumerate() {
            for (index, step) in line.iter().enumerate() {
                let mut program = self.clone();
                program.participants[who].remove(index);
                smaller.push(program);
                if step.polling != Polling::Await {
                    let mut program = self.clone();
                    program.participants[who][index].polling = Polling::Await;
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

    /// Returns the program as text, which [`parse`](Self::parse) reads.
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

    /// Parses a program. Returns `None` if the text names an operation that the role
    /// has not.
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

/// Draws one of these steps. Every second time it has the default polling mode, since
/// otherwise few programs would complete an operation. Of the other modes, those at the
/// first suspension are drawn more often, since few programs reach a second.
fn one_of(allowed: &[Step], draw: &mut dyn FnMut(usize) -> usize) -> Step {
    let mut ops: Vec<usize> = allowed.iter().map(|step| step.op).collect();
    ops.dedup();
    let op = ops[draw(ops.len())];
    let steps: Vec<Step> = allowed
        .iter()
        .copied()
        .filter(|step| step.op == op)
        .flat_map(|step| {
            let times = if step.polling.suspension() == 1 { 4 } else { 1 };
            std::iter::repeat_n(step, times)
        })
        .collect();
    let default = steps.iter().find(|step| step.polling == Polling::Await);
    match default {
        Some(&step) if draw(2) == 0 => step,
        _ => steps[draw(steps.len())],
    }
}

/// Returns the steps that a role can take within the bound.
fn choices(role: &Role<()>, bound: Bound) -> Vec<Step> {
    let polling_modes = |operation: &Operation<()>| -> Vec<Polling> {
        match operation.kind {
            OperationKind::Blocking if !bound.blocking => Vec::new(),
            OperationKind::Immediate | OperationKind::Blocking => vec![Polling::Await],
            OperationKind::Async => Polling::ALL
                .into_iter()
                .filter(|polling| bound.panics || !matches!(polling, Polling::Panics(_)))
                .filter(|polling| polling.suspension() <= bound.suspensions)
                .filter(|polling| {
                    !operation.alias || matches!(polling, Polling::Await | Polling::Cancel(1))
                })
                .collect(),
        }
    };
    role.ops
        .iter()
        .enumerate()
        .flat_map(|(op, operation)| {
            polling_modes(operation)
                .into_iter()
                .map(move |polling| Step { op, polling })
        })
        .collect()
}

/// Returns every list of steps of a participant within the bound.
fn lines(subject: &dyn Alphabet, who: usize, bound: Bound) -> Vec<Vec<Step>> {
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
