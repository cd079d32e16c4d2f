//! What a primitive's operations mean, one at a time.

use std::fmt::Debug;
use std::hash::Hash;

/// A sequential model: the reference against which histories are judged.
///
/// Time does not pass in it and nobody waits: an operation that would have to
/// wait has no outcome in the state at hand.
pub trait Spec: Send + Sync + 'static {
    /// An operation.
    type Op;

    /// What an operation answers.
    type Ret: Clone + Eq + Debug;

    /// The state of the primitive, with what belongs to each participant.
    type State: Clone + Eq + Hash + Debug;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The outcomes that the operation can have in this state. None: it waits.
    fn step(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<(Self::State, Self::Ret)>;

    /// Whether an operation that is still waiting when nothing moves any more
    /// should have gone on. By default: where it has an outcome. An operation
    /// that is owed a look only when somebody notifies it says so here.
    fn is_due(&self, state: &Self::State, call: Call<'_, Self::Op>) -> bool {
        !self.step(state, call).is_empty()
    }

    /// What the *beginning* of a wait may do to the state (it takes a place in
    /// a queue, say). Nothing, by default.
    fn begin(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        let _ = call;
        vec![state.clone()]
    }

    /// Returns what giving up the operation may do to the state (it hands on what it
    /// was granted, say). Nothing, by default. A future is given up when it is dropped
    /// before it returns.
    fn cancel(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        let _ = call;
        vec![state.clone()]
    }

    /// Returns what a future may have done to the state that the panic of a waker went
    /// through, and that was dropped then. It has delivered nothing: what
    /// [`cancel`](Self::cancel) does, by default. Where an operation acts before it
    /// returns (it locks and unlocks in one, say), include what it
    /// [does](Self::effects).
    fn unwind(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        self.cancel(state, call)
    }

    /// What the operation does to the state, whatever it answers: what an
    /// operation has done that wakes others, if one of these panics. For
    /// [`cancel`](Self::cancel).
    fn effects(&self, state: &Self::State, call: Call<'_, Self::Op>) -> Vec<Self::State> {
        let outcomes = self.step(state, call).into_iter();
        outcomes.map(|(state, _)| state).collect()
    }

    /// Whether [`begin`](Self::begin) does anything for this operation. Where
    /// it does not, its place in a history need not be searched for.
    fn begins(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }
}

/// One operation of one participant.
#[derive(Debug)]
pub struct Call<'a, Op> {
    /// The participant.
    pub participant: usize,
    /// The number of the step in its program.
    pub index: usize,
    /// What it does.
    pub op: &'a Op,
}

impl<Op> Clone for Call<'_, Op> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Op> Copy for Call<'_, Op> {}

impl<Op> Call<'_, Op> {
    /// The number of the value that this call makes, if it makes one: the same
    /// in the specification and in the subject.
    #[must_use]
    pub fn value(&self) -> ValueId {
        ValueId(self.participant << 16 | self.index)
    }
}

/// The number of a value, unique in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) usize);
