//! An event without a value, under criterion.

mod harness;

fn main() {
    harness::run("notify");
}
