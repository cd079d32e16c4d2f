//! What `Shutdown` promises, over every backend.

#![cfg(not(loom))]

mod support;

use std::thread;
use std::time::Duration;

use reveille::Shutdown;
use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::block_on;
use reveille::time::VirtualClock;

use support::probe::Probe;
use support::{on_every_backend, poll};

on_every_backend![
    a_wait_ends_once_it_is_requested_and_no_guard_is_left,
    a_wait_without_guards_waits_for_the_request,
    a_clone_of_a_guard_is_another_guard,
    a_guard_is_told_of_the_request,
    a_wait_that_is_dropped_leaves_nothing,
    debug_output_names_what_is_known,
];

fn a_wait_ends_once_it_is_requested_and_no_guard_is_left<B: Backend>() {
    let (shutdown, task) = (Shutdown::<B>::new_in(), Probe::new());
    let guard = shutdown.guard();
    let mut wait = shutdown.wait();
    assert!(poll(&mut wait, &task).is_pending());
    shutdown.request();
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut wait, &task).is_pending());
    drop(guard);
    assert_eq!(task.wakes(), 2);
    assert!(poll(&mut wait, &task).is_ready());
    assert_eq!(task.kept(), 0);
}

fn a_wait_without_guards_waits_for_the_request<B: Backend>() {
    let (shutdown, task) = (Shutdown::<B>::new_in(), Probe::new());
    let mut wait = shutdown.wait();
    assert!(poll(&mut wait, &task).is_pending());
    let guard = shutdown.guard();
    shutdown.request();
    assert!(
        poll(&mut wait, &task).is_pending(),
        "a guard has come meanwhile"
    );
    drop(guard);
    assert!(poll(&mut wait, &task).is_ready());
}

fn a_clone_of_a_guard_is_another_guard<B: Backend>() {
    let (shutdown, task) = (Shutdown::<B>::new_in(), Probe::new());
    let guard = shutdown.guard();
    let other = guard.clone();
    let same = shutdown.clone();
    assert_eq!(same.guards(), 2);
    drop(guard);
    same.request();
    assert!(shutdown.is_requested());
    assert!(poll(&mut shutdown.wait(), &task).is_pending());
    drop(other);
    assert!(poll(&mut shutdown.wait(), &task).is_ready());
}

fn a_guard_is_told_of_the_request<B: Backend>() {
    let (shutdown, task) = (Shutdown::<B>::new_in(), Probe::new());
    let guard = shutdown.guard();
    let mut requested = [guard.requested(), shutdown.requested()];
    for wait in &mut requested {
        assert!(poll(wait, &task).is_pending());
    }
    assert!(!guard.is_requested());
    shutdown.request();
    assert!(guard.is_requested() && guard.token().is_cancelled());
    for wait in &mut requested {
        assert!(poll(wait, &task).is_ready());
    }
}

fn a_wait_that_is_dropped_leaves_nothing<B: Backend>() {
    let (shutdown, task) = (Shutdown::<B>::new_in(), Probe::new());
    let _guard = shutdown.guard();
    for requested in [false, true] {
        if requested {
            shutdown.request();
        }
        let mut wait = shutdown.wait();
        assert!(poll(&mut wait, &task).is_pending());
        assert_eq!(task.kept(), 1);
        drop(wait);
        assert_eq!(task.kept(), 0);
    }
}

fn debug_output_names_what_is_known<B: Backend>() {
    let shutdown = Shutdown::<B>::new_in();
    let guard = shutdown.guard();
    let text = format!("{shutdown:?}");
    let known = "Shutdown { requested: false, guards: 1, waiting: 0, granted: 0";
    assert!(text.starts_with(known), "{text}");
    assert!(format!("{guard:?}").starts_with("ShutdownGuard { requested: false"));
    assert!(format!("{:?}", shutdown.wait()).starts_with("ShutdownWait { requested: false"));
}

#[test]
fn a_wait_has_a_deadline_by_a_timeout() {
    let (clock, task) = (VirtualClock::by_hand(), Probe::new());
    let shutdown = Shutdown::new();
    let _guard = shutdown.guard();
    shutdown.request();
    let second = Duration::from_secs(1);
    let mut stopped = clock.timers().timeout(second, shutdown.wait());
    assert!(poll(&mut stopped, &task).is_pending());
    clock.advance(second);
    assert!(matches!(
        poll(&mut stopped, &task),
        std::task::Poll::Ready(Err(_))
    ));
}

#[test]
fn tasks_on_threads_stop_before_the_wait_ends() {
    let shutdown = Shutdown::new();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let guard = shutdown.guard();
            thread::spawn(move || block_on::<Native, _>(guard.requested()))
        })
        .collect();
    shutdown.request();
    block_on::<Native, _>(shutdown.wait());
    assert_eq!(shutdown.guards(), 0);
    for thread in threads {
        thread.join().unwrap();
    }
}
