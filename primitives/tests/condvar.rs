//! What `reveille::Condvar` promises, over every backend.

#![cfg(not(loom))]

mod support;

use std::collections::VecDeque;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::condvar::{Wait, WaitWhile};
use reveille::protocol::block_on;
use reveille::{Condvar, Mutex};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    a_wait_unlocks_at_its_first_poll_and_ends_locked,
    a_notification_without_a_wait_leaves_nothing,
    one_is_notified_and_it_is_the_first,
    all_are_notified_and_lock_one_after_the_other,
    a_wait_that_is_dropped_before_its_first_poll_unlocks,
    a_wait_that_is_dropped_while_it_waits_leaves_nothing,
    a_notification_dropped_unseen_goes_to_the_next,
    a_notification_dropped_before_the_lock_goes_to_the_next,
    a_notification_of_all_is_not_passed_on,
    a_wait_for_a_condition_looks_again,
    a_condition_that_does_not_hold_is_not_waited_for,
    a_condition_that_panics_unlocks,
    a_waker_that_panics_when_the_mutex_is_unlocked_does_not_lose_the_wait,
    a_wait_can_change_its_task,
    a_leaked_wait_keeps_the_mutex_or_its_place,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

struct Scene<B: Backend> {
    mutex: Mutex<u32, B>,
    condvar: Condvar<B>,
}

impl<B: Backend> Scene<B> {
    fn new() -> Self {
        Self {
            mutex: Mutex::with_max_barges_in(0, 0),
            condvar: Condvar::new_in(),
        }
    }

    /// Returns a wait that is queued.
    fn waiting(&self, task: &Probe) -> Wait<'_, u32, B> {
        let guard = self.mutex.try_lock().expect("the mutex is free");
        let mut wait = self.condvar.wait(guard);
        assert!(poll(&mut wait, task).is_pending());
        wait
    }
}

fn a_wait_unlocks_at_its_first_poll_and_ends_locked<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    let mut wait = scene.condvar.wait(scene.mutex.try_lock().unwrap());
    assert!(scene.mutex.try_lock().is_err(), "it has not been polled");
    assert!(poll(&mut wait, &task).is_pending());
    assert!(scene.mutex.try_lock().is_ok());
    scene.condvar.notify_one();
    assert_eq!(task.wakes(), 1);
    let Poll::Ready(guard) = poll(&mut wait, &task) else {
        panic!("it has been notified, and the mutex is free")
    };
    assert!(scene.mutex.try_lock().is_err());
    drop(guard);
    assert_eq!(task.kept(), 0);
}

fn a_notification_without_a_wait_leaves_nothing<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    scene.condvar.notify_one();
    scene.condvar.notify_all();
    let mut wait = scene.waiting(&task);
    assert!(poll(&mut wait, &task).is_pending());
    assert_eq!(task.wakes(), 0);
}

fn one_is_notified_and_it_is_the_first<B: Backend>() {
    let (scene, first, second) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let (mut one, mut two) = (scene.waiting(&first), scene.waiting(&second));
    scene.condvar.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert!(poll(&mut two, &second).is_pending());
    assert!(poll(&mut one, &first).is_ready());
}

fn all_are_notified_and_lock_one_after_the_other<B: Backend>() {
    let (scene, first, second) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let (mut one, mut two) = (scene.waiting(&first), scene.waiting(&second));
    scene.condvar.notify_all();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    let Poll::Ready(guard) = poll(&mut one, &first) else {
        panic!("the mutex is free")
    };
    assert!(poll(&mut two, &second).is_pending(), "the first holds it");
    drop(guard);
    assert_eq!(second.wakes(), 2);
    assert!(poll(&mut two, &second).is_ready());
}

fn a_wait_that_is_dropped_before_its_first_poll_unlocks<B: Backend>() {
    let scene = Scene::<B>::new();
    drop(scene.condvar.wait(scene.mutex.try_lock().unwrap()));
    assert!(scene.mutex.try_lock().is_ok());
    assert_eq!(scene.condvar.waiting(), 0);
}

fn a_wait_that_is_dropped_while_it_waits_leaves_nothing<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    drop(scene.waiting(&task));
    assert_eq!((task.kept(), scene.condvar.waiting()), (0, 0));
    assert!(scene.mutex.try_lock().is_ok());
}

fn a_notification_dropped_unseen_goes_to_the_next<B: Backend>() {
    let (scene, first, second) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let (one, mut two) = (scene.waiting(&first), scene.waiting(&second));
    scene.condvar.notify_one();
    drop(one);
    assert_eq!(second.wakes(), 1);
    assert!(poll(&mut two, &second).is_ready());
}

fn a_notification_dropped_before_the_lock_goes_to_the_next<B: Backend>() {
    let (scene, first, second) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let (mut one, mut two) = (scene.waiting(&first), scene.waiting(&second));
    let guard = scene.mutex.try_lock().unwrap();
    scene.condvar.notify_one();
    assert!(poll(&mut one, &first).is_pending(), "the mutex is held");
    drop(one);
    assert_eq!((second.wakes(), first.kept()), (1, 0));
    drop(guard);
    assert!(poll(&mut two, &second).is_ready());
}

fn a_notification_of_all_is_not_passed_on<B: Backend>() {
    let (scene, first, later) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let mut one = scene.waiting(&first);
    scene.condvar.notify_all();
    let mut newcomer = scene.waiting(&later);
    let guard = scene.mutex.try_lock().unwrap();
    assert!(poll(&mut one, &first).is_pending());
    drop((one, guard));
    assert_eq!(later.wakes(), 0);
    assert!(poll(&mut newcomer, &later).is_pending());
}

fn counting_up<B: Backend>(
    scene: &Scene<B>,
) -> WaitWhile<'_, u32, impl FnMut(&mut u32) -> bool, B> {
    let guard = scene.mutex.try_lock().expect("the mutex is free");
    scene.condvar.wait_while(guard, |count| *count < 2)
}

fn a_wait_for_a_condition_looks_again<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    let mut wait = counting_up(&scene);
    for wakes in 0..2 {
        assert!(poll(&mut wait, &task).is_pending());
        assert_eq!(task.wakes(), wakes);
        *scene.mutex.try_lock().unwrap() += 1;
        scene.condvar.notify_one();
    }
    let Poll::Ready(count) = poll(&mut wait, &task) else {
        panic!("the condition no longer holds")
    };
    assert_eq!(*count, 2);
}

fn a_condition_that_does_not_hold_is_not_waited_for<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    *scene.mutex.try_lock().unwrap() = 2;
    assert!(poll(&mut counting_up(&scene), &task).is_ready());
    assert_eq!(task.clones(), 0);
}

fn a_condition_that_panics_unlocks<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    let guard = scene.mutex.try_lock().unwrap();
    let mut wait = scene.condvar.wait_while(guard, |_| panic!("no condition"));
    let panic = panic_of(|| drop(poll(&mut wait, &task)));
    assert_eq!(panic.as_deref(), Some("no condition"));
    assert!(scene.mutex.try_lock().is_ok());
}

fn a_waker_that_panics_when_the_mutex_is_unlocked_does_not_lose_the_wait<B: Backend>() {
    let (scene, waits, locks) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let mut wait = scene.condvar.wait(scene.mutex.try_lock().unwrap());
    let mut lock = scene.mutex.lock();
    assert!(poll(&mut lock, &locks).is_pending());
    locks.panic_on(Event::Wake);
    panic_of(|| drop(poll(&mut wait, &waits)));
    assert!(poll(&mut lock, &locks).is_ready(), "it has been let go");
    drop(lock);
    scene.condvar.notify_one();
    assert_eq!(waits.wakes(), 1);
    assert!(poll(&mut wait, &waits).is_ready());
}

fn a_wait_can_change_its_task<B: Backend>() {
    let (scene, first, second) = (Scene::<B>::new(), Probe::new(), Probe::new());
    let mut wait = scene.waiting(&first);
    assert!(poll(&mut wait, &second).is_pending());
    assert_eq!(first.kept(), 0);
    scene.condvar.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert!(poll(&mut wait, &second).is_ready());
}

fn a_leaked_wait_keeps_the_mutex_or_its_place<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    std::mem::forget(scene.waiting(&task));
    let mut second = scene.waiting(&task);
    scene.condvar.notify_one();
    assert!(poll(&mut second, &task).is_pending());
    scene.condvar.notify_one();
    assert!(poll(&mut second, &task).is_ready());
    std::mem::forget(scene.condvar.wait(scene.mutex.try_lock().unwrap()));
    assert!(scene.mutex.try_lock().is_err());
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    let mut wait = scene.waiting(&task);
    scene.condvar.notify_one();
    drop(poll(&mut wait, &task));
    let panic = panic_of(|| drop(poll(&mut wait, &task)));
    assert_eq!(
        panic.as_deref(),
        Some("Condvar::wait polled after it was ready")
    );
    *scene.mutex.try_lock().unwrap() = 2;
    let mut wait = counting_up(&scene);
    drop(poll(&mut wait, &task));
    let panic = panic_of(|| drop(poll(&mut wait, &task)));
    assert_eq!(
        panic.as_deref(),
        Some("Condvar::wait_while polled after it was ready")
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (scene, task) = (Scene::<B>::new(), Probe::new());
    let wait = scene.waiting(&task);
    let condvar = &scene.condvar;
    assert_eq!(format!("{condvar:?}"), "Condvar { waiting: 1, granted: 0 }");
    assert_eq!(format!("{wait:?}"), "Wait { stage: \"waiting\" }");
    condvar.notify_one();
    assert_eq!(format!("{condvar:?}"), "Condvar { waiting: 0, granted: 1 }");
}

#[test]
fn a_queue_between_threads_loses_nothing() {
    const JOBS: u32 = 500;
    let (jobs, more) = (Mutex::new(VecDeque::new()), Condvar::new());
    let sum = thread::scope(|scope| {
        let take = || {
            let mut sum = 0;
            loop {
                let guard = block_on::<Native, _>(jobs.lock());
                let empty = |jobs: &mut VecDeque<u32>| jobs.is_empty();
                let mut guard = block_on::<Native, _>(more.wait_while(guard, empty));
                match guard.pop_front() {
                    Some(0) | None => return sum,
                    Some(job) => sum += job,
                }
            }
        };
        let consumers = [scope.spawn(take), scope.spawn(take)];
        for job in 1..=JOBS {
            jobs.blocking_lock().push_back(job);
            more.notify_one();
        }
        jobs.blocking_lock().extend([0, 0]);
        more.notify_all();
        consumers
            .map(|consumer| consumer.join().unwrap())
            .iter()
            .sum::<u32>()
    });
    assert_eq!(sum, JOBS * (JOBS + 1) / 2);
}

#[test]
fn futures_are_what_they_should_be() {
    fn send_sync_unpin<T: Send + Sync + Unpin>() {}
    send_sync_unpin::<Wait<'_, u32>>();
    send_sync_unpin::<WaitWhile<'_, u32, fn(&mut u32) -> bool>>();
}
