//! The order of one thread: synchronous code, then tasks that are ready, then timers that
//! are due. It is the order of a queue of microtasks before one of macrotasks.
//!
//! ```text
//!   ┌─▶ ready tasks, first in, first out ──none left──▶ timers that are due ─┐
//!   └──────── what they woke ◀──────────────────────────────────────────────┘
//! ```
//!
//! There is a difference: a task that is always ready does not keep timers out. They also
//! fire after some hundred polls.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;

use reveille::time::{Duration, sleep};
use reveille_executor::{LocalExecutor, task};

const SOON: Duration = Duration::from_millis(1);

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    fn say(&self, line: &'static str) {
        println!("{line}");
        self.0.borrow_mut().push(line);
    }
}

/// Spawns a task that waits for a timer, and has it begin to wait.
async fn after(duration: Duration, then: impl FnOnce() + 'static) -> task::JoinHandle<()> {
    let timer = task::spawn_local(async move {
        sleep(duration).await;
        then();
    });
    // A sleep counts from its creation, and is in the timers from its first poll.
    task::yield_now().await;
    timer
}

async fn in_order(log: Log) {
    log.say("1: synchronous code");
    let timer = after(SOON, {
        let log = log.clone();
        move || log.say("4: the timer")
    })
    .await;
    let ready = task::spawn_local({
        let log = log.clone();
        async move {
            log.say("3: a task that is ready");
            let another = log.clone();
            task::spawn_local(async move { another.say("3: a task that it spawned") });
        }
    });
    thread::sleep(2 * SOON);
    log.say("2: more synchronous code; by now the timer is due");
    ready.await.unwrap();
    timer.await.unwrap();
}

/// Yields until a timer has fired. Returns the number of polls until then.
async fn always_ready() -> u32 {
    let fired = Rc::new(Cell::new(false));
    let timer = after(SOON, {
        let fired = fired.clone();
        move || fired.set(true)
    })
    .await;
    thread::sleep(2 * SOON);
    let mut polls = 0;
    while !fired.get() {
        polls += 1;
        task::yield_now().await;
    }
    timer.await.unwrap();
    polls
}

fn main() {
    let executor = LocalExecutor::new();
    let log = Log::default();
    executor.block_on(in_order(log.clone()));
    assert_eq!(
        *log.0.borrow(),
        [
            "1: synchronous code",
            "2: more synchronous code; by now the timer is due",
            "3: a task that is ready",
            "3: a task that it spawned",
            "4: the timer",
        ]
    );

    let polls = executor.block_on(always_ready());
    println!("beside a task that is always ready, a timer that was due fired after {polls} polls");
    assert!(polls < 1000);
}

#[test]
fn what_is_printed_holds() {
    main();
}
