//! P3: no list but the lock's is fired, so none is made by hand, to be fired by
//! its drop.
// error: E0624
use reveille::protocol::{Bits, StateLock, WakerSlot};

fn main() {
    let lock: StateLock<WakerSlot> = StateLock::new_in(Bits::EMPTY, WakerSlot::new());
    lock.with(|section| {
        #[cfg(refused)]
        drop(std::mem::replace(section.wakes, reveille::protocol::WakeList::new()));
        section.wakes.wake(section.state);
    });
}
