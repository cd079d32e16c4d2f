//! Workers that are processes.
//!
//! A worker is this program, started with the same arguments and `--worker`. It
//! reads a batch from each line, `run from to`, and writes a [`BatchResult`] to
//! a line, until its input ends.
//!
//! Processes share no memory map. Threads of one process do, and loom changes it
//! for every execution: two threads take longer than one, and two processes half
//! as long. If a program kills its process, by a stack overflow or an abort, that
//! is a failure like others.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::report::Counterexample;
use crate::report::trace::Trace;
use crate::run::dispatch::{Batch, BatchResult, Prepare, Work, Worker};
use crate::subject::verdict::Class;

/// A worker process.
pub(crate) struct Process {
    command: Command,
    running: Option<Running>,
}

struct Running {
    child: Child,
    batches: ChildStdin,
    results: BufReader<ChildStdout>,
}

impl Process {
    /// Creates a worker that starts its process by the command at its first batch.
    pub(crate) fn new(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self {
            command,
            running: None,
        }
    }

    /// Makes the process run a batch.
    ///
    /// # Errors
    ///
    /// Returns how the process died.
    fn ask(&mut self, batch: &Batch) -> Result<BatchResult, String> {
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Running::start(&mut self.command)?),
        };
        running.ask(batch).ok_or_else(|| {
            let mut child = self.running.take().expect("it is running").child;
            match child.wait() {
                Ok(status) => format!("its process died: {status}"),
                Err(error) => format!("its process died: {error}"),
            }
        })
    }
}

impl Running {
    fn start(command: &mut Command) -> Result<Self, String> {
        let spawned = command.spawn();
        let mut child = spawned.map_err(|error| format!("no process could be started: {error}"))?;
        let batches = child.stdin.take().expect("it is piped");
        let results = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Self {
            child,
            batches,
            results,
        })
    }

    /// Returns the result of a batch; `None` if the process is gone.
    fn ask(&mut self, batch: &Batch) -> Option<BatchResult> {
        let Batch { run, programs, .. } = batch;
        writeln!(self.batches, "{run} {} {}", programs.start, programs.end).ok()?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.results.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match serde_json::from_str(&line) {
                Ok(result) => return Some(result),
                // The subject prints.
                Err(_) if !line.trim().is_empty() => eprint!("{line}"),
                Err(_) => {}
            }
        }
    }
}

impl Worker for Process {
    /// Runs a batch. If the process dies, runs its programs one by one, each in a
    /// process of its own, to find the one that kills it.
    fn run(&mut self, batch: &Batch) -> BatchResult {
        match self.ask(batch) {
            Ok(result) => result,
            Err(how) if batch.programs.len() == 1 => {
                let program = batch.programs.start;
                BatchResult::died(program, died(&*batch.work, program, how))
            }
            Err(_) => BatchResult::of(batch.programs.clone(), batch.work.each_class(), |program| {
                self.run(&Batch {
                    programs: program..program + 1,
                    ..batch.clone()
                })
            }),
        }
    }
}

impl Drop for Process {
    /// Closes the process's input, at which it ends.
    fn drop(&mut self) {
        if let Some(Running {
            mut child, batches, ..
        }) = self.running.take()
        {
            drop(batches);
            let _ = child.wait();
        }
    }
}

fn died(work: &dyn Work, program: usize, how: String) -> Counterexample {
    Counterexample {
        class: Class::Panic,
        sentence: how,
        program: work.text(program),
        execution: 1,
        token: "none: the process died".to_owned(),
        table: String::new(),
        trace: Trace::default(),
    }
}

/// Runs the batches that arrive on the standard input.
///
/// # Errors
///
/// Returns an error for a line that no [`Process`] writes.
pub(crate) fn serve(runs: &[Prepare<'_>]) -> Result<(), String> {
    let mut current: Option<(usize, Box<dyn Work>)> = None;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("batches cannot be read: {error}"))?;
        let numbers: Option<Vec<usize>> = line.split(' ').map(|n| n.parse().ok()).collect();
        let Some(&[run, from, to]) = numbers.as_deref() else {
            return Err(format!(
                "`{line}` is not a batch: it takes the number of a run and its programs, from and to"
            ));
        };
        let prepare = runs
            .get(run)
            .ok_or_else(|| format!("there is no run {run}"))?;
        let work = match &mut current {
            Some((of, work)) if *of == run => work,
            other => &mut other.insert((run, prepare())).1,
        };
        let result = serde_json::to_string(&work.run(from..to));
        let result = result.map_err(|error| format!("a result cannot be written: {error}"))?;
        // On a line of its own, after anything that the subject has printed.
        if writeln!(std::io::stdout(), "\n{result}").is_err() {
            break; // The reader is gone, so no more results are needed.
        }
    }
    Ok(())
}
