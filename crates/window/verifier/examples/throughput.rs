//! How fast the verifier is: `cargo run --release -p mullion-verifier --example throughput FILE...`
//!
//! FILE is an image, or an object file whose `.text` is checked as the code of
//! an image. Each is checked again and again for half a second; the table shows
//! the best run, on one core. MB are 10^6 bytes of code.

#[allow(dead_code, reason = "made for the tests")]
#[path = "../tests/support/build.rs"]
mod build;

use mullion_verifier::{Survey, survey};
use object::{Object, ObjectSection};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn image(path: &str) -> Result<Arc<[u8]>, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let elf = object::File::parse(&*bytes)?;
    if elf.kind() != object::ObjectKind::Relocatable {
        return Ok(bytes.into());
    }
    let mut code = Vec::new();
    for section in elf
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".text")))
    {
        code.extend(section.data()?);
        code.resize(code.len().next_multiple_of(32), 0xcc);
    }
    Ok(build::build(&code, mullion_abi::Protection::ReadWriteCall)
        .bytes
        .into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:32} {:>12} {:>12} {:>9} {:>9}  verdict",
        "file", "code bytes", "instructions", "ms", "MB/s"
    );
    for path in std::env::args().skip(1) {
        let bytes = image(&path)?;
        let (mut best, started) = (Duration::MAX, Instant::now());
        let mut last: Option<Survey> = None;
        while started.elapsed() < Duration::from_millis(500) {
            let start = Instant::now();
            last = Some(survey(Arc::clone(&bytes), 100));
            best = best.min(start.elapsed());
        }
        let survey = last.ok_or("no run")?;
        let Some(image) = &survey.image else {
            return Err(format!("{path}: not an image").into());
        };
        let code: u64 = image
            .segments()
            .iter()
            .filter(|s| s.permission.is_executable())
            .map(|s| s.size)
            .sum();
        let verdict = survey
            .violations
            .first()
            .map_or_else(|| "verified".to_owned(), |first| format!("{first}"));
        println!(
            "{path:32} {code:>12} {:>12} {:>9.3} {:>9.1}  {verdict}",
            survey.stats.instructions,
            best.as_secs_f64() * 1e3,
            code as f64 / best.as_secs_f64() / 1e6,
        );
    }
    Ok(())
}
