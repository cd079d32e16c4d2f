//! What the command line asks for: subjects, specimens, modes and bounds.

use crate::cli::options::Cli;
use crate::registry::Suite;
use crate::run::dispatch::Work;
use crate::run::entry::{SpecimenEntry, SubjectEntry};
use crate::run::{Selection, Shard};
use crate::subject::plan::{Engine, Mode, Plan, Profile};

/// What the command line asks for.
pub(super) struct Request<'a> {
    pub(super) subjects: Vec<&'a SubjectEntry>,
    pub(super) specimens: Vec<&'a SpecimenEntry>,
    pub(super) modes: Vec<Mode>,
    pub(super) profile: Profile,
    pub(super) shard: Shard,
    /// What is run of each plan of a subject.
    selection: Selection,
    limits: Limits,
}

/// What the command line changes in plans.
struct Limits {
    participants: Option<usize>,
    operations: Option<usize>,
    panics: bool,
}

/// A run that was asked for.
pub(super) struct Run<'a> {
    named: &'a SubjectEntry,
    mode: Mode,
    plan: Plan,
    selection: Selection,
    /// The specimen, if this is the run of one.
    pub(super) specimen: Option<&'a SpecimenEntry>,
    /// Whether its counterexample is printed.
    pub(super) shown: bool,
}

impl Run<'_> {
    pub(super) fn prepare(&self) -> Box<dyn Work> {
        let name = &self.named.name;
        let entry = &self.named.entry;
        entry.prepare(name, self.mode, &self.plan, &self.selection)
    }
}

impl<'a> Request<'a> {
    /// Returns what the command line asks for.
    ///
    /// # Errors
    ///
    /// Returns a sentence if it asks for what there is not.
    pub(super) fn of(cli: &Cli, suite: &'a Suite) -> Result<Self, String> {
        let engines = cli
            .engine
            .iter()
            .map(|name| named("engine", name, &Engine::ALL, Engine::name))
            .collect::<Result<Vec<_>, _>>()?;
        let profile = named("profile", &cli.profile, &Profile::ALL, Profile::name)?;
        let all = cli.subjects.is_empty();
        let mut names: Vec<String> = Vec::new();
        for name in &cli.subjects {
            let group = suite.group(name);
            if group.is_empty() && suite.find(name).is_none() {
                return Err(format!(
                    "there is no subject `{name}`: `{} --list` lists them",
                    suite.command
                ));
            }
            names.push(name.clone());
            names.extend(group);
        }
        let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
        let subjects = suite.subjects.iter();
        let mut subjects: Vec<_> = subjects
            .filter(|named| !cli.specimens && (all || wanted(&named.name)))
            .collect();
        if let Some(program) = &cli.program {
            subjects.retain(|named| named.entry.has_program(program));
            if subjects.is_empty() {
                return Err(format!(
                    "no subject has the program `{program}`: a program has a list of \
                     operations for each participant, as in `send/recv.cancel`, and `{} --list` \
                     lists the operations",
                    suite.command
                ));
            }
        }
        if let Some(participants) = cli.participants {
            subjects.retain(|named| named.entry.takes(participants));
            if subjects.is_empty() && !cli.specimens {
                return Err(format!("no subject takes {participants} participants"));
            }
        }
        let shard = cli.shard.unwrap_or_default();
        // Specimens run if they are named, if `--specimens` is given, or if everything
        // runs. They have bounds of their own.
        let limited = cli.program.is_some()
            || cli.participants.is_some()
            || cli.operations.is_some()
            || cli.no_panics;
        let everything = all && engines.is_empty() && !limited;
        let specimens = suite.specimens.iter().filter(|specimen| {
            let name = &specimen.named.name;
            let subject = name.split('/').next().unwrap_or_default();
            wanted(name) || (cli.specimens && (all || wanted(subject))) || everything
        });
        // A specimen is run whole: one shard catches it.
        let specimens = specimens.enumerate();
        let specimens = specimens.filter_map(|(place, one)| shard.has(place).then_some(one));
        Ok(Self {
            subjects,
            specimens: specimens.collect(),
            modes: Mode::ALL
                .into_iter()
                .filter(|mode| engines.is_empty() || engines.contains(&mode.engine()))
                .collect(),
            profile,
            shard,
            selection: Selection {
                program: cli.program.clone(),
                shard,
                each_class: cli.keep_going,
            },
            limits: Limits {
                participants: cli.participants,
                operations: cli.operations,
                panics: !cli.no_panics,
            },
        })
    }

    /// Returns the runs in their order, which is the same in every process.
    pub(super) fn runs(&self) -> Vec<Run<'a>> {
        let mut runs = Vec::new();
        for &named in &self.subjects {
            for &mode in &self.modes {
                let plans = self.plans(named, mode).into_iter();
                runs.extend(plans.map(|plan| Run {
                    named,
                    mode,
                    plan,
                    selection: self.selection.clone(),
                    specimen: None,
                    shown: true,
                }));
            }
        }
        runs.extend(self.specimens.iter().map(|&specimen| Run {
            named: &specimen.named,
            mode: specimen.mode(),
            plan: specimen.plan(),
            selection: Selection::default(),
            specimen: Some(specimen),
            shown: self.specimens.len() == 1,
        }));
        runs
    }

    /// Returns the plans of a subject in a mode, within the limits of the command line.
    pub(super) fn plans(&self, named: &SubjectEntry, mode: Mode) -> Vec<Plan> {
        let mut plans = named.entry.plans(mode, self.profile);
        if self.selection.program.is_some() {
            plans.truncate(1);
        }
        plans.retain(|plan| self.limits.panics || !plan.bound.only_panics);
        let mut limited: Vec<Plan> = Vec::new();
        for mut plan in plans {
            self.limits.apply(&mut plan);
            if !limited.contains(&plan) {
                limited.push(plan);
            }
        }
        limited
    }
}

impl Limits {
    fn apply(&self, plan: &mut Plan) {
        let bound = &mut plan.bound;
        if let Some(participants) = self.participants {
            bound.participants = participants;
        }
        if let Some(operations) = self.operations {
            bound.operations = operations;
        }
        if self.participants.is_some() || self.operations.is_some() {
            bound.total = bound.participants * bound.operations;
            bound.non_default = bound.non_default.min(bound.total);
        }
        bound.panics &= self.panics;
    }
}

/// Returns the value of this name.
fn named<T: Copy>(
    what: &str,
    name: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, String> {
    all.iter()
        .copied()
        .find(|&value| name_of(value) == name)
        .ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|&value| name_of(value)).collect();
            format!(
                "there is no {what} `{name}`: the {what}s are {}",
                names.join(", ")
            )
        })
}
