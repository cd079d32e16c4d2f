//! `reveille::Phaser`, with every public operation of the phaser and of its parties.

use std::marker::PhantomData;

use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;
use reveille::{Party, Phaser};

use crate::run::entry::{
    Absent::{Constant, Creates, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::{Call, Spec};
use crate::subject::step::Step;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "phaser",
        "reveille::Phaser: parties that come, arrive, wait and leave, phase after phase",
        Phasers,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "phaser.rs",
    absent: &[
        ("new", Creates),
        ("new_in", Creates),
        ("phaser", Constant),
        ("waiters", Locations),
    ],
}]);

/// `Phaser` over every backend.
pub(crate) struct Phasers;

impl GenericSubject for Phasers {
    type On<B: BlockingBackend> = PhaserOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        PhaserOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        match (mode, profile) {
            (Mode::Sections, Profile::Quick) => plans.truncate(1),
            // No specimen needs four operations. The full profile has them.
            (Mode::Exhaustive, Profile::Quick) => plans.truncate(2),
            _ => {}
        }
        plans
    }
}

pub(crate) struct PhaserOn<B>(PhantomData<fn() -> B>);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    ArriveAndWait,
    Arrive,
    /// Drops the party.
    Leave,
    Register,
    /// Waits for the end of phase 0.
    Wait,
    Phase,
    Parties,
    Arrived,
    Waiting,
    Granted,
}

/// What a participant holds: a handle, and a party at times.
pub(crate) struct Member<B: BlockingBackend> {
    phaser: Phaser<B>,
    party: Option<Party<B>>,
}

/// Returns the role of every participant: it begins as a party, or not. The specimens
/// have the same one.
pub(crate) fn role(party: bool) -> Role<Op> {
    Role {
        name: if party { "party" } else { "task" },
        symmetry: usize::from(!party),
        ops: vec![
            Operation::future("arrive_and_wait", Op::ArriveAndWait),
            Operation::immediate("leave", Op::Leave),
            Operation::immediate("arrive", Op::Arrive),
            Operation::immediate("register", Op::Register),
            Operation::future("wait", Op::Wait).alias(),
            Operation::immediate("phase", Op::Phase),
            Operation::immediate("parties", Op::Parties),
            Operation::immediate("arrived", Op::Arrived),
            Operation::immediate("waiting", Op::Waiting),
            Operation::immediate("granted", Op::Granted),
        ],
    }
}

/// The number of participants that begin as parties.
const PARTIES: usize = 2;

/// Returns `true` if a participant can do the next step: a party arrives and leaves, and
/// another registers.
pub(crate) fn can_follow(role: &Role<Op>, before: &[Step], next: Step) -> bool {
    let op = |step: &Step| role.ops[step.op].op;
    let begins = role.name == "party";
    let party = before.iter().fold(begins, |party, step| match op(step) {
        Op::Register => true,
        Op::Leave => false,
        _ => party,
    });
    match op(&next) {
        Op::ArriveAndWait | Op::Arrive | Op::Leave => party,
        Op::Register => !party,
        _ => true,
    }
}

impl<B: BlockingBackend> Subject for PhaserOn<B> {
    type Op = Op;
    /// A number, if the operation returns one.
    type Ret = Option<usize>;
    type Spec = PhaserSpec;
    type Actor = Member<B>;

    fn spec(&self) -> PhaserSpec {
        PhaserSpec
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        let role = |participant| role(participant < PARTIES);
        (0..participants).map(role).collect()
    }

    fn follows(&self, role: &Role<Op>, before: &[Step], next: Step) -> bool {
        can_follow(role, before, next)
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let phaser = Phaser::new_in();
        let member = |participant| Member {
            phaser: phaser.clone(),
            party: (participant < PARTIES).then(|| phaser.register()),
        };
        (0..participants).map(member).collect()
    }

    fn start<'a>(
        &self,
        member: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Option<usize>> {
        let Member { phaser, party } = member;
        Started::Done(match call.op {
            Op::ArriveAndWait => {
                let wait = party.as_mut().expect("it is a party").arrive_and_wait();
                return Started::future(async { Some(wait.await) });
            }
            Op::Wait => {
                let wait = phaser.wait(0);
                return Started::future(async { Some(wait.await) });
            }
            Op::Arrive => party.as_mut().map(Party::arrive),
            Op::Leave => {
                drop(party.take());
                None
            }
            Op::Register => {
                *party = Some(phaser.register());
                None
            }
            Op::Phase => Some(phaser.phase()),
            Op::Parties => Some(phaser.parties()),
            Op::Arrived => Some(phaser.arrived()),
            Op::Waiting => Some(phaser.waiting()),
            Op::Granted => Some(phaser.granted()),
        })
    }

    fn describe(&self, bits: Bits) -> String {
        format!("phase {}", bits.get())
    }
}

/// What the operations of a phaser with two parties mean, one at a time. A party arrives
/// when its wait begins.
pub(crate) struct PhaserSpec;

/// The state of a phaser.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    phase: usize,
    /// The participants that are parties, sorted.
    parties: Vec<usize>,
    /// Those of them that have arrived in this phase, sorted.
    arrived: Vec<usize>,
    /// The participants that wait for the end of the phase, sorted. Each has arrived by
    /// its wait, or not.
    here: Vec<(usize, bool)>,
    /// The participants that have been notified and have not observed it, sorted.
    called: Vec<usize>,
    /// The participants whose wait was the last arrival, and which have not returned.
    leads: Vec<usize>,
}

impl State {
    fn arrive(&mut self, participant_id: usize) {
        self.arrived.push(participant_id);
        self.arrived.sort_unstable();
    }

    /// Ends the phase if all parties have arrived.
    fn advance(&mut self) -> bool {
        if self.arrived.len() < self.parties.len() {
            return false;
        }
        self.phase += 1;
        self.arrived.clear();
        let here = self
            .here
            .drain(..)
            .map(|(participant_id, _)| participant_id);
        self.called.extend(here);
        self.called.sort_unstable();
        true
    }
}

impl Spec for PhaserSpec {
    type Op = Op;
    type Ret = Option<usize>;
    type State = State;

    fn initial(&self) -> State {
        State {
            phase: 0,
            parties: (0..PARTIES).collect(),
            arrived: Vec::new(),
            here: Vec::new(),
            called: Vec::new(),
            leads: Vec::new(),
        }
    }

    fn begins(&self, op: &Op) -> bool {
        matches!(op, Op::ArriveAndWait | Op::Wait)
    }

    fn begin(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        let mut next = state.clone();
        let participant_id = call.participant;
        match call.op {
            Op::Wait if state.phase > 0 => return vec![next],
            Op::ArriveAndWait if !state.arrived.contains(&participant_id) => {
                next.arrive(participant_id);
                match next.advance() {
                    true => next.leads.push(participant_id),
                    false => next.here.push((participant_id, true)),
                }
            }
            _ => next.here.push((participant_id, false)),
        }
        next.here.sort_unstable();
        vec![next]
    }

    fn cancel(&self, state: &State, call: Call<'_, Op>) -> Vec<State> {
        if !self.begins(call.op) {
            return self.effects(state, call);
        }
        let mut next = state.clone();
        let participant_id = call.participant;
        if next.here.contains(&(participant_id, true)) {
            next.arrived.retain(|&one| one != participant_id);
        }
        next.here.retain(|&(one, _)| one != participant_id);
        next.called.retain(|&one| one != participant_id);
        next.leads.retain(|&one| one != participant_id);
        vec![next]
    }

    fn step(&self, state: &State, call: Call<'_, Op>) -> Vec<(State, Option<usize>)> {
        let mut next = state.clone();
        let participant_id = call.participant;
        let number = match call.op {
            Op::ArriveAndWait | Op::Wait
                if state.called.contains(&participant_id)
                    || state.leads.contains(&participant_id) =>
            {
                next.called.retain(|&one| one != participant_id);
                next.leads.retain(|&one| one != participant_id);
                Some(state.phase)
            }
            Op::Wait if state.phase > 0 => Some(state.phase),
            Op::ArriveAndWait | Op::Wait => return Vec::new(),
            Op::Arrive => {
                if !state.arrived.contains(&participant_id) {
                    next.arrive(participant_id);
                    next.advance();
                }
                Some(state.phase)
            }
            Op::Leave => {
                next.parties.retain(|&one| one != participant_id);
                match state.arrived.contains(&participant_id) {
                    true => next.arrived.retain(|&one| one != participant_id),
                    false => _ = next.advance(),
                }
                None
            }
            Op::Register => {
                next.parties.push(participant_id);
                next.parties.sort_unstable();
                None
            }
            Op::Phase => Some(state.phase),
            Op::Parties => Some(state.parties.len()),
            Op::Arrived => Some(state.arrived.len()),
            Op::Waiting => Some(state.here.len()),
            Op::Granted => Some(state.called.len()),
        };
        vec![(next, number)]
    }
}
