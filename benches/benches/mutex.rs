//! A lock that is held across an `await`, under criterion.

mod harness;

fn main() {
    harness::run("mutex");
}
