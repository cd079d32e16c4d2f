//! What the subjects of time share: a clock that is moved by hand, its ticks, and how
//! far each engine goes.
//!
//! "The deadline passes now" is one more operation, `advance`. It interleaves with all
//! others.

use reveille::backend::BlockingBackend;
use reveille::time::{Advance, Duration, Instant, VirtualClock};

use crate::subject::plan::Bound;
use crate::subject::plan::{Mode, Plan, Profile};

/// Returns the duration of `number` ticks, of a nanosecond each.
pub(crate) const fn ticks(number: u64) -> Duration {
    Duration::from_nanos(number)
}

/// Returns the instant that the clock shows after `tick` ticks.
pub(crate) fn at(tick: u64) -> Instant {
    Instant::from_origin(ticks(tick))
}

/// Returns the tick of an instant.
pub(crate) fn tick(instant: Instant) -> u64 {
    u64::try_from(instant.since_origin().as_nanos()).expect("an instant fits")
}

/// Returns a clock at its origin that is moved by hand. Its ticks are those of the
/// timers.
pub(crate) fn by_hand<B: BlockingBackend>() -> VirtualClock<B> {
    VirtualClock::new_in(Instant::ORIGIN, Advance::ByHand, ticks(1))
}

/// A deadline on a level of the wheel above that of the near ones.
pub(crate) const FAR: u64 = 70;

/// A deadline on the level above that, whose slots are of 4,096 ticks.
pub(crate) const FARTHER: u64 = 5_000;

/// Returns the plans of a primitive that waits for a clock. `least` is the number of
/// participants that it takes for something to happen. The plans have `least`
/// participants, and one more.
pub(crate) fn plans(mode: Mode, profile: Profile, least: usize) -> Vec<Plan> {
    let plan = Plan::of(mode, profile);
    let with = |participants, operations, total, non_default, panics| Plan {
        bound: Bound {
            participants,
            operations,
            total,
            non_default,
            panics,
            ..plan.bound
        },
        ..plan
    };
    let most = least + 1;
    let drawn = with(most, 3, 3 * most, 3 * most, true);
    use Mode::{Accesses, Exhaustive, Pct, Random, Sections, Steps, Threads};
    match (mode, profile) {
        (Steps, Profile::Quick) => vec![with(least, 2, 3, 1, true), with(most, 1, most, 0, false)],
        (Steps, _) => vec![with(least, 3, 5, 2, true), with(most, 2, most + 1, 1, true)],
        (Sections, Profile::Quick) => vec![with(least, 1, 2, 0, false)],
        (Accesses, Profile::Quick) => vec![Plan {
            preemptions: Some(1),
            ..with(least, 1, 2, 0, false)
        }],
        (Accesses, Profile::Full) => vec![Plan {
            preemptions: Some(2),
            ..with(least, 1, 2, 0, false)
        }],
        (Sections | Accesses, _) => vec![with(least, 1, least, 1, true)],
        (Exhaustive, Profile::Quick) if most > 3 => vec![with(least, 2, 3, 1, false)],
        (Exhaustive, Profile::Quick) => {
            vec![with(least, 2, 3, 1, false), with(most, 1, 3, 0, false)]
        }
        (Exhaustive, Profile::Full) => {
            vec![with(least, 2, 4, 2, true), with(most, 1, most, 1, true)]
        }
        (Exhaustive, Profile::Deep) => {
            vec![with(least, 3, 5, 2, true), with(most, 2, most + 1, 1, true)]
        }
        (Random | Pct, Profile::Quick) => vec![Plan {
            drawn: Some(50),
            ..drawn
        }],
        (Threads, Profile::Quick) => vec![Plan {
            drawn: Some(20),
            ..drawn
        }],
        (Random | Pct | Threads, _) => vec![drawn],
    }
}
