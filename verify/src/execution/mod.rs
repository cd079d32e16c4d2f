//! One execution of one program, as every engine watches it.
//!
//! Participants never block the engine. A participant whose operation is pending is
//! *suspended*. It goes on when the latest waker of that operation is called, and not
//! before.
//!
//! ```text
//!            call                   Pending              latest waker called
//!   between ──────▶ running ─────────────────▶ suspended ───────────────────▶ running
//!      ▲               │ Ready, dropped              │ no participant runs
//!      └───────────────┘                             ▼
//!                                                quiescent: judged
//! ```
//!
//! When the last running participant suspends or ends, nothing can move any more. The
//! execution is quiescent: all participants are released, and the operations that are
//! still suspended are judged.
//!
//! The state is under an ordinary mutex that no engine sees. The mutex adds no
//! scheduling point. Under loom and on fibers, which run one thread at a time, it is
//! never contended.

pub(crate) mod event;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};

use reveille::backend::{Hooks, Observer, Park, Passage, WatchedLock, Watcher, hooked, watch};
use reveille::protocol::Bits;

use crate::execution::event::{Event, What};
use crate::subject::role::Operation;
use crate::subject::spec::ValueId;
use crate::subject::step::Hook;
use crate::subject::value::{CountDrops, Value};
use crate::subject::verdict::{Class, Violation};

/// A moment. Moments are numbered by what happens in them.
pub(crate) type Tick = u64;

/// The greatest number of events that are recorded. An execution without end has more
/// than can be displayed.
const MOST_EVENTS: usize = 2_000;

/// How an engine parks its threads and tells them apart.
pub(crate) trait Threads: Send + Sync {
    /// Registers the thread of a participant. It is called first on each thread, once.
    fn register(&self, participant_id: usize);

    /// Returns the participant that is running.
    fn current(&self) -> usize;

    /// Waits. It may return early.
    fn park(&self, participant_id: usize);

    /// Makes the current or next `park` of a participant return.
    fn unpark(&self, participant_id: usize);

    /// Returns `true` if wakes merge until the first section of the poll they lead to.
    /// They do in an executor that has not begun the poll. An engine returns it if it
    /// tells sections apart but not the beginnings of polls.
    fn merges_wakes(&self) -> bool {
        false
    }

    /// Reports that a waker of a participant has been called. It is given by its number
    /// among those of the participant.
    fn woken(&self, _who: usize, _waker: usize) {}

    /// Reports that a participant is about to enter a section. Others may run before
    /// it. The section may be the first of a poll to which a waker has led.
    fn approach(&self, _who: usize, _access: Access, _starts: Option<usize>) {}

    /// Reports that a participant has left a section, and whether the section changed
    /// something.
    fn left(&self, _who: usize, _lock: usize, _changed: bool) {}

    /// Returns `true` if participants run on threads of the system.
    fn in_real_time(&self) -> bool {
        false
    }
}

/// The state of one execution.
pub(crate) struct Execution {
    threads: Box<dyn Threads>,
    /// Whether one thread runs all participants, a step at a time.
    stepped: bool,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    tick: Tick,
    /// The participants, and one more for setting up and tearing down.
    participants: Vec<Participant>,
    /// How many of them are neither suspended nor at their end.
    running: usize,
    /// Whether nothing moves any more.
    quiescent: bool,
    violation: Option<Violation>,
    wakers: Vec<WakerRecord>,
    values: Vec<ValueRecord>,
    locks: Locks,
    trace: Option<Vec<Event>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    SettingUp,
    Running,
    TearingDown,
}

#[derive(Default)]
struct Participant {
    suspended: bool,
    ended: bool,
    /// Whether the latest waker of its current operation has been called.
    woken: bool,
    /// Whether it resumes for a wake, and has not entered a section since.
    starting: bool,
    /// How many wakers it has had.
    wakers: usize,
    /// How many sections it is in.
    sections: usize,
    calls: Vec<CallRecord>,
    /// Whether an operation that leaves has given up what it held.
    left: bool,
}

/// The next access of a participant that is about to enter a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) lock: usize,
    /// Whether the section changes nothing.
    pub(crate) reads: bool,
    /// Whether other sections are excluded for as long as it lasts.
    pub(crate) excludes: bool,
}

/// What happened to an operation, and when.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) outcome: Outcome,
    /// Whether it spans from its call to its return, whatever its sections are.
    spanning: bool,
    /// The span of the whole operation, from its first section to its last.
    pub(crate) span: Span,
    /// The span of its first poll.
    pub(crate) first_poll: Span,
    /// The span of the drop of its future.
    pub(crate) drop: Span,
    /// The span that is extended besides the whole.
    part: Part,
    latest_waker: usize,
    /// Whether a waker that a later poll had replaced has been called.
    pub(crate) stale_wake: bool,
    pub(crate) polls: usize,
}

#[cfg(test)]
impl CallRecord {
    /// Creates the record of a call that ended with this outcome. It has a section at
    /// its first tick and one at its last.
    pub(crate) fn new(outcome: Outcome, first: Tick, last: Tick) -> Self {
        let at = |tick| Span {
            first: Some(tick),
            last: tick,
        };
        Self {
            outcome,
            spanning: false,
            span: Span { last, ..at(first) },
            first_poll: at(first),
            drop: at(last),
            part: Part::FirstPoll,
            latest_waker: 0,
            stale_wake: false,
            polls: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has not ended. If the execution is quiescent, it is suspended.
    Pending,
    /// It returned a result.
    Done,
    /// Its future was dropped before it was ready.
    Cancelled,
    /// The panic of a waker went through it. A future was dropped after that, and has
    /// delivered nothing. Another operation may have taken effect.
    Unwound,
}

/// A span from the first tick to the last. An operation without sections has one tick
/// of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) first: Option<Tick>,
    pub(crate) last: Tick,
}

impl Span {
    fn extend(&mut self, tick: Tick) {
        self.first.get_or_insert(tick);
        self.last = tick;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    FirstPoll,
    LaterPolls,
    Drop,
}

struct WakerRecord {
    owner: usize,
    call: usize,
    hooks: Weak<ProbeHooks>,
}

#[derive(Default)]
struct ValueRecord {
    id: Option<ValueId>,
    drops: usize,
}

#[derive(Default)]
struct Locks {
    created: usize,
    dropped: usize,
    /// Addresses in the order of first use, so that locks have small numbers.
    seen: Vec<usize>,
}

/// Why a suspended participant resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    Woken,
    Quiescent,
}

/// A panic that the program asked for, which a waker throws.
struct PanicOfWaker;

/// Unwinds a blocking operation when the execution is quiescent.
struct UnwindBlocking;

/// Unwinds a participant that cannot go on.
pub(crate) fn let_go() -> ! {
    panic_any(UnwindBlocking)
}

/// What stopped code of the subject.
pub(crate) enum Stopped {
    /// A waker that panics.
    WakerPanic,
    /// The execution is quiescent, and this operation blocks.
    Quiescent,
    /// A panic that the program did not ask for. It has been recorded.
    Panicked,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Execution>>> = const { RefCell::new(None) };
}

impl Execution {
    pub(crate) fn new(
        participants: usize,
        threads: Box<dyn Threads>,
        stepped: bool,
        traced: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            threads,
            stepped,
            state: Mutex::new(State {
                phase: Phase::SettingUp,
                tick: 0,
                participants: (0..=participants).map(|_| Participant::default()).collect(),
                running: participants,
                quiescent: false,
                violation: None,
                wakers: Vec::new(),
                values: Vec::new(),
                locks: Locks::default(),
                trace: traced.then(Vec::new),
            }),
        })
    }

    /// Makes this the execution of the current OS thread.
    pub(crate) fn enter(self: &Arc<Self>) {
        CURRENT.set(Some(self.clone()));
    }

    /// Returns the execution of the current OS thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(crate) fn leave() {
        drop(CURRENT.take());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }

    /// Returns the running participant, or the number of the set-up and clean-up.
    fn me(&self, state: &State) -> usize {
        match state.phase {
            Phase::Running => self.threads.current(),
            Phase::SettingUp | Phase::TearingDown => state.participants.len() - 1,
        }
    }

    pub(crate) fn in_real_time(&self) -> bool {
        self.threads.in_real_time()
    }

    pub(crate) fn register(&self, participant_id: usize) {
        self.threads.register(participant_id);
    }

    /// Begins the participants.
    pub(crate) fn begin(&self) {
        self.state().phase = Phase::Running;
    }

    /// Begins the clean-up on one thread, when all participants have been released.
    pub(crate) fn tear_down(&self) {
        self.state().phase = Phase::TearingDown;
    }

    pub(crate) fn violate(&self, class: Class, sentence: impl Into<String>) {
        self.state().violate(class, sentence.into());
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        self.state().violation.clone()
    }

    pub(crate) fn take_trace(&self) -> Vec<Event> {
        self.state().trace.take().unwrap_or_default()
    }

    pub(crate) fn calls(&self, participant_id: usize) -> Vec<CallRecord> {
        self.state().participants[participant_id].calls.clone()
    }

    // What the scheduling of our own engines needs.

    pub(crate) fn is_suspended(&self, participant_id: usize) -> bool {
        let state = self.state();
        !state.quiescent && state.participants[participant_id].suspended
    }

    /// Returns `true` if a suspended participant can go on.
    pub(crate) fn can_resume(&self, participant_id: usize) -> bool {
        let state = self.state();
        state.quiescent || state.participants[participant_id].woken
    }

    pub(crate) fn has_ended(&self, participant_id: usize) -> bool {
        self.state().participants[participant_id].ended
    }

    pub(crate) fn declare_quiescent(&self) {
        self.state().quiescent = true;
    }

    // What a participant does.

    /// Marks a boundary between steps, at which the engine of steps switches.
    pub(crate) fn boundary(&self) -> impl Future<Output = ()> + Send + use<> {
        Boundary {
            passed: !self.stepped,
        }
    }

    pub(crate) fn call(
        &self,
        participant_id: usize,
        operation: &Operation<()>,
        text: impl FnOnce() -> String,
    ) {
        let mut state = self.state();
        state.participants[participant_id].calls.push(CallRecord {
            outcome: Outcome::Pending,
            spanning: operation.spanning,
            span: Span::default(),
            first_poll: Span::default(),
            drop: Span::default(),
            part: Part::FirstPoll,
            latest_waker: 0,
            stale_wake: false,
            polls: 0,
        });
        state.participants[participant_id].left |= operation.leaves;
        state.mark(participant_id);
        state.log(participant_id, || What::Call(text()));
    }

    /// Creates the waker for the next polls of the current operation. It replaces
    /// earlier ones.
    pub(crate) fn waker(self: &Arc<Self>, participant_id: usize, panics: Option<Hook>) -> Waker {
        let mut state = self.state();
        let waker = state.wakers.len();
        let call = state.participants[participant_id].calls.len() - 1;
        state.current_call(participant_id).latest_waker = waker;
        state.participants[participant_id].woken = false;
        state.participants[participant_id].starting = false;
        state.participants[participant_id].wakers += 1;
        let hooks = Arc::new(ProbeHooks {
            execution: self.clone(),
            owner: participant_id,
            call,
            waker,
            own: state.participants[participant_id].wakers,
            panics,
        });
        state.wakers.push(WakerRecord {
            owner: participant_id,
            call,
            hooks: Arc::downgrade(&hooks),
        });
        drop(state);
        hooked(hooks)
    }

    pub(crate) fn poll(&self, participant_id: usize) {
        let mut state = self.state();
        let call = state.current_call(participant_id);
        call.polls += 1;
        if call.polls > 1 {
            call.part = Part::LaterPolls;
        }
        let (polls, waker) = (call.polls, call.latest_waker);
        // Earlier wakes led to this poll: an executor polls once for wakes that merge.
        // Under an engine that tells sections apart but not the beginnings of polls,
        // there is one more poll.
        if !self.threads.merges_wakes() {
            state.participants[participant_id].woken = false;
        }
        state.mark(participant_id);
        state.log(participant_id, || What::Poll { polls, waker });
    }

    pub(crate) fn pending(&self, participant_id: usize) {
        let mut state = self.state();
        state.mark(participant_id);
        state.log(participant_id, || What::Pending);
    }

    pub(crate) fn done(&self, participant_id: usize, text: impl FnOnce() -> String) {
        let mut state = self.state();
        state.end_call(participant_id, Outcome::Done);
        state.log(participant_id, || What::Return(text()));
    }

    pub(crate) fn dropping(&self, participant_id: usize) {
        let mut state = self.state();
        state.current_call(participant_id).part = Part::Drop;
        state.mark(participant_id);
        state.log(participant_id, || What::DropFuture);
    }

    pub(crate) fn cancelled(&self, participant_id: usize) {
        let mut state = self.state();
        state.end_call(participant_id, Outcome::Cancelled);
        state.log(participant_id, || What::Cancelled);
    }

    pub(crate) fn unwound(&self, participant_id: usize) {
        let mut state = self.state();
        state.end_call(participant_id, Outcome::Unwound);
        state.log(participant_id, || What::Unwound);
    }

    /// Ends a participant. Its program is over, or its operation stays pending.
    pub(crate) fn end(&self, participant_id: usize) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.participants[participant_id].ended, true)
            && !state.quiescent
        {
            state.running -= 1;
            self.check_quiescence(state);
        }
    }

    /// Waits until the latest waker of the current operation is called or the execution
    /// is quiescent. In the engine of steps the wait is a future.
    pub(crate) async fn suspend(&self, participant_id: usize) -> Resumed {
        if self.stepped {
            self.state().participants[participant_id].suspended = true;
            let resumed = std::future::poll_fn(|_| {
                let mut state = self.state();
                if state.participants[participant_id].woken {
                    Poll::Ready(Resumed::Woken)
                } else if state.quiescent {
                    Poll::Ready(Resumed::Quiescent)
                } else {
                    state.log(participant_id, || What::Suspended);
                    Poll::Pending
                }
            })
            .await;
            let mut state = self.state();
            state.participants[participant_id].suspended = false;
            state.participants[participant_id].woken = false;
            resumed
        } else {
            self.suspend_thread(participant_id)
        }
    }

    fn suspend_thread(&self, participant_id: usize) -> Resumed {
        let mut state = self.state();
        state.participants[participant_id].starting = false;
        if !state.participants[participant_id].woken && !state.quiescent {
            state.participants[participant_id].suspended = true;
            state.running -= 1;
            state.log(participant_id, || What::Suspended);
            self.check_quiescence(state);
            loop {
                state = self.state();
                if state.quiescent || !state.participants[participant_id].suspended {
                    break;
                }
                drop(state);
                self.threads.park(participant_id);
            }
        }
        let participant = &mut state.participants[participant_id];
        let woken = std::mem::take(&mut participant.woken);
        participant.suspended = false;
        participant.starting = woken && self.threads.merges_wakes();
        if woken {
            Resumed::Woken
        } else {
            Resumed::Quiescent
        }
    }

    /// Releases all participants if none of them runs any more.
    fn check_quiescence(&self, mut state: MutexGuard<'_, State>) {
        if state.running > 0 {
            return;
        }
        state.quiescent = true;
        let suspended: Vec<usize> = (0..state.participants.len())
            .filter(|&participant_id| state.participants[participant_id].suspended)
            .collect();
        drop(state);
        for participant_id in suspended {
            self.threads.unpark(participant_id);
        }
    }

    /// Resumes a participant whose latest waker has been called.
    fn resume(&self, mut state: MutexGuard<'_, State>, participant_id: usize) {
        if state.quiescent {
            // It has been released, and this call belongs to the clean-up.
            return;
        }
        // A wake of itself within a poll is for the next poll, since this one has
        // begun.
        let itself = self.me(&state) == participant_id;
        let participant = &mut state.participants[participant_id];
        if participant.starting && !itself {
            return;
        }
        participant.woken = true;
        if self.stepped {
            return;
        }
        if std::mem::take(&mut participant.suspended) {
            state.running += 1;
        }
        drop(state);
        // Unpark it even if it is not suspended: the poll that a wake asks for sees
        // what came before the wake, by the memory model of the engine.
        self.threads.unpark(participant_id);
    }

    /// Runs code of the subject for a participant. If the code does not return, the
    /// error says what stopped it.
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> Result<R, Stopped> {
        catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
            if panic.is::<PanicOfWaker>() {
                return Stopped::WakerPanic;
            }
            if panic.is::<UnwindBlocking>() {
                return Stopped::Quiescent;
            }
            let sentence = panic_text(&*panic);
            let class = Class::of_panic(&sentence);
            self.violate(
                class,
                format!("a panic that the program did not ask for: ~{sentence}"),
            );
            if class != Class::Panic {
                // The engine has given up this execution.
                resume_unwind(panic);
            }
            Stopped::Panicked
        })
    }

    // What is checked at the end.

    /// Checks for wakers that outlive their operation, or what their owner held.
    /// `may_keep` returns `true` if an operation declares that it keeps its waker. The
    /// operation is given by its participant and its number.
    pub(crate) fn check_left_wakers(&self, may_keep: &dyn Fn(usize, usize) -> bool) {
        let mut state = self.state();
        let leaked = state.wakers.iter().enumerate().find_map(|(number, waker)| {
            let owner = &state.participants[waker.owner];
            let pending = |call: &CallRecord| call.outcome == Outcome::Pending;
            if waker.hooks.strong_count() == 0 || pending(&owner.calls[waker.call]) {
                return None;
            }
            if owner.left && !owner.calls.iter().any(pending) {
                return Some((number, format!("although {{{}}} has left", waker.owner)));
            }
            let why = match owner.calls[waker.call].outcome {
                Outcome::Cancelled => "the future that it was for has been dropped",
                Outcome::Unwound => "a panic has ended the operation that it was for",
                _ => "the operation that it was for has returned",
            };
            let kept = may_keep(waker.owner, waker.call);
            (!kept).then(|| (number, format!("although {why}")))
        });
        if let Some((waker, why)) = leaked {
            let owner = state.wakers[waker].owner;
            let sentence = format!("waker w{waker} of {{{owner}}} is still held {why}");
            state.violate(Class::Leak, sentence);
        }
    }

    /// Checks for wakers, values and locks that outlive everything.
    pub(crate) fn check_leaks(&self) {
        let mut state = self.state();
        let wakers: Vec<_> = state
            .wakers
            .iter()
            .map(|waker| (waker.owner, waker.hooks.strong_count()))
            .collect();
        if let Some(waker) = wakers.iter().position(|&(_, count)| count > 0) {
            let owner = wakers[waker].0;
            state.violate(
                Class::Leak,
                format!("waker w{waker} of {{{owner}}} was never dropped"),
            );
        }
        let lost = state.values.iter().find(|value| value.drops != 1);
        if let Some(&ValueRecord {
            id: Some(id),
            drops,
        }) = lost
        {
            let sentence = match drops {
                0 => format!("value {} was neither delivered, returned nor dropped", id.0),
                n => format!("value {} was dropped {n} times", id.0),
            };
            state.violate(Class::Leak, sentence);
        }
        let Locks {
            created, dropped, ..
        } = state.locks;
        if created != dropped {
            state.violate(
                Class::Leak,
                format!("{created} primitives were made and {dropped} freed"),
            );
        }
    }

    /// Creates a value with the number of the call. Its drops are counted.
    pub(crate) fn value(self: &Arc<Self>, id: ValueId) -> Value {
        let mut state = self.state();
        let index = state.values.len();
        state.values.push(ValueRecord {
            id: Some(id),
            drops: 0,
        });
        drop(state);
        Value::new(id, index, self.clone())
    }
}

impl CountDrops for Execution {
    fn dropped(&self, index: usize, id: ValueId) {
        let mut state = self.state();
        let participant_id = self.me(&state);
        let id = id.0;
        state.values[index].drops += 1;
        state.check_unlocked(participant_id, || format!("value {id} was dropped"));
        state.log(participant_id, || What::DropValue(id));
    }
}

impl State {
    fn current_call(&mut self, participant_id: usize) -> &mut CallRecord {
        self.participants[participant_id]
            .calls
            .last_mut()
            .expect("a participant does this only within a call")
    }

    fn log(&mut self, participant_id: usize, what: impl FnOnce() -> What) {
        if let Some(trace) = &mut self.trace {
            match trace.len() {
                0..MOST_EVENTS => trace.push(Event {
                    participant_id,
                    what: what(),
                }),
                MOST_EVENTS => trace.push(Event {
                    participant_id,
                    what: What::More,
                }),
                _ => {}
            }
        }
    }

    fn violate(&mut self, class: Class, sentence: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { class, sentence });
        }
    }

    /// Marks a moment of the current call that counts although it is no section. The
    /// locks of the subject are not observed, or the operation spans from call to
    /// return.
    fn mark(&mut self, participant_id: usize) {
        let calls = &self.participants[participant_id].calls;
        if self.locks.created == 0 || calls.last().is_some_and(|call| call.spanning) {
            self.tick(participant_id);
        }
    }

    /// Ends the current call. A call without sections gets a tick of its own.
    fn end_call(&mut self, participant_id: usize, outcome: Outcome) {
        self.mark(participant_id);
        self.tick += 1;
        let tick = self.tick;
        let call = self.current_call(participant_id);
        call.outcome = outcome;
        if call.span.first.is_none() {
            call.span.extend(tick);
        }
        if call.first_poll.first.is_none() {
            call.first_poll.extend(tick);
        }
        let dropped =
            outcome == Outcome::Cancelled || outcome == Outcome::Unwound && call.polls > 0;
        if dropped && call.drop.first.is_none() {
            call.drop.extend(tick);
        }
    }

    /// Records a section of the current call, if there is one.
    fn tick(&mut self, participant_id: usize) {
        self.tick += 1;
        let tick = self.tick;
        let Some(call) = self.participants[participant_id].calls.last_mut() else {
            return;
        };
        if call.outcome != Outcome::Pending || self.quiescent {
            return;
        }
        call.span.extend(tick);
        match call.part {
            Part::FirstPoll => call.first_poll.extend(tick),
            Part::LaterPolls => {}
            Part::Drop => call.drop.extend(tick),
        }
    }

    /// Records a violation if foreign code runs under a lock.
    fn check_unlocked(&mut self, participant_id: usize, what: impl FnOnce() -> String) {
        if self.participants[participant_id].sections > 0 {
            let what = what();
            self.violate(Class::Reentrancy, format!("{what} under the lock"));
        }
    }
}

struct Boundary {
    passed: bool,
}

impl Future for Boundary {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.passed, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// Returns the text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = text_of(panic);
    // loom knows only that its limit is reached.
    if text.starts_with("Model exceeded maximum number of branches") {
        return "deadlock: an operation has accessed memory thousands of times and has not \
                returned: it would go on for ever"
            .to_owned();
    }
    text
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is not text".to_owned())
}

/// A waker of a participant.
struct ProbeHooks {
    execution: Arc<Execution>,
    owner: usize,
    call: usize,
    waker: usize,
    /// The number of the waker among those of its owner.
    own: usize,
    panics: Option<Hook>,
}

impl ProbeHooks {
    fn called(&self, hook: Hook) -> MutexGuard<'_, State> {
        let mut state = self.execution.state();
        let participant_id = self.execution.me(&state);
        let (owner, waker) = (self.owner, self.waker);
        state.log(participant_id, || What::Waker { hook, owner, waker });
        state.check_unlocked(participant_id, || {
            let done = match hook {
                Hook::Clone => "cloned",
                Hook::Wake => "woken",
                Hook::Drop => "dropped",
            };
            format!("waker w{waker} of {{{owner}}} was {done}")
        });
        state
    }

    /// Resumes the owner, if this is the latest waker of its operation.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        self.execution.threads.woken(self.owner, self.own);
        let calls = &mut state.participants[self.owner].calls;
        let current = self.call + 1 == calls.len();
        let call = &mut calls[self.call];
        if !current || call.outcome != Outcome::Pending {
            return;
        }
        if call.latest_waker == self.waker {
            self.execution.resume(state, self.owner);
        } else {
            call.stale_wake = true;
        }
    }

    /// Panics if the program says so, except during the clean-up.
    fn panic_if_due(&self, hook: Hook) {
        if self.panics == Some(hook)
            && !std::thread::panicking()
            && self.execution.state().phase == Phase::Running
        {
            panic_any(PanicOfWaker);
        }
    }
}

impl Hooks for ProbeHooks {
    fn cloned(&self) {
        drop(self.called(Hook::Clone));
        self.panic_if_due(Hook::Clone);
    }

    fn woken(&self) {
        self.wake(self.called(Hook::Wake));
        self.panic_if_due(Hook::Wake);
    }

    fn dropped(&self) {
        drop(self.called(Hook::Drop));
        self.panic_if_due(Hook::Drop);
    }
}

/// Reports every section to the execution of the current thread.
#[derive(Debug)]
pub(crate) struct Probe;

/// A section, from its approach to its end.
pub(crate) struct Visit {
    execution: Option<Arc<Execution>>,
    participant_id: usize,
    lock: usize,
    passage: Passage,
    /// Whether its end is told, whatever happens within.
    encloses: bool,
}

impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visit")
            .field("participant", &self.participant_id)
            .field("passage", &self.passage)
            .finish_non_exhaustive()
    }
}

impl Visit {
    /// Creates a visit of the lock at this address by the participant that runs.
    fn new(address: usize, passage: Passage) -> Self {
        let execution = Execution::current();
        let (participant_id, lock) = execution.as_ref().map_or((0, 0), |execution| {
            let mut state = execution.state();
            let participant_id = execution.me(&state);
            let seen = &mut state.locks.seen;
            let known = seen.iter().position(|&seen| seen == address);
            let lock = known.unwrap_or_else(|| {
                seen.push(address);
                seen.len() - 1
            });
            (participant_id, lock)
        });
        Self {
            execution,
            participant_id,
            lock,
            passage,
            encloses: true,
        }
    }

    /// Creates a visit of a lock of `Native`, which tells of no end if the closure of an
    /// update panics.
    fn of_native(address: usize, passage: Passage) -> Self {
        Self {
            encloses: passage != Passage::Update,
            ..Self::new(address, passage)
        }
    }

    /// Waits until the section may begin.
    fn approach(&self) {
        let Some(execution) = &self.execution else {
            return;
        };
        let state = execution.state();
        let access = Access {
            lock: self.lock,
            reads: matches!(self.passage, Passage::Load | Passage::Look),
            excludes: self.passage == Passage::With,
        };
        let participant = &state.participants[self.participant_id];
        let starts = participant.starting.then_some(participant.wakers);
        if state.phase == Phase::Running {
            drop(state);
            execution
                .threads
                .approach(self.participant_id, access, starts);
        }
    }

    fn enter(&self) {
        if let Some(execution) = &self.execution {
            let mut state = execution.state();
            state.participants[self.participant_id].starting = false;
            state.participants[self.participant_id].sections += usize::from(self.encloses);
            state.tick(self.participant_id);
        }
    }

    fn leave(&self, before: Bits, after: Bits) {
        if let Some(execution) = &self.execution {
            let mut state = execution.state();
            state.participants[self.participant_id].sections -= usize::from(self.encloses);
            let (lock, passage) = (self.lock, self.passage);
            state.log(self.participant_id, || What::Section {
                lock,
                passage,
                before,
                after,
            });
            if state.phase == Phase::Running {
                drop(state);
                let changed = match passage {
                    Passage::Load | Passage::Look => false,
                    Passage::Update => before != after,
                    Passage::With => true,
                };
                execution.threads.left(self.participant_id, lock, changed);
            }
        }
    }
}

impl Observer for Probe {
    type Park = ProbePark;
    type Visit = Visit;

    fn approach(address: usize, passage: Passage) -> Visit {
        let visit = Visit::new(address, passage);
        visit.approach();
        visit
    }

    fn enter(visit: &mut Visit) {
        Visit::enter(visit);
    }

    fn leave(visit: &mut Visit, before: Bits, after: Bits) {
        Visit::leave(visit, before, after);
    }

    fn created() {
        if let Some(execution) = Execution::current() {
            execution.state().locks.created += 1;
        }
    }

    fn dropped() {
        if let Some(execution) = Execution::current() {
            execution.state().locks.dropped += 1;
        }
    }

    fn gone(address: usize) {
        if let Some(execution) = Execution::current() {
            let seen = &mut execution.state().locks.seen;
            if let Some(lock) = seen.iter_mut().find(|seen| **seen == address) {
                *lock = 0; // There is no lock at this address any more.
            }
        }
    }
}

/// Reports no sections, but suspends blocking operations as futures. It is for threads
/// that must not be slowed down.
#[derive(Debug)]
pub(crate) struct Unwatched;

impl Observer for Unwatched {
    type Park = ProbePark;
    type Visit = ();

    fn approach(_: usize, _: Passage) {}
    fn enter((): &mut ()) {}
    fn leave((): &mut (), _: Bits, _: Bits) {}
    fn created() {}
    fn dropped() {}
}

/// Reports the sections of [`Native`](reveille::backend::Native) to the execution of the
/// current thread, for a subject that is not generic over its backend.
///
/// It is told of no lock that is created. So a lock counts from its first section, and
/// one that is never used does not count.
#[derive(Debug)]
pub(crate) struct NativeProbe;

thread_local! {
    /// The parkers that [`NativeProbe`] has created in the current execution.
    static PARKERS: RefCell<Vec<ProbePark>> = const { RefCell::new(Vec::new()) };
    /// How many sections [`NativeProbe`] has been told of.
    static SECTIONS: Cell<u64> = const { Cell::new(0) };
}

impl NativeProbe {
    /// Runs `f` with the probe, and returns how many sections it was told of.
    pub(crate) fn during<R>(f: impl FnOnce() -> R) -> (R, u64) {
        static PROBE: NativeProbe = NativeProbe;

        /// Sets the previous watcher again, even after a panic.
        struct Restore(Option<&'static dyn Watcher>);

        impl Drop for Restore {
            fn drop(&mut self) {
                watch(self.0);
                PARKERS.take();
            }
        }

        let before = SECTIONS.get();
        let restore = Restore(watch(Some(&PROBE)));
        let result = f();
        drop(restore);
        (result, SECTIONS.get() - before)
    }

    fn parked(parker: usize) -> ProbePark {
        PARKERS.with_borrow(|parkers| parkers[parker].clone())
    }
}

impl Watcher for NativeProbe {
    fn approach(&self, lock: WatchedLock<'_>, passage: Passage) -> usize {
        SECTIONS.set(SECTIONS.get() + 1);
        let visit = Visit::of_native(lock.address, passage);
        if let Some(execution) = &visit.execution {
            let locks = &mut execution.state().locks;
            locks.created = locks.created.max(visit.lock + 1);
        }
        visit.approach();
        visit.enter();
        lock.address
    }

    fn leave(&self, visit: usize, passage: Passage, before: Bits, after: Bits) {
        Visit::of_native(visit, passage).leave(before, after);
    }

    fn dropped(&self, lock: WatchedLock<'_>) {
        if let Some(execution) = Execution::current() {
            let locks = &mut execution.state().locks;
            let seen = locks.seen.iter_mut();
            if let Some(seen) = seen.into_iter().find(|seen| **seen == lock.address) {
                *seen = 0; // There is no lock at this address any more.
                locks.dropped += 1;
            }
        }
    }

    fn parker(&self) -> usize {
        let parker = ProbePark::new();
        PARKERS.with_borrow_mut(|parkers| {
            let old = parkers.first();
            if old.is_some_and(|old| !Arc::ptr_eq(&old.execution.0, &parker.execution.0)) {
                parkers.clear();
            }
            parkers.push(parker);
            parkers.len() - 1
        })
    }

    fn park(&self, parker: usize) {
        Self::parked(parker).park();
    }

    fn unpark(&self, parker: usize) {
        Self::parked(parker).unpark();
    }
}

/// The parker of a blocking operation, which is suspended as a future would be.
#[derive(Clone, Debug)]
pub(crate) struct ProbePark {
    participant_id: usize,
    /// Its number among the wakers of the participant.
    own: usize,
    execution: ByDebug,
}

#[derive(Clone)]
struct ByDebug(Arc<Execution>);

impl std::fmt::Debug for ByDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Execution")
    }
}

impl Park for ProbePark {
    fn new() -> Self {
        let execution = Execution::current().expect("a blocking operation runs in an execution");
        let mut state = execution.state();
        let participant_id = execution.me(&state);
        state.participants[participant_id].wakers += 1;
        let own = state.participants[participant_id].wakers;
        drop(state);
        Self {
            participant_id,
            own,
            execution: ByDebug(execution),
        }
    }

    fn park(&self) {
        assert!(
            !self.execution.0.stepped,
            "it blocks its thread, and is declared as an operation that does not: declare it by \
             `Operation::blocking`"
        );
        if self.execution.0.suspend_thread(self.participant_id) == Resumed::Quiescent {
            panic_any(UnwindBlocking);
        }
    }

    fn unpark(&self) {
        let execution = &self.execution.0;
        let mut state = execution.state();
        let participant_id = execution.me(&state);
        let owner = self.participant_id;
        state.log(participant_id, || What::Unpark { owner });
        state.check_unlocked(participant_id, || format!("{{{owner}}} was unparked"));
        execution.threads.woken(owner, self.own);
        execution.resume(state, owner);
    }
}
