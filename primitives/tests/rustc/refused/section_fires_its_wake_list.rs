//! P3: what a section let go is woken after it, by the lock.
// error: E0624
use reveille::protocol::{Bits, StateLock, WakerSlot};

fn main() {
    let lock: StateLock<WakerSlot> = StateLock::new_in(Bits::EMPTY, WakerSlot::new());
    lock.with(|section| {
        section.wakes.wake(section.state);
        #[cfg(refused)]
        section.wakes.fire();
    });
}
