//! What `reveille::Semaphore` promises: the semantics of
//! `tokio::sync::Semaphore` over every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::{WakeList, block_on};
use reveille::semaphore::{Acquire, Permit};
use reveille::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    permits_are_acquired_and_given_back,
    there_may_be_none,
    what_is_free_is_acquired_without_waiting,
    a_request_waits_until_there_are_enough,
    one_release_lets_several_go_on_in_order,
    a_small_request_does_not_pass_a_large_one,
    a_large_request_that_gives_up_lets_the_small_ones_go_on,
    it_is_barged_as_often_as_the_bound_says,
    later_requests_that_await_are_held_to_the_bound,
    a_large_request_is_barged_past_no_more_than_a_small_one,
    a_request_for_none_is_ready_at_once,
    a_request_up_to_many_takes_what_is_free,
    a_request_up_to_many_waits_for_the_least,
    a_request_for_at_least_zero_does_not_barge,
    a_request_with_most_below_least_is_refused,
    a_request_for_more_than_there_can_be_waits_to_be_told,
    a_wait_that_is_dropped_leaves_the_queue,
    a_grant_dropped_unseen_goes_to_the_next,
    a_wake_dropped_unseen_goes_to_the_next,
    a_waiter_woken_too_soon_is_woken_again,
    the_first_wakes_the_next_when_it_acquires,
    permits_are_added_open_or_closed,
    adding_lets_more_go_on_than_a_wake_list_holds,
    there_are_as_many_as_max_permits_and_no_more,
    permits_that_overflow_when_given_back_panic_and_change_nothing,
    free_permits_are_forgotten_open_or_closed,
    permits_that_are_held_can_be_forgotten,
    shrinking_takes_what_is_free_now_and_the_rest_later,
    what_is_added_pays_the_debt_first,
    a_grant_that_is_dropped_pays_the_debt,
    what_is_acquired_up_to_pays_its_part_of_the_debt,
    permits_merge_and_split,
    more_than_there_are_cannot_be_split_off,
    permits_of_two_semaphores_do_not_merge,
    permits_that_cannot_be_counted_do_not_merge,
    closing_refuses_later_requests,
    closing_wakes_all_waiters,
    closing_tells_more_than_a_wake_list_holds,
    what_was_granted_before_the_close_is_acquired,
    permits_are_given_back_to_a_closed_semaphore,
    owned_permits_keep_the_semaphore,
    owned_requests_are_of_the_same_queue,
    the_wait_can_change_its_task,
    a_waker_may_use_the_semaphore_when_it_is_woken,
    a_waker_may_release_when_it_is_cloned,
    an_acquire_within_a_close_is_refused,
    a_waker_that_panics_costs_no_other_the_permits,
    a_waker_that_panics_costs_no_other_the_close,
    permits_acquired_by_a_poll_that_panics_are_not_lost,
    leaked_permits_are_gone,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
];

/// Creates a semaphore that grants in the order of the requests.
fn strict<B: Backend>(permits: usize) -> Semaphore<B> {
    Semaphore::with_max_barges_in(permits, 0)
}

/// Returns a request that is queued.
fn queued<'a, B: Backend>(
    semaphore: &'a Semaphore<B>,
    permits: usize,
    task: &Probe,
) -> Acquire<&'a Semaphore<B>, B> {
    let mut acquire = semaphore.acquire_many(permits);
    assert!(poll(&mut acquire, task).is_pending());
    acquire
}

/// Returns the permits of a request that is over.
fn acquired<'a, B: Backend>(
    acquire: &mut Acquire<&'a Semaphore<B>, B>,
    task: &Probe,
) -> SemaphorePermit<'a, B> {
    match poll(acquire, task) {
        Poll::Ready(permits) => permits.expect("it is open"),
        Poll::Pending => panic!("there are enough"),
    }
}

fn permits_are_acquired_and_given_back<B: Backend>() {
    let semaphore = strict::<B>(3);
    let one = semaphore.try_acquire().unwrap();
    let two = semaphore.try_acquire_many(2).unwrap();
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits
    );
    drop(one);
    assert_eq!(semaphore.available_permits(), 1);
    assert!(semaphore.try_acquire_many(2).is_err());
    drop(two);
    assert_eq!(semaphore.available_permits(), 3);
    assert!(semaphore.try_acquire_many(3).is_ok());
}

fn there_may_be_none<B: Backend>() {
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let mut acquire = queued(&semaphore, 1, &task);
    semaphore.add_permits(1);
    assert_eq!(task.wakes(), 1);
    acquired(&mut acquire, &task).forget();
}

fn what_is_free_is_acquired_without_waiting<B: Backend>() {
    let (semaphore, task) = (strict::<B>(3), Probe::new());
    let one = acquired(&mut semaphore.acquire(), &task);
    let two = acquired(&mut semaphore.acquire_many(2), &task);
    assert_eq!((one.num_permits(), two.num_permits()), (1, 2));
    assert_eq!(task.clones(), 0);
}

fn a_request_waits_until_there_are_enough<B: Backend>() {
    let (semaphore, task) = (strict::<B>(3), Probe::new());
    let mut held = semaphore.try_acquire_many(3).unwrap();
    let mut acquire = queued(&semaphore, 2, &task);
    drop(held.split(1));
    assert_eq!((task.wakes(), semaphore.available_permits()), (0, 1));
    drop(held.split(1));
    assert_eq!((task.wakes(), semaphore.available_permits()), (1, 0));
    assert_eq!(acquired(&mut acquire, &task).num_permits(), 2);
}

fn one_release_lets_several_go_on_in_order<B: Backend>() {
    let (semaphore, tasks) = (strict::<B>(4), [(); 4].map(|()| Probe::new()));
    let held = semaphore.try_acquire_many(4).unwrap();
    let sizes = [1, 2, 2, 1];
    let mut requests: [_; 4] =
        std::array::from_fn(|which| queued(&semaphore, sizes[which], &tasks[which]));
    drop(held);
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 1, 0, 0]);
    assert_eq!((semaphore.granted(), semaphore.waiting()), (2, 2));
    drop(acquired(&mut requests[0], &tasks[0]));
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 1, 1, 0]);
    drop(acquired(&mut requests[1], &tasks[1]));
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1; 4]);
}

fn a_small_request_does_not_pass_a_large_one<B: Backend>() {
    let (semaphore, task) = (strict::<B>(2), Probe::new());
    let held = semaphore.try_acquire().unwrap();
    let mut large = queued(&semaphore, 2, &task);
    let mut small = queued(&semaphore, 1, &task);
    assert!(semaphore.try_acquire().is_err());
    drop(held);
    assert!(poll(&mut small, &task).is_pending());
    drop(acquired(&mut large, &task));
    assert_eq!(acquired(&mut small, &task).num_permits(), 1);
}

fn a_large_request_that_gives_up_lets_the_small_ones_go_on<B: Backend>() {
    let (semaphore, task) = (strict::<B>(2), Probe::new());
    let large = queued(&semaphore, 3, &Probe::new());
    let mut small = [queued(&semaphore, 1, &task), queued(&semaphore, 1, &task)];
    drop(large);
    assert_eq!(task.wakes(), 2);
    let permits = small.each_mut().map(|small| acquired(small, &task));
    assert_eq!(semaphore.available_permits(), 0);
    drop(permits);
}

/// Returns how often the semaphore can be barged, one time after the other, before it
/// is refused.
fn barges(mut acquires: impl FnMut() -> bool) -> usize {
    (0..=1000)
        .position(|_| !acquires())
        .expect("there is a bound")
}

const BOUNDS: [u16; 5] = [0, 1, 2, 16, 255];

fn it_is_barged_as_often_as_the_bound_says<B: Backend>() {
    for bound in BOUNDS {
        let (semaphore, task) = (Semaphore::<B>::with_max_barges_in(1, bound), Probe::new());
        let held = semaphore.try_acquire().unwrap();
        let mut acquire = queued(&semaphore, 1, &task);
        drop(held);
        let barges = barges(|| semaphore.try_acquire().is_ok());
        assert_eq!(barges, usize::from(bound));
        assert_eq!(semaphore.granted(), 1, "it has been handed over");
        drop(acquired(&mut acquire, &task));
    }
}

fn later_requests_that_await_are_held_to_the_bound<B: Backend>() {
    for bound in BOUNDS {
        let (semaphore, task) = (Semaphore::<B>::with_max_barges_in(1, bound), Probe::new());
        let held = semaphore.try_acquire().unwrap();
        let mut first = queued(&semaphore, 1, &task);
        drop(held);
        let newcomers = barges(|| poll(&mut semaphore.acquire(), &task).is_ready());
        assert_eq!(newcomers, usize::from(bound));
        drop(acquired(&mut first, &task));
    }
}

/// The bound counts each request that barges, whether or not there were enough
/// permits for the first one at the time.
fn a_large_request_is_barged_past_no_more_than_a_small_one<B: Backend>() {
    for bound in BOUNDS {
        let (semaphore, task) = (Semaphore::<B>::with_max_barges_in(3, bound), Probe::new());
        let held = semaphore.try_acquire().unwrap();
        let mut large = queued(&semaphore, 3, &task);
        let barges = barges(|| semaphore.try_acquire().is_ok());
        assert_eq!(barges, usize::from(bound));
        drop(held);
        assert_eq!(acquired(&mut large, &task).num_permits(), 3);
    }
}

fn a_request_for_none_is_ready_at_once<B: Backend>() {
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let _waits = queued(&semaphore, 1, &task);
    let none = acquired(&mut semaphore.acquire_many(0), &task);
    assert_eq!((none.num_permits(), semaphore.waiting()), (0, 1));
    assert!(semaphore.try_acquire_many(0).is_ok());
    semaphore.close();
    assert_eq!(
        semaphore.try_acquire_many(0).unwrap_err(),
        TryAcquireError::Closed
    );
}

fn a_request_up_to_many_takes_what_is_free<B: Backend>() {
    let (semaphore, task) = (strict::<B>(5), Probe::new());
    let three = acquired(&mut semaphore.acquire_up_to(1, 3), &task);
    let two = acquired(&mut semaphore.acquire_up_to(1, 3), &task);
    assert_eq!((three.num_permits(), two.num_permits()), (3, 2));
    drop((three, two));
    assert_eq!(semaphore.available_permits(), 5);
}

fn a_request_up_to_many_waits_for_the_least<B: Backend>() {
    let (semaphore, task) = (strict::<B>(1), Probe::new());
    let mut acquire = semaphore.acquire_up_to(2, 4);
    assert!(poll(&mut acquire, &task).is_pending());
    semaphore.add_permits(2);
    assert_eq!(acquired(&mut acquire, &task).num_permits(), 3);
    let mut acquire = semaphore.acquire_up_to(4, 4);
    assert!(poll(&mut acquire, &task).is_pending());
    semaphore.add_permits(9);
    assert_eq!(acquired(&mut acquire, &task).num_permits(), 4);
}

fn a_request_for_at_least_zero_does_not_barge<B: Backend>() {
    for bound in BOUNDS {
        let (semaphore, task) = (Semaphore::<B>::with_max_barges_in(2, bound), Probe::new());
        assert_eq!(
            acquired(&mut semaphore.acquire_up_to(0, 2), &task).num_permits(),
            2
        );
        let _large = queued(&semaphore, 3, &task);
        let takes = || acquired(&mut semaphore.acquire_up_to(0, 2), &task).num_permits() > 0;
        assert_eq!(barges(takes), usize::from(bound));
        assert_eq!(semaphore.available_permits(), 2);
    }
}

fn a_request_with_most_below_least_is_refused<B: Backend>() {
    let semaphore = strict::<B>(5);
    let message = panic_of(|| drop(semaphore.acquire_up_to(3, 2)));
    assert_eq!(
        message.as_deref(),
        Some("cannot acquire at least 3 and at most 2 permits")
    );
    assert_eq!(semaphore.available_permits(), 5);
}

fn a_request_for_more_than_there_can_be_waits_to_be_told<B: Backend>() {
    let (semaphore, task) = (strict::<B>(Semaphore::MAX_PERMITS), Probe::new());
    for permits in [Semaphore::MAX_PERMITS + 1, usize::MAX] {
        assert_eq!(
            semaphore.try_acquire_many(permits).unwrap_err(),
            TryAcquireError::NoPermits
        );
        drop(queued(&semaphore, permits, &task));
    }
    let mut acquire = queued(&semaphore, usize::MAX, &task);
    semaphore.close();
    assert!(matches!(poll(&mut acquire, &task), Poll::Ready(Err(_))));
}

fn a_wait_that_is_dropped_leaves_the_queue<B: Backend>() {
    let (semaphore, gone, stays) = (strict::<B>(0), Probe::new(), Probe::new());
    let first = queued(&semaphore, 1, &gone);
    let mut second = queued(&semaphore, 1, &stays);
    drop(first);
    assert_eq!((semaphore.waiting(), gone.kept()), (1, 0));
    semaphore.add_permits(1);
    assert_eq!((gone.wakes(), stays.wakes()), (0, 1));
    drop(acquired(&mut second, &stays));
}

fn a_grant_dropped_unseen_goes_to_the_next<B: Backend>() {
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let large = queued(&semaphore, 3, &Probe::new());
    let mut small = [queued(&semaphore, 1, &task), queued(&semaphore, 2, &task)];
    semaphore.add_permits(3);
    assert_eq!((semaphore.granted(), task.wakes()), (1, 0));
    drop(large);
    assert_eq!((semaphore.granted(), task.wakes()), (2, 2));
    drop(small.each_mut().map(|small| acquired(small, &task)));
    assert_eq!(semaphore.available_permits(), 3);
}

fn a_wake_dropped_unseen_goes_to_the_next<B: Backend>() {
    let (semaphore, first, second) = (
        Semaphore::<B>::with_max_barges_in(0, 4),
        Probe::new(),
        Probe::new(),
    );
    let one = queued(&semaphore, 1, &first);
    let mut two = queued(&semaphore, 1, &second);
    semaphore.add_permits(1);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(one);
    assert_eq!(second.wakes(), 1);
    drop(acquired(&mut two, &second));
}

/// The bound is not reached, so a release leaves the permit free. But the first
/// waiter has looked for permits in vain since it was woken.
fn a_waiter_woken_too_soon_is_woken_again<B: Backend>() {
    let (semaphore, task) = (Semaphore::<B>::with_max_barges_in(0, 2), Probe::new());
    let mut first = queued(&semaphore, 1, &task);
    semaphore.add_permits(1);
    let barges = semaphore.try_acquire().unwrap();
    assert!(poll(&mut first, &task).is_pending());
    assert_eq!(task.wakes(), 1);
    drop(barges);
    assert_eq!(task.wakes(), 2);
    drop(acquired(&mut first, &task));
}

fn the_first_wakes_the_next_when_it_acquires<B: Backend>() {
    let (semaphore, first, second) = (
        Semaphore::<B>::with_max_barges_in(0, 2),
        Probe::new(),
        Probe::new(),
    );
    let (mut one, mut two) = (
        queued(&semaphore, 1, &first),
        queued(&semaphore, 1, &second),
    );
    semaphore.add_permits(2);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    let _held = acquired(&mut one, &first);
    assert_eq!(second.wakes(), 1);
    drop(acquired(&mut two, &second));
}

fn permits_are_added_open_or_closed<B: Backend>() {
    for (permits, added) in [(0, 0), (0, 3), (2, 0), (2, 3)] {
        let semaphore = strict::<B>(permits);
        semaphore.add_permits(added);
        assert_eq!(semaphore.available_permits(), permits + added);
        semaphore.close();
        semaphore.add_permits(added);
        assert_eq!(semaphore.available_permits(), permits + 2 * added);
        assert!(semaphore.is_closed());
    }
}

fn adding_lets_more_go_on_than_a_wake_list_holds<B: Backend>() {
    const WAITS: usize = 3 * WakeList::CAPACITY + 1;
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let mut waits: Vec<_> = (0..WAITS).map(|_| queued(&semaphore, 1, &task)).collect();
    semaphore.add_permits(WAITS);
    assert_eq!((task.wakes(), task.kept()), (WAITS, 0));
    assert_eq!(semaphore.available_permits(), 0);
    for wait in &mut waits {
        drop(acquired(wait, &task));
    }
    assert_eq!(semaphore.available_permits(), WAITS);
}

fn there_are_as_many_as_max_permits_and_no_more<B: Backend>() {
    let max = Semaphore::MAX_PERMITS;
    let semaphore = strict::<B>(0);
    semaphore.add_permits(max);
    assert_eq!(semaphore.available_permits(), max);
    let permits = semaphore.try_acquire_many(max).unwrap();
    drop(permits);
    for added in [1, max, usize::MAX] {
        let message = panic_of(|| semaphore.add_permits(added));
        assert_eq!(
            message.expect("it panics"),
            format!("{added} permits cannot be added to {max}: a semaphore has at most {max}")
        );
        assert_eq!(semaphore.available_permits(), max);
    }
    let message = panic_of(|| drop(strict::<B>(max + 1)));
    assert_eq!(
        message.as_deref(),
        Some("a semaphore holds at most Semaphore::MAX_PERMITS permits")
    );
}

/// They overflow because permits are added while others are held.
fn permits_that_overflow_when_given_back_panic_and_change_nothing<B: Backend>() {
    let max = Semaphore::MAX_PERMITS;
    let (semaphore, task) = (strict::<B>(2), Probe::new());
    let held = semaphore.try_acquire_many(2).unwrap();
    semaphore.add_permits(max - 1);
    let message = panic_of(|| drop(held));
    assert_eq!(
        message.as_deref(),
        Some("a release makes more permits than Semaphore::MAX_PERMITS")
    );
    assert_eq!(semaphore.available_permits(), max - 1);
    semaphore.add_permits(1);
    assert_eq!(
        acquired(&mut semaphore.acquire_many(max), &task).num_permits(),
        max
    );

    // The same with a request that waits.
    let held = semaphore.try_acquire_many(max).unwrap();
    let waits = queued(&semaphore, usize::MAX, &task);
    semaphore.add_permits(1);
    assert!(panic_of(|| drop(held)).is_some());
    assert_eq!((semaphore.available_permits(), semaphore.waiting()), (1, 1));
    drop(waits);
    assert!(semaphore.try_acquire().is_ok());
}

fn free_permits_are_forgotten_open_or_closed<B: Backend>() {
    for closed in [false, true] {
        for (permits, forgotten) in [(0, 0), (0, 3), (3, 0), (3, 2), (3, 3), (3, 4)] {
            let semaphore = strict::<B>(permits);
            if closed {
                semaphore.close();
            }
            let forgets = semaphore.forget_permits(forgotten);
            assert_eq!(forgets, permits.min(forgotten));
            assert_eq!(semaphore.available_permits(), permits - forgets);
            assert_eq!(semaphore.is_closed(), closed);
        }
    }
}

fn permits_that_are_held_can_be_forgotten<B: Backend>() {
    let semaphore = strict::<B>(3);
    semaphore.try_acquire_many(2).unwrap().forget();
    assert_eq!(semaphore.available_permits(), 1);
    drop(semaphore.try_acquire().unwrap());
    assert_eq!(semaphore.available_permits(), 1);
}

fn shrinking_takes_what_is_free_now_and_the_rest_later<B: Backend>() {
    let (semaphore, task) = (strict::<B>(5), Probe::new());
    let mut held = semaphore.try_acquire_many(4).unwrap();
    semaphore.shrink(3);
    assert_eq!(semaphore.available_permits(), 0);
    let mut acquire = queued(&semaphore, 1, &task);
    drop(held.split(1));
    drop(held.split(1));
    assert_eq!((semaphore.available_permits(), task.wakes()), (0, 0));
    drop(held);
    assert_eq!((semaphore.available_permits(), task.wakes()), (1, 1));
    drop(acquired(&mut acquire, &task));
    assert_eq!(semaphore.available_permits(), 2);
}

fn what_is_added_pays_the_debt_first<B: Backend>() {
    let semaphore = strict::<B>(0);
    semaphore.shrink(3);
    semaphore.add_permits(2);
    assert_eq!(semaphore.available_permits(), 0);
    semaphore.add_permits(Semaphore::MAX_PERMITS);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS - 1);
    semaphore.shrink(usize::MAX);
    semaphore.shrink(usize::MAX);
    semaphore.add_permits(usize::MAX);
    assert_eq!(semaphore.available_permits(), 0, "the debt saturates");
}

fn a_grant_that_is_dropped_pays_the_debt<B: Backend>() {
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let (first, second) = (queued(&semaphore, 2, &task), queued(&semaphore, 1, &task));
    semaphore.add_permits(2);
    semaphore.shrink(1);
    drop(first);
    assert_eq!((task.wakes(), semaphore.available_permits()), (2, 0));
    drop(second);
    assert_eq!(semaphore.available_permits(), 1);
}

fn what_is_acquired_up_to_pays_its_part_of_the_debt<B: Backend>() {
    let (semaphore, task) = (strict::<B>(4), Probe::new());
    let permits = acquired(&mut semaphore.acquire_up_to(1, 9), &task);
    semaphore.shrink(3);
    drop(permits);
    assert_eq!(semaphore.available_permits(), 1);
}

fn permits_merge_and_split<B: Backend>() {
    let semaphore = Arc::new(strict::<B>(5));
    let mut permits = semaphore.try_acquire().unwrap();
    permits.merge(semaphore.try_acquire_many(3).unwrap());
    assert_eq!(
        (permits.num_permits(), semaphore.available_permits()),
        (4, 1)
    );
    let three = permits.split(3).unwrap();
    let none = permits.split(0).unwrap();
    assert_eq!(
        [&permits, &three, &none].map(Permit::num_permits),
        [1, 3, 0]
    );
    drop(three);
    assert_eq!(semaphore.available_permits(), 4);
    drop(none);
    drop(permits);
    assert_eq!(semaphore.available_permits(), 5);

    let mut owned = semaphore.clone().try_acquire_many_owned(3).unwrap();
    let other = owned.split(1).unwrap();
    assert!(Arc::ptr_eq(other.semaphore(), &semaphore));
    drop(owned);
    assert_eq!(semaphore.available_permits(), 4);
    drop(other);
    assert_eq!(semaphore.available_permits(), 5);
}

fn more_than_there_are_cannot_be_split_off<B: Backend>() {
    let semaphore = strict::<B>(2);
    let mut permits = semaphore.try_acquire_many(2).unwrap();
    assert!(permits.split(3).is_none());
    assert_eq!(permits.num_permits(), 2);
    let all = permits.split(2).unwrap();
    assert_eq!((permits.num_permits(), all.num_permits()), (0, 2));
    assert!(permits.split(1).is_none());
}

fn permits_of_two_semaphores_do_not_merge<B: Backend>() {
    let (one, two) = (strict::<B>(1), strict::<B>(1));
    let mut permits = one.try_acquire().unwrap();
    let others = two.try_acquire().unwrap();
    let message = panic_of(|| permits.merge(others));
    assert_eq!(
        message.as_deref(),
        Some("permits of one semaphore cannot be merged with those of another")
    );
    assert_eq!(permits.num_permits(), 1);
    assert_eq!((one.available_permits(), two.available_permits()), (0, 1));
}

fn permits_that_cannot_be_counted_do_not_merge<B: Backend>() {
    let max = Semaphore::MAX_PERMITS;
    let semaphore = strict::<B>(max);
    let mut permits = semaphore.try_acquire_many(max).unwrap();
    for _ in 1..usize::MAX / max {
        semaphore.add_permits(max);
        permits.merge(semaphore.try_acquire_many(max).unwrap());
    }
    let held = permits.num_permits();
    semaphore.add_permits(max);
    let others = semaphore.try_acquire_many(max).unwrap();
    let message = panic_of(|| permits.merge(others));
    assert_eq!(
        message.as_deref(),
        Some("the sum of the merged permits is too large to count")
    );
    assert_eq!(
        (permits.num_permits(), semaphore.available_permits()),
        (held, max)
    );
    permits.forget();
}

fn closing_refuses_later_requests<B: Backend>() {
    let (semaphore, task) = (Arc::new(strict::<B>(1)), Probe::new());
    assert!(!semaphore.is_closed());
    semaphore.close();
    semaphore.close();
    assert!(semaphore.is_closed());
    let Poll::Ready(Err(error)) = poll(&mut semaphore.acquire(), &task) else {
        panic!("it is closed")
    };
    let owned = poll(&mut semaphore.clone().acquire_owned(), &task);
    assert!(matches!(owned, Poll::Ready(Err(ref other)) if *other == error));
    let closed = TryAcquireError::Closed;
    assert_eq!(semaphore.try_acquire().unwrap_err(), closed);
    assert_eq!(semaphore.try_acquire_many(9).unwrap_err(), closed);
    assert_eq!(semaphore.try_acquire_owned().unwrap_err(), closed);
}

fn closing_wakes_all_waiters<B: Backend>() {
    for bound in [0, 2] {
        let (semaphore, task) = (Semaphore::<B>::with_max_barges_in(1, bound), Probe::new());
        let mut waits = [queued(&semaphore, 3, &task), queued(&semaphore, 2, &task)];
        semaphore.close();
        assert_eq!((task.wakes(), semaphore.waiting()), (2, 0));
        for wait in &mut waits {
            assert!(matches!(poll(wait, &task), Poll::Ready(Err(_))));
        }
        assert_eq!((semaphore.granted(), task.kept()), (0, 0));
        assert_eq!(semaphore.available_permits(), 1);
    }
}

fn closing_tells_more_than_a_wake_list_holds<B: Backend>() {
    const WAITS: usize = 3 * WakeList::CAPACITY + 1;
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let waits: Vec<_> = (0..WAITS).map(|_| queued(&semaphore, 1, &task)).collect();
    semaphore.close();
    assert_eq!((task.wakes(), task.kept()), (WAITS, 0));
    for mut wait in waits {
        assert!(matches!(poll(&mut wait, &task), Poll::Ready(Err(_))));
    }
}

fn what_was_granted_before_the_close_is_acquired<B: Backend>() {
    let (semaphore, task) = (strict::<B>(0), Probe::new());
    let (mut first, mut second) = (queued(&semaphore, 1, &task), queued(&semaphore, 1, &task));
    semaphore.add_permits(1);
    semaphore.close();
    assert_eq!(acquired(&mut first, &task).num_permits(), 1);
    assert!(matches!(poll(&mut second, &task), Poll::Ready(Err(_))));
    assert_eq!(semaphore.available_permits(), 1);
}

fn permits_are_given_back_to_a_closed_semaphore<B: Backend>() {
    let semaphore = strict::<B>(3);
    let permits = semaphore.try_acquire_many(2).unwrap();
    semaphore.close();
    drop(permits);
    assert_eq!(semaphore.available_permits(), 3);
}

fn owned_permits_keep_the_semaphore<B: Backend>() {
    let (semaphore, task) = (Arc::new(strict::<B>(3)), Probe::new());
    let one = semaphore.clone().try_acquire_owned().unwrap();
    let two = semaphore.clone().try_acquire_many_owned(2).unwrap();
    let mut more = semaphore.clone().acquire_many_owned(2);
    assert!(poll(&mut more, &task).is_pending());
    let weak = Arc::downgrade(&semaphore);
    drop(semaphore);
    drop(one);
    drop(two);
    let Poll::Ready(Ok(mut permits)) = poll(&mut more, &task) else {
        panic!("two are free")
    };
    assert_eq!(weak.upgrade().unwrap().available_permits(), 1);
    let split = permits.split(1).unwrap();
    drop(permits);
    assert!(weak.upgrade().is_some());
    drop(split);
    assert!(weak.upgrade().is_none());
}

fn owned_requests_are_of_the_same_queue<B: Backend>() {
    let (semaphore, task) = (Arc::new(strict::<B>(0)), Probe::new());
    let mut owned = semaphore.clone().acquire_owned();
    assert!(poll(&mut owned, &task).is_pending());
    let mut second = queued(&semaphore, 1, &task);
    semaphore.add_permits(1);
    assert!(poll(&mut second, &task).is_pending());
    drop(owned);
    drop(acquired(&mut second, &task));
}

fn the_wait_can_change_its_task<B: Backend>() {
    let (semaphore, first, second) = (strict::<B>(0), Probe::new(), Probe::new());
    let mut acquire = queued(&semaphore, 1, &first);
    assert!(poll(&mut acquire, &second).is_pending());
    assert_eq!((first.kept(), second.kept()), (0, 1));
    semaphore.add_permits(1);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_waker_may_use_the_semaphore_when_it_is_woken<B: Backend>() {
    let (semaphore, task) = (Rc::new(strict::<B>(0)), Probe::new());
    let mut waits = [queued(&semaphore, 1, &task), queued(&semaphore, 2, &task)];
    task.on(Event::Wake, {
        let semaphore = semaphore.clone();
        move || {
            assert!(semaphore.try_acquire().is_err(), "another waits");
            semaphore.add_permits(3);
            drop(semaphore.try_acquire().expect("one is left"));
        }
    });
    semaphore.add_permits(1);
    assert_eq!((task.acts_left(), task.wakes()), (0, 2));
    drop(waits.each_mut().map(|wait| acquired(wait, &task)));
    assert_eq!(semaphore.available_permits(), 4);
}

/// Returns a semaphore of three permits, which a waker of `task` releases at the next
/// `event`.
fn released_by<B: Backend>(task: &Probe, event: Event) -> Arc<Semaphore<B>> {
    let semaphore = Arc::new(strict::<B>(3));
    let permits = semaphore.clone().try_acquire_many_owned(3).unwrap();
    task.on(event, move || drop(permits));
    semaphore
}

fn a_waker_may_release_when_it_is_cloned<B: Backend>() {
    let task = Probe::new();
    let semaphore = released_by::<B>(&task, Event::Clone);
    drop(acquired(&mut semaphore.acquire(), &task));
    assert_eq!((semaphore.waiting(), task.kept()), (0, 0));
}

fn an_acquire_within_a_close_is_refused<B: Backend>() {
    let (semaphore, task) = (Rc::new(strict::<B>(1)), Probe::new());
    let _waits: Vec<_> = (0..2 * WakeList::CAPACITY)
        .map(|_| queued(&semaphore, 2, &task))
        .collect();
    task.on(Event::Wake, {
        let semaphore = semaphore.clone();
        move || assert!(semaphore.try_acquire().is_err())
    });
    semaphore.close();
    assert_eq!(
        (task.acts_left(), task.wakes()),
        (0, 2 * WakeList::CAPACITY)
    );
}

fn a_waker_that_panics_costs_no_other_the_permits<B: Backend>() {
    let semaphore = strict::<B>(0);
    let tasks: Vec<Probe> = (0..2 * WakeList::CAPACITY).map(|_| Probe::new()).collect();
    let mut waits: Vec<_> = tasks.iter().map(|it| queued(&semaphore, 1, it)).collect();
    tasks[3].panic_on(Event::Wake);
    let message = panic_of(|| semaphore.add_permits(tasks.len()));
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(task.wakes(), 1);
        acquired(wait, task).forget();
    }
    assert_eq!(semaphore.available_permits(), 0);
}

fn a_waker_that_panics_costs_no_other_the_close<B: Backend>() {
    let semaphore = strict::<B>(0);
    let tasks: Vec<Probe> = (0..2 * WakeList::CAPACITY).map(|_| Probe::new()).collect();
    let waits: Vec<_> = tasks.iter().map(|it| queued(&semaphore, 1, it)).collect();
    tasks[3].panic_on(Event::Wake);
    panic_of(|| semaphore.close()).expect("a waker panics");
    for (mut wait, task) in waits.into_iter().zip(&tasks) {
        assert_eq!(task.wakes(), 1);
        assert!(matches!(poll(&mut wait, task), Poll::Ready(Err(_))));
    }
}

fn permits_acquired_by_a_poll_that_panics_are_not_lost<B: Backend>() {
    for polled_again in [false, true] {
        let task = Probe::new();
        let semaphore = released_by::<B>(&task, Event::Clone);
        let mut acquire = semaphore.acquire_up_to(1, 2);
        task.panic_on(Event::Drop);
        let message = panic_of(|| drop(poll(&mut acquire, &task)));
        assert_eq!(message.as_deref(), Some("the waker's Drop panics"));
        if polled_again {
            assert_eq!(acquired(&mut acquire, &task).num_permits(), 2);
        }
        drop(acquire);
        assert_eq!(semaphore.available_permits(), 3);
    }
}

fn leaked_permits_are_gone<B: Backend>() {
    let semaphore = strict::<B>(3);
    std::mem::forget(semaphore.try_acquire_many(2).unwrap());
    assert_eq!(semaphore.available_permits(), 1);
    assert!(semaphore.try_acquire_many(2).is_err());
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    let (semaphore, task) = (strict::<B>(1), Probe::new());
    for closed in [false, true] {
        if closed {
            semaphore.close();
        }
        let mut acquire = semaphore.acquire();
        drop(poll(&mut acquire, &task));
        let message = panic_of(|| drop(poll(&mut acquire, &task)));
        assert_eq!(
            message.as_deref(),
            Some("Semaphore::acquire polled after it was ready")
        );
        assert_eq!(semaphore.available_permits(), 1);
    }
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (semaphore, task) = (strict::<B>(1), Probe::new());
    let shown = |available: usize, closed: bool, waiting: usize, granted: usize| {
        format!(
            "Semaphore {{ permits: Permits {{ available: {available}, closed: {closed}, \
             waiting: {waiting}, granted: {granted}, .. }} }}"
        )
    };
    assert_eq!(format!("{semaphore:?}"), shown(1, false, 0, 0));
    let wait = queued(&semaphore, 2, &task);
    assert_eq!(format!("{semaphore:?}"), shown(1, false, 1, 0));
    semaphore.add_permits(1);
    assert_eq!(format!("{semaphore:?}"), shown(0, false, 0, 1));
    assert_eq!(format!("{wait:?}"), "Acquire { .. }");
    drop(wait);
    let permits = semaphore.try_acquire_many(2).unwrap();
    assert_eq!(format!("{permits:?}"), "Permit { permits: 2, .. }");
    semaphore.close();
    assert_eq!(format!("{semaphore:?}"), shown(0, true, 0, 0));
}

#[test]
fn constants_need_no_initialization() {
    static NEW: Semaphore = Semaphore::new(1);
    static CONST: Semaphore = Semaphore::const_new(1);
    static BOUND: Semaphore = Semaphore::with_max_barges(1, 3);
    for semaphore in [&NEW, &CONST, &BOUND] {
        assert_eq!(semaphore.blocking_acquire().unwrap().num_permits(), 1);
    }
}

#[test]
fn new_is_strict_and_with_bound_is_not() {
    let task = Probe::new();
    for (semaphore, bound) in [
        (Semaphore::new(1), 0),
        (Semaphore::const_new(1), 0),
        (Semaphore::with_max_barges(1, 3), 3),
    ] {
        let _waits = queued(&semaphore, 2, &task);
        assert_eq!(barges(|| semaphore.try_acquire().is_ok()), bound);
    }
}

#[test]
fn errors_say_what_is_wrong() {
    fn said<E: std::error::Error + PartialEq>(error: &E) -> String {
        error.to_string()
    }
    let semaphore = Semaphore::new(0);
    let none = semaphore.try_acquire().unwrap_err();
    assert_eq!(
        said(&none),
        "too few permits are free, or other requests wait for them"
    );
    semaphore.close();
    let closed: AcquireError = semaphore.blocking_acquire().unwrap_err();
    let sentence = "the semaphore is closed and grants no permits";
    assert_eq!(said(&closed), sentence);
    assert_eq!(said(&semaphore.try_acquire().unwrap_err()), sentence);
}

#[test]
fn a_blocking_request_takes_what_is_free() {
    let semaphore = Arc::new(Semaphore::new(6));
    let permits = (
        semaphore.blocking_acquire().unwrap(),
        semaphore.blocking_acquire_many(2).unwrap(),
        semaphore.clone().blocking_acquire_owned().unwrap(),
        semaphore.clone().blocking_acquire_many_owned(2).unwrap(),
    );
    assert_eq!(permits.0.num_permits() + permits.1.num_permits(), 3);
    assert_eq!(permits.2.num_permits() + permits.3.num_permits(), 3);
    assert_eq!(semaphore.available_permits(), 0);
    drop(permits);
    assert_eq!(semaphore.available_permits(), 6);
}

/// Blocks a thread on `blocks`, and runs `then` when the thread waits.
fn blocked(semaphore: &Semaphore, blocks: impl FnOnce() + Send, then: impl FnOnce()) {
    thread::scope(|scope| {
        scope.spawn(blocks);
        while semaphore.waiting() == 0 {
            thread::yield_now();
        }
        then();
    });
}

#[test]
fn a_blocking_request_waits_for_permits() {
    let semaphore = Arc::new(Semaphore::new(0));
    let owned = semaphore.clone();
    let add = |permits| {
        let semaphore = &semaphore;
        move || semaphore.add_permits(permits)
    };
    blocked(
        &semaphore,
        || semaphore.blocking_acquire().unwrap().forget(),
        add(1),
    );
    blocked(
        &semaphore,
        || semaphore.blocking_acquire_many(2).unwrap().forget(),
        add(2),
    );
    blocked(
        &semaphore,
        || owned.clone().blocking_acquire_owned().unwrap().forget(),
        add(1),
    );
    blocked(
        &semaphore,
        || {
            let permits = owned.clone().blocking_acquire_many_owned(2);
            permits.unwrap().forget();
        },
        add(2),
    );
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn a_blocking_request_is_told_of_the_close() {
    let semaphore = Arc::new(Semaphore::new(0));
    blocked(
        &semaphore,
        || assert!(semaphore.blocking_acquire().is_err()),
        || semaphore.close(),
    );
    assert!(semaphore.blocking_acquire_many(2).is_err());
    assert!(semaphore.clone().blocking_acquire_owned().is_err());
    assert!(semaphore.blocking_acquire_many_owned(2).is_err());
}

/// It blocks the thread, as documented, so the permits must be released on another
/// thread.
#[test]
fn a_blocking_request_within_an_executor_blocks_its_thread() {
    let semaphore = Semaphore::new(0);
    blocked(
        &semaphore,
        || {
            reveille_executor::block_on(async {
                semaphore.blocking_acquire().unwrap().forget();
            });
        },
        || semaphore.add_permits(1),
    );
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn threads_that_acquire_and_give_up_add_up() {
    const PERMITS: usize = 3;
    const ROUNDS: usize = 500;
    for bound in [0, 4] {
        let (semaphore, held) = (
            Semaphore::with_max_barges(PERMITS, bound),
            AtomicUsize::new(0),
        );
        thread::scope(|scope| {
            for size in 1..=PERMITS {
                let (semaphore, held) = (&semaphore, &held);
                let holds = move |permits: SemaphorePermit<'_>| {
                    let now = held.fetch_add(permits.num_permits(), Ordering::Relaxed);
                    assert!(now + permits.num_permits() <= PERMITS);
                    thread::yield_now();
                    held.fetch_sub(permits.num_permits(), Ordering::Relaxed);
                };
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        holds(block_on::<Native, _>(semaphore.acquire_many(size)).unwrap());
                        holds(semaphore.blocking_acquire_many(size).unwrap());
                    }
                });
                scope.spawn(move || {
                    let task = Probe::new();
                    for _ in 0..ROUNDS {
                        if let Poll::Ready(permits) =
                            poll(&mut semaphore.acquire_up_to(1, size), &task)
                        {
                            holds(permits.unwrap());
                        }
                    }
                });
            }
        });
        assert_eq!(semaphore.available_permits(), PERMITS);
        assert_eq!((semaphore.waiting(), semaphore.granted()), (0, 0));
    }
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    fn send_sync_unpin<T: Send + Sync + Unpin>() {}
    send_sync_unpin::<Semaphore>();
    send_sync_unpin::<Acquire<&Semaphore>>();
    send_sync_unpin::<Acquire<Arc<Semaphore>>>();
    send_sync_unpin::<SemaphorePermit<'_>>();
    send_sync_unpin::<OwnedSemaphorePermit>();
    let words = |size: usize| size.div_ceil(size_of::<usize>());
    assert!(words(size_of::<Acquire<&Semaphore>>()) <= 5);
    assert!(words(size_of::<Acquire<Arc<Semaphore>>>()) <= 5);
    assert!(words(size_of::<SemaphorePermit<'_>>()) <= 2);
    assert!(words(size_of::<OwnedSemaphorePermit>()) <= 2);
}
