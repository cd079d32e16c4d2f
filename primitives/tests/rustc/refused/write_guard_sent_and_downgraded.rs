//! A write guard can become a read guard. On the thread that it is sent to, the value
//! would be shared with readers elsewhere. The guard of a mutex stays the only one, and
//! may be sent.
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
