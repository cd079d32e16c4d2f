//! Coordination: signals that tasks wait for, values that are computed once, and pools.
//!
//! The loops of a group differ in the type alone. A computation has its value at once,
//! unless the group says otherwise.

use std::future::{Future, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;

use futures_intrusive::sync::ManualResetEvent;
use reveille::singleflight::Group;
use reveille::{Event, Latch, Lazy, OnceMap, Party, Phaser, Pool, Shutdown, WaitGroup};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::scene::{Row, in_scene, now, poll};
use crate::{Contender, Kind};

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let us = |group, run| Contender::new(group, Kind::Reveille, "reveille", run);
    let asyncband = |group, run| Contender::new(group, Kind::Peer, "asyncband", run);
    let peer = |group, name, run| Contender::new(group, Kind::Peer, name, run);
    vec![
        us("event/pending", one_wait::<Event>),
        asyncband("event/pending", one_wait::<BandEvent>),
        peer(
            "event/pending",
            "futures-intrusive",
            one_wait::<ManualResetEvent>,
        ),
        us("event/broadcast", broadcast::<Event>),
        asyncband("event/broadcast", broadcast::<BandEvent>),
        peer(
            "event/broadcast",
            "futures-intrusive",
            broadcast::<ManualResetEvent>,
        ),
        us("latch/pending", one_wait::<Latch>),
        asyncband("latch/pending", one_wait::<BandLatch>),
        us("wait_group/members", members::<WaitGroup>),
        asyncband("wait_group/members", members::<BandGroup>),
        peer(
            "wait_group/members",
            "waitgroup",
            members::<waitgroup::WaitGroup>,
        ),
        peer("wait_group/members", "tokio-util", members::<TaskTracker>),
        us("phaser/phase", phase::<(Party, Party)>),
        asyncband("phaser/phase", phase::<BandParties>),
        peer(
            "phaser/phase",
            "async-lock, fixed",
            phase::<async_lock::Barrier>,
        ),
        peer(
            "phaser/phase",
            "tokio, fixed",
            phase::<tokio::sync::Barrier>,
        ),
        us("shutdown/guard", shutdown::<Shutdown>),
        asyncband("shutdown/guard", shutdown::<BandShutdown>),
        peer("shutdown/guard", "tokio-util", shutdown::<TokioShutdown>),
        us("lazy/first", lazy_first::<OurLazy>),
        asyncband("lazy/first", lazy_first::<BandLazy>),
        peer("lazy/first", "async-lock, closure", lazy_first::<LockCell>),
        peer("lazy/first", "tokio, closure", lazy_first::<TokioCell>),
        us("lazy/get", lazy_get::<OurLazy>),
        asyncband("lazy/get", lazy_get::<BandLazy>),
        peer("lazy/get", "async-lock, closure", lazy_get::<LockCell>),
        peer("lazy/get", "tokio, closure", lazy_get::<TokioCell>),
        us("once_map/hit", map_hit::<OnceMap<u64, u64>>),
        asyncband("once_map/hit", map_hit::<BandMap>),
        peer("once_map/hit", "moka", map_hit::<Moka>),
        us("once_map/miss", map_miss::<OnceMap<u64, u64>>),
        asyncband("once_map/miss", map_miss::<BandMap>),
        peer("once_map/miss", "moka", map_miss::<Moka>),
        us("singleflight/one", flight_one::<Group<&'static str, u64>>),
        asyncband("singleflight/one", flight_one::<BandFlight>),
        peer(
            "singleflight/one",
            "async-singleflight",
            flight_one::<Flight>,
        ),
        us(
            "singleflight/shared",
            flight_shared::<Group<&'static str, u64>>,
        ),
        asyncband("singleflight/shared", flight_shared::<BandFlight>),
        peer(
            "singleflight/shared",
            "async-singleflight",
            flight_shared::<Flight>,
        ),
        us("pool/get", pool_get::<Arc<Pool<u64>>>),
        asyncband("pool/get", pool_get::<BandPool>),
        peer("pool/get", "deadpool", pool_get::<Deadpool>),
        us("pool/waiting", pool_waiting::<Arc<Pool<u64>>>),
        asyncband("pool/waiting", pool_waiting::<BandPool>),
        peer("pool/waiting", "deadpool", pool_waiting::<Deadpool>),
    ]
}

type BandEvent = asyncband::event::ManualResetEvent;
type BandLatch = asyncband::latch::Latch;
type BandGroup = asyncband::waitgroup::WaitGroup;
type BandMap = asyncband::once::OnceMap<u64, u64>;
type BandFlight = asyncband::singleflight::Group<&'static str, u64>;
type Moka = moka::future::Cache<u64, u64>;
type Flight = async_singleflight::Group<u64, ()>;

/// What is opened, and waited for.
trait Gate {
    fn closed() -> Self;

    /// Returns the gate closed again, or a new one if it cannot be closed.
    fn again(self) -> Self;

    fn open(&self);

    fn wait(&self) -> impl Future;
}

/// Waits; opens the gate, which wakes; completes the wait; closes the gate, or creates
/// another.
fn one_wait<G: Gate>(iterations: u64) {
    let mut gate = G::closed();
    for _ in 0..iterations {
        {
            let mut wait = pin!(black_box(&gate).wait());
            assert!(poll(wait.as_mut()).is_pending());
            gate.open();
            assert!(poll(wait).is_ready());
        }
        gate = gate.again();
    }
}

/// Begins up to 4,096 waits, opens the gate, and completes the waits. Each wait counts as
/// an iteration.
fn broadcast<G: Gate>(mut iterations: u64) {
    while iterations > 0 {
        let gate = G::closed();
        let together = iterations.min(4096);
        iterations -= together;
        let mut waits = Row::of((0..together).map(|_| gate.wait()));
        waits.each(|wait| assert!(poll(wait).is_pending()));
        black_box(&gate).open();
        waits.each(|wait| assert!(poll(wait).is_ready()));
    }
}

macro_rules! gates {
    ($($name:ty: $closed:expr, $open:ident, $again:expr;)*) => {
        $(impl Gate for $name {
            fn closed() -> Self {
                $closed
            }

            fn again(self) -> Self {
                let again: fn(Self) -> Self = $again;
                again(self)
            }

            fn open(&self) {
                self.$open();
            }

            fn wait(&self) -> impl Future {
                self.wait()
            }
        })*
    };
}

gates! {
    Event: Self::new(), set, |event| { event.reset(); event };
    BandEvent: Self::new(), set, |event| { event.reset(); event };
    ManualResetEvent: Self::new(false), set, |event| { event.reset(); event };
    Latch: Self::new(1), count_down, |_| Self::new(1);
    BandLatch: Self::new(1), count_down, |_| Self::new(1);
}

/// Tasks to wait for.
trait Members {
    type Member;

    fn none() -> Self;

    fn join(&self) -> Self::Member;

    fn wait(self) -> impl Future;
}

/// Lets four members join; waits; lets them leave, the last of which wakes; completes the
/// wait.
fn members<M: Members>(iterations: u64) {
    for _ in 0..iterations {
        let group = black_box(M::none());
        let members = [(); 4].map(|()| group.join());
        let mut wait = pin!(group.wait());
        assert!(poll(wait.as_mut()).is_pending());
        drop(members);
        assert!(poll(wait).is_ready());
    }
}

impl Members for WaitGroup {
    type Member = Self;

    fn none() -> Self {
        Self::new()
    }

    fn join(&self) -> Self {
        self.clone()
    }

    fn wait(self) -> impl Future {
        Self::wait(self)
    }
}

impl Members for BandGroup {
    type Member = Self;

    fn none() -> Self {
        Self::new()
    }

    fn join(&self) -> Self {
        self.clone()
    }

    fn wait(self) -> impl Future {
        self.into_future()
    }
}

impl Members for waitgroup::WaitGroup {
    type Member = waitgroup::Worker;

    fn none() -> Self {
        Self::new()
    }

    fn join(&self) -> waitgroup::Worker {
        self.worker()
    }

    fn wait(self) -> impl Future {
        Self::wait(self)
    }
}

impl Members for TaskTracker {
    type Member = tokio_util::task::task_tracker::TaskTrackerToken;

    fn none() -> Self {
        Self::new()
    }

    fn join(&self) -> Self::Member {
        self.token()
    }

    fn wait(self) -> impl Future {
        async move {
            self.close();
            Self::wait(&self).await;
        }
    }
}

/// Two tasks that arrive, and wait for each other.
trait Pair {
    fn pair() -> Self;

    fn arrive(&mut self) -> (impl Future, impl Future);
}

/// One of two arrives and waits; the other arrives, which wakes; both go on.
fn phase<P: Pair>(iterations: u64) {
    let mut pair = P::pair();
    for _ in 0..iterations {
        let (first, second) = black_box(&mut pair).arrive();
        let mut first = pin!(first);
        assert!(poll(first.as_mut()).is_pending());
        now(second);
        assert!(poll(first).is_ready());
    }
}

impl Pair for (Party, Party) {
    fn pair() -> Self {
        let phaser = Phaser::new();
        (phaser.register(), phaser.register())
    }

    fn arrive(&mut self) -> (impl Future, impl Future) {
        (self.0.arrive_and_wait(), self.1.arrive_and_wait())
    }
}

/// Two participants, as asyncband calls them.
struct BandParties([asyncband::phaser::PhaserParticipant; 2]);

impl Pair for BandParties {
    fn pair() -> Self {
        let phaser = asyncband::phaser::Phaser::new();
        Self([(); 2].map(|()| phaser.register_one().expect("it is open")))
    }

    fn arrive(&mut self) -> (impl Future, impl Future) {
        let [first, second] = &mut self.0;
        (first.wait(), second.wait())
    }
}

impl Pair for async_lock::Barrier {
    fn pair() -> Self {
        Self::new(2)
    }

    fn arrive(&mut self) -> (impl Future, impl Future) {
        (self.wait(), self.wait())
    }
}

impl Pair for tokio::sync::Barrier {
    fn pair() -> Self {
        Self::new(2)
    }

    fn arrive(&mut self) -> (impl Future, impl Future) {
        (self.wait(), self.wait())
    }
}

/// A shutdown with one task.
trait Stops {
    /// What tells the task to stop, and tells that it has.
    type Guard;

    fn start() -> (Self, Self::Guard)
    where
        Self: Sized;

    fn requested(guard: &Self::Guard) -> impl Future;

    fn request(&self);

    fn stopped(self) -> impl Future;
}

/// Waits for the request; requests it, which wakes; drops the guard; waits for that.
fn shutdown<S: Stops>(iterations: u64) {
    for _ in 0..iterations {
        let (shutdown, guard) = black_box(S::start());
        {
            let mut requested = pin!(S::requested(&guard));
            assert!(poll(requested.as_mut()).is_pending());
            shutdown.request();
            assert!(poll(requested).is_ready());
        }
        drop(guard);
        now(shutdown.stopped());
    }
}

impl Stops for Shutdown {
    type Guard = reveille::ShutdownGuard;

    fn start() -> (Self, Self::Guard) {
        let shutdown = Self::new();
        let guard = shutdown.guard();
        (shutdown, guard)
    }

    fn requested(guard: &Self::Guard) -> impl Future {
        guard.requested()
    }

    fn request(&self) {
        self.request();
    }

    fn stopped(self) -> impl Future {
        async move { self.wait().await }
    }
}

/// The shutdown of asyncband.
struct BandShutdown(asyncband::shutdown::Shutdown);

impl Stops for BandShutdown {
    type Guard = asyncband::shutdown::ShutdownGuard;

    fn start() -> (Self, Self::Guard) {
        let (shutdown, guard) = asyncband::shutdown::new();
        (Self(shutdown), guard)
    }

    fn requested(guard: &Self::Guard) -> impl Future {
        guard.shutdown_requested()
    }

    fn request(&self) {
        self.0.request_shutdown();
    }

    fn stopped(self) -> impl Future {
        self.0
    }
}

/// What tokio-util's documentation combines for a shutdown.
struct TokioShutdown(CancellationToken, TaskTracker);

impl Stops for TokioShutdown {
    type Guard = (
        CancellationToken,
        tokio_util::task::task_tracker::TaskTrackerToken,
    );

    fn start() -> (Self, Self::Guard) {
        let shutdown = Self(CancellationToken::new(), TaskTracker::new());
        let guard = (shutdown.0.clone(), shutdown.1.token());
        (shutdown, guard)
    }

    fn requested(guard: &Self::Guard) -> impl Future {
        guard.0.cancelled()
    }

    fn request(&self) {
        self.0.cancel();
        self.1.close();
    }

    fn stopped(self) -> impl Future {
        async move { self.1.wait().await }
    }
}

/// A value with its initializer.
trait Once {
    fn new() -> Self;

    fn force(&self) -> impl Future<Output = &u64>;
}

/// Creates a value, and initializes it.
fn lazy_first<O: Once>(iterations: u64) {
    for _ in 0..iterations {
        assert_eq!(now(black_box(O::new()).force()), &7);
    }
}

/// Gets a value that is initialized.
fn lazy_get<O: Once>(iterations: u64) {
    let once = O::new();
    now(once.force());
    for _ in 0..iterations {
        assert_eq!(now(black_box(&once).force()), &7);
    }
}

type Starts = fn() -> std::future::Ready<u64>;
type OurLazy = Lazy<u64, std::future::Ready<u64>, Starts>;
type BandLazy = asyncband::once::LazyCell<u64, std::future::Ready<u64>, Starts>;
type LockCell = async_lock::OnceCell<u64>;
type TokioCell = tokio::sync::OnceCell<u64>;

impl Once for OurLazy {
    fn new() -> Self {
        Self::new(|| ready(7))
    }

    fn force(&self) -> impl Future<Output = &u64> {
        self.force()
    }
}

impl Once for BandLazy {
    fn new() -> Self {
        Self::new(|| ready(7))
    }

    fn force(&self) -> impl Future<Output = &u64> {
        Self::force(self)
    }
}

impl Once for LockCell {
    fn new() -> Self {
        Self::new()
    }

    fn force(&self) -> impl Future<Output = &u64> {
        self.get_or_init(|| ready(7))
    }
}

impl Once for TokioCell {
    fn new() -> Self {
        Self::new()
    }

    fn force(&self) -> impl Future<Output = &u64> {
        self.get_or_init(|| ready(7))
    }
}

/// A map whose values are computed once.
trait Map: 'static {
    fn empty() -> Self;

    fn compute(&self, key: u64) -> impl Future<Output = u64>;

    fn remove(&self, key: u64) -> impl Future<Output = Option<u64>>;
}

/// The number of keys that a map has.
const KEYS: u64 = 64;

/// A map with its keys.
struct Filled<M>(M);

impl<M: Map> Default for Filled<M> {
    fn default() -> Self {
        let map = M::empty();
        for key in 0..KEYS {
            now(map.compute(key));
        }
        Self(map)
    }
}

/// Gets a value that has been computed, of one of 64 keys in turn.
fn map_hit<M: Map>(iterations: u64) {
    in_scene(|Filled(map): &mut Filled<M>| {
        for iteration in 0..iterations {
            let key = iteration % KEYS;
            assert_eq!(now(black_box(&*map).compute(key)), key);
        }
    });
}

/// Computes the value of a key, beside 64 others, and removes it.
fn map_miss<M: Map>(iterations: u64) {
    in_scene(|Filled(map): &mut Filled<M>| {
        for _ in 0..iterations {
            assert_eq!(now(black_box(&*map).compute(KEYS)), KEYS);
            assert_eq!(now(map.remove(KEYS)), Some(KEYS));
        }
    });
}

impl Map for OnceMap<u64, u64> {
    fn empty() -> Self {
        Self::new()
    }

    fn compute(&self, key: u64) -> impl Future<Output = u64> {
        self.get_or_init(key, move || ready(key))
    }

    fn remove(&self, key: u64) -> impl Future<Output = Option<u64>> {
        ready(self.remove(&key))
    }
}

impl Map for BandMap {
    fn empty() -> Self {
        Self::new()
    }

    fn compute(&self, key: u64) -> impl Future<Output = u64> {
        self.compute(key, async move || key)
    }

    fn remove(&self, key: u64) -> impl Future<Output = Option<u64>> {
        ready(self.remove(&key))
    }
}

impl Map for Moka {
    fn empty() -> Self {
        Self::new(10_000)
    }

    fn compute(&self, key: u64) -> impl Future<Output = u64> {
        self.get_with(key, ready(key))
    }

    async fn remove(&self, key: u64) -> Option<u64> {
        self.remove(&key).await
    }
}

/// Computations that calls share while they run.
trait Flights {
    fn empty() -> Self;

    /// Waits for the event, and has the value.
    fn work<'a>(&'a self, begins: &'a Event) -> impl Future<Output = u64>;
}

/// Computes a value that no other call shares. The computation does not wait.
fn flight_one<F: Flights>(iterations: u64) {
    let (flights, begins) = (F::empty(), Event::new());
    begins.set();
    for _ in 0..iterations {
        assert_eq!(now(black_box(&flights).work(&begins)), 7);
    }
}

/// Eight calls share a computation that waits once. Each call counts as an iteration.
fn flight_shared<F: Flights>(mut iterations: u64) {
    let flights = F::empty();
    while iterations > 0 {
        let together = iterations.min(8);
        iterations -= together;
        let begins = Event::new();
        let mut calls = Row::of((0..together).map(|_| black_box(&flights).work(&begins)));
        calls.each(|call| assert!(poll(call).is_pending()));
        begins.set();
        calls.each(|call| assert!(poll(call).is_ready()));
    }
}

impl Flights for Group<&'static str, u64> {
    fn empty() -> Self {
        Self::new()
    }

    fn work<'a>(&'a self, begins: &'a Event) -> impl Future<Output = u64> {
        self.work("key", move || async move {
            begins.wait().await;
            7
        })
    }
}

impl Flights for BandFlight {
    fn empty() -> Self {
        Self::new()
    }

    fn work<'a>(&'a self, begins: &'a Event) -> impl Future<Output = u64> {
        self.work("key", async move || {
            begins.wait().await;
            7
        })
    }
}

impl Flights for Flight {
    fn empty() -> Self {
        Self::new()
    }

    async fn work<'a>(&'a self, begins: &'a Event) -> u64 {
        let work = async {
            begins.wait().await;
            Ok(7)
        };
        let (value, ..) = self.work("key", work).await;
        value.expect("it does not fail")
    }
}

/// A pool for one object.
trait Objects: 'static {
    type Object: std::ops::Deref<Target = u64>;

    fn empty() -> Self;

    fn get(&self) -> impl Future<Output = Self::Object>;
}

/// A pool that has its object.
struct Idle<P>(P);

impl<P: Objects> Default for Idle<P> {
    fn default() -> Self {
        let pool = P::empty();
        drop(now(pool.get()));
        Self(pool)
    }
}

/// Takes the object, and gives it back.
fn pool_get<P: Objects>(iterations: u64) {
    in_scene(|Idle(pool): &mut Idle<P>| {
        for _ in 0..iterations {
            assert_eq!(*now(black_box(&*pool).get()), 7);
        }
    });
}

/// Takes the object; waits for it; gives it back, which wakes; completes the wait, and
/// gives it back again.
fn pool_waiting<P: Objects>(iterations: u64) {
    in_scene(|Idle(pool): &mut Idle<P>| {
        for _ in 0..iterations {
            let object = now(black_box(&*pool).get());
            let mut waits = pin!(pool.get());
            assert!(poll(waits.as_mut()).is_pending());
            drop(object);
            assert!(poll(waits).is_ready());
        }
    });
}

impl Objects for Arc<Pool<u64>> {
    type Object = reveille::Pooled<Self, u64>;

    fn empty() -> Self {
        Self::new(Pool::new(1))
    }

    async fn get(&self) -> Self::Object {
        let created = || ready(Ok::<_, ()>(7));
        let got = self.clone().get_owned(created).await;
        got.expect("it does not fail")
    }
}

/// Creates the objects of the peers.
struct Sevens;

impl asyncband::pool::ManageObject for Sevens {
    type Object = u64;
    type Error = ();

    async fn create(&self) -> Result<u64, ()> {
        Ok(7)
    }

    async fn is_recyclable(
        &self,
        _: &mut u64,
        _: &asyncband::pool::ObjectStatus,
    ) -> Result<(), ()> {
        Ok(())
    }
}

impl deadpool::managed::Manager for Sevens {
    type Type = u64;
    type Error = ();

    async fn create(&self) -> Result<u64, ()> {
        Ok(7)
    }

    async fn recycle(
        &self,
        _: &mut u64,
        _: &deadpool::managed::Metrics,
    ) -> deadpool::managed::RecycleResult<()> {
        Ok(())
    }
}

type BandPool = Arc<asyncband::pool::bounded::Pool<Sevens>>;
type Deadpool = deadpool::managed::Pool<Sevens>;

impl Objects for BandPool {
    type Object = asyncband::pool::bounded::Object<Sevens>;

    fn empty() -> Self {
        let config = asyncband::pool::bounded::PoolConfig::new(1);
        asyncband::pool::bounded::Pool::new(config, Sevens)
    }

    async fn get(&self) -> Self::Object {
        self.get().await.expect("it does not fail")
    }
}

impl Objects for Deadpool {
    type Object = deadpool::managed::Object<Sevens>;

    fn empty() -> Self {
        let pool = Self::builder(Sevens).max_size(1).build();
        pool.expect("there are no timeouts that need a runtime")
    }

    async fn get(&self) -> Self::Object {
        self.get()
            .await
            .unwrap_or_else(|_| panic!("it does not fail"))
    }
}
