//! Which thread drives timers. The test is alone in its process, because it counts
//! threads.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::fs;
use std::thread;
use std::time::Duration;

use reveille::time::sleep;
use reveille_executor::{LocalExecutor, Simulation, ThreadPool, block_on};

const MS: Duration = Duration::from_millis(1);

/// Returns the number of threads that drive timers.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux lists the threads");
    // A thread that ends meanwhile has no name any more.
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.trim() == "reveille-timers")
        .count()
}

#[test]
fn executors_drive_timers_without_a_thread_until_they_end() {
    let naps = || async {
        for _ in 0..3 {
            sleep(MS).await;
        }
    };
    LocalExecutor::new().block_on(naps());
    Simulation::new(7).block_on(naps());
    let pool = ThreadPool::builder().workers(2).build();
    let tasks = [(); 4].map(|()| pool.spawn(naps()));
    for task in tasks {
        pool.block_on(task).unwrap();
    }
    pool.block_on(naps());
    let timers = pool.timers().clone();
    block_on(timers.sleep(MS));
    assert_eq!(threads(), 0);

    drop(pool);
    block_on(timers.sleep(MS));
    assert_eq!(threads(), 1);

    drop(timers);
    while threads() > 0 {
        thread::sleep(MS);
    }

    block_on(naps());
    assert_eq!(threads(), 1, "the thread of the process does not drive");
}
