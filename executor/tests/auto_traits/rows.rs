//! The table. Each rule says what a payload's traits make of the type, and why.

use std::sync::Arc;

use reveille::backend::{Native, Observer, Passage, StdAtomics, StdPark};
use reveille::protocol::Bits;
use reveille::raw::Boxed;
use reveille::{backend, protocol, raw, set_once, time};
use reveille::{barrier, condvar, mpsc, mutex, notify, once_cell, oneshot, rwlock, semaphore};
use reveille_executor::{futures, hyper, local, pool, simulation, task};

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

/// It has nothing of a user's in it; what it shares stands under a lock whose sections
/// no panic of a user's ends.
fn everything(_: Traits) -> Traits {
    is(true, true, true, true, true)
}

/// It belongs to its thread, and a panic may leave it half done.
fn of_its_thread(_: Traits) -> Traits {
    is(false, false, true, false, false)
}

/// It is a `T`, or has one as a public field would.
fn a_value(t: Traits) -> Traits {
    t
}

/// A `&mut T`, with a `&` of the whole lock, which is `Sync` for a `Send` value: no other
/// mode comes of it. By a shared borrow it is a `&T`. Never pinned.
fn a_mutex_guard(t: Traits) -> Traits {
    is(t.send, t.sync && t.send, true, false, t.ref_unwind)
}

/// A `&mut T`, and nothing of the lock but its permits.
fn a_mapped_guard(t: Traits) -> Traits {
    is(t.send, t.sync, true, false, t.ref_unwind)
}

/// A `&mut T`, or a `&T` that comes to be one; and a `&T` beside others that it was
/// downgraded to. So wherever it goes the value is both given and shared.
fn a_guard_that_changes_its_mode(t: Traits) -> Traits {
    is(
        t.send && t.sync,
        t.send && t.sync,
        true,
        false,
        t.ref_unwind,
    )
}

/// The same, with an `Arc` by which the lock outlives it: after a panic the value is
/// reached as that left it.
fn an_owned_guard_that_changes_its_mode(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, false, false)
}

/// As the guard, which it is ready with, or as the borrow of the lock that it has. By a
/// shared borrow of the future nobody reaches the value.
fn a_future_of_a_mutex_guard(t: Traits) -> Traits {
    is(t.send, t.send, true, false, false)
}

/// A borrow of the lock, which is `Sync` for values that are both.
fn a_future_of_a_guard(t: Traits) -> Traits {
    is(t.send && t.sync, t.send && t.sync, true, false, false)
}

/// Borrowed, it is a `&T`; the value comes out, or goes in, as a whole.
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

/// It moves a `T` from one thread to another, as a whole, and by a shared borrow nobody
/// reaches it.
fn a_channel(t: Traits) -> Traits {
    is(t.send, t.send, true, true, true)
}

/// A `&mut` of a half of a channel.
fn a_borrow_of_a_receiver(t: Traits) -> Traits {
    is(t.send, t.send, true, false, true)
}

/// A user's closure may be in it, of which nothing is known but that threads share it.
fn a_builder(_: Traits) -> Traits {
    is(true, true, true, false, false)
}

/// A closure or a future that is called or polled where it stands, unpinned.
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
    rows.extend(below());
    rows
}

fn locks() -> Vec<Row> {
    use ::tokio::sync as t;
    rows! {
        // A mutex hands the value from thread to thread and never shares it. It has no
        // poison: a value that a panic left half done is met by the next holder.
        [T] mutex::Mutex<T>, tokio t::Mutex<T>
            => |t| is(t.send, t.send, t.unpin, t.unwind, false);
        [T] mutex::MutexGuard<'static, T>, tokio t::MutexGuard<'static, T>
            => a_mutex_guard;
        [T] mutex::MappedMutexGuard<'static, T>, tokio t::MappedMutexGuard<'static, T>
            => a_mapped_guard;
        // As the guard; the `Arc` reaches the value after the guard.
        [T] mutex::OwnedMutexGuard<T>, tokio t::OwnedMutexGuard<T>
            => |t| is(t.send, t.sync && t.send, true, false, false);
        // Of the part, and of the whole, which the last `Arc` drops.
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
        // A `&T`, and nothing of the lock but its permits.
        [T] rwlock::RwLockReadGuard<'static, T>, tokio t::RwLockReadGuard<'static, T>
            => |t| is(t.sync, t.sync, true, t.ref_unwind, t.ref_unwind);
        [T] rwlock::RwLockWriteGuard<'static, T>, tokio t::RwLockWriteGuard<'static, T>
            => a_guard_that_changes_its_mode;
        [T] rwlock::RwLockUpgradableReadGuard<'static, T>
            => a_guard_that_changes_its_mode;
        // It cannot be downgraded: a `&mut` of a part that goes wherever that may.
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
        // They hold an upgradable guard, which comes out as a write guard.
        [T] rwlock::Upgrade<'static, T> => a_guard_that_changes_its_mode;
        [T] rwlock::UpgradeOwned<T> => an_owned_guard_that_changes_its_mode;

        [] condvar::Condvar => everything;
        // A mutex's guard, then the borrow of the mutex.
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
        // The closure and the future that it returns are called and polled in place;
        // the future is pinned in a box, and what it makes is sent to the cell.
        [T] once_cell::GetOrInit<'static, (), (), T> => a_future_of_a_cell;
        [T] once_cell::GetOrInit<'static, T, (), u8> => a_closure;
        [T] once_cell::GetOrInit<'static, (), T, u8> => a_closure;
        [T] once_cell::GetOrTryInit<'static, (), (), T> => a_future_of_a_cell;
        [T] once_cell::GetOrTryInit<'static, T, (), u8> => a_closure;
        [T] once_cell::GetOrTryInit<'static, (), T, u8> => a_closure;
        [T] once_cell::SetError<T>, tokio t::SetError<T> => a_value;
        [T] set_once::SetOnce<T>, tokio t::SetOnce<T> => a_cell;
        [T] set_once::SetOnceWait<'static, T> => a_future_of_a_cell;
        [T] set_once::SetOnceError<T>, tokio t::SetOnceError<T> => a_value;
    }
}

fn channels() -> Vec<Row> {
    use ::tokio::sync::{mpsc as tm, oneshot as to};
    rows! {
        [T] oneshot::Sender<T>, tokio to::Sender<T> => a_channel;
        [T] oneshot::Receiver<T>, tokio to::Receiver<T> => a_channel;
        // A `&mut` of the sender.
        [T] oneshot::Closed<'static, T> => a_borrow_of_a_receiver;
        // The place itself, in which a value may stand, unpinned.
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
        // And a `&mut Vec<T>` to receive into.
        [T] mpsc::RecvMany<'static, T> => |t| is(t.send, t.send && t.sync, true, false, t.ref_unwind);
        [T] mpsc::Closed<'static, T> => a_channel;
        [T] mpsc::Reserve<'static, T> => a_channel;
        [T] mpsc::ReserveMany<'static, T> => a_channel;
        [T] mpsc::ReserveOwned<T> => a_channel;
        // The value that is to be sent is in it, unpinned.
        [T] mpsc::SendFuture<'static, T>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [T] mpsc::SendTimeout<'static, T>
            => |t| is(t.send, t.send && t.sync, true, t.unwind, t.ref_unwind);
        [T] mpsc::error::SendError<T>, tokio tm::error::SendError<T> => a_value;
        [T] mpsc::error::TrySendError<T>, tokio tm::error::TrySendError<T> => a_value;
        [T] mpsc::error::SendTimeoutError<T>, tokio tm::error::SendTimeoutError<T> => a_value;
        [] mpsc::error::TryRecvError, tokio tm::error::TryRecvError => everything;
    }
}

fn events() -> Vec<Row> {
    use ::tokio::sync as t;
    rows! {
        [] notify::Notify, tokio t::Notify => everything;
        [] notify::Notified<'static>, tokio t::futures::Notified<'static> => everything;
        [] notify::OwnedNotified, tokio t::futures::OwnedNotified => everything;
        [T] notify::WaitUntil<'static, T> => a_closure;
        [] barrier::Barrier, tokio t::Barrier => everything;
        [] barrier::BarrierWait<'static> => everything;
        [] barrier::BarrierWaitResult, tokio t::BarrierWaitResult => everything;
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
        // There is no value of it.
        [] time::error::Error, tokio t::error::Error => everything;
        [] time::error::Elapsed, tokio t::error::Elapsed => everything;
        // The future is pinned in it; the deadline is a sleep.
        [T] reveille::raw::Timeout<T>, tokio t::Timeout<T> => a_value;
        [] time::Timers => everything;
        [] time::Driver => everything;
        [] time::VirtualClock => everything;
        [] time::Advance => everything;
        [] time::RealClock => everything;
        // What it puts back is the thread's; it is dropped where it was made.
        [] time::Entered => |_| is(false, false, true, true, true);
        // A queue of values, reached by `&mut`, which are never pinned. Its panics
        // leave it whole; the values are a user's.
        [T] time::DelayQueue<T> => a_closure;
        [T] time::NextExpired<'static, T> => |t| is(t.send, t.sync, true, false, t.ref_unwind);
        [T] time::Expired<T> => a_value;
        [] time::Key => everything;
        [T] time::wheel::Wheel<T> => a_value;
        [] time::wheel::Timer => everything;
    }
}

fn tasks() -> Vec<Row> {
    use ::tokio::{runtime as tr, task as t};
    rows! {
        // The output goes from one thread to another, as a whole.
        [T] task::JoinHandle<T>, tokio t::JoinHandle<T> => a_channel;
        [T] task::JoinSet<T>, tokio t::JoinSet<T> => a_channel;
        [] task::AbortHandle, tokio t::AbortHandle => everything;
        // The payload of a panic is only `Send`, and stands under a mutex.
        [] task::JoinError, tokio t::JoinError => everything;
        [] task::Id, tokio t::Id => everything;
        [] task::YieldNow => everything;
        // The key of a task-local value, which is where the task is polled.
        [T] task::LocalKey<T>, tokio t::LocalKey<T> => everything;
        [] task::AccessError => everything;
        // A part of the budget of a poll, which is one thread's, in a cell.
        [] task::coop::RestoreOnPending, tokio t::coop::RestoreOnPending
            => |_| is(false, false, true, true, false);
        [] pool::ThreadPool, tokio tr::Runtime => everything;
        [] pool::Handle, tokio tr::Handle => everything;
        [] pool::Builder => a_builder;
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

/// Sees every section, and does nothing about it.
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

/// What primitives are made of.
fn below() -> Vec<Row> {
    rows! {
        // The state goes from section to section, on whatever thread; a section is not
        // ended by a panic of a user's.
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
        // It parks the thread that made it.
        [] protocol::Parker<Native> => |_| is(false, false, true, true, true);

        [] raw::Witness => everything;
        // A shared borrow reaches nothing, so it is shared whatever it is.
        [T] raw::Exclusive<T> => |t| is(t.send, true, t.unpin, t.unwind, true);
        [T] raw::OnceSlot<T, ()> => a_cell;
        [T] raw::OnceSlot<u8, T> => |t| is(t.send, t.send, t.unpin, true, true);
        [T] raw::Handoff<T> => |t| is(t.send, t.send, t.unpin, true, true);
        [] raw::Boxed => everything;
        [] raw::InSlot<'static> => everything;
        [T] raw::RawSender<T, Boxed> => a_channel;
        [T] raw::RawReceiver<T, Boxed> => a_channel;
        // The payload of a panic is only `Send`.
        [] raw::Failure => |_| is(true, false, true, false, false);
        [] raw::Metadata => everything;
        [] raw::Name => everything;
        [] raw::Runnable => everything;
        [] raw::Owned => everything;
        [T] raw::Join<T> => a_channel;
        [] raw::Abort => everything;
        [] raw::Aborted<'static> => everything;
        [] raw::RunResult => everything;

        // Backends are names, and their locks keep a state as a `StateLock` does, or
        // leave it to that to say so.
        [] backend::DefaultBackend => everything;
        [] backend::Native => everything;
        [] backend::Spin => everything;
        [] backend::Local => everything;
        [] backend::Loom => everything;
        [] backend::LoomWord => everything;
        [] backend::Shuttle => everything;
        [] backend::Observed<Native, Unmoved> => everything;
        [] backend::Passage => everything;
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
