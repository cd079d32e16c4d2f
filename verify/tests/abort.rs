//! A program that aborts the process is named.

use std::process::Command;

use reveille::backend::BlockingBackend;
use reveille_verify::{
    Call, GenericSubject, Mode, Operation, Plan, Profile, Role, Spec, Started, Subject, Value,
    explore,
};

/// Panics when it is dropped.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("a destructor panics");
    }
}

struct Aborts;

impl Spec for Aborts {
    type Op = ();
    type Ret = ();
    type State = ();

    fn initial(&self) {}

    fn step(&self, (): &(), _: Call<'_, ()>) -> Vec<((), ())> {
        vec![((), ())]
    }
}

impl Subject for Aborts {
    type Op = ();
    type Ret = ();
    type Spec = Self;
    type Actor = ();

    fn spec(&self) -> Self {
        Self
    }

    fn roles(&self, participants: usize) -> Vec<Role<()>> {
        let role = Role {
            name: "task",
            ops: vec![Operation::immediate("unwinds", ())],
            symmetry: 0,
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<()> {
        vec![(); participants]
    }

    fn start<'a>(&self, (): &'a mut (), _: Call<'_, ()>, _: &dyn Fn() -> Value) -> Started<'a, ()> {
        let _panics_too = Panics;
        panic!("an operation panics");
    }
}

struct AbortsOverAll;

impl GenericSubject for AbortsOverAll {
    type On<B: BlockingBackend> = Aborts;

    fn on<B: BlockingBackend>(&self) -> Aborts {
        Aborts
    }
}

const MODE: &str = "REVEILLE_ABORTS_IN_MODE";

/// What aborts, in a process of its own.
#[test]
fn aborting() {
    let Ok(mode) = std::env::var(MODE) else {
        return;
    };
    let mode = Mode::ALL.into_iter().find(|one| one.name() == mode);
    let mode = mode.expect("a mode was named");
    let plan = Plan::of(mode, Profile::Quick);
    let _ = explore(&AbortsOverAll, "aborts", mode, &plan);
}

#[test]
fn the_program_that_aborts_the_process_is_named() {
    for mode in [Mode::Steps, Mode::Exhaustive, Mode::Threads] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "aborting", "--nocapture"])
            .env(MODE, mode.name())
            .output()
            .unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr);
        let said = format!("aborts, {}: `unwinds", mode.name());
        assert!(error.contains(&said), "{error}");
        assert!(error.contains("` aborts the process"), "{error}");
    }
}
