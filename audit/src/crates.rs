//! Adapters: the primitives of each crate, as the kinds want them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use critical_section as _; // the implementation that embassy-sync links
use reveille_verify::Value;

use crate::kinds::BoxFuture;
use crate::kinds::channel::{Channel, TryRecv, TrySend};
use crate::kinds::event::{Event, Notify};
use crate::kinds::lock::Lock;
use crate::kinds::oneshot::Oneshot;
use crate::kinds::semaphore::Semaphore;
use crate::kinds::waker_cell::WakerCell;

/// Implements [`Oneshot`] for a receiver that is a future.
macro_rules! oneshot {
    ($name:ident, $tx:ty, $rx:ty, $new:expr, |$sender:ident, $value:ident| $send:expr $(,
     |$closing:ident, $cx:ident| $closed:expr, keeps: $keeps:expr)?) => {
        pub(crate) struct $name;

        impl Oneshot for $name {
            type Tx = $tx;
            type Rx = $rx;

            fn channel() -> (Self::Tx, Self::Rx) {
                $new
            }

            #[allow(unused_mut, reason = "some crates send by `&mut`")]
            fn send(mut $sender: Self::Tx, $value: Value) -> bool {
                $send
            }

            fn poll_recv(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Option<Value>> {
                Pin::new(rx).poll(cx).map(|result| result.ok())
            }

            $(
                const CLOSED: bool = true;
                const KEEPS_WAKER: Option<&'static str> = $keeps;

                fn poll_closed($closing: &mut Self::Tx, $cx: &mut Context<'_>) -> Poll<()> {
                    $closed
                }
            )?
        }
    };
}

oneshot!(
    TokioOneshot,
    tokio::sync::oneshot::Sender<Value>,
    tokio::sync::oneshot::Receiver<Value>,
    tokio::sync::oneshot::channel(),
    |tx, value| tx.send(value).is_ok(),
    |tx, cx| {
        let mut closed = std::pin::pin!(tx.closed());
        closed.as_mut().poll(cx)
    },
    keeps: None
);
oneshot!(
    FuturesOneshot,
    futures::channel::oneshot::Sender<Value>,
    futures::channel::oneshot::Receiver<Value>,
    futures::channel::oneshot::channel(),
    |tx, value| tx.send(value).is_ok(),
    |tx, cx| tx.poll_canceled(cx),
    keeps: Some("it is a poll function, not a future")
);
oneshot!(
    OneshotOneshot,
    oneshot::Sender<Value>,
    oneshot::AsyncReceiver<Value>,
    oneshot::async_channel(),
    |tx, value| tx.send(value).is_ok()
);
oneshot!(
    AsyncOneshot,
    async_oneshot::Sender<Value>,
    async_oneshot::Receiver<Value>,
    async_oneshot::oneshot(),
    |tx, value| tx.send(value).is_ok()
);
oneshot!(
    CattyOneshot,
    catty::Sender<Value>,
    catty::Receiver<Value>,
    catty::oneshot(),
    |tx, value| tx.send(value).is_ok()
);
oneshot!(
    AsyncbandOneshot,
    asyncband::oneshot::Sender<Value>,
    asyncband::oneshot::Recv<Value>,
    {
        let (tx, rx) = asyncband::oneshot::channel();
        (tx, std::future::IntoFuture::into_future(rx))
    },
    |tx, value| tx.send(value).is_ok()
);

/// Implements [`Channel`].
macro_rules! channel {
    (takes_from_waiting $($channel:tt)*) => {
        channel!(@ true, $($channel)*);
    };
    (@ $takes:expr, $name:ident, $tx:ty, $rx:ty, $capacity:expr, $new:expr,
     clone_rx: |$one:ident| $clone:expr,
     send: |$a:ident, $v:ident| $send:expr, recv: |$b:ident| $recv:expr,
     try_send: |$c:ident, $w:ident| $try_send:expr, try_recv: |$d:ident| $try_recv:expr) => {
        pub(crate) struct $name;

        impl Channel for $name {
            type Tx = $tx;
            type Rx = $rx;

            const CAPACITY: Option<usize> = $capacity;
            const TAKES_FROM_WAITING: bool = $takes;

            fn channel(senders: usize, receivers: usize) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                let (tx, rx): (Self::Tx, Self::Rx) = $new;
                let mut rxs: Vec<Self::Rx> = Vec::new();
                for _ in 1..receivers {
                    let $one = &rx;
                    rxs.push($clone);
                }
                rxs.push(rx);
                let mut txs: Vec<Self::Tx> = (1..senders).map(|_| tx.clone()).collect();
                txs.push(tx);
                (txs, rxs)
            }

            fn send($a: &mut Self::Tx, $v: Value) -> BoxFuture<'_, bool> {
                Box::pin(async move { $send })
            }

            fn recv($b: &mut Self::Rx) -> BoxFuture<'_, Option<Value>> {
                Box::pin(async move { $recv })
            }

            fn try_send($c: &mut Self::Tx, $w: Value) -> TrySend {
                $try_send
            }

            fn try_recv($d: &mut Self::Rx) -> TryRecv {
                $try_recv
            }
        }
    };
    ($($channel:tt)*) => {
        channel!(@ false, $($channel)*);
    };
}

fn single<T>(_: &impl Sized) -> T {
    unreachable!("the channel has one receiver")
}

channel!(
    TokioMpsc, tokio::sync::mpsc::Sender<Value>, tokio::sync::mpsc::Receiver<Value>, Some(1),
    tokio::sync::mpsc::channel(1),
    clone_rx: |rx| single(rx),
    send: |tx, value| tx.send(value).await.is_ok(),
    recv: |rx| rx.recv().await,
    try_send: |tx, value| match tx.try_send(value) {
        Ok(()) => TrySend::Sent,
        Err(tokio::sync::mpsc::error::TrySendError::Full(_)) => TrySend::Full,
        Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(tokio::sync::mpsc::error::TryRecvError::Empty) => TryRecv::Empty,
        Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => TryRecv::Closed,
    }
);
channel!(
    TokioUnbounded, tokio::sync::mpsc::UnboundedSender<Value>,
    tokio::sync::mpsc::UnboundedReceiver<Value>, None,
    tokio::sync::mpsc::unbounded_channel(),
    clone_rx: |rx| single(rx),
    send: |tx, value| tx.send(value).is_ok(),
    recv: |rx| rx.recv().await,
    try_send: |tx, value| match tx.send(value) {
        Ok(()) => TrySend::Sent,
        Err(_) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(tokio::sync::mpsc::error::TryRecvError::Empty) => TryRecv::Empty,
        Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => TryRecv::Closed,
    }
);
channel!(
    FuturesUnbounded, futures::channel::mpsc::UnboundedSender<Value>,
    futures::channel::mpsc::UnboundedReceiver<Value>, None,
    futures::channel::mpsc::unbounded(),
    clone_rx: |rx| single(rx),
    send: |tx, value| tx.unbounded_send(value).is_ok(),
    recv: |rx| futures::StreamExt::next(rx).await,
    try_send: |tx, value| match tx.unbounded_send(value) {
        Ok(()) => TrySend::Sent,
        Err(_) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(error) if error.is_closed() => TryRecv::Closed,
        Err(_) => TryRecv::Empty,
    }
);
channel!(
    AsyncChannel, async_channel::Sender<Value>, async_channel::Receiver<Value>, Some(1),
    async_channel::bounded(1),
    clone_rx: |rx| rx.clone(),
    send: |tx, value| tx.send(value).await.is_ok(),
    recv: |rx| rx.recv().await.ok(),
    try_send: |tx, value| match tx.try_send(value) {
        Ok(()) => TrySend::Sent,
        Err(async_channel::TrySendError::Full(_)) => TrySend::Full,
        Err(async_channel::TrySendError::Closed(_)) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(async_channel::TryRecvError::Empty) => TryRecv::Empty,
        Err(async_channel::TryRecvError::Closed) => TryRecv::Closed,
    }
);
channel!(
    takes_from_waiting
    Flume, flume::Sender<Value>, flume::Receiver<Value>, Some(1),
    flume::bounded(1),
    clone_rx: |rx| rx.clone(),
    send: |tx, value| tx.send_async(value).await.is_ok(),
    recv: |rx| rx.recv_async().await.ok(),
    try_send: |tx, value| match tx.try_send(value) {
        Ok(()) => TrySend::Sent,
        Err(flume::TrySendError::Full(_)) => TrySend::Full,
        Err(flume::TrySendError::Disconnected(_)) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(flume::TryRecvError::Empty) => TryRecv::Empty,
        Err(flume::TryRecvError::Disconnected) => TryRecv::Closed,
    }
);
channel!(
    takes_from_waiting
    Kanal, kanal::AsyncSender<Value>, kanal::AsyncReceiver<Value>, Some(1),
    kanal::bounded_async(1),
    clone_rx: |rx| rx.clone(),
    send: |tx, value| tx.send(value).await.is_ok(),
    recv: |rx| rx.recv().await.ok(),
    try_send: |tx, value| match tx.try_send(value) {
        Ok(true) => TrySend::Sent,
        Ok(false) => TrySend::Full,
        Err(_) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(Some(value)) => TryRecv::Got(value),
        Ok(None) => TryRecv::Empty,
        Err(_) => TryRecv::Closed,
    }
);
channel!(
    Tachyonix, tachyonix::Sender<Value>, tachyonix::Receiver<Value>, Some(1),
    tachyonix::channel(1),
    clone_rx: |rx| single(rx),
    send: |tx, value| tx.send(value).await.is_ok(),
    recv: |rx| rx.recv().await.ok(),
    try_send: |tx, value| match tx.try_send(value) {
        Ok(()) => TrySend::Sent,
        Err(tachyonix::TrySendError::Full(_)) => TrySend::Full,
        Err(tachyonix::TrySendError::Closed(_)) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(tachyonix::TryRecvError::Empty) => TryRecv::Empty,
        Err(tachyonix::TryRecvError::Closed) => TryRecv::Closed,
    }
);
channel!(
    AsyncbandMpmc, asyncband::mpmc::BoundedSender<Value>, asyncband::mpmc::BoundedReceiver<Value>,
    Some(1), asyncband::mpmc::bounded(1),
    clone_rx: |rx| rx.clone(),
    send: |tx, value| tx.send(value).await.is_ok(),
    recv: |rx| rx.recv().await.ok(),
    try_send: |tx, value| match tx.try_send(value) {
        Ok(()) => TrySend::Sent,
        Err(asyncband::mpmc::TrySendError::Full(_)) => TrySend::Full,
        Err(asyncband::mpmc::TrySendError::Disconnected(_)) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(asyncband::mpmc::TryRecvError::Empty) => TryRecv::Empty,
        Err(asyncband::mpmc::TryRecvError::Disconnected) => TryRecv::Closed,
    }
);
channel!(
    AsyncbandMpsc, asyncband::mpsc::BoundedSender<Value>, asyncband::mpsc::BoundedReceiver<Value>,
    Some(1), asyncband::mpsc::bounded(1),
    clone_rx: |rx| single(rx),
    send: |tx, value| tx.send(value).await.is_ok(),
    recv: |rx| rx.recv().await.ok(),
    try_send: |tx, value| match tx.try_send(value) {
        Ok(()) => TrySend::Sent,
        Err(asyncband::mpsc::TrySendError::Full(_)) => TrySend::Full,
        Err(asyncband::mpsc::TrySendError::Disconnected(_)) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv() {
        Ok(value) => TryRecv::Got(value),
        Err(asyncband::mpsc::TryRecvError::Empty) => TryRecv::Empty,
        Err(asyncband::mpsc::TryRecvError::Disconnected) => TryRecv::Closed,
    }
);
channel!(
    PostageMpsc, postage::mpsc::Sender<Value>, postage::mpsc::Receiver<Value>, Some(1),
    postage::mpsc::channel(1),
    clone_rx: |rx| single(rx),
    send: |tx, value| postage::sink::Sink::send(tx, value).await.is_ok(),
    recv: |rx| postage::stream::Stream::recv(rx).await,
    try_send: |tx, value| match postage::sink::Sink::try_send(tx, value) {
        Ok(()) => TrySend::Sent,
        Err(postage::sink::TrySendError::Pending(_)) => TrySend::Full,
        Err(postage::sink::TrySendError::Rejected(_)) => TrySend::Closed,
    },
    try_recv: |rx| match postage::stream::Stream::try_recv(rx) {
        Ok(value) => TryRecv::Got(value),
        Err(postage::stream::TryRecvError::Pending) => TryRecv::Empty,
        Err(postage::stream::TryRecvError::Closed) => TryRecv::Closed,
    }
);

/// A slot of a thingbuf, which needs a default.
#[derive(Default)]
pub(crate) struct Slot(Option<Value>);

impl Clone for Slot {
    fn clone(&self) -> Self {
        unreachable!("slots are taken, not cloned")
    }
}

/// Takes what is in a slot, and leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Take;

impl thingbuf::recycling::Recycle<Slot> for Take {
    fn new_element(&self) -> Slot {
        Slot(None)
    }

    fn recycle(&self, slot: &mut Slot) {
        slot.0 = None;
    }
}

channel!(
    Thingbuf, thingbuf::mpsc::Sender<Slot, Take>, thingbuf::mpsc::Receiver<Slot, Take>, Some(1),
    thingbuf::mpsc::with_recycle(1, Take),
    clone_rx: |rx| single(rx),
    send: |tx, value| tx.send(Slot(Some(value))).await.is_ok(),
    recv: |rx| rx.recv_ref().await.and_then(|mut slot| slot.0.take()),
    try_send: |tx, value| match tx.try_send(Slot(Some(value))) {
        Ok(()) => TrySend::Sent,
        Err(thingbuf::mpsc::errors::TrySendError::Full(_)) => TrySend::Full,
        Err(_) => TrySend::Closed,
    },
    try_recv: |rx| match rx.try_recv_ref() {
        Ok(mut slot) => slot.0.take().map_or(TryRecv::Empty, TryRecv::Got),
        Err(thingbuf::mpsc::errors::TryRecvError::Empty) => TryRecv::Empty,
        Err(_) => TryRecv::Closed,
    }
);

/// Implements [`Lock`] for a mutex.
macro_rules! mutex {
    ($name:ident, $lock:ty, $guard:ty, $new:expr, |$a:ident| $write:expr, |$b:ident| $try:expr) => {
        pub(crate) struct $name;

        impl Lock for $name {
            type Lock = $lock;
            type Write = $guard;
            type Read = ();

            const SHARED: bool = false;

            fn new() -> Self::Lock {
                $new
            }

            fn write($a: Self::Lock) -> BoxFuture<'static, Self::Write> {
                Box::pin(async move { $write })
            }

            fn try_write($b: Self::Lock) -> Option<Self::Write> {
                $try
            }
        }
    };
}

/// Returns a reference that lasts: some guards borrow their lock.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

type Critical = embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;

mutex!(
    TokioMutex,
    Arc<tokio::sync::Mutex<()>>,
    tokio::sync::OwnedMutexGuard<()>,
    Arc::default(),
    |lock| lock.lock_owned().await,
    |lock| lock.try_lock_owned().ok()
);
mutex!(
    AsyncLockMutex,
    Arc<async_lock::Mutex<()>>,
    async_lock::MutexGuardArc<()>,
    Arc::default(),
    |lock| lock.lock_arc().await,
    |lock| lock.try_lock_arc()
);
mutex!(
    FuturesMutex,
    Arc<futures::lock::Mutex<()>>,
    futures::lock::OwnedMutexGuard<()>,
    Arc::default(),
    |lock| lock.lock_owned().await,
    |lock| lock.try_lock_owned()
);
mutex!(
    AsyncbandMutex,
    Arc<asyncband::mutex::Mutex<()>>,
    asyncband::mutex::OwnedMutexGuard<()>,
    Arc::new(asyncband::mutex::Mutex::new(())),
    |lock| lock.lock_owned().await,
    |lock| lock.try_lock_owned()
);
mutex!(
    MaitakeMutex,
    &'static maitake_sync::Mutex<()>,
    maitake_sync::MutexGuard<'static, ()>,
    leak(maitake_sync::Mutex::new(())),
    |lock| lock.lock().await,
    |lock| lock.try_lock()
);
mutex!(
    IntrusiveMutex,
    &'static futures_intrusive::sync::Mutex<()>,
    futures_intrusive::sync::MutexGuard<'static, ()>,
    leak(futures_intrusive::sync::Mutex::new((), true)),
    |lock| lock.lock().await,
    |lock| lock.try_lock()
);
mutex!(
    EmbassyMutex,
    &'static embassy_sync::mutex::Mutex<Critical, ()>,
    embassy_sync::mutex::MutexGuard<'static, Critical, ()>,
    leak(embassy_sync::mutex::Mutex::new(())),
    |lock| lock.lock().await,
    |lock| lock.try_lock().ok()
);

/// Implements [`Lock`] for a lock with two modes.
macro_rules! rwlock {
    ($name:ident, $lock:ty, $w:ty, $r:ty, $new:expr,
     |$a:ident| $write:expr, |$b:ident| $try_write:expr,
     |$c:ident| $read:expr, |$d:ident| $try_read:expr) => {
        pub(crate) struct $name;

        impl Lock for $name {
            type Lock = $lock;
            type Write = $w;
            type Read = $r;

            const SHARED: bool = true;

            fn new() -> Self::Lock {
                $new
            }

            fn write($a: Self::Lock) -> BoxFuture<'static, Self::Write> {
                Box::pin(async move { $write })
            }

            fn try_write($b: Self::Lock) -> Option<Self::Write> {
                $try_write
            }

            fn read($c: Self::Lock) -> BoxFuture<'static, Self::Read> {
                Box::pin(async move { $read })
            }

            fn try_read($d: Self::Lock) -> Option<Self::Read> {
                $try_read
            }
        }
    };
}

rwlock!(
    TokioRwLock,
    Arc<tokio::sync::RwLock<()>>,
    tokio::sync::OwnedRwLockWriteGuard<()>,
    tokio::sync::OwnedRwLockReadGuard<()>,
    Arc::default(),
    |lock| lock.write_owned().await,
    |lock| lock.try_write_owned().ok(),
    |lock| lock.read_owned().await,
    |lock| lock.try_read_owned().ok()
);
rwlock!(
    AsyncLockRwLock,
    Arc<async_lock::RwLock<()>>,
    async_lock::RwLockWriteGuardArc<()>,
    async_lock::RwLockReadGuardArc<()>,
    Arc::default(),
    |lock| lock.write_arc().await,
    |lock| lock.try_write_arc(),
    |lock| lock.read_arc().await,
    |lock| lock.try_read_arc()
);
rwlock!(
    AsyncbandRwLock,
    Arc<asyncband::rwlock::RwLock<()>>,
    asyncband::rwlock::OwnedRwLockWriteGuard<()>,
    asyncband::rwlock::OwnedRwLockReadGuard<()>,
    Arc::new(asyncband::rwlock::RwLock::new(())),
    |lock| lock.write_owned().await,
    |lock| lock.try_write_owned(),
    |lock| lock.read_owned().await,
    |lock| lock.try_read_owned()
);
rwlock!(
    MaitakeRwLock,
    &'static maitake_sync::RwLock<()>,
    maitake_sync::RwLockWriteGuard<'static, ()>,
    maitake_sync::RwLockReadGuard<'static, ()>,
    leak(maitake_sync::RwLock::new(())),
    |lock| lock.write().await,
    |lock| lock.try_write(),
    |lock| lock.read().await,
    |lock| lock.try_read()
);

/// Implements [`Semaphore`].
macro_rules! semaphore {
    ($name:ident, $semaphore:ty, $permit:ty, many: $many:expr, |$n:ident| $new:expr,
     |$a:ident, $m:ident| $acquire:expr, |$b:ident, $k:ident| $try:expr) => {
        pub(crate) struct $name;

        impl Semaphore for $name {
            type Semaphore = $semaphore;
            type Permit = $permit;

            const MANY: bool = $many;

            fn new($n: usize) -> Self::Semaphore {
                $new
            }

            fn acquire($a: Self::Semaphore, $m: usize) -> BoxFuture<'static, Self::Permit> {
                Box::pin(async move { $acquire })
            }

            fn try_acquire($b: Self::Semaphore, $k: usize) -> Option<Self::Permit> {
                $try
            }
        }
    };
}

semaphore!(
    TokioSemaphore, Arc<tokio::sync::Semaphore>, tokio::sync::OwnedSemaphorePermit, many: true,
    |permits| Arc::new(tokio::sync::Semaphore::new(permits)),
    |it, permits| it.acquire_many_owned(permits as u32).await.expect("it is open"),
    |it, permits| it.try_acquire_many_owned(permits as u32).ok()
);
semaphore!(
    AsyncLockSemaphore, Arc<async_lock::Semaphore>, async_lock::SemaphoreGuardArc, many: false,
    |permits| Arc::new(async_lock::Semaphore::new(permits)),
    |it, _permits| it.acquire_arc().await,
    |it, _permits| it.try_acquire_arc()
);
semaphore!(
    AsyncbandSemaphore, Arc<asyncband::semaphore::Semaphore>,
    asyncband::semaphore::OwnedSemaphorePermit, many: true,
    |permits| Arc::new(asyncband::semaphore::Semaphore::new(permits)),
    |it, permits| it.acquire_owned(permits).await,
    |it, permits| it.try_acquire_owned(permits)
);
semaphore!(
    MaitakeSemaphore, &'static maitake_sync::Semaphore,
    maitake_sync::semaphore::Permit<'static>, many: true,
    |permits| leak(maitake_sync::Semaphore::new(permits)),
    |it, permits| it.acquire(permits).await.expect("it is open"),
    |it, permits| it.try_acquire(permits).ok()
);
semaphore!(
    IntrusiveSemaphore, futures_intrusive::sync::SharedSemaphore,
    futures_intrusive::sync::SharedSemaphoreReleaser, many: true,
    |permits| futures_intrusive::sync::SharedSemaphore::new(true, permits),
    |it, permits| it.acquire(permits).await,
    |it, permits| it.try_acquire(permits)
);

/// Implements [`WakerCell`].
macro_rules! waker_cell {
    ($name:ident, $cell:ty, $new:expr, |$a:ident, $w:ident| $register:expr, |$b:ident| $wake:expr) => {
        pub(crate) struct $name($cell);

        impl WakerCell for $name {
            fn new() -> Self {
                Self($new)
            }

            fn register(&self, $w: &Waker) {
                let $a = &self.0;
                $register
            }

            fn wake(&self) {
                let $b = &self.0;
                $wake
            }
        }
    };
}

waker_cell!(
    AtomicWakerCell,
    atomic_waker::AtomicWaker,
    atomic_waker::AtomicWaker::new(),
    |cell, waker| cell.register(waker),
    |cell| cell.wake()
);
waker_cell!(
    FuturesCell,
    futures::task::AtomicWaker,
    futures::task::AtomicWaker::new(),
    |cell, waker| cell.register(waker),
    |cell| cell.wake()
);

/// The sink is for one task at a time, which takes it out for as long as it registers.
pub(crate) struct DiatomicCell {
    sink: std::sync::Mutex<diatomic_waker::WakeSink>,
    source: diatomic_waker::WakeSource,
}

impl WakerCell for DiatomicCell {
    fn new() -> Self {
        let sink = diatomic_waker::WakeSink::new();
        Self {
            source: sink.source(),
            sink: std::sync::Mutex::new(sink),
        }
    }

    fn register(&self, waker: &Waker) {
        let sink = self.sink.lock();
        sink.unwrap_or_else(|poison| poison.into_inner())
            .register(waker);
    }

    fn wake(&self) {
        self.source.notify();
    }
}

/// Implements [`Notify`].
macro_rules! notify {
    ($name:ident, $notify:ty, $new:expr,
     |$a:ident| $one:expr, |$b:ident| $wait:expr) => {
        pub(crate) struct $name($notify);

        impl Notify for $name {
            fn new() -> Self {
                Self($new)
            }

            fn notify_one(&self) {
                let $a = &self.0;
                $one
            }

            fn wait(self: Arc<Self>) -> BoxFuture<'static, ()> {
                Box::pin(async move {
                    let $b = &self.0;
                    $wait
                })
            }
        }
    };
}

notify!(
    TokioNotify,
    tokio::sync::Notify,
    tokio::sync::Notify::new(),
    |it| it.notify_one(),
    |it| it.notified().await
);
notify!(
    AsyncbandNotify,
    asyncband::event::AutoResetEvent,
    asyncband::event::AutoResetEvent::new(),
    |it| it.set(),
    |it| it.wait().await
);
notify!(
    MaitakeQueue,
    maitake_sync::WaitQueue,
    maitake_sync::WaitQueue::new(),
    |it| it.wake(),
    |it| it.wait().await.expect("it is open")
);
notify!(
    MaitakeCell,
    maitake_sync::WaitCell,
    maitake_sync::WaitCell::new(),
    |it| _ = it.wake(),
    |it| it.wait().await.expect("it is open")
);
notify!(
    EmbassySignal, embassy_sync::signal::Signal<Critical, ()>,
    embassy_sync::signal::Signal::new(),
    |it| it.signal(()), |it| it.wait().await
);

/// Implements [`Event`].
macro_rules! event {
    ($name:ident, $event:ty, $new:expr) => {
        pub(crate) struct $name($event);

        impl Event for $name {
            fn new() -> Self {
                Self($new)
            }

            fn set(&self) {
                self.0.set();
            }

            fn is_set(&self) -> bool {
                self.0.is_set()
            }

            fn wait(self: Arc<Self>) -> BoxFuture<'static, ()> {
                Box::pin(async move { self.0.wait().await })
            }
        }
    };
}

event!(
    IntrusiveEvent,
    futures_intrusive::sync::ManualResetEvent,
    futures_intrusive::sync::ManualResetEvent::new(false)
);
event!(
    AsyncbandEvent,
    asyncband::event::ManualResetEvent,
    asyncband::event::ManualResetEvent::new()
);
