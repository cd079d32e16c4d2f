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
    /// Perhaps it finished, perhaps not.
    Either,
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
                "no order of the operations explains their results: {}",
                results(history)
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
            // Its effect may come at any time after its beginning.
            Outcome::Unwound => push(Act::Either, span, Tick::MAX),
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
            // Somebody whose next act must come before this one may.
            let early = self.order == Order::RealTime
                && (0..at.len()).any(|other| {
                    other != who
                        && self.points[other]
                            .get(at[other])
                            .is_some_and(|next| next.to < point.from)
                });
            if early {
                continue;
            }
            let (index, act) = (point.index, point.act);
            let operation = &self.history[who][index];
            let call = Call {
                participant: who,
                index,
                op: operation.op,
            };
            let next: Vec<S::State> = match act {
                Act::Begin => self.spec.begin(&state, call),
                Act::Cancel => self.spec.cancel(&state, call),
                Act::Finish => self
                    .spec
                    .step(&state, call)
                    .into_iter()
                    .filter(|(_, ret)| Some(ret) == operation.ret.as_ref())
                    .map(|(state, _)| state)
                    .collect(),
                Act::Either => {
                    let mut next = self.spec.cancel(&state, call);
                    let finished = self.spec.step(&state, call);
                    next.extend(finished.into_iter().map(|(state, _)| state));
                    next
                }
            };
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
