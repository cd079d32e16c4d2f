//! `reveille::RwLock`, with every public operation that threads can share.
//!
//! The value is a count. A writer adds one when it unlocks, and a reader returns it.
//! Under loom the accesses of the guards are also checked.
//!
//! How many tasks wait and how many have a grant is left open up to the number of waits.
//! `primitives/tests/rwlock.rs` pins it.

use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::raw::describe_permits;
use reveille::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockUpgradableReadGuard,
    OwnedRwLockWriteGuard, RwLock,
};

use crate::run::entry::{
    Absent::{Constant, Creates, Exclusive, Locations, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::queueing;

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "rwlock",
        "reveille::RwLock: readers, an upgradable reader, a writer",
        RwLocks,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "rwlock.rs",
    absent: &[
        ("const_new", Creates),
        ("const_with_max_readers", Creates),
        ("downgrade_map", SameAs("downgrade")),
        ("get_mut", Exclusive),
        ("holders", Locations),
        ("into_inner", Exclusive),
        ("into_mapped", SameAs("map")),
        ("new", Creates),
        ("new_in", Creates),
        ("rwlock", Constant),
        ("try_downgrade_map", SameAs("downgrade")),
        ("try_map", SameAs("map")),
        ("waiters", Locations),
        ("with_max_readers", Creates),
        ("with_max_readers_in", Creates),
    ],
}]);

/// `RwLock` over every backend.
pub(crate) struct RwLocks;

impl GenericSubject for RwLocks {
    type On<B: BlockingBackend> = RwLockOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        RwLockOn(std::marker::PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        queueing(mode, profile)
    }
}

pub(crate) struct RwLockOn<B>(std::marker::PhantomData<fn() -> B>);

/// The mode in which the lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    Read,
    Upgradable,
    Write,
}

impl Share {
    pub(crate) fn permits(self, all: usize) -> usize {
        match self {
            Self::Read => 1,
            Self::Upgradable => all / 2 + 1,
            Self::Write => all,
        }
    }
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Locks with an owned guard, which is held from step to step.
    Lock(Share),
    TryLock(Share),
    /// Locks with a borrowed guard that is leaked, so the lock is held for good.
    Leak(Share),
    TryLeak(Share),
    BlockingLeak(Share),
    Upgrade,
    TryUpgrade,
    /// Turns a writer, or an upgradable reader, into a reader.
    Downgrade,
    DowngradeToUpgradable,
    Map,
    Unlock,
    Waiting,
    Granted,
}

impl Op {
    /// Returns `true` if it requests the lock. A participant that holds the lock does
    /// nothing then, and returns [`Ret::Unit`].
    fn requests(self) -> bool {
        matches!(
            self,
            Self::Lock(_)
                | Self::TryLock(_)
                | Self::Leak(_)
                | Self::TryLeak(_)
                | Self::BlockingLeak(_)
        )
    }
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// It has no result, or there was nothing to do.
    Unit,
    Locked,
    Refused,
    /// The count that was read.
    Read(usize),
    /// The count before it was written.
    Wrote(usize),
    Number(usize),
}

/// What a participant holds.
pub(crate) struct Actor<B: BlockingBackend> {
    lock: Arc<RwLock<usize, B>>,
    held: Option<Held<B>>,
}

enum Held<B: BlockingBackend> {
    Reads(OwnedRwLockReadGuard<usize, usize, B>),
    Looks(OwnedRwLockUpgradableReadGuard<usize, B>),
    Writes(OwnedRwLockWriteGuard<usize, B>),
    WritesPart(OwnedRwLockMappedWriteGuard<usize, usize, B>),
}

impl<B: BlockingBackend> Held<B> {
    /// Unlocks. A writer writes before that.
    fn unlock(self) -> Ret {
        let add = |count: &mut usize| {
            *count += 1;
            Ret::Wrote(*count - 1)
        };
        match self {
            Self::Reads(guard) => Ret::Read(*guard),
            Self::Looks(guard) => Ret::Read(*guard),
            Self::Writes(mut guard) => add(&mut guard),
            Self::WritesPart(mut guard) => add(&mut guard),
        }
    }
}

impl<B: BlockingBackend> Subject for RwLockOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = RwLockSpec;
    type Actor = Actor<B>;

    fn spec(&self) -> RwLockSpec {
        RwLockSpec {
            all: RwLock::<usize, B>::MAX_READS as usize,
        }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        use Share::{Read, Upgradable, Write};
        let role = Role {
            name: "task",
            symmetry: 0,
            ops: vec![
                Operation::future("write_owned", Op::Lock(Write)),
                Operation::future("read_owned", Op::Lock(Read)),
                Operation::immediate("unlock", Op::Unlock),
                Operation::future("upgradable_read_owned", Op::Lock(Upgradable)).alias(),
                Operation::future("upgrade", Op::Upgrade),
                Operation::immediate("try_read_owned", Op::TryLock(Read)),
                Operation::immediate("try_write_owned", Op::TryLock(Write)),
                Operation::immediate("try_upgradable_read_owned", Op::TryLock(Upgradable)).alias(),
                Operation::immediate("try_upgrade", Op::TryUpgrade),
                Operation::immediate("downgrade", Op::Downgrade),
                Operation::immediate("downgrade_to_upgradable", Op::DowngradeToUpgradable).alias(),
                Operation::immediate("map", Op::Map).alias(),
                Operation::future("read", Op::Leak(Read)).alias(),
                Operation::future("write", Op::Leak(Write)).alias(),
                Operation::future("upgradable_read", Op::Leak(Upgradable)).alias(),
                Operation::immediate("try_read", Op::TryLeak(Read)).alias(),
                Operation::immediate("try_write", Op::TryLeak(Write)).alias(),
                Operation::immediate("try_upgradable_read", Op::TryLeak(Upgradable)).alias(),
                Operation::blocking("blocking_read", Op::BlockingLeak(Read)).alias(),
                Operation::blocking("blocking_write", Op::BlockingLeak(Write)).alias(),
                Operation::immediate("waiting", Op::Waiting).alias(),
                Operation::immediate("granted", Op::Granted).alias(),
            ],
        };
        vec![role; participants]
    }

    /// Allows a participant that certainly holds the lock no request but an upgrade.
    /// One that cannot hold it does not release or change what it holds.
    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        // What it may hold. A request may have been refused, or given up.
        let mut may = vec![None];
        let mut part = false;
        for step in before {
            let op = role.ops[step.op].op;
            part = match op {
                Op::Map => true,
                Op::Unlock => false,
                _ => part,
            };
            let completes = step.polling.completes();
            let after = |held: Option<Share>| match (op, held) {
                (Op::Lock(share), None) if completes => vec![Some(share)],
                (Op::Lock(share) | Op::TryLock(share), None) => vec![None, Some(share)],
                (Op::Unlock, _) => vec![None],
                (Op::Upgrade, Some(Share::Upgradable)) if completes => vec![Some(Share::Write)],
                (Op::Upgrade, Some(Share::Upgradable)) => vec![None, Some(Share::Write)],
                (Op::TryUpgrade, Some(Share::Upgradable)) => vec![held, Some(Share::Write)],
                (Op::Downgrade, Some(_)) => vec![Some(Share::Read)],
                (Op::DowngradeToUpgradable, Some(Share::Write)) => vec![Some(Share::Upgradable)],
                _ => vec![held],
            };
            may = may.into_iter().flat_map(after).collect();
        }
        let may_hold = |shares: &[Share]| {
            let held = may.iter().flatten();
            held.into_iter().any(|share| shares.contains(share))
        };
        use Share::{Read, Upgradable, Write};
        match role.ops[next.op].op {
            Op::Unlock => may_hold(&[Read, Upgradable, Write]),
            Op::Map => may_hold(&[Read, Upgradable, Write]) && !part,
            Op::Upgrade | Op::TryUpgrade => may_hold(&[Upgradable]),
            Op::Downgrade => !part && may_hold(&[Upgradable, Write]),
            Op::DowngradeToUpgradable => !part && may_hold(&[Write]),
            Op::Waiting | Op::Granted => true,
            _ => may.contains(&None),
        }
    }

    fn describe(&self, bits: Bits) -> String {
        let mut text = String::new();
        describe_permits(bits, &mut text).expect("writing to a string does not fail");
        text
    }

    fn actors(&self, participants: usize) -> Vec<Actor<B>> {
        let lock = Arc::new(RwLock::new_in(0));
        (0..participants)
            .map(|_| Actor {
                lock: lock.clone(),
                held: None,
            })
            .collect()
    }

    fn start<'a>(
        &self,
        Actor { lock, held }: &'a mut Actor<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let owned = lock.clone();
        Started::Done(match *call.op {
            op if op.requests() && held.is_some() => Ret::Unit,
            Op::Lock(Share::Read) => {
                return Started::future(async move {
                    keep(held, Some(Held::Reads(owned.read_owned().await)))
                });
            }
            Op::Lock(Share::Upgradable) => {
                return Started::future(async move {
                    keep(held, Some(Held::Looks(owned.upgradable_read_owned().await)))
                });
            }
            Op::Lock(Share::Write) => {
                return Started::future(async move {
                    keep(held, Some(Held::Writes(owned.write_owned().await)))
                });
            }
            Op::Leak(Share::Read) => {
                return Started::future(async { leaked(lock.read().await) });
            }
            Op::Leak(Share::Upgradable) => {
                return Started::future(async { leaked(lock.upgradable_read().await) });
            }
            Op::Leak(Share::Write) => {
                return Started::future(async { leaked(lock.write().await) });
            }
            Op::TryLock(Share::Read) => keep(held, owned.try_read_owned().ok().map(Held::Reads)),
            Op::TryLock(Share::Upgradable) => keep(
                held,
                owned.try_upgradable_read_owned().ok().map(Held::Looks),
            ),
            Op::TryLock(Share::Write) => keep(held, owned.try_write_owned().ok().map(Held::Writes)),
            Op::TryLeak(Share::Read) => lock.try_read().map_or(Ret::Refused, leaked),
            Op::TryLeak(Share::Upgradable) => {
                lock.try_upgradable_read().map_or(Ret::Refused, leaked)
            }
            Op::TryLeak(Share::Write) => lock.try_write().map_or(Ret::Refused, leaked),
            Op::BlockingLeak(Share::Write) => leaked(lock.blocking_write()),
            Op::BlockingLeak(_) => leaked(lock.blocking_read()),
            Op::Upgrade => match held.take() {
                Some(Held::Looks(guard)) => {
                    let upgrade = OwnedRwLockUpgradableReadGuard::upgrade(guard);
                    return Started::future(async {
                        *held = Some(Held::Writes(upgrade.await));
                        Ret::Locked
                    });
                }
                other => {
                    *held = other;
                    Ret::Unit
                }
            },
            Op::TryUpgrade => match held.take() {
                Some(Held::Looks(guard)) => {
                    match OwnedRwLockUpgradableReadGuard::try_upgrade(guard) {
                        Ok(guard) => {
                            *held = Some(Held::Writes(guard));
                            Ret::Locked
                        }
                        Err(guard) => {
                            *held = Some(Held::Looks(guard));
                            Ret::Refused
                        }
                    }
                }
                other => {
                    *held = other;
                    Ret::Unit
                }
            },
            Op::Downgrade => {
                *held = match held.take() {
                    Some(Held::Writes(guard)) => Some(Held::Reads(guard.downgrade())),
                    Some(Held::Looks(guard)) => Some(Held::Reads(
                        OwnedRwLockUpgradableReadGuard::downgrade(guard),
                    )),
                    held => held,
                };
                Ret::Unit
            }
            Op::DowngradeToUpgradable => {
                *held = match held.take() {
                    Some(Held::Writes(guard)) => Some(Held::Looks(
                        OwnedRwLockWriteGuard::downgrade_to_upgradable(guard),
                    )),
                    held => held,
                };
                Ret::Unit
            }
            Op::Map => {
                *held = match held.take() {
                    Some(Held::Writes(guard)) => Some(Held::WritesPart(
                        OwnedRwLockWriteGuard::map(guard, |count| count),
                    )),
                    Some(Held::Reads(guard)) => {
                        Some(Held::Reads(OwnedRwLockReadGuard::map(guard, |count| count)))
                    }
                    held => held,
                };
                Ret::Unit
            }
            Op::Unlock => held.take().map_or(Ret::Unit, Held::unlock),
            Op::Waiting => Ret::Number(lock.waiting()),
            Op::Granted => Ret::Number(lock.granted()),
        })
    }
}

fn keep<B: BlockingBackend>(held: &mut Option<Held<B>>, guard: Option<Held<B>>) -> Ret {
    match guard {
        Some(guard) => {
            *held = Some(guard);
            Ret::Locked
        }
        None => Ret::Refused,
    }
}

fn leaked<G>(guard: G) -> Ret {
    std::mem::forget(guard);
    Ret::Locked
}

/// What the operations of a lock mean, one at a time. Requests are granted first in,
/// first out, and an upgrade goes before all others. A request that can be granted is
/// granted at once.
pub(crate) struct RwLockSpec {
    /// The permits of a writer.
    pub(crate) all: usize,
}

/// The state of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    free: usize,
    count: usize,
    /// The requests that have begun, in order.
    waits: Vec<Wait>,
    /// What each participant holds and can release.
    held: Vec<(usize, Share)>,
    /// The participants whose downgrade unwinds. They are about to release what they
    /// hold.
    unwinding: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    participant_id: usize,
    permits: usize,
    granted: bool,
}

impl State {
    /// Grants requests in order.
    fn assign(&mut self) {
        for wait in &mut self.waits {
            if wait.granted {
                continue;
            }
            if self.free < wait.permits {
                return;
            }
            self.free -= wait.permits;
            wait.granted = true;
        }
    }

    fn give_back(&mut self, permits: usize) {
        self.free += permits;
        self.assign();
    }

    fn is_queued(&self) -> bool {
        self.waits.iter().any(|wait| !wait.granted)
    }

    fn leave(&mut self, participant_id: usize) -> Option<Wait> {
        let index = self
            .waits
            .iter()
            .position(|wait| wait.participant_id == participant_id)?;
        Some(self.waits.remove(index))
    }

    fn holds(&self, participant_id: usize) -> Option<Share> {
        let held = self
            .held
            .iter()
            .find(|&&(owner, _)| owner == participant_id)?;
        Some(held.1)
    }

    fn let_go(&mut self, participant_id: usize) -> Option<Share> {
        let index = self
            .held
            .iter()
            .position(|&(owner, _)| owner == participant_id)?;
        Some(self.held.remove(index).1)
    }

    fn hold(&mut self, participant_id: usize, share: Share) {
        self.let_go(participant_id);
        self.held.push((participant_id, share));
        self.held.sort_by_key(|&(participant_id, _)| participant_id);
    }
}

impl RwLockSpec {
    fn rest(&self) -> usize {
        self.all - Share::Upgradable.permits(self.all)
    }

    fn let_go(&self, state: &mut State, participant_id: usize) {
        if let Some(share) = state.let_go(participant_id) {
            state.give_back(share.permits(self.all));
        }
    }

    /// Returns this state, and those in which some participants whose downgrade unwinds
    /// have released.
    fn unwound(&self, state: State) -> Vec<State> {
        let mut all = vec![state];
        let mut next = 0;
        while next < all.len() {
            if let [rest @ .., participant_id] = &all[next].unwinding[..] {
                let (participant_id, rest) = (*participant_id, rest.to_vec());
                let mut gone = all[next].clone();
                gone.unwinding = rest;
                self.let_go(&mut gone, participant_id);
                all.push(gone);
            }
            next += 1;
        }
        all
    }

    /// Keeps a weaker mode, and releases the rest.
    fn downgrade(&self, state: &mut State, participant_id: usize, to: Share) {
        if let Some(from) = state.holds(participant_id) {
            state.hold(participant_id, to);
            state.give_back(from.permits(self.all) - to.permits(self.all));
        }
    }
}

impl Spec for RwLockSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State {
            free: self.all,
            count: 0,
            waits: Vec::new(),
            held: Vec::new(),
            unwinding: Vec::new(),
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::Lock(_) | Op::Leak(_) | Op::BlockingLeak(_) | Op::Upgrade
        )
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let wait = |permits| Wait {
            participant_id: call.participant,
            permits,
            granted: false,
        };
        match *call.op {
            op if op.requests() && state.holds(call.participant).is_some() => {}
            Op::Upgrade if state.holds(call.participant) == Some(Share::Upgradable) => {
                next.waits.insert(0, wait(self.rest()));
            }
            Op::Lock(share) | Op::Leak(share) | Op::BlockingLeak(share) => {
                next.waits.push(wait(share.permits(self.all)));
            }
            _ => {}
        }
        next.assign();
        self.unwound(next)
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let wait = next.leave(call.participant);
        if let Some(wait) = wait
            && wait.granted
        {
            next.free += wait.permits;
        }
        let mut all = Vec::new();
        match *call.op {
            // An upgrade that is given up also releases what it began with.
            Op::Upgrade => self.let_go(&mut next, call.participant),
            // Others may find the lock downgraded before it is released.
            Op::Downgrade | Op::DowngradeToUpgradable => {
                let mut between = state.clone();
                between.unwinding.push(call.participant);
                let to = match *call.op {
                    Op::Downgrade => Share::Read,
                    _ => Share::Upgradable,
                };
                self.downgrade(&mut between, call.participant, to);
                all.extend(self.unwound(between));
                self.let_go(&mut next, call.participant);
            }
            Op::Unlock => return self.effects(state, call),
            _ => {}
        }
        next.assign();
        all.extend(self.unwound(next));
        all
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let ret = match *call.op {
            op if op.requests() && state.holds(participant_id).is_some() => Ret::Unit,
            Op::Lock(share) => match next.leave(participant_id) {
                Some(wait) if wait.granted => {
                    next.hold(participant_id, share);
                    Ret::Locked
                }
                _ => return Vec::new(),
            },
            Op::Leak(_) | Op::BlockingLeak(_) => match next.leave(participant_id) {
                Some(wait) if wait.granted => Ret::Locked,
                _ => return Vec::new(),
            },
            Op::Upgrade => match next.leave(participant_id) {
                Some(wait) if wait.granted => {
                    next.hold(participant_id, Share::Write);
                    Ret::Locked
                }
                None if state.holds(participant_id) != Some(Share::Upgradable) => Ret::Unit,
                _ => return Vec::new(),
            },
            Op::TryLock(share) | Op::TryLeak(share) => {
                let permits = share.permits(self.all);
                if state.is_queued() || state.free < permits {
                    Ret::Refused
                } else {
                    next.free -= permits;
                    if let Op::TryLock(share) = *call.op {
                        next.hold(participant_id, share);
                    }
                    Ret::Locked
                }
            }
            Op::TryUpgrade if state.holds(participant_id) != Some(Share::Upgradable) => Ret::Unit,
            Op::TryUpgrade if state.free < self.rest() => Ret::Refused,
            Op::TryUpgrade => {
                next.free -= self.rest();
                next.hold(participant_id, Share::Write);
                Ret::Locked
            }
            Op::Downgrade => {
                self.downgrade(&mut next, participant_id, Share::Read);
                Ret::Unit
            }
            Op::DowngradeToUpgradable => {
                if state.holds(participant_id) == Some(Share::Write) {
                    self.downgrade(&mut next, participant_id, Share::Upgradable);
                }
                Ret::Unit
            }
            Op::Map => Ret::Unit,
            Op::Unlock => match next.let_go(participant_id) {
                Some(share) => {
                    let ret = match share {
                        Share::Write => {
                            next.count += 1;
                            Ret::Wrote(state.count)
                        }
                        _ => Ret::Read(state.count),
                    };
                    next.give_back(share.permits(self.all));
                    ret
                }
                None => Ret::Unit,
            },
            // A request that was granted at once was never in the queue. Here it cannot
            // be told from one that was granted in the queue.
            Op::Waiting | Op::Granted => {
                return (0..=state.waits.len())
                    .map(|n| (state.clone(), Ret::Number(n)))
                    .collect();
            }
        };
        let after = self.unwound(next);
        after.into_iter().map(|next| (next, ret.clone())).collect()
    }
}
