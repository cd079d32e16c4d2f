//! Two waits of a second take two seconds one after the other, and one second side by
//! side. Side by side are two futures of one task, and two tasks. In virtual time, none
//! of it takes real time.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use reveille::time::{Duration, Instant, sleep};
use reveille_executor::{Simulation, task};

const SECOND: Duration = Duration::from_secs(1);

/// Waits for a second, as for the reply to a request.
async fn request(name: &'static str) -> &'static str {
    sleep(SECOND).await;
    name
}

/// Polls two futures within one task, until both are ready.
async fn join<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut outputs = (None, None);
    poll_fn(|cx| {
        if outputs.0.is_none()
            && let Poll::Ready(output) = first.as_mut().poll(cx)
        {
            outputs.0 = Some(output);
        }
        if outputs.1.is_none()
            && let Poll::Ready(output) = second.as_mut().poll(cx)
        {
            outputs.1 = Some(output);
        }
        match (outputs.0.take(), outputs.1.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            pending => {
                outputs = pending;
                Poll::Pending
            }
        }
    })
    .await
}

async fn serial() -> (&'static str, &'static str) {
    // The second future does not begin before the first has ended.
    (request("A").await, request("B").await)
}

async fn joined() -> (&'static str, &'static str) {
    join(request("A"), request("B")).await
}

async fn spawned() -> (&'static str, &'static str) {
    // Both tasks begin before the first `await`.
    let [first, second] = ["A", "B"].map(|name| task::spawn(request(name)));
    (first.await.unwrap(), second.await.unwrap())
}

/// Runs a future, and returns how much virtual time has passed.
async fn timed(replies: impl Future<Output = (&'static str, &'static str)>) -> Duration {
    let start = Instant::now();
    assert_eq!(replies.await, ("A", "B"));
    start.elapsed()
}

fn main() {
    let begun = std::time::Instant::now();
    let took = Simulation::new(7).block_on(async {
        [
            timed(serial()).await,
            timed(joined()).await,
            timed(spawned()).await,
        ]
    });
    let lines = [
        format!("one after the other: {:?}", took[0]),
        format!("two futures of one task: {:?}", took[1]),
        format!("two tasks: {:?}", took[2]),
    ];
    lines.iter().for_each(|line| println!("{line}"));
    println!("real time: {:?}", begun.elapsed());
    assert_eq!(
        lines,
        [
            "one after the other: 2s",
            "two futures of one task: 1s",
            "two tasks: 1s",
        ]
    );
}

#[test]
fn what_is_printed_holds() {
    main();
}
