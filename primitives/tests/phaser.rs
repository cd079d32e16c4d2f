//! What `Phaser` promises, over every backend.

#![cfg(not(loom))]

mod support;

use std::task::Poll;
use std::thread;

use reveille::Phaser;
use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::block_on;

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    a_phase_ends_when_all_parties_have_arrived,
    an_arrival_counts_once_in_a_phase,
    a_party_that_has_arrived_only_waits,
    a_wait_that_is_dropped_withdraws_its_arrival,
    a_wait_that_is_dropped_keeps_an_earlier_arrival,
    a_wait_that_is_dropped_after_the_end_changes_nothing,
    the_last_party_to_leave_unarrived_ends_the_phase,
    a_party_that_has_arrived_leaves_the_phase_open,
    a_party_that_registers_late_is_waited_for,
    an_observer_waits_for_the_end_of_its_phase,
    a_waker_that_panics_costs_no_other_the_end,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

fn a_phase_ends_when_all_parties_have_arrived<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let (mut first, mut second) = (phaser.register(), phaser.register());
    for phase in 0..3 {
        assert_eq!(phaser.phase(), phase);
        let mut wait = first.arrive_and_wait();
        assert!(poll(&mut wait, &task).is_pending());
        assert_eq!((phaser.arrived(), phaser.waiting()), (1, 1));
        assert_eq!(
            poll(&mut second.arrive_and_wait(), &task),
            Poll::Ready(phase + 1)
        );
        assert_eq!((phaser.arrived(), phaser.granted()), (0, 1));
        assert_eq!(poll(&mut wait, &task), Poll::Ready(phase + 1));
    }
    assert_eq!((task.wakes(), task.kept()), (3, 0));
}

fn an_arrival_counts_once_in_a_phase<B: Backend>() {
    let phaser = Phaser::<B>::new_in();
    let (mut first, mut second) = (phaser.register(), phaser.register());
    assert_eq!(
        (first.arrive(), first.arrive(), phaser.arrived()),
        (0, 0, 1)
    );
    assert_eq!((second.arrive(), phaser.phase()), (0, 1));
    assert_eq!((first.arrive(), phaser.arrived()), (1, 1));
}

fn a_party_that_has_arrived_only_waits<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let (mut first, mut second) = (phaser.register(), phaser.register());
    first.arrive();
    let mut wait = first.arrive_and_wait();
    assert!(poll(&mut wait, &task).is_pending());
    assert_eq!(phaser.arrived(), 1);
    second.arrive();
    assert_eq!(poll(&mut wait, &task), Poll::Ready(1));
}

fn a_wait_that_is_dropped_withdraws_its_arrival<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let (mut first, mut second) = (phaser.register(), phaser.register());
    {
        let mut wait = first.arrive_and_wait();
        assert!(poll(&mut wait, &task).is_pending());
    }
    assert_eq!((phaser.arrived(), phaser.waiting(), task.kept()), (0, 0, 0));
    second.arrive();
    assert_eq!(phaser.phase(), 0);
    // It arrives again in the same phase.
    assert_eq!(poll(&mut first.arrive_and_wait(), &task), Poll::Ready(1));
}

fn a_wait_that_is_dropped_keeps_an_earlier_arrival<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let (mut first, second) = (phaser.register(), phaser.register());
    first.arrive();
    assert!(poll(&mut first.arrive_and_wait(), &task).is_pending());
    assert_eq!((phaser.arrived(), phaser.waiting()), (1, 0));
    drop(second);
    assert_eq!(phaser.phase(), 1);
}

fn a_wait_that_is_dropped_after_the_end_changes_nothing<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let (mut first, mut second) = (phaser.register(), phaser.register());
    {
        let mut wait = first.arrive_and_wait();
        assert!(poll(&mut wait, &task).is_pending());
        second.arrive();
        second.arrive();
        assert_eq!((phaser.phase(), phaser.arrived()), (1, 1));
    }
    assert_eq!((phaser.phase(), phaser.arrived()), (1, 1));
}

fn the_last_party_to_leave_unarrived_ends_the_phase<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let (mut first, second) = (phaser.register(), phaser.register());
    let mut wait = first.arrive_and_wait();
    assert!(poll(&mut wait, &task).is_pending());
    drop(second);
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut wait, &task), Poll::Ready(1));
    drop(wait);
    drop(first);
    assert_eq!((phaser.phase(), phaser.parties()), (2, 0));
}

fn a_party_that_has_arrived_leaves_the_phase_open<B: Backend>() {
    let phaser = Phaser::<B>::new_in();
    let (mut first, mut second) = (phaser.register(), phaser.register());
    first.arrive();
    drop(first);
    assert_eq!(
        (phaser.phase(), phaser.parties(), phaser.arrived()),
        (0, 1, 0)
    );
    second.arrive();
    assert_eq!(phaser.phase(), 1);
}

fn a_party_that_registers_late_is_waited_for<B: Backend>() {
    let phaser = Phaser::<B>::new_in();
    let (mut first, mut second) = (phaser.register(), phaser.register());
    first.arrive();
    let mut third = phaser.register();
    second.arrive();
    assert_eq!(phaser.phase(), 0);
    third.arrive();
    assert_eq!(phaser.phase(), 1);
}

fn an_observer_waits_for_the_end_of_its_phase<B: Backend>() {
    let (phaser, task) = (Phaser::<B>::new_in(), Probe::new());
    let mut party = phaser.register();
    let mut wait = phaser.wait(0);
    assert!(poll(&mut wait, &task).is_pending());
    assert_eq!((phaser.parties(), phaser.waiting()), (1, 1));
    party.arrive();
    party.arrive();
    assert_eq!(poll(&mut wait, &task), Poll::Ready(2), "the current phase");
    assert_eq!(
        poll(&mut phaser.wait(5), &task),
        Poll::Ready(2),
        "it is another phase"
    );
    let mut wait = phaser.wait(2);
    assert!(poll(&mut wait, &task).is_pending());
    drop(wait);
    assert_eq!((phaser.waiting(), task.kept()), (0, 0));
}

fn a_waker_that_panics_costs_no_other_the_end<B: Backend>() {
    let phaser = Phaser::<B>::new_in();
    let (bad, good) = (Probe::new(), Probe::new());
    let (mut first, mut second, third) = (phaser.register(), phaser.register(), phaser.register());
    let (mut one, mut other) = (first.arrive_and_wait(), second.arrive_and_wait());
    assert!(poll(&mut one, &bad).is_pending());
    assert!(poll(&mut other, &good).is_pending());
    bad.panic_on(Event::Wake);
    assert!(panic_of(|| drop(third)).is_some());
    assert_eq!((good.wakes(), phaser.parties()), (1, 2));
    assert_eq!(poll(&mut one, &good), Poll::Ready(1));
    assert_eq!(poll(&mut other, &good), Poll::Ready(1));
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    let phaser = Phaser::<B>::new_in();
    let mut party = phaser.register();
    let mut wait = party.arrive_and_wait();
    assert!(poll(&mut wait, &Probe::new()).is_ready());
    let message = panic_of(|| _ = poll(&mut wait, &Probe::new()));
    assert_eq!(
        message.as_deref(),
        Some("Party::arrive_and_wait polled after it was ready")
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let phaser = Phaser::<B>::new_in();
    let mut party = phaser.register();
    let text = format!("{phaser:?}");
    let known = "Phaser { phase: 0, parties: 1, arrived: 0, waiting: 0, granted: 0";
    assert!(text.starts_with(known), "{text}");
    assert!(format!("{party:?}").starts_with("Party { arrived: None"));
    assert!(format!("{:?}", party.arrive_and_wait()).contains("Created"));
    assert!(format!("{:?}", phaser.wait(0)).contains("phase: 0"));
}

#[test]
fn parties_on_threads_meet_phase_after_phase() {
    const PHASES: usize = 50;
    let phaser = Phaser::new();
    let parties: Vec<_> = (0..4).map(|_| phaser.register()).collect();
    thread::scope(|scope| {
        for (number, mut party) in parties.into_iter().enumerate() {
            scope.spawn(move || {
                // Each leaves a little earlier than the next.
                for phase in 0..PHASES + number {
                    let next = block_on::<Native, _>(party.arrive_and_wait());
                    assert_eq!(next, phase + 1);
                }
            });
        }
    });
    assert_eq!(phaser.parties(), 0);
    assert!(phaser.phase() >= PHASES + 3);
}
