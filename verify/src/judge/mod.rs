//! The judgement of a quiescent execution.
//!
//! The history must be linearizable: there is an order of the operations, each
//! at a moment between its first section and its last, in which the
//! specification answers what the primitive did (Herlihy and Wing, 1990; the
//! search is that of Wing and Gong, 1993, with states remembered). *And* in the
//! state in which that order ends, no suspended operation may be able to go on:
//! one that could is exactly a lost wake-up.

pub(crate) mod erased;

use std::collections::HashSet;
use std::fmt;

use crate::execution::{CallRecord, Outcome, Span, Tick};
use crate::subject::plan::Order;
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Polling;
use crate::subject::verdict::{Class, Violation};

/// One operation of a history.
pub(crate) struct Invocation<'a, Op, Ret> {
    pub(crate) op: &'a Op,
    pub(crate) name: Name,
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
    /// A panic went through it, and it is no future: perhaps it finished, perhaps not.
    Either,
}

/// A part of a history that the specification explains.
struct Explained<State> {
    /// The acts, in their order: of which participant, in which operation.
    path: Vec<(usize, usize, Act)>,
    /// How many acts of each participant are in it.
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
    /// The final states, each with a suspended operation that it enables.
    ends: Vec<Option<(usize, usize)>>,
}

/// Judges a history; `history[p]` are the operations of participant `p`.
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
    let (who, index) = enabled;
    let operation = &history[who][index];
    let name = &operation.name;
    let (class, why) = if cancelled(history) {
        (
            Class::CancellationRace,
            "what was due to it went to a future that was dropped",
        )
    } else if unwound(history) {
        (Class::Panic, "a waker's panic kept its wake-up from it")
    } else if operation.record.stale_wake {
        (
            Class::StaleWaker,
            "only a waker that a later poll had superseded was called",
        )
    } else {
        (
            Class::LostWakeUp,
            "none of its wakers was called since its last poll",
        )
    };
    Err(Violation {
        class,
        sentence: format!("{{{who}}} waits in {name} for ever although it could go on: {why}"),
    })
}

/// Whether a future was dropped before it was ready, after a poll.
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
    for (who, operations) in history.iter().enumerate() {
        for operation in operations {
            let name = &operation.name;
            texts.push(match (&operation.ret, operation.record.outcome) {
                (Some(ret), _) => format!("{{{who}}} {name} = {ret:?}"),
                (None, Outcome::Cancelled) => format!("{{{who}}} {name} cancelled"),
                (None, Outcome::Unwound) => format!("{{{who}}} {name} unwound"),
                (None, _) => format!("{{{who}}} {name} pending"),
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
            // A blocking operation polls where nobody sees it: when it first did
            // is open for as long as it lasts.
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
            // A future has delivered nothing then, and has done so at the latest where it
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
        for who in 0..at.len() {
            let Some(point) = self.points[who].get(at[who]) else {
                continue;
            };
            moved = true;
            if self.is_early(&at, who) {
                continue;
            }
            let next = self.after(&state, who, point);
            for state in next {
                let mut at = at.clone();
                at[who] += 1;
                self.explore(at, state);
            }
        }
        if !moved {
            self.ends.push(self.enabled(&state));
        }
    }

    /// What the specification makes of a history that it does not explain: the longest
    /// part that it does, the state there, and what it allows of what comes next.
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
        let name = |who: usize, index: usize| {
            let operation = &self.history[who][index];
            match &operation.ret {
                Some(ret) => format!("{{{who}}} {} = {ret:?}", operation.name),
                None => format!("{{{who}}} {}", operation.name),
            }
        };
        let explained: Vec<String> = path
            .iter()
            .filter(|&&(.., act)| act != Act::Begin)
            .map(|&(who, index, _)| name(who, index))
            .collect();
        let explained = match &explained[..] {
            [] => "From the beginning".to_owned(),
            some => format!("After {}", some.join("; ")),
        };
        let next: Vec<String> = (0..at.len())
            .filter(|&who| !self.is_early(&at, who))
            .filter_map(|who| {
                let point = self.points[who].get(at[who])?;
                if point.act != Act::Finish {
                    return None;
                }
                let rets: Vec<String> = self
                    .spec
                    .step(&state, self.call(who, point.index))
                    .into_iter()
                    .map(|(_, ret)| format!("{ret:?}"))
                    .collect();
                let allowed = match &rets[..] {
                    [] => "must wait".to_owned(),
                    some => format!("may return {}", some.join(" or ")),
                };
                Some(format!("{} {allowed}", name(who, point.index)))
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
        for who in 0..at.len() {
            let Some(point) = self.points[who].get(at[who]) else {
                continue;
            };
            if self.is_early(&at, who) {
                continue;
            }
            for state in self.after(&state, who, point) {
                let mut at = at.clone();
                at[who] += 1;
                path.push((who, point.index, point.act));
                self.lengthen(at, state, path, visited, longest);
                path.pop();
            }
        }
    }

    fn call(&self, who: usize, index: usize) -> Call<'_, S::Op> {
        Call {
            participant: who,
            index,
            op: self.history[who][index].op,
        }
    }

    /// Whether the next act of another participant must come before that of this one.
    fn is_early(&self, at: &[usize], who: usize) -> bool {
        let Some(point) = self.points[who].get(at[who]) else {
            return false;
        };
        self.order == Order::RealTime
            && (0..at.len()).any(|other| {
                other != who
                    && self.points[other]
                        .get(at[other])
                        .is_some_and(|next| next.to < point.from)
            })
    }

    /// The states after an act.
    fn after(&self, state: &S::State, who: usize, point: &Point) -> Vec<S::State> {
        let operation = &self.history[who][point.index];
        let call = self.call(who, point.index);
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

    /// A suspended operation that could go on in this state.
    fn enabled(&self, state: &S::State) -> Option<(usize, usize)> {
        self.history
            .iter()
            .enumerate()
            .find_map(|(who, operations)| {
                let index = operations.len().checked_sub(1)?;
                let operation = &operations[index];
                let call = Call {
                    participant: who,
                    index,
                    op: operation.op,
                };
                let suspended = operation.record.outcome == Outcome::Pending;
                (suspended && self.spec.is_due(state, call)).then_some((who, index))
            })
    }
}
