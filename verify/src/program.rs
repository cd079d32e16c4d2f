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
    fn follows(&self, participant_id: usize, before: &[Step], next: Step) -> bool;
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
        self.steps().any(|step| step.polling.panics())
    }

    /// Returns every program of the subject within the bound, smallest first.
    pub(crate) fn enumerate(subject: &dyn Alphabet, bound: Bound) -> Vec<Self> {
        Enumeration::new(subject, bound).programs()
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
            let participant_id = growing[index];
            let line = &program.participants[participant_id];
            let usual = program.non_default() == bound.non_default;
            let allowed: Vec<_> = choices[participant_id]
                .iter()
                .copied()
                .filter(|step| !usual || step.polling == Polling::Await)
                .filter(|&step| subject.follows(participant_id, line, step))
                .collect();
            if line.len() == bound.operations || allowed.is_empty() {
                growing.swap_remove(index);
                continue;
            }
            program.participants[participant_id].push(one_of(&allowed, draw));
        }
        program
    }

    /// Returns the programs that are one step smaller, or simpler in one step.
    pub(crate) fn smaller(&self, subject: &dyn Alphabet) -> Vec<Self> {
        let mut smaller = Vec::new();
        for (participant_id, line) in self.participants.iter().enumerate() {
            for (index, step) in line.iter().enumerate() {
                let mut program = self.clone();
                program.participants[participant_id].remove(index);
                smaller.push(program);
                if step.polling != Polling::Await {
                    let mut program = self.clone();
                    program.participants[participant_id][index].polling = Polling::Await;
                    smaller.push(program);
                }
            }
        }
        smaller.retain(|program| {
            !program.is_empty()
                && program
                    .participants
                    .iter()
                    .enumerate()
                    .all(|(participant_id, line)| {
                        (0..line.len()).all(|index| {
                            subject.follows(participant_id, &line[..index], line[index])
                        })
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
            _ if operation.alias && !bound.aliases => Vec::new(),
            OperationKind::Immediate | OperationKind::Blocking => vec![Polling::Await],
            OperationKind::Async => Polling::ALL
                .into_iter()
                .filter(|polling| bound.panics || !polling.panics())
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

/// A list of steps of a participant, with what decides whether and where it stands in
/// the order of programs.
struct Line {
    steps: Vec<Step>,
    non_default: usize,
    weight: usize,
    panics: bool,
}

/// The programs of a bound, as they are found.
///
/// There are many, so a program is known by the indices of its lines until all are
/// there and in their order.
struct Enumeration<'a> {
    roles: &'a [Role<()>],
    bound: Bound,
    /// The lines of each role, in their order.
    lines: Vec<Vec<Line>>,
    /// The lines of the participants so far.
    chosen: Vec<usize>,
    found: Vec<Found>,
}

/// A program by the indices of its lines. Smaller programs come first: those with fewer
/// operations, then those with shorter lines, then those whose polling modes are
/// simpler.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    len: usize,
    longest: usize,
    weight: usize,
    lines: Box<[u32]>,
}

impl<'a> Enumeration<'a> {
    fn new(subject: &'a dyn Alphabet, bound: Bound) -> Self {
        let roles = subject.roles();
        Self {
            roles,
            bound,
            lines: (0..roles.len())
                .map(|participant_id| lines(subject, participant_id, bound))
                .collect(),
            chosen: Vec::with_capacity(roles.len()),
            found: Vec::new(),
        }
    }

    fn programs(mut self) -> Vec<Program> {
        self.extend(0, 0);
        self.found.sort_unstable();
        let found = self.found.iter();
        found
            .map(|found| Program {
                participants: (found.lines.iter().zip(&self.lines))
                    .map(|(&line, lines)| lines[line as usize].steps.clone())
                    .collect(),
            })
            .collect()
    }

    /// Adds the programs that begin with the chosen lines, which have this many
    /// operations, and this many that are polled in a mode other than `Await`.
    fn extend(&mut self, len: usize, non_default: usize) {
        let participant_id = self.chosen.len();
        if participant_id == self.roles.len() {
            self.add(len);
            return;
        }
        for index in 0..self.lines[participant_id].len() {
            let line = &self.lines[participant_id][index];
            let len = len + line.steps.len();
            let non_default = non_default + line.non_default;
            if len > self.bound.total
                || non_default > self.bound.non_default
                || !self.is_canonical(participant_id, line)
            {
                continue;
            }
            self.chosen.push(index);
            self.extend(len, non_default);
            self.chosen.pop();
        }
    }

    /// Returns `true` if a program with this line after the chosen ones is that which is
    /// kept of those that differ only by an exchange of equal participants.
    fn is_canonical(&self, participant_id: usize, line: &Line) -> bool {
        let Some(before) = participant_id.checked_sub(1) else {
            return true;
        };
        if self.roles[before].symmetry != self.roles[participant_id].symmetry {
            return true;
        }
        let (before, next) = (&self.lines[before][self.chosen[before]].steps, &line.steps);
        (Reverse(before.len()), before) <= (Reverse(next.len()), next)
    }

    fn add(&mut self, len: usize) {
        let lines = || (self.chosen.iter().zip(&self.lines)).map(|(&line, lines)| &lines[line]);
        let wanted = !self.bound.only_panics || lines().any(|line| line.panics);
        if len == 0 || !wanted {
            return;
        }
        let found = Found {
            len,
            longest: lines().map(|line| line.steps.len()).max().unwrap_or(0),
            weight: lines().map(|line| line.weight).sum(),
            lines: (self.chosen.iter())
                .map(|&line| u32::try_from(line).expect("a role has fewer lines"))
                .collect(),
        };
        self.found.push(found);
    }
}

/// Returns every list of steps of a participant within the bound, in their order.
fn lines(subject: &dyn Alphabet, participant_id: usize, bound: Bound) -> Vec<Line> {
    let choices = choices(&subject.roles()[participant_id], bound);
    let line = |steps: Vec<Step>| {
        let non_default = |step: &&Step| step.polling != Polling::Await;
        Line {
            non_default: steps.iter().filter(non_default).count(),
            weight: steps.iter().map(|step| step.polling.weight()).sum(),
            panics: steps.iter().any(|step| step.polling.panics()),
            steps,
        }
    };
    let mut lines = vec![line(Vec::new())];
    let mut grown = 0;
    for _ in 0..bound.operations.min(bound.total) {
        let longest = lines.len();
        for index in grown..longest {
            for &step in &choices {
                let unusual = usize::from(step.polling != Polling::Await);
                if lines[index].non_default + unusual <= bound.non_default
                    && subject.follows(participant_id, &lines[index].steps, step)
                {
                    let mut steps = lines[index].steps.clone();
                    steps.push(step);
                    lines.push(line(steps));
                }
            }
        }
        grown = longest;
    }
    lines.sort_unstable_by(|one, other| one.steps.cmp(&other.steps));
    lines
}
