//! What the loops share: polling once, scenes that are set up once, and two threads that
//! already run.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};

/// Polls with a waker that does nothing.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future that has nothing to wait for.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future has to wait"),
    }
}

/// Futures side by side, as those of a `join` are: without a box for each.
pub(crate) struct Row<F>(Box<[F]>);

impl<F: Future> Row<F> {
    pub(crate) fn of(futures: impl Iterator<Item = F>) -> Self {
        Self(futures.collect())
    }

    #[allow(unsafe_code, reason = "a slice cannot be pinned otherwise")]
    pub(crate) fn each(&mut self, mut f: impl FnMut(Pin<&mut F>)) {
        for future in &mut self.0 {
            // SAFETY: nothing else gives out the slice, so no future in it moves before
            // it is dropped.
            f(unsafe { Pin::new_unchecked(future) });
        }
    }
}

thread_local! {
    static SCENES: RefCell<HashMap<TypeId, Box<dyn Any>>> = RefCell::default();
}

/// Runs a loop in a scene that is costly to set up. The scene is kept for the next call.
pub(crate) fn in_scene<S: Default + 'static>(run: impl FnOnce(&mut S)) {
    let scene = SCENES.with_borrow_mut(|scenes| scenes.remove(&TypeId::of::<S>()));
    let mut scene = scene.unwrap_or_else(|| Box::<S>::default());
    run(scene
        .downcast_mut()
        .expect("a scene is stored under its type"));
    SCENES.with_borrow_mut(|scenes| scenes.insert(TypeId::of::<S>(), scene));
}

type Job = Arc<dyn Fn() + Send + Sync>;

/// A second thread, which waits for work.
struct Second {
    job: Mutex<Option<Job>>,
    gate: Barrier,
}

static SECOND: LazyLock<&'static Second> = LazyLock::new(|| {
    let second: &'static Second = Box::leak(Box::new(Second {
        job: Mutex::new(None),
        gate: Barrier::new(2),
    }));
    std::thread::spawn(move || {
        loop {
            second.gate.wait();
            let job = second.job.lock().unwrap().clone();
            job.expect("the job is stored before the gate opens")();
            second.gate.wait();
        }
    });
    second
});

/// Does the same on two threads at once.
pub(crate) fn on_two_threads(job: impl Fn() + Send + Sync + 'static) {
    // One user at a time, because tests run in parallel.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap();
    let job: Job = Arc::new(job);
    *SECOND.job.lock().unwrap() = Some(job.clone());
    SECOND.gate.wait();
    job();
    SECOND.gate.wait();
    *SECOND.job.lock().unwrap() = None;
}

/// A runtime of tokio with two workers.
pub(crate) static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("tokio starts")
});
