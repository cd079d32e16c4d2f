//! The primitives of `reveille` beside their best-known peers.
//!
//! The table of [`contenders`] lists what is measured. It is run in two ways:
//!
//! - `cargo ratios` measures all of it in one process, in interleaved rounds, and prints
//!   ratios and allocations.
//! - `cargo bench --package reveille-benches` gives it to criterion, which shows the time
//!   of one contender in depth, and compares it with an earlier run.
//!
//! The contenders of a group run the same generic loop, with the same value and the same
//! waker. They differ only in the type that the loop is instantiated with.
//!
//! To add a primitive, add a module with its loops and a `contenders` function, a line in
//! [`contenders`] here, and a file in `benches/`.

mod coordination;
mod executor;
mod lock;
mod mutex;
mod notify;
mod oneshot;
mod rwlock;
mod scene;
mod semaphore;
mod time;

/// One implementation of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// The name of the operation, as `primitive/operation`. All contenders of a group do
    /// the same work.
    pub group: &'static str,
    /// The name of the implementation.
    pub name: &'static str,
    /// How it counts in its group.
    pub kind: Kind,
    /// Performs the operation as often as the number says.
    pub run: fn(u64),
    /// Whether several threads take part. The turns must then be long beside the time
    /// that the system lets one thread run before another.
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
    /// An implementation of Reveille.
    Reveille,
    /// An implementation of another crate, to be compared with.
    Peer,
    /// A part of the work alone, as a measure of what the machine needs for it. It takes
    /// no part in the comparison.
    Floor,
}

/// Returns all contenders. Those of a group are adjacent.
#[must_use]
pub fn contenders() -> Vec<Contender> {
    [
        oneshot::contenders(),
        lock::contenders(),
        mutex::contenders(),
        rwlock::contenders(),
        semaphore::contenders(),
        notify::contenders(),
        coordination::contenders(),
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
