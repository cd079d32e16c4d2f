//! A channel is for one value.
// error: E0382
use reveille::oneshot;

fn main() {
    let (tx, _rx) = oneshot::channel();
    tx.send(1).unwrap();
    #[cfg(refused)]
    tx.send(2).unwrap();
}
