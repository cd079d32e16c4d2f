//! A slot has one channel at a time.
// error: E0499
use reveille::oneshot::Slot;

fn main() {
    let mut slot = Slot::<u32>::new();
    let (tx, _rx) = slot.split();
    #[cfg(refused)]
    let _again = slot.split();
    drop(tx);
}
