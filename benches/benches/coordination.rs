//! Signals, values that are computed once, and pools, under criterion.

mod harness;

fn main() {
    for primitive in [
        "event",
        "latch",
        "wait_group",
        "phaser",
        "shutdown",
        "lazy",
        "once_map",
        "singleflight",
        "pool",
    ] {
        harness::run(primitive);
    }
}
