//! A write guard can become a read guard: where it is sent to, the value is shared
//! with readers elsewhere. A mutex's guard stays alone, and goes.
// error: E0277
use std::cell::Cell;
use std::thread;

use reveille::{Mutex, RwLock};

fn main() {
    #[cfg(refused)]
    let lock = RwLock::new(Cell::new(1));
    #[cfg(not(refused))]
    let lock = RwLock::new(1);
    let mutex = Mutex::new(Cell::new(1));

    let writes = lock.try_write().unwrap();
    let alone = mutex.try_lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || alone.set(2));
        scope.spawn(move || drop(writes.downgrade()));
    });
}
