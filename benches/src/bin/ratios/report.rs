//! The ratios as a table, as JSON, as Markdown and as a page.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use maud::{DOCTYPE, PreEscaped, html};
use serde::Serialize;

/// A run.
#[derive(Serialize)]
pub(crate) struct Run {
    /// The architecture and the system.
    pub(crate) system: String,
    /// The number of cores.
    pub(crate) cores: usize,
    /// The version of Reveille.
    pub(crate) version: &'static str,
    /// How it was measured.
    pub(crate) method: String,
    pub(crate) rows: Vec<Row>,
}

/// What was measured of a contender.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) group: &'static str,
    pub(crate) contender: &'static str,
    /// `reveille`, `peer`, or `part` for a part of the work alone.
    pub(crate) kind: &'static str,
    /// The median time of an operation.
    pub(crate) nanoseconds: f64,
    /// The time over that of the fastest contender.
    pub(crate) to_fastest: f64,
    /// Half the range of the middle half of that ratio.
    pub(crate) spread: f64,
    /// The time over that of the fastest peer.
    pub(crate) to_fastest_peer: f64,
    /// The allocations of an operation.
    pub(crate) allocations: f64,
    /// The bytes that an operation allocates.
    pub(crate) bytes: f64,
}

const HEADER: [&str; 8] = [
    "group",
    "contender",
    "ns/op",
    "to the fastest",
    "±",
    "to the fastest peer",
    "allocations/op",
    "bytes/op",
];

impl Row {
    fn name(&self) -> String {
        match self.kind {
            "part" => format!("({})", self.contender),
            _ => self.contender.to_owned(),
        }
    }

    fn cells(&self) -> [String; 8] {
        [
            self.group.to_owned(),
            self.name(),
            format!("{:.1}", self.nanoseconds),
            format!("{:.2}", self.to_fastest),
            format!("{:.2}", self.spread),
            format!("{:.2}", self.to_fastest_peer),
            format!("{:.0}", self.allocations),
            format!("{:.0}", self.bytes),
        ]
    }
}

/// Returns the table for a terminal, with how it was measured.
pub(crate) fn table(run: &Run) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(HEADER);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in &run.rows {
        table.add_row(row.cells().map(Cell::new));
    }
    format!("{table}\n{}", run.method)
}

/// Returns the run as JSON.
pub(crate) fn json(run: &Run) -> String {
    serde_json::to_string_pretty(run).expect("numbers and text can be written") + "\n"
}

/// Returns the run as a table in Markdown.
pub(crate) fn markdown(run: &Run) -> String {
    let mut text = format!("| {} |\n", HEADER.join(" | "));
    text += "| --- | --- | --: | --: | --: | --: | --: | --: |\n";
    for row in &run.rows {
        writeln!(text, "| {} |", row.cells().join(" | ")).expect("a string takes all");
    }
    let Run {
        system,
        cores,
        version,
        method,
        ..
    } = run;
    writeln!(
        text,
        "\n{method} Reveille {version} on {cores} cores, {system}."
    )
    .expect("a string takes all");
    text
}

/// The ratio at the right end of the bars.
const WIDEST: f64 = 32.0;

/// Returns the length of a bar in percent, on a logarithmic scale from 1 on. Even the
/// fastest has a bar that can be seen.
fn bar(ratio: f64) -> f64 {
    let length = ratio.clamp(1.0, WIDEST).ln() / WIDEST.ln();
    4.0 + 96.0 * length
}

/// Returns the run as a page with a bar for each contender.
pub(crate) fn html(run: &Run) -> String {
    let Run {
        system,
        cores,
        version,
        method,
        ..
    } = run;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                link rel="icon" href="data:,";
                title { "Ratios to the fastest" }
                style { (PreEscaped(include_str!("report.css"))) }
            }
            body {
                h1 { "Ratios to the fastest" }
                p { "Reveille " (version) " on " (cores) " cores, " (system) ". A shorter bar is \
                     faster. The scale is logarithmic, from 1 to " (WIDEST) "." }
                main {
                    @for group in run.rows.chunk_by(|a, b| a.group == b.group) {
                        section {
                            h2 { (group[0].group) }
                            @for row in group {
                                div .row {
                                    span .name { (row.name()) }
                                    span .track {
                                        span class={ "bar " (row.kind) }
                                            style={ "width:" (format!("{:.1}", bar(row.to_fastest))) "%" } {}
                                    }
                                    span .number {
                                        (format!("{:.2}", row.to_fastest))
                                    }
                                    span .soft {
                                        (format!("{:.1} ns", row.nanoseconds)) ", "
                                        (format!("{:.0}", row.allocations)) " allocations"
                                    }
                                }
                            }
                        }
                    }
                }
                p .soft { (method) }
            }
        }
    }
    .into_string()
}
