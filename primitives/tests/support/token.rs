//! Values whose fate is counted: each must be dropped once, wherever it went.

use std::cell::Cell;

thread_local! {
    static ALIVE: Cell<usize> = const { Cell::new(0) };
}

/// A value that is counted, for each thread. If it is dropped twice, it fails the
/// test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) u32);

impl Token {
    pub(crate) fn new(number: u32) -> Self {
        ALIVE.set(ALIVE.get() + 1);
        Self(number)
    }

    /// Returns how many have been made and not dropped.
    pub(crate) fn alive() -> usize {
        ALIVE.get()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let alive = ALIVE.get().checked_sub(1);
        ALIVE.set(alive.expect("a value is dropped once"));
    }
}

/// A value whose drop panics, unless it was defused.
#[derive(Debug)]
pub(crate) struct Explosive(Option<Token>);

impl Explosive {
    pub(crate) fn new() -> Self {
        Self(Some(Token::new(0)))
    }

    pub(crate) fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(self.0.is_none(), "the value's drop panics");
    }
}
