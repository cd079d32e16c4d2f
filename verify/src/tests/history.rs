//! The judge: histories that have an explanation, and histories that have none.

use std::collections::HashSet;

use super::numbers;
use crate::execution::{CallRecord, Outcome, Tick};
use crate::judge::{Invocation, Name, judge};
use crate::subject::plan::Order;
use crate::subject::spec::{Call, Spec};
use crate::subject::verdict::Class;

/// A variable that can also be waited for, until it is not zero.
#[derive(Clone, Debug)]
enum Op {
    Write(u8),
    Read,
    /// Returns the value, and leaves zero.
    Take,
}

struct Variable;

impl Spec for Variable {
    type Op = Op;
    type Ret = u8;
    type State = u8;

    fn initial(&self) -> u8 {
        0
    }

    fn step(&self, &value: &u8, call: Call<'_, Op>) -> Vec<(u8, u8)> {
        match call.op {
            Op::Write(new) => vec![(*new, 0)],
            Op::Read => vec![(value, value)],
            Op::Take if value == 0 => Vec::new(),
            Op::Take => vec![(0, value)],
        }
    }

    /// Giving up a `take` resets it: what a cancellation does can be told.
    fn cancel(&self, &value: &u8, call: Call<'_, Op>) -> Vec<u8> {
        match call.op {
            Op::Take => vec![0],
            _ => vec![value],
        }
    }
}

/// An operation of a history.
#[derive(Clone, Debug)]
struct Did {
    op: Op,
    ret: Option<u8>,
    record: CallRecord,
}

fn did(op: Op, ret: u8, first: Tick, last: Tick) -> Did {
    Did {
        op,
        ret: Some(ret),
        record: CallRecord::new(Outcome::Done, first, last),
    }
}

fn write(value: u8, first: Tick, last: Tick) -> Did {
    did(Op::Write(value), 0, first, last)
}

fn read(value: u8, first: Tick, last: Tick) -> Did {
    did(Op::Read, value, first, last)
}

/// A `take` without an answer, polled once.
fn take(outcome: Outcome, first: Tick, last: Tick) -> Did {
    let mut record = CallRecord::new(outcome, first, last);
    record.polls = 1;
    Did {
        op: Op::Take,
        ret: None,
        record,
    }
}

fn invocations(line: &[Did]) -> Vec<Invocation<'_, Op, u8>> {
    line.iter()
        .map(|did| Invocation {
            op: &did.op,
            name: Name::Text(format!("{:?}", did.op)),
            waits: true,
            record: did.record.clone(),
            ret: did.ret,
        })
        .collect()
}

/// The class in which a history is refused.
fn verdict(history: &[Vec<Did>], order: Order) -> Result<(), Class> {
    let history: Vec<Vec<_>> = history.iter().map(|line| invocations(line)).collect();
    judge(&Variable, &history, order).map_err(|violation| violation.class)
}

#[track_caller]
fn judged(
    history: &[Vec<Did>],
    in_real_time: Result<(), Class>,
    in_program_order: Result<(), Class>,
) {
    assert_eq!(verdict(history, Order::RealTime), in_real_time);
    assert_eq!(verdict(history, Order::Program), in_program_order);
}

const WRONG: Result<(), Class> = Err(Class::WrongResult);

#[test]
fn what_overlaps_may_come_in_either_order() {
    judged(&[vec![write(1, 1, 4)], vec![read(0, 2, 3)]], Ok(()), Ok(()));
    judged(&[vec![write(1, 1, 4)], vec![read(1, 2, 3)]], Ok(()), Ok(()));
    // But in one of them.
    judged(&[vec![write(1, 1, 4)], vec![read(2, 2, 3)]], WRONG, WRONG);
}

#[test]
fn what_came_before_came_before() {
    judged(&[vec![write(1, 1, 2)], vec![read(1, 3, 4)]], Ok(()), Ok(()));
    judged(&[vec![write(1, 1, 2)], vec![read(0, 3, 4)]], WRONG, Ok(()));
    judged(&[vec![read(1, 1, 2)], vec![write(1, 3, 4)]], WRONG, Ok(()));
    // The order of one participant counts in any case.
    judged(&[vec![write(1, 1, 2), read(0, 3, 4)]], WRONG, WRONG);
}

#[test]
fn no_reader_sees_the_new_value_and_then_the_old() {
    let one_reader = [vec![write(1, 1, 10)], vec![read(1, 2, 3), read(0, 4, 5)]];
    judged(&one_reader, WRONG, WRONG);
    let two_readers = [
        vec![write(1, 1, 10)],
        vec![read(1, 2, 3)],
        vec![read(0, 4, 5)],
    ];
    judged(&two_readers, WRONG, Ok(()));
    let old_first = [
        vec![write(1, 1, 10)],
        vec![read(0, 2, 3)],
        vec![read(1, 4, 5)],
    ];
    judged(&old_first, Ok(()), Ok(()));
}

#[test]
fn a_chain_of_three_orders_the_ends() {
    // Each step is forced by the one before, though the ends overlap nothing.
    let chain = [
        vec![write(1, 1, 2)],
        vec![did(Op::Take, 1, 3, 4)],
        vec![read(1, 5, 6)],
    ];
    judged(&chain, WRONG, Ok(()));
}

#[test]
fn who_waits_must_not_be_able_to_go_on() {
    let waits = take(Outcome::Pending, 1, 1);
    judged(&[vec![], vec![waits.clone()]], Ok(()), Ok(()));
    let lost = Err(Class::LostWakeUp);
    judged(&[vec![write(1, 2, 3)], vec![waits.clone()]], lost, lost);
    // Another participant took it.
    let taken = [
        vec![write(1, 2, 3)],
        vec![waits.clone()],
        vec![did(Op::Take, 1, 4, 5)],
    ];
    judged(&taken, Ok(()), Ok(()));
    // One explanation in which it cannot go on is enough.
    let either = [
        vec![write(1, 2, 5)],
        vec![write(0, 3, 4)],
        vec![waits.clone()],
    ];
    judged(&either, Ok(()), Ok(()));
    // In that order it can, and no other is left.
    let after = [vec![write(0, 2, 3), write(1, 4, 5)], vec![waits]];
    judged(&after, lost, lost);
}

#[test]
fn why_it_waits_is_told_apart() {
    let waits = take(Outcome::Pending, 1, 1);
    let mut stale = waits.clone();
    stale.record.stale_wake = true;
    let class = |history: &[Vec<Did>]| verdict(history, Order::RealTime);
    let open = || vec![write(1, 4, 5)];

    assert_eq!(
        class(&[open(), vec![waits.clone()]]),
        Err(Class::LostWakeUp)
    );
    assert_eq!(
        class(&[open(), vec![stale.clone()]]),
        Err(Class::StaleWaker)
    );
    let cancelled = vec![take(Outcome::Cancelled, 2, 3)];
    assert_eq!(
        class(&[open(), vec![waits.clone()], cancelled.clone()]),
        Err(Class::CancellationRace)
    );
    // The stale wake has been observed, so it comes first.
    assert_eq!(
        class(&[open(), vec![stale], cancelled]),
        Err(Class::StaleWaker)
    );
    // A future that was never polled has taken part in nothing.
    let mut unpolled = take(Outcome::Cancelled, 2, 3);
    unpolled.record.polls = 0;
    assert_eq!(
        class(&[open(), vec![waits.clone()], vec![unpolled]]),
        Err(Class::LostWakeUp)
    );
    // The unwound one may have taken nothing at all.
    let mut unwound = take(Outcome::Unwound, 2, 3);
    unwound.op = Op::Read;
    assert_eq!(
        class(&[open(), vec![waits], vec![unwound]]),
        Err(Class::Panic)
    );
}

#[test]
fn a_wrong_result_is_laid_to_a_cancellation_or_a_panic_if_there_was_one() {
    let wrong = || vec![read(7, 4, 5)];
    let class = |other: Did| verdict(&[wrong(), vec![other]], Order::RealTime);
    assert_eq!(class(read(0, 1, 2)), WRONG);
    assert_eq!(
        class(take(Outcome::Cancelled, 1, 2)),
        Err(Class::CancellationRace)
    );
    assert_eq!(class(take(Outcome::Unwound, 1, 2)), Err(Class::Panic));
}

#[test]
fn giving_up_does_what_the_specification_says() {
    let given_up = || vec![take(Outcome::Cancelled, 1, 4)];
    // It resets the variable, at its drop: after the write.
    judged(
        &[vec![write(1, 2, 3), read(0, 5, 6)], given_up()],
        Ok(()),
        Ok(()),
    );
    let class = Err(Class::CancellationRace);
    judged(
        &[vec![write(1, 2, 3), read(1, 5, 6)], given_up()],
        class,
        Ok(()),
    );
    judged(
        &[vec![write(1, 2, 3), read(2, 5, 6)], given_up()],
        class,
        class,
    );
}

/// An operation that is no future may have acted before the panic, as long as it ran
/// and no later.
#[test]
fn what_a_panic_went_through_may_have_happened_or_not() {
    let unwound = |first, last| {
        let mut did = write(1, first, last);
        did.record = CallRecord::new(Outcome::Unwound, first, last);
        did.ret = None;
        vec![did]
    };
    for seen in [0, 1] {
        let history = [unwound(1, 2), vec![read(seen, 3, 4)]];
        judged(&history, Ok(()), Ok(()));
    }
    let class = Err(Class::Panic);
    let late = [unwound(1, 2), vec![read(0, 3, 4), read(1, 5, 6)]];
    judged(&late, class, Ok(()));
    let early = [vec![read(1, 1, 2)], unwound(3, 4)];
    judged(&early, class, Ok(()));
    let twice = [
        unwound(1, 9),
        vec![read(1, 3, 4), write(0, 5, 6), read(1, 7, 8)],
    ];
    judged(&twice, class, class);
}

/// A future that unwound was dropped, and has delivered nothing: it explains no more
/// than its drop does.
#[test]
fn a_future_that_a_panic_went_through_has_taken_nothing() {
    // Dropped, it resets the variable, at its drop at the latest.
    let unwound = || vec![take(Outcome::Unwound, 2, 5)];
    let written = |then| vec![write(1, 1, 2), read(then, 3, 4)];
    judged(&[written(1), unwound()], Ok(()), Ok(()));
    judged(&[written(0), unwound()], Ok(()), Ok(()));
    let class = Err(Class::Panic);
    let after = vec![write(1, 1, 2), read(1, 6, 7), read(0, 8, 9)];
    judged(&[after, unwound()], class, Ok(()));
    // Nor does it take what another waits for, later.
    let waits = vec![take(Outcome::Pending, 1, 2)];
    let earlier = vec![take(Outcome::Unwound, 3, 8)];
    let history = [vec![write(1, 9, 10)], waits, earlier];
    assert_eq!(verdict(&history, Order::RealTime), class);
}

/// A result that nothing explains is told with what would have been allowed.
#[test]
fn a_wrong_result_is_told_with_what_the_specification_allows() {
    let history = [vec![write(1, 1, 2), read(7, 3, 4)], vec![read(0, 1, 4)]];
    let history: Vec<Vec<_>> = history.iter().map(|line| invocations(line)).collect();
    let violation = judge(&Variable, &history, Order::RealTime).unwrap_err();
    let sentence = &violation.sentence;
    assert!(
        sentence.ends_with(
            "After {0} Write(1) = 0; {1} Read = 0, in the state 1, by the specification: \
             {0} Read = 7 may return 1"
        ) || sentence.ends_with(
            "After {1} Read = 0; {0} Write(1) = 0, in the state 1, by the specification: \
             {0} Read = 7 may return 1"
        ),
        "{sentence}"
    );
}

/// Every order of the operations that keeps to the order asked for, one by one:
/// slow, and plainly right.
fn explained(history: &[Vec<Did>], order: Order) -> bool {
    fn extend(history: &[Vec<Did>], order: Order, at: &mut Vec<usize>, state: u8) -> bool {
        let mut rest = false;
        for participant_id in 0..history.len() {
            let Some(did) = history[participant_id].get(at[participant_id]) else {
                continue;
            };
            rest = true;
            let later = |other: &Did| other.record.span.last < did.record.span.first.unwrap_or(0);
            let passed = (0..history.len()).any(|other| {
                history[other][at[other]..].iter().any(later) && other != participant_id
            });
            if order == Order::RealTime && passed {
                continue;
            }
            let call = Call {
                participant: participant_id,
                index: at[participant_id],
                op: &did.op,
            };
            for (next, ret) in Variable.step(&state, call) {
                if Some(ret) == did.ret {
                    at[participant_id] += 1;
                    let found = extend(history, order, at, next);
                    at[participant_id] -= 1;
                    if found {
                        return true;
                    }
                }
            }
        }
        !rest
    }
    extend(history, order, &mut vec![0; history.len()], 0)
}

/// The judge's search remembers states and leaves out what it has seen; here it
/// is held against one that does neither.
#[test]
fn it_says_what_a_plain_search_says() {
    let mut draw = numbers(3);
    let mut seen = HashSet::new();
    for _ in 0..20_000 {
        let participants = 2 + draw(2);
        let mut moments: Vec<Tick> = (1..=24).collect();
        for at in (1..moments.len()).rev() {
            moments.swap(at, draw(at + 1));
        }
        let history: Vec<Vec<Did>> = (0..participants)
            .map(|_| {
                let length = 1 + draw(3);
                let mut own: Vec<Tick> = moments.split_off(moments.len() - 2 * length);
                own.sort_unstable();
                own.chunks(2)
                    .map(|span| {
                        let value = u8::try_from(draw(3)).expect("below 3");
                        match draw(3) {
                            0 => write(value, span[0], span[1]),
                            1 => read(value, span[0], span[1]),
                            _ => did(Op::Take, value, span[0], span[1]),
                        }
                    })
                    .collect()
            })
            .collect();
        for order in [Order::RealTime, Order::Program] {
            let verdict = verdict(&history, order);
            let explained = explained(&history, order);
            assert_eq!(verdict.is_ok(), explained, "{order:?}: {history:?}");
            seen.insert((order == Order::RealTime, explained));
        }
    }
    assert_eq!(
        seen.len(),
        4,
        "good and bad ones were drawn, in both orders"
    );
}
