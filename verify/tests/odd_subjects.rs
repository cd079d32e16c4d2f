//! What is said of subjects that are odd in themselves: what has no end, a
//! specification that panics, more participants than an engine has threads for.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::task::Poll;

use reveille::backend::BlockingBackend;
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
    /// The specification panics.
    Unspecified,
    /// Operations of these names.
    Named(&'static [&'static str]),
}

struct Odd<B> {
    oddity: Oddity,
    backend: PhantomData<fn() -> B>,
}

struct OddSpec(Oddity);

impl Spec for OddSpec {
    type Op = ();
    type Ret = ();
    type State = ();

    fn initial(&self) {}

    fn step(&self, _: &(), _: Call<'_, ()>) -> Vec<((), ())> {
        assert!(self.0 != Oddity::Unspecified, "there is no such step");
        vec![((), ())]
    }
}

impl<B: BlockingBackend> Subject for Odd<B> {
    type Op = ();
    type Ret = ();
    type Spec = OddSpec;
    type Actor = ();

    fn spec(&self) -> OddSpec {
        OddSpec(self.oddity)
    }

    fn roles(&self, participants: usize) -> Vec<Role<()>> {
        let names = match self.oddity {
            Oddity::Named(names) => names,
            _ => &["acts"],
        };
        let role = Role {
            name: "task",
            ops: names
                .iter()
                .map(|name| Operation::future(name, ()))
                .collect(),
            symmetry: 0,
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<()> {
        vec![(); participants]
    }

    fn start<'a>(&self, (): &'a mut (), _: Call<'_, ()>, _: &dyn Fn() -> Value) -> Started<'a, ()> {
        let ends = self.oddity != Oddity::Endless;
        Started::future(poll_fn(move |cx| {
            if ends {
                return Poll::Ready(());
            }
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
    assert!(sentence.contains("5 threads at most"), "{report}");
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
        assert!(text.starts_with(said), "{text}");
    }
    assert!(run(Oddity::Named(&["a", "b"]), Mode::Steps, 2).holds());
}
