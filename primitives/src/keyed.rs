//! One computation for each key: what `OnceMap` and `singleflight::Group` stand on.
//!
//! An entry is a key with a once slot. A table finds entries by the hash of their key:
//!
//! ```text
//!   table, under one lock              entry, shared by its callers
//!   hash ──▶ entry, calls, kept ─────▶ key, once slot (value, permit, waiters)
//! ```
//!
//! Hashing a key and comparing two keys is foreign code, and never runs under the lock
//! (P4). A section of the table only compares hashes and addresses. So a lookup takes
//! the entries of a hash out, and compares their keys afterwards. An insertion is a
//! section that finds the same entries of that hash as the lookup before. If it finds
//! others, the lookup is repeated. It loses only to another insertion or removal of the
//! same hash.
//!
//! The permit of an entry passes from a caller that gives up to the next one, as in a
//! `OnceCell`, and the next one runs its own function.
//!
//! Invariants:
//!
//! 1. An entry in the table has a value that is kept, or a call that has joined it and not
//!    left it. The last call to leave an entry without a value removes it, so a key that
//!    was given up leaves nothing behind.
//! 2. Two entries of the table have keys that are not equal, and a call computes only on
//!    an entry that was in the table when it joined.
//! 3. The table alone tells whether a key has a value: its entry is there, and is marked as
//!    kept. The mark follows the value and precedes the return of each call that has it.
//!    The once slot of an entry that was removed may be set later, so what it holds is no
//!    sign that the key has a value.
//!
//! The table is not sharded: a section is a search among hashes, and computations run
//! outside of it.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::{Bits, CallerLocation, StateLock};
use crate::raw::{Init, Initialize, Made, OnceSlot, Permit, Queued};

/// The hasher of a map that does not name one. Without `std` there is none, and a map is
/// created with a hasher.
#[cfg(feature = "std")]
pub type DefaultHashBuilder = std::hash::RandomState;

/// The hasher of a map that does not name one. Without `std` there is none, and a map is
/// created with a hasher.
#[cfg(not(feature = "std"))]
pub type DefaultHashBuilder = ();

/// A key with its value, or with the computation of it.
pub(crate) struct Entry<K, V, B: Backend> {
    hash: u64,
    key: K,
    slot: OnceSlot<V, Queued<()>, B>,
}

impl<K, V, B: Backend> Initialize for Entry<K, V, B> {
    type Value = V;
    type Beside = ();
    type Backend = B;

    #[inline]
    fn slot(&self) -> &OnceSlot<V, Queued<()>, B> {
        &self.slot
    }
}

type Shared<K, V, B> = Arc<Entry<K, V, B>>;

/// An entry in the table.
struct Listed<E> {
    hash: u64,
    entry: Arc<E>,
    /// The number of calls that have joined it and not left it.
    calls: usize,
    /// Whether a call has left it with a value that is kept.
    kept: bool,
}

/// An entry, as a lookup has found it.
struct Found<E> {
    entry: Arc<E>,
    /// Whether its key had a value then.
    kept: bool,
}

impl<E> Found<E> {
    fn of(listed: &Listed<E>) -> Self {
        Self {
            entry: listed.entry.clone(),
            kept: listed.kept,
        }
    }
}

/// The entries of one hash, as a lookup has found them.
struct Candidates<E> {
    first: Option<Found<E>>,
    rest: Vec<Found<E>>,
}

impl<E> Candidates<E> {
    fn of(table: &Table<E>, hash: u64) -> Self {
        let mut all = table.of_hash(hash).map(Found::of);
        Self {
            first: all.next(),
            rest: all.collect(),
        }
    }

    /// Takes out the entry of a key, if it is one of them.
    fn take(&mut self, mut is_it: impl FnMut(&E) -> bool) -> Option<Found<E>> {
        if self.first.as_ref().is_some_and(|found| is_it(&found.entry)) {
            return self.first.take();
        }
        let place = self.rest.iter().position(|found| is_it(&found.entry))?;
        Some(self.rest.swap_remove(place))
    }

    /// Returns `true` if these are all entries of the hash.
    fn are_all_of(&self, table: &Table<E>, hash: u64) -> bool {
        let found = self.first.iter().chain(&self.rest);
        let listed = table.of_hash(hash);
        found
            .map(|found| Arc::as_ptr(&found.entry))
            .eq(listed.map(|listed| Arc::as_ptr(&listed.entry)))
    }
}

/// The table: a hash table of entries, whose keys it does not know.
///
/// An entry is at the place of its hash, or after it with no empty place in between. At
/// least a quarter of the places is empty, and at most seven eighths of many are.
struct Table<E> {
    /// A power of two of them, or none.
    places: Vec<Option<Listed<E>>>,
    len: usize,
}

/// The number of places of a table with few entries.
const PLACES: usize = 8;

impl<E> Table<E> {
    /// Returns the place of a hash. All bits of the hash count, also those of a hasher that
    /// returns small numbers.
    fn place(&self, hash: u64) -> usize {
        let spread = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (spread >> 32) as usize & (self.places.len() - 1)
    }

    /// Returns the index after another one.
    fn after(&self, index: usize) -> usize {
        (index + 1) & (self.places.len() - 1)
    }

    /// Returns the indices from the place of a hash to the next empty place.
    fn run(&self, hash: u64) -> impl Iterator<Item = usize> {
        let mut next = (!self.places.is_empty()).then(|| self.place(hash));
        core::iter::from_fn(move || {
            let index = next?;
            self.places[index].as_ref()?;
            next = Some(self.after(index));
            Some(index)
        })
    }

    fn of_hash(&self, hash: u64) -> impl Iterator<Item = &Listed<E>> {
        let run = self.run(hash);
        run.filter_map(move |index| self.places[index].as_ref().filter(|one| one.hash == hash))
    }

    fn index_of(&self, hash: u64, entry: &Arc<E>) -> Option<usize> {
        self.run(hash).find(|&index| {
            let listed = self.places[index].as_ref();
            listed.is_some_and(|listed| Arc::ptr_eq(&listed.entry, entry))
        })
    }

    fn find(&mut self, hash: u64, entry: &Arc<E>) -> Option<&mut Listed<E>> {
        let index = self.index_of(hash, entry)?;
        self.places[index].as_mut()
    }

    fn push(&mut self, listed: Listed<E>) {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            self.resize((self.places.len() * 2).max(PLACES));
        }
        self.put(listed);
        self.len += 1;
    }

    fn put(&mut self, listed: Listed<E>) {
        let mut index = self.place(listed.hash);
        while self.places[index].is_some() {
            index = self.after(index);
        }
        self.places[index] = Some(listed);
    }

    fn resize(&mut self, places: usize) {
        let empty = core::iter::repeat_with(|| None).take(places).collect();
        for listed in mem::replace(&mut self.places, empty).into_iter().flatten() {
            self.put(listed);
        }
    }

    /// Removes an entry. What it returns is dropped after the section.
    fn remove(&mut self, hash: u64, entry: &Arc<E>) -> Option<Listed<E>> {
        let mut hole = self.index_of(hash, entry)?;
        let removed = self.places[hole].take();
        let mask = self.places.len() - 1;
        let mut index = self.after(hole);
        // What follows moves into the hole, unless its own place is after the hole.
        while let Some(listed) = &self.places[index] {
            let from_its_place = index.wrapping_sub(self.place(listed.hash)) & mask;
            if from_its_place >= index.wrapping_sub(hole) & mask {
                self.places.swap(hole, index);
                hole = index;
            }
            index = self.after(index);
        }
        self.len -= 1;
        if self.places.len() > PLACES && self.len * 8 < self.places.len() {
            self.resize(self.places.len() / 2);
        }
        removed
    }
}

/// Entries by key. `OnceMap` and `Group` differ only in whether values are kept.
pub(crate) struct Keyed<K, V, S, B: Backend> {
    table: StateLock<Table<Entry<K, V, B>>, B>,
    hasher: S,
    keeps: bool,
}

impl<K, V, S, B: Backend> Keyed<K, V, S, B> {
    pub(crate) fn new_in(hasher: S, keeps: bool) -> Self {
        let table = Table {
            places: Vec::new(),
            len: 0,
        };
        Self {
            table: StateLock::new_in(Bits::EMPTY, table),
            hasher,
            keeps,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.table.look(|table| table.len)
    }

    fn candidates(&self, hash: u64) -> Candidates<Entry<K, V, B>> {
        self.table.look(|table| Candidates::of(table, hash))
    }

    /// Joins an entry, if it is still in the table.
    fn join(&self, entry: &Shared<K, V, B>) -> bool {
        self.table.unlisted(|_, table| {
            let listed = table.find(entry.hash, entry);
            listed.is_some_and(|listed| {
                listed.calls += 1;
                true
            })
        })
    }

    /// Adds an entry that one call has joined, if the entries of its hash are still those
    /// that were found.
    fn insert(&self, found: &Candidates<Entry<K, V, B>>, entry: &Shared<K, V, B>) -> bool {
        self.table.unlisted(|_, table| {
            let unchanged = found.are_all_of(table, entry.hash);
            if unchanged {
                table.push(Listed {
                    hash: entry.hash,
                    entry: entry.clone(),
                    calls: 1,
                    kept: false,
                });
            }
            unchanged
        })
    }

    /// Returns a call that has joined an entry.
    fn member(&self, entry: Shared<K, V, B>) -> Member<'_, K, V, S, B> {
        Member {
            keyed: self,
            entry,
            has_value: false,
            has_left: false,
        }
    }

    /// Takes an entry out of the table.
    fn unlist(&self, entry: &Shared<K, V, B>) -> Option<Listed<Entry<K, V, B>>> {
        self.table
            .unlisted(|_, table| table.remove(entry.hash, entry))
    }

    /// Leaves an entry. If no call has left it with a value, the last one removes it.
    fn leave(&self, entry: &Shared<K, V, B>, has_value: bool) {
        let removed = self.table.unlisted(|_, table| {
            let listed = table.find(entry.hash, entry)?;
            listed.calls -= 1;
            listed.kept |= has_value;
            let goes = listed.calls == 0 && !listed.kept;
            goes.then(|| table.remove(entry.hash, entry)).flatten()
        });
        drop(removed);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, B: Backend> Keyed<K, V, S, B> {
    fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Found<Entry<K, V, B>>>
    where
        K: Borrow<Q>,
    {
        let mut candidates = self.candidates(self.hasher.hash_one(key));
        candidates.take(|entry| entry.key.borrow() == key)
    }

    /// Returns a clone of the value of a key, if there is one.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        let found = self.find(key)?;
        found.kept.then(|| cloned(found.entry))
    }

    /// Removes the entry of a key. Returns `None` if there is none, and otherwise the entry
    /// if the key had a value when it was removed. Calls that have joined the entry go on
    /// with it.
    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Option<Shared<K, V, B>>>
    where
        K: Borrow<Q>,
    {
        let found = self.find(key)?;
        let listed = self.unlist(&found.entry)?;
        Some(listed.kept.then_some(listed.entry))
    }

    /// Finds the entry of a key, or adds one, and joins it. If the key has a value already,
    /// the entry is not joined.
    fn enter(&self, key: K) -> Entered<'_, K, V, S, B> {
        let hash = self.hasher.hash_one(&key);
        let mut key = Some(key);
        let mut fresh: Option<Shared<K, V, B>> = None;
        loop {
            let mut candidates = self.candidates(hash);
            let wanted = match &fresh {
                Some(entry) => &entry.key,
                None => key.as_ref().expect("the key is here, or in the entry"),
            };
            if let Some(found) = candidates.take(|entry| entry.key == *wanted) {
                if found.kept {
                    return Entered::Value(found.entry);
                }
                if self.join(&found.entry) {
                    return Entered::Member(self.member(found.entry));
                }
                continue;
            }
            let entry = fresh.get_or_insert_with(|| {
                let key = key.take().expect("it is moved once");
                let slot = OnceSlot::new_in(Queued::new(()));
                Arc::new(Entry { hash, key, slot })
            });
            if self.insert(&candidates, entry) {
                return Entered::Member(self.member(entry.clone()));
            }
        }
    }
}

enum Entered<'a, K, V, S, B: Backend> {
    Value(Shared<K, V, B>),
    Member(Member<'a, K, V, S, B>),
}

/// A call that has joined an entry. If it is dropped, it leaves.
struct Member<'a, K, V, S, B: Backend> {
    keyed: &'a Keyed<K, V, S, B>,
    entry: Shared<K, V, B>,
    /// Whether the call has seen the value.
    has_value: bool,
    /// Whether the entry is no longer in the table for certain.
    has_left: bool,
}

impl<K, V, S, B: Backend> Member<'_, K, V, S, B> {
    /// Sets the value, and returns a clone of it.
    ///
    /// If values are not kept, the entry leaves the table before that: a call that begins
    /// after another has returned the value computes anew.
    fn complete(mut self, value: V, mut permit: Permit<Shared<K, V, B>>) -> V
    where
        V: Clone,
    {
        if !self.keyed.keeps {
            drop(self.keyed.unlist(&self.entry));
            self.has_left = true;
        }
        self.has_value = true;
        let entry = permit.set(value);
        drop(self);
        cloned(entry)
    }
}

impl<K, V, S, B: Backend> Drop for Member<'_, K, V, S, B> {
    fn drop(&mut self) {
        if !self.has_left {
            self.keyed.leave(&self.entry, self.has_value);
        }
    }
}

/// Returns a clone of the value of an entry that has one.
pub(crate) fn cloned<K, V: Clone, B: Backend>(entry: Shared<K, V, B>) -> V {
    let value = entry.slot.get().cloned();
    // If this is the last reference, the entry is dropped here and not at the return. If
    // its destructor panicked there, the value being returned would leak.
    drop(entry);
    value.expect("the value is set")
}

/// What [`Compute`] and [`TryCompute`] have in common.
struct Call<'a, K, V, F, Fut, S, B: Backend> {
    keyed: &'a Keyed<K, V, S, B>,
    location: CallerLocation,
    stage: Stage<'a, K, V, F, Fut, S, B>,
}

enum Stage<'a, K, V, F, Fut, S, B: Backend> {
    Created(K, F),
    /// The permit passes on before the call leaves.
    Joined(Init<Shared<K, V, B>, F, Fut>, Member<'a, K, V, S, B>),
    Done,
}

/// What a call ends with: an entry with its value, or the output of its own function and
/// what sets it.
enum Ended<'a, K, V, O, S, B: Backend> {
    Value(Shared<K, V, B>),
    Output(O, Permit<Shared<K, V, B>>, Member<'a, K, V, S, B>),
}

impl<'a, K, V, F, Fut, S, B> Call<'a, K, V, F, Fut, S, B>
where
    K: Hash + Eq,
    S: BuildHasher,
    F: FnOnce() -> Fut,
    Fut: Future,
    B: Backend,
{
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Ended<'a, K, V, Fut::Output, S, B>> {
        if let Stage::Created(..) = self.stage
            && let Stage::Created(key, f) = mem::replace(&mut self.stage, Stage::Done)
        {
            let member = match self.keyed.enter(key) {
                Entered::Value(entry) => {
                    drop(f);
                    return Poll::Ready(Ended::Value(entry));
                }
                Entered::Member(member) => member,
            };
            let init = Init::new(member.entry.clone(), f, self.location);
            self.stage = Stage::Joined(init, member);
        }
        let Stage::Joined(init, _) = &mut self.stage else {
            panic!("{name} polled after it was ready");
        };
        let made = match init.poll(cx, name) {
            Poll::Ready(made) => made,
            Poll::Pending => return Poll::Pending,
        };
        let Stage::Joined(init, mut member) = mem::replace(&mut self.stage, Stage::Done) else {
            unreachable!("it has been polled as this");
        };
        drop(init);
        Poll::Ready(match made {
            Made::Value(entry) => {
                member.has_value = true;
                drop(member);
                Ended::Value(entry)
            }
            Made::Output(output, permit) => Ended::Output(output, permit, member),
        })
    }
}

/// The key and the function are never pinned here. The function is called, and the future
/// that it returns is pinned on the heap.
impl<K, V, F, Fut, S, B: Backend> Unpin for Call<'_, K, V, F, Fut, S, B> {}

impl<K, V, F, Fut, S, B: Backend> fmt::Debug for Call<'_, K, V, F, Fut, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Stage::Created(..) => f.write_str("Created"),
            Stage::Joined(init, _) => init.fmt(f),
            Stage::Done => f.write_str("Done"),
        }
    }
}

/// The future of [`OnceMap::get_or_init`](crate::OnceMap::get_or_init) and
/// [`Group::work`](crate::singleflight::Group::work).
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct Compute<'a, K, V, F, Fut, S = DefaultHashBuilder, B: Backend = DefaultBackend> {
    call: Call<'a, K, V, F, Fut, S, B>,
    name: &'static str,
}

impl<'a, K, V, F, Fut, S, B: Backend> Compute<'a, K, V, F, Fut, S, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(crate) const fn new(
        keyed: &'a Keyed<K, V, S, B>,
        key: K,
        f: F,
        name: &'static str,
    ) -> Self {
        let call = Call {
            keyed,
            location: CallerLocation::capture(),
            stage: Stage::Created(key, f),
        };
        Self { call, name }
    }
}

impl<K, V, F, Fut, S, B> Future for Compute<'_, K, V, F, Fut, S, B>
where
    K: Hash + Eq,
    V: Clone,
    S: BuildHasher,
    F: FnOnce() -> Fut,
    Fut: Future<Output = V>,
    B: Backend,
{
    type Output = V;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V> {
        let this = self.get_mut();
        this.call.poll(cx, this.name).map(|ended| match ended {
            Ended::Value(entry) => cloned(entry),
            Ended::Output(value, permit, member) => member.complete(value, permit),
        })
    }
}

/// The future of [`OnceMap::get_or_try_init`](crate::OnceMap::get_or_try_init) and
/// [`Group::try_work`](crate::singleflight::Group::try_work).
///
/// # Panics
///
/// Panics if it is polled again after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct TryCompute<'a, K, V, F, Fut, S = DefaultHashBuilder, B: Backend = DefaultBackend> {
    call: Call<'a, K, V, F, Fut, S, B>,
    name: &'static str,
}

impl<'a, K, V, F, Fut, S, B: Backend> TryCompute<'a, K, V, F, Fut, S, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(crate) const fn new(
        keyed: &'a Keyed<K, V, S, B>,
        key: K,
        f: F,
        name: &'static str,
    ) -> Self {
        let call = Call {
            keyed,
            location: CallerLocation::capture(),
            stage: Stage::Created(key, f),
        };
        Self { call, name }
    }
}

impl<K, V, E, F, Fut, S, B> Future for TryCompute<'_, K, V, F, Fut, S, B>
where
    K: Hash + Eq,
    V: Clone,
    S: BuildHasher,
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<V, E>>,
    B: Backend,
{
    type Output = Result<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, E>> {
        let this = self.get_mut();
        this.call.poll(cx, this.name).map(|ended| match ended {
            Ended::Value(entry) => Ok(cloned(entry)),
            Ended::Output(Ok(value), permit, member) => Ok(member.complete(value, permit)),
            Ended::Output(Err(error), permit, member) => {
                drop(permit);
                drop(member);
                Err(error)
            }
        })
    }
}

impl<K, V, F, Fut, S, B: Backend> fmt::Debug for Compute<'_, K, V, F, Fut, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compute")
            .field("stage", &self.call)
            .finish()
    }
}

impl<K, V, F, Fut, S, B: Backend> fmt::Debug for TryCompute<'_, K, V, F, Fut, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryCompute")
            .field("stage", &self.call)
            .finish()
    }
}

impl<K, V, S, B: Backend> fmt::Debug for Keyed<K, V, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
