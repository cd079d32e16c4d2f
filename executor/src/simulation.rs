//! `Simulation`: one thread, an order drawn from a seed, and time that jumps.
//!
//! ```text
//!   seed ──▶ which of the ready tasks is next ──▶ trace
//!   nothing ready ──▶ the clock goes to the next deadline ──no deadline──▶ deadlock: panics
//! ```
//!
//! Invariant: what happens depends on the seed and on the tasks alone, as long as
//! these do not ask threads, the real clock, or anything else outside.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use reveille::raw::Metadata;
use reveille::time::{Timers, VirtualClock};

use crate::Executor;
use crate::long_poll::{LongPoll, Polls};
use crate::single::{Item, Order, Owner};
use crate::task::JoinHandle;

/// The variable of the environment that has [`Simulation::explore`] replay one seed.
const SEED: &str = "REVEILLE_SEED";

/// An executor that draws the order of ready tasks from a seed, in virtual time.
///
/// The same seed gives the same run, to the byte of its [trace](Self::trace). Time
/// passes only when every task waits: the clock then goes to the next deadline, so a
/// day of sleeps takes no time. Where no deadline is left either, the tasks wait for
/// one another for ever, and `block_on` panics and says so.
///
/// A sleep belongs to the timers that are current where it is made. One that is made
/// outside of `block_on`, as in `block_on(sleep(d))`, is on the real clock: the
/// simulation sees no deadline, and says deadlock. Make it inside of what it runs:
/// `block_on(async { sleep(d).await })`.
///
/// # Examples
///
/// A bug of order: of two deposits, one can get lost. Which seeds find it is a
/// matter of chance; each that does finds it again.
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use reveille_executor::{Simulation, task};
///
/// /// Reads, and writes later: others may have their turn between.
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
    /// How many bytes of lines are kept; twice as many at most are there.
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
            Some(name) => writeln!(self.lines, " {}", name.0),
            None => writeln!(self.lines),
        };
        line.and(named).expect("a string takes what is written");
        if self.lines.len() / 2 > self.limit {
            self.lines.drain(..self.first_kept());
        }
    }

    /// Returns where the first line begins that is kept.
    fn first_kept(&self) -> usize {
        let Some(before) = self.lines.len().checked_sub(self.limit) else {
            return 0;
        };
        // Of the byte before, so that a line that begins there is kept whole.
        let rest = self.lines.as_bytes().get(before.saturating_sub(1)..);
        match rest.and_then(|rest| rest.iter().position(|&byte| byte == b'\n')) {
            _ if before == 0 => 0,
            Some(end) => before + end,
            None => self.lines.len(),
        }
    }
}

impl Simulation {
    /// A simulation of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::builder().seed(seed).build()
    }

    /// A simulation that is to be set up first.
    pub fn builder() -> Builder {
        Builder {
            seed: 0,
            threads: false,
            trace_limit: usize::MAX,
            polls: Polls::default(),
        }
    }

    /// Runs a test once for each seed. Where it panics, the seed is printed, and the
    /// panic goes on.
    ///
    /// With `REVEILLE_SEED` set in the environment, that seed alone is run.
    ///
    /// # Panics
    ///
    /// Panics where the test does, and where `REVEILLE_SEED` is not a number.
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
            Err(error) => panic!("{SEED} is to be a seed, and is {seed:?}: {error}"),
        });
        let run = |seed| {
            let simulation = Self::new(seed);
            let tested = catch_unwind(AssertUnwindSafe(|| test(&simulation)));
            if let Err(panic) = tested {
                eprintln!("seed {seed} fails; to replay it alone: {SEED}={seed}");
                resume_unwind(panic);
            }
        };
        match one {
            Some(seed) => run(seed),
            None => seeds.into_iter().for_each(run),
        }
    }

    /// What the order is drawn from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The clock that tasks see. A test can move it too.
    #[must_use]
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Returns what has happened so far, a line each: the time, `spawn` or `poll`, the
    /// number of the task, and its name. A [limit](Builder::trace_limit) leaves the last
    /// lines.
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
        self.single.spawn(None, future)
    }

    /// As [`spawn_local`](Self::spawn_local), with a name.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.single.spawn(Some(name), future)
    }

    /// Runs a future to its end, and the tasks meanwhile.
    ///
    /// # Panics
    ///
    /// Panics where everything waits and no deadline is left, unless
    /// [threads](Builder::with_threads) may wake something; and inside a future that
    /// the same simulation runs. A panic of the future goes on to the caller.
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

/// Sets a [`Simulation`] up.
#[derive(Debug)]
#[must_use = "it sets a simulation up, which `build` makes"]
pub struct Builder {
    seed: u64,
    threads: bool,
    trace_limit: usize,
    polls: Polls,
}

impl Builder {
    /// What the order is drawn from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Waits where nothing is ready and no deadline is left: threads outside of the
    /// simulation wake its tasks. What happens then depends on them too.
    pub fn with_threads(mut self) -> Self {
        self.threads = true;
        self
    }

    /// Keeps at most the last `bytes` of the [trace](Simulation::trace), in whole lines of
    /// some 22 bytes. Zero switches the trace off; by default all of it is kept.
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

    /// Reports each poll of a task that takes longer than this, in real time. See
    /// [`LongPoll`].
    pub fn on_long_poll(
        mut self,
        over: Duration,
        report: impl Fn(&LongPoll) + Send + Sync + 'static,
    ) -> Self {
        self.polls = Polls::reported(over, report);
        self
    }

    /// Makes the simulation, on this thread.
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

/// The order that a seed gives.
#[derive(Debug)]
struct Drawn {
    state: u64,
    threads: bool,
    trace: Rc<RefCell<Trace>>,
}

impl Drawn {
    /// `SplitMix64`, of Steele, Lea and Flood, "Fast splittable pseudorandom number
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
        let count = u64::try_from(queue.len()).expect("a length is 64 bits at most");
        if count == 0 {
            return None;
        }
        let drawn = usize::try_from(self.draw() % count).expect("less than a length");
        // The order of the others is of no importance, but that it follows from the seed.
        queue.swap_remove_back(drawn)
    }

    fn spawned(&mut self, metadata: &mut Metadata, timers: &Timers) {
        let mut trace = self.trace.borrow_mut();
        trace.spawned += 1;
        metadata.id = trace.spawned;
        trace.line("spawn", metadata, timers);
    }

    fn polled(&mut self, metadata: &Metadata, timers: &Timers) {
        let mut trace = self.trace.borrow_mut();
        trace.line("poll", metadata, timers);
    }

    fn stuck(&mut self) -> Option<String> {
        (!self.threads).then(|| {
            String::from(
                "Simulation::block_on: deadlock: every task waits, no deadline is left, and \
                 nothing outside wakes them (if threads do, build it with_threads)",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Drawn from the middle and closed up behind it, many took some hundred times as
    /// long as few.
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
