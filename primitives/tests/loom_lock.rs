//! The lock of `Native` and `Spin` under loom's atomics: every interleaving of
//! its loads and compare-exchanges, every ordering, against the contract of
//! `RawStateLock`. Then the same models over locks with a planted fault, which
//! must be caught: they check the models.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use loom::thread;
use reveille::protocol::{
    Atomics, Bits, Cell as _, LoomAtomics, LoomCell, LoomLot, LoomStep, Lot, RawStateLock, Word,
    WordLock,
};

/// Adds to a count kept in the bits.
fn plus(bits: Bits, count: usize) -> Bits {
    Bits::new(bits.get() + count)
}

/// Explores `model` and answers in how many executions. Unbounded unless
/// `preemptions` says otherwise, and then the name of the test says so.
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    // Not from the environment: the figures below are those of the search.
    builder.preemption_bound = preemptions;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        model();
    });
    executions.load(Relaxed)
}

/// A lock in the models: loom sees who touches the state, and when.
type Lock<A> = WordLock<usize, A>;

fn lock<A: Atomics>() -> Arc<Lock<A>> {
    Arc::new(Lock::new(Bits::EMPTY, 0))
}

/// A section that counts in the bits and in the state.
fn count<A: Atomics>(lock: &Lock<A>) {
    lock.with(|bits, state| {
        *bits = plus(*bits, 1);
        *state += 1;
    });
}

/// A section that counts in the bits alone.
fn count_bits<A: Atomics>(lock: &Lock<A>) {
    lock.update(|bits| Some(plus(bits, 1)))
        .expect("the bits are replaced");
}

/// Runs `steps` on threads of their own, the last on this one, and answers
/// what they counted.
fn together<A: Atomics>(steps: &[fn(&Lock<A>)]) -> (usize, usize)
where
    Lock<A>: Send + Sync,
{
    let lock = lock::<A>();
    let (last, others) = steps.split_last().expect("somebody runs");
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
    /// Fewer executions than this mean that the search did not take place.
    const AT_LEAST: usize;

    fn run<A: Atomics>()
    where
        Lock<A>: Send + Sync;
}

/// Exclusion: the cell of the state sees two sections at once, or one that
/// does not happen after the other, and a lost unpark is a deadlock.
struct TwoSections;

impl Model for TwoSections {
    const AT_LEAST: usize = 10;

    fn run<A: Atomics>()
    where
        Lock<A>: Send + Sync,
    {
        assert_eq!(together::<A>(&[count, count]), (2, 2));
    }
}

/// The same with a second round each: the lock is taken again while, or right
/// after, the other was woken for it.
struct TwoSectionsTwice;

impl Model for TwoSectionsTwice {
    const AT_LEAST: usize = 100;

    fn run<A: Atomics>()
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

/// Sections on the bits alone, against a section on the state: a
/// compare-exchange that comes while the lock is held has to wait its turn.
struct SectionAndUpdates;

impl Model for SectionAndUpdates {
    const AT_LEAST: usize = 10;

    fn run<A: Atomics>()
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

/// What was written before an `update` is there for whoever sees its bits, by
/// a `load`, by an `update` that changes nothing, or in a section.
struct UpdatePublishes;

impl Model for UpdatePublishes {
    const AT_LEAST: usize = 5;

    fn run<A: Atomics>()
    where
        Lock<A>: Send + Sync,
    {
        let lock = lock::<A>();
        let cells: Arc<[LoomCell<u32>; 3]> = Arc::new([(); 3].map(|()| LoomCell::new(0)));
        let publisher = {
            let (lock, cells) = (lock.clone(), cells.clone());
            thread::spawn(move || {
                write(&cells[0]);
                count_bits(&lock);
                write(&cells[1]);
                count(&lock);
                write(&cells[2]);
                count_bits(&lock);
            })
        };
        let seen = lock.load().get();
        read(&cells[..seen]);
        let seen = lock
            .update(|_| None)
            .expect_err("nothing is replaced")
            .get();
        read(&cells[..seen]);
        let seen = lock.with(|bits, _| bits.get());
        read(&cells[..seen]);
        publisher.join().expect("loom fails the model before");
    }
}

fn write(cell: &LoomCell<u32>) {
    #[allow(unsafe_code, reason = "the access is what is to be explored")]
    cell.with_mut(|value| {
        // SAFETY: loom runs one thread at a time, and checks that none of the
        // others may be in this cell.
        unsafe { *value = 1 };
    });
}

fn read(cells: &[LoomCell<u32>]) {
    for cell in cells {
        #[allow(unsafe_code, reason = "the access is what is to be explored")]
        cell.with(|value| {
            // SAFETY: as in `write`.
            assert_eq!(unsafe { *value }, 1);
        });
    }
}

/// Whoever finds by the bits that the other has left is alone with the lock,
/// and may free it: nothing of it is touched after that.
struct LastUserFrees;

impl Model for LastUserFrees {
    const AT_LEAST: usize = 10;

    fn run<A: Atomics>()
    where
        Lock<A>: Send + Sync,
    {
        /// A lock that both threads own, each without the other's knowledge.
        struct Owned<A: Atomics>(*mut Lock<A>);
        #[allow(unsafe_code, reason = "the pointer is what is to be explored")]
        // SAFETY: the lock may be shared, and its last user frees it.
        unsafe impl<A: Atomics> Send for Owned<A> where Lock<A>: Send + Sync {}

        fn leave<A: Atomics>(owned: &Owned<A>, by_state: bool) {
            #[allow(unsafe_code, reason = "as above")]
            // SAFETY: freed below by the last, and this user has not left.
            let lock = unsafe { &*owned.0 };
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
                // SAFETY: the other has left, so this is the only user.
                let mut lock = unsafe { Box::from_raw(owned.0) };
                // Loom tells of any access that does not happen before this.
                assert_eq!(lock.get_mut(|bits, _| bits.get()), 2);
            }
        }

        for (first, second) in [(true, true), (true, false), (false, false)] {
            let lock = Box::into_raw(Box::new(Lock::<A>::new(Bits::EMPTY, 0)));
            let (one, other) = (Owned(lock), Owned(lock));
            let thread = thread::spawn(move || {
                // The whole of it, and not its field, which is not `Send`.
                let one = one;
                leave(&one, first);
            });
            leave(&other, second);
            thread.join().expect("loom fails the model before");
        }
    }
}

/// Three threads, a section each: of two that sleep, each is woken.
struct ThreeSections;

impl Model for ThreeSections {
    const AT_LEAST: usize = 1_000;

    fn run<A: Atomics>()
    where
        Lock<A>: Send + Sync,
    {
        assert_eq!(together::<A>(&[count, count, count]), (3, 3));
    }
}

/// Three threads, of which one goes on to a section on the bits alone: it finds
/// the lock free and somebody still asleep, and must not forget them.
struct ThreeSectionsAndAnUpdate;

impl Model for ThreeSectionsAndAnUpdate {
    const AT_LEAST: usize = 1_000;

    fn run<A: Atomics>()
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
    let executions = explore(preemptions, M::run::<LoomAtomics>);
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
fn a_lock_can_be_taken_again_while_the_other_wakes_up() {
    keeps_its_contract::<TwoSectionsTwice>(None);
}

#[test]
fn an_update_waits_for_the_section_it_meets() {
    keeps_its_contract::<SectionAndUpdates>(None);
}

#[test]
fn what_was_written_before_a_section_is_seen_with_its_bits() {
    keeps_its_contract::<UpdatePublishes>(None);
}

#[test]
fn the_last_user_may_free_the_lock() {
    keeps_its_contract::<LastUserFrees>(None);
}

#[test]
fn bounded_to_2_preemptions_no_unpark_is_lost_among_three_threads() {
    keeps_its_contract::<ThreeSections>(Some(2));
}

#[test]
fn bounded_to_2_preemptions_an_update_forgets_no_sleeper() {
    keeps_its_contract::<ThreeSectionsAndAnUpdate>(Some(2));
}

/// What can be wrong with the atomics and with the lot below the lock.
mod faults {
    use super::*;

    /// Taking the lock does not acquire.
    const LOCK_RELAXED: u8 = 1;
    /// Giving it back, with nobody asleep, does not release.
    const UNLOCK_RELAXED: u8 = 2;
    /// Giving it back to a sleeper does not release.
    const UNLOCK_SLOW_RELAXED: u8 = 3;
    /// A section on the bits does not release.
    const UPDATE_NO_RELEASE: u8 = 4;
    /// A section on the bits does not acquire.
    const UPDATE_NO_ACQUIRE: u8 = 5;
    /// A look at the bits does not acquire.
    const LOAD_RELAXED: u8 = 6;
    /// The mark of a sleeper is a store, not a read-modify-write.
    const MARK_STORES: u8 = 7;
    /// A compare-exchange that takes the lock does not compare.
    const LOCK_ALWAYS: u8 = 8;
    /// The lot lets nobody out.
    const FORGETS: u8 = 9;
    /// The lot does not look again before it puts somebody to sleep.
    const VALIDATES_NOT: u8 = 10;
    /// The lot does not say that it has others.
    const SAYS_NO_MORE: u8 = 11;
    /// The lot lets somebody out, and the lock is not given back.
    const UNLOCKS_NOT: u8 = 12;

    /// Loom's atomics with a fault.
    struct Faulty<const FAULT: u8>;

    impl<const FAULT: u8> Atomics for Faulty<FAULT> {
        type Word = FaultyWord<FAULT>;
        type Cell<T> = LoomCell<T>;
        type Lot = FaultyLot<FAULT>;
        const SPINS: u32 = LoomAtomics::SPINS;

        fn spin(round: u32) {
            LoomAtomics::spin(round);
        }
    }

    struct FaultyWord<const FAULT: u8>(LoomStep);

    impl<const FAULT: u8> Word for FaultyWord<FAULT> {
        fn new(value: usize) -> Self {
            Self(<LoomStep as Word>::new(value))
        }

        fn load_relaxed(&self) -> usize {
            self.0.load_relaxed()
        }

        fn load_acquire(&self) -> usize {
            match FAULT {
                LOAD_RELAXED => self.0.load_relaxed(),
                _ => self.0.load_acquire(),
            }
        }

        fn store_release(&self, value: usize) {
            match FAULT {
                UNLOCK_SLOW_RELAXED => self.0.step().store(value, Relaxed),
                _ => self.0.store_release(value),
            }
        }

        fn lock(&self, old: usize, new: usize) -> Result<usize, usize> {
            match FAULT {
                LOCK_RELAXED => self.0.step().compare_exchange(old, new, Relaxed, Relaxed),
                LOCK_ALWAYS => Ok(self.0.step().swap(new, Acquire)),
                _ => Word::lock(&self.0, old, new),
            }
        }

        fn unlock(&self, old: usize, new: usize) -> Result<usize, usize> {
            match FAULT {
                UNLOCK_RELAXED => self.0.step().compare_exchange(old, new, Relaxed, Relaxed),
                _ => Word::unlock(&self.0, old, new),
            }
        }

        fn update(&self, old: usize, new: usize) -> Result<usize, usize> {
            match FAULT {
                UPDATE_NO_RELEASE => self.0.step().compare_exchange(old, new, Acquire, Acquire),
                UPDATE_NO_ACQUIRE => self.0.step().compare_exchange(old, new, Release, Relaxed),
                _ => Word::update(&self.0, old, new),
            }
        }

        fn mark(&self, old: usize, new: usize) -> Result<usize, usize> {
            match FAULT {
                MARK_STORES => {
                    self.0.step().store(new, Relaxed);
                    Ok(old)
                }
                _ => Word::mark(&self.0, old, new),
            }
        }

        fn get_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
            Word::get_mut(&mut self.0, f)
        }
    }

    struct FaultyLot<const FAULT: u8>(LoomLot);

    impl<const FAULT: u8> Lot<FaultyWord<FAULT>> for FaultyLot<FAULT> {
        fn new() -> Self {
            Self(Lot::<LoomStep>::new())
        }

        fn park(&self, word: &FaultyWord<FAULT>, validate: impl FnOnce() -> bool) {
            self.0
                .park(&word.0, || FAULT == VALIDATES_NOT || validate());
        }

        fn unpark_one(&self, word: &FaultyWord<FAULT>, f: impl FnOnce(bool)) {
            match FAULT {
                FORGETS => f(true),
                SAYS_NO_MORE => self.0.unpark_one(&word.0, |_| f(false)),
                UNLOCKS_NOT => self.0.unpark_one(&word.0, |_| {}),
                _ => self.0.unpark_one(&word.0, f),
            }
        }
    }

    /// What loom says of a model of a faulty lock.
    fn verdict<M: Model, const FAULT: u8>(preemptions: Option<usize>) -> String {
        let explored = AssertUnwindSafe(|| explore(preemptions, M::run::<Faulty<FAULT>>));
        let panic = match catch_unwind(explored) {
            Ok(executions) => return format!("nothing, in {executions} executions"),
            Err(panic) => panic,
        };
        match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(panic) => (*panic.downcast::<&str>().expect("a message")).to_owned(),
        }
    }

    macro_rules! each_is_caught {
        ($($test:ident: $fault:ident in $model:ty, $preemptions:expr => $message:literal;)*) => { $(
            #[test]
            fn $test() {
                let verdict = verdict::<$model, $fault>($preemptions);
                assert!(verdict.contains($message), "{verdict}");
            }
        )* };
    }

    const RACE: &str = "Causality violation";

    each_is_caught! {
        a_lock_that_does_not_acquire: LOCK_RELAXED in TwoSections, None => "ausality";
        an_unlock_that_does_not_release: UNLOCK_RELAXED in TwoSections, None => "ausality";
        an_unlock_to_a_sleeper_that_does_not_release: UNLOCK_SLOW_RELAXED in TwoSections, None => "ausality";
        an_update_that_does_not_release: UPDATE_NO_RELEASE in UpdatePublishes, None => "ausality";
        an_update_that_does_not_acquire: UPDATE_NO_ACQUIRE in UpdatePublishes, None => "ausality";
        a_load_that_does_not_acquire: LOAD_RELAXED in UpdatePublishes, None => "ausality";
        a_mark_that_is_a_store: MARK_STORES in TwoSections, None => "";
        a_lock_taken_while_it_is_held: LOCK_ALWAYS in TwoSections, None => "ausality";
        a_lot_that_lets_nobody_out: FORGETS in TwoSections, None => "deadlock";
        a_lot_that_does_not_look_again: VALIDATES_NOT in TwoSections, None => "deadlock";
        a_lot_that_says_it_is_empty: SAYS_NO_MORE in ThreeSections, Some(2) => "deadlock";
        a_lot_that_keeps_the_lock: UNLOCKS_NOT in TwoSections, None => "";
    }
}
