//! What `reveille::OnceCell` promises: the semantics of `tokio::sync::OnceCell`
//! over every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::mem::size_of;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::{WakeList, block_on};
use reveille::{OnceCell, OnceCellWait, SetError};

use support::probe::{Event, Probe};
use support::token::{Explosive, Token};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    an_empty_cell_has_no_value,
    what_is_set_is_there_for_good,
    setting_twice_gives_the_second_back,
    setting_while_one_is_made_gives_the_value_back,
    the_first_caller_makes_the_value,
    an_initializer_does_not_run_if_there_is_a_value,
    callers_that_come_meanwhile_share_the_value,
    callers_that_come_meanwhile_call_no_initializer,
    a_failed_initializer_passes_the_permit_on,
    a_failed_initializer_leaves_the_cell_empty,
    a_dropped_initializer_passes_the_permit_on,
    an_initializer_that_panics_passes_the_permit_on,
    a_closure_that_panics_passes_the_permit_on,
    a_granted_permit_passes_on_when_its_wait_is_dropped,
    the_permit_goes_round_in_the_order_of_arrival,
    a_queued_initializer_can_be_dropped,
    a_set_between_a_failure_and_the_next_poll_is_refused,
    waiting_wakes_with_what_another_task_makes,
    waiting_wakes_with_what_another_task_sets,
    waiting_makes_nothing,
    more_wait_than_a_wake_list_holds,
    more_wait_for_the_value_alone_than_a_wake_list_holds,
    an_initializer_that_is_done_is_dropped,
    the_wait_can_change_its_task,
    a_waker_that_panics_costs_no_other_the_wake,
    an_initializer_can_use_the_cell,
    the_value_is_dropped_with_the_cell,
    the_value_can_be_taken_out,
    a_cell_can_be_used_again_after_take,
    take_forgets_an_initializer_that_leaked,
    the_value_can_be_changed_by_exclusive_borrow,
    a_value_that_panics_in_drop_is_dropped_once,
    copies_have_the_value_and_not_the_waiters,
    debug_output_names_what_is_known,
];

/// A future that is pending until it is opened.
#[derive(Default)]
struct Gate(Cell<bool>);

impl Gate {
    fn open(&self) {
        self.0.set(true);
    }

    /// Returns `value` once the gate is open. It wakes no task, since these tests
    /// poll by hand.
    async fn then<T>(&self, value: T) -> T {
        struct Opens<'a>(&'a Gate);

        impl Future for Opens<'_> {
            type Output = ();

            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
                match self.0.0.get() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }
        }

        Opens(self).await;
        value
    }
}

/// A future of any kind, on the heap.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

fn init<'a, B: Backend>(cell: &'a OnceCell<u32, B>, value: u32) -> Boxed<'a, &'a u32> {
    Box::pin(cell.get_or_init(move || ready(value)))
}

fn slow<'a, B: Backend>(
    cell: &'a OnceCell<u32, B>,
    gate: &'a Gate,
    value: u32,
) -> Boxed<'a, &'a u32> {
    Box::pin(cell.get_or_init(move || gate.then(value)))
}

fn an_empty_cell_has_no_value<B: Backend>() {
    let mut cell = OnceCell::<u32, B>::new_in();
    assert!(!cell.initialized());
    assert_eq!(cell.get(), None);
    assert_eq!(cell.get_mut(), None);
    assert_eq!(cell.take(), None);
    assert_eq!(cell.into_inner(), None);
}

fn what_is_set_is_there_for_good<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    assert_eq!(cell.set(7), Ok(()));
    assert!(cell.initialized());
    assert!(std::ptr::eq(cell.get().unwrap(), cell.get().unwrap()));
    assert_eq!(cell.get(), Some(&7));
}

fn setting_twice_gives_the_second_back<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    cell.set(Token::new(1)).unwrap();
    let error = cell.set(Token::new(2)).unwrap_err();
    assert!(error.is_already_init_err() && !error.is_initializing_err());
    assert_eq!(Token::alive(), 2);
    drop(error);
    assert_eq!(cell.get().unwrap().0, 1);
}

fn setting_while_one_is_made_gives_the_value_back<B: Backend>() {
    let (task, gate) = (Probe::new(), Gate::default());
    let cell = OnceCell::<_, B>::new_in();
    let mut made = slow(&cell, &gate, 5);
    assert_eq!(poll(&mut made, &task), Poll::Pending);
    assert_eq!(cell.set(10), Err(SetError::InitializingError(10)));
    gate.open();
    assert_eq!(poll(&mut made, &task), Poll::Ready(&5));
    assert_eq!(cell.set(10), Err(SetError::AlreadyInitializedError(10)));
}

fn the_first_caller_makes_the_value<B: Backend>() {
    let task = Probe::new();
    let cell = OnceCell::<_, B>::new_in();
    assert_eq!(poll(&mut init(&cell, 5), &task), Poll::Ready(&5));
    assert_eq!(poll(&mut init(&cell, 10), &task), Poll::Ready(&5));
    assert_eq!(task.clones(), 0);
}

fn an_initializer_does_not_run_if_there_is_a_value<B: Backend>() {
    let task = Probe::new();
    let cell = OnceCell::<u32, B>::new_in();
    let mut made = Box::pin(cell.get_or_init(|| -> std::future::Ready<u32> { unreachable!() }));
    cell.set(7).unwrap();
    assert_eq!(poll(&mut made, &task), Poll::Ready(&7));
}

fn callers_that_come_meanwhile_share_the_value<B: Backend>() {
    let tasks = [Probe::new(), Probe::new(), Probe::new()];
    let gate = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let mut made = [slow(&cell, &gate, 1), init(&cell, 2), init(&cell, 3)];
    for (made, task) in made.iter_mut().zip(&tasks) {
        assert_eq!(poll(made, task), Poll::Pending);
    }
    assert_eq!((cell.waiting(), cell.granted()), (2, 0));
    gate.open();
    assert_eq!(poll(&mut made[0], &tasks[0]), Poll::Ready(&1));
    assert_eq!((cell.waiting(), cell.granted()), (0, 2));
    for (made, task) in made.iter_mut().zip(&tasks).skip(1) {
        assert_eq!((task.wakes(), task.kept()), (1, 0));
        assert_eq!(poll(made, task), Poll::Ready(&1));
    }
    assert_eq!(cell.granted(), 0);
}

fn callers_that_come_meanwhile_call_no_initializer<B: Backend>() {
    let (task, gate) = (Probe::new(), Gate::default());
    let cell = OnceCell::<_, B>::new_in();
    let mut first = slow(&cell, &gate, 1);
    let mut second = Box::pin(cell.get_or_init(|| -> std::future::Ready<u32> { unreachable!() }));
    assert_eq!(poll(&mut first, &task), Poll::Pending);
    assert_eq!(poll(&mut second, &task), Poll::Pending);
    gate.open();
    assert_eq!(poll(&mut first, &task), Poll::Ready(&1));
    assert_eq!(poll(&mut second, &task), Poll::Ready(&1));
}

fn a_failed_initializer_passes_the_permit_on<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let gate = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let mut fails = Box::pin(cell.get_or_try_init(|| gate.then(Err("failed"))));
    let mut made = Box::pin(cell.get_or_try_init(|| ready(Ok::<_, &str>(10))));
    assert_eq!(poll(&mut fails, &first), Poll::Pending);
    assert_eq!(poll(&mut made, &second), Poll::Pending);
    gate.open();
    assert_eq!(poll(&mut fails, &first), Poll::Ready(Err("failed")));
    assert_eq!((second.wakes(), cell.granted()), (1, 1));
    assert_eq!(poll(&mut made, &second), Poll::Ready(Ok(&10)));
    assert_eq!(cell.granted(), 0);
}

fn a_failed_initializer_leaves_the_cell_empty<B: Backend>() {
    let task = Probe::new();
    let cell = OnceCell::<u32, B>::new_in();
    let mut fails = Box::pin(cell.get_or_try_init(|| ready(Err(()))));
    assert_eq!(poll(&mut fails, &task), Poll::Ready(Err(())));
    assert_eq!(cell.get(), None);
    assert_eq!(cell.set(7), Ok(()));
}

fn a_dropped_initializer_passes_the_permit_on<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let gate = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let (mut dropped, mut made) = (slow(&cell, &gate, 1), init(&cell, 2));
    assert_eq!(poll(&mut dropped, &first), Poll::Pending);
    assert_eq!(poll(&mut made, &second), Poll::Pending);
    drop(dropped);
    assert_eq!((first.kept(), second.wakes()), (0, 1));
    assert_eq!(poll(&mut made, &second), Poll::Ready(&2));
}

fn an_initializer_that_panics_passes_the_permit_on<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let gate = Gate::default();
    let cell = OnceCell::<u32, B>::new_in();
    let mut panics = Box::pin(cell.get_or_init(|| async {
        gate.then(()).await;
        panic!("the initializer panics")
    }));
    let mut made = init(&cell, 2);
    assert_eq!(poll(&mut panics, &first), Poll::Pending);
    assert_eq!(poll(&mut made, &second), Poll::Pending);
    gate.open();
    let message = panic_of(|| {
        let _ = poll(&mut panics, &first);
    });
    assert_eq!(message.as_deref(), Some("the initializer panics"));
    assert_eq!(second.wakes(), 1);
    assert_eq!(poll(&mut made, &second), Poll::Ready(&2));
}

fn a_closure_that_panics_passes_the_permit_on<B: Backend>() {
    let task = Probe::new();
    let cell = OnceCell::<u32, B>::new_in();
    let mut panics = Box::pin(cell.get_or_init(|| -> std::future::Ready<u32> { panic!("called") }));
    assert!(
        panic_of(|| {
            let _ = poll(&mut panics, &task);
        })
        .is_some()
    );
    assert_eq!(poll(&mut init(&cell, 2), &task), Poll::Ready(&2));
}

fn a_granted_permit_passes_on_when_its_wait_is_dropped<B: Backend>() {
    let tasks = [Probe::new(), Probe::new(), Probe::new()];
    let gate = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let mut first = slow(&cell, &gate, 1);
    let (mut second, mut third) = (init(&cell, 2), init(&cell, 3));
    assert_eq!(poll(&mut first, &tasks[0]), Poll::Pending);
    assert_eq!(poll(&mut second, &tasks[1]), Poll::Pending);
    assert_eq!(poll(&mut third, &tasks[2]), Poll::Pending);
    drop(first);
    assert_eq!((tasks[1].wakes(), tasks[2].wakes()), (1, 0));
    drop(second);
    assert_eq!(tasks[2].wakes(), 1);
    assert_eq!(poll(&mut third, &tasks[2]), Poll::Ready(&3));

    // If no caller is queued, the permit is free again.
    let cell = OnceCell::<_, B>::new_in();
    let (mut first, mut second) = (slow(&cell, &gate, 1), init(&cell, 2));
    let closed = Gate::default();
    let mut holds = slow(&cell, &closed, 0);
    assert_eq!(poll(&mut holds, &tasks[0]), Poll::Pending);
    assert_eq!(poll(&mut first, &tasks[0]), Poll::Pending);
    drop(holds);
    drop(first);
    assert_eq!(poll(&mut second, &tasks[0]), Poll::Ready(&2));
}

fn the_permit_goes_round_in_the_order_of_arrival<B: Backend>() {
    let closed = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let tasks: Vec<Probe> = (0..5).map(|_| Probe::new()).collect();
    let mut made: Vec<_> = (0..5).map(|value| slow(&cell, &closed, value)).collect();
    for (made, task) in made.iter_mut().zip(&tasks) {
        assert_eq!(poll(made, task), Poll::Pending);
    }
    for (next, first) in made.into_iter().enumerate() {
        assert!((1..=next).all(|woken| tasks[woken].wakes() == 1));
        assert!(tasks.iter().skip(next + 1).all(|task| task.wakes() == 0));
        drop(first);
    }
    assert_eq!(poll(&mut init(&cell, 7), &tasks[0]), Poll::Ready(&7));
}

fn a_queued_initializer_can_be_dropped<B: Backend>() {
    let tasks = [Probe::new(), Probe::new(), Probe::new()];
    let gate = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let mut first = slow(&cell, &gate, 1);
    let (mut second, mut third) = (init(&cell, 2), init(&cell, 3));
    assert_eq!(poll(&mut first, &tasks[0]), Poll::Pending);
    assert_eq!(poll(&mut second, &tasks[1]), Poll::Pending);
    assert_eq!(poll(&mut third, &tasks[2]), Poll::Pending);
    drop(second);
    assert_eq!((tasks[1].kept(), cell.waiting()), (0, 1));
    drop(first);
    assert_eq!((tasks[1].wakes(), tasks[2].wakes()), (0, 1));
    assert_eq!(poll(&mut third, &tasks[2]), Poll::Ready(&3));
}

fn a_set_between_a_failure_and_the_next_poll_is_refused<B: Backend>() {
    let task = Probe::new();
    let closed = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let (mut first, mut second) = (slow(&cell, &closed, 1), init(&cell, 2));
    assert_eq!(poll(&mut first, &task), Poll::Pending);
    assert_eq!(poll(&mut second, &task), Poll::Pending);
    drop(first);
    assert_eq!(cell.set(7), Err(SetError::InitializingError(7)));
    assert_eq!(poll(&mut init(&cell, 3), &task), Poll::Pending);
    assert_eq!(poll(&mut second, &task), Poll::Ready(&2));
}

fn waiting_wakes_with_what_another_task_makes<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let cell = OnceCell::<_, B>::new_in();
    let mut wait = cell.wait();
    assert_eq!(poll(&mut wait, &first), Poll::Pending);
    assert_eq!(poll(&mut init(&cell, 7), &second), Poll::Ready(&7));
    assert_eq!((first.wakes(), first.kept()), (1, 0));
    assert_eq!(poll(&mut wait, &first), Poll::Ready(&7));
    assert_eq!(poll(&mut wait, &first), Poll::Ready(&7));
    assert_eq!(poll(&mut cell.wait(), &first), Poll::Ready(&7));
}

fn waiting_wakes_with_what_another_task_sets<B: Backend>() {
    let task = Probe::new();
    let cell = OnceCell::<_, B>::new_in();
    let (mut gone, mut wait) = (cell.wait(), cell.wait());
    assert_eq!(poll(&mut gone, &task), Poll::Pending);
    assert_eq!(poll(&mut wait, &task), Poll::Pending);
    drop(gone);
    assert_eq!((task.kept(), cell.waiting()), (1, 1));
    cell.set(7).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&mut wait, &task), Poll::Ready(&7));
}

/// A wait for the value alone is not given the permit.
fn waiting_makes_nothing<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let closed = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let mut holds = slow(&cell, &closed, 1);
    assert_eq!(poll(&mut holds, &first), Poll::Pending);
    let mut wait = cell.wait();
    assert_eq!(poll(&mut wait, &second), Poll::Pending);
    drop(holds);
    assert_eq!(second.wakes(), 0);
    assert_eq!(poll(&mut init(&cell, 2), &first), Poll::Ready(&2));
    assert_eq!(second.wakes(), 1);
}

fn more_wait_than_a_wake_list_holds<B: Backend>() {
    const N: usize = WakeList::CAPACITY * 2;
    let (task, gate) = (Probe::new(), Gate::default());
    let cell = OnceCell::<_, B>::new_in();
    let mut holds = slow(&cell, &gate, 1);
    assert_eq!(poll(&mut holds, &Probe::new()), Poll::Pending);
    let mut made: Vec<_> = (0..N).map(|_| init(&cell, 2)).collect();
    let mut waits: Vec<_> = (0..N).map(|_| cell.wait()).collect();
    for made in &mut made {
        assert_eq!(poll(made, &task), Poll::Pending);
    }
    for wait in &mut waits {
        assert_eq!(poll(wait, &task), Poll::Pending);
    }
    assert_eq!(cell.waiting(), 2 * N);
    gate.open();
    assert_eq!(poll(&mut holds, &Probe::new()), Poll::Ready(&1));
    assert_eq!((task.wakes(), task.kept()), (2 * N, 0));
    assert_eq!((cell.waiting(), cell.granted()), (0, 2 * N));
}

fn more_wait_for_the_value_alone_than_a_wake_list_holds<B: Backend>() {
    const N: usize = WakeList::CAPACITY * 2;
    let (task, cell) = (Probe::new(), OnceCell::<_, B>::new_in());
    let mut waits: Vec<_> = (0..N).map(|_| cell.wait()).collect();
    for wait in &mut waits {
        assert_eq!(poll(wait, &task), Poll::Pending);
    }
    cell.set(1).unwrap();
    assert_eq!((task.wakes(), task.kept()), (N, 0));
}

fn an_initializer_that_is_done_is_dropped<B: Backend>() {
    let (captured, gate) = (Arc::new(()), Gate::default());
    let cell = OnceCell::<_, B>::new_in();
    // Unlike an `async` block, it keeps what it captured to its end.
    let mut made = Box::pin(cell.get_or_init(|| {
        let (captured, gate) = (captured.clone(), &gate);
        poll_fn(move |_| match gate.0.get() {
            true => Poll::Ready(Arc::strong_count(&captured)),
            false => Poll::Pending,
        })
    }));
    assert_eq!(poll(&mut made, &Probe::new()), Poll::Pending);
    assert_eq!(Arc::strong_count(&captured), 2);
    gate.open();
    assert_eq!(poll(&mut made, &Probe::new()), Poll::Ready(&2));
    assert_eq!(Arc::strong_count(&captured), 1);
}

fn the_wait_can_change_its_task<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let closed = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let (mut holds, mut made) = (slow(&cell, &closed, 1), init(&cell, 2));
    assert_eq!(poll(&mut holds, &first), Poll::Pending);
    assert_eq!(poll(&mut made, &first), Poll::Pending);
    assert_eq!(poll(&mut made, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    drop(holds);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_waker_that_panics_costs_no_other_the_wake<B: Backend>() {
    let tasks: Vec<Probe> = (0..WakeList::CAPACITY * 2).map(|_| Probe::new()).collect();
    let gate = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let mut holds = slow(&cell, &gate, 1);
    assert_eq!(poll(&mut holds, &Probe::new()), Poll::Pending);
    let mut made: Vec<_> = tasks.iter().map(|_| init(&cell, 2)).collect();
    for (made, task) in made.iter_mut().zip(&tasks) {
        assert_eq!(poll(made, task), Poll::Pending);
    }
    tasks[3].panic_on(Event::Wake);
    gate.open();
    let message = panic_of(|| {
        let _ = poll(&mut holds, &Probe::new());
    });
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    for (made, task) in made.iter_mut().zip(&tasks) {
        assert_eq!(poll(made, task), Poll::Ready(&1));
    }
}

/// No lock is held while an initializer runs.
fn an_initializer_can_use_the_cell<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    let mut made = Box::pin(cell.get_or_init(|| {
        assert_eq!((cell.get(), cell.waiting(), cell.granted()), (None, 0, 0));
        async {
            assert_eq!(cell.set(8), Err(SetError::InitializingError(8)));
            assert!(format!("{cell:?}").contains("initializing: true"));
            7
        }
    }));
    assert_eq!(poll(&mut made, &Probe::new()), Poll::Ready(&7));
}

fn the_value_is_dropped_with_the_cell<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    cell.set(Token::new(7)).unwrap();
    assert_eq!(Token::alive(), 1);
    drop(cell);
    assert_eq!(Token::alive(), 0);
}

fn the_value_can_be_taken_out<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    cell.set(Token::new(7)).unwrap();
    let token = cell.into_inner();
    assert_eq!(Token::alive(), 1);
    drop(token);
    assert_eq!(Token::alive(), 0);
}

fn a_cell_can_be_used_again_after_take<B: Backend>() {
    let mut cell = OnceCell::<_, B>::new_in();
    for number in 0..3 {
        cell.set(Token::new(number)).unwrap();
        assert_eq!(cell.take().map(|token| token.0), Some(number));
        assert_eq!((Token::alive(), cell.initialized()), (0, false));
    }
    assert!(cell.take().is_none());
}

fn take_forgets_an_initializer_that_leaked<B: Backend>() {
    let task = Probe::new();
    let mut cell = OnceCell::<u32, B>::new_in();
    {
        let mut leaks = Box::pin(cell.get_or_init(pending));
        let mut queued = init(&cell, 1);
        assert_eq!(poll(&mut leaks, &task), Poll::Pending);
        assert_eq!(poll(&mut queued, &task), Poll::Pending);
        // It is kept reachable for leak checkers, and never dropped.
        thread_local!(static KEPT: Cell<[usize; 2]> = const { Cell::new([0; 2]) });
        let kept = [
            std::ptr::from_mut(Box::leak(unpinned(leaks))).cast::<u8>(),
            std::ptr::from_mut(Box::leak(unpinned(queued))).cast::<u8>(),
        ];
        KEPT.set(kept.map(|it| it.expose_provenance()));
    }
    assert_eq!(cell.set(7), Err(SetError::InitializingError(7)));
    assert_eq!(cell.take(), None);
    assert_eq!((cell.waiting(), task.kept()), (0, 0));
    assert_eq!(cell.set(7), Ok(()));
    assert_eq!(task.wakes(), 0);
}

/// Puts the future into a box, which may be leaked: what is pinned in it stays there.
fn unpinned<F: ?Sized>(future: Pin<Box<F>>) -> Box<Pin<Box<F>>> {
    Box::new(future)
}

fn the_value_can_be_changed_by_exclusive_borrow<B: Backend>() {
    let mut cell = OnceCell::<_, B>::new_in();
    cell.set(7).unwrap();
    *cell.get_mut().unwrap() += 1;
    assert_eq!(cell.get(), Some(&8));
}

fn a_value_that_panics_in_drop_is_dropped_once<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    cell.set(Explosive::new()).unwrap();
    assert!(panic_of(|| drop(cell)).is_some());
    assert_eq!(Token::alive(), 0);
}

fn copies_have_the_value_and_not_the_waiters<B: Backend>() {
    let cell = OnceCell::<_, B>::new_in();
    let mut wait = cell.wait();
    assert_eq!(poll(&mut wait, &Probe::new()), Poll::Pending);
    let empty = cell.clone();
    assert_eq!((empty.get(), empty.waiting()), (None, 0));
    assert!(empty == cell);
    cell.set(7).unwrap();
    assert!(empty != cell);
    assert_eq!(cell.clone().get(), Some(&7));
}

fn debug_output_names_what_is_known<B: Backend>() {
    let task = Probe::new();
    let closed = Gate::default();
    let cell = OnceCell::<_, B>::new_in();
    let (mut holds, mut wait) = (slow(&cell, &closed, 1), cell.wait());
    assert_eq!(poll(&mut holds, &task), Poll::Pending);
    assert_eq!(poll(&mut wait, &task), Poll::Pending);
    assert_eq!(
        format!("{cell:?}, {wait:?}"),
        "OnceCell { value: None, initializing: true, waiting: 1, granted: 0 }, \
         OnceCellWait { queued: true, .. }"
    );
    closed.open();
    assert_eq!(poll(&mut holds, &task), Poll::Ready(&1));
    assert_eq!(
        format!("{cell:?}"),
        "OnceCell { value: Some(1), initializing: false, waiting: 0, granted: 1 }"
    );
}

#[test]
fn it_is_made_as_tokios_is() {
    static EMPTY: OnceCell<u32> = OnceCell::const_new();
    static FULL: OnceCell<u32> = OnceCell::const_new_with(7);
    static NEW: OnceCell<String> = OnceCell::new();
    EMPTY.set(1).unwrap();
    assert_eq!((EMPTY.get(), FULL.get()), (Some(&1), Some(&7)));
    assert_eq!(NEW.get(), None);
    assert_eq!(OnceCell::from(2).get(), Some(&2));
    assert_eq!(OnceCell::new_with(Some(2)).into_inner(), Some(2));
    assert_eq!(OnceCell::<u32>::new_with(None).get(), None);
    assert_eq!(OnceCell::<u32>::default().get(), None);
}

#[test]
fn one_of_many_threads_makes_it_and_all_see_it() {
    for _ in 0..100 {
        let cell = Arc::new(OnceCell::new());
        let made = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (cell, made) = (cell.clone(), made.clone());
                thread::spawn(move || {
                    let value = pin!(cell.get_or_init(|| async {
                        made.fetch_add(1, Ordering::Relaxed);
                        number
                    }));
                    *block_on::<Native, _>(value)
                })
            })
            .collect();
        let seen: Vec<i32> = threads.into_iter().map(|it| it.join().unwrap()).collect();
        assert!(seen.iter().all(|value| *value == seen[0]));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}

/// Each initializer fails a few times before it succeeds, and each caller may be
/// given the permit of any other.
#[test]
fn threads_that_fail_pass_the_permit_round() {
    for _ in 0..100 {
        let cell = OnceCell::new();
        let left = AtomicUsize::new(8);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let made = pin!(cell.get_or_try_init(|| async {
                            let fails = left.load(Ordering::Relaxed) > 0;
                            match fails {
                                true => Err(left.fetch_sub(1, Ordering::Relaxed)),
                                false => Ok(7),
                            }
                        }));
                        if let Ok(value) = block_on::<Native, _>(made) {
                            assert_eq!(*value, 7);
                            break;
                        }
                    }
                });
            }
            assert_eq!(*block_on::<Native, _>(cell.wait()), 7);
        });
    }
}

#[test]
fn an_error_says_what_is_wrong_and_has_the_value() {
    let already = SetError::AlreadyInitializedError(7);
    let initializing = SetError::InitializingError(7);
    assert_eq!(
        already.to_string(),
        "the cell has a value already, which cannot be replaced"
    );
    assert_eq!(
        initializing.to_string(),
        "an initializer of the cell is running; wait for its value instead"
    );
    let error: Box<dyn std::error::Error> = Box::new(initializing);
    assert!(error.is::<SetError<i32>>());
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    const fn unpin<T: Unpin>() {}
    const fn threads<T: Send + Sync>() {}
    fn sent<T: Send>(_: &T) {}
    fn unpinned<T: Unpin>(_: &T) {}
    unpin::<OnceCellWait<'_, std::marker::PhantomPinned>>();
    threads::<OnceCell<u32>>();
    threads::<OnceCellWait<'_, u32>>();
    // Besides where it was called, if that is kept.
    let location = size_of::<reveille::protocol::CallerLocation>();
    assert!(size_of::<OnceCellWait<'_, [u64; 9]>>() - location <= 2 * size_of::<usize>());
    let cell = OnceCell::<u32>::new();
    let made = cell.get_or_init(async || 7);
    unpinned(&made);
    sent(&made);
    let words = size_of_val(&made) / size_of::<usize>();
    assert!(words <= 8, "{words} words");
}
