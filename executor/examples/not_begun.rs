//! Calling an `async fn` does not run it. Its first poll does.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

async fn begins(begun: &Cell<bool>) {
    begun.set(true);
}

fn main() {
    let begun = Cell::new(false);
    let future = pin!(begins(&begun));
    println!("called: begun is {}", begun.get());
    assert!(!begun.get());

    let poll = future.poll(&mut Context::from_waker(Waker::noop()));
    println!("polled: begun is {}", begun.get());
    assert!(poll.is_ready());
    assert!(begun.get());
}

#[test]
fn what_is_printed_holds() {
    main();
}
