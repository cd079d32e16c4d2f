//! What the engines promise whatever they run: the same again each time, a
//! token that replays, and a verdict that says no more than was done.

use crate::report::Report;
use crate::run;
use crate::run::token::Token;
use crate::specimens::oneshot::{Fault, Specimen};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::step::Polling;
use crate::subject::verdict::{Class, Verdict};
use crate::subjects::oneshot::Oneshot;

/// The modes whose executions are the same each time.
const REPEATABLE: [Mode; 6] = [
    Mode::Steps,
    Mode::Sections,
    Mode::Accesses,
    Mode::Exhaustive,
    Mode::Random,
    Mode::Pct,
];

/// A small plan of a mode.
fn plan(mode: Mode) -> Plan {
    let mut plan = Plan::of(mode, Profile::Quick);
    plan.bound.total = 2;
    plan.bound.non_default = 1;
    if let Some(drawn) = &mut plan.drawn {
        // As small as they are when enumerated, there are not many.
        plan.bound.total = 4;
        *drawn = 100;
    }
    plan
}

fn oneshot(mode: Mode, plan: &Plan) -> Report {
    run::run(&Oneshot, "oneshot", mode, plan)
}

fn specimen(fault: Fault, mode: Mode, plan: &Plan) -> Report {
    run::run(&Specimen(fault), "specimen", mode, plan)
}

#[test]
fn the_same_is_run_each_time() {
    for mode in REPEATABLE {
        let [first, second] = [0; 2].map(|_| oneshot(mode, &plan(mode)));
        assert!(first.holds(), "{first}");
        assert!(first.programs > 10, "{first}");
        assert_eq!(first.programs, second.programs, "{first}");
        assert_eq!(first.executions, second.executions, "{first}");
        assert_eq!(first.verdict, second.verdict, "{first}");
    }
}

#[test]
fn a_failure_is_the_same_each_time_and_its_token_replays_it() {
    let faults = [
        (Fault::NoWake, Class::LostWakeUp),
        (Fault::FirstWakerKept, Class::StaleWaker),
        (Fault::DropValueUnderLock, Class::Reentrancy),
    ];
    for mode in REPEATABLE {
        for (fault, class) in faults {
            // A second waker and a value after it are drawn too rarely.
            if plan(mode).drawn.is_some() && fault == Fault::FirstWakerKept {
                continue;
            }
            let [first, second] = [0; 2].map(|_| specimen(fault, mode, &plan(mode)));
            let [failure] = &first.failures[..] else {
                panic!("it was not caught: {first}");
            };
            assert_eq!(failure.class, class, "{first}");
            assert_eq!(failure.token, second.failures[0].token);
            assert_eq!(failure.table, second.failures[0].table);
            assert!(failure.table.lines().count() > 4, "{first}");
            assert!(
                !failure.sentence.contains("did not happen again"),
                "{first}"
            );

            let token = Token::parse(&failure.token).expect("it is whole");
            let again = run::replay(&Specimen(fault), &token).expect("it fails again");
            assert_eq!(again.class, failure.class);
            assert_eq!(again.sentence, failure.sentence);
            assert_eq!(again.execution, failure.execution);
            assert_eq!(again.program, failure.program);
            assert_eq!(again.table, failure.table);
            assert_eq!(again.token, failure.token);
        }
    }
}

#[test]
fn what_is_mended_does_not_fail_when_it_is_replayed() {
    let mode = Mode::Exhaustive;
    let report = specimen(Fault::NoWake, mode, &plan(mode));
    let token = Token::parse(&report.failures[0].token).expect("it is whole");
    let sentence = run::replay(&Specimen(Fault::None), &token).expect_err("it holds");
    assert!(sentence.contains("did not fail"), "{sentence}");

    let other = Token {
        program: "lock/unlock".to_owned(),
        ..token
    };
    let sentence = run::replay(&Specimen(Fault::None), &other).expect_err("no such operations");
    assert!(sentence.contains("another version"), "{sentence}");
}

#[test]
fn a_verdict_says_no_more_than_was_done() {
    for mode in Mode::ALL {
        let whole = plan(mode);
        let report = oneshot(mode, &whole);
        let expected = match mode {
            // Bounded by its number of preemptions.
            Mode::Accesses => Verdict::Bounded,
            mode => mode.best(),
        };
        assert!(report.holds(), "{report}");
        assert_eq!(report.verdict, expected, "{report}");

        // One execution of each is not all of them.
        let cut = Plan {
            executions: 1,
            ..whole
        };
        let report = oneshot(mode, &cut);
        let expected = match mode.best() {
            Verdict::Complete => Verdict::Bounded,
            verdict => verdict,
        };
        assert_eq!(report.verdict, expected, "{report}");
        assert_eq!(report.executions, report.programs, "{report}");
    }
}

#[test]
fn where_preemptions_are_bounded_it_says_so() {
    let mut plan = plan(Mode::Sections);
    assert_eq!(oneshot(Mode::Sections, &plan).verdict, Verdict::Complete);
    plan.preemptions = Some(1);
    let report = oneshot(Mode::Sections, &plan);
    assert_eq!(report.verdict, Verdict::Bounded);
    assert!(report.bound.contains("1 preemption"), "{}", report.bound);
}

#[test]
fn a_run_of_nothing_does_not_hold() {
    for mode in Mode::ALL {
        let mut none = plan(mode);
        none.bound.operations = 0;
        let report = oneshot(mode, &none);
        assert_eq!((report.programs, report.executions), (0, 0));
        assert!(!report.holds(), "{report}");

        let never = Plan {
            executions: 0,
            ..plan(mode)
        };
        let report = oneshot(mode, &never);
        assert_eq!(report.executions, 0);
        assert!(!report.holds(), "{report}");
    }
}

/// The smallest comes first, so it is what is reported, with many at work.
#[test]
fn the_smallest_program_that_fails_is_the_one() {
    for mode in [Mode::Steps, Mode::Sections, Mode::Exhaustive] {
        let whole = Plan::of(mode, Profile::Quick);
        let report = specimen(Fault::NoWake, mode, &whole);
        assert_eq!(report.failures.len(), 1);
        assert_eq!(report.failures[0].program, "send/recv", "{report}");
        assert_ne!(report.verdict, Verdict::Complete, "{report}");
    }
}

/// A drawn program that fails is told by what is left when nothing more can be
/// taken away.
#[test]
fn what_was_drawn_is_shrunk() {
    let mut plan = Plan::of(Mode::Random, Profile::Quick);
    plan.drawn = Some(100);
    for (fault, class, program) in [
        (Fault::NoWake, Class::LostWakeUp, "send/recv"),
        (Fault::WakeIsAnswer, Class::WrongResult, "/recv.repoll"),
        (Fault::ValueLost, Class::Leak, "send/drop"),
    ] {
        let report = specimen(fault, Mode::Random, &plan);
        assert_eq!(report.failures[0].class, class, "{report}");
        assert_eq!(report.failures[0].program, program, "{report}");
    }
}

#[test]
fn every_polling_mode_has_a_name_of_its_own() {
    let names: std::collections::HashSet<_> = Polling::ALL.map(Polling::name).into();
    assert_eq!(names.len(), Polling::ALL.len());
    let modes: std::collections::HashSet<_> = Mode::ALL.map(Mode::name).into();
    assert_eq!(modes.len(), Mode::ALL.len());
}
