//! `Simulation`: one thread, an order drawn from a seed, and virtual time.
//!
//! ```text
//!   seed ──▶ which of the ready tasks is next ──▶ trace
//!   nothing ready ──▶ the clock goes to the next deadline ──no deadline──▶ deadlock: panics
//! ```
//!
//! Invariant: what happens depends only on the seed and on the tasks, as long as these do
//! not use threads, the real clock, or anything else outside.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use reveille::raw::Metadata;
use reveille::time::{Timers, VirtualClock};

use crate::Executor;
use crate::long_poll::{LongPoll, Polls};
use crate::single::{Item, Order, Owner};
use crate::task::JoinHandle;

/// The environment variable that makes [`Simulation::explore`] replay one seed.
const SEED: &str = "REVEILLE_SEED";

/// An executor that draws the order of ready tasks from a seed, in virtual time.
///
/// The same seed gives the same run, to the byte of its [trace](Self::trace). Time passes
/// only when every task waits. The clock then goes to the next deadline, so a day of
/// sleeps takes no time. If no deadline is left, the tasks wait for one another for ever,
/// and `block_on` panics with a message that says so.
///
/// A sleep belongs to the timers that are current when it is created. A sleep that is
/// created outside of `block_on`, as in `block_on(sleep(d))`, is on the real clock. The
/// simulation sees no deadline, and reports a deadlock. Create the sleep inside the
/// future: `block_on(async { sleep(d).await })`.
///
/// # Examples
///
/// A fault that depends on the order: one of two deposits can get lost. Only some seeds
/// find it, and each of these finds it again.
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use reveille_executor::{Simulation, task};
///
/// /// Reads now and writes later: other tasks may run in between.
/// async fn deposit(account: Rc<Cell<u32>>, sum: u32) {
///     let balance = account.get();
///     task::yield_now().await;
///     account.set(balance + sum);
/// }
///
/// fn balance(seed: u64) -> u32 {
///     let account = Rc::new(Cell::new(0));
///     Simulation::new(seed).block_on(async {
///         let one = task::spawn_local(deposit(account.clone(), 1));
///         let two = task::spawn_local(deposit(account.clone(), 2));
///         one.await.unwrap();
///         two.await.unwrap();
///     });
///     account.get()
/// }
///
/// let wrong = (0..1000).find(|&seed| balance(seed) != 3).expect("a seed finds it");
/// assert_ne!(balance(wrong), 3); // again
/// ```
pub struct Simulation {
    single: Owner,
    clock: VirtualClock,
    trace: Rc<RefCell<Trace>>,
    seed: u64,
}

#[derive(Debug, Default)]
struct Trace {
    lines: String,
    /// The number of bytes of lines that are kept. The string is at most twice as long.
    limit: usize,
    spawned: u64,
}

impl Trace {
    fn line(&mut self, what: &str, metadata: &Metadata, timers: &Timers) {
        if self.limit == 0 {
            return;
        }
        let at = timers.now().since_origin();
        let (seconds, nanos) = (at.as_secs(), at.subsec_nanos());
        let line = write!(self.lines, "{seconds}.{nanos:09} {what} {}", metadata.id);
        let named = match &metadata.name {
            Some(name) => writeln!(self.lines, " {name}"),
            None => writeln!(self.lines),
        };
        line.and(named).expect("writing to a string does not fail");
        if self.lines.len() / 2 > self.limit {
            self.lines.drain(..self.first_kept());
        }
    }

    /// Returns where the first line begins that is kept.
    fn first_kept(&self) -> usize {
        let Some(before) = self.lines.len().checked_sub(self.limit) else {
            return 0;
        };
        // From the byte before, so that a line that begins here is kept whole.
        let rest = self.lines.as_bytes().get(before.saturating_sub(1)..);
        match rest.and_then(|rest| rest.iter().position(|&byte| byte == b'\n')) {
            _ if before == 0 => 0,
            Some(end) => before + end,
            None => self.lines.len(),
        }
    }
}

impl Simulation {
    /// Creates a simulation of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::builder().seed(seed).build()
    }

    /// Returns a builder, which configures a simulation before it is created.
    pub fn builder() -> Builder {
        Builder {
            seed: 0,
            threads: false,
            trace_limit: usize::MAX,
            polls: Polls::default(),
        }
    }

    /// Runs a test once for each seed. If it panics, prints the seed and resumes the
    /// panic.
    ///
    /// If the environment variable `REVEILLE_SEED` is set, only that seed is run.
    ///
    /// # Panics
    ///
    /// Panics if the test panics, or if `REVEILLE_SEED` is not a number.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Simulation, task};
    ///
    /// Simulation::explore(0..100, |simulation| {
    ///     let sum = simulation.block_on(async {
    ///         let one = task::spawn(async { 1 });
    ///         let two = task::spawn(async { 2 });
    ///         one.await.unwrap() + two.await.unwrap()
    ///     });
    ///     assert_eq!(sum, 3);
    /// });
    /// ```
    pub fn explore(seeds: impl IntoIterator<Item = u64>, test: impl Fn(&Self)) {
        let one = std::env::var(SEED).ok().map(|seed| match seed.parse() {
            Ok(seed) => seed,
            Err(error) => panic!("{SEED} must be a number, but is {seed:?}: {error}"),
        });
        let run = |seed| {
            let simulation = Self::new(seed);
            let tested = catch_unwind(AssertUnwindSafe(|| test(&simulation)));
            if let Err(panic) = tested {
                eprintln!("the test fails with seed {seed}: set {SEED}={seed} to run only that");
                resume_unwind(panic);
            }
        };
        match one {
            Some(seed) => run(seed),
            None => seeds.into_iter().for_each(run),
        }
    }

    /// Returns the seed from which the order is drawn.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the clock that tasks see. A test can move it too.
    #[must_use]
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Returns what has happened so far, with a line for each event: the time, `spawn` or
    /// `poll`, the number of the task, and its name. If there is a
    /// [limit](Builder::trace_limit), only the last lines are left.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, sleep};
    /// use reveille_executor::Simulation;
    ///
    /// let simulation = Simulation::new(7);
    /// let task = simulation.spawn_named("sleeper", async {
    ///     sleep(Duration::from_secs(1)).await;
    /// });
    /// simulation.block_on(task).unwrap();
    /// assert_eq!(
    ///     simulation.trace(),
    ///     "0.000000000 spawn 1 sleeper\n\
    ///      0.000000000 poll 1 sleeper\n\
    ///      1.000000000 poll 1 sleeper\n"
    /// );
    /// ```
    #[must_use]
    pub fn trace(&self) -> String {
        let trace = self.trace.borrow();
        trace.lines[trace.first_kept()..].to_owned()
    }

    /// Spawns a task whose future stays on this thread.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.single.spawn((), future)
    }

    /// Spawns a task with a name, as [`spawn_local`](Self::spawn_local) does.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.single.spawn(Arc::<str>::from(name), future)
    }

    /// Runs a future to completion, and tasks meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if everything waits and no deadline is left, unless
    /// [threads](Builder::with_threads) may wake something. Panics inside a future that
    /// the same simulation runs. A panic of the future resumes in the caller.
    ///
    /// # Examples
    ///
    /// ```should_panic
    /// reveille_executor::Simulation::new(7).block_on(std::future::pending::<()>());
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.single.block_on("Simulation::block_on", future)
    }
}

impl Executor for Simulation {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_local(future)
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        Simulation::block_on(self, future)
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("seed", &self.seed)
            .field("now", &self.clock.now())
            .finish_non_exhaustive()
    }
}

/// Configures a [`Simulation`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    seed: u64,
    threads: bool,
    trace_limit: usize,
    polls: Polls,
}

impl Builder {
    /// Sets the seed from which the order is drawn.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes the simulation wait if nothing is ready and no deadline is left, because
    /// threads outside of it wake its tasks. What happens then also depends on these
    /// threads.
    pub fn with_threads(mut self) -> Self {
        self.threads = true;
        self
    }

    /// Limits the [trace](Simulation::trace) to the last `bytes`, in whole lines of some
    /// 22 bytes. Zero switches the trace off. By default all of it is kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Simulation, task};
    ///
    /// let simulation = Simulation::builder().trace_limit(60).build();
    /// simulation.block_on(async {
    ///     let yields = task::spawn(async {
    ///         for _ in 0..1000 {
    ///             task::yield_now().await;
    ///         }
    ///     });
    ///     yields.await.unwrap();
    /// });
    /// assert_eq!(simulation.trace(), "0.000000000 poll 1\n".repeat(3));
    /// ```
    pub fn trace_limit(mut self, bytes: usize) -> Self {
        self.trace_limit = bytes;
        self
    }

    /// Reports each poll of a task that takes longer than `over`, in real time. See
    /// [`LongPoll`].
    pub fn on_long_poll(
        mut self,
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) -> Self {
        self.polls.report(over, report);
        self
    }

    /// Creates the simulation, on this thread.
    #[must_use]
    pub fn build(self) -> Simulation {
        let Self {
            seed,
            threads,
            trace_limit,
            polls,
        } = self;
        let clock = VirtualClock::when_idle();
        let trace = Rc::new(RefCell::new(Trace {
            lines: String::new(),
            limit: trace_limit,
            spawned: 0,
        }));
        let order = Drawn {
            state: seed,
            threads,
            trace: trace.clone(),
        };
        Simulation {
            single: Owner::new(Some(Box::new(order)), polls, clock.timers()),
            clock,
            trace,
            seed,
        }
    }
}

/// Draws the order from a seed.
#[derive(Debug)]
struct Drawn {
    state: u64,
    threads: bool,
    trace: Rc<RefCell<Trace>>,
}

impl Drawn {
    /// `SplitMix64`, by Steele, Lea and Flood, "Fast splittable pseudorandom number
    /// generators", 2014.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Order for Drawn {
    fn next(&mut self, queue: &mut VecDeque<Item>) -> Option<Item> {
        let count = u64::try_from(queue.len()).expect("a length has at most 64 bits");
        if count == 0 {
            return None;
        }
        let drawn = usize::try_from(self.draw() % count).expect("it is less than the length");
        // The order of the others does not matter, as long as it follows from the seed.
        queue.swap_remove_back(drawn)
    }

    fn spawned(&mut self, metadata: &Metadata, timers: &Timers) -> u64 {
        let mut trace = self.trace.borrow_mut();
        trace.spawned += 1;
        let metadata = Metadata {
            id: trace.spawned,
            ..metadata.clone()
        };
        trace.line("spawn", &metadata, timers);
        metadata.id
    }

    fn polled(&mut self, metadata: &Metadata, timers: &Timers) {
        let mut trace = self.trace.borrow_mut();
        trace.line("poll", metadata, timers);
    }

    fn stuck(&mut self) -> Option<String> {
        (!self.threads).then(|| {
            String::from(
                "Simulation::block_on: deadlock: every task waits, no deadline is left, and \
                 nothing outside wakes them (if threads do, build it by with_threads)",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// If the items behind the drawn one were moved up, drawing from many would take some
    /// hundred times as long as from few.
    #[test]
    fn drawing_takes_constant_time_however_many_are_ready() {
        const DRAWS: usize = 400_000;
        let timed = |ready: usize| {
            let mut order = Drawn {
                state: 7,
                threads: false,
                trace: Rc::default(),
            };
            let start = Instant::now();
            for _ in 0..DRAWS / ready {
                let mut queue: VecDeque<_> = (0..ready).map(|_| Item::Main).collect();
                while order.next(&mut queue).is_some() {}
            }
            start.elapsed()
        };
        let (few, many) = (timed(100), timed(DRAWS));
        assert!(
            many < few * 20,
            "{many:?} for all at once, {few:?} for some at a time"
        );
    }
}
