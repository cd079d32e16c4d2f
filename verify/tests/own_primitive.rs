//! The library, as an author of primitives uses it: a gate over the protocol,
//! in versions that are right and versions that are not.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, Parker, StateLock, WakerSlot};
use reveille_verify::{
    Call, Class, Engine, GenericSubject, Mode, Operation, Plan, Profile, Report, Role, Spec,
    Started, Subject, Value, Verdict, check, explore, replay,
};

const OPEN: Bits = Bits::new(1);

/// What is wrong with a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It checks again after it has registered, but ignores what it finds.
    Forgetful,
    /// As `Forgetful`, and the actor panics when it is dropped while a task waits at an
    /// open gate.
    ForgetfulAndFragile,
    /// As `Forgetful`, with only threads that block.
    ForgetfulBlocking,
    /// The actors panic when they are dropped.
    Fragile,
    /// Opening panics.
    Panics,
    /// It opens by itself.
    Ajar,
}

struct Gate<B: BlockingBackend> {
    lock: StateLock<[WakerSlot; 3], B>,
    fault: Fault,
}

impl<B: BlockingBackend> Gate<B> {
    fn open(&self) {
        assert!(self.fault != Fault::Panics, "the gate is stuck");
        self.lock.with(|section| {
            section.bits.insert(OPEN);
            for slot in section.state {
                section.wakes.wake(slot);
            }
        });
    }

    fn is_open(&self) -> bool {
        self.fault == Fault::Ajar || self.lock.load().contains(OPEN)
    }

    fn poll_opened(&self, participant_id: usize, cx: &mut Context<'_>) -> Poll<()> {
        if self.lock.load().contains(OPEN) {
            return Poll::Ready(());
        }
        let forgetful = matches!(
            self.fault,
            Fault::Forgetful | Fault::ForgetfulAndFragile | Fault::ForgetfulBlocking
        );
        self.lock.poll(cx, true, |section, registration| {
            if section.bits.contains(OPEN) && !forgetful {
                return Ok(());
            }
            Err(registration.register(&mut section.state[participant_id]))
        })
    }
}

/// What a participant holds.
struct Hold<B: BlockingBackend>(Arc<Gate<B>>);

impl<B: BlockingBackend> Drop for Hold<B> {
    fn drop(&mut self) {
        let broken = match self.0.fault {
            Fault::Fragile => true,
            Fault::ForgetfulAndFragile => self.0.lock.with(|section| {
                let waits = section.state.iter().any(WakerSlot::is_registered);
                section.bits.contains(OPEN) && waits
            }),
            _ => false,
        };
        assert!(!broken, "dropped, and broken");
    }
}

#[derive(Clone, Debug)]
enum Op {
    Open,
    IsOpen,
    Opened,
    BlockUntilOpened,
}

/// Whether the gate is open.
struct GateSpec;

impl Spec for GateSpec {
    type Op = Op;
    type Ret = bool;
    type State = bool;

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, &open: &bool, call: Call<'_, Op>) -> Vec<(bool, bool)> {
        match call.op {
            Op::Open => vec![(true, true)],
            Op::IsOpen => vec![(open, open)],
            Op::Opened | Op::BlockUntilOpened if open => vec![(true, true)],
            Op::Opened | Op::BlockUntilOpened => vec![],
        }
    }
}

struct Gates(Fault);

struct GateOn<B>(Fault, PhantomData<fn() -> B>);

impl GenericSubject for Gates {
    type On<B: BlockingBackend> = GateOn<B>;

    fn on<B: BlockingBackend>(&self) -> GateOn<B> {
        GateOn(self.0, PhantomData)
    }

    /// One operation of each is enough for a gate.
    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plan = Plan::of(mode, profile);
        plan.bound.total = plan.bound.total.min(2);
        plan.bound.operations = 1;
        vec![plan]
    }
}

impl<B: BlockingBackend> Subject for GateOn<B> {
    type Op = Op;
    type Ret = bool;
    type Spec = GateSpec;
    type Actor = Hold<B>;

    fn spec(&self) -> GateSpec {
        GateSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let mut ops = vec![
            Operation::immediate("open", Op::Open),
            Operation::immediate("is_open", Op::IsOpen),
            Operation::future("opened", Op::Opened).keeps_waker("until it opens"),
            Operation::blocking("block", Op::BlockUntilOpened),
        ];
        if self.0 == Fault::ForgetfulBlocking {
            ops.retain(|operation| operation.name != "opened");
        }
        let role = Role {
            name: "thread",
            ops,
            symmetry: 0,
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<Hold<B>> {
        let gate = Arc::new(Gate {
            lock: StateLock::new_in(Bits::EMPTY, Default::default()),
            fault: self.0,
        });
        (0..participants).map(|_| Hold(gate.clone())).collect()
    }

    fn start<'a>(
        &self,
        Hold(gate): &'a mut Hold<B>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, bool> {
        let (participant_id, gate) = (call.participant, &*gate);
        let opened = poll_fn(move |cx| gate.poll_opened(participant_id, cx).map(|()| true));
        match call.op {
            Op::Open => {
                gate.open();
                Started::Done(true)
            }
            Op::IsOpen => Started::Done(gate.is_open()),
            Op::Opened => Started::future(opened),
            Op::BlockUntilOpened => Started::Done(Parker::<B>::new().block_on(opened)),
        }
    }

    fn describe(&self, bits: Bits) -> String {
        let open = bits.contains(OPEN);
        if open { "open" } else { "shut" }.to_owned()
    }
}

/// One mode over programs of at most three operations.
fn under(fault: Fault, mode: Mode) -> Report {
    let mut plan = Plan::of(mode, Profile::Quick);
    plan.bound.total = 3;
    if let Some(drawn) = &mut plan.drawn {
        plan.bound.total = 4;
        *drawn = 100;
    }
    explore(&Gates(fault), "gate", mode, &plan)
}

#[track_caller]
fn caught(fault: Fault, mode: Mode, class: Class, sentence: &str) -> Report {
    let report = under(fault, mode);
    let Some(failure) = report.failures.first() else {
        panic!("it was not caught: {report}");
    };
    assert_eq!(failure.class, class, "{report}");
    assert!(failure.sentence.contains(sentence), "{report}");
    assert!(!report.holds());
    report
}

/// The modes that find what can be found, each time.
const SURE: [Mode; 3] = [Mode::Sections, Mode::Exhaustive, Mode::Random];

#[test]
fn every_engine_runs_it_in_one_call() {
    let reports = check(&Gates(Fault::None), "gate", Profile::Quick);
    let mut engines: Vec<_> = reports
        .iter()
        .map(|report| report.engine.as_str())
        .collect();
    engines.dedup();
    assert_eq!(engines, Engine::ALL.map(Engine::name));
    for report in reports {
        assert!(report.holds(), "{report}");
        assert_eq!(report.subject, "gate");
    }
}

#[test]
fn three_can_play() {
    let mut plan = Plan::of(Mode::Exhaustive, Profile::Quick);
    plan.bound.participants = 3;
    plan.bound.operations = 1;
    let report = explore(&Gates(Fault::None), "gate", Mode::Exhaustive, &plan);
    assert!(report.holds(), "{report}");
    assert_eq!(report.verdict, Verdict::Complete);
    let report = explore(&Gates(Fault::Forgetful), "gate", Mode::Exhaustive, &plan);
    assert_eq!(report.failures[0].program.split('/').count(), 3);
}

#[test]
fn a_lost_wake_up_is_found_and_drawn() {
    for mode in SURE {
        let report = caught(Fault::Forgetful, mode, Class::LostWakeUp, "for ever");
        let failure = &report.failures[0];
        let waits = ["open/opened", "opened/open", "open/block", "block/open"];
        assert!(waits.contains(&failure.program.as_str()), "{report}");
        assert!(failure.table.contains("[shut] -> [open]"), "{report}");
        let again = replay(&Gates(Fault::Forgetful), &failure.token).expect("it fails again");
        assert_eq!(again.to_string(), failure.to_string());
    }
}

/// A thread that blocks in vain is as lost as a future.
#[test]
fn who_blocks_for_ever_is_found() {
    for mode in SURE {
        let fault = Fault::ForgetfulBlocking;
        let report = caught(fault, mode, Class::LostWakeUp, "waits in block for ever");
        let program = &report.failures[0].program;
        assert!(
            ["open/block", "block/open"].contains(&program.as_str()),
            "{report}"
        );
    }
}

/// What the destructors do after a failure does not hide it.
#[test]
fn the_first_failure_is_the_one_reported() {
    for mode in SURE {
        caught(
            Fault::ForgetfulAndFragile,
            mode,
            Class::LostWakeUp,
            "for ever",
        );
    }
}

/// Where nothing was wrong before, what the destructors do is.
#[test]
fn a_destructor_that_panics_is_a_failure() {
    for mode in Mode::ALL {
        caught(Fault::Fragile, mode, Class::Panic, "dropped, and broken");
    }
}

#[test]
fn a_panic_is_a_failure() {
    for mode in Mode::ALL {
        caught(Fault::Panics, mode, Class::Panic, "the gate is stuck");
    }
}

#[test]
fn a_wrong_answer_is_a_failure() {
    for mode in Mode::ALL {
        let report = caught(Fault::Ajar, mode, Class::WrongResult, "is_open = true");
        let program = &report.failures[0].program;
        assert!(
            ["is_open/", "/is_open"].contains(&program.as_str()),
            "{report}"
        );
    }
}

#[test]
fn a_token_is_of_its_program() {
    let sentence = replay(&Gates(Fault::None), "gate").expect_err("it is none");
    assert!(sentence.contains("damaged"), "{sentence}");
}

#[test]
#[should_panic(expected = "cannot be the name of a subject")]
fn a_name_does_not_divide_a_token() {
    let plan = Plan::of(Mode::Steps, Profile::Quick);
    let _ = explore(&Gates(Fault::None), "my:gate", Mode::Steps, &plan);
}

/// A flag whose state is an atomic beside the lock: it is raised before the section.
struct Flags {
    /// Whether its operations are declared for what they are.
    spanning: bool,
}

struct FlagOn<B>(bool, PhantomData<fn() -> B>);

struct Flag<B: BlockingBackend> {
    raised: AtomicBool,
    lock: StateLock<(), B>,
}

#[derive(Clone, Copy, Debug)]
enum FlagOp {
    Raise,
    IsRaised,
}

struct FlagSpec;

impl Spec for FlagSpec {
    type Op = FlagOp;
    type Ret = bool;
    type State = bool;

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, &raised: &bool, call: Call<'_, FlagOp>) -> Vec<(bool, bool)> {
        match call.op {
            FlagOp::Raise => vec![(true, true)],
            FlagOp::IsRaised => vec![(raised, raised)],
        }
    }
}

impl GenericSubject for Flags {
    type On<B: BlockingBackend> = FlagOn<B>;

    fn on<B: BlockingBackend>(&self) -> FlagOn<B> {
        FlagOn(self.spanning, PhantomData)
    }
}

impl<B: BlockingBackend> Subject for FlagOn<B> {
    type Op = FlagOp;
    type Ret = bool;
    type Spec = FlagSpec;
    type Actor = Arc<Flag<B>>;

    fn spec(&self) -> FlagSpec {
        FlagSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<FlagOp>> {
        let operation = |name, op| match self.0 {
            true => Operation::immediate(name, op).spanning(),
            false => Operation::immediate(name, op),
        };
        let role = Role {
            name: "task",
            ops: vec![
                operation("raise", FlagOp::Raise),
                operation("is_raised", FlagOp::IsRaised),
            ],
            symmetry: 0,
        };
        vec![role; participants]
    }

    fn actors(&self, participants: usize) -> Vec<Arc<Flag<B>>> {
        let flag = Arc::new(Flag {
            raised: AtomicBool::new(false),
            lock: StateLock::new_in(Bits::EMPTY, ()),
        });
        vec![flag; participants]
    }

    fn start<'a>(
        &self,
        flag: &'a mut Arc<Flag<B>>,
        call: Call<'_, FlagOp>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, bool> {
        Started::Done(match call.op {
            FlagOp::Raise => {
                flag.raised.store(true, Ordering::SeqCst);
                flag.lock.with(|_| true)
            }
            FlagOp::IsRaised => flag.raised.load(Ordering::SeqCst),
        })
    }
}

/// Judged by its sections, correct code is refused whose state is not all in them.
#[test]
fn state_beside_the_lock_takes_an_operation_that_spans() {
    let explore = |spanning| {
        let plan = Plan::of(Mode::Exhaustive, Profile::Quick);
        explore(&Flags { spanning }, "flag", Mode::Exhaustive, &plan)
    };
    let report = explore(true);
    assert!(report.holds(), "{report}");
    let report = explore(false);
    assert_eq!(report.failures[0].class, Class::WrongResult, "{report}");
}
