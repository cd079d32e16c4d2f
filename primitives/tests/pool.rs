//! What `Pool` promises, over every backend.

#![cfg(not(loom))]

mod support;

use std::cell::Cell;
use std::future::{pending, ready};
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::block_on;
use reveille::{GetError, Pool};

use support::probe::{Event, Probe};
use support::token::Token;
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    an_object_is_created_once_and_used_again,
    a_call_waits_until_an_object_comes_back,
    an_object_goes_to_the_call_that_waited_longest,
    a_call_that_is_dropped_after_it_was_served_passes_the_object_on,
    a_call_that_is_dropped_with_a_place_passes_it_on,
    a_creation_that_fails_gives_its_place_back,
    a_creation_that_is_dropped_or_panics_gives_its_place_back,
    an_object_that_the_check_refuses_is_dropped,
    an_object_whose_check_panics_is_dropped_and_its_place_given_back,
    an_object_that_is_detached_gives_its_place_back,
    a_pool_that_is_closed_refuses_and_drops_what_comes_back,
    an_unbounded_pool_creates_whenever_it_is_empty,
    a_waker_that_panics_loses_no_object,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

type Check = fn(&mut Token) -> bool;

fn pool<B: Backend>(max_size: usize) -> Pool<Token, Check, B> {
    Pool::with_check_in(max_size, |_| true)
}

fn create(value: u32) -> impl FnOnce() -> std::future::Ready<Result<Token, &'static str>> {
    move || ready(Ok(Token::new(value)))
}

macro_rules! got {
    ($get:expr, $task:expr) => {
        match poll(&mut $get, $task) {
            Poll::Ready(Ok(object)) => object,
            other => panic!("no object: {other:?}"),
        }
    };
}

fn an_object_is_created_once_and_used_again<B: Backend>() {
    let (pool, task) = (pool::<B>(2), Probe::new());
    assert!(pool.try_get().is_none());
    let object = got!(pool.get(create(1)), &task);
    assert_eq!((object.0, pool.size(), pool.idle()), (1, 1, 0));
    drop(object);
    assert_eq!((pool.size(), pool.idle()), (1, 1));
    let object = got!(pool.get(create(2)), &task);
    assert_eq!(object.0, 1);
    drop(object);
    assert_eq!(pool.try_get().map(|object| object.0), Some(1));
    drop(pool);
    assert_eq!(Token::alive(), 0);
}

fn a_call_waits_until_an_object_comes_back<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let object = got!(pool.get(create(1)), &task);
    let mut get = pool.get(create(2));
    assert!(poll(&mut get, &task).is_pending());
    assert_eq!((pool.waiting(), pool.granted()), (1, 0));
    drop(object);
    assert_eq!((pool.waiting(), pool.granted(), pool.idle()), (0, 1, 0));
    assert!(
        pool.try_get().is_none(),
        "it belongs to the call that waited"
    );
    assert_eq!(got!(get, &task).0, 1);
    assert_eq!((task.wakes(), task.kept()), (1, 0));
}

fn an_object_goes_to_the_call_that_waited_longest<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let object = got!(pool.get(create(1)), &task);
    let tasks = [Probe::new(), Probe::new()];
    let mut gets = [pool.get(create(2)), pool.get(create(3))];
    for (get, task) in gets.iter_mut().zip(&tasks) {
        assert!(poll(get, task).is_pending());
    }
    drop(object);
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 0]);
    assert!(
        poll(&mut pool.get(create(4)), &task).is_pending(),
        "it queues"
    );
    let [mut first, mut second] = gets;
    drop(got!(first, &tasks[0]));
    assert_eq!(tasks[1].wakes(), 1);
    drop(got!(second, &tasks[1]));
    assert_eq!(pool.idle(), 1);
}

fn a_call_that_is_dropped_after_it_was_served_passes_the_object_on<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let object = got!(pool.get(create(1)), &task);
    let (mut first, mut second) = (pool.get(create(2)), pool.get(create(3)));
    assert!(poll(&mut first, &task).is_pending());
    assert!(poll(&mut second, &task).is_pending());
    drop(object);
    drop(first);
    assert_eq!((task.wakes(), pool.granted()), (2, 1));
    assert_eq!(got!(second, &task).0, 1);
    assert_eq!((pool.idle(), pool.size()), (1, 1));
}

fn a_call_that_is_dropped_with_a_place_passes_it_on<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let mut creates = pool.get(pending::<Result<_, &str>>);
    assert!(poll(&mut creates, &task).is_pending());
    let (mut first, mut second) = (pool.get(create(2)), pool.get(create(3)));
    assert!(poll(&mut first, &task).is_pending());
    assert!(poll(&mut second, &task).is_pending());
    drop(creates);
    assert_eq!((task.wakes(), pool.granted(), pool.size()), (1, 1, 1));
    drop(first);
    assert_eq!(got!(second, &task).0, 3);
}

fn a_creation_that_fails_gives_its_place_back<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let mut fails = pool.get(|| ready(Err("fails")));
    assert!(matches!(
        poll(&mut fails, &task),
        Poll::Ready(Err(GetError::Create("fails")))
    ));
    assert_eq!(pool.size(), 0);
    assert_eq!(
        GetError::Create("fails").to_string(),
        "an object for the pool cannot be created: fails"
    );
}

fn a_creation_that_is_dropped_or_panics_gives_its_place_back<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    assert!(poll(&mut pool.get(pending::<Result<_, &str>>), &task).is_pending());
    assert_eq!(pool.size(), 0);
    let fails = || -> std::future::Ready<Result<Token, ()>> { panic!("it is not created") };
    assert!(panic_of(|| _ = poll(&mut pool.get(fails), &task)).is_some());
    assert_eq!(pool.size(), 0);
}

fn an_object_that_the_check_refuses_is_dropped<B: Backend>() {
    let task = Probe::new();
    let check: Check = |token| {
        token.0 += 1;
        token.0 < 3
    };
    let pool = Pool::<_, _, B>::with_check_in(1, check);
    drop(got!(pool.get(create(1)), &task));
    assert_eq!((pool.idle(), Token::alive()), (1, 1));
    let object = got!(pool.get(create(7)), &task);
    let mut get = pool.get(create(8));
    assert!(poll(&mut get, &task).is_pending());
    drop(object);
    assert_eq!((pool.idle(), pool.size(), Token::alive()), (0, 1, 0));
    assert_eq!(got!(get, &task).0, 8, "it has the place");
}

fn an_object_whose_check_panics_is_dropped_and_its_place_given_back<B: Backend>() {
    let task = Probe::new();
    let check: Check = |token| {
        assert!(token.0 != 1, "the check fails");
        true
    };
    let pool = Pool::<_, _, B>::with_check_in(1, check);
    let object = got!(pool.get(create(1)), &task);
    let mut get = pool.get(create(2));
    assert!(poll(&mut get, &task).is_pending());
    let message = panic_of(|| drop(object));
    assert_eq!(message.as_deref(), Some("the check fails"));
    assert_eq!((Token::alive(), task.wakes(), pool.size()), (0, 1, 1));
    assert_eq!(got!(get, &task).0, 2);
}

fn an_object_that_is_detached_gives_its_place_back<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let object = got!(pool.get(create(1)), &task);
    let mut get = pool.get(create(2));
    assert!(poll(&mut get, &task).is_pending());
    let detached = object.detach();
    assert_eq!((detached.0, Token::alive()), (1, 1));
    assert_eq!(got!(get, &task).0, 2);
}

fn a_pool_that_is_closed_refuses_and_drops_what_comes_back<B: Backend>() {
    let (pool, task) = (pool::<B>(2), Probe::new());
    let (object, other) = (
        got!(pool.get(create(1)), &task),
        got!(pool.get(create(2)), &task),
    );
    let mut get = pool.get(create(3));
    assert!(poll(&mut get, &task).is_pending());
    let mut served = pool.get(create(4));
    drop(other);
    assert!(poll(&mut served, &task).is_pending());
    drop(get);
    assert_eq!(pool.granted(), 1);
    pool.close();
    pool.close();
    assert!(pool.is_closed());
    assert!(matches!(
        poll(&mut pool.get(create(5)), &task),
        Poll::Ready(Err(GetError::Closed))
    ));
    // It was served before the pool was closed.
    drop(got!(served, &task));
    drop(object);
    assert_eq!((pool.size(), pool.idle(), Token::alive()), (0, 0, 0));
}

fn an_unbounded_pool_creates_whenever_it_is_empty<B: Backend>() {
    let (pool, task) = (pool::<B>(usize::MAX), Probe::new());
    let objects: Vec<_> = (0..100).map(|n| got!(pool.get(create(n)), &task)).collect();
    assert_eq!((pool.size(), pool.waiting()), (100, 0));
    drop(objects);
    assert_eq!(pool.idle(), 100);
    assert_eq!(Pool::<u32>::unbounded().max_size(), usize::MAX);
}

fn a_waker_that_panics_loses_no_object<B: Backend>() {
    let (pool, bad, good) = (pool::<B>(1), Probe::new(), Probe::new());
    let object = got!(pool.get(create(1)), &good);
    let mut get = pool.get(create(2));
    assert!(poll(&mut get, &bad).is_pending());
    bad.panic_on(Event::Wake);
    assert!(panic_of(|| drop(object)).is_some());
    assert_eq!((Token::alive(), pool.granted()), (1, 1));
    // A clone that is dropped after the section has taken the object.
    drop(got!(get, &good));
    let mut get = pool.get(create(3));
    bad.panic_on(Event::Drop);
    assert!(panic_of(|| _ = poll(&mut get, &bad)).is_some());
    assert_eq!((pool.idle(), Token::alive()), (1, 1));
    assert_eq!(got!(get, &good).0, 1);
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    let mut get = pool.get(create(1));
    drop(got!(get, &task));
    let message = panic_of(|| _ = poll(&mut get, &task));
    assert_eq!(
        message.as_deref(),
        Some("Pool::get polled after it was ready")
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (pool, task) = (pool::<B>(1), Probe::new());
    assert!(format!("{:?}", pool.get(create(1))).contains("Created"));
    let object = got!(pool.get(create(1)), &task);
    let text = format!("{pool:?}");
    let known = "Pool { max_size: 1, size: 1, idle: 0, closed: false, waiting: 0, granted: 0";
    assert!(text.starts_with(known), "{text}");
    assert!(format!("{object:?}").starts_with("Pooled("));
}

#[test]
fn threads_share_a_few_objects() {
    let pool = Arc::new(Pool::new(2));
    let created = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let threads = [(); 4].map(|()| {
        let (pool, created) = (pool.clone(), created.clone());
        thread::spawn(move || {
            for _ in 0..200 {
                let create = || async {
                    created.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    Ok::<_, ()>(Cell::new(0))
                };
                let object = block_on::<Native, _>(pool.clone().get_owned(create)).unwrap();
                object.set(object.get() + 1);
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    let created = created.load(std::sync::atomic::Ordering::Relaxed);
    assert!(created <= 2, "{created}");
    assert_eq!((pool.size(), pool.idle()), (created, created));
    let mut sum = 0;
    while let Some(object) = pool.try_get() {
        sum += object.detach().get();
    }
    assert_eq!(sum, 800);
}
