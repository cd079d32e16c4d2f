//! Specifications: what the operations of a primitive mean, one at a time.

use std::fmt::Debug;
use std::hash::Hash;

/// A sequential model, against which histories are judged.
///
/// Time does not pass in it, and no operation waits. An operation that would have to
/// wait has no outcome in that state.
pub trait Spec: Send + Sync + 'static {
    /// An operation.
    type Op;

    /// What an operation returns.
    type Ret: Clone + Eq + Debug;

    /// The state of the primitive, with what belongs to each participant.
    type State: Clone + Eq + Hash + Debug;

    /// Returns the state before the first operation.
    fn initial(&self) -> Self::State;

    /// Returns the outcomes that the operation can have in this state. If there are
    /// none, it waits.
    fn step(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<(Self::State, Self::Ret)>;

    /// Returns `true` if an operation that still waits when nothing moves any more
    /// should have gone on. By default it should if it has an outcome. Override this
    /// for an operation that checks its condition only when it is notified.
    fn is_due(&self, state: &Self::State, call: Call<'_, Self::Op>) -> bool {
        !self.step(state, call).is_empty()
    }

    /// Returns the states to which the *beginning* of a wait may lead. For example, it
    /// takes a place in a queue. By default it changes nothing.
    fn begin(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        let _ = call;
        vec![state.clone()]
    }

    /// Returns the states to which giving up the operation may lead. For example, it
    /// passes on what it was granted. By default it changes nothing. A future is given
    /// up when it is dropped before it returns.
    fn cancel(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        let _ = call;
        vec![state.clone()]
    }

    /// Returns the states in which a future may have left the primitive if the panic of
    /// a waker went through it and it was then dropped. It has delivered nothing. By
    /// default these are the states of [`cancel`](Self::cancel). If an operation acts
    /// before it returns, such as one that locks and unlocks, include its
    /// [effects](Self::effects).
    fn unwind(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        self.cancel(state, call)
    }

    /// Returns the states after the operation, whatever it returns. If an operation
    /// wakes others and a waker panics, its effects are these. It is meant for use in
    /// [`cancel`](Self::cancel).
    fn effects(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        let outcomes = self.step(state, call).into_iter();
        outcomes.map(|(state, _)| state).collect()
    }

    /// Returns `true` if [`begin`](Self::begin) does anything for this operation. If it
    /// does not, its place in a history need not be searched for.
    fn begins(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }
}

/// An operation of a participant.
#[derive(Debug)]
pub struct Call<'a, Op> {
    /// The participant.
    pub participant: usize,
    /// The index of the step in the participant's program.
    pub index: usize,
    /// The operation.
    pub op: &'a Op,
}

impl<Op> Clone for Call<'_, Op> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Op> Copy for Call<'_, Op> {}

impl<Op> Call<'_, Op> {
    /// Returns the number of the value that this call creates, if it creates one. It is
    /// the same in the specification and in the subject.
    #[must_use]
    pub fn value(&self) -> ValueId {
        ValueId(self.participant << 16 | self.index)
    }
}

/// The number of a value, unique in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) usize);
