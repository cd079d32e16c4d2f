//! The subjects: each a crate and a primitive of it.

use reveille_verify::Suite;

use crate::crates::*;
use crate::kinds::channel::Channels;
use crate::kinds::event::{Notifies, event, signal};
use crate::kinds::lock::Locks;
use crate::kinds::oneshot::Oneshots;
use crate::kinds::semaphore::Semaphores;
use crate::kinds::waker_cell::waker_cell;

/// The names of all subjects, each `crate/primitive`, in the order of the table.
pub(crate) const NAMES: &[&str] = &[
    "tokio/oneshot",
    "tokio/mpsc",
    "tokio/mpsc-many",
    "tokio/mpsc-unbounded",
    "tokio/notify",
    "tokio/mutex",
    "tokio/rwlock",
    "tokio/semaphore",
    "futures/oneshot",
    "futures/mpsc-unbounded",
    "futures/mutex",
    "futures/waker-cell",
    "async-lock/mutex",
    "async-lock/rwlock",
    "async-lock/semaphore",
    "asyncband/oneshot",
    "asyncband/mpsc",
    "asyncband/mpsc-many",
    "asyncband/mpmc",
    "asyncband/mpmc-many",
    "asyncband/notify",
    "asyncband/event",
    "asyncband/mutex",
    "asyncband/rwlock",
    "asyncband/semaphore",
    "futures-intrusive/event",
    "futures-intrusive/mutex",
    "futures-intrusive/semaphore",
    "maitake-sync/notify",
    "maitake-sync/cell",
    "maitake-sync/mutex",
    "maitake-sync/rwlock",
    "maitake-sync/semaphore",
    "embassy-sync/signal",
    "embassy-sync/mutex",
    "oneshot/oneshot",
    "async-oneshot/oneshot",
    "catty/oneshot",
    "async-channel/mpmc",
    "async-channel/mpmc-many",
    "flume/mpmc",
    "flume/mpmc-many",
    "kanal/mpmc",
    "kanal/mpmc-many",
    "tachyonix/mpsc",
    "tachyonix/mpsc-many",
    "thingbuf/mpsc",
    "thingbuf/mpsc-many",
    "postage/mpsc",
    "postage/mpsc-many",
    "atomic-waker/waker-cell",
    "diatomic-waker/waker-cell",
];

/// The subjects that are also run with wakers that panic.
pub(crate) const PANICS: &[&str] = &[
    "futures/mutex",
    "futures/waker-cell",
    "async-lock/mutex",
    "atomic-waker/waker-cell",
    "diatomic-waker/waker-cell",
];

/// Returns the suite of all subjects.
pub(crate) fn suite() -> Suite {
    Suite::new("cargo verify audit")
        .foreign("tokio/oneshot", Oneshots::<TokioOneshot>::new())
        .foreign("tokio/mpsc", Channels::<TokioMpsc>::new(1, 1))
        .foreign("tokio/mpsc-many", Channels::<TokioMpsc>::new(2, 1))
        .foreign(
            "tokio/mpsc-unbounded",
            Channels::<TokioUnbounded>::new(1, 1),
        )
        .foreign("tokio/notify", Notifies::<TokioNotify>::new())
        .foreign("tokio/mutex", Locks::<TokioMutex>::new())
        .foreign("tokio/rwlock", Locks::<TokioRwLock>::new())
        .foreign("tokio/semaphore", Semaphores::<TokioSemaphore>::new())
        .foreign("futures/oneshot", Oneshots::<FuturesOneshot>::new())
        .foreign(
            "futures/mpsc-unbounded",
            Channels::<FuturesUnbounded>::new(1, 1),
        )
        .foreign("futures/mutex", Locks::<FuturesMutex>::new())
        .foreign("futures/waker-cell", waker_cell::<FuturesCell>())
        .foreign("async-lock/mutex", Locks::<AsyncLockMutex>::new())
        .foreign("async-lock/rwlock", Locks::<AsyncLockRwLock>::new())
        .foreign(
            "async-lock/semaphore",
            Semaphores::<AsyncLockSemaphore>::new(),
        )
        .foreign("asyncband/oneshot", Oneshots::<AsyncbandOneshot>::new())
        .foreign("asyncband/mpsc", Channels::<AsyncbandMpsc>::new(1, 1))
        .foreign("asyncband/mpsc-many", Channels::<AsyncbandMpsc>::new(2, 1))
        .foreign("asyncband/mpmc", Channels::<AsyncbandMpmc>::new(1, 1))
        .foreign("asyncband/mpmc-many", Channels::<AsyncbandMpmc>::new(1, 2))
        .foreign("asyncband/notify", Notifies::<AsyncbandNotify>::new())
        .foreign("asyncband/event", event::<AsyncbandEvent>())
        .foreign("asyncband/mutex", Locks::<AsyncbandMutex>::new())
        .foreign("asyncband/rwlock", Locks::<AsyncbandRwLock>::new())
        .foreign(
            "asyncband/semaphore",
            Semaphores::<AsyncbandSemaphore>::new(),
        )
        .foreign("futures-intrusive/event", event::<IntrusiveEvent>())
        .foreign("futures-intrusive/mutex", Locks::<IntrusiveMutex>::new())
        .foreign(
            "futures-intrusive/semaphore",
            Semaphores::<IntrusiveSemaphore>::new(),
        )
        .foreign("maitake-sync/notify", Notifies::<MaitakeQueue>::new())
        .foreign("maitake-sync/cell", signal::<MaitakeCell>())
        .foreign("maitake-sync/mutex", Locks::<MaitakeMutex>::new())
        .foreign("maitake-sync/rwlock", Locks::<MaitakeRwLock>::new())
        .foreign(
            "maitake-sync/semaphore",
            Semaphores::<MaitakeSemaphore>::new(),
        )
        .foreign("embassy-sync/signal", signal::<EmbassySignal>())
        .foreign(
            "embassy-sync/mutex",
            Locks::<EmbassyMutex>::for_one_waiter(),
        )
        .foreign("oneshot/oneshot", Oneshots::<OneshotOneshot>::new())
        .foreign("async-oneshot/oneshot", Oneshots::<AsyncOneshot>::new())
        .foreign("catty/oneshot", Oneshots::<CattyOneshot>::new())
        .foreign("async-channel/mpmc", Channels::<AsyncChannel>::new(1, 1))
        .foreign(
            "async-channel/mpmc-many",
            Channels::<AsyncChannel>::new(1, 2),
        )
        .foreign("flume/mpmc", Channels::<Flume>::new(1, 1))
        .foreign("flume/mpmc-many", Channels::<Flume>::new(1, 2))
        .foreign("kanal/mpmc", Channels::<Kanal>::new(1, 1))
        .foreign("kanal/mpmc-many", Channels::<Kanal>::new(1, 2))
        .foreign("tachyonix/mpsc", Channels::<Tachyonix>::new(1, 1))
        .foreign("tachyonix/mpsc-many", Channels::<Tachyonix>::new(2, 1))
        .foreign("thingbuf/mpsc", Channels::<Thingbuf>::new(1, 1))
        .foreign("thingbuf/mpsc-many", Channels::<Thingbuf>::new(2, 1))
        .foreign("postage/mpsc", Channels::<PostageMpsc>::new(1, 1))
        .foreign("postage/mpsc-many", Channels::<PostageMpsc>::new(2, 1))
        .foreign("atomic-waker/waker-cell", waker_cell::<AtomicWakerCell>())
        .foreign("diatomic-waker/waker-cell", waker_cell::<DiatomicCell>())
}
