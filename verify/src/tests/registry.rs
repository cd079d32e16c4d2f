//! The registry is complete: every file, every primitive and every public
//! operation is in it, or says why not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::registry;
use crate::run::entry::{Absent, Source, SubjectEntry, Surface};
use crate::{specimens, subjects};

/// Files of `subjects/` and `specimens/` that others share, and that register
/// nothing.
const SHARED: [&str; 7] = [
    "mod", "gate", "plans", "time", "permits", "support", "timers",
];

/// Sources of `reveille` whose public functions belong to no subject, each with
/// the reason.
const NO_SUBJECT: [(&str, &str); 12] = [
    ("mpsc/error.rs", "what an error gives back: nothing waits"),
    ("location.rs", "where a wait began: nothing waits"),
    ("time/clock.rs", "conversions of instants"),
    ("time/current.rs", "the timers of the thread: nothing waits"),
    ("time/driver.rs", "explored as `sleep-driven`"),
    ("time/error.rs", "what an error says: nothing waits"),
    ("time/timeout.rs", "explored as `timeout`"),
    ("time/instant.rs", "arithmetic"),
    (
        "time/mod.rs",
        "short names of what `sleep`, `timeout` and `interval` explore",
    ),
    (
        "time/thread.rs",
        "tested in `primitives/tests/time_thread.rs`",
    ),
    (
        "time/timers.rs",
        "explored as `sleep-driven`, `timeout` and `interval`",
    ),
    (
        "time/wheel.rs",
        "a data structure, tested against a plain list",
    ),
];

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The Rust files of a folder, without their extension.
fn files(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries
        .filter_map(|entry| {
            let name = entry.expect("it can be read").file_name();
            Some(name.to_str()?.strip_suffix(".rs")?.to_owned())
        })
        .collect()
}

fn source(path: &str) -> String {
    let file = folder("../primitives/src").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The names of the public functions of a source.
fn public(source: &str) -> BTreeSet<String> {
    source
        .lines()
        .filter_map(|line| {
            let item = line.trim_start().strip_prefix("pub ")?;
            let item = item.strip_prefix("const ").unwrap_or(item);
            let name = item.strip_prefix("fn ")?;
            Some(name.split(['(', '<']).next()?.to_owned())
        })
        .collect()
}

fn operations(subject: &SubjectEntry) -> BTreeSet<String> {
    let roles = subject.entry.roles();
    roles.into_iter().flat_map(|(_, names)| names).collect()
}

/// Each subject that declares sources, with them.
fn with_sources() -> impl Iterator<Item = (SubjectEntry, &'static [Source])> {
    let subjects = registry::reveille().subjects.into_iter();
    subjects.filter_map(|subject| match subject.surface {
        Surface::Sources(sources) => Some((subject, sources)),
        _ => None,
    })
}

#[test]
fn every_file_of_a_subject_or_specimen_is_registered() {
    for (path, registered) in [
        ("src/subjects", subjects::FILES),
        ("src/specimens", specimens::FILES),
    ] {
        let forgotten: Vec<_> = files(&folder(path))
            .into_iter()
            .filter(|file| !registered.contains(&&**file) && !SHARED.contains(&&**file))
            .collect();
        assert_eq!(
            forgotten, [""; 0],
            "files of {path} that the list in src/registered.rs lacks"
        );
    }
}

#[test]
fn every_primitive_has_a_subject_or_says_why_not() {
    let declared: BTreeSet<&str> = with_sources()
        .flat_map(|(_, sources)| sources.iter().map(|source| source.path))
        .collect();
    for prefix in ["", "mpmc/", "mpsc/", "time/"] {
        for file in files(&folder("../primitives/src").join(prefix)) {
            let path = format!("{prefix}{file}.rs");
            let excused = NO_SUBJECT.iter().any(|&(excused, _)| excused == path);
            let found = declared.contains(&*path);
            let empty = public(&source(&path)).is_empty();
            let needless = excused && (found || empty);
            assert!(!needless, "{path} needs no excuse");
            assert!(
                excused || found || empty,
                "{path} has public functions, and no subject declares it: add one to \
                 verify/src/subjects/, or a reason to NO_SUBJECT"
            );
        }
    }
}

#[test]
fn every_subject_declares_its_operations_and_belongs_to_what_there_is() {
    let subjects = registry::reveille().subjects;
    let names: BTreeSet<String> = subjects.iter().map(|s| s.name.clone()).collect();
    for subject in subjects {
        match subject.surface {
            Surface::As(other) => assert!(names.contains(other) && other != subject.name),
            Surface::Other(why) => assert!(!why.is_empty()),
            Surface::Sources(sources) => assert!(!sources.is_empty()),
        }
    }
}

#[test]
fn every_public_operation_is_in_a_program_or_says_why_not() {
    for (subject, sources) in with_sources() {
        let performed = operations(&subject);
        for Source { path, absent } in sources {
            let excused: BTreeSet<&str> = absent.iter().map(|&(name, _)| name).collect();
            let forgotten: Vec<_> = public(&source(path))
                .into_iter()
                .filter(|name| !performed.contains(name) && !excused.contains(&**name))
                .collect();
            let name = &subject.name;
            assert_eq!(forgotten, [""; 0], "no program of {name} performs these");
        }
    }
}

#[test]
fn nothing_is_excused_that_is_not_there_or_is_performed() {
    for (subject, sources) in with_sources() {
        let (name, performed) = (&subject.name, operations(&subject));
        for Source { path, absent } in sources {
            let public = public(&source(path));
            for &(function, because) in *absent {
                assert!(public.contains(function), "{path} has no {function}");
                let in_programs = performed.contains(function);
                assert!(!in_programs, "{name}: {function} is in programs");
                if let Absent::SameAs(other) = because {
                    assert!(
                        performed.contains(other),
                        "{name}: {function} is said to be the same as {other}, which is in no \
                         program"
                    );
                }
            }
        }
    }
}
