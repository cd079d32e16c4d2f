//! A channel over `Local` stays on one thread.
// error: E0277
use reveille::oneshot;
use reveille::backend::{Local, Spin};

fn main() {
    #[cfg(refused)]
    let (tx, _rx) = oneshot::channel_in::<u32, Local>();
    #[cfg(not(refused))]
    let (tx, _rx) = oneshot::channel_in::<u32, Spin>();
    std::thread::spawn(move || tx.send(1)).join().unwrap().unwrap();
}
