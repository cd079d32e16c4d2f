//! P5: a section cannot be pending without having registered the waker of the poll.
// error: E0308
use std::task::{Context, Waker};

use reveille::protocol::{Bits, StateLock, WakerSlot};

fn main() {
    let lock: StateLock<WakerSlot> = StateLock::new_in(Bits::EMPTY, WakerSlot::new());
    let mut cx = Context::from_waker(Waker::noop());
    let _ = lock.poll::<()>(&mut cx, true, |section, registration| {
        #[cfg(refused)]
        return Err(());
        Err(registration.register(section.state))
    });
}
