//! An execution as a table, with a column for each participant and a row for each
//! event.

use comfy_table::{ContentArrangement, Table, presets};

use crate::report::Counterexample;
use crate::report::trace::{Missing, Trace};
use crate::subject::role::Role;

/// Replaces the numbers of participants in a sentence by their names.
pub(crate) fn name(sentence: &str, names: &[String]) -> String {
    let mut text = sentence.to_owned();
    for (number, name) in names.iter().enumerate() {
        text = text.replace(&format!("{{{number}}}"), name);
    }
    text.replace(&format!("{{{}}}", names.len()), "the clean-up")
}

/// Returns the names of the participants. Equal names are numbered.
pub(crate) fn names(roles: &[Role<()>]) -> Vec<String> {
    roles
        .iter()
        .enumerate()
        .map(|(index, role)| {
            let same = |roles: &[Role<()>]| roles.iter().filter(|r| r.name == role.name).count();
            match same(roles) {
                1 => role.name.to_owned(),
                _ => format!("{} {}", role.name, same(&roles[..=index])),
            }
        })
        .collect()
}

/// Returns the width that the environment variable `COLUMNS` asks for.
pub(crate) fn columns() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
    (columns >= 20).then_some(columns)
}

/// Formats a trace. An arrow marks the event after which a wake-up is missing.
pub(crate) fn draw(trace: &Trace) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    match columns() {
        Some(width) => table
            .set_width(width)
            .set_content_arrangement(ContentArrangement::Dynamic),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let lanes = trace.lanes();
    let mut header = vec![""];
    header.extend(&lanes);
    table.set_header(header);
    for (index, line) in trace.events.iter().enumerate() {
        let mut row = vec![String::new(); lanes.len() + 1];
        row[0] = (index + 1).to_string();
        if let Some(cell) = row.get_mut(line.lane + 1) {
            cell.clone_from(&line.text);
            let missing = |missing: &&Missing| missing.after == index;
            for missing in trace.missing.iter().filter(missing) {
                let lane = trace.events[missing.waits].lane;
                let waiter = trace.participants.get(lane).map_or("", String::as_str);
                *cell += &format!("  {} {waiter} follows", Counterexample::MARK);
            }
        }
        table.add_row(row);
    }
    table.to_string()
}
