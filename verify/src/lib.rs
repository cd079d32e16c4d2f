//! A verifier for async primitives. It enumerates every small program over a primitive,
//! runs each program in every order, and shows the smallest one that fails.
//!
//! You declare the operations, and what each means on its own. The verifier finds out
//! whether they mean the same when they overlap, when a future is polled again with
//! another waker, when it is dropped half-way, and when a waker panics. It checks that
//! every history has an explanation, and that no task waits for ever that could go on.
//!
//! `cargo verify` runs it over Reveille's own primitives. This library is what that
//! command uses, and it verifies primitives of your own.
//!
//! # A primitive of one's own
//!
//! The example is a gate: a task that waits goes on once the gate is open. It is
//! written over the [protocol](reveille::protocol). A variant forgets a check:
//!
//! ```
//! use std::task::{Context, Poll};
//!
//! use reveille::protocol::{Bits, StateLock, WakerSlot};
//! use reveille_verify::{Class, Closures, Profile, check_native, replay_native, subject};
//!
//! const OPEN: Bits = Bits::new(1);
//!
//! struct Gate {
//!     lock: StateLock<WakerSlot>,
//!     forgetful: bool,
//! }
//!
//! impl Gate {
//!     fn open(&self) {
//!         self.lock.with(|section| {
//!             section.bits.insert(OPEN);
//!             section.wakes.wake(section.state);
//!         });
//!     }
//!
//!     fn poll_opened(&self, cx: &mut Context<'_>) -> Poll<()> {
//!         if self.lock.load().contains(OPEN) {
//!             return Poll::Ready(());
//!         }
//!         self.lock.poll(cx, true, |section, registration| {
//!             // The gate may have been opened since.
//!             if section.bits.contains(OPEN) && !self.forgetful {
//!                 return Ok(());
//!             }
//!             Err(registration.register(section.state))
//!         })
//!     }
//! }
//!
//! // Each operation with what it does and what it means. The state is whether the gate is
//! // open. An operation without an outcome waits.
//! fn gate(forgetful: bool) -> Closures<Gate, bool> {
//!     let lock = || StateLock::new_in(Bits::EMPTY, WakerSlot::new());
//!     subject(move || Gate { lock: lock(), forgetful }, false)
//!         .role("porter")
//!         .op("open", Gate::open, |_| [(true, ())])
//!         .role("guest")
//!         .poll("opened", Gate::poll_opened, |&open| open.then_some((true, ())))
//!         .keeps_waker("until the gate opens")
//! }
//!
//! // Check it under every engine that applies, in a test.
//! for report in check_native(gate(false), "gate", Profile::Quick) {
//!     assert!(report.holds(), "{report}");
//! }
//!
//! // Show what the failure of the broken gate looks like.
//! let reports = check_native(gate(true), "forgetful-gate", Profile::Quick);
//! let failure = reports.iter().flat_map(|report| &report.failures).next().unwrap();
//! assert_eq!(failure.class, Class::LostWakeUp);
//! assert_eq!(failure.program, "open/opened");
//! println!("{failure}");
//!
//! // The token runs exactly that execution again.
//! let again = replay_native(gate(true), &failure.token).unwrap();
//! assert_eq!(again.table, failure.table);
//! ```
//!
//! The table has a column for each participant and a row for each event:
//!
//! ```text
//! lost wake-up: guest waits in opened for ever although it could go on: none of its wakers was called since its last poll
//! program: open/opened
//! ┌─────────────────────────────────────────────────────────────────────────────────────────────────────┐
//! │      porter                                                guest                 clean-up           │
//! ╞═════════════════════════════════════════════════════════════════════════════════════════════════════╡
//! │ 1    open                                                                                           │
//! │ 2                                                          opened                                   │
//! │ 3                                                            poll with w0                           │
//! │ 4                                                            see [0b0]                              │
//! │ 5                                                            clone w0 of guest                      │
//! │ 6      lock [0b0] -> [0b1]  <-- no wake of guest follows                                            │
//! │ 7    = ()                                                                                           │
//! │ 8                                                            lock [0b1]                             │
//! │ 9                                                            pending                                │
//! │ 10                                                           waits                                  │
//! │ 11                                                                                 drop w0 of guest │
//! │ 12                                                                                 drop w0 of guest │
//! └─────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A number counts events. `w0` is the first waker of a participant, and `[0b0]` are
//! the bits of the lock: `see` reads them, and `lock [a] -> [b]` is a section that
//! found `a` and left `b`. At the end, the clean-up drops what is left.
//!
//! The [`Plan`] of a run sets its bounds, which the report states. By default programs
//! have two participants, and also three if the subject has roles for three, which this
//! one has not. [`GenericSubject::plans`] declares other bounds:
//!
//! ```
//! # use reveille_verify::{Mode, Plan, Profile};
//! fn plans(mode: Mode, profile: Profile) -> Vec<Plan> {
//!     let mut plan = Plan::of(mode, profile);
//!     plan.bound.participants = 4;
//!     plan.bound.operations = 1;
//!     vec![Plan::of(mode, profile), plan]
//! }
//! # assert_eq!(plans(Mode::Steps, Profile::Quick)[1].text(), "4x1, none blocking");
//! ```
//!
//! | the primitive | is run by | with |
//! | --- | --- | --- |
//! | over the default backend | [`check_native`] | a [`subject`](subject()) of closures, or a [`Subject`] |
//! | generic over its backend | [`check`], which also explores memory orderings | a [`GenericSubject`] |
//! | of any crate | [`check_foreign`], which interleaves whole polls | as the first |
//!
//! [`Suite`] has the whole of the command for them, in a test target.
//!
//! # Code that uses primitives
//!
//! [`model`] checks code as it is written for production: a cache over a lock and a
//! [`Notify`](reveille::Notify), a pool over a semaphore, a shutdown path. It needs no
//! specification, no flag and no other import. In `Cargo.toml`:
//!
//! ```toml
//! [dev-dependencies]
//! reveille-verify = "…"   # brings the feature `model` of `reveille`
//! ```
//!
//! In a test:
//!
//! ```
//! use std::sync::Arc;
//!
//! use reveille::Mutex;
//! use reveille_verify::{Kind, explore_model, model};
//!
//! /// Locks in the order in which it is told.
//! async fn transfer(accounts: Arc<[Mutex<i64>; 2]>, from: usize, to: usize) {
//!     let mut source = accounts[from].lock().await;
//!     let mut target = accounts[to].lock().await;
//!     *source -= 10;
//!     *target += 10;
//! }
//!
//! // One direction alone does no harm, however its tasks are run.
//! model(|m| {
//!     let accounts = Arc::new([Mutex::new(100), Mutex::new(100)]);
//!     m.spawn("alice", transfer(accounts.clone(), 0, 1));
//!     m.spawn("bob", transfer(accounts.clone(), 0, 1));
//!     m.at_end(move || assert_eq!(*accounts[1].try_lock().unwrap(), 120));
//!     m.expect_complete();
//! });
//!
//! // In both directions at once, tasks wait for each other. `model` would panic with what
//! // `explore_model` returns.
//! let report = explore_model(|m| {
//!     let accounts = Arc::new([Mutex::new(100), Mutex::new(100)]);
//!     m.name(&accounts[1], "savings");
//!     m.spawn("alice", transfer(accounts.clone(), 0, 1));
//!     m.spawn("bob", transfer(accounts, 1, 0));
//! });
//! let failure = report.failure.unwrap();
//! assert_eq!(failure.kind, Kind::Deadlock);
//! assert!(failure.sentence.contains("alice waits for `savings`"));
//! ```
//!
//! The message of a failure names each task that waits, what it waits for, and where it
//! asked for that. It also names the holder, and where the holder took it:
//!
//! ```text
//! deadlock: tasks wait for each other
//!   alice waits for `savings`, asked for at src/bank.rs:7
//!     bob holds it, taken at src/bank.rs:6
//!   bob waits for lock 1, asked for at src/bank.rs:7
//!     alice holds it, taken at src/bank.rs:6
//! ```
//!
//! Below the message is the execution as a table, and the line that runs exactly this
//! execution again: `REVEILLE_REPLAY='…' cargo test transfers_end`. It is one of the
//! failing executions with the fewest preemptions.
//!
//! | what is tried | |
//! | --- | --- |
//! | every order of sections | always; of equivalent orders, one |
//! | time that passes | at every moment at which a deadline is left: `sleep`, `timeout` and `Instant::now` are on a clock of the model |
//! | cancellation | [`Model::spawn_cancellable`]: dropped at each suspension |
//! | wakes for no reason | [`Model::spurious`] |
//! | threads that block | [`Model::thread`] |
//! | tasks that spawn and abort | [`Model::handle`], an `Executor` |
//!
//! Every task must end in every execution, apart from those of
//! [`Model::spawn_background`]. [`Model::at_end`] asserts what must hold then, and
//! [`Model::sometimes`] that a state is reached at all. The report counts the executions in
//! which something waited, timed out, was refused or was dropped: a count of 0 shows that a
//! model does not try what it is written for.
//!
//! What a model does not see:
//!
//! - State that is shared by other means: atomics, cells, a `std::sync::Mutex`. Code
//!   between two sections is one step, and steps that share only such state are taken to
//!   be independent, unless [`Model::every_order`] is set, which costs much more.
//! - Memory orderings.
//! - What an earlier execution has left in a static that is no primitive. The model
//!   detects it only if a later execution then takes other steps.
//!
//! What a model refuses:
//!
//! - A primitive that an earlier execution has changed, such as one in a static or one
//!   that was created outside of the closure. Each execution must begin in the same
//!   state.
//! - A thread that the model does not run, of a `ThreadPool` or of `std::thread::spawn`,
//!   if it changes a primitive of the model or wakes a task of it.
//!   It is found by the bits of the primitive, so a change that was undone before the
//!   next section of the model is not seen.
//! - An executor that waits within the model, and primitives of tokio that need its
//!   runtime. They panic with a sentence of their own. Spawn tasks by
//!   [`Model::handle`] instead.
//! - A task that blocks its thread: by a `std::sync::Mutex` that another task holds
//!   across an `await`, by a real sleep, or by a loop that waits for another task. All
//!   tasks run on one thread, so the test fails after some seconds. The message names
//!   the task and its last event. The thread is left as it is, because code that does
//!   not return cannot be unwound.
//!
//! A model that runs long uses several cores if executions are [drawn](Model::sampled),
//! if [preemptions are bounded](Model::preemptions), in
//! [every order](Model::every_order), and for tasks that are dropped at different
//! suspensions. The counts and the failure are the same on any number of cores. The
//! search for one execution of each class runs on one core, because a branch of it
//! depends on what the branches before it have found.
//!
//! loom explores memory orderings, and cannot run a model: its atomics and locks are
//! other types, and those of code under test are the ones of production. Three ways
//! remain. Write the code generic over a [`Backend`](reveille::backend::Backend) and run
//! it in `loom::model` over [`Loom`](reveille::backend::Loom). Compile it with
//! `RUSTFLAGS="--cfg loom"`, which makes that backend the default, so the types of an
//! unchanged program are those of loom. Or rely on `cargo verify state-lock`, which
//! explores the lock of production over loom's atomics once, against the contract on
//! which every model stands.
//!
//! Executions take ten times as long if the checker itself is not optimised. Say so in
//! `Cargo.toml`, and the code under test remains as it is:
//!
//! ```toml
//! [profile.dev.package.reveille-verify]
//! opt-level = 3
//! ```
//!
//! # Programs
//!
//! A program is a few participants with a few operations each: `open/opened`
//! is one operation of each of two. An operation that is a future runs in every
//! [polling mode](Polling): awaited; polled again unasked, with another waker or with
//! the same; dropped before its first poll, while it waits, or once its waker has
//! been woken; or with a waker that panics. What happens at a suspension happens at
//! the first or at the second. All programs within a [`Bound`] are enumerated, smallest
//! first. Of programs that differ only by an exchange of equal participants, one is
//! run. So the first program that fails is one of the smallest. Larger programs are
//! drawn, always the same ones, and shrunk if they fail.
//!
//! # Engines
//!
//! | [`Mode`] | [`Engine`] | executions | the lock |
//! | --- | --- | --- | --- |
//! | `Steps` | `sequential` | all orders of whole steps, on one thread | `Native`, or any |
//! | `Sections` | `loom` | all orders of sections | abstract |
//! | `Accesses` | `loom` | all orders of accesses, with their memory orderings | the real one, over loom's atomics |
//! | `Exhaustive` | `fibers` | of all orders of sections, one of each class | `Native` |
//! | `Random`, `Pct` | `fibers` | drawn, of larger programs | `Native` |
//! | `Threads` | `stress` | as they come, on real threads | `Native`, or any |
//!
//! Two orders are equivalent if they differ only by an exchange of neighbouring
//! sections on different locks, or of two that only read. One of them is enough to see
//! every state. The three exhaustive modes over locks leave out some or all of the
//! others.
//!
//! # Judgement
//!
//! No participant blocks the engine. A participant whose operation is pending is
//! suspended. It is polled again when its latest waker is called, and not before. When
//! no participant can move, the execution is judged:
//!
//! - There must be an order of the operations in which the specification
//!   returns what the primitive did, each between its first section and its
//!   last (Herlihy and Wing's linearizability); between its call and its return if it
//!   is declared as [spanning](Operation::spanning), which is right for operations
//!   whose state is not all under locks of the backend. Under `Accesses`, where memory
//!   orderings are explored and there is no time, each participant's own order
//!   is all that counts.
//! - At the end of that order, no suspended operation may be able to go on
//!   ([`Spec::is_due`]). An operation that could has lost a wake-up.
//! - No waker is called, cloned or dropped in a section, and no [`Value`] is
//!   dropped in one.
//! - A future that a waker's panic went through was dropped, and has delivered
//!   nothing: it explains no more than [`Spec::cancel`] does.
//! - When nothing moves any more, no waker of an operation that has ended is alive,
//!   unless the operation [declares](Operation::keeps_waker) that it keeps it.
//! - Every waker, value and lock is gone at the end, after the primitive, and each
//!   [`Value`] was dropped once.
//!
//! The first violation of an execution is reported, in a [`Class`].
//!
//! # What a verdict says
//!
//! [`Verdict::Complete`]: every order of every program within the bound that the report
//! states was explored, up to exchanges as above. [`Verdict::Bounded`]: a limit cut the
//! search. [`Verdict::Sampled`]: programs and schedules were drawn. A run without an
//! execution does not hold. [`verdicts`] describes what a verdict says, and what it
//! does not say.
//!
//! # What it has found
//!
//! [`audit`] is a table of public crates and their primitives, with each finding, its
//! smallest program, and the command that runs it again.

#![cfg_attr(docsrs, feature(doc_cfg))]

// The layers, from the bottom to the top; `tests/layers.rs` keeps them so.
//
//   subject      what a primitive is: specification, operations, plans, verdicts
//   program      what participants do with it
//   execution    what happens when they do
//   judge        whether that is what the specification allows
//   report       what is said of it
//   engine       in which orders it happens
//   model        code that uses primitives, in all of these
//   run          programs by name, dispatched to workers
//   subjects, specimens, soak; check (the library); registry; cli (the command)

mod check;
#[doc(hidden)]
pub mod cli;
mod engine;
mod execution;
mod judge;
mod model;
mod program;
mod registered;
mod registry;
mod report;
mod run;
mod soak;
mod specimens;
mod subject;
mod subjects;
#[cfg(test)]
mod tests;

pub use check::{
    check, check_foreign, check_native, explore, explore_foreign, explore_native, replay,
    replay_foreign, replay_native,
};
pub use model::handle::{Handle, JoinHandle, Sometimes};
pub use model::report::{Failure, Kind, ModelReport};
pub use model::set_up::Model;
pub use model::{explore_model, model, replay_model};
pub use registry::Suite;
pub use report::{Counterexample, Report};
pub use subject::closures::{ClosureSpec, Closures, Number, Text, subject};
pub use subject::plan::{Bound, Engine, Mode, Plan, Profile};
pub use subject::role::{Operation, OperationKind, Role};
pub use subject::spec::{Call, Spec, ValueId};
pub use subject::step::{Hook, Polling, Step};
pub use subject::value::Value;
pub use subject::verdict::{Class, Verdict};
pub use subject::{GenericSubject, Started, Subject};

#[doc = include_str!("verdicts.md")]
pub mod verdicts {}

#[doc = include_str!("audit.md")]
pub mod audit {}

/// The examples of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
