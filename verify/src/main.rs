//! `cargo verify`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    reveille_verify::cli::main()
}
