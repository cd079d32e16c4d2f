//! Workers that are processes.
//!
//! A worker is this very program, asked for the same runs, and told to work. It
//! reads a task a line, `run from to`, and answers a [`Part`] a line, until there
//! are no more lines.
//!
//! Processes share no memory map. Threads of one process do, and loom changes it
//! for every execution: two threads take longer than one, and two processes half
//! as long. And where a program takes its process down, by an overflow of its
//! stack or an abort, that is one more failure to be told of.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::deal::{Prepare, Task, Worker};
use crate::run::{Part, Work};
use crate::verdict::{Class, Counterexample};

/// A process that works.
pub(crate) struct Process {
    command: Command,
    running: Option<Running>,
}

struct Running {
    child: Child,
    tasks: ChildStdin,
    parts: BufReader<ChildStdout>,
}

impl Process {
    /// A process that is started by the command when there is something to do.
    pub(crate) fn new(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self {
            command,
            running: None,
        }
    }

    /// Has the process run programs.
    ///
    /// # Errors
    ///
    /// How it died.
    fn ask(&mut self, task: &Task) -> Result<Part, String> {
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Running::start(&mut self.command)?),
        };
        running.ask(task).ok_or_else(|| {
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
        let tasks = child.stdin.take().expect("it is piped");
        let parts = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Self {
            child,
            tasks,
            parts,
        })
    }

    /// What came of a task; none where the process is gone.
    fn ask(&mut self, task: &Task) -> Option<Part> {
        let Task { run, programs, .. } = task;
        writeln!(self.tasks, "{run} {} {}", programs.start, programs.end).ok()?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.parts.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match serde_json::from_str(&line) {
                Ok(part) => return Some(part),
                // The subject prints.
                Err(_) if !line.trim().is_empty() => eprint!("{line}"),
                Err(_) => {}
            }
        }
    }
}

impl Worker for Process {
    /// Runs them; where the process dies, one by one, each in a process of its
    /// own, to know which of them it was.
    fn run(&mut self, task: &Task) -> Part {
        match self.ask(task) {
            Ok(part) => part,
            Err(how) if task.programs.len() == 1 => {
                let program = task.programs.start;
                Part::died(program, died(&*task.work, program, how))
            }
            Err(_) => Part::of(task.programs.clone(), |program| {
                self.run(&Task {
                    programs: program..program + 1,
                    ..task.clone()
                })
            }),
        }
    }
}

impl Drop for Process {
    /// A process without tasks ends.
    fn drop(&mut self) {
        if let Some(Running {
            mut child, tasks, ..
        }) = self.running.take()
        {
            drop(tasks);
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
        token: "none: what died cannot be asked".to_owned(),
        table: String::new(),
    }
}

/// Works: what a process does that was started for it.
///
/// # Errors
///
/// Where a line is none that a [`Process`] writes.
pub(crate) fn serve(runs: &[Prepare<'_>]) -> Result<(), String> {
    let mut current: Option<(usize, Box<dyn Work>)> = None;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("tasks cannot be read: {error}"))?;
        let numbers: Option<Vec<usize>> = line.split(' ').map(|n| n.parse().ok()).collect();
        let Some(&[run, from, to]) = numbers.as_deref() else {
            return Err(format!(
                "`{line}` is no task: a run and its programs, from and to"
            ));
        };
        let prepare = runs
            .get(run)
            .ok_or_else(|| format!("there is no run {run}"))?;
        let work = match &mut current {
            Some((of, work)) if *of == run => work,
            other => &mut other.insert((run, prepare())).1,
        };
        let part = serde_json::to_string(&work.run(from..to));
        let part = part.map_err(|error| format!("a part cannot be written: {error}"))?;
        // On a line of its own, whatever the subject has printed.
        if writeln!(std::io::stdout(), "\n{part}").is_err() {
            break; // Nobody is there any more.
        }
    }
    Ok(())
}
