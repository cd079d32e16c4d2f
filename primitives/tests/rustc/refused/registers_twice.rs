//! P5: a poll registers in one slot.
// error: E0382
use std::task::{Context, Waker};

use reveille::protocol::{Bits, StateLock, WakerSlot};

fn main() {
    let slots = [WakerSlot::new(), WakerSlot::new()];
    let lock: StateLock<[WakerSlot; 2]> = StateLock::new_in(Bits::EMPTY, slots);
    let mut cx = Context::from_waker(Waker::noop());
    let _ = lock.poll::<()>(&mut cx, true, |section, registration| {
        let [_one, two] = section.state;
        #[cfg(refused)]
        let _ = registration.register(_one);
        Err(registration.register(two))
    });
}
