//! What `reveille::CancellationToken` promises: the semantics of tokio-util's over every
//! backend, then what is its own.

#![cfg(not(loom))]

mod support;

use std::collections::HashSet;
use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::thread;

use reveille::CancellationToken;
use reveille::backend::{Backend, Local, Native, Spin};
use reveille::protocol::WakeList;

use support::probe::{Event, Probe};
use support::{on_every_backend, poll};

on_every_backend![
    cancel_wakes_those_that_wait_for_any_clone,
    cancel_reaches_all_descendants_and_no_ancestor,
    a_child_of_a_cancelled_token_is_cancelled,
    a_child_may_be_cancelled_alone,
    descendants_of_a_dropped_token_hear_of_its_ancestors,
    children_of_a_dropped_root_live_on,
    a_dropped_wait_leaves_no_waker,
    the_latest_waker_is_woken,
    guards_cancel_unless_they_are_disarmed,
    run_until_cancelled_returns_what_is_first,
    clones_are_equal_and_no_others,
    more_are_woken_than_a_wake_list_holds,
    a_waker_may_use_the_tokens,
    tokens_that_come_and_go_reuse_their_room,
    debug_output_names_what_is_known,
];

fn new<B: Backend>() -> CancellationToken<B> {
    CancellationToken::new_in()
}

fn cancel_wakes_those_that_wait_for_any_clone<B: Backend>() {
    let token = new::<B>();
    let (first, second) = (Probe::new(), Probe::new());
    let same = token.clone();
    let mut waits = token.cancelled();
    let mut owned = same.clone().cancelled_owned();
    assert!(poll(&mut waits, &first).is_pending());
    assert!(poll(&mut owned, &second).is_pending());
    same.cancel();
    same.cancel();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    for _ in 0..2 {
        assert!(poll(&mut waits, &first).is_ready());
        assert!(poll(&mut owned, &second).is_ready());
    }
    assert!(token.is_cancelled());
    assert_eq!((first.kept(), second.kept()), (0, 0));
}

fn cancel_reaches_all_descendants_and_no_ancestor<B: Backend>() {
    let root = new::<B>();
    let children: Vec<_> = (0..3).map(|_| root.child_token()).collect();
    let grandchildren: Vec<_> = children
        .iter()
        .flat_map(|child| [child.child_token(), child.child_token()])
        .collect();
    let leaf = grandchildren[2].child_token();
    children[1].cancel();
    let cancelled: Vec<_> = children
        .iter()
        .map(CancellationToken::is_cancelled)
        .collect();
    assert_eq!(cancelled, [false, true, false]);
    let cancelled: Vec<_> = grandchildren
        .iter()
        .map(CancellationToken::is_cancelled)
        .collect();
    assert_eq!(cancelled, [false, false, true, true, false, false]);
    assert!(leaf.is_cancelled() && !root.is_cancelled());
    root.cancel();
    let all = children.iter().chain(&grandchildren).chain([&root, &leaf]);
    assert!(all.into_iter().all(CancellationToken::is_cancelled));
}

fn a_child_of_a_cancelled_token_is_cancelled<B: Backend>() {
    let root = new::<B>();
    let child = root.child_token();
    child.cancel();
    assert!(child.child_token().is_cancelled());
    assert!(!root.child_token().is_cancelled());
    root.cancel();
    let late = root.child_token();
    assert!(late.is_cancelled() && late.child_token().is_cancelled());
    assert!(poll(&mut late.cancelled(), &Probe::new()).is_ready());
}

fn a_child_may_be_cancelled_alone<B: Backend>() {
    let root = new::<B>();
    let (task, other) = (Probe::new(), Probe::new());
    let child = root.child_token();
    let (mut waits, mut waits_for_root) = (child.cancelled(), root.cancelled());
    assert!(poll(&mut waits, &task).is_pending());
    assert!(poll(&mut waits_for_root, &other).is_pending());
    child.cancel();
    assert_eq!((task.wakes(), other.wakes()), (1, 0));
    assert!(poll(&mut waits, &task).is_ready());
    root.cancel();
    assert_eq!((task.wakes(), other.wakes()), (1, 1));
}

fn descendants_of_a_dropped_token_hear_of_its_ancestors<B: Backend>() {
    let root = new::<B>();
    let child = root.child_token();
    let grandchildren = [child.child_token(), child.child_token()];
    let leaf = grandchildren[0].child_token();
    drop(child);
    let [first, second] = grandchildren;
    drop(first);
    let task = Probe::new();
    let mut waits = leaf.cancelled();
    assert!(poll(&mut waits, &task).is_pending());
    second.cancel();
    assert!(!leaf.is_cancelled());
    root.cancel();
    assert_eq!(task.wakes(), 1);
    assert!(leaf.is_cancelled());
}

fn children_of_a_dropped_root_live_on<B: Backend>() {
    let root = new::<B>();
    let (first, second) = (root.child_token(), root.child_token());
    drop(root);
    assert!(!first.is_cancelled());
    first.cancel();
    assert!(first.is_cancelled() && !second.is_cancelled());
    let late = second.child_token();
    second.cancel();
    assert!(second.is_cancelled() && late.is_cancelled());
}

fn a_dropped_wait_leaves_no_waker<B: Backend>() {
    let token = new::<B>();
    let task = Probe::new();
    let mut waits = token.cancelled();
    assert!(poll(&mut waits, &task).is_pending());
    drop(waits);
    let mut owned = token.child_token().cancelled_owned();
    assert!(poll(&mut owned, &task).is_pending());
    drop(owned);
    assert_eq!(task.kept(), 0);
    token.cancel();
    assert_eq!(task.wakes(), 0);
}

fn the_latest_waker_is_woken<B: Backend>() {
    let token = new::<B>();
    let (first, second) = (Probe::new(), Probe::new());
    let mut waits = token.cancelled();
    assert!(poll(&mut waits, &first).is_pending());
    assert!(poll(&mut waits, &second).is_pending());
    token.cancel();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

fn guards_cancel_unless_they_are_disarmed<B: Backend>() {
    let token = new::<B>();
    assert!(!token.clone().drop_guard().disarm().is_cancelled());
    assert!(!token.drop_guard_ref().disarm().is_cancelled());
    let child = token.child_token();
    let guard = child.drop_guard_ref();
    assert_eq!(guard.token(), &child);
    drop(guard);
    assert!(child.is_cancelled() && !token.is_cancelled());
    let guard = token.clone().drop_guard();
    assert_eq!(guard.token(), &token);
    drop(guard);
    assert!(token.is_cancelled());
}

fn run_until_cancelled_returns_what_is_first<B: Backend>() {
    let token = new::<B>();
    let task = Probe::new();
    assert_eq!(
        poll(&mut token.run_until_cancelled(ready(7)), &task),
        Poll::Ready(Some(7))
    );
    let mut runs = token.run_until_cancelled(pending::<()>());
    let mut owned = token.clone().run_until_cancelled_owned(pending::<()>());
    assert!(poll(&mut runs, &task).is_pending() && poll(&mut owned, &task).is_pending());
    let child = token.child_token();
    // Both are ready at the second poll: the output is returned.
    let mut both =
        child.run_until_cancelled(std::future::poll_fn(|_| match child.is_cancelled() {
            true => Poll::Ready(8),
            false => Poll::Pending,
        }));
    assert!(poll(&mut both, &task).is_pending());
    token.cancel();
    assert_eq!(poll(&mut runs, &task), Poll::Ready(None));
    assert_eq!(poll(&mut owned, &task), Poll::Ready(None));
    assert_eq!(poll(&mut both, &task), Poll::Ready(Some(8)));
    // Cancelled before the first poll: it is not polled.
    let mut never = token.run_until_cancelled(std::future::poll_fn(|_| -> Poll<()> {
        panic!("it is not polled")
    }));
    assert_eq!(poll(&mut never, &task), Poll::Ready(None));
}

#[allow(
    clippy::mutable_key_type,
    reason = "a token is hashed by its address, which does not change"
)]
fn clones_are_equal_and_no_others<B: Backend>() {
    let root = new::<B>();
    let child = root.child_token();
    let tokens: HashSet<_> = [root.clone(), root.clone(), child.clone(), new(), root].into();
    assert_eq!(tokens.len(), 3);
    assert_eq!(child, child.clone());
}

fn more_are_woken_than_a_wake_list_holds<B: Backend>() {
    let root = new::<B>();
    let tokens: Vec<_> = (0..WakeList::CAPACITY)
        .map(|_| root.child_token())
        .collect();
    let tasks: Vec<_> = (0..2 * WakeList::CAPACITY).map(|_| Probe::new()).collect();
    let twice = tokens.iter().chain(&tokens);
    let mut waits: Vec<_> = twice.map(CancellationToken::cancelled).collect();
    for (wait, task) in waits.iter_mut().zip(&tasks) {
        assert!(poll(wait, task).is_pending());
    }
    tasks
        .iter()
        .step_by(7)
        .for_each(|task| task.panic_on(Event::Wake));
    assert!(catch_unwind(AssertUnwindSafe(|| root.cancel())).is_err());
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    drop(waits);
    assert!(tasks.iter().all(|task| task.kept() == 0));
}

/// It may also drop the last token of a node whose waiters are still to be woken.
fn a_waker_may_use_the_tokens<B: Backend>() {
    let root = Rc::new(new::<B>());
    let (first, second) = (root.child_token(), root.child_token());
    let (task, other) = (Probe::new(), Probe::new());
    let mut waits = first.cancelled_owned();
    let mut others = second.cancelled_owned();
    assert!(poll(&mut waits, &task).is_pending() && poll(&mut others, &other).is_pending());
    let (rest, again) = (root.clone(), root.clone());
    task.on(Event::Wake, move || {
        drop(others);
        assert!(rest.is_cancelled() && rest.child_token().is_cancelled());
    });
    other.on(Event::Wake, move || again.cancel());
    root.cancel();
    assert_eq!(task.wakes(), 1);
    assert!(poll(&mut waits, &task).is_ready());
    assert_eq!(other.kept(), 0);
}

fn tokens_that_come_and_go_reuse_their_room<B: Backend>() {
    let root = new::<B>();
    let task = Probe::new();
    for round in 0..1_000 {
        let child = root.child_token();
        let leaf = child.child_token();
        let mut waits = leaf.cancelled();
        assert!(poll(&mut waits, &task).is_pending());
        if round % 3 == 0 {
            child.cancel();
            assert!(poll(&mut waits, &task).is_ready());
        }
        drop(child);
        assert_eq!(leaf.is_cancelled(), round % 3 == 0);
    }
    assert_eq!(task.kept(), 0);
    root.cancel();
}

fn debug_output_names_what_is_known<B: Backend>() {
    let token = new::<B>();
    let text = format!(
        "{:?} {:?}",
        token.cancelled(),
        token.clone().drop_guard().disarm()
    );
    assert!(text.contains("queued: false") && text.contains("is_cancelled: false"));
    token.cancel();
    assert!(format!("{token:?}").contains("is_cancelled: true"));
}

#[test]
fn a_child_that_is_created_while_its_parent_is_cancelled_is_cancelled() {
    for _ in 0..200 {
        let root = CancellationToken::new();
        let makes = thread::spawn({
            let root = root.clone();
            move || {
                let child = root.child_token();
                reveille_executor::block_on(child.cancelled());
            }
        });
        root.cancel();
        makes.join().unwrap();
    }
}
