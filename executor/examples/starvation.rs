//! A blocking call starves the other tasks of its worker. The executor reports it, and
//! `spawn_blocking` avoids it.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use reveille::oneshot::{self, Receiver};
use reveille_executor::{ThreadPool, task};

const LONG: Duration = Duration::from_millis(20);

fn main() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let pool = ThreadPool::builder()
        .workers(1)
        .on_long_poll(LONG / 2, {
            let reports = reports.clone();
            move |poll| {
                reports
                    .lock()
                    .unwrap()
                    .extend(poll.name().map(String::from))
            }
        })
        .build();
    let waited = |blocks: task::JoinHandle<()>, begun: Receiver<()>| {
        pool.block_on(begun).unwrap();
        let start = std::time::Instant::now();
        pool.block_on(pool.spawn_named("neighbour", async {}))
            .unwrap();
        let waited = start.elapsed();
        pool.block_on(blocks).unwrap();
        waited
    };

    let (begins, begun) = oneshot::channel();
    let blocks = pool.spawn_named("blocks", async move {
        begins.send(()).unwrap();
        thread::sleep(LONG);
    });
    let starved = waited(blocks, begun);
    println!("beside a blocking call, another task waited {starved:?}");
    assert!(starved >= LONG / 2);

    let (begins, begun) = oneshot::channel();
    let cured = pool.spawn_named("cured", async move {
        let call = task::spawn_blocking(move || {
            begins.send(()).unwrap();
            thread::sleep(LONG * 10);
        });
        call.await.unwrap();
    });
    let spared = waited(cured, begun);
    println!("beside a call by spawn_blocking, it waited {spared:?}");
    assert!(spared < LONG * 10);

    let reports = reports.lock().unwrap();
    println!("tasks with long polls: {reports:?}");
    assert_eq!(*reports, ["blocks"]);
}

#[test]
fn what_is_printed_holds() {
    main();
}
