//! Primitives that know nothing of backends: one by hand over a std mutex, in
//! versions that are right and versions that are not.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use reveille_verify::{
    Call, Class, Operation, Profile, Report, Role, Spec, Started, Subject, Value, ValueId, Verdict,
    check_foreign, replay_foreign,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The first waker is kept.
    FirstWakerKept,
    /// A value is stored, and no waker is called.
    NoWake,
    /// A wait that is dropped takes the value along.
    DroppedWithWait,
    /// A value that is not taken is never dropped.
    ValueLost,
}

/// A mailbox for one value at a time: a later one comes instead.
struct Mailbox {
    inner: Mutex<Inner>,
    fault: Fault,
}

#[derive(Default)]
struct Inner {
    value: Option<Value>,
    waiting: Option<Waker>,
}

impl Mailbox {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, value: Value) {
        let mut inner = self.inner();
        let old = inner.value.replace(value);
        let waiting = match self.fault {
            Fault::NoWake => None,
            _ => inner.waiting.take(),
        };
        drop(inner);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
        drop(old);
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Value> {
        if let Some(value) = self.inner().value.take() {
            return Poll::Ready(value);
        }
        let waker = cx.waker().clone();
        let mut inner = self.inner();
        // Back with it where one has come since: its drop is foreign code, and
        // must find no value in our hands.
        if inner.value.is_some() {
            drop(inner);
            drop(waker);
            return self.poll_take(cx);
        }
        let old = match &inner.waiting {
            Some(_) if self.fault == Fault::FirstWakerKept => Some(waker),
            _ => inner.waiting.replace(waker),
        };
        drop(inner);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        if self.fault == Fault::ValueLost {
            std::mem::forget(self.inner().value.take());
        }
    }
}

/// The wait for a value.
struct Take<'a>(&'a Mailbox, bool);

impl Future for Take<'_> {
    type Output = ValueId;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ValueId> {
        let poll = self.0.poll_take(cx);
        self.1 |= poll.is_ready();
        poll.map(|value| value.id())
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        if self.0.fault == Fault::DroppedWithWait && !self.1 {
            drop(self.0.inner().value.take());
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Put,
    TryTake,
    Take,
    /// Waits without an end, on nothing.
    Pend,
}

struct Mail(Fault);

impl Subject for Mail {
    type Op = Op;
    type Ret = Option<ValueId>;
    type Spec = MailSpec;
    type Actor = Arc<Mailbox>;

    fn spec(&self) -> MailSpec {
        MailSpec
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            Role {
                name: "sender",
                ops: vec![Operation::immediate("put", Op::Put)],
                symmetry: 0,
            },
            Role {
                name: "receiver",
                ops: vec![
                    Operation::future("take", Op::Take).keeps_waker("until a put"),
                    Operation::immediate("try_take", Op::TryTake),
                    Operation::future("pend", Op::Pend),
                ],
                symmetry: 1,
            },
        ]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Mailbox>> {
        let mailbox = Arc::new(Mailbox {
            inner: Mutex::default(),
            fault: self.0,
        });
        vec![mailbox; participants]
    }

    fn start<'a>(
        &self,
        mailbox: &'a mut Arc<Mailbox>,
        call: Call<'_, Op>,
        value: &dyn Fn() -> Value,
    ) -> Started<'a, Option<ValueId>> {
        match call.op {
            Op::Put => {
                mailbox.put(value());
                Started::Done(None)
            }
            Op::TryTake => {
                let value = mailbox.inner().value.take();
                Started::Done(value.map(|value| value.id()))
            }
            Op::Take => {
                let take = Take(mailbox, false);
                Started::future(async move { Some(take.await) })
            }
            Op::Pend => Started::future(poll_fn(|_| Poll::Pending)),
        }
    }
}

/// The value that is there.
struct MailSpec;

impl Spec for MailSpec {
    type Op = Op;
    type Ret = Option<ValueId>;
    type State = Option<ValueId>;

    fn initial(&self) -> Self::State {
        None
    }

    fn step(
        &self,
        &state: &Option<ValueId>,
        call: Call<'_, Op>,
    ) -> Vec<(Option<ValueId>, Option<ValueId>)> {
        match call.op {
            Op::Put => vec![(Some(call.value()), None)],
            Op::TryTake => vec![(None, state)],
            Op::Take => state.map(|value| (None, Some(value))).into_iter().collect(),
            Op::Pend => vec![],
        }
    }
}

/// The reports of the two engines that run it: without wakers that panic. What these
/// break is in reports of their own.
fn run(fault: Fault) -> [Report; 2] {
    let mut reports = check_foreign(Mail(fault), "mailbox", Profile::Quick);
    let bounds: Vec<bool> = reports
        .iter()
        .map(|report| report.bound.contains("with panics"))
        .collect();
    assert_eq!(bounds, [false, true, false, true]);
    reports.retain(|report| !report.bound.contains("with panics"));
    reports.try_into().expect("two engines run it")
}

#[test]
fn what_is_right_holds() {
    let [steps, threads] = run(Fault::None);
    assert!(steps.holds(), "{steps}");
    assert_eq!(steps.engine, "sequential");
    assert_eq!(steps.verdict, Verdict::Complete);
    assert!(threads.holds(), "{threads}");
    assert_eq!(threads.engine, "stress");
    assert_eq!(threads.verdict, Verdict::Sampled);
}

#[test]
fn what_is_wrong_is_told_apart() {
    for (fault, class, program) in [
        (Fault::FirstWakerKept, Class::StaleWaker, "put/take.repoll"),
        (Fault::NoWake, Class::LostWakeUp, "put/take"),
        (
            Fault::DroppedWithWait,
            Class::CancellationRace,
            "put/take.cancel,take",
        ),
        (Fault::ValueLost, Class::Leak, "put/"),
    ] {
        let [report, _] = run(fault);
        let Some(failure) = report.failures.first() else {
            panic!("{fault:?} was not caught: {report}");
        };
        assert_eq!(failure.class, class, "{report}");
        assert_eq!(failure.program, program, "{report}");

        let again = replay_foreign(Mail(fault), &failure.token).expect("it fails again");
        assert_eq!(again.table, failure.table);
        let mended = replay_foreign(Mail(Fault::None), &failure.token);
        assert!(mended.is_err_and(|sentence| sentence.contains("did not fail")));
    }
}

/// Real threads find what does not depend on their timing.
#[test]
fn real_threads_find_it_too() {
    for (fault, class) in [
        (Fault::NoWake, Class::LostWakeUp),
        (Fault::ValueLost, Class::Leak),
    ] {
        let [_, report] = run(fault);
        assert_eq!(report.failures[0].class, class, "{report}");
    }
}
