//! Sleeps that are given up, under criterion.

mod harness;

fn main() {
    harness::run("time");
}
