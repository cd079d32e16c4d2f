//! What the compiler reports for the crate without features, which has no dependency
//! and no `std`, and for programs that it must refuse.
//!
//! The compiler is called directly. A `compile_fail` doctest passes on a stable
//! toolchain whatever the error is, even a typing error, and recorded compiler output
//! changes from release to release. Here each program states the error with which it
//! must be refused. It is also compiled without the lines that cause the error, which
//! must succeed.

#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the compiler of the cargo that runs the tests.
fn rustc() -> Command {
    let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    rustc.args(["--edition", "2024", "--error-format", "short"]);
    rustc
}

fn outputs() -> PathBuf {
    let outputs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustc");
    fs::create_dir_all(&outputs).expect("the target directory can be written");
    outputs
}

/// Compiles the crate without features, once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = outputs().join("libreveille.rlib");
        let compiled = rustc()
            .args(["--crate-name", "reveille", "--crate-type", "rlib"])
            .args(["--check-cfg", "cfg(loom, docsrs, test)"])
            .args([
                "--check-cfg",
                r#"cfg(feature, values("std", "locations", "caller-locations", "model", "loom", "shuttle", "futures-core"))"#,
            ])
            .args(["--deny", "warnings"])
            .arg("-o")
            .arg(&library)
            .arg(Path::new(MANIFEST).join("src/lib.rs"))
            .output()
            .expect("rustc stands beside cargo");
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "without features: {errors}");
        library
    })
}

/// Compiles a program against the crate. Returns what the compiler printed if it
/// refuses it.
fn compile(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let compiled = rustc()
        .args(["--cap-lints", "allow", "--check-cfg", "cfg(refused)"])
        .args(arguments)
        .arg("--extern")
        .arg(format!("reveille={}", library().display()))
        .arg(program)
        .output()
        .expect("rustc stands beside cargo");
    if compiled.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&compiled.stderr).into_owned())
    }
}

#[test]
fn without_features_the_default_backend_spins_and_works() {
    let program = Path::new(MANIFEST).join("tests/rustc/without_features.rs");
    let binary = outputs().join("without_features");
    let arguments = [
        "-o",
        binary.to_str().expect("a path of the target directory"),
    ];
    compile(&program, &arguments).unwrap();
    let run = Command::new(&binary).output().expect("it was compiled");
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{printed}");
}

/// Returns the codes of the errors printed: the code of each line
/// `file:1:2: error[E0000]: …`, and `lifetime` for an error without a code, as errors
/// of lifetimes are.
fn codes(errors: &str) -> BTreeSet<&str> {
    errors
        .lines()
        .filter_map(|line| line.split_once(": error")?.1.split_once(": "))
        .map(|(code, message)| match code.trim_matches(['[', ']']) {
            "" if message.starts_with("lifetime") => "lifetime",
            "" => message,
            code => code,
        })
        .collect()
}

#[test]
fn each_program_is_refused_for_the_reason_it_says() {
    let programs = Path::new(MANIFEST).join("tests/rustc/refused");
    let outputs = outputs();
    let outputs = outputs.to_str().expect("a path of the target directory");
    let mut tried = 0;
    for program in fs::read_dir(programs).expect("the programs are there") {
        let program = program.expect("the programs are there").path();
        let name = program.file_stem().expect("a program").to_string_lossy();
        let text = fs::read_to_string(&program).expect("a program");
        let expected = text
            .lines()
            .find_map(|line| line.strip_prefix("// error: "))
            .unwrap_or_else(|| panic!("{name} does not say for what it is refused"));
        let expected = expected.split(", ").collect::<BTreeSet<_>>();

        let arguments = ["--emit", "metadata", "--out-dir", outputs];
        if let Err(errors) = compile(&program, &arguments) {
            panic!("{name} is refused for something else: {errors}");
        }
        let Err(errors) = compile(&program, &[&arguments[..], &["--cfg", "refused"]].concat())
        else {
            panic!("{name} is not refused");
        };
        assert_eq!(codes(&errors), expected, "{name}: {errors}");
        tried += 1;
    }
    assert!(tried >= 10, "only {tried} programs were found");
}
