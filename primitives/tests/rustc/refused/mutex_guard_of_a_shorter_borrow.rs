//! Through a guard that writes, or may come to, a value that lives too short could be
//! put where one that lives longer is expected. A guard that only reads is covariant.
// error: lifetime
#[cfg(refused)]
use reveille::MappedMutexGuard as Guard;
#[cfg(not(refused))]
use reveille::RwLockReadGuard as Guard;

fn shorter<'a, 'b>(guard: Guard<'a, &'static str>, _: &'b str) -> Guard<'a, &'b str> {
    guard
}

fn main() {
    let _ = shorter;
}
