//! The command line.

mod options;
mod request;
mod results;
mod terminal;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::{CommandFactory, FromArgMatches};
use serde_json::Value;

use crate::cli::options::Cli;
use crate::cli::request::{Request, Run};
use crate::cli::results::{JsonFile, Results};
use crate::cli::terminal::{Bar, Terminal};
use crate::registry::{self, Suite};
use crate::report::{Report, SpecimenReport, page};
use crate::run::dispatch::{self, Event, Prepare, Work};
use crate::run::entry::SpecimenEntry;
use crate::run::process::{self, Process};
use crate::run::token::Token;

/// Runs `cargo verify`, by the command line of the process.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // Cargo passes the name of the subcommand to an installed one.
    let installed = arguments.next_if(|first| first == "verify").is_some();
    if installed && own_suite() {
        let mut cargo = cargo();
        cargo.args(["test", "--release", "--test", TARGET, "--"]);
        return status_of(cargo.args(arguments));
    }
    if arguments.next_if(|first| first == "audit").is_some() {
        return audit(arguments);
    }
    registry::reveille().run(arguments)
}

/// The name of the test target that is a crate's own suite.
const TARGET: &str = "verify";

/// Returns `true` if the package in the current directory has a suite of its own.
fn own_suite() -> bool {
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = metadata.stderr(Stdio::null()).output();
    let json = output
        .ok()
        .and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    let here = std::env::current_dir().unwrap_or_default();
    let packages = json.as_ref().and_then(|json| json["packages"].as_array());
    packages.into_iter().flatten().any(|package| {
        let manifest = package["manifest_path"].as_str().map(Path::new);
        let folder = manifest.and_then(Path::parent);
        let targets = package["targets"].as_array().into_iter().flatten();
        let is_suite = |target: &Value| target["name"] == TARGET && target["kind"][0] == "test";
        folder.is_some_and(|folder| here.starts_with(folder)) && targets.into_iter().any(is_suite)
    })
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command, and returns its exit status.
fn status_of(command: &mut Command) -> ExitCode {
    match command.status().map(|status| status.code()) {
        Ok(Some(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Ok(None) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the audit of public crates. It is a workspace of its own, so that only the audit
/// compiles these crates.
fn audit(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/Cargo.toml");
    if !manifest.exists() {
        eprintln!(
            "error: the audit needs the repository: there is no {}",
            manifest.display()
        );
        return ExitCode::from(2);
    }
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--release", "--manifest-path"]);
    status_of(cargo.arg(manifest).arg("--").args(arguments))
}

impl Suite {
    /// Runs what the command line of the process asks for, and returns the exit status
    /// of the process.
    #[must_use]
    pub fn main(self) -> ExitCode {
        self.run(std::env::args_os().skip(1))
    }

    fn run(&self, arguments: impl Iterator<Item = OsString>) -> ExitCode {
        let command = Cli::command().bin_name(self.command.clone());
        let name = std::iter::once(OsString::from("verify"));
        let cli = Cli::from_arg_matches(&command.get_matches_from(name.chain(arguments)));
        let cli = cli.unwrap_or_else(|error| error.exit());
        match run(&cli, self) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(sentence) => {
                eprintln!("error: {sentence}");
                ExitCode::from(2)
            }
        }
    }
}

fn run(cli: &Cli, suite: &Suite) -> Result<bool, String> {
    let terminal = Terminal::new(cli.color);
    if let Some(token) = &cli.replay {
        return replay(token, suite, terminal);
    }
    let begun = Instant::now();
    let results = if cli.merge.is_empty() {
        let request = Request::of(cli, suite)?;
        if cli.list {
            list(&request, terminal);
            return Ok(true);
        }
        let runs = request.runs();
        if cli.worker {
            let prepare: Vec<_> = runs.iter().map(|run| move || run.prepare()).collect();
            return process::serve(&refer(&prepare)).map(|()| true);
        }
        if runs.is_empty() {
            return Err(
                "nothing was run: these subjects do not run under these engines".to_owned(),
            );
        }
        run_all(cli, suite, &request, &runs, terminal)?
    } else {
        let shards = cli.merge.iter().map(|path| Results::read(path));
        let results = Results::merge(shards.collect::<Result<_, _>>()?)?;
        if let Some(path) = &cli.json {
            JsonFile::new(path)?.write(&results)?;
        }
        results
    };
    if let Some(path) = &cli.junit {
        results.write_junit(path, &suite.command)?;
    }
    if let Some(path) = &cli.html {
        let page = page::page(
            &suite.command,
            &results.profile,
            &results.results,
            &results.specimens,
        );
        results::write(path, page.as_bytes())?;
    }

    terminal.say("");
    if !results.results.is_empty() {
        terminal.say(terminal.results(&results.results));
    }
    if !results.specimens.is_empty() {
        terminal.say(terminal.specimens(&results.specimens));
    }
    let costs = costs(&results.results);
    if !costs.is_empty() {
        terminal.say(costs);
    }
    let summary = Summary::of(&results);
    terminal.say(format_args!(
        "{}, in {:.1} s ({} profile)",
        summary.text,
        begun.elapsed().as_secs_f64(),
        results.profile,
    ));
    Ok(summary.good)
}

/// Returns what an execution costs in each mode, in a line.
fn costs(reports: &[Report]) -> String {
    let mut modes: Vec<(String, u64, Duration)> = Vec::new();
    for report in reports.iter().filter(|report| report.executions > 0) {
        let name = format!("{}/{}", report.engine, report.mode);
        let known = modes.iter().position(|(known, ..)| *known == name);
        let known = known.unwrap_or_else(|| {
            modes.push((name, 0, Duration::ZERO));
            modes.len() - 1
        });
        modes[known].1 += report.executions;
        modes[known].2 += report.seconds;
    }
    let costs = modes.into_iter().map(|(name, executions, time)| {
        let each = time.as_secs_f64() * 1e6 / executions as f64;
        format!("{name} {each:.1}")
    });
    let costs: Vec<_> = costs.collect();
    match costs.is_empty() {
        true => String::new(),
        false => format!("µs an execution: {}", costs.join(", ")),
    }
}

/// How many runs hold, and how many specimens are as expected.
struct Summary {
    text: String,
    good: bool,
}

impl Summary {
    fn of(results: &Results) -> Self {
        let Results {
            results: runs,
            specimens,
            ..
        } = results;
        let held = runs.iter().filter(|report| results.holds(report)).count();
        let counted = |bugs: bool, what: &str| {
            let all = specimens
                .iter()
                .filter(|report| report.expected.is_some() == bugs);
            let seen = all.clone().filter(|report| report.as_expected()).count();
            match all.count() {
                all if all == seen && all > 1 => (all, format!("all {all} {what}")),
                all => (all, format!("{seen} of {all} {what}")),
            }
        };
        let told = [
            (runs.len(), format!("{held} of {} runs hold", runs.len())),
            counted(true, "seeded bugs caught"),
            counted(false, "correct specimens pass"),
        ];
        let told = told.into_iter();
        let told: Vec<_> = told
            .filter_map(|(number, text)| (number > 0).then_some(text))
            .collect();
        Self {
            text: told.join(", "),
            good: held == runs.len() && specimens.iter().all(SpecimenReport::as_expected),
        }
    }
}

/// Runs everything in processes of this program, and prints the results.
fn run_all(
    cli: &Cli,
    suite: &Suite,
    request: &Request<'_>,
    runs: &[Run<'_>],
    terminal: Terminal,
) -> Result<Results, String> {
    let json = match &cli.json {
        Some(path) => Some(JsonFile::new(path)?),
        None => None,
    };
    let program = std::env::current_exe().map_err(|error| {
        format!("cannot find the program of this process to start workers: {error}")
    })?;
    let jobs = cli.jobs.map_or_else(dispatch::cores, NonZeroUsize::get);
    let workers = (0..jobs).map(|_| {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1)).arg("--worker");
        // The worker draws the failures, and has no terminal to ask for its width.
        if let Some(width) = terminal::width() {
            command.env("COLUMNS", width.to_string());
        }
        Process::new(command)
    });
    let prepare: Vec<_> = runs.iter().map(|run| || run.prepare()).collect();
    let bar = Bar::new();
    let mut all = Results {
        profile: request.profile.to_string(),
        interrupted: true,
        shard: request.shard,
        results: Vec::new(),
        specimens: Vec::new(),
    };
    dispatch::dispatch(
        refer(&prepare),
        workers.collect(),
        &mut |event| match event {
            Event::Underway(report, programs) => bar.show(report, programs),
            Event::Ended(number, report) => {
                let run = &runs[number];
                let mut shown = run.shown;
                match run.specimen {
                    None => {
                        if !all.is_empty_part(report) {
                            bar.suspend(|| terminal.say_report(report));
                        }
                        all.results.push(report.clone());
                    }
                    Some(of) => {
                        let report = specimen(of, report.clone());
                        shown |= !report.as_expected();
                        all.specimens.push(report);
                    }
                }
                if shown {
                    bar.suspend(|| {
                        let failures = report.failures.iter();
                        failures.for_each(|it| terminal.say_failure(it, &suite.command));
                    });
                }
                if let Some(json) = &json {
                    // A failure to write is reported at the end.
                    let _ = json.write(&all);
                }
            }
        },
    );
    bar.clear();
    all.interrupted = false;
    if let Some(json) = &json {
        json.write(&all)?;
    }
    Ok(all)
}

fn refer<F: Fn() -> Box<dyn Work> + Sync>(prepare: &[F]) -> Vec<Prepare<'_>> {
    prepare.iter().map(|prepare| prepare as _).collect()
}

/// Returns the report of a specimen.
fn specimen(specimen: &SpecimenEntry, report: Report) -> SpecimenReport {
    let counterexample = report.failures.into_iter().next();
    SpecimenReport {
        name: specimen.named.name.clone(),
        expected: specimen.expected,
        found: counterexample.as_ref().map(|failure| failure.class),
        program: match &counterexample {
            Some(failure) => failure.program.clone(),
            None => format!("{} programs", report.programs),
        },
        executions: report.executions,
        seconds: report.seconds,
        counterexample,
    }
}

fn list(request: &Request<'_>, terminal: Terminal) {
    for &named in &request.subjects {
        terminal.say(format_args!("{}: {}", named.name, named.about));
        for (role, ops) in named.entry.roles() {
            terminal.say(format_args!("    {role}: {}", ops.join(", ")));
        }
        terminal.say(format_args!("    operations: {}", named.surface));
        for &mode in &request.modes {
            for plan in request.plans(named, mode) {
                let mode = format!("{}/{}", mode.engine().name(), mode.name());
                terminal.say(format_args!("    {mode:<20} {}", plan.text()));
            }
        }
    }
    terminal.say("specimens:");
    for specimen in &request.specimens {
        let must = match specimen.expected {
            Some(class) => format!("must be caught as {class}"),
            None => "must pass".to_owned(),
        };
        terminal.say(format_args!("    {:<32} {must}", specimen.named.name));
    }
}

fn replay(text: &str, suite: &Suite, terminal: Terminal) -> Result<bool, String> {
    let token = Token::parse(text)?;
    let named = suite.find(&token.subject).ok_or_else(|| {
        format!(
            "there is no subject `{}`, which the replay token names",
            token.subject
        )
    })?;
    let failure = named.entry.replay(&token)?;
    terminal.say_failure(&failure, &suite.command);
    Ok(false)
}
