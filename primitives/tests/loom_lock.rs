//! The lock of `Native` and `Spin` under loom's atomics: every interleaving of its
//! loads and compare-exchanges, with every ordering, against the contract of
//! `RawStateLock`. Then the same models run over locks with a fault, which must be
//! caught. They check the models.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use loom::thread;
use reveille::backend::{
    Atomics, LoomAtomicWord, LoomAtomics, LoomCell, LoomWord, RawStateLock, Word, WordLock,
};
use reveille::protocol::Bits;
use reveille::raw::Witness;

use support::models::explore;

/// Adds to a count kept in the bits.
fn plus(bits: Bits, count: usize) -> Bits {
    Bits::new(bits.get() + count)
}

/// The lock of the models. Loom sees each access to the state.
type Lock<A> = WordLock<usize, A>;

fn lock<A: Atomics>() -> Arc<Lock<A>> {
    Arc::new(Lock::new(Bits::EMPTY, 0))
}

/// Runs a section that counts in the bits and in the state.
fn count<A: Atomics>(lock: &Lock<A>) {
    lock.with(|bits, state| {
        *bits = plus(*bits, 1);
        *state += 1;
    });
}

/// Runs a section that counts in the bits alone.
fn count_bits<A: Atomics>(lock: &Lock<A>) {
    lock.update(|bits| Some(plus(bits, 1)))
        .expect("the bits are replaced");
}

/// Counts in the bits and in the state, by an exchange that expects the bits of the
/// beginning, and is refused if they have changed.
fn count_first<A: Atomics>(lock: &Lock<A>) {
    if lock.exchange(Bits::EMPTY, plus(Bits::EMPTY, 1)).is_err() {
        count_bits(lock);
    }
}

/// Runs `steps` on threads of their own, the last on this one, and returns what they
/// counted.
fn together<A: Atomics>(steps: &[fn(&Lock<A>)]) -> (usize, usize)
where
    Lock<A>: Send + Sync,
{
    let lock = lock::<A>();
    let (last, others) = steps.split_last().expect("there is a step");
    let threads: Vec<_> = others
        .iter()
        .map(|&step| {
            let lock = lock.clone();
            thread::spawn(move || step(&lock))
        })
        .collect();
    last(&lock);
    for thread in threads {
        thread.join().expect("loom fails the model before");
    }
    let mut lock = Arc::into_inner(lock).expect("the threads are gone");
    lock.get_mut(|bits, state| (bits.get(), *state))
}

/// A model of the lock, over any atomics.
trait Model: 'static {
    /// The number of models, each of which is explored on its own.
    const VARIANTS: usize = 1;

    /// The least number of executions, of all variants. Fewer mean that the search
    /// did not take place.
    const AT_LEAST: usize;

    fn run<A: Atomics>(variant: usize)
    where
        Lock<A>: Send + Sync;
}

/// Exclusion. The cell of the state detects two sections at once, and one that does
/// not happen after the other. A lock that is never released deadlocks, or exceeds
/// loom's limit of branches.
struct TwoSections;

impl Model for TwoSections {
    const AT_LEAST: usize = 100;

    fn run<A: Atomics>(_: usize)
    where
        Lock<A>: Send + Sync,
    {
        assert_eq!(together::<A>(&[count, count]), (2, 2));
    }
}

/// The same with two rounds each: the lock is acquired again while the other thread
/// waits for it.
struct TwoSectionsTwice;

impl Model for TwoSectionsTwice {
    const AT_LEAST: usize = 1_500;

    fn run<A: Atomics>(_: usize)
    where
        Lock<A>: Send + Sync,
    {
        fn twice<A: Atomics>(lock: &Lock<A>) {
            count(lock);
            count(lock);
        }
        assert_eq!(together::<A>(&[twice, twice]), (4, 4));
    }
}

/// Sections on the bits alone, against a section on the state. A compare-exchange
/// that comes while the lock is held has to wait.
struct SectionAndUpdates;

impl Model for SectionAndUpdates {
    const AT_LEAST: usize = 800;

    fn run<A: Atomics>(_: usize)
    where
        Lock<A>: Send + Sync,
    {
        fn twice<A: Atomics>(lock: &Lock<A>) {
            count_bits(lock);
            count_bits(lock);
        }
        assert_eq!(together::<A>(&[count, twice]), (3, 1));
    }
}

/// Bits that are replaced without a load before, against a section on the state and
/// against one another.
struct SectionAndExchange;

impl Model for SectionAndExchange {
    const VARIANTS: usize = 2;
    const AT_LEAST: usize = 15;

    fn run<A: Atomics>(variant: usize)
    where
        Lock<A>: Send + Sync,
    {
        match variant {
            0 => assert_eq!(together::<A>(&[count, count_first]), (2, 1)),
            _ => assert_eq!(together::<A>(&[count_first, count_first]), (2, 0)),
        }
    }
}

/// Visibility. What was written before a section is visible to a thread that sees the
/// bits that it left: by a `load`, by an `update` that changes nothing or something,
/// or in a section.
struct Publishes;

impl Publishes {
    fn writes<A: Atomics>() -> [fn(&Lock<A>); 3] {
        [count, count_bits, count_first]
    }

    fn looks<A: Atomics>() -> [fn(&Lock<A>) -> Bits; 6] {
        [
            |lock| {
                let written = plus(Bits::EMPTY, 1);
                lock.exchange(written, written)
                    .map_or_else(|found| found, |()| written)
            },
            |lock| {
                let never = plus(Bits::EMPTY, 2);
                let refused = lock.exchange(never, never);
                refused.expect_err("the bits were never these")
            },
            |lock| lock.load(),
            |lock| lock.update(|_| None).expect_err("nothing is replaced"),
            |lock| lock.update(Some).expect("the bits are replaced"),
            |lock| lock.with(|bits, _| *bits),
        ]
    }
}

impl Model for Publishes {
    const VARIANTS: usize = 3 * 6;
    const AT_LEAST: usize = 400;

    fn run<A: Atomics>(variant: usize)
    where
        Lock<A>: Send + Sync,
    {
        let publish = Self::writes::<A>()[variant % 3];
        let look = Self::looks::<A>()[variant / 3];
        let shared = Arc::new((
            Lock::<A>::new(Bits::EMPTY, 0),
            Witness::<LoomWord>::new_in(),
        ));
        let publisher = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (lock, written) = &*shared;
                written.write();
                publish(lock);
            })
        };
        let (lock, written) = &*shared;
        if look(lock) != Bits::EMPTY {
            written.read();
        }
        publisher.join().expect("loom fails the model before");
    }
}

/// Last access. A thread that finds by the bits that the other has left is the only
/// user of the lock, and may free it. Nothing of it is accessed after that.
struct LastUserFrees;

impl Model for LastUserFrees {
    const VARIANTS: usize = 3;
    const AT_LEAST: usize = 200;

    fn run<A: Atomics>(variant: usize)
    where
        Lock<A>: Send + Sync,
    {
        /// A lock that both threads own.
        type Owned<A> = AtomicPtr<Lock<A>>;

        fn leave<A: Atomics>(owned: Owned<A>, by_state: bool) {
            let owned = owned.into_inner();
            #[allow(unsafe_code, reason = "the pointer is what is to be explored")]
            // SAFETY: the last user frees it below, and this user has not left.
            let lock = unsafe { &*owned };
            let left = if by_state {
                lock.with(|bits, state| {
                    *state += 1;
                    let before = *bits;
                    *bits = plus(before, 1);
                    before.get()
                })
            } else {
                lock.update(|bits| Some(plus(bits, 1)))
                    .expect("the bits are replaced")
                    .get()
            };
            if left == 1 {
                #[allow(unsafe_code, reason = "as above")]
                // SAFETY: the other thread has left, so this is the only user.
                let mut lock = unsafe { Box::from_raw(owned) };
                // Loom reports any access that does not happen before this.
                assert_eq!(lock.get_mut(|bits, _| bits.get()), 2);
            }
        }

        let (first, second) = [(true, true), (true, false), (false, false)][variant];
        let lock = Box::into_raw(Box::new(Lock::<A>::new(Bits::EMPTY, 0)));
        let (one, other) = (Owned::new(lock), Owned::new(lock));
        let thread = thread::spawn(move || leave(one, first));
        leave(other, second);
        thread.join().expect("loom fails the model before");
    }
}

/// Three threads, with a section each: two wait for one, and then for each other.
struct ThreeSections;

impl Model for ThreeSections {
    const AT_LEAST: usize = 4_000;

    fn run<A: Atomics>(_: usize)
    where
        Lock<A>: Send + Sync,
    {
        assert_eq!(together::<A>(&[count, count, count]), (3, 3));
    }
}

/// Three threads, of which one continues with a section on the bits alone, while the
/// others wait for one another.
struct ThreeSectionsAndAnUpdate;

impl Model for ThreeSectionsAndAnUpdate {
    const AT_LEAST: usize = 15_000;

    fn run<A: Atomics>(_: usize)
    where
        Lock<A>: Send + Sync,
    {
        fn then_bits<A: Atomics>(lock: &Lock<A>) {
            count(lock);
            count_bits(lock);
        }
        assert_eq!(together::<A>(&[count, count, then_bits]), (4, 3));
    }
}

/// The contract of the lock, explored.
fn keeps_its_contract<M: Model>(preemptions: Option<usize>) {
    let executions = (0..M::VARIANTS)
        .map(|variant| explore(preemptions, move || M::run::<LoomAtomics>(variant)))
        .sum::<usize>();
    assert!(
        executions >= M::AT_LEAST,
        "{executions} executions are no exploration"
    );
    println!("{executions} executions");
}

#[test]
fn two_sections_exclude_one_another() {
    keeps_its_contract::<TwoSections>(None);
}

#[test]
fn bounded_to_3_preemptions_a_lock_can_be_taken_again_while_the_other_waits() {
    keeps_its_contract::<TwoSectionsTwice>(Some(3));
}

#[test]
fn an_update_waits_for_the_section_it_meets() {
    keeps_its_contract::<SectionAndUpdates>(None);
}

#[test]
fn bits_are_exchanged_for_those_they_were_or_not_at_all() {
    keeps_its_contract::<SectionAndExchange>(None);
}

#[test]
fn what_was_written_before_a_section_is_seen_with_its_bits() {
    keeps_its_contract::<Publishes>(None);
}

#[test]
fn the_last_user_may_free_the_lock() {
    keeps_its_contract::<LastUserFrees>(None);
}

/// Loom's own reduction leaves out one of the two, for a lock on its bare atomics.
/// See `LoomAtomicWord`.
#[test]
fn a_load_beside_an_update_is_explored_before_it_and_after() {
    static SEEN: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    explore(None, || {
        let lock = lock::<LoomAtomics>();
        let updates = {
            let lock = lock.clone();
            thread::spawn(move || count_bits(&lock))
        };
        SEEN[lock.load().get()].fetch_add(1, Relaxed);
        updates.join().expect("loom fails the model before");
    });
    let [before, after] = SEEN.each_ref().map(|seen| seen.load(Relaxed));
    assert!(before > 0 && after > 0, "{before} before, {after} after");
}

#[test]
fn bounded_to_2_preemptions_each_of_three_threads_has_its_section() {
    keeps_its_contract::<ThreeSections>(Some(2));
}

#[test]
fn bounded_to_2_preemptions_an_update_comes_between_three_sections() {
    keeps_its_contract::<ThreeSectionsAndAnUpdate>(Some(2));
}

/// What can be wrong with the atomics below the lock, and what is allowed.
mod faults {
    use super::*;

    /// Acquiring the lock has no acquire ordering.
    const LOCK_RELAXED: u8 = 1;
    /// Releasing the lock does not release what was written.
    const RELEASE_RELAXED: u8 = 2;
    /// A section on the bits does not release.
    const UPDATE_NO_RELEASE: u8 = 3;
    /// A section on the bits does not acquire.
    const UPDATE_NO_ACQUIRE: u8 = 4;
    /// A load of the bits does not acquire.
    const LOAD_RELAXED: u8 = 5;
    /// A compare-exchange that acquires the lock does not compare.
    const LOCK_ALWAYS: u8 = 6;
    /// A section on the bits writes a locked word, which the holder overwrites.
    const UPDATE_WHILE_LOCKED: u8 = 7;
    /// The lock is not released.
    const RELEASES_NOT: u8 = 8;
    /// The lock is released with the bits that were found.
    const RELEASES_OLD_BITS: u8 = 9;
    /// The lock is released by a store that keeps `LOCKED`.
    const RELEASES_LOCKED: u8 = 10;
    /// This is not a fault: every second weak compare-exchange fails spuriously.
    const WEAK: u8 = 11;

    const LOCKED: usize = 0b1;

    /// Loom's atomics with a fault.
    struct Faulty<const FAULT: u8>;

    // SAFETY: the contract is broken on purpose, and the models have to detect it.
    #[allow(unsafe_code, reason = "the faults break the promise on purpose")]
    unsafe impl<const FAULT: u8> Atomics for Faulty<FAULT> {
        type Word = FaultyWord<FAULT>;
        type Cell<T> = LoomCell<T>;

        fn pause(word: &FaultyWord<FAULT>, round: u32) {
            LoomAtomics::pause(&word.word, round);
        }
    }

    struct FaultyWord<const FAULT: u8> {
        word: LoomAtomicWord,
        /// The word that the acquisition of the lock replaced.
        found: AtomicUsize,
        weak: AtomicUsize,
    }

    impl<const FAULT: u8> FaultyWord<FAULT> {
        /// Returns `true` if a weak compare-exchange is to fail although it could
        /// succeed.
        fn fails(&self) -> bool {
            FAULT == WEAK && self.weak.fetch_add(1, Relaxed).is_multiple_of(2)
        }
    }

    impl<const FAULT: u8> Word for FaultyWord<FAULT> {
        fn new(value: usize) -> Self {
            Self {
                word: <LoomAtomicWord as Word>::new(value),
                found: AtomicUsize::new(value),
                weak: AtomicUsize::new(0),
            }
        }

        fn load_relaxed(&self) -> usize {
            self.word.load_relaxed()
        }

        fn load_acquire(&self) -> usize {
            match FAULT {
                LOAD_RELAXED => self.word.load_relaxed(),
                UPDATE_WHILE_LOCKED => self.word.load_acquire() & !LOCKED,
                _ => self.word.load_acquire(),
            }
        }

        fn store_release(&self, value: usize) {
            match FAULT {
                RELEASE_RELAXED => {
                    self.word.step().store(value, Relaxed);
                    self.word.released();
                }
                RELEASES_NOT => {}
                RELEASES_OLD_BITS => self.word.store_release(self.found.load(Relaxed)),
                RELEASES_LOCKED => self.word.store_release(value | LOCKED),
                _ => self.word.store_release(value),
            }
        }

        fn lock(&self, old: usize, new: usize) -> Result<usize, usize> {
            let taken = match FAULT {
                _ if self.fails() => Err(self.word.load_relaxed()),
                LOCK_RELAXED => self
                    .word
                    .step()
                    .compare_exchange(old, new, Relaxed, Relaxed),
                LOCK_ALWAYS => Ok(self.word.step().swap(new, Acquire)),
                _ => Word::lock(&self.word, old, new),
            };
            if taken.is_ok() {
                self.word.taken();
                self.found.store(old, Relaxed);
            }
            taken
        }

        fn update(&self, old: usize, new: usize) -> Result<usize, usize> {
            match FAULT {
                _ if self.fails() => Err(self.word.load_acquire()),
                UPDATE_NO_RELEASE => self
                    .word
                    .step()
                    .compare_exchange(old, new, Acquire, Acquire),
                UPDATE_NO_ACQUIRE => self
                    .word
                    .step()
                    .compare_exchange(old, new, Release, Relaxed),
                UPDATE_WHILE_LOCKED => Word::update(&self.word, old, new).or_else(|found| {
                    let locked = Word::update(&self.word, old | LOCKED, new | LOCKED);
                    locked.map_err(|_| found & !LOCKED)
                }),
                _ => Word::update(&self.word, old, new),
            }
        }

        fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
            Word::get_mut(&mut self.word, f)
        }
    }

    /// Returns what loom reports for a model of a faulty lock.
    fn verdict<M: Model, const FAULT: u8>(preemptions: Option<usize>) -> String {
        let mut executions = 0;
        let explored = catch_unwind(AssertUnwindSafe(|| {
            for variant in 0..M::VARIANTS {
                executions += explore(preemptions, move || M::run::<Faulty<FAULT>>(variant));
            }
        }));
        let Err(panic) = explored else {
            return format!("nothing, in {executions} executions");
        };
        match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(panic) => (*panic.downcast::<&str>().expect("a message")).to_owned(),
        }
    }

    macro_rules! each_is_caught {
        ($($test:ident: $fault:ident in $model:ty, $preemptions:expr => $verdict:ident;)*) => { $(
            #[test]
            fn $test() {
                let verdict = verdict::<$model, $fault>($preemptions);
                assert!(verdict.contains($verdict), "{verdict}");
            }
        )* };
    }

    const RACE: &str = "Causality violation";
    const DEADLOCK: &str = "deadlock";
    const ENDLESS: &str = "exceeded maximum number of branches";
    const MISCOUNT: &str = "left == right";
    const HOLDS: &str = "nothing, in";

    each_is_caught! {
        a_lock_that_does_not_acquire: LOCK_RELAXED in TwoSections, None => RACE;
        a_release_that_does_not_release: RELEASE_RELAXED in TwoSections, None => RACE;
        an_update_that_does_not_release: UPDATE_NO_RELEASE in Publishes, None => RACE;
        an_update_that_does_not_acquire: UPDATE_NO_ACQUIRE in Publishes, None => RACE;
        an_update_that_writes_a_locked_word:
            UPDATE_WHILE_LOCKED in SectionAndUpdates, None => MISCOUNT;
        a_load_that_does_not_acquire: LOAD_RELAXED in Publishes, None => RACE;
        a_lock_taken_while_it_is_held: LOCK_ALWAYS in TwoSections, None => MISCOUNT;
        a_lock_that_is_not_released: RELEASES_NOT in TwoSections, None => DEADLOCK;
        a_lock_that_stays_locked: RELEASES_LOCKED in TwoSections, None => ENDLESS;
        a_release_that_forgets_the_bits: RELEASES_OLD_BITS in TwoSections, None => MISCOUNT;
    }

    #[test]
    fn a_weak_compare_exchange_may_fail_at_any_time() {
        for holds in [
            verdict::<TwoSections, WEAK>(None),
            verdict::<SectionAndUpdates, WEAK>(Some(3)),
            verdict::<SectionAndExchange, WEAK>(None),
            verdict::<Publishes, WEAK>(None),
        ] {
            assert!(holds.starts_with(HOLDS), "{holds}");
        }
    }
}
