//! The table of types. Each rule says what follows from the traits of a payload, and why.

use std::sync::Arc;

use reveille::backend::{Native, Observer, Passage, StdAtomics, StdPark};
use reveille::protocol::Bits;
use reveille::raw::Boxed;
use reveille::{backend, protocol, raw, set_once, time};
use reveille::{barrier, cancellation_token, condvar, mutex, notify, once_cell, rwlock, semaphore};
use reveille::{broadcast, mpmc, mpsc, oneshot, watch};
use reveille::{event, latch, lazy, once_map, phaser, shutdown, singleflight, wait_group};
use reveille_executor::{futures, hyper, local, net, pool, simulation, task};

use crate::Row;
use crate::probe::{Traits, over_payloads};

const fn is(send: bool, sync: bool, unpin: bool, unwind: bool, ref_unwind: bool) -> Traits {
    Traits {
        send,
        sync,
        unpin,
        unwind,
        ref_unwind,
    }
}

/// The type contains nothing of a caller. What it shares is under a lock, and no panic of
/// a caller ends a section.
fn everything(_: Traits) -> Traits {
    is(true, true, true, true, true)
}

/// The type belongs to its thread, and a panic may leave it half changed.
fn of_its_thread(_: Traits) -> Traits {
    is(false, false, true, false, false)
}

/// The type is a `T`, or has one as a public field would.
fn a_value(t: Traits) -> Traits {
    t
}

/// A `&mut T`, with a `&` of the whole lock, which is `Sync` for a `Send` value because
/// no other mode exists. A shared borrow of the guard is a `&T`. Never pinned.
fn a_mutex_guard(t: Traits) -> Traits {
    is(t.send, t.sync && t.send, true, false, t.ref_unwind)
}

/// A `&mut T`, with nothing of the lock except its permits.
fn a_mapped_guard(t: Traits) -> Traits {
    is(t.send, t.sync, true, false, t.ref_unwind)
}

/// A `&mut T`, or a `&T` that can become one, or a `&T` beside others that it was
/// downgraded to. So sending the guard both sends and shares the value.
fn a_guard_that_changes_its_mode(t: Traits) -> Traits {
    is(
        t.send && t.sync,
        t.send && t.sync,
        true,
        false,
        t.ref_unwind,
    )
}

/// The same, with an `Arc` by which the lock outlives it. After a panic, the value can be
/// reached half changed.
fn an_owned_guard_that_changes_its_mode(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, false, false)
}

/// Like the guard that it returns, or like the borrow of the lock that it has. A shared
/// borrow of the future does not reach the value.
fn a_future_of_a_mutex_guard(t: Traits) -> Traits {
    is(t.send, t.send, true, false, false)
}

/// A borrow of the lock, which is `Sync` for values that are both.
fn a_future_of_a_guard(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, false, false)
}

/// A shared borrow is a `&T`. The value goes in or comes out as a whole.
fn a_cell(t: Traits) -> Traits {
    is(
        t.send,
        t.send && t.sync,
        t.unpin,
        t.unwind,
        t.unwind && t.ref_unwind,
    )
}

/// A borrow of a cell.
fn a_future_of_a_cell(t: Traits) -> Traits {
    let shared = t.send && t.sync;
    is(
        shared,
        shared,
        true,
        t.unwind && t.ref_unwind,
        t.unwind && t.ref_unwind,
    )
}

/// Keys are compared and values are cloned outside the lock, so callers share both.
fn a_map(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, true, true)
}

/// A borrow of a map, and an entry of it, which callers share.
fn a_future_of_a_map(t: Traits) -> Traits {
    let whole = t.unwind && t.ref_unwind;
    is(t.send && t.sync, t.send && t.sync, true, whole, whole)
}

/// It moves a `T` as a whole from one thread to another. A shared borrow does not reach
/// the value.
fn a_channel(t: Traits) -> Traits {
    is(t.send, t.send, true, true, true)
}

/// A `&mut` of a half of a channel.
fn a_borrow_of_a_receiver(t: Traits) -> Traits {
    is(t.send, t.send, true, false, true)
}

/// Receivers on several threads share a value: each clones it, or borrows it. The last half
/// drops it.
fn a_channel_that_shares(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, true, true)
}

/// A `&mut` of a receiver that shares its values with others.
fn a_borrow_of_a_receiver_that_shares(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, false, true)
}

/// It may contain a closure of the caller. All that is known of it is that threads share
/// it.
fn a_builder(_: Traits) -> Traits {
    is(true, true, true, false, false)
}

/// A closure or a future that is called or polled in place, unpinned.
fn a_closure(t: Traits) -> Traits {
    is(t.send, t.sync, true, t.unwind, t.ref_unwind)
}

macro_rules! rows {
    (@ $generics:tt) => { None };
    (@ $generics:tt $tokio:ty) => { Some(over_payloads!($generics $tokio)) };
    ($($generics:tt $type:ty $(, tokio $tokio:ty)? => $rule:expr;)*) => {
        vec![$(Row {
            name: stringify!($type),
            ours: over_payloads!($generics $type),
            rule: $rule,
            tokio: rows!(@ $generics $($tokio)?),
        },)*]
    };
}

pub(crate) fn all() -> Vec<Row> {
    let mut rows = locks();
    rows.extend(cells());
    rows.extend(channels());
    rows.extend(events());
    rows.extend(timing());
    rows.extend(tasks());
    rows.extend(sockets());
    rows.extend(below());
    rows
}

fn locks() -> Vec<Row> {
    use ::tokio::sync as t;
    rows! {
        // A mutex moves the value from thread to thread and never shares it. It is not
        // poisoned: the next holder sees a value that a panic left half changed.
        [T] mutex::Mutex<T>, tokio t::Mutex<T>
            => |t| is(t.send, t.send, t.unpin, t.unwind, false);
        [T] mutex::MutexGuard<'static, T>, tokio t::MutexGuard<'static, T>
            => a_mutex_guard;
        [T] mutex::MappedMutexGuard<'static, T>, tokio t::MappedMutexGuard<'static, T>
            => a_mapped_guard;
        // Like the guard; the `Arc` reaches the value after the guard.
        [T] mutex::OwnedMutexGuard<T>, tokio t::OwnedMutexGuard<T>
            => |t| is(t.send, t.sync && t.send, true, false, false);
        // Like the part, and like the whole, which the last `Arc` drops.
        [T] mutex::OwnedMappedMutexGuard<u8, T>, tokio t::OwnedMappedMutexGuard<u8, T>
            => |t| is(t.send, t.sync, true, false, false);
        [T] mutex::OwnedMappedMutexGuard<T, u8>, tokio t::OwnedMappedMutexGuard<T, u8>
            => |t| is(t.send, t.send, true, false, false);
        [T] mutex::Lock<'static, T> => a_future_of_a_mutex_guard;
        [T] mutex::LockOwned<T> => a_future_of_a_mutex_guard;
        [] mutex::TryLockError, tokio t::TryLockError => everything;

        // Readers on several threads share the value, and a writer takes it.
        [T] rwlock::RwLock<T>, tokio t::RwLock<T>
            => |t| is(t.send, t.send && t.sync, t.unpin, t.unwind, false);
        // A `&T`, with nothing of the lock except its permits.
        [T] rwlock::RwLockReadGuard<'static, T>, tokio t::RwLockReadGuard<'static, T>
            => |t| is(t.sync, t.sync, true, t.ref_unwind, t.ref_unwind);
        [T] rwlock::RwLockWriteGuard<'static, T>, tokio t::RwLockWriteGuard<'static, T>
            => a_guard_that_changes_its_mode;
        [T] rwlock::RwLockUpgradableReadGuard<'static, T>
            => a_guard_that_changes_its_mode;
        // It cannot be downgraded: a `&mut` of a part, which can be sent if the part can.
        [T] rwlock::RwLockMappedWriteGuard<'static, T>,
            tokio t::RwLockMappedWriteGuard<'static, T> => a_mapped_guard;
        // The `Arc` of a whole that is both, as the lock is, beside a `&` of the part.
        [T] rwlock::OwnedRwLockReadGuard<T, u8>, tokio t::OwnedRwLockReadGuard<T, u8>
            => |t| is(t.send && t.sync, t.send && t.sync, true, false, false);
        [T] rwlock::OwnedRwLockReadGuard<u8, T>, tokio t::OwnedRwLockReadGuard<u8, T>
            => |t| is(t.sync, t.sync, true, false, false);
        [T] rwlock::OwnedRwLockWriteGuard<T>, tokio t::OwnedRwLockWriteGuard<T>
            => an_owned_guard_that_changes_its_mode;
        [T] rwlock::OwnedRwLockUpgradableReadGuard<T>
            => an_owned_guard_that_changes_its_mode;
        [T] rwlock::OwnedRwLockMappedWriteGuard<T, u8>,
            tokio t::OwnedRwLockMappedWriteGuard<T, u8>
            => |t| is(t.send && t.sync, t.send && t.sync, true, false, false);
        [T] rwlock::OwnedRwLockMappedWriteGuard<u8, T>,
            tokio t::OwnedRwLockMappedWriteGuard<u8, T>
            => |t| is(t.send, t.sync, true, false, false);
        [T] rwlock::Read<'static, T> => a_future_of_a_guard;
        [T] rwlock::ReadOwned<T> => a_future_of_a_guard;
        [T] rwlock::Write<'static, T> => a_future_of_a_guard;
        [T] rwlock::WriteOwned<T> => a_future_of_a_guard;
        [T] rwlock::UpgradableRead<'static, T> => a_future_of_a_guard;
        [T] rwlock::UpgradableReadOwned<T> => a_future_of_a_guard;
        // They hold an upgradable guard, which they return as a write guard.
        [T] rwlock::Upgrade<'static, T> => a_guard_that_changes_its_mode;
        [T] rwlock::UpgradeOwned<T> => an_owned_guard_that_changes_its_mode;

        [] condvar::Condvar => everything;
        // The guard of a mutex, then the borrow of the mutex.
        [T] condvar::Wait<'static, T> => |t| is(t.send, t.send && t.sync, true, false, false);
        [T] condvar::WaitWhile<'static, T, ()>
            => |t| is(t.send, t.send && t.sync, true, false, false);
        // The condition is called with the value, and never pinned.
        [T] condvar::WaitWhile<'static, u8, T> => |t| is(t.send, t.sync, true, false, false);

        // Permits are counts.
        [] semaphore::Semaphore, tokio t::Semaphore => everything;
        [] semaphore::SemaphorePermit<'static>, tokio t::SemaphorePermit<'static> => everything;
        [] semaphore::OwnedSemaphorePermit, tokio t::OwnedSemaphorePermit => everything;
        [] semaphore::Permit<Arc<semaphore::Semaphore>> => everything;
        [] semaphore::Acquire<&'static semaphore::Semaphore> => everything;
        [] semaphore::AcquireError, tokio t::AcquireError => everything;
        [] semaphore::TryAcquireError, tokio t::TryAcquireError => everything;
    }
}

fn cells() -> Vec<Row> {
    use ::tokio::sync as t;
    rows! {
        [T] once_cell::OnceCell<T>, tokio t::OnceCell<T> => a_cell;
        [T] once_cell::OnceCellWait<'static, T> => a_future_of_a_cell;
        // The closure and its future are called and polled in place. The future is pinned
        // in a box, and its output is sent to the cell.
        [T] once_cell::GetOrInit<'static, (), (), T> => a_future_of_a_cell;
        [T] once_cell::GetOrInit<'static, T, (), u8> => a_closure;
        [T] once_cell::GetOrInit<'static, (), T, u8> => a_closure;
        [T] once_cell::GetOrTryInit<'static, (), (), T> => a_future_of_a_cell;
        [T] once_cell::GetOrTryInit<'static, T, (), u8> => a_closure;
        [T] once_cell::GetOrTryInit<'static, (), T, u8> => a_closure;
        [T] once_cell::SetError<T>, tokio t::SetError<T> => a_value;
        [T] lazy::Lazy<T, (), ()> => a_cell;
        // The initializer moves from caller to caller, and is never shared. Its future is
        // pinned in a box.
        [T] lazy::Lazy<u8, T, ()> => |t| is(t.send, t.send, true, true, true);
        [T] lazy::Lazy<u8, (), T> => |t| is(t.send, t.send, t.unpin, true, true);
        [T] lazy::LazyForce<'static, T, (), ()> => a_future_of_a_cell;
        [T] lazy::LazyForce<'static, u8, T, ()>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [T] once_map::OnceMap<u8, T> => a_map;
        [T] once_map::OnceMap<T, u8> => a_map;
        [T] singleflight::Group<u8, T> => a_map;
        [T] reveille::once_map::Compute<'static, u8, T, (), ()> => a_future_of_a_map;
        [T] reveille::once_map::TryCompute<'static, u8, T, (), ()> => a_future_of_a_map;
        // The function is called in place, unpinned. Its future is pinned in a box.
        [T] reveille::once_map::Compute<'static, u8, u8, T, ()> => a_closure;
        [T] reveille::once_map::Compute<'static, u8, u8, (), T> => a_closure;
        // The objects move from task to task, and are never shared.
        [T] reveille::pool::Pool<T> => |t| is(t.send, t.send, t.unpin, true, true);
        [T] reveille::pool::Pooled<&'static reveille::Pool<T>, T>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [T] reveille::pool::Get<&'static reveille::Pool<T>, (), (), T>
            => |t| is(t.send, t.send, true, true, true);
        [T] reveille::pool::Get<&'static reveille::Pool<u8>, T, (), u8> => a_closure;
        [T] reveille::pool::Get<&'static reveille::Pool<u8>, (), T, u8> => a_closure;
        [T] reveille::pool::GetError<T> => a_value;
        [T] set_once::SetOnce<T>, tokio t::SetOnce<T> => a_cell;
        [T] set_once::SetOnceWait<'static, T> => a_future_of_a_cell;
        [T] set_once::SetOnceError<T>, tokio t::SetOnceError<T> => a_value;
    }
}

fn channels() -> Vec<Row> {
    use ::tokio::sync::{broadcast as tb, mpsc as tm, oneshot as to, watch as tw};
    rows! {
        [T] oneshot::Sender<T>, tokio to::Sender<T> => a_channel;
        [T] oneshot::Receiver<T>, tokio to::Receiver<T> => a_channel;
        // A `&mut` of the sender.
        [T] oneshot::Closed<'static, T> => a_borrow_of_a_receiver;
        // The storage itself, which may contain a value, unpinned.
        [T] oneshot::Slot<T> => |t| is(t.send, t.send, t.unpin, true, true);
        [T] oneshot::SlotSender<'static, T> => a_channel;
        [T] oneshot::SlotReceiver<'static, T> => a_channel;
        [] oneshot::error::RecvError, tokio to::error::RecvError => everything;
        [] oneshot::error::TryRecvError, tokio to::error::TryRecvError => everything;

        [T] mpsc::Sender<T>, tokio tm::Sender<T> => a_channel;
        [T] mpsc::Receiver<T>, tokio tm::Receiver<T> => a_channel;
        [T] mpsc::WeakSender<T>, tokio tm::WeakSender<T> => a_channel;
        [T] mpsc::Permit<'static, T>, tokio tm::Permit<'static, T> => a_channel;
        [T] mpsc::PermitIterator<'static, T>, tokio tm::PermitIterator<'static, T> => a_channel;
        [T] mpsc::OwnedPermit<T>, tokio tm::OwnedPermit<T> => a_channel;
        [T] mpsc::UnboundedSender<T>, tokio tm::UnboundedSender<T> => a_channel;
        [T] mpsc::UnboundedReceiver<T>, tokio tm::UnboundedReceiver<T> => a_channel;
        [T] mpsc::WeakUnboundedSender<T>, tokio tm::WeakUnboundedSender<T> => a_channel;
        [T] mpsc::Recv<'static, T> => a_borrow_of_a_receiver;
        // With a `&mut Vec<T>` to receive into.
        [T] mpsc::RecvMany<'static, T> => |t| is(t.send, t.send && t.sync, true, false, t.ref_unwind);
        [T] mpsc::Closed<'static, T> => a_channel;
        [T] mpsc::Reserve<'static, T> => a_channel;
        [T] mpsc::ReserveMany<'static, T> => a_channel;
        [T] mpsc::ReserveOwned<T> => a_channel;
        // It contains the value to be sent, unpinned.
        [T] mpsc::SendFuture<'static, T>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [T] mpsc::SendTimeout<'static, T>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [T] mpsc::error::SendError<T>, tokio tm::error::SendError<T> => a_value;
        [T] mpsc::error::TrySendError<T>, tokio tm::error::TrySendError<T> => a_value;
        [T] mpsc::error::SendTimeoutError<T>, tokio tm::error::SendTimeoutError<T> => a_value;
        [] mpsc::error::TryRecvError, tokio tm::error::TryRecvError => everything;

        [T] mpmc::Sender<T> => a_channel;
        [T] mpmc::Receiver<T> => a_channel;
        [T] mpmc::WeakSender<T> => a_channel;
        [T] mpmc::WeakReceiver<T> => a_channel;
        [T] mpmc::Recv<'static, T> => a_channel;
        [T] mpmc::Closed<'static, T> => a_channel;
        // It contains the value to be sent, unpinned.
        [T] mpmc::SendFuture<'static, T>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [] mpmc::RecvError => everything;
        [] mpmc::TryRecvError => everything;

        // Values are cloned outside the lock, so receivers share them. Tokio's halves are
        // `Send` and `Sync` for a value that is only `Send`, because they clone it under a
        // lock. They are not compared.
        [T] broadcast::Sender<T> => a_channel_that_shares;
        [T] broadcast::WeakSender<T> => a_channel_that_shares;
        [T] broadcast::Receiver<T> => a_channel_that_shares;
        [T] broadcast::Recv<'static, T> => a_borrow_of_a_receiver_that_shares;
        [T] broadcast::Closed<'static, T> => a_channel_that_shares;
        [T] broadcast::error::SendError<T>, tokio tb::error::SendError<T> => a_value;
        [] broadcast::error::RecvError, tokio tb::error::RecvError => everything;
        [] broadcast::error::TryRecvError, tokio tb::error::TryRecvError => everything;

        [T] watch::Sender<T>, tokio tw::Sender<T> => a_channel_that_shares;
        [T] watch::Receiver<T>, tokio tw::Receiver<T> => a_channel_that_shares;
        // A `&T`, with nothing of the channel except the permit of its lock.
        [T] watch::Ref<'static, T>, tokio tw::Ref<'static, T>
            => |t| is(t.sync, t.sync, true, t.ref_unwind, t.ref_unwind);
        [T] watch::Changed<'static, T> => a_borrow_of_a_receiver_that_shares;
        [T] watch::WaitFor<'static, T, ()> => a_borrow_of_a_receiver_that_shares;
        // The predicate is called with the value, and never pinned.
        [T] watch::WaitFor<'static, u8, T> => |t| is(t.send, t.sync, true, false, t.ref_unwind);
        [T] watch::Closed<'static, T> => a_channel_that_shares;
        [T] watch::error::SendError<T>, tokio tw::error::SendError<T> => a_value;
        [] watch::error::RecvError, tokio tw::error::RecvError => everything;
    }
}

fn events() -> Vec<Row> {
    use ::tokio::sync as t;
    rows! {
        [] notify::Notify, tokio t::Notify => everything;
        [] notify::Notified<'static>, tokio t::futures::Notified<'static> => everything;
        [] notify::OwnedNotified, tokio t::futures::OwnedNotified => everything;
        [T] notify::WaitUntil<'static, T> => a_closure;
        [] cancellation_token::CancellationToken => everything;
        [] cancellation_token::WaitForCancellationFuture<'static> => everything;
        [] cancellation_token::WaitForCancellationFutureOwned => everything;
        [] cancellation_token::DropGuard => everything;
        [] cancellation_token::DropGuardRef<'static> => everything;
        [T] reveille::raw::RunUntilCancelled<T, cancellation_token::WaitForCancellationFutureOwned>
            => a_value;
        [] barrier::Barrier, tokio t::Barrier => everything;
        [] barrier::BarrierWait<'static> => everything;
        [] barrier::BarrierWaitResult, tokio t::BarrierWaitResult => everything;
        [] event::Event => everything;
        [] event::EventWait<'static> => everything;
        [] event::OwnedEventWait => everything;
        [] latch::Latch => everything;
        [] latch::LatchWait<'static> => everything;
        [] latch::OwnedLatchWait => everything;
        [] wait_group::WaitGroup => everything;
        [] wait_group::WaitGroupWait => everything;
        [] phaser::Phaser => everything;
        [] phaser::Party => everything;
        // A `&mut` of the party.
        [] phaser::ArriveAndWait<'static> => |_| is(true, true, true, false, true);
        [] phaser::PhaserWait<'static> => everything;
        [] shutdown::Shutdown => everything;
        [] shutdown::ShutdownGuard => everything;
        [] shutdown::ShutdownWait<'static> => everything;
    }
}

fn timing() -> Vec<Row> {
    use ::tokio::time as t;
    rows! {
        [] time::Sleep, tokio t::Sleep => everything;
        [] time::Interval, tokio t::Interval => everything;
        // A `&mut` of the interval.
        [] time::Tick<'static> => |_| is(true, true, true, false, true);
        [] time::MissedTickBehavior, tokio t::MissedTickBehavior => everything;
        [] time::Instant, tokio t::Instant => everything;
        // It has no values.
        [] time::error::Error, tokio t::error::Error => everything;
        [] time::error::Elapsed, tokio t::error::Elapsed => everything;
        // The future is pinned in it. The deadline is a sleep.
        [T] reveille::raw::Timeout<T>, tokio t::Timeout<T> => a_value;
        [] time::Timers => everything;
        [] time::Driver => everything;
        [] time::VirtualClock => everything;
        [] time::Advance => everything;
        [] time::RealClock => everything;
        // It restores state of its thread, so it must be dropped there.
        [] time::Entered => |_| is(false, false, true, true, true);
        // A queue of values, which are reached by `&mut` and never pinned. Its own panics
        // leave it consistent; the values are the caller's.
        [T] time::DelayQueue<T> => a_closure;
        [T] time::NextExpired<'static, T> => |t| is(t.send, t.sync, true, false, t.ref_unwind);
        [T] time::Expired<T> => a_value;
        [] time::Key => everything;
        [T] time::wheel::Wheel<T> => a_value;
        [] time::wheel::Timer => everything;
    }
}

fn sockets() -> Vec<Row> {
    use std::io;
    use std::net::TcpStream as Std;

    use ::tokio::net as t;
    rows! {
        // A socket has nothing of a caller, and its readiness is under a lock.
        [] net::Async<Std>, tokio t::TcpStream => everything;
        [] net::TcpListener, tokio t::TcpListener => everything;
        [] net::TcpStream, tokio t::TcpStream => everything;
        [] net::UdpSocket, tokio t::UdpSocket => everything;
        [] net::UnixDatagram => everything;
        [] net::UnixListener => everything;
        [] net::UnixStream => everything;
        [] net::Readiness<'static, Std> => everything;
        [] net::Perform<'static, Std, fn(&Std) -> io::Result<()>> => everything;
        [] net::tcp::ReadHalf<'static>, tokio t::tcp::ReadHalf<'static> => everything;
        [] net::tcp::WriteHalf<'static>, tokio t::tcp::WriteHalf<'static> => everything;
        [] net::tcp::OwnedReadHalf, tokio t::tcp::OwnedReadHalf => everything;
        [] net::tcp::OwnedWriteHalf, tokio t::tcp::OwnedWriteHalf => everything;
        [] net::tcp::ReuniteError, tokio t::tcp::ReuniteError => everything;
        [] net::readiness::Source<Native> => everything;
        [] net::readiness::Place => everything;
        [] net::readiness::Ready => everything;
        [] net::readiness::Direction => everything;
        [] net::readiness::Mode => everything;
        [] net::sources::Sources<Native> => everything;
        [] net::sources::Key => everything;
    }
}

fn tasks() -> Vec<Row> {
    use ::tokio::{runtime as tr, task as t};
    rows! {
        // The output is moved as a whole from one thread to another.
        [T] task::JoinHandle<T>, tokio t::JoinHandle<T> => a_channel;
        [T] task::JoinSet<T>, tokio t::JoinSet<T> => a_channel;
        [] task::AbortHandle, tokio t::AbortHandle => everything;
        // The payload of a panic is only `Send`, and is under a mutex.
        [] task::JoinError, tokio t::JoinError => everything;
        [] task::Id, tokio t::Id => everything;
        [] task::YieldNow => everything;
        // The key of a task-local value. The value is on the thread that polls the task.
        [T] task::LocalKey<T>, tokio t::LocalKey<T> => everything;
        [] task::AccessError => everything;
        // Part of the budget of a poll, in a cell of its thread.
        [] task::coop::RestoreOnPending, tokio t::coop::RestoreOnPending
            => |_| is(false, false, true, true, false);
        [] pool::ThreadPool, tokio tr::Runtime => everything;
        [] pool::Handle, tokio tr::Handle => everything;
        [] pool::Builder => a_builder;
        [] pool::Metrics => everything;
        [] reveille_executor::PollTimes => everything;
        [] reveille_executor::dump::Dump => everything;
        [] reveille_executor::dump::TaskDump => everything;
        [] task::TaskMeta => everything;
        // Executors of one thread, with tasks that are not `Send`.
        [] reveille_executor::local::LocalExecutor, tokio t::LocalSet => of_its_thread;
        [] local::Builder => a_builder;
        [] reveille_executor::simulation::Simulation => of_its_thread;
        [] simulation::Builder => a_builder;
        [] futures::LocalPool => of_its_thread;
        [] reveille_executor::Threads => everything;
        [] reveille_executor::LongPoll => everything;
        [] hyper::LocalSpawner => everything;
        [] hyper::Timer => everything;
        [T] reveille_executor::tokio::JoinHandle<T>, tokio t::JoinHandle<T> => a_channel;
    }
}

/// A watcher that does nothing.
enum Unmoved {}

impl Observer for Unmoved {
    type Park = StdPark;
    type Visit = ();

    fn approach(_: usize, _: Passage) {}
    fn enter((): &mut ()) {}
    fn leave((): &mut (), _: Bits, _: Bits) {}
    fn created() {}
    fn dropped() {}
}

/// The types that primitives are made of.
fn below() -> Vec<Row> {
    rows! {
        // The state moves from section to section, on any thread. No panic of a caller
        // ends a section.
        [T] protocol::StateLock<T> => |t| is(t.send, t.send, t.unpin, true, true);
        // A `&mut` of the state.
        [T] protocol::Section<'static, T> => |t| is(t.send, t.sync, true, false, t.ref_unwind);
        [] protocol::Bits => everything;
        [] protocol::CallerLocation => everything;
        [] protocol::Waiter => everything;
        [T] protocol::Waiters<T> => a_value;
        [] protocol::Generation => everything;
        [] protocol::WakerSlot => everything;
        // It has a `&mut` of a waker.
        [] protocol::Registration<'static> => |_| is(true, true, true, false, true);
        [] protocol::Registered => everything;
        [] protocol::WakeList => everything;
        // It parks the thread that created it.
        [] protocol::Parker<Native> => |_| is(false, false, true, true, true);

        [] raw::Witness => everything;
        // A shared borrow reaches nothing, so it is `Sync` for every value.
        [T] raw::Exclusive<T> => |t| is(t.send, true, t.unpin, t.unwind, true);
        [T] raw::OnceSlot<T, ()> => a_cell;
        [T] raw::OnceSlot<u8, T> => |t| is(t.send, t.send, t.unpin, true, true);
        [] raw::Gate => everything;
        [] raw::GateWait<Arc<raw::Gate>> => everything;
        [T] raw::Handoff<T> => |t| is(t.send, t.send, t.unpin, true, true);
        [] raw::Boxed => everything;
        [] raw::InSlot<'static> => everything;
        [T] raw::RawSender<T, Boxed> => a_channel;
        [T] raw::RawReceiver<T, Boxed> => a_channel;
        // The payload of a panic is only `Send`.
        [] raw::Failure => |_| is(true, false, true, false, false);
        [] raw::Metadata => everything;
        [] raw::Runnable => everything;
        [] raw::Completion => everything;
        [] raw::Owned => everything;
        [T] raw::Join<T> => a_channel;
        [] raw::Abort => everything;
        [] raw::Aborted<'static> => everything;
        [] raw::RunResult => everything;
        [] raw::Activity => everything;
        [] raw::Wait => everything;

        // Backends are only names. Their locks hold a state as a `StateLock` does, or
        // leave its bounds to the `StateLock`.
        [] backend::DefaultBackend => everything;
        [] backend::Native => everything;
        [] backend::Spin => everything;
        [] backend::Local => everything;
        [] backend::Loom => everything;
        [] backend::LoomWord => everything;
        [] backend::Shuttle => everything;
        [] backend::Observed<Native, Unmoved> => everything;
        [] backend::Passage => everything;
        [] backend::WatchedLock<'static> => everything;
        [] backend::StdAtomics => everything;
        [] backend::StdPark => everything;
        [] backend::SpinAtomics => everything;
        [] backend::SpinPark => everything;
        [] backend::LoomAtomics => everything;
        [T] backend::WordLock<T, StdAtomics> => |t| is(t.send, t.send, t.unpin, t.unwind, false);
        [T] backend::ObservedLock<backend::WordLock<T, StdAtomics>, Unmoved>
            => |t| is(t.send, t.send, t.unpin, t.unwind, false);
        // Cells of one thread.
        [T] backend::LocalLock<T> => |t| is(t.send, false, t.unpin, t.unwind, false);
    }
}
