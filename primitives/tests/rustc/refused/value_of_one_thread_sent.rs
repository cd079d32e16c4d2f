//! A channel is as `Send` as its value.
// error: E0277
use std::rc::Rc;
use std::sync::Arc;

use reveille::oneshot;

fn main() {
    #[cfg(refused)]
    let (tx, _rx) = oneshot::channel::<Rc<u32>>();
    #[cfg(not(refused))]
    let (tx, _rx) = oneshot::channel::<Arc<u32>>();
    std::thread::spawn(move || drop(tx)).join().unwrap();
}
