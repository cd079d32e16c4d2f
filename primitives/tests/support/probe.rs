//! Wakers that count what is done with them, and do what a test tells them to.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use reveille::backend::{Hooks, hooked};

/// What can be done with a waker. Each is a call of foreign code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Clone,
    Wake,
    Drop,
}

/// A task, as far as its waker shows one.
///
/// Wakers go to other threads, so the counts are atomic. What else a waker does is
/// kept on the thread of the test, which may give it things that are not `Send`.
pub(crate) struct Probe {
    task: Arc<Task>,
    waker: Waker,
}

#[derive(Default)]
struct Task {
    clones: AtomicUsize,
    wakes: AtomicUsize,
    drops: AtomicUsize,
}

type Act = Box<dyn FnOnce()>;

thread_local! {
    static ACTS: RefCell<Vec<(usize, Event, Act)>> = const { RefCell::new(Vec::new()) };
}

impl Task {
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Counts the event, then does what is due. The act is taken out first, since it
    /// may cause further events of the same waker.
    fn happened(&self, event: Event) {
        let count = match event {
            Event::Clone => &self.clones,
            Event::Wake => &self.wakes,
            Event::Drop => &self.drops,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let act = ACTS.try_with(|acts| {
            let mut acts = acts.borrow_mut();
            let due = acts
                .iter()
                .position(|(task, when, _)| *task == self.id() && *when == event)?;
            Some(acts.remove(due).2)
        });
        if let Ok(Some(act)) = act {
            act();
        }
    }
}

impl Hooks for Task {
    fn cloned(&self) {
        self.happened(Event::Clone);
    }

    fn woken(&self) {
        self.happened(Event::Wake);
    }

    fn dropped(&self) {
        self.happened(Event::Drop);
    }
}

impl Probe {
    pub(crate) fn new() -> Self {
        let task = Arc::new(Task::default());
        let waker = hooked(task.clone());
        Self { task, waker }
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(crate) fn cx(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Does `act` at the next `event`, once.
    pub(crate) fn on(&self, event: Event, act: impl FnOnce() + 'static) {
        ACTS.with_borrow_mut(|acts| acts.push((self.task.id(), event, Box::new(act))));
    }

    /// Panics at the next `event`, unless a panic unwinds, so that a test that fails
    /// does not abort.
    pub(crate) fn panic_on(&self, event: Event) {
        self.on(event, move || {
            if !std::thread::panicking() {
                panic!("the waker's {event:?} panics");
            }
        });
    }

    /// Panics at the next `event`, even if that is a second panic.
    pub(crate) fn panic_again_on(&self, event: Event) {
        self.on(event, move || panic!("the waker's {event:?} panics"));
    }

    /// Returns the number of acts given to `on` that have not run yet.
    pub(crate) fn acts_left(&self) -> usize {
        ACTS.with_borrow(|acts| {
            let mine = |act: &&(usize, Event, Act)| act.0 == self.task.id();
            acts.iter().filter(mine).count()
        })
    }

    pub(crate) fn clones(&self) -> usize {
        self.task.clones.load(Ordering::Relaxed)
    }

    pub(crate) fn wakes(&self) -> usize {
        self.task.wakes.load(Ordering::Relaxed)
    }

    pub(crate) fn drops(&self) -> usize {
        self.task.drops.load(Ordering::Relaxed)
    }

    /// Returns how many of its wakers are kept somewhere, besides its own.
    pub(crate) fn kept(&self) -> usize {
        Arc::strong_count(&self.task) - 2
    }
}
