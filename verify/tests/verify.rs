//! `cargo verify` as a test target: it fails if a subject does not hold.
//!
//! `cargo mutants` runs it beside the tests, and a mutant that it fails on is caught.

use std::process::ExitCode;

fn main() -> ExitCode {
    reveille_verify::cli::main()
}
