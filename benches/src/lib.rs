//! Reveille's primitives beside their best-known peers.
//!
//! What is measured stands once, in the table of [`contenders`], and is run in
//! two ways:
//!
//! - `cargo ratios` measures all of it in one process, in interleaved rounds,
//!   and prints ratios and allocations;
//! - `cargo bench --package reveille-benches` hands it to criterion, for one
//!   contender's time in depth and against an earlier run of its own.
//!
//! The contenders of a group run the same generic loop, with the same value and
//! the same waker; they differ only in the type that the loop is made for.
//!
//! To add a primitive: a module with its loops and a `contenders` function, a
//! line in [`contenders`] here, and a file in `benches/`.

mod executor;
mod lock;
mod mutex;
mod notify;
mod oneshot;
mod rwlock;
mod scene;
mod semaphore;
mod time;

/// One implementation's turn at one operation.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// The operation, as `primitive/operation`. All contenders of a group do
    /// the same work.
    pub group: &'static str,
    /// Whose implementation it is.
    pub name: &'static str,
    /// How it counts.
    pub kind: Kind,
    /// Does the operation the given number of times.
    pub run: fn(u64),
    /// Whether several threads take part. Its turns must then be long beside the
    /// time that the system lets one thread run before another.
    pub threads: bool,
}

impl Contender {
    const fn new(group: &'static str, kind: Kind, name: &'static str, run: fn(u64)) -> Self {
        Self {
            group,
            name,
            kind,
            run,
            threads: false,
        }
    }

    const fn on_threads(self) -> Self {
        Self {
            threads: true,
            ..self
        }
    }
}

/// How a contender counts in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of Reveille's.
    Reveille,
    /// Somebody else's, to be level with.
    Peer,
    /// A part of the work alone, as a measure of what the machine asks for it.
    /// It competes with nobody.
    Floor,
}

/// Every contender, those of a group one after another.
#[must_use]
pub fn contenders() -> Vec<Contender> {
    [
        oneshot::contenders(),
        lock::contenders(),
        mutex::contenders(),
        rwlock::contenders(),
        semaphore::contenders(),
        notify::contenders(),
        time::contenders(),
        executor::contenders(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loops assert what they measure.
    #[test]
    fn every_contender_does_its_work() {
        for contender in contenders() {
            (contender.run)(100);
        }
    }

    #[test]
    fn every_group_has_both_sides() {
        let all = contenders();
        for one in &all {
            for kind in [Kind::Reveille, Kind::Peer] {
                assert!(
                    all.iter()
                        .any(|other| other.group == one.group && other.kind == kind),
                    "{} has no {kind:?}",
                    one.group
                );
            }
        }
    }
}
