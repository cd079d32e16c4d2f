use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::support::probe::{Event, Probe};
use crate::support::token::Token;
use crate::table::{Completer, End, Row, Scene, Waiter};
use crate::with_each;

/// One scene, within reach of the test and of the wakers that it uses. A side that is
/// in a call is borrowed by it, so a waker reaches the other side.
#[derive(Clone)]
struct Stage {
    waiter: Rc<RefCell<Option<Box<dyn Waiter>>>>,
    completer: Rc<RefCell<Option<Box<dyn Completer>>>>,
    /// The end of the wait.
    end: Rc<Cell<Option<End>>>,
    /// The number of calls back into the primitive.
    entries: Rc<Cell<usize>>,
}

impl Stage {
    fn set(row: &Row) -> Self {
        let Scene { waiter, completer } = row.scene();
        Self {
            waiter: Rc::new(RefCell::new(waiter)),
            completer: Rc::new(RefCell::new(completer)),
            end: Rc::default(),
            entries: Rc::default(),
        }
    }

    /// Calls `f` with a side that is there and not in a call already.
    fn reach<S>(side: &RefCell<Option<S>>, f: impl FnOnce(&mut S)) -> bool {
        let Ok(mut side) = side.try_borrow_mut() else {
            return false;
        };
        side.as_mut().map(f).is_some()
    }

    /// Drops a side that is there and not in a call already. It is not borrowed
    /// meanwhile, since dropping it makes calls too.
    fn dismiss<S>(side: &RefCell<Option<S>>) -> bool {
        let side = side.try_borrow_mut().ok().and_then(|mut side| side.take());
        side.is_some()
    }

    fn poll(&self, waker: &Waker) -> bool {
        Self::reach(&self.waiter, |waiter| {
            if self.end.get().is_none()
                && let Poll::Ready(end) = waiter.poll(&mut Context::from_waker(waker))
            {
                self.end.set(Some(end));
            }
        })
    }

    fn cancel(&self) -> bool {
        Self::dismiss(&self.waiter)
    }

    fn touch(&self) -> bool {
        Self::reach(&self.completer, |completer| completer.touch())
    }

    fn complete(&self) -> bool {
        Self::reach(&self.completer, |completer| {
            completer.complete();
        })
    }

    fn leave(&self) -> bool {
        Self::dismiss(&self.completer)
    }

    /// Calls back into the primitive, from within a waker.
    fn enter(&self, entry: Entry) {
        let entered = match entry {
            Entry::Touch => self.touch(),
            Entry::Complete => self.complete(),
            Entry::Leave => self.leave(),
            Entry::Poll => self.poll(Waker::noop()),
            Entry::Cancel => self.cancel(),
        };
        assert!(entered, "a side is free while the other is in a call");
        self.entries.set(self.entries.get() + 1);
    }
}

/// What a waker calls.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// Calls what ends nothing on the completing side.
    Touch,
    /// Completes the wait.
    Complete,
    /// Drops the completing side.
    Leave,
    /// Polls the wait again, with another waker.
    Poll,
    /// Drops the wait.
    Cancel,
}

/// What is being done with the waker when it makes its call.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The first poll registers it.
    Register,
    /// A poll with it replaces another.
    Replace,
    /// A poll with another displaces it.
    Displace,
    /// The wait is dropped.
    Remove,
    /// The wait is completed.
    Complete,
    /// The completing side leaves.
    Leave,
}

/// The pairs of a step and an event that occur, each with the calls that are possible
/// on the side that is not in a call itself.
const STEPS: [(Step, Event, &[Entry]); 6] = {
    const COMPLETER: &[Entry] = &[Entry::Touch, Entry::Complete, Entry::Leave];
    const WAITER: &[Entry] = &[Entry::Poll, Entry::Cancel];
    [
        (Step::Register, Event::Clone, COMPLETER),
        (Step::Replace, Event::Clone, COMPLETER),
        (Step::Displace, Event::Drop, COMPLETER),
        (Step::Remove, Event::Drop, COMPLETER),
        (Step::Complete, Event::Wake, WAITER),
        (Step::Leave, Event::Wake, WAITER),
    ]
};

fn plays(row: &Row, step: Step, event: Event, entry: Entry) {
    let what = format!("{step:?}, {event:?} calls {entry:?}");
    let stage = Stage::set(row);
    let (task, other) = (Probe::new(), Probe::new());
    match step {
        Step::Register => {}
        Step::Replace => drop(stage.poll(other.waker())),
        _ => drop(stage.poll(task.waker())),
    }
    task.on(event, {
        let stage = stage.clone();
        move || stage.enter(entry)
    });
    let latest = match step {
        Step::Displace => &other,
        _ => &task,
    };
    let done = match step {
        Step::Register | Step::Replace | Step::Displace => stage.poll(latest.waker()),
        Step::Remove => stage.cancel(),
        Step::Complete => stage.complete(),
        Step::Leave => stage.leave(),
    };
    assert!(
        done && task.acts_left() == 0,
        "{what}: the waker was called"
    );
    assert_eq!(stage.entries.get(), 1, "{what}: and came through");

    // What was called from within is done, and the rest goes on. No wake was lost:
    // the wait has its end, or its latest task was woken.
    let left = stage.completer.borrow().is_none();
    stage.complete();
    if stage.waiter.borrow().is_some() {
        let end = if left { row.left } else { Some(End::Result) };
        if end.is_some() && stage.end.get().is_none() {
            assert_eq!(latest.wakes(), 1, "{what}: the latest waker was woken");
            stage.poll(latest.waker());
        }
        assert_eq!(stage.end.get(), end, "{what}");
    }
    drop((stage.waiter.take(), stage.completer.take()));
    assert_eq!((task.kept(), other.kept()), (0, 0), "{what}");
    assert_eq!(Token::alive(), 0, "{what}");
}

#[test]
fn re_01_a_waker_that_calls_back_comes_through() {
    with_each(|row| {
        for (step, event, entries) in STEPS {
            // If leaving ends no wait, it wakes no task.
            if matches!(step, Step::Leave) && row.left.is_none() {
                continue;
            }
            for &entry in entries {
                plays(row, step, event, entry);
            }
        }
    });
}
