//! P4: a section has no access to a waker, only to slots.
// error: E0616
use reveille::protocol::{Bits, StateLock, WakerSlot};

fn main() {
    let lock: StateLock<WakerSlot> = StateLock::new_in(Bits::EMPTY, WakerSlot::new());
    lock.with(|section| {
        #[cfg(refused)]
        section.state.0.take().unwrap().wake();
        section.wakes.wake(section.state);
    });
}
