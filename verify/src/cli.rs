//! The command line.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::registry;
use crate::report::table::columns;
use crate::report::{Counterexample, Report, SpecimenReport};
use crate::run::dispatch::{self, Event, Prepare, Work};
use crate::run::entry::{SpecimenEntry, SubjectEntry};
use crate::run::process::{self, Process};
use crate::run::token::Token;
use crate::subject::plan::{Engine, Mode, Plan, Profile};

/// Explores every interleaving of every small program over a primitive, and
/// shows that no wake-up is lost, no stale waker is called and no cancellation
/// swallows a result.
///
/// Without arguments it runs every subject under every engine, and then the
/// specimens, which are primitives broken on purpose that must be caught. The exit
/// status is 0 if every subject holds and every specimen is as expected, 1 if not,
/// and 2 if the command is not valid.
#[derive(Debug, Parser)]
#[command(name = "cargo verify", disable_version_flag = true)]
struct Cli {
    /// The names of subjects, of specimens, or of the groups `time` and `executor`, as
    /// `--list` prints them [default: all]
    #[arg(value_name = "SUBJECT")]
    subjects: Vec<String>,

    /// Run subjects only under this engine: sequential, loom, fibers or stress
    /// (repeatable)
    #[arg(long, value_name = "NAME")]
    engine: Vec<String>,

    /// How far to go: quick, full or deep
    #[arg(long, value_name = "NAME", default_value = "quick")]
    profile: String,

    /// Run only the specimens, those of the given subjects if there are any, each
    /// under the engine that must catch it
    #[arg(long)]
    specimens: bool,

    /// Run one execution again, and draw it
    #[arg(long, value_name = "TOKEN")]
    replay: Option<String>,

    /// The number of processes to run side by side [default: one for each core]
    #[arg(long, short, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Serve another process of this program that has the same arguments
    #[arg(long, hide = true)]
    worker: bool,

    /// Also write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// List the subjects, their operations, the specimens and the bounds
    #[arg(long)]
    list: bool,
}

/// What the command line asks for.
struct Request {
    subjects: Vec<SubjectEntry>,
    specimens: Vec<SpecimenEntry>,
    modes: Vec<Mode>,
    profile: Profile,
}

/// All results, for `--json`.
#[derive(Serialize)]
struct Results<'a> {
    profile: String,
    /// Whether the run ended early.
    interrupted: bool,
    results: &'a [Report],
    specimens: &'a [SpecimenReport],
}

/// The file of the results. It is replaced after each run by the results so far, which
/// are marked as interrupted until the last. The file is whole whenever the command is
/// stopped.
struct JsonFile {
    path: PathBuf,
    /// The file that is written before it replaces the other. It is `None` if the
    /// output is not a regular file, such as a pipe.
    partial: Option<PathBuf>,
    profile: Profile,
}

impl JsonFile {
    fn new(path: &Path, profile: Profile) -> Result<Self, String> {
        let special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let file = Self {
            path: path.to_owned(),
            partial: (!special).then(|| PathBuf::from(partial)),
            profile,
        };
        let opened = match &file.partial {
            Some(partial) => std::fs::File::create(partial),
            None => std::fs::File::options().write(true).open(path),
        };
        match opened {
            Ok(_) => Ok(file),
            Err(error) => Err(format!("cannot write to {}: {error}", path.display())),
        }
    }

    fn write(
        &self,
        results: &[Report],
        specimens: &[SpecimenReport],
        interrupted: bool,
    ) -> Result<(), String> {
        if interrupted && self.partial.is_none() {
            return Ok(());
        }
        let results = Results {
            profile: self.profile.to_string(),
            interrupted,
            results,
            specimens,
        };
        let written = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec_pretty(&results).map_err(std::io::Error::from)?;
            text.push(b'\n');
            match &self.partial {
                Some(partial) => {
                    std::fs::write(partial, text)?;
                    std::fs::rename(partial, &self.path)
                }
                None => std::fs::write(&self.path, text),
            }
        };
        written().map_err(|error| format!("cannot write the results: {error}"))
    }
}

/// Runs the command line of the process.
#[must_use]
pub fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<bool, String> {
    if let Some(token) = &cli.replay {
        return replay(token);
    }
    let request = Request::of(cli)?;
    if cli.list {
        list(&request);
        return Ok(true);
    }
    let runs = request.runs();
    if cli.worker {
        let prepare: Vec<_> = runs.iter().map(|run| move || run.prepare()).collect();
        return process::serve(&refer(&prepare)).map(|()| true);
    }
    if runs.is_empty() {
        return Err("nothing was run: these subjects do not run under these engines".to_owned());
    }
    let json = match &cli.json {
        Some(path) => Some(JsonFile::new(path, request.profile)?),
        None => None,
    };

    let begun = Instant::now();
    let jobs = cli.jobs.map_or_else(dispatch::cores, NonZeroUsize::get);
    let (results, specimens) = run_all(&runs, jobs, json.as_ref())?;
    say("");
    if !results.is_empty() {
        say(results_table(&results));
    }
    if !specimens.is_empty() {
        say(specimens_table(&specimens));
    }
    if let Some(json) = &json {
        json.write(&results, &specimens, false)?;
    }
    let held = results.iter().filter(|report| report.holds()).count();
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
        (
            results.len(),
            format!("{held} of {} runs hold", results.len()),
        ),
        counted(true, "seeded bugs caught"),
        counted(false, "correct specimens pass"),
    ];
    let told: Vec<_> = told
        .into_iter()
        .filter_map(|(number, text)| (number > 0).then_some(text))
        .collect();
    say(format_args!(
        "{}, in {:.1} s ({} profile)",
        told.join(", "),
        begun.elapsed().as_secs_f64(),
        request.profile,
    ));
    let as_expected = specimens.iter().all(SpecimenReport::as_expected);
    Ok(held == results.len() && as_expected)
}

impl Request {
    fn of(cli: &Cli) -> Result<Self, String> {
        let engines = cli
            .engine
            .iter()
            .map(|name| named("engine", name, &Engine::ALL, Engine::name))
            .collect::<Result<Vec<_>, _>>()?;
        let profile = named("profile", &cli.profile, &Profile::ALL, Profile::name)?;
        let all = cli.subjects.is_empty();
        let mut subjects = registry::subjects();
        let mut specimens = registry::specimens();
        let mut names: Vec<String> = Vec::new();
        for name in &cli.subjects {
            let group = registry::group(name);
            if group.is_empty() && registry::find(name).is_none() {
                return Err(format!(
                    "there is no subject `{name}`: `cargo verify --list` lists them"
                ));
            }
            names.push(name.clone());
            names.extend(group);
        }
        let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
        subjects.retain(|named| !cli.specimens && (all || wanted(&named.name)));
        // Specimens run if they are named, if `--specimens` is given, or if everything
        // runs.
        let everything = all && engines.is_empty();
        specimens.retain(|specimen_entry| {
            let name = &specimen_entry.named.name;
            let subject = name.split('/').next().unwrap_or_default();
            wanted(name) || (cli.specimens && (all || wanted(subject))) || everything
        });
        Ok(Self {
            subjects,
            specimens,
            modes: Mode::ALL
                .into_iter()
                .filter(|mode| engines.is_empty() || engines.contains(&mode.engine()))
                .collect(),
            profile,
        })
    }
}

/// Returns the value of this name.
fn named<T: Copy>(
    what: &str,
    name: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, String> {
    all.iter()
        .copied()
        .find(|&value| name_of(value) == name)
        .ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|&value| name_of(value)).collect();
            format!(
                "there is no {what} `{name}`: the {what}s are {}",
                names.join(", ")
            )
        })
}

/// A run that was asked for.
struct Run<'a> {
    named: &'a SubjectEntry,
    mode: Mode,
    plan: Plan,
    /// The specimen, if this is the run of one.
    specimen_entry: Option<&'a SpecimenEntry>,
    /// Whether its counterexample is printed.
    shown: bool,
}

impl Run<'_> {
    fn prepare(&self) -> Box<dyn Work> {
        let Self {
            named, mode, plan, ..
        } = self;
        named.entry.prepare(&named.name, *mode, plan)
    }
}

impl Request {
    /// Returns the runs in their order, which is the same in every process.
    fn runs(&self) -> Vec<Run<'_>> {
        let mut runs = Vec::new();
        for named in &self.subjects {
            for &mode in &self.modes {
                let plans = named.entry.plans(mode, self.profile).into_iter();
                runs.extend(plans.map(|plan| Run {
                    named,
                    mode,
                    plan,
                    specimen_entry: None,
                    shown: true,
                }));
            }
        }
        runs.extend(self.specimens.iter().map(|specimen_entry| Run {
            named: &specimen_entry.named,
            mode: specimen_entry.mode(),
            plan: specimen_entry.plan(),
            specimen_entry: Some(specimen_entry),
            shown: self.specimens.len() == 1,
        }));
        runs
    }
}

/// Runs everything in processes of this program, and prints the results.
fn run_all(
    runs: &[Run<'_>],
    jobs: usize,
    json: Option<&JsonFile>,
) -> Result<(Vec<Report>, Vec<SpecimenReport>), String> {
    let program = std::env::current_exe().map_err(|error| {
        format!("cannot find the program of this process to start workers: {error}")
    })?;
    let workers = (0..jobs).map(|_| {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1)).arg("--worker");
        // The worker draws the failures, and has no terminal to ask for its width.
        if let Some(width) = width() {
            command.env("COLUMNS", width.to_string());
        }
        Process::new(command)
    });
    let prepare: Vec<_> = runs.iter().map(|run| || run.prepare()).collect();
    let bar = Bar::new();
    let (mut results, mut specimens) = (Vec::new(), Vec::new());
    dispatch::dispatch(
        refer(&prepare),
        workers.collect(),
        &mut |event| match event {
            Event::Underway(report, programs) => bar.show(report, programs),
            Event::Ended(number, report) => {
                let run = &runs[number];
                let mut shown = run.shown;
                match run.specimen_entry {
                    None => {
                        bar.suspend(|| say(report.line()));
                        results.push(report.clone());
                    }
                    Some(specimen_entry) => {
                        let report = specimen(specimen_entry, report.clone());
                        shown |= !report.as_expected();
                        specimens.push(report);
                    }
                }
                if shown {
                    bar.suspend(|| report.failures.iter().for_each(print_failure));
                }
                if let Some(json) = json {
                    // A failure to write is reported at the end.
                    let _ = json.write(&results, &specimens, true);
                }
            }
        },
    );
    bar.clear();
    Ok((results, specimens))
}

fn refer<F: Fn() -> Box<dyn Work> + Sync>(prepare: &[F]) -> Vec<Prepare<'_>> {
    prepare.iter().map(|prepare| prepare as _).collect()
}

/// Returns the report of a specimen.
fn specimen(specimen_entry: &SpecimenEntry, report: Report) -> SpecimenReport {
    let counterexample = report.failures.into_iter().next();
    SpecimenReport {
        name: specimen_entry.named.name.clone(),
        expected: specimen_entry.expected,
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

/// The progress of the run, on a terminal.
struct Bar {
    bar: ProgressBar,
    /// The run that is shown, and when it began.
    run: Mutex<(String, Instant)>,
}

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if std::io::stderr().is_terminal() {
            let template = "{prefix} {bar:24} {pos}/{len} programs, {msg}";
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.expect("the template is well-formed"));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self {
            bar,
            run: Mutex::new((String::new(), Instant::now())),
        }
    }

    fn show(&self, report: &Report, programs: usize) {
        let seconds = report.seconds.as_secs_f64().max(0.001);
        let rate = report.executions as f64 / seconds;
        let Report {
            subject,
            engine,
            mode,
            ..
        } = report;
        let name = format!("{subject} {engine}/{mode}");
        let mut run = self.run.lock().unwrap_or_else(|poison| poison.into_inner());
        if run.0 != name || report.programs < self.bar.position() {
            *run = (name.clone(), Instant::now());
        }
        let left = time_left(run.1.elapsed(), report.programs, programs as u64);
        self.bar.set_prefix(name);
        self.bar.set_length(programs as u64);
        self.bar.set_position(report.programs);
        self.bar.set_message(format!(
            "{} executions/s of a core{left}",
            HumanCount(rate as u64)
        ));
    }

    fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Returns how much time is left, as a part of a sentence. It is empty while too little
/// is done for an estimate. Later programs are larger, so the estimate is rather too
/// low.
fn time_left(taken: Duration, done: u64, of: u64) -> String {
    if taken < Duration::from_secs(3) || done * 20 < of || done == 0 {
        return String::new();
    }
    let left = taken.as_secs_f64() * (of - done.min(of)) as f64 / done as f64;
    format!(", {} left", HumanDuration(Duration::from_secs_f64(left)))
}

/// Prints a line. If the reader of the output is gone, the process exits.
fn say(line: impl Display) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(1);
    }
}

fn print_failure(failure: &Counterexample) {
    say("");
    say(format_args!("{failure}"));
    say(format_args!(
        "again: cargo verify --replay '{}'",
        failure.token
    ));
    say("");
}

fn results_table(results: &[Report]) -> Table {
    let mut table = table(&[
        "subject",
        "engine",
        "mode",
        "verdict",
        "bound",
        "programs",
        "executions",
        "seconds",
        "",
    ]);
    for report in results {
        table.add_row(vec![
            report.subject.clone(),
            report.engine.clone(),
            report.mode.clone(),
            report.verdict.to_string(),
            report.bound.clone(),
            HumanCount(report.programs).to_string(),
            HumanCount(report.executions).to_string(),
            format!("{:.2}", report.seconds.as_secs_f64()),
            match report.failures.first() {
                Some(failure) => failure.class.to_string(),
                None if report.holds() => "holds".to_owned(),
                None => "nothing was run".to_owned(),
            },
        ]);
    }
    align_right(&mut table, &[5, 6, 7]);
    table
}

fn specimens_table(specimens: &[SpecimenReport]) -> Table {
    let mut table = table(&[
        "specimen",
        "expected",
        "found",
        "program",
        "executions",
        "seconds",
        "",
    ]);
    let class = |class: Option<crate::subject::verdict::Class>| {
        class.map_or("nothing".to_owned(), |class| class.to_string())
    };
    for report in specimens {
        table.add_row(vec![
            report.name.clone(),
            class(report.expected),
            class(report.found),
            report.program.clone(),
            HumanCount(report.executions).to_string(),
            format!("{:.2}", report.seconds.as_secs_f64()),
            match report.as_expected() {
                true => "as expected".to_owned(),
                false => "NOT AS EXPECTED".to_owned(),
            },
        ]);
    }
    align_right(&mut table, &[4, 5]);
    table
}

/// Returns the width of the output, from `COLUMNS` or the terminal. It is `None` if
/// there is no terminal.
fn width() -> Option<u16> {
    columns().or_else(|| Table::new().width())
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    if let Some(width) = width() {
        table.set_width(width);
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header.to_vec());
    table
}

fn align_right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn list(request: &Request) {
    for named in &request.subjects {
        say(format_args!("{}: {}", named.name, named.about));
        for (role, ops) in named.entry.roles() {
            say(format_args!("    {role}: {}", ops.join(", ")));
        }
        say(format_args!("    operations: {}", named.surface));
        for &mode in &request.modes {
            for plan in named.entry.plans(mode, request.profile) {
                let mode = format!("{}/{}", mode.engine().name(), mode.name());
                say(format_args!("    {mode:<20} {}", plan.text()));
            }
        }
    }
    say(format_args!("specimens:"));
    for specimen_entry in &request.specimens {
        let must = match specimen_entry.expected {
            Some(class) => format!("must be caught as {class}"),
            None => "must pass".to_owned(),
        };
        say(format_args!("    {:<32} {must}", specimen_entry.named.name));
    }
}

fn replay(text: &str) -> Result<bool, String> {
    let token = Token::parse(text)?;
    let named = registry::find(&token.subject).ok_or_else(|| {
        format!(
            "there is no subject `{}`, which the replay token names",
            token.subject
        )
    })?;
    let failure = named.entry.replay(&token)?;
    print_failure(&failure);
    Ok(false)
}
