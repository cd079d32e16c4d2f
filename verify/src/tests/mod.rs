//! Unit tests. `verify/tests/` has the tests of the public face.

mod deadlock;
mod dispatch;
mod engines;
mod enumeration;
mod history;
mod layers;
mod pages;
mod reduction;
mod registry;
mod reports;
mod specimens;
mod tokens;

/// Draws a number by Marsaglia's xorshift, so every run draws the same ones.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % below
    }
}
