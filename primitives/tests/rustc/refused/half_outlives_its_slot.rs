//! Halves are borrows of their slot.
// error: E0597
use reveille::oneshot::Slot;

fn main() {
    let mut _outer = Slot::<u32>::new();
    let _rx = {
        let mut _inner = Slot::<u32>::new();
        #[cfg(refused)]
        let (_tx, rx) = _inner.split();
        #[cfg(not(refused))]
        let (_tx, rx) = _outer.split();
        rx
    };
}
