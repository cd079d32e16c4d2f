//! The command line, as it is run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What came of a run of the command.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// As it was printed: there are tables in it.
impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            stdout,
            stderr,
        } = self;
        write!(f, "exit status {code:?}\n{stdout}{stderr}")
    }
}

fn verify(arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-verify"))
        .args(arguments)
        .output()
        .expect("the command runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A file that is gone with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }

    fn json(&self) -> Value {
        let text = std::fs::read_to_string(&self.0).expect("it was written");
        serde_json::from_str(&text).expect("it is JSON")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Checks that the command prints one sentence, and does nothing else.
#[track_caller]
fn refuses(arguments: &[&str], part: &str) {
    let ran = verify(arguments);
    assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
    assert!(ran.stdout.is_empty(), "{arguments:?}: {ran:?}");
    let sentence = ran.stderr.strip_suffix('\n').unwrap_or_default();
    assert!(sentence.starts_with("error: "), "{arguments:?}: {ran:?}");
    assert!(!sentence.contains('\n'), "{arguments:?}: {ran:?}");
    assert!(sentence.contains(part), "no `{part}` in: {sentence}");
}

/// What is found does not depend on how many work on it.
#[test]
fn the_number_of_processes_changes_nothing_that_is_found() {
    let of = |jobs: &str, name: &str| {
        let file = Scratch::new(&format!("jobs-{jobs}"));
        let ran = verify(&[
            "oneshot",
            "--engine",
            "sequential",
            name,
            "-j",
            jobs,
            "--json",
            file.path(),
        ]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut json = file.json();
        for of in ["results", "specimens"] {
            for report in json[of].as_array_mut().expect("a list") {
                report["seconds"].take();
                // Others may run a few programs more than the one that fails.
                if of == "specimens" {
                    report["executions"].take();
                }
            }
        }
        json
    };
    let one = of("1", "oneshot/no-wake");
    assert!(
        one["results"][0]["programs"].as_u64() > Some(1_000),
        "{one}"
    );
    assert_eq!(one, of("3", "oneshot/no-wake"));
}

/// A worker is told what to run by numbers.
#[test]
fn a_worker_that_is_asked_for_what_there_is_not_says_so() {
    for line in ["", "7", "a b c", "99999 0 1"] {
        let mut worker = Command::new(env!("CARGO_BIN_EXE_cargo-verify"))
            .args(["state-lock", "--worker"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut stdin = worker.stdin.take().expect("it is piped");
        writeln!(stdin, "{line}").expect("it reads");
        drop(stdin);
        let output = worker.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(output.stderr.starts_with(b"error: "), "{line}");
    }
}

/// The token of a counterexample that was printed, and its table.
fn counterexample(stdout: &str) -> (&str, &str) {
    let (before, after) = stdout
        .split_once("again: cargo verify --replay '")
        .expect("there is a counterexample");
    let (token, _) = after.split_once('\'').expect("the token ends");
    let begin = before.find("program: ").expect("it has a program");
    (token, &before[begin..])
}

/// A token that replays, and what it prints.
fn token() -> String {
    let ran = verify(&["oneshot/no-wake"]);
    counterexample(&ran.stdout).0.to_owned()
}

#[test]
fn unknown_names_are_refused() {
    refuses(&["oneshoot"], "`oneshoot`");
    refuses(&["oneshot", "oneshot/"], "`oneshot/`");
    refuses(&["oneshot/no-such-fault"], "--list");
    refuses(&["--engine", "miri"], "sequential, loom, fibers, stress");
    refuses(
        &["--engine", "loom", "--engine", ""],
        "there is no engine ``",
    );
    refuses(&["oneshot", "--profile", "fast"], "quick, full, deep");
    refuses(&["oneshoot", "--list"], "`oneshoot`");
}

#[test]
fn damaged_tokens_are_refused() {
    let token = token();
    let damaged = |text: &str| refuses(&["--replay", text], "is damaged");
    damaged("");
    damaged("oneshot");
    damaged(&token[1..]);
    damaged(&token[..token.len() - 1]);
    damaged(&token.replacen("send", "sent", 1));
    damaged(&format!("{token} "));
    // The token is whole, but its subject does not exist.
    let unknown = "nothing:steps:send/recv:all:0:1:9a750030";
    refuses(&["--replay", unknown], "`nothing`");
}

#[test]
fn a_file_that_cannot_be_written_is_known_before_anything_is_run() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let missing = format!("{directory}/no/such/directory/results.json");
    refuses(&["--json", &missing], "cannot write to");
    refuses(&["state-lock", "--json", directory], directory);
}

#[test]
fn a_file_is_left_alone_where_nothing_is_run() {
    let file = Scratch::new("kept");
    std::fs::write(file.path(), "[1]").unwrap();
    refuses(
        &["soak", "--engine", "loom", "--json", file.path()],
        "nothing was run",
    );
    assert_eq!(file.json(), serde_json::json!([1]));
}

/// The messages of clap have more lines, and the same status.
#[test]
fn what_is_not_understood_has_status_2() {
    for arguments in [
        &["--no-such-option"][..],
        &["--profile"],
        &["--replay"],
        &["--profile", "quick", "--profile", "full"],
        &["-j", "0"],
    ] {
        refuses_in_clap(arguments);
    }
    assert_eq!(verify(&["--help"]).code, Some(0));
}

#[track_caller]
fn refuses_in_clap(arguments: &[&str]) {
    let ran = verify(arguments);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    assert!(ran.stdout.is_empty(), "{ran:?}");
}

/// The names of the subjects and of the specimens that `--list` prints.
fn listed(stdout: &str) -> (Vec<&str>, Vec<&str>) {
    let (subjects, specimens) = stdout
        .split_once("specimens:\n")
        .expect("there are specimens");
    let subjects = subjects
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| Some(line.split_once(':')?.0));
    let specimens = specimens
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    (subjects.collect(), specimens.collect())
}

#[test]
fn the_list_has_all_that_can_be_asked_for() {
    let ran = verify(&["--list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.is_empty(), "{ran:?}");
    let (subjects, specimens) = listed(&ran.stdout);
    for name in ["state-lock", "oneshot"] {
        assert!(subjects.contains(&name), "no {name} in {subjects:?}");
    }
    for name in ["oneshot/plain", "oneshot/check-then-register"] {
        assert!(specimens.contains(&name), "no {name} in {specimens:?}");
    }
    for engine in ["sequential/", "loom/", "fibers/", "stress/"] {
        assert!(ran.stdout.contains(engine), "no {engine}: {}", ran.stdout);
    }
    for name in subjects.iter().chain(&specimens) {
        let ran = verify(&[name, "--list"]);
        assert_eq!(ran.code, Some(0), "{name} is listed, and unknown: {ran:?}");
    }
    // What is asked for is what is listed.
    let ran = verify(&["oneshot", "--engine", "stress", "--list"]);
    assert!(!ran.stdout.contains("state-lock"), "{ran:?}");
    assert!(!ran.stdout.contains("loom/"), "{ran:?}");
}

#[test]
fn a_subject_that_holds_has_status_0() {
    let ran = verify(&["state-lock", "--engine", "sequential"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.is_empty(), "{ran:?}");
    assert!(ran.stdout.contains("sequential/steps"), "{ran:?}");
    assert!(ran.stdout.contains("1 of 1 runs hold"), "{ran:?}");
    // Neither other engines nor specimens were asked for.
    assert!(!ran.stdout.contains("loom"), "{ran:?}");
    assert!(!ran.stdout.contains("specimen  "), "{ran:?}");
}

#[test]
fn a_specimen_is_drawn_and_its_token_draws_it_again() {
    for name in ["oneshot/check-then-register", "oneshot/first-waker-kept"] {
        let ran = verify(&[name]);
        assert_eq!(ran.code, Some(0), "the specimen is as expected: {ran:?}");
        assert!(ran.stdout.contains("as expected"), "{ran:?}");
        let (token, drawn) = counterexample(&ran.stdout);
        for column in ["sender", "receiver"] {
            assert!(drawn.contains(column), "no {column} in {drawn}");
        }
        let again = verify(&["--replay", token]);
        assert_eq!(again.code, Some(1), "what is replayed fails: {again:?}");
        assert!(again.stderr.is_empty(), "{again:?}");
        assert_eq!(counterexample(&again.stdout), (token, drawn));
    }
}

#[track_caller]
fn has_fields(value: &Value, fields: &[&str]) {
    let object = value.as_object().expect("it is an object");
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    let mut fields = fields.to_vec();
    names.sort_unstable();
    fields.sort_unstable();
    assert_eq!(names, fields);
}

const REPORT: [&str; 10] = [
    "coverage",
    "subject",
    "engine",
    "mode",
    "verdict",
    "bound",
    "programs",
    "executions",
    "failures",
    "seconds",
];
const SPECIMEN: [&str; 7] = [
    "name",
    "expected",
    "found",
    "program",
    "executions",
    "seconds",
    "counterexample",
];
const COUNTEREXAMPLE: [&str; 7] = [
    "trace",
    "class",
    "sentence",
    "program",
    "execution",
    "token",
    "table",
];

#[test]
fn results_are_written_for_machines() {
    let file = Scratch::new("results.json");
    let arguments = ["state-lock", "--engine", "sequential", "--engine", "fibers"];
    let ran = verify(&[&arguments[..], &["--json", file.path()]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let json = file.json();
    has_fields(
        &json,
        &["interrupted", "profile", "results", "shard", "specimens"],
    );
    assert_eq!(json["profile"], "quick");
    assert_eq!(json["specimens"], Value::Array(Vec::new()));
    let results = json["results"].as_array().expect("a list");
    let modes: Vec<_> = results
        .iter()
        .map(|report| {
            has_fields(report, &REPORT);
            assert_eq!(report["subject"], "state-lock");
            assert!(report["seconds"].as_f64().is_some_and(|s| s >= 0.0));
            let programs = report["programs"].as_u64().expect("a number");
            let executions = report["executions"].as_u64().expect("a number");
            assert!(programs > 0 && executions >= programs, "{report}");
            assert!(report["failures"].as_array().is_some_and(Vec::is_empty));
            ["engine", "mode", "verdict"].map(|field| report[field].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        modes,
        [
            ["sequential", "steps", "complete"],
            ["fibers", "exhaustive", "complete"],
            ["fibers", "random", "sampled"],
            ["fibers", "pct", "sampled"],
        ]
    );
}

/// Specimens of every kind are caught in their class, quickly, by a small
/// program, and every token replays to the very same table.
#[test]
fn specimens_are_seen_and_replay() {
    let file = Scratch::new("specimens.json");
    let subjects = ["notify", "set-once", "sleep", "oneshot/announced-early"];
    let ran = verify(&[&subjects[..], &["--specimens", "--json", file.path()]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("NOT AS EXPECTED"), "{ran:?}");
    let json = file.json();
    assert_eq!(json["results"], Value::Array(Vec::new()));
    let specimens = json["specimens"].as_array().expect("a list");
    assert!(specimens.len() > 20);
    for specimen in specimens {
        has_fields(specimen, &SPECIMEN);
        let name = specimen["name"].as_str().expect("a name");
        assert_eq!(specimen["expected"], specimen["found"], "{name}");
        assert!(specimen["executions"].as_u64() > Some(0), "{name}");
        let counterexample = &specimen["counterexample"];
        if specimen["expected"].is_null() {
            assert!(counterexample.is_null(), "{name}");
            continue;
        }
        has_fields(counterexample, &COUNTEREXAMPLE);
        assert_eq!(counterexample["class"], specimen["found"], "{name}");
        assert_eq!(counterexample["program"], specimen["program"], "{name}");
        let text = |field: &str| counterexample[field].as_str().expect("text");
        let lines = text("program").split('/');
        let longest = lines.map(|line| line.split(',').count()).max();
        assert!(longest <= Some(3), "{name} took {}", text("program"));

        let again = verify(&["--replay", text("token")]);
        assert_eq!(again.code, Some(1), "{name}: {again:?}");
        for part in ["sentence", "table", "token"] {
            assert!(again.stdout.contains(text(part)), "{name}: {again:?}");
        }
    }
}

/// All that is timed is asked for by one name.
#[test]
fn subjects_can_be_asked_for_by_group() {
    let of = |arguments: &[&str]| verify(&[arguments, &["--list"]].concat()).stdout;
    let timed = of(&["time"]);
    let (subjects, specimens) = listed(&timed);
    assert_eq!(
        subjects,
        [
            "sleep",
            "sleep-driven",
            "sleep-driven-by-two",
            "timeout",
            "interval",
            "delay-queue"
        ]
    );
    assert!(specimens.is_empty(), "{timed}");
    let timed = of(&["time", "--specimens"]);
    let (subjects, specimens) = listed(&timed);
    assert!(subjects.is_empty(), "{timed}");
    for name in ["sleep/plain", "timeout/plain"] {
        assert!(specimens.contains(&name), "no {name} in {specimens:?}");
    }
    assert!(
        !specimens.iter().any(|name| name.starts_with("mutex")),
        "{timed}"
    );
}

/// A subject brings its specimens along where they are asked for.
#[test]
fn specimens_can_be_asked_for_by_subject() {
    let of = |arguments: &[&str]| {
        let ran = verify(&[arguments, &["--list"]].concat());
        let (subjects, specimens) = listed(&ran.stdout);
        (subjects.len(), specimens.len())
    };
    let (_, all) = of(&[]);
    assert_eq!(of(&["oneshot"]), (1, 0));
    assert_eq!(of(&["oneshot/plain"]), (0, 1));
    assert_eq!(of(&["state-lock", "--specimens"]), (0, 0));
    let (subjects, specimens) = of(&["oneshot", "--specimens"]);
    assert_eq!(subjects, 0);
    assert!(specimens > 20 && specimens <= all);
}

/// Tables are no wider than the terminal.
#[test]
fn tables_fit_into_columns() {
    for columns in [60, 80] {
        let output = Command::new(env!("CARGO_BIN_EXE_cargo-verify"))
            .args(["set-once", "oneshot/no-wake", "--engine", "sequential"])
            .env("COLUMNS", columns.to_string())
            .output()
            .expect("the command runs");
        let text = String::from_utf8(output.stdout).expect("it prints text");
        let table: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with(['┌', '│', '╞', '├', '└']))
            .collect();
        assert!(table.len() > 20, "{text}");
        for line in table {
            assert!(line.chars().count() <= columns, "{line}");
        }
    }
}

/// Whenever the command is stopped, the file of its results is whole, and says that
/// there are more to come.
#[test]
fn a_run_that_is_stopped_has_written_what_it_had() {
    let file = Scratch::new("stopped");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-verify"))
        .args(["state-lock", "oneshot", "--profile", "full"])
        .args(["--engine", "sequential", "--json", file.path()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command runs");
    let begun = std::time::Instant::now();
    while !Path::new(file.path()).exists() {
        assert!(begun.elapsed().as_secs() < 120, "nothing was written");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    command.kill().expect("it runs");
    command.wait().expect("it ends");
    let json = file.json();
    assert_eq!(json["interrupted"], true, "{json}");
    assert_eq!(json["results"][0]["subject"], "state-lock", "{json}");
    let _ = std::fs::remove_file(format!("{}.partial", file.path()));
}

/// Returns the JSON of a run without what differs from run to run.
fn results(arguments: &[&str], code: i32) -> Value {
    let file = Scratch::new(&format!(
        "results-{}",
        arguments.join("-").replace('/', "of")
    ));
    let ran = verify(&[arguments, &["--json", file.path()]].concat());
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let mut json = file.json();
    for of in ["results", "specimens"] {
        for report in json[of].as_array_mut().expect("a list") {
            report["seconds"].take();
        }
    }
    json
}

#[test]
fn shards_of_a_run_merge_to_what_one_run_finds() {
    let what = ["set-once", "oneshot/plain", "--engine", "fibers"];
    let whole = results(&what, 0);
    let files = ["1/3", "2/3", "3/3"].map(|shard| {
        let file = Scratch::new(&format!("shard-{}", shard.replace('/', "of")));
        let ran = verify(&[&what[..], &["--shard", shard, "--json", file.path()]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let part = file.json();
        assert_ne!(
            part["results"][0]["programs"],
            whole["results"][0]["programs"]
        );
        file
    });
    let paths = files.each_ref().map(Scratch::path);
    let merge = [&["--merge"], &paths[..]].concat();
    assert_eq!(results(&merge, 0), whole);
    // Honest: a part that is missing is missed.
    refuses(&["--merge", paths[0], paths[2]], "1/3, 3/3");
    refuses(&["--merge", paths[0], paths[1], paths[1]], "1/3, 2/3, 2/3");
    refuses(
        &["--merge", "/dev/null"],
        "is not a file that `--json` wrote",
    );
}

#[test]
fn a_shard_that_is_none_is_refused() {
    for shard in ["0/3", "4/3", "1", "1/0", "a/b"] {
        refuses_in_clap(&["set-once", "--shard", shard]);
    }
}

#[test]
fn only_the_program_that_is_asked_for_is_run() {
    let program = "send/recv.cancel";
    let json = results(&["oneshot", "--program", program, "--engine", "fibers"], 0);
    let runs = json["results"].as_array().expect("a list");
    assert_eq!(runs.len(), 3, "{json}");
    for run in runs {
        assert_eq!(run["programs"], 1, "{run}");
        let bound = run["bound"].as_str().expect("text");
        assert!(bound.starts_with("the program send/recv.cancel"), "{bound}");
    }
    refuses(&["oneshot", "--program", "send/send"], "`send/send`");
}

#[test]
fn bounds_can_be_chosen() {
    let bounds = |arguments: &[&str]| {
        let json = results(
            &[&["mutex", "--engine", "sequential"], arguments].concat(),
            0,
        );
        let runs = json["results"].as_array().expect("a list").clone();
        let bounds = runs
            .iter()
            .map(|run| run["bound"].as_str().unwrap().to_owned());
        bounds.collect::<Vec<_>>()
    };
    let chosen = bounds(&["--participants", "3", "--operations", "1", "--no-panics"]);
    assert!(!chosen.is_empty());
    for bound in chosen {
        assert!(
            bound.starts_with("3x1") && bound.contains("no panics"),
            "{bound}"
        );
    }
    // A oneshot has two halves.
    refuses(&["oneshot", "--participants", "3"], "3 participants");
}

#[test]
fn colours_are_where_they_are_asked_for() {
    let red = "\u{1b}[";
    let of = |when: &str| verify(&["oneshot/no-wake", "--color", when]).stdout;
    assert!(of("always").contains(red));
    assert!(!of("never").contains(red));
    // The output is no terminal.
    assert!(!of("auto").contains(red));
}

#[test]
fn results_are_written_for_ci_servers_and_browsers() {
    let (junit, html) = (Scratch::new("junit.xml"), Scratch::new("page.html"));
    let ran = verify(&[
        "set-once",
        "oneshot/no-wake",
        "--engine",
        "sequential",
        "--junit",
        junit.path(),
        "--html",
        html.path(),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let junit = std::fs::read_to_string(junit.path()).expect("it was written");
    for part in [
        "<testsuites",
        "name=\"set-once\"",
        "oneshot/no-wake",
        "failures=\"0\"",
    ] {
        assert!(junit.contains(part), "no {part} in {junit}");
    }
    let html = std::fs::read_to_string(html.path()).expect("it was written");
    for part in ["<!DOCTYPE html>", "set-once", "<svg", "--replay"] {
        assert!(html.contains(part), "no {part} in the page");
    }
}

/// As a subcommand of cargo, the command runs the suite of the crate that it is in.
#[test]
fn an_installed_command_runs_the_suite_of_the_crate() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("with-a-suite");
    std::fs::create_dir_all(folder.join("tests")).unwrap();
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let write = |path: &str, text: &str| std::fs::write(folder.join(path), text).unwrap();
    write("src/lib.rs", "");
    write(
        "Cargo.toml",
        "[package]\nname = \"with-a-suite\"\nedition = \"2024\"\n[workspace]\n\
         [[test]]\nname = \"verify\"\nharness = false\n",
    );
    write(
        "tests/verify.rs",
        "fn main() { println!(\"suite: {:?}\", std::env::args().nth(1)); }",
    );
    let run = |arguments: &[&str], folder: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_cargo-verify"))
            .args(arguments)
            .current_dir(folder)
            .output()
            .expect("the command runs");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let text = run(&["verify", "gate"], &folder.join("src"));
    assert!(text.contains("suite: Some(\"gate\")"), "{text}");
    // Anywhere else, and where cargo is not what runs it, it is Reveille's own.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (arguments, folder) in [(&["verify", "--list"][..], here), (&["--list"], &folder)] {
        let text = run(arguments, folder);
        assert!(text.starts_with("state-lock: "), "{text}");
    }
}
