//! The thread that drives timers, seen from outside. The test has a process of its
//! own, since it counts threads.

#![cfg(all(target_os = "linux", not(loom)))]

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use reveille::backend::Native;
use reveille::protocol::block_on;
use reveille::time::{Timers, sleep};

const MS: Duration = Duration::from_millis(1);

/// Returns the number of threads that drive timers in this process.
fn drivers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("threads are listed");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.trim_end() == "reveille-timers")
        .count()
}

fn becomes(count: usize) {
    let begun = Instant::now();
    while drivers() != count {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} drive",
            drivers()
        );
        std::thread::sleep(MS);
    }
}

/// The test runs again as a process of its own, which leaves `main` while the thread
/// waits.
const LEAVES: &str = "REVEILLE_LEAVES_WITH_A_SLEEP";

#[test]
fn it_starts_at_need_ends_with_its_timers_and_delays_no_exit() {
    if std::env::var_os(LEAVES).is_some() {
        let mut sleep = pin!(sleep(Duration::from_secs(1000)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        becomes(1);
        return;
    }

    let timers = Timers::threaded();
    block_on::<Native, _>(timers.sleep(Duration::ZERO));
    block_on::<Native, _>(timers.timeout(MS, std::future::ready(()))).expect("it is ready");
    assert_eq!(drivers(), 0, "no task has waited");
    block_on::<Native, _>(timers.sleep(MS));
    becomes(1);
    block_on::<Native, _>(timers.sleep(MS));
    becomes(1);

    // A sleep keeps its timers alive. When the last of both is dropped the thread
    // ends, however long it was to wait.
    let mut last = timers.sleep(Duration::from_secs(1000));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(&mut last).poll(&mut cx).is_pending());
    drop(timers);
    becomes(1);
    drop(last);
    becomes(0);

    let this = std::env::current_exe().expect("this is a program");
    let mut leaves = Command::new(this)
        .env(LEAVES, "")
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = leaves.try_wait().expect("it can be waited for") {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(MS);
    };
    assert!(status.success());
}
