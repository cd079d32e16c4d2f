//! What `reveille::Mutex` promises: the semantics of `tokio::sync::Mutex` over
//! every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::mutex::{Lock, LockOwned};
use reveille::protocol::block_on;
use reveille::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};

use support::probe::{Event, Probe};
use support::token::Token;
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    a_free_mutex_is_locked_without_waiting,
    one_holds_it_at_a_time,
    a_wait_ends_when_it_is_unlocked,
    the_task_that_has_waited_longest_is_next,
    it_is_barged_as_often_as_the_bound_says,
    the_largest_bound_is_held_to,
    later_requests_that_await_are_held_to_the_bound,
    others_in_the_queue_are_held_to_the_bound,
    the_next_in_the_queue_can_be_barged_afresh,
    a_cancelled_waiter_leaves_its_barges_to_no_other,
    a_wait_that_is_dropped_leaves_the_queue,
    a_grant_dropped_unseen_goes_to_the_next,
    a_wake_dropped_unseen_goes_to_the_next,
    a_grant_dropped_unseen_with_no_waiter_behind_unlocks,
    a_future_dropped_with_its_guard_unlocks,
    the_wait_can_change_its_task,
    a_waker_may_use_the_mutex_when_it_is_woken,
    a_waker_may_drop_its_own_wait_when_another_is_woken,
    a_waker_may_unlock_when_it_is_cloned,
    a_waker_that_panics_when_woken_costs_no_waiter_the_lock,
    a_clone_that_panics_leaves_no_place_in_the_queue,
    a_lock_acquired_by_a_poll_that_panics_is_not_lost,
    a_lock_acquired_by_a_poll_that_panics_is_there_at_the_next,
    an_owned_guard_keeps_the_mutex,
    an_owned_wait_is_one_of_the_queue,
    a_guard_narrows_to_a_part,
    an_owned_guard_narrows_to_a_part,
    a_guard_that_finds_no_part_stays_what_it_was,
    a_closure_that_panics_while_narrowing_unlocks,
    a_panic_while_it_is_held_unlocks_and_poisons_nothing,
    the_value_is_reached_by_exclusive_borrow,
    the_value_is_dropped_with_the_mutex,
    a_leaked_guard_keeps_it_locked,
    a_leaked_wait_keeps_its_place,
    polling_after_the_end_panics_with_the_name,
    debug_output_names_what_is_known,
    a_guard_shows_what_it_locks,
];

/// Creates a mutex that hands over at every unlock.
fn strict<B: Backend>() -> Mutex<u32, B> {
    Mutex::with_max_barges_in(0, 0)
}

/// Returns a wait that is queued.
fn queued<'a, B: Backend>(mutex: &'a Mutex<u32, B>, task: &Probe) -> Lock<'a, u32, B> {
    let mut lock = mutex.lock();
    assert!(poll(&mut lock, task).is_pending());
    lock
}

/// Returns the guard of a wait that is over.
fn locked<'a, B: Backend>(lock: &mut Lock<'a, u32, B>, task: &Probe) -> MutexGuard<'a, u32, B> {
    match poll(lock, task) {
        Poll::Ready(guard) => guard,
        Poll::Pending => panic!("it is its turn"),
    }
}

fn a_free_mutex_is_locked_without_waiting<B: Backend>() {
    let (mutex, task) = (strict::<B>(), Probe::new());
    for value in 0..3 {
        let mut guard = locked(&mut mutex.lock(), &task);
        assert_eq!(*guard, value);
        *guard += 1;
    }
    assert_eq!(task.clones(), 0);
}

fn one_holds_it_at_a_time<B: Backend>() {
    let (mutex, task) = (Arc::new(strict::<B>()), Probe::new());
    let guard = mutex.try_lock().expect("it is free");
    assert_eq!(
        mutex.try_lock().unwrap_err(),
        mutex.clone().try_lock_owned().unwrap_err()
    );
    assert!(poll(&mut mutex.lock(), &task).is_pending());
    drop(guard);
    let owned = mutex.clone().try_lock_owned().expect("it is free");
    assert!(mutex.try_lock().is_err());
    drop(owned);
    assert!(mutex.try_lock().is_ok());
}

fn a_wait_ends_when_it_is_unlocked<B: Backend>() {
    for bound in [0, 1, Mutex::<u32, B>::DEFAULT_MAX_BARGES] {
        let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, bound), Probe::new());
        let guard = mutex.try_lock().unwrap();
        let mut lock = queued(&mutex, &task);
        assert_eq!(mutex.waiting(), 1);
        drop(guard);
        assert_eq!(task.wakes(), 1);
        drop(locked(&mut lock, &task));
        assert_eq!((mutex.waiting(), task.kept()), (0, 0));
    }
}

fn the_task_that_has_waited_longest_is_next<B: Backend>() {
    let (mutex, tasks) = (strict::<B>(), [(); 3].map(|()| Probe::new()));
    let mut guard = mutex.try_lock().unwrap();
    let mut locks = tasks.each_ref().map(|task| queued(&mutex, task));
    for turn in 0..3 {
        drop(guard);
        for later in turn + 1..3 {
            assert_eq!(tasks[later].wakes(), 0);
            assert!(poll(&mut locks[later], &tasks[later]).is_pending());
        }
        assert!(mutex.try_lock().is_err(), "it has been handed over");
        guard = locked(&mut locks[turn], &tasks[turn]);
    }
}

/// Returns how often the lock can be barged, one time after the other, before it is
/// refused.
fn barges(mut locks: impl FnMut() -> bool) -> usize {
    (0..=usize::from(u16::MAX))
        .position(|_| !locks())
        .expect("there is a bound")
}

const BOUNDS: [u16; 5] = [0, 1, 2, 16, 255];

fn it_is_barged_as_often_as_the_bound_says<B: Backend>() {
    for bound in BOUNDS {
        let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, bound), Probe::new());
        let guard = mutex.try_lock().unwrap();
        let mut lock = queued(&mutex, &task);
        drop(guard);
        assert_eq!(barges(|| mutex.try_lock().is_ok()), usize::from(bound));
        assert!(mutex.granted(), "it has been handed over");
        drop(locked(&mut lock, &task));
    }
}

/// On a 32-bit machine the largest bound is less than the type allows.
fn the_largest_bound_is_held_to<B: Backend>() {
    let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, u16::MAX), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut lock = queued(&mutex, &task);
    drop(guard);
    let largest = if usize::BITS < 64 { 1023 } else { u16::MAX };
    assert_eq!(barges(|| mutex.try_lock().is_ok()), largest.into());
    drop(locked(&mut lock, &task));
}

fn later_requests_that_await_are_held_to_the_bound<B: Backend>() {
    for bound in BOUNDS {
        let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, bound), Probe::new());
        let guard = mutex.try_lock().unwrap();
        let mut first = queued(&mutex, &task);
        drop(guard);
        let newcomers = barges(|| poll(&mut mutex.lock(), &task).is_ready());
        assert_eq!(newcomers, usize::from(bound));
        drop(locked(&mut first, &task));
    }
}

fn others_in_the_queue_are_held_to_the_bound<B: Backend>() {
    for bound in BOUNDS {
        let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, bound), Probe::new());
        let guard = mutex.try_lock().unwrap();
        let mut first = queued(&mutex, &task);
        let mut others: Vec<_> = (0..300).map(|_| queued(&mutex, &task)).collect();
        drop(guard);
        let others = barges(|| poll(&mut others.pop().expect("one is left"), &task).is_ready());
        assert_eq!(others, usize::from(bound));
        drop(locked(&mut first, &task));
    }
}

fn the_next_in_the_queue_can_be_barged_afresh<B: Backend>() {
    let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, 2), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut locks = [queued(&mutex, &task), queued(&mutex, &task)];
    drop(guard);
    for lock in &mut locks {
        assert_eq!(barges(|| mutex.try_lock().is_ok()), 2);
        drop(locked(lock, &task));
    }
}

fn a_cancelled_waiter_leaves_its_barges_to_no_other<B: Backend>() {
    let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, 2), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let (first, mut second) = (queued(&mutex, &task), queued(&mutex, &task));
    drop(guard);
    assert!(mutex.try_lock().is_ok());
    drop(first);
    assert_eq!(barges(|| mutex.try_lock().is_ok()), 2);
    drop(locked(&mut second, &task));
}

fn a_wait_that_is_dropped_leaves_the_queue<B: Backend>() {
    let (mutex, gone, stays) = (strict::<B>(), Probe::new(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let (first, mut second) = (queued(&mutex, &gone), queued(&mutex, &stays));
    drop(first);
    assert_eq!((mutex.waiting(), gone.kept()), (1, 0));
    drop(guard);
    assert_eq!((gone.wakes(), stays.wakes()), (0, 1));
    drop(locked(&mut second, &stays));
}

fn a_grant_dropped_unseen_goes_to_the_next<B: Backend>() {
    let (mutex, first, second) = (strict::<B>(), Probe::new(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let (one, mut two) = (queued(&mutex, &first), queued(&mutex, &second));
    drop(guard);
    assert_eq!(
        (first.wakes(), mutex.granted(), mutex.waiting()),
        (1, true, 1)
    );
    drop(one);
    assert_eq!(
        (second.wakes(), mutex.granted(), mutex.waiting()),
        (1, true, 0)
    );
    drop(locked(&mut two, &second));
    assert!(!mutex.granted());
}

/// With a bound, the first waiter is woken to try. If it is dropped, it passes the
/// wake on.
fn a_wake_dropped_unseen_goes_to_the_next<B: Backend>() {
    let (mutex, first, second) = (
        Mutex::<_, B>::with_max_barges_in(0, 4),
        Probe::new(),
        Probe::new(),
    );
    let guard = mutex.try_lock().unwrap();
    let (one, mut two) = (queued(&mutex, &first), queued(&mutex, &second));
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(one);
    assert_eq!(second.wakes(), 1);
    drop(locked(&mut two, &second));
}

fn a_grant_dropped_unseen_with_no_waiter_behind_unlocks<B: Backend>() {
    for bound in [0, 4] {
        let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, bound), Probe::new());
        let guard = mutex.try_lock().unwrap();
        let lock = queued(&mutex, &task);
        drop(guard);
        drop(lock);
        assert!(mutex.try_lock().is_ok());
    }
}

fn a_future_dropped_with_its_guard_unlocks<B: Backend>() {
    let (mutex, task) = (strict::<B>(), Probe::new());
    let mut holds = Box::pin(async {
        let _guard = mutex.lock().await;
        std::future::pending::<()>().await;
    });
    assert!(poll(&mut holds, &task).is_pending());
    assert!(mutex.try_lock().is_err());
    drop(holds);
    assert!(mutex.try_lock().is_ok());
}

fn the_wait_can_change_its_task<B: Backend>() {
    let (mutex, first, second) = (strict::<B>(), Probe::new(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut lock = queued(&mutex, &first);
    assert!(poll(&mut lock, &second).is_pending());
    assert_eq!((first.kept(), second.kept()), (0, 1));
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_waker_may_use_the_mutex_when_it_is_woken<B: Backend>() {
    for bound in [0, 1] {
        let (mutex, task) = (
            Rc::new(Mutex::<_, B>::with_max_barges_in(0, bound)),
            Probe::new(),
        );
        let guard = mutex.try_lock().unwrap();
        let mut lock = queued(&mutex, &task);
        task.on(Event::Wake, {
            let mutex = mutex.clone();
            move || assert_eq!(mutex.try_lock().is_ok(), bound > 0)
        });
        drop(guard);
        assert_eq!(task.acts_left(), 0);
        drop(locked(&mut lock, &task));
    }
}

fn a_waker_may_drop_its_own_wait_when_another_is_woken<B: Backend>() {
    let (mutex, first, second) = (Arc::new(strict::<B>()), Probe::new(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let own = Rc::new(RefCell::new(Some(mutex.clone().lock_owned())));
    assert!(poll(own.borrow_mut().as_mut().unwrap(), &first).is_pending());
    let mut next = queued(&mutex, &second);
    first.on(Event::Wake, {
        let own = own.clone();
        move || drop(own.take())
    });
    drop(guard);
    assert_eq!((first.kept(), second.wakes()), (0, 1));
    drop(locked(&mut next, &second));
}

/// Returns the mutex, and a guard that a waker of `task` drops at the next `event`.
fn unlocked_by<B: Backend>(task: &Probe, event: Event) -> Arc<Mutex<u32, B>> {
    let mutex = Arc::new(strict::<B>());
    let guard = mutex.clone().try_lock_owned().unwrap();
    task.on(event, move || drop(guard));
    mutex
}

fn a_waker_may_unlock_when_it_is_cloned<B: Backend>() {
    let task = Probe::new();
    let mutex = unlocked_by::<B>(&task, Event::Clone);
    drop(locked(&mut mutex.lock(), &task));
    assert_eq!((mutex.waiting(), task.kept()), (0, 0));
}

fn a_waker_that_panics_when_woken_costs_no_waiter_the_lock<B: Backend>() {
    for bound in [0, 1] {
        let (mutex, task) = (Mutex::<_, B>::with_max_barges_in(0, bound), Probe::new());
        let guard = mutex.try_lock().unwrap();
        let (one, mut two) = (queued(&mutex, &task), queued(&mutex, &task));
        task.panic_on(Event::Wake);
        let message = panic_of(|| drop(guard));
        assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
        drop(one);
        drop(locked(&mut two, &task));
        assert!(mutex.try_lock().is_ok());
    }
}

fn a_clone_that_panics_leaves_no_place_in_the_queue<B: Backend>() {
    let (mutex, task) = (strict::<B>(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut lock = mutex.lock();
    task.panic_on(Event::Clone);
    panic_of(|| drop(poll(&mut lock, &task))).expect("the clone panics");
    assert_eq!((mutex.waiting(), task.kept()), (0, 0));
    assert!(poll(&mut lock, &task).is_pending());
    drop(guard);
    drop(locked(&mut lock, &task));
}

/// The clone of the waker unlocks the mutex, so the poll is ready, and the clone is
/// dropped unused. If that panics, no guard has been returned, and the future keeps
/// what it acquired.
fn a_lock_acquired_by_a_poll_that_panics_is_not_lost<B: Backend>() {
    let task = Probe::new();
    let mutex = unlocked_by::<B>(&task, Event::Clone);
    let mut lock = mutex.lock();
    task.panic_on(Event::Drop);
    let message = panic_of(|| drop(poll(&mut lock, &task)));
    assert_eq!(message.as_deref(), Some("the waker's Drop panics"));
    assert!(mutex.try_lock().is_err());
    drop(lock);
    let held = mutex.try_lock();
    assert!(held.is_ok() && mutex.try_lock().is_err(), "given back once");
}

/// As above, but the future is polled again.
fn a_lock_acquired_by_a_poll_that_panics_is_there_at_the_next<B: Backend>() {
    let task = Probe::new();
    let mutex = unlocked_by::<B>(&task, Event::Clone);
    let mut lock = mutex.lock();
    task.panic_on(Event::Drop);
    panic_of(|| drop(poll(&mut lock, &task))).expect("the drop panics");
    drop(locked(&mut lock, &task));
    drop(lock);
    let held = mutex.try_lock();
    assert!(held.is_ok() && mutex.try_lock().is_err(), "given back once");
}

fn an_owned_guard_keeps_the_mutex<B: Backend>() {
    let (mutex, task) = (Arc::new(strict::<B>()), Probe::new());
    let Poll::Ready(guard) = poll(&mut mutex.clone().lock_owned(), &task) else {
        panic!("it is free")
    };
    let weak = Arc::downgrade(&mutex);
    drop(mutex);
    assert!(Arc::ptr_eq(
        OwnedMutexGuard::mutex(&guard),
        &weak.upgrade().unwrap()
    ));
    drop(guard);
    assert!(weak.upgrade().is_none());
}

fn an_owned_wait_is_one_of_the_queue<B: Backend>() {
    let (mutex, task) = (Arc::new(strict::<B>()), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut owned = mutex.clone().lock_owned();
    assert!(poll(&mut owned, &task).is_pending());
    let mut second = queued(&mutex, &task);
    drop(guard);
    assert!(poll(&mut second, &task).is_pending());
    drop(owned);
    drop(locked(&mut second, &task));
}

fn a_guard_narrows_to_a_part<B: Backend>() {
    let mutex = Mutex::<_, B>::with_max_barges_in((1, vec![2, 3]), 0);
    let guard = MutexGuard::map(mutex.try_lock().unwrap(), |value| &mut value.1);
    let guard = MappedMutexGuard::map(guard, Vec::as_mut_slice);
    let mut guard = MappedMutexGuard::try_map(guard, |values| values.first_mut()).unwrap();
    *guard += 5;
    assert!(mutex.try_lock().is_err());
    drop(guard);
    let guard = MutexGuard::try_map(mutex.try_lock().unwrap(), |value| value.1.get_mut(0));
    assert_eq!(*guard.unwrap(), 7);
    assert!(mutex.try_lock().is_ok());
}

fn an_owned_guard_narrows_to_a_part<B: Backend>() {
    let mutex = Arc::new(Mutex::<_, B>::with_max_barges_in((1, vec![2, 3]), 0));
    let guard = mutex.clone().try_lock_owned().unwrap();
    let guard = OwnedMutexGuard::map(guard, |value| &mut value.1);
    let guard = OwnedMappedMutexGuard::map(guard, Vec::as_mut_slice);
    let mut guard = OwnedMappedMutexGuard::try_map(guard, |values| values.last_mut()).unwrap();
    *guard += 5;
    assert!(mutex.try_lock().is_err());
    drop(guard);
    let guard = mutex.clone().try_lock_owned().unwrap();
    let guard = OwnedMutexGuard::try_map(guard, |value| value.1.last_mut()).unwrap();
    let weak = Arc::downgrade(&mutex);
    drop(mutex);
    assert_eq!(*guard, 8, "it keeps the whole");
    drop(guard);
    assert!(weak.upgrade().is_none());
}

fn a_guard_that_finds_no_part_stays_what_it_was<B: Backend>() {
    let mutex = Arc::new(Mutex::<_, B>::with_max_barges_in(vec![1], 0));
    {
        let guard = mutex.try_lock().unwrap();
        let guard = MutexGuard::try_map(guard, |values| values.get_mut(7)).unwrap_err();
        let guard = MutexGuard::map(guard, |values| values);
        let guard = MappedMutexGuard::try_map(guard, |values| values.get_mut(7)).unwrap_err();
        assert_eq!(*guard, [1]);
        assert!(mutex.try_lock().is_err());
    }
    let guard = mutex.clone().try_lock_owned().unwrap();
    let guard = OwnedMutexGuard::try_map(guard, |values| values.get_mut(7)).unwrap_err();
    let guard = OwnedMutexGuard::map(guard, |values| values);
    let guard = OwnedMappedMutexGuard::try_map(guard, |values| values.get_mut(7)).unwrap_err();
    assert_eq!(*guard, [1]);
    assert!(mutex.try_lock().is_err());
    drop(guard);
    assert!(mutex.try_lock().is_ok());
}

fn a_closure_that_panics_while_narrowing_unlocks<B: Backend>() {
    let mutex = strict::<B>();
    let guard = mutex.try_lock().unwrap();
    let narrows = || {
        drop(MutexGuard::map(guard, |_| -> &mut u32 {
            panic!("no part")
        }))
    };
    assert_eq!(panic_of(narrows).as_deref(), Some("no part"));
    assert!(mutex.try_lock().is_ok());
}

fn a_panic_while_it_is_held_unlocks_and_poisons_nothing<B: Backend>() {
    let (mutex, task) = (strict::<B>(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    let mut lock = queued(&mutex, &task);
    let message = panic_of(move || {
        let mut guard = guard;
        *guard = 7;
        panic!("while it is held");
    });
    assert_eq!(message.as_deref(), Some("while it is held"));
    assert_eq!(*locked(&mut lock, &task), 7);
}

fn the_value_is_reached_by_exclusive_borrow<B: Backend>() {
    let mut mutex = strict::<B>();
    *mutex.get_mut() = 7;
    std::mem::forget(mutex.try_lock().unwrap());
    *mutex.get_mut() += 1;
    assert_eq!(mutex.into_inner(), 8);
}

fn the_value_is_dropped_with_the_mutex<B: Backend>() {
    let before = Token::alive();
    drop(Mutex::<_, B>::with_max_barges_in(Token::new(1), 0));
    let mutex = Arc::new(Mutex::<_, B>::with_max_barges_in(Token::new(2), 0));
    let guard = mutex.try_lock_owned().unwrap();
    assert_eq!(Token::alive(), before + 1);
    drop(guard);
    assert_eq!(Token::alive(), before);
}

fn a_leaked_guard_keeps_it_locked<B: Backend>() {
    let (mutex, task) = (strict::<B>(), Probe::new());
    std::mem::forget(mutex.try_lock().unwrap());
    assert!(mutex.try_lock().is_err());
    assert!(poll(&mut mutex.lock(), &task).is_pending());
}

/// `granted` and the debug output show it to a user.
fn a_leaked_wait_keeps_its_place<B: Backend>() {
    let (mutex, task) = (strict::<B>(), Probe::new());
    let guard = mutex.try_lock().unwrap();
    std::mem::forget(queued(&mutex, &task));
    let mut second = queued(&mutex, &task);
    drop(guard);
    assert!(poll(&mut second, &task).is_pending());
    assert!(mutex.granted());
}

fn polling_after_the_end_panics_with_the_name<B: Backend>() {
    let (mutex, task) = (Arc::new(strict::<B>()), Probe::new());
    let mut lock = mutex.lock();
    drop(locked(&mut lock, &task));
    let message = panic_of(|| drop(poll(&mut lock, &task)));
    assert_eq!(
        message.as_deref(),
        Some("Mutex::lock polled after it was ready")
    );
    let mut owned = mutex.clone().lock_owned();
    drop(poll(&mut owned, &task));
    let message = panic_of(|| drop(poll(&mut owned, &task)));
    assert_eq!(
        message.as_deref(),
        Some("Mutex::lock_owned polled after it was ready")
    );
    assert!(mutex.try_lock().is_ok());
}

fn debug_output_names_what_is_known<B: Backend>() {
    let (mutex, task) = (Arc::new(strict::<B>()), Probe::new());
    let shown = |data: &str, waiting: usize, granted: bool| {
        format!("Mutex {{ data: {data}, waiting: {waiting}, granted: {granted} }}")
    };
    assert_eq!(format!("{mutex:?}"), shown("0", 0, false));
    let guard = mutex.try_lock().unwrap();
    let lock = queued(&mutex, &task);
    assert_eq!(format!("{mutex:?}"), shown("<locked>", 1, false));
    drop(guard);
    assert_eq!(format!("{mutex:?}"), shown("<locked>", 0, true));
    assert_eq!(format!("{lock:?}"), "Lock { .. }");
    let owned = mutex.clone().lock_owned();
    assert_eq!(format!("{owned:?}"), "LockOwned { .. }");
}

fn a_guard_shows_what_it_locks<B: Backend>() {
    let mutex = Arc::new(Mutex::<_, B>::with_max_barges_in(String::from("it's"), 0));
    {
        let guard = mutex.try_lock().unwrap();
        assert_eq!(format!("{guard:?} {guard}"), "\"it's\" it's");
        let guard = MutexGuard::map(guard, |value| value);
        assert_eq!(format!("{guard:?} {guard}"), "\"it's\" it's");
    }
    let guard = mutex.try_lock_owned().unwrap();
    assert_eq!(format!("{guard:?} {guard}"), "\"it's\" it's");
    let guard = OwnedMutexGuard::map(guard, |value| value);
    assert_eq!(format!("{guard:?} {guard}"), "\"it's\" it's");
}

#[test]
fn constants_need_no_initialization() {
    static NEW: Mutex<u32> = Mutex::new(1);
    static CONST: Mutex<u32> = Mutex::const_new(1);
    static BOUND: Mutex<u32> = Mutex::with_max_barges(1, 3);
    for mutex in [&NEW, &CONST, &BOUND] {
        assert_eq!(*mutex.blocking_lock(), 1);
    }
}

#[test]
fn it_is_made_of_a_value_or_of_the_default() {
    assert_eq!(Mutex::from(7).into_inner(), 7);
    assert_eq!(Mutex::<u32>::default().into_inner(), 0);
}

#[test]
fn the_default_bound_is_the_documented_one() {
    let task = Probe::new();
    for mutex in [Mutex::new(0), Mutex::const_new(0), Mutex::default()] {
        let guard = mutex.try_lock().unwrap();
        let lock = queued(&mutex, &task);
        drop(guard);
        let barges = barges(|| mutex.try_lock().is_ok());
        assert_eq!(barges, usize::from(Mutex::<u32>::DEFAULT_MAX_BARGES));
        drop(lock);
    }
}

#[test]
fn the_value_may_be_unsized_and_not_send() {
    let shared: Arc<Mutex<[u16]>> = Arc::new(Mutex::new([1, 2]));
    shared.clone().try_lock_owned().unwrap()[0] = 3;
    assert_eq!(*shared.try_lock().unwrap(), [3, 2]);
    let mutex = Mutex::new(Rc::new(1));
    assert_eq!(**mutex.try_lock().unwrap(), 1);
}

#[test]
fn a_refusal_says_what_to_do() {
    fn is_error<E: std::error::Error + PartialEq>(error: &E) -> String {
        error.to_string()
    }
    let mutex = Mutex::new(0);
    let _guard = mutex.try_lock().unwrap();
    let error: TryLockError = mutex.try_lock().unwrap_err();
    assert_eq!(
        is_error(&error),
        "the lock is held, or other tasks wait for it; await it instead"
    );
}

#[test]
fn threads_and_tasks_that_lock_add_up() {
    const ROUNDS: u32 = 100;
    for bound in [0, 1, 16] {
        let mutex = Arc::new(Mutex::with_max_barges(0, bound));
        thread::scope(|scope| {
            let add = |mut guard: MutexGuard<'_, u32>| {
                let seen = *guard;
                thread::yield_now();
                *guard = seen + 1;
            };
            let mutex = &mutex;
            scope.spawn(move || (0..ROUNDS).for_each(|_| add(mutex.blocking_lock())));
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    *mutex.clone().blocking_lock_owned() += 1;
                }
            });
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    block_on::<Native, _>(async { add(mutex.lock().await) });
                }
            });
            scope.spawn(move || {
                let (task, mut locked) = (Probe::new(), 0);
                while locked < ROUNDS {
                    // The wait is given up if it is not ready at once.
                    if let Poll::Ready(guard) = poll(&mut mutex.lock(), &task) {
                        add(guard);
                        locked += 1;
                    }
                }
            });
        });
        assert_eq!(
            (*mutex.try_lock().unwrap(), mutex.waiting()),
            (4 * ROUNDS, 0)
        );
    }
}

/// It blocks the thread, as documented, so the guard must be dropped on another
/// thread.
#[test]
fn a_blocking_lock_within_an_executor_blocks_its_thread() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.clone().try_lock_owned().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while mutex.waiting() == 0 {
                thread::yield_now();
            }
            drop(guard);
        });
        reveille_executor::block_on(async { *mutex.blocking_lock() += 1 });
    });
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    fn send_sync_unpin<T: Send + Sync + Unpin>() {}
    fn sync<T: Sync>() {}
    send_sync_unpin::<Mutex<u32>>();
    send_sync_unpin::<Lock<'_, u32>>();
    send_sync_unpin::<LockOwned<u32>>();
    send_sync_unpin::<MutexGuard<'_, u32>>();
    send_sync_unpin::<MappedMutexGuard<'_, u32>>();
    send_sync_unpin::<OwnedMutexGuard<u32>>();
    send_sync_unpin::<OwnedMappedMutexGuard<u32>>();
    sync::<Mutex<std::cell::Cell<u32>>>();
    let words = |size: usize| size.div_ceil(size_of::<usize>());
    assert!(words(size_of::<Lock<'_, u32>>()) <= 5);
    assert!(words(size_of::<LockOwned<u32>>()) <= 5);
    assert!(words(size_of::<MutexGuard<'_, u32>>()) <= 2);
    assert!(words(size_of::<OwnedMutexGuard<u32>>()) <= 2);
}
