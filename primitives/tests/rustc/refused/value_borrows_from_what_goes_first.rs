//! A receiver that is dropped may drop the value, so what the value borrows must still
//! exist then.
// error: E0597
use reveille::oneshot;

fn main() {
    let _outer = String::from("stays");
    let (tx, _rx) = oneshot::channel::<&str>();
    {
        let _inner = String::from("goes");
        #[cfg(refused)]
        tx.send(&_inner).unwrap();
        #[cfg(not(refused))]
        tx.send(&_outer).unwrap();
    }
}
