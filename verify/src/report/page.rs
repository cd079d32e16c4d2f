//! The results as one page, which a browser opens from disk. It needs no network and no
//! script.

use std::collections::{BTreeMap, BTreeSet};

use indicatif::HumanCount;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::swimlane;
use crate::report::{Counterexample, Report, SpecimenReport};
use crate::subject::step::Polling;
use crate::subject::verdict::Verdict;

/// Returns the page of results. `command` runs an execution again.
pub(crate) fn page(
    command: &str,
    profile: &str,
    results: &[Report],
    specimens: &[SpecimenReport],
) -> String {
    let failing: Vec<&Report> = results.iter().filter(|report| !report.holds()).collect();
    let executions: u64 = results.iter().map(|report| report.executions).sum();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // A browser asks for an icon unless the page has one.
                link rel="icon" href="data:,";
                title { (command) ": results" }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { "Results of " code { (command) } }
                    p {
                        (results.len() - failing.len()) " of " (results.len()) " runs hold in the "
                        (profile) " profile, after " (HumanCount(executions)) " executions."
                    }
                }
                main {
                    @if !failing.is_empty() { (failures(command, &failing)) }
                    @if !results.is_empty() { (runs(results)) (coverage(results)) }
                    @if !specimens.is_empty() { (seeded(command, specimens)) }
                    (meanings())
                }
            }
        }
    }
    .into_string()
}

/// Returns a region that scrolls if it is wider than the page. The keyboard reaches it.
fn wide(name: &str, content: &Markup) -> Markup {
    html! {
        div .scroll role="region" aria-label=(name) tabindex="0" { (content) }
    }
}

fn failures(command: &str, failing: &[&Report]) -> Markup {
    html! {
        section {
            h2 { "Failures" }
            @for report in failing {
                h3 { (report.subject) ", " (report.engine) "/" (report.mode) }
                @if report.failures.is_empty() {
                    p .bad { "Nothing was run." }
                }
                @for failure in &report.failures { (counterexample(command, failure)) }
            }
        }
    }
}

fn counterexample(command: &str, failure: &Counterexample) -> Markup {
    html! {
        p { span .bad { (failure.class) } ": " (failure.sentence) }
        p { "Program: " code { (failure.program) } }
        @if !failure.trace.events.is_empty() {
            (wide("the execution", &swimlane::draw(&failure.trace, &failure.sentence)))
        }
        p .soft { "To run this execution again:" }
        pre { (command) " --replay '" (failure.token) "'" }
    }
}

fn runs(results: &[Report]) -> Markup {
    let table = html! {
        table {
            thead {
                tr {
                    @for name in ["subject", "engine", "verdict", "bound"] {
                        th scope="col" { (name) }
                    }
                    @for name in ["programs", "executions", "seconds"] {
                        th .n scope="col" { (name) }
                    }
                    th scope="col" { "result" }
                }
            }
            tbody {
                @for report in results {
                    tr {
                        th scope="row" { (report.subject) }
                        td { (report.engine) "/" (report.mode) }
                        td { (report.verdict) }
                        td { (report.bound) }
                        td .n { (HumanCount(report.programs)) }
                        td .n { (HumanCount(report.executions)) }
                        td .n { (format!("{:.2}", report.seconds.as_secs_f64())) }
                        @if report.holds() {
                            td .good { "holds" }
                        } @else if let Some(failure) = report.failures.first() {
                            td .bad { (failure.class) }
                        } @else {
                            td .bad { "nothing was run" }
                        }
                    }
                }
            }
        }
    };
    html! {
        section { h2 { "Runs" } (wide("runs", &table)) }
    }
}

/// The number of programs for each operation and polling mode of a subject.
type Counts<'a> = BTreeMap<(&'a str, &'a str), u64>;

fn coverage(results: &[Report]) -> Markup {
    let mut subjects: Vec<(&str, Counts<'_>)> = Vec::new();
    for report in results {
        let name = report.subject.as_str();
        if subjects.last().is_none_or(|(last, _)| *last != name) {
            subjects.push((name, Counts::new()));
        }
        let (_, counts) = subjects.last_mut().expect("one was added");
        for one in &report.coverage {
            *counts.entry((&one.operation, &one.polling)).or_insert(0) += one.programs;
        }
    }
    subjects.retain(|(_, counts)| !counts.is_empty());
    html! {
        section {
            h2 { "Coverage" }
            p {
                "How many programs have an operation in a polling mode, over all engines. "
                code { "cancel" } " drops the future at its first suspension, and "
                code { "cancel_later" } " at its second."
            }
            @for (name, counts) in &subjects {
                details {
                    summary { (name) }
                    (wide(&format!("coverage of {name}"), &covered(counts)))
                }
            }
        }
    }
}

fn covered(counts: &Counts<'_>) -> Markup {
    let operations: BTreeSet<&str> = counts.keys().map(|&(operation, _)| operation).collect();
    let modes = Polling::ALL.map(Polling::name);
    let modes: Vec<&str> = modes
        .into_iter()
        .filter(|mode| counts.keys().any(|(_, one)| one == mode))
        .collect();
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "operation" }
                    @for mode in &modes { th .n scope="col" { (mode) } }
                }
            }
            tbody {
                @for operation in operations {
                    tr {
                        th scope="row" { (operation) }
                        @for mode in &modes {
                            @match counts.get(&(operation, *mode)) {
                                Some(&number) => td .n { (HumanCount(number)) },
                                None => td .n .soft { "none" },
                            }
                        }
                    }
                }
            }
        }
    }
}

fn seeded(command: &str, specimens: &[SpecimenReport]) -> Markup {
    let expected = specimens.iter().filter(|it| it.as_expected()).count();
    html! {
        section {
            h2 { "Specimens" }
            p {
                "A specimen is broken on purpose and must be caught in its class, or it is \
                 correct but uncommon and must pass. "
                (expected) " of " (specimens.len()) " are as expected."
            }
            @for report in specimens {
                details open[!report.as_expected()] {
                    summary {
                        code { (report.name) } " "
                        @match report.found {
                            Some(class) => { "caught: " (class) }
                            None => "passes",
                        }
                        @if !report.as_expected() {
                            " " span .bad { (report.judgement()) }
                        }
                    }
                    @match &report.counterexample {
                        Some(failure) => { (counterexample(command, failure)) }
                        None => {
                            p {
                                (report.program) ", " (HumanCount(report.executions))
                                " executions, no failure."
                            }
                        }
                    }
                }
            }
        }
    }
}

fn meanings() -> Markup {
    let verdicts = [
        (
            Verdict::Complete,
            "Every interleaving of every program within the bound was explored, one of each \
             class of equivalent ones.",
        ),
        (
            Verdict::Bounded,
            "A limit on preemptions or executions cut the search, or it ended at a failure.",
        ),
        (Verdict::Sampled, "Programs and schedules were drawn."),
    ];
    html! {
        section {
            h2 { "How to read this page" }
            @for (verdict, meaning) in verdicts {
                p { strong { (verdict) } ". " (meaning) }
            }
            p {
                "In a picture, time runs downwards. A bar is a poll. A box is a section, and the \
                 lock of it is at the same height. An arrow leads from a wake to the poll that \
                 follows it. A dashed arrow is a wake-up that is missing: it begins at the last \
                 section that changed something, and ends where a participant waits for ever."
            }
        }
    }
}
