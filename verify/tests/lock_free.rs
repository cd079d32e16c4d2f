//! A primitive that keeps its state in an atomic word, and only its waker under a lock.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::{BlockingBackend, Word};
use reveille::protocol::{Bits, StateLock, WakerSlot};
use reveille_verify::{
    Call, Class, GenericSubject, Mode, Operation, Plan, Profile, Report, Role, Spec, Started,
    Subject, Value, explore,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A waiter that registers does not look again.
    Forgetful,
    /// The waiter is woken before the gate is open.
    WakesFirst,
}

const OPEN: usize = 1;

struct Gate<B: BlockingBackend> {
    word: B::Word,
    waiting: StateLock<WakerSlot, B>,
    fault: Fault,
}

impl<B: BlockingBackend> Gate<B> {
    fn is_open(&self) -> bool {
        self.word.load_acquire() == OPEN
    }

    fn set(&self) {
        let mut found = self.word.load_relaxed();
        while let Err(now) = self.word.update(found, OPEN) {
            found = now;
        }
    }

    fn wake(&self) {
        self.waiting
            .with(|section| section.wakes.wake(section.state));
    }

    fn open(&self) {
        if self.fault == Fault::WakesFirst {
            self.wake();
            self.set();
        } else {
            self.set();
            self.wake();
        }
    }

    fn poll_opened(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_open() {
            return Poll::Ready(());
        }
        self.waiting.poll(cx, true, |section, registration| {
            if self.is_open() && self.fault != Fault::Forgetful {
                return Ok(());
            }
            Err(registration.register(section.state))
        })
    }
}

#[derive(Clone, Debug)]
enum Op {
    Open,
    Opened,
}

/// Whether the gate is open.
struct GateSpec;

impl Spec for GateSpec {
    type Op = Op;
    type Ret = ();
    type State = bool;

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, &open: &bool, call: Call<'_, Op>) -> Vec<(bool, ())> {
        match call.op {
            Op::Open => vec![(true, ())],
            Op::Opened if open => vec![(true, ())],
            Op::Opened => vec![],
        }
    }
}

struct GateOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

impl<B: BlockingBackend> Subject for GateOn<B> {
    type Op = Op;
    type Ret = ();
    type Spec = GateSpec;
    type Actor = Arc<Gate<B>>;

    fn spec(&self) -> GateSpec {
        GateSpec
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let open = Operation::immediate("open", Op::Open).spanning();
        let opened = Operation::future("opened", Op::Opened).spanning();
        vec![
            Role {
                name: "porter",
                ops: vec![open],
                symmetry: 0,
            },
            Role {
                name: "guest",
                ops: vec![opened.keeps_waker("until the gate opens")],
                symmetry: 1,
            },
        ]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Gate<B>>> {
        let gate = Arc::new(Gate {
            word: B::Word::new(0),
            waiting: StateLock::new_in(Bits::EMPTY, WakerSlot::new()),
            fault: self.fault,
        });
        vec![gate; participants]
    }

    fn start<'a>(
        &self,
        gate: &'a mut Arc<Gate<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, ()> {
        match call.op {
            Op::Open => {
                gate.open();
                Started::Done(())
            }
            Op::Opened => Started::future(poll_fn(|cx| gate.poll_opened(cx))),
        }
    }
}

struct Gates(Fault);

impl GenericSubject for Gates {
    type On<B: BlockingBackend> = GateOn<B>;

    fn on<B: BlockingBackend>(&self) -> GateOn<B> {
        GateOn {
            fault: self.0,
            backend: PhantomData,
        }
    }
}

fn run(fault: Fault, mode: Mode) -> Report {
    let plan = Plan::of(mode, Profile::Quick);
    explore(&Gates(fault), "lock-free-gate", mode, &plan)
}

#[test]
fn a_gate_of_one_word_holds_in_every_mode() {
    for mode in Mode::ALL {
        let report = run(Fault::None, mode);
        assert!(report.holds(), "{report}");
    }
}

#[test]
fn a_lost_wake_up_between_two_accesses_is_found_by_loom() {
    for fault in [Fault::Forgetful, Fault::WakesFirst] {
        for mode in [Mode::Sections, Mode::Accesses] {
            let report = run(fault, mode);
            let failure = report.failures.first();
            let failure = failure.unwrap_or_else(|| panic!("{fault:?}: {report}"));
            assert_eq!(failure.class, Class::LostWakeUp, "{report}");
            assert_eq!(failure.program, "open/opened", "{report}");
        }
    }
    // On fibers an access to the word is no step, so nothing comes between it and the
    // section before it.
    assert!(run(Fault::WakesFirst, Mode::Exhaustive).holds());
}
