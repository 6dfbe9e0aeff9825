//! The runs of a sweep as charts: one line or colour for each format, over the values of one dimension.

use super::Run;
use super::plan::{CACHES, GLB, GRANULARITY, PLB, Plan};
use crate::commands::model::chart::{Chart, Series};
use mullion_mmp::measurement::Measurement;
use mullion_mmp::table::Format;

/// What is drawn of a run.
struct Drawn {
    file: String,
    title: &'static str,
    unit: &'static str,
    value: fn(&Measurement) -> f64,
}

fn drawn(
    file: &str,
    title: &'static str,
    unit: &'static str,
    value: fn(&Measurement) -> f64,
) -> Drawn {
    Drawn {
        file: file.to_owned(),
        title,
        unit,
        value,
    }
}

fn slowdown(report: &Measurement) -> f64 {
    report.slowdown().unwrap_or_default() * 100.0
}

/// All charts with their files' names: over each dimension that has more than one value, and over the granularity
/// unless only others were asked for.
pub(super) fn all(plan: &Plan, runs: &[Run], trace: &str) -> Vec<(String, Chart)> {
    let mut charts = Vec::new();
    let mut draw = |over: usize, x_title: &str, bars: bool, what: Vec<Drawn>| {
        for drawn in what {
            let chart = chart(plan, runs, trace, over, x_title, bars, &drawn);
            charts.push((drawn.file, chart));
        }
    };
    if plan.dimensions[PLB].varies() {
        let what = vec![
            drawn("plb-miss-rate.svg", "PLB miss rate", "%", |report| {
                report.plb_miss_rate() * 100.0
            }),
            drawn("plb-time.svg", "Time in PLB refills", "%", |report| {
                report.plb_time() * 100.0
            }),
            drawn("slowdown.svg", "Slowdown over no protection", "%", slowdown),
        ];
        draw(
            PLB,
            "entries of the protection lookaside buffer",
            false,
            what,
        );
    }
    if plan.dimensions[GLB].varies() {
        let what = vec![
            drawn("glb-miss-rate.svg", "GLB miss rate", "%", |report| {
                report.glb_miss_rate() * 100.0
            }),
            drawn("glb-time.svg", "Time in GLB refills", "%", |report| {
                report.glb_time() * 100.0
            }),
        ];
        draw(GLB, "entries of the gate lookaside buffer", false, what);
    }
    for over in CACHES {
        let dimension = &plan.dimensions[over];
        if dimension.varies() {
            let file = format!("slowdown-{}.svg", dimension.name.replace(' ', "-"));
            let what = vec![drawn(&file, "Slowdown over no protection", "%", slowdown)];
            draw(
                over,
                &format!("bytes of the {}", dimension.name),
                false,
                what,
            );
        }
    }
    let others = plan.dimensions[GLB..]
        .iter()
        .any(super::plan::Dimension::varies);
    if plan.dimensions[GRANULARITY].varies() || !others {
        let what = vec![
            drawn(
                "table-memory.svg",
                "Memory of the tables at its peak",
                " KiB",
                |report| report.table_bytes() as f64 / 1024.0,
            ),
            drawn("table-writes.svg", "Table words written", " k", |report| {
                report.tables.written as f64 / 1000.0
            }),
            drawn(
                "exposed.svg",
                "Words open to a domain that it was not given",
                " k",
                |report| report.exposed_words as f64 / 1000.0,
            ),
        ];
        draw(GRANULARITY, "granularity in bytes", true, what);
    }
    charts
}

fn chart(
    plan: &Plan,
    runs: &[Run],
    trace: &str,
    over: usize,
    x_title: &str,
    bars: bool,
    drawn: &Drawn,
) -> Chart {
    let series = |&format: &Format| {
        let mine = runs
            .iter()
            .filter(|run| run.config.tables.format == format && plan.stands_for(&run.config, over));
        Series {
            name: format.to_string(),
            points: mine.map(|run| (drawn.value)(&run.report)).collect(),
        }
    };
    let dimension = &plan.dimensions[over];
    let subtitle = match over {
        GRANULARITY => {
            let largest = plan.dimensions[PLB].values.iter().max();
            format!("{trace}, {} PLB entries", largest.unwrap_or(&0))
        }
        _ => {
            let finest = plan.dimensions[GRANULARITY].values.iter().min();
            format!("{trace}, granularity {} bytes", finest.unwrap_or(&4))
        }
    };
    Chart {
        title: drawn.title.to_owned(),
        subtitle,
        x_title: x_title.to_owned(),
        x_labels: dimension.values.iter().map(u64::to_string).collect(),
        unit: drawn.unit.to_owned(),
        series: plan.formats.iter().map(series).collect(),
        bars,
    }
}
