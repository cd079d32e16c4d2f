//! An execution as a table, with a column for each participant and a row for each
//! event.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use reveille::backend::Passage;
use reveille::protocol::Bits;

use crate::execution::event::{Event, What};
use crate::subject::role::Role;
use crate::subject::step::Hook;

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

/// Formats a trace.
pub(crate) fn draw(trace: &[Event], names: &[String], describe: &dyn Fn(Bits) -> String) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    match columns() {
        Some(width) => table
            .set_width(width)
            .set_content_arrangement(ContentArrangement::Dynamic),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let mut header = vec![String::new()];
    header.extend(names.iter().cloned());
    if trace.iter().any(|event| event.who >= names.len()) {
        header.push("clean-up".to_owned());
    }
    let columns = header.len();
    table.set_header(header);
    let mut number = 0;
    for event in trace {
        let text = row_text(&event.what, names, describe);
        number += 1;
        let mut row = vec![String::new(); columns];
        row[0] = number.to_string();
        if let Some(cell) = row.get_mut(event.who + 1) {
            *cell = text;
        }
        table.add_row(row);
    }
    table.to_string()
}

fn row_text(what: &What, names: &[String], describe: &dyn Fn(Bits) -> String) -> String {
    let whose = |owner: usize| names.get(owner).map_or("clean-up", String::as_str);
    let mut text = String::new();
    match what {
        What::Call(call) => write!(text, "{call}"),
        What::Return(ret) => write!(text, "= {ret}"),
        What::Poll { polls: 1, waker } => write!(text, "  poll with w{waker}"),
        What::Poll { waker, .. } => write!(text, "  poll again with w{waker}"),
        What::Pending => write!(text, "  pending"),
        What::Suspended => write!(text, "  waits"),
        What::DropFuture => write!(text, "  drop the future"),
        What::Cancelled => write!(text, "= cancelled"),
        What::Unwound => write!(text, "= unwound by a waker's panic"),
        What::Section {
            lock,
            passage,
            before,
            after,
        } => {
            let lock = match lock {
                0 => String::new(),
                n => format!(" {}", n + 1),
            };
            match passage {
                Passage::Load => write!(text, "  see{lock} [{}]", describe(*before)),
                _ if before == after => write!(text, "  lock{lock} [{}]", describe(*before)),
                _ => write!(
                    text,
                    "  lock{lock} [{}] -> [{}]",
                    describe(*before),
                    describe(*after)
                ),
            }
        }
        What::Waker { hook, owner, waker } => {
            let done = match hook {
                Hook::Clone => "clone",
                Hook::Wake => "WAKE",
                Hook::Drop => "drop",
            };
            write!(text, "  {done} w{waker} of {}", whose(*owner))
        }
        What::Unpark { owner } => write!(text, "  UNPARK {}", whose(*owner)),
        What::DropValue(id) => write!(text, "  drop value {id}"),
        What::More => write!(text, "  and so on"),
    }
    .expect("writing to a string does not fail");
    text
}
