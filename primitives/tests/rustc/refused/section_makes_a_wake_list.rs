//! P3: only the list of the lock is fired. A list made by hand would be fired by its
//! drop.
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
