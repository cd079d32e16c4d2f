//! A lock over `Local` is not shared by two threads.
// error: E0277
use reveille::backend::{Local, Spin};
use reveille::protocol::{Bits, StateLock};

fn main() {
    #[cfg(refused)]
    let lock = StateLock::<u32, Local>::new_in(Bits::EMPTY, 0);
    #[cfg(not(refused))]
    let lock = StateLock::<u32, Spin>::new_in(Bits::EMPTY, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| lock.load());
    });
}
