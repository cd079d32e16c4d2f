//! The command line.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::plan::{Engine, Mode, Plan, Profile};
use crate::registry::{self, Named, Planted};
use crate::run::Watch;
use crate::token::Token;
use crate::verdict::{Counterexample, Report, SpecimenReport};

/// Explores every interleaving of every small program over a primitive, and
/// shows that no wake-up is lost, no stale waker is called and no cancellation
/// swallows a result.
///
/// With no arguments: every subject under every engine, then the specimens,
/// which are broken on purpose and must be caught. The exit status is 0 only
/// where every subject holds and every specimen is seen for what it is; 1 where
/// not; 2 where the command cannot be understood.
#[derive(Debug, Parser)]
#[command(name = "cargo verify", disable_version_flag = true)]
struct Cli {
    /// What to run, by the names of `--list`, or `time` for all that is timed; by
    /// default all subjects
    #[arg(value_name = "SUBJECT")]
    subjects: Vec<String>,

    /// Run only this engine: sequential, loom, shuttle or stress (repeatable)
    #[arg(long, value_name = "NAME")]
    engine: Vec<String>,

    /// How far to go: quick, full or deep
    #[arg(long, value_name = "NAME", default_value = "quick")]
    profile: String,

    /// Run only the specimens, of the given subjects if any
    #[arg(long)]
    specimens: bool,

    /// Run one execution again, and draw it
    #[arg(long, value_name = "TOKEN")]
    replay: Option<String>,

    /// Also write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// List the subjects, their operations, the specimens and the bounds
    #[arg(long)]
    list: bool,
}

/// What was asked for, understood.
struct Request {
    subjects: Vec<Named>,
    specimens: Vec<Planted>,
    modes: Vec<Mode>,
    profile: Profile,
}

/// All that was found, for `--json`.
#[derive(Serialize)]
struct Results<'a> {
    profile: String,
    results: &'a [Report],
    specimens: &'a [SpecimenReport],
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
    let mut json = match &cli.json {
        Some(path) => Some(
            std::fs::File::create(path)
                .map_err(|error| format!("cannot write to {}: {error}", path.display()))?,
        ),
        None => None,
    };

    let begun = Instant::now();
    let results = run_subjects(&request);
    let specimens = run_specimens(&request);
    if results.is_empty() && specimens.is_empty() {
        return Err("nothing was run: these engines have nothing to say here".to_owned());
    }
    println!();
    if !results.is_empty() {
        println!("{}", results_table(&results));
    }
    if !specimens.is_empty() {
        println!("{}", specimens_table(&specimens));
    }
    if let Some(file) = &mut json {
        let results = Results {
            profile: request.profile.to_string(),
            results: &results,
            specimens: &specimens,
        };
        serde_json::to_writer_pretty(&mut *file, &results)
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| format!("cannot write the results: {error}"))?;
    }
    let held = results.iter().filter(|report| report.holds()).count();
    let seen = specimens
        .iter()
        .filter(|report| report.as_expected())
        .count();
    println!(
        "{held} of {} runs hold, {seen} of {} specimens are seen for what they are, in {:.1} s ({} profile)",
        results.len(),
        specimens.len(),
        begun.elapsed().as_secs_f64(),
        request.profile,
    );
    Ok(held == results.len() && seen == specimens.len())
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
        let mut names: Vec<&str> = Vec::new();
        for name in &cli.subjects {
            match registry::group(name) {
                Some(group) => names.extend_from_slice(group),
                None if registry::find(name).is_some() => names.push(name),
                None => {
                    return Err(format!(
                        "there is no subject `{name}`: `cargo verify --list` lists them"
                    ));
                }
            }
        }
        let wanted = |name: &str| names.contains(&name);
        subjects.retain(|named| !cli.specimens && (all || wanted(&named.name)));
        // Specimens run where they are asked for: by name, by `--specimens`, or
        // by asking for everything.
        let everything = all && engines.is_empty();
        specimens.retain(|planted| {
            let name = &planted.named.name;
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

/// Finds a value by its name.
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

fn run_subjects(request: &Request) -> Vec<Report> {
    let mut results = Vec::new();
    for named in &request.subjects {
        for &mode in &request.modes {
            for plan in named.entry.plans(mode, request.profile) {
                let report = watched(named, mode, &plan);
                println!("{}", report.line());
                for failure in &report.failures {
                    print_failure(failure);
                }
                results.push(report);
            }
        }
    }
    results
}

fn run_specimens(request: &Request) -> Vec<SpecimenReport> {
    let mut reports = Vec::new();
    for planted in &request.specimens {
        let report = watched(&planted.named, planted.mode(), &planted.plan());
        let counterexample = report.failures.into_iter().next();
        let report = SpecimenReport {
            name: planted.named.name.clone(),
            expected: planted.expected,
            found: counterexample.as_ref().map(|failure| failure.class),
            program: match &counterexample {
                Some(failure) => failure.program.clone(),
                None => format!("{} programs", report.programs),
            },
            executions: report.executions,
            seconds: report.seconds,
            counterexample,
        };
        // Whoever asks for one wants to see it.
        let asked = request.specimens.len() == 1;
        if let Some(failure) = &report.counterexample
            && (asked || !report.as_expected())
        {
            print_failure(failure);
        }
        reports.push(report);
    }
    reports
}

/// Runs one mode of a subject, with its progress on a terminal.
fn watched(named: &Named, mode: Mode, plan: &Plan) -> Report {
    let watch = Watch::default();
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if std::io::stderr().is_terminal() {
        let template = "{prefix} {bar:24} {pos}/{len} programs, {msg}, {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
        bar.set_prefix(format!(
            "{} {}/{}",
            named.name,
            mode.engine().name(),
            mode.name()
        ));
    } else {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let report = std::thread::scope(|scope| {
        let run = scope.spawn(|| named.entry.run(&named.name, mode, plan, &watch));
        let begun = Instant::now();
        while !run.is_finished() && !bar.is_hidden() {
            let executions = watch.executions.load(Ordering::Relaxed);
            let rate = executions as f64 / begun.elapsed().as_secs_f64().max(0.001);
            bar.set_length(watch.total.load(Ordering::Relaxed));
            bar.set_position(watch.programs.load(Ordering::Relaxed));
            bar.set_message(format!("{} executions/s", HumanCount(rate as u64)));
            std::thread::sleep(Duration::from_millis(50));
        }
        run.join()
    });
    bar.finish_and_clear();
    report.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn print_failure(failure: &Counterexample) {
    println!();
    println!("{failure}");
    println!("again: cargo verify --replay '{}'", failure.token);
    println!();
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
    let class = |class: Option<crate::verdict::Class>| {
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

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
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
        println!("{}: {}", named.name, named.about);
        for (role, ops) in named.entry.roles() {
            println!("    {role}: {}", ops.join(", "));
        }
        for &mode in &request.modes {
            for plan in named.entry.plans(mode, request.profile) {
                let mode = format!("{}/{}", mode.engine().name(), mode.name());
                println!("    {mode:<20} {}", plan.text());
            }
        }
    }
    println!("specimens:");
    for planted in &request.specimens {
        let must = match planted.expected {
            Some(class) => format!("must be caught as {class}"),
            None => "must pass".to_owned(),
        };
        println!("    {:<32} {must}", planted.named.name);
    }
}

fn replay(text: &str) -> Result<bool, String> {
    let token = Token::parse(text)?;
    let named = registry::find(&token.subject).ok_or_else(|| {
        format!(
            "the replay token is of a subject `{}` that is not here",
            token.subject
        )
    })?;
    let failure = named.entry.replay(&token)?;
    print_failure(&failure);
    Ok(false)
}
