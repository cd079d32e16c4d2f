//! The tasks of an executor, so that it can cancel those that wait when it ends.

#![forbid(unsafe_code)]

use reveille::protocol::{Held, Native};

/// A slab: keys are used again, and nothing is allocated after warm-up.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    slots: Vec<Slot>,
    /// The first free slot; the number of slots where there is none.
    free: usize,
}

#[derive(Debug)]
enum Slot {
    Taken(Held<Native>),
    Free { next: usize },
}

impl Registry {
    /// Takes a task up, and gives it its key.
    pub(crate) fn insert(&mut self, task: Held<Native>) {
        let key = self.free;
        task.set_key(key);
        match self.slots.get_mut(key) {
            Some(slot) => {
                if let Slot::Free { next } = *slot {
                    self.free = next;
                }
                *slot = Slot::Taken(task);
            }
            None => {
                self.slots.push(Slot::Taken(task));
                self.free = self.slots.len();
            }
        }
    }

    /// Lets a task go, for the caller to drop.
    pub(crate) fn remove(&mut self, key: usize) -> Option<Held<Native>> {
        let slot = self.slots.get_mut(key)?;
        if matches!(slot, Slot::Free { .. }) {
            return None;
        }
        let taken = std::mem::replace(slot, Slot::Free { next: self.free });
        self.free = key;
        match taken {
            Slot::Taken(task) => Some(task),
            Slot::Free { .. } => None,
        }
    }

    /// Lets all tasks go, in the order of their keys.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Held<Native>> + use<> {
        self.free = 0;
        std::mem::take(&mut self.slots)
            .into_iter()
            .filter_map(|slot| match slot {
                Slot::Taken(task) => Some(task),
                Slot::Free { .. } => None,
            })
    }
}
