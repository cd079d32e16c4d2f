//! Dispatch: every program once, runs in their order, the first failure found.

use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::report::trace::Trace;
use crate::report::{Counterexample, Report};
use crate::run::dispatch::{Batch, BatchResult, Event, Prepare, Thread, Work, Worker, dispatch};
use crate::run::process::Process;
use crate::subject::plan::Mode;
use crate::subject::verdict::{Class, Verdict};

/// So many programs, of which some fail; it notes which were run.
struct Numbers<'a> {
    programs: usize,
    failing: &'static [usize],
    ran: &'a Mutex<Vec<usize>>,
}

impl Work for Numbers<'static> {
    fn empty_report(&self) -> Report {
        Report {
            subject: format!("{} numbers", self.programs),
            engine: "none".to_owned(),
            mode: "none".to_owned(),
            verdict: Verdict::Complete,
            bound: String::new(),
            programs: 0,
            executions: 0,
            observed: None,
            coverage: Vec::new(),
            failures: Vec::new(),
            seconds: Duration::ZERO,
        }
    }

    fn programs(&self) -> usize {
        self.programs
    }

    fn text(&self, program: usize) -> String {
        format!("number {program}")
    }

    fn run_one(&self, program: usize) -> BatchResult {
        self.ran.lock().unwrap().push(program);
        let fails = self.failing.contains(&program);
        let counterexample = || Counterexample {
            class: Class::WrongResult,
            sentence: "it fails".to_owned(),
            program: self.text(program),
            execution: 1,
            token: String::new(),
            table: String::new(),
            trace: Trace::default(),
        };
        BatchResult {
            programs: 1,
            executions: 2,
            cut: fails,
            failures: fails
                .then(|| (program, counterexample()))
                .into_iter()
                .collect(),
            ..BatchResult::default()
        }
    }
}

/// Dispatches runs to threads. Returns the reports, which programs were run, and the
/// runs in the order in which they ended.
fn dispatched(
    runs: &[(usize, &'static [usize])],
    threads: usize,
) -> (Vec<Report>, Vec<Vec<usize>>, Vec<usize>) {
    let ran: Vec<&'static Mutex<Vec<usize>>> = runs
        .iter()
        .map(|_| &*Box::leak(Box::new(Mutex::default())))
        .collect();
    let prepare: Vec<_> = runs
        .iter()
        .zip(&ran)
        .map(|(&(programs, failing), &ran)| {
            move || {
                Box::new(Numbers {
                    programs,
                    failing,
                    ran,
                }) as Box<dyn Work>
            }
        })
        .collect();
    let prepare = prepare.iter().map(|prepare| prepare as Prepare<'_>);
    let workers = (0..threads).map(|_| Thread).collect();
    let mut ended = Vec::new();
    let reports = dispatch(prepare.collect(), workers, &mut |event| {
        if let Event::Ended(run, _) = event {
            ended.push(run);
        }
    });
    let sorted = |ran: &&Mutex<Vec<usize>>| {
        let mut ran = ran.lock().unwrap().clone();
        ran.sort_unstable();
        ran
    };
    (reports, ran.iter().map(sorted).collect(), ended)
}

#[test]
fn every_program_is_run_once_and_runs_end_in_their_order() {
    for threads in [1, 2, 5] {
        let (reports, ran, ended) =
            dispatched(&[(1_000, &[]), (0, &[]), (3, &[]), (70, &[])], threads);
        assert_eq!(ended, [0, 1, 2, 3]);
        for (number, (report, ran)) in [1_000, 0, 3, 70].into_iter().zip(reports.iter().zip(ran)) {
            assert_eq!(report.subject, format!("{number} numbers"));
            assert_eq!(ran, (0..number).collect::<Vec<_>>());
            assert_eq!(report.programs, number as u64);
            assert_eq!(report.executions, 2 * number as u64);
            assert_eq!(report.verdict, Verdict::Complete);
            assert_eq!(report.holds(), number > 0, "a run of nothing shows nothing");
        }
    }
}

#[test]
fn the_first_that_fails_is_found_and_larger_ones_are_let_be() {
    for threads in [1, 2, 5] {
        let (reports, ran, ended) =
            dispatched(&[(100_000, &[700, 900, 60_000]), (10, &[])], threads);
        assert_eq!(ended, [0, 1]);
        let failures = &reports[0].failures;
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].program, "number 700");
        assert_eq!(reports[0].verdict, Verdict::Bounded);
        // All that is smaller was run, and not much besides.
        assert!(ran[0].starts_with(&(0..=700).collect::<Vec<_>>()));
        assert!(ran[0].len() < 2_000, "{} were run", ran[0].len());
        assert!(reports[1].holds());
    }
}

/// A later failure that comes back first does not stand.
#[test]
fn a_smaller_failure_that_comes_back_later_is_what_is_reported() {
    struct Late(Thread);
    impl Worker for Late {
        fn run(&mut self, batch: &Batch) -> BatchResult {
            let part = self.0.run(batch);
            if part.failures.iter().any(|(index, _)| *index == 3) {
                std::thread::sleep(Duration::from_millis(100));
            }
            part
        }
    }
    let ran = &*Box::leak(Box::new(Mutex::default()));
    let prepare = move || {
        Box::new(Numbers {
            programs: 10,
            failing: &[3, 4, 5],
            ran,
        }) as Box<dyn Work>
    };
    let workers = (0..3).map(|_| Late(Thread)).collect();
    let reports = dispatch(vec![&prepare], workers, &mut |_| {});
    assert_eq!(reports[0].failures[0].program, "number 3");
}

/// The test program itself, asked for a test that there is not: it prints, and
/// ends without an answer.
#[test]
fn a_process_that_dies_is_told_of_with_the_program_it_died_of() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "no such test"]);
    let ran = &*Box::leak(Box::new(Mutex::default()));
    let prepare = move || {
        Box::new(Numbers {
            programs: 9,
            failing: &[],
            ran,
        }) as Box<dyn Work>
    };
    let reports = dispatch(vec![&prepare], vec![Process::new(command)], &mut |_| {});
    assert!(!reports[0].holds());
    assert_eq!(reports[0].verdict, Verdict::Bounded);
    let failure = &reports[0].failures[0];
    assert_eq!(failure.class, Class::Panic);
    assert_eq!(failure.program, "number 0");
    assert!(failure.sentence.contains("its process died"), "{failure}");
}

#[test]
fn loom_has_one_thread() {
    assert_eq!(Thread::all(Mode::Sections).len(), 1);
    assert!(!Thread::all(Mode::Exhaustive).is_empty());
}
