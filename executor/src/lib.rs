//! Executors over the Reveille protocol, and a trait that other executors implement too.
//!
//! | item | |
//! | --- | --- |
//! | [`block_on`] | runs one future on this thread, which sleeps while it waits |
//! | [`block_on_in`] | the same over any backend, for checkers |
//! | [`Executor`] | the trait: spawns tasks and blocks, on any executor |
//! | [`LocalExecutor`] | one thread, tasks that stay on it, timers driven by its loop |
//! | [`ThreadPool`] | several threads, which steal work from one another |
//! | [`Simulation`] | one thread, an order drawn from a seed, and virtual time |
//! | [`Threads`] | an executor without a scheduler: a thread for each task |
//! | [`coming_from_tokio`] | the counterpart of each item of `tokio::sync`, `tokio::time` and `tokio::task` |
//! | `net` | sockets, with the feature of that name |
//! | [`task`] | handles of spawned tasks, and how tasks fail |
//! | [`tour`] | async from the kernel up, in programs that assert what they print |
//!
//! ```
//! use reveille::oneshot;
//! use reveille_executor::{Executor, Threads};
//!
//! /// Written once, for every executor.
//! fn doubled<E: Executor>(executor: &E, number: u32) -> u32 {
//!     executor.block_on(async {
//!         let (tx, rx) = oneshot::channel();
//!         let doubling = executor.spawn(async move { rx.await.map(|number: u32| number * 2) });
//!         tx.send(number).expect("the task waits for it");
//!         doubling.await.expect("the task ends").expect("a number was sent")
//!     })
//! }
//!
//! assert_eq!(doubled(&Threads, 21), 42);
//! ```
//!
//! # Features
//!
//! None is on by default. Apart from `locations` and `net`, each adds the traits of one
//! crate, or [`Executor`] for its types.
//!
//! - `locations`: a [`Dump`](dump::Dump) says what each task waits for, by the
//!   `locations` of `reveille`.
//! - `tokio`: [`Executor`] for `Runtime` and `Handle`.
//! - `futures`: [`Executor`] for the `ThreadPool` of futures-executor, and for a wrapper
//!   of its `LocalPool`; `Spawn` and `LocalSpawn` for the executors of this crate.
//! - `hyper`: the `Executor` and `Timer` of hyper.
//! - `net`: sockets for TCP, UDP and the file system, under any executor.
//! - `smol`: [`Executor`] for the `Executor` of async-executor, which smol uses.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod block_on;
mod blocking;
mod catch_panic;
#[doc = include_str!("coming_from_tokio.md")]
pub mod coming_from_tokio {}
mod context;
pub mod dump;
mod executor;
#[cfg(feature = "futures")]
pub mod futures;
#[cfg(feature = "hyper")]
pub mod hyper;
pub mod local;
mod long_poll;
#[cfg(feature = "net")]
pub mod net;
pub mod pool;
mod registry;
pub mod simulation;
mod single;
#[cfg(feature = "smol")]
mod smol;
#[cfg(feature = "futures")]
mod spawners;
mod spike;
pub mod task;
mod thread_set;
mod threads;
#[cfg(feature = "tokio")]
pub mod tokio;
#[doc = include_str!("tour.md")]
pub mod tour {}

pub use self::block_on::{block_on, block_on_in};
pub use self::executor::Executor;
pub use self::local::LocalExecutor;
pub use self::long_poll::{LongPoll, PollTimes};
pub use self::pool::ThreadPool;
pub use self::simulation::Simulation;
pub use self::threads::Threads;
