//! `cargo ratios`: measures every contender in one run, as ratios to the fastest.
//!
//! On a shared machine, times drift, and a time alone says little. Two times that are
//! taken at the same moment still compare. So the contenders of a group take turns in
//! many short rounds. A ratio is computed within each round, and the median over the
//! rounds is printed.

mod counting;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use reveille_benches::{Contender, Kind, contenders};

use self::counting::{Allocated, counted};
use self::report::{Row, Run};

/// Times Reveille's primitives beside their peers and prints the ratios.
#[derive(Debug, Parser)]
#[command(name = "cargo ratios")]
struct Options {
    /// Only groups whose name contains this (`oneshot`, `oneshot/ready`, ...).
    group: Option<String>,

    /// How many turns each contender takes. With several threads it is a tenth of that.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long a turn is, in microseconds. With several threads it is 200 times that.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turn: u32,

    /// Also write the ratios to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Also write the ratios to a file, as a table in Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Also write the ratios to a file, as a page for a browser.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn main() {
    let options = Options::parse();
    let mut entrants: Vec<Entrant> = contenders()
        .into_iter()
        .filter(|contender| {
            options
                .group
                .as_ref()
                .is_none_or(|part| contender.group.contains(part))
        })
        .map(|contender| Entrant::new(contender, options.turn_of(&contender)))
        .collect();
    if entrants.is_empty() {
        let mut groups: Vec<_> = contenders().iter().map(|one| one.group).collect();
        groups.dedup();
        eprintln!(
            "no group has this in its name; the groups are: {}",
            groups.join(", ")
        );
        std::process::exit(2);
    }
    for group in entrants.chunk_by_mut(Entrant::same_group) {
        for _ in 0..options.rounds_of(&group[0].contender) {
            for entrant in &mut *group {
                entrant.take_turn();
            }
        }
    }
    let run = Run {
        system: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        version: env!("CARGO_PKG_VERSION"),
        method: format!(
            "Medians of {} interleaved rounds of {} µs; with several threads, of {} of {} µs. A \
             ratio is a contender's time over that of the fastest in the same round; ± is half \
             the range of its middle half. Rows in brackets are a part of the work alone, and \
             take no part in the comparison.",
            options.rounds,
            options.turn,
            options.rounds.div_ceil(ROUNDS_WHERE_THREADS_MEET),
            options.turn * TURN_WHERE_THREADS_MEET,
        ),
        rows: rows(&entrants),
    };
    println!("{}", report::table(&run));
    let files = [
        (&options.json, report::json as fn(&Run) -> String),
        (&options.markdown, report::markdown),
        (&options.html, report::html),
    ];
    for (path, text) in files {
        if let Some(path) = path
            && let Err(error) = std::fs::write(path, text(&run))
        {
            eprintln!("error: cannot write to {}: {error}", path.display());
            std::process::exit(2);
        }
    }
}

/// The divisor of the number of rounds, if a contender has several threads.
const ROUNDS_WHERE_THREADS_MEET: u32 = 10;

/// In a turn of 100 µs, one thread ends before the other has begun. In a turn of some
/// milliseconds, the system may still run both on one core.
const TURN_WHERE_THREADS_MEET: u32 = 200;

impl Options {
    fn rounds_of(&self, contender: &Contender) -> u32 {
        match contender.threads {
            true => self.rounds.div_ceil(ROUNDS_WHERE_THREADS_MEET),
            false => self.rounds,
        }
    }

    fn turn_of(&self, contender: &Contender) -> Duration {
        let turn = Duration::from_micros(self.turn.into());
        match contender.threads {
            true => turn * TURN_WHERE_THREADS_MEET,
            false => turn,
        }
    }
}

/// A contender, and its measurements.
struct Entrant {
    contender: Contender,
    /// The number of operations in a turn.
    iterations: u64,
    /// Nanoseconds per operation, with a sample for each round.
    samples: Vec<f64>,
    /// The allocations of `iterations` operations.
    allocated: Allocated,
}

impl Entrant {
    /// Measures how many operations fill a turn, and what they allocate.
    fn new(contender: Contender, turn: Duration) -> Self {
        let mut iterations = 64;
        while time(contender.run, iterations) < turn {
            iterations *= 2;
        }
        // The last doubling has warmed the contender up. This time counts.
        let elapsed = time(contender.run, iterations);
        let fitting = iterations as f64 * turn.as_secs_f64() / elapsed.as_secs_f64();
        let iterations = (fitting as u64).max(1);
        Self {
            contender,
            iterations,
            samples: Vec::new(),
            allocated: counted(|| (contender.run)(iterations)),
        }
    }

    fn same_group(&self, other: &Self) -> bool {
        self.contender.group == other.contender.group
    }

    fn take_turn(&mut self) {
        let elapsed = time(self.contender.run, self.iterations);
        self.samples
            .push(elapsed.as_nanos() as f64 / self.iterations as f64);
    }

    /// Returns the quartiles of the ratios of this entrant's time to another's, by round.
    fn ratio_to(&self, other: &Self) -> Quartiles {
        Quartiles::of(
            self.samples
                .iter()
                .zip(&other.samples)
                .map(|(mine, theirs)| mine / theirs),
        )
    }
}

fn time(run: fn(u64), iterations: u64) -> Duration {
    let start = Instant::now();
    run(iterations);
    start.elapsed()
}

struct Quartiles {
    low: f64,
    median: f64,
    high: f64,
}

impl Quartiles {
    /// Returns the quartiles of `values`, of which there must be at least one.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |quarters: usize| values[(values.len() - 1) * quarters / 4];
        Self {
            low: at(1),
            median: at(2),
            high: at(3),
        }
    }
}

/// Returns the fastest entrant of some kinds, by ratios to one and the same entrant. The
/// times themselves do not compare, because the machine may have changed its speed.
fn fastest(group: &[Entrant], counts: impl Fn(Kind) -> bool) -> &Entrant {
    let ratio = |entrant: &Entrant| entrant.ratio_to(&group[0]).median;
    group
        .iter()
        .filter(|entrant| counts(entrant.contender.kind))
        .min_by(|a, b| ratio(a).total_cmp(&ratio(b)))
        .expect("the tests of the library check that every group has both sides")
}

/// Returns a row for each entrant.
fn rows(entrants: &[Entrant]) -> Vec<Row> {
    let groups = entrants.chunk_by(Entrant::same_group);
    groups
        .flat_map(|group| {
            let fastest = fastest(group, |kind| kind != Kind::Floor);
            let fastest_peer = self::fastest(group, |kind| kind == Kind::Peer);
            group
                .iter()
                .map(|entrant| row(entrant, fastest, fastest_peer))
        })
        .collect()
}

fn row(entrant: &Entrant, fastest: &Entrant, fastest_peer: &Entrant) -> Row {
    let Contender {
        group, name, kind, ..
    } = entrant.contender;
    let time = Quartiles::of(entrant.samples.iter().copied());
    let ratio = entrant.ratio_to(fastest);
    let per_operation = |sum: u64| sum as f64 / entrant.iterations as f64;
    Row {
        group,
        contender: name,
        kind: match kind {
            Kind::Floor => "part",
            Kind::Reveille => "reveille",
            Kind::Peer => "peer",
        },
        nanoseconds: time.median,
        to_fastest: ratio.median,
        spread: (ratio.high - ratio.low) / 2.0,
        to_fastest_peer: entrant.ratio_to(fastest_peer).median,
        allocations: per_operation(entrant.allocated.allocations),
        bytes: per_operation(entrant.allocated.bytes),
    }
}
