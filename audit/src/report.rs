//! The audit as a whole: every subject is run, and what is found is compared with the
//! findings that are confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::findings::{AUTO_TRAITS, Finding, KNOWN};
use crate::suite::{NAMES, PANICS};
use crate::traits;

/// The columns of the table.
const PROPERTIES: [&str; 8] = [
    "oneshot",
    "mpsc",
    "mpmc",
    "notification",
    "waker cell",
    "mutex",
    "rwlock",
    "semaphore",
];

/// The versions of the crates, which the manifest pins.
const MANIFEST: &str = include_str!("../Cargo.toml");

/// A failure of a subject.
struct Failure {
    class: String,
    program: String,
    /// The command that runs it again.
    again: String,
}

/// What came of a subject.
struct Outcome {
    name: &'static str,
    executions: u64,
    failures: Vec<Failure>,
    /// Why it has no result, if it has none.
    broken: Option<String>,
}

/// Returns the column of a subject.
fn property(name: &str) -> &'static str {
    let (_, primitive) = name.split_once('/').expect("a name has a crate");
    let primitive = primitive.strip_suffix("-many").unwrap_or(primitive);
    match primitive {
        "oneshot" => "oneshot",
        "mpsc" | "mpsc-unbounded" => "mpsc",
        "mpmc" => "mpmc",
        "waker-cell" => "waker cell",
        "mutex" => "mutex",
        "rwlock" => "rwlock",
        "semaphore" => "semaphore",
        _ => "notification",
    }
}

/// Returns the version of a crate.
fn version(of: &str) -> &'static str {
    let line = MANIFEST.lines().find(|line| {
        let name = line.split(" =").next();
        name == Some(of)
    });
    let version = line.and_then(|line| line.split("\"=").nth(1));
    version
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("?")
}

/// Runs the audit, and writes the page of the documentation if a file is given.
pub(crate) fn audit(file: Option<&Path>) -> ExitCode {
    let begun = Instant::now();
    let outcomes = match run_all() {
        Ok(outcomes) => outcomes,
        Err(sentence) => {
            eprintln!("error: {sentence}");
            return ExitCode::from(2);
        }
    };
    let page = page(&outcomes);
    println!("{page}");
    let wrong = compare(&outcomes);
    for sentence in &wrong {
        println!("NOT AS RECORDED: {sentence}");
    }
    let executions: u64 = outcomes.iter().map(|outcome| outcome.executions).sum();
    println!(
        "{} subjects, {executions} executions, {} findings, in {:.0} s",
        outcomes.len(),
        KNOWN.len(),
        begun.elapsed().as_secs_f64()
    );
    if let Some(file) = file
        && let Err(error) = std::fs::write(file, page)
    {
        eprintln!("error: cannot write to {}: {error}", file.display());
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Runs every subject, as many at a time as there are cores.
fn run_all() -> Result<Vec<Outcome>, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find the program of this process: {error}"))?;
    let folder = std::env::temp_dir().join(format!("audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let (next, outcomes) = (Mutex::new(NAMES.iter()), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let Some(&name) = next.lock().expect("no panic").next() else {
                        break;
                    };
                    eprintln!("{name}");
                    let outcome = run(&program, &folder, name);
                    outcomes.lock().expect("no panic").push(outcome);
                }
            });
        }
    });
    let _ = std::fs::remove_dir_all(&folder);
    let mut outcomes = outcomes.into_inner().expect("no panic");
    outcomes.sort_by_key(|outcome| NAMES.iter().position(|&name| name == outcome.name));
    Ok(outcomes)
}

/// Runs a subject in a process of its own: some crates abort.
fn run(program: &Path, folder: &Path, name: &'static str) -> Outcome {
    let file: PathBuf = folder.join(name.replace('/', "-"));
    let mut command = Command::new(program);
    command.args([name, "--engine", "sequential", "--keep-going", "-j", "1"]);
    if name.ends_with("-many") {
        command.args(["--participants", "3", "--operations", "1"]);
    }
    if !PANICS.contains(&name) {
        command.arg("--no-panics");
    }
    command.arg("--json").arg(&file);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let json = std::fs::read(&file)
        .ok()
        .and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let mut outcome = Outcome {
        name,
        executions: 0,
        failures: Vec::new(),
        broken: None,
    };
    let Some(json) = json.filter(|json| json["interrupted"] == false) else {
        outcome.broken = Some(format!("{name} has no result: {status:?}"));
        return outcome;
    };
    for result in json["results"].as_array().into_iter().flatten() {
        outcome.executions += result["executions"].as_u64().unwrap_or(0);
        for failure in result["failures"].as_array().into_iter().flatten() {
            let text = |field: &str| failure[field].as_str().unwrap_or_default().to_owned();
            outcome.failures.push(Failure {
                class: text("class").replace('-', " "),
                program: text("program"),
                again: format!("cargo verify audit --replay '{}'", text("token")),
            });
        }
    }
    if outcome.executions == 0 {
        outcome.broken = Some(format!("{name} ran nothing"));
    }
    outcome
}

/// Returns whether a failure is what a finding describes. A crate with senders or
/// receivers that are many has the findings of the same with one.
fn describes(finding: &Finding, subject: &str, class: &str) -> bool {
    let base = |name: &str| name.strip_suffix("-many").unwrap_or(name).to_owned();
    base(finding.subject) == base(subject) && finding.class == class
}

/// Returns what was found and is not known, and what is known and was not found.
fn compare(outcomes: &[Outcome]) -> Vec<String> {
    let mut wrong: Vec<String> = outcomes.iter().filter_map(|it| it.broken.clone()).collect();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for outcome in outcomes {
        for Failure {
            class,
            program,
            again,
        } in &outcome.failures
        {
            let known = KNOWN.iter().filter(|it| describes(it, outcome.name, class));
            let tests: Vec<_> = known.map(|finding| finding.test).collect();
            if tests.is_empty() {
                let name = outcome.name;
                wrong.push(format!("{name}: {class} in `{program}` is new: {again}"));
            }
            found.extend(tests);
        }
    }
    for (subject, guard, sent) in traits::guards() {
        let known = KNOWN
            .iter()
            .filter(|it| describes(it, subject, AUTO_TRAITS));
        let tests: Vec<_> = known.map(|finding| finding.test).collect();
        if sent && tests.is_empty() {
            wrong.push(format!(
                "{subject}: a {guard} of a `Cell` can be sent, which is new"
            ));
        }
        if sent {
            found.extend(tests);
        }
    }
    let lost = KNOWN.iter().filter(|finding| !found.contains(finding.test));
    wrong.extend(lost.map(|it| format!("{}: {} was not found", it.subject, it.test)));
    wrong
}

/// Returns the page of the documentation.
fn page(outcomes: &[Outcome]) -> String {
    let mut cells: BTreeMap<(&str, &str), (u64, usize)> = BTreeMap::new();
    let mut crates: Vec<&str> = Vec::new();
    for outcome in outcomes {
        let (of, _) = outcome.name.split_once('/').expect("a name has a crate");
        if !crates.contains(&of) {
            crates.push(of);
        }
        let cell = cells.entry((of, property(outcome.name))).or_default();
        cell.0 += outcome.executions;
    }
    for finding in KNOWN {
        let (of, _) = finding.subject.split_once('/').expect("a name has a crate");
        cells.entry((of, property(finding.subject))).or_default().1 += 1;
    }
    let today = chrono::Utc::now().format("%Y-%m-%d");
    let mut page = format!("{HEAD}As of {today}:\n\n");
    let mut add = |line: std::fmt::Arguments<'_>| {
        writeln!(page, "{line}").expect("writing to a string does not fail");
    };
    add(format_args!("| crate | {} |", PROPERTIES.join(" | ")));
    add(format_args!("|{}", " --- |".repeat(PROPERTIES.len() + 1)));
    for of in crates {
        let cells = PROPERTIES.map(|property| match cells.get(&(of, property)) {
            None => String::new(),
            Some((_, 0)) => "no finding".to_owned(),
            Some((_, 1)) => "**1 finding**".to_owned(),
            Some((_, number)) => format!("**{number} findings**"),
        });
        add(format_args!(
            "| `{of}` {} | {} |",
            version(of),
            cells.join(" | ")
        ));
    }
    add(format_args!("\n# Findings\n"));
    for finding in KNOWN {
        let (of, _) = finding.subject.split_once('/').expect("a name has a crate");
        let Finding {
            subject,
            class,
            seen,
            mend,
            test,
        } = finding;
        add(format_args!(
            "**`{of}` {}, {}: {class}.** {seen} {mend}\n",
            version(of),
            property(subject)
        ));
        let found = outcomes.iter().filter(|outcome| {
            outcome
                .failures
                .iter()
                .any(|it| describes(finding, outcome.name, &it.class))
        });
        let failure = found
            .flat_map(|outcome| &outcome.failures)
            .find(|failure| failure.class == *class);
        if let Some(Failure { program, again, .. }) = failure {
            add(format_args!(
                "Smallest program: `{program}`. Again: `{again}`.\n"
            ));
        }
        add(format_args!("Test: `{test}`.\n"));
    }
    page
}

const HEAD: &str = "\
What the verifier finds in the primitives of public crates. `cargo verify audit` wrote this
page, and runs everything in it again.

The crates are not instrumented: the sequential engine runs the polls and calls of small
programs in every order, on one thread, with futures that are awaited, polled again, dropped
before and after their wake-up. Locks and waker cells that are said to survive it are also run
with wakers that panic. Races within a poll are not seen. So \"no finding\" says that there is
none within these bounds, and no more.

Each finding has a test that was written by hand and shows it without the verifier, on the
version named here. A difference that a crate documents is a variant of the specification and no
finding.

";
