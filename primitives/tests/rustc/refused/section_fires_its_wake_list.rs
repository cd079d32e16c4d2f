//! P3: the lock wakes what a section took out, after the section.
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
