//! Roles: what a participant of a program can do.

/// What a participant is, and the operations it can perform.
#[derive(Clone, Debug)]
pub struct Role<Op> {
    /// Its name.
    pub name: &'static str,
    /// Its operations.
    pub ops: Vec<Operation<Op>>,
    /// Its symmetry class: participants of the same class can be exchanged
    /// without changing a program.
    pub symmetry: usize,
}

/// An operation of a role.
#[derive(Clone, Debug)]
pub struct Operation<Op> {
    /// Its name in programs and tokens: letters, digits and `_`.
    pub name: &'static str,
    /// The operation.
    pub op: Op,
    /// How it runs.
    pub kind: OperationKind,
    /// Whether the participant holds nothing of the primitive afterwards.
    pub leaves: bool,
    /// Whether it is only awaited or cancelled, because it is another name for an
    /// operation that is tried in every polling mode. [Bounds](crate::Bound) may leave it
    /// out.
    pub alias: bool,
    /// Whether it may take effect at any moment between its call and its return.
    pub spanning: bool,
    /// Why a waker of the operation may be alive after it has ended. If it is `None`,
    /// none may.
    pub keeps_waker: Option<&'static str>,
}

/// How an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// It returns without waiting.
    Immediate,
    /// It is a future.
    Async,
    /// It may block its thread before it returns.
    Blocking,
}

impl<Op> Operation<Op> {
    /// Creates an operation that returns without waiting.
    pub const fn immediate(name: &'static str, op: Op) -> Self {
        Self::new(name, op, OperationKind::Immediate)
    }

    /// Creates an operation that is a future.
    pub const fn future(name: &'static str, op: Op) -> Self {
        Self::new(name, op, OperationKind::Async)
    }

    /// Creates an operation that may block its thread.
    pub const fn blocking(name: &'static str, op: Op) -> Self {
        Self::new(name, op, OperationKind::Blocking)
    }

    const fn new(name: &'static str, op: Op, kind: OperationKind) -> Self {
        Self {
            name,
            op,
            kind,
            leaves: false,
            alias: false,
            spanning: false,
            keeps_waker: None,
        }
    }

    /// Declares that the operation is another name for one that the role has already,
    /// or only looks at the state. It is awaited and cancelled, and not run in the other
    /// polling modes. A [`Bound`](crate::Bound) may leave aliases out, so that it can
    /// include more of what remains.
    #[must_use]
    pub const fn alias(mut self) -> Self {
        self.alias = true;
        self
    }

    /// Declares that the operation may take effect at any moment between its call and
    /// its return.
    ///
    /// Without this it must take effect between its first section and its last, which
    /// is stricter. That is too strict if some of the state is not under locks of the
    /// backend: if the operation also reads or writes an atomic, a cell or another
    /// primitive.
    #[must_use]
    pub const fn spanning(mut self) -> Self {
        self.spanning = true;
        self
    }

    /// Declares that a waker of the operation may stay registered after the operation
    /// has ended, with the reason. Without this, a waker of an ended operation that is
    /// alive when nothing moves any more is a [leak](crate::Class::Leak).
    #[must_use]
    pub const fn keeps_waker(mut self, reason: &'static str) -> Self {
        self.keeps_waker = Some(reason);
        self
    }

    /// Declares that the participant holds nothing of the primitive afterwards.
    #[must_use]
    pub const fn leaving(mut self) -> Self {
        self.leaves = true;
        self
    }

    /// Returns the operation without its type.
    pub(crate) fn erased(&self) -> Operation<()> {
        Operation {
            name: self.name,
            op: (),
            kind: self.kind,
            leaves: self.leaves,
            alias: self.alias,
            spanning: self.spanning,
            keeps_waker: self.keeps_waker,
        }
    }
}
