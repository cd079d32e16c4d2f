//! `model`: runs code that uses primitives, in an ordinary test.
//!
//! ```text
//!   model(set up) ──▶ an execution ──holds──▶ the next ──none is left──▶ verdict
//!                          │
//!                          └──fails──▶ fewer preemptions? ──▶ again, with a table ──▶ panic
//! ```

pub(crate) mod explore;
pub(crate) mod handle;
pub(crate) mod report;
pub(crate) mod set_up;
pub(crate) mod stall;
pub(crate) mod world;

use std::sync::Arc;
use std::time::Instant;

use crate::model::explore::{Division, Exploration, SetUp};
use crate::model::report::{Failure, Kind, ModelReport, parse};
use crate::model::set_up::Model;
use crate::model::stall::{Progress, Task};
use crate::model::world::in_model;

/// Runs a test of async code in every order in which its tasks can be run.
///
/// `set_up` is called for each execution. It creates what is tested, and
/// [spawns](crate::Model::spawn) the tasks that use it. The tasks are run in every order of
/// the sections of which primitives consist, except that of equivalent orders only one
/// is run. Time passes at every moment at which it can. The code under test is not
/// changed: it uses `reveille::Mutex` and the other primitives as in production.
///
/// # Panics
///
/// Panics if an execution fails. An execution fails if a task never ends, panics, or
/// leaves a waker behind. A model also fails if what it
/// [expects](crate::Model::expect_complete) does not hold. The message names the tasks that
/// wait and what each waits for, shows the execution as a table, and has the line that
/// runs exactly this execution again.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use reveille::Mutex;
/// use reveille_verify::model;
///
/// model(|m| {
///     let counter = Arc::new(Mutex::new(0));
///     for name in ["alice", "bob"] {
///         let counter = counter.clone();
///         m.spawn(name, async move { *counter.lock().await += 1 });
///     }
///     m.at_end(move || assert_eq!(*counter.try_lock().unwrap(), 2));
///     m.expect_complete();
/// });
/// ```
///
/// See [the documentation of the crate](crate#code-that-uses-primitives) for more.
#[track_caller]
pub fn model(set_up: impl Fn(&Model) + Send + Sync + 'static) {
    let report = explore_model(set_up);
    let name = std::thread::current().name().map(str::to_owned);
    let name = name.filter(|name| name != "main");
    match report.failure.clone() {
        None => println!("{}: {report}", name.as_deref().unwrap_or("model")),
        Some(failure) => {
            let again = match (&*failure.token, name) {
                ("", _) => String::new(),
                (token, Some(name)) => {
                    format!("\nagain: REVEILLE_REPLAY='{token}' cargo test {name}")
                }
                (token, None) => format!("\nagain: REVEILLE_REPLAY='{token}'"),
            };
            panic!("{failure}{again}\n{report}");
        }
    }
}

/// Explores a model as [`model`] does, and returns what it found instead of panicking.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use reveille::Notify;
/// use reveille_verify::{Kind, explore_model, replay_model};
///
/// let forgotten = |m: &reveille_verify::Model| {
///     let notify = Arc::new(Notify::new());
///     m.spawn("alice", async move { notify.notified().await });
/// };
/// let failure = explore_model(forgotten).failure.unwrap();
/// assert_eq!(failure.kind, Kind::LostWakeUp);
/// let again = replay_model(&failure.token, forgotten).failure.unwrap();
/// assert_eq!(again.sentence, failure.sentence);
/// ```
pub fn explore_model(set_up: impl Fn(&Model) + Send + Sync + 'static) -> ModelReport {
    let token = std::env::var("REVEILLE_REPLAY").ok();
    run(token.as_deref(), Arc::new(set_up), Division::DEFAULT)
}

/// Runs one execution again, from the token of its [`Failure`].
///
/// # Examples
///
/// See [`explore_model`].
pub fn replay_model(token: &str, set_up: impl Fn(&Model) + Send + Sync + 'static) -> ModelReport {
    run(Some(token), Arc::new(set_up), Division::DEFAULT)
}

fn run(token: Option<&str>, set_up: Arc<SetUp>, division: Division) -> ModelReport {
    assert!(!in_model(), "a model cannot run within another");
    let task = match token.map(parse) {
        None => Task::Explore,
        Some(Some((plan, choices))) => Task::Replay { plan, choices },
        Some(None) => {
            let token = token.unwrap_or_default();
            let sentence =
                format!("REVEILLE_REPLAY='{token}' is damaged: copy it whole, as it was printed");
            let failure = Failure::new(Kind::NonDeterminism, sentence);
            return ModelReport {
                failure: Some(failure),
                ..ModelReport::new()
            };
        }
    };
    let body = move |task: Task, progress: &Progress| {
        let begun = Instant::now();
        let exploration = Exploration::new(&*set_up, progress, division);
        let report = match task {
            Task::Explore => exploration.explore(),
            Task::Replay { plan, choices } => exploration.replay(&plan, choices),
        };
        ModelReport {
            time: begun.elapsed(),
            ..report
        }
    };
    stall::watched(task, Arc::new(body))
}
