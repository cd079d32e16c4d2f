//! The verifier.

#![forbid(unsafe_code)]

pub mod cli;
mod engine;
mod execution;
mod judge;
mod plan;
mod program;
mod quiet;
mod registry;
mod run;
mod spec;
mod specimens;
mod subject;
mod subjects;
mod token;
mod trace;
mod verdict;

pub use execution::{Probe, ProbePark, Value, Visit};
pub use plan::{Engine, Mode, Plan, Profile};
pub use program::{Bound, Hook, Manner, Program, Step};
pub use registry::{Named, Planted, find, specimens as all_specimens, subjects as all_subjects};
pub use run::{Entry, Of, Watch};
pub use spec::{Call, Spec, ValueId};
pub use subject::{Family, Offer, Role, Runs, Started, Subject};
pub use token::Token;
pub use verdict::{Class, Counterexample, Report, SpecimenReport, Verdict, Violation};
