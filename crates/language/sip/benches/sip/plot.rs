//! Figure 4 as SVG: cycles by size, one line for each system and place.

use std::fmt::Write;

use crate::messages::SIZES;
use crate::report::escaped;
use crate::row::Row;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 620.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 330.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
/// Told apart with any kind of eyes (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];
const DASHES: [&str; 4] = ["", "7 4", "2 3", "10 3 2 3"];

/// A line of the plot.
struct Line<'a> {
    label: String,
    rows: Vec<&'a Row>,
}

fn lines(rows: &[Row]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let sized = rows.iter().filter(|row| {
        row.bytes.is_some()
            && (row.operation == "message there and back" || row.operation == "send-receive")
    });
    for row in sized {
        let label = format!("{}, {}", row.who, row.place);
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.rows.push(row),
            None => lines.push(Line {
                label,
                rows: vec![row],
            }),
        }
    }
    // The legend in the order of the lines' right ends.
    lines.sort_by(|a, b| end(b).total_cmp(&end(a)));
    lines
}

fn end(line: &Line<'_>) -> f64 {
    line.rows.last().map_or(0.0, |row| row.median)
}

pub(crate) fn messages(rows: &[Row]) -> String {
    let lines = lines(rows);
    let all = || lines.iter().flat_map(|line| &line.rows);
    let low = all()
        .map(|row| row.first_quartile)
        .fold(f64::INFINITY, f64::min);
    let high = all().map(|row| row.third_quartile).fold(1.0, f64::max);
    if !low.is_finite() {
        return String::new();
    }
    let (low, high) = (low.max(1.0).log10().floor(), high.log10().ceil());
    let smallest = (SIZES[0] as f64).ln();
    let largest = (SIZES[SIZES.len() - 1] as f64).ln();
    let x = |bytes: usize| {
        LEFT + ((bytes as f64).ln() - smallest) / (largest - smallest) * (WIDTH - LEFT - RIGHT)
    };
    let y = |cycles: f64| {
        TOP + (high - cycles.max(1.0).log10()) / (high - low) * (HEIGHT - TOP - BOTTOM)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui,sans-serif\" \
         font-size=\"12\" role=\"img\" aria-label=\"Cycles of a message there and back by its size\">\n"
    );
    for power in low as i32..=high as i32 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"9\">{power}</tspan></text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    for bytes in SIZES {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{bytes} B</text>",
            x(bytes),
            HEIGHT - BOTTOM + 20.0
        );
    }
    for (index, line) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let dash = DASHES[index / COLOURS.len() % DASHES.len()];
        let points: Vec<String> = line
            .rows
            .iter()
            .map(|row| format!("{:.1},{:.1}", x(row.bytes.unwrap_or(1)), y(row.median)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
            points.join(" ")
        );
        for row in &line.rows {
            let (at, bytes) = (x(row.bytes.unwrap_or(1)), row.bytes.unwrap_or(1));
            let _ = writeln!(
                svg,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}, {bytes} B: {:.0} cycles</title></circle>",
                y(row.first_quartile),
                y(row.third_quartile),
                y(row.median),
                escaped(&line.label),
                row.median
            );
        }
        let legend = TOP + 12.0 + 17.0 * index as f64;
        let from = WIDTH - RIGHT + 20.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{from}\" x2=\"{}\" y1=\"{legend:.1}\" y2=\"{legend:.1}\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dash}\"/><text x=\"{}\" y=\"{:.1}\">{}</text>",
            from + 26.0,
            from + 32.0,
            legend + 4.0,
            escaped(&line.label)
        );
    }
    svg.push_str("</svg>\n");
    svg
}
