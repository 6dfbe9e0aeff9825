//! The runs of a sweep as a table, as CSV and as JSON.

use super::Run;
use super::plan::Plan;
use mullion_mmp::report::layout;
use serde_json::{Value, json};
use std::fmt::{Error, Write};

/// What is said of each run, in the order of the file's columns. Later versions add columns behind the last.
fn columns(run: &Run) -> Vec<(&'static str, Value)> {
    let (config, report) = (&run.config, &run.report);
    let mut columns = vec![
        ("format", json!(config.tables.format.to_string())),
        ("granularity", json!(config.tables.granularity)),
        ("plb_entries", json!(config.plb.entries)),
        ("cycles", json!(report.cycles.total())),
        ("slowdown", json!(report.slowdown())),
        ("mbot", json!(report.share(report.cycles.bottom))),
        ("mtop", json!(report.share(report.cycles.top))),
        ("kern", json!(report.kernel())),
        ("crossing_time", json!(report.crossing_time())),
        ("cycles_per_call", json!(report.cycles_per_call())),
        ("plb_time", json!(report.plb_time())),
        ("plb_miss_rate", json!(report.plb_miss_rate())),
        ("plb_lookups", json!(report.plb.lookups)),
        ("plb_misses", json!(report.plb.misses)),
        ("table_bytes_peak", json!(report.table_bytes())),
        ("table_bytes_end", json!(report.tables.in_use * 4)),
        ("words_written", json!(report.tables.written)),
        ("words_read", json!(report.tables.read)),
        ("exposed_words", json!(report.exposed_words)),
        ("refused_accesses", json!(report.refused_accesses)),
        ("refused_calls", json!(report.refused_calls)),
        ("glb_entries", json!(config.glb.entries)),
        ("glb_time", json!(report.glb_time())),
        ("glb_miss_rate", json!(report.glb_miss_rate())),
        ("glb_lookups", json!(report.glb.lookups)),
        ("glb_misses", json!(report.glb.misses)),
    ];
    let caches = [
        (
            ["instruction_cache_bytes", "instruction_cache_miss_rate"],
            config.caches.instruction.bytes,
            report.instruction_cache,
        ),
        (
            ["data_cache_bytes", "data_cache_miss_rate"],
            config.caches.data.bytes,
            report.data_cache,
        ),
        (
            ["unified_cache_bytes", "unified_cache_miss_rate"],
            config.caches.unified.bytes,
            report.unified_cache,
        ),
    ];
    for ([bytes_name, rate_name], bytes, counts) in caches {
        columns.push((bytes_name, json!(bytes)));
        columns.push((rate_name, json!(miss_rate(counts))));
    }
    columns
}

fn miss_rate([accesses, misses]: [u64; 2]) -> f64 {
    match accesses {
        0 => 0.0,
        _ => misses as f64 / accesses as f64,
    }
}

/// A line of names, and a line for each run. A cell is empty if the run did not measure it.
pub(super) fn csv(runs: &[Run]) -> Result<String, Error> {
    let mut out = String::new();
    for (index, run) in runs.iter().enumerate() {
        let columns = columns(run);
        if index == 0 {
            let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            writeln!(out, "{}", names.join(","))?;
        }
        let cell = |(_, value): &(&str, Value)| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => {
                format!("{:.6}", number.as_f64().unwrap_or_default())
            }
            other => other.to_string(),
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(out)
}

/// One run as an object.
pub(super) fn json(run: &Run) -> Value {
    let columns = columns(run).into_iter();
    Value::Object(
        columns
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// A row for each run: what changes between runs in front, then what it led to.
pub(super) fn table(plan: &Plan, runs: &[Run], trace: &str) -> Result<String, Error> {
    let changing: Vec<_> = plan.dimensions.iter().filter(|one| one.varies()).collect();
    let mut head = vec!["format"];
    head.extend(changing.iter().map(|dimension| dimension.name));
    head.extend([
        "slowdown", "PLB time", "PLB mr", "GLB time", "GLB mr", "I mr", "D mr", "L2 mr",
    ]);
    let percent = |value: f64, digits: usize| format!("{:.digits$}%", value * 100.0);
    let row = |run: &Run| {
        let report = &run.report;
        let mut cells = vec![run.config.tables.format.to_string()];
        cells.extend(changing.iter().map(|one| (one.of)(&run.config).to_string()));
        let slowdown = report.slowdown().map(|slowdown| percent(slowdown, 1));
        cells.push(slowdown.unwrap_or("-".to_owned()));
        cells.push(percent(report.plb_time(), 2));
        cells.push(percent(report.plb_miss_rate(), 3));
        cells.push(percent(report.glb_time(), 2));
        cells.push(percent(report.glb_miss_rate(), 1));
        for counts in [
            report.instruction_cache,
            report.data_cache,
            report.unified_cache,
        ] {
            cells.push(percent(miss_rate(counts), 2));
        }
        cells
    };
    let rows: Vec<_> = runs.iter().map(row).collect();
    let mut out = String::new();
    let title = format!(
        "{trace} on {} machines (mr: miss rate; I, D, L2: the caches)",
        runs.len()
    );
    layout(&mut out, &title, &head, &rows)?;
    Ok(out)
}
