//! The soak: thousands of tasks on a runtime that people use.
//!
//! Where the engines see every interleaving of small programs, this sees a few
//! of large ones: tokio's multi-threaded runtime, waits that are dropped after so
//! many polls or when a timeout passes, and at the end every counter must add
//! up. It samples, and what it finds may not come again.

mod scenes;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::report::{Counterexample, Report};
use crate::run::Entry;
use crate::run::dispatch::{BatchResult, Work};
use crate::run::token::Token;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::verdict::{Class, Verdict};

/// The soak as something that can be run by name.
pub(crate) struct Soak;

/// After so long without an end somebody waits for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// A scene: some primitive, and what its tasks do with it. What does not add up
/// is an error.
type Scene = fn(tasks: u64) -> std::pin::Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

impl Entry for Soak {
    fn prepare(&self, name: &str, mode: Mode, plan: &Plan) -> Box<dyn Work> {
        Box::new(Scenes {
            name: name.to_owned(),
            mode,
            tasks: plan.executions,
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
        let scenes = scenes::ALL.iter().map(|(name, _)| (*name).to_owned());
        vec![("tasks".to_owned(), scenes.collect())]
    }
}

/// The scenes, with so many tasks in each.
struct Scenes {
    name: String,
    mode: Mode,
    tasks: u64,
}

impl Scenes {
    /// Plays one scene to its end.
    fn play(&self, index: usize) -> Option<Counterexample> {
        let (scene, play) = scenes::ALL[index];
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build();
        let runtime = runtime.expect("threads can be started");
        let ended =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, play(self.tasks)).await });
        // Tasks that wait for ever are dropped with it.
        runtime.shutdown_background();
        let (class, sentence) = match ended {
            Ok(Ok(())) => return None,
            Ok(Err(sentence)) => (Class::WrongResult, sentence),
            Err(_) => (
                Class::LostWakeUp,
                format!("somebody still waits after {} s", PATIENCE.as_secs()),
            ),
        };
        Some(Counterexample {
            class,
            sentence: format!("{scene}: {sentence} (on real threads; it may not happen again)"),
            program: self.text(index),
            execution: 1,
            token: "none: the order of tasks is the runtime's".to_owned(),
            table: String::new(),
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
            failures: Vec::new(),
            seconds: Duration::ZERO,
        }
    }

    fn programs(&self) -> usize {
        scenes::ALL.len()
    }

    fn text(&self, scene: usize) -> String {
        format!("{} tasks of {}", self.tasks, scenes::ALL[scene].0)
    }

    fn run_one(&self, scene: usize) -> BatchResult {
        BatchResult {
            programs: 1,
            executions: self.tasks,
            cut: true,
            failure: self
                .play(scene)
                .map(|counterexample| (scene, counterexample)),
            ..BatchResult::default()
        }
    }
}

/// What a task draws: always the same for its number.
struct Draw(u64);

impl Draw {
    fn new(task: u64) -> Self {
        Self((task + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `n`, by Marsaglia's xorshift.
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % n
    }

    /// Awaits a future to its end, or gives it up: some time after its first poll,
    /// whether it has been woken since or not, or when a timeout passes.
    async fn perhaps<F: Future>(&mut self, future: F) -> Option<F::Output> {
        match self.below(4) {
            0 => {
                let mut future = pin!(future);
                let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
                if let Poll::Ready(output) = first {
                    return Some(output);
                }
                self.pause().await;
                None
            }
            1 => {
                let time = Duration::from_micros(self.below(300));
                tokio::time::timeout(time, future).await.ok()
            }
            _ => Some(future.await),
        }
    }

    /// Lets others run, or not.
    async fn pause(&mut self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

/// That something is as it should be.
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

/// Runs so many tasks to their ends, and answers the sum of what they answer.
async fn tasks<F>(number: u64, task: impl Fn(u64) -> F) -> Result<u64, String>
where
    F: Future<Output = u64> + Send + 'static,
{
    let tasks: Vec<_> = (0..number).map(|who| tokio::spawn(task(who))).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task
            .await
            .map_err(|error| format!("a task failed: {error}"))?;
    }
    Ok(sum)
}
