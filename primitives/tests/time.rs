//! What `reveille::time` promises: the semantics of `tokio::time` over every backend,
//! on a clock that the test moves, then what is its own.

#![cfg(not(loom))]

mod support;

use std::cell::RefCell;
use std::future::{Ready, pending, ready};
use std::mem::size_of;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use futures_core::FusedFuture;
use reveille::backend::{Backend, DefaultBackend, Local, Native, Spin};
use reveille::protocol::WakeList;
use reveille::time::error::Elapsed;
use reveille::time::{
    Advance, Clock, DelayQueue, Duration, Expired, Instant, Interval, Key, MissedTickBehavior,
    NextExpired, RealClock, Sleep, Tick, Timeout, Timers, VirtualClock,
};
use reveille::{Mutex, Notify, Semaphore, oneshot};

use support::probe::{Event, Probe};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    a_sleep_ends_at_its_deadline_and_not_before,
    a_sleep_that_is_over_is_ready_at_once,
    a_sleep_that_is_over_by_the_clock_alone_is_ready_at_once,
    a_sleep_whose_deadline_the_clock_has_passed_is_ready,
    a_queue_is_not_woken_at_a_deadline_that_is_no_more,
    a_sleep_that_was_ready_is_ready_again,
    a_sleep_is_terminated_when_it_was_ready,
    a_sleep_can_change_its_task,
    a_dropped_sleep_leaves_nothing,
    a_reset_moves_a_sleep_whatever_it_is_doing,
    a_reset_leaves_the_waker_where_it_is,
    a_reset_to_the_past_wakes,
    sleeps_fire_in_the_order_of_deadlines,
    more_fire_than_one_section_lets_go,
    a_wait_begun_within_a_wake_does_not_join_the_round,
    a_waker_that_panics_costs_no_other_the_wake,
    a_clone_that_panics_leaves_a_sleep_that_can_be_polled,
    granularity_rounds_up,
    tm_01_the_driver_is_woken_for_a_nearer_deadline_and_no_other,
    tm_01_the_driver_is_woken_for_a_deadline_that_is_nearer_by_a_tick,
    tm_01_a_reset_to_a_nearer_deadline_wakes_the_driver,
    each_driver_is_woken_for_a_deadline_nearer_than_its_own,
    a_driver_that_leaves_leaves_no_waker,
    tm_06_a_reset_out_of_the_tick_that_fires,
    tm_06_a_waker_drops_the_other_timers_of_its_batch,
    tm_10_what_happens_after_late_ticks,
    tm_10_no_lateness_is_overlooked,
    tm_11_the_clock_moves_by_exactly_what_it_is_told,
    an_idle_executor_moves_the_clock_where_it_may,
    ov_03_very_long_sleeps_are_held,
    ov_03_everything_is_over_at_the_end_of_time,
    ov_06_sleeps_from_before_every_edge,
    ca_06_a_result_that_is_there_wins_over_the_deadline,
    ca_06_a_grant_that_comes_after_the_timeout_is_handed_on,
    a_timeout_ends_at_its_deadline,
    a_timeout_goes_on_after_its_deadline,
    an_interval_ticks_now_and_every_period,
    an_interval_that_ticks_waits_for_nothing,
    an_interval_is_reset,
    an_interval_reset_while_it_waits_wakes_its_task,
    an_interval_needs_a_period,
    a_queue_gives_values_out_in_the_order_of_deadlines,
    a_queue_gives_out_what_is_overdue,
    a_queue_that_gives_out_a_value_waits_for_nothing,
    a_queue_gives_out_what_is_overdue_first_in_the_order_in_which_it_came,
    a_queue_wakes_its_waiter_when_the_result_changes,
    a_queue_knows_its_keys,
    a_queue_that_is_compacted_knows_its_keys,
    a_queue_drops_what_it_holds,
    debug_output_names_what_is_known,
];

const MS: Duration = Duration::from_millis(1);

fn by_hand<B: Backend>() -> VirtualClock<B> {
    starting_at(Instant::ORIGIN)
}

fn starting_at<B: Backend>(start: Instant) -> VirtualClock<B> {
    VirtualClock::new_in(start, Advance::ByHand, Duration::from_nanos(1))
}

fn at(ms: u32) -> Instant {
    Instant::ORIGIN + MS * ms
}

fn a_sleep_ends_at_its_deadline_and_not_before<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut sleep = clock.timers().sleep(5 * MS);
    assert_eq!(sleep.deadline(), at(5));
    assert_eq!(clock.timers().waiting(), 0);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    assert_eq!((task.kept(), clock.timers().waiting()), (1, 1));

    clock.advance(5 * MS - Duration::from_nanos(1));
    assert_eq!((task.wakes(), sleep.is_elapsed()), (0, false));
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    clock.advance(Duration::from_nanos(1));
    assert_eq!((task.wakes(), sleep.is_elapsed()), (1, true));
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    assert_eq!((task.kept(), clock.timers().waiting()), (0, 0));
}

fn a_sleep_that_is_over_is_ready_at_once<B: Backend>() {
    let (clock, task) = (starting_at::<B>(at(10)), Probe::new());
    for mut sleep in [
        clock.timers().sleep(Duration::ZERO),
        clock.timers().sleep_until(at(10)),
        clock.timers().sleep_until(at(3)),
    ] {
        assert!(sleep.is_elapsed());
        assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    }
    // The deadline passes before the first poll.
    let mut sleep = clock.timers().sleep(MS);
    clock.advance(MS);
    assert!(sleep.is_elapsed());
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    assert_eq!((task.wakes(), task.kept()), (0, 0));
}

fn a_sleep_that_was_ready_is_ready_again<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut sleep = clock.timers().sleep(MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    clock.advance(MS);
    for _ in 0..3 {
        assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    }
}

/// It is not terminated before it has returned: `select!` of `futures` does not poll
/// a future that is.
fn a_sleep_is_terminated_when_it_was_ready<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut over = clock.timers().sleep(Duration::ZERO);
    assert!(over.is_elapsed() && !over.is_terminated());
    assert_eq!(poll(&mut over, &task), Poll::Ready(()));
    assert!(over.is_elapsed() && over.is_terminated());

    let mut sleep = clock.timers().sleep(MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    clock.advance(MS);
    assert!(sleep.is_elapsed() && !sleep.is_terminated());
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    assert!(sleep.is_terminated());
    Pin::new(&mut sleep).reset(at(2));
    assert!(!sleep.is_terminated());
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    Pin::new(&mut sleep).reset(at(0));
    assert!(sleep.is_elapsed() && !sleep.is_terminated());
}

fn a_sleep_can_change_its_task<B: Backend>() {
    let (clock, first, second) = (by_hand::<B>(), Probe::new(), Probe::new());
    let mut sleep = clock.timers().sleep(MS);
    assert_eq!(poll(&mut sleep, &first), Poll::Pending);
    assert_eq!(poll(&mut sleep, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    clock.advance(MS);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_dropped_sleep_leaves_nothing<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    for fired in [false, true] {
        let mut sleep = clock.timers().sleep(MS);
        assert_eq!(poll(&mut sleep, &task), Poll::Pending);
        if fired {
            clock.advance(MS);
        }
        drop(sleep);
        assert_eq!((task.kept(), clock.timers().waiting()), (0, 0));
        assert_eq!(clock.timers().next_deadline(), None);
    }
    assert_eq!(task.wakes(), 1);
}

fn a_reset_moves_a_sleep_whatever_it_is_doing<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut sleep = clock.timers().sleep(5 * MS);

    // Before its first poll.
    Pin::new(&mut sleep).reset(at(10));
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    clock.advance_to(at(9));
    // While it waits.
    Pin::new(&mut sleep).reset(at(20));
    assert_eq!(sleep.deadline(), at(20));
    clock.advance_to(at(19));
    assert_eq!(task.wakes(), 0);
    clock.advance_to(at(20));
    // When it has fired and has not been polled since.
    Pin::new(&mut sleep).reset(at(30));
    assert_eq!((task.wakes(), sleep.is_elapsed()), (1, false));
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    clock.advance_to(at(30));
    assert_eq!(task.wakes(), 2);
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    // When it was ready.
    Pin::new(&mut sleep).reset(at(40));
    assert!(!sleep.is_elapsed());
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    clock.advance_to(at(40));
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    assert_eq!((task.wakes(), task.kept()), (3, 0));
}

fn a_reset_leaves_the_waker_where_it_is<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut sleep = clock.timers().sleep(50 * MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    let clones = task.clones();
    for deadline in [70, 5, 60, 10, 40] {
        Pin::new(&mut sleep).reset(at(deadline));
        assert_eq!(clock.timers().next_deadline(), Some(at(deadline)));
    }
    clock.advance_to(at(39));
    assert_eq!((task.wakes(), task.kept()), (0, 1));
    clock.advance_to(at(40));
    assert_eq!((task.wakes(), task.clones()), (1, clones));
}

fn a_reset_to_the_past_wakes<B: Backend>() {
    let (clock, task) = (starting_at::<B>(at(10)), Probe::new());
    let mut sleep = clock.timers().sleep(5 * MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    Pin::new(&mut sleep).reset(at(10));
    assert_eq!((task.wakes(), task.kept()), (1, 0));
    assert!(sleep.is_elapsed());
    assert_eq!(clock.timers().waiting(), 0);
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
}

/// Returns a task that records its number when it is woken.
fn noting(number: usize, woken: &Rc<RefCell<Vec<usize>>>) -> Probe {
    let (task, woken) = (Probe::new(), woken.clone());
    task.on(Event::Wake, move || woken.borrow_mut().push(number));
    task
}

fn sleeps_fire_in_the_order_of_deadlines<B: Backend>() {
    let (clock, woken) = (by_hand::<B>(), Rc::default());
    let order = [
        (0, 70),
        (1, 3),
        (2, 5000),
        (3, 3),
        (4, 1),
        (5, 5000),
        (6, 69),
    ];
    let mut sleeps: Vec<_> = order
        .map(|(number, ms)| (clock.timers().sleep(MS * ms), noting(number, &woken)))
        .into();
    for (sleep, task) in &mut sleeps {
        assert_eq!(poll(sleep, task), Poll::Pending);
    }
    clock.advance(MS * 10_000);
    assert_eq!(*woken.borrow(), [4, 1, 3, 6, 0, 2, 5]);
}

fn more_fire_than_one_section_lets_go<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    for count in [1, 2, 3]
        .map(|lists| lists * WakeList::CAPACITY)
        .map(|it| it + 1)
    {
        let before = task.wakes();
        let mut sleeps: Vec<_> = (0..count).map(|_| clock.timers().sleep(MS)).collect();
        for sleep in &mut sleeps {
            assert_eq!(poll(sleep, &task), Poll::Pending);
        }
        clock.advance(MS);
        assert_eq!((task.wakes() - before, task.kept()), (count, 0));
        assert!(sleeps.iter().all(Sleep::is_elapsed));
    }
}

/// P3: not all wakers are taken out in one section. A sleep that is created in
/// between must not be fired with the rest, and one that is due already is ready, so
/// that firing ends.
fn a_wait_begun_within_a_wake_does_not_join_the_round<B: Backend>() {
    let clock = by_hand::<B>();
    let (task, newcomer) = (Probe::new(), Rc::new(Probe::new()));
    let mut sleeps: Vec<_> = (0..100).map(|_| clock.timers().sleep(MS)).collect();
    for sleep in &mut sleeps {
        assert_eq!(poll(sleep, &task), Poll::Pending);
    }
    let came = Rc::new(RefCell::new(Vec::new()));
    task.on(Event::Wake, {
        let (clock, came, newcomer) = (clock.clone(), came.clone(), newcomer.clone());
        move || {
            let mut due = clock.timers().sleep_until(at(1));
            assert_eq!(poll(&mut due, &newcomer), Poll::Ready(()));
            let mut later = clock.timers().sleep(MS);
            assert_eq!(poll(&mut later, &newcomer), Poll::Pending);
            came.borrow_mut().push(later);
        }
    });
    clock.advance(MS);
    assert_eq!((task.wakes(), newcomer.wakes()), (100, 0));
    clock.advance(MS);
    assert_eq!(newcomer.wakes(), 1);
}

fn a_waker_that_panics_costs_no_other_the_wake<B: Backend>() {
    let clock = by_hand::<B>();
    let tasks: Vec<Probe> = (0..WakeList::CAPACITY * 3).map(|_| Probe::new()).collect();
    let mut sleeps: Vec<_> = tasks.iter().map(|_| clock.timers().sleep(MS)).collect();
    for (sleep, task) in sleeps.iter_mut().zip(&tasks) {
        assert_eq!(poll(sleep, task), Poll::Pending);
    }
    tasks[3].panic_on(Event::Wake);
    let message = panic_of(|| clock.advance(MS));
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    assert_eq!(clock.now(), at(1));
    for (sleep, task) in sleeps.iter_mut().zip(&tasks) {
        assert_eq!(poll(sleep, task), Poll::Ready(()));
    }
}

fn a_clone_that_panics_leaves_a_sleep_that_can_be_polled<B: Backend>() {
    let (clock, bad, good) = (by_hand::<B>(), Probe::new(), Probe::new());
    let mut sleep = clock.timers().sleep(MS);
    bad.panic_on(Event::Clone);
    let message = panic_of(|| {
        let _ = poll(&mut sleep, &bad);
    });
    assert_eq!(message.as_deref(), Some("the waker's Clone panics"));
    assert_eq!(poll(&mut sleep, &good), Poll::Pending);
    clock.advance(MS);
    assert_eq!((bad.wakes(), good.wakes()), (0, 1));
    assert_eq!(poll(&mut sleep, &good), Poll::Ready(()));
}

fn granularity_rounds_up<B: Backend>() {
    for nanos in [1, 1000, 1 << 16, 1_000_000, 1 << 30] {
        let granularity = Duration::from_nanos(nanos);
        let clock = VirtualClock::<B>::new_in(at(7), Advance::ByHand, granularity);
        let tick = clock.timers().granularity();
        assert!(tick <= granularity && tick * 2 > granularity);
        for wanted in [1, 999, 65_535, 65_536, 65_537, 3_000_000_000] {
            let (task, wanted) = (Probe::new(), Duration::from_nanos(wanted));
            let (start, mut sleep) = (clock.now(), clock.timers().sleep(wanted));
            assert_eq!(poll(&mut sleep, &task), Poll::Pending);
            assert!(clock.advance_to_next());
            let slept = clock.now() - start;
            assert!(
                slept >= wanted && slept < wanted + tick,
                "{slept:?}, {wanted:?}"
            );
            assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
        }
    }
}

fn tm_01_the_driver_is_woken_for_a_deadline_that_is_nearer_by_a_tick<B: Backend>() {
    let (clock, driver, task) = (by_hand::<B>(), Probe::new(), Probe::new());
    let timers = clock.timers();
    let driving = timers.driver();
    let mut sleeps = [0, 0, 1].map(|nearer| timers.sleep(MS - Duration::from_nanos(nearer)));
    for (sleep, wakes) in sleeps.iter_mut().zip([1, 1, 2]) {
        driving.turn(&mut driver.cx());
        assert_eq!(poll(sleep, &task), Poll::Pending);
        assert_eq!(driver.wakes(), wakes);
    }
}

fn tm_01_the_driver_is_woken_for_a_nearer_deadline_and_no_other<B: Backend>() {
    let (clock, driver, task) = (by_hand::<B>(), Probe::new(), Probe::new());
    let timers = clock.timers();
    let driving = timers.driver();
    let mut sleeps: Vec<_> = [10, 20, 10, 5, 1, 3].map(|ms| timers.sleep(MS * ms)).into();
    assert_eq!(driving.turn(&mut driver.cx()), None);
    // After each turn, the deadlines that are added and how often they wake the
    // driver.
    for (sleep, nearer) in sleeps.iter_mut().zip([1, 0, 0, 1, 1, 0]) {
        let before = driver.wakes();
        assert_eq!(poll(sleep, &task), Poll::Pending);
        assert_eq!(driver.wakes() - before, nearer);
        // A driver that has been woken and has not had its turn is not woken again.
        if nearer == 1 {
            let mut nearest = timers.sleep(Duration::from_nanos(1));
            assert_eq!(poll(&mut nearest, &task), Poll::Pending);
            assert_eq!((driver.wakes() - before, driver.kept()), (1, 0));
        }
        driving.turn(&mut driver.cx());
        assert_eq!(driver.kept(), 1);
    }
    // A sleep that is dropped does not wake it either.
    let before = driver.wakes();
    sleeps.clear();
    assert_eq!(driver.wakes(), before);
}

fn tm_01_a_reset_to_a_nearer_deadline_wakes_the_driver<B: Backend>() {
    let (clock, driver, task) = (by_hand::<B>(), Probe::new(), Probe::new());
    let mut sleep = clock.timers().sleep(10 * MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    let driving = clock.timers().driver();
    driving.turn(&mut driver.cx());
    Pin::new(&mut sleep).reset(at(20));
    assert_eq!(driver.wakes(), 0);
    Pin::new(&mut sleep).reset(at(9));
    assert_eq!(driver.wakes(), 1);
}

fn each_driver_is_woken_for_a_deadline_nearer_than_its_own<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let timers = clock.timers();
    // There are more drivers than one section wakes.
    let drivers: Vec<_> = (0..40).map(|_| (timers.driver(), Probe::new())).collect();
    let mut sleeps: Vec<_> = [10, 20, 5].map(|ms| timers.sleep(MS * ms)).into();
    for (sleep, nearer) in sleeps.iter_mut().zip([1, 0, 1]) {
        for (driver, probe) in &drivers {
            assert_eq!(driver.turn(&mut probe.cx()), None);
        }
        let before: Vec<_> = drivers.iter().map(|(_, probe)| probe.wakes()).collect();
        assert_eq!(poll(sleep, &task), Poll::Pending);
        for ((_, probe), before) in drivers.iter().zip(before) {
            assert_eq!(probe.wakes() - before, nearer);
        }
    }
    // A driver that is awake is not woken, and does not keep the other from being
    // woken.
    let [(_, awake), (other, asleep)] = &drivers[..2] else {
        panic!("there are more");
    };
    let before = (awake.wakes(), asleep.wakes());
    other.turn(&mut asleep.cx());
    let mut nearest = timers.sleep(MS);
    assert_eq!(poll(&mut nearest, &task), Poll::Pending);
    assert_eq!((awake.wakes(), asleep.wakes()), (before.0, before.1 + 1));
}

fn a_driver_that_leaves_leaves_no_waker<B: Backend>() {
    let (clock, probe, task) = (by_hand::<B>(), Probe::new(), Probe::new());
    let [one, other] = [(); 2].map(|()| clock.timers().driver());
    one.turn(&mut probe.cx());
    assert_eq!(probe.kept(), 1);
    drop(one);
    let mut sleep = clock.timers().sleep(MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    assert_eq!((probe.wakes(), probe.kept()), (0, 0));
    other.turn(&mut probe.cx());
    let mut nearer = clock.timers().sleep(Duration::from_nanos(1));
    assert_eq!(poll(&mut nearer, &task), Poll::Pending);
    assert_eq!((probe.wakes(), probe.kept()), (1, 0));
}

fn tm_06_a_reset_out_of_the_tick_that_fires<B: Backend>() {
    let clock = by_hand::<B>();
    let tasks: [Probe; 3] = std::array::from_fn(|_| Probe::new());
    let mut sleeps = [5, 5, 10].map(|ms| clock.timers().sleep(MS * ms));
    for (sleep, task) in sleeps.iter_mut().zip(&tasks) {
        assert_eq!(poll(sleep, task), Poll::Pending);
    }
    let [mut a, mut b, c] = sleeps;
    Pin::new(&mut b).reset(at(10));
    clock.advance(MS * 5);
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 0, 0]);
    assert_eq!(poll(&mut a, &tasks[0]), Poll::Ready(()));
    drop(b);
    clock.advance(MS * 5);
    assert_eq!(tasks.each_ref().map(Probe::wakes), [1, 0, 1]);
    assert!(c.is_elapsed());

    // A sleep of the tick is reset while the tick fires, by the waker of another sleep.
    let (first, second) = (Probe::new(), Probe::new());
    let mut sleeps: Vec<_> = (0..100).map(|_| clock.timers().sleep(MS)).collect();
    let last = sleeps.pop().expect("there are some");
    for sleep in &mut sleeps {
        assert_eq!(poll(sleep, &first), Poll::Pending);
    }
    let last = Rc::new(RefCell::new(last));
    assert_eq!(poll(&mut *last.borrow_mut(), &second), Poll::Pending);
    first.on(Event::Wake, {
        let last = last.clone();
        move || Pin::new(&mut *last.borrow_mut()).reset(at(20))
    });
    clock.advance(MS);
    assert_eq!((first.wakes(), second.wakes()), (99, 0));
    clock.advance_to(at(20));
    assert_eq!((second.wakes(), last.borrow().is_elapsed()), (1, true));
}

fn tm_06_a_waker_drops_the_other_timers_of_its_batch<B: Backend>() {
    let clock = by_hand::<B>();
    let tasks: Vec<_> = (0..100).map(|_| Probe::new()).collect();
    let sleeps: Vec<_> = (0..100).map(|_| clock.timers().sleep(MS)).collect();
    let sleeps = Rc::new(RefCell::new(sleeps));
    for (sleep, task) in sleeps.borrow_mut().iter_mut().zip(&tasks) {
        assert_eq!(poll(sleep, task), Poll::Pending);
        let sleeps = Rc::clone(&sleeps);
        task.on(Event::Wake, move || drop(sleeps.take()));
    }
    clock.advance(MS * 2);
    // The wakers that were taken out with the first are woken. The others are gone.
    let woken: usize = tasks.iter().map(Probe::wakes).sum();
    assert_eq!(woken, WakeList::CAPACITY);
    assert!(tasks.iter().all(|task| task.kept() == 0));
    assert_eq!(clock.timers().waiting(), 0);
}

fn tm_10_what_happens_after_late_ticks<B: Backend>() {
    for (behavior, expected, next) in [
        (MissedTickBehavior::Burst, vec![0, 10, 20, 30, 40], 50),
        (MissedTickBehavior::Delay, vec![0, 10, 35], 51),
        (MissedTickBehavior::Skip, vec![0, 10, 30, 40], 50),
    ] {
        let (clock, task) = (by_hand::<B>(), Probe::new());
        let mut interval = clock.timers().interval(MS * 10);
        interval.set_missed_tick_behavior(behavior);
        assert_eq!(interval.missed_tick_behavior(), behavior);
        let mut ticks = Vec::new();
        for ms in [0, 25, 26, 30, 41] {
            clock.advance_to(at(ms));
            if let Poll::Ready(tick) = poll(&mut interval.tick(), &task) {
                ticks.push(tick);
            }
        }
        let expected: Vec<_> = expected.into_iter().map(at).collect();
        assert_eq!(ticks, expected, "{behavior:?}");
        assert_eq!(poll(&mut interval.tick(), &task), Poll::Pending);
        assert_eq!(
            clock.timers().next_deadline(),
            Some(at(next)),
            "{behavior:?}"
        );
    }
}

/// A period of a microsecond, with a tick that is a nanosecond late.
fn tm_10_no_lateness_is_overlooked<B: Backend>() {
    let nanos = |nanos| Instant::ORIGIN + Duration::from_nanos(nanos);
    for (behavior, next) in [
        (MissedTickBehavior::Burst, 1000),
        (MissedTickBehavior::Delay, 1001),
        (MissedTickBehavior::Skip, 1000),
    ] {
        let (clock, task) = (by_hand::<B>(), Probe::new());
        let mut interval = clock.timers().interval(Duration::from_micros(1));
        interval.set_missed_tick_behavior(behavior);
        clock.advance_to(nanos(1));
        assert_eq!(poll(&mut interval.tick(), &task), Poll::Ready(nanos(0)));
        clock.advance_to(nanos(5000));
        let tick = poll(&mut interval.tick(), &task);
        assert_eq!(tick, Poll::Ready(nanos(next)), "{behavior:?}");
        let again = poll(&mut interval.tick(), &task);
        let burst = behavior == MissedTickBehavior::Burst;
        assert_eq!(again.is_ready(), burst, "{behavior:?}");
    }
}

fn tm_11_the_clock_moves_by_exactly_what_it_is_told<B: Backend>() {
    for granularity in [Duration::from_nanos(1), Duration::from_micros(66), MS] {
        let clock = VirtualClock::<B>::new_in(at(0), Advance::ByHand, granularity);
        let task = Probe::new();
        let mut sleep = clock.timers().sleep(Duration::from_secs(60));
        assert_eq!(poll(&mut sleep, &task), Poll::Pending);
        let mut now = at(0);
        for micros in [51_592, 1, 1000] {
            let step = Duration::from_micros(micros);
            clock.advance(step);
            now += step;
            assert_eq!(clock.now(), now);
            assert_eq!(poll(&mut sleep, &task), Poll::Pending);
        }
        clock.advance_to(at(3));
        assert_eq!(clock.now(), now, "it does not go back");
    }
}

fn an_idle_executor_moves_the_clock_where_it_may<B: Backend>() {
    for advance in [Advance::ByHand, Advance::WhenIdle] {
        let clock = VirtualClock::<B>::new_in(at(0), advance, Duration::from_nanos(1));
        let task = Probe::new();
        let mut sleeps = [7, 3].map(|ms| clock.timers().sleep(MS * ms));
        for sleep in &mut sleeps {
            assert_eq!(poll(sleep, &task), Poll::Pending);
        }
        let moved: Vec<_> = (0..3)
            .map(|_| (clock.timers().idle(), clock.now(), task.wakes()))
            .collect();
        match advance {
            Advance::ByHand => assert_eq!(moved, [(false, at(0), 0); 3]),
            Advance::WhenIdle => {
                assert_eq!(
                    moved,
                    [(true, at(3), 1), (true, at(7), 2), (false, at(7), 2)]
                );
            }
        }
    }
}

fn ov_03_very_long_sleeps_are_held<B: Backend>() {
    let long = [
        Duration::MAX,
        Duration::from_secs(u64::MAX),
        Duration::from_secs(u64::MAX / 10),
        Duration::from_nanos(u64::MAX),
        Duration::from_nanos(u64::MAX - 1),
        Duration::from_nanos(u64::MAX - 2),
        Duration::from_nanos(1 << 63),
    ];
    for granularity in [Duration::from_nanos(1), Duration::from_nanos(1 << 16), MS] {
        for start in [at(0), at(1), Instant::MAX - Duration::from_secs(1)] {
            let clock = VirtualClock::<B>::new_in(start, Advance::WhenIdle, granularity);
            let task = Probe::new();
            let mut sleeps = long.map(|long| clock.timers().sleep(long));
            for sleep in &mut sleeps {
                assert_eq!(poll(sleep, &task), Poll::Pending);
            }
            let mut near = clock.timers().sleep(MS);
            assert_eq!(poll(&mut near, &task), Poll::Pending);
            assert!(clock.timers().idle());
            assert_eq!(poll(&mut near, &task), Poll::Ready(()));
            // It is never early, and the clock does not move to a deadline that never
            // comes.
            while clock.timers().idle() {
                assert!(clock.now() < Instant::MAX);
            }
            for sleep in &mut sleeps {
                assert!(sleep.is_elapsed() == (sleep.deadline() <= clock.now()));
            }
            assert_eq!(sleeps[0].deadline(), Instant::MAX);
            assert_eq!(poll(&mut sleeps[0], &task), Poll::Pending);
        }
    }
}

fn ov_03_everything_is_over_at_the_end_of_time<B: Backend>() {
    for granularity in [Duration::from_nanos(1), Duration::from_nanos(1 << 16)] {
        let clock = VirtualClock::<B>::new_in(at(0), Advance::ByHand, granularity);
        let task = Probe::new();
        let mut sleeps = [Duration::MAX, MS].map(|long| clock.timers().sleep(long));
        for sleep in &mut sleeps {
            assert_eq!(poll(sleep, &task), Poll::Pending);
        }
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!((clock.now(), task.wakes()), (Instant::MAX, 2));
        let mut late = clock.timers().sleep(Duration::MAX);
        assert_eq!(poll(&mut late, &task), Poll::Ready(()));
    }
}

fn ov_06_sleeps_from_before_every_edge<B: Backend>() {
    let edges = (0..=10)
        .map(|level| 1u64 << (6 * level))
        .chain([1 << 30, 1 << 36]);
    for edge in edges {
        let start = Instant::ORIGIN + Duration::from_nanos(edge - 1);
        let (clock, task) = (starting_at::<B>(start), Probe::new());
        let ahead = [
            0,
            1,
            63,
            64,
            65,
            4096,
            1 << 30,
            (1 << 36) - 1,
            1 << 36,
            (1 << 36) + 1,
        ];
        let ahead = ahead.map(Duration::from_nanos);
        let mut sleeps = ahead.map(|ahead| clock.timers().sleep(ahead));
        for sleep in &mut sleeps {
            assert_eq!(poll(sleep, &task).is_ready(), sleep.deadline() == start);
        }
        for (sleep, ahead) in sleeps.iter_mut().zip(ahead).skip(1) {
            assert!(!sleep.is_elapsed());
            assert!(clock.advance_to_next());
            assert_eq!(clock.now(), start + ahead, "from {edge}");
            assert_eq!(poll(sleep, &task), Poll::Ready(()));
        }
        assert_eq!(clock.timers().next_deadline(), None);
    }
}

/// Each kind of grant of the suite is given while a timeout waits for it, and the
/// deadline passes before the task polls.
fn ca_06_a_result_that_is_there_wins_over_the_deadline<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let timers = clock.timers();

    let mutex = Mutex::<_, B>::with_max_barges_in(7, 0);
    let held = mutex.try_lock().expect("it is free");
    let mut lock = timers.timeout(MS, mutex.lock());
    assert!(poll(&mut lock, &task).is_pending());

    let semaphore = Semaphore::<B>::with_max_barges_in(0, 0);
    let mut acquire = timers.timeout(MS, semaphore.acquire());
    assert!(poll(&mut acquire, &task).is_pending());

    let notify = Notify::<B>::new_in();
    let mut notified = timers.timeout(MS, notify.notified());
    assert!(poll(&mut notified, &task).is_pending());

    let (tx, rx) = oneshot::channel_in::<_, B>();
    let mut recv = timers.timeout(MS, rx);
    assert!(poll(&mut recv, &task).is_pending());

    drop(held);
    semaphore.add_permits(1);
    notify.notify_one();
    tx.send(7).expect("it waits");
    clock.advance(MS);
    assert!(matches!(poll(&mut lock, &task), Poll::Ready(Ok(guard)) if *guard == 7));
    assert!(matches!(poll(&mut acquire, &task), Poll::Ready(Ok(Ok(_)))));
    assert_eq!(poll(&mut notified, &task), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut recv, &task), Poll::Ready(Ok(Ok(7))));
    drop((lock, acquire, notified, recv));
    assert_eq!((task.kept(), timers.waiting()), (0, 0));
}

/// The timeout has returned, and the grant comes before it is dropped.
fn ca_06_a_grant_that_comes_after_the_timeout_is_handed_on<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let semaphore = Semaphore::<B>::with_max_barges_in(0, 0);
    let mut acquire = clock.timers().timeout(MS, semaphore.acquire());
    assert!(poll(&mut acquire, &task).is_pending());
    clock.advance(MS);
    assert!(matches!(poll(&mut acquire, &task), Poll::Ready(Err(_))));
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 0);
    drop(acquire);
    assert_eq!(semaphore.available_permits(), 1);
}

fn a_timeout_ends_at_its_deadline<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut late = clock.timers().timeout(MS, pending::<()>());
    let mut at_once = clock.timers().timeout(MS, ready(7));
    let mut past = clock.timers().timeout_at(at(0), pending::<()>());
    let mut just = clock.timers().timeout_at(at(0), ready(7));
    assert_eq!(poll(&mut at_once, &task), Poll::Ready(Ok(7)));
    assert_eq!(poll(&mut just, &task), Poll::Ready(Ok(7)));
    assert!(matches!(poll(&mut past, &task), Poll::Ready(Err(_))));
    assert_eq!(clock.timers().waiting(), 0, "none of these had to wait");
    assert_eq!(poll(&mut late, &task), Poll::Pending);
    clock.advance(MS);
    assert_eq!(task.wakes(), 1);
    let Poll::Ready(Err(elapsed)) = poll(&mut late, &task) else {
        panic!("the deadline has passed");
    };
    assert_eq!(
        elapsed.to_string(),
        "the deadline passed before the future was ready"
    );
    let error = std::io::Error::from(elapsed);
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

/// As in tokio, the future inside is still polled, and wins if it becomes ready.
fn a_timeout_goes_on_after_its_deadline<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let notify = Notify::<B>::new_in();
    let mut late = clock.timers().timeout(MS, notify.notified());
    assert_eq!(poll(&mut late, &task), Poll::Pending);
    clock.advance(MS);
    for _ in 0..2 {
        assert!(matches!(poll(&mut late, &task), Poll::Ready(Err(_))));
    }
    notify.notify_one();
    assert_eq!(poll(&mut late, &task), Poll::Ready(Ok(())));
    assert!(format!("{:?}", late.get_ref()).contains("Notified"));
    let mut inner = late.into_inner();
    assert_eq!(poll(&mut inner, &task), Poll::Ready(()));
}

fn an_interval_ticks_now_and_every_period<B: Backend>() {
    let (clock, task) = (starting_at::<B>(at(3)), Probe::new());
    let mut interval = clock.timers().interval(MS * 10);
    assert_eq!(interval.period(), MS * 10);
    for tick in [3, 13, 23] {
        clock.advance_to(at(tick) - Duration::from_nanos(1));
        if tick > 3 {
            assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Pending);
        }
        let before = task.wakes();
        clock.advance_to(at(tick));
        assert_eq!(task.wakes() - before, usize::from(tick > 3));
        assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Ready(at(tick)));
        assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Pending);
    }

    let mut interval = clock.timers().interval_at(at(100), MS);
    assert_eq!(poll(&mut interval.tick(), &task), Poll::Pending);
    clock.advance_to(at(100));
    assert_eq!(poll(&mut interval.tick(), &task), Poll::Ready(at(100)));
    drop(interval);
}

/// A clock that advances without a call to its timers.
#[derive(Clone, Default)]
struct Untold(Arc<AtomicU64>);

impl Clock for Untold {
    fn now(&self) -> Instant {
        Instant::ORIGIN + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// A sleep that is created after its deadline has passed is ready, although nothing
/// has fired.
fn a_sleep_that_is_over_by_the_clock_alone_is_ready_at_once<B: Backend>() {
    let (clock, task) = (Untold::default(), Probe::new());
    let timers = Timers::<B>::new_in(clock.clone(), Duration::from_nanos(1));
    clock.0.store(5, Ordering::Relaxed);
    for mut sleep in [
        timers.sleep(Duration::ZERO),
        timers.sleep_until(at(5)),
        timers.sleep_until(at(1)),
    ] {
        assert!(sleep.is_elapsed());
        assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    }
    assert_eq!((task.clones(), timers.waiting()), (0, 0));
}

/// The deadline passes after the sleep was created, or while it waits, and nothing
/// fires.
fn a_sleep_whose_deadline_the_clock_has_passed_is_ready<B: Backend>() {
    let (clock, task) = (Untold::default(), Probe::new());
    let timers = Timers::<B>::new_in(clock.clone(), Duration::from_nanos(1));
    for polled in [false, true] {
        let now = 20 * u32::from(polled);
        clock.0.store(now.into(), Ordering::Relaxed);
        let mut sleep = timers.sleep(MS * 2);
        let mut reset = timers.sleep(MS * 9);
        if polled {
            assert_eq!(poll(&mut sleep, &task), Poll::Pending);
            assert_eq!(poll(&mut reset, &task), Poll::Pending);
        }
        Pin::new(&mut reset).reset(at(now + 2));
        clock.0.store(u64::from(now) + 1, Ordering::Relaxed);
        assert!(!sleep.is_elapsed() && !reset.is_elapsed());
        clock.0.store(u64::from(now) + 2, Ordering::Relaxed);
        assert!(sleep.is_elapsed() && reset.is_elapsed());
        assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
        assert_eq!(poll(&mut reset, &task), Poll::Ready(()));
        assert_eq!((timers.waiting(), task.kept(), task.wakes()), (0, 0, 0));
    }
    // The deadline is far enough ahead, so the first poll trusts the time of the
    // creation.
    let mut sleep = timers.sleep(MS * 5000);
    clock.0.store(9000, Ordering::Relaxed);
    assert!(sleep.is_elapsed());
    let _ = poll(&mut sleep, &task);
    assert_eq!(poll(&mut sleep, &task), Poll::Ready(()));
    assert_eq!((timers.waiting(), task.kept()), (0, 0));
}

/// The tick is due by the clock and has not fired. Its waker is dropped with it.
fn an_interval_that_ticks_waits_for_nothing<B: Backend>() {
    let (clock, task) = (Untold::default(), Probe::new());
    let timers = Timers::<B>::new_in(clock.clone(), Duration::from_nanos(1));
    let mut interval = timers.interval_at(at(1), MS);
    assert_eq!(poll(&mut interval.tick(), &task), Poll::Pending);
    clock.0.store(1, Ordering::Relaxed);
    assert_eq!(poll(&mut interval.tick(), &task), Poll::Ready(at(1)));
    assert_eq!((task.kept(), timers.waiting()), (0, 0));
    clock.0.store(9, Ordering::Relaxed);
    timers.fire();
    assert_eq!(task.wakes(), 0);
}

fn an_interval_is_reset<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut interval = clock.timers().interval(MS * 10);
    let mut next_after = |reset: fn(&mut Interval<B>), expected| {
        clock.advance(MS);
        reset(&mut interval);
        let due = clock.now() + MS * expected;
        clock.advance_to(due);
        assert_eq!(poll(&mut interval.tick(), &task), Poll::Ready(due));
    };
    next_after(Interval::reset, 10);
    next_after(Interval::reset_immediately, 0);
    next_after(|interval| interval.reset_after(MS * 3), 3);
    next_after(|interval| interval.reset_at(at(50)), 50 - 17);
}

fn an_interval_reset_while_it_waits_wakes_its_task<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut interval = clock.timers().interval_at(at(10), MS);
    assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Pending);
    interval.reset_after(MS * 5);
    clock.advance(MS * 5);
    assert_eq!(task.wakes(), 1);
    assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Ready(at(5)));
    assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Pending);
    interval.reset_immediately();
    assert_eq!(task.wakes(), 2);
    assert_eq!(interval.poll_tick(&mut task.cx()), Poll::Ready(at(5)));
}

fn an_interval_needs_a_period<B: Backend>() {
    let clock = by_hand::<B>();
    let message = panic_of(|| drop(clock.timers().interval(Duration::ZERO)));
    assert_eq!(
        message.as_deref(),
        Some("an interval needs a period that is not zero")
    );
    // The longest period ticks once.
    let task = Probe::new();
    for behavior in [
        MissedTickBehavior::Burst,
        MissedTickBehavior::Delay,
        MissedTickBehavior::Skip,
    ] {
        let mut interval = clock.timers().interval(Duration::MAX);
        interval.set_missed_tick_behavior(behavior);
        assert!(poll(&mut interval.tick(), &task).is_ready());
        assert!(poll(&mut interval.tick(), &task).is_pending());
    }
}

/// A call on a queue.
type Use<T, B> = fn(&mut DelayQueue<T, B>, &Key);

/// Returns what a poll of a queue returns.
fn expired<T, B: Backend>(queue: &mut DelayQueue<T, B>, task: &Probe) -> Poll<Option<T>> {
    // A future of `expired` drops its waker when it is dropped.
    let expired = queue.poll_expired(&mut task.cx());
    expired.map(|expired| expired.map(Expired::into_inner))
}

fn a_queue_that_gives_out_a_value_waits_for_nothing<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    for ms in [1, 2] {
        queue.insert(ms, MS * ms);
    }
    assert_eq!(expired(&mut queue, &task), Poll::Pending);
    assert_eq!(clock.timers().waiting(), 1);
    clock.advance(MS);
    assert_eq!(expired(&mut queue, &task), Poll::Ready(Some(1)));
    assert_eq!((task.kept(), clock.timers().waiting()), (0, 0));
}

fn a_queue_gives_values_out_in_the_order_of_deadlines<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    assert_eq!(expired(&mut queue, &task), Poll::Ready(None));
    for (value, ms) in [(0, 70), (1, 3), (2, 5000), (3, 3), (4, 1), (5, 5000)] {
        queue.insert(value, MS * ms);
    }
    assert_eq!((queue.len(), queue.is_empty()), (6, false));
    assert_eq!(expired(&mut queue, &task), Poll::Pending);
    for (now, values) in [(1, vec![4]), (3, vec![1, 3]), (6000, vec![0, 2, 5])] {
        clock.advance_to(at(now));
        for value in values {
            assert_eq!(expired(&mut queue, &task), Poll::Ready(Some(value)));
        }
        if now < 6000 {
            assert_eq!(expired(&mut queue, &task), Poll::Pending);
        }
    }
    assert_eq!(expired(&mut queue, &task), Poll::Ready(None));
    drop(queue);
    assert_eq!((task.kept(), clock.timers().waiting()), (0, 0));
}

fn a_queue_gives_out_what_is_overdue<B: Backend>() {
    let (clock, task) = (starting_at::<B>(at(10)), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    queue.insert("now", Duration::ZERO);
    let key = queue.insert("later", MS);
    queue.insert_at("long ago", at(3));
    assert_eq!(expired(&mut queue, &task), Poll::Ready(Some("now")));
    assert_eq!(expired(&mut queue, &task), Poll::Ready(Some("long ago")));
    assert_eq!(expired(&mut queue, &task), Poll::Pending);
    queue.reset_at(&key, at(4));
    assert_eq!((task.wakes(), queue.deadline(&key)), (1, at(4)));
    assert_eq!(expired(&mut queue, &task), Poll::Ready(Some("later")));
}

fn a_queue_gives_out_what_is_overdue_first_in_the_order_in_which_it_came<B: Backend>() {
    let (clock, task) = (starting_at::<B>(at(10)), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    let key = queue.insert_at("reset", at(20));
    assert_eq!(expired(&mut queue, &task), Poll::Pending);

    // The deadlines decide the order of these, since the queue has not been polled
    // since.
    clock.advance(MS * 5);
    queue.insert_at("third", at(14));
    queue.insert_at("second", at(11));
    // These were over when it was polled.
    queue.insert_at("late", at(9));
    queue.insert_at("latest", at(3));
    queue.reset_at(&key, at(5));
    assert_eq!(queue.len(), 5);
    for value in ["late", "latest", "reset", "second", "third"] {
        let next = queue.peek().expect("there is one");
        let Poll::Ready(Some(out)) = queue.poll_expired(&mut task.cx()) else {
            panic!("all of them are due");
        };
        assert_eq!((*out.get_ref(), out.key()), (value, next));
    }
    assert_eq!(expired(&mut queue, &task), Poll::Ready(None));
}

/// Every mutation that changes the result of a poll wakes the task that waits for it.
fn a_queue_wakes_its_waiter_when_the_result_changes<B: Backend>() {
    let mutations: [(&str, Use<u32, B>, u32); 6] = [
        ("insert", |queue, _| _ = queue.insert(1, MS * 4), 4),
        (
            "insert overdue",
            |queue, _| _ = queue.insert_at(1, at(0)),
            0,
        ),
        ("reset", |queue, key| queue.reset(key, MS * 4), 4),
        (
            "reset to the past",
            |queue, key| queue.reset_at(key, at(0)),
            0,
        ),
        ("remove the last", |queue, key| _ = queue.remove(key), 0),
        ("clear", |queue, _| queue.clear(), 0),
    ];
    for (name, mutate, ms) in mutations {
        let (clock, task) = (by_hand::<B>(), Probe::new());
        let mut queue = DelayQueue::new_in(clock.timers());
        let key = queue.insert(0, MS * 10);
        assert_eq!(expired(&mut queue, &task), Poll::Pending);
        mutate(&mut queue, &key);
        if ms > 0 {
            clock.advance(MS * ms - Duration::from_nanos(1));
            assert_eq!(task.wakes(), 0, "{name}: not before");
            clock.advance(Duration::from_nanos(1));
        }
        assert_eq!(task.wakes(), 1, "{name}");
        assert!(expired(&mut queue, &task).is_ready(), "{name}");
    }

    // The task was told that the queue is empty.
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    assert_eq!(expired(&mut queue, &task), Poll::Ready(None));
    queue.insert(0, MS);
    assert_eq!((task.wakes(), task.kept()), (1, 0));

    // A later deadline changes nothing.
    assert_eq!(expired(&mut queue, &task), Poll::Pending);
    let later = queue.insert(1, MS * 5);
    queue.reset(&later, MS * 4);
    queue.remove(&later);
    assert_eq!(task.wakes(), 1);
    drop(queue);
    assert_eq!(task.kept(), 0);
}

fn a_queue_is_not_woken_at_a_deadline_that_is_no_more<B: Backend>() {
    type Change<B> = (&'static str, fn(&mut DelayQueue<u32, B>, &Key));
    let changes: [Change<B>; 4] = [
        ("reset", |queue, key| queue.reset(key, MS * 6)),
        ("reset past another", |queue, key| queue.reset(key, MS * 20)),
        ("remove", |queue, key| _ = queue.remove(key)),
        ("try_remove", |queue, key| _ = queue.try_remove(key)),
    ];
    for (name, change) in changes {
        let (clock, task) = (by_hand::<B>(), Probe::new());
        let mut queue = DelayQueue::new_in(clock.timers());
        let soon = queue.insert(0, MS * 2);
        queue.insert(1, MS * 9);
        assert_eq!(expired(&mut queue, &task), Poll::Pending);
        change(&mut queue, &soon);
        clock.advance(MS * 5);
        assert_eq!(task.wakes(), 0, "{name}");
        clock.advance(MS * 4);
        assert_eq!(task.wakes(), 1, "{name}");
        assert!(expired(&mut queue, &task).is_ready(), "{name}");
    }
}

fn a_queue_knows_its_keys<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    let (late, soon) = (queue.insert("late", MS * 9), queue.insert("soon", MS));
    assert_eq!(queue.peek(), Some(soon));
    assert_eq!(queue.deadline(&late), at(9));
    clock.advance(MS);
    let Poll::Ready(Some(out)) = queue.poll_expired(&mut task.cx()) else {
        panic!("its time has come");
    };
    assert_eq!(
        (out.get_ref(), out.key(), out.deadline()),
        (&"soon", soon, at(1))
    );
    assert_eq!(queue.peek(), Some(late));

    // The slot is reused, and the key is not that of its new entry.
    let next = queue.insert("next", MS);
    assert!(!queue.contains(&soon) && queue.contains(&next));
    assert!(queue.try_remove(&soon).is_none());
    let uses: [Use<&str, B>; 4] = [
        |queue, key| _ = queue.remove(key),
        |queue, key| queue.reset(key, MS),
        |queue, key| queue.reset_at(key, at(0)),
        |queue, key| _ = queue.deadline(key),
    ];
    for fails in uses {
        assert_eq!(
            panic_of(|| fails(&mut queue, &soon)).as_deref(),
            Some("the value of this key is no longer in the DelayQueue")
        );
    }
    assert_eq!(
        queue.try_remove(&late).map(Expired::into_inner),
        Some("late")
    );
    queue.clear();
    assert!(!queue.contains(&next) && queue.try_remove(&next).is_none());
    queue.shrink_to_fit();
    assert_eq!((queue.capacity(), queue.peek()), (0, None));
    assert!(!queue.contains(&next));
    queue.reserve(10);
    assert!(queue.capacity() >= 10);
}

fn a_queue_that_is_compacted_knows_its_keys<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut queue = DelayQueue::new_in(clock.timers());
    let insert = |queue: &mut DelayQueue<_, B>, ms| queue.insert(ms, MS * ms);
    let mut keys: Vec<_> = (1..=20).map(|ms| (ms, insert(&mut queue, ms))).collect();
    // All but every third, in two rounds, so that an entry that has been moved moves
    // again.
    for round in 0..2 {
        let mut place = 0;
        keys.retain(|(_, key)| {
            place += 1;
            place % 3 == 0 || queue.try_remove(key).is_none()
        });
        queue.compact();
        assert_eq!((queue.len(), queue.capacity()), (keys.len(), keys.len()));
        for (ms, key) in &keys {
            assert!(queue.contains(key), "{ms} in round {round}");
            assert_eq!(queue.deadline(key), at(*ms));
        }
    }
    let [(first, moved), (last, other)] = keys[..] else {
        panic!("two are left: {keys:?}");
    };
    // An entry in a slot that was released has a key of its own.
    let new = insert(&mut queue, 30);
    assert!(new != moved && new != other);
    assert_eq!(queue.peek(), Some(moved));
    queue.reset_at(&moved, at(40));
    assert_eq!(queue.remove(&other).into_inner(), last);
    assert!(queue.try_remove(&other).is_none());
    clock.advance(MS * 40);
    assert_eq!(expired(&mut queue, &task), Poll::Ready(Some(30)));
    let Poll::Ready(Some(out)) = queue.poll_expired(&mut task.cx()) else {
        panic!("its time has come");
    };
    assert_eq!((out.key(), out.into_inner()), (moved, first));
    assert!(!queue.contains(&moved));
    queue.compact();
    assert_eq!(queue.capacity(), 0);
}

fn a_queue_drops_what_it_holds<B: Backend>() {
    let clock = by_hand::<B>();
    let value = Arc::new(());
    let mut queue = DelayQueue::new_in(clock.timers());
    let keys: Vec<_> = (0..9)
        .map(|ms| queue.insert(value.clone(), MS * ms))
        .collect();
    queue.remove(&keys[3]);
    assert_eq!(Arc::strong_count(&value), 9);
    queue.clear();
    assert_eq!(Arc::strong_count(&value), 1);
    queue.insert(value.clone(), MS);
    drop(queue);
    assert_eq!(Arc::strong_count(&value), 1);
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (clock, task) = (by_hand::<B>(), Probe::new());
    let mut sleep = clock.timers().sleep(MS);
    assert_eq!(poll(&mut sleep, &task), Poll::Pending);
    assert_eq!(
        format!("{sleep:?}"),
        "Sleep { deadline: Instant(1ms), elapsed: false, .. }"
    );
    assert_eq!(
        format!("{clock:?}, {:?}", clock.timers()),
        "VirtualClock { now: Instant(0ns), waiting: 1 }, \
         Timers { granularity: 1ns, waiting: 1, .. }"
    );
    assert_eq!(
        format!("{:?}", clock.timers().interval(MS)),
        "Interval { next: Instant(0ns), period: 1ms, missed_tick_behavior: Burst }"
    );
}

/// As callers of tokio write it.
#[test]
fn a_pinned_sleep_is_reset_without_a_mutable_binding() {
    fn through(sleep: Pin<&mut Sleep>, to: Instant) {
        sleep.reset(to);
    }
    struct Projected<'a> {
        sleep: Pin<&'a mut Sleep>,
    }
    let clock = VirtualClock::by_hand();
    let mut sleep = pin!(clock.timers().sleep(MS));
    sleep.as_mut().reset(at(2));
    assert_eq!(sleep.deadline(), at(2));
    Sleep::reset(sleep.as_mut(), at(3));
    assert_eq!(sleep.deadline(), at(3));
    through(sleep.as_mut(), at(4));
    assert_eq!(sleep.deadline(), at(4));
    let projected = Projected {
        sleep: sleep.as_mut(),
    };
    projected.sleep.reset(at(5));
    assert_eq!(sleep.deadline(), at(5));
    let mut boxed = Box::pin(clock.timers().sleep(MS));
    boxed.as_mut().reset(at(6));
    assert_eq!(boxed.deadline(), at(6));
}

#[test]
fn names_stand_where_those_of_tokio_do() {
    use reveille::futures::{Notified, OwnedNotified};
    use reveille::time::delay_queue::{DelayQueue, Expired, Key};
    use reveille::time::{FutureExt, error};

    let _: fn(Notified<'_>, OwnedNotified, DelayQueue<u32>, Expired<u32>, Key, error::Error) =
        |_, _, _, _, _, _| {};
    let clock = VirtualClock::by_hand();
    let entered = clock.timers().enter();
    let task = Probe::new();
    for mut late in [pending::<()>().timeout(MS), pending().timeout_at(at(2))] {
        assert!(poll(&mut late, &task).is_pending());
        clock.advance(MS);
        assert!(matches!(poll(&mut late, &task), Poll::Ready(Err(_))));
    }
    drop(entered);
}

/// The timers that were entered last are the current ones, whichever guards are
/// dropped.
#[test]
fn guards_of_entered_timers_can_be_dropped_in_any_order() {
    let clocks: Vec<_> = (1..4)
        .map(|it| VirtualClock::starting_at(at(it), Advance::ByHand))
        .collect();
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let mut guards: Vec<_> = clocks
            .iter()
            .map(|clock| Some(clock.timers().enter()))
            .collect();
        for drops in order {
            guards[drops] = None;
            let last = guards.iter().rposition(Option::is_some);
            match last {
                Some(last) => assert_eq!(Instant::now(), clocks[last].now(), "{order:?}"),
                None => assert!(Instant::now() > at(1000), "{order:?}"),
            }
        }
    }
}

#[test]
fn instants_saturate() {
    let (second, nano) = (Duration::from_secs(1), Duration::from_nanos(1));
    assert_eq!(Instant::MAX + nano, Instant::MAX);
    assert_eq!(Instant::ORIGIN - nano, Instant::ORIGIN);
    assert_eq!(Instant::ORIGIN - Instant::MAX, Duration::ZERO);
    assert_eq!(at(0) + Duration::MAX, Instant::MAX);
    assert_eq!(at(1).checked_sub(second), None);
    assert_eq!(at(1000).checked_sub(second), Some(at(0)));
    assert_eq!(Instant::MAX.checked_add(nano), None);
    assert_eq!(at(5).checked_duration_since(at(6)), None);
    assert_eq!(at(6).checked_duration_since(at(5)), Some(MS));
    assert_eq!(at(6).duration_since(at(5)), MS);
    let mut instant = at(6);
    instant += MS;
    instant -= 2 * MS;
    assert_eq!(instant, at(5));
    assert_eq!(Instant::from_origin(instant.since_origin()), instant);
    assert_eq!(Instant::from_origin(Duration::MAX), Instant::MAX);
}

#[test]
fn instants_of_the_real_clock_are_those_of_std() {
    let before = std::time::Instant::now();
    let now = Instant::now();
    let after = std::time::Instant::now();
    assert!(Instant::from(before) <= now && now <= Instant::from(after));
    let year = Duration::from_secs(31_536_000);
    for std in [before, before + year, before - Duration::from_secs(1)] {
        assert_eq!(std::time::Instant::from(Instant::from(std)), std);
    }
    assert!(Instant::from(before + year) - Instant::from(before) == year);
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    const fn unpin<T: Unpin>() {}
    const fn threads<T: Send + Sync>() {}
    threads::<Timers>();
    threads::<VirtualClock>();
    threads::<RealClock>();
    threads::<Sleep>();
    threads::<Timeout<Ready<()>>>();
    threads::<Interval>();
    threads::<Tick<'_>>();
    threads::<DelayQueue<u32>>();
    threads::<Key>();
    threads::<Elapsed>();
    unpin::<Sleep>();
    unpin::<Timeout<Ready<()>>>();
    unpin::<Interval>();
    unpin::<Tick<'_>>();
    unpin::<DelayQueue<std::marker::PhantomPinned>>();
    unpin::<NextExpired<'_, std::marker::PhantomPinned>>();
    assert!(size_of::<Sleep>() <= 3 * size_of::<u64>());
    assert!(size_of::<Timeout<()>>() <= size_of::<Sleep>());
    assert!(size_of::<Tick<'_>>() <= 2 * size_of::<usize>());
    let _: fn(Sleep<DefaultBackend>) -> Sleep = |sleep| sleep;
}
