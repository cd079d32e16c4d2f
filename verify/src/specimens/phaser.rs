//! A phaser for two parties, with a fault that can be chosen.
//!
//! It is written in the plain way, with everything under one lock, so that each fault is
//! a line. With [`Fault::None`] it is correct.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reveille::backend::BlockingBackend;
use reveille::protocol::{Bits, StateLock};

use crate::run::entry::SpecimenEntry;
use crate::specimens::support::{asymmetric, wake_all};
use crate::subject::role::Role;
use crate::subject::spec::Call;
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::verdict::Class;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::phaser::{self as real, Op, PhaserSpec};

/// Returns the specimens of this file.
pub(crate) fn entries() -> Vec<SpecimenEntry> {
    SpecimenEntry::all_of("phaser", 3, Fault::ALL, Specimen)
}

/// What is wrong with the phaser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A party that leaves does not end the phase, also if it was the last to arrive.
    LeaveEndsNothing,
    /// A party that leaves checks in one section whether the phase ends, and is taken off
    /// the count in another. The phase can end in between.
    LeavesInTwoSections,
    /// An arrival stays counted if its wait is dropped.
    DroppedStaysArrived,
    /// P5: the first waker is kept.
    FirstWakerKept,
}

impl Fault {
    /// Every fault, with its name and the class in which it must be caught. It is
    /// `None` for a specimen that must pass.
    pub(crate) const ALL: [(&'static str, Self, Option<Class>); 5] = [
        ("plain", Self::None, None),
        (
            "leave-ends-nothing",
            Self::LeaveEndsNothing,
            Some(Class::LostWakeUp),
        ),
        (
            "ended-while-a-party-leaves",
            Self::LeavesInTwoSections,
            Some(Class::LostWakeUp),
        ),
        (
            "dropped-stays-arrived",
            Self::DroppedStaysArrived,
            Some(Class::CancellationRace),
        ),
        (
            "first-waker-kept",
            Self::FirstWakerKept,
            Some(Class::StaleWaker),
        ),
    ];
}

/// The specimen over every backend.
pub(crate) struct Specimen(pub(crate) Fault);

impl GenericSubject for Specimen {
    type On<B: BlockingBackend> = SpecimenOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        SpecimenOn {
            fault: self.0,
            backend: PhantomData,
        }
    }
}

pub(crate) struct SpecimenOn<B> {
    fault: Fault,
    backend: PhantomData<fn() -> B>,
}

/// What the participants share. Each party is known by its number.
pub(crate) struct Phaser<B: BlockingBackend> {
    fault: Fault,
    lock: StateLock<State, B>,
}

#[derive(Default)]
struct State {
    phase: usize,
    parties: Vec<usize>,
    arrived: Vec<usize>,
    /// The parties that wait, with the wakers.
    here: Vec<(usize, Option<Waker>)>,
    called: Vec<usize>,
}

impl State {
    fn ends(&self) -> bool {
        self.arrived.len() >= self.parties.len()
    }

    /// Ends the phase.
    fn advance(&mut self) -> Vec<Waker> {
        self.phase += 1;
        self.arrived.clear();
        let (numbers, wakers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.here).into_iter().unzip();
        self.called.extend(numbers);
        wakers.into_iter().flatten().collect()
    }
}

impl<B: BlockingBackend> Phaser<B> {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn leave(&self, participant_id: usize) {
        let last = |state: &State| {
            let others = state.parties.len() - 1;
            !state.arrived.contains(&participant_id) && state.arrived.len() == others
        };
        let ends = self.lock.with(|section| last(section.state));
        let wakers = self.lock.with(|section| {
            let state = section.state;
            let ends = match self.fault {
                Fault::LeavesInTwoSections => ends,
                Fault::LeaveEndsNothing => false,
                _ => last(state),
            };
            state.parties.retain(|&one| one != participant_id);
            state.arrived.retain(|&one| one != participant_id);
            match ends {
                true => state.advance(),
                false => Vec::new(),
            }
        });
        wake_all(wakers);
    }

    /// Arrives. Returns the phase in which it has arrived, whether that has ended it, and
    /// whether it had not arrived before.
    fn arrive(&self, participant_id: usize, waits: bool) -> (usize, bool, bool) {
        let (phase, ended, own, wakers) = self.lock.with(|section| {
            let state = section.state;
            let phase = state.phase;
            let own = !state.arrived.contains(&participant_id);
            if own {
                state.arrived.push(participant_id);
            }
            if state.ends() {
                return (phase, true, own, state.advance());
            }
            if waits {
                state.here.push((participant_id, None));
            }
            (phase, false, own, Vec::new())
        });
        wake_all(wakers);
        (phase, ended, own)
    }

    fn register_waker(&self, participant_id: usize, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let waker = cx.waker().clone();
        let (phase, unused) = self.lock.with(|section| {
            let state = section.state;
            if state.called.contains(&participant_id) {
                state.called.retain(|&one| one != participant_id);
                return (Some(state.phase), Some(waker));
            }
            let place = state
                .here
                .iter_mut()
                .find(|(one, _)| *one == participant_id);
            let unused = match place {
                Some((_, Some(_))) if self.is(Fault::FirstWakerKept) => Some(waker),
                Some((_, place)) => place.replace(waker),
                None => Some(waker),
            };
            (None, unused)
        });
        drop(unused);
        phase.map_or(Poll::Pending, |phase| Poll::Ready(Some(phase)))
    }

    fn withdraw(&self, participant_id: usize, own: bool) {
        let waker = self.lock.with(|section| {
            let state = section.state;
            let here = state
                .here
                .iter()
                .position(|&(one, _)| one == participant_id);
            let withdraws = here.is_some() && !self.is(Fault::DroppedStaysArrived);
            if withdraws && own {
                state.arrived.retain(|&one| one != participant_id);
            }
            state.called.retain(|&one| one != participant_id);
            here.map(|here| state.here.remove(here))
        });
        drop(waker);
    }
}

/// A wait of a party.
struct Wait<'a, B: BlockingBackend> {
    phaser: &'a Phaser<B>,
    participant_id: usize,
    here: bool,
    /// Whether the wait has arrived, and not the party before.
    own: bool,
}

impl<B: BlockingBackend> Future for Wait<'_, B> {
    type Output = Option<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let this = self.get_mut();
        if !this.here {
            let (phase, ended, own) = this.phaser.arrive(this.participant_id, true);
            this.own = own;
            if ended {
                return Poll::Ready(Some(phase + 1));
            }
            this.here = true;
        }
        let ended = this.phaser.register_waker(this.participant_id, cx);
        this.here = ended.is_pending();
        ended
    }
}

impl<B: BlockingBackend> Drop for Wait<'_, B> {
    fn drop(&mut self) {
        if self.here {
            self.phaser.withdraw(self.participant_id, self.own);
        }
    }
}

impl<B: BlockingBackend> Subject for SpecimenOn<B> {
    type Op = Op;
    type Ret = Option<usize>;
    type Spec = PhaserSpec;
    type Actor = Arc<Phaser<B>>;

    fn spec(&self) -> PhaserSpec {
        PhaserSpec
    }

    /// Returns three roles: a party that waits in every polling mode, a party that waits
    /// or leaves, and a task that looks.
    fn roles(&self, _: usize) -> Vec<Role<Op>> {
        vec![
            asymmetric(real::role(true), 0, |op| *op == Op::ArriveAndWait),
            asymmetric(real::role(true), 1, |op| {
                matches!(op, Op::ArriveAndWait | Op::Leave | Op::Arrive)
            }),
            asymmetric(real::role(false), 2, |op| {
                matches!(op, Op::Arrived | Op::Phase)
            }),
        ]
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        let most = if role.symmetry == 1 { 2 } else { 1 };
        before.len() < most && real::can_follow(role, before, next)
    }

    fn actors(&self, _: usize) -> Vec<Arc<Phaser<B>>> {
        let state = State {
            parties: vec![0, 1],
            ..State::default()
        };
        let phaser = Arc::new(Phaser {
            fault: self.fault,
            lock: StateLock::new_in(Bits::EMPTY, state),
        });
        vec![phaser; 3]
    }

    fn start<'a>(
        &self,
        phaser: &'a mut Arc<Phaser<B>>,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<usize>> {
        let participant_id = call.participant;
        let look =
            |look: fn(&State) -> usize| Some(phaser.lock.with(|section| look(section.state)));
        Started::Done(match call.op {
            Op::ArriveAndWait | Op::Wait => {
                return Started::future(Wait {
                    phaser,
                    participant_id,
                    here: false,
                    own: false,
                });
            }
            Op::Leave | Op::Register => {
                phaser.leave(participant_id);
                None
            }
            Op::Arrive => Some(phaser.arrive(participant_id, false).0),
            Op::Phase => look(|state| state.phase),
            Op::Parties => look(|state| state.parties.len()),
            Op::Arrived => look(|state| state.arrived.len()),
            Op::Waiting => look(|state| state.here.len()),
            Op::Granted => look(|state| state.called.len()),
        })
    }

    fn describe(&self, _: Bits) -> String {
        "state".to_owned()
    }
}
