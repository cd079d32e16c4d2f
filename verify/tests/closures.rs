//! Subjects made of closures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use reveille::protocol::{Bits, StateLock, WakerSlot};

use reveille::{Notify, Semaphore};
use reveille_verify::{
    Class, Closures, Mode, Plan, Profile, Report, Verdict, explore_foreign, explore_native,
    replay_native, subject,
};

fn steps(subject: Closures<impl Send + Sync + 'static, impl State>) -> Report {
    let mut plan = Plan::of(Mode::Steps, Profile::Quick);
    plan.bound.total = 3;
    plan.bound.panics = false;
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

const OPEN: Bits = Bits::new(1);

/// A gate over the default backend. A variant forgets a check.
struct Gate {
    lock: StateLock<WakerSlot>,
    forgetful: bool,
}

impl Gate {
    fn open(&self) {
        self.lock.with(|section| {
            section.bits.insert(OPEN);
            section.wakes.wake(section.state);
        });
    }

    fn poll_opened(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.lock.load().contains(OPEN) {
            return Poll::Ready(());
        }
        self.lock.poll(cx, true, |section, registration| {
            if section.bits.contains(OPEN) && !self.forgetful {
                return Ok(());
            }
            Err(registration.register(section.state))
        })
    }
}

fn gate(forgetful: bool) -> Closures<Gate, bool> {
    let create = move || Gate {
        lock: StateLock::new_in(Bits::EMPTY, WakerSlot::new()),
        forgetful,
    };
    subject(create, false)
        .role("porter")
        .op("open", Gate::open, |_| [(true, ())])
        .role("guest")
        .poll("opened", Gate::poll_opened, |&open| {
            open.then_some((true, ()))
        })
        .keeps_waker("until the gate opens")
}

fn exhaustive(subject: Closures<impl Send + Sync + 'static, impl State>) -> Report {
    let plan = Plan::of(Mode::Exhaustive, Profile::Quick);
    explore_native(subject, "gate", Mode::Exhaustive, &plan)
}

/// The fault is between two sections of a poll, which only an interleaving shows.
#[test]
fn sections_of_the_default_backend_are_interleaved() {
    assert!(steps(gate(true)).holds());
    let report = exhaustive(gate(false));
    assert!(report.holds(), "{report}");
    assert_eq!(report.verdict, Verdict::Complete);
    assert!(report.executions > 2 * report.programs, "{report}");

    let report = exhaustive(gate(true));
    let failure = &report.failures[0];
    assert_eq!(failure.class, Class::LostWakeUp, "{report}");
    assert_eq!(failure.program, "open/opened");
    let again = replay_native(gate(true), &failure.token).expect("it fails again");
    assert_eq!(again.table, failure.table);
}

/// Reveille's own primitives are over the default backend, too: a latch of a flag and a
/// notification, which begins to wait before it looks at the flag, or after.
#[test]
fn a_primitive_made_of_primitives_needs_no_backend() {
    type Latch = (StateLock<()>, Notify);
    fn is_open(latch: &Latch) -> bool {
        latch.0.load().contains(OPEN)
    }
    let latch = |late: bool| {
        let create = || (StateLock::new_in(Bits::EMPTY, ()), Notify::new());
        subject(create, false)
            .role("opener")
            .op(
                "open",
                |(flag, notify): &Latch| {
                    flag.with(|section| section.bits.insert(OPEN));
                    notify.notify_waiters();
                },
                |_| [(true, ())],
            )
            .role("waiter")
            .future(
                "wait",
                move |latch: Arc<Latch>| async move {
                    if late {
                        while !is_open(&latch) {
                            latch.1.notified().await; // It is opened before this line.
                        }
                        return;
                    }
                    loop {
                        let notified = latch.1.notified();
                        if is_open(&latch) {
                            return;
                        }
                        notified.await;
                    }
                },
                |&open| open.then_some((true, ())),
            )
    };
    let report = exhaustive(latch(false));
    assert!(report.holds(), "{report}");
    let report = exhaustive(latch(true));
    assert_eq!(report.failures[0].class, Class::LostWakeUp, "{report}");
}

/// A verdict about interleavings needs something to interleave.
#[test]
fn a_run_that_sees_no_section_does_not_hold() {
    let flag = subject(|| AtomicBool::new(false), false).op(
        "set",
        |flag| flag.store(true, Ordering::SeqCst),
        |_| [(true, ())],
    );
    let report = exhaustive(flag);
    assert!(report.failures.is_empty() && !report.holds(), "{report}");
    assert!(
        report.to_string().contains("no section was seen"),
        "{report}"
    );
}
