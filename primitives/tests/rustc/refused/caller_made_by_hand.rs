//! P2: only a polling section registers.
// error: E0624
use std::task::{Context, Waker};

use reveille::protocol::Caller;

fn main() {
    let _cx = Context::from_waker(Waker::noop());
    let _caller: Option<Caller<'_>> = None;
    #[cfg(refused)]
    let _caller = Caller::new(&_cx, true);
}
