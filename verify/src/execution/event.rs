//! Events: what happens in an execution, recorded only while it is replayed.

use reveille::backend::Passage;
use reveille::protocol::Bits;

use crate::subject::step::Hook;

/// An event of an execution.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) participant_id: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Call(String),
    Return(String),
    Poll {
        polls: usize,
        waker: usize,
    },
    Pending,
    Suspended,
    DropFuture,
    Cancelled,
    Unwound,
    Section {
        lock: usize,
        passage: Passage,
        before: Bits,
        after: Bits,
    },
    Waker {
        hook: Hook,
        owner: usize,
        waker: usize,
    },
    Unpark {
        owner: usize,
    },
    DropValue(usize),
    /// More than is recorded.
    More,
}
