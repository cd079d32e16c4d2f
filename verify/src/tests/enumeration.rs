//! Programs: all of them, once, smallest first.

use std::collections::HashSet;
use std::sync::Arc;

use reveille::backend::Native;

use super::numbers;
use crate::judge::erased::{AnySubject, erase};
use crate::program::Program;
use crate::subject::closures::{Closures, subject};
use crate::subject::plan::Bound;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::{Polling, Step};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject, default_plans};
use crate::subjects::{
    mutex::Mutexes, notify::Notifies, once_cell::OnceCells, oneshot::Oneshot, rwlock::RwLocks,
    state_lock::Lock,
};

/// Roles to order: nothing of it is ever run.
struct Toy {
    roles: Vec<Role<()>>,
    /// Whether the first operation of a role must come first.
    ordered: bool,
}

impl Subject for Toy {
    type Op = ();
    type Ret = ();
    type Spec = Nothing;
    type Actor = ();

    fn spec(&self) -> Nothing {
        Nothing
    }

    fn roles(&self, _: usize) -> Vec<Role<()>> {
        self.roles.clone()
    }

    fn actors(&self, participants: usize) -> Vec<()> {
        vec![(); participants]
    }

    fn start<'a>(&self, (): &'a mut (), _: Call<'_, ()>, _: &dyn Fn() -> Value) -> Started<'a, ()> {
        Started::Done(())
    }

    fn follows(&self, _: &Role<()>, before: &[Step], next: Step) -> bool {
        !self.ordered || before.is_empty() == (next.op == 0)
    }
}

struct Nothing;

impl Spec for Nothing {
    type Op = ();
    type Ret = ();
    type State = ();

    fn initial(&self) {}

    fn step(&self, (): &(), _: Call<'_, ()>) -> Vec<((), ())> {
        vec![((), ())]
    }
}

fn role(kind: usize, ops: &[Operation<()>]) -> Role<()> {
    Role {
        name: "role",
        ops: ops.to_vec(),
        symmetry: kind,
    }
}

const ONCE: Operation<()> = Operation::immediate("once", ());
const OTHER: Operation<()> = Operation::immediate("other", ());
const WAIT: Operation<()> = Operation::future("wait", ());
const BLOCK: Operation<()> = Operation::blocking("block", ());

fn toy(roles: Vec<Role<()>>) -> Arc<dyn AnySubject> {
    let participants = roles.len();
    let toy = Toy {
        roles,
        ordered: false,
    };
    erase(toy, participants)
}

const BOUND: Bound = Bound {
    participants: 2,
    operations: 2,
    total: 4,
    non_default: 4,
    suspensions: 2,
    blocking: true,
    aliases: true,
    panics: true,
    only_panics: false,
};

fn count(subject: &Arc<dyn AnySubject>, bound: Bound) -> usize {
    Program::enumerate(&**subject, bound).len()
}

#[test]
fn aliases_can_be_left_out() {
    const ALIAS: Operation<()> = OTHER.alias();
    let subject = toy(vec![role(0, &[ONCE, ALIAS]), role(1, &[ONCE, ALIAS])]);
    let main = Bound {
        aliases: false,
        ..BOUND
    };
    assert_eq!(count(&subject, BOUND), 48);
    // As if there were only `once`.
    assert_eq!(count(&subject, main), 8);
    assert!(main.to_string().contains("no aliases"));
}

/// Counted by hand.
#[test]
fn there_are_as_many_as_there_should_be() {
    // Nothing, `once` and `once,once` for each of two: nine less the empty one.
    let different = toy(vec![role(0, &[ONCE]), role(1, &[ONCE])]);
    assert_eq!(count(&different, BOUND), 8);
    // Where they are equal, 3 of these are exchanges of others.
    let equal = toy(vec![role(0, &[ONCE]), role(0, &[ONCE])]);
    assert_eq!(count(&equal, BOUND), 5);
    // Three equal ones with one operation each at most: none, one, two, three.
    let three = toy(vec![role(0, &[ONCE]); 3]);
    let one_each = Bound {
        operations: 1,
        ..BOUND
    };
    assert_eq!(count(&three, one_each), 3);
    // At most three in all: without `once,once/once,once`.
    let total = Bound { total: 3, ..BOUND };
    assert_eq!(count(&different, total), 7);

    // A future in thirteen polling modes, ten of them without panics.
    let waits = toy(vec![role(0, &[WAIT]), role(1, &[ONCE])]);
    assert_eq!(count(&waits, one_each), 14 * 2 - 1);
    let tame = Bound {
        panics: false,
        ..one_each
    };
    assert_eq!(count(&waits, tame), 11 * 2 - 1);
    // At the first suspension only: four fewer.
    let first = Bound {
        suspensions: 1,
        ..one_each
    };
    assert_eq!(count(&waits, first), 10 * 2 - 1);
    // Only awaited.
    let usual = Bound {
        non_default: 0,
        ..one_each
    };
    assert_eq!(count(&waits, usual), 2 * 2 - 1);

    let blocks = toy(vec![role(0, &[BLOCK]), role(1, &[ONCE])]);
    assert_eq!(count(&blocks, one_each), 3);
    let idle = Bound {
        blocking: false,
        ..one_each
    };
    assert_eq!(count(&blocks, idle), 1);
}

#[test]
fn only_what_may_follow_does() {
    let toy = Toy {
        roles: vec![role(0, &[ONCE, OTHER])],
        ordered: true,
    };
    let subject = erase(toy, 1);
    let bound = Bound {
        operations: 3,
        ..BOUND
    };
    let texts: Vec<_> = Program::enumerate(&*subject, bound)
        .iter()
        .map(|program| program.text(subject.roles()))
        .collect();
    assert_eq!(texts, ["once", "once,other", "once,other,other"]);
}

/// Every program of three equal participants is, up to an exchange, exactly one
/// of those enumerated.
#[test]
fn of_programs_that_differ_by_an_exchange_one_is_there() {
    let subject = |kinds: [usize; 3]| {
        let roles = kinds.map(|kind| role(kind, &[ONCE, WAIT]));
        toy(roles.to_vec())
    };
    let bound = Bound {
        operations: 1,
        ..BOUND
    };
    // All different: every program there is.
    let all = Program::enumerate(&*subject([0, 1, 2]), bound);
    let kept = Program::enumerate(&*subject([0, 0, 0]), bound);
    let sorted = |program: &Program| {
        let mut lines = program.participants.clone();
        lines.sort();
        lines
    };
    let classes: HashSet<_> = all.iter().map(sorted).collect();
    let kept_classes: HashSet<_> = kept.iter().map(sorted).collect();
    assert_eq!(kept_classes, classes);
    assert_eq!(kept.len(), classes.len(), "none comes twice");
    assert!(kept.len() < all.len() / 4);
}

#[test]
fn the_smallest_come_first_and_none_twice() {
    fn check(subject: impl Subject, bound: Bound) {
        let subject = erase(subject, bound.participants);
        let programs = Program::enumerate(&*subject, bound);
        assert!(programs.is_sorted_by_key(Program::len));
        let different: HashSet<_> = programs.iter().collect();
        assert_eq!(different.len(), programs.len());
        for program in &programs {
            within(&*subject, bound, program);
            let text = program.text(subject.roles());
            let parsed = Program::parse(&text, subject.roles());
            assert_eq!(parsed.as_ref(), Some(program));
        }
    }
    for mode in [Mode::Steps, Mode::Sections, Mode::Accesses] {
        let bound = Plan::of(mode, Profile::Quick).bound;
        check(Oneshot.on::<Native>(), bound);
        check(Lock.on::<Native>(), bound);
        let small = Bound {
            total: 3,
            non_default: 1,
            ..bound
        };
        check(Notifies.on::<Native>(), small);
    }
}

/// Whether a program keeps to a bound and to what its subject allows.
fn within(subject: &dyn AnySubject, bound: Bound, program: &Program) {
    let text = program.text(subject.roles());
    let steps = || program.participants.iter().flatten();
    let non_default = steps()
        .filter(|step| step.polling != Polling::Await)
        .count();
    assert!(!program.is_empty());
    assert!(program.len() <= bound.total, "{text} is too long");
    assert!(
        non_default <= bound.non_default,
        "{text} is too non_default"
    );
    for (participant_id, line) in program.participants.iter().enumerate() {
        assert!(line.len() <= bound.operations, "{text} is too long");
        for (index, step) in line.iter().enumerate() {
            let follows = subject.follows(participant_id, &line[..index], *step);
            assert!(follows, "{text} is not allowed");
            let panics = matches!(step.polling, Polling::Panics(_));
            assert!(bound.panics || !panics, "{text} panics");
        }
    }
}

#[test]
fn a_bound_says_what_it_leaves_out() {
    assert_eq!(BOUND.to_string(), "2x2");
    let cut = Bound {
        total: 3,
        non_default: 1,
        blocking: false,
        panics: false,
        ..BOUND
    };
    let text = "2x2, 3 in all, 1 non-default, none blocking, no panics";
    assert_eq!(cut.to_string(), text);
}

/// The bound of a run is stated with its verdict, so what is drawn keeps to it.
#[test]
fn what_is_drawn_is_within_the_bound() {
    let bounds = [
        BOUND,
        Bound {
            participants: 3,
            operations: 4,
            total: 8,
            ..BOUND
        },
        Bound {
            operations: 4,
            total: 8,
            non_default: 2,
            panics: false,
            ..BOUND
        },
    ];
    for bound in bounds {
        let lock = erase(Lock.on::<Native>(), bound.participants);
        let oneshot = erase(Oneshot.on::<Native>(), bound.participants);
        let mut draw = numbers(7);
        let mut longest = 0;
        for _ in 0..1_000 {
            let program = Program::draw(&*lock, bound, &mut draw);
            within(&*lock, bound, &program);
            longest = longest.max(program.len());
            let program = Program::draw(&*oneshot, bound, &mut draw);
            within(&*oneshot, bound, &program);
        }
        assert_eq!(longest, bound.total, "the bound is made use of");
    }
}

#[test]
fn what_is_smaller_is_smaller_and_allowed() {
    let bound = Plan::of(Mode::Random, Profile::Quick).bound;
    let subject = erase(Oneshot.on::<Native>(), bound.participants);
    let weight = |program: &Program| {
        let steps = program.participants.iter().flatten();
        let non_default = steps.filter(|step| step.polling != Polling::Await).count();
        (program.len(), non_default)
    };
    let mut draw = numbers(11);
    for _ in 0..200 {
        let program = Program::draw(&*subject, bound, &mut draw);
        for smaller in program.smaller(&*subject) {
            within(&*subject, bound, &smaller);
            assert!(weight(&smaller) < weight(&program));
        }
    }
}

#[test]
fn what_is_not_a_program_is_not_read() {
    let subject = erase(Oneshot.on::<Native>(), 2);
    let roles = subject.roles();
    for text in [
        "",
        "send",
        "send/recv/recv",
        "sent/recv",
        "send/recv.twice",
        "send recv",
        "recv/send",
    ] {
        assert_eq!(Program::parse(text, roles), None, "{text}");
    }
    for text in ["/", "send/", "/recv", "closed.cancel,send/recv.repoll"] {
        let program = Program::parse(text, roles).expect("it is one");
        assert_eq!(program.text(roles), text);
    }
}

/// A request that may have been refused or given up leaves the participant free to
/// request again, and a look changes nothing of what may follow.
#[test]
fn what_follows_an_operation_that_may_have_failed_is_there() {
    fn has(subject: impl GenericSubject, programs: &[&str]) {
        let subject = erase(subject.on::<Native>(), 2);
        for text in programs {
            let program = Program::parse(text, subject.roles()).expect("it is one");
            for (participant_id, line) in program.participants.iter().enumerate() {
                for (index, &step) in line.iter().enumerate() {
                    let follows = subject.follows(participant_id, &line[..index], step);
                    assert!(follows, "{text} is left out");
                }
            }
        }
    }
    has(
        Mutexes(0),
        &[
            "lock_owned.cancel,lock/lock",
            "lock_owned.granted,lock_owned,unlock/",
            "try_lock_owned,lock_owned/try_lock_owned,try_lock_owned",
        ],
    );
    has(
        RwLocks,
        &[
            "read_owned.cancel,write_owned/",
            "try_write_owned,read_owned/upgradable_read_owned,upgrade.cancel",
            "upgradable_read_owned,upgrade.cancel,read_owned/",
        ],
    );
    has(OnceCells, &["get,get_or_init/initialized,set"]);
}

/// Without a future there is no waker that could panic, so no run is of such programs
/// only: it would be empty, and an empty run does not hold.
#[test]
fn a_subject_without_futures_has_no_run_of_panicking_wakers() {
    let only_panics = |subject: Closures<(), ()>| {
        let plans = default_plans(&subject, Mode::Steps, Profile::Quick);
        assert!(!plans.is_empty());
        plans.iter().any(|plan| plan.bound.only_panics)
    };
    let done = || subject(|| (), ()).op("done", |()| (), |()| [((), ())]);
    assert!(!only_panics(done()));
    let waits = done().future("waits", |_| async {}, |()| [((), ())]);
    assert!(only_panics(waits));
}
