//! When a run holds, and when the result of a specimen is as expected.

use std::time::Duration;

use crate::report::trace::Trace;
use crate::report::{Counterexample, Report, SpecimenReport};
use crate::subject::verdict::{Class, Verdict};

fn report(programs: u64, executions: u64, failures: Vec<Counterexample>) -> Report {
    Report {
        subject: "subject".to_owned(),
        engine: "loom".to_owned(),
        mode: "sections".to_owned(),
        verdict: Verdict::Complete,
        bound: "2x2".to_owned(),
        programs,
        executions,
        observed: None,
        coverage: Vec::new(),
        failures,
        seconds: Duration::from_millis(1_500),
    }
}

fn counterexample() -> Counterexample {
    Counterexample {
        class: Class::StaleWaker,
        sentence: "a sentence".to_owned(),
        program: "send/recv.repoll".to_owned(),
        execution: 7,
        token: "a:token".to_owned(),
        table: "a table".to_owned(),
        trace: Trace::default(),
    }
}

#[test]
fn a_run_that_ran_nothing_does_not_hold() {
    assert!(report(1, 1, Vec::new()).holds());
    assert!(report(3, 300, Vec::new()).holds());
    assert!(!report(0, 0, Vec::new()).holds());
    assert!(!report(3, 0, Vec::new()).holds());
    // A program that had no execution at all.
    assert!(!report(3, 2, Vec::new()).holds());
    assert!(!report(3, 300, vec![counterexample()]).holds());
}

#[test]
fn a_report_says_in_a_line_whether_it_holds() {
    let line = report(3, 3_000, Vec::new()).to_string();
    assert_eq!(line.lines().count(), 1);
    for part in ["loom/sections", "complete", "3,000 executions", "holds"] {
        assert!(line.contains(part), "no `{part}` in: {line}");
    }
    let line = report(0, 0, Vec::new()).to_string();
    assert!(line.contains("FAILS: nothing was run"), "{line}");
    let text = report(3, 3, vec![counterexample()]).to_string();
    for part in ["FAILS: stale waker", "a sentence", "a table", "a:token"] {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}

fn specimen(expected: Option<Class>, found: Option<Class>, executions: u64) -> SpecimenReport {
    SpecimenReport {
        name: "specimen".to_owned(),
        expected,
        found,
        program: String::new(),
        executions,
        seconds: Duration::ZERO,
        counterexample: None,
    }
}

#[test]
fn a_specimen_is_seen_for_what_it_is_in_its_class_only() {
    use Class::{Leak, LostWakeUp};
    assert!(specimen(Some(Leak), Some(Leak), 1).as_expected());
    assert!(specimen(None, None, 1).as_expected());
    assert!(!specimen(Some(Leak), Some(LostWakeUp), 1).as_expected());
    assert!(!specimen(Some(Leak), None, 1).as_expected());
    assert!(!specimen(None, Some(Leak), 1).as_expected());
    // It passed, or was caught, without an execution.
    assert!(!specimen(None, None, 0).as_expected());
    assert!(!specimen(Some(Leak), Some(Leak), 0).as_expected());
}

#[test]
fn seconds_are_written_to_a_thousandth() {
    let json = serde_json::to_value(report(1, 1, Vec::new())).expect("it is written");
    assert_eq!(json["seconds"], 1.5);
    assert_eq!(json["verdict"], "complete");
}
