//! The drivers of timers, as the section sees them: a slot for each.
//!
//! ```text
//!   free ──add──▶ away ──register──▶ parked, until a tick
//!    ▲             │ ▲                     │
//!    └───remove────┘ └──earlier deadline───┘
//! ```
//!
//! Invariants:
//!
//! 1. No deadline comes before the tick until which a driver is parked. At that tick it
//!    wakes by itself. So several drivers can share timers: each knows of every deadline.
//! 2. If timers can have a thread, a sleep waits and there is no driver, then they have
//!    the thread. So no sleep is left behind by an executor that has ended.

#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::protocol::{Registered, Registration, WakeList, WakerSlot};

/// The drivers of timers, under their lock.
pub(super) struct Drivers {
    /// A slot for each driver. It is empty after the driver was dropped.
    slots: Vec<Option<Slot>>,
    /// The latest tick until which a driver is parked. Later deadlines concern no
    /// driver. Zero if none is parked, and the end of time if a thread is to be started.
    until: u64,
    /// A thread has to drive if there is no driver, and has not been started.
    unstarted: bool,
}

struct Slot {
    waker: WakerSlot,
    /// The tick at which the driver wakes by itself, if its waker is registered.
    until: u64,
}

impl Drivers {
    pub(super) fn new(unstarted: bool) -> Self {
        let mut drivers = Self {
            slots: Vec::new(),
            until: 0,
            unstarted,
        };
        drivers.update_until();
        drivers
    }

    fn update_until(&mut self) {
        let parked = |slot: &&Slot| slot.waker.is_registered();
        let slots = self.slots.iter().flatten();
        self.until = match self.unstarted && slots.clone().next().is_none() {
            true => u64::MAX,
            false => slots
                .filter(parked)
                .map(|slot| slot.until)
                .max()
                .unwrap_or(0),
        };
    }

    /// Adds a driver and returns its slot.
    pub(super) fn add(&mut self) -> usize {
        let index = match self.slots.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.slots[index] = Some(Slot {
            waker: WakerSlot::new(),
            until: 0,
        });
        self.update_until();
        index
    }

    /// Removes a driver.
    pub(super) fn remove(&mut self, slot: usize, wakes: &mut WakeList) {
        if let Some(slot) = &mut self.slots[slot] {
            wakes.discard(&mut slot.waker);
        }
        self.slots[slot] = None;
        self.update_until();
    }

    /// Removes the slot of a thread that could not be started.
    pub(super) fn remove_unstarted(&mut self, slot: usize, wakes: &mut WakeList) {
        self.unstarted = true;
        self.remove(slot, wakes);
    }

    /// Registers the waker of a driver that parks until a tick.
    pub(super) fn register(
        &mut self,
        slot: usize,
        until: u64,
        registration: Registration<'_>,
    ) -> Registered {
        let slot = self.slots[slot].as_mut();
        let slot = slot.expect("a driver has its slot until it is dropped");
        slot.until = until;
        let registered = registration.register(&mut slot.waker);
        self.update_until();
        registered
    }

    /// Wakes the drivers that are parked until later than `deadline`. Returns whether
    /// `Timers::notify_drivers` has to complete this.
    #[must_use]
    #[inline]
    pub(super) fn notify(&mut self, deadline: u64, wakes: &mut WakeList) -> bool {
        deadline < self.until && self.notify_parked(deadline, wakes)
    }

    fn notify_parked(&mut self, deadline: u64, wakes: &mut WakeList) -> bool {
        let mut more = false;
        let mut drivers = 0;
        for slot in self.slots.iter_mut().flatten() {
            drivers += 1;
            if deadline < slot.until {
                match wakes.is_full() {
                    true => more |= slot.waker.is_registered(),
                    false => wakes.wake(&mut slot.waker),
                }
            }
        }
        self.update_until();
        more || self.unstarted && drivers == 0
    }

    /// Returns the slot of the thread, if it has to be started now.
    pub(super) fn add_thread(&mut self) -> Option<usize> {
        let starts = self.unstarted && self.slots.iter().all(Option::is_none);
        self.unstarted &= !starts;
        starts.then(|| self.add())
    }

    /// Takes the wakers of all drivers out, at the end. Returns whether more are left.
    pub(super) fn wake_all(&mut self, wakes: &mut WakeList) -> bool {
        for slot in self.slots.iter_mut().flatten() {
            if wakes.is_full() {
                return true;
            }
            wakes.wake(&mut slot.waker);
        }
        false
    }
}
