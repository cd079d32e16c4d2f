//! What can be run by name.

use crate::run::{Entry, Generic};
use crate::soak::Soak;
use crate::specimens::{
    barrier, condvar, mutex, notify, once_cell, oneshot, rwlock, semaphore, set_once, sleep, task,
    timeout,
};
use crate::subject::GenericSubject;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::verdict::Class;
use crate::subjects::{
    barrier::Barriers, condvar::Condvars, delay_queue::DelayQueues, driven::Driven,
    interval::Intervals, mutex::Mutexes, notify::Notifies, once_cell::OnceCells, oneshot::Oneshot,
    rwlock::RwLocks, semaphore::Semaphores, set_once::SetOnces, sleep::Sleeps, state_lock::Lock,
    task::Tasks, timeout::Timeouts,
};

/// A subject by name.
pub(crate) struct SubjectEntry {
    /// Its name.
    pub(crate) name: String,
    /// What it is, in a line.
    pub(crate) about: &'static str,
    /// How it is run.
    pub(crate) entry: Box<dyn Entry>,
}

/// A specimen: a subject with what the verifier must say of it.
pub(crate) struct SpecimenEntry {
    /// The specimen; its name is that of its subject, a slash, and its own.
    pub(crate) named: SubjectEntry,
    /// The class it must be caught in; none where it must pass.
    pub(crate) expected: Option<Class>,
    /// With how many operations at most it is hunted.
    total: usize,
}

impl SpecimenEntry {
    /// How it is hunted: where races of accesses to memory are seen if that is what it
    /// must be caught for, and else where a choice is a section, which is cheapest.
    pub(crate) fn mode(&self) -> Mode {
        match self.expected {
            Some(Class::Race) => Mode::Sections,
            _ => Mode::Exhaustive,
        }
    }

    /// Which programs it is hunted with.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = Plan::of(self.mode(), Profile::Quick);
        plan.bound.total = self.total;
        plan.bound.operations = self.total - 1;
        plan.bound.non_default = self.total;
        plan
    }
}

impl std::fmt::Debug for SubjectEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SubjectEntry").field(&self.name).finish()
    }
}

impl std::fmt::Debug for SpecimenEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SpecimenEntry")
            .field(&self.named.name)
            .finish()
    }
}

/// Every subject.
#[must_use]
pub(crate) fn subjects() -> Vec<SubjectEntry> {
    vec![
        SubjectEntry {
            name: "state-lock".to_owned(),
            about: "the lock of the protocol: exclusion, visibility, no lost unpark",
            entry: Box::new(Generic(Lock)),
        },
        SubjectEntry {
            name: "oneshot".to_owned(),
            about: "reveille::oneshot: every operation of both halves",
            entry: Box::new(Generic(Oneshot)),
        },
        SubjectEntry {
            name: "notify".to_owned(),
            about: "reveille::Notify: one, last, all, and the permit",
            entry: Box::new(Generic(Notifies)),
        },
        SubjectEntry {
            name: "mutex".to_owned(),
            about: "reveille::Mutex, overtaken once at most",
            entry: Box::new(Generic(Mutexes(1))),
        },
        SubjectEntry {
            name: "mutex-strict".to_owned(),
            about: "reveille::Mutex, first come, first served",
            entry: Box::new(Generic(Mutexes(0))),
        },
        SubjectEntry {
            name: "condvar".to_owned(),
            about: "reveille::Condvar, with its mutex",
            entry: Box::new(Generic(Condvars)),
        },
        SubjectEntry {
            name: "rwlock".to_owned(),
            about: "reveille::RwLock: readers, a reader who may write, a writer",
            entry: Box::new(Generic(RwLocks)),
        },
        SubjectEntry {
            name: "semaphore".to_owned(),
            about: "reveille::Semaphore, first come, first served",
            entry: Box::new(Generic(Semaphores(0))),
        },
        SubjectEntry {
            name: "semaphore-bounded".to_owned(),
            about: "reveille::Semaphore, overtaken twice at most",
            entry: Box::new(Generic(Semaphores(2))),
        },
        SubjectEntry {
            name: "set-once".to_owned(),
            about: "reveille::SetOnce: one value, and everybody who waits for it",
            entry: Box::new(Generic(SetOnces)),
        },
        SubjectEntry {
            name: "barrier".to_owned(),
            about: "reveille::Barrier for two: generations, and arrivals withdrawn",
            entry: Box::new(Generic(Barriers(2))),
        },
        SubjectEntry {
            name: "barrier-of-three".to_owned(),
            about: "reveille::Barrier for three: two who wait are let go on at once",
            entry: Box::new(Generic(Barriers(3))),
        },
        SubjectEntry {
            name: "once-cell".to_owned(),
            about: "reveille::OnceCell: one value, made by whoever has the turn",
            entry: Box::new(Generic(OnceCells)),
        },
        SubjectEntry {
            name: "sleep".to_owned(),
            about: "reveille::time: sleeps and resets, on a virtual clock",
            entry: Box::new(Generic(Sleeps)),
        },
        SubjectEntry {
            name: "sleep-driven".to_owned(),
            about: "reveille::time: sleeps on a clock of one's own, and who drives them",
            entry: Box::new(Generic(Driven)),
        },
        SubjectEntry {
            name: "timeout".to_owned(),
            about: "reveille::time: timeouts around a mutex, a semaphore, a notify, a oneshot",
            entry: Box::new(Generic(Timeouts)),
        },
        SubjectEntry {
            name: "interval".to_owned(),
            about: "reveille::time: an interval, in time and late",
            entry: Box::new(Generic(Intervals)),
        },
        SubjectEntry {
            name: "delay-queue".to_owned(),
            about: "reveille::time::DelayQueue: values, in the order of their deadlines",
            entry: Box::new(Generic(DelayQueues)),
        },
        SubjectEntry {
            name: "task".to_owned(),
            about: "reveille::protocol::task: run, woken, joined, aborted, cancelled",
            entry: Box::new(Generic(Tasks)),
        },
        SubjectEntry {
            name: "soak".to_owned(),
            about: "all of them, by thousands of tasks on tokio's runtime (stress only)",
            entry: Box::new(Soak),
        },
    ]
}

/// Every specimen.
#[must_use]
pub(crate) fn specimens() -> Vec<SpecimenEntry> {
    let mut all = Vec::new();
    let once_cells = once_cell::Fault::ALL;
    let set_onces = set_once::Fault::ALL;
    all.extend(specimens_of(
        "oneshot",
        3,
        oneshot::Fault::ALL,
        oneshot::Specimen,
    ));
    all.extend(specimens_of("notify", 3, notify::ALL, notify::Specimen));
    all.extend(specimens_of("mutex", 4, mutex::ALL, mutex::Specimen));
    all.extend(specimens_of("condvar", 5, condvar::ALL, condvar::Specimen));
    all.extend(specimens_of("rwlock", 4, rwlock::ALL, rwlock::Specimen));
    all.extend(specimens_of(
        "semaphore",
        3,
        semaphore::ALL,
        semaphore::Specimen,
    ));
    all.extend(specimens_of(
        "barrier",
        3,
        barrier::Fault::ALL,
        barrier::Specimen,
    ));
    all.extend(specimens_of(
        "once-cell",
        3,
        once_cells,
        once_cell::Specimen,
    ));
    all.extend(specimens_of("set-once", 3, set_onces, set_once::Specimen));
    all.extend(specimens_of("sleep", 4, sleep::ALL, sleep::Specimen));
    all.extend(specimens_of("timeout", 4, timeout::ALL, timeout::Specimen));
    all.extend(specimens_of("task", 3, task::ALL, task::Specimen));
    all
}

/// The specimens of one subject, hunted with so many operations at most.
fn specimens_of<F, S: GenericSubject, const N: usize>(
    subject: &str,
    total: usize,
    faults: [(&'static str, F, Option<Class>); N],
    specimen: fn(F) -> S,
) -> [SpecimenEntry; N] {
    faults.map(|(name, fault, expected)| SpecimenEntry {
        named: SubjectEntry {
            name: format!("{subject}/{name}"),
            about: match expected {
                Some(_) => "broken on purpose: must be caught",
                None => "correct, if non_default: must pass",
            },
            entry: Box::new(Generic(specimen(fault))),
        },
        expected,
        total,
    })
}

/// Subjects that are asked for by one name.
const GROUPS: [(&str, &[&str]); 2] = [
    (
        "time",
        &[
            "sleep",
            "sleep-driven",
            "timeout",
            "interval",
            "delay-queue",
        ],
    ),
    ("executor", &["task"]),
];

/// The subjects of a group; none where there is no such group.
pub(crate) fn group(name: &str) -> Option<&'static [&'static str]> {
    let mut groups = GROUPS.iter();
    groups.find(|&&(group, _)| group == name).map(|&(_, of)| of)
}

/// A subject or specimen by name.
#[must_use]
pub(crate) fn find(name: &str) -> Option<SubjectEntry> {
    let specimens = specimens().into_iter().map(|specimen| specimen.named);
    subjects()
        .into_iter()
        .chain(specimens)
        .find(|named| named.name == name)
}
