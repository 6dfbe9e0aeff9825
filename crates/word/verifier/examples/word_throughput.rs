//! How fast the verifier is: `cargo run --release -p mullion-word-verifier --example word_throughput FILE...`
//!
//! Each module is checked again and again for half a second; the table shows the best run, on one core. MB are 10^6
//! bytes of code.

use mullion_word_verifier::{Survey, survey};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:32} {:>12} {:>12} {:>9} {:>9} {:>9}  verdict",
        "file", "code bytes", "instructions", "checks", "ms", "MB/s"
    );
    for path in std::env::args().skip(1) {
        let bytes: Arc<[u8]> = std::fs::read(&path)?.into();
        let (mut best, started) = (Duration::MAX, Instant::now());
        let mut last: Option<Survey> = None;
        while last.is_none() || started.elapsed() < Duration::from_millis(500) {
            let start = Instant::now();
            last = Some(survey(Arc::clone(&bytes), 100));
            best = best.min(start.elapsed());
        }
        let survey = last.ok_or("no run")?;
        let module = survey.module.as_ref().ok_or(format!("{path}: no module"))?;
        let code = module
            .segments()
            .iter()
            .filter(|segment| segment.permission().is_executable());
        let code: u64 = code.map(|segment| segment.size()).sum();
        let verdict = survey
            .violations
            .first()
            .map_or("verified".to_owned(), ToString::to_string);
        println!(
            "{:32} {code:12} {:12} {:9} {:9.3} {:9.1}  {verdict}",
            path.rsplit('/').next().unwrap_or(&path),
            survey.stats.instructions,
            survey.stats.checks,
            best.as_secs_f64() * 1e3,
            code as f64 / best.as_secs_f64() / 1e6,
        );
    }
    Ok(())
}
