//! What is said of subjects that are odd in themselves: what has no end, a
//! specification that panics, more participants than an engine has threads for.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::task::Poll;

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};
use reveille_verify::{
    Call, Class, GenericSubject, Mode, Operation, Plan, Profile, Report, Role, Spec, Started,
    Subject, Value, explore,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oddity {
    /// Nothing is odd.
    None,
    /// An operation that wakes itself whenever it is polled, for ever.
    Endless,
    /// One that does so a thousand times.
    Patient,
    /// There is an actor too few, or one too many.
    Actors(isize),
    /// There are no roles.
    NoRoles,
    /// Participants of one symmetry class have different operations.
    Asymmetric,
    /// The actors cannot be made.
    NoActors,
    /// An operation is declared as none that is a future.
    Undeclared,
    /// The specification panics.
    Unspecified,
    /// An operation that does not wait has no outcome.
    NoOutcome,
    /// A poll that enters sections for ever.
    Loops,
    /// The specification depends on the number of participants.
    Counted,
    /// Operations of these names.
    Named(&'static [&'static str]),
}

struct Odd<B> {
    oddity: Oddity,
    backend: PhantomData<fn() -> B>,
}

/// With the number of participants, if it is known.
struct OddSpec(Oddity, Option<usize>);

impl Spec for OddSpec {
    type Op = ();
    type Ret = ();
    type State = ();

    fn initial(&self) {}

    fn step(&self, _: &(), _: Call<'_, ()>) -> Vec<((), ())> {
        assert!(self.0 != Oddity::Unspecified, "there is no such step");
        match (self.0, self.1) {
            (Oddity::NoOutcome, _) => vec![],
            (Oddity::Counted, participants) if participants != Some(2) => vec![],
            _ => vec![((), ())],
        }
    }
}

impl<B: BlockingBackend> Subject for Odd<B> {
    type Op = ();
    type Ret = ();
    type Spec = OddSpec;
    type Actor = ();

    fn spec(&self) -> OddSpec {
        OddSpec(self.oddity, None)
    }

    fn spec_for(&self, participants: usize) -> OddSpec {
        OddSpec(self.oddity, Some(participants))
    }

    fn roles(&self, participants: usize) -> Vec<Role<()>> {
        let names = match self.oddity {
            Oddity::Named(names) => names,
            _ => &["acts"],
        };
        let operation = match self.oddity {
            Oddity::Undeclared | Oddity::NoOutcome => Operation::immediate,
            _ => Operation::future,
        };
        let role = Role {
            name: "task",
            ops: names.iter().map(|name| operation(name, ())).collect(),
            symmetry: 0,
        };
        let mut roles = vec![role; participants];
        match self.oddity {
            Oddity::NoRoles => roles.clear(),
            Oddity::Asymmetric => roles[0].ops.push(Operation::future("idles", ())),
            _ => {}
        }
        roles
    }

    fn actors(&self, participants: usize) -> Vec<()> {
        assert!(self.oddity != Oddity::NoActors, "out of actors");
        let more = match self.oddity {
            Oddity::Actors(more) => more,
            _ => 0,
        };
        vec![(); participants.saturating_add_signed(more)]
    }

    fn start<'a>(&self, (): &'a mut (), _: Call<'_, ()>, _: &dyn Fn() -> Value) -> Started<'a, ()> {
        let mut left = match self.oddity {
            Oddity::Endless => usize::MAX,
            Oddity::Patient => 1_000,
            _ => 0,
        };
        let oddity = self.oddity;
        if oddity == Oddity::NoOutcome {
            return Started::Done(());
        }
        Started::future(poll_fn(move |cx| {
            if oddity == Oddity::Loops {
                let lock = StateLock::<(), B>::new_in(Bits::EMPTY, ());
                loop {
                    lock.with(|_| ());
                }
            }
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}

struct Odds(Oddity);

impl GenericSubject for Odds {
    type On<B: BlockingBackend> = Odd<B>;

    fn on<B: BlockingBackend>(&self) -> Odd<B> {
        Odd {
            oddity: self.0,
            backend: PhantomData,
        }
    }
}

fn run(oddity: Oddity, mode: Mode, participants: usize) -> Report {
    let mut plan = Plan::of(mode, Profile::Quick);
    plan.bound.participants = participants;
    plan.bound.operations = 1;
    plan.bound.non_default = 0;
    explore(&Odds(oddity), "odd", mode, &plan)
}

fn failure(report: &Report) -> (Class, &str) {
    let failure = report.failures.first();
    let failure = failure.unwrap_or_else(|| panic!("{report}"));
    (failure.class, &failure.sentence)
}

#[test]
fn what_wakes_itself_for_ever_has_no_end() {
    for mode in Mode::ALL {
        let report = run(Oddity::Endless, mode, 2);
        let (class, sentence) = failure(&report);
        assert_eq!(class, Class::Deadlock, "{report}");
        assert!(sentence.contains("it would go on for ever"), "{report}");
    }
}

/// A poll that never returns is seen if the engine chooses the next section. Otherwise the
/// program is named while it runs.
#[test]
fn what_enters_sections_for_ever_has_no_end() {
    let modes = [Mode::Sections, Mode::Accesses, Mode::Exhaustive];
    for mode in modes.into_iter().chain([Mode::Random, Mode::Pct]) {
        let report = run(Oddity::Loops, mode, 2);
        let (class, sentence) = failure(&report);
        assert_eq!(class, Class::Deadlock, "{report}");
        assert!(sentence.contains("it would go on for ever"), "{report}");
    }
}

#[test]
fn an_operation_without_an_outcome_is_named() {
    for mode in Mode::ALL {
        let report = run(Oddity::NoOutcome, mode, 2);
        let (class, sentence) = failure(&report);
        assert_eq!(class, Class::WrongResult, "{report}");
        let said = "acts = () has no outcome, although it is declared not to wait";
        assert!(sentence.contains(said), "{report}");
    }
}

#[test]
fn a_specification_knows_the_number_of_participants() {
    for mode in Mode::ALL {
        assert!(run(Oddity::Counted, mode, 2).holds());
        assert!(!run(Oddity::Counted, mode, 3).holds());
    }
}

#[test]
fn a_specification_that_panics_is_named() {
    for mode in Mode::ALL {
        let report = run(Oddity::Unspecified, mode, 2);
        let (class, sentence) = failure(&report);
        assert_eq!(class, Class::Panic, "{report}");
        let said = "the specification panics: there is no such step";
        assert!(sentence.starts_with(said), "{report}");
    }
}

#[test]
fn loom_says_for_how_many_it_has_threads() {
    assert!(run(Oddity::None, Mode::Sections, 5).holds());
    let report = run(Oddity::None, Mode::Sections, 6);
    let (_, sentence) = failure(&report);
    assert!(sentence.contains("at most 5 threads"), "{report}");
    assert!(run(Oddity::None, Mode::Exhaustive, 6).holds());
}

#[test]
fn names_of_operations_divide_no_program_and_are_not_shared() {
    for (names, said) in [
        (&["a/b"][..], "`a/b` cannot be the name of an operation"),
        (&["a.b"], "`a.b` cannot be the name of an operation"),
        (&["a,b"], "`a,b` cannot be the name of an operation"),
        (&["a:b"], "`a:b` cannot be the name of an operation"),
        (&[""], "`` cannot be the name of an operation"),
        (
            &["a", "b", "a"],
            "the task has two operations of the name `a`",
        ),
    ] {
        let run = || run(Oddity::Named(names), Mode::Steps, 2);
        let panic = std::panic::catch_unwind(run).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains(said), "{text}");
    }
    assert!(run(Oddity::Named(&["a", "b"]), Mode::Steps, 2).holds());
}

/// On real threads a future may rightly be polled often, until another thread has
/// done something: there a limit on time says that it has no end.
#[test]
fn on_real_threads_a_thousand_polls_are_not_too_many() {
    let report = run(Oddity::Patient, Mode::Threads, 2);
    assert!(report.holds(), "{report}");
}

#[test]
fn a_subject_that_contradicts_itself_is_refused_in_a_sentence() {
    for (oddity, said) in [
        (
            Oddity::Actors(-1),
            "returns 2 roles and `Subject::actors` 1 actors",
        ),
        (
            Oddity::Actors(1),
            "returns 2 roles and `Subject::actors` 3 actors",
        ),
        (Oddity::NoRoles, "returns no role for 2 participants"),
        (
            Oddity::Asymmetric,
            "are of symmetry class 0 and have different operations",
        ),
        (Oddity::NoActors, "`Subject::actors` panics: out of actors"),
    ] {
        for mode in Mode::ALL {
            let panic = std::panic::catch_unwind(|| run(oddity, mode, 2)).unwrap_err();
            let text = panic.downcast_ref::<String>().unwrap();
            assert!(text.contains(said), "{text}");
        }
    }
}

#[test]
fn an_operation_that_starts_an_undeclared_future_is_named() {
    for mode in Mode::ALL {
        let report = run(Oddity::Undeclared, mode, 2);
        let (class, sentence) = failure(&report);
        assert_eq!(class, Class::Panic, "{report}");
        assert!(sentence.starts_with("`acts` starts a future"), "{report}");
    }
}
