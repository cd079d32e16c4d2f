//! The public types of the crates, as their sources declare them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The types without a row, and why.
const EXCEPT: [(&str, &str); 9] = [
    (
        "reveille::DefaultHashBuilder",
        "an alias of `std::hash::RandomState`",
    ),
    (
        "reveille::backend::LoomAtomicWord",
        "loom's threads run on one thread",
    ),
    (
        "reveille::backend::LoomCell",
        "loom's threads run on one thread",
    ),
    (
        "reveille::backend::LoomLock",
        "loom's threads run on one thread",
    ),
    (
        "reveille::backend::LoomPark",
        "loom's threads run on one thread",
    ),
    (
        "reveille::backend::ShuttleLock",
        "shuttle's tasks run on one thread",
    ),
    (
        "reveille::backend::ShuttlePark",
        "shuttle's tasks run on one thread",
    ),
    ("reveille::raw::Outcome", "a `Result<T, Failure>`"),
    (
        "reveille_executor::net::Addresses",
        "hidden: what a trait of `net` returns to it",
    ),
];

/// The types that a private module declares and a public one exports.
const EXPORTED: [(&str, &str); 4] = [
    ("reveille::Compute", "reveille::once_map::Compute"),
    ("reveille::TryCompute", "reveille::once_map::TryCompute"),
    (
        "reveille::CallerLocation",
        "reveille::protocol::CallerLocation",
    ),
    ("reveille::Wait", "reveille::raw::Wait"),
];

/// Returns the public types of both crates: the crate, the public module under its root,
/// and the name.
pub(crate) fn public_types() -> BTreeSet<String> {
    let mut types = BTreeSet::new();
    for (name, root) in [
        ("reveille", "../primitives/src"),
        ("reveille_executor", "src"),
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
        let library = fs::read_to_string(root.join("lib.rs")).expect("the crate's root");
        let public = library
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
            .map(str::to_owned)
            .collect::<BTreeSet<_>>();
        visit(&root, &mut |file| {
            let within = file.strip_prefix(&root).expect("it was found there");
            let first = within.components().next().expect("a file").as_os_str();
            let module = first
                .to_str()
                .expect("a name")
                .trim_end_matches(".rs")
                .to_owned();
            let module = if public.contains(&module) {
                format!("{module}::")
            } else {
                String::new()
            };
            let text = fs::read_to_string(file).expect("a source file");
            for declared in declared(&text) {
                types.insert(format!("{name}::{module}{declared}"));
            }
        });
    }
    for (except, why) in EXCEPT {
        assert!(
            types.remove(except),
            "{except} ({why}) is not a public type any more"
        );
    }
    for (declared, exported) in EXPORTED {
        assert!(
            types.remove(declared),
            "{declared} is not declared any more"
        );
        types.insert(exported.to_owned());
    }
    assert!(
        types.len() > 100,
        "only {} public types were found",
        types.len()
    );
    types
}

fn visit(folder: &Path, f: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            visit(&path, f);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            f(&path);
        }
    }
}

/// Returns the names of the types that a file declares, including those that the macros
/// for the futures of guards and for streams declare.
fn declared(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_macro = false;
    for line in text.lines() {
        let line = line.trim_start();
        in_macro = (in_macro && line != "}") || line == "guard_future! {";
        let rest = [
            "pub struct ",
            "pub enum ",
            "pub union ",
            "pub type ",
            "stream!(",
        ]
        .iter()
        .find_map(|item| line.strip_prefix(item))
        .or_else(|| (in_macro && line.starts_with(char::is_uppercase)).then_some(line));
        let end = |rest: &str| rest.find(|char: char| !char.is_alphanumeric() && char != '_');
        if let Some(rest) = rest
            && rest.starts_with(char::is_uppercase)
            && end(rest).is_none_or(|end| !in_macro || rest[end..].starts_with('['))
        {
            names.push(rest[..end(rest).unwrap_or(rest.len())].to_owned());
        }
    }
    names
}
