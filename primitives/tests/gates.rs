//! What `Event`, `Latch` and `WaitGroup` promise, over every backend.

#![cfg(not(loom))]

mod support;

use std::future::IntoFuture;
use std::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::{WakeList, block_on};
use reveille::raw::{Gate, GateWait};
use reveille::{Event, EventWait, Latch, WaitGroup};

use support::probe::{self, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    an_event_stays_set_until_it_is_reset,
    a_reset_takes_back_no_set_that_a_wait_has_not_seen,
    a_set_and_a_reset_before_the_first_poll_release_nothing,
    a_wait_from_within_a_wake_belongs_to_the_next_set,
    a_set_releases_more_waits_than_a_list_holds,
    a_wake_that_panics_costs_no_other_wait_its_release,
    a_latch_is_counted_down_once_and_stays_open,
    a_latch_of_zero_is_open,
    an_owned_wait_keeps_its_primitive,
    the_last_member_to_leave_releases_the_waits,
    a_member_leaves_at_the_call_of_wait,
    a_member_leaves_while_a_panic_unwinds,
    a_clone_of_a_wait_waits_for_the_same_group,
    a_wait_that_has_ended_can_be_polled_again,
    a_gate_counts_up_to_its_limit,
    debug_output_names_what_is_known,
];

fn an_event_stays_set_until_it_is_reset<B: Backend>() {
    let (event, task) = (Event::<B>::new_in(), Probe::new());
    let mut waits = [event.wait(), event.wait()];
    for wait in &mut waits {
        assert!(poll(wait, &task).is_pending());
    }
    assert_eq!((event.waiting(), event.granted()), (2, 0));
    event.set();
    assert_eq!((event.waiting(), event.granted()), (0, 2));
    assert_eq!(task.wakes(), 2);
    for wait in &mut waits {
        assert!(poll(wait, &task).is_ready());
    }
    assert!(poll(&mut event.wait(), &task).is_ready());
    event.reset();
    assert!(!event.is_set());
    assert!(poll(&mut event.wait(), &task).is_pending());
    assert_eq!((event.waiting(), event.granted()), (0, 0));
}

fn a_reset_takes_back_no_set_that_a_wait_has_not_seen<B: Backend>() {
    let (event, task) = (Event::<B>::new_in(), Probe::new());
    let mut wait = event.wait();
    assert!(poll(&mut wait, &task).is_pending());
    event.set();
    event.reset();
    let mut later = event.wait();
    assert!(poll(&mut later, &task).is_pending());
    assert!(poll(&mut wait, &task).is_ready());
    assert!(poll(&mut later, &task).is_pending());
}

fn a_set_and_a_reset_before_the_first_poll_release_nothing<B: Backend>() {
    let (event, task) = (Event::<B>::new_in(), Probe::new());
    let mut wait = event.wait();
    event.set();
    event.reset();
    assert!(poll(&mut wait, &task).is_pending());
}

fn a_wait_from_within_a_wake_belongs_to_the_next_set<B: Backend>() {
    let event: &'static Event<B> = Box::leak(Box::new(Event::new_in()));
    let (first, second) = (Probe::new(), Rc::new(Probe::new()));
    let mut wait = event.wait();
    assert!(poll(&mut wait, &first).is_pending());
    let again: &'static std::cell::Cell<Option<EventWait<'static, B>>> = Box::leak(Box::default());
    let task = second.clone();
    first.on(probe::Event::Wake, move || {
        event.reset();
        let mut wait = event.wait();
        assert!(poll(&mut wait, &task).is_pending());
        again.set(Some(wait));
    });
    event.set();
    assert_eq!((second.wakes(), event.waiting()), (0, 1));
    event.set();
    assert_eq!(second.wakes(), 1);
    assert!(poll(&mut again.take().unwrap(), &second).is_ready());
}

fn a_set_releases_more_waits_than_a_list_holds<B: Backend>() {
    let (event, task) = (Event::<B>::new_in(), Probe::new());
    let mut waits: Vec<_> = (0..3 * WakeList::CAPACITY).map(|_| event.wait()).collect();
    for wait in &mut waits {
        assert!(poll(wait, &task).is_pending());
    }
    event.set();
    assert_eq!((task.wakes(), task.kept()), (waits.len(), 0));
}

fn a_wake_that_panics_costs_no_other_wait_its_release<B: Backend>() {
    let event = Event::<B>::new_in();
    let (bad, good) = (Probe::new(), Probe::new());
    let mut waits: Vec<_> = (0..2 * WakeList::CAPACITY).map(|_| event.wait()).collect();
    for (number, wait) in waits.iter_mut().enumerate() {
        let task = if number == 3 { &bad } else { &good };
        assert!(poll(wait, task).is_pending());
    }
    bad.panic_on(probe::Event::Wake);
    assert!(panic_of(|| event.set()).is_some());
    assert_eq!(good.wakes(), waits.len() - 1);
    for wait in &mut waits {
        assert!(poll(wait, &good).is_ready());
    }
}

fn a_latch_is_counted_down_once_and_stays_open<B: Backend>() {
    let (latch, task) = (Latch::<B>::new_in(3), Probe::new());
    let mut wait = latch.wait();
    latch.count_down();
    assert!(poll(&mut wait, &task).is_pending());
    latch.count_down_by(0);
    assert_eq!((latch.count(), latch.waiting(), task.wakes()), (2, 1, 0));
    latch.count_down_by(usize::MAX);
    assert_eq!((latch.count(), latch.granted(), task.wakes()), (0, 1, 1));
    assert!(poll(&mut wait, &task).is_ready());
    latch.count_down();
    assert!(poll(&mut latch.wait(), &task).is_ready());
    assert_eq!(task.kept(), 0);
}

fn a_latch_of_zero_is_open<B: Backend>() {
    let (latch, task) = (Latch::<B>::new_in(0), Probe::new());
    assert!(poll(&mut latch.wait(), &task).is_ready());
    assert_eq!(task.clones(), 0);
}

fn an_owned_wait_keeps_its_primitive<B: Backend>() {
    let (event, latch) = (
        Arc::new(Event::<B>::new_in()),
        Arc::new(Latch::<B>::new_in(1)),
    );
    let task = Probe::new();
    let (mut first, mut second) = (event.clone().wait_owned(), latch.clone().wait_owned());
    assert!(poll(&mut first, &task).is_pending());
    assert!(poll(&mut second, &task).is_pending());
    event.set();
    latch.count_down();
    drop((event, latch));
    assert!(poll(&mut first, &task).is_ready());
    assert!(poll(&mut second, &task).is_ready());
}

fn the_last_member_to_leave_releases_the_waits<B: Backend>() {
    let (group, task) = (WaitGroup::<B>::new_in(), Probe::new());
    let members = [group.clone(), group.clone()];
    assert_eq!(group.members(), 3);
    let mut wait = group.wait();
    assert!(poll(&mut wait, &task).is_pending());
    for member in members {
        assert_eq!(task.wakes(), 0);
        drop(member);
    }
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut wait, &task).is_ready());
}

fn a_member_leaves_at_the_call_of_wait<B: Backend>() {
    let (group, task) = (WaitGroup::<B>::new_in(), Probe::new());
    let wait = group.clone().into_future();
    assert_eq!(group.members(), 1);
    drop(wait);
    let mut wait = group.clone().wait();
    assert!(poll(&mut wait, &task).is_pending());
    assert_eq!((group.waiting(), group.granted()), (1, 0));
    drop(group.wait());
    assert!(poll(&mut wait, &task).is_ready());
}

fn a_member_leaves_while_a_panic_unwinds<B: Backend>() {
    struct Work<B: Backend>(WaitGroup<B>);

    let (group, task) = (WaitGroup::<B>::new_in(), Probe::new());
    let work = Work(group.clone());
    let mut wait = group.wait();
    assert!(poll(&mut wait, &task).is_pending());
    let panics = catch_unwind(AssertUnwindSafe(|| {
        assert_eq!(work.0.members(), 1);
        let _work = work;
        panic!("the work fails");
    }));
    assert!(panics.is_err());
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut wait, &task).is_ready());
}

fn a_clone_of_a_wait_waits_for_the_same_group<B: Backend>() {
    let (group, task) = (WaitGroup::<B>::new_in(), Probe::new());
    let mut wait = group.clone().wait();
    assert!(poll(&mut wait, &task).is_pending());
    let mut same = wait.clone();
    drop(wait);
    assert!(poll(&mut same, &task).is_pending());
    drop(group);
    assert!(poll(&mut same, &task).is_ready());
    assert_eq!((task.wakes(), task.kept()), (1, 0));
}

fn a_wait_that_has_ended_can_be_polled_again<B: Backend>() {
    let (event, task) = (Event::<B>::new_in(), Probe::new());
    event.set();
    let mut wait = event.wait();
    assert!(poll(&mut wait, &task).is_ready());
    assert!(poll(&mut wait, &task).is_ready());
    event.reset();
    assert!(poll(&mut wait, &task).is_pending());
}

fn a_gate_counts_up_to_its_limit<B: Backend>() {
    let gate = Gate::<B>::new_in(Gate::<B>::MAX_COUNT - 1);
    assert!(gate.add(1));
    assert!(!gate.add(1) && !gate.add(usize::MAX));
    assert_eq!(gate.count(), Gate::<B>::MAX_COUNT);
    let mut wait = GateWait::new(&gate);
    assert_eq!(poll(&mut wait, &Probe::new()), Poll::Pending);
    assert_eq!(
        gate.count(),
        Gate::<B>::MAX_COUNT,
        "the flag is beside the count"
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let text = format!("{:?}", Event::<B>::new_in());
    assert!(
        text.starts_with("Event { set: false, waiting: 0, granted: 0"),
        "{text}"
    );
    let text = format!("{:?}", Latch::<B>::new_in(2));
    assert!(
        text.starts_with("Latch { count: 2, waiting: 0, granted: 0"),
        "{text}"
    );
    let group = WaitGroup::<B>::new_in();
    let text = format!("{group:?}");
    assert!(
        text.starts_with("WaitGroup { members: 1, waiting: 0"),
        "{text}"
    );
    assert_eq!(
        format!("{:?}", group.wait()),
        "GateWait { queued: false, .. }"
    );
}

#[test]
fn waits_are_a_few_words() {
    let word = size_of::<usize>();
    if !cfg!(feature = "caller-locations") {
        assert_eq!(size_of::<EventWait<'static>>(), 2 * word);
    }
    assert!(size_of::<EventWait<'static>>() <= 3 * word);
}

#[test]
fn members_on_threads_leave_before_the_wait_ends() {
    for _ in 0..100 {
        let group = WaitGroup::new();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let member = group.clone();
                thread::spawn(move || drop(member))
            })
            .collect();
        block_on::<Native, _>(group.wait());
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
