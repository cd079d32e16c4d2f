//! A lock of two modes: a mutex has the exclusive one only.

use std::marker::PhantomData;

use reveille_verify::{Call, Operation, Role, Spec, Started, Subject, Value};

use super::BoxFuture;

/// A lock of a crate. Its guards own a reference to it.
pub(crate) trait Lock: Send + Sync + 'static {
    type Lock: Clone + Send + Sync + 'static;
    type Write: Send + 'static;
    type Read: Send + 'static;

    /// Whether it has a shared mode.
    const SHARED: bool;

    fn new() -> Self::Lock;
    fn write(lock: Self::Lock) -> BoxFuture<'static, Self::Write>;
    fn try_write(lock: Self::Lock) -> Option<Self::Write>;

    fn read(_lock: Self::Lock) -> BoxFuture<'static, Self::Read> {
        unreachable!("it has no shared mode")
    }

    fn try_read(_lock: Self::Lock) -> Option<Self::Read> {
        unreachable!("it has no shared mode")
    }
}

/// A lock as a subject.
pub(crate) struct Locks<L> {
    lock: PhantomData<fn() -> L>,
    /// Whether only one task may wait, whose waker the lock keeps.
    one_waiter: bool,
}

impl<L> Locks<L> {
    pub(crate) fn new() -> Self {
        Self {
            lock: PhantomData,
            one_waiter: false,
        }
    }

    /// A lock with a cell for one waker. Tasks that wait at once wake one another, again
    /// and again, as its documentation says.
    pub(crate) fn for_one_waiter() -> Self {
        Self {
            one_waiter: true,
            ..Self::new()
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Write,
    Read,
    TryWrite,
    TryRead,
    Unlock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    Locked,
    Refused,
    Unlocked,
    /// The participant holds the lock already, or holds nothing to unlock.
    Misused,
}

/// The guard that a participant holds.
enum Guard<L: Lock> {
    Write(L::Write),
    Read(L::Read),
}

pub(crate) struct Holder<L: Lock> {
    guard: Option<Guard<L>>,
    lock: L::Lock,
}

impl<L: Lock> Subject for Locks<L> {
    type Op = Op;
    type Ret = Ret;
    type Spec = LockSpec;
    type Actor = Holder<L>;

    fn spec(&self) -> LockSpec {
        LockSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let mut ops = vec![
            match self.one_waiter {
                true => Operation::future("lock", Op::Write).keeps_waker("until the next one"),
                false => Operation::future("lock", Op::Write),
            },
            Operation::immediate("try_lock", Op::TryWrite),
            Operation::immediate("unlock", Op::Unlock),
        ];
        if L::SHARED {
            ops.push(Operation::future("read", Op::Read));
            ops.push(Operation::immediate("try_read", Op::TryRead));
        }
        let most = if self.one_waiter { 2 } else { participants };
        vec![
            Role {
                name: "task",
                ops,
                symmetry: 0
            };
            participants.min(most)
        ]
    }

    fn actors(&self, participants: usize) -> Vec<Holder<L>> {
        let lock = L::new();
        (0..participants)
            .map(|_| Holder {
                guard: None,
                lock: lock.clone(),
            })
            .collect()
    }

    fn start<'a>(
        &self,
        holder: &'a mut Holder<L>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let Holder { guard, lock } = holder;
        match call.op {
            Op::Unlock => Started::Done(match guard.take() {
                Some(_) => Ret::Unlocked,
                None => Ret::Misused,
            }),
            _ if guard.is_some() => Started::Done(Ret::Misused),
            Op::Write => {
                let locked = L::write(lock.clone());
                Started::future(async {
                    *guard = Some(Guard::Write(locked.await));
                    Ret::Locked
                })
            }
            Op::Read => {
                let locked = L::read(lock.clone());
                Started::future(async {
                    *guard = Some(Guard::Read(locked.await));
                    Ret::Locked
                })
            }
            Op::TryWrite => {
                *guard = L::try_write(lock.clone()).map(Guard::Write);
                Started::Done(tried(guard.is_some()))
            }
            Op::TryRead => {
                *guard = L::try_read(lock.clone()).map(Guard::Read);
                Started::Done(tried(guard.is_some()))
            }
        }
    }
}

fn tried(locked: bool) -> Ret {
    if locked { Ret::Locked } else { Ret::Refused }
}

/// The holders, and the tasks that wait to write, which may go before later readers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    writer: Option<usize>,
    readers: Vec<usize>,
    /// Those that wait to write.
    writers: Vec<usize>,
}

impl State {
    fn holds(&self, participant_id: usize) -> bool {
        self.writer == Some(participant_id) || self.readers.contains(&participant_id)
    }
}

pub(crate) struct LockSpec;

impl Spec for LockSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::default()
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let participant_id = call.participant;
        let mut next = state.clone();
        let free = state.writer.is_none();
        let ret = match call.op {
            Op::Unlock if state.holds(participant_id) => {
                next.writer = next.writer.filter(|&writer| writer != participant_id);
                next.readers.retain(|&reader| reader != participant_id);
                Ret::Unlocked
            }
            Op::Unlock => Ret::Misused,
            _ if state.holds(participant_id) => Ret::Misused,
            Op::Write | Op::TryWrite if free && state.readers.is_empty() => {
                next.writer = Some(participant_id);
                next.writers.retain(|&writer| writer != participant_id);
                Ret::Locked
            }
            Op::Read | Op::TryRead if free => {
                next.readers.push(participant_id);
                next.readers.sort_unstable();
                let locked = (next, Ret::Locked);
                // A lock that prefers writers refuses a reader while one waits.
                return match call.op {
                    Op::TryRead if !state.writers.is_empty() => {
                        vec![locked, (state.clone(), Ret::Refused)]
                    }
                    _ => vec![locked],
                };
            }
            Op::TryWrite | Op::TryRead => Ret::Refused,
            Op::Write | Op::Read => return Vec::new(),
        };
        vec![(next, ret)]
    }

    /// A reader may have to wait for a writer that waits.
    fn is_due(&self, state: &State, call: Call<'_, Op>) -> bool {
        let others = state
            .writers
            .iter()
            .any(|&writer| writer != call.participant);
        !self.step(state, call).is_empty() && (matches!(call.op, Op::Write) || !others)
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::Write)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        if matches!(call.op, Op::Write) && !state.holds(call.participant) {
            next.writers.push(call.participant);
            next.writers.sort_unstable();
            next.writers.dedup();
        }
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        next.writers.retain(|&writer| writer != call.participant);
        vec![next]
    }

    /// A lock is free before the waker of another is called.
    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut states = self.cancel(state, call);
        if matches!(call.op, Op::Unlock) {
            states.extend(self.effects(state, call));
        }
        states
    }
}
