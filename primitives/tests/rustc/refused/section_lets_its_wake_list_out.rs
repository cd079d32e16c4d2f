//! The list stays in the section, and is not filled later.
// error: lifetime
use reveille::protocol::{Bits, StateLock, WakerSlot};

fn main() {
    let lock: StateLock<WakerSlot> = StateLock::new_in(Bits::EMPTY, WakerSlot::new());
    #[cfg(refused)]
    let list = lock.with(|section| section.wakes);
    #[cfg(not(refused))]
    let list = lock.with(|section| section.wakes.is_full());
    drop(list);
}
