//! Files of results: JSON, which shards are merged from, JUnit and a page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::{Deserialize, Serialize};

use crate::report::{Counterexample, Coverage, Report, SpecimenReport};
use crate::run::Shard;

/// All results of a run of the command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) profile: String,
    /// Whether the run ended early.
    pub(super) interrupted: bool,
    /// The part of the programs that was run.
    #[serde(default)]
    pub(super) shard: Shard,
    pub(super) results: Vec<Report>,
    pub(super) specimens: Vec<SpecimenReport>,
}

impl Results {
    /// Returns `true` if a run holds. A shard may have no program of a run.
    pub(super) fn holds(&self, report: &Report) -> bool {
        report.holds() || self.is_empty_part(report)
    }

    /// Returns `true` if the shard has no program of the run.
    pub(super) fn is_empty_part(&self, report: &Report) -> bool {
        self.shard.of > 1 && report.programs == 0 && report.failures.is_empty()
    }

    /// Reads a file that [`JsonFile`] wrote.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the file.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        serde_json::from_slice(&text).map_err(|error| {
            format!(
                "{} is not a file that `--json` wrote: {error}",
                path.display()
            )
        })
    }

    /// Merges the shards of a run. The result is that of one run of everything.
    ///
    /// # Errors
    ///
    /// Returns a sentence if a shard is missing, is there twice, ended early, or belongs
    /// to another run.
    pub(super) fn merge(mut shards: Vec<Self>) -> Result<Self, String> {
        shards.sort_by_key(|results| results.shard.index);
        let of = shards.first().map_or(0, |results| results.shard.of);
        let indexes: Vec<_> = shards.iter().map(|results| results.shard.index).collect();
        if shards.iter().any(|results| results.shard.of != of)
            || indexes != (0..of).collect::<Vec<_>>()
        {
            let names = shards.iter().map(|results| {
                let Shard { index, of } = results.shard;
                format!("{}/{of}", index + 1)
            });
            let names: Vec<_> = names.collect();
            return Err(format!(
                "the files have the shards {}: each shard of one run is needed once",
                names.join(", ")
            ));
        }
        if let Some(results) = shards.iter().find(|results| results.interrupted) {
            let Shard { index, of } = results.shard;
            return Err(format!(
                "shard {}/{of} was interrupted: run it again",
                index + 1
            ));
        }
        let mut shards = shards.into_iter();
        let mut all = shards.next().expect("there is a shard");
        let mut specimens = vec![std::mem::take(&mut all.specimens).into_iter()];
        for shard in shards {
            let same = |a: &Report, b: &Report| {
                (&a.subject, &a.engine, &a.mode, &a.bound)
                    == (&b.subject, &b.engine, &b.mode, &b.bound)
            };
            let runs = all.results.iter().zip(&shard.results);
            if all.profile != shard.profile
                || all.results.len() != shard.results.len()
                || !runs.into_iter().all(|(a, b)| same(a, b))
            {
                return Err("the shards are of different runs: give each the same \
                            subjects, engines, profile and bounds"
                    .to_owned());
            }
            for (all, report) in all.results.iter_mut().zip(shard.results) {
                add(all, report);
            }
            specimens.push(shard.specimens.into_iter());
        }
        // Shards take the specimens in turn.
        while let Some(first) = specimens[0].next() {
            all.specimens.push(first);
            let others = specimens[1..].iter_mut();
            all.specimens.extend(others.filter_map(Iterator::next));
        }
        all.shard = Shard::default();
        Ok(all)
    }

    /// Returns the results as a JUnit report: a test for each run and each specimen.
    fn junit(&self, command: &str) -> quick_junit::Report {
        let failed = |kind: &str, message: &str| {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(kind).set_message(message);
            status
        };
        let mut junit = quick_junit::Report::new(command);
        for report in &self.results {
            let name = format!("{}/{} {}", report.engine, report.mode, report.bound);
            let status = match report.failures.first() {
                Some(failure) => {
                    let mut status = failed(&failure.class.to_string(), &failure.sentence);
                    status.set_description(text(failure, command));
                    status
                }
                None if self.holds(report) => TestCaseStatus::success(),
                None => failed("nothing was run", "the run has no execution"),
            };
            let mut case = TestCase::new(name, status);
            case.set_time(report.seconds);
            case.set_system_out(format!(
                "{}: {} programs, {} executions",
                report.verdict, report.programs, report.executions
            ));
            match junit
                .test_suites
                .iter_mut()
                .find(|suite| suite.name.as_str() == report.subject)
            {
                Some(suite) => _ = suite.add_test_case(case),
                None => {
                    let mut suite = TestSuite::new(report.subject.as_str());
                    suite.add_test_case(case);
                    junit.add_test_suite(suite);
                }
            }
        }
        let mut suite = TestSuite::new("specimens");
        for report in &self.specimens {
            let status = match report.as_expected() {
                true => TestCaseStatus::success(),
                false => failed("specimen", &report.judgement()),
            };
            let mut case = TestCase::new(report.name.as_str(), status);
            case.set_time(report.seconds);
            suite.add_test_case(case);
        }
        if !self.specimens.is_empty() {
            junit.add_test_suite(suite);
        }
        junit
    }

    /// Writes the results as a JUnit report.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the file.
    pub(super) fn write_junit(&self, path: &Path, command: &str) -> Result<(), String> {
        let text = self.junit(command).to_string();
        let text = text.map_err(|error| format!("cannot write a JUnit report: {error}"))?;
        write(path, text.as_bytes())
    }
}

/// Returns a failure as text, with the command that runs it again.
fn text(failure: &Counterexample, command: &str) -> String {
    format!("{failure}\nagain: {command} --replay '{}'", failure.token)
}

/// Adds a shard of a run.
fn add(all: &mut Report, shard: Report) {
    all.verdict = all.verdict.max(shard.verdict);
    all.programs += shard.programs;
    all.executions += shard.executions;
    all.observed = all.observed.map(|it| it + shard.observed.unwrap_or(0));
    all.seconds += shard.seconds;
    let mut counts = BTreeMap::new();
    let both = std::mem::take(&mut all.coverage)
        .into_iter()
        .chain(shard.coverage);
    for one in both {
        *counts.entry((one.operation, one.polling)).or_insert(0) += one.programs;
    }
    let counts = counts.into_iter();
    all.coverage = counts
        .map(|((operation, polling), programs)| Coverage {
            operation,
            polling,
            programs,
        })
        .collect();
    // Of each class the smallest program is reported, as in one run.
    let size = |failure: &Counterexample| {
        let steps = failure.program.split(['/', ',']);
        steps.filter(|step| !step.is_empty()).count()
    };
    all.failures.extend(shard.failures);
    all.failures.sort_by_key(size);
    let mut classes = Vec::new();
    all.failures.retain(|failure| {
        let new = !classes.contains(&failure.class);
        classes.push(failure.class);
        new
    });
}

/// The file of the results. It is replaced after each run by the results so far, which
/// are marked as interrupted until the last. The file is whole whenever the command is
/// stopped.
pub(super) struct JsonFile {
    path: PathBuf,
    /// The file that is written before it replaces the other. It is `None` if the
    /// output is not a regular file, such as a pipe.
    partial: Option<PathBuf>,
}

impl JsonFile {
    pub(super) fn new(path: &Path) -> Result<Self, String> {
        let special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let file = Self {
            path: path.to_owned(),
            partial: (!special).then(|| PathBuf::from(partial)),
        };
        let opened = match &file.partial {
            Some(partial) => std::fs::File::create(partial),
            None => std::fs::File::options().write(true).open(path),
        };
        match opened {
            Ok(_) => Ok(file),
            Err(error) => Err(format!("cannot write to {}: {error}", path.display())),
        }
    }

    pub(super) fn write(&self, results: &Results) -> Result<(), String> {
        if results.interrupted && self.partial.is_none() {
            return Ok(());
        }
        let written = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec_pretty(results).map_err(std::io::Error::from)?;
            text.push(b'\n');
            match &self.partial {
                Some(partial) => {
                    std::fs::write(partial, text)?;
                    std::fs::rename(partial, &self.path)
                }
                None => std::fs::write(&self.path, text),
            }
        };
        written().map_err(|error| format!("cannot write the results: {error}"))
    }
}

/// Writes a file.
///
/// # Errors
///
/// Returns a sentence that names the file.
pub(super) fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("cannot write to {}: {error}", path.display()))
}
