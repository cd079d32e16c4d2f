//! The page of results and its pictures.

use crate::registry;
use crate::report::page;
use crate::report::trace::{Kind, Trace};
use crate::report::{Counterexample, Report, SpecimenReport};
use crate::run::Selection;
use crate::run::dispatch::Work;

/// Returns the result of a specimen, as the command finds it.
fn specimen(name: &str) -> (Report, SpecimenReport) {
    let suite = registry::reveille();
    let specimens = suite.specimens.iter();
    let one = specimens.clone().find(|one| one.named.name == name);
    let one = one.expect("it is in the registry");
    let (mode, plan) = (one.mode(), one.plan());
    let work: Box<dyn Work> = one
        .named
        .entry
        .prepare(name, mode, &plan, &Selection::default());
    let result = work.run(0..work.programs());
    let mut report = work.empty_report();
    report.programs = result.programs;
    report.executions = result.executions;
    report.coverage = work.coverage(work.programs());
    let failures = result.failures.into_iter();
    report.failures = failures.map(|(_, failure)| failure).collect();
    let counterexample = report.failures.first().cloned();
    let specimen = SpecimenReport {
        name: name.to_owned(),
        expected: one.expected,
        found: counterexample.as_ref().map(|failure| failure.class),
        program: "a program".to_owned(),
        executions: result.executions,
        seconds: result.time,
        counterexample,
    };
    (report, specimen)
}

fn failure(name: &str) -> Counterexample {
    let (_, specimen) = specimen(name);
    specimen.counterexample.expect("it fails")
}

/// Returns the missing wake-up as the lanes of its two ends.
fn missing(trace: &Trace) -> Vec<(usize, usize)> {
    let lanes = trace.missing.iter().map(|missing| {
        let waits = &trace.events[missing.waits];
        assert_eq!(waits.kind, Kind::Waits);
        (trace.events[missing.after].lane, waits.lane)
    });
    lanes.collect()
}

#[test]
fn the_section_that_lost_a_wake_up_is_marked() {
    for name in ["oneshot/no-wake", "oneshot/check-then-register"] {
        let failure = failure(name);
        assert_eq!(missing(&failure.trace), [(0, 1)], "{failure}");
        assert!(
            failure.table.contains("<-- no wake of receiver"),
            "{failure}"
        );
    }
    // A failure that is no lost wake-up has no mark.
    let failure = failure("oneshot/wake-under-lock");
    assert!(failure.trace.missing.is_empty(), "{failure}");
    assert!(!failure.table.contains("<--"), "{failure}");
}

#[test]
fn a_trace_survives_the_way_to_another_process() {
    let failure = failure("oneshot/no-wake");
    let text = serde_json::to_string(&failure).expect("it can be written");
    let again: Counterexample = serde_json::from_str(&text).expect("it can be read");
    assert!(!again.trace.events.is_empty());
    assert_eq!(again.trace, failure.trace);
}

/// Returns the value of an attribute, wherever it is in the page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    let parts = page.split(&begin).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn the_page_needs_nothing_else_and_says_everything() {
    let (report, specimen) = specimen("oneshot/check-then-register");
    let failure = &report.failures[0];
    let page = page::page(
        "cargo verify",
        "quick",
        std::slice::from_ref(&report),
        &[specimen],
    );
    // Neither a script nor a file nor a host.
    for part in ["<script", "<img", "@import", "url("] {
        assert!(!page.contains(part), "{part} in the page");
    }
    assert_eq!(values(&page, "href"), ["data:,"]);
    assert!(values(&page, "src").is_empty());
    for part in [
        "0 of 1 runs hold",
        "lost wake-up",
        "fibers/exhaustive",
        "oneshot/check-then-register",
        "--replay",
        // The operations and polling modes of the coverage.
        "recv",
        "granted",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "no {part} in the page");
    }
    // A lane for each participant, the clean-up and the lock.
    let svg = page.split("<svg").nth(1).expect("there is a picture");
    for name in ["sender", "receiver", "clean-up", "lock"] {
        assert!(svg.contains(&format!(">{name}<")), "no lane {name}");
    }
    assert!(svg.contains("class=\"missing tip\""), "no dashed arrow");
    // As many boxes as sections, in the lane and in that of the lock.
    let sections = failure.trace.events.iter();
    let sections = sections.filter(|line| matches!(line.kind, Kind::Section { .. }));
    let svg = svg.split("</svg>").next().unwrap();
    let boxes = svg.matches("<rect class=\"section").count();
    assert_eq!(boxes, 2 * sections.count());
}

#[test]
fn text_of_a_subject_cannot_become_markup() {
    let (mut report, specimen) = specimen("oneshot/no-wake");
    report.subject = "<b>&".to_owned();
    report.failures[0].sentence = "<script>".to_owned();
    let page = page::page("cargo verify", "quick", &[report], &[specimen]);
    assert!(!page.contains("<script>") && !page.contains("<b>"));
    assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;&amp;"));
}
