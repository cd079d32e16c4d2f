//! The judgement of a quiescent execution.
//!
//! The history must be linearizable: there is an order of the operations, each at a
//! moment between its first section and its last, in which the specification returns
//! what the primitive did (Herlihy and Wing, 1990). The search is that of Wing and Gong
//! (1993), and remembers states. *And* in the state in which that order ends, no
//! suspended operation may be able to go on. An operation that could has lost a
//! wake-up.

pub(crate) mod erased;

use std::collections::HashSet;
use std::fmt;

use crate::execution::{CallRecord, Outcome, Span, Tick};
use crate::subject::plan::Order;
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Polling;
use crate::subject::verdict::{Class, Violation};

/// An operation of a history.
pub(crate) struct Invocation<'a, Op, Ret> {
    pub(crate) op: &'a Op,
    pub(crate) name: Name,
    /// Whether it may wait.
    pub(crate) waits: bool,
    pub(crate) record: CallRecord,
    pub(crate) ret: Option<Ret>,
}

/// The name of an operation, which becomes a text only if something is said of it.
pub(crate) enum Name {
    Step(&'static str, Polling),
    #[cfg(test)]
    Text(String),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(name, Polling::Await) => f.write_str(name),
            Self::Step(name, polling) => write!(f, "{name}.{}", polling.name()),
            #[cfg(test)]
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A moment at which an operation acts on the state of the specification.
struct Point {
    index: usize,
    act: Act,
    from: Tick,
    to: Tick,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Begin,
    Finish,
    Cancel,
    /// A panic went through a future, which was dropped then.
    Unwind,
    /// A panic went through an operation that is no future. It may have taken effect,
    /// or not.
    Either,
}

/// A part of a history that the specification explains.
struct Explained<State> {
    /// The acts in their order, each with its participant and its operation.
    path: Vec<(usize, usize, Act)>,
    /// How many acts of each participant it contains.
    at: Vec<usize>,
    /// The state in which it ends.
    state: State,
}

struct Search<'a, S: Spec> {
    spec: &'a S,
    history: &'a [Vec<Invocation<'a, S::Op, S::Ret>>],
    order: Order,
    points: Vec<Vec<Point>>,
    visited: HashSet<(Vec<usize>, S::State)>,
    /// The final states, each with a suspended operation that could go on in it.
    ends: Vec<Option<(usize, usize)>>,
}

/// Judges a history, in which `history[p]` are the operations of participant `p`.
pub(crate) fn judge<S: Spec>(
    spec: &S,
    history: &[Vec<Invocation<'_, S::Op, S::Ret>>],
    order: Order,
) -> Result<(), Violation> {
    let mut search = Search {
        spec,
        history,
        order,
        points: history
            .iter()
            .map(|operations| points(spec, operations))
            .collect(),
        visited: HashSet::new(),
        ends: Vec::new(),
    };
    let start = vec![0; history.len()];
    search.explore(start, spec.initial());

    if search.ends.is_empty() {
        return Err(Violation {
            class: if cancelled(history) {
                Class::CancellationRace
            } else if unwound(history) {
                Class::Panic
            } else {
                Class::WrongResult
            },
            sentence: format!(
                "no order of the operations explains their results: {}. {}",
                results(history),
                search.explanation()
            ),
        });
    }
    let Some(enabled) = search.ends.iter().copied().min().flatten() else {
        return Ok(());
    };
    let (participant, index) = enabled;
    let operation = &history[participant][index];
    let name = &operation.name;
    // A wake of a superseded waker has been observed, so it comes before what is only
    // concluded from the program.
    let (class, why) = if operation.record.stale_wake {
        (
            Class::StaleWaker,
            "only a waker that a later poll had replaced was called",
        )
    } else if cancelled(history) {
        (
            Class::CancellationRace,
            "its wake-up went to a future that was dropped",
        )
    } else if unwound(history) {
        (Class::Panic, "the panic of a waker prevented its wake-up")
    } else {
        (
            Class::LostWakeUp,
            "none of its wakers was called since its last poll",
        )
    };
    Err(Violation {
        class,
        sentence: format!(
            "{{{participant}}} waits in {name} for ever although it could go on: {why}"
        ),
    })
}

/// Returns `true` if a future was dropped before it was ready, after a poll.
fn cancelled<Op, Ret>(history: &[Vec<Invocation<'_, Op, Ret>>]) -> bool {
    history.iter().flatten().any(|operation| {
        operation.record.outcome == Outcome::Cancelled && operation.record.polls > 0
    })
}

fn unwound<Op, Ret>(history: &[Vec<Invocation<'_, Op, Ret>>]) -> bool {
    history
        .iter()
        .flatten()
        .any(|operation| operation.record.outcome == Outcome::Unwound)
}

fn results<Op, Ret: std::fmt::Debug>(history: &[Vec<Invocation<'_, Op, Ret>>]) -> String {
    let mut texts = Vec::new();
    for (participant, operations) in history.iter().enumerate() {
        for operation in operations {
            let name = &operation.name;
            texts.push(match (&operation.ret, operation.record.outcome) {
                (Some(ret), _) => format!("{{{participant}}} {name} = {ret:?}"),
                (None, Outcome::Cancelled) => format!("{{{participant}}} {name} cancelled"),
                (None, Outcome::Unwound) => format!("{{{participant}}} {name} unwound"),
                (None, _) => format!("{{{participant}}} {name} pending"),
            });
        }
    }
    texts.join("; ")
}

fn points<S: Spec>(spec: &S, operations: &[Invocation<'_, S::Op, S::Ret>]) -> Vec<Point> {
    let mut points = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let CallRecord {
            outcome,
            span,
            first_poll,
            drop,
            polls,
            ..
        } = operation.record;
        let mut push = |act, span: Span, to: Tick| {
            if let Some(from) = span.first {
                points.push(Point {
                    index,
                    act,
                    from,
                    to,
                });
            }
        };
        if spec.begins(operation.op) && (polls > 0 || outcome != Outcome::Cancelled) {
            // The polls of a blocking operation are not seen, so its first poll may be
            // at any moment of the operation.
            let to = match (polls, outcome) {
                (0, Outcome::Pending) => Tick::MAX,
                (0, _) => span.last,
                _ => first_poll.last,
            };
            push(Act::Begin, first_poll, to);
        }
        match outcome {
            Outcome::Done => push(Act::Finish, span, span.last),
            Outcome::Cancelled => push(Act::Cancel, drop, drop.last),
            // The future has delivered nothing. It took effect no later than when it
            // was dropped.
            Outcome::Unwound if polls > 0 => push(Act::Unwind, span, drop.last),
            Outcome::Unwound => push(Act::Either, span, span.last),
            Outcome::Pending => {}
        }
    }
    // What comes later on the same participant bounds what comes before it.
    let mut bound = Tick::MAX;
    for point in points.iter_mut().rev() {
        bound = bound.min(point.to);
        point.to = bound;
    }
    points
}

impl<S: Spec> Search<'_, S> {
    fn explore(&mut self, at: Vec<usize>, state: S::State) {
        if !self.visited.insert((at.clone(), state.clone())) {
            return;
        }
        let mut moved = false;
        for participant in 0..at.len() {
            let Some(point) = self.points[participant].get(at[participant]) else {
                continue;
            };
            moved = true;
            if self.is_early(&at, participant) {
                continue;
            }
            let next = self.after(&state, participant, point);
            for state in next {
                let mut at = at.clone();
                at[participant] += 1;
                self.explore(at, state);
            }
        }
        if !moved {
            self.ends.push(self.enabled(&state));
        }
    }

    /// Describes how far the specification explains a history: the longest part, the
    /// state in which it ends, and what may come next.
    fn explanation(&self) -> String {
        let mut longest = Explained {
            path: Vec::new(),
            at: vec![0; self.history.len()],
            state: self.spec.initial(),
        };
        let mut visited = HashSet::new();
        self.lengthen(
            longest.at.clone(),
            longest.state.clone(),
            &mut Vec::new(),
            &mut visited,
            &mut longest,
        );
        let Explained { path, at, state } = longest;
        let name = |participant: usize, index: usize| {
            let operation = &self.history[participant][index];
            match &operation.ret {
                Some(ret) => format!("{{{participant}}} {} = {ret:?}", operation.name),
                None => format!("{{{participant}}} {}", operation.name),
            }
        };
        let explained: Vec<String> = path
            .iter()
            .filter(|&&(.., act)| act != Act::Begin)
            .map(|&(participant, index, _)| name(participant, index))
            .collect();
        let explained = match &explained[..] {
            [] => "From the beginning".to_owned(),
            some => format!("After {}", some.join("; ")),
        };
        let next: Vec<String> = (0..at.len())
            .filter(|&participant| !self.is_early(&at, participant))
            .filter_map(|participant| {
                let point = self.points[participant].get(at[participant])?;
                if point.act != Act::Finish {
                    return None;
                }
                let rets: Vec<String> = self
                    .spec
                    .step(&state, self.call(participant, point.index))
                    .into_iter()
                    .map(|(_, ret)| format!("{ret:?}"))
                    .collect();
                let waits = self.history[participant][point.index].waits;
                let allowed = match &rets[..] {
                    [] if waits => "must wait".to_owned(),
                    [] => "has no outcome, although it is declared not to wait: \
                           `Spec::step` must return one"
                        .to_owned(),
                    some => format!("may return {}", some.join(" or ")),
                };
                Some(format!("{} {allowed}", name(participant, point.index)))
            })
            .collect();
        let next = match &next[..] {
            [] => "nothing may come next".to_owned(),
            some => some.join("; "),
        };
        format!("{explained}, in the state {state:?}, by the specification: {next}")
    }

    /// Searches as [`explore`](Self::explore) does, and keeps the longest path.
    fn lengthen(
        &self,
        at: Vec<usize>,
        state: S::State,
        path: &mut Vec<(usize, usize, Act)>,
        visited: &mut HashSet<(Vec<usize>, S::State)>,
        longest: &mut Explained<S::State>,
    ) {
        if !visited.insert((at.clone(), state.clone())) {
            return;
        }
        if path.len() > longest.path.len() {
            *longest = Explained {
                path: path.clone(),
                at: at.clone(),
                state: state.clone(),
            };
        }
        for participant in 0..at.len() {
            let Some(point) = self.points[participant].get(at[participant]) else {
                continue;
            };
            if self.is_early(&at, participant) {
                continue;
            }
            for state in self.after(&state, participant, point) {
                let mut at = at.clone();
                at[participant] += 1;
                path.push((participant, point.index, point.act));
                self.lengthen(at, state, path, visited, longest);
                path.pop();
            }
        }
    }

    fn call(&self, participant: usize, index: usize) -> Call<'_, S::Op> {
        Call {
            participant,
            index,
            op: self.history[participant][index].op,
        }
    }

    /// Returns `true` if the next act of another participant must come before that of
    /// this one.
    fn is_early(&self, at: &[usize], participant: usize) -> bool {
        let Some(point) = self.points[participant].get(at[participant]) else {
            return false;
        };
        self.order == Order::RealTime
            && (0..at.len()).any(|other| {
                other != participant
                    && self.points[other]
                        .get(at[other])
                        .is_some_and(|next| next.to < point.from)
            })
    }

    /// Returns the states after an act.
    fn after(&self, state: &S::State, participant: usize, point: &Point) -> Vec<S::State> {
        let operation = &self.history[participant][point.index];
        let call = self.call(participant, point.index);
        match point.act {
            Act::Begin => self.spec.begin(state, call),
            Act::Cancel => self.spec.cancel(state, call),
            Act::Unwind => self.spec.unwind(state, call),
            Act::Finish => self
                .spec
                .step(state, call)
                .into_iter()
                .filter(|(_, ret)| Some(ret) == operation.ret.as_ref())
                .map(|(state, _)| state)
                .collect(),
            Act::Either => {
                let mut next = self.spec.cancel(state, call);
                let finished = self.spec.step(state, call);
                next.extend(finished.into_iter().map(|(state, _)| state));
                next
            }
        }
    }

    /// Returns a suspended operation that could go on in this state.
    fn enabled(&self, state: &S::State) -> Option<(usize, usize)> {
        self.history
            .iter()
            .enumerate()
            .find_map(|(participant, operations)| {
                let index = operations.len().checked_sub(1)?;
                let operation = &operations[index];
                let call = Call {
                    participant,
                    index,
                    op: operation.op,
                };
                let suspended = operation.record.outcome == Outcome::Pending;
                (suspended && self.spec.is_due(state, call)).then_some((participant, index))
            })
    }
}
