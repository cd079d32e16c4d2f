//! The halves point into the slot, so it must not move.
// error: E0505
use reveille::oneshot::Slot;

fn main() {
    let mut slot = Slot::<u32>::new();
    let (tx, _rx) = slot.split();
    #[cfg(refused)]
    let _moved = Box::new(slot);
    drop(tx);
}
