//! Permits, under criterion.

mod harness;

fn main() {
    harness::run("semaphore");
}
