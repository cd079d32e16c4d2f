//! Which guards can be sent to another thread although what they protect must not be
//! shared.
//!
//! A guard that can be made into a shared one, or that gives a shared reference, may be
//! sent only if the value is `Sync`: another guard on the first thread may share it.
//! The value here is a `Cell`, which is `Send` and not `Sync`.

use std::cell::Cell;

type Value = Cell<u32>;

/// Returns whether a type is `Send`. The first method exists for a `Send` type only, and
/// a method of a value is preferred to one of a reference.
macro_rules! is_send {
    ($type:ty) => {{
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "it is used only for a type that cannot be sent")]
        trait Not {
            fn is_send(&self) -> bool {
                false
            }
        }
        impl<T: ?Sized> Not for &Probe<T> {}
        #[allow(dead_code, reason = "it is called only for a type that can be sent")]
        impl<T: ?Sized + Send> Probe<T> {
            fn is_send(&self) -> bool {
                true
            }
        }
        (&Probe::<$type>(std::marker::PhantomData)).is_send()
    }};
}

/// The guards, each with its subject, its name, and whether it can be sent.
pub(crate) fn guards() -> Vec<(&'static str, &'static str, bool)> {
    macro_rules! rows {
        ($($subject:literal $name:literal $type:ty),* $(,)?) => {
            vec![$(($subject, $name, is_send!($type))),*]
        };
    }
    rows![
        "tokio/rwlock" "RwLockReadGuard" tokio::sync::RwLockReadGuard<'_, Value>,
        "tokio/rwlock" "RwLockWriteGuard" tokio::sync::RwLockWriteGuard<'_, Value>,
        "tokio/rwlock" "RwLockMappedWriteGuard" tokio::sync::RwLockMappedWriteGuard<'_, Value>,
        "tokio/rwlock" "OwnedRwLockReadGuard" tokio::sync::OwnedRwLockReadGuard<Value>,
        "tokio/rwlock" "OwnedRwLockWriteGuard" tokio::sync::OwnedRwLockWriteGuard<Value>,
        "tokio/rwlock" "OwnedRwLockMappedWriteGuard"
            tokio::sync::OwnedRwLockMappedWriteGuard<(), Value>,
        "async-lock/rwlock" "RwLockReadGuard" async_lock::RwLockReadGuard<'_, Value>,
        "async-lock/rwlock" "RwLockUpgradableReadGuard"
            async_lock::RwLockUpgradableReadGuard<'_, Value>,
        "async-lock/rwlock" "RwLockWriteGuard" async_lock::RwLockWriteGuard<'_, Value>,
        "async-lock/rwlock" "RwLockUpgradableReadGuardArc"
            async_lock::RwLockUpgradableReadGuardArc<Value>,
        "async-lock/rwlock" "RwLockWriteGuardArc" async_lock::RwLockWriteGuardArc<Value>,
        "asyncband/rwlock" "RwLockReadGuard" asyncband::rwlock::RwLockReadGuard<'_, Value>,
        "asyncband/rwlock" "RwLockWriteGuard" asyncband::rwlock::RwLockWriteGuard<'_, Value>,
        "asyncband/rwlock" "MappedRwLockReadGuard"
            asyncband::rwlock::MappedRwLockReadGuard<'_, Value>,
        "asyncband/rwlock" "MappedRwLockWriteGuard"
            asyncband::rwlock::MappedRwLockWriteGuard<'_, Value>,
        "asyncband/rwlock" "OwnedRwLockWriteGuard"
            asyncband::rwlock::OwnedRwLockWriteGuard<Value>,
        "asyncband/rwlock" "OwnedMappedRwLockWriteGuard"
            asyncband::rwlock::OwnedMappedRwLockWriteGuard<(), Value>,
        "maitake-sync/rwlock" "RwLockReadGuard" maitake_sync::RwLockReadGuard<'_, Value>,
    ]
}
