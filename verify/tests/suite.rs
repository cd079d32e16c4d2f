//! A suite of one's own: the whole command for subjects of another crate.
//!
//! This target has no harness. Without the variable below it is the test: it starts
//! itself again with it, as the command of the suite, and reads what that prints.

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use reveille_verify::{Class, Closures, Suite, subject};
use serde_json::Value as Json;

/// Set for the processes that are the command.
const COMMAND: &str = "REVEILLE_SUITE_COMMAND";

/// An event that is set once, in versions that are right and wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Right,
    /// It keeps the first waker.
    FirstWaker,
    /// Setting it ends the process.
    Aborts,
}

/// Whether it is set, and the waker of the task that waits.
struct Event(Version, Mutex<(bool, Option<Waker>)>);

impl Event {
    fn set(&self) {
        if self.0 == Version::Aborts {
            std::process::abort();
        }
        let mut inner = self.1.lock().unwrap();
        inner.0 = true;
        let waiting = inner.1.take();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll_wait(&self, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut inner = self.1.lock().unwrap();
        if inner.0 {
            return Poll::Ready(());
        }
        let unused = match self.0 {
            Version::FirstWaker if inner.1.is_some() => Some(waker),
            _ => inner.1.replace(waker),
        };
        drop(inner);
        drop(unused);
        Poll::Pending
    }
}

fn event(version: Version) -> Closures<Event, bool> {
    subject(move || Event(version, Mutex::default()), false)
        .role("setter")
        .op("set", Event::set, |_| [(true, ())])
        .role("waiter")
        .poll("wait", Event::poll_wait, |&set| set.then_some((set, ())))
        .keeps_waker("until it is set")
}

fn command() -> ExitCode {
    Suite::new("cargo test --test suite --")
        .foreign("event", event(Version::Right))
        .foreign("first-waker", event(Version::FirstWaker))
        .foreign("aborts", event(Version::Aborts))
        .main()
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let program = std::env::current_exe().expect("this process has a program");
    let output = Command::new(program)
        .args(arguments)
        .env(COMMAND, "1")
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.code(),
        text + &String::from_utf8_lossy(&output.stderr),
    )
}

fn a_subject_that_holds_has_status_0() {
    let (code, text) = run(&["event"]);
    assert_eq!(code, Some(0), "{text}");
    for part in ["sequential/steps", "stress/threads", "4 of 4 runs hold"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

fn a_failure_names_the_command_that_runs_it_again() {
    let (code, text) = run(&["first-waker", "--engine", "sequential"]);
    assert_eq!(code, Some(1), "{text}");
    let (_, after) = text
        .split_once("again: cargo test --test suite -- --replay '")
        .expect("the command is printed");
    let (token, _) = after.split_once('\'').expect("the token ends");
    let (code, text) = run(&["--replay", token]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&Class::StaleWaker.to_string()), "{text}");
}

fn a_subject_that_aborts_is_a_failure_like_others() {
    let (code, text) = run(&["aborts", "event", "--engine", "sequential"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("program: set/"), "{text}");
    assert!(text.contains("2 of 4 runs hold"), "{text}");
}

fn every_program_is_run_with_keep_going() {
    let programs = |arguments: &[&str]| {
        let file = format!("{}/keep-going.json", env!("CARGO_TARGET_TMPDIR"));
        let (code, text) = run(&[arguments, &["--json", &file]].concat());
        assert_eq!(code, Some(1), "{text}");
        let json = std::fs::read_to_string(&file).expect(&text);
        let json: Json = serde_json::from_str(&json).expect("it is JSON");
        json["results"][0]["programs"].as_u64().expect("a number")
    };
    let arguments = ["first-waker", "--engine", "sequential", "-j", "1"];
    let first = programs(&arguments);
    let all = programs(&[&arguments[..], &["--keep-going"]].concat());
    assert!(first < all, "{first} of {all}");
}

fn unknown_subjects_are_refused_by_the_name_of_the_command() {
    let (code, text) = run(&["evnet"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("`cargo test --test suite -- --list`"),
        "{text}"
    );
}

fn main() -> ExitCode {
    if std::env::var_os(COMMAND).is_some() {
        return command();
    }
    a_subject_that_holds_has_status_0();
    a_failure_names_the_command_that_runs_it_again();
    a_subject_that_aborts_is_a_failure_like_others();
    every_program_is_run_with_keep_going();
    unknown_subjects_are_refused_by_the_name_of_the_command();
    ExitCode::SUCCESS
}
