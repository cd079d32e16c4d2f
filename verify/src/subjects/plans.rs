//! Plans that subjects share.

use crate::subject::plan::Bound;
use crate::subject::plan::{Mode, Plan, Profile};

/// Returns the plans of a primitive with a queue: for two participants, and for three,
/// since two can be queued while a third acts on the queue.
pub(crate) fn queueing(mode: Mode, profile: Profile) -> Vec<Plan> {
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
    use Mode::{Accesses, Exhaustive, Pct, Random, Sections, Steps, Threads};
    match (mode, profile) {
        (Steps, Profile::Quick) => vec![with(2, 2, 3, 1, true), with(3, 1, 3, 1, true)],
        (Steps, Profile::Full) => vec![
            with(2, 2, 4, 4, true),
            with(3, 3, 4, 0, false),
            main(with(3, 2, 5, 1, false)),
        ],
        (Steps, Profile::Deep) => vec![with(2, 3, 6, 2, true), with(3, 3, 5, 1, true)],
        // loom checks the verdicts of the exhaustive mode, which carries the bounds.
        (Sections, Profile::Quick) => vec![with(2, 1, 2, 1, true)],
        (Sections, Profile::Full) => vec![with(2, 2, 3, 0, false), with(2, 1, 2, 2, true)],
        (Sections, Profile::Deep) => vec![
            with(2, 2, 3, 1, true),
            Plan {
                executions: 10 * plan.executions,
                ..with(3, 1, 3, 0, false)
            },
        ],
        (Exhaustive, Profile::Quick) => vec![
            with(2, 2, 3, 1, true),
            with(3, 1, 3, 1, true),
            main(with(2, 2, 4, 1, false)),
        ],
        (Exhaustive, Profile::Full) => vec![
            with(2, 2, 4, 4, true),
            with(3, 1, 3, 3, true),
            main(with(3, 2, 4, 1, false)),
            main(with(3, 2, 6, 0, false)),
        ],
        (Exhaustive, Profile::Deep) => vec![with(2, 3, 5, 2, true), with(3, 2, 4, 1, false)],
        (Accesses, Profile::Quick) => vec![Plan {
            preemptions: Some(2),
            ..with(2, 1, 2, 0, false)
        }],
        (Accesses, Profile::Full) => vec![Plan {
            preemptions: Some(2),
            ..with(2, 2, 3, 0, false)
        }],
        (Accesses, Profile::Deep) => vec![plan],
        (Random | Pct | Threads, _) => vec![with(3, 3, 9, 9, true)],
    }
}

/// Returns the same plans for a primitive whose operations are many, or have many
/// sections. In the quick profile three participants are awaited, and in the other
/// polling modes they have the main operations only.
pub(crate) fn heavy(mut plans: Vec<Plan>, mode: Mode, profile: Profile) -> Vec<Plan> {
    if (mode, profile) == (Mode::Exhaustive, Profile::Quick)
        && let Some(place) = plans.iter().position(|plan| plan.bound.participants == 3)
    {
        plans.insert(place + 1, main(plans[place]));
        let bound = &mut plans[place].bound;
        bound.non_default = 0;
        bound.panics = false;
    }
    plans
}

/// Returns the plan without aliases, so that it can have more of the main operations.
pub(crate) fn main(plan: Plan) -> Plan {
    let bound = Bound {
        aliases: false,
        ..plan.bound
    };
    Plan { bound, ..plan }
}

/// Returns the same plans, with a third of the drawn programs in the quick profile.
/// Small alphabets need fewer of them.
pub(crate) fn sparingly(mut plans: Vec<Plan>, profile: Profile) -> Vec<Plan> {
    if profile == Profile::Quick {
        for plan in &mut plans {
            plan.drawn = plan.drawn.map(|drawn| drawn.div_ceil(3));
        }
    }
    plans
}
