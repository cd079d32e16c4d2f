//! What `reveille::Notify` promises: the semantics of `tokio::sync::Notify` over
//! every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::notify::{Notified, OwnedNotified, WaitUntil};
use reveille::protocol::{WakeList, block_on};
use reveille::{Notify, Semaphore};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    a_permit_is_for_one_wait,
    permits_do_not_add_up,
    a_permit_is_taken_without_a_clone_of_the_waker,
    the_first_is_notified,
    the_last_is_notified,
    a_place_is_taken_at_the_first_poll,
    a_place_can_be_taken_before_the_first_poll,
    enable_takes_the_permit,
    enable_tells_whether_it_has_been_notified,
    a_wait_can_be_enabled_and_polled_in_any_order,
    all_waiters_are_notified_and_nothing_is_left,
    a_wait_is_covered_from_its_creation,
    a_wait_is_covered_from_its_creation_where_others_are_queued,
    a_wait_that_comes_after_all_were_notified_waits,
    one_that_was_covered_unpolled_leaves_the_permit_alone,
    notified_waiters_do_not_take_the_next_permit,
    more_wait_than_a_wake_list_holds,
    a_wait_begun_within_a_wake_is_not_notified,
    a_wait_begun_within_a_wake_can_be_notified_alone,
    a_wait_that_is_dropped_leaves_the_queue,
    a_notification_dropped_unseen_goes_to_the_next,
    a_notification_of_the_last_dropped_unseen_goes_to_the_last,
    a_notification_dropped_unseen_becomes_the_permit,
    a_notification_of_all_dropped_unseen_is_not_passed_on,
    one_notified_alone_and_then_with_all_hands_on,
    a_notification_that_was_seen_is_not_handed_on,
    an_owned_wait_is_one_of_the_queue,
    the_wait_can_change_its_task,
    a_wait_that_was_ready_is_ready_again_and_takes_nothing,
    a_leaked_wait_keeps_its_place,
    a_waker_may_notify_when_it_is_woken,
    a_waker_may_notify_when_it_is_dropped,
    a_waker_may_drop_other_waits_when_it_is_woken,
    a_waker_that_panics_costs_no_other_the_wake,
    a_clone_that_panics_leaves_no_place_in_the_queue,
    a_permit_taken_by_a_poll_that_panics_is_kept,
    waiting_until_asks_first,
    waiting_until_asks_again_when_notified,
    waiting_until_misses_no_notification_while_it_asks,
    waiting_until_takes_permits_until_the_predicate_holds,
    waiting_until_hands_on_what_it_was_notified_of,
    a_predicate_that_panics_is_asked_again,
    waiting_until_polled_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

fn pair<B: Backend>() -> (Notify<B>, Probe) {
    (Notify::new_in(), Probe::new())
}

/// Returns a wait that is queued.
fn queued<'a, B: Backend>(notify: &'a Notify<B>, task: &Probe) -> Notified<'a, B> {
    let mut wait = notify.notified();
    assert!(poll(&mut wait, task).is_pending());
    wait
}

fn a_permit_is_for_one_wait<B: Backend>() {
    let (notify, task) = pair::<B>();
    notify.notify_one();
    let (mut one, mut two) = (notify.notified(), notify.notified());
    assert!(poll(&mut one, &task).is_ready());
    assert!(poll(&mut two, &task).is_pending());
}

fn permits_do_not_add_up<B: Backend>() {
    let (notify, task) = pair::<B>();
    notify.notify_one();
    notify.notify_last();
    assert!(poll(&mut notify.notified(), &task).is_ready());
    assert!(poll(&mut notify.notified(), &task).is_pending());
}

fn a_permit_is_taken_without_a_clone_of_the_waker<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut wait = notify.notified();
    notify.notify_one();
    assert!(poll(&mut wait, &task).is_ready());
    assert_eq!(task.clones(), 0);
}

fn the_first_is_notified<B: Backend>() {
    let (notify, first, second) = (Notify::<B>::new_in(), Probe::new(), Probe::new());
    let (mut one, mut two) = (queued(&notify, &first), queued(&notify, &second));
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert!(poll(&mut two, &second).is_pending());
    assert!(poll(&mut one, &first).is_ready());
    notify.notify_one();
    assert!(poll(&mut two, &second).is_ready());
}

fn the_last_is_notified<B: Backend>() {
    let (notify, first, second) = (Notify::<B>::new_in(), Probe::new(), Probe::new());
    let (mut one, mut two) = (queued(&notify, &first), queued(&notify, &second));
    notify.notify_last();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert!(poll(&mut one, &first).is_pending());
    assert!(poll(&mut two, &second).is_ready());
}

fn a_place_is_taken_at_the_first_poll<B: Backend>() {
    let (notify, task) = pair::<B>();
    let (mut late, mut early) = (notify.notified(), notify.notified());
    assert_eq!(notify.waiting(), 0);
    assert!(poll(&mut early, &task).is_pending());
    assert!(poll(&mut late, &task).is_pending());
    notify.notify_one();
    assert!(poll(&mut late, &task).is_pending());
    assert!(poll(&mut early, &task).is_ready());
}

fn a_place_can_be_taken_before_the_first_poll<B: Backend>() {
    let (notify, task) = pair::<B>();
    let (mut one, mut two) = (notify.notified(), notify.notified());
    assert!(!Pin::new(&mut one).enable());
    assert!(poll(&mut two, &task).is_pending());
    notify.notify_one();
    assert_eq!(task.wakes(), 0, "it went to the one that is enabled");
    assert!(poll(&mut two, &task).is_pending());
    assert!(poll(&mut one, &task).is_ready());
}

fn enable_takes_the_permit<B: Backend>() {
    let (notify, task) = pair::<B>();
    notify.notify_one();
    let mut wait = notify.notified();
    assert!(Pin::new(&mut wait).enable());
    assert!(!Pin::new(&mut notify.notified()).enable());
    assert!(poll(&mut wait, &task).is_ready());
}

fn enable_tells_whether_it_has_been_notified<B: Backend>() {
    let (notify, task) = pair::<B>();
    let (mut one, mut two) = (notify.notified(), notify.notified());
    assert!(!Pin::new(&mut one).enable());
    notify.notify_one();
    assert!(Pin::new(&mut one).enable());
    assert!(poll(&mut one, &task).is_ready());
    assert!(Pin::new(&mut one).enable());
    notify.notify_waiters();
    assert!(Pin::new(&mut two).enable(), "it exists, so it is covered");
}

fn a_wait_can_be_enabled_and_polled_in_any_order<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut wait = queued(&notify, &task);
    assert!(!Pin::new(&mut wait).enable());
    assert!(poll(&mut wait, &task).is_pending());
    assert_eq!(notify.waiting(), 1);
    notify.notify_one();
    assert_eq!(task.wakes(), 1);
}

fn all_waiters_are_notified_and_nothing_is_left<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut waits = [(); 3].map(|()| queued(&notify, &task));
    notify.notify_waiters();
    assert_eq!(
        (task.wakes(), notify.waiting(), notify.granted()),
        (3, 0, 3)
    );
    for wait in &mut waits {
        assert!(poll(wait, &task).is_ready());
    }
    assert_eq!(notify.granted(), 0);
    assert!(poll(&mut notify.notified(), &task).is_pending());
}

fn a_wait_is_covered_from_its_creation<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut wait = notify.notified();
    notify.notify_waiters();
    assert!(poll(&mut wait, &task).is_ready());
    assert_eq!(task.clones(), 0);
}

fn a_wait_is_covered_from_its_creation_where_others_are_queued<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut unpolled = notify.notified();
    let mut waits = queued(&notify, &task);
    notify.notify_waiters();
    assert!(poll(&mut unpolled, &task).is_ready());
    assert!(poll(&mut waits, &task).is_ready());
}

fn a_wait_that_comes_after_all_were_notified_waits<B: Backend>() {
    let (notify, task) = pair::<B>();
    notify.notify_waiters();
    assert!(poll(&mut notify.notified(), &task).is_pending());
}

fn one_that_was_covered_unpolled_leaves_the_permit_alone<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut covered = notify.notified();
    notify.notify_waiters();
    notify.notify_one();
    assert!(poll(&mut covered, &task).is_ready());
    assert!(poll(&mut notify.notified(), &task).is_ready());
}

fn notified_waiters_do_not_take_the_next_permit<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut waits = [queued(&notify, &task), queued(&notify, &task)];
    notify.notify_waiters();
    notify.notify_one();
    assert!(waits.iter_mut().all(|wait| poll(wait, &task).is_ready()));
    drop(waits);
    assert!(poll(&mut notify.notified(), &task).is_ready());
}

fn more_wait_than_a_wake_list_holds<B: Backend>() {
    const WAITS: usize = 3 * WakeList::CAPACITY + 1;
    let (notify, task) = pair::<B>();
    let mut waits: Vec<_> = (0..WAITS).map(|_| queued(&notify, &task)).collect();
    notify.notify_waiters();
    assert_eq!((task.wakes(), task.kept()), (WAITS, 0));
    assert!(waits.iter_mut().all(|wait| poll(wait, &task).is_ready()));
}

/// Not all are woken in one section. A wait that is created from within a wake is in
/// the queue when the next section begins.
fn a_wait_begun_within_a_wake_is_not_notified<B: Backend>() {
    let notify = Arc::new(Notify::<B>::new_in());
    let (task, newcomer) = (Probe::new(), Rc::new(Probe::new()));
    let _waits: Vec<_> = (0..2 * WakeList::CAPACITY)
        .map(|_| queued(&notify, &task))
        .collect();
    let late = Rc::new(RefCell::new(None));
    task.on(Event::Wake, {
        let (notify, newcomer, late) = (notify.clone(), newcomer.clone(), late.clone());
        move || {
            let mut wait = notify.notified_owned();
            assert!(poll(&mut wait, &newcomer).is_pending());
            late.replace(Some(wait));
        }
    });
    notify.notify_waiters();
    assert_eq!(task.wakes(), 2 * WakeList::CAPACITY);
    assert_eq!((newcomer.wakes(), notify.waiting()), (0, 1));
    let mut late = late.take().expect("it came");
    assert!(poll(&mut late, &newcomer).is_pending());
}

/// Waiters that have been notified and not yet woken are skipped.
fn a_wait_begun_within_a_wake_can_be_notified_alone<B: Backend>() {
    let notify = Arc::new(Notify::<B>::new_in());
    let (task, newcomer) = (Probe::new(), Rc::new(Probe::new()));
    let _waits: Vec<_> = (0..2 * WakeList::CAPACITY)
        .map(|_| queued(&notify, &task))
        .collect();
    task.on(Event::Wake, {
        let (notify, newcomer) = (notify.clone(), newcomer.clone());
        move || {
            let mut wait = notify.clone().notified_owned();
            assert!(poll(&mut wait, &newcomer).is_pending());
            notify.notify_one();
            assert_eq!(newcomer.wakes(), 1);
            assert!(poll(&mut wait, &newcomer).is_ready());
        }
    });
    notify.notify_waiters();
    assert_eq!(task.wakes(), 2 * WakeList::CAPACITY);
    assert_eq!((task.acts_left(), notify.waiting()), (0, 0));
}

fn a_wait_that_is_dropped_leaves_the_queue<B: Backend>() {
    let (notify, gone, stays) = (Notify::<B>::new_in(), Probe::new(), Probe::new());
    let (one, mut two) = (queued(&notify, &gone), queued(&notify, &stays));
    drop(one);
    assert_eq!((gone.kept(), notify.waiting()), (0, 1));
    notify.notify_one();
    assert_eq!((gone.wakes(), stays.wakes()), (0, 1));
    assert!(poll(&mut two, &stays).is_ready());
}

fn a_notification_dropped_unseen_goes_to_the_next<B: Backend>() {
    let (notify, task) = pair::<B>();
    let [one, mut two, mut three] = [(); 3].map(|()| queued(&notify, &task));
    notify.notify_one();
    drop(one);
    assert_eq!(task.wakes(), 2);
    assert!(poll(&mut two, &task).is_ready());
    assert!(poll(&mut three, &task).is_pending());
}

fn a_notification_of_the_last_dropped_unseen_goes_to_the_last<B: Backend>() {
    let (notify, task) = pair::<B>();
    let [mut one, mut two, three] = [(); 3].map(|()| queued(&notify, &task));
    notify.notify_last();
    drop(three);
    assert_eq!(task.wakes(), 2);
    assert!(poll(&mut one, &task).is_pending());
    assert!(poll(&mut two, &task).is_ready());
}

fn a_notification_dropped_unseen_becomes_the_permit<B: Backend>() {
    for notifies in [Notify::<B>::notify_one, Notify::<B>::notify_last] {
        let (notify, task) = pair::<B>();
        let wait = queued(&notify, &task);
        notifies(&notify);
        drop(wait);
        assert!(poll(&mut notify.notified(), &task).is_ready());
    }
}

fn a_notification_of_all_dropped_unseen_is_not_passed_on<B: Backend>() {
    let (notify, task, later) = (Notify::<B>::new_in(), Probe::new(), Probe::new());
    let (queued_one, unpolled) = (queued(&notify, &task), notify.notified());
    notify.notify_waiters();
    let mut newcomer = queued(&notify, &later);
    drop((queued_one, unpolled));
    assert_eq!(later.wakes(), 0);
    assert!(poll(&mut newcomer, &later).is_pending());
}

fn one_notified_alone_and_then_with_all_hands_on<B: Backend>() {
    let (notify, task) = pair::<B>();
    let wait = queued(&notify, &task);
    notify.notify_one();
    notify.notify_waiters();
    assert_eq!(task.wakes(), 1);
    drop(wait);
    assert!(poll(&mut notify.notified(), &task).is_ready());
}

fn a_notification_that_was_seen_is_not_handed_on<B: Backend>() {
    let (notify, task) = pair::<B>();
    let (mut one, mut two) = (queued(&notify, &task), queued(&notify, &task));
    notify.notify_one();
    assert!(poll(&mut one, &task).is_ready());
    drop(one);
    assert!(poll(&mut two, &task).is_pending());
}

fn an_owned_wait_is_one_of_the_queue<B: Backend>() {
    let (notify, task) = (Arc::new(Notify::<B>::new_in()), Probe::new());
    let mut owned = notify.clone().notified_owned();
    assert!(!Pin::new(&mut owned).enable());
    let mut second = queued(&notify, &task);
    assert!(poll(&mut owned, &task).is_pending());
    notify.notify_one();
    assert!(poll(&mut second, &task).is_pending());
    drop(owned);
    assert!(poll(&mut second, &task).is_ready());

    let mut owned = notify.clone().notified_owned();
    notify.notify_waiters();
    drop(second);
    drop(notify);
    assert!(poll(&mut owned, &task).is_ready(), "it keeps the notify");
}

fn the_wait_can_change_its_task<B: Backend>() {
    let (notify, first, second) = (Notify::<B>::new_in(), Probe::new(), Probe::new());
    let mut wait = queued(&notify, &first);
    assert!(poll(&mut wait, &second).is_pending());
    assert_eq!((first.kept(), second.kept()), (0, 1));
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_wait_that_was_ready_is_ready_again_and_takes_nothing<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut wait = queued(&notify, &task);
    notify.notify_one();
    notify.notify_one();
    for _ in 0..3 {
        assert!(poll(&mut wait, &task).is_ready());
    }
    assert!(poll(&mut notify.notified(), &task).is_ready(), "the permit");
}

fn a_leaked_wait_keeps_its_place<B: Backend>() {
    let (notify, task) = pair::<B>();
    std::mem::forget(queued(&notify, &task));
    let mut second = queued(&notify, &task);
    notify.notify_one();
    assert!(poll(&mut second, &task).is_pending());
    notify.notify_one();
    assert!(poll(&mut second, &task).is_ready());
    assert_eq!(notify.granted(), 1);
}

fn a_waker_may_notify_when_it_is_woken<B: Backend>() {
    let notify = Rc::new(Notify::<B>::new_in());
    let (first, second) = (Probe::new(), Probe::new());
    let (_one, _two) = (queued(&notify, &first), queued(&notify, &second));
    first.on(Event::Wake, {
        let notify = notify.clone();
        move || {
            notify.notify_one();
            notify.notify_waiters();
            notify.notify_last();
        }
    });
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert!(poll(&mut notify.notified(), &first).is_ready(), "a permit");
}

fn a_waker_may_notify_when_it_is_dropped<B: Backend>() {
    let notify = Rc::new(Notify::<B>::new_in());
    let (first, second) = (Probe::new(), Probe::new());
    let (mut one, _two) = (queued(&notify, &first), queued(&notify, &second));
    first.on(Event::Drop, {
        let notify = notify.clone();
        move || notify.notify_waiters()
    });
    assert!(
        poll(&mut one, &second).is_pending(),
        "it displaces the first"
    );
    assert_eq!((first.kept(), second.wakes()), (0, 2));
}

fn a_waker_may_drop_other_waits_when_it_is_woken<B: Backend>() {
    let notify = Arc::new(Notify::<B>::new_in());
    let (first, others) = (Probe::new(), Probe::new());
    let _one = queued(&notify, &first);
    let waits: Vec<OwnedNotified<B>> = (0..2 * WakeList::CAPACITY)
        .map(|_| {
            let mut wait = notify.clone().notified_owned();
            assert!(poll(&mut wait, &others).is_pending());
            wait
        })
        .collect();
    first.on(Event::Wake, move || drop(waits));
    notify.notify_waiters();
    assert_eq!((first.acts_left(), others.kept()), (0, 0));
    assert_eq!((notify.waiting(), notify.granted()), (0, 1));
}

fn a_waker_that_panics_costs_no_other_the_wake<B: Backend>() {
    let notify = Notify::<B>::new_in();
    let tasks: Vec<Probe> = (0..2 * WakeList::CAPACITY).map(|_| Probe::new()).collect();
    let mut waits: Vec<_> = tasks.iter().map(|task| queued(&notify, task)).collect();
    tasks[3].panic_on(Event::Wake);
    let message = panic_of(|| notify.notify_waiters());
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(task.wakes(), 1);
        assert!(poll(wait, task).is_ready());
    }
}

fn a_clone_that_panics_leaves_no_place_in_the_queue<B: Backend>() {
    let (notify, bad, good) = (Notify::<B>::new_in(), Probe::new(), Probe::new());
    let mut wait = notify.notified();
    bad.panic_on(Event::Clone);
    panic_of(|| assert!(poll(&mut wait, &bad).is_ready())).expect("the clone panics");
    assert_eq!((notify.waiting(), bad.kept()), (0, 0));
    assert!(poll(&mut wait, &good).is_pending());
    notify.notify_one();
    assert_eq!(good.wakes(), 1);
}

/// The clone of the waker stores the permit between the load and the section. The
/// clone is then not needed, and its drop panics while the poll is ready.
fn a_permit_taken_by_a_poll_that_panics_is_kept<B: Backend>() {
    for polled_again in [false, true] {
        let (notify, task, good) = (Rc::new(Notify::<B>::new_in()), Probe::new(), Probe::new());
        task.on(Event::Clone, {
            let notify = notify.clone();
            move || notify.notify_one()
        });
        task.panic_on(Event::Drop);
        let mut wait = notify.notified();
        panic_of(|| assert!(poll(&mut wait, &task).is_ready())).expect("the drop panics");
        if polled_again {
            assert!(poll(&mut wait, &good).is_ready());
        }
        drop(wait);
        let left = poll(&mut notify.notified(), &good).is_ready();
        assert_eq!(left, !polled_again, "it is seen, or left, and not both");
    }
}

/// Returns a wait for a number to be at least two, and the number.
fn until_two<'a, B: Backend>(
    notify: &'a Notify<B>,
    number: &'a Cell<u32>,
) -> WaitUntil<'a, impl FnMut() -> bool + use<'a, B>, B> {
    notify.wait_until(|| number.get() >= 2)
}

fn waiting_until_asks_first<B: Backend>() {
    let (notify, task) = pair::<B>();
    notify.notify_one();
    assert!(poll(&mut until_two(&notify, &Cell::new(2)), &task).is_ready());
    assert_eq!(task.clones(), 0);
    assert!(poll(&mut notify.notified(), &task).is_ready(), "the permit");
}

fn waiting_until_asks_again_when_notified<B: Backend>() {
    for notifies in [
        Notify::<B>::notify_one,
        Notify::<B>::notify_last,
        Notify::<B>::notify_waiters,
    ] {
        let ((notify, task), number) = (pair::<B>(), Cell::new(0));
        let mut wait = until_two(&notify, &number);
        for wakes in 0..2 {
            assert!(poll(&mut wait, &task).is_pending());
            assert_eq!(task.wakes(), wakes);
            number.set(number.get() + 1);
            assert!(poll(&mut wait, &task).is_pending(), "it was not notified");
            notifies(&notify);
        }
        assert!(poll(&mut wait, &task).is_ready());
    }
}

fn waiting_until_misses_no_notification_while_it_asks<B: Backend>() {
    let ((notify, task), number) = (pair::<B>(), Cell::new(0));
    let mut wait = notify.wait_until(|| {
        let before = number.replace(2);
        notify.notify_waiters();
        before >= 2
    });
    assert!(poll(&mut wait, &task).is_ready());
}

fn waiting_until_takes_permits_until_the_predicate_holds<B: Backend>() {
    let ((notify, task), number) = (pair::<B>(), Cell::new(0));
    notify.notify_one();
    let mut wait = until_two(&notify, &number);
    assert!(poll(&mut wait, &task).is_pending());
    assert!(poll(&mut notify.notified(), &task).is_pending());
    number.set(2);
    notify.notify_one();
    assert!(poll(&mut wait, &task).is_ready());
}

fn waiting_until_hands_on_what_it_was_notified_of<B: Backend>() {
    let ((notify, task), number) = (pair::<B>(), Cell::new(0));
    let mut wait = until_two(&notify, &number);
    assert!(poll(&mut wait, &task).is_pending());
    let mut next = queued(&notify, &task);
    notify.notify_one();
    drop(wait);
    assert!(poll(&mut next, &task).is_ready());
}

fn a_predicate_that_panics_is_asked_again<B: Backend>() {
    let ((notify, task), asked) = (pair::<B>(), Cell::new(0));
    let mut wait = notify.wait_until(|| {
        asked.set(asked.get() + 1);
        assert!(asked.get() > 1, "no answer");
        true
    });
    let message = panic_of(|| assert!(poll(&mut wait, &task).is_ready()));
    assert_eq!(message.as_deref(), Some("no answer"));
    assert!(poll(&mut wait, &task).is_ready());
}

fn waiting_until_polled_after_the_end_panics_with_the_name<B: Backend>() {
    let (notify, task) = pair::<B>();
    let mut wait = notify.wait_until(|| true);
    assert!(poll(&mut wait, &task).is_ready());
    let message = panic_of(|| assert!(poll(&mut wait, &task).is_ready()));
    assert_eq!(
        message.as_deref(),
        Some("Notify::wait_until polled after it was ready")
    );
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (notify, task) = (Arc::new(Notify::<B>::new_in()), Probe::new());
    let shown = |permit: bool, waiting: usize, granted: usize| {
        format!("Notify {{ permit: {permit}, waiting: {waiting}, granted: {granted} }}")
    };
    assert_eq!(format!("{notify:?}"), shown(false, 0, 0));
    let wait = queued(&notify, &task);
    assert_eq!(format!("{notify:?}"), shown(false, 1, 0));
    notify.notify_one();
    assert_eq!(format!("{notify:?}"), shown(false, 0, 1));
    drop(wait);
    assert_eq!(format!("{notify:?}"), shown(true, 0, 0));

    let (wait, owned) = (notify.notified(), notify.clone().notified_owned());
    assert_eq!(format!("{wait:?}"), "Notified { stage: Created }");
    assert_eq!(format!("{owned:?}"), "OwnedNotified { stage: Created }");
    assert_eq!(
        format!("{:?}", notify.wait_until(|| true)),
        "WaitUntil { notified: Notified { stage: Created }, .. }"
    );
}

#[test]
fn constants_need_no_initialization() {
    static NEW: Notify = Notify::new();
    static CONST: Notify = Notify::const_new();
    for notify in [&NEW, &CONST, &Notify::default()] {
        notify.notify_one();
        block_on::<Native, _>(notify.notified());
    }
}

/// Two threads alternate: each waits to be notified, and then notifies the other.
#[test]
fn threads_that_take_turns_lose_no_notification() {
    const ROUNDS: usize = 1000;
    let notifies = [Notify::new(), Notify::new()];
    let turns = AtomicUsize::new(0);
    notifies[0].notify_one();
    thread::scope(|scope| {
        for me in 0..2 {
            let (notifies, turns) = (&notifies, &turns);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    block_on::<Native, _>(notifies[me].notified());
                    assert_eq!(turns.fetch_add(1, Ordering::Relaxed), 2 * round + me);
                    notifies[1 - me].notify_one();
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), 2 * ROUNDS);
}

#[test]
fn threads_that_wait_until_see_every_change() {
    const ROUNDS: usize = 1000;
    let (changed, number) = (Notify::new(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for me in 0..2 {
            let (changed, number) = (&changed, &number);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mine = 2 * round + me;
                    let turn = changed.wait_until(|| number.load(Ordering::Acquire) == mine);
                    block_on::<Native, _>(turn);
                    number.store(mine + 1, Ordering::Release);
                    changed.notify_waiters();
                }
            });
        }
    });
    assert_eq!(number.into_inner(), 2 * ROUNDS);
}

/// Waits are dropped while they are being notified. Each notification ends one wait,
/// or is stored as the permit.
#[test]
fn threads_that_give_up_swallow_no_notification() {
    const NOTIFICATIONS: usize = 500;
    let (notify, seen) = (Notify::new(), Semaphore::new(0));
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let task = Probe::new();
            for _ in 0..NOTIFICATIONS {
                while poll(&mut notify.notified(), &task).is_pending() {
                    thread::yield_now();
                }
                seen.add_permits(1);
            }
        });
        for _ in 0..NOTIFICATIONS {
            notify.notify_one();
            seen.blocking_acquire().expect("it is open").forget();
        }
        waits.join().expect("nothing is lost");
    });
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    fn send_sync_unpin<T: Send + Sync + Unpin>() {}
    send_sync_unpin::<Notify>();
    send_sync_unpin::<Notified<'_>>();
    send_sync_unpin::<OwnedNotified>();
    send_sync_unpin::<WaitUntil<'_, fn() -> bool>>();
    // Besides where they were called, if that is kept.
    let location = size_of::<reveille::protocol::CallerLocation>();
    let words = |size: usize| (size - location).div_ceil(size_of::<usize>());
    assert!(words(size_of::<Notified<'_>>()) <= 3);
    assert!(words(size_of::<OwnedNotified>()) <= 3);
    assert!(words(size_of::<WaitUntil<'_, fn() -> bool>>()) <= 5);
}
