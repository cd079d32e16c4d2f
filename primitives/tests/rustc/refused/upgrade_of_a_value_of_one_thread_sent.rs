//! The future of an upgrade is ready with a write guard, wherever it is polled.
// error: E0277
use std::future::IntoFuture;
use std::sync::Mutex;
use std::thread;

use reveille::{RwLock, RwLockUpgradableReadGuard};

fn main() {
    let owner = Mutex::new(1);
    #[cfg(refused)]
    let value = owner.lock().unwrap();
    #[cfg(not(refused))]
    let value = owner.into_inner().unwrap();

    let lock = RwLock::new(value);
    let upgrade = RwLockUpgradableReadGuard::upgrade(lock.try_upgradable_read().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || drop(upgrade.into_future()));
    });
}
