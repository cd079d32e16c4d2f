//! An upgradable guard can become a write guard. On the thread that it is sent to, the
//! value could be taken out, and a guard of the standard library's mutex be dropped.
// error: E0277
use std::sync::Mutex;
use std::thread;

use reveille::{RwLock, RwLockUpgradableReadGuard};

fn main() {
    let owner = Mutex::new(1);
    #[cfg(refused)]
    let value = owner.lock().unwrap();
    #[cfg(not(refused))]
    let value = owner.into_inner().unwrap();

    let lock = RwLock::new(Some(value));
    let looks = lock.try_upgradable_read().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || drop(RwLockUpgradableReadGuard::try_upgrade(looks).unwrap().take()));
    });
}
