//! The tasks of an executor, so that it can cancel those that are left when it ends.

#![forbid(unsafe_code)]

use reveille::backend::{Backend, Native};
use reveille::raw::Owned;

use crate::dump::TaskDump;

/// The number of slots that a section of a dump reads.
pub(crate) const BATCH: usize = 64;

/// A slab. Keys are reused, so that nothing is allocated after warm-up.
#[derive(Debug)]
pub(crate) struct Registry<B: Backend = Native> {
    slots: Vec<Slot<B>>,
    /// The first free slot, or the number of slots if there is none.
    free: u32,
    len: usize,
}

#[derive(Debug)]
enum Slot<B: Backend> {
    Taken(Owned<B>),
    Free { next: u32 },
}

impl<B: Backend> Registry<B> {
    /// Adds a task, and gives it its key.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 - 1 tasks.
    pub(crate) fn insert(&mut self, task: Owned<B>) {
        let key = self.free;
        task.set_key(key);
        self.len += 1;
        match self.slots.get_mut(key as usize) {
            Some(slot) => {
                if let Slot::Free { next } = *slot {
                    self.free = next;
                }
                *slot = Slot::Taken(task);
            }
            None => {
                self.slots.push(Slot::Taken(task));
                let more = self.free.checked_add(1);
                self.free = more.expect("an executor has at most 2^32 - 1 tasks at a time");
            }
        }
    }

    /// Removes a task, which the caller has to drop.
    pub(crate) fn remove(&mut self, key: u32) -> Option<Owned<B>> {
        let slot = self.slots.get_mut(key as usize)?;
        if matches!(slot, Slot::Free { .. }) {
            return None;
        }
        let taken = std::mem::replace(slot, Slot::Free { next: self.free });
        self.free = key;
        self.len -= 1;
        match taken {
            Slot::Taken(task) => Some(task),
            Slot::Free { .. } => None,
        }
    }

    /// Returns the number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Describes the tasks of up to [`BATCH`] slots, from the slot `from` on. Returns the
    /// slot after them, if there are more.
    pub(crate) fn dump(&self, from: usize, into: &mut Vec<TaskDump>) -> Option<usize> {
        let to = self.slots.len().min(from + BATCH);
        let slots = self.slots.get(from..to).unwrap_or_default();
        into.extend(slots.iter().filter_map(|slot| match slot {
            Slot::Taken(task) => Some(TaskDump::of(task)),
            Slot::Free { .. } => None,
        }));
        (to < self.slots.len()).then_some(to)
    }

    /// Removes some task. It is called at the end, when no task is added any more.
    pub(crate) fn pop(&mut self) -> Option<Owned<B>> {
        loop {
            if let Slot::Taken(task) = self.slots.pop()? {
                self.len -= 1;
                return Some(task);
            }
        }
    }
}

impl<B: Backend> Default for Registry<B> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: 0,
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use reveille::raw::{Runnable, Schedule, task};

    use super::*;
    use crate::task::describe;

    struct Nowhere;

    impl Schedule<Native> for Nowhere {
        fn schedule(&self, _: Runnable<Native>) {}
    }

    #[test]
    fn slots_are_used_again() {
        let mut registry = Registry::default();
        let mut take_up = || {
            let (_, held, _) = task(async {}, Nowhere, describe(()));
            registry.insert(held);
        };
        take_up();
        take_up();
        for key in [0, 1, 1, 0] {
            drop(registry.remove(key).expect("the slot is taken"));
            let (_, held, _) = task(async {}, Nowhere, describe(()));
            registry.insert(held);
        }
        assert_eq!(registry.slots.len(), 2);
        assert!(registry.remove(2).is_none());
    }
}
