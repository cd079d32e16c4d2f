//! What drives timers on the real clock: the thread of the crate, or a loop of the
//! user.

#![cfg(not(loom))]

mod support;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use reveille::backend::{Native, SharedBackend, Spin};
use reveille::oneshot;
use reveille::protocol::block_on;
use reveille::time::{
    Driver, Duration, Instant, RealClock, Sleep, Timers, VirtualClock, interval, sleep,
    sleep_until, timeout,
};

use support::returns;

const MS: Duration = Duration::from_millis(1);

/// A thread and the wakes of its task.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future on this thread, which drives the timers itself, as an executor does.
fn drives<F: Future>(timers: &Timers, future: F) -> F::Output {
    let unpark = Arc::new(Unpark {
        thread: thread::current(),
        woken: AtomicBool::new(true),
    });
    let waker = Waker::from(unpark.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    let driver = timers.driver();
    loop {
        if unpark.woken.swap(false, Ordering::Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut cx)
        {
            return output;
        }
        let next = driver.turn(&mut cx);
        if unpark.woken.load(Ordering::Acquire) {
            continue;
        }
        match next {
            Some(deadline) => thread::park_timeout(deadline - timers.now()),
            None => thread::park(),
        }
    }
}

/// Runs a future, with timers that are driven.
type Runs<'a> = dyn Fn(Pin<&mut dyn Future<Output = ()>>) + 'a;

/// Each of the ways to drive.
fn each_way(test: fn(&Timers, &Runs<'_>)) {
    returns("driven by its own loop", move || {
        let timers = Timers::new(RealClock);
        test(&timers, &|future| drives(&timers, future));
    });
    returns("driven by a thread", move || {
        let timers = Timers::threaded();
        test(&timers, &|future| block_on::<Native, _>(future));
    });
    returns("driven by the thread of the process", move || {
        test(&Timers::current(), &|future| block_on::<Native, _>(future));
    });
}

#[test]
fn sleeps_end_and_not_early() {
    each_way(|timers, run| {
        run(pin!(async {
            for micros in [0, 1, 50, 1000, 3000] {
                let wanted = Duration::from_micros(micros);
                let start = timers.now();
                timers.sleep(wanted).await;
                assert!(timers.now() - start >= wanted);
            }
            let deadline = timers.now() + MS;
            timers.sleep_until(deadline).await;
            assert!(timers.now() >= deadline);
        }));
    });
}

/// Records its number, then wakes the task.
struct Notes {
    number: u32,
    woken: Arc<Mutex<Vec<u32>>>,
    task: Waker,
}

impl Wake for Notes {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.number);
        self.task.wake_by_ref();
    }
}

#[test]
fn sleeps_fire_in_the_order_of_deadlines() {
    each_way(|timers, run| {
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut sleeps: Vec<_> = (1..40).rev().map(|it| timers.sleep(MS / 4 * it)).collect();
        run(pin!(poll_fn(|cx| {
            let numbers = (1..40).rev();
            let polls = sleeps.iter_mut().zip(numbers).map(|(sleep, number)| {
                let (woken, task) = (woken.clone(), cx.waker().clone());
                let waker = Arc::new(Notes {
                    number,
                    woken,
                    task,
                })
                .into();
                Pin::new(sleep).poll(&mut Context::from_waker(&waker))
            });
            // All of them are polled each time.
            match polls.filter(Poll::is_pending).count() {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })));
        let woken = woken.lock().unwrap();
        assert!(woken.is_sorted(), "{woken:?}");
    });
}

#[test]
fn tm_01_a_far_deadline_hides_no_nearer_one() {
    each_way(|timers, run| {
        let mut far = timers.sleep(Duration::from_secs(1000));
        run(pin!(async {
            // The thread is parked until the far deadline.
            let mut woken = false;
            poll_fn(|cx| {
                assert!(Pin::new(&mut far).poll(cx).is_pending());
                if std::mem::replace(&mut woken, true) {
                    return Poll::Ready(());
                }
                wake_in(MS * 3, cx);
                Poll::Pending
            })
            .await;
            let start = timers.now();
            timers.sleep(MS).await;
            assert!(timers.now() - start >= MS);
        }));
    });
}

/// Wakes the task, without the timers of the crate.
fn wake_in(duration: Duration, cx: &Context<'_>) {
    let waker = cx.waker().clone();
    thread::spawn(move || {
        thread::sleep(duration);
        waker.wake();
    });
}

#[test]
fn tm_01_a_nearer_deadline_from_another_thread_unparks_the_driver() {
    returns("the driver is unparked", || {
        let timers = Timers::new(RealClock);
        let (ended, end) = oneshot::channel();
        let other = thread::spawn({
            let timers = timers.clone();
            move || {
                thread::sleep(MS * 5);
                block_on::<Native, _>(timers.sleep(MS));
                ended.send(()).expect("the driver waits for it");
            }
        });
        // Before that, only the sleep of the other thread ends the wait of the
        // driver.
        let far = timers.timeout(Duration::from_secs(1000), end);
        assert_eq!(drives(&timers, far), Ok(Ok(())));
        other.join().expect("it has slept");
    });
}

/// With one driver for all, each loop would replace the other. The busy one would be
/// told of the deadline, and the one that sleeps would sleep on.
#[test]
fn two_loops_drive_the_same_timers() {
    returns("both sleep to the end", || {
        let timers = Timers::new(RealClock);
        let (ended, end) = oneshot::channel();
        let idles = thread::spawn({
            let timers = timers.clone();
            move || drives(&timers, timers.timeout(Duration::from_secs(1000), end))
        });
        thread::sleep(MS * 5);
        // Its turn comes later than that of the other, and it is busy from then on.
        let busy = timers.driver();
        busy.turn(&mut Context::from_waker(Waker::noop()));
        block_on::<Native, _>(timers.sleep(MS));
        ended.send(()).expect("the other waits for it");
        assert_eq!(idles.join().expect("it sleeps"), Ok(Ok(())));
    });
}

/// Two drivers sleep for different times. A driver is told of a deadline that is
/// nearer than its own, whatever the other knows.
#[test]
fn each_driver_is_told_of_deadlines_nearer_than_its_own() {
    let timers = Timers::new(RealClock);
    let flag = || {
        Arc::new(Unpark {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        })
    };
    let (near, far) = (flag(), flag());
    let turn = |driver: &Driver, flag: &Arc<Unpark>| {
        let waker = Waker::from(flag.clone());
        driver.turn(&mut Context::from_waker(&waker))
    };
    let wait = |sleep: &mut Sleep| {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(sleep).poll(&mut cx).is_pending());
    };
    let (one, other) = (timers.driver(), timers.driver());
    let [mut ten, mut fifty, mut hundred] =
        [10, 50, 100].map(|after| timers.sleep(Duration::from_secs(after)));
    wait(&mut ten);
    wait(&mut hundred);
    assert!(turn(&one, &near).is_some());
    drop(ten);
    assert!(turn(&other, &far).is_some());
    wait(&mut fifty);
    let woken = [near, far].map(|flag| flag.woken.load(Ordering::Acquire));
    assert_eq!(woken, [false, true]);
}

#[test]
fn a_thread_takes_over_what_the_last_driver_leaves() {
    returns("the sleep ends", || {
        let timers = Timers::threaded();
        let [one, last] = [(); 2].map(|()| timers.driver());
        let mut early = timers.sleep(MS);
        let task = Arc::new(Unpark {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        });
        let waker = Waker::from(task.clone());
        let poll = Pin::new(&mut early).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        let is_woken = || task.woken.load(Ordering::Acquire);
        thread::sleep(MS * 5);
        assert!(early.is_elapsed() && !is_woken(), "no driver takes a turn");
        drop(one);
        thread::sleep(MS * 5);
        assert!(!is_woken(), "there is another driver");
        drop(last);
        block_on::<Native, _>(early);
        block_on::<Native, _>(timers.sleep(MS));
    });
    returns("a sleep starts it", || {
        let timers = Timers::threaded();
        drop(timers.driver());
        block_on::<Native, _>(timers.sleep(MS));
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("this waker panics on purpose");
    }
}

#[test]
fn a_waker_that_panics_does_not_stop_the_thread() {
    returns("the thread goes on", || {
        let timers = Timers::threaded();
        let waker = Waker::from(Arc::new(Panics));
        for _ in 0..3 {
            let mut bad: Vec<Sleep> = (0..100).map(|_| timers.sleep(MS)).collect();
            for sleep in &mut bad {
                let poll = Pin::new(sleep).poll(&mut Context::from_waker(&waker));
                assert!(poll.is_pending());
            }
            block_on::<Native, _>(timers.sleep(MS * 2));
            assert!(bad.iter().all(Sleep::is_elapsed));
        }
    });
}

fn works_over<B: SharedBackend>() {
    let timers = Timers::<B>::threaded_in(Duration::from_micros(10));
    let start = timers.now();
    block_on::<Native, _>(timers.sleep(MS));
    assert!(timers.now() - start >= MS);
}

#[test]
fn the_thread_drives_over_every_shared_backend() {
    returns("over Native", works_over::<Native>);
    returns("over Spin", works_over::<Spin>);
}

#[test]
fn the_functions_use_the_timers_that_are_entered() {
    let (outer, inner) = (VirtualClock::by_hand(), VirtualClock::by_hand());
    inner.advance(MS);
    let real = Instant::now();
    {
        let _outer = outer.timers().enter();
        assert_eq!(Instant::now(), outer.now());
        {
            let _inner = inner.timers().enter();
            assert_eq!(Instant::now(), inner.now());
            assert_eq!(sleep(MS).deadline(), inner.now() + MS);
        }
        let sleeping = sleep_until(outer.now() + MS);
        outer.advance(MS);
        assert!(sleeping.is_elapsed());
        // The other thread has entered no timers.
        let other = thread::spawn(Instant::now)
            .join()
            .expect("it tells the time");
        assert!(other >= real);
    }
    assert!(Instant::now() >= real);
}

#[test]
fn it_works_on_a_bare_block_on_without_set_up() {
    returns("no set-up", || {
        block_on::<Native, _>(async {
            assert!(timeout(MS, std::future::pending::<()>()).await.is_err());
            assert_eq!(timeout(MS * 60_000, async { 7 }).await, Ok(7));
            let mut interval = interval(MS);
            let first = interval.tick().await;
            for tick in 1..5 {
                assert_eq!(interval.tick().await, first + MS * tick);
            }
            assert!(first.elapsed() >= MS * 4);
        });
    });
}

/// Many tasks on a few threads, with sleeps that are reset and dropped.
#[test]
fn threads_sleep_reset_and_give_up() {
    returns("all sleeps end", || {
        let timers = Timers::threaded();
        thread::scope(|scope| {
            for number in 0..4u32 {
                let timers = &timers;
                scope.spawn(move || {
                    block_on::<Native, _>(async {
                        for round in 0..100u32 {
                            let micros = (number * 7919 + round * 104_729) % 300;
                            let wanted = Duration::from_micros(micros.into());
                            let mut given_up = timers.sleep(wanted / 2);
                            let mut reset = timers.sleep(Duration::from_secs(1000));
                            poll_fn(|cx| {
                                let _ = Pin::new(&mut given_up).poll(cx);
                                assert!(Pin::new(&mut reset).poll(cx).is_pending());
                                Poll::Ready(())
                            })
                            .await;
                            drop(given_up);
                            let deadline = timers.now() + wanted;
                            Pin::new(&mut reset).reset(deadline);
                            reset.await;
                            assert!(timers.now() >= deadline);
                        }
                    });
                });
            }
        });
        assert_eq!(timers.waiting(), 0);
    });
}
