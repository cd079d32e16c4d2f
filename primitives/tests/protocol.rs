//! The contract of `StateLock`, over every backend: sections, wakers that come
//! into them and leave them, panics, and threads.

#![cfg(not(loom))]

mod support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use reveille::backend::{
    Backend, Local, Loom, LoomWord, Native, Observed, Observer, Passage, SharedBackend, Shuttle,
    Spin, StdPark,
};
use reveille::protocol::{Bits, StateLock, Waiters, WakeList, WakerSlot};
use reveille::raw::{INITIALIZED, OnceSlot};

use support::probe::{Event, Probe};
use support::{panic_of, returns};

const A: Bits = Bits::new(1);
const B: Bits = Bits::new(2);

/// Makes one test of each test for each backend. The models have one execution, or
/// few. What they explore is explored elsewhere: here the same contract is checked.
macro_rules! on_every_backend {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            use super::*;

            #[test]
            fn on_native() {
                returns(stringify!($test), super::$test::<Native>);
            }

            #[test]
            fn on_spin() {
                returns(stringify!($test), super::$test::<Spin>);
            }

            #[test]
            fn on_local() {
                returns(stringify!($test), super::$test::<Local>);
            }

            #[test]
            fn on_observed() {
                returns(stringify!($test), super::$test::<Observed<Native, Unmoved>>);
            }

            #[test]
            fn on_observed_local() {
                returns(stringify!($test), super::$test::<Observed<Local, Unmoved>>);
            }

            #[test]
            fn on_loom() {
                returns(stringify!($test), || model(super::$test::<Loom>));
            }

            #[test]
            fn on_loom_word() {
                returns(stringify!($test), || model(super::$test::<LoomWord>));
            }

            #[test]
            fn on_shuttle() {
                returns(stringify!($test), || {
                    shuttle::check_random(super::$test::<Shuttle>, 1);
                });
            }
        }
    )* };
}

on_every_backend![
    // Sections.
    a_section_finds_what_the_last_one_left,
    an_update_replaces_the_bits_and_returns_what_it_found,
    an_update_that_returns_none_changes_nothing,
    every_value_of_the_bits_survives,
    an_exclusive_borrow_needs_no_section,
    a_panic_in_a_section_leaves_what_it_left_and_the_lock_free,
    a_panic_in_an_update_changes_nothing,
    a_section_within_an_update_has_the_update_run_again,
    an_update_within_an_update_has_the_outer_run_again,
    a_section_within_an_update_that_leaves_the_bits_goes_unnoticed,
    a_value_set_within_an_update_stays_set,
    debug_output_shows_the_bits,
    // Wakers that enter.
    a_poll_clones_its_waker_once_and_outside,
    a_waker_that_is_registered_already_is_not_cloned,
    a_poll_that_is_ready_leaves_no_waker,
    a_waker_that_is_replaced_is_dropped_outside,
    a_pending_poll_leaves_its_waker,
    // Wakers that leave.
    wakers_are_woken_and_dropped_after_the_section,
    a_list_takes_as_many_wakers_as_it_says,
    a_waker_too_many_stays_where_it_is,
    a_waker_that_panics_costs_no_other_its_wake,
    a_section_that_panics_wakes_whom_it_took_out,
];

/// Runs `f` under loom, on one thread.
fn model(f: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(f);
}

/// Sees every section, and does nothing.
struct Unmoved;

impl Observer for Unmoved {
    type Park = StdPark;
    type Visit = ();

    fn approach(_: usize, _: Passage) {}
    fn enter((): &mut ()) {}
    fn leave((): &mut (), _: Bits, _: Bits) {}
    fn created() {}
    fn dropped() {}
}

fn a_section_finds_what_the_last_one_left<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(A, 1);
    assert_eq!(lock.load(), A);
    let answer = lock.with(|section| {
        assert_eq!((*section.bits, *section.state), (A, 1));
        section.bits.insert(self::B);
        *section.state += 1;
        "an answer"
    });
    assert_eq!(answer, "an answer");
    assert_eq!(lock.load(), A | self::B);
    lock.with(|section| assert_eq!((*section.bits, *section.state), (A | self::B, 2)));
}

fn an_update_replaces_the_bits_and_returns_what_it_found<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(A, 1);
    assert_eq!(lock.update(|bits| Some(bits | self::B)), Ok(A));
    assert_eq!(lock.load(), A | self::B);
    // An update that leaves the bits unchanged has replaced them too.
    assert_eq!(lock.update(Some), Ok(A | self::B));
    lock.with(|section| assert_eq!((*section.bits, *section.state), (A | self::B, 1)));
}

fn an_update_that_returns_none_changes_nothing<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(A, 1);
    assert_eq!(lock.update(|_| None), Err(A));
    lock.with(|section| assert_eq!((*section.bits, *section.state), (A, 1)));
}

/// The bits of the lock itself are beside them, in the same word.
fn every_value_of_the_bits_survives<B: Backend>() {
    let values = [0, 1, 2, 3, Bits::MAX / 2, Bits::MAX - 1, Bits::MAX].map(Bits::new);
    for value in values {
        let mut lock = StateLock::<(), B>::new_in(value, ());
        assert_eq!(lock.load(), value);
        lock.with(|section| assert_eq!(*section.bits, value));
        for next in values {
            let before = lock.load();
            assert_eq!(lock.update(|_| Some(next)), Ok(before));
            assert_eq!(lock.load(), next);
            lock.with(|section| *section.bits = value);
            assert_eq!(lock.load(), value);
        }
        lock.get_mut(|bits, ()| assert_eq!(*bits, value));
    }
}

fn an_exclusive_borrow_needs_no_section<B: Backend>() {
    let mut lock = StateLock::<u32, B>::new_in(A, 1);
    let answer = lock.get_mut(|bits, state| {
        assert_eq!((*bits, *state), (A, 1));
        *bits = self::B;
        *state = 2;
        "an answer"
    });
    assert_eq!(answer, "an answer");
    lock.with(|section| assert_eq!((*section.bits, *section.state), (self::B, 2)));
}

fn a_panic_in_a_section_leaves_what_it_left_and_the_lock_free<B: Backend>() {
    let mut lock = StateLock::<u32, B>::new_in(A, 1);
    let message = panic_of(|| {
        lock.with(|section| {
            *section.bits = self::B;
            *section.state = 2;
            panic!("in a section");
        });
    });
    assert_eq!(message.as_deref(), Some("in a section"));
    assert_eq!(lock.load(), self::B);
    lock.with(|section| assert_eq!((*section.bits, *section.state), (self::B, 2)));
    assert_eq!(lock.update(|_| Some(A)), Ok(self::B));
    lock.get_mut(|bits, state| assert_eq!((*bits, *state), (A, 2)));
}

fn a_panic_in_an_update_changes_nothing<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(A, 1);
    let message = panic_of(|| {
        let _ = lock.update(|_| panic!("in an update"));
    });
    assert_eq!(message.as_deref(), Some("in an update"));
    assert_eq!(lock.update(|_| Some(self::B)), Ok(A));
    lock.with(|section| assert_eq!((*section.bits, *section.state), (self::B, 1)));
}

/// Over every backend, the closure of an update runs outside the section.
fn a_section_within_an_update_has_the_update_run_again<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(Bits::EMPTY, 1);
    let mut found = Vec::new();
    let result = lock.update(|bits| {
        found.push(bits);
        if found.len() == 1 {
            lock.with(|section| {
                section.bits.insert(A);
                *section.state += 1;
            });
        }
        Some(bits | self::B)
    });
    assert_eq!((result, found), (Ok(A), vec![Bits::EMPTY, A]));
    lock.with(|section| assert_eq!((*section.bits, *section.state), (A | self::B, 2)));
}

fn an_update_within_an_update_has_the_outer_run_again<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(Bits::EMPTY, 1);
    for within in [
        |lock: &StateLock<u32, B>| lock.update(|bits| Some(bits | A)).is_ok(),
        |lock: &StateLock<u32, B>| lock.exchange(Bits::EMPTY, A).is_ok(),
    ] {
        lock.update(|_| Some(Bits::EMPTY)).expect("it is replaced");
        let mut found = Vec::new();
        let result = lock.update(|bits| {
            found.push(bits);
            assert!(found.len() > 1 || within(&lock), "it is free");
            Some(bits | self::B)
        });
        assert_eq!((result, found), (Ok(A), vec![Bits::EMPTY, A]));
        assert_eq!(lock.load(), A | self::B);
    }
}

fn a_section_within_an_update_that_leaves_the_bits_goes_unnoticed<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(A, 1);
    let mut entered = 0;
    let result = lock.update(|bits| {
        lock.with(|section| *section.state += 1);
        assert_eq!(lock.load(), A);
        entered += 1;
        Some(bits | self::B)
    });
    assert_eq!(result, Ok(A));
    lock.with(|section| assert_eq!((*section.bits, *section.state), (A | self::B, 1 + entered)));
}

/// If the update stored the bits that it made before, the value would be written a
/// second time while it is borrowed.
fn a_value_set_within_an_update_stays_set<B: Backend>() {
    let slot = OnceSlot::<String, Waiters<()>, B>::new_in(Waiters::new());
    let mut shared = None;
    let result = slot.update(|bits| {
        if let Ok(value) = slot.set("first".to_owned(), |_| Some(Bits::EMPTY)) {
            shared = Some(value);
        }
        Some(bits | self::B)
    });
    assert_eq!(result, Ok(INITIALIZED));
    let refused = slot.set("second".to_owned(), |_| Some(Bits::EMPTY));
    assert_eq!(refused, Err(("second".to_owned(), INITIALIZED | self::B)));
    assert_eq!(shared.map(String::as_str), Some("first"));
    assert_eq!(slot.get().map(String::as_str), Some("first"));
}

/// This holds even if another thread has the lock when the closure has run. The
/// closure is not run under the lock, where the section within it would deadlock.
#[test]
fn a_section_within_an_update_that_waits_for_another_thread() {
    fn enters<B: SharedBackend>() {
        let lock = StateLock::<u32, B>::new_in(Bits::EMPTY, 1);
        let held = AtomicBool::new(false);
        thread::scope(|scope| {
            let holder = scope.spawn(|| {
                lock.with(|section| {
                    held.store(true, Ordering::Release);
                    thread::sleep(Duration::from_millis(20));
                    section.bits.insert(A);
                });
            });
            while !held.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let mut runs = 0;
            let result = lock.update(|bits| {
                runs += 1;
                if runs > 1 {
                    lock.with(|section| *section.state += 1);
                }
                Some(bits | self::B)
            });
            holder.join().expect("the holder does not panic");
            assert_eq!((result, lock.load()), (Ok(A), A | self::B));
        });
    }
    returns("over Native", enters::<Native>);
    returns("over Spin", enters::<Spin>);
}

/// Returns the panic of a section within a `with`, if there is one. Such a section
/// never begins. A lock of threads deadlocks.
fn within_a_with<B: Backend>(nested: fn(&StateLock<u32, B>)) -> Option<String> {
    let lock = StateLock::<u32, B>::new_in(A, 1);
    let message = panic_of(|| lock.with(|_| nested(&lock)));
    lock.with(|section| assert_eq!((*section.bits, *section.state), (A, 1)));
    message
}

#[test]
fn a_section_within_a_with_panics_on_local() {
    let sections: [fn(&StateLock<u32, Local>); 3] = [
        |lock| lock.with(|_| ()),
        |lock| _ = lock.update(Some),
        |lock| _ = lock.exchange(A, self::B),
    ];
    for nested in sections {
        let message = within_a_with(nested).expect("it panics");
        let says = "a section of a `Local` lock began within another of the same lock";
        assert!(message.starts_with(says), "{message}");
    }
    // A load is not a section that another could exclude.
    let looks: [fn(&StateLock<u32, Local>); 2] = [
        |lock| assert_eq!(lock.load(), A),
        |lock| assert_eq!(lock.update(|_| None), Err(A)),
    ];
    for nested in looks {
        assert_eq!(within_a_with(nested), None);
    }
}

#[test]
fn a_section_within_a_with_panics_on_shuttle() {
    shuttle::check_random(
        || {
            let message = within_a_with::<Shuttle>(|lock| lock.with(|_| ()));
            let message = message.expect("it panics");
            assert!(message.contains("it already holds"), "{message}");
        },
        1,
    );
}

#[test]
fn a_section_within_a_with_panics_on_loom() {
    let deadlock = panic_of(|| {
        model(|| {
            let lock = StateLock::<u32, Loom>::new_in(A, 1);
            lock.with(|_| lock.with(|_| ()));
        });
    });
    assert!(deadlock.is_some_and(|message| message.starts_with("deadlock")));
}

fn debug_output_shows_the_bits<B: Backend>() {
    let lock = StateLock::<u32, B>::new_in(A | self::B, 1);
    assert_eq!(format!("{lock:?}"), "StateLock { bits: Bits(0b11), .. }");
    lock.with(|section| {
        let section = format!("{section:?}");
        assert!(
            section.starts_with("Section { bits: Bits(0b11), state: 1"),
            "{section}"
        );
    });
}

/// A lock in whose state wakers are registered. When they are called, they enter a
/// section of it. If the lock is not free, they do not return.
struct Sleepers<B: Backend> {
    lock: StateLock<Vec<WakerSlot>, B>,
    entries: Cell<usize>,
}

impl<B: Backend> Sleepers<B> {
    fn new(slots: usize) -> Rc<Self> {
        let slots = (0..slots).map(|_| WakerSlot::new()).collect();
        Rc::new(Self {
            lock: StateLock::new_in(Bits::EMPTY, slots),
            entries: Cell::new(0),
        })
    }

    /// Lets `task` enter a section at the next `event` of its waker.
    fn entered_on(self: &Rc<Self>, task: &Probe, event: Event) {
        let this = self.clone();
        task.on(event, move || {
            this.lock.with(|section| section.bits.insert(A));
            this.lock.update(Some).expect("the bits are replaced");
            this.entries.set(this.entries.get() + 1);
        });
    }

    /// Registers the waker of `task` in a slot. Returns how often the section ran.
    fn sleep(&self, task: &Probe, fresh: bool, slot: usize) -> usize {
        let mut runs = 0;
        let poll: Poll<()> = self
            .lock
            .poll(&mut task.cx(), fresh, |section, registration| {
                runs += 1;
                Err(registration.register(&mut section.state[slot]))
            });
        assert!(poll.is_pending());
        runs
    }

    /// Returns which slots hold a waker.
    fn registered(&self) -> Vec<bool> {
        let registered = |section: reveille::protocol::Section<'_, Vec<WakerSlot>>| {
            section.state.iter().map(WakerSlot::is_registered).collect()
        };
        self.lock.with(registered)
    }
}

fn a_poll_clones_its_waker_once_and_outside<B: Backend>() {
    // The clone comes before the first run of the section if the caller says that it
    // has no waker there, and between two runs if the caller was wrong.
    for (fresh, runs) in [(true, 1), (false, 2)] {
        let sleepers = Sleepers::<B>::new(1);
        let task = Probe::new();
        sleepers.entered_on(&task, Event::Clone);
        assert_eq!(sleepers.sleep(&task, fresh, 0), runs);
        assert_eq!((task.clones(), task.kept(), task.drops()), (1, 1, 0));
        assert_eq!(sleepers.entries.get(), 1);
    }
    // It also replaces the waker of another task.
    for (fresh, runs) in [(true, 1), (false, 2)] {
        let sleepers = Sleepers::<B>::new(1);
        let (first, second) = (Probe::new(), Probe::new());
        sleepers.sleep(&first, true, 0);
        sleepers.entered_on(&second, Event::Clone);
        assert_eq!(sleepers.sleep(&second, fresh, 0), runs);
        assert_eq!((first.kept(), second.clones(), second.kept()), (0, 1, 1));
        assert_eq!(sleepers.entries.get(), 1);
    }
}

fn a_waker_that_is_registered_already_is_not_cloned<B: Backend>() {
    let sleepers = Sleepers::<B>::new(1);
    let task = Probe::new();
    sleepers.sleep(&task, true, 0);
    for _ in 0..3 {
        assert_eq!(sleepers.sleep(&task, false, 0), 1);
    }
    assert_eq!((task.clones(), task.kept(), task.drops()), (1, 1, 0));

    // A caller that does not know of it has cloned in vain, and nothing else happens.
    sleepers.entered_on(&task, Event::Drop);
    assert_eq!(sleepers.sleep(&task, true, 0), 1);
    assert_eq!((task.clones(), task.kept(), task.drops()), (2, 1, 1));
    assert_eq!(sleepers.entries.get(), 1);
}

fn a_poll_that_is_ready_leaves_no_waker<B: Backend>() {
    let sleepers = Sleepers::<B>::new(1);
    for fresh in [true, false] {
        let task = Probe::new();
        let poll = sleepers
            .lock
            .poll(&mut task.cx(), fresh, |_, _| Ok("an answer"));
        assert_eq!(poll, Poll::Ready("an answer"));
        assert_eq!((task.kept(), task.clones()), (0, usize::from(fresh)));
    }
    assert_eq!(sleepers.registered(), [false]);
}

fn a_waker_that_is_replaced_is_dropped_outside<B: Backend>() {
    for fresh in [true, false] {
        let sleepers = Sleepers::<B>::new(1);
        let (first, second) = (Probe::new(), Probe::new());
        sleepers.sleep(&first, true, 0);
        sleepers.entered_on(&first, Event::Drop);
        sleepers.sleep(&second, fresh, 0);
        assert_eq!((first.drops(), first.kept(), second.kept()), (1, 0, 1));
        assert_eq!(sleepers.entries.get(), 1);
    }
}

/// Whatever the slot holds: nothing, a waker of the same task, or a waker of another.
fn a_pending_poll_leaves_its_waker<B: Backend>() {
    for before in [None, Some(true), Some(false)] {
        for fresh in [true, false] {
            let what = format!("of the same task: {before:?}, fresh: {fresh}");
            let sleepers = Sleepers::<B>::new(1);
            let (task, other) = (Probe::new(), Probe::new());
            if let Some(same) = before {
                sleepers.sleep(if same { &task } else { &other }, true, 0);
            }
            sleepers.sleep(&task, fresh, 0);
            assert_eq!((task.kept(), other.kept()), (1, 0), "{what}");
            sleepers
                .lock
                .with(|section| section.wakes.wake(&mut section.state[0]));
            assert_eq!((task.wakes(), other.wakes()), (1, 0), "{what}");
        }
    }
}

fn wakers_are_woken_and_dropped_after_the_section<B: Backend>() {
    let sleepers = Sleepers::<B>::new(3);
    let order = Rc::new(RefCell::new(Vec::new()));
    let tasks = [(); 3].map(|()| Probe::new());
    for (slot, task) in tasks.iter().enumerate() {
        sleepers.sleep(task, true, slot);
        let event = if slot == 1 { Event::Drop } else { Event::Wake };
        task.on(event, {
            let (order, sleepers) = (order.clone(), sleepers.clone());
            move || {
                sleepers.lock.with(|section| section.bits.insert(A));
                order.borrow_mut().push(slot);
            }
        });
    }
    let order_within = sleepers.lock.with(|section| {
        let [first, second, third] = &mut section.state[..] else {
            unreachable!("three slots were made");
        };
        section.wakes.wake(first);
        section.wakes.discard(second);
        section.wakes.wake(third);
        // An empty slot has no waker to take out.
        section.wakes.wake(first);
        section.wakes.discard(first);
        order.borrow().len()
    });
    assert_eq!(order_within, 0);
    assert_eq!(*order.borrow(), [0, 2, 1], "wakes first, in their order");
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 0, 1]);
    assert_eq!(tasks.each_ref().map(Probe::kept), [0, 0, 0]);
    assert_eq!(sleepers.registered(), [false; 3]);
}

/// The first waker of each kind has its own place, so both kinds together have one more.
fn a_list_takes_as_many_wakers_as_it_says<B: Backend>() {
    type Discards = fn(usize) -> bool;
    let kinds: [(Discards, usize); 3] = [
        (|_| false, WakeList::CAPACITY),
        (|_| true, WakeList::CAPACITY),
        (|slot| slot % 3 == 1, WakeList::CAPACITY + 1),
    ];
    for (discards, room) in kinds {
        let sleepers = Sleepers::<B>::new(room);
        let tasks: Vec<_> = (0..room).map(|_| Probe::new()).collect();
        for (slot, task) in tasks.iter().enumerate() {
            sleepers.sleep(task, true, slot);
        }
        sleepers.lock.with(|section| {
            for (slot, waker) in section.state.iter_mut().enumerate() {
                assert!(!section.wakes.is_full());
                if discards(slot) {
                    section.wakes.discard(waker);
                } else {
                    section.wakes.wake(waker);
                }
            }
            assert!(section.wakes.is_full());
        });
        for (slot, task) in tasks.iter().enumerate() {
            let woken = usize::from(!discards(slot));
            assert_eq!((task.wakes(), task.kept()), (woken, 0));
        }
    }
}

/// P4 holds in this case too: nothing is dropped under the lock, and the next section
/// can take the waker out.
fn a_waker_too_many_stays_where_it_is<B: Backend>() {
    for discards in [false, true] {
        let sleepers = Sleepers::<B>::new(WakeList::CAPACITY + 1);
        let tasks: Vec<_> = (0..=WakeList::CAPACITY).map(|_| Probe::new()).collect();
        for (slot, task) in tasks.iter().enumerate() {
            sleepers.sleep(task, true, slot);
        }
        let last = tasks.last().expect("there are some");
        sleepers.entered_on(last, Event::Drop);
        let message = panic_of(|| {
            sleepers.lock.with(|section| {
                for waker in section.state {
                    if discards {
                        section.wakes.discard(waker);
                    } else {
                        section.wakes.wake(waker);
                    }
                }
            });
        });
        let message = message.expect("a panic");
        assert!(
            message.contains("more wakers than a WakeList holds"),
            "{message}"
        );
        let woken: usize = tasks.iter().map(Probe::wakes).sum();
        assert_eq!(woken, if discards { 0 } else { WakeList::CAPACITY });
        assert_eq!(tasks.iter().map(Probe::kept).sum::<usize>(), 1);
        assert_eq!((last.kept(), last.wakes(), last.drops()), (1, 0, 0));

        sleepers.lock.with(|section| {
            let last = section.state.last_mut().expect("there are some");
            section.wakes.discard(last);
        });
        assert_eq!((last.kept(), sleepers.entries.get()), (0, 1));
    }
}

/// P8: the first panic is the one that reaches the caller.
fn a_waker_that_panics_costs_no_other_its_wake<B: Backend>() {
    let sleepers = Sleepers::<B>::new(5);
    let tasks = [(); 5].map(|()| Probe::new());
    for (slot, task) in tasks.iter().enumerate() {
        sleepers.sleep(task, true, slot);
    }
    tasks[1].panic_on(Event::Wake);
    tasks[2].panic_again_on(Event::Drop);
    tasks[3].panic_again_on(Event::Wake);
    let message = panic_of(|| {
        sleepers.lock.with(|section| {
            for (slot, waker) in section.state.iter_mut().enumerate() {
                if slot == 2 {
                    section.wakes.discard(waker);
                } else {
                    section.wakes.wake(waker);
                }
            }
        });
    });
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 1, 0, 1, 1]);
    assert_eq!(tasks.each_ref().map(Probe::kept), [0; 5]);
    assert_eq!(tasks.each_ref().map(Probe::acts_left), [0; 5]);
    assert_eq!(sleepers.sleep(&tasks[0], true, 0), 1, "the lock is free");
}

fn a_section_that_panics_wakes_whom_it_took_out<B: Backend>() {
    let sleepers = Sleepers::<B>::new(2);
    let tasks = [(); 2].map(|()| Probe::new());
    for (slot, task) in tasks.iter().enumerate() {
        sleepers.sleep(task, true, slot);
        // It finds the lock free.
        sleepers.entered_on(task, Event::Wake);
    }
    // A second panic is caught while the first unwinds.
    tasks[0].panic_again_on(Event::Wake);
    let message = panic_of(|| {
        sleepers.lock.with(|section| {
            let [first, second] = &mut section.state[..] else {
                unreachable!("two slots were made");
            };
            section.wakes.wake(first);
            section.wakes.wake(second);
            panic!("in a section");
        });
    });
    assert_eq!(message.as_deref(), Some("in a section"));
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 1]);
    assert_eq!(sleepers.registered(), [false, false]);
}

/// Sections on many threads, for the backends that allow it.
mod on_threads {
    use super::*;

    macro_rules! on_threads {
        ($($test:ident),* $(,)?) => { $(
            mod $test {
                use super::*;

                #[test]
                fn on_native() {
                    returns(stringify!($test), super::$test::<Native>);
                }

                #[test]
                fn on_spin() {
                    returns(stringify!($test), super::$test::<Spin>);
                }

                #[test]
                fn on_observed() {
                    returns(stringify!($test), super::$test::<Observed<Native, Unmoved>>);
                }
            }
        )* };
    }

    on_threads![
        sections_of_each_kind_add_up,
        a_section_is_never_seen_halfway,
        threads_behind_a_long_section_are_woken,
    ];

    const THREADS: usize = 4;

    fn sections_of_each_kind_add_up<B: SharedBackend>() {
        const ROUNDS: usize = 20_000;
        let lock = StateLock::<usize, B>::new_in(Bits::EMPTY, 0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        if round % 3 == 0 {
                            lock.with(|section| {
                                *section.bits = Bits::new(section.bits.get() + 1);
                                *section.state += 1;
                            });
                        } else {
                            lock.update(|bits| Some(Bits::new(bits.get() + 1)))
                                .expect("the bits are replaced");
                        }
                    }
                });
            }
        });
        let with_state = THREADS * ROUNDS.div_ceil(3);
        lock.with(|section| {
            assert_eq!(section.bits.get(), THREADS * ROUNDS);
            assert_eq!(*section.state, with_state);
        });
    }

    /// The bits say what the state is, in sections and between them. A `load` sees
    /// only what a section left.
    fn a_section_is_never_seen_halfway<B: SharedBackend>() {
        const ROUNDS: usize = 5_000;
        let lock = StateLock::<[usize; 4], B>::new_in(Bits::EMPTY, [0; 4]);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS - 1)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            lock.with(|section| {
                                let count = section.bits.get();
                                assert_eq!(*section.state, [count; 4]);
                                // It is odd, and so must never be seen.
                                *section.bits = Bits::new(count + 1);
                                for part in section.state.iter_mut() {
                                    *part += 2;
                                }
                                *section.bits = Bits::new(count + 2);
                            });
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let bits = lock.load().get();
                    assert!(bits.is_multiple_of(2) && bits >= last);
                    let bits = lock.update(|_| None).expect_err("nothing is replaced");
                    assert!(bits.get().is_multiple_of(2) && bits.get() >= last);
                    last = bits.get();
                }
            });
            for writer in writers {
                writer.join().expect("no assertion fails");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(lock.load().get(), 2 * (THREADS - 1) * ROUNDS);
    }

    /// Several threads sleep behind one section. The thread that ends it continues
    /// with sections on the bits alone, which must forget none of the others.
    fn threads_behind_a_long_section_are_woken<B: SharedBackend>() {
        const ROUNDS: usize = 20;
        for _ in 0..ROUNDS {
            let lock = StateLock::<usize, B>::new_in(Bits::EMPTY, 0);
            let inside = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        // They start once the section below has begun.
                        while inside.load(Ordering::Acquire) == 0 {
                            thread::yield_now();
                        }
                        lock.with(|section| *section.state += 1);
                        let _ = lock.update(|bits| Some(Bits::new(bits.get() + 1)));
                    });
                }
                lock.with(|section| {
                    inside.store(1, Ordering::Release);
                    // As long as it takes them to stop spinning and sleep.
                    thread::sleep(Duration::from_millis(5));
                    *section.state += 1;
                });
                for _ in 0..1_000 {
                    lock.update(|bits| Some(Bits::new(bits.get() + 1)))
                        .expect("the bits are replaced");
                }
            });
            lock.with(|section| {
                assert_eq!(*section.state, THREADS + 1);
                assert_eq!(section.bits.get(), THREADS + 1_000);
            });
        }
    }
}

/// What an observer is told, and when.
mod observed {
    use super::*;

    thread_local! {
        static TOLD: RefCell<Vec<Told>> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Told {
        Approach(Passage),
        Enter,
        Leave(Bits, Bits),
        Created,
        Dropped,
        /// The observer is not told: the test records it in the section itself.
        Within,
    }
    use Told::{Approach, Created, Dropped, Enter, Leave, Within};

    fn note(told: Told) {
        TOLD.with_borrow_mut(|notes| notes.push(told));
    }

    fn told() -> Vec<Told> {
        TOLD.take()
    }

    struct Notes;

    impl Observer for Notes {
        type Park = StdPark;
        type Visit = ();

        fn approach(_: usize, passage: Passage) {
            note(Approach(passage));
        }

        fn enter((): &mut ()) {
            note(Enter);
        }

        fn leave((): &mut (), before: Bits, after: Bits) {
            note(Leave(before, after));
        }

        fn created() {
            note(Created);
        }

        fn dropped() {
            note(Dropped);
        }
    }

    #[test]
    fn an_observer_is_told_of_each_section_in_order() {
        let lock = StateLock::<u32, Observed<Native, Notes>>::new_in(A, 1);
        assert_eq!(told(), [Created]);

        lock.with(|section| {
            note(Within);
            section.bits.insert(B);
        });
        let section = [Approach(Passage::With), Enter, Within, Leave(A, A | B)];
        assert_eq!(told(), section);

        assert_eq!(lock.load(), A | B);
        let section = [Approach(Passage::Load), Enter, Leave(A | B, A | B)];
        assert_eq!(told(), section);

        lock.update(|bits| Some(bits.without(B))).expect("replaced");
        let section = [Approach(Passage::Update), Enter, Leave(A | B, A)];
        assert_eq!(told(), section);

        lock.update(|_| None).expect_err("not replaced");
        let section = [Approach(Passage::Update), Enter, Leave(A, A)];
        assert_eq!(told(), section);

        panic_of(|| {
            lock.with(|section| {
                *section.bits = B;
                panic!("in a section");
            });
        })
        .expect("a panic");
        let [approach, enter, leave] = told()[..] else {
            panic!("a section that panics is one section");
        };
        assert_eq!((approach, enter), (Approach(Passage::With), Enter));
        assert!(matches!(leave, Leave(before, _) if before == A));

        drop(lock);
        assert_eq!(told(), [Dropped]);
    }
}

#[test]
fn a_lock_can_stand_in_a_constant() {
    static NATIVE: StateLock<u32, Native> = StateLock::<u32, Native>::const_new(A, 1);
    static SPIN: StateLock<u32, Spin> = StateLock::<u32, Spin>::const_new(A, 1);
    thread_local! {
        static LOCAL: StateLock<u32, Local> = const { StateLock::<u32, Local>::const_new(A, 1) };
    }

    NATIVE.with(|section| assert_eq!((*section.bits, *section.state), (A, 1)));
    SPIN.with(|section| assert_eq!((*section.bits, *section.state), (A, 1)));
    LOCAL.with(|lock| lock.with(|section| assert_eq!((*section.bits, *section.state), (A, 1))));
}

#[test]
fn bits_above_the_locks_share_are_refused() {
    assert_eq!(Bits::new(Bits::MAX).get(), Bits::MAX);
    let message = panic_of(|| assert_eq!(Bits::new(Bits::MAX + 1), A)).expect("a panic");
    assert!(message.contains("Bits::MAX"), "{message}");
}

#[test]
fn a_slot_says_whether_a_waker_is_registered() {
    assert!(!WakerSlot::new().is_registered());
    assert_eq!(format!("{:?}", WakerSlot::default()), "WakerSlot(empty)");
    let sleepers = Sleepers::<Native>::new(1);
    sleepers.sleep(&Probe::new(), true, 0);
    sleepers.lock.with(|section| {
        let slot = format!("{:?}", section.state[0]);
        assert_eq!(slot, "WakerSlot(registered)");
    });
}
