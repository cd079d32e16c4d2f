//! What `reveille::Barrier` promises: the semantics of `tokio::sync::Barrier`
//! over every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::mem::size_of;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::{WakeList, block_on};
use reveille::{Barrier, BarrierWait, BarrierWaitResult};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    one_for_none_stops_no_task,
    one_for_one_stops_no_task,
    two_go_on_when_both_are_there,
    a_hundred_meet_ten_times,
    a_task_arrives_at_its_first_poll,
    an_arrival_that_is_dropped_is_withdrawn,
    an_arrival_that_was_notified_is_not_withdrawn,
    a_later_wait_belongs_to_the_next_generation,
    a_wait_begun_within_a_wake_belongs_to_the_next_generation,
    notified_waiters_do_not_hold_up_the_next_generation,
    a_leaked_arrival_is_not_withdrawn,
    the_wait_can_change_its_task,
    a_waker_that_panics_costs_no_other_the_wake,
    a_clone_that_panics_leaves_an_arrival_that_can_be_withdrawn,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

/// Polls the wait. Returns whether it is the leader, if it is ready.
fn leads<B: Backend>(wait: &mut BarrierWait<'_, B>, task: &Probe) -> Poll<bool> {
    poll(wait, task).map(|result| result.is_leader())
}

fn one_for_none_stops_no_task<B: Backend>() {
    let barrier = Barrier::<B>::new_in(0);
    for _ in 0..2 {
        assert_eq!(leads(&mut barrier.wait(), &Probe::new()), Poll::Ready(true));
    }
}

fn one_for_one_stops_no_task<B: Backend>() {
    let task = Probe::new();
    let barrier = Barrier::<B>::new_in(1);
    for _ in 0..3 {
        assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
    }
    assert_eq!((task.clones(), barrier.waiting()), (0, 0));
}

fn two_go_on_when_both_are_there<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let barrier = Barrier::<B>::new_in(2);
    let mut waits = (barrier.wait(), barrier.wait());
    assert_eq!(leads(&mut waits.0, &first), Poll::Pending);
    assert_eq!(leads(&mut waits.1, &second), Poll::Ready(true));
    assert_eq!((first.wakes(), first.kept(), second.clones()), (1, 0, 0));
    assert_eq!(leads(&mut waits.0, &first), Poll::Ready(false));
}

fn a_hundred_meet_ten_times<B: Backend>() {
    const N: usize = 100;
    const { assert!(N > 3 * WakeList::CAPACITY) };
    let barrier = Barrier::<B>::new_in(N);
    for _ in 0..10 {
        let task = Probe::new();
        let mut waits: Vec<_> = (1..N).map(|_| barrier.wait()).collect();
        for _ in 0..2 {
            for wait in &mut waits {
                assert_eq!(leads(wait, &task), Poll::Pending);
            }
        }
        assert_eq!(barrier.waiting(), N - 1);
        assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
        assert_eq!((task.wakes(), task.kept()), (N - 1, 0));
        assert_eq!((barrier.waiting(), barrier.granted()), (0, N - 1));
        for wait in &mut waits {
            assert_eq!(leads(wait, &task), Poll::Ready(false));
        }
        assert_eq!(barrier.granted(), 0);
    }
}

fn a_task_arrives_at_its_first_poll<B: Backend>() {
    let task = Probe::new();
    let barrier = Barrier::<B>::new_in(2);
    let (mut early, mut late) = (barrier.wait(), barrier.wait());
    assert_eq!(barrier.waiting(), 0);
    assert_eq!(leads(&mut late, &task), Poll::Pending);
    assert_eq!(barrier.waiting(), 1);
    assert_eq!(leads(&mut early, &task), Poll::Ready(true));
}

fn an_arrival_that_is_dropped_is_withdrawn<B: Backend>() {
    let (gone, stays) = (Probe::new(), Probe::new());
    let barrier = Barrier::<B>::new_in(2);
    drop(barrier.wait());
    for _ in 0..3 {
        let mut wait = barrier.wait();
        assert_eq!(leads(&mut wait, &gone), Poll::Pending);
        drop(wait);
        assert_eq!((barrier.waiting(), gone.kept()), (0, 0));
    }
    let mut wait = barrier.wait();
    assert_eq!(leads(&mut wait, &stays), Poll::Pending);
    assert_eq!(leads(&mut barrier.wait(), &stays), Poll::Ready(true));
    assert_eq!((gone.wakes(), stays.wakes()), (0, 1));
}

fn an_arrival_that_was_notified_is_not_withdrawn<B: Backend>() {
    let task = Probe::new();
    let barrier = Barrier::<B>::new_in(2);
    let mut wait = barrier.wait();
    assert_eq!(leads(&mut wait, &task), Poll::Pending);
    assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
    drop(wait);
    assert_eq!((barrier.waiting(), barrier.granted()), (0, 0));
    assert_eq!(leads(&mut barrier.wait(), &task), Poll::Pending);
}

fn a_later_wait_belongs_to_the_next_generation<B: Backend>() {
    let task = Probe::new();
    let barrier = Barrier::<B>::new_in(2);
    let mut waits = [barrier.wait(), barrier.wait(), barrier.wait()];
    assert_eq!(leads(&mut waits[0], &task), Poll::Pending);
    assert_eq!(leads(&mut waits[1], &task), Poll::Ready(true));
    assert_eq!(leads(&mut waits[2], &task), Poll::Pending);
    assert_eq!(leads(&mut waits[0], &task), Poll::Ready(false));
    assert_eq!(leads(&mut waits[2], &task), Poll::Pending);
    assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
    assert_eq!(leads(&mut waits[2], &task), Poll::Ready(false));
}

/// The wakers of one generation are not all taken out in one section. A task that
/// arrives while the first are woken must not be notified with the last.
fn a_wait_begun_within_a_wake_belongs_to_the_next_generation<B: Backend>() {
    const N: usize = WakeList::CAPACITY * 2;
    let task = Probe::new();
    let newcomer = Rc::new(Probe::new());
    let barrier: &'static Barrier<B> = Box::leak(Box::new(Barrier::new_in(N)));
    let mut waits: Vec<_> = (1..N).map(|_| barrier.wait()).collect();
    for wait in &mut waits {
        assert_eq!(leads(wait, &task), Poll::Pending);
    }
    let arrived = Rc::new(std::cell::RefCell::new(barrier.wait()));
    task.on(Event::Wake, {
        let (arrived, newcomer) = (arrived.clone(), newcomer.clone());
        move || assert_eq!(leads(&mut arrived.borrow_mut(), &newcomer), Poll::Pending)
    });
    assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
    assert_eq!((task.wakes(), newcomer.wakes()), (N - 1, 0));
    assert_eq!((barrier.waiting(), barrier.granted()), (1, N - 1));
    assert_eq!(leads(&mut arrived.borrow_mut(), &newcomer), Poll::Pending);
}

fn notified_waiters_do_not_hold_up_the_next_generation<B: Backend>() {
    let task = Probe::new();
    let barrier = Barrier::<B>::new_in(2);
    let mut unpolled = Vec::new();
    for _ in 0..5 {
        let mut wait = barrier.wait();
        assert_eq!(leads(&mut wait, &task), Poll::Pending);
        assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
        unpolled.push(wait);
    }
    assert_eq!((barrier.waiting(), barrier.granted()), (0, 5));
    for wait in &mut unpolled {
        assert_eq!(leads(wait, &task), Poll::Ready(false));
    }
}

fn a_leaked_arrival_is_not_withdrawn<B: Backend>() {
    let task = Probe::new();
    let barrier = Barrier::<B>::new_in(2);
    let mut leaked = barrier.wait();
    assert_eq!(leads(&mut leaked, &task), Poll::Pending);
    std::mem::forget(leaked);
    assert_eq!(barrier.waiting(), 1);
    assert_eq!(leads(&mut barrier.wait(), &task), Poll::Ready(true));
}

fn the_wait_can_change_its_task<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let barrier = Barrier::<B>::new_in(2);
    let mut wait = barrier.wait();
    assert_eq!(leads(&mut wait, &first), Poll::Pending);
    assert_eq!(leads(&mut wait, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept(), barrier.waiting()), (0, 1, 1));
    assert_eq!(leads(&mut barrier.wait(), &first), Poll::Ready(true));
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_waker_that_panics_costs_no_other_the_wake<B: Backend>() {
    let tasks: Vec<Probe> = (0..WakeList::CAPACITY * 2).map(|_| Probe::new()).collect();
    let barrier = Barrier::<B>::new_in(tasks.len() + 1);
    let mut waits: Vec<_> = tasks.iter().map(|_| barrier.wait()).collect();
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(leads(wait, task), Poll::Pending);
    }
    tasks[3].panic_on(Event::Wake);
    let mut last = barrier.wait();
    let message = panic_of(|| {
        let _ = leads(&mut last, &Probe::new());
    });
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(leads(wait, task), Poll::Ready(false));
    }
}

fn a_clone_that_panics_leaves_an_arrival_that_can_be_withdrawn<B: Backend>() {
    let (bad, good) = (Probe::new(), Probe::new());
    let barrier = Barrier::<B>::new_in(2);
    let mut wait = barrier.wait();
    bad.panic_on(Event::Clone);
    assert!(
        panic_of(|| {
            let _ = leads(&mut wait, &bad);
        })
        .is_some()
    );
    assert_eq!(leads(&mut wait, &good), Poll::Pending);
    assert_eq!(barrier.waiting(), 1);
    drop(wait);
    assert_eq!(leads(&mut barrier.wait(), &good), Poll::Pending);
    assert_eq!(barrier.waiting(), 0);
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    let barrier = Barrier::<B>::new_in(1);
    let mut wait = barrier.wait();
    assert_eq!(leads(&mut wait, &Probe::new()), Poll::Ready(true));
    let message = panic_of(|| {
        let _ = leads(&mut wait, &Probe::new());
    });
    assert_eq!(
        message.as_deref(),
        Some("Barrier::wait polled after it was ready")
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let barrier = Barrier::<B>::new_in(2);
    let mut wait = barrier.wait();
    assert_eq!(leads(&mut wait, &Probe::new()), Poll::Pending);
    assert_eq!(
        format!("{barrier:?}"),
        "Barrier { n: 2, waiting: 1, granted: 0 }"
    );
}

#[test]
fn threads_meet_and_one_of_them_leads() {
    const N: usize = 4;
    const ROUNDS: usize = 200;
    static BARRIER: Barrier = Barrier::new(N);
    let (arrived, leaders) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..N {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    arrived.fetch_add(1, Ordering::Relaxed);
                    let result = block_on::<Native, _>(BARRIER.wait());
                    assert!(
                        arrived.load(Ordering::Relaxed) >= round * N,
                        "all were there"
                    );
                    leaders.fetch_add(usize::from(result.is_leader()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(leaders.into_inner(), ROUNDS);
    assert_eq!((BARRIER.waiting(), BARRIER.granted()), (0, 0));
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    const fn unpin<T: Unpin>() {}
    const fn threads<T: Send + Sync>() {}
    unpin::<BarrierWait<'_>>();
    threads::<Barrier>();
    threads::<BarrierWait<'_>>();
    threads::<BarrierWaitResult>();
    // Besides where it was called, if that is kept.
    let location = size_of::<reveille::protocol::CallerLocation>();
    assert!(size_of::<BarrierWait<'_>>() - location <= 2 * size_of::<usize>());
}
