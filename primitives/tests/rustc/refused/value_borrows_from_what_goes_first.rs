//! A receiver may drop the value when it is dropped, so what the value borrows
//! has to be there then.
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
