//! Which way of running catches which specimen; none may cry wolf.

use std::collections::BTreeSet;

use crate::registry;
use crate::report::Report;
use crate::run;
use crate::specimens::oneshot::{Fault, Specimen};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::verdict::Class;

/// What is caught by all orders of sections, and by steps where it is `true`.
const CAUGHT: [(&str, Class, bool); 17] = [
    ("two-locks", Class::LostWakeUp, false),
    ("check-then-register", Class::LostWakeUp, false),
    ("no-wake", Class::LostWakeUp, true),
    ("wake-before-store", Class::LostWakeUp, false),
    ("wake-under-lock", Class::Reentrancy, true),
    ("clone-under-lock", Class::Reentrancy, true),
    ("drop-waker-under-lock", Class::Reentrancy, true),
    ("drop-value-under-lock", Class::Reentrancy, true),
    ("first-waker-kept", Class::StaleWaker, true),
    ("same-waker-dropped", Class::LostWakeUp, true),
    ("waker-outlives-half", Class::Leak, true),
    ("dropped-with-wait", Class::CancellationRace, true),
    ("dropped-with-second-wait", Class::CancellationRace, true),
    ("value-lost", Class::Leak, true),
    ("wake-is-result", Class::WrongResult, true),
    ("busy-after-panic", Class::Panic, true),
    ("accepted-when-closed", Class::WrongResult, true),
];

/// What only memory orderings show.
const RACES: [&str; 1] = ["announced-early"];

/// What one operation of each half shows, without panics, and not by real time.
const SEEN_BY_ACCESSES: [&str; 13] = [
    "two-locks",
    "check-then-register",
    "no-wake",
    "wake-before-store",
    "wake-under-lock",
    "clone-under-lock",
    "drop-waker-under-lock",
    "drop-value-under-lock",
    "first-waker-kept",
    "same-waker-dropped",
    "value-lost",
    "wake-is-result",
    "announced-early",
];

fn run(name: &str, mode: Mode) -> Report {
    let mut plan = Plan::of(mode, Profile::Quick);
    match mode {
        Mode::Steps | Mode::Sections | Mode::Exhaustive => {
            plan.bound.operations = 2;
            plan.bound.total = 3;
            plan.bound.non_default = 3;
        }
        Mode::Accesses => plan.bound.non_default = 1,
        Mode::Random | Mode::Pct => plan.drawn = Some(1_000),
        Mode::Threads => plan.drawn = Some(200),
    }
    let (_, fault, _) = Fault::ALL
        .into_iter()
        .find(|&(other, ..)| other == name)
        .expect("there is such a specimen");
    run::run(&Specimen(fault), name, mode, &plan)
}

fn passes(mode: Mode) {
    for (name, _, expected) in Fault::ALL {
        if expected.is_none() {
            let report = run(name, mode);
            assert!(report.holds(), "{report}");
        }
    }
}

#[track_caller]
fn catches(name: &str, mode: Mode, class: Class) {
    let report = run(name, mode);
    let [failure] = &report.failures[..] else {
        panic!("{name} was not caught by {}: {report}", mode.name());
    };
    assert_eq!(failure.class, class, "{report}");
    assert!(!report.holds());
    let longest = failure.program.split('/').map(|line| {
        let steps = line.split(',').filter(|step| !step.is_empty());
        steps.count()
    });
    let three = longest.max().is_some_and(|longest| longest <= 3);
    assert!(three, "{name} took {}", failure.program);
}

#[test]
fn sections_under_loom() {
    for (name, class, _) in CAUGHT {
        // In this mode nothing is done at a second suspension.
        if name != "dropped-with-second-wait" {
            catches(name, Mode::Sections, class);
        }
    }
    for name in RACES {
        catches(name, Mode::Sections, Class::Race);
    }
}

#[test]
fn sections_on_fibers() {
    for (name, class, _) in CAUGHT {
        catches(name, Mode::Exhaustive, class);
    }
    passes(Mode::Exhaustive);
}

/// Where a fault needs two sections with something between them, a step, which
/// has no between, does not show it as what it is. A panic may leave a step
/// half-way all the same, which is why not all of the others hold.
#[test]
fn steps() {
    for (name, class, by_steps) in CAUGHT {
        if by_steps {
            catches(name, Mode::Steps, class);
        } else {
            let failures = run(name, Mode::Steps).failures;
            assert!(failures.iter().all(|failure| failure.class != class));
        }
    }
    passes(Mode::Steps);
}

#[test]
fn accesses_under_loom() {
    for (name, _, expected) in Fault::ALL {
        match expected {
            Some(class) if SEEN_BY_ACCESSES.contains(&name) => {
                catches(name, Mode::Accesses, class);
            }
            _ => {}
        }
    }
    passes(Mode::Accesses);
}

#[test]
fn drawn_schedules_of_drawn_programs() {
    for mode in [Mode::Random, Mode::Pct] {
        for (name, class, _) in CAUGHT {
            catches(name, mode, class);
        }
        passes(mode);
    }
}

/// What a thread does under a lock is not seen from outside; the rest of what
/// shows without a chance in timing is.
#[test]
fn real_threads() {
    for (name, class, _) in CAUGHT {
        if ["no-wake", "first-waker-kept", "wake-is-result"].contains(&name) {
            catches(name, Mode::Threads, class);
        }
    }
    passes(Mode::Threads);
}

/// A failure on real threads is shrunk and drawn as others are.
#[test]
fn what_real_threads_show_is_drawn() {
    let report = run("no-wake", Mode::Threads);
    let failure = &report.failures[0];
    assert_eq!(failure.program, "send/recv", "{report}");
    for event in ["send", "recv", "poll with w0", "pending"] {
        assert!(failure.table.contains(event), "{report}");
    }
}

#[test]
fn the_table_is_that_of_the_registry() {
    let caught = CAUGHT.map(|(name, class, _)| (name, Some(class)));
    let races = RACES.map(|name| (name, Some(Class::Race)));
    let table: BTreeSet<_> = caught
        .into_iter()
        .chain(races)
        .map(|(name, class)| (name, class.map(|class| class.to_string())))
        .collect();
    let must_be_caught: BTreeSet<_> = Fault::ALL
        .into_iter()
        .filter(|(.., expected)| expected.is_some())
        .map(|(name, _, class)| (name, class.map(|class| class.to_string())))
        .collect();
    assert_eq!(table, must_be_caught);
    // Some must pass. Without these, an engine that reports faults that are none would
    // go unnoticed.
    assert!(Fault::ALL.len() >= table.len() + 3);
}

#[test]
fn every_name_finds_what_it_names() {
    let suite = registry::reveille();
    let specimens = suite.specimens.iter().map(|specimen| &specimen.named);
    let names: Vec<_> = specimens
        .chain(&suite.subjects)
        .map(|named| named.name.as_str())
        .collect();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    for name in names {
        let found = suite.find(name).expect("it is in the registry");
        assert_eq!(found.name, name);
        let divides = |c: char| c == ':' || c == '\'' || c.is_whitespace();
        assert!(!name.contains(divides), "`{name}` would divide a token");
    }
    assert!(suite.find("oneshot/").is_none());
    // A group has a name of its own, and names what there is.
    let timed = suite.group("time");
    assert!(timed.len() > 3, "{timed:?}");
    assert!(suite.find("time").is_none());
    assert!(timed.iter().all(|name| suite.find(name).is_some()));
}
