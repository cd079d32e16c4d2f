//! A guard that writes, or can become one that does, could store a value that lives too
//! short where one that lives longer is expected. A guard that only reads is covariant.
// error: lifetime
#[cfg(refused)]
use reveille::RwLockMappedWriteGuard as Guard;
#[cfg(not(refused))]
use reveille::RwLockReadGuard as Guard;

fn shorter<'a, 'b>(guard: Guard<'a, &'static str>, _: &'b str) -> Guard<'a, &'b str> {
    guard
}

fn main() {
    let _ = shorter;
}
