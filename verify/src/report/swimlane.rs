//! A trace as a picture: a lane for each participant and each lock, with time downwards.
//!
//! A bar is a poll, from its call to its return. A box is a section, with the lock that
//! it is of at the same height. An arrow leads from a wake to the poll that follows it.
//! A dashed arrow is a wake-up that is missing.

use maud::{Markup, html};

use crate::report::trace::{Effect, Kind, Line, Trace};

/// The height of an event.
const ROW: usize = 24;
/// The height of the names of the lanes.
const HEAD: usize = 32;
/// The width of the numbers of the events.
const GUTTER: usize = 36;
/// The width of the lane of a participant.
const LANE: usize = 236;
/// The width of the lane of a lock.
const LOCK: usize = 72;
/// The number of characters that a lane has room for.
const ROOM: usize = 30;

/// Returns the left edge of a lane.
fn left(lane: usize) -> usize {
    GUTTER + lane * LANE
}

/// Returns the height at which an event is drawn.
fn middle(event: usize) -> usize {
    HEAD + event * ROW + ROW / 2
}

/// Returns the picture of a trace.
pub(super) fn draw(trace: &Trace, title: &str) -> Markup {
    let lanes = trace.lanes();
    let locks = trace.locks();
    let lock_at = |lock: usize| left(lanes.len()) + lock * LOCK + LOCK / 2;
    let width = left(lanes.len()) + locks * LOCK + 8;
    let height = HEAD + trace.events.len() * ROW + 8;
    let bottom = height - 8;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}"))
            width=(width) height=(height) role="img" aria-label=(title) {
            @for (lane, name) in lanes.iter().enumerate() {
                line .lane x1=(left(lane) + 5) x2=(left(lane) + 5) y1=(HEAD - 4) y2=(bottom) {}
                text .name x=(left(lane)) y=(HEAD - 12) { (name) }
            }
            @for lock in 0..locks {
                line .lane x1=(lock_at(lock)) x2=(lock_at(lock)) y1=(HEAD - 4) y2=(bottom) {}
                text .name text-anchor="middle" x=(lock_at(lock)) y=(HEAD - 12) {
                    @if lock == 0 { "lock" } @else { "lock " (lock + 1) }
                }
            }
            @for (from, to) in polls(trace) {
                rect .poll x=(left(trace.events[from].lane) + 2) y=(middle(from) - 8)
                    width="6" height=((to - from) * ROW + 16) rx="3" {}
            }
            @for (event, line) in trace.events.iter().enumerate() {
                @let y = middle(event);
                text .number text-anchor="end" x=(GUTTER - 8) y=(y + 4) { (event + 1) }
                @if let Kind::Section { lock, effect } = line.kind {
                    @let class = if effect == Effect::Changed { "section changed" } else { "section" };
                    line .of x1=(left(line.lane) + LANE - 8) x2=(lock_at(lock)) y1=(y) y2=(y) {}
                    rect class=(class) x=(left(line.lane) + 10) y=(y - 10)
                        width=(LANE - 18) height="20" rx="4" {}
                    rect class=(class) x=(lock_at(lock) - 12) y=(y - 7) width="24" height="14"
                        rx="4" {}
                }
                text class=(class_of(line)) x=(left(line.lane) + 16) y=(y + 4) {
                    @let text = line.text.trim();
                    @if text.chars().count() > ROOM {
                        (text.chars().take(ROOM - 1).collect::<String>()) "…"
                        title { (text) }
                    } @else { (text) }
                }
            }
            @for (from, to) in wakes(trace) {
                (arrow(trace, from, to, "wake"))
            }
            @for missing in &trace.missing {
                @if missing.after != missing.waits {
                    (arrow(trace, missing.after, missing.waits, "missing"))
                } @else {
                    rect .missing x=(left(trace.events[missing.waits].lane) + 10)
                        y=(middle(missing.waits) - 10) width=(LANE - 18) height="20" rx="4" {}
                }
            }
        }
    }
}

fn class_of(line: &Line) -> &'static str {
    match line.kind {
        Kind::Call | Kind::Return => "call",
        Kind::Wake { .. } => "waking",
        Kind::Waits => "waits",
        _ => "event",
    }
}

/// Returns the polls, each from the event in which it begins to that in which it ends.
fn polls(trace: &Trace) -> Vec<(usize, usize)> {
    let mut begun = vec![None; trace.participants.len() + 1];
    let mut polls = Vec::new();
    for (event, line) in trace.events.iter().enumerate() {
        match line.kind {
            Kind::Poll => begun[line.lane] = Some(event),
            Kind::Pending | Kind::Return => {
                let from = begun[line.lane].take();
                polls.extend(from.map(|from| (from, event)));
            }
            _ => {}
        }
    }
    polls
}

/// Returns the wakes, each with the poll that follows it.
fn wakes(trace: &Trace) -> Vec<(usize, usize)> {
    let wakes = trace.events.iter().enumerate();
    wakes
        .filter_map(|(event, line)| {
            let Kind::Wake { owner } = line.kind else {
                return None;
            };
            let mut later = trace.events.iter().enumerate().skip(event);
            let poll = later.find(|(_, line)| line.lane == owner && line.kind == Kind::Poll)?;
            Some((event, poll.0))
        })
        .collect()
}

/// Returns an arrow from an event of one lane to an event of another.
fn arrow(trace: &Trace, from: usize, to: usize, class: &str) -> Markup {
    let (a, b) = (trace.events[from].lane, trace.events[to].lane);
    // It leaves on the side of the other lane, and ends at the line of the other lane.
    let (x1, side) = if b > a {
        (left(a) + LANE - 10, -1)
    } else {
        (left(a) + 12, 1)
    };
    let x2 = if b > a { left(b) + 1 } else { left(b) + 12 };
    let (y1, y2) = (middle(from), middle(to));
    let mid = x1.midpoint(x2);
    let tip = x2.saturating_add_signed(side * 7);
    html! {
        path class=(class) fill="none" d=(format!("M{x1} {y1}C{mid} {y1} {mid} {y2} {tip} {y2}")) {}
        path class=(format!("{class} tip"))
            d=(format!("M{x2} {y2}L{tip} {}L{tip} {}Z", y2.saturating_sub(4), y2 + 4)) {}
    }
}
