//! Rows, in the form of `mullion-sip`'s benchmark, which adds them to its own (`--rows`).

use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cores::Place;

/// Bytes of messages.
pub(crate) const SIZES: [usize; 4] = [1, 32, 1 << 10, 32 << 10];
/// Before each message to a peer that is to sleep.
const PAUSE: Duration = Duration::from_millis(1);
/// A row that takes longer has fewer batches, but ten.
const PATIENCE: Duration = Duration::from_secs(3);

static ROWS: Mutex<Vec<Value>> = Mutex::new(Vec::new());

pub(crate) fn cycles() -> u64 {
    // SAFETY: every x86-64 has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Has `batch` send a message there and back so many times, often. Batches are short beside what the system gives a
/// thread at a time: the median is of those that were not interrupted.
pub(crate) fn measure(
    who: &str,
    place: Place,
    bytes: usize,
    sleep: fn(Duration),
    batch: impl FnMut(u32),
) {
    let samples = samples(place, bytes, sleep, batch);
    record("message there and back", who, place, bytes, samples);
}

/// What each batch took for one message.
pub(crate) fn samples(
    place: Place,
    bytes: usize,
    sleep: fn(Duration),
    mut batch: impl FnMut(u32),
) -> Vec<f64> {
    let (batches, times) = match place {
        Place { asleep: true, .. } => (101, 1),
        Place { core: 0, .. } => (51, 10),
        _ if bytes > 4 << 10 => (101, 5),
        _ => (101, 50),
    };
    batch(times);
    let mut samples = Vec::with_capacity(batches);
    let since = Instant::now();
    while samples.len() < batches && (samples.len() < 10 || since.elapsed() < PATIENCE) {
        if place.asleep {
            sleep(PAUSE);
        }
        let begin = cycles();
        batch(times);
        samples.push((cycles() - begin) as f64 / f64::from(times));
    }
    samples
}

/// Adds a row.
pub(crate) fn record(
    operation: &str,
    who: &str,
    place: Place,
    bytes: usize,
    mut samples: Vec<f64>,
) {
    // Rows outlive the process that measures.
    // SAFETY: it prints and allocates, which ends; nothing here parks or panics. The row goes to a static.
    let _host = unsafe { mullion_sip_hosting::enter_kernel_as_host() };
    samples.sort_by(f64::total_cmp);
    let at = |quarter: usize| samples[(samples.len() - 1) * quarter / 4];
    eprintln!(
        "{operation}: {who}, {}, {bytes} bytes: {:.0}",
        place.name(),
        at(2)
    );
    ROWS.lock().expect("one at a time").push(json!({
        "operation": operation, "who": who, "where": place.name(), "bytes": bytes,
        "least": at(0), "first_quartile": at(1), "median": at(2), "third_quartile": at(3),
        "batches": samples.len(), "paper": null, "aim": null,
    }));
}

/// Adds the rows of another program.
pub(crate) fn add(json: &str) -> serde_json::Result<()> {
    let mut read: Value = serde_json::from_str(json)?;
    if let Some(rows) = read["rows"].as_array_mut() {
        ROWS.lock().expect("one at a time").append(rows);
    }
    Ok(())
}

/// All rows, as Markdown.
pub(crate) fn table() -> String {
    let mut text = String::from(
        "| operation | who | where | bytes | cycles | quartiles | least |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for row in ROWS.lock().expect("one at a time").iter() {
        let word = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.0} | {:.0}–{:.0} | {:.0} |",
            word("operation"),
            word("who"),
            word("where"),
            row["bytes"],
            number("median"),
            number("first_quartile"),
            number("third_quartile"),
            number("least"),
        );
    }
    text
}

/// The same as JSON.
pub(crate) fn json() -> String {
    json!({ "rows": *ROWS.lock().expect("one at a time") }).to_string()
}
