//! The plots of the page, as inline SVG: text in the page's font, colours from its
//! style sheet, a `<title>` on every mark.

use crate::column::Column;
use crate::html::escape;
use crate::results::{Results, Row};
use crate::stats::Quartiles;
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
/// Where the axis starts; labels are left of it.
const LEFT: f64 = 150.0;
const RIGHT: f64 = WIDTH - 64.0;
/// Height of a row of the first plot, in which every column has a lane of its own.
const ROW: f64 = 27.0;
const HEADING: f64 = 30.0;

/// A logarithmic axis of ratios.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    const TICKS: [f64; 14] = [
        0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0,
    ];

    /// Holds all values, but never less than `0.9..1.5` nor more than `0.6..2.5`: what lies
    /// beyond is told in figures, so that the middle can be seen.
    fn around(values: &[f64]) -> Axis {
        let (least, most) = values
            .iter()
            .fold((1.0f64, 1.0f64), |(l, m), v| (l.min(*v), m.max(*v)));
        Axis {
            low: (least * 0.97).clamp(0.6, 0.9),
            high: (most * 1.05).clamp(1.5, 2.5),
        }
    }

    fn at(&self, ratio: f64) -> f64 {
        let part = (ratio.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        LEFT + part * (RIGHT - LEFT)
    }

    /// Lines and numbers, from `top` to `bottom`.
    fn draw(&self, out: &mut String, top: f64, bottom: f64) {
        for tick in Axis::TICKS
            .into_iter()
            .filter(|t| (self.low..=self.high).contains(t))
        {
            let x = self.at(tick);
            let class = if tick == 1.0 { "one" } else { "grid" };
            let _ = write!(
                out,
                r#"<line class="{class}" x1="{x:.1}" x2="{x:.1}" y1="{top:.1}" y2="{bottom:.1}"/>"#
            );
            for y in [top - 6.0, bottom + 15.0] {
                let _ = write!(
                    out,
                    r#"<text class="tick" x="{x:.1}" y="{y:.1}">{tick}</text>"#
                );
            }
        }
    }
}

/// Every case: one row for a workload, one mark for a column.
pub(crate) fn cases(results: &Results) -> String {
    let columns = shown(results);
    let ratios: Vec<f64> = results
        .rows
        .iter()
        .flat_map(|row| columns.iter().filter_map(|column| row.ratio(*column)))
        .collect();
    let axis = Axis::around(&ratios);
    let top = 24.0;
    let bottom = top + results.groups.len() as f64 * HEADING + results.rows.len() as f64 * ROW;
    let mut out = open(
        bottom + 24.0,
        "The time of every workload in every column, relative to native code",
    );
    bands(&mut out, results, top);
    axis.draw(&mut out, top, bottom);
    let mut y = top;
    for (group, title) in &results.groups {
        let _ = write!(
            out,
            r#"<text class="group" x="0" y="{:.1}">{}</text>"#,
            y + 20.0,
            escape(title)
        );
        y += HEADING;
        for row in results.rows_of(Some(group)) {
            let middle = y + ROW / 2.0;
            let _ = write!(
                out,
                r#"<text class="name" x="{}" y="{:.1}">{}</text>"#,
                LEFT - 10.0,
                middle + 4.0,
                escape(&row.name)
            );
            for (lane, column) in columns.iter().enumerate() {
                let lane_y = y + ROW * (lane as f64 + 0.75) / (columns.len() as f64 + 0.5);
                point(&mut out, &axis, row, *column, lane_y);
            }
            y += ROW;
        }
    }
    out + "</svg>"
}

/// Every other row on a tint, below lines and marks.
fn bands(out: &mut String, results: &Results, mut y: f64) {
    for (group, _) in &results.groups {
        y += HEADING;
        for number in 0..results.rows_of(Some(group)).count() {
            if number % 2 == 0 {
                let _ = write!(
                    out,
                    r#"<rect class="band" x="0" y="{y:.1}" width="{WIDTH}" height="{ROW}"/>"#
                );
            }
            y += ROW;
        }
    }
}

fn point(out: &mut String, axis: &Axis, row: &Row, column: Column, y: f64) {
    let Some(Quartiles {
        low,
        median: ratio,
        high,
    }) = row.quartiles(column)
    else {
        return;
    };
    let title = format!(
        "{}, {}: {ratio:.3} (quartiles {low:.3}, {high:.3})",
        row.name,
        column.name()
    );
    let x = axis.at(ratio);
    let _ = write!(
        out,
        r#"<line class="grid" x1="{:.1}" x2="{:.1}" y1="{y:.1}" y2="{y:.1}"/>"#,
        axis.at(low),
        axis.at(high)
    );
    mark(out, column, x, y, &title);
    if ratio > axis.high {
        let _ = write!(
            out,
            r#"<text class="off" x="{:.1}" y="{:.1}">▸ {ratio:.1}</text>"#,
            x + 7.0,
            y + 3.5
        );
    } else if ratio < axis.low {
        let _ = write!(
            out,
            r#"<text class="off" x="{:.1}" y="{:.1}">◂ {ratio:.2}</text>"#,
            x + 7.0,
            y + 3.5
        );
    }
}

/// Shape and colour tell the column, so that neither must be seen.
pub(crate) fn mark(out: &mut String, column: Column, x: f64, y: f64, title: &str) {
    let shape = match column {
        Column::ReadWriteCall => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="4.6"/>"#),
        Column::WriteCall => format!(r#"<circle class="ring" cx="{x:.1}" cy="{y:.1}" r="3.7"/>"#),
        Column::Trap => format!(
            r#"<path d="M{x:.1} {:.1}l4.6 4.6l-4.6 4.6l-4.6-4.6z"/>"#,
            y - 4.6
        ),
        Column::Wasmtime => format!(r#"<path d="M{x:.1} {:.1}l4.8 8.2h-9.6z"/>"#, y - 4.9),
        Column::Wasm2c => format!(
            r#"<rect x="{:.1}" y="{:.1}" width="7.4" height="7.4"/>"#,
            x - 3.7,
            y - 3.7
        ),
        Column::WordReadWrite => format!(
            r#"<path class="ring" d="M{:.1} {y:.1}h9.2m-4.6-4.6v9.2"/>"#,
            x - 4.6
        ),
        Column::WordWrite => format!(
            r#"<path class="ring" d="M{:.1} {y:.1}h6.4m-3.2-3.2v6.4"/>"#,
            x - 3.2
        ),
        Column::Asan => format!(
            r#"<path d="M{:.1} {:.1}h9.6l-4.8 8.2z"/>"#,
            x - 4.8,
            y - 3.3
        ),
        Column::Native | Column::Reserved | Column::Musl | Column::Register | Column::Counted => {
            format!(
                r#"<path class="ring" d="M{:.1} {:.1}l7 7m0-7l-7 7"/>"#,
                x - 3.5,
                y - 3.5
            )
        }
    };
    let _ = write!(
        out,
        r#"<g class="c-{}"><title>{}</title>{shape}</g>"#,
        column.name(),
        escape(title)
    );
}

/// A bar for each column's geometric mean, group by group and over all.
pub(crate) fn means(results: &Results) -> String {
    let value = |column, group: Option<&str>| results.mean(column, group).map(|(mean, _)| mean);
    bars(results, "Geometric means relative to native code", &value)
}

/// A bar for each wall's growth of code.
pub(crate) fn growth(results: &Results) -> String {
    let value = |column: Column, group: Option<&str>| {
        if column.is_wall() || column.is_word() {
            results.mean_growth(column, group)
        } else {
            None
        }
    };
    bars(
        results,
        "Growth of machine code relative to native code",
        &value,
    )
}

fn bars(
    results: &Results,
    title: &str,
    value: &dyn Fn(Column, Option<&str>) -> Option<f64>,
) -> String {
    const BAR: f64 = 13.0;
    let mut groups: Vec<(Option<&str>, &str)> = results
        .groups
        .iter()
        .map(|(g, t)| (Some(g.as_str()), t.as_str()))
        .collect();
    if groups.len() > 1 {
        groups.push((None, "All of them"));
    }
    let columns: Vec<Column> = shown(results)
        .into_iter()
        .filter(|column| groups.iter().any(|(g, _)| value(*column, *g).is_some()))
        .collect();
    let values: Vec<f64> = groups
        .iter()
        .flat_map(|(g, _)| columns.iter().filter_map(|c| value(*c, *g)))
        .collect();
    let axis = Axis::around(&values);
    let height = HEADING + columns.len() as f64 * BAR + 4.0;
    let (top, bottom) = (24.0, 24.0 + groups.len() as f64 * height);
    let mut out = open(bottom + 24.0, title);
    axis.draw(&mut out, top, bottom);
    for (number, (group, name)) in groups.iter().enumerate() {
        let y = top + number as f64 * height;
        let _ = write!(
            out,
            r#"<text class="group" x="0" y="{:.1}">{}</text>"#,
            y + 20.0,
            escape(name)
        );
        for (lane, column) in columns.iter().enumerate() {
            let Some(mean) = value(*column, *group) else {
                continue;
            };
            let y = y + HEADING - 2.0 + lane as f64 * BAR;
            let (from, to) = (
                axis.at(1.0).min(axis.at(mean)),
                axis.at(1.0).max(axis.at(mean)),
            );
            let _ = write!(
                out,
                r#"<text class="lane" x="{:.1}" y="{:.1}">{}</text><rect class="c-{}" x="{from:.1}" y="{:.1}" width="{:.1}" height="{:.1}"/><text class="value" x="{:.1}" y="{:.1}">{mean:.3}</text>"#,
                LEFT - 10.0,
                y + 10.0,
                column.name(),
                column.name(),
                y + 1.5,
                (to - from).max(1.0),
                BAR - 3.0,
                to + 5.0,
                y + 10.0,
            );
        }
    }
    out + "</svg>"
}

/// The columns that are compared with native code; controls are left to the table.
pub(crate) fn shown(results: &Results) -> Vec<Column> {
    results
        .columns
        .iter()
        .copied()
        .filter(|c| *c != Column::Native && !c.is_control())
        .collect()
}

fn open(height: f64, title: &str) -> String {
    format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{title}">"#)
}
