//! `reveille::OnceMap` and `reveille::singleflight::Group`, with every public operation.
//!
//! Each call computes its own value, so the value tells which call computed it. There are
//! two keys, whose hashes are the same in one subject: then each lookup compares keys.

use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use reveille::OnceMap;
use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::singleflight::Group;

use crate::run::entry::{
    Absent::{Creates, SameAs},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec, ValueId};
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::once_cell::Work;
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry::new(
            "once-map",
            "reveille::OnceMap: one computation for each key, whose value is kept",
            Keyed {
                keeps: true,
                collide: false,
            },
            Surface::Sources(&[Source {
                path: "once_map.rs",
                absent: &[
                    ("is_empty", SameAs("len")),
                    ("new", Creates),
                    ("with_hasher", Creates),
                    ("with_hasher_in", Creates),
                ],
            }]),
        ),
        SubjectEntry::new(
            "once-map-collisions",
            "reveille::OnceMap with two keys of the same hash",
            Keyed {
                keeps: true,
                collide: true,
            },
            Surface::As("once-map"),
        ),
        SubjectEntry::new(
            "singleflight",
            "reveille::singleflight::Group: one computation for each key while it runs",
            Keyed {
                keeps: false,
                collide: false,
            },
            Surface::Sources(&[Source {
                path: "singleflight.rs",
                absent: &[
                    ("is_empty", SameAs("len")),
                    ("new", Creates),
                    ("with_hasher", Creates),
                    ("with_hasher_in", Creates),
                ],
            }]),
        ),
    ]
}

/// A map or a group, over every backend.
#[derive(Clone, Copy)]
pub(crate) struct Keyed {
    /// Whether it is a map.
    keeps: bool,
    /// Whether all keys have the same hash.
    collide: bool,
}

impl GenericSubject for Keyed {
    type On<B: BlockingBackend> = KeyedOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        KeyedOn {
            keyed: *self,
            backend: PhantomData,
        }
    }

    /// Each call has several sections, so that most bounds have too many orders for the
    /// quick profile. loom does not apply: entries are shared by an `Arc` of the standard
    /// library, whose counts it does not see, so it would report each last drop of a value
    /// as a race.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        match (mode, profile) {
            (Mode::Sections | Mode::Accesses, _) => return Vec::new(),
            (Mode::Exhaustive, Profile::Quick) => {
                plans.truncate(1);
                let three = plans[0];
                plans[0].bound.operations = 1;
                plans[0].bound.total = 2;
                plans[0].bound.non_default = 2;
                // A group has three times the orders of a map.
                if self.keeps {
                    plans.push(three);
                    plans[1].bound.non_default = 0;
                    plans[1].bound.panics = false;
                }
            }
            _ => {}
        }
        plans
    }
}

pub(crate) struct KeyedOn<B> {
    keyed: Keyed,
    backend: PhantomData<fn() -> B>,
}

/// An operation. A computation is polled twice before it has its value, so it can be
/// dropped halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `get_or_init`, or `work`.
    Compute,
    /// The same, for the other key.
    ComputeOther,
    /// `get_or_try_init`, or `try_work`, with a function that succeeds.
    TryCompute,
    /// The same, with one that fails.
    FailToCompute,
    /// `remove`, or `forget`.
    Remove,
    Get,
    Len,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ret {
    /// The value, by the call that computed it, if there is one.
    Value(Option<ValueId>),
    /// The function failed.
    Failed,
    /// Whether there was a key.
    Was(bool),
    /// A number of keys.
    Count(usize),
}

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role(keeps: bool, collide: bool) -> Role<Op> {
    let name = |map, group| if keeps { map } else { group };
    let mut ops = vec![
        Operation::future(name("get_or_init", "work"), Op::Compute),
        Operation::immediate(name("remove", "forget"), Op::Remove),
        Operation::immediate("len", Op::Len),
        Operation::future(name("fail_to_init", "fail_to_work"), Op::FailToCompute).alias(),
        Operation::future(name("get_or_try_init", "try_work"), Op::TryCompute).alias(),
    ];
    if keeps {
        ops.push(Operation::immediate("get", Op::Get));
    }
    if collide {
        ops.push(Operation::future("get_or_init_other", Op::ComputeOther).alias());
    }
    Role {
        name: "task",
        symmetry: 0,
        ops,
    }
}

/// Hashes a key of 0 or 1 to itself, or to 0.
#[derive(Clone, Copy)]
pub(crate) struct Hash {
    collide: bool,
    hash: u64,
}

impl BuildHasher for Hash {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Hash {
    fn write(&mut self, bytes: &[u8]) {
        if !self.collide {
            self.hash = u64::from(bytes[0]);
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

/// A map or a group.
pub(crate) enum Real<B: BlockingBackend> {
    Map(OnceMap<u8, Arc<Value>, Hash, B>),
    Group(Group<u8, Arc<Value>, Hash, B>),
}

const KEY: u8 = 0;
const OTHER: u8 = 1;

impl<B: BlockingBackend> Real<B> {
    async fn compute(&self, key: u8, value: Value) -> Ret {
        let compute = || async {
            Work::default().await;
            Arc::new(value)
        };
        let value = match self {
            Self::Map(map) => map.get_or_init(key, compute).await,
            Self::Group(group) => group.work(key, compute).await,
        };
        Ret::Value(Some(value.id()))
    }

    async fn try_compute(&self, value: Option<Value>) -> Ret {
        let compute = || async {
            Work::default().await;
            value.map(Arc::new).ok_or(())
        };
        let value = match self {
            Self::Map(map) => map.get_or_try_init(KEY, compute).await,
            Self::Group(group) => group.try_work(KEY, compute).await,
        };
        value.map_or(Ret::Failed, |value| Ret::Value(Some(value.id())))
    }
}

impl<B: BlockingBackend> Subject for KeyedOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = KeyedSpec;
    type Actor = Arc<Real<B>>;

    fn spec(&self) -> KeyedSpec {
        KeyedSpec {
            keeps: self.keyed.keeps,
        }
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(self.keyed.keeps, self.keyed.collide); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let hash = Hash {
            collide: self.keyed.collide,
            hash: 0,
        };
        let real = Arc::new(match self.keyed.keeps {
            true => Real::Map(OnceMap::with_hasher_in(hash)),
            false => Real::Group(Group::with_hasher_in(hash)),
        });
        vec![real; participants]
    }

    fn start<'a>(
        &self,
        real: &'a mut Self::Actor,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        let id = |value: Option<Arc<Value>>| Ret::Value(value.map(|value| value.id()));
        Started::Done(match (call.op, &**real) {
            (Op::Compute, real) => return Started::future(real.compute(KEY, value())),
            (Op::ComputeOther, real) => return Started::future(real.compute(OTHER, value())),
            (Op::TryCompute, real) => return Started::future(real.try_compute(Some(value()))),
            (Op::FailToCompute, real) => return Started::future(real.try_compute(None)),
            (Op::Remove, Real::Map(map)) => id(map.remove(&KEY)),
            (Op::Remove, Real::Group(group)) => Ret::Was(group.forget(&KEY)),
            (Op::Get, Real::Map(map)) => id(map.get(&KEY)),
            (Op::Get | Op::Len, Real::Group(group)) => Ret::Count(group.len()),
            (Op::Len, Real::Map(map)) => Ret::Count(map.len()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        match bits.get() {
            0 => "empty, or the table",
            1 => "set",
            2 => "busy",
            _ => "set, busy",
        }
        .to_owned()
    }
}

/// What the operations of a map or a group mean, one at a time.
///
/// A call joins the *flight* of its key when it begins, or begins one. One call of a flight
/// computes. If it fails or is dropped, another one does. Which one is a matter of the once
/// slot, in the order in which the calls reach it after they have joined. The value may be there,
/// and the flight may be over, at any time before the calls return.
pub(crate) struct KeyedSpec {
    pub(crate) keeps: bool,
}

/// The computation of a key, with its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    key: u8,
    /// Whether it is the one that a later call joins.
    listed: bool,
    value: Option<ValueId>,
    /// The participants that have joined it and have not returned, in the order in which
    /// they have reached the slot. The first one computes, if there is no value.
    calls: Vec<usize>,
}

/// The flights, in the order in which they began.
pub(crate) type State = Vec<Flight>;

impl KeyedSpec {
    /// Removes a call from its flight, and the flight if it is over.
    fn leave(&self, state: &mut State, participant_id: usize) {
        for flight in state.iter_mut() {
            if flight.calls.contains(&participant_id) {
                flight.calls.retain(|&one| one != participant_id);
                let over = flight.calls.is_empty() && flight.value.is_none();
                flight.listed &= !over && (self.keeps || flight.value.is_none());
            }
        }
        state.retain(|flight| flight.listed || !flight.calls.is_empty());
    }
}

fn key(op: &Op) -> u8 {
    match op {
        Op::ComputeOther => OTHER,
        _ => KEY,
    }
}

impl Spec for KeyedSpec {
    type Op = Op;
    type Ret = Ret;
    type State = State;

    fn initial(&self) -> State {
        State::new()
    }

    fn begins(&self, op: &Op) -> bool {
        !matches!(op, Op::Remove | Op::Get | Op::Len)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let key = key(call.op);
        match next.iter().find(|one| one.listed && one.key == key) {
            Some(_) => {}
            None => next.push(Flight {
                key,
                listed: true,
                value: None,
                calls: Vec::new(),
            }),
        }
        let flight = next.iter().position(|one| one.listed && one.key == key);
        let flight = flight.expect("there is one now");
        (0..=next[flight].calls.len())
            .map(|place| {
                let mut next = next.clone();
                next[flight].calls.insert(place, call.participant);
                next
            })
            .collect()
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        self.leave(&mut next, call.participant);
        vec![next]
    }

    fn unwind(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = self.cancel(state, call);
        // It sets the value before it returns, and a waker that it wakes may panic.
        if *call.op != Op::FailToCompute {
            next.extend(self.effects(state, call));
        }
        next
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Ret)> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let listed = state.iter().find(|one| one.listed && one.key == KEY);
        let ret = match call.op {
            Op::Remove => {
                let value = listed.and_then(|flight| flight.value);
                let was = listed.is_some();
                for flight in &mut next {
                    flight.listed &= flight.key != KEY;
                }
                next.retain(|flight| flight.listed || !flight.calls.is_empty());
                match self.keeps {
                    true => Ret::Value(value),
                    false => Ret::Was(was),
                }
            }
            Op::Get => Ret::Value(listed.and_then(|flight| flight.value)),
            Op::Len => Ret::Count(state.iter().filter(|flight| flight.listed).count()),
            op => {
                let flight = next
                    .iter_mut()
                    .find(|one| one.calls.contains(&participant_id));
                let Some(flight) = flight else {
                    return Vec::new();
                };
                let computes = flight.calls.first() == Some(&participant_id);
                let ret = match (flight.value, op) {
                    (Some(value), _) => Ret::Value(Some(value)),
                    (None, _) if !computes => return Vec::new(),
                    (None, Op::FailToCompute) => Ret::Failed,
                    (None, _) => {
                        flight.value = Some(call.value());
                        Ret::Value(flight.value)
                    }
                };
                self.leave(&mut next, participant_id);
                ret
            }
        };
        vec![(next, ret)]
    }
}
