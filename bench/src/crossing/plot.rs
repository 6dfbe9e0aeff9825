//! The crossings as bars on a logarithmic scale, inline SVG like the other plots.

use super::Population;
use super::table::time;
use crate::html::escape;
use crate::results::{CrossingRow, Crossings};
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
/// Where the axis starts; titles and the bars' numbers are left of it.
const LEFT: f64 = 340.0;
const RIGHT: f64 = WIDTH - 50.0;
/// Where titles end.
const TITLES: f64 = LEFT - 76.0;
const ROW: f64 = 21.0;
const HEADING: f64 = 34.0;
/// Nanoseconds at both ends of the axis: a part of a plain call, and a new process.
const LOW: f64 = 0.7;
const HIGH: f64 = 20e6;

/// One bar for a row, one mark for each population.
pub(crate) fn bars(crossings: &Crossings) -> String {
    let rows: usize = crossings.groups.iter().map(|group| group.rows.len()).sum();
    let top = 24.0;
    let bottom = top + crossings.groups.len() as f64 * HEADING + rows as f64 * ROW + 6.0;
    let mut out = format!(
        r#"<svg viewBox="0 0 {WIDTH} {:.0}" role="img" aria-label="The time of every crossing">"#,
        bottom + 22.0
    );
    axis(&mut out, top, bottom);
    let mut y = top;
    for group in &crossings.groups {
        let _ = write!(
            out,
            r#"<text class="group" x="0" y="{:.1}">{}</text>"#,
            y + 24.0,
            escape(&group.title)
        );
        y += HEADING;
        for row in &group.rows {
            bar(&mut out, row, y);
            y += ROW;
        }
    }
    out + "</svg>"
}

fn at(nanoseconds: f64) -> f64 {
    let part = (nanoseconds.clamp(LOW, HIGH) / LOW).ln() / (HIGH / LOW).ln();
    LEFT + part * (RIGHT - LEFT)
}

/// A line and a number for every power of ten.
fn axis(out: &mut String, top: f64, bottom: f64) {
    for power in 0..=7 {
        let value = 10f64.powi(power);
        let x = at(value);
        let _ = write!(
            out,
            r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{top:.1}" y2="{bottom:.1}"/>"#
        );
        for y in [top - 6.0, bottom + 15.0] {
            let _ = write!(
                out,
                r#"<text class="tick" x="{x:.1}" y="{y:.1}">{}</text>"#,
                time(value)
            );
        }
    }
}

fn bar(out: &mut String, row: &CrossingRow, y: f64) {
    let middle = y + ROW / 2.0;
    let _ = write!(
        out,
        r#"<text class="name plain" x="{TITLES}" y="{:.1}">{}</text>"#,
        middle + 4.0,
        escape(&row.title)
    );
    let Some(median) = row.median(Population::One) else {
        let _ = write!(
            out,
            r#"<text class="value last" x="{}" y="{:.1}">missing</text>"#,
            LEFT - 8.0,
            middle + 4.0
        );
        return;
    };
    let _ = write!(
        out,
        r#"<g class="c-peer-{}"><title>{}: {}. {}</title><rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{}"/></g>"#,
        row.peer.name(),
        escape(&row.title),
        time(median),
        escape(&row.what),
        y + 4.0,
        (at(median) - LEFT).max(1.0),
        ROW - 8.0
    );
    if let Some([_, most]) = row.aim {
        let _ = write!(
            out,
            r#"<g><title>at most {}</title><path class="aim" d="M{:.1} {:.1}v{}"/></g>"#,
            time(most),
            at(most),
            y + 2.0,
            ROW - 4.0
        );
    }
    let mut last = None;
    for population in &Population::ALL[1..] {
        let Some(value) = row.median(*population) else {
            continue;
        };
        let title = format!("{}, {}: {}", row.title, population.title(), time(value));
        mark(out, *population, at(value), middle, &title);
        if population.is_in_turn() {
            last = Some(value);
        }
    }
    let _ = write!(
        out,
        r#"<text class="value last" x="{}" y="{:.1}">{}</text>"#,
        LEFT - 8.0,
        middle + 4.0,
        time(median)
    );
    if let Some(value) = last {
        let _ = write!(
            out,
            r#"<text class="value" x="{:.1}" y="{:.1}">{}</text>"#,
            at(value) + 9.0,
            middle + 4.0,
            time(value)
        );
    }
}

/// A circle for one of many, a diamond for all in turn; empty for 100, full for 10,000.
pub(crate) fn mark(out: &mut String, population: Population, x: f64, y: f64, title: &str) {
    let class = match population.domains() {
        100 => "mark few",
        _ => "mark",
    };
    let shape = match population.is_in_turn() {
        true => format!(
            r#"<path class="{class}" d="M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4-4.4z"/>"#,
            y - 4.4
        ),
        false => format!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3.4"/>"#),
    };
    let _ = write!(out, "<g><title>{}</title>{shape}</g>", escape(title));
}
