//! Threads that block one another while a third is suspended. Nothing moves any more,
//! and no engine may take that for the end of the execution.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock, WakerSlot};

use crate::run;
use crate::run::token::Token;
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::value::Value;
use crate::subject::verdict::{Class, Verdict};
use crate::subject::{GenericSubject, Started, Subject};

const WAITED: Bits = Bits::new(1);

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Reports that it waits, and waits for ever.
    Wait,
    /// Takes the first lock, and within it the second if another operation waits.
    Inward,
    /// Takes them in the other order, or in the same order if the subject is mended.
    Outward,
}

struct Locks<B: BlockingBackend> {
    waits: StateLock<WakerSlot, B>,
    pair: [StateLock<(), B>; 2],
}

impl<B: BlockingBackend> Locks<B> {
    fn nest<'a>(&self, first: usize) -> Started<'a, ()> {
        if self.waits.load().contains(WAITED) {
            self.pair[first].with(|_| self.pair[1 - first].with(|_| ()));
        }
        Started::Done(())
    }
}

/// Two locks, taken in two orders or in one.
struct Nested<B> {
    mended: bool,
    backend: PhantomData<fn() -> B>,
}

impl<B: BlockingBackend> Subject for Nested<B> {
    type Op = Op;
    type Ret = ();
    type Spec = Free;
    type Actor = Arc<Locks<B>>;

    fn spec(&self) -> Free {
        Free
    }

    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        let role = |name, symmetry, operation| Role {
            name,
            ops: vec![operation],
            symmetry,
        };
        vec![
            role("waiter", 0, Operation::future("wait", Op::Wait)),
            role("inward", 1, Operation::immediate("ab", Op::Inward)),
            role("outward", 2, Operation::immediate("ba", Op::Outward)),
        ]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Locks<B>>> {
        let lock = || StateLock::new_in(Bits::EMPTY, ());
        let locks = Arc::new(Locks {
            waits: StateLock::new_in(Bits::EMPTY, WakerSlot::new()),
            pair: [lock(), lock()],
        });
        vec![locks; participants]
    }

    fn start<'a>(
        &self,
        locks: &'a mut Arc<Locks<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, ()> {
        match call.op {
            Op::Wait => Started::future(poll_fn(|cx| {
                locks.waits.poll(cx, true, |section, registration| {
                    section.bits.insert(WAITED);
                    Err(registration.register(section.state))
                })
            })),
            Op::Inward => locks.nest(0),
            Op::Outward => locks.nest(usize::from(!self.mended)),
        }
    }
}

/// The wait never becomes due. The other operations end.
struct Free;

impl Spec for Free {
    type Op = Op;
    type Ret = ();
    type State = ();

    fn initial(&self) {}

    fn step(&self, (): &(), call: Call<'_, Op>) -> Vec<((), ())> {
        match call.op {
            Op::Wait => Vec::new(),
            Op::Inward | Op::Outward => vec![((), ())],
        }
    }
}

struct Nesting {
    mended: bool,
}

impl GenericSubject for Nesting {
    type On<B: BlockingBackend> = Nested<B>;

    fn on<B: BlockingBackend>(&self) -> Nested<B> {
        Nested {
            mended: self.mended,
            backend: PhantomData,
        }
    }
}

fn plan(mode: Mode) -> Plan {
    let mut plan = Plan::of(mode, Profile::Quick);
    plan.bound.participants = 3;
    plan.bound.operations = 1;
    plan.bound.total = 3;
    plan.bound.non_default = 0;
    plan
}

#[test]
fn what_blocks_for_ever_is_no_end() {
    for mode in [Mode::Sections, Mode::Exhaustive, Mode::Random, Mode::Pct] {
        let report = run::run(&Nesting { mended: false }, "nested", mode, &plan(mode));
        let [failure] = &report.failures[..] else {
            panic!("it was not caught: {report}");
        };
        assert_eq!(failure.class, Class::Deadlock, "{report}");
        assert_eq!(failure.program, "wait/ab/ba");
        let token = Token::parse(&failure.token).expect("it is whole");
        let again = run::replay(&Nesting { mended: false }, &token);
        assert_eq!(again.expect("it fails again").class, Class::Deadlock);
    }
}

#[test]
fn who_blocks_whom_is_said() {
    let mode = Mode::Exhaustive;
    let report = run::run(&Nesting { mended: false }, "nested", mode, &plan(mode));
    let sentence = &report.failures[0].sentence;
    assert!(sentence.contains("inward waits for lock"), "{sentence}");
    assert!(sentence.contains("which outward holds"), "{sentence}");
    // Later runs in the same process are not affected.
    let report = run::run(&Nesting { mended: true }, "nested", mode, &plan(mode));
    assert!(report.holds(), "{report}");
    assert_eq!(report.verdict, Verdict::Complete);
}
