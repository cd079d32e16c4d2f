//! A wait that blocks the only thread would never end.
// error: E0277
use reveille::oneshot;
use reveille::backend::{Local, Spin};

fn main() {
    #[cfg(refused)]
    let (_tx, rx) = oneshot::channel_in::<u32, Local>();
    #[cfg(not(refused))]
    let (_tx, rx) = oneshot::channel_in::<u32, Spin>();
    let _ = rx.blocking_recv();
}
