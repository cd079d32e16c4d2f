//! The soak runs thousands of tasks on a runtime that is used in production.
//!
//! The engines see every interleaving of small programs. The soak sees a few
//! interleavings of large ones, on tokio's multi-threaded runtime. Waits are dropped
//! after some polls or when a timeout passes, and at the end every counter must add up.
//! The soak samples, and its failures may not be reproducible.

mod draw;
mod scenes;

use std::time::Duration;

use crate::report::trace::Trace;
use crate::report::{Counterexample, Report};
use crate::run::Entry;
use crate::run::Selection;
use crate::run::dispatch::{BatchResult, Work};
use crate::run::entry::{SubjectEntry, Surface};
use crate::run::token::Token;
use crate::soak::scenes::ALL;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::verdict::{Class, Verdict};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::of(
        "soak",
        "every primitive, by thousands of tasks on tokio's runtime (stress only)",
        Box::new(Soak),
        Surface::Other("its scenes use many primitives, and no programs"),
    )]
}

/// The soak as an entry.
pub(crate) struct Soak;

/// How long a scene may take before a task is assumed to wait for ever.
const PATIENCE: Duration = Duration::from_secs(20);

impl Entry for Soak {
    fn prepare(&self, name: &str, mode: Mode, plan: &Plan, selection: &Selection) -> Box<dyn Work> {
        let chosen = (0..ALL.len()).filter(|&scene| selection.shard.has(scene));
        Box::new(Scenes {
            name: name.to_owned(),
            mode,
            tasks: plan.executions,
            chosen: chosen.collect(),
        })
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let tasks = match profile {
            Profile::Quick => 10_000,
            Profile::Full => 200_000,
            Profile::Deep => 1_000_000,
        };
        match mode {
            Mode::Threads => vec![Plan {
                executions: tasks,
                ..Plan::of(mode, profile)
            }],
            _ => Vec::new(),
        }
    }

    fn replay(&self, _: &Token) -> Result<Counterexample, String> {
        Err("the soak cannot be replayed: the order of tasks is the runtime's".to_owned())
    }

    fn roles(&self) -> Vec<(String, Vec<String>)> {
        let scenes = ALL.iter().map(|(name, _)| (*name).to_owned());
        vec![("tasks".to_owned(), scenes.collect())]
    }
}

/// The scenes, with the number of tasks in each.
struct Scenes {
    name: String,
    mode: Mode,
    tasks: u64,
    /// The scenes that are run, by their places among all.
    chosen: Vec<usize>,
}

impl Scenes {
    /// Runs one scene to its end.
    fn play(&self, index: usize) -> Option<Counterexample> {
        let (scene, play) = ALL[self.chosen[index]];
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build();
        let runtime = runtime.expect("threads can be started");
        let ended =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, play(self.tasks)).await });
        // Tasks that wait for ever are dropped with the runtime.
        runtime.shutdown_background();
        let (class, sentence) = match ended {
            Ok(Ok(())) => return None,
            Ok(Err(sentence)) => (Class::WrongResult, sentence),
            Err(_) => (
                Class::LostWakeUp,
                format!("a task still waits after {} s", PATIENCE.as_secs()),
            ),
        };
        Some(Counterexample {
            class,
            sentence: format!("{scene}: {sentence} (on real threads; it may not happen again)"),
            program: self.text(index),
            execution: 1,
            token: "none: the order of tasks is the runtime's".to_owned(),
            table: String::new(),
            trace: Trace::default(),
        })
    }
}

impl Work for Scenes {
    fn empty_report(&self) -> Report {
        Report {
            subject: self.name.clone(),
            engine: self.mode.engine().name().to_owned(),
            mode: "soak".to_owned(),
            verdict: Verdict::Sampled,
            bound: format!("{} tasks each, dropped and timed out at random", self.tasks),
            programs: 0,
            executions: 0,
            observed: None,
            coverage: Vec::new(),
            failures: Vec::new(),
            seconds: Duration::ZERO,
        }
    }

    fn programs(&self) -> usize {
        self.chosen.len()
    }

    fn text(&self, scene: usize) -> String {
        format!("{} tasks of {}", self.tasks, ALL[self.chosen[scene]].0)
    }

    fn run_one(&self, scene: usize) -> BatchResult {
        BatchResult {
            programs: 1,
            executions: self.tasks,
            cut: true,
            failures: self
                .play(scene)
                .map(|counterexample| (scene, counterexample))
                .into_iter()
                .collect(),
            ..BatchResult::default()
        }
    }
}
