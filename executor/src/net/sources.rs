//! The sources that are registered, by the key under which the system tells of them.
//!
//! ```text
//!   free, generation g ──insert──▶ a source, key = index ‖ g ──remove──▶ free, generation g + 1
//! ```
//!
//! A key is an index and a generation. The generation tells a source from an earlier one
//! with the same index, of which an event may be under way.
//!
//! Invariants:
//!
//! 1. [`get`](Sources::get) returns a source only for the key that it was inserted with, as
//!    long as its index has not been used again as often as there are generations. After
//!    that, an event of a source that is gone reaches another. It is then a hint like any
//!    other (P7): the operation that follows it would block, and the readiness is cleared.
//! 2. No key is `usize::MAX`, which stands for the poller itself.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use reveille::backend::{Backend, DefaultBackend};
use reveille::protocol::{Bits, StateLock};

use super::readiness::Source;

/// The key of a source: an index, and a generation above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub usize);

/// The bits of a key that are the index.
const INDEX_BITS: u32 = usize::BITS / 2;
/// One more than the largest index.
const MAX_SOURCES: usize = (1 << INDEX_BITS) - 1;

impl Key {
    const fn index(self) -> usize {
        self.0 % (1 << INDEX_BITS)
    }

    const fn generation(self) -> usize {
        self.0 >> INDEX_BITS
    }
}

struct Entry<B: Backend> {
    generation: usize,
    source: Option<Arc<Source<B>>>,
}

struct Table<B: Backend> {
    entries: Vec<Entry<B>>,
    /// The indices that are free. The last is the next to be used.
    free: Vec<usize>,
}

/// The sources that are registered. See the [module](self).
///
/// # Examples
///
/// ```
/// use reveille_executor::net::readiness::Source;
/// use reveille_executor::net::sources::Sources;
/// use std::sync::Arc;
///
/// let sources: Sources = Sources::new_in(8);
/// let first = sources.insert(Arc::new(Source::new_in())).unwrap();
/// drop(sources.remove(first));
/// let second = sources.insert(Arc::new(Source::new_in())).unwrap();
/// assert!(sources.get(first).is_none() && sources.get(second).is_some());
/// ```
pub struct Sources<B: Backend = DefaultBackend> {
    table: StateLock<Table<B>, B>,
    generations: usize,
}

impl<B: Backend> Sources<B> {
    /// The largest number of generations.
    pub const MAX_GENERATIONS: usize = 1 << (usize::BITS - INDEX_BITS);

    /// Creates an empty table whose keys have so many generations.
    ///
    /// # Panics
    ///
    /// Panics if `generations` is zero or above [`MAX_GENERATIONS`](Self::MAX_GENERATIONS).
    #[track_caller]
    #[must_use]
    pub fn new_in(generations: usize) -> Self {
        assert!(
            (1..=Self::MAX_GENERATIONS).contains(&generations),
            "{generations} generations do not fit into a key"
        );
        let table = Table {
            entries: Vec::new(),
            free: Vec::new(),
        };
        Self {
            table: StateLock::new_in(Bits::EMPTY, table),
            generations,
        }
    }

    /// Adds a source and returns its key. Returns `None` if there are too many.
    #[must_use]
    pub fn insert(&self, source: Arc<Source<B>>) -> Option<Key> {
        let mut source = Some(source);
        self.table.with(|section| {
            let Table { entries, free } = section.state;
            let index = match free.pop() {
                Some(index) => index,
                None if entries.len() < MAX_SOURCES => {
                    entries.push(Entry {
                        generation: 0,
                        source: None,
                    });
                    entries.len() - 1
                }
                None => return None,
            };
            let entry = &mut entries[index];
            entry.source = source.take();
            Some(Key(index | entry.generation << INDEX_BITS))
        })
    }

    /// Returns the source of a key, if it is registered.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<Arc<Source<B>>> {
        self.table.with(|section| {
            let entry = section.state.entries.get(key.index())?;
            entry
                .source
                .clone()
                .filter(|_| entry.generation == key.generation())
        })
    }

    /// Removes a source, and returns it if it was registered.
    pub fn remove(&self, key: Key) -> Option<Arc<Source<B>>> {
        self.table.with(|section| {
            let Table { entries, free } = section.state;
            let entry = entries.get_mut(key.index())?;
            if entry.generation != key.generation() {
                return None;
            }
            let source = entry.source.take()?;
            entry.generation = (entry.generation + 1) % self.generations;
            free.push(key.index());
            Some(source)
        })
    }

    /// Returns the number of sources.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table
            .with(|section| section.state.entries.len() - section.state.free.len())
    }

    /// Returns `true` if there is no source.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<B: Backend> fmt::Debug for Sources<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("len", &self.len()).finish()
    }
}
