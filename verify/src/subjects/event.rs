//! `reveille::Event`, with every public operation.

use std::marker::PhantomData;
use std::sync::Arc;

use reveille::Event;
use reveille::backend::BlockingBackend;
use reveille::protocol::Bits;

use crate::run::entry::{
    Absent::{Creates, Locations},
    Source, SubjectEntry, Surface,
};
use crate::subject::plan::{Mode, Plan, Profile};
use crate::subject::role::{Operation, Role};
use crate::subject::spec::Call;
use crate::subject::value::Value;
use crate::subject::{GenericSubject, Started, Subject};
use crate::subjects::gate::{self, GateSpec, Op, Ret};
use crate::subjects::plans::{queueing, sparingly};

/// Returns the subjects of this file.
pub(crate) fn entries() -> Vec<SubjectEntry> {
    vec![SubjectEntry::new(
        "event",
        "reveille::Event: set and reset, and all tasks that wait",
        Events,
        SURFACE,
    )]
}

/// The public operations, and those that no program performs.
const SURFACE: Surface = Surface::Sources(&[Source {
    path: "event.rs",
    absent: &[
        ("new", Creates),
        ("new_in", Creates),
        ("waiters", Locations),
    ],
}]);

/// `Event` over every backend.
pub(crate) struct Events;

impl GenericSubject for Events {
    type On<B: BlockingBackend> = EventOn<B>;

    fn on<B: BlockingBackend>(&self) -> Self::On<B> {
        EventOn(PhantomData)
    }

    fn plans(&self, mode: Mode, profile: Profile) -> Vec<Plan> {
        let mut plans = sparingly(queueing(mode, profile), profile);
        if let (Mode::Sections, Profile::Quick) = (mode, profile) {
            plans.truncate(1);
        }
        plans
    }
}

pub(crate) struct EventOn<B>(PhantomData<fn() -> B>);

/// Returns the role of every participant. The specimens have the same one.
pub(crate) fn role() -> Role<Op> {
    gate::role(vec![
        Operation::immediate("set", Op::Subtract(1)),
        Operation::immediate("reset", Op::Close),
        Operation::immediate("is_set", Op::IsOpen),
        Operation::future("wait_owned", Op::WaitOwned).alias(),
    ])
}

impl<B: BlockingBackend> Subject for EventOn<B> {
    type Op = Op;
    type Ret = Ret;
    type Spec = GateSpec;
    type Actor = Arc<Event<B>>;

    fn spec(&self) -> GateSpec {
        GateSpec(1)
    }

    fn roles(&self, participants: usize) -> Vec<Role<Op>> {
        vec![role(); participants]
    }

    fn actors(&self, participants: usize) -> Vec<Self::Actor> {
        let event = Arc::new(Event::new_in());
        vec![event; participants]
    }

    fn start<'a>(
        &self,
        event: &'a mut Self::Actor,
        call: Call<'_, Op>,
        _: &dyn Fn() -> Value,
    ) -> Started<'a, Ret> {
        Started::Done(match call.op {
            Op::Wait => return gate::waits(event.wait()),
            Op::WaitOwned => return gate::waits(event.clone().wait_owned()),
            Op::Close => {
                event.reset();
                Ret::Done
            }
            Op::IsOpen => Ret::Is(event.is_set()),
            Op::Waiting => Ret::Count(event.waiting()),
            Op::Granted => Ret::Count(event.granted()),
            Op::Subtract(_) | Op::Add | Op::Count => {
                event.set();
                Ret::Done
            }
        })
    }

    fn describe(&self, bits: Bits) -> String {
        gate::describe(bits)
    }
}
