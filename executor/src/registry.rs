//! The tasks of an executor, so that it can cancel those that are left when it ends.

#![forbid(unsafe_code)]

use reveille::backend::{Backend, Native};
use reveille::raw::Owned;

use crate::dump::TaskDump;
use crate::spike::KEPT;

/// The number of slots that a section of a dump reads.
pub(crate) const BATCH: usize = 64;

/// A slab. Keys are reused, so that nothing is allocated after warm-up. After a spike, the
/// slots behind the last that is taken are given back.
#[derive(Debug)]
pub(crate) struct Registry<B: Backend = Native> {
    slots: Vec<Slot<B>>,
    /// The first free slot, or the number of slots if there is none.
    free: u32,
    len: usize,
    /// The number of tasks that were removed since the slots were last looked at.
    removed: usize,
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
        self.removed += 1;
        if self.slots.capacity() > KEPT && self.len <= self.slots.capacity() / 4 {
            self.give_back();
        }
        match taken {
            Slot::Taken(task) => Some(task),
            Slot::Free { .. } => None,
        }
    }

    /// Gives back the free slots behind the last one that is taken. This looks at all slots,
    /// so it waits until no task is left, or an eighth as many have been removed as there
    /// are slots.
    #[cold]
    fn give_back(&mut self) {
        if self.len > 0 && self.removed < self.slots.len() / 8 {
            return;
        }
        self.removed = 0;
        while let Some(Slot::Free { .. }) = self.slots.last() {
            self.slots.pop();
        }
        // The lowest first, so that in time the last slots become free.
        self.free = u32::try_from(self.slots.len()).expect("keys have 32 bits");
        for (key, slot) in (0..self.free).zip(&mut self.slots).rev() {
            if let Slot::Free { next } = slot {
                *next = std::mem::replace(&mut self.free, key);
            }
        }
        self.slots.shrink_to(KEPT.max(2 * self.slots.len()));
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
            removed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reveille::raw::{RunResult, Runnable, Schedule, task};

    use super::*;
    use crate::task::describe;

    struct Nowhere;

    impl Schedule<Native> for Nowhere {
        fn schedule(&self, _: Runnable<Native>) {}
    }

    fn insert(registry: &mut Registry) -> u32 {
        let (runnable, held, _) = task(async {}, Nowhere, describe(()));
        registry.insert(held);
        match runnable.run() {
            RunResult::Completed(completion) => completion.key(),
            _ => panic!("the future is ready"),
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut registry = Registry::default();
        insert(&mut registry);
        insert(&mut registry);
        for key in [0, 1, 1, 0] {
            drop(registry.remove(key).expect("the slot is taken"));
            assert_eq!(insert(&mut registry), key);
        }
        assert_eq!(registry.slots.len(), 2);
        assert!(registry.remove(2).is_none());
    }

    /// Tasks of a spike end in an order that is not that of their keys. A few others go on.
    #[test]
    fn after_a_spike_slots_are_given_back_and_no_key_is_taken_twice() {
        const SPIKE: u32 = 8 * KEPT as u32;
        let mut registry = Registry::default();
        for last in [false, true] {
            let mut taken: BTreeSet<_> = (0..SPIKE).map(|_| insert(&mut registry)).collect();
            let spike = registry.slots.capacity();
            let stays = |key: u32| !last && key.is_multiple_of(1000) && key < SPIKE / 16;
            // 7 and the length, a power of two, have no common factor.
            for key in (0..SPIKE).map(|n| n * 7 % SPIKE).filter(|&key| !stays(key)) {
                assert!(registry.remove(key).is_some() && taken.remove(&key));
            }
            assert_eq!(registry.len(), taken.len());
            // As others come and go.
            for _ in 0..SPIKE / 8 {
                let key = insert(&mut registry);
                assert!(registry.remove(key).is_some());
            }
            assert!(registry.slots.capacity() < spike / 4);
            for _ in 0..2 * KEPT {
                assert!(taken.insert(insert(&mut registry)), "the key is taken");
            }
            for key in std::mem::take(&mut taken) {
                assert!(registry.remove(key).is_some());
            }
            assert_eq!(registry.len(), 0);
        }
        assert!(registry.slots.capacity() <= KEPT);
    }
}
