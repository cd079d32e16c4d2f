//! The options of the command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;

use crate::cli::terminal::When;
use crate::run::Shard;

/// Explores every interleaving of every small program over a primitive, and
/// shows that no wake-up is lost, no stale waker is called and no cancellation
/// swallows a result.
///
/// Without arguments it runs every subject under every engine, and then the
/// specimens, which are primitives broken on purpose that must be caught. The exit
/// status is 0 if every subject holds and every specimen is as expected, 1 if not,
/// and 2 if the command is not valid.
///
/// `cargo verify audit` runs the primitives of public crates, in the repository only.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct Cli {
    /// The names of subjects, of specimens, or of the groups `time` and `executor`, as
    /// `--list` prints them [default: all]
    #[arg(value_name = "SUBJECT")]
    pub(super) subjects: Vec<String>,

    /// Run subjects only under this engine: sequential, loom, fibers or stress
    /// (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(super) engine: Vec<String>,

    /// How far to go: quick, full or deep
    #[arg(long, value_name = "NAME", default_value = "quick")]
    pub(super) profile: String,

    /// Run only the specimens, those of the given subjects if there are any, each
    /// under the engine that must catch it
    #[arg(long)]
    pub(super) specimens: bool,

    /// Run one execution again, and draw it
    #[arg(long, value_name = "TOKEN")]
    pub(super) replay: Option<String>,

    /// The number of processes to run side by side [default: one for each core]
    #[arg(long, short, value_name = "NUMBER")]
    pub(super) jobs: Option<NonZeroUsize>,

    /// Serve another process of this program that has the same arguments
    #[arg(long, hide = true)]
    pub(super) worker: bool,

    /// Also write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Also write the results to a file, as a JUnit report
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,

    /// Also write the results to a file, as a page for a browser
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// Run programs of this many participants only
    #[arg(long, value_name = "NUMBER", value_parser = size)]
    pub(super) participants: Option<usize>,

    /// Run programs with at most this many operations of each participant
    #[arg(long, value_name = "NUMBER", value_parser = size)]
    pub(super) operations: Option<usize>,

    /// Run no program with a waker that panics
    #[arg(long)]
    pub(super) no_panics: bool,

    /// Run only this program, such as `send/recv.cancel`
    #[arg(long, value_name = "PROGRAM")]
    pub(super) program: Option<String>,

    /// Go on after a failure, and report the smallest program of each class
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Run only a part of the programs, such as `1/3`, the first of three
    #[arg(long, value_name = "PART", value_parser = shard)]
    pub(super) shard: Option<Shard>,

    /// Merge the files that `--json` wrote for the shards of a run, and run nothing
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["subjects", "shard"])]
    pub(super) merge: Vec<PathBuf>,

    /// Whether the output is coloured
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: When,

    /// List the subjects, their operations, the specimens and the bounds
    #[arg(long)]
    pub(super) list: bool,
}

/// Parses a number of participants or operations.
fn size(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=16).contains(number));
    number.ok_or_else(|| "a number from 1 to 16 is needed".to_owned())
}

/// Parses a shard, such as `2/3`.
///
/// # Errors
///
/// Returns a sentence if the text is not a shard.
fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text
        .split_once('/')
        .and_then(|(index, of)| Some((index.parse::<usize>().ok()?, of.parse::<usize>().ok()?)));
    match numbers {
        Some((index, of)) if index >= 1 && index <= of => Ok(Shard {
            index: index - 1,
            of,
        }),
        _ => Err("a shard is its number and the number of all, from 1/3 to 3/3".to_owned()),
    }
}
