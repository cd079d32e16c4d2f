//! The verifier.

#![forbid(unsafe_code)]

mod engine;
mod execution;
mod judge;
mod plan;
mod program;
mod quiet;
mod run;
mod spec;
mod subject;
mod subjects;
mod token;
mod trace;
mod verdict;

pub use execution::{Probe, ProbePark, Value, Visit};
pub use plan::{Engine, Mode, Plan, Profile};
pub use program::{Bound, Hook, Manner, Program, Step};
pub use run::{Entry, Of, Watch};
pub use spec::{Call, Spec, ValueId};
pub use subject::{Family, Offer, Role, Runs, Started, Subject};
pub use token::Token;
pub use verdict::{Class, Counterexample, Report, SpecimenReport, Verdict, Violation};

/// x
pub fn oneshot() -> Box<dyn Entry> {
    Box::new(Of(subjects::oneshot::Oneshot))
}
