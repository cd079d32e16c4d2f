//! A map and a group of one key, with a fault that can be chosen.
//!
//! They are written in the plain way, on `OnceCell`, which is correct, so that each fault is
//! a line. With [`Fault::None`] they are correct.

use std::marker::PhantomData;
use std::mem::forget;
use std::sync::Arc;

use reveille::OnceCell;
use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::asymmetric;
use crate::subject::role::Role;
use crate::subject::spec::{Call, ValueId};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::once_cell::Work;
use crate::subjects::once_map::{self as real, KeyedSpec, Op, Ret};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    let mut all =
        SpecimenEntry::all_of("once-map", 3, MAPS, |fault| Specimen { keeps: true, fault });
    all.extend(SpecimenEntry::all_of("singleflight", 3, GROUPS, |fault| {
        Specimen {
            keeps: false,
            fault,
        }
    }));
    all
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A caller that is dropped after its computation was woken, and before it was polled
    /// again, keeps the permit: no other call takes over.
    TakeoverLost,
    /// A call that fails leaves its key behind.
    KeyLeftBehind,
    /// The key is removed by the first call that fails, also if others wait for it.
    RemovedUnderWaiters,
    /// A lookup and the insertion after it are two sections, and the second does not look
    /// again.
    InsertedTwice,
    /// A lookup finds the entry in one section, and reads the value in another. The entry
    /// can be removed in between, and its value set after that.
    StaleLookup,
    /// A group keeps its values.
    ValueKept,
    /// The key of a group leaves with the call that has computed, after the value is set. A
    /// call that begins after another has returned the value gets the same one.
    ForgottenLast,
}

/// Each with its name and the class in which it must be caught. It is `None` for a
/// specimen that must pass.
const MAPS: [(&str, Fault, Option<Class>); 6] = [
    ("plain", Fault::None, None),
    (
        "takeover-lost",
        Fault::TakeoverLost,
        Some(Class::CancellationRace),
    ),
    (
        "key-left-behind",
        Fault::KeyLeftBehind,
        Some(Class::WrongResult),
    ),
    (
        "removed-under-waiters",
        Fault::RemovedUnderWaiters,
        Some(Class::WrongResult),
    ),
    (
        "inserted-twice",
        Fault::InsertedTwice,
        Some(Class::WrongResult),
    ),
    ("stale-lookup", Fault::StaleLookup, Some(Class::WrongResult)),
];

/// As for [`MAPS`].
const GROUPS: [(&str, Fault, Option<Class>); 5] = [
    ("plain", Fault::None, None),
    (
        "takeover-lost",
        Fault::TakeoverLost,
        Some(Class::CancellationRace),
    ),
    (
        "key-left-behind",
        Fault::KeyLeftBehind,
        Some(Class::WrongResult),
    ),
    ("value-kept", Fault::ValueKept, Some(Class::WrongResult)),
    (
        "forgotten-last",
        Fault::ForgottenLast,
        Some(Class::WrongResult),
    ),
];

/// The specimen over every backend.
#[derive(Clone, Copy)]
pub(crate) struct Specimen {
    keeps: bool,
    fault: Fault,
}

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            specimen: *self,
            backend: PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    specimen: Specimen,
    backend: PhantomData<fn() -> B>,
}

type Cell<B> = Arc<OnceCell<Arc<Value>, B>>;

/// What the participants share.
pub(crate) struct Map<B: BlockingBackend> {
    specimen: Specimen,
    /// The entry of the key, and the number of calls that have joined it.
    entry: StateLock<Option<(Cell<B>, usize, bool)>, B>,
}

impl<B: BlockingBackend> Map<B> {
    fn is(&self, fault: Fault) -> bool {
        self.specimen.fault == fault
    }

    /// Joins the entry, or adds one.
    fn join(&self) -> Cell<B> {
        let fresh = Arc::new(OnceCell::new_in());
        let there = self.entry.with(|section| section.state.is_some());
        let (joined, unused) = self.entry.with(|section| {
            let replaces = self.is(Fault::InsertedTwice) && !there;
            match section.state {
                Some((cell, calls, _)) if !replaces => {
                    *calls += 1;
                    (cell.clone(), None)
                }
                entry => {
                    let unused = entry.replace((fresh.clone(), 1, false));
                    (fresh.clone(), unused)
                }
            }
        });
        drop(unused);
        joined
    }

    fn leave(&self, joined: &Joined<'_, B>) {
        let &Joined {
            ref cell,
            has_value,
            failed,
            computed,
            ..
        } = joined;
        let removed = self.entry.with(|section| {
            let entry = section.state;
            let (listed, calls, kept) = entry.as_mut()?;
            if !Arc::ptr_eq(listed, cell) {
                return None;
            }
            *calls -= 1;
            *kept |= has_value && (self.specimen.keeps || self.is(Fault::ValueKept));
            let goes = match self.specimen.fault {
                Fault::KeyLeftBehind => false,
                Fault::RemovedUnderWaiters => failed || (*calls == 0 && !*kept),
                Fault::ForgottenLast => *calls == 0 || computed,
                Fault::ValueKept => *calls == 0 && !*kept,
                _ => (*calls == 0 && !*kept) || (has_value && !self.specimen.keeps),
            };
            if goes { entry.take() } else { None }
        });
        drop(removed);
    }

    /// Removes the entry, and returns the value that it has then.
    fn remove(&self) -> Ret {
        let entry = self.entry.with(|section| section.state.take());
        match self.specimen.keeps {
            true => Ret::Value(entry.and_then(value_of)),
            false => Ret::Was(entry.is_some()),
        }
    }

    fn get(&self) -> Ret {
        let entry = self.entry.with(|section| section.state.clone());
        Ret::Value(match self.specimen.fault {
            Fault::StaleLookup => entry.and_then(|(cell, ..)| id_of(&cell)),
            _ => entry.and_then(value_of),
        })
    }
}

/// Returns the value of an entry that is marked as having one.
fn value_of<B: BlockingBackend>((cell, _, kept): (Cell<B>, usize, bool)) -> Option<ValueId> {
    if kept { id_of(&cell) } else { None }
}

fn id_of<B: BlockingBackend>(cell: &Cell<B>) -> Option<ValueId> {
    cell.get().map(|value| value.id())
}

/// A call that has joined. If it is dropped, it leaves.
struct Joined<'a, B: BlockingBackend> {
    map: &'a Map<B>,
    cell: Cell<B>,
    has_value: bool,
    failed: bool,
    computed: bool,
}

impl<B: BlockingBackend> Drop for Joined<'_, B> {
    fn drop(&mut self) {
        self.map.leave(self);
    }
}

/// Keeps the permit of a cell if it is dropped while it is armed.
struct Keeps<B: BlockingBackend>(Option<Cell<B>>);

impl<B: BlockingBackend> Drop for Keeps<B> {
    fn drop(&mut self) {
        // A call that is leaked keeps the permit.
        if let Some(cell) = self.0.take() {
            let mut stuck = cell.get_or_init(std::future::pending::<Arc<Value>>);
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = std::pin::Pin::new(&mut stuck).poll(&mut cx);
            forget(stuck);
        }
    }
}

impl<B: BlockingBackend> Map<B> {
    async fn compute(&self, value: Option<Value>) -> Ret {
        let cell = self.join();
        let mut joined = Joined {
            map: self,
            cell: cell.clone(),
            has_value: false,
            failed: false,
            computed: false,
        };
        let lost = self.is(Fault::TakeoverLost).then(|| cell.clone());
        let made = cell.get_or_try_init(|| async {
            let mut keeps = Keeps(lost);
            Work::default().await;
            keeps.0 = None;
            joined.computed = true;
            let value = value.map(Arc::new).ok_or(());
            // From here on it has the value, also if a waker panics when that is set.
            joined.has_value = value.is_ok();
            let forgets = !self.specimen.keeps
                && !self.is(Fault::ValueKept)
                && !self.is(Fault::ForgottenLast);
            if value.is_ok() && forgets {
                drop(self.entry.with(|section| match section.state {
                    Some((listed, ..)) if Arc::ptr_eq(listed, &cell) => section.state.take(),
                    _ => None,
                }));
            }
            value
        });
        match made.await {
            Ok(value) => {
                joined.has_value = true;
                Ret::Value(Some(value.id()))
            }
            Err(()) => {
                joined.failed = true;
                Ret::Failed
            }
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = KeyedSpec;
    type Actor = Arc<Map<B>>;

    fn spec(&self) -> KeyedSpec {
        KeyedSpec {
            keeps: self.specimen.keeps,
        }
    }

    /// Returns two roles: the first computes in every polling mode, or fails; the second
    /// computes or looks, up to twice. A map has a third, which removes.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = || real::role(self.specimen.keeps, false);
        let mut roles = vec![
            asymmetric(role(), 0, |op| {
                matches!(op, Op::Compute | Op::FailToCompute)
            }),
            asymmetric(role(), 1, |op| {
                matches!(op, Op::Compute | Op::Len | Op::Get)
            }),
        ];
        if self.specimen.keeps {
            roles.push(asymmetric(role(), 2, |op| *op == Op::Remove));
        }
        roles
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], _: Step) -> bool {
        before.len() < if role.symmetry == 1 { 2 } else { 1 }
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Map<B>>> {
        let map = Arc::new(Map {
            specimen: self.specimen,
            entry: StateLock::new_in(Bits::EMPTY, None),
        });
        vec![map; participants]
    }

    fn start<'a>(
        &self,
        map: &'a mut Arc<Map<B>>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Compute | Op::ComputeOther | Op::TryCompute => {
                return Started::future(map.compute(Some(value())));
            }
            Op::FailToCompute => return Started::future(map.compute(None)),
            Op::Remove => map.remove(),
            Op::Get => map.get(),
            Op::Len => Ret::Count(
                map.entry
                    .with(|section| usize::from(section.state.is_some())),
            ),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
