//! The figures as a page, with a plot of each.

use crate::{Figure, Results};
use std::fmt::Write as _;

const COLOURS: [&str; 9] = [
    "#222222", "#c05020", "#1060c0", "#20a0d0", "#c020a0", "#8040a0", "#60a030", "#b0a000",
    "#a00030",
];
const WIDE: f64 = 720.0;
const HIGH: f64 = 360.0;

// Writing to a string does not fail.

pub(crate) fn page(results: &Results) -> String {
    let mut text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>mullion packets: what a packet costs</title><style>\
         body{{font:15px/1.5 sans-serif;margin:2em;max-width:70em;color:#222}}table{{border-collapse:collapse}}\
         th,td{{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}}td:first-child,th:first-child{{text-align:left}}\
         small{{color:#777}}</style><h1>What a packet costs</h1><p>{}. Nanoseconds for a packet through the forwarder, \
         without its sockets, by bytes of payload; the best of all rounds, walls in turns.</p>",
        results.machine
    );
    for figure in &results.figures {
        let _ = write!(text, "<h2>{}</h2>{}", figure.title, plot(figure));
        table(&mut text, figure);
    }
    for why in &results.missing {
        let _ = write!(text, "<p>Not measured: {why}</p>");
    }
    text
}

/// Time upwards, by powers of ten: a picture by itself.
pub(crate) fn plot(figure: &Figure) -> String {
    let all = || figure.lines.iter().flat_map(|line| &line.nanoseconds);
    let low = all().copied().fold(f64::INFINITY, f64::min).log10().floor();
    let high = all().copied().fold(1.0, f64::max).log10().ceil();
    let longest = figure.sizes.last().copied().unwrap_or(1) as f64;
    let x = |size: usize| 60.0 + size as f64 / longest * (WIDE - 80.0);
    let y = |time: f64| HIGH - 30.0 - (time.log10() - low) / (high - low) * (HIGH - 50.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDE} {}\" width=\"{WIDE}\" font-size=\"12\" \
         font-family=\"sans-serif\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        HIGH + 18.0 * (figure.lines.len() as f64 / 2.0).ceil()
    );
    for power in low as i32..=high as i32 {
        let at = y(10f64.powi(power));
        let _ = write!(
            text,
            "<line x1=\"60\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/><text x=\"54\" y=\"{:.1}\" text-anchor=\"end\">{} ns</text>",
            WIDE - 20.0,
            at + 4.0,
            10f64.powi(power)
        );
    }
    for size in &figure.sizes {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{size}</text>",
            x(*size),
            HIGH - 10.0
        );
    }
    for (at, (line, colour)) in figure.lines.iter().zip(COLOURS).enumerate() {
        let points = figure.sizes.iter().zip(&line.nanoseconds);
        let points: Vec<String> = points
            .map(|(size, time)| format!("{:.1},{:.1}", x(*size), y(*time)))
            .collect();
        let _ = write!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"><title>{}</title></polyline>",
            points.join(" "),
            line.wall
        );
        let (column, row) = ((at % 2) as f64, (at / 2) as f64);
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            60.0 + column * WIDE / 2.0,
            HIGH + 12.0 + row * 18.0,
            line.wall
        );
    }
    text.push_str("</svg>\n");
    text
}

fn table(text: &mut String, figure: &Figure) {
    text.push_str("<table><tr><th>payload");
    for size in &figure.sizes {
        let _ = write!(text, "<th>{size}");
    }
    for (line, colour) in figure.lines.iter().zip(COLOURS) {
        let _ = write!(
            text,
            "<tr><td><span style=\"color:{colour}\">&#9632;</span> {}",
            line.wall
        );
        for (time, native) in line.nanoseconds.iter().zip(&figure.lines[0].nanoseconds) {
            let _ = write!(text, "<td>{time:.1} <small>{:.2}</small>", time / native);
        }
    }
    text.push_str("</table>");
}
