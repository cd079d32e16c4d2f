//! Every public operation of a primitive is in the alphabet of its subject, or
//! is listed here with why it need not be.

use std::collections::BTreeSet;

use crate::registry;

/// Why an operation is in no program.
#[derive(Clone, Copy, Debug)]
enum Because {
    /// It makes the primitive, before the program begins.
    Makes,
    /// It needs the primitive for itself: nothing can come between.
    Alone,
    /// It reads what never changes.
    Constant,
    /// It is the same code as the operation of this name.
    Runs(&'static str),
    /// It is there with the feature `locations`, and decides nothing.
    Tells,
}

use Because::{Alone, Constant, Makes, Runs, Tells};

type Absent = (&'static str, Because);

/// Each subject, the source of its primitive, and what of it is in no program.
const TABLE: [(&str, &str, &[Absent]); 13] = [
    (
        "oneshot",
        include_str!("../../../primitives/src/oneshot.rs"),
        &[
            ("channel", Makes),
            ("channel_in", Makes),
            ("new", Makes),
            ("new_in", Makes),
            ("poll_closed", Runs("closed")),
            ("split", Makes),
        ],
    ),
    (
        "notify",
        include_str!("../../../primitives/src/notify.rs"),
        &[
            ("const_new", Makes),
            ("enable", Runs("enabled")),
            ("new", Makes),
            ("new_in", Makes),
            ("waiters", Tells),
        ],
    ),
    (
        "mutex",
        include_str!("../../../primitives/src/mutex.rs"),
        &[
            ("const_new", Makes),
            ("get_mut", Alone),
            ("holder", Tells),
            ("into_inner", Alone),
            ("mutex", Constant),
            ("new", Makes),
            ("new_in", Makes),
            ("try_map", Runs("map")),
            ("waiters", Tells),
            ("with_bound", Makes),
        ],
    ),
    (
        "condvar",
        include_str!("../../../primitives/src/condvar.rs"),
        &[("new", Makes), ("new_in", Makes), ("waiters", Tells)],
    ),
    (
        "rwlock",
        include_str!("../../../primitives/src/rwlock.rs"),
        &[
            ("const_new", Makes),
            ("const_with_max_readers", Makes),
            ("downgrade_map", Runs("downgrade")),
            ("get_mut", Alone),
            ("holders", Tells),
            ("into_inner", Alone),
            ("into_mapped", Runs("map")),
            ("new", Makes),
            ("new_in", Makes),
            ("rwlock", Constant),
            ("try_downgrade_map", Runs("downgrade")),
            ("try_map", Runs("map")),
            ("waiters", Tells),
            ("with_max_readers", Makes),
        ],
    ),
    (
        "semaphore",
        include_str!("../../../primitives/src/semaphore.rs"),
        &[
            ("acquire_many_owned", Runs("acquire_many")),
            ("acquire_owned", Runs("acquire")),
            ("blocking_acquire_many", Runs("blocking_acquire")),
            ("blocking_acquire_many_owned", Runs("blocking_acquire")),
            ("blocking_acquire_owned", Runs("blocking_acquire")),
            ("const_new", Makes),
            ("holders", Tells),
            ("merge", Runs("split_merge")),
            ("new", Makes),
            ("new_in", Makes),
            ("num_permits", Constant),
            ("semaphore", Constant),
            ("split", Runs("split_merge")),
            ("try_acquire_many_owned", Runs("try_acquire_many")),
            ("try_acquire_owned", Runs("try_acquire")),
            ("waiters", Tells),
            ("with_bound", Makes),
        ],
    ),
    (
        "barrier",
        include_str!("../../../primitives/src/barrier.rs"),
        &[
            ("is_leader", Constant),
            ("new", Makes),
            ("new_in", Makes),
            ("waiters", Tells),
        ],
    ),
    (
        "once-cell",
        include_str!("../../../primitives/src/once_cell.rs"),
        &[
            ("const_new", Makes),
            ("const_new_with", Makes),
            ("get_mut", Alone),
            ("into_inner", Alone),
            ("is_already_init_err", Constant),
            ("is_initializing_err", Constant),
            ("new", Makes),
            ("new_in", Makes),
            ("new_with", Makes),
            ("take", Alone),
            ("waiters", Tells),
        ],
    ),
    (
        "set-once",
        include_str!("../../../primitives/src/set_once.rs"),
        &[
            ("const_new", Makes),
            ("const_new_with", Makes),
            ("into_inner", Alone),
            ("new", Makes),
            ("new_in", Makes),
            ("new_with", Makes),
            ("waiters", Tells),
        ],
    ),
    (
        "sleep",
        include_str!("../../../primitives/src/time/sleep.rs"),
        &[
            ("deadline", Alone),
            ("is_elapsed", Runs("is_elapsed_1")),
            ("reset", Runs("reset_sooner")),
        ],
    ),
    (
        "sleep",
        include_str!("../../../primitives/src/time/virtual_clock.rs"),
        &[
            ("advance", Runs("advance_1")),
            ("by_hand", Makes),
            ("new_in", Makes),
            ("starting_at", Makes),
            ("timers", Constant),
            ("when_idle", Makes),
        ],
    ),
    (
        "interval",
        include_str!("../../../primitives/src/time/interval.rs"),
        &[
            ("missed_tick_behavior", Alone),
            ("period", Constant),
            ("poll_tick", Runs("tick")),
            ("set_missed_tick_behavior", Runs("skip")),
        ],
    ),
    (
        "delay-queue",
        include_str!("../../../primitives/src/time/delay_queue.rs"),
        &[
            ("capacity", Alone),
            ("compact", Alone),
            ("get_mut", Alone),
            ("get_ref", Constant),
            ("insert", Runs("insert_1")),
            ("into_inner", Alone),
            ("is_empty", Runs("len")),
            ("key", Constant),
            ("new", Makes),
            ("new_in", Makes),
            ("poll_expired", Runs("expired")),
            ("reserve", Alone),
            ("reset", Runs("reset_1")),
            ("reset_at", Runs("reset_1")),
            ("shrink_to_fit", Alone),
            ("try_remove", Runs("remove")),
            ("with_capacity", Makes),
        ],
    ),
];

/// The names of the public functions of a source.
fn public(source: &str) -> BTreeSet<&str> {
    source
        .lines()
        .filter_map(|line| {
            let item = line.trim_start().strip_prefix("pub ")?;
            let item = item.strip_prefix("const ").unwrap_or(item);
            let name = item.strip_prefix("fn ")?;
            name.split(['(', '<']).next()
        })
        .collect()
}

fn alphabet(subject: &str) -> BTreeSet<String> {
    let named = registry::find(subject).expect("the subject is registered");
    let roles = named.entry.roles();
    roles.into_iter().flat_map(|(_, names)| names).collect()
}

#[test]
fn every_public_operation_is_in_a_program_or_says_why_not() {
    for (subject, source, absent) in TABLE {
        let offered = alphabet(subject);
        let excused: BTreeSet<&str> = absent.iter().map(|&(name, _)| name).collect();
        let forgotten: Vec<&str> = public(source)
            .into_iter()
            .filter(|name| !offered.contains(*name) && !excused.contains(name))
            .collect();
        assert_eq!(forgotten, [""; 0], "no program does these of {subject}");
    }
}

#[test]
fn nothing_is_excused_that_is_not_there_or_runs_as_something_that_is_not() {
    for (subject, source, absent) in TABLE {
        let (offered, public) = (alphabet(subject), public(source));
        for &(name, because) in absent {
            assert!(public.contains(name), "{subject} has no {name}");
            assert!(!offered.contains(name), "{subject}: {name} is in programs");
            if let Runs(as_what) = because {
                assert!(
                    offered.contains(as_what),
                    "{subject}: {name} is said to run as {as_what}, which is in no program"
                );
            }
        }
    }
}
