//! Charts as SVG: lines or bars over a few labelled places, drawn in the manner of the project's name:
//! black bars, primary colours, much white.

use std::fmt::{Error, Write};

/// One line, or one colour of bars.
pub(super) struct Series {
    /// What it is called.
    pub(super) name: String,
    /// A value for each place.
    pub(super) points: Vec<f64>,
}

/// A chart.
pub(super) struct Chart {
    /// What it shows.
    pub(super) title: String,
    /// Of what.
    pub(super) subtitle: String,
    /// What the places are.
    pub(super) x_title: String,
    /// The places.
    pub(super) x_labels: Vec<String>,
    /// What follows a value.
    pub(super) unit: String,
    /// The values.
    pub(super) series: Vec<Series>,
    /// Bars instead of lines.
    pub(super) bars: bool,
}

/// Red, blue, yellow, black: dark enough on white, and apart for the colour-blind by lightness too.
const COLOURS: [&str; 4] = ["#c8201e", "#1d4f9f", "#e0a800", "#1a1a1a"];

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 430.0;
/// Where the values are drawn.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 362.0;

impl Chart {
    /// The chart as a whole SVG file.
    pub(super) fn render(&self) -> Result<String, Error> {
        let mut out = String::new();
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif\" \
             fill=\"#1a1a1a\">"
        )?;
        writeln!(out, "<title>{}</title>", escape(&self.title))?;
        writeln!(
            out,
            "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>"
        )?;
        text(
            &mut out,
            (24.0, 36.0),
            19,
            "start",
            "600",
            "#1a1a1a",
            &self.title,
        )?;
        text(
            &mut out,
            (24.0, 57.0),
            12,
            "start",
            "400",
            "#5c5c5c",
            &self.subtitle,
        )?;
        let top = nice_ceiling(self.largest());
        self.draw_grid(&mut out, top)?;
        if self.bars {
            self.draw_bars(&mut out, top)?;
        } else {
            self.draw_lines(&mut out, top)?;
        }
        self.draw_places(&mut out)?;
        out.push_str("</svg>\n");
        Ok(out)
    }

    fn largest(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| &series.points);
        values.copied().fold(0.0, f64::max)
    }

    fn draw_grid(&self, out: &mut String, top: f64) -> Result<(), Error> {
        let steps = 4;
        for step in 0..=steps {
            let value = top * f64::from(step) / f64::from(steps);
            let y = height_of(value, top);
            if step > 0 {
                writeln!(
                    out,
                    "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e3e3e3\"/>"
                )?;
            }
            let label = format!("{}{}", short(value, top), self.unit);
            text(
                out,
                (LEFT - 10.0, y + 4.0),
                12,
                "end",
                "400",
                "#5c5c5c",
                &label,
            )?;
        }
        writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\" stroke=\"#1a1a1a\" \
             stroke-width=\"3\"/>"
        )
    }

    fn draw_lines(&self, out: &mut String, top: f64) -> Result<(), Error> {
        let mut labels = Vec::new();
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let points: Vec<(f64, f64)> = series
                .points
                .iter()
                .enumerate()
                .map(|(place, &value)| (self.middle_of(place), height_of(value, top)))
                .collect();
            let path: Vec<String> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
                 stroke-linejoin=\"round\"/>",
                path.join(" ")
            )?;
            for ((x, y), value) in points.iter().zip(&series.points) {
                writeln!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{colour}\">\
                     <title>{}: {value:.4}{}</title></rect>",
                    x - 4.0,
                    y - 4.0,
                    escape(&series.name),
                    escape(&self.unit)
                )?;
            }
            if let Some((_, y)) = points.last() {
                labels.push((*y, series.name.as_str(), *colour));
            }
        }
        draw_labels(out, labels)
    }

    fn draw_bars(&self, out: &mut String, top: f64) -> Result<(), Error> {
        let slot = self.slot();
        let width = (slot * 0.72 / self.series.len() as f64).min(64.0);
        let group = width * self.series.len() as f64;
        for (index, (series, colour)) in self.series.iter().zip(COLOURS.iter().cycle()).enumerate()
        {
            for (place, &value) in series.points.iter().enumerate() {
                let x = self.middle_of(place) - group / 2.0 + width * index as f64;
                let y = height_of(value, top);
                writeln!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                    x + 1.5,
                    width - 3.0,
                    BOTTOM - y
                )?;
                let label = short(value, top);
                let at = (x + width / 2.0, y - 6.0);
                text(out, at, 11, "middle", "400", "#1a1a1a", &label)?;
            }
            let y = TOP + 22.0 * index as f64;
            writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>",
                RIGHT + 16.0,
                y - 10.0
            )?;
            text(
                out,
                (RIGHT + 36.0, y),
                13,
                "start",
                "500",
                "#1a1a1a",
                &series.name,
            )?;
        }
        Ok(())
    }

    fn draw_places(&self, out: &mut String) -> Result<(), Error> {
        for (place, label) in self.x_labels.iter().enumerate() {
            let at = (self.middle_of(place), BOTTOM + 21.0);
            text(out, at, 12, "middle", "400", "#1a1a1a", label)?;
        }
        let at = ((LEFT + RIGHT) / 2.0, BOTTOM + 46.0);
        text(out, at, 12, "middle", "400", "#5c5c5c", &self.x_title)
    }

    fn slot(&self) -> f64 {
        (RIGHT - LEFT) / self.x_labels.len().max(1) as f64
    }

    fn middle_of(&self, place: usize) -> f64 {
        LEFT + self.slot() * (place as f64 + 0.5)
    }
}

/// The names beside the ends of their lines, moved apart where they would cover each other.
fn draw_labels(out: &mut String, mut labels: Vec<(f64, &str, &str)>) -> Result<(), Error> {
    labels.sort_by(|one, other| one.0.total_cmp(&other.0));
    let gap = 18.0;
    let mut free = f64::NEG_INFINITY;
    for label in &mut labels {
        label.0 = label.0.max(free);
        free = label.0 + gap;
    }
    // What was pushed below the axis goes up again, and pushes what is above it.
    let mut limit = BOTTOM - 2.0;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(limit);
        limit = label.0 - gap;
    }
    for (y, name, colour) in labels {
        let x = RIGHT - 18.0;
        writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>",
            x + 34.0,
            y - 6.0
        )?;
        text(
            out,
            (x + 54.0, y + 4.5),
            13,
            "start",
            "500",
            "#1a1a1a",
            name,
        )?;
    }
    Ok(())
}

fn text(
    out: &mut String,
    (x, y): (f64, f64),
    size: u32,
    anchor: &str,
    weight: &str,
    colour: &str,
    words: &str,
) -> Result<(), Error> {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
         font-weight=\"{weight}\" fill=\"{colour}\">{}</text>",
        escape(words)
    )
}

fn height_of(value: f64, top: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * value / top
}

/// The next of 1, 2, 4, 5, 8 times a power of ten: four steps up to it are easy to read.
fn nice_ceiling(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value * 1.02);
    step.unwrap_or(20.0) * power
}

/// A number with as many digits as the scale needs.
fn short(value: f64, top: f64) -> String {
    let digits = match top {
        top if top >= 100.0 => 0,
        top if top >= 10.0 => 1,
        top if top >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_whole_whatever_it_is_given() {
        for points in [vec![], vec![0.0, 0.0], vec![1.0, 1e9]] {
            for bars in [false, true] {
                let chart = Chart {
                    title: "a < b & c".to_owned(),
                    subtitle: String::new(),
                    x_title: "x".to_owned(),
                    x_labels: vec!["1".to_owned(), "2".to_owned()],
                    unit: "%".to_owned(),
                    series: vec![Series {
                        name: "s".to_owned(),
                        points: points.clone(),
                    }],
                    bars,
                };
                let svg = chart.render().unwrap();
                assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
                assert!(svg.contains("a &lt; b &amp; c"));
                assert!(!svg.contains("NaN") && !svg.contains("inf"));
            }
        }
    }

    #[test]
    fn the_top_of_the_scale_is_round_and_above() {
        for (value, top) in [
            (0.0, 1.0),
            (0.3, 0.4),
            (7.9, 10.0),
            (41.0, 50.0),
            (100.0, 200.0),
        ] {
            assert!((nice_ceiling(value) - top).abs() < 1e-9, "{value}");
        }
    }
}
