//! The verifier is built in layers. A file uses only files of its own layer and of
//! those below, and no two files use each other, directly or in a ring.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The layers, from the bottom to the top.
const LAYERS: [&str; 14] = [
    "subject",
    "program",
    "execution",
    "judge",
    "report",
    "engine",
    "model",
    "run",
    "soak",
    "registered",
    "subjects",
    "specimens",
    "check",
    "registry",
];

/// The files above all layers.
const TOP: [&str; 3] = ["cli", "lib", "main"];

/// Returns each file as a path of modules, with the modules that its `use` lines name.
fn modules() -> BTreeMap<String, BTreeSet<String>> {
    fn walk(folder: &Path, module: &str, all: &mut BTreeMap<String, BTreeSet<String>>) {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let inner = match module {
                "" => name.clone(),
                _ => format!("{module}::{name}"),
            };
            if path.is_dir() {
                if name != "tests" {
                    walk(&path, &inner, all);
                }
                continue;
            }
            let module = match &*name {
                "mod" => module.to_owned(),
                _ => inner,
            };
            let text = std::fs::read_to_string(&path).unwrap();
            all.insert(module.clone(), used(&module, &text));
        }
    }
    let mut all = BTreeMap::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        "",
        &mut all,
    );
    all
}

/// Returns every path in the text of a module that leads to another module: from
/// `crate` on, from its parent, or to a child of its own.
fn used(module: &str, text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let (parent, _) = module.rsplit_once("::").unwrap_or_default();
    let children: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("pub(crate) ").strip_prefix("mod "))
        .filter_map(|line| line.strip_suffix(';'))
        .collect();
    for line in text.lines() {
        let line = line.trim_start();
        // What a macro expands to uses the public names of the crate.
        if line.starts_with("//") || line.contains("$crate::") {
            continue;
        }
        if line.starts_with("use super::") && line != "use super::*;" {
            used.insert(parent.to_owned());
        }
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let calls = |child: &str| line.contains(&format!("{child}::"));
        let named = words.filter(|word| children.contains(word) && calls(word));
        used.extend(named.map(|child| format!("{module}::{child}")));
        for path in line.split("crate::").skip(1) {
            let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path = &path[..end.unwrap_or(path.len())];
            let braces = line.split_once("crate::{").map(|(_, names)| names);
            match braces {
                Some(names) => {
                    let names = names.trim_end_matches("};").split(", ");
                    used.extend(names.map(|name| name.split("::").next().unwrap().to_owned()));
                }
                None => drop(used.insert(path.trim_end_matches(':').to_owned())),
            }
        }
    }
    used
}

/// Returns the file of a path, which is the longest module with which the path begins.
fn file<'a>(all: &'a BTreeMap<String, BTreeSet<String>>, path: &str) -> Option<&'a str> {
    let mut path = path;
    loop {
        if let Some((module, _)) = all.get_key_value(path) {
            return Some(module);
        }
        path = path.rsplit_once("::")?.0;
    }
}

#[test]
fn every_file_uses_only_its_own_layer_and_those_below() {
    let layer = |module: &str| {
        let first = module.split("::").next().unwrap();
        let rank = LAYERS.iter().position(|&layer| layer == first);
        rank.or_else(|| TOP.contains(&first).then_some(LAYERS.len()))
            .unwrap_or_else(|| panic!("{first} is in no layer"))
    };
    let all = modules();
    assert!(all.len() > 40, "{}", all.len());
    for (module, used) in &all {
        for path in used {
            let below = layer(path) <= layer(module);
            assert!(below, "{module} uses {path}, of a layer above it");
        }
    }
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let all = modules();
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, used) in &all {
        let files = used.iter().filter_map(|path| file(&all, path));
        let files = files.filter(|&file| file != module).collect();
        graph.insert(module, files);
    }
    let edges: usize = graph.values().map(BTreeSet::len).sum();
    assert!(edges > 100, "{edges}");
    // A file that uses no remaining file can be removed. The files that cannot be
    // removed are in a circle, or above one.
    loop {
        let free: Vec<&str> = graph
            .iter()
            .filter(|(_, used)| used.iter().all(|file| !graph.contains_key(file)))
            .map(|(module, _)| *module)
            .collect();
        if free.is_empty() {
            break;
        }
        free.into_iter()
            .for_each(|module| drop(graph.remove(module)));
    }
    assert!(graph.is_empty(), "in a circle, or above one: {graph:?}");
}
