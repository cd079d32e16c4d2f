//! A handle to a pinned future moves; the future does not.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn main() {
    let places = Rc::new(RefCell::new(Vec::new()));
    let mut handle: Pin<Box<dyn Future<Output = ()>>> = Box::pin({
        let places = places.clone();
        async move {
            let mut local = 0_u8;
            for _ in 0..2 {
                local += 1;
                places.borrow_mut().push(std::ptr::from_ref(&local).addr());
                let mut yielded = false;
                poll_fn(|_| match std::mem::replace(&mut yielded, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
            }
            assert_eq!(local, 2);
        }
    });
    assert!(poll(handle.as_mut()).is_pending());
    let before = std::ptr::from_ref(&handle).addr();
    let mut moved = [handle];
    let after = std::ptr::from_ref(&moved[0]).addr();
    assert!(poll(moved[0].as_mut()).is_pending());
    let places = places.borrow();
    println!("the handle moved from {before:#x} to {after:#x}");
    println!(
        "the local in its future was at {:#x} at both polls",
        places[0]
    );
    assert_ne!(after, before);
    assert_eq!(places[0], places[1]);
}

#[test]
fn what_is_printed_holds() {
    main();
}
