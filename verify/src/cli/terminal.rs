//! The terminal: progress, tables and failures.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::table::columns;
use crate::report::{Counterexample, Report, SpecimenReport};
use crate::subject::verdict::Class;

/// Whether the output has colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum When {
    /// On a terminal, unless the environment variable `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// Where text goes, and how it is coloured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    colours: bool,
}

impl Terminal {
    pub(super) fn new(when: When) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: match when {
                When::Always => true,
                When::Never => false,
                When::Auto => std::io::stdout().is_terminal() && !refused,
            },
        }
    }

    /// Prints a line. If the reader of the output is gone, the process exits.
    pub(super) fn say(self, line: impl Display) {
        if writeln!(std::io::stdout(), "{line}").is_err() {
            std::process::exit(1);
        }
    }

    /// Prints the line of a run that has ended.
    pub(super) fn say_report(self, report: &Report) {
        let line = report.line();
        match report.holds() {
            true => self.say(line),
            false => self.say(self.red(&line)),
        }
    }

    /// Prints a failure, and the command that runs it again.
    pub(super) fn say_failure(self, failure: &Counterexample, command: &str) {
        self.say("");
        for line in failure.to_string().lines() {
            // The first line is the sentence. The mark is where a wake-up is missing.
            match line.starts_with(&*failure.class.to_string())
                || line.contains(Counterexample::MARK)
            {
                true => self.say(self.red(line)),
                false => self.say(line),
            }
        }
        self.say(format_args!(
            "again: {command} --replay '{}'",
            failure.token
        ));
        self.say("");
    }

    fn red(self, text: &str) -> String {
        let style = match self.colours {
            true => Style::new().fg_color(Some(AnsiColor::Red.into())).bold(),
            false => Style::new(),
        };
        format!("{style}{text}{style:#}")
    }

    pub(super) fn results(self, results: &[Report]) -> Table {
        let mut table = self.table(&[
            "subject",
            "engine",
            "mode",
            "verdict",
            "bound",
            "programs",
            "executions",
            "seconds",
            "",
        ]);
        for report in results {
            let found = match report.failures.first() {
                Some(failure) => failure.class.to_string(),
                None if report.holds() => "holds".to_owned(),
                None => "nothing was run".to_owned(),
            };
            table.add_row(vec![
                Cell::new(&report.subject),
                Cell::new(&report.engine),
                Cell::new(&report.mode),
                Cell::new(report.verdict),
                Cell::new(&report.bound),
                Cell::new(HumanCount(report.programs)),
                Cell::new(HumanCount(report.executions)),
                Cell::new(format_args!("{:.2}", report.seconds.as_secs_f64())),
                self.judged(found, report.holds()),
            ]);
        }
        align_right(&mut table, &[5, 6, 7]);
        table
    }

    pub(super) fn specimens(self, specimens: &[SpecimenReport]) -> Table {
        let mut table = self.table(&[
            "specimen",
            "expected",
            "found",
            "program",
            "executions",
            "seconds",
            "",
        ]);
        let class = |class: Option<Class>| class.map_or("nothing".to_owned(), |it| it.to_string());
        for report in specimens {
            let judged = match report.as_expected() {
                true => "as expected",
                false => "NOT AS EXPECTED",
            };
            table.add_row(vec![
                Cell::new(&report.name),
                Cell::new(class(report.expected)),
                Cell::new(class(report.found)),
                Cell::new(&report.program),
                Cell::new(HumanCount(report.executions)),
                Cell::new(format_args!("{:.2}", report.seconds.as_secs_f64())),
                self.judged(judged.to_owned(), report.as_expected()),
            ]);
        }
        align_right(&mut table, &[4, 5]);
        table
    }

    /// Returns a cell that is red if the text is bad news.
    fn judged(self, text: String, good: bool) -> Cell {
        let cell = Cell::new(text);
        match self.colours && !good {
            true => cell.fg(Color::Red),
            false => cell,
        }
    }

    fn table(self, header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        if let Some(width) = width() {
            table.set_width(width);
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        match self.colours {
            true => table.enforce_styling(),
            false => table.force_no_tty(),
        };
        table.set_header(header.to_vec());
        table
    }
}

/// The progress of the run, on a terminal.
pub(super) struct Bar {
    bar: ProgressBar,
    /// The run that is shown, and when it began.
    run: Mutex<(String, Instant)>,
}

impl Bar {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if std::io::stderr().is_terminal() {
            let template = "{prefix} {bar:24} {pos}/{len} programs, {msg}";
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.expect("the template is well-formed"));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self {
            bar,
            run: Mutex::new((String::new(), Instant::now())),
        }
    }

    pub(super) fn show(&self, report: &Report, programs: usize) {
        let seconds = report.seconds.as_secs_f64().max(0.001);
        let rate = report.executions as f64 / seconds;
        let Report {
            subject,
            engine,
            mode,
            ..
        } = report;
        let name = format!("{subject} {engine}/{mode}");
        let mut run = self.run.lock().unwrap_or_else(|poison| poison.into_inner());
        if run.0 != name || report.programs < self.bar.position() {
            *run = (name.clone(), Instant::now());
        }
        let left = time_left(run.1.elapsed(), report.programs, programs as u64);
        self.bar.set_prefix(name);
        self.bar.set_length(programs as u64);
        self.bar.set_position(report.programs);
        self.bar.set_message(format!(
            "{} executions/s of a core{left}",
            HumanCount(rate as u64)
        ));
    }

    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Returns how much time is left, as a part of a sentence. It is empty while too little
/// is done for an estimate. Later programs are larger, so the estimate is rather too
/// low.
fn time_left(taken: Duration, done: u64, of: u64) -> String {
    if taken < Duration::from_secs(3) || done * 20 < of || done == 0 {
        return String::new();
    }
    let left = taken.as_secs_f64() * (of - done.min(of)) as f64 / done as f64;
    format!(", {} left", HumanDuration(Duration::from_secs_f64(left)))
}

/// Returns the width of the output, from `COLUMNS` or the terminal. It is `None` if
/// there is no terminal.
pub(super) fn width() -> Option<u16> {
    columns().or_else(|| Table::new().width())
}

fn align_right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
