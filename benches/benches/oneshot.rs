//! One value from one task to another, under criterion.

mod harness;

fn main() {
    harness::run("oneshot");
}
