//! Sleeps that are cancelled, under criterion.

mod harness;

fn main() {
    harness::run("time");
}
