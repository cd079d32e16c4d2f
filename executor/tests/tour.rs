//! The tour names each example, and each output that it quotes is in the example.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

const TOUR: &str = include_str!("../src/tour.md");

/// Returns the name and the source of each example.
fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            (name.to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect()
}

#[test]
fn each_example_is_in_the_tour_and_tested() {
    const MANIFEST: &str = include_str!("../Cargo.toml");
    for (name, source) in examples() {
        assert!(TOUR.contains(&format!("`{name}`")), "{name} is not in it");
        let tested = format!("name = \"{name}\"\ntest = true");
        assert!(MANIFEST.contains(&tested), "{name} is not `test = true`");
        assert!(source.contains("#[test]"), "{name} has no test");
    }
}

/// An output belongs to the first example of its section.
#[test]
fn the_lines_that_the_tour_quotes_are_in_the_example() {
    let examples = examples();
    let mut quoted = 0;
    for section in TOUR.split("\n# ").skip(1) {
        let named = |name: &str| section.find(&format!("`{name}`"));
        let first = examples
            .iter()
            .filter_map(|(name, source)| Some((named(name)?, source)))
            .min_by_key(|&(place, _)| place);
        let (_, source) = first.expect("each section has an example");
        for block in section.split("```text\n").skip(1) {
            let (lines, _) = block.split_once("```").expect("the block ends");
            for line in lines.lines() {
                assert!(source.contains(line), "the example does not print: {line}");
                quoted += 1;
            }
        }
    }
    assert!(quoted > 0, "no output is quoted");
}
