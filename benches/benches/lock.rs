//! The lock alone, under criterion.

mod harness;

fn main() {
    harness::run("lock");
}
