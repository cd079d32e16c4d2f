//! What `Lazy`, `OnceMap` and `singleflight::Group` promise, over every backend.

#![cfg(not(loom))]

mod support;

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::hash::{BuildHasherDefault, Hash, Hasher, RandomState};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::block_on;
use reveille::singleflight::Group;
use reveille::{Event, Lazy, OnceMap};

use support::probe::Probe;
use support::token::Token;
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    a_lazy_value_is_resumed_by_the_next_caller,
    a_waiter_resumes_what_a_dropped_caller_drove,
    an_initializer_that_panics_is_polled_again,
    a_function_that_panics_makes_every_caller_panic,
    a_destructor_of_the_initializer_that_panics_loses_no_value,
    a_lazy_value_names_itself_when_polled_again,
    a_map_computes_each_key_once_and_keeps_it,
    a_failure_leaves_no_key_behind,
    a_key_that_was_given_up_leaves_nothing_behind,
    the_next_call_takes_over,
    a_key_that_is_removed_while_it_is_computed_is_detached,
    a_group_forgets_what_it_has_computed,
    calls_of_a_group_share_one_computation,
    a_group_that_forgets_a_key_computes_beside,
    keys_of_one_hash_are_told_apart,
    keys_are_found_among_many_of_few_hashes,
    no_lock_is_held_while_foreign_code_runs,
    a_key_whose_comparison_panics_changes_nothing,
];

fn map<K, V, B: Backend>() -> OnceMap<K, V, RandomState, B> {
    OnceMap::with_hasher_in(RandomState::new())
}

fn group<K, V, B: Backend>() -> Group<K, V, RandomState, B> {
    Group::with_hasher_in(RandomState::new())
}

fn a_lazy_value_is_resumed_by_the_next_caller<B: Backend>() {
    let (first, second, task) = (Event::<B>::new_in(), Event::<B>::new_in(), Probe::new());
    let steps = RefCell::new(Vec::new());
    let lazy = Lazy::<_, _, _, B>::new_in(|| {
        steps.borrow_mut().push("started");
        async {
            first.wait().await;
            steps.borrow_mut().push("halfway");
            second.wait().await;
            7
        }
    });
    assert!(poll(&mut lazy.force(), &task).is_pending());
    assert_eq!(*steps.borrow(), ["started"]);
    first.set();
    assert!(poll(&mut lazy.force(), &task).is_pending());
    first.reset();
    second.set();
    assert_eq!(poll(&mut lazy.force(), &task), Poll::Ready(&7));
    assert_eq!(*steps.borrow(), ["started", "halfway"]);
    assert_eq!((lazy.get(), task.kept()), (Some(&7), 0));
}

fn a_waiter_resumes_what_a_dropped_caller_drove<B: Backend>() {
    let (event, first, second) = (Event::<B>::new_in(), Probe::new(), Probe::new());
    let lazy = Lazy::<_, _, _, B>::new_in(|| async {
        event.wait().await;
        7
    });
    let mut drives = lazy.force();
    let mut waits = lazy.force();
    assert!(poll(&mut drives, &first).is_pending());
    assert!(poll(&mut waits, &second).is_pending());
    assert_eq!((lazy.waiting(), lazy.granted()), (1, 0));
    drop(drives);
    assert_eq!((second.wakes(), lazy.granted()), (1, 1));
    // The event comes before the next caller drives the initializer.
    event.set();
    assert_eq!(poll(&mut waits, &second), Poll::Ready(&7));
    assert_eq!((first.kept(), second.kept()), (0, 0));
}

fn an_initializer_that_panics_is_polled_again<B: Backend>() {
    let (task, polls) = (Probe::new(), Cell::new(0));
    let lazy = Lazy::<_, _, _, B>::new_in(|| {
        std::future::poll_fn(|_| {
            polls.set(polls.get() + 1);
            assert!(polls.get() > 1, "the first poll fails");
            Poll::Ready(polls.get())
        })
    });
    let mut force = lazy.force();
    let message = panic_of(|| _ = poll(&mut force, &task));
    assert_eq!(message.as_deref(), Some("the first poll fails"));
    assert!(
        panic_of(|| _ = poll(&mut force, &task)).is_some(),
        "it has ended"
    );
    assert_eq!(poll(&mut lazy.force(), &task), Poll::Ready(&2));
}

fn a_function_that_panics_makes_every_caller_panic<B: Backend>() {
    let task = Probe::new();
    let fails = || -> std::future::Ready<u32> { panic!("it does not start") };
    let lazy = Lazy::<_, _, _, B>::new_in(fails);
    for message in [
        "it does not start",
        "the initializer of this Lazy panicked when it was started",
        "the initializer of this Lazy panicked when it was started",
    ] {
        let found = panic_of(|| _ = poll(&mut lazy.force(), &task));
        assert_eq!(found.as_deref(), Some(message));
    }
}

fn a_destructor_of_the_initializer_that_panics_loses_no_value<B: Backend>() {
    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the destructor fails");
        }
    }

    let task = Probe::new();
    let lazy = Lazy::<_, _, _, B>::new_in(|| {
        let panics = Panics;
        std::future::poll_fn(move |_| {
            let _ = &panics;
            Poll::Ready(7)
        })
    });
    assert!(panic_of(|| _ = poll(&mut lazy.force(), &task)).is_some());
    assert_eq!(poll(&mut lazy.force(), &task), Poll::Ready(&7));
}

fn a_lazy_value_names_itself_when_polled_again<B: Backend>() {
    let task = Probe::new();
    let lazy = Lazy::<_, _, _, B>::new_in(|| ready(7));
    let mut force = lazy.force();
    assert!(format!("{force:?}").contains("Created"));
    assert!(poll(&mut force, &task).is_ready());
    let message = panic_of(|| _ = poll(&mut force, &task));
    assert_eq!(
        message.as_deref(),
        Some("Lazy::force polled after it was ready")
    );
    let text = format!("{lazy:?}");
    assert!(
        text.starts_with("Lazy { value: Some(7), driven: false"),
        "{text}"
    );
}

fn a_map_computes_each_key_once_and_keeps_it<B: Backend>() {
    let (map, task) = (map::<&str, u32, B>(), Probe::new());
    assert_eq!(
        poll(&mut map.get_or_init("a", || ready(7)), &task),
        Poll::Ready(7)
    );
    assert_eq!(
        poll(&mut map.get_or_init("a", || ready(8)), &task),
        Poll::Ready(7)
    );
    assert_eq!(
        poll(&mut map.get_or_init("b", || ready(8)), &task),
        Poll::Ready(8)
    );
    assert_eq!(
        (map.get("a"), map.get("b"), map.get("c")),
        (Some(7), Some(8), None)
    );
    assert_eq!(
        (map.len(), map.remove("a"), map.remove("a")),
        (2, Some(7), None)
    );
    assert_eq!(
        poll(&mut map.get_or_init("a", || ready(9)), &task),
        Poll::Ready(9)
    );
    assert!(format!("{map:?}").starts_with("OnceMap { len: 2"));
}

fn a_failure_leaves_no_key_behind<B: Backend>() {
    let (map, task) = (map::<&str, u32, B>(), Probe::new());
    let mut fails = map.get_or_try_init("a", || ready(Err("fails")));
    assert_eq!(poll(&mut fails, &task), Poll::Ready(Err("fails")));
    assert!(map.is_empty());
    let mut works = map.get_or_try_init("a", || ready(Ok::<_, ()>(7)));
    assert_eq!(poll(&mut works, &task), Poll::Ready(Ok(7)));
    let panics = panic_of(|| {
        let f = || -> std::future::Ready<u32> { panic!("the function fails") };
        _ = poll(&mut map.get_or_init("b", f), &task);
    });
    assert_eq!(panics.as_deref(), Some("the function fails"));
    assert_eq!(map.len(), 1);
}

fn a_key_that_was_given_up_leaves_nothing_behind<B: Backend>() {
    let (map, group, task) = (map::<_, u32, B>(), group::<_, u32, B>(), Probe::new());
    for key in 0..100 {
        assert!(poll(&mut map.get_or_init(key, pending), &task).is_pending());
        assert!(poll(&mut group.work(key, pending), &task).is_pending());
        drop(map.get_or_init(key, pending));
    }
    assert_eq!((map.len(), group.len(), task.kept()), (0, 0, 0));
    // A call that waits for another one keeps the key until both are gone.
    let mut first = map.get_or_init(7, pending);
    let mut second = map.get_or_init(7, pending);
    assert!(poll(&mut first, &task).is_pending());
    assert!(poll(&mut second, &task).is_pending());
    drop(first);
    assert_eq!(map.len(), 1);
    drop(second);
    assert!(map.is_empty());
}

fn the_next_call_takes_over<B: Backend>() {
    let map = map::<_, u32, B>();
    let (first, second, third) = (Probe::new(), Probe::new(), Probe::new());
    let mut computes = map.get_or_init("a", pending);
    let mut next = map.get_or_init("a", || ready(8));
    let mut last = map.get_or_init("a", || ready(9));
    assert!(poll(&mut computes, &first).is_pending());
    assert!(poll(&mut next, &second).is_pending());
    assert!(poll(&mut last, &third).is_pending());
    drop(computes);
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    // It is dropped after it was woken, so the last one takes over.
    drop(next);
    assert_eq!(third.wakes(), 1);
    assert_eq!(poll(&mut last, &third), Poll::Ready(9));
    assert_eq!(map.get("a"), Some(9));
}

fn a_key_that_is_removed_while_it_is_computed_is_detached<B: Backend>() {
    let (map, task, event) = (map::<_, u32, B>(), Probe::new(), Event::<B>::new_in());
    let compute = || async {
        event.wait().await;
        7
    };
    let mut first = map.get_or_init("a", compute);
    let mut second = map.get_or_init("a", || ready(8));
    assert!(poll(&mut first, &task).is_pending());
    assert!(poll(&mut second, &task).is_pending());
    assert_eq!((map.remove("a"), map.len()), (None, 0));
    assert_eq!(
        poll(&mut map.get_or_init("a", || ready(9)), &task),
        Poll::Ready(9)
    );
    event.set();
    assert_eq!(poll(&mut first, &task), Poll::Ready(7));
    assert_eq!(poll(&mut second, &task), Poll::Ready(7));
    assert_eq!((map.get("a"), map.len()), (Some(9), 1));
}

fn a_group_forgets_what_it_has_computed<B: Backend>() {
    let (group, task) = (group::<_, u32, B>(), Probe::new());
    for value in [7, 8] {
        assert_eq!(
            poll(&mut group.work("a", || ready(value)), &task),
            Poll::Ready(value)
        );
        assert!(group.is_empty());
    }
    let mut fails = group.try_work("a", || ready(Err("fails")));
    assert_eq!(poll(&mut fails, &task), Poll::Ready(Err("fails")));
    let mut works = group.try_work("a", || ready(Ok::<_, ()>(9)));
    assert_eq!(poll(&mut works, &task), Poll::Ready(Ok(9)));
    assert!(group.is_empty());
    let message = panic_of(|| _ = poll(&mut works, &task));
    assert_eq!(
        message.as_deref(),
        Some("Group::try_work polled after it was ready")
    );
}

fn calls_of_a_group_share_one_computation<B: Backend>() {
    let (group, task, event) = (
        group::<_, Rc<Token>, B>(),
        Probe::new(),
        Event::<B>::new_in(),
    );
    let mut first = group.work("a", || async {
        event.wait().await;
        Rc::new(Token::new(7))
    });
    let unused = || ready(Rc::new(Token::new(8)));
    let mut others = [group.work("a", unused), group.work("a", unused)];
    assert!(poll(&mut first, &task).is_pending());
    for other in &mut others {
        assert!(poll(other, &task).is_pending());
    }
    event.set();
    let Poll::Ready(value) = poll(&mut first, &task) else {
        panic!("the event is set");
    };
    assert!(group.is_empty(), "a later call computes anew");
    for other in &mut others {
        assert!(matches!(poll(other, &task), Poll::Ready(same) if Rc::ptr_eq(&same, &value)));
    }
    drop(value);
    assert_eq!(Token::alive(), 0);
}

fn a_group_that_forgets_a_key_computes_beside<B: Backend>() {
    let (group, task, event) = (group::<_, u32, B>(), Probe::new(), Event::<B>::new_in());
    let mut first = group.work("a", || async {
        event.wait().await;
        7
    });
    assert!(poll(&mut first, &task).is_pending());
    assert!(group.forget("a") && !group.forget("a"));
    assert_eq!(
        poll(&mut group.work("a", || ready(8)), &task),
        Poll::Ready(8)
    );
    event.set();
    assert_eq!(poll(&mut first, &task), Poll::Ready(7));
}

/// Hashes everything to 0.
#[derive(Default)]
struct Collides;

impl Hasher for Collides {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        0
    }
}

fn keys_of_one_hash_are_told_apart<B: Backend>() {
    let task = Probe::new();
    let map = OnceMap::<_, _, _, B>::with_hasher_in(BuildHasherDefault::<Collides>::default());
    for key in 0..5 {
        assert_eq!(
            poll(&mut map.get_or_init(key, || ready(key)), &task),
            Poll::Ready(key)
        );
    }
    for key in [2, 0, 4] {
        assert_eq!(map.remove(&key), Some(key));
    }
    assert_eq!(map.len(), 2);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|key| map.get(&key)),
        [None, Some(1), None, Some(3), None]
    );
}

/// Hashes a `u32` to one of few numbers.
#[derive(Default)]
struct Few(u64);

impl Hasher for Few {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = u64::from(bytes[0]) % 23;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn keys_are_found_among_many_of_few_hashes<B: Backend>() {
    let task = Probe::new();
    let map = OnceMap::<u32, u32, _, B>::with_hasher_in(BuildHasherDefault::<Few>::default());
    let mut expected = std::collections::BTreeMap::new();
    let mut random = 7_u32;
    for step in 0..4_000_u32 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let key = (random >> 16) % 300;
        // It grows, and shrinks again.
        let removes = (random >> 8) % 4 < if step < 2_000 { 1 } else { 3 };
        if removes {
            assert_eq!(map.remove(&key), expected.remove(&key));
        } else {
            let value = *expected.entry(key).or_insert(step);
            let mut call = map.get_or_init(key, || ready(step));
            assert_eq!(poll(&mut call, &task), Poll::Ready(value));
        }
        assert_eq!(map.len(), expected.len());
    }
    for key in 0..300 {
        assert_eq!(map.get(&key), expected.remove(&key));
    }
    assert!(expected.is_empty());
}

fn no_lock_is_held_while_foreign_code_runs<B: Backend>() {
    thread_local! {
        /// The map whose keys and values re-enter it.
        static AGAIN: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    }

    /// A key, or a value, that uses its map whenever its own code runs.
    struct Foreign(u32);

    fn again() {
        // Taken out, so that it does not recur without end.
        if let Some(again) = AGAIN.take() {
            again();
            AGAIN.set(Some(again));
        }
    }

    impl Hash for Foreign {
        fn hash<H: Hasher>(&self, state: &mut H) {
            again();
            // All keys collide.
            0.hash(state);
        }
    }

    impl PartialEq for Foreign {
        fn eq(&self, other: &Self) -> bool {
            again();
            self.0 == other.0
        }
    }

    impl Eq for Foreign {}

    impl Clone for Foreign {
        fn clone(&self) -> Self {
            again();
            Self(self.0)
        }
    }

    impl Drop for Foreign {
        fn drop(&mut self) {
            again();
        }
    }

    let map: Rc<OnceMap<Foreign, Foreign, RandomState, B>> = Rc::new(map());
    let weak = Rc::downgrade(&map);
    let calls = Rc::new(Cell::new(0));
    let counts = calls.clone();
    AGAIN.set(Some(Rc::new(move || {
        if let Some(map) = weak.upgrade() {
            counts.set(counts.get() + 1);
            let _ = map.len();
            let _ = poll(
                &mut map.get_or_init(Foreign(3), || ready(Foreign(3))),
                &Probe::new(),
            );
            drop(map.remove(&Foreign(3)));
        }
    })));
    for key in [1, 2, 1, 2] {
        let mut call = map.get_or_init(Foreign(key), || ready(Foreign(key)));
        assert!(poll(&mut call, &Probe::new()).is_ready());
    }
    assert!(map.get(&Foreign(1)).is_some());
    assert!(map.remove(&Foreign(1)).is_some());
    assert!(calls.get() > 10, "{}", calls.get());
    AGAIN.set(None);
}

fn a_key_whose_comparison_panics_changes_nothing<B: Backend>() {
    #[derive(Clone)]
    struct Key(Rc<Cell<bool>>);

    impl Hash for Key {
        fn hash<H: Hasher>(&self, _: &mut H) {}
    }

    impl PartialEq for Key {
        fn eq(&self, _: &Self) -> bool {
            assert!(!self.0.get(), "the comparison fails");
            true
        }
    }

    impl Eq for Key {}

    let (map, task, key) = (map::<Key, u32, B>(), Probe::new(), Key(Rc::default()));
    let mut call = map.get_or_init(key.clone(), || ready(7));
    assert!(poll(&mut call, &task).is_ready());
    key.0.set(true);
    assert!(panic_of(|| _ = map.get(&key)).is_some());
    let mut call = map.get_or_init(key.clone(), || ready(8));
    assert!(panic_of(|| _ = poll(&mut call, &task)).is_some());
    key.0.set(false);
    assert_eq!((map.len(), map.get(&key)), (1, Some(7)));
}

#[test]
fn threads_compute_each_key_once() {
    let map = OnceMap::new();
    let calls = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for key in 0..100_usize {
                    let value = block_on::<Native, _>(map.get_or_init(key, || async {
                        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        key * 2
                    }));
                    assert_eq!(value, key * 2);
                }
            });
        }
    });
    assert_eq!((calls.into_inner(), map.len()), (100, 100));
}

#[test]
fn a_lazy_value_can_be_shared_by_threads() {
    let lazy = Arc::new(Lazy::new(|| async { 7 }));
    let threads = [(); 4].map(|()| {
        let lazy = lazy.clone();
        thread::spawn(move || *block_on::<Native, _>(pin!(lazy.force())))
    });
    assert_eq!(threads.map(|thread| thread.join().unwrap()), [7; 4]);
}
