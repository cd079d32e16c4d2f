//! `model` on code as it is written in practice. Each scene is shown as it fails, and
//! mended.
//!
//! | scene | what is wrong | found in execution | after | executions when mended | in |
//! | --- | --- | --- | --- | --- | --- |
//! | `two_locks` | deadlock | 10 | 0.00 s | 6 | 0.00 s |
//! | `condition` | lost wake-up | 4 | 0.00 s | 13 | 0.00 s |
//! | `pool` | lost wake-up | 1,384 | 0.03 s | 9,680 | 0.35 s |
//! | `cache` | lost wake-up | 7 | 0.00 s | 25 | 0.00 s |
//! | `shutdown` | wrong at the end | 1 | 0.00 s | 532 | 0.01 s |
//! | `select` | lost wake-up | 1 | 0.00 s | 118 | 0.00 s |
//! | `increment` | wrong at the end | 4 | 0.00 s | 270 | 0.00 s |
//!
//! When mended, each verdict is `complete`. The numbers of executions are the same on every
//! machine, and tests compare them with this table. The times are those of one run, and are
//! printed by
//!
//! ```text
//! cargo test --release -p reveille-verify --test model -- --nocapture pool::
//! ```
//!
//! An execution takes 3 to 5 µs of CPU if the checker is optimised and the model long enough.
//! On the same machine, over the same locks and the same code, loom takes 40 µs. It needs 104
//! executions for `two_locks`, and has not ended after 200,000 for `increment`. shuttle
//! draws, at 8 to 11 µs each, and finds the deadlock of `two_locks`. Its search of every
//! order has not found it after 100,000, and neither have 20,000 repetitions on two threads
//! of tokio.

mod cache;
mod channels;
mod condition;
mod features;
mod habits;
mod increment;
mod keyed;
mod pool;
mod refused;
mod reports;
mod select;
mod shutdown;
mod two_locks;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use reveille_verify::{Failure, Kind, Model, ModelReport, Verdict, explore_model};

/// Checks that a scene takes as many executions as the table above says, in the column of
/// this number.
#[track_caller]
fn is_in_the_table(report: &ModelReport, column: usize) {
    let thread = std::thread::current();
    let scene = thread.name().and_then(|name| name.split_once("::"));
    let Some((scene, _)) = scene else {
        return;
    };
    let row = format!("//! | `{scene}` |");
    let row = include_str!("main.rs")
        .lines()
        .find(|line| line.starts_with(&row));
    if let Some(row) = row {
        let cell = row.split('|').nth(column).expect("a column of the table");
        let executions: String = cell.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(report.executions.to_string(), executions, "{row}");
    }
}

/// Returns the failure of a model.
#[track_caller]
fn fails(kind: Kind, scene: impl Fn(&Model) + Send + Sync + 'static) -> Failure {
    let report = explore_model(scene);
    eprintln!("{report}");
    let Some(failure) = report.failure.clone() else {
        panic!("it was not caught: {report}");
    };
    eprintln!("{failure}");
    assert_eq!(failure.kind, kind, "{failure}");
    is_in_the_table(&report, 3);
    if !matches!(kind, Kind::Blocked | Kind::Livelock) {
        assert!(report.time.as_secs_f64() < 1.0, "{failure}");
    }
    failure
}

/// Checks that a model holds in every order.
#[track_caller]
fn holds(scene: impl Fn(&Model) + Send + Sync + 'static) -> ModelReport {
    let report = explore_model(scene);
    if let Some(failure) = &report.failure {
        panic!("{failure}\nagain: {}\n{report}", failure.token);
    }
    assert_eq!(report.verdict, Verdict::Complete, "{report}");
    is_in_the_table(&report, 5);
    eprintln!("{report}");
    report
}

/// Returns the first of two futures that is ready. They are polled in this order.
async fn first_of<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> Result<A, B> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| {
        if let Poll::Ready(a) = a.as_mut().poll(cx) {
            return Poll::Ready(Ok(a));
        }
        b.as_mut().poll(cx).map(Err)
    })
    .await
}

/// Polls two futures until one is ready. Both can be ready at once.
async fn both<A, B>(
    a: impl Future<Output = A>,
    b: impl Future<Output = B>,
) -> (Option<A>, Option<B>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| match (a.as_mut().poll(cx), b.as_mut().poll(cx)) {
        (Poll::Pending, Poll::Pending) => Poll::Pending,
        (a, b) => Poll::Ready((ready(a), ready(b))),
    })
    .await
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
