//! Each finding of the audit, shown by hand: a few polls in one order, without the
//! verifier. A test that fails means that the pinned version no longer behaves so.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};

use reveille::backend::{Hooks, hooked};

/// Counts its wakes. The count of its `Arc` tells how many wakers are alive.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counter {
    fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Returns `true` if the crate holds a waker of the counter, beside the test's own
/// reference and waker.
fn is_held(counter: &Arc<Counter>) -> bool {
    Arc::strong_count(counter) > 2
}

/// A waker, with the counter of its wakes.
fn waker() -> (Arc<Counter>, Waker) {
    let counter = Arc::new(Counter::default());
    (counter.clone(), Waker::from(counter))
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// A waker that panics while `armed`, when it is cloned or when it is woken.
struct Panics {
    armed: AtomicBool,
    clone: bool,
    wakes: AtomicUsize,
}

impl Hooks for Panics {
    fn cloned(&self) {
        assert!(!(self.clone && self.armed.load(SeqCst)), "clone panics");
    }

    fn woken(&self) {
        self.wakes.fetch_add(1, SeqCst);
        assert!(self.clone || !self.armed.load(SeqCst), "wake panics");
    }

    fn dropped(&self) {}
}

fn panicking(clone: bool) -> (Arc<Panics>, Waker) {
    let panics = Arc::new(Panics {
        armed: AtomicBool::new(true),
        clone,
        wakes: AtomicUsize::new(0),
    });
    (panics.clone(), hooked(panics))
}

/// Runs something that panics, and says nothing of it.
fn unwinds(f: impl FnOnce()) {
    assert!(
        catch_unwind(AssertUnwindSafe(f)).is_err(),
        "it does not panic"
    );
}

#[test]
fn tokio_oneshot_keeps_the_waker_of_a_closed_that_was_dropped() {
    let (mut tx, _rx) = tokio::sync::oneshot::channel::<()>();
    let (counter, waker) = waker();
    {
        let closed = pin!(tx.closed());
        assert!(poll(closed, &waker).is_pending());
    }
    assert!(is_held(&counter), "the future is gone, and its waker too");
}

#[test]
fn futures_mpsc_keeps_the_waker_of_a_receiver_that_was_dropped() {
    let (_tx, mut rx) = futures::channel::mpsc::unbounded::<()>();
    let (counter, waker) = waker();
    assert!(poll(pin!(futures::StreamExt::next(&mut rx)), &waker).is_pending());
    drop(rx);
    assert!(is_held(&counter));
}

#[test]
fn tachyonix_keeps_the_waker_of_a_receiver_that_was_dropped() {
    let (_tx, mut rx) = tachyonix::channel::<()>(1);
    let (counter, waker) = waker();
    {
        let recv = pin!(rx.recv());
        assert!(poll(recv, &waker).is_pending());
    }
    drop(rx);
    assert!(is_held(&counter));
}

#[test]
fn thingbuf_keeps_the_waker_of_a_receiver_that_was_dropped() {
    let (_tx, rx) = thingbuf::mpsc::channel::<u32>(1);
    let (counter, waker) = waker();
    {
        let recv = pin!(rx.recv());
        assert!(poll(recv, &waker).is_pending());
    }
    drop(rx);
    assert!(is_held(&counter));
}

#[test]
fn postage_keeps_the_waker_of_a_receiver_that_was_dropped() {
    let (_tx, mut rx) = postage::mpsc::channel::<u32>(1);
    let (counter, waker) = waker();
    {
        let recv = pin!(postage::stream::Stream::recv(&mut rx));
        assert!(poll(recv, &waker).is_pending());
    }
    drop(rx);
    assert!(is_held(&counter));
}

#[test]
fn postage_keeps_the_waker_of_a_send_that_was_dropped() {
    let (mut tx, _rx) = postage::mpsc::channel::<u32>(1);
    assert!(postage::sink::Sink::try_send(&mut tx, 1).is_ok());
    let (counter, waker) = waker();
    {
        let send = pin!(postage::sink::Sink::send(&mut tx, 2));
        assert!(poll(send, &waker).is_pending());
    }
    assert!(is_held(&counter));
}

#[test]
fn flume_keeps_the_waker_of_a_send_that_has_returned() {
    let (tx, rx) = flume::bounded::<u32>(1);
    tx.try_send(1).unwrap();
    let (counter, waker) = waker();
    {
        let mut send = pin!(tx.send_async(2));
        assert!(poll(send.as_mut(), &waker).is_pending());
        drop(rx);
        assert_eq!(counter.wakes(), 1);
        assert!(matches!(poll(send, &waker), Poll::Ready(Err(_))));
    }
    assert!(is_held(&counter));
}

#[test]
fn async_oneshot_never_drops_a_value_that_is_not_received() {
    let value = Arc::new(());
    let (mut tx, rx) = async_oneshot::oneshot();
    tx.send(value.clone()).unwrap();
    drop((tx, rx));
    assert_eq!(
        Arc::strong_count(&value),
        2,
        "both halves are gone, and the value too"
    );
}

#[test]
fn kanal_wakes_the_first_waker_of_a_send_that_was_polled_with_another() {
    let (tx, rx) = kanal::bounded_async::<u32>(1);
    assert_eq!(tx.try_send(1), Ok(true));
    let ((first, one), (second, two)) = (waker(), waker());
    let mut send = pin!(tx.send(2));
    assert!(poll(send.as_mut(), &one).is_pending());
    assert!(poll(send.as_mut(), &two).is_pending());
    assert_eq!(rx.try_recv(), Ok(Some(1)));
    // The task that waits now is that of the second waker, and it is not woken.
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert!(poll(send, &two).is_ready());
}

#[test]
fn kanal_loses_a_message_for_a_receive_that_is_dropped() {
    let (tx, rx) = kanal::bounded_async::<u32>(1);
    let (_, waker) = waker();
    {
        let mut recv = Box::pin(rx.recv());
        assert!(poll(recv.as_mut(), &waker).is_pending());
        assert_eq!(tx.try_send(1), Ok(true));
    }
    assert_eq!(
        rx.try_recv(),
        Ok(None),
        "the message was sent, and is still there"
    );
}

#[test]
fn futures_intrusive_semaphore_forgets_the_waiter_behind_one_that_gives_up() {
    let semaphore = futures_intrusive::sync::Semaphore::new(true, 2);
    let _one = semaphore.try_acquire(1).unwrap();
    let ((_, large), (counter, small)) = (waker(), waker());
    let mut both = Box::pin(semaphore.acquire(2));
    assert!(poll(both.as_mut(), &large).is_pending());
    // One permit is left, and waits its turn behind the large request.
    let mut next = Box::pin(semaphore.acquire(1));
    assert!(poll(next.as_mut(), &small).is_pending());
    drop(both);
    assert_eq!(semaphore.permits(), 1);
    assert_eq!(
        counter.wakes(),
        0,
        "the permit is free, and the next waiter was told"
    );
    // It does not even look when it is polled.
    assert!(poll(next.as_mut(), &small).is_pending());
}

/// A cell whose `register` unwound: it takes no part in wakes any more.
fn stays_registering(register: impl Fn(&Waker), wake: impl Fn()) {
    let (_, broken) = panicking(true);
    unwinds(|| register(&broken));
    let (counter, good) = waker();
    register(&good);
    wake();
    // It may have been woken in `register`, if the cell takes itself to be contended.
    let before = counter.wakes();
    register(&good);
    wake();
    assert!(before == 0 || counter.wakes() == before);
    assert_eq!(
        counter.wakes(),
        0,
        "a wake after the panic reaches the task"
    );
}

#[test]
fn atomic_waker_is_registering_for_ever_after_a_clone_that_panics() {
    let cell = atomic_waker::AtomicWaker::new();
    stays_registering(|waker| cell.register(waker), || cell.wake());
}

#[test]
fn futures_atomic_waker_is_registering_for_ever_after_a_clone_that_panics() {
    let cell = futures::task::AtomicWaker::new();
    stays_registering(|waker| cell.register(waker), || cell.wake());
}

#[test]
fn async_lock_mutex_forgets_a_waiter_after_a_clone_that_panics() {
    let mutex = async_lock::Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let (_, broken) = panicking(true);
    let mut first = Box::pin(mutex.lock());
    unwinds(|| _ = poll(first.as_mut(), &broken));
    drop(first);
    let (counter, good) = waker();
    let mut second = Box::pin(mutex.lock());
    assert!(poll(second.as_mut(), &good).is_pending());
    drop(held);
    assert_eq!(
        counter.wakes(),
        0,
        "the lock is free, and the waiter was told"
    );
}

#[test]
fn futures_mutex_cannot_be_locked_after_a_clone_that_panics() {
    let mutex = futures::lock::Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let (_, broken) = panicking(true);
    let mut first = Box::pin(mutex.lock());
    unwinds(|| _ = poll(first.as_mut(), &broken));
    std::mem::forget(first);
    let (_, good) = waker();
    unwinds(|| _ = poll(pin!(mutex.lock()), &good));
    std::mem::forget(held);
}

#[test]
fn diatomic_waker_wakes_no_more_after_a_wake_that_panics() {
    let mut sink = diatomic_waker::WakeSink::new();
    let source = sink.source();
    let (_, broken) = panicking(false);
    sink.register(&broken);
    unwinds(|| source.notify());
    let (counter, good) = waker();
    sink.register(&good);
    source.notify();
    assert_eq!(counter.wakes(), 0, "a later wake reaches the task");
}

/// Two threads hold read guards of a `Cell` at once, which is not `Sync`: both could set
/// it. Nothing here is `unsafe`. The cell is not accessed while both have it.
#[test]
fn asyncband_mapped_write_guard_of_a_cell_can_be_sent() {
    let lock = asyncband::rwlock::RwLock::new(Cell::new(1));
    let guard = lock.try_write().expect("it is free");
    let mapped = asyncband::rwlock::RwLockWriteGuard::map(guard, |cell| cell);
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mapped = mapped;
            let shared: &Cell<u32> = &mapped.downgrade();
            both.wait();
            both.wait();
            assert_eq!(shared.get(), 1);
        });
        both.wait();
        let shared: &Cell<u32> = &lock.try_read().expect("it is shared with the other thread");
        assert_eq!(size_of_val(shared), 4);
        both.wait();
    });
}

/// As above, with a guard that is not even mapped.
#[test]
fn async_lock_write_guard_of_a_cell_can_be_sent() {
    let lock = async_lock::RwLock::new(Cell::new(1));
    let guard = lock.try_write().expect("it is free");
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = guard;
            let shared: &Cell<u32> = &async_lock::RwLockWriteGuard::downgrade(guard);
            both.wait();
            both.wait();
            assert_eq!(shared.get(), 1);
        });
        both.wait();
        let shared: &Cell<u32> = &lock.try_read().expect("it is shared with the other thread");
        assert_eq!(size_of_val(shared), 4);
        both.wait();
    });
}
