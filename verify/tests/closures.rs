//! Subjects made of closures.

use std::sync::Arc;

use reveille::{Notify, Semaphore};
use reveille_verify::{Class, Closures, Mode, Plan, Profile, Report, explore_foreign, subject};

fn steps(subject: Closures<impl Send + Sync + 'static, impl State>) -> Report {
    let plan = Plan::of(Mode::Steps, Profile::Quick);
    explore_foreign(subject, "subject", Mode::Steps, &plan)
}

trait State: Clone + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {}

impl<S: Clone + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static> State for S {}

/// A semaphore of one permit whose permits are forgotten: every acquired permit is
/// returned by `add`. `most` is what the specification says is available at most.
fn counted(most: usize) -> Closures<Semaphore, usize> {
    subject(|| Semaphore::new(1), 1)
        .op(
            "add",
            |it| it.add_permits(1),
            move |&n| [((n + 1).min(most), ())],
        )
        .op("available", Semaphore::available_permits, |&n| [(n, n)])
}

#[test]
fn a_subject_without_roles_takes_any_number_of_participants() {
    let report = steps(counted(usize::MAX));
    assert!(report.holds(), "{report}");
    let mut plan = Plan::of(Mode::Steps, Profile::Quick);
    plan.bound.participants = 4;
    plan.bound.operations = 1;
    plan.bound.total = 4;
    let report = explore_foreign(counted(usize::MAX), "counted", Mode::Steps, &plan);
    assert!(
        report.holds() && report.bound.starts_with("4x1"),
        "{report}"
    );
}

#[test]
fn a_result_that_the_meaning_has_not_is_wrong() {
    let report = steps(counted(1));
    let failure = &report.failures[0];
    assert_eq!(failure.class, Class::WrongResult, "{report}");
    // The text of the results is what their `Debug` prints.
    assert!(failure.table.contains("= 2"), "{report}");
}

#[test]
fn a_future_owns_the_primitive_and_waits_where_there_is_no_outcome() {
    let notify = |kept: bool| {
        subject(Notify::new, false)
            .role("sender")
            .op("notify", |it| it.notify_one(), |_| [(true, ())])
            .role("receiver")
            .times(2)
            .future(
                "notified",
                |it: Arc<Notify>| async move { it.notified().await },
                move |&permit| permit.then_some((permit && kept, ())),
            )
    };
    // One permit at most is kept, and a notification takes it.
    let report = steps(notify(false));
    assert!(report.holds(), "{report}");
    // A specification in which it stays says that the second receiver should go on.
    let report = steps(notify(true));
    assert!(!report.holds(), "{report}");
}

#[test]
fn several_outcomes_are_all_allowed() {
    let coin = subject(|| (), ()).op("toss", |()| true, |()| [((), true), ((), false)]);
    assert!(steps(coin).holds());
    let stuck = subject(|| (), ()).op("toss", |()| true, |()| [((), false)]);
    assert!(!steps(stuck).holds());
}

#[test]
#[should_panic(expected = "begin with a role")]
fn operations_without_a_role_are_not_mixed_with_roles() {
    let _ = subject(|| (), ())
        .op("nothing", |()| (), |()| [((), ())])
        .role("late");
}
