//! What `reveille::SetOnce` promises: the semantics of `tokio::sync::SetOnce`
//! over every backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::mem::size_of;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::{WakeList, block_on};
use reveille::{SetOnce, SetOnceError, SetOnceWait};

use support::probe::{Event, Probe};
use support::token::{Explosive, Token};
use support::{on_every_backend, panic_of, poll};

on_every_backend![
    an_empty_one_has_no_value,
    what_is_set_is_there_for_good,
    only_the_first_sets_and_the_others_get_theirs_back,
    a_wait_for_what_is_set_is_ready_at_its_first_poll,
    setting_wakes_all_waiters,
    every_waiter_sees_the_same_value,
    a_wait_that_ended_returns_the_same_again,
    the_wait_can_change_its_task,
    a_given_up_wait_leaves_nothing,
    more_wait_than_a_wake_list_holds,
    a_waker_that_panics_costs_no_other_the_wake,
    the_value_is_dropped_with_what_holds_it,
    the_value_can_be_taken_out,
    what_is_empty_gives_nothing_out,
    a_value_that_panics_in_drop_is_dropped_once,
    a_waker_can_set_the_next,
    copies_have_the_value_and_not_the_waiters,
    waiters_are_counted,
    debug_output_names_what_is_known,
];

fn an_empty_one_has_no_value<B: Backend>() {
    let once = SetOnce::<u32, B>::new_in();
    assert!(!once.initialized());
    assert_eq!(once.get(), None);
    assert_eq!(poll(&mut once.wait(), &Probe::new()), Poll::Pending);
}

fn what_is_set_is_there_for_good<B: Backend>() {
    let once = SetOnce::<_, B>::new_in();
    assert_eq!(once.set(7), Ok(()));
    assert!(once.initialized());
    let value = once.get().unwrap();
    assert_eq!(*value, 7);
    assert!(std::ptr::eq(value, once.get().unwrap()));
}

fn only_the_first_sets_and_the_others_get_theirs_back<B: Backend>() {
    let once = SetOnce::<_, B>::new_in();
    once.set(Token::new(1)).unwrap();
    let SetOnceError(token) = once.set(Token::new(2)).unwrap_err();
    assert_eq!(token.0, 2);
    assert_eq!(once.get().unwrap().0, 1);
    drop(token);
    drop(once);
}

fn a_wait_for_what_is_set_is_ready_at_its_first_poll<B: Backend>() {
    let task = Probe::new();
    let once = SetOnce::<_, B>::new_in();
    once.set(7).unwrap();
    assert_eq!(poll(&mut once.wait(), &task), Poll::Ready(&7));
    assert_eq!(task.clones(), 0);
}

fn setting_wakes_all_waiters<B: Backend>() {
    let tasks: Vec<Probe> = (0..5).map(|_| Probe::new()).collect();
    let once = SetOnce::<_, B>::new_in();
    let mut waits: Vec<_> = tasks.iter().map(|_| once.wait()).collect();
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(poll(wait, task), Poll::Pending);
    }
    once.set(7).unwrap();
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!((task.wakes(), task.kept()), (1, 0));
        assert_eq!(poll(wait, task), Poll::Ready(&7));
    }
    assert_eq!((once.waiting(), once.granted()), (0, 0));
}

fn every_waiter_sees_the_same_value<B: Backend>() {
    let task = Probe::new();
    let once = SetOnce::<Result<u32, String>, B>::new_in();
    let (mut first, mut second) = (once.wait(), once.wait());
    assert_eq!(poll(&mut first, &task), Poll::Pending);
    once.set(Err("rejected".to_owned())).unwrap();
    let (Poll::Ready(first), Poll::Ready(second)) =
        (poll(&mut first, &task), poll(&mut second, &task))
    else {
        panic!("both are ready");
    };
    assert!(std::ptr::eq(first, second));
    assert_eq!(first.as_ref().unwrap_err(), "rejected");
}

fn a_wait_that_ended_returns_the_same_again<B: Backend>() {
    let task = Probe::new();
    let once = SetOnce::<_, B>::new_in();
    let mut wait = once.wait();
    assert_eq!(poll(&mut wait, &task), Poll::Pending);
    once.set(7).unwrap();
    assert_eq!(poll(&mut wait, &task), Poll::Ready(&7));
    assert_eq!(poll(&mut wait, &task), Poll::Ready(&7));
}

fn the_wait_can_change_its_task<B: Backend>() {
    let (first, second) = (Probe::new(), Probe::new());
    let once = SetOnce::<_, B>::new_in();
    let mut wait = once.wait();
    assert_eq!(poll(&mut wait, &first), Poll::Pending);
    assert_eq!(poll(&mut wait, &second), Poll::Pending);
    assert_eq!((first.kept(), second.kept()), (0, 1));
    once.set(7).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn a_given_up_wait_leaves_nothing<B: Backend>() {
    let (gone, stays) = (Probe::new(), Probe::new());
    let once = SetOnce::<_, B>::new_in();
    let (mut first, mut second, unpolled) = (once.wait(), once.wait(), once.wait());
    assert_eq!(poll(&mut first, &gone), Poll::Pending);
    assert_eq!(poll(&mut second, &stays), Poll::Pending);
    drop((first, unpolled));
    assert_eq!((gone.kept(), once.waiting()), (0, 1));
    once.set(7).unwrap();
    assert_eq!((gone.wakes(), stays.wakes()), (0, 1));

    // The wait was notified, and is dropped without having observed that.
    drop(second);
    assert_eq!(once.granted(), 0);
    assert_eq!(poll(&mut once.wait(), &stays), Poll::Ready(&7));
}

fn more_wait_than_a_wake_list_holds<B: Backend>() {
    let tasks: Vec<Probe> = (0..WakeList::CAPACITY * 3 + 1)
        .map(|_| Probe::new())
        .collect();
    let once = SetOnce::<_, B>::new_in();
    let mut waits: Vec<_> = tasks.iter().map(|_| once.wait()).collect();
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(poll(wait, task), Poll::Pending);
    }
    once.set(7).unwrap();
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    assert_eq!(once.granted(), tasks.len());
}

fn a_waker_that_panics_costs_no_other_the_wake<B: Backend>() {
    let tasks: Vec<Probe> = (0..WakeList::CAPACITY * 2).map(|_| Probe::new()).collect();
    let once = SetOnce::<_, B>::new_in();
    let mut waits: Vec<_> = tasks.iter().map(|_| once.wait()).collect();
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert_eq!(poll(wait, task), Poll::Pending);
    }
    tasks[3].panic_on(Event::Wake);
    let message = panic_of(|| once.set(7).unwrap());
    assert_eq!(message.as_deref(), Some("the waker's Wake panics"));
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    assert_eq!(poll(&mut waits[3], &tasks[3]), Poll::Ready(&7));
}

fn the_value_is_dropped_with_what_holds_it<B: Backend>() {
    let once = SetOnce::<_, B>::new_in();
    once.set(Token::new(7)).unwrap();
    assert_eq!(Token::alive(), 1);
    drop(once);
    assert_eq!(Token::alive(), 0);
}

fn the_value_can_be_taken_out<B: Backend>() {
    let once = SetOnce::<_, B>::new_in();
    once.set(Token::new(7)).unwrap();
    let token = once.into_inner();
    assert_eq!(Token::alive(), 1);
    drop(token);
    assert_eq!(Token::alive(), 0);
}

fn what_is_empty_gives_nothing_out<B: Backend>() {
    assert_eq!(SetOnce::<u32, B>::new_in().into_inner(), None);
}

fn a_value_that_panics_in_drop_is_dropped_once<B: Backend>() {
    let once = SetOnce::<_, B>::new_in();
    once.set(Explosive::new()).unwrap();
    assert!(panic_of(|| drop(once)).is_some());
    assert_eq!(Token::alive(), 0);
}

fn a_waker_can_set_the_next<B: Backend>() {
    let task = Probe::new();
    let (first, second) = (
        Rc::new(SetOnce::<_, B>::new_in()),
        Rc::new(SetOnce::<_, B>::new_in()),
    );
    let mut wait = first.wait();
    assert_eq!(poll(&mut wait, &task), Poll::Pending);
    task.on(Event::Wake, {
        let (first, second) = (first.clone(), second.clone());
        move || {
            second.set(*first.get().unwrap() + 1).unwrap();
            assert!(first.set(0).is_err());
            assert_eq!(first.waiting(), 0);
        }
    });
    first.set(7).unwrap();
    assert_eq!(second.get(), Some(&8));
}

fn copies_have_the_value_and_not_the_waiters<B: Backend>() {
    let task = Probe::new();
    let once = SetOnce::<_, B>::new_in();
    let mut wait = once.wait();
    assert_eq!(poll(&mut wait, &task), Poll::Pending);
    let empty = once.clone();
    assert_eq!((empty.get(), empty.waiting()), (None, 0));
    assert!(empty == once);
    once.set(7).unwrap();
    assert!(empty != once);
    assert_eq!(once.clone().get(), Some(&7));
    assert!(once.clone() == once);
}

fn waiters_are_counted<B: Backend>() {
    let task = Probe::new();
    let once = SetOnce::<_, B>::new_in();
    let (mut first, mut second) = (once.wait(), once.wait());
    assert_eq!((once.waiting(), once.granted()), (0, 0));
    assert_eq!(poll(&mut first, &task), Poll::Pending);
    assert_eq!(poll(&mut second, &task), Poll::Pending);
    assert_eq!((once.waiting(), once.granted()), (2, 0));
    once.set(7).unwrap();
    assert_eq!((once.waiting(), once.granted()), (0, 2));
    assert_eq!(poll(&mut first, &task), Poll::Ready(&7));
    assert_eq!((once.waiting(), once.granted()), (0, 1));
}

fn debug_output_names_what_is_known<B: Backend>() {
    let once = SetOnce::<_, B>::new_in();
    let mut wait = once.wait();
    assert_eq!(poll(&mut wait, &Probe::new()), Poll::Pending);
    assert_eq!(
        format!("{once:?}, {wait:?}"),
        "SetOnce { value: None, waiting: 1, granted: 0 }, SetOnceWait { queued: true, .. }"
    );
    once.set(7).unwrap();
    assert_eq!(
        format!("{once:?}"),
        "SetOnce { value: Some(7), waiting: 0, granted: 1 }"
    );
}

#[test]
fn it_is_made_as_tokios_is() {
    static EMPTY: SetOnce<u32> = SetOnce::const_new();
    static FULL: SetOnce<u32> = SetOnce::const_new_with(7);
    static NEW: SetOnce<String> = SetOnce::new();
    EMPTY.set(1).unwrap();
    assert_eq!((EMPTY.get(), FULL.get()), (Some(&1), Some(&7)));
    assert_eq!(NEW.get(), None);
    assert_eq!(SetOnce::from(2).get(), Some(&2));
    assert_eq!(SetOnce::new_with(Some(2)).into_inner(), Some(2));
    assert_eq!(SetOnce::<u32>::new_with(None).get(), None);
    assert_eq!(SetOnce::<u32>::default().get(), None);
}

#[test]
fn one_of_many_threads_sets_it_and_all_see_it() {
    for _ in 0..100 {
        let once = Arc::new(SetOnce::new());
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let once = once.clone();
                thread::spawn(move || {
                    let set = once.set(number).is_ok();
                    (set, *block_on::<Native, _>(once.wait()))
                })
            })
            .collect();
        let ends: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
        assert_eq!(ends.iter().filter(|(set, _)| *set).count(), 1);
        let value = *once.get().unwrap();
        assert!(ends.iter().all(|&(_, seen)| seen == value));
        assert!(ends[value].0, "the value is the setter's");
    }
}

#[test]
fn waiting_threads_are_woken() {
    for _ in 0..100 {
        let once = SetOnce::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(*block_on::<Native, _>(once.wait()), "set"));
            }
            once.set("set".to_owned()).unwrap();
        });
    }
}

#[test]
fn an_error_says_what_is_wrong_and_has_the_value() {
    let error = SetOnceError(7);
    assert_eq!(
        error.to_string(),
        "the value has been set already, and can be set only once"
    );
    let error: Box<dyn std::error::Error> = Box::new(error);
    assert_eq!(error.downcast::<SetOnceError<i32>>().unwrap().0, 7);
}

#[test]
fn futures_are_small_and_go_where_they_may() {
    const fn unpin<T: Unpin>() {}
    const fn threads<T: Send + Sync>() {}
    unpin::<SetOnceWait<'_, std::marker::PhantomPinned>>();
    threads::<SetOnce<u32>>();
    threads::<SetOnceWait<'_, u32>>();
    // Besides where it was called, if that is kept.
    let location = size_of::<reveille::protocol::CallerLocation>();
    assert!(size_of::<SetOnceWait<'_, [u64; 9]>>() - location <= 2 * size_of::<usize>());
}
