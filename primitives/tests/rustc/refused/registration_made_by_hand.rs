//! P2: only the section of a poll registers.
// error: E0624
use std::task::Waker;

use reveille::protocol::Registration;

fn main() {
    let _spare = None::<Waker>;
    let _registration: Option<Registration<'_>> = None;
    #[cfg(refused)]
    let _registration = Registration::new(Waker::noop(), &mut { _spare });
}
