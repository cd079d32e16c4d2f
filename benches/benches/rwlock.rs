//! A lock for many readers or one writer, under criterion.

mod harness;

fn main() {
    harness::run("rwlock");
}
