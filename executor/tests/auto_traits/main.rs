//! The auto traits of every public type, for payloads with and without them.
//!
//! A rule beside each type derives its traits from what it lets its holder do. If tokio
//! has the type, ours must have every trait that tokio's has, so that code that compiles
//! with tokio compiles here.
//!
//! The test reads the sources for public types, and fails if one is missing here.

#![cfg(not(loom))]

mod probe;
mod rows;
mod sources;

use std::collections::BTreeSet;

use probe::{PAYLOADS, Traits};

/// One type, over each payload.
struct Row {
    /// The type as the table has it, with the modules that lead to it.
    name: &'static str,
    ours: [Traits; 6],
    /// Derives the traits of the type from those of the payload.
    rule: fn(Traits) -> Traits,
    /// The traits of tokio's type.
    tokio: Option<[Traits; 6]>,
}

impl Row {
    /// Returns the crate, the module under its root, and the name.
    fn key(&self) -> String {
        let path = self.name.split('<').next().unwrap_or(self.name);
        let path = path.replace(char::is_whitespace, "");
        let path = match path.split("::").next() {
            Some("reveille" | "reveille_executor") => path,
            Some("futures" | "hyper" | "local" | "net" | "pool" | "simulation" | "task") => {
                format!("reveille_executor::{path}")
            }
            _ => format!("reveille::{path}"),
        };
        let mut parts = path.split("::").collect::<Vec<_>>();
        // A type in a nested module is identified by the outer module.
        parts.drain(2.min(parts.len() - 1)..parts.len() - 1);
        parts.join("::")
    }
}

#[test]
fn each_type_has_the_auto_traits_that_its_holder_can_bear() {
    let mut wrong = Vec::new();
    for row in rows::all() {
        for ((payload, of_payload), ours) in PAYLOADS.into_iter().zip(row.ours) {
            let expected = (row.rule)(of_payload);
            if ours != expected {
                let name = row.name;
                wrong.push(format!(
                    "{name}, T is {payload}: is {ours:?}, expected {expected:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn what_tokios_type_has_ours_has() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for row in rows::all() {
        let Some(tokio) = row.tokio else { continue };
        compared += 1;
        for ((payload, _), (ours, tokio)) in
            PAYLOADS.into_iter().zip(row.ours.into_iter().zip(tokio))
        {
            for ((name, ours), (_, tokio)) in ours.named().into_iter().zip(tokio.named()) {
                if tokio && !ours {
                    wrong.push(format!("{}, T is {payload}: tokio's is {name}", row.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(compared > 40, "only {compared} types were compared");
}

#[test]
fn every_public_type_is_in_the_table() {
    let rows = rows::all();
    let tabled = rows.iter().map(Row::key).collect::<BTreeSet<_>>();
    let public = sources::public_types();
    let missing = public.difference(&tabled).collect::<Vec<_>>();
    assert!(
        missing.is_empty(),
        "they are missing from the table: {missing:#?}"
    );
    let unknown = tabled.difference(&public).collect::<Vec<_>>();
    assert!(
        unknown.is_empty(),
        "the sources do not have these types: {unknown:#?}"
    );
}

/// Code that compiles with tokio.
#[test]
fn a_panic_is_caught_beside_what_tokio_lets_be_shared() {
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use reveille_executor::Executor as _;

    let notify = reveille::Notify::new();
    let semaphore = Arc::new(reveille::Semaphore::new(2));
    let barrier = reveille::Barrier::new(1);
    let lock = reveille::RwLock::new(1);
    let task = reveille_executor::Threads.spawn(async { 7 });
    let abort = task.abort_handle();
    let (tx, rx) = reveille::mpsc::channel::<u8>(1);

    catch_unwind(|| notify.notify_one()).unwrap();
    let permit = catch_unwind(|| semaphore.try_acquire().unwrap()).unwrap();
    let owned = catch_unwind(|| semaphore.clone().try_acquire_owned().unwrap()).unwrap();
    catch_unwind(move || drop((permit, owned))).unwrap();
    catch_unwind(|| drop(barrier.wait())).unwrap();
    let reads = lock.try_read().unwrap();
    catch_unwind(move || assert_eq!(*reads, 1)).unwrap();
    let writes = lock.try_write().unwrap();
    catch_unwind(|| assert_eq!(*writes, 1)).unwrap();
    catch_unwind(|| abort.is_finished()).unwrap();
    catch_unwind(move || drop(task)).unwrap();
    catch_unwind(move || tx.try_send(1).unwrap()).unwrap();
    catch_unwind(|| rx.is_empty()).unwrap();
    catch_unwind(|| drop(reveille_executor::task::JoinSet::<u8>::new())).unwrap();
}

/// A guard that only reads is covariant in its value, as a `&T` is. A guard that writes,
/// or that may come to write, is not: see `reveille`'s `tests/rustc/refused`.
#[test]
fn borrowed_read_guards_are_covariant() {
    use reveille::{RwLock, RwLockReadGuard};

    fn longest<'a>(
        one: RwLockReadGuard<'a, &'a str>,
        other: RwLockReadGuard<'a, &'a str>,
    ) -> &'a str {
        if one.len() > other.len() {
            *one
        } else {
            *other
        }
    }
    let text = String::from("short");
    let (fixed, borrowed) = (RwLock::<&'static str>::new("longer"), RwLock::new(&*text));
    let longest = longest(fixed.try_read().unwrap(), borrowed.try_read().unwrap());
    assert_eq!(longest, "longer");
}
