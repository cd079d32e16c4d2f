//! A primitive that is verified from outside the suite: a gate, and a variant that
//! forgets a check. It prints the counterexample, and replays it by its token.

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock, WakerSlot};
use reveille_verify::{
    Call, Class, GenericSubject, Mode, Operation, Plan, Profile, Role, Spec, Started, Subject,
    Value, check, explore, replay,
};

const OPEN: Bits = Bits::new(1);

struct Gate<B: BlockingBackend> {
    lock: StateLock<WakerSlot, B>,
    forgetful: bool,
}

impl<B: BlockingBackend> Gate<B> {
    fn open(&self) {
        self.lock.with(|section| {
            section.bits.insert(OPEN);
            section.wakes.wake(section.state);
        });
    }

    fn poll_opened(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.lock.load().contains(OPEN) {
            return Poll::Ready(());
        }
        self.lock.poll(cx, true, |section, registration| {
            // The gate may have been opened since.
            if section.bits.contains(OPEN) && !self.forgetful {
                return Ok(());
            }
            Err(registration.register(section.state))
        })
    }
}

// The operations.
#[derive(Clone, Debug)]
enum Op {
    Open,
    Opened,
}

// What the operations mean, one at a time.
struct GateSpec;

impl Spec for GateSpec {
    type Op = Op;
    type Ret = ();
    type State = bool; // whether it is open

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, &open: &bool, call: Call<'_, Op>) -> Vec<(bool, ())> {
        match call.op {
            Op::Open => vec![(true, ())],
            Op::Opened if open => vec![(true, ())],
            Op::Opened => vec![], // the task waits
        }
    }
}

// How the operations are started on the real gate.
struct GateOn<B> {
    forgetful: bool,
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
        let open = vec![Operation::immediate("open", Op::Open)];
        let opened = Operation::future("opened", Op::Opened).keeps_waker("until the gate opens");
        vec![
            Role {
                name: "porter",
                ops: open,
                symmetry: 0,
            },
            Role {
                name: "guest",
                ops: vec![opened],
                symmetry: 1,
            },
        ]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Gate<B>>> {
        let gate = Arc::new(Gate {
            lock: StateLock::new_in(Bits::EMPTY, WakerSlot::new()),
            forgetful: self.forgetful,
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

// The same over every backend, so that every engine can run it.
struct Gates {
    forgetful: bool,
}

impl GenericSubject for Gates {
    type On<B: BlockingBackend> = GateOn<B>;

    fn on<B: BlockingBackend>(&self) -> GateOn<B> {
        GateOn {
            forgetful: self.forgetful,
            backend: PhantomData,
        }
    }
}

fn main() {
    // Check it under every engine.
    for report in check(&Gates { forgetful: false }, "gate", Profile::Quick) {
        assert!(report.holds(), "{report}");
    }

    // Explore the broken gate under one engine, and show what the failure looks like.
    let broken = Gates { forgetful: true };
    let plan = Plan::of(Mode::Exhaustive, Profile::Quick);
    let report = explore(&broken, "forgetful-gate", Mode::Exhaustive, &plan);
    let failure = &report.failures[0];
    assert_eq!(failure.class, Class::LostWakeUp);
    assert_eq!(failure.program, "open/opened");
    println!("{failure}");

    // The token runs exactly that execution again.
    let again = replay(&broken, &failure.token).unwrap();
    assert_eq!(again.table, failure.table);
}

#[test]
fn what_is_printed_holds() {
    main();
}
