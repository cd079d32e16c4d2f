//! The audit: what the verifier finds in the primitives of public crates.
//!
//! ```text
//! cargo verify audit                    the table, and each finding
//! cargo verify audit --markdown FILE    also the page of the documentation
//! cargo verify audit tokio/mpsc         one subject, with all options of the command
//! ```
//!
//! Nothing is instrumented. The crates are run by the sequential engine, which runs the
//! polls of a program in every order, with panicking wakers as programs of their own.
//! So what a poll does between two of its own steps is not explored: a crate without a
//! finding has none within these bounds.
//!
//! A finding counts only if it is in [`findings::KNOWN`], with a test in
//! `tests/findings.rs` that was written by hand and shows it without the verifier.
//! Anything else that fails is a failure of the audit, as is a finding that is no longer
//! found.

#![forbid(unsafe_code)]

mod crates;
mod findings;
mod kinds;
mod report;
mod suite;
mod traits;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => report::audit(None),
        [option, file] if option == "--markdown" => report::audit(Some(file.as_ref())),
        _ => suite::suite().main(),
    }
}
