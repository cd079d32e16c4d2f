//! P2: only the section of a poll puts a waker into a slot.
// error: E0423
use std::task::Waker;

use reveille::protocol::WakerSlot;

fn main() {
    let _waker = Waker::noop().clone();
    #[cfg(refused)]
    let _slot = WakerSlot(Some(_waker));
    #[cfg(not(refused))]
    let _slot = WakerSlot::new();
}
