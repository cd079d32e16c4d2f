//! P2: only a polling section registers.
// error: E0624
use std::task::{Context, Waker};

use reveille::protocol::Registration;

fn main() {
    let _cx = Context::from_waker(Waker::noop());
    let _caller: Option<Registration<'_>> = None;
    #[cfg(refused)]
    let _caller = Registration::new(&_cx, true);
}
