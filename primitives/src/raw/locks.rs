//! The primitives that are a value under a lock, and in which modes each is held.
//!
//! It stands above guards and primitives, so that a guard knows a primitive by [`Lock`]
//! only.

use super::held::{Guarded, Lock};
use super::mode::{AllModes, OnlyExclusive};
use crate::backend::{Backend, SharedBackend};
use crate::mutex::Mutex;
use crate::rwlock::RwLock;

// SAFETY: `guarded` returns the only field.
unsafe impl<T: ?Sized, B: Backend> Lock for Mutex<T, B> {
    type Value = T;
    type Backend = B;
    type Modes = OnlyExclusive;

    #[inline]
    fn guarded(&self) -> &Guarded<T, B> {
        &self.guarded
    }
}

// SAFETY: `guarded` returns the only field. `Sync` is implemented below.
unsafe impl<T: ?Sized, B: Backend> Lock for RwLock<T, B> {
    type Value = T;
    type Backend = B;
    type Modes = AllModes;

    #[inline]
    fn guarded(&self) -> &Guarded<T, B> {
        &self.guarded
    }
}

// SAFETY: threads that share the mutex reach the value one at a time, since a mutex
// is held in exclusive mode only. The lock is `Sync`, by its parts.
unsafe impl<T: ?Sized + Send, B: SharedBackend> Sync for Mutex<T, B> {}
// SAFETY: threads that share the lock reach the value by `&mut` one at a time, or by
// `&` several at a time. The lock is `Sync`, by its parts.
unsafe impl<T: ?Sized + Send + Sync, B: SharedBackend> Sync for RwLock<T, B> {}
