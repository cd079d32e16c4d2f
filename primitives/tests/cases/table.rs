//! The table of waiting operations: a new primitive joins every case by a line.

use std::cell::Cell;
use std::hash::RandomState;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::{Backend, Local, Native, Spin};
use reveille::oneshot::{Receiver, Sender};
use reveille::raw::Storage;
use reveille::time::{Advance, DelayQueue, Duration, Instant, Interval, Timers, VirtualClock};
use reveille::{
    Barrier, BarrierWait, Event, Latch, Lazy, Mutex, Notify, OnceCell, OnceMap, OwnedMutexGuard,
    OwnedRwLockUpgradableReadGuard, Party, Phaser, Pool, Pooled, RwLock, Semaphore, SetOnce,
    Shutdown, ShutdownGuard, WaitGroup,
};
use reveille::{mpmc, mpsc};

use crate::support::channel::{Channel, Heap, Slotted, keep};
use crate::support::probe::Probe;
use crate::support::token::Token;

/// Returns every waiting operation, in every storage, over every backend.
pub(crate) fn table() -> Vec<Row> {
    vec![
        receiving::<Heap<Native>>(),
        receiving::<Heap<Spin>>(),
        receiving::<Heap<Local>>(),
        receiving::<Slotted<Native>>(),
        receiving::<Slotted<Spin>>(),
        receiving::<Slotted<Local>>(),
        closing::<Heap<Native>>(),
        closing::<Heap<Spin>>(),
        closing::<Heap<Local>>(),
        closing::<Slotted<Native>>(),
        closing::<Slotted<Spin>>(),
        closing::<Slotted<Local>>(),
        receiving_of_many::<Native>(),
        receiving_of_many::<Spin>(),
        receiving_of_many::<Local>(),
        receiving_beside_others::<Native>(),
        receiving_beside_others::<Spin>(),
        receiving_beside_others::<Local>(),
        being_notified::<Native>(),
        being_notified::<Spin>(),
        being_notified::<Local>(),
        locking::<Native, 0>(),
        locking::<Spin, 0>(),
        locking::<Local, 0>(),
        locking::<Native, 2>(),
        reading::<Native>(),
        reading::<Spin>(),
        reading::<Local>(),
        writing::<Native>(),
        writing::<Spin>(),
        writing::<Local>(),
        upgrading::<Native>(),
        upgrading::<Spin>(),
        upgrading::<Local>(),
        acquiring::<Native, 0>(),
        acquiring::<Spin, 0>(),
        acquiring::<Local, 0>(),
        acquiring::<Native, 2>(),
        set_once_row::<Native>(),
        set_once_row::<Spin>(),
        set_once_row::<Local>(),
        meeting::<Native>(),
        meeting::<Spin>(),
        meeting::<Local>(),
        being_set::<Native>(),
        being_set::<Spin>(),
        being_set::<Local>(),
        counting_down::<Native>(),
        counting_down::<Spin>(),
        counting_down::<Local>(),
        outlasting_the_group::<Native>(),
        outlasting_the_group::<Spin>(),
        outlasting_the_group::<Local>(),
        ending_a_phase::<Native>(),
        ending_a_phase::<Spin>(),
        ending_a_phase::<Local>(),
        stopping::<Native>(),
        stopping::<Spin>(),
        stopping::<Local>(),
        driving::<Native>(),
        driving::<Spin>(),
        driving::<Local>(),
        computing::<Native>(),
        computing::<Spin>(),
        computing::<Local>(),
        pooling::<Native>(),
        pooling::<Spin>(),
        pooling::<Local>(),
        making::<Native>(),
        making::<Spin>(),
        making::<Local>(),
        awaiting_what_is_made::<Native>(),
        awaiting_what_is_made::<Spin>(),
        awaiting_what_is_made::<Local>(),
        sleeping::<Native>(),
        sleeping::<Spin>(),
        sleeping::<Local>(),
        timing_out::<Native>(),
        timing_out::<Spin>(),
        timing_out::<Local>(),
        ticking::<Native>(),
        ticking::<Spin>(),
        ticking::<Local>(),
        expiring::<Native>(),
        expiring::<Spin>(),
        expiring::<Local>(),
    ]
}

/// A waiting operation.
pub(crate) struct Row {
    pub(crate) name: String,
    /// Creates a primitive, with a wait on it that has not been polled.
    pub(crate) scene: fn() -> Scene,
    /// What the wait ends with if the other side leaves, if it ends.
    pub(crate) left: Option<End>,
    /// Whether the other side is told when no waiter is left.
    pub(crate) refuses: bool,
}

/// The two sides of one wait, each until it leaves.
pub(crate) struct Scene {
    pub(crate) waiter: Option<Box<dyn Waiter>>,
    pub(crate) completer: Option<Box<dyn Completer>>,
}

/// The side that waits. Dropping it cancels the wait.
pub(crate) trait Waiter {
    /// Polls the wait. A result is dropped at once.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End>;
}

/// The side that ends the wait. Dropping it leaves.
pub(crate) trait Completer {
    /// Gives the wait, or the first of several, its result. Returns `true` if there
    /// was a waiter for it, or may be one yet.
    fn complete(&mut self) -> bool;

    /// Makes the other calls of this side, which end nothing.
    fn touch(&mut self);

    /// Creates a further wait on the same object, if it can have several.
    fn another(&self) -> Option<Box<dyn Waiter>> {
        None
    }
}

/// What a wait ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The result.
    Result,
    /// A message that there will be none.
    Never,
}

/// How the other side ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Completing,
    Leaving,
}

impl Row {
    pub(crate) fn scene(&self) -> Scene {
        (self.scene)()
    }

    /// Returns the ways in which the wait ends, each with its end.
    pub(crate) fn ends(&self) -> Vec<(By, End)> {
        let left = self.left.map(|end| (By::Leaving, end));
        [(By::Completing, End::Result)]
            .into_iter()
            .chain(left)
            .collect()
    }
}

impl Scene {
    fn new(waiter: impl Waiter + 'static, completer: impl Completer + 'static) -> Self {
        Self {
            waiter: Some(Box::new(waiter)),
            completer: Some(Box::new(completer)),
        }
    }

    pub(crate) fn poll(&mut self, task: &Probe) -> Poll<End> {
        let waiter = self
            .waiter
            .as_mut()
            .expect("the wait has not been cancelled");
        waiter.poll(&mut task.cx())
    }

    pub(crate) fn cancel(&mut self) {
        drop(self.waiter.take());
    }

    pub(crate) fn complete(&mut self) -> bool {
        let completer = self.completer.as_mut().expect("it has not left");
        completer.complete()
    }

    pub(crate) fn touch(&mut self) {
        let completer = self.completer.as_mut().expect("it has not left");
        completer.touch();
    }

    pub(crate) fn end(&mut self, by: By) {
        match by {
            By::Completing => assert!(self.complete(), "there is a waiter"),
            By::Leaving => drop(self.completer.take()),
        }
    }

    /// Creates further waits on the same object, if it can have several.
    pub(crate) fn others<const N: usize>(&self) -> Option<[Box<dyn Waiter>; N]> {
        let completer = self.completer.as_ref().expect("it has not left");
        let others: Option<Vec<_>> = (0..N).map(|_| completer.another()).collect();
        others.map(|others| others.try_into().ok().expect("as many as asked for"))
    }
}

/// `Receiver`, which `Sender::send` ends.
fn receiving<C: Channel>() -> Row {
    struct Receives<P: Storage>(Receiver<Token, P>);
    struct Sends<P: Storage>(Option<Sender<Token, P>>);

    impl<P: Storage> Waiter for Receives<P> {
        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
            Pin::new(&mut self.0)
                .poll(cx)
                .map(|received| match received {
                    Ok(token) => {
                        assert_eq!(token.0, 7, "the value is the one that was sent");
                        End::Result
                    }
                    Err(_) => End::Never,
                })
        }
    }

    impl<P: Storage> Completer for Sends<P> {
        fn complete(&mut self) -> bool {
            match self.0.take() {
                Some(tx) => tx.send(Token::new(7)).is_ok(),
                None => true,
            }
        }

        fn touch(&mut self) {
            if let Some(tx) = &mut self.0 {
                let _ = tx.is_closed();
                let _ = tx.poll_closed(&mut Context::from_waker(Waker::noop()));
            }
        }
    }

    Row {
        name: format!("oneshot::Receiver in {}", C::name()),
        scene: || {
            let (tx, rx) = C::open();
            Scene::new(Receives(rx), Sends(Some(tx)))
        },
        left: Some(End::Never),
        refuses: true,
    }
}

/// `Sender::poll_closed`, which `Receiver::close` ends. The sender itself waits.
fn closing<C: Channel>() -> Row {
    struct Waits<P: Storage>(Sender<Token, P>);
    struct Closes<P: Storage>(Receiver<Token, P>);

    impl<P: Storage> Waiter for Waits<P> {
        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
            self.0.poll_closed(cx).map(|()| End::Result)
        }
    }

    impl<P: Storage> Completer for Closes<P> {
        fn complete(&mut self) -> bool {
            self.0.close();
            true
        }

        fn touch(&mut self) {
            let _ = self.0.is_empty();
            if !self.0.is_terminated() {
                let mut cx = Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut self.0).poll(&mut cx);
            }
        }
    }

    Row {
        name: format!("oneshot::Sender::poll_closed in {}", C::name()),
        scene: || {
            let (tx, rx) = C::open();
            Scene::new(Waits(tx), Closes(rx))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// `mpsc::Receiver::poll_recv`, ended by `Sender::try_send`.
fn receiving_of_many<B: Backend>() -> Row {
    struct Receives<B: Backend>(mpsc::Receiver<Token, B>);
    struct Sends<B: Backend>(mpsc::Sender<Token, B>);

    impl<B: Backend> Waiter for Receives<B> {
        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
            self.0.poll_recv(cx).map(|received| match received {
                Some(token) => {
                    assert_eq!(token.0, 7, "the value is the one that was sent");
                    End::Result
                }
                None => End::Never,
            })
        }
    }

    impl<B: Backend> Completer for Sends<B> {
        fn complete(&mut self) -> bool {
            self.0.try_send(Token::new(7)).is_ok()
        }

        fn touch(&mut self) {
            let _ = (self.0.is_closed(), self.0.capacity());
            let _ = self.0.try_reserve();
        }
    }

    Row {
        name: format!("mpsc::Receiver over {}", std::any::type_name::<B>()),
        scene: || {
            let (tx, rx) = mpsc::channel_in::<_, B>(1);
            Scene::new(Receives(rx), Sends(tx))
        },
        left: Some(End::Never),
        refuses: true,
    }
}

fn receiving_beside_others<B: Backend>() -> Row {
    struct Receives<B: Backend>(mpmc::Receiver<Token, B>);
    struct Sends<B: Backend>(mpmc::Sender<Token, B>);

    impl<B: Backend> Waiter for Receives<B> {
        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
            self.0.poll_recv(cx).map(|received| match received {
                Some(token) => {
                    assert_eq!(token.0, 7, "the value is the one that was sent");
                    End::Result
                }
                None => End::Never,
            })
        }
    }

    impl<B: Backend> Completer for Sends<B> {
        fn complete(&mut self) -> bool {
            self.0.try_send(Token::new(7)).is_ok()
        }

        fn touch(&mut self) {
            let _ = (self.0.is_closed(), self.0.len(), self.0.receiver_count());
            let _ = self.0.downgrade().upgrade();
        }
    }

    Row {
        name: format!("mpmc::Receiver over {}", std::any::type_name::<B>()),
        scene: || {
            let (tx, rx) = mpmc::bounded_in::<_, B>(1);
            Scene::new(Receives(rx), Sends(tx))
        },
        left: Some(End::Never),
        refuses: true,
    }
}

/// A future whose output is a result to be dropped.
struct Ends<F>(F);

impl<F: Future + Unpin> Waiter for Ends<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        Pin::new(&mut self.0).poll(cx).map(|result| {
            drop(result);
            End::Result
        })
    }
}

/// `Notify::notified`, which `notify_one` ends.
fn being_notified<B: Backend>() -> Row {
    struct Notifies<B: Backend>(Arc<Notify<B>>);

    impl<B: Backend> Completer for Notifies<B> {
        fn complete(&mut self) -> bool {
            self.0.notify_one();
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.waiting(), self.0.granted());
        }

        fn another(&self) -> Option<Box<dyn Waiter>> {
            Some(Box::new(Ends(self.0.clone().notified_owned())))
        }
    }

    Row {
        name: format!("Notify::notified over {}", std::any::type_name::<B>()),
        scene: || {
            let notify = Arc::new(Notify::<B>::new_in());
            Scene::new(Ends(notify.clone().notified_owned()), Notifies(notify))
        },
        left: None,
        refuses: false,
    }
}

/// `Mutex::lock`, which the drop of the guard ends. The bound is `K`.
fn locking<B: Backend, const K: u16>() -> Row {
    struct Holds<B: Backend>(Arc<Mutex<u32, B>>, Option<OwnedMutexGuard<u32, B>>);

    impl<B: Backend> Completer for Holds<B> {
        fn complete(&mut self) -> bool {
            drop(self.1.take());
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.waiting(), self.0.granted());
            if self.1.is_some() {
                assert!(self.0.try_lock().is_err(), "it is held");
            }
        }

        fn another(&self) -> Option<Box<dyn Waiter>> {
            Some(Box::new(Ends(self.0.clone().lock_owned())))
        }
    }

    Row {
        name: format!(
            "Mutex::lock over {}, {K} barges",
            std::any::type_name::<B>()
        ),
        scene: || {
            let mutex = Arc::new(Mutex::<_, B>::with_max_barges_in(0, K));
            let guard = mutex.clone().try_lock_owned().expect("it is free");
            Scene::new(Ends(mutex.clone().lock_owned()), Holds(mutex, Some(guard)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// The other side of a wait for a lock: the holder of a guard.
struct HoldsRwLock<B: Backend, G>(Arc<RwLock<u32, B>>, Option<G>);

impl<B: Backend, G> Completer for HoldsRwLock<B, G> {
    fn complete(&mut self) -> bool {
        drop(self.1.take());
        true
    }

    fn touch(&mut self) {
        let _ = (self.0.waiting(), self.0.granted());
        if self.1.is_some() {
            assert!(self.0.try_write().is_err(), "it is held");
        }
    }

    fn another(&self) -> Option<Box<dyn Waiter>> {
        Some(Box::new(Ends(self.0.clone().write_owned())))
    }
}

/// `RwLock::read`, which the drop of a writer's guard ends.
fn reading<B: Backend>() -> Row {
    Row {
        name: format!("RwLock::read over {}", std::any::type_name::<B>()),
        scene: || {
            let lock = Arc::new(RwLock::<_, B>::with_max_readers_in(0, 8));
            let guard = lock.clone().try_write_owned().expect("it is free");
            let wait = lock.clone().read_owned();
            Scene::new(Ends(wait), HoldsRwLock(lock, Some(guard)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// `RwLock::write`, which the drop of a reader's guard ends.
fn writing<B: Backend>() -> Row {
    Row {
        name: format!("RwLock::write over {}", std::any::type_name::<B>()),
        scene: || {
            let lock = Arc::new(RwLock::<_, B>::with_max_readers_in(0, 8));
            let guard = lock.clone().try_read_owned().expect("it is free");
            let wait = lock.clone().write_owned();
            Scene::new(Ends(wait), HoldsRwLock(lock, Some(guard)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// The upgrade of a reader, which the drop of another reader's guard ends.
fn upgrading<B: Backend>() -> Row {
    Row {
        name: format!("RwLock: upgrade over {}", std::any::type_name::<B>()),
        scene: || {
            let lock = Arc::new(RwLock::<_, B>::with_max_readers_in(0, 8));
            let guard = lock.clone().try_read_owned().expect("it is free");
            let looks = lock.clone().try_upgradable_read_owned();
            let wait = OwnedRwLockUpgradableReadGuard::upgrade(looks.expect("there is no writer"));
            Scene::new(Ends(wait), HoldsRwLock(lock, Some(guard)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// `Semaphore::acquire`, which `add_permits` ends. The bound is `K`.
fn acquiring<B: Backend, const K: u16>() -> Row {
    struct Adds<B: Backend>(Arc<Semaphore<B>>);

    impl<B: Backend> Completer for Adds<B> {
        fn complete(&mut self) -> bool {
            self.0.add_permits(1);
            true
        }

        fn touch(&mut self) {
            let _ = (
                self.0.waiting(),
                self.0.granted(),
                self.0.available_permits(),
            );
        }

        fn another(&self) -> Option<Box<dyn Waiter>> {
            Some(Box::new(Ends(self.0.clone().acquire_owned())))
        }
    }

    Row {
        name: format!(
            "Semaphore::acquire over {}, {K} barges",
            std::any::type_name::<B>()
        ),
        scene: || {
            let semaphore = Arc::new(Semaphore::<B>::with_max_barges_in(0, K));
            Scene::new(Ends(semaphore.clone().acquire_owned()), Adds(semaphore))
        },
        left: None,
        refuses: false,
    }
}

/// A wait on a primitive that is leaked, so that it can be moved as an owned one can.
/// It is a future of the suite itself, since that of an `async` block does not
/// outlive a panic.
struct Waits<F>(F);

impl<F: Future<Output = &'static End> + Unpin> Waiter for Waits<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        Pin::new(&mut self.0).poll(cx).map(|end| *end)
    }
}

/// Leaks a primitive, reachable for leak checkers.
fn leaked<T>(primitive: T) -> &'static T {
    keep(Box::leak(Box::new(primitive)))
}

/// `SetOnce::wait`, which is fulfilled or, if the other side leaves, rejected.
fn set_once_row<B: Backend>() -> Row {
    struct Sets<B: Backend>(&'static SetOnce<End, B>);

    impl<B: Backend> Completer for Sets<B> {
        fn complete(&mut self) -> bool {
            // The first call has set it.
            let _ = self.0.set(End::Result);
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.get(), self.0.waiting(), self.0.granted());
        }
    }

    impl<B: Backend> Drop for Sets<B> {
        fn drop(&mut self) {
            let _ = self.0.set(End::Never);
        }
    }

    Row {
        name: format!("SetOnce::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let once = leaked(SetOnce::<_, B>::new_in());
            Scene::new(Waits(once.wait()), Sets(once))
        },
        left: Some(End::Never),
        refuses: false,
    }
}

/// `Barrier::wait`, which another arrival ends.
fn meeting<B: Backend>() -> Row {
    struct Arrives<B: Backend>(&'static Barrier<B>, Option<BarrierWait<'static, B>>);

    impl<B: Backend> Completer for Arrives<B> {
        fn complete(&mut self) -> bool {
            if self.1.is_none() {
                let arrival = self.1.insert(self.0.wait());
                // It is pending if it is the first arrival, and stays for the other.
                let mut cx = Context::from_waker(Waker::noop());
                let _ = Pin::new(arrival).poll(&mut cx);
            }
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.waiting(), self.0.granted());
        }
    }

    Row {
        name: format!("Barrier::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let barrier = leaked(Barrier::<B>::new_in(2));
            Scene::new(Ends(barrier.wait()), Arrives(barrier, None))
        },
        left: None,
        refuses: false,
    }
}

/// `Event::wait`, which `set` ends.
fn being_set<B: Backend>() -> Row {
    struct Sets<B: Backend>(Arc<Event<B>>);

    impl<B: Backend> Completer for Sets<B> {
        fn complete(&mut self) -> bool {
            self.0.set();
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.waiting(), self.0.granted());
            self.0.reset();
        }
    }

    Row {
        name: format!("Event::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let event = Arc::new(Event::<B>::new_in());
            Scene::new(Ends(event.clone().wait_owned()), Sets(event))
        },
        left: None,
        refuses: false,
    }
}

/// `Latch::wait`, which `count_down` ends.
fn counting_down<B: Backend>() -> Row {
    struct Counts<B: Backend>(Arc<Latch<B>>);

    impl<B: Backend> Completer for Counts<B> {
        fn complete(&mut self) -> bool {
            self.0.count_down();
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.count(), self.0.waiting(), self.0.granted());
            self.0.count_down_by(0);
        }
    }

    Row {
        name: format!("Latch::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let latch = Arc::new(Latch::<B>::new_in(1));
            Scene::new(Ends(latch.clone().wait_owned()), Counts(latch))
        },
        left: None,
        refuses: false,
    }
}

/// `WaitGroup::wait`, which the last member ends when it leaves.
fn outlasting_the_group<B: Backend>() -> Row {
    struct Leaves<B: Backend>(Option<WaitGroup<B>>);

    impl<B: Backend> Completer for Leaves<B> {
        fn complete(&mut self) -> bool {
            drop(self.0.take());
            true
        }

        fn touch(&mut self) {
            if let Some(member) = &self.0 {
                drop(member.clone());
                assert_eq!(member.members(), 1);
            }
        }
    }

    Row {
        name: format!("WaitGroup::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let group = WaitGroup::<B>::new_in();
            Scene::new(Ends(group.clone().wait()), Leaves(Some(group)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// `Phaser::wait`, which the arrival of the only party ends, or its leave.
fn ending_a_phase<B: Backend>() -> Row {
    struct Arrives<B: Backend>(Party<B>);

    impl<B: Backend> Completer for Arrives<B> {
        fn complete(&mut self) -> bool {
            self.0.arrive();
            true
        }

        fn touch(&mut self) {
            let phaser = self.0.phaser();
            let _ = (phaser.phase(), phaser.waiting(), phaser.granted());
        }
    }

    Row {
        name: format!("Phaser::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let phaser = leaked(Phaser::<B>::new_in());
            Scene::new(Ends(phaser.wait(0)), Arrives(phaser.register()))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// `Shutdown::wait` after the request, which the last guard ends.
fn stopping<B: Backend>() -> Row {
    struct Stops<B: Backend>(&'static Shutdown<B>, Option<ShutdownGuard<B>>);

    impl<B: Backend> Completer for Stops<B> {
        fn complete(&mut self) -> bool {
            drop(self.1.take());
            true
        }

        fn touch(&mut self) {
            let _ = self.0.guards();
            self.0.request();
        }
    }

    Row {
        name: format!("Shutdown::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let shutdown = leaked(Shutdown::<B>::new_in());
            let guard = shutdown.guard();
            shutdown.request();
            Scene::new(Ends(shutdown.wait()), Stops(shutdown, Some(guard)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// A future whose output is how the wait has ended.
struct Itself<F>(F);

impl<F: Future<Output = End> + Unpin> Waiter for Itself<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Returns how a wait has ended, once that is known.
fn known(end: Rc<Cell<Option<End>>>) -> impl Future<Output = End> + Unpin {
    std::future::poll_fn(move |_| end.get().map_or(Poll::Pending, Poll::Ready))
}

/// Drives what others wait for, until the end is known.
struct Drives<F> {
    end: Rc<Cell<Option<End>>>,
    driving: F,
}

impl<F: Future + Unpin> Completer for Drives<F> {
    fn complete(&mut self) -> bool {
        if self.end.replace(Some(End::Result)).is_none() {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut self.driving).poll(&mut cx).is_ready());
        }
        true
    }

    fn touch(&mut self) {}
}

/// The next caller then finds the end, or makes it.
impl<F> Drop for Drives<F> {
    fn drop(&mut self) {
        if self.end.get().is_none() {
            self.end.set(Some(End::Never));
        }
    }
}

/// `Lazy::force`, which the caller that drives the initializer ends. If that is dropped,
/// the wait resumes the initializer.
fn driving<B: Backend>() -> Row {
    Row {
        name: format!("Lazy::force over {}", std::any::type_name::<B>()),
        scene: || {
            let end = Rc::new(Cell::new(None));
            let told = end.clone();
            let lazy = leaked(Lazy::<_, _, _, B>::new_in(|| known(told)));
            let mut driving = lazy.force();
            let mut cx = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut driving).poll(&mut cx).is_pending());
            Scene::new(Waits(lazy.force()), Drives { end, driving })
        },
        left: Some(End::Never),
        refuses: false,
    }
}

/// `OnceMap::get_or_init`, which the call that computes ends. If that is dropped, the wait
/// computes the value itself.
fn computing<B: Backend>() -> Row {
    Row {
        name: format!("keyed::Compute over {}", std::any::type_name::<B>()),
        scene: || {
            let end = Rc::new(Cell::new(None));
            let told = end.clone();
            let map = OnceMap::<_, _, _, B>::with_hasher_in(RandomState::new());
            let map = leaked(map);
            let mut driving = map.get_or_init("key", || known(told));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut driving).poll(&mut cx).is_pending());
            let waits = map.get_or_init("key", || std::future::ready(End::Never));
            Scene::new(Itself(waits), Drives { end, driving })
        },
        left: Some(End::Never),
        refuses: false,
    }
}

type Objects<B> = Pool<u32, fn(&mut u32) -> bool, B>;
type Object<B> = Pooled<Arc<Objects<B>>, u32, fn(&mut u32) -> bool, B>;

/// `Pool::get`, which an object that comes back ends.
fn pooling<B: Backend>() -> Row {
    struct Holds<B: Backend>(Arc<Objects<B>>, Option<Object<B>>);

    impl<B: Backend> Completer for Holds<B> {
        fn complete(&mut self) -> bool {
            drop(self.1.take());
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.waiting(), self.0.granted(), self.0.size());
            assert!(self.1.is_none() || self.0.try_get().is_none());
        }

        fn another(&self) -> Option<Box<dyn Waiter>> {
            Some(Box::new(Ends(self.0.clone().get_owned(create))))
        }
    }

    fn create() -> std::future::Ready<Result<u32, ()>> {
        std::future::ready(Ok(7))
    }

    Row {
        name: format!("Pool::get over {}", std::any::type_name::<B>()),
        scene: || {
            let pool = Arc::new(Objects::<B>::with_check_in(1, |_| true));
            let mut get = pool.clone().get_owned(create);
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Ready(Ok(object)) = Pin::new(&mut get).poll(&mut cx) else {
                panic!("the pool has a place");
            };
            let wait = pool.clone().get_owned(create);
            Scene::new(Ends(wait), Holds(pool, Some(object)))
        },
        left: Some(End::Result),
        refuses: false,
    }
}

/// `OnceCell::get_or_init`, which the running initializer ends. If that is dropped,
/// the wait gets the permit and makes the value itself.
fn making<B: Backend>() -> Row {
    struct Makes<B: Backend, F> {
        cell: &'static OnceCell<End, B>,
        made: Rc<Cell<bool>>,
        making: F,
    }

    impl<B: Backend, F: Future<Output = &'static End> + Unpin> Completer for Makes<B, F> {
        fn complete(&mut self) -> bool {
            if !self.made.replace(true) {
                let mut cx = Context::from_waker(Waker::noop());
                let made = Pin::new(&mut self.making).poll(&mut cx);
                assert_eq!(made, Poll::Ready(&End::Result));
            }
            true
        }

        fn touch(&mut self) {
            let _ = (self.cell.get(), self.cell.waiting(), self.cell.granted());
            assert!(self.cell.set(End::Never).is_err());
        }
    }

    Row {
        name: format!("OnceCell::get_or_init over {}", std::any::type_name::<B>()),
        scene: || {
            let cell = leaked(OnceCell::<_, B>::new_in());
            let made = Rc::new(Cell::new(false));
            let done = made.clone();
            let mut making = cell.get_or_init(|| {
                std::future::poll_fn(move |_| match done.get() {
                    true => Poll::Ready(End::Result),
                    false => Poll::Pending,
                })
            });
            let mut cx = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut making).poll(&mut cx).is_pending());
            let waits = cell.get_or_init(|| std::future::ready(End::Never));
            Scene::new(Waits(waits), Makes { cell, made, making })
        },
        left: Some(End::Never),
        refuses: false,
    }
}

/// `OnceCell::wait`, which a value ends, or another value if the other side leaves.
fn awaiting_what_is_made<B: Backend>() -> Row {
    struct Sets<B: Backend>(&'static OnceCell<End, B>);

    impl<B: Backend> Completer for Sets<B> {
        fn complete(&mut self) -> bool {
            // The first call has set it.
            let _ = self.0.set(End::Result);
            true
        }

        fn touch(&mut self) {
            let _ = (self.0.get(), self.0.waiting(), self.0.granted());
        }
    }

    impl<B: Backend> Drop for Sets<B> {
        fn drop(&mut self) {
            let _ = self.0.set(End::Never);
        }
    }

    Row {
        name: format!("OnceCell::wait over {}", std::any::type_name::<B>()),
        scene: || {
            let cell = leaked(OnceCell::<_, B>::new_in());
            Scene::new(Waits(cell.wait()), Sets(cell))
        },
        left: Some(End::Never),
        refuses: false,
    }
}

/// A wait for one second, which a clock ends that advances by one.
fn timed<B: Backend, W: Waiter + 'static>(wait: fn(&Timers<B>) -> W) -> Scene {
    struct Moves<B: Backend>(VirtualClock<B>);

    impl<B: Backend> Completer for Moves<B> {
        fn complete(&mut self) -> bool {
            self.0.advance(SECOND);
            true
        }

        fn touch(&mut self) {
            self.0.advance(Duration::ZERO);
            let _ = (self.0.now(), self.0.timers().waiting());
            let _ = (self.0.timers().idle(), self.0.timers().next_deadline());
        }
    }

    let nanosecond = Duration::from_nanos(1);
    let clock = VirtualClock::<B>::new_in(Instant::ORIGIN, Advance::ByHand, nanosecond);
    Scene::new(wait(clock.timers()), Moves(clock))
}

const SECOND: Duration = Duration::from_secs(1);

/// `Sleep`.
fn sleeping<B: Backend>() -> Row {
    Row {
        name: format!("time::Sleep over {}", std::any::type_name::<B>()),
        scene: || timed::<B, _>(|timers| Ends(timers.sleep(SECOND))),
        left: None,
        refuses: false,
    }
}

/// `Timeout`, around a future that never ends.
fn timing_out<B: Backend>() -> Row {
    Row {
        name: format!("time::Timeout over {}", std::any::type_name::<B>()),
        scene: || {
            timed::<B, _>(|timers| Ends(timers.timeout(SECOND, std::future::pending::<()>())))
        },
        left: None,
        refuses: false,
    }
}

/// `Interval::poll_tick`. The interval itself waits.
fn ticking<B: Backend>() -> Row {
    struct Ticks<B: Backend>(Interval<B>);

    impl<B: Backend> Waiter for Ticks<B> {
        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
            self.0.poll_tick(cx).map(|_| End::Result)
        }
    }

    Row {
        name: format!(
            "time::Interval::poll_tick over {}",
            std::any::type_name::<B>()
        ),
        scene: || timed::<B, _>(|timers| Ticks(timers.interval_at(timers.now() + SECOND, SECOND))),
        left: None,
        refuses: false,
    }
}

/// `DelayQueue::poll_expired`. The queue itself waits.
fn expiring<B: Backend>() -> Row {
    struct Expires<B: Backend>(DelayQueue<Token, B>);

    impl<B: Backend> Waiter for Expires<B> {
        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
            self.0.poll_expired(cx).map(|expired| {
                let expired = expired.expect("there is one in it");
                assert_eq!(expired.get_ref().0, 7, "it is the one that was put in");
                End::Result
            })
        }
    }

    Row {
        name: format!(
            "time::DelayQueue::poll_expired over {}",
            std::any::type_name::<B>()
        ),
        scene: || {
            timed::<B, _>(|timers| {
                let mut queue = DelayQueue::new_in(timers);
                queue.insert(Token::new(7), SECOND);
                Expires(queue)
            })
        },
        left: None,
        refuses: false,
    }
}
