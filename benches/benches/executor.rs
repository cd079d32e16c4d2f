//! Executors, under criterion.

mod harness;

fn main() {
    harness::run("executor");
}
